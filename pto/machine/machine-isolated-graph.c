/* machine-isolated-graph.c: how does a graph come to a chip in another process, and from there?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The child keeps a copy of each graph that it has launched, so that a launch tells it a number and
 * the arguments. Graphs do not change, and workers do not hear when one goes: the next run looks
 * which are gone. The chip makes captured graphs there; the parent takes them over when the run has
 * ended.
 */
#include "config.h"

#include "core/graph-plan-pack.h"

#include "machine-isolated.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

/* Its number, and room for so many bytes. */
static GByteArray *
pack_number (const PtoGraphTag *tag, gsize more)
{
  GByteArray *body = g_byte_array_new ();

  g_byte_array_append (body, (const guint8 *) &tag->id, sizeof tag->id);
  g_byte_array_set_size (body, (guint) (sizeof tag->id + more));
  return body;
}

void
pto_isolated_forget_graphs (IsolatedMachine *self)
{
  GHashTableIter iter;
  gpointer key;

  g_hash_table_iter_init (&iter, self->graphs);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    {
      PtoGraphTag *tag = key;
      g_autoptr (GByteArray) body = NULL;

      if (!g_atomic_int_get (&tag->gone))
        continue;
      body = pack_number (tag, 0);
      /* A child that dies of it has no graphs, which is found soon. */
      pto_isolated_ask (self, PTO_ISOLATED_LANE_CONTROL, PTO_REQUEST_FORGET, NULL, body, "", NULL,
                        NULL);
      g_hash_table_iter_remove (&iter);
    }
}

/* Under control. */
static gboolean
send_graph (IsolatedMachine *self, PtoGraphTag *tag, const struct pto_plan *plan, GError **error)
{
  g_autofree char *what = g_strdup_printf (_ ("sending a graph of %u tasks"), plan->n_tasks);
  g_autoptr (GByteArray) body = pack_number (tag, pto_plan_packed_size (plan));
  gboolean ok;

  pto_plan_pack (plan, body->data + sizeof tag->id);
  ok = pto_isolated_ask (self, PTO_ISOLATED_LANE_CONTROL, PTO_REQUEST_GRAPH, NULL, body, what, NULL,
                         error);
  if (ok)
    g_hash_table_add (self->graphs, g_atomic_rc_box_acquire (tag));
  return ok;
}

void
pto_isolated_launch (PtoMachine *machine, PTO2Runtime *rt, const struct pto_plan *plan,
                     const guint32 *kernels)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;
  PtoGraphTag *tag = self->run->tag;
  gboolean ok;

  g_mutex_lock (&self->control);
  ok = g_hash_table_contains (self->graphs, tag) || send_graph (self, tag, plan, &self->refused);
  g_mutex_unlock (&self->control);
  if (ok)
    pto_isolated_post_run (self, plan, kernels, &self->refused);
}

gboolean
pto_isolated_take_captured (IsolatedMachine *self, struct pto_plan *plan, GError **error)
{
  struct pto_report report = { 0 };
  GError *failure = NULL;
  guint64 address;
  guint64 size = 0;

  g_mutex_lock (&self->control);
  address = pto_isolated_fetch (self, PTO_REQUEST_CAPTURED, _ ("the graph that was captured"),
                                &size, &failure);
  g_mutex_unlock (&self->control);
  if (address != 0)
    {
      pto_error_set_from_report (
          &failure, pto_plan_unpack (plan, (const void *) (guintptr) address, size, &report),
          &report);
      pto_arena_free (address, size);
    }
  else if (failure == NULL)
    g_set_error_literal (&failure, PTO_ERROR, PTO_ERROR_TAMPERED,
                         _ ("the chip's process has no graph to show for what it has captured"));
  if (failure == NULL)
    return TRUE;
  g_propagate_error (error, failure);
  return FALSE;
}
