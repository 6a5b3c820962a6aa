/* source-files.c: which files was something compiled from, and are they what they were?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A preprocessor says in its output where each file begins. What those were is known by size, time
 * and number of each. The source is looked at before it is read: what takes its place later is
 * another one. Which headers there are is known when they have been read: one that has been
 * written, or has got its name or place, since the preprocessor began may be another than what was
 * read.
 */
#include "config.h"

#include "source-files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* As it stands in a stamp. */
typedef enum
{
  SOURCE = 'f',
  OF_SYSTEM = 's',
  DIRECTORY = 'd', /* in stamps only, as the next one */
  NO_DIRECTORY = 'n',
} Kind;

typedef struct
{
  char *name;
  Kind kind;
  gboolean is_there;
  gboolean is_sure; /* what was read is what is told here */
  guint64 device;
  guint64 number;
  guint64 size;
  gint64 written; /* when, ns */
  gint64 changed; /* that, or its name, its place */
} File;

struct _PtoSourceFiles
{
  gatomicrefcount ref_count;
  GArray *files; /* File */
  gint64 began;
};

static gint64
to_ns (const struct timespec *time)
{
  return (gint64) time->tv_sec * 1000000000 + time->tv_nsec;
}

/* The clock that files are written by: not the exact one, which is ahead of it. */
static gint64
get_time (void)
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
  file->changed = to_ns (&status.st_ctim);
}

static gboolean
is_same (const File *file, const File *other)
{
  return file->is_there == other->is_there && file->device == other->device
         && file->number == other->number && file->size == other->size
         && file->written == other->written;
}

static void
clear_file (gpointer file)
{
  g_free (((File *) file)->name);
}

/* Takes the name of a file that has been read. */
static void
add_header (PtoSourceFiles *files, GHashTable *seen, char *name, Kind kind)
{
  File file = { .name = name, .kind = kind };

  if (!g_hash_table_add (seen, g_strdup (name)))
    {
      g_free (name);
      return;
    }
  look (&file);
  file.is_sure = file.is_there && file.written < files->began && file.changed < files->began;
  g_array_append_val (files->files, file);
}

/* Of a line such as: # 1 "dir/x.h" 1 3. NULL: no file begins there. */
static char *
dup_name (const char *line, const char *end, Kind *kind)
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
  if (!g_strv_contains ((const char *const *) words, "1"))
    return NULL;
  *kind = g_strv_contains ((const char *const *) words, "3") ? OF_SYSTEM : SOURCE;
  quoted = g_strndup (quote + 1, (gsize) (close - quote - 1));
  name = g_strcompress (quoted);
  return g_canonicalize_filename (name, NULL);
}

static PtoSourceFiles *
make_empty (void)
{
  PtoSourceFiles *files = g_new0 (PtoSourceFiles, 1);

  g_atomic_ref_count_init (&files->ref_count);
  files->files = g_array_new (FALSE, FALSE, sizeof (File));
  g_array_set_clear_func (files->files, clear_file);
  return files;
}

PtoSourceFiles *
pto_source_files_begin (const char *path)
{
  PtoSourceFiles *files = make_empty ();
  File source = { .name = g_strdup (path), .kind = SOURCE };

  files->began = get_time ();
  look (&source);
  source.is_sure = source.is_there && source.written < files->began;
  g_array_append_val (files->files, source);
  return files;
}

void
pto_source_files_add_headers (PtoSourceFiles *files, const char *text, gsize size)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const char *end = text + size;

  g_hash_table_add (seen, g_strdup (g_array_index (files->files, File, 0).name));
  for (const char *line = text; line < end;)
    {
      const char *next = memchr (line, '\n', (gsize) (end - line));

      next = next != NULL ? next : end;
      if (next - line > 2 && line[0] == '#' && line[1] == ' ' && g_ascii_isdigit (line[2]))
        {
          Kind kind;
          char *name = dup_name (line, next, &kind);

          if (name != NULL)
            add_header (files, seen, name, kind);
        }
      line = next + 1;
    }
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
    if (g_array_index (files->files, File, i).kind == SOURCE)
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

      if (was->kind != SOURCE)
        continue;
      look (&is);
      if (!is_same (&is, was))
        return PTO_SOURCE_FILES_EDITED;
      /* Contents may be others although the time of the last write has been set back. */
      if (!was->is_sure || is.changed != was->changed)
        state = PTO_SOURCE_FILES_UNSURE;
    }
  return state;
}

