/* compiler.c: how do sources become shared objects, and what is in those?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A source is preprocessed first. The digest of the preprocessor's output, of the compiler's
 * identity and of the flags is the key of the result in the cache: a change in any included header,
 * local or not, is a different key; so is another machine where a flag asks for code for the one
 * at hand. What is compiled is that very output, so that a file that
 * changes meanwhile does not come in under the key of what it was. What a source has the assembler
 * read is not in there: such a source is compiled each time, and kept by what comes of it; so is
 * one whose flags name libraries.
 *
 * The key of a source that was preprocessed before is known without that if nothing has changed
 * (compiler-manifest.c).
 *
 * An orchestration is compiled through a unit that includes its source and adds one constant:
 * whether the entry returns int or void, which the object code alone does not tell.
 */
#include "config.h"

#include "compiler.h"

#include "base/error.h"
#include "base/log.h"
#include "base/task-thread.h"
#include "common/save-file.h"
#include "common/text.h"
#include "compiler-program.h"
#include "hidden-stores.h"
#include "object-file.h"
#include "pto-compile.h"

#include <dlfcn.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Part of every digest: changes when the way of building changes. */
#define RECIPE "libpto shared object 3"
/* The file name of the lines that are added to an orchestration, to recognize the compiler's
 * complaints about them. */
#define MARKER_FILE "pto-marker"

/* One job under way. */
typedef struct
{
  PtoCompilerJob *job;
  GPtrArray *command; /* compiler and flags, without input and output */
  GPtrArray *linked;  /* flags that name libraries: they stand behind what needs them */
  guint n_words;      /* of the compiler itself, in there */
  char *manifest;     /* its name; NULL: there can be none */
  char *identity;     /* of the compiler */
  char *machine;      /* what the compiler makes of this one; NULL: no flag asks */
  char *marker;       /* what follows an orchestration's source; NULL: nothing */
  char *source;       /* preprocessed; NULL: not yet */
  gsize source_size;
  GString *complaints; /* of the preprocessor */
  char *key;           /* in the cache; NULL: not kept for one */
  char *scratch;       /* directory of the compiler's own files, or NULL */
  char *temporary;     /* what the compiler writes to, in there */
  struct pto_command process;
} Step;

typedef struct
{
  PtoCompilerJob *jobs;
  guint n_jobs;
  guint next;
  guint done;
  GPtrArray *running; /* Step */
  guint limit;
  char *api_dir;
  char *cache_dir;
  PtoCompilerProgress progress;
  gpointer user_data;
  GCancellable *cancellable;
  int cancel_fd;
} Build;

void
pto_compiler_job_clear (PtoCompilerJob *job)
{
  g_clear_pointer (&job->include_dirs, g_strfreev);
  g_clear_pointer (&job->flags, g_strfreev);
  g_clear_pointer (&job->object, g_free);
  g_clear_pointer (&job->files, pto_source_files_unref);
}

/* --- files --- */

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
  GStatBuf status;

  if (g_stat (path, &status) != 0)
    {
      if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, _ ("%s: there is no such file"), path);
      else
        g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, "%s: %s: %s", path, "stat",
                     g_strerror (errno));
      return FALSE;
    }
  if (!S_ISREG (status.st_mode))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("%s: not a regular file"), path);
      return FALSE;
    }
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    if (g_str_has_suffix (path, suffixes[i].suffix))
      {
        *language = suffixes[i].language;
        return *language != PTO_LANGUAGE_OBJECT || pto_object_file_check (path, error);
      }
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
      _ ("%s: neither a C source (.c), nor a C++ source (.cc, .cpp, .cxx), nor a shared object (.so)"),
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
 *
 * Since: 0.1
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
          _ ("%s: the headers for kernels are not here: install them beside the library or name "
             "their directory "
             "in PTO_API_DIR"),
          header != NULL ? header : "tensor.h");
      return NULL;
    }
  return g_steal_pointer (&dir);
}

