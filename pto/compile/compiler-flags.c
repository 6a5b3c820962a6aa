/* compiler-flags.c: with which flags is a source compiled?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of two flags that contradict each other the later one holds: ours come first, then those of the
 * environment, then those of the callable, which knows best what its source needs.
 */
#include "config.h"

#include "compiler.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

#define ISA_ROOT "PTO_ISA_ROOT"

/* Where the flags of a source go. */
typedef struct
{
  const PtoCompilerJob *job;
  GPtrArray *command;
  GPtrArray *linked; /* those that name libraries: they stand behind what needs them */
} Flags;

/* Every GCC that knows our -std does; clang does on x86-64, and warns of the flag elsewhere. */
static gboolean
probes_stacks (const char *identity)
{
#ifdef __x86_64__
  return TRUE;
#else
  return strstr (identity, "clang") == NULL;
#endif
}

/* Those whose next word is not a flag of its own. */
static gboolean
wants_word (const char *flag)
{
  static const char *const flags[]
      = { "-D",        "-I",       "-L",         "-U",       "-Xassembler",    "-Xclang",
          "-Xlinker",  "-arch",    "-idirafter", "-imacros", "-include",       "-iquote",
          "-isysroot", "-isystem", "-l",         "-mllvm",   "-Xpreprocessor", "-target",
          "-z",        "--param",  "--sysroot",  NULL };

  return g_strv_contains (flags, flag);
}

/* Those that say what is made, and where: that is known. */
static gboolean
says_what_is_made (const char *flag)
{
  static const char *const flags[] = { "-", "-E", "-S", "-c", "-fsyntax-only", NULL };

  return g_strv_contains (flags, flag) || g_str_has_prefix (flag, "-M")
         || g_str_has_prefix (flag, "-o") || g_str_has_prefix (flag, "-x");
}

gboolean
pto_compiler_check_flags (const char *const *flags, const char *from, GError **error)
{
  gboolean is_word = FALSE;

  for (; flags != NULL && *flags != NULL; flags++)
    {
      if (!is_word
          && (says_what_is_made (*flags) || !strchr ("-@", (*flags)[0]) || (*flags)[0] == '\0'))
        {
          pto_error_set (
              error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
              says_what_is_made (*flags)
                  ? _ ("%s: the flag %s can not be used: it is known what is made of a source")
                  : _ ("%s: \"%s\" is no flag of a compiler"),
              from, *flags);
          return FALSE;
        }
      is_word = !is_word && wants_word (*flags);
      if (is_word && flags[1] == NULL)
        {
          pto_error_set (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                         _ ("%s: nothing follows the flag %s"), from, *flags);
          return FALSE;
        }
    }
  return TRUE;
}

static void
add_flag (const Flags *flags, const char *flag)
{
  gboolean is_linked = g_str_has_prefix (flag, "-l") || g_str_has_prefix (flag, "-L")
                       || g_str_has_prefix (flag, "-Wl,");

  g_ptr_array_add (is_linked ? flags->linked : flags->command, g_strdup (flag));
}

static void
add_flags (const Flags *flags, const char *const *words)
{
  for (; words != NULL && *words != NULL; words++)
    {
      /* -l NAME in one word, so that they stay together. */
      if ((strcmp (*words, "-l") == 0 || strcmp (*words, "-L") == 0) && words[1] != NULL)
        {
          g_autofree char *joined = g_strconcat (words[0], words[1], NULL);

          add_flag (flags, joined);
          words++;
        }
      else
        add_flag (flags, *words);
    }
}

/* Those of CFLAGS or CXXFLAGS; NULL: none. */
static gboolean
read_environment (const PtoCompilerJob *job, char ***words, GError **error)
{
  const char *variable = job->language == PTO_LANGUAGE_C ? "CFLAGS" : "CXXFLAGS";
  const char *value = g_getenv (variable);
  g_autoptr (GError) local = NULL;

  *words = NULL;
  if (value == NULL || value[strspn (value, " \t\n")] == '\0')
    return TRUE;
  if (!g_shell_parse_argv (value, NULL, words, &local))
    {
      pto_error_set (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "%s=%s: %s", variable, value,
                     local->message);
      return FALSE;
    }
  return pto_compiler_check_flags ((const char *const *) *words, variable, error);
}

/* -mcpu says it, too, and of both a compiler complains. */
static gboolean
says_machine (const char *const *words)
{
  for (; words != NULL && *words != NULL; words++)
    if (g_str_has_prefix (*words, "-march=") || g_str_has_prefix (*words, "-mcpu="))
      return TRUE;
  return FALSE;
}

static const char *
get_isa_root (void)
{
  const char *root = g_getenv (ISA_ROOT);

  return root != NULL && root[0] != '\0' ? root : NULL;
}

/* What kernels find that were written for the vendor's tile headers: those, and what they ask to
 * know that this is a processor, and what kind of core it is for. As headers of the system: what
 * the compiler has to say about them is not the user's to put right. */