/* --- stamps --- */

/* May the preprocessor say something else although no file has changed that it has read? */
static gboolean
asks_for_more (const char *name)
{
  g_autofree char *text = NULL;
  gsize size;

  return !g_file_get_contents (name, &text, &size, NULL) || memmem (text, size, "__DATE__", 8)
         || memmem (text, size, "__TIME", 6) || memmem (text, size, "__has_include", 13);
}

/* FALSE: it may be another than what was read. */
static gboolean
add_stamp (GString *stamps, const File *file, gint64 began)
{
  g_autofree char *name = g_strescape (file->name, NULL);

  g_string_append_printf (stamps,
                          "%c %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
                          " %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %s\n",
                          file->kind, file->device, file->number, file->size, file->written,
                          file->changed, name);
  return file->kind == NO_DIRECTORY
         || (file->is_there && file->written < began && file->changed < began);
}

/* A directory, if it is one, and those below it through which a file of this name would be found.
 */
static gboolean
add_directories (GString *stamps, GHashTable *seen, const char *dir, const char *tail, gint64 began)
{
  const char *slash = strchr (tail, '/');
  File file = { .name = (char *) dir, .kind = DIRECTORY };
  g_autofree char *first = NULL;
  g_autofree char *below = NULL;

  if (g_hash_table_add (seen, g_strdup (dir)))
    {
      if (!g_file_test (dir, G_FILE_TEST_IS_DIR))
        file.kind = NO_DIRECTORY;
      else
        look (&file);
      if (!add_stamp (stamps, &file, began))
        return FALSE;
    }
  if (slash == NULL || !g_file_test (dir, G_FILE_TEST_IS_DIR))
    return TRUE;
  first = g_strndup (tail, (gsize) (slash - tail));
  below = g_build_filename (dir, first, NULL);
  return add_directories (stamps, seen, below, slash + 1, began);
}

char *
pto_source_files_dup_stamps (PtoSourceFiles *files, GPtrArray *search_dirs)
{
  g_autoptr (GString) stamps = g_string_new (NULL);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) dirs = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < search_dirs->len; i++)
    g_ptr_array_add (dirs, g_canonicalize_filename (g_ptr_array_index (search_dirs, i), NULL));
  for (guint i = 0; i < files->files->len; i++)
    {
      const File *file = &g_array_index (files->files, File, i);

      if (!add_stamp (stamps, file, files->began)
          || (file->kind == SOURCE && asks_for_more (file->name)))
        return NULL;
      if (file->kind == SOURCE)
        g_ptr_array_add (dirs, g_path_get_dirname (file->name));
    }
  for (guint i = 0; i < files->files->len; i++)
    for (guint j = 0; j < dirs->len; j++)
      /* How much of its path was written in the source is not told. */
      for (const char *tail = strchr (g_array_index (files->files, File, i).name, '/');
           tail != NULL; tail = strchr (tail + 1, '/'))
        if (!add_directories (stamps, seen, g_ptr_array_index (dirs, j), tail + 1, files->began))
          return NULL;
  return g_string_free (g_steal_pointer (&stamps), FALSE);
}

/* FALSE: it is not what it was. */
static gboolean
recall (PtoSourceFiles *files, const char *stamp)
{
  File was = { .is_there = TRUE, .is_sure = TRUE };
  File is = { 0 };
  char kind;
  int n = 0;

  if (sscanf (stamp,
              "%c %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
              " %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %n",
              &kind, &was.device, &was.number, &was.size, &was.written, &was.changed, &n)
          != 6
      || n == 0)
    return FALSE;
  was.kind = (Kind) kind;
  was.name = g_strcompress (stamp + n);
  is.name = was.name;
  look (&is);
  if (was.kind == NO_DIRECTORY)
    was.is_there = FALSE;
  if (was.kind == DIRECTORY || was.kind == NO_DIRECTORY)
    g_free (g_steal_pointer (&was.name));
  else
    g_array_append_val (files->files, was);
  return is_same (&is, &was) && is.changed == was.changed;
}

PtoSourceFiles *
pto_source_files_recall (const char *stamps)
{
  PtoSourceFiles *files = make_empty ();
  g_auto (GStrv) lines = g_strsplit (stamps, "\n", -1);

  for (guint i = 0; lines[i] != NULL && lines[i][0] != '\0'; i++)
    if (!recall (files, lines[i]))
      {
        pto_source_files_unref (files);
        return NULL;
      }
  return files;
}
