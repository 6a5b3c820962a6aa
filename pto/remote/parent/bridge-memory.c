/* bridge-memory.c: how does a program come by memory of a remote worker, and at what is
 * in it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * To the directory it is a block that nobody throws away, and of which all is there and nothing
 * here; to the other end it is one like any other. So a task finds it as it finds all of its memory
 * (bridge-task.c).
 */
#include "config.h"

#include "bridge-parts.h"
#include "bridge.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

/* Of the blocks that the other end keeps; the others are tasks'. */
#define OWNED_MAX (PTO_REMOTE_ITEMS_MAX / 2)

/* What is not needed any more goes, too. */
static gboolean
begin (PtoBridge *self, GError **error)
{
  g_autoptr (GVariant) reply
      = pto_bridge_call (self, "Begin", pto_bridge_make_begin (self), "()", error);

  return reply != NULL;
}

static gboolean
take (PtoBridge *self, const PtoRemoteMemoryRequest *request, GError **error)
{
  gboolean again = FALSE;

  if (pto_directory_get_n_owned (self->directory) >= OWNED_MAX)
    return pto_refuse (
        error, PTO_ERROR_NO_MEMORY,
        _ ("a program has %u pieces of its memory, and can have no more: ask for fewer, "
           "larger ones"),
        OWNED_MAX);
  for (;;)
    {
      g_autoptr (GError) refused = NULL;
      guint64 end = request->address + request->bytes;

      pto_directory_own (self->directory, request->address, end);
      if (begin (self, &refused))
        break;
      pto_directory_disown (self->directory, request->address);
      /* What is kept there of tasks makes room, once. */
      if (again || !g_error_matches (refused, PTO_ERROR, PTO_ERROR_NO_MEMORY))
        {
          g_propagate_error (error, g_steal_pointer (&refused));
          return FALSE;
        }
      pto_directory_drop_all (self->directory);
      again = TRUE;
    }
  memcpy ((gpointer) (guintptr) request->staging, &self->life, sizeof self->life);
  return TRUE;
}

static gboolean
check_life (PtoBridge *self, const PtoRemoteMemoryRequest *request, GError **error)
{
  if (request->life == self->life)
    return TRUE;
  return pto_refuse (error, PTO_ERROR_WORKER_LOST,
                     _ ("memory 0x%" PRIx64
                        " is of life %u of %s, which was lost, and all of its memory "
                        "with it; this is its life %u: ask that one for memory"),
                     request->address, request->life, self->path, self->life);
}

static const PtoRemoteBlock *
find_owned (PtoBridge *self, guint64 address, guint64 bytes, GError **error)
{
  const PtoRemoteBlock *block
      = pto_directory_find_owned (self->directory, address, address + bytes);

  if (block == NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 _ ("%" PRIu64 " bytes from 0x%" PRIx64 " do not lie in memory of %s"), bytes,
                 address, self->path);
  return block;
}

/* All of it is there: nothing of it travels. */
static gboolean
copy_there (PtoBridge *self, const PtoRemoteMemoryRequest *request, const PtoRemoteBlock *from,
            GError **error)
{
  const PtoRemoteBlock *to = find_owned (self, request->target, request->bytes, error);
  g_autoptr (GVariant) reply = NULL;

  if (to == NULL)
    return FALSE;
  reply = pto_bridge_call (self, "Copy",
                           g_variant_new ("(ttttt)", from->number, request->address - from->begin,
                                          to->number, request->target - to->begin, request->bytes),
                           "()", error);
  return reply != NULL;
}

static gboolean
copy (PtoBridge *self, const PtoRemoteMemoryRequest *request, GError **error)
{
  const PtoRemoteBlock *block;
  guint64 offset;

  if (!check_life (self, request, error))
    return FALSE;
  block = find_owned (self, request->address, request->bytes, error);
  if (block == NULL)
    return FALSE;
  if (request->what == PTO_MEMORY_COPY)
    return copy_there (self, request, block, error);
  offset = request->address - block->begin;
  if (request->what == PTO_MEMORY_COPY_TO)
    {
      if (!pto_bridge_put (self, block->number, offset, (gconstpointer) (guintptr) request->staging,
                           request->bytes, error))
        return FALSE;
      pto_bridge_count (&self->traffic->sent, request->bytes);
      return TRUE;
    }
  if (!pto_bridge_fetch (self, block->number, offset, request->staging, request->bytes, error))
    return FALSE;
  pto_bridge_count (&self->traffic->received, request->bytes);
  return TRUE;
}

/* The other end is told at once: nobody knows when the next task comes. */
static void
give_back (PtoBridge *self, const PtoRemoteMemoryRequest *request)
{
  if ((request->life == 0 || request->life == self->life)
      && pto_directory_disown (self->directory, request->address))
    pto_bridge_tell (self, "Begin", pto_bridge_make_begin (self), NULL, 0);
}

gboolean
pto_bridge_use_memory (PtoBridge *self, const struct pto_call *call, GError **error)
{
  PtoRemoteMemoryRequest request = { 0 };

  /* It is of this process's parent, which is a part of the same program. */
  memcpy (&request, call->body, MIN (call->bytes, sizeof request));
  switch (request.what)
    {
    case PTO_MEMORY_MALLOC:
      return take (self, &request, error);
    case PTO_MEMORY_FREE:
      give_back (self, &request);
      return TRUE;
    case PTO_MEMORY_CHECK:
      return check_life (self, &request, error)
             && find_owned (self, request.address, request.bytes, error) != NULL;
    default:
      return copy (self, &request, error);
    }
}
