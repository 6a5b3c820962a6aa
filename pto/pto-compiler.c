/* pto-compiler.c: how do sources become shared objects, and what is in those?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A source is preprocessed first. The digest of the preprocessor's output, of the compiler's
 * identity and of the flags names the result in the cache: a change in any included header, local
 * or not, is a different name. A result is written under a temporary name and renamed, so that two
 * processes can build the same source at the same time.
 *
 * An orchestration is compiled through a unit that includes its source and adds one constant:
 * whether the entry returns int or void, which the object code alone does not tell.
 */
#include "config.h"

#include "pto-compiler-private.h"

#include "pto-compile.h"
#include "pto-error-private.h"
#include "pto-save-private.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* Part of every digest: changes when the way of building changes. */
#define RECIPE "libpto shared object 1"
/* The file name of the lines that are added to an orchestration, to recognize the compiler's
 * complaints about them. */
#define MARKER_FILE "pto-marker"

typedef struct _Build Build;

/* One job under way. */
typedef struct
{
  Build *build;
  PtoCompilerJob *job;
  GPtrArray *command; /* compiler and flags, without input and output */
  char *identity;     /* of the compiler */
  GBytes *input;      /* for the compiler's standard input, or NULL */
  char *scratch;      /* directory of the compiler's own files, or NULL */
  char *temporary;    /* what the compiler writes to, in there, or NULL */
} Step;

struct _Build
{
  PtoCompilerJob *jobs;
  guint n_jobs;
  guint next;
  guint running;
  guint done;
  guint limit;
  char *api_dir;
  char *cache_dir;
  PtoCompilerProgress progress;
  gpointer user_data;
  GCancellable *cancellable; /* of this build: ends all steps on the first error */
  GError *error;
};

static void step_compiled (GObject *object, GAsyncResult *result, gpointer data);

void
pto_compiler_job_clear (PtoCompilerJob *job)
{
  g_clear_pointer (&job->object, g_free);
  g_clear_pointer (&job->digest, g_free);
}

/* --- files --- */

/* The machine and word size of this very process. */
static gboolean
read_elf_header (const char *path, Elf64_Ehdr *header)
{
  int fd = g_open (path, O_RDONLY | O_CLOEXEC, 0);
  gssize n;

  if (fd < 0)
    return FALSE;
  do
    n = read (fd, header, sizeof *header);
  while (n < 0 && errno == EINTR);
  close (fd);
  return n == sizeof *header && memcmp (header->e_ident, ELFMAG, SELFMAG) == 0;
}

/* e_type and e_machine lie at the same place in both word sizes. */
static gboolean
check_elf (const char *path, GError **error)
{
  Elf64_Ehdr own = { 0 };
  Elf64_Ehdr header = { 0 };
  const char *what = NULL;

  if (!read_elf_header (path, &header))
    what = "it is no ELF file";
  else if (header.e_type != ET_DYN)
    what = "it is an ELF file, but no shared object";
  else if (read_elf_header ("/proc/self/exe", &own)
           && (own.e_machine != header.e_machine
               || own.e_ident[EI_CLASS] != header.e_ident[EI_CLASS]
               || own.e_ident[EI_DATA] != header.e_ident[EI_DATA]))
    what = "it was built for another machine";
  if (what == NULL)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD,
               "%s: not a shared object that can be loaded here: %s", path, what);
  return FALSE;
}

gboolean
pto_compiler_find_language (const char *path, PtoLanguage *language, GError **error)
{
  static const struct
  {
    const char *suffix;
    PtoLanguage language;
  } suffixes[] = {
    { ".c", PTO_LANGUAGE_C },     { ".cc", PTO_LANGUAGE_CXX },    { ".cpp", PTO_LANGUAGE_CXX },
    { ".cxx", PTO_LANGUAGE_CXX }, { ".so", PTO_LANGUAGE_OBJECT },
  };

  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, "%s: there is no such file", path);
      return FALSE;
    }
  if (!g_file_test (path, G_FILE_TEST_IS_REGULAR))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "%s: not a regular file", path);
      return FALSE;
    }
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    if (g_str_has_suffix (path, suffixes[i].suffix))
      {
        *language = suffixes[i].language;
        return *language != PTO_LANGUAGE_OBJECT || check_elf (path, error);
      }
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
      "%s: neither a C source (.c), nor a C++ source (.cc, .cpp, .cxx), nor a shared object (.so)",
      path);
  return FALSE;
}

