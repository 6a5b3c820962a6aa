/* pto-trace-pack.c: how does a trace come from the process that made it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A head, then starts, drops and records as they lie in a trace, then the names and the title, each
 * ended by 0. Bytes come from a process that may have written anything into them.
 */
#include "config.h"

#include "pto-trace-private.h"

#include <string.h>

typedef struct
{
  struct pto_trace_topology topology;
  guint64 n_buffers;
  guint64 n_names;
  guint64 n_records;
  guint64 n_text; /* bytes */
} Head;

gsize
pto_trace_get_packed_size (PtoTrace *trace)
{
  gsize text = strlen (trace->title) + 1;

  for (guint i = 0; i < trace->n_kernel_names; i++)
    text += strlen (trace->kernel_names[i]) + 1;
  return sizeof (Head) + (2 * (gsize) trace->n_buffers + 1) * sizeof (guint64)
         + trace->starts[trace->n_buffers] * sizeof (struct pto_trace_record) + text;
}

static guint8 *
put (guint8 *to, gconstpointer from, gsize size)
{
  if (size > 0)
    memcpy (to, from, size);
  return to + size;
}

void
pto_trace_pack (PtoTrace *trace, guint8 *bytes)
{
  guint8 *at = bytes;
  Head head = { .topology = trace->topology,
                .n_buffers = trace->n_buffers,
                .n_names = trace->n_kernel_names,
                .n_records = trace->starts[trace->n_buffers] };

  head.n_text = pto_trace_get_packed_size (trace) - sizeof head
                - (2 * head.n_buffers + 1) * sizeof (guint64)
                - head.n_records * sizeof (struct pto_trace_record);
  at = put (at, &head, sizeof head);
  at = put (at, trace->starts, (head.n_buffers + 1) * sizeof (guint64));
  at = put (at, trace->drops, head.n_buffers * sizeof (guint64));
  at = put (at, trace->records, head.n_records * sizeof (struct pto_trace_record));
  for (guint i = 0; i < trace->n_kernel_names; i++)
    at = put (at, trace->kernel_names[i], strlen (trace->kernel_names[i]) + 1);
  put (at, trace->title, strlen (trace->title) + 1);
}

static gconstpointer
take (const guint8 **at, gsize *left, guint64 n, gsize size)
{
  gconstpointer taken = *at;

  if (n > *left / size)
    return NULL;
  *at += n * size;
  *left -= n * size;
  return taken;
}

static char *
take_text (const guint8 **at, gsize *left)
{
  const guint8 *end = memchr (*at, 0, *left);
  const char *text = (const char *) *at;

  if (end == NULL)
    return NULL;
  *left -= (gsize) (end + 1 - *at);
  *at = end + 1;
  return g_utf8_make_valid (text, -1);
}

/* Every buffer's records lie behind those of the one before it. */
static gboolean
check_starts (const guint64 *starts, guint64 n_buffers, guint64 n_records)
{
  if (starts[0] != 0 || starts[n_buffers] != n_records)
    return FALSE;
  for (guint64 b = 0; b < n_buffers; b++)
    if (starts[b] > starts[b + 1])
      return FALSE;
  return TRUE;
}

PtoTrace *
pto_trace_new_from_packed (const guint8 *bytes, gsize size)
{
  g_autoptr (PtoTrace) self = NULL;
  const guint64 *starts, *drops;
  gconstpointer records;
  Head head;

  if (size < sizeof head)
    return NULL;
  memcpy (&head, bytes, sizeof head);
  bytes += sizeof head;
  size -= sizeof head;
  if (head.n_buffers > G_MAXUINT32 || head.n_names > G_MAXUINT32)
    return NULL;
  starts = take (&bytes, &size, head.n_buffers + 1, sizeof *starts);
  drops = starts != NULL ? take (&bytes, &size, head.n_buffers, sizeof *drops) : NULL;
  records = drops != NULL ? take (&bytes, &size, head.n_records, sizeof (struct pto_trace_record))
                          : NULL;
  if (records == NULL || !check_starts (starts, head.n_buffers, head.n_records)
      || head.topology.n_schedulers > head.n_buffers || head.topology.n_cores > head.n_buffers
      || 1 + (guint64) head.topology.n_schedulers + head.topology.n_cores != head.n_buffers)
    return NULL;

  self = g_object_new (PTO_TYPE_TRACE, NULL);
  self->topology = head.topology;
  self->n_buffers = (guint) head.n_buffers;
  g_free (self->starts);
  self->starts = g_memdup2 (starts, (head.n_buffers + 1) * sizeof *starts);
  self->drops = g_renew (guint64, self->drops, MAX (head.n_buffers, 1));
  put ((guint8 *) self->drops, drops, head.n_buffers * sizeof *drops);
  for (guint64 b = 0; b < head.n_buffers; b++)
    self->dropped += self->drops[b];
  self->records = g_renew (struct pto_trace_record, self->records, MAX (head.n_records, 1));
  put ((guint8 *) self->records, records, head.n_records * sizeof (struct pto_trace_record));
  if (head.n_names > size)
    return NULL;
  self->kernel_names = g_renew (char *, self->kernel_names, head.n_names + 1);
  self->kernel_names[0] = NULL;
  while (self->n_kernel_names < head.n_names)
    {
      char *name = take_text (&bytes, &size);

      if (name == NULL)
        return NULL;
      self->kernel_names[self->n_kernel_names++] = name;
      self->kernel_names[self->n_kernel_names] = NULL;
    }
  g_free (self->title);
  self->title = take_text (&bytes, &size);
  return self->title != NULL ? g_steal_pointer (&self) : NULL;
}
