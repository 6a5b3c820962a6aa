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

#include "core/bits.h"

#include "bridge-parts.h"

#include "process/remote-results.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

/* --- in this process --- */

/* The first that ends behind the address. */
static guint
find_stash (const GArray *stash, guint64 address)
{
  return pto_bisect (i, stash->len, g_array_index (stash, PtoRemoteStash, i).end <= address);
}

void
pto_remote_child_clear_stash (gpointer data)
{
  PtoRemoteStash *stash = data;

  g_bytes_unref (stash->bytes);
}

void
pto_remote_child_drop_stash (PtoRemoteChild *self, guint64 begin, guint64 end)
{
  guint i = find_stash (self->stash, begin);

  while (i < self->stash->len)
    {
      PtoRemoteStash *stash = &g_array_index (self->stash, PtoRemoteStash, i);
      PtoRemoteStash rest = *stash;

      if (stash->begin >= end)
        return;
      if (stash->begin >= begin && stash->end <= end)
        {
          g_array_remove_index (self->stash, i);
          continue;
        }
      if (stash->begin >= begin)
        {
          stash->begin = end;
          return;
        }
      stash->end = begin;
      i++;
      if (rest.end <= end)
        continue;
      rest.begin = end;
      g_bytes_ref (rest.bytes);
      g_array_insert_val (self->stash, i, rest);
      return;
    }
}

gconstpointer
pto_remote_child_find_source (PtoRemoteChild *self, guint64 address, guint64 *end)
{
  guint i = find_stash (self->stash, address);
  const PtoRemoteStash *stash;

  if (i == self->stash->len)
    return (gconstpointer) (guintptr) address;
  stash = &g_array_index (self->stash, PtoRemoteStash, i);
  if (stash->begin > address)
    {
      *end = MIN (*end, stash->begin);
      return (gconstpointer) (guintptr) address;
    }
  *end = MIN (*end, stash->end);
  return (const guint8 *) g_bytes_get_data (stash->bytes, NULL) + (address - stash->origin);
}

static guint64
count_stash (PtoRemoteChild *self, guint64 begin, guint64 end)
{
  guint64 n = 0;

  for (guint i = find_stash (self->stash, begin); i < self->stash->len; i++)
    {
      const PtoRemoteStash *stash = &g_array_index (self->stash, PtoRemoteStash, i);

      if (stash->begin >= end)
        break;
      n += MIN (stash->end, end) - MAX (stash->begin, begin);
    }
  return n;
}

/* What is only there is here as well, where nobody but this process sees it. */
static gboolean
stash_all (PtoRemoteChild *self, const struct pto_call *call, GArray *only, GError **error)
{
  for (guint i = 0; i < only->len; i++)
    {
      const PtoRemoteLeft *there = &g_array_index (only, PtoRemoteLeft, i);
      guint64 bytes = there->end - there->begin;
      gpointer data = g_try_malloc (bytes);
      PtoRemoteStash stash = { there->begin, there->end, there->begin, NULL };

      if (data == NULL)
        return pto_refuse (error, PTO_ERROR_NO_MEMORY,
                           _ ("no memory for %" PRIu64 " bytes that %s has no room for any more"),
                           bytes, self->path);
      if (!pto_remote_child_fetch (self, call, there->block->number,
                                   there->begin - there->block->begin, (guint64) (guintptr) data,
                                   bytes, error))
        {
          g_free (data);
          return FALSE;
        }
      pto_remote_child_count (&self->traffic->received, bytes);
      pto_remote_directory_add (there->block, there->begin, there->end);
      stash.bytes = g_bytes_new_take (data, bytes);
      g_array_insert_val (self->stash, find_stash (self->stash, there->begin), stash);
    }
  return TRUE;
}

gboolean
pto_remote_child_spill (PtoRemoteChild *self, const struct pto_call *call, GError **error)
{
  g_autoptr (GArray) only = pto_remote_directory_list_left (self->directory, 0, G_MAXUINT64);

  return stash_all (self, call, only, error);
}

gboolean
pto_remote_child_gather (PtoRemoteChild *self, const struct pto_call *call, guint64 begin,
                         guint64 end, GError **error)
{
  g_autoptr (GArray) only = NULL;

  if (pto_remote_directory_find_missing (self->directory, begin, end) == 0)
    return TRUE;
  only = pto_remote_directory_list_left (self->directory, begin, end);
  return stash_all (self, call, only, error);
}

guint64
pto_remote_child_count_left (PtoRemoteChild *self, guint64 begin, guint64 end)
{
  g_autoptr (GArray) only = pto_remote_directory_list_left (self->directory, begin, end);
  guint64 n = count_stash (self, begin, end);

  for (guint i = 0; i < only->len; i++)
    {
      const PtoRemoteLeft *there = &g_array_index (only, PtoRemoteLeft, i);

      n += there->end - there->begin;
    }
  return n;
}

/* --- to where it belongs --- */

static gboolean
fetch_left (PtoRemoteChild *self, const struct pto_call *call, guint64 begin, guint64 end,
            GError **error)
{
  g_autoptr (GArray) only = NULL;
  guint64 left = pto_remote_child_count_left (self, begin, end);

  if (left != end - begin)
    return pto_refuse (error, PTO_ERROR_INTERNAL,
                       _ ("of %" PRIu64 " bytes that were left at %s there are %" PRIu64),
                       end - begin, self->path, left);
  for (guint i = find_stash (self->stash, begin); i < self->stash->len; i++)
    {
      const PtoRemoteStash *stash = &g_array_index (self->stash, PtoRemoteStash, i);
      guint64 from = MAX (stash->begin, begin);

      if (stash->begin >= end)
        break;
      memcpy ((gpointer) (guintptr) from,
              (const guint8 *) g_bytes_get_data (stash->bytes, NULL) + (from - stash->origin),
              MIN (stash->end, end) - from);
    }
  pto_remote_child_drop_stash (self, begin, end);
  only = pto_remote_directory_list_left (self->directory, begin, end);
  for (guint i = 0; i < only->len; i++)
    {
      const PtoRemoteLeft *there = &g_array_index (only, PtoRemoteLeft, i);
      guint64 bytes = there->end - there->begin;

      if (!pto_remote_child_fetch (self, call, there->block->number,
                                   there->begin - there->block->begin, there->begin, bytes, error))
        return FALSE;
      pto_remote_child_count (&self->traffic->received, bytes);
      pto_remote_directory_add (there->block, there->begin, there->end);
    }
  return TRUE;
}

gboolean
pto_remote_child_fetch_left (PtoRemoteChild *self, const struct pto_call *call, GError **error)
{
  const struct pto_left_range *ranges = (const struct pto_left_range *) call->body;

  for (guint i = 0; i < call->bytes / sizeof *ranges; i++)
    if (!fetch_left (self, call, ranges[i].begin, ranges[i].end, error))
      return FALSE;
  return TRUE;
}