/**
 * pto_dup_api_dir:
 * @error: where to say why there is none
 *
 * Finds the directory of the headers that kernels and orchestrations include.
 *
 * It is the one named by the environment variable `PTO_API_DIR`, or the one that was installed with
 * this library, wherever both have been moved, or the one beside it in a build directory. Fails
 * with %PTO_ERROR_NOT_FOUND. Thread safety: any thread.
 *
 * Returns: (transfer full) (type filename): a path
 */
char *
pto_dup_api_dir (GError **error)
{
  const char *variable = g_getenv ("PTO_API_DIR");
  g_autofree char *dir = NULL;
  g_autofree char *header = NULL;
  Dl_info info;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (variable != NULL && variable[0] != '\0')
    dir = g_canonicalize_filename (variable, NULL);
  else if (dladdr ((void *) pto_dup_api_dir, &info) != 0 && info.dli_fname != NULL)
    {
      /* The library may have been found through a link: its headers stand beside the real one. */
      g_autofree char *real = realpath (info.dli_fname, NULL);
      g_autofree char *libdir = g_path_get_dirname (real != NULL ? real : info.dli_fname);

      dir = g_canonicalize_filename (PTO_API_DIR_FROM_LIBDIR, libdir);
      /* In a build directory they stand right beside the library. */
      if (!g_file_test (dir, G_FILE_TEST_IS_DIR))
        {
          g_autofree char *beside = g_build_filename (libdir, "api", NULL);

          if (g_file_test (beside, G_FILE_TEST_IS_DIR))
            {
              g_free (dir);
              dir = g_steal_pointer (&beside);
            }
        }
    }
  if (dir != NULL)
    header = g_build_filename (dir, "tensor.h", NULL);
  if (header == NULL || !g_file_test (header, G_FILE_TEST_IS_REGULAR))
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
          "%s: the headers for kernels are not here: install them beside the library or name "
          "their directory "
          "in PTO_API_DIR",
          header != NULL ? header : "tensor.h");
      return NULL;
    }
  return g_steal_pointer (&dir);
}

/* --- the compiler --- */

/* Words of $CC or $CXX, or the first usual compiler that is there. */
static GPtrArray *
find_compiler (PtoLanguage language, GError **error)
{
  static const char *const c_names[] = { "cc", "gcc", "clang", NULL };
  static const char *const cxx_names[] = { "c++", "g++", "clang++", NULL };
  gboolean is_c = language == PTO_LANGUAGE_C;
  const char *variable = is_c ? "CC" : "CXX";
  const char *value = g_getenv (variable);
  GPtrArray *command = g_ptr_array_new_with_free_func (g_free);

  if (value != NULL && value[0] != '\0')
    {
      g_auto (GStrv) words = NULL;
      g_autofree char *program = NULL;

      if (g_shell_parse_argv (value, NULL, &words, NULL))
        program = g_find_program_in_path (words[0]);
      if (program == NULL)
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE,
                       "%s is \"%s\", which is no program that can be run", variable, value);
          g_ptr_array_unref (command);
          return NULL;
        }
      g_ptr_array_add (command, g_steal_pointer (&program));
      for (guint i = 1; words[i] != NULL; i++)
        g_ptr_array_add (command, g_strdup (words[i]));
      return command;
    }
  for (const char *const *name = is_c ? c_names : cxx_names; *name != NULL; name++)
    {
      char *program = g_find_program_in_path (*name);

      if (program != NULL)
        {
          g_ptr_array_add (command, program);
          return command;
        }
    }
  g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE,
               is_c ? "no C compiler (cc, gcc, clang): install one, or name it in CC"
                    : "no C++ compiler (c++, g++, clang++): install one, or name it in CXX");
  g_ptr_array_unref (command);
  return NULL;
}

/* What tells one compiler from another: the file itself, and what it says of itself. Asked once per
 * file. */