/* The lines that follow an orchestration's source. */
static char *
make_marker (const PtoCompilerJob *job)
{
  if (job->language == PTO_LANGUAGE_C)
    return g_strdup_printf ("#line 1 \"" MARKER_FILE "\"\n"
                            "extern const int " PTO_COMPILER_RETURNS_INT "; "
                            "const int " PTO_COMPILER_RETURNS_INT
                            " = __builtin_types_compatible_p (__typeof__ (%s (0, 0, 0)), int);\n",
                            job->entry);
  return g_strdup_printf ("#line 1 \"" MARKER_FILE "\"\n"
                          "template <class T> struct pto2_is_int_ { enum { value = 0 }; }; "
                          "template <> struct pto2_is_int_<int> { enum { value = 1 }; }; "
                          "extern \"C\" { extern const int " PTO_COMPILER_RETURNS_INT "; "
                          "const int " PTO_COMPILER_RETURNS_INT
                          " = pto2_is_int_<decltype (%s (0, 0, 0))>::value; }\n",
                          job->entry);
}

/* --- one job --- */

static void
step_free (gpointer data)
{
  Step *step = data;

  pto_command_end (&step->process);
  g_clear_pointer (&step->command, g_ptr_array_unref);
  g_clear_pointer (&step->linked, g_ptr_array_unref);
  if (step->complaints != NULL)
    g_string_free (step->complaints, TRUE);
  g_free (step->manifest);
  g_free (step->identity);
  g_free (step->machine);
  g_free (step->marker);
  g_free (step->source);
  g_free (step->key);
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
  return g_strdup (first != NULL ? first : _ ("the compiler failed without a message"));
}

/* How the compiler ended, for one that says nothing itself. */
static char *
describe_end (const struct pto_command *process)
{
  if (process->status > 128)
    return g_strdup_printf (_ ("the compiler was ended by signal %d (%s)"), process->status - 128,
                            g_strsignal (process->status - 128));
  if (process->status < 0 && process->error != 0)
    return g_strdup_printf ("read: %s", g_strerror (process->error));
  if (process->status < 0)
    return g_strdup (_ ("the compiler was ended"));
  return g_strdup_printf (_ ("the compiler failed with status %d and without a message"),
                          process->status);
}

static void
set_compile_error (Step *step, GError **error)
{
  const PtoCompilerJob *job = step->job;
  g_autofree char *text = pto_compiler_dup_complaints (&step->process);
  g_autofree char *advice = NULL;
  g_autofree char *first = NULL;

  first = text[0] != '\0' && step->process.status >= 0 && step->process.status <= 128
              ? find_first_error (text)
              : describe_end (&step->process);
  advice = pto_compiler_advise_on_header (job, first);
  if (!pto_compiler_could_be_run (&step->process))
    g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE, _ ("%s: the compiler %s can not be run: %s"),
                 job->label, (const char *) g_ptr_array_index (step->command, 0), first);
  else if (job->entry != NULL && g_str_has_prefix (first, MARKER_FILE ":"))
    {
      const char *why = strstr (first, " error: ");

      g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD,
                   _ ("%s: %s: no function %s (PTO2Runtime *, uint64_t *, int)%s%s"), job->label,
                   job->path, job->entry, why != NULL ? ": " : "",
                   why != NULL ? why + strlen (" error: ") : "");
    }
  else if (strcmp (first, text) == 0 || text[0] == '\0')
    g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE, "%s: %s%s", job->label, first, advice);
  else
    g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE, "%s: %s%s\n%s", job->label, first, advice,
                 text);
}

/* Begins the step's command with more words. */
static gboolean
step_run (Step *step, const char *const *more, const char *input, gsize input_size,
          gboolean wants_output, GError **error)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_auto (GStrv) environment = pto_compiler_get_environment ();
  struct pto_report report = { 0 };

  for (guint i = 0; i < step->command->len; i++)
    g_ptr_array_add (argv, g_ptr_array_index (step->command, i));
  for (; *more != NULL; more++)
    g_ptr_array_add (argv, (gpointer) *more);
  g_ptr_array_add (argv, NULL);
  if (step->scratch != NULL)
    environment = g_environ_setenv (environment, "TMPDIR", step->scratch, TRUE);
  if (pto_command_begin (
          &step->process,
          &(struct pto_command_config){ .argv = (const char *const *) argv->pdata,
                                        .environment = (const char *const *) environment,
                                        .input = input,
                                        .input_size = input_size,
                                        .wants_output = wants_output },
          &report)
      == PTO_OK)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, _ ("%s: the compiler %s"), step->job->label,
               report.message);
  return FALSE;
}

