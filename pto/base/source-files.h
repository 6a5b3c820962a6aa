/* source-files.h: which files was something compiled from, and are they what they were?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The compiler's own headers, and those of the system, do not count except in stamps. Immutable
 * once its headers are added; any thread.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _PtoSourceFiles PtoSourceFiles;

/* A source at an absolute path, before it is read. */
PtoSourceFiles *pto_source_files_begin (const char *path);
/* What a preprocessor has read since then, by its output. */
void pto_source_files_add_headers (PtoSourceFiles *files, const char *text, gsize size);
PtoSourceFiles *pto_source_files_ref (PtoSourceFiles *files);
void pto_source_files_unref (PtoSourceFiles *files);
/* Adds their names, absolute, to a list that owns what it holds: the source first. */
void pto_source_files_list (PtoSourceFiles *files, GPtrArray *names);

typedef enum
{
  PTO_SOURCE_FILES_SAME,
  PTO_SOURCE_FILES_UNSURE, /* one may be another than what was read, or has been touched */
  PTO_SOURCE_FILES_EDITED,
} PtoSourceFilesState;

PtoSourceFilesState pto_source_files_look (PtoSourceFiles *files);

/* What another process needs to know whether the preprocessor would read the same again, which
 * looks for headers in these directories. NULL: it may have read something else already, or would
 * not. */
char *pto_source_files_dup_stamps (PtoSourceFiles *files, GPtrArray *search_dirs);
/* The files that stamps are of; NULL: one of them, or a directory, is not what it was. */
PtoSourceFiles *pto_source_files_recall (const char *stamps);

G_END_DECLS