static char *
identify_compiler (GPtrArray *command, GError **error)
{
  static GMutex lock;
  static GHashTable *known; /* key: program, size, time, words; lives as long as the process */
  g_autoptr (GString) key = g_string_new (NULL);
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_autoptr (GError) local = NULL;
  g_autofree char *version = NULL;
  char *identity;
  GStatBuf status;

  for (guint i = 0; i < command->len; i++)
    {
      g_string_append (key, g_ptr_array_index (command, i));
      g_string_append_c (key, '\n');
      g_ptr_array_add (argv, g_ptr_array_index (command, i));
    }
  if (g_stat (g_ptr_array_index (command, 0), &status) == 0)
    g_string_append_printf (key, "%" G_GINT64_FORMAT " %" G_GINT64_FORMAT ".%09ld\n",
                            (gint64) status.st_size, (gint64) status.st_mtim.tv_sec,
                            (long) status.st_mtim.tv_nsec);

  g_mutex_lock (&lock);
  if (known == NULL)
    known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  identity = g_strdup (g_hash_table_lookup (known, key->str));
  g_mutex_unlock (&lock);
  if (identity != NULL)
    return identity;

  g_ptr_array_add (argv, (gpointer) "--version");
  g_ptr_array_add (argv, NULL);
  process = g_subprocess_newv ((const char *const *) argv->pdata,
                               G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_SILENCE,
                               &local);
  if (process == NULL
      || !g_subprocess_communicate_utf8 (process, NULL, NULL, &version, NULL, &local))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE, "the compiler %s can not be run: %s",
                   (const char *) g_ptr_array_index (command, 0), local->message);
      return NULL;
    }
  identity = g_strconcat (key->str, version, NULL);
  g_mutex_lock (&lock);
  if (!g_hash_table_contains (known, key->str))
    g_hash_table_insert (known, g_strdup (key->str), g_strdup (identity));
  g_mutex_unlock (&lock);
  return identity;
}

/**
 * pto_dup_compiler:
 * @source: (type filename): the name of a C (`.c`) or C++ (`.cc`, `.cpp`, `.cxx`) source
 * @error: where to say why there is none
 *
 * Finds the compiler that builds a source: the one named by `CC` or `CXX`, or the system's.
 *
 * Fails with %PTO_ERROR_COMPILE. Thread safety: any thread.
 *
 * Returns: (transfer full): a program and its first arguments, as a shell would read them
 */