static gboolean
add_isa (const Flags *flags, GError **error)
{
  const PtoCompilerJob *job = flags->job;
  const char *root = get_isa_root ();
  g_autofree char *include = NULL;

  if (root == NULL || !job->is_kernel)
    return TRUE;
  include = g_build_filename (root, "include", NULL);
  if (!g_file_test (include, G_FILE_TEST_IS_DIR))
    {
      pto_error_set (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                     _ ("%s: %s is \"%s\", where there is no directory include: name the one "
                        "that has it, or unset it"),
                     job->label, ISA_ROOT, root);
      return FALSE;
    }
  g_ptr_array_add (flags->command, g_strconcat ("-isystem", include, NULL));
  /* A kernel runs on one thread: its core's. */
  add_flags (flags, (const char *const[]){
                        "-D__CPU_SIM", "-DPTO_CPU_MAX_THREADS=1",
                        job->core_type == PTO_CORE_AIC ? "-D__DAV_CUBE__" : "-D__DAV_VEC__",
                        job->language == PTO_LANGUAGE_CXX ? "-std=gnu++20" : NULL, NULL });
  return TRUE;
}

gboolean
pto_compiler_says_accesses (const PtoCompilerJob *job)
{
  return job->checks_access && job->is_kernel && job->language != PTO_LANGUAGE_OBJECT;
}

/* Is there a sanitizer beside that of accesses? Those that go with it need one library. */
static gboolean
has_sanitizer (const Flags *flags)
{
  for (guint i = 0; i < flags->command->len; i++)
    if (g_str_has_prefix (g_ptr_array_index (flags->command, i), "-fsanitize="))
      return TRUE;
  return FALSE;
}

/* The compiler calls a function before each access: which ones, the source has in front of it. No
 * library of sanitizers is linked unless it is named. */
static void
add_accesses (const Flags *flags, const char *identity)
{
  /* Clang never links it to a shared object. */
  if (has_sanitizer (flags) && strstr (identity, "clang") == NULL)
    add_flag (flags, "-lubsan");
  add_flag (flags, "-fsanitize=thread");
  add_flag (flags, "-U__SANITIZE_THREAD__");
  /* It warns of fences, which a sanitizer would not understand. */
  if (strstr (identity, "clang") == NULL)
    add_flag (flags, "-Wno-tsan");
}

gboolean
pto_compiler_add_flags (const PtoCompilerJob *job, const char *identity, gboolean knows_native,
                        const char *api_dir, GPtrArray *command, GPtrArray *linked, GError **error)
{
  /* A product and a sum are rounded one after the other unless somebody asks for something else:
   * so a kernel computes the same on machines that could do both at once and on those that can
   * not. */
  static const char *const common[]
      = { "-O2", "-ffp-contract=off", "-fPIC", "-Wall", "-D__gm__=", "-D__aicore__=", NULL };
  const Flags flags = { job, command, linked };
  gboolean is_c = job->language == PTO_LANGUAGE_C;
  gboolean has_machine = FALSE;
  g_auto (GStrv) environment = NULL;

  if (!read_environment (job, &environment, error))
    return FALSE;
  for (guint i = 0; i < command->len; i++)
    has_machine |= says_machine ((const char *const[]){ g_ptr_array_index (command, i), NULL });
  has_machine |= says_machine ((const char *const *) environment)
                 || says_machine ((const char *const *) job->flags);

  add_flag (&flags, is_c ? "-std=gnu17" : "-std=gnu++17");
  add_flags (&flags, common);
  if (knows_native && !has_machine)
    add_flag (&flags, PTO_COMPILER_NATIVE);
  /* A frame larger than what is left of a stack faults right below it. */
  if (probes_stacks (identity))
    add_flag (&flags, "-fstack-clash-protection");
  if (is_c)
    add_flag (&flags, "-Werror=implicit-function-declaration");
  for (guint i = 0; job->include_dirs != NULL && job->include_dirs[i] != NULL; i++)
    g_ptr_array_add (command, g_strconcat ("-I", job->include_dirs[i], NULL));
  g_ptr_array_add (command, g_strconcat ("-I", api_dir, NULL));
  if (!add_isa (&flags, error))
    return FALSE;
  add_flags (&flags, (const char *const *) environment);
  add_flags (&flags, (const char *const *) job->flags);
  if (pto_compiler_says_accesses (job))
    add_accesses (&flags, identity);
  return TRUE;
}

char *
pto_compiler_advise_on_header (const PtoCompilerJob *job, const char *message)
{
  g_autoptr (GRegex) regex = g_regex_new (
      "error: '?([^:']+)'?(?:: No such file or directory| file not found)", 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  g_autofree char *header = NULL;
  const char *root = get_isa_root ();

  if (!g_regex_match (regex, message, 0, &match))
    return g_strdup ("");
  header = g_match_info_fetch (match, 1);
  if (job->is_kernel && g_str_has_prefix (header, "pto/"))
    return root == NULL ? g_strdup_printf (
               _ (" (it looks like one of the vendor's tile headers, which libpto does not "
                  "bring along: set %s to the directory whose include has them)"),
               ISA_ROOT)
                        : g_strdup_printf (_ (" (%s is \"%s\", whose include does not have it)"),
                                           ISA_ROOT, root);
  return g_strdup_printf (
      _ (" (where it is can be said by include-dirs in pto.ini or kernel_config.py, or "
         "by %s=-IDIR)"),
      job->language == PTO_LANGUAGE_C ? "CFLAGS" : "CXXFLAGS");
}