static gboolean
step_preprocess (Build *build, Step *step, GError **error)
{
  PtoCompilerJob *job = step->job;

  g_clear_pointer (&job->files, pto_source_files_unref);
  job->files = pto_source_files_begin (job->path);
  if (pto_compiler_says_accesses (job))
    {
      g_autofree char *header = g_build_filename (build->api_dir, "pto_access.h", NULL);

      return step_run (
          step,
          (const char *const[]){ "-E", "-DPTO2_ACCESS_HOOKS", "-include", header, job->path, NULL },
          NULL, 0, TRUE, error);
    }
  if (job->entry == NULL)
    return step_run (step, (const char *const[]){ "-E", job->path, NULL }, NULL, 0, TRUE, error);
  step->marker = make_marker (job);
  return step_run (step,
                   (const char *const[]){ "-E", "-include", job->path,
                                          job->language == PTO_LANGUAGE_C ? "-xc" : "-xc++", "-",
                                          NULL },
                   step->marker, strlen (step->marker), TRUE, error);
}

static gboolean
contains (const Step *step, const char *part)
{
  return memmem (step->source, step->source_size, part, strlen (part)) != NULL;
}

/* Does the object depend on files that the preprocessor has not read? */
static gboolean
reads_more_files (const Step *step)
{
  return step->linked->len > 0 || contains (step, "incbin") || contains (step, ".include")
         || contains (step, "#embed");
}

/* Where a file is does not matter: what it says does. Lines that say where the next ones are from
 * are left out, and empty ones, unless they could be part of a text. */
static void
add_source (GChecksum *checksum, const Step *step)
{
  gboolean is_exact = contains (step, "R\"");
  const char *end = step->source + step->source_size;
  const char *line = step->source;

  while (line < end)
    {
      const char *next = memchr (line, '\n', (gsize) (end - line));

      next = next != NULL ? next + 1 : end;
      if (is_exact || !(*line == '\n' || g_str_has_prefix (line, "# ")))
        g_checksum_update (checksum, (const guchar *) line, next - line);
      line = next;
    }
}

static char *
make_key (const Step *step)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);

  g_checksum_update (checksum, (const guchar *) RECIPE, sizeof RECIPE);
  g_checksum_update (checksum, (const guchar *) step->identity,
                     (gssize) strlen (step->identity) + 1);
  if (step->machine != NULL)
    g_checksum_update (checksum, (const guchar *) step->machine,
                       (gssize) strlen (step->machine) + 1);
  for (guint i = 0; i < step->command->len; i++)
    {
      const char *word = g_ptr_array_index (step->command, i);

      g_autofree char *more = NULL;
      gsize size;

      /* What was found there has been read. */
      if (!g_str_has_prefix (word, "-I") && !g_str_has_prefix (word, "-isystem"))
        g_checksum_update (checksum, (const guchar *) word, (gssize) strlen (word) + 1);
      /* A file with more words. */
      if (word[0] == '@' && g_file_get_contents (word + 1, &more, &size, NULL))
        g_checksum_update (checksum, (const guchar *) more, (gssize) size);
    }
  add_source (checksum, step);
  return g_strdup (g_checksum_get_string (checksum));
}