char *
pto_dup_compiler (const char *source, GError **error)
{
  g_autoptr (GPtrArray) command = NULL;
  GString *text;

  g_return_val_if_fail (source != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  command
      = find_compiler (g_str_has_suffix (source, ".c") ? PTO_LANGUAGE_C : PTO_LANGUAGE_CXX, error);
  if (command == NULL)
    return NULL;
  text = g_string_new (NULL);
  for (guint i = 0; i < command->len; i++)
    {
      const char *word = g_ptr_array_index (command, i);
      g_autofree char *quoted
          = strpbrk (word, " \t\n'\"\\$`") != NULL ? g_shell_quote (word) : g_strdup (word);

      g_string_append_printf (text, "%s%s", i > 0 ? " " : "", quoted);
    }
  return g_string_free (text, FALSE);
}

/* The lines that follow an orchestration's source. */
static GBytes *
make_marker (const PtoCompilerJob *job)
{
  char *text;

  if (job->language == PTO_LANGUAGE_C)
    text = g_strdup_printf ("#line 1 \"" MARKER_FILE "\"\n"
                            "extern const int " PTO_COMPILER_RETURNS_INT "; "
                            "const int " PTO_COMPILER_RETURNS_INT
                            " = __builtin_types_compatible_p (__typeof__ (%s (0, 0, 0)), int);\n",
                            job->entry);
  else
    text = g_strdup_printf ("#line 1 \"" MARKER_FILE "\"\n"
                            "template <class T> struct pto2_is_int_ { enum { value = 0 }; }; "
                            "template <> struct pto2_is_int_<int> { enum { value = 1 }; }; "
                            "extern \"C\" { extern const int " PTO_COMPILER_RETURNS_INT "; "
                            "const int " PTO_COMPILER_RETURNS_INT
                            " = pto2_is_int_<decltype (%s (0, 0, 0))>::value; }\n",
                            job->entry);
  return g_bytes_new_take (text, strlen (text));
}

static void
step_free (Step *step)
{
  g_clear_pointer (&step->command, g_ptr_array_unref);
  g_clear_pointer (&step->input, g_bytes_unref);
  g_free (step->identity);
  /* A compiler that was ended has left behind what it was at. */
  if (step->scratch != NULL)
    {
      GDir *dir = g_dir_open (step->scratch, 0, NULL);
      const char *name;

      while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
        {
          g_autofree char *path = g_build_filename (step->scratch, name, NULL);

          g_unlink (path);
        }
      g_clear_pointer (&dir, g_dir_close);
      g_rmdir (step->scratch);
    }
  g_free (step->scratch);
  g_free (step->temporary);
  g_free (step);
}

/* The first error wins; the others are told to end. */
static void
build_fail (Build *build, GError *error)
{
  if (build->error == NULL)
    build->error = error;
  else
    g_error_free (error);
  g_cancellable_cancel (build->cancellable);
}

static void
step_end (Step *step, GError *error)
{
  Build *build = step->build;

  if (error != NULL)
    build_fail (build, error);
  else
    {
      build->done++;
      if (build->progress != NULL && build->error == NULL)
        build->progress (step->job, build->done, build->n_jobs, build->user_data);
    }
  build->running--;
  step_free (step);
}

/* The line that says what is wrong, for the first line of a message: an error in English, otherwise
 * the first one that names a place. */
static char *
find_first_error (const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  const char *placed = NULL;
  const char *first = NULL;

  for (guint i = 0; lines[i] != NULL; i++)
    {
      if (strstr (lines[i], " error: ") != NULL)
        return g_strdup (lines[i]);
      if (placed == NULL && g_regex_match_simple ("^\\S.*:\\d+:(\\d+:)? ", lines[i], 0, 0))
        placed = lines[i];
      if (first == NULL && lines[i][0] != '\0')
        first = lines[i];
    }
  if (placed != NULL)
    first = placed;
  return g_strdup (first != NULL ? first : "the compiler failed without a message");
}

static GError *
make_compile_error (const PtoCompilerJob *job, GBytes *output)
{
  gsize size = 0;
  const char *data = output != NULL ? g_bytes_get_data (output, &size) : NULL;
  g_autofree char *text = g_utf8_make_valid (data != NULL ? data : "", (gssize) size);
  g_autofree char *first = NULL;

  g_strchomp (text);
  first = find_first_error (text);
  if (job->entry != NULL && g_str_has_prefix (first, MARKER_FILE ":"))
    {
      const char *why = strstr (first, " error: ");

      return g_error_new (PTO_ERROR, PTO_ERROR_LOAD,
                          "%s: %s: no function %s (PTO2Runtime *, uint64_t *, int)%s%s", job->label,
                          job->path, job->entry, why != NULL ? ": " : "",
                          why != NULL ? why + strlen (" error: ") : "");
    }
  if (strcmp (first, text) == 0 || text[0] == '\0')
    return g_error_new (PTO_ERROR, PTO_ERROR_COMPILE, "%s: %s", job->label, first);
  return g_error_new (PTO_ERROR, PTO_ERROR_COMPILE, "%s: %s\n%s", job->label, first, text);
}

/* Runs the step's command with more words; continues in callback. */
static void
step_run (Step *step, const char *const *more, GSubprocessFlags flags, GAsyncReadyCallback callback)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_autoptr (GSubprocessLauncher) launcher = NULL;
  g_autoptr (GSubprocess) process = NULL;
  GError *error = NULL;

  for (guint i = 0; i < step->command->len; i++)
    g_ptr_array_add (argv, g_ptr_array_index (step->command, i));
  for (; *more != NULL; more++)
    g_ptr_array_add (argv, (gpointer) *more);
  if (step->input != NULL)
    {
      g_ptr_array_add (argv, (gpointer) "-include");
      g_ptr_array_add (argv, (gpointer) step->job->path);
      g_ptr_array_add (argv, (gpointer) (step->job->language == PTO_LANGUAGE_C ? "-xc" : "-xc++"));
      g_ptr_array_add (argv, (gpointer) "-");
      flags |= G_SUBPROCESS_FLAGS_STDIN_PIPE;
    }
  else
    g_ptr_array_add (argv, (gpointer) step->job->path);
  if (step->temporary != NULL)
    {
      /* Libraries stand behind what needs them. */
      if (step->input != NULL)
        g_ptr_array_add (argv, (gpointer) "-xnone");
      g_ptr_array_add (argv, (gpointer) "-lm");
    }
  g_ptr_array_add (argv, NULL);

  launcher = g_subprocess_launcher_new (flags | G_SUBPROCESS_FLAGS_STDERR_PIPE);
  if (step->scratch != NULL)
    g_subprocess_launcher_setenv (launcher, "TMPDIR", step->scratch, TRUE);
  process = g_subprocess_launcher_spawnv (launcher, (const char *const *) argv->pdata, &error);
  if (process == NULL)
    {
      step_end (step,
                g_error_new (PTO_ERROR, PTO_ERROR_COMPILE, "%s: the compiler %s can not be run: %s",
                             step->job->label, (const char *) g_ptr_array_index (step->command, 0),
                             error->message));
      g_error_free (error);
      return;
    }
  g_subprocess_communicate_async (process, step->input, step->build->cancellable, callback, step);
}

