/* compiler-manifest.c: what was a source's key, if nothing that it is made from has changed?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * To preprocess a source takes much longer than to run a small graph. A manifest says what came of
 * it the last time: the key, and stamps of all files that were read and of the directories that
 * were searched. It is named by what else decides: the compiler's file, its words, its environment
 * and the processor. Where one of these cannot be told by looking, there is no manifest.
 */
#include "config.h"

#include "compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "libpto manifest 1"

static void
add (GChecksum *checksum, const char *text)
{
  /* None is not the same as an empty one. */
  g_checksum_update (checksum, (const guchar *) (text != NULL ? "=" : "-"), 1);
  if (text != NULL)
    g_checksum_update (checksum, (const guchar *) text, (gssize) strlen (text) + 1);
}

static void
add_words (GChecksum *checksum, char **words)
{
  for (; words != NULL && *words != NULL; words++)
    add (checksum, *words);
  add (checksum, NULL);
}

static gboolean
add_file (GChecksum *checksum, const char *path)
{
  g_autofree char *stamp = NULL;
  struct stat status;

  if (stat (path, &status) != 0)
    return FALSE;
  stamp = g_strdup_printf ("%s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GINT64_FORMAT
                           " %" G_GINT64_FORMAT ".%09ld %" G_GINT64_FORMAT ".%09ld",
                           path, (guint64) status.st_dev, (guint64) status.st_ino,
                           (gint64) status.st_size, (gint64) status.st_mtim.tv_sec,
                           (long) status.st_mtim.tv_nsec, (gint64) status.st_ctim.tv_sec,
                           (long) status.st_ctim.tv_nsec);
  add (checksum, stamp);
  return TRUE;
}

/* This library decides on the flags. */
static gboolean
add_library (GChecksum *checksum)
{
  Dl_info info;

  return dladdr ((gpointer) pto_compiler_name_manifest, &info) != 0
         && add_file (checksum, info.dli_fname);
}

static gboolean
is_program (const char *path)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  char magic[4];
  gboolean is_elf;

  if (fd < 0)
    return FALSE;
  is_elf = read (fd, magic, sizeof magic) == sizeof magic
           && memcmp (magic, "\177ELF", sizeof magic) == 0;
  close (fd);
  return is_elf;
}

/* A program that calls a compiler, such as one that keeps what that gives, does not change when the
 * compiler does. */
static gboolean
add_compiler (GChecksum *checksum, const char *program)
{
  g_autofree char *real = realpath (program, NULL);
  g_autofree char *name = real != NULL ? g_path_get_basename (real) : NULL;

  add (checksum, program);
  return name != NULL
         && g_regex_match_simple ("^(.+-)?(cc|c\\+\\+|gcc|g\\+\\+|clang|clang\\+\\+)(-[0-9.]+)?$",
                                  name, 0, 0)
         && is_program (real) && add_file (checksum, real);
}