/* Its functions for what the C library copies, and no library of a sanitizer. */
static void
add_access_words (const PtoCompilerJob *job, GPtrArray *words)
{
  static const char *const common[] = { "-Wl,--wrap=memcpy",
                                        "-Wl,--wrap=memmove",
                                        "-Wl,--wrap=memset",
                                        "-Wl,--wrap=__memcpy_chk",
                                        "-Wl,--wrap=__memmove_chk",
                                        "-Wl,--wrap=__memset_chk",
                                        "-Wl,--wrap=malloc",
                                        "-Wl,--wrap=calloc",
                                        "-Wl,--wrap=realloc",
                                        "-Wl,--wrap=aligned_alloc",
                                        "-Wl,--wrap=_Znwm",
                                        "-Wl,--wrap=_Znam",
                                        "-nodefaultlibs",
                                        "-lgcc_s",
                                        "-lgcc",
                                        "-lc" };

  if (job->language == PTO_LANGUAGE_CXX)
    g_ptr_array_add (words, (gpointer) "-lstdc++");
  for (guint i = 0; i < G_N_ELEMENTS (common); i++)
    g_ptr_array_add (words, (gpointer) common[i]);
}

static gboolean
step_compile (Build *build, Step *step, GError **error)
{
  g_autoptr (GPtrArray) words = NULL;

  step->scratch = pto_cache_make_scratch (build->cache_dir, error);
  if (step->scratch == NULL)
    return FALSE;
  step->temporary = g_build_filename (step->scratch, "object.so", NULL);
  words = g_ptr_array_new ();
  for (const char *const *word
       = (const char *const[]){ "-shared", "-Wl,-Bsymbolic", "-o", step->temporary,
                                step->job->language == PTO_LANGUAGE_C ? "-xcpp-output"
                                                                      : "-xc++-cpp-output",
                                "-", "-xnone", NULL };
       *word != NULL; word++)
    g_ptr_array_add (words, (gpointer) *word);
  for (guint i = 0; i < step->linked->len; i++)
    g_ptr_array_add (words, g_ptr_array_index (step->linked, i));
  if (pto_compiler_says_accesses (step->job))
    add_access_words (step->job, words);
  g_ptr_array_add (words, (gpointer) "-lm");
  g_ptr_array_add (words, NULL);
  return step_run (step, (const char *const *) words->pdata, step->source, step->source_size, FALSE,
                   error);
}

/* A home, and the cache in it, may be shared by machines to which native means different things. */
static gboolean
find_machine (Build *build, Step *step)
{
  g_autoptr (GPtrArray) flags = g_ptr_array_new ();

  for (guint i = 0; i < step->command->len; i++)
    if (g_str_has_suffix (g_ptr_array_index (step->command, i), "=native"))
      g_ptr_array_add (flags, g_ptr_array_index (step->command, i));
  if (flags->len == 0)
    return TRUE;
  g_ptr_array_add (flags, NULL);
  step->machine = pto_compiler_resolve_native (step->command, step->n_words, step->identity,
                                               (const char *const *) flags->pdata,
                                               build->cancellable, build->cancel_fd);
  return step->machine != NULL;
}

static void
keep_key (Build *build, const Step *step)
{
  if (step->manifest != NULL && step->key != NULL)
    pto_compiler_keep_key (build->cache_dir, step->manifest, step->key, step->job->files,
                           step->command);
}

static void
mark_hidden_stores (const Build *build, Step *step)
{
  g_autofree char *mark = pto_hidden_stores_mark (step->source, step->source_size, build->api_dir);
  char *marked = g_malloc (step->source_size + strlen (mark) + 1);

  memcpy (marked, step->source, step->source_size);
  strcpy (marked + step->source_size, mark);
  step->source_size += strlen (mark);
  g_free (step->source);
  step->source = marked;
}

/* What was preprocessed is in the cache, or is compiled: then is_over becomes FALSE. */
static gboolean
step_preprocessed (Build *build, Step *step, gboolean *is_over, GError **error)
{
  PtoCompilerJob *job = step->job;
  struct pto_output *output = &step->process.output;

  if (output->n == 0 || output->lost)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE,
                   output->lost ? _ ("%s: no memory for its preprocessed source")
                                : _ ("%s: the compiler gave no preprocessed source"),
                   job->label);
      return FALSE;
    }
  step->source = g_strndup (output->data, output->n);
  step->source_size = output->n;
  pto_source_files_add_headers (job->files, step->source, step->source_size);
  if (pto_compiler_says_accesses (job))
    mark_hidden_stores (build, step);
  step->complaints
      = g_string_new_len (step->process.complaints.data, (gssize) step->process.complaints.n);
  pto_command_end (&step->process);
  if (!reads_more_files (step) && find_machine (build, step))
    {
      step->key = make_key (step);
      job->was_cached = pto_cache_find (build->cache_dir, step->key, &job->object, job->digest);
      if (job->was_cached)
        keep_key (build, step);
    }
  *is_over = job->was_cached;
  return *is_over || step_compile (build, step, error);
}

