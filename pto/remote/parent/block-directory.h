/* block-directory.h: which memory of this side is copied at the other end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of one life of a remote worker, kept by its bridge. A block is memory at the other end that
 * stands for a range of addresses here; of each block it is known which bytes there are what they
 * are here. A range may be in several blocks, where tensors overlap that came at different times;
 * what a task writes is good in the block that the task has it in, and in no other.
 *
 * The directory decides what is sent, what is thrown away, and nothing else: no message is known
 * here. Thread safety: one thread.
 */
#pragma once

#include "process/spans.h"

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  guint64 begin, end;
} PtoRemoteSpan;

typedef struct
{
  guint64 number; /* by which the other end knows it; never given twice */
  guint64 begin, end;
  struct pto_spans good; /* the directory's; it says what their tags are */
  GList link;            /* in the order of the last use */
  guint users;           /* tasks that are under way */
} PtoRemoteBlock;

/* Some of a block that was left there. */
typedef struct
{
  PtoRemoteBlock *block;
  guint64 begin, end;
} PtoRemoteLeft;

typedef struct _PtoDirectory PtoDirectory;

/* limit: bytes of all blocks that no task needs just now, page by page; of what the program has
 * half as many go off it. */
PtoDirectory *pto_directory_new (guint64 limit);
void pto_directory_free (PtoDirectory *directory);

/* A block that has all of the range, for a task: an old one or a new one, which makes others go.
 * It stays until it is let go of. */
PtoRemoteBlock *pto_directory_use (PtoDirectory *directory, guint64 begin, guint64 end);
void pto_directory_let_go (PtoRemoteBlock *block);
/* Of the range, what has to be sent: PtoRemoteSpan, by address. */
GArray *pto_directory_list_missing (PtoRemoteBlock *block, guint64 begin, guint64 end);
guint64 pto_directory_count_missing (PtoRemoteBlock *block, guint64 begin, guint64 end);
/* How many bytes of it are in no block that has all of the range, taking the best. */
guint64 pto_directory_find_missing (PtoDirectory *directory, guint64 begin, guint64 end);
/* The range is there, in that block, as it is here. */
void pto_directory_add (PtoRemoteBlock *block, guint64 begin, guint64 end);
/* The same, and it is not here: the block stays as long as any of that is good. */
void pto_directory_add_left (PtoRemoteBlock *block, guint64 begin, guint64 end);
/* And never will be. */
void pto_directory_add_staying (PtoRemoteBlock *block, guint64 begin, guint64 end);
/* Of the range, what was left there (PtoRemoteLeft); what stays is not listed. */
GArray *pto_directory_list_left (PtoDirectory *directory, guint64 begin, guint64 end);
/* The range is not what it is here any more, in no block. */
void pto_directory_remove (PtoDirectory *directory, guint64 begin, guint64 end);
/* The same of what is here as well: what is only there stays as it is. */
void pto_directory_remove_copies (PtoDirectory *directory, guint64 begin, guint64 end);
/* And the other way round: what was only there is not there any more. */
void pto_directory_remove_only (PtoDirectory *directory, guint64 begin, guint64 end);
/* A new block that is the program's, and is known by a range that nothing else here has: all of it
 * is good for ever, and nobody else throws it away. */
void pto_directory_own (PtoDirectory *directory, guint64 begin, guint64 end);
/* FALSE: there is none that begins there. */
gboolean pto_directory_disown (PtoDirectory *directory, guint64 begin);
/* That has all of the range; NULL: there is none. */
PtoRemoteBlock *pto_directory_find_owned (PtoDirectory *directory, guint64 begin, guint64 end);
guint pto_directory_get_n_owned (PtoDirectory *directory);
/* Nothing is there that no task needs just now. */
void pto_directory_drop_all (PtoDirectory *directory);

/* Numbers of blocks (guint64) that are gone since the last time, and blocks (PtoRemoteBlock *) that
 * are new: what the other end has to be told, in this order. */
GArray *pto_directory_steal_dropped (PtoDirectory *directory);
GPtrArray *pto_directory_steal_begun (PtoDirectory *directory);
/* Of all blocks but the program's, page by page. */
guint64 pto_directory_get_bytes (PtoDirectory *directory);

G_END_DECLS