/* The end of a command: its output, or NULL with the step ended. */
static gboolean
step_finish (Step *step, GObject *object, GAsyncResult *result, GBytes **output,
             GBytes **complaints)
{
  GSubprocess *process = G_SUBPROCESS (object);
  g_autoptr (GError) error = NULL;

  *output = NULL;
  *complaints = NULL;
  if (!g_subprocess_communicate_finish (process, result, output, complaints, &error))
    {
      g_subprocess_force_exit (process);
      if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        step_end (step, g_error_new_literal (PTO_ERROR, PTO_ERROR_CANCELLED, "cancelled"));
      else
        step_end (step, g_error_new (PTO_ERROR, PTO_ERROR_COMPILE, "%s: %s", step->job->label,
                                     error->message));
      return FALSE;
    }
  if (!g_subprocess_get_successful (process))
    {
      step_end (step, make_compile_error (step->job, *complaints));
      g_clear_pointer (output, g_bytes_unref);
      g_clear_pointer (complaints, g_bytes_unref);
      return FALSE;
    }
  return TRUE;
}

static void
step_preprocessed (GObject *object, GAsyncResult *result, gpointer data)
{
  Step *step = data;
  Build *build = step->build;
  PtoCompilerJob *job = step->job;
  g_autoptr (GBytes) output = NULL;
  g_autoptr (GBytes) complaints = NULL;
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree char *name = NULL;

  if (!step_finish (step, object, result, &output, &complaints))
    return;

  /* Where the headers are does not matter: what they say is in the preprocessor's output. */
  g_checksum_update (checksum, (const guchar *) RECIPE, sizeof RECIPE);
  g_checksum_update (checksum, (const guchar *) step->identity,
                     (gssize) strlen (step->identity) + 1);
  for (guint i = 0; i < step->command->len; i++)
    {
      const char *word = g_ptr_array_index (step->command, i);

      if (!g_str_has_prefix (word, "-I"))
        g_checksum_update (checksum, (const guchar *) word, (gssize) strlen (word) + 1);
    }
  g_checksum_update (checksum, g_bytes_get_data (output, NULL), (gssize) g_bytes_get_size (output));
  job->digest = g_strdup (g_checksum_get_string (checksum));
  name = g_strconcat (job->digest, ".so", NULL);
  job->object = g_build_filename (build->cache_dir, name, NULL);
  if (check_elf (job->object, NULL))
    {
      job->was_cached = TRUE;
      step_end (step, NULL);
      return;
    }

  step->scratch = g_build_filename (build->cache_dir, "building-XXXXXX", NULL);
  if (g_mkdtemp_full (step->scratch, 0700) == NULL)
    {
      int saved = errno;

      g_clear_pointer (&step->scratch, g_free);
      step_end (step, g_error_new (PTO_ERROR, PTO_ERROR_SYSTEM, "%s: can not be written: %s",
                                   build->cache_dir, g_strerror (saved)));
      return;
    }
  step->temporary = g_build_filename (step->scratch, "object.so", NULL);
  step_run (step, (const char *const[]){ "-shared", "-Wl,-Bsymbolic", "-o", step->temporary, NULL },
            G_SUBPROCESS_FLAGS_STDOUT_SILENCE, step_compiled);
}

