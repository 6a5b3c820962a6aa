/* hidden-stores.c: what may a kernel do that says what it touches, without saying so?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The compiler tells of the stores that it makes. It tells of none in assembly, and of none that
 * it has a function for. Functions of other objects tell of nothing, unless pto_access.h wraps
 * them. The functions listed here write nowhere in memory of the caller. Any other one may write,
 * or start a thread that does.
 *
 * A kernel talks if it can see what another kernel writes while both run, or write in an order that
 * the other one can rely on. Without atomics, volatile, assembly, and functions that the compiler
 * does not know, it may read memory once and keep that, so a loop that waits would have no end.
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

/* memcpy() and its sisters have told, and so has what allocates. The compiler knows what these do,
 * or they return nowhere. */
static const char *const harmless[] = { "__assert",
                                        "__assert_fail",
                                        "__ctype_b_loc",
                                        "__dynamic_cast",
                                        "__errno_location",
                                        "__fdelt_chk",
                                        "__gmon_start__",
                                        "__gxx_personality_v0",
                                        "__memcpy_chk",
                                        "__memmove_chk",
                                        "__memset_chk",
                                        "__stack_chk_fail",
                                        "__start_pto2_relax",
                                        "__stop_pto2_relax",
                                        "__tls_get_addr",
                                        "abort",
                                        "abs",
                                        "aligned_alloc",
                                        "atexit",
                                        "atof",
                                        "atoi",
                                        "atol",
                                        "atoll",
                                        "calloc",
                                        "free",
                                        "labs",
                                        "malloc",
                                        "memchr",
                                        "memcmp",
                                        "memcpy",
                                        "memmove",
                                        "memset",
                                        "pow10",
                                        "realloc",
                                        "strcasecmp",
                                        "strchr",
                                        "strcmp",
                                        "strcspn",
                                        "strlen",
                                        "strncmp",
                                        "strnlen",
                                        "strrchr",
                                        "strspn",
                                        "strstr" };

/* The compiler takes it that other memory has changed when one of these returns. */
static const char *const opaque[]
    = { "__fprintf_chk", "__printf_chk", "__vfprintf_chk", "_exit", "clock",   "exit",    "fclose",
        "fflush",        "fopen",        "fprintf",        "fputc", "fputs",   "fwrite",  "getenv",
        "getpid",        "nanosleep",    "printf",         "putc",  "putchar", "puts",    "raise",
        "rand",          "random",       "sched_yield",    "sleep", "srand",   "srandom", "time",
        "usleep",        "vfprintf",     "vprintf",        "write" };

/* How names begin: of C++, of the linker, and of libpto. */
static const char *const begins[]
    = { "_ITM_", "_Unwind_", "__cxa_", "pto_", "pto2_", "_Zda", "_Zdl", "_Zna", "_Znw", "_ZNSaI" };

/* Of the library of C++, which are opaque. */
static const char *const opaque_begins[] = { "_ZNSo",
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

/* Likewise: what makes the compiler read memory again that others may have written. */
static const char *const talks[] = { "asm",        "__asm",        "__asm__", "volatile",
                                     "__volatile", "__volatile__", "_Atomic", "pto_relax" };
static const char *const talk_begins[] = { "atomic", "__atomic_", "__sync_" };

static gboolean
is_listed (const char *name, const char *const *list, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (strcmp (name, list[i]) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
begins_with (const char *name, const char *const *list, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (g_str_has_prefix (name, list[i]))
      return TRUE;
  return FALSE;
}

gboolean
pto_hidden_stores_may_talk (const char *function)
{
  gsize length = strlen (function);
  g_autofree char *shorter = g_strndup (function, length > 0 ? length - 1 : 0);

  return !is_listed (function, harmless, G_N_ELEMENTS (harmless))
         && !is_listed (function, of_numbers, G_N_ELEMENTS (of_numbers))
         && !((g_str_has_suffix (function, "f") || g_str_has_suffix (function, "l"))
              && is_listed (shorter, of_numbers, G_N_ELEMENTS (of_numbers)))
         && !begins_with (function, begins, G_N_ELEMENTS (begins))
         && !(g_str_has_prefix (function, "_ZSt") && strstr (function, "__throw_") != NULL)
         && !(g_str_has_prefix (function, "_ZNSt") && strstr (function, "_error") != NULL);
}

gboolean
pto_hidden_stores_may_come_from (const char *function)
{
  return pto_hidden_stores_may_talk (function)
         && !is_listed (function, opaque, G_N_ELEMENTS (opaque))
         && !begins_with (function, opaque_begins, G_N_ELEMENTS (opaque_begins));
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
is_talk (const char *name, gsize n)
{
  for (gsize i = 0; i < G_N_ELEMENTS (talks); i++)
    if (n == strlen (talks[i]) && memcmp (name, talks[i], n) == 0)
      return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (talk_begins); i++)
    if (n >= strlen (talk_begins[i]) && memcmp (name, talk_begins[i], strlen (talk_begins[i])) == 0)
      return TRUE;
  return FALSE;
}

static void
look_at_line (const char *line, const char *end, gboolean *hides, gboolean *talks_there)
{
  while (line < end)
    {
      const char *name = line;

      while (line < end && is_of_name (*line))
        line++;
      *hides = *hides || is_store (name, (gsize) (line - name));
      *talks_there = *talks_there || is_talk (name, (gsize) (line - name));
      line += line == name;
    }
}

/* A line that says where the next ones are from: # 12 "/usr/include/math.h" 1 3. */
typedef struct
{
  const char *name;
  gsize n;
  gboolean is_system;
} Place;

static Place
read_place (const char *line, const char *end)
{
  const char *name = memchr (line, '"', (gsize) (end - line));
  const char *close
      = name != NULL && name + 1 < end ? memchr (name + 1, '"', (gsize) (end - name - 1)) : NULL;

  if (close == NULL)
    return (Place){ "", 0, FALSE };
  return (Place){ name + 1, (gsize) (close - name - 1),
                  memchr (close, '3', (gsize) (end - close)) != NULL };
}

char *
pto_hidden_stores_mark (const char *source, gsize size, const char *own)
{
#define MARK(symbol) "\n__attribute__ ((visibility (\"default\"), used)) char " symbol " = 1;\n"
  const char *end = source + size;
  gsize length = strlen (own);
  Place program = { "", 0, FALSE };
  gboolean is_program = TRUE;
  gboolean hides = FALSE;
  gboolean talks_there = FALSE;

  for (const char *line = source; line < end && !(hides && talks_there);)
    {
      const char *next = memchr (line, '\n', (gsize) (end - line));

      next = next != NULL ? next : end;
      if (next - line > 2 && line[0] == '#' && line[1] == ' ')
        {
          Place place = read_place (line, next);

          /* What a macro of the system becomes in a file of the program is marked like the system.
           */
          is_program
              = !(place.n >= length && memcmp (place.name, own, length) == 0)
                && (!place.is_system
                    || (place.n == program.n && memcmp (place.name, program.name, place.n) == 0));
          if (is_program)
            program = place;
        }
      else if (is_program)
        look_at_line (line, next, &hides, &talks_there);
      line = next + 1;
    }
  return g_strconcat (hides ? MARK (PTO_HIDDEN_STORES_SYMBOL) : "",
                      talks_there ? MARK (PTO_TALKS_SYMBOL) : "", NULL);
#undef MARK
}
