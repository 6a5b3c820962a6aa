/* hidden-stores.c: may a kernel that says what it touches write memory without saying so?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The compiler tells of the stores that it makes. It tells of none in assembly, and of none that
 * it has a function for. Functions of other objects tell of nothing, unless pto_access.h wraps
 * them. The functions listed here write nowhere in memory of the caller. Any other one may write,
 * or start a thread that does.
 */
#include "config.h"

#include "hidden-stores.h"

#include <string.h>

/* Functions of numbers, also with f or l at their end. */
static const char *const of_numbers[]
    = { "acos",    "acosh",      "asin",     "asinh",  "atan",      "atan2",      "atanh",
        "cbrt",    "ceil",       "copysign", "cos",    "cosh",      "erf",        "erfc",
        "exp",     "exp10",      "exp2",     "expm1",  "fabs",      "fdim",       "floor",
        "fma",     "fmax",       "fmin",     "fmod",   "hypot",     "ilogb",      "j0",
        "j1",      "ldexp",      "lgamma",   "llrint", "llround",   "log",        "log10",
        "log1p",   "log2",       "logb",     "lrint",  "lround",    "nan",        "nearbyint",
        "pow",     "remainder",  "rint",     "round",  "scalbn",    "sin",        "sinh",
        "sqrt",    "tan",        "tanh",     "tgamma", "trunc",     "y0",         "y1",
        "scalbln", "nexttoward", "logl10",   "exp2m1", "roundeven", "significand" };

/* memcpy() and its sisters have told, and so has what allocates. */
static const char *const harmless[] = { "abort",
                                        "abs",
                                        "aligned_alloc",
                                        "atexit",
                                        "atof",
                                        "atoi",
                                        "atol",
                                        "atoll",
                                        "calloc",
                                        "clock",
                                        "exit",
                                        "_exit",
                                        "fclose",
                                        "fflush",
                                        "fopen",
                                        "fprintf",
                                        "fputc",
                                        "fputs",
                                        "free",
                                        "fwrite",
                                        "getenv",
                                        "getpid",
                                        "labs",
                                        "malloc",
                                        "memchr",
                                        "memcmp",
                                        "memcpy",
                                        "memmove",
                                        "memset",
                                        "pow10",
                                        "printf",
                                        "putc",
                                        "putchar",
                                        "puts",
                                        "raise",
                                        "rand",
                                        "random",
                                        "realloc",
                                        "sched_yield",
                                        "sleep",
                                        "srand",
                                        "srandom",
                                        "strcasecmp",
                                        "strchr",
                                        "strcmp",
                                        "strcspn",
                                        "strlen",
                                        "strncmp",
                                        "strnlen",
                                        "strrchr",
                                        "strspn",
                                        "strstr",
                                        "time",
                                        "usleep",
                                        "vfprintf",
                                        "vprintf",
                                        "write",
                                        "__assert_fail",
                                        "__assert",
                                        "__ctype_b_loc",
                                        "__fdelt_chk",
                                        "__fprintf_chk",
                                        "__gmon_start__",
                                        "__start_pto2_relax",
                                        "__stop_pto2_relax",
                                        "__gxx_personality_v0",
                                        "__memcpy_chk",
                                        "__memmove_chk",
                                        "__memset_chk",
                                        "__printf_chk",
                                        "__stack_chk_fail",
                                        "__errno_location",
                                        "__tls_get_addr",
                                        "__vfprintf_chk",
                                        "__dynamic_cast",
                                        "nanosleep" };

/* How names begin: of C++ and its library, of the linker, and of libpto. */
static const char *const begins[] = { "_ITM_",
                                      "_Unwind_",
                                      "__cxa_",
                                      "pto_",
                                      "pto2_",
                                      "_Zda",
                                      "_Zdl",
                                      "_Zna",
                                      "_Znw",
                                      "_ZNSo",
                                      "_ZNSaI",
                                      "_ZNSt7__cxx1112basic_string",
                                      "_ZNKSt7__cxx1112basic_string",
                                      "_ZSt16__ostream_insert",
                                      "_ZSt4endl",
                                      "_ZSt9terminatev",
                                      "_ZStls" };