static void
step_compiled (GObject *object, GAsyncResult *result, gpointer data)
{
  Step *step = data;
  g_autoptr (GBytes) output = NULL;
  g_autoptr (GBytes) complaints = NULL;
  gsize size = 0;
  const char *text;

  if (!step_finish (step, object, result, &output, &complaints))
    return;
  text = complaints != NULL ? g_bytes_get_data (complaints, &size) : NULL;
  if (size > 0)
    {
      g_autofree char *warnings = g_utf8_make_valid (text, (gssize) size);

      g_message ("%s: %s", step->job->label, g_strchomp (warnings));
    }
  if (g_rename (step->temporary, step->job->object) != 0)
    {
      int saved = errno;

      step_end (step, g_error_new (PTO_ERROR, PTO_ERROR_SYSTEM, "%s: can not be written: %s",
                                   step->job->object, g_strerror (saved)));
      return;
    }
  g_clear_pointer (&step->temporary, g_free);
  step_end (step, NULL);
}

/* A shared object that is given built is loaded from a copy named by its content: the loader knows
 * objects by name, and would take a file that was replaced for the one it has. */
static gboolean
copy_object (Build *build, PtoCompilerJob *job, GError **error)
{
  g_autoptr (GMappedFile) file = NULL;
  g_autoptr (GError) local = NULL;
  g_autofree char *name = NULL;
  const char *data;
  gsize size;

  if (!check_elf (job->path, error))
    return FALSE;
  file = g_mapped_file_new (job->path, FALSE, &local);
  if (file == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, "%s: %s: %s", job->label, job->path,
                   local->message);
      return FALSE;
    }
  data = g_mapped_file_get_contents (file);
  size = g_mapped_file_get_length (file);
  job->digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) data, size);
  name = g_strconcat (job->digest, ".so", NULL);
  job->object = g_build_filename (build->cache_dir, name, NULL);
  if (check_elf (job->object, NULL))
    {
      job->was_cached = TRUE;
      return TRUE;
    }
  if (!pto_save (job->object, data, size, 0700, &local))
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_SYSTEM, local->message);
      return FALSE;
    }
  return TRUE;
}

static void
step_start (Build *build, PtoCompilerJob *job)
{
  gboolean is_c = job->language == PTO_LANGUAGE_C;
  GError *error = NULL;
  Step *step = g_new0 (Step, 1);

  step->build = build;
  step->job = job;
  build->running++;

  if (job->language == PTO_LANGUAGE_OBJECT)
    {
      copy_object (build, job, &error);
      step_end (step, error);
      return;
    }
  step->command = find_compiler (job->language, &error);
  if (step->command != NULL)
    step->identity = identify_compiler (step->command, &error);
  if (step->identity == NULL)
    {
      step_end (step, error);
      return;
    }
  g_ptr_array_add (step->command, g_strdup (is_c ? "-std=gnu17" : "-std=gnu++17"));
  for (const char *const *flag
       = (const char *const[]){ "-O2", "-fPIC", "-Wall", "-D__gm__=", "-D__aicore__=", NULL };
       *flag != NULL; flag++)
    g_ptr_array_add (step->command, g_strdup (*flag));
  if (is_c)
    g_ptr_array_add (step->command, g_strdup ("-Werror=implicit-function-declaration"));
  g_ptr_array_add (step->command, g_strconcat ("-I", build->api_dir, NULL));
  if (job->entry != NULL)
    step->input = make_marker (job);
  step_run (step, (const char *const[]){ "-E", "-P", NULL }, G_SUBPROCESS_FLAGS_STDOUT_PIPE,
            step_preprocessed);
}

static void
forward_cancel (GCancellable *cancellable, gpointer data)
{
  g_cancellable_cancel (data);
}

