/* perfetto-tracks.c: on which track of Perfetto's is what, and how does it get there?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * On a track slices nest: an end closes the last one that is open. Slices that overlap otherwise,
 * which records of a good run have none of, go to a track of their own.
 */
#include "config.h"

#include "perfetto.h"

/* --- strings --- */

guint64
pto_perfetto_intern (Names *names, const char *string)
{
  gpointer number = g_hash_table_lookup (names->numbers, string);
  char *copy;

  if (number != NULL)
    return GPOINTER_TO_UINT (number);
  copy = g_strdup (string);
  g_ptr_array_add (names->strings, copy);
  g_hash_table_insert (names->numbers, copy, GUINT_TO_POINTER (names->strings->len));
  return names->strings->len;
}

void
pto_perfetto_names_init (Names *names)
{
  names->numbers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  names->strings = g_ptr_array_new ();
}

void
pto_perfetto_names_clear (Names *names)
{
  g_ptr_array_unref (names->strings);
  g_hash_table_unref (names->numbers);
}

guint64
pto_perfetto_intern_kernel (Part *part, guint32 kernel)
{
  gpointer number = g_hash_table_lookup (part->kernels, GUINT_TO_POINTER (kernel));

  if (number == NULL)
    {
      const char *name = pto_trace_get_kernel_name (part->trace, kernel);

      number = GUINT_TO_POINTER ((guint) pto_perfetto_intern (&part->output->names, name));
      g_hash_table_insert (part->kernels, GUINT_TO_POINTER (kernel), number);
    }
  return GPOINTER_TO_UINT (number);
}

guint64
pto_perfetto_intern_place (Part *part, guint32 file, guint32 line)
{
  gint64 key = (gint64) ((guint64) file << 32 | line);
  gpointer number = g_hash_table_lookup (part->places, &key);

  if (number == NULL)
    {
      g_autofree char *place = g_strdup_printf ("%s:%u", part->trace->files[file], line);
      gint64 *stored = g_new (gint64, 1);

      *stored = key;
      number = GUINT_TO_POINTER ((guint) pto_perfetto_intern (&part->output->strings, place));
      g_hash_table_insert (part->places, stored, number);
    }
  return GPOINTER_TO_UINT (number);
}

/* --- packets --- */

