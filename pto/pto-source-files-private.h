/* pto-source-files-private.h: which files was something compiled from, and are they what they were?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The compiler's own headers, and those of the system, do not count. Immutable; any thread.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _PtoSourceFiles PtoSourceFiles;

/* A moment, as the times of files are told; before the first file is read. */
gint64 pto_source_files_get_time (void);
/* What a preprocessor has read, by its output, of a source at an absolute path; text: NULL: that
 * file alone. began: when it did. */
PtoSourceFiles *pto_source_files_new (const char *path, const char *text, gsize size, gint64 began);
PtoSourceFiles *pto_source_files_ref (PtoSourceFiles *files);
void pto_source_files_unref (PtoSourceFiles *files);
/* Adds their names, absolute, to a list that owns what it holds: the source first. */
void pto_source_files_list (PtoSourceFiles *files, GPtrArray *names);

typedef enum
{
  PTO_SOURCE_FILES_SAME,
  PTO_SOURCE_FILES_UNSURE, /* one was written while it was read */
  PTO_SOURCE_FILES_EDITED,
} PtoSourceFilesState;

PtoSourceFilesState pto_source_files_look (PtoSourceFiles *files);

G_END_DECLS