gboolean
pto_compiler_build (PtoCompilerJob *jobs, guint n_jobs, PtoCompilerProgress progress,
                    gpointer user_data, GCancellable *cancellable, GError **error)
{
  g_autofree char *cache_dir = g_build_filename (g_get_user_cache_dir (), "libpto", NULL);
  g_autofree char *api_dir = NULL;
  g_autoptr (GCancellable) own = g_cancellable_new ();
  g_autoptr (GMainContext) context = NULL;
  gulong handler = 0;
  Build build = { 0 };

  if (pto_error_set_if_cancelled (cancellable, error))
    return FALSE;
  api_dir = pto_dup_api_dir (error);
  if (api_dir == NULL)
    return FALSE;
  if (g_mkdir_with_parents (cache_dir, 0700) != 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, "%s: can not be made: %s", cache_dir,
                   g_strerror (errno));
      return FALSE;
    }

  build.jobs = jobs;
  build.n_jobs = n_jobs;
  build.limit = MAX (g_get_num_processors (), 1);
  build.api_dir = api_dir;
  build.cache_dir = cache_dir;
  build.progress = progress;
  build.user_data = user_data;
  build.cancellable = own;

  /* A context of its own: nothing else of the caller's is dispatched while it waits. */
  context = g_main_context_new ();
  g_main_context_push_thread_default (context);
  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (forward_cancel), own, NULL);
  for (;;)
    {
      while (build.error == NULL && build.next < n_jobs && build.running < build.limit)
        step_start (&build, &jobs[build.next++]);
      if (build.running == 0 && (build.error != NULL || build.next == n_jobs))
        break;
      g_main_context_iteration (context, TRUE);
    }
  g_cancellable_disconnect (cancellable, handler);
  /* What ended commands left to do: their children are waited for in this context. */
  while (g_main_context_iteration (context, FALSE))
    ;
  g_main_context_pop_thread_default (context);

  if (build.error != NULL)
    {
      g_propagate_error (error, build.error);
      return FALSE;
    }
  return TRUE;
}

/**
 * pto_compile_shared_object:
 * @source: (type filename): a C (`.c`) or C++ (`.cc`, `.cpp`, `.cxx`) source, or a shared object
 * (`.so`)
 * @cancellable: (nullable): ends the compiler
 * @error: where to say why there is none
 *
 * Builds a shared object from one source with the compiler, flags, headers and cache of kernels.
 *
 * The result lies in the user's cache directory under a name made of its content: it is not to be
 * changed or removed. Fails with %PTO_ERROR_NOT_FOUND, %PTO_ERROR_NOT_SUPPORTED (no such kind of
 * file), %PTO_ERROR_COMPILE (with the compiler's own text), %PTO_ERROR_LOAD (no shared object for
 * this machine), %PTO_ERROR_CANCELLED or %PTO_ERROR_SYSTEM. Thread safety: any thread.
 *
 * Returns: (transfer full) (type filename): the path of a shared object
 */
char *
pto_compile_shared_object (const char *source, GCancellable *cancellable, GError **error)
{
  g_autofree char *path = NULL;
  PtoCompilerJob job = { 0 };
  char *object = NULL;

  g_return_val_if_fail (source != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  path = g_canonicalize_filename (source, NULL);
  job.path = path;
  job.label = source;
  if (!pto_compiler_find_language (path, &job.language, error))
    return NULL;
  if (pto_compiler_build (&job, 1, NULL, NULL, cancellable, error))
    object = g_steal_pointer (&job.object);
  pto_compiler_job_clear (&job);
  return object;
}

/* --- what is in a shared object --- */

gpointer
pto_compiler_load (const PtoCompilerJob *job, GError **error)
{
  gpointer module = dlopen (job->object, RTLD_NOW | RTLD_LOCAL);

  if (module == NULL)
    {
      const char *why = dlerror ();
      g_autofree char *prefix = g_strconcat (job->object, ": ", NULL);

      /* The loader names the file in the cache, which says nothing to the user. */
      if (why != NULL && g_str_has_prefix (why, prefix))
        why += strlen (prefix);
      g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, "%s: %s: can not be loaded: %s", job->label,
                   job->path, why != NULL ? why : "no reason given");
    }
  return module;
}

void
pto_compiler_unload (gpointer module)
{
  dlclose (module);
}

gpointer
pto_compiler_find_symbol (gpointer module, const PtoCompilerJob *job, const char *symbol,
                          const char *signature, GError **error)
{
  gpointer address = dlsym (module, symbol);

  if (address == NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, "%s: %s: exports no function %s %s%s",
                 job->label, job->path, symbol, signature,
                 job->language == PTO_LANGUAGE_CXX ? " (is extern \"C\" missing?)" : "");
  return address;
}