/* What the compiler's own code for this machine depends on. */
static char *
dup_processor (void)
{
  static const char *const names[]
      = { "vendor_id",   "cpu family",       "model",        "model name", "stepping",
          "flags",       "cache size",       "Features",     "CPU part",   "CPU implementer",
          "CPU variant", "CPU architecture", "CPU revision", NULL };
  char text[8192] = "";
  gsize size = 0;
  gssize n = 1;
  int fd = open ("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  GString *known;
  char *end;

  if (fd < 0)
    return NULL;
  while (n > 0 && size < sizeof text - 1)
    {
      n = read (fd, text + size, sizeof text - 1 - size);
      size += n > 0 ? (gsize) n : 0;
    }
  close (fd);
  text[size] = '\0';
  /* The first of them. */
  end = strstr (text, "\n\n");
  if (end == NULL)
    return NULL;
  *end = '\0';
  known = g_string_new (NULL);
  for (char *line = text; line != NULL;)
    {
      char *next = strchr (line, '\n');
      char *colon;

      if (next != NULL)
        *next++ = '\0';
      colon = strchr (line, ':');
      if (colon != NULL)
        {
          g_autofree char *name = g_strchomp (g_strndup (line, (gsize) (colon - line)));

          if (g_strv_contains (names, name))
            g_string_append_printf (known, "%s%s\n", name, colon);
        }
      line = next;
    }
  return g_string_free (known, FALSE);
}

char *
pto_compiler_name_manifest (const PtoCompilerJob *job, GPtrArray *compiler, const char *api_dir)
{
  static const char *const variables[]
      = { "CFLAGS",         "CXXFLAGS",           "PTO_ISA_ROOT", "CPATH",
          "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LC_ALL",       "LC_CTYPE",
          "LANG",           "SOURCE_DATE_EPOCH" };
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree char *processor = dup_processor ();
  g_autofree char *directory = g_get_current_dir ();
  g_autofree char *kind = g_strdup_printf ("%d %d %d %d", job->language, job->is_kernel,
                                           job->core_type, pto_compiler_says_accesses (job));

  add (checksum, FORMAT);
  /* Where these are set, parts of the compiler are elsewhere. */
  if (g_getenv ("COMPILER_PATH") != NULL || g_getenv ("GCC_EXEC_PREFIX") != NULL)
    return NULL;
  if (processor == NULL || !add_library (checksum)
      || !add_compiler (checksum, g_ptr_array_index (compiler, 0)))
    return NULL;
  for (guint i = 1; i < compiler->len; i++)
    add (checksum, g_ptr_array_index (compiler, i));
  add (checksum, processor);
  add (checksum, directory);
  add (checksum, kind);
  add (checksum, job->path);
  add (checksum, job->entry);
  add_words (checksum, job->include_dirs);
  add_words (checksum, job->flags);
  add (checksum, api_dir);
  for (guint i = 0; i < G_N_ELEMENTS (variables); i++)
    add (checksum, g_getenv (variables[i]));
  return g_strdup (g_checksum_get_string (checksum));
}

char *
pto_compiler_recall_key (const char *cache_dir, const char *manifest, PtoSourceFiles **files)
{
  g_autofree char *text = pto_cache_find_manifest (cache_dir, manifest);
  char *stamps = text != NULL ? strchr (text, '\n') : NULL;

  if (stamps == NULL)
    return NULL;
  *stamps++ = '\0';
  *files = pto_source_files_recall (stamps);
  return *files != NULL ? g_steal_pointer (&text) : NULL;
}

/* Of a flag: does the compiler, or another in its place, read what has no stamp? */
static gboolean
reads_files (const char *word)
{
  static const char *const flags[]
      = { "-B",           "-fplugin",           "-specs",     "--specs",
          "-wrapper",     "--sysroot",          "-iprefix",   "-isysroot",
          "-iwithprefix", "-iwithprefixbefore", "-imultilib", "-include-pch" };

  for (guint i = 0; i < G_N_ELEMENTS (flags); i++)
    if (g_str_has_prefix (word, flags[i]))
      return TRUE;
  return FALSE;
}

/* The directories that these words and the environment have searched; NULL: a word reads a file, or
 * tells the time. */
static GPtrArray *
find_search_dirs (GPtrArray *command)
{
  static const char *const flags[] = { "-I", "-isystem", "-iquote", "-idirafter" };
  static const char *const variables[] = { "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH" };
  g_autoptr (GPtrArray) dirs = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < command->len; i++)
    {
      const char *word = g_ptr_array_index (command, i);

      if (word[0] == '@' || strstr (word, "__DATE__") != NULL || strstr (word, "__TIME") != NULL
          || reads_files (word))
        return NULL;
      for (guint j = 0; j < G_N_ELEMENTS (flags); j++)
        if (strcmp (word, flags[j]) == 0 && i + 1 < command->len)
          g_ptr_array_add (dirs, g_strdup (g_ptr_array_index (command, i + 1)));
        else if (g_str_has_prefix (word, flags[j]) && word[strlen (flags[j])] != '\0')
          g_ptr_array_add (dirs, g_strdup (word + strlen (flags[j])));
    }
  for (guint i = 0; i < G_N_ELEMENTS (variables); i++)
    {
      const char *value = g_getenv (variables[i]);
      g_auto (GStrv) words = value != NULL ? g_strsplit (value, ":", -1) : NULL;

      /* An empty one is the current directory. */
      for (char **word = words; word != NULL && *word != NULL; word++)
        g_ptr_array_add (dirs, g_strdup (**word != '\0' ? *word : "."));
    }
  return g_steal_pointer (&dirs);
}

void
pto_compiler_keep_key (const char *cache_dir, const char *manifest, const char *key,
                       PtoSourceFiles *files, GPtrArray *command)
{
  g_autoptr (GPtrArray) dirs = find_search_dirs (command);
  g_autofree char *stamps = dirs != NULL ? pto_source_files_dup_stamps (files, dirs) : NULL;
  g_autofree char *text = stamps != NULL ? g_strconcat (key, "\n", stamps, NULL) : NULL;

  if (text != NULL)
    pto_cache_add_manifest (cache_dir, manifest, text);
}