/* Names in a source. What follows them does not matter. */
static const char *const stores[] = { "asm",
                                      "__asm",
                                      "__asm__",
                                      "__builtin_ia32_",
                                      "__builtin_aarch64_",
                                      "__builtin_nontemporal_store",
                                      "vst1",
                                      "vst2",
                                      "vst3",
                                      "vst4" };

static gboolean
is_listed (const char *name, const char *const *list, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (strcmp (name, list[i]) == 0)
      return TRUE;
  return FALSE;
}

gboolean
pto_hidden_stores_may_come_from (const char *function)
{
  gsize length = strlen (function);
  g_autofree char *shorter = g_strndup (function, length > 0 ? length - 1 : 0);

  if (is_listed (function, harmless, G_N_ELEMENTS (harmless))
      || is_listed (function, of_numbers, G_N_ELEMENTS (of_numbers))
      || ((g_str_has_suffix (function, "f") || g_str_has_suffix (function, "l"))
          && is_listed (shorter, of_numbers, G_N_ELEMENTS (of_numbers))))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (begins); i++)
    if (g_str_has_prefix (function, begins[i]))
      return FALSE;
  return !(g_str_has_prefix (function, "_ZSt") && strstr (function, "__throw_") != NULL)
         && !(g_str_has_prefix (function, "_ZNSt") && strstr (function, "_error") != NULL);
}

/* --- sources --- */

static gboolean
is_of_name (char c)
{
  return g_ascii_isalnum (c) || c == '_';
}

static gboolean
has_piece (const char *name, gsize n, const char *piece)
{
  return g_strstr_len (name, (gssize) n, piece) != NULL;
}

/* _mm_stream_ps(), _mm256_maskstore_ps(), _mm512_mask_storeu_ps(), _mm512_i32scatter_ps(). */
static gboolean
is_store (const char *name, gsize n)
{
  for (gsize i = 0; i < G_N_ELEMENTS (stores); i++)
    {
      gsize length = strlen (stores[i]);
      gboolean is_begin = g_str_has_suffix (stores[i], "_") || g_str_has_prefix (stores[i], "vst");

      if (n >= length && memcmp (name, stores[i], length) == 0 && (n == length || is_begin))
        return TRUE;
    }
  if (n < 4 || memcmp (name, "_mm", 3) != 0)
    return FALSE;
  return has_piece (name, n, "stream") || has_piece (name, n, "scatter")
         || has_piece (name, n, "compressstore")
         || (has_piece (name, n, "mask")
             && (has_piece (name, n, "store") || has_piece (name, n, "move")));
}

static gboolean
has_store (const char *line, const char *end)
{
  while (line < end)
    {
      const char *name = line;

      while (line < end && is_of_name (*line))
        line++;
      if (line > name && is_store (name, (gsize) (line - name)))
        return TRUE;
      line += line == name;
    }
  return FALSE;
}

/* A line that says where the next ones are from: # 12 "/usr/include/math.h" 1 3. Returns whether
 * they are looked at. */
static gboolean
is_of_program (const char *line, const char *end, const char *own)
{
  const char *name = memchr (line, '"', (gsize) (end - line));
  const char *close
      = name != NULL && name + 1 < end ? memchr (name + 1, '"', (gsize) (end - name - 1)) : NULL;
  gsize length = strlen (own);

  if (close == NULL)
    return TRUE;
  if ((gsize) (close - name) > length && memcmp (name + 1, own, length) == 0)
    return FALSE;
  return memchr (close, '3', (gsize) (end - close)) == NULL;
}

const char *
pto_hidden_stores_mark (const char *source, gsize size, const char *own)
{
  const char *end = source + size;
  gboolean is_program = TRUE;

  for (const char *line = source; line < end;)
    {
      const char *next = memchr (line, '\n', (gsize) (end - line));

      next = next != NULL ? next : end;
      if (next - line > 2 && line[0] == '#' && line[1] == ' ')
        is_program = is_of_program (line, next, own);
      else if (is_program && has_store (line, next))
        return "\n__attribute__ ((visibility (\"default\"), used)) char " PTO_HIDDEN_STORES_SYMBOL
               " = 1;\n";
      line = next + 1;
    }
  return "";
}