static gboolean
step_compiled (Build *build, Step *step, GError **error)
{
  PtoCompilerJob *job = step->job;
  g_autofree char *warnings = NULL;
  g_autofree char *data = NULL;
  gsize size;

  g_string_append_len (step->complaints, step->process.complaints.data,
                       (gssize) step->process.complaints.n);
  warnings = g_utf8_make_valid (step->complaints->str, (gssize) step->complaints->len);
  if (g_strchomp (warnings)[0] != '\0')
    pto_log (G_LOG_LEVEL_MESSAGE, "%s: %s", job->label, warnings);
  if (!pto_object_file_check (step->temporary, NULL)
      || !g_file_get_contents (step->temporary, &data, &size, NULL))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE,
                   _ ("%s: the compiler %s wrote no shared object to %s"), job->label,
                   (const char *) g_ptr_array_index (step->command, 0), build->cache_dir);
      return FALSE;
    }
  if (!pto_cache_add (build->cache_dir, step->key, data, size, &job->object, job->digest, error))
    return FALSE;
  keep_key (build, step);
  return TRUE;
}

/* A shared object that is given built is kept by its contents. */
static gboolean
copy_object (Build *build, PtoCompilerJob *job, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autofree char *data = NULL;
  gsize size;

  g_clear_pointer (&job->files, pto_source_files_unref);
  job->files = pto_source_files_begin (job->path);
  if (!pto_object_file_check (job->path, error))
    return FALSE;
  if (g_file_get_contents (job->path, &data, &size, &local))
    return pto_cache_add (build->cache_dir, NULL, data, size, &job->object, job->digest, error);
  g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, _ ("%s: %s: can not be read: %s"), job->label,
               job->path, pto_save_explain_read (local));
  return FALSE;
}

static gboolean
knows_native (Build *build, Step *step)
{
  static const char *const flags[] = { PTO_COMPILER_NATIVE, NULL };
  g_autofree char *machine = pto_compiler_resolve_native (
      step->command, step->n_words, step->identity, flags, build->cancellable, build->cancel_fd);

  return machine != NULL;
}

/* Is there an object of what the source was and still is? */
static gboolean
find_made (Build *build, Step *step)
{
  PtoCompilerJob *job = step->job;
  PtoSourceFiles *files = NULL;
  g_autofree char *key = NULL;

  step->manifest = pto_compiler_name_manifest (job, step->command, build->api_dir);
  if (step->manifest != NULL)
    key = pto_compiler_recall_key (build->cache_dir, step->manifest, &files);
  if (key == NULL)
    return FALSE;
  g_clear_pointer (&job->files, pto_source_files_unref);
  job->files = files;
  job->was_cached = pto_cache_find (build->cache_dir, key, &job->object, job->digest);
  return job->was_cached;
}

static gboolean
step_begin (Build *build, Step *step, gboolean *is_over, GError **error)
{
  PtoCompilerJob *job = step->job;

  if (job->language == PTO_LANGUAGE_OBJECT)
    {
      *is_over = TRUE;
      return copy_object (build, job, error);
    }
  step->command = pto_compiler_find (job->language == PTO_LANGUAGE_C, error);
  if (step->command == NULL)
    return FALSE;
  *is_over = find_made (build, step);
  if (*is_over)
    return TRUE;
  step->identity
      = pto_compiler_identify (step->command, build->cancellable, build->cancel_fd, error);
  if (step->identity == NULL)
    return FALSE;
  step->n_words = step->command->len;
  step->linked = g_ptr_array_new_with_free_func (g_free);
  return pto_compiler_add_flags (job, step->identity, knows_native (build, step), build->api_dir,
                                 step->command, step->linked, error)
         && step_preprocess (build, step, error);
}

