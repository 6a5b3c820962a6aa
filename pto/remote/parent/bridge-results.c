/* bridge-results.c: what is left at the other end of a remote worker, and how does it come
 * here?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The parent knows what is left (../../process/remote-results.h), and says when it is to come: only
 * then is it written where it belongs, for only the parent knows who else is about to write there.
 * When the other end has no room for it, or a task has it in other pieces than those that wrote it,
 * it comes into memory of this process, which nobody else sees, and is sent from there.
 */
#include "config.h"

#include "bridge-parts.h"

#include "process/remote-results.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

/* --- in this process --- */

/* What was left at the other end, and had to come here before it was wanted: the tag of the spans
 * that it belongs to. */
typedef struct
{
  guint64 origin; /* the address that the first of the bytes belongs to */
  guint8 bytes[];
} Stash;

static const guint8 *
get_stashed (const struct pto_span *span, guint64 address)
{
  const Stash *stash = (const Stash *) (guintptr) span->tag;

  return stash->bytes + (address - stash->origin);
}

static gboolean
is_needed (PtoBridge *self, guint64 tag)
{
  for (guint i = 0; i < self->stash.n; i++)
    if (self->stash.list[i].tag == tag)
      return TRUE;
  return FALSE;
}

void
pto_bridge_drop_stash (PtoBridge *self, guint64 begin, guint64 end)
{
  struct pto_spans *spans = &self->stash;
  guint i;

  if (spans->n == 0)
    return;
  if (!pto_spans_reserve (spans, 2))
    g_error ("no memory to note what is left at the other end");
  pto_spans_cut (spans, begin, end);
  while ((i = pto_spans_find (spans, begin)) < spans->n && spans->list[i].begin < end)
    {
      guint64 tag = spans->list[i].tag;

      pto_spans_drop (spans, i);
      if (!is_needed (self, tag))
        g_free ((gpointer) (guintptr) tag);
    }
}

gconstpointer
pto_bridge_find_source (PtoBridge *self, guint64 address, guint64 *end)
{
  guint i = pto_spans_find (&self->stash, address);
  const struct pto_span *span;

  if (i == self->stash.n)
    return (gconstpointer) (guintptr) address;
  span = &self->stash.list[i];
  *end = MIN (*end, span->begin > address ? span->begin : span->end);
  return span->begin > address ? (gconstpointer) (guintptr) address : get_stashed (span, address);
}

/* What is only there is here as well, where nobody but this process sees it. */
static gboolean
stash_all (PtoBridge *self, GArray *only, GError **error)
{
  for (guint i = 0; i < only->len; i++)
    {
      const PtoRemoteLeft *there = &g_array_index (only, PtoRemoteLeft, i);
      guint64 bytes = there->end - there->begin;
      g_autofree Stash *stash = g_try_malloc (sizeof *stash + bytes);

      if (stash == NULL || !pto_spans_reserve (&self->stash, 2))
        return pto_refuse (error, PTO_ERROR_NO_MEMORY,
                           _ ("no memory for %" PRIu64 " bytes that %s has no room for any more"),
                           bytes, self->path);
      stash->origin = there->begin;
      if (!pto_bridge_fetch (self, there->block->number, there->begin - there->block->begin,
                             (guint64) (guintptr) stash->bytes, bytes, error))
        return FALSE;
      pto_bridge_count (&self->traffic->received, bytes);
      pto_directory_add (there->block, there->begin, there->end);
      pto_spans_set (&self->stash, there->begin, there->end,
                     (guint64) (guintptr) g_steal_pointer (&stash));
    }
  return TRUE;
}

gboolean
pto_bridge_spill (PtoBridge *self, GError **error)
{
  g_autoptr (GArray) only = pto_directory_list_left (self->directory, 0, G_MAXUINT64);

  return stash_all (self, only, error);
}

gboolean
pto_bridge_gather (PtoBridge *self, guint64 begin, guint64 end, GError **error)
{
  g_autoptr (GArray) only = NULL;

  if (pto_directory_find_missing (self->directory, begin, end) == 0)
    return TRUE;
  only = pto_directory_list_left (self->directory, begin, end);
  return stash_all (self, only, error);
}

guint64
pto_bridge_count_left (PtoBridge *self, guint64 begin, guint64 end)
{
  g_autoptr (GArray) only = pto_directory_list_left (self->directory, begin, end);
  guint64 n = 0;

  PTO_SPANS_EACH (i, &self->stash, begin, end)
  n += pto_span_end_in (&self->stash.list[i], end)
       - pto_span_begin_in (&self->stash.list[i], begin);
  for (guint i = 0; i < only->len; i++)
    {
      const PtoRemoteLeft *there = &g_array_index (only, PtoRemoteLeft, i);

      n += there->end - there->begin;
    }
  return n;
}

/* --- to where it belongs --- */

static gboolean
fetch_left (PtoBridge *self, guint64 begin, guint64 end, GError **error)
{
  g_autoptr (GArray) only = NULL;
  guint64 left = pto_bridge_count_left (self, begin, end);

  if (left != end - begin)
    return pto_refuse (error, PTO_ERROR_INTERNAL,
                       _ ("of %" PRIu64 " bytes that were left at %s there are %" PRIu64),
                       end - begin, self->path, left);
  PTO_SPANS_EACH (i, &self->stash, begin, end)
  {
    const struct pto_span *span = &self->stash.list[i];
    guint64 from = MAX (span->begin, begin);

    memcpy ((gpointer) (guintptr) from, get_stashed (span, from), MIN (span->end, end) - from);
  }
  pto_bridge_drop_stash (self, begin, end);
  only = pto_directory_list_left (self->directory, begin, end);
  for (guint i = 0; i < only->len; i++)
    {
      const PtoRemoteLeft *there = &g_array_index (only, PtoRemoteLeft, i);
      guint64 bytes = there->end - there->begin;

      if (!pto_bridge_fetch (self, there->block->number, there->begin - there->block->begin,
                             there->begin, bytes, error))
        return FALSE;
      pto_bridge_count (&self->traffic->received, bytes);
      pto_directory_add (there->block, there->begin, there->end);
    }
  return TRUE;
}

gboolean
pto_bridge_fetch_left (PtoBridge *self, const struct pto_call *call, GError **error)
{
  const struct pto_left_range *ranges = (const struct pto_left_range *) call->body;

  for (guint i = 0; i < call->bytes / sizeof *ranges; i++)
    if (!fetch_left (self, ranges[i].begin, ranges[i].end, error))
      return FALSE;
  return TRUE;
}
