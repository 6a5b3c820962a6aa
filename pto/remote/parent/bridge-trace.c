/* bridge-trace.c: how does what a remote worker has recorded get here?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bridge-parts.h"

#include "base/error.h"
#include "common/text.h"

/* How often the other clock is asked: the fastest answer says most. */
#define CLOCK_ROUNDS 8
/* More of a record is nobody's that the parameter trace-records allows. */
#define RECORD_BYTES_MAX (G_GUINT64_CONSTANT (1) << 31)

void
pto_bridge_begin_record (PtoBridge *self, guint32 record)
{
  pto_trace_pieces_clear (&self->pieces);
  pto_trace_pieces_init (&self->pieces);
  self->has_pieces = FALSE;
  self->record = record;
}

/* How far the other machine's clock is ahead of ours: it was read between two looks at ours, of
 * which nobody knows more. What is wrong by that is less than the fastest answer took, and no run
 * is drawn outside of its task (trace/model/worker-tree.c). */
static gboolean
compare_clocks (PtoBridge *self, gint64 *ahead, GError **error)
{
  guint64 fastest = G_MAXUINT64;

  for (guint i = 0; i < CLOCK_ROUNDS; i++)
    {
      guint64 before = pto_remote_get_time ();
      g_autoptr (GVariant) reply = pto_bridge_call (self, "Clock", NULL, "(t)", error);
      guint64 after = pto_remote_get_time ();
      guint64 there;

      if (reply == NULL)
        return FALSE;
      g_variant_get (reply, "(t)", &there);
      if (after - before >= fastest)
        continue;
      fastest = after - before;
      *ahead = (gint64) (there - (before + fastest / 2));
    }
  return TRUE;
}

static gboolean
fetch_record (PtoBridge *self, GByteArray *bytes, GError **error)
{
  guint64 total = 0;

  do
    {
      g_autoptr (GVariant) reply = pto_bridge_call (
          self, "Trace", g_variant_new ("(t)", (guint64) bytes->len), "(tay)", error);
      g_autoptr (GVariant) part = NULL;
      gconstpointer data;
      gsize size;

      if (reply == NULL)
        return FALSE;
      g_variant_get (reply, "(t@ay)", &total, &part);
      data = g_variant_get_fixed_array (part, &size, 1);
      if (total > RECORD_BYTES_MAX || size > total - MIN (total, bytes->len)
          || (size == 0 && bytes->len < total))
        return pto_refuse (
            error, PTO_ERROR_INTERNAL,
            _ ("the remote worker at %s has sent no record of its runs that could be read"),
            self->node->remote->address);
      g_byte_array_append (bytes, data, (guint) size);
      pto_call_beat (self->call);
    }
  while (bytes->len < total);
  return TRUE;
}

static gboolean
fetch_pieces (PtoBridge *self, GError **error)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  gint64 ahead = 0;

  self->has_pieces = TRUE;
  if (!compare_clocks (self, &ahead, error) || !fetch_record (self, bytes, error))
    return FALSE;
  if (bytes->len > 0
      && !pto_trace_pieces_unpack (&self->pieces, self->node->number, bytes->data, bytes->len))
    return pto_refuse (
        error, PTO_ERROR_INTERNAL,
        _ ("the remote worker at %s has sent no record of its runs that could be read"),
        self->node->remote->address);
  pto_trace_pieces_set_back (&self->pieces, ahead);
  return TRUE;
}

gboolean
pto_bridge_tell_record (PtoBridge *self, const struct pto_call *call, GError **error)
{
  if (self->record == 0 || self->stream == NULL)
    return TRUE;
  if (!self->has_pieces && !fetch_pieces (self, error))
    return FALSE;
  if (pto_child_tell_pieces (call, self->node->number, &self->pieces))
    pto_bridge_begin_record (self, 0);
  return TRUE;
}