/* The command of a step is over. */
static gboolean
step_continue (Build *build, Step *step, gboolean *is_over, GError **error)
{
  if (step->process.status != 0)
    {
      set_compile_error (step, error);
      return FALSE;
    }
  if (step->source == NULL)
    return step_preprocessed (build, step, is_over, error);
  *is_over = TRUE;
  return step_compiled (build, step, error);
}

/* --- all jobs --- */

static void
report_done (Build *build, const PtoCompilerJob *job)
{
  build->done++;
  if (build->progress != NULL)
    build->progress (job, build->done, build->n_jobs, build->user_data);
}

static gboolean
begin_steps (Build *build, GError **error)
{
  while (build->next < build->n_jobs && build->running->len < build->limit)
    {
      Step *step = g_new0 (Step, 1);
      gboolean is_over = FALSE;

      step->job = &build->jobs[build->next++];
      g_ptr_array_add (build->running, step);
      if (!step_begin (build, step, &is_over, error))
        return FALSE;
      if (is_over)
        {
          report_done (build, step->job);
          g_ptr_array_remove (build->running, step);
        }
    }
  return TRUE;
}

/* Waits until something is to be done, and does it. */
static gboolean
continue_steps (Build *build, GError **error)
{
  struct pto_command *processes[PTO_COMMANDS_MAX];

  for (guint i = 0; i < build->running->len; i++)
    processes[i] = &((Step *) g_ptr_array_index (build->running, i))->process;
  if (!pto_compiler_wait (processes, build->running->len, build->cancellable, build->cancel_fd,
                          error))
    return FALSE;
  for (guint i = build->running->len; i-- > 0;)
    {
      Step *step = g_ptr_array_index (build->running, i);
      gboolean is_over = FALSE;

      if (step->process.over && !step_continue (build, step, &is_over, error))
        return FALSE;
      if (is_over)
        {
          report_done (build, step->job);
          g_ptr_array_remove_index (build->running, i);
        }
    }
  return TRUE;
}

