/* pto-source-files.c: which files was something compiled from, and are they what they were?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A preprocessor says in its output where each file begins. What those were is known by size, time
 * and number of each, as they are right after it has read them: one that has been written since it
 * began may be another than what it has read.
 */
#include "config.h"

#include "pto-source-files-private.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct
{
  char *name;
  gboolean is_there;
  gboolean is_sure; /* what was read is what is told here */
  guint64 device;
  guint64 number;
  guint64 size;
  gint64 written; /* when, ns */
} File;

struct _PtoSourceFiles
{
  gatomicrefcount ref_count;
  GArray *files; /* File */
};

static gint64
to_ns (const struct timespec *time)
{
  return (gint64) time->tv_sec * 1000000000 + time->tv_nsec;
}

/* The clock that files are written by: not the exact one, which is ahead of it. */
gint64
pto_source_files_get_time (void)
{
  struct timespec now;

#ifdef CLOCK_REALTIME_COARSE
  if (clock_gettime (CLOCK_REALTIME_COARSE, &now) == 0)
    return to_ns (&now);
#endif
  clock_gettime (CLOCK_REALTIME, &now);
  return to_ns (&now);
}

static void
look (File *file)
{
  struct stat status;

  file->is_there = stat (file->name, &status) == 0;
  if (!file->is_there)
    return;
  file->device = (guint64) status.st_dev;
  file->number = (guint64) status.st_ino;
  file->size = (guint64) status.st_size;
  file->written = to_ns (&status.st_mtim);
}

static void
clear_file (gpointer file)
{
  g_free (((File *) file)->name);
}

/* Takes the name. */
static void
add_file (PtoSourceFiles *files, GHashTable *seen, char *name, gint64 began)
{
  File file = { .name = name };

  if (!g_hash_table_add (seen, g_strdup (name)))
    {
      g_free (name);
      return;
    }
  look (&file);
  file.is_sure = file.is_there && file.written < began;
  g_array_append_val (files->files, file);
}

/* Of a line such as: # 1 "dir/x.h" 1 3. NULL: no file begins there, or one of the system. */
static char *
dup_name (const char *line, const char *end)
{
  const char *quote = memchr (line, '"', (gsize) (end - line));
  const char *close = quote != NULL ? memrchr (quote + 1, '"', (gsize) (end - quote - 1)) : NULL;
  g_autofree char *flags = NULL;
  g_autofree char *quoted = NULL;
  g_autofree char *name = NULL;
  g_auto (GStrv) words = NULL;

  if (close == NULL || quote[1] == '<')
    return NULL;
  flags = g_strndup (close + 1, (gsize) (end - close - 1));
  words = g_strsplit (g_strstrip (flags), " ", -1);
  if (!g_strv_contains ((const char *const *) words, "1")
      || g_strv_contains ((const char *const *) words, "3"))
    return NULL;
  quoted = g_strndup (quote + 1, (gsize) (close - quote - 1));
  name = g_strcompress (quoted);
  return g_canonicalize_filename (name, NULL);
}

PtoSourceFiles *
pto_source_files_new (const char *path, const char *text, gsize size, gint64 began)
{
  PtoSourceFiles *files = g_new0 (PtoSourceFiles, 1);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const char *end = text != NULL ? text + size : NULL;

  g_atomic_ref_count_init (&files->ref_count);
  files->files = g_array_new (FALSE, FALSE, sizeof (File));
  g_array_set_clear_func (files->files, clear_file);
  add_file (files, seen, g_strdup (path), began);
  for (const char *line = text; line != NULL && line < end;)
    {
      const char *next = memchr (line, '\n', (gsize) (end - line));

      next = next != NULL ? next : end;
      if (next - line > 2 && line[0] == '#' && line[1] == ' ' && g_ascii_isdigit (line[2]))
        {
          char *name = dup_name (line, next);

          if (name != NULL)
            add_file (files, seen, name, began);
        }
      line = next + 1;
    }
  return files;
}

PtoSourceFiles *
pto_source_files_ref (PtoSourceFiles *files)
{
  g_atomic_ref_count_inc (&files->ref_count);
  return files;
}

void
pto_source_files_unref (PtoSourceFiles *files)
{
  if (!g_atomic_ref_count_dec (&files->ref_count))
    return;
  g_array_unref (files->files);
  g_free (files);
}

void
pto_source_files_list (PtoSourceFiles *files, GPtrArray *names)
{
  for (guint i = 0; i < files->files->len; i++)
    g_ptr_array_add (names, g_strdup (g_array_index (files->files, File, i).name));
}

PtoSourceFilesState
pto_source_files_look (PtoSourceFiles *files)
{
  PtoSourceFilesState state = PTO_SOURCE_FILES_SAME;

  for (guint i = 0; i < files->files->len; i++)
    {
      const File *was = &g_array_index (files->files, File, i);
      File is = { .name = was->name };

      look (&is);
      if (is.is_there != was->is_there || is.device != was->device || is.number != was->number
          || is.size != was->size || is.written != was->written)
        return PTO_SOURCE_FILES_EDITED;
      if (!was->is_sure)
        state = PTO_SOURCE_FILES_UNSURE;
    }
  return state;
}