/* Leaves the packet and its TrackEvent open. */
OpenEvent
pto_perfetto_begin_event (Output *output, guint64 time, guint order, guint type, guint64 track)
{
  PtoProto *proto = &output->packets;
  Event event = { time, (guint64) order << 60 | output->n_written++, proto->size, 0 };
  OpenEvent open = { 0 };

  g_array_append_val (output->events, event);
  open.packet = pto_proto_begin (proto, TRACE_PACKET);
  pto_proto_put_uint (proto, PACKET_TIMESTAMP, time);
  pto_proto_put_uint (proto, PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
  pto_proto_put_uint (proto, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_INCREMENTAL_STATE);
  open.event = pto_proto_begin (proto, PACKET_TRACK_EVENT);
  pto_proto_put_uint (proto, EVENT_TYPE, type);
  pto_proto_put_uint (proto, EVENT_TRACK_UUID, track);
  return open;
}

void
pto_perfetto_name_event (Output *output, Category category, guint64 name)
{
  pto_proto_put_uint (&output->packets, EVENT_CATEGORY_IIDS, 1 + category);
  pto_proto_put_uint (&output->packets, EVENT_NAME_IID, name);
}

void
pto_perfetto_end_event (Output *output, OpenEvent open)
{
  Event *event = &g_array_index (output->events, Event, output->events->len - 1);

  pto_proto_end (&output->packets, open.event);
  pto_proto_end (&output->packets, open.packet);
  event->length = output->packets.size - event->offset;
}

/* A track of the output. Until end_track() its descriptor is open. */
typedef struct
{
  guint64 uuid;
  gsize packet;
  gsize descriptor;
} Track;

static Track
begin_track (Output *output)
{
  Track track = { ++output->n_tracks, pto_proto_begin (&output->tracks, TRACE_PACKET), 0 };

  pto_proto_put_uint (&output->tracks, PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
  track.descriptor = pto_proto_begin (&output->tracks, PACKET_TRACK_DESCRIPTOR);
  pto_proto_put_uint (&output->tracks, TRACK_UUID, track.uuid);
  return track;
}

static void
end_track (Output *output, Track track)
{
  pto_proto_end (&output->tracks, track.descriptor);
  pto_proto_end (&output->tracks, track.packet);
}

/* --- tracks --- */

static guint64
add_process (Output *output, guint pid, const char *name)
{
  PtoProto *proto = &output->tracks;
  Track track = begin_track (output);
  gsize process;

  pto_proto_put_string (proto, TRACK_NAME, name);
  pto_proto_put_uint (proto, TRACK_CHILD_ORDERING, CHILD_ORDERING_EXPLICIT);
  process = pto_proto_begin (proto, TRACK_PROCESS);
  pto_proto_put_uint (proto, PROCESS_PID, pid);
  pto_proto_put_string (proto, PROCESS_NAME, name);
  pto_proto_end (proto, process);
  end_track (output, track);
  return track.uuid;
}

static Lane *
add_lane (Row *row, guint64 uuid)
{
  Lane *lane = g_new (Lane, 1);

  *lane = (Lane){ uuid, g_array_new (FALSE, FALSE, sizeof (guint64)), 0 };
  g_ptr_array_add (row->lanes, lane);
  return lane;
}

static void
lane_free (gpointer data)
{
  Lane *lane = data;

  g_array_unref (lane->open);
  g_free (lane);
}

void
pto_perfetto_row_free (gpointer data)
{
  Row *row = data;

  g_ptr_array_unref (row->lanes);
  g_free (row->name);
  g_free (row);
}

static Row *
add_thread (Output *output, guint64 process, guint pid, guint tid, const char *name,
            gboolean is_core)
{
  PtoProto *proto = &output->tracks;
  Row *row = g_new0 (Row, 1);
  Track track = begin_track (output);
  gsize thread;

  pto_proto_put_uint (proto, TRACK_PARENT_UUID, process);
  pto_proto_put_string (proto, TRACK_NAME, name);
  pto_proto_put_uint (proto, TRACK_SIBLING_ORDER_RANK, tid);
  thread = pto_proto_begin (proto, TRACK_THREAD);
  pto_proto_put_uint (proto, THREAD_PID, pid);
  pto_proto_put_uint (proto, THREAD_TID, tid);
  pto_proto_put_string (proto, THREAD_NAME, name);
  pto_proto_end (proto, thread);
  end_track (output, track);

  row->process = process;
  row->name = g_strdup (name);
  row->lanes = g_ptr_array_new_with_free_func (lane_free);
  row->is_core = is_core;
  add_lane (row, track.uuid);
  g_ptr_array_add (output->rows, row);
  return row;
}

/* For what overlaps. */
static Lane *
add_second_lane (Output *output, Row *row)
{
  Track track = begin_track (output);

  pto_proto_put_uint (&output->tracks, TRACK_PARENT_UUID, row->process);
  pto_proto_put_string (&output->tracks, TRACK_NAME, row->name);
  end_track (output, track);
  return add_lane (row, track.uuid);
}

guint64
pto_perfetto_get_counter (Part *part, const char *name, guint unit)
{
  Output *output = part->output;
  guint64 *known = g_hash_table_lookup (part->rows->counters, name);
  Track track;
  gsize counter;

  if (known != NULL)
    return *known;
  track = begin_track (output);
  pto_proto_put_uint (&output->tracks, TRACK_PARENT_UUID, part->rows->control);
  pto_proto_put_string (&output->tracks, TRACK_NAME, name);
  pto_proto_put_uint (&output->tracks, TRACK_SIBLING_ORDER_RANK,
                      g_hash_table_size (part->rows->counters));
  counter = pto_proto_begin (&output->tracks, TRACK_COUNTER);
  pto_proto_put_uint (&output->tracks, COUNTER_UNIT, unit);
  pto_proto_end (&output->tracks, counter);
  end_track (output, track);
  g_hash_table_insert (part->rows->counters, g_strdup (name),
                       g_memdup2 (&track.uuid, sizeof track.uuid));
  return track.uuid;
}

void
pto_perfetto_rows_free (gpointer data)
{
  Rows *rows = data;

  g_ptr_array_unref (rows->schedulers);
  g_ptr_array_unref (rows->cores);
  g_hash_table_unref (rows->clusters);
  g_hash_table_unref (rows->counters);
  g_hash_table_unref (rows->tensors);
  g_free (rows);
}

static guint64
get_cluster (Part *part, guint cluster)
{
  guint64 *known = g_hash_table_lookup (part->rows->clusters, GUINT_TO_POINTER (cluster));
  g_autofree char *name = NULL;

  if (known != NULL)
    return *known;
  name = pto_track_dup_cluster_name (part->of, cluster);
  known = g_new (guint64, 1);
  *known = add_process (part->output, part->of->worker * PID_STRIDE + PID_CLUSTER + cluster, name);
  g_hash_table_insert (part->rows->clusters, GUINT_TO_POINTER (cluster), known);
  return *known;
}

Row *
pto_perfetto_add_control_row (Part *part, guint tid, const char *name)
{
  return add_thread (part->output, part->rows->control, part->of->worker * PID_STRIDE + PID_CONTROL,
                     part->of->worker * TID_STRIDE + tid, name, FALSE);
}

static void
add_core (Part *part, guint core)
{
  g_autofree char *name = pto_trace_dup_core_name (part->trace, core);
  guint pid = pto_track_get_pid (part->trace, core);
  guint64 process
      = pid == PID_CONTROL ? part->rows->control : get_cluster (part, pid - PID_CLUSTER);

  g_ptr_array_add (part->rows->cores,
                   add_thread (part->output, process, part->of->worker * PID_STRIDE + pid,
                               part->of->worker * TID_STRIDE + TID_CORE + core, name, TRUE));
}

/* Those that are not there yet: a run of a worker may have more of them than one before it. */
static void
add_rows (Part *part)
{
  Rows *rows = part->rows;

  if (rows->orchestrator == NULL)
    {
      g_autofree char *control = pto_track_dup_control_name (part->of);

      rows->control
          = add_process (part->output, part->of->worker * PID_STRIDE + PID_CONTROL, control);
      rows->orchestrator = pto_perfetto_add_control_row (part, TID_ORCHESTRATOR, "orchestrator");
    }
  for (guint s = rows->schedulers->len; s < part->trace->topology.n_schedulers; s++)
    {
      g_autofree char *name = g_strdup_printf ("scheduler %u", s);

      g_ptr_array_add (rows->schedulers,
                       pto_perfetto_add_control_row (part, TID_SCHEDULER + s, name));
    }
  for (guint c = rows->cores->len; c < part->trace->topology.n_cores; c++)
    add_core (part, c);
}

void
pto_perfetto_find_rows (Part *part)
{
  GPtrArray *all = part->output->all_rows;

  if (part->of->worker == all->len)
    {
      Rows *rows = g_new0 (Rows, 1);

      rows->schedulers = g_ptr_array_new ();
      rows->cores = g_ptr_array_new ();
      rows->tensors = g_hash_table_new (NULL, NULL);
      rows->clusters = g_hash_table_new_full (NULL, NULL, NULL, g_free);
      rows->counters = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
      g_ptr_array_add (all, rows);
    }
  part->rows = g_ptr_array_index (all, part->of->worker);
  add_rows (part);
}

/* --- slices --- */

static void
put_end (Output *output, Lane *lane, guint64 time, guint order)
{
  pto_perfetto_end_event (
      output, pto_perfetto_begin_event (output, time, order, TYPE_SLICE_END, lane->uuid));
  lane->last = time;
}

static void
close_slices (Output *output, const Row *row, Lane *lane, guint64 until)
{
  while (lane->open->len > 0)
    {
      guint64 end = g_array_index (lane->open, guint64, lane->open->len - 1);

      if (end > until)
        return;
      put_end (output, lane, end, row->is_core ? ORDER_ENDS : ORDER_BETWEEN);
      g_array_set_size (lane->open, lane->open->len - 1);
    }
}

/* Begins a slice of a row, which are begun by their starts, longer ones first. Its event is left
 * open. */
OpenEvent
pto_perfetto_begin_slice (Output *output, Row *row, guint64 start, guint64 end)
{
  Lane *lane = NULL;
  OpenEvent open;

  for (guint i = 0; i < row->lanes->len && lane == NULL; i++)
    {
      Lane *candidate = g_ptr_array_index (row->lanes, i);
      guint n_open;

      close_slices (output, row, candidate, start);
      n_open = candidate->open->len;
      if (candidate->last <= start
          && (n_open == 0 || g_array_index (candidate->open, guint64, n_open - 1) >= end))
        lane = candidate;
    }
  if (lane == NULL)
    lane = add_second_lane (output, row);
  lane->last = start;
  if (end > start)
    g_array_append_val (lane->open, end);
  open = pto_perfetto_begin_event (output, start,
                                   row->is_core && end > start ? ORDER_BEGINS : ORDER_BETWEEN,
                                   TYPE_SLICE_BEGIN, lane->uuid);
  open.lane = lane;
  return open;
}

/* One without a length ends at once; the others when it is their time. */
void
pto_perfetto_end_slice (Output *output, OpenEvent event, guint64 start, guint64 end)
{
  pto_perfetto_end_event (output, event);
  if (end == start)
    put_end (output, event.lane, end, ORDER_BETWEEN);
}

void
pto_perfetto_close_rows (Output *output)
{
  for (guint i = 0; i < output->rows->len; i++)
    {
      const Row *row = g_ptr_array_index (output->rows, i);

      for (guint l = 0; l < row->lanes->len; l++)
        close_slices (output, row, g_ptr_array_index (row->lanes, l), PTO_TRACE_NEVER);
    }
}