/* Any thread. */
static void
tell_of_cancel (GCancellable *cancellable, gpointer data)
{
  const guint64 one = 1;

  while (write (*(int *) data, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

/* Something to be read when it is cancelled. (That of GCancellable ends the program when there is
 * no descriptor left.) */
static gboolean
watch_cancellable (Build *build, gulong *handler, GError **error)
{
  *handler = 0;
  build->cancel_fd = -1;
  if (build->cancellable == NULL)
    return TRUE;
  build->cancel_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (build->cancel_fd < 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM,
                   _ ("the compiler can not be run: eventfd: %s"), g_strerror (errno));
      return FALSE;
    }
  *handler = g_cancellable_connect (build->cancellable, G_CALLBACK (tell_of_cancel),
                                    &build->cancel_fd, NULL);
  return TRUE;
}

gboolean
pto_compiler_build (PtoCompilerJob *jobs, guint n_jobs, PtoCompilerProgress progress,
                    gpointer user_data, GCancellable *cancellable, GError **error)
{
  g_autofree char *cache_dir = NULL;
  g_autofree char *api_dir = NULL;
  Build build = { 0 };
  gulong handler;
  gboolean ok;

  if (pto_error_set_if_cancelled (cancellable, error) || !pto_error_check_calls (error))
    return FALSE;
  api_dir = pto_dup_api_dir (error);
  if (api_dir == NULL)
    return FALSE;
  cache_dir = pto_cache_dup_dir (error);
  if (cache_dir == NULL)
    return FALSE;

  build.jobs = jobs;
  build.n_jobs = n_jobs;
  build.limit = CLAMP (g_get_num_processors (), 1, PTO_COMMANDS_MAX);
  build.api_dir = api_dir;
  build.cache_dir = cache_dir;
  build.progress = progress;
  build.user_data = user_data;
  build.cancellable = cancellable;
  if (!watch_cancellable (&build, &handler, error))
    return FALSE;
  build.running = g_ptr_array_new_with_free_func (step_free);
  do
    ok = begin_steps (&build, error) && (build.running->len == 0 || continue_steps (&build, error));
  while (ok && (build.running->len > 0 || build.next < n_jobs));
  /* The first error ends the others. */
  g_ptr_array_unref (build.running);
  g_cancellable_disconnect (cancellable, handler);
  if (build.cancel_fd >= 0)
    close (build.cancel_fd);
  return ok;
}

/* To load such an object would end the program. */
static gboolean
check_sanitizer (const char *source, const char *object, GError **error)
{
  g_autofree char *data = NULL;
  g_autofree char *refusal = NULL;
  gsize size;

  if (g_file_get_contents (object, &data, &size, NULL))
    refusal = pto_object_file_explain_sanitizer (data, size);
  if (refusal != NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, _ ("%s: can not be loaded: %s"), source,
                 refusal);
  return refusal == NULL;
}

/**
 * pto_compile_shared_object:
 * @source: (type filename): a C (`.c`) or C++ (`.cc`, `.cpp`, `.cxx`) source, or a shared object
 * (`.so`)
 * @cancellable: (nullable): ends the compiler
 * @error: where to say why there is none
 *
 * Builds a shared object from one source with the compiler, flags (those of `CFLAGS` and
 * `CXXFLAGS`, too), headers and cache of kernels.
 *
 * The result lies in the user's cache directory under a name made of its content: it is not to be
 * changed or removed. Fails with %PTO_ERROR_NOT_FOUND, %PTO_ERROR_NOT_SUPPORTED (no such kind of
 * file), %PTO_ERROR_COMPILE (with the compiler's own text), %PTO_ERROR_LOAD (no shared object for
 * this machine, or one with a sanitizer that this program lacks), %G_IO_ERROR_CANCELLED or
 * %PTO_ERROR_SYSTEM. Thread safety: any thread.
 *
 * Returns: (transfer full) (type filename): the path of a shared object
 *
 * Since: 0.1
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
  if (pto_compiler_build (&job, 1, NULL, NULL, cancellable, error)
      && check_sanitizer (source, job.object, error))
    object = g_steal_pointer (&job.object);
  pto_compiler_job_clear (&job);
  return object;
}

static void
compile_in_thread (GTask *task)
{
  GError *error = NULL;
  char *object = pto_compile_shared_object (g_task_get_task_data (task),
                                            g_task_get_cancellable (task), &error);

  if (object != NULL)
    g_task_return_pointer (task, object, g_free);
  else
    g_task_return_error (task, error);
}

/**
 * pto_compile_shared_object_async:
 * @source: (type filename): as in [func@Pto.compile_shared_object]
 * @cancellable: (nullable): ends the compiler
 * @callback: (scope async) (closure user_data) (nullable): called when it has ended, in the main
 * context that is this thread's default
 * @user_data: for @callback
 *
 * Like [func@Pto.compile_shared_object], without waiting. A cancelled one ends when its compiler
 * has been ended, or at once if it waits for its turn: ten compile at one time.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_compile_shared_object_async (const char *source, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (source != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));

  task = g_task_new (NULL, cancellable, callback, user_data);
  g_task_set_source_tag (task, pto_compile_shared_object_async);
  g_task_set_check_cancellable (task, FALSE);
  g_task_set_task_data (task, g_strdup (source), g_free);
  pto_task_run (task, compile_in_thread);
}

/**
 * pto_compile_shared_object_finish:
 * @result: what the callback was given
 * @error: where to say why there is none
 *
 * Ends [func@Pto.compile_shared_object_async]. Thread safety: the thread of the callback.
 *
 * Returns: (transfer full) (type filename): the path of a shared object
 *
 * Since: 0.1
 */
char *
pto_compile_shared_object_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, NULL), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return g_task_propagate_pointer (G_TASK (result), error);
}
