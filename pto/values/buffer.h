/* buffer.h: how does a buffer lie in memory that somebody else keeps the books of?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-buffer.h"

G_BEGIN_DECLS

/* Who keeps the books, of all such buffers the same. Any thread. */
typedef struct
{
  /* FALSE with an error: the range is not of this buffer any more. */
  gboolean (*write) (gpointer owner, guint64 address, gconstpointer data, gsize size,
                     GError **error);
  gboolean (*read) (gpointer owner, guint64 address, gpointer data, gsize size, GError **error);
  /* To memory of another owner, or the same. */
  gboolean (*copy) (gpointer owner, guint64 address, gpointer to_owner, guint64 to, guint64 size,
                    GError **error);
  /* A text that names that part of it. */
  char *(*export) (gpointer owner, guint64 address, guint64 size, GError **error);
  PtoWorker *(*get_worker) (gpointer owner);
  /* With the last reference to the buffer. */
  void (*release) (gpointer owner);
} PtoBufferOwner;

PtoBuffer *pto_buffer_new_owned (guint64 address, guint64 size, const PtoBufferOwner *ops,
                                 gpointer owner);

G_END_DECLS
