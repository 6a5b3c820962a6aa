/* machine-state.c: what does a machine do, as JSON?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "machine-state.h"

#include "common/json.h"
#include "common/text.h"

/* --- tasks --- */

/* As `pto trace why` takes it: "17", "1:17" of ring 1. */
static void
add_task (JsonBuilder *json, const struct pto_look_task *task)
{
  g_autofree char *label
      = PTO_TASK_RING (task->id) == 0
            ? g_strdup_printf ("%u", PTO_TASK_LOCAL (task->id))
            : g_strdup_printf ("%u:%u", PTO_TASK_RING (task->id), PTO_TASK_LOCAL (task->id));

  pto_json_add_string (json, "task", label);
  pto_json_add_string (json, "kernel", task->kernel);
  pto_json_add_string (json, "state", task->state_name);
}

static void
add_waiting (JsonBuilder *json, const struct pto_look_waiting *waiting, PtoLookQueueName queue_name,
             gconstpointer data)
{
  char kind[48];

  json_builder_begin_object (json);
  add_task (json, &waiting->task);
  if (waiting->priority > 0)
    pto_json_add_int (json, "priority", waiting->priority);
  if (waiting->queue == PTO_LOOK_QUEUES)
    {
      pto_json_add_int (json, "places", waiting->n_places);
      pto_json_add_int (json, "kept_places", waiting->n_kept);
    }
  else if (waiting->queue < PTO_LOOK_QUEUES)
    {
      queue_name (data, waiting->queue, kind, sizeof kind);
      pto_json_add_string (json, "needs", kind);
    }
  if (waiting->n_producers > 0)
    {
      pto_json_add_int (json, "producers", waiting->n_producers);
      pto_json_begin_array (json, "after");
      for (guint i = 0; i < waiting->n_causes; i++)
        {
          json_builder_begin_object (json);
          add_task (json, &waiting->causes[i]);
          json_builder_end_object (json);
        }
      json_builder_end_array (json);
    }
  json_builder_end_object (json);
}

/* --- the submitter --- */

static const char *const doings[PTO_N_DOINGS] = {
  [PTO_DOING_NOTHING] = "idle",        [PTO_DOING_ORCHESTRATION] = "orchestration",
  [PTO_DOING_CALL] = "call",           [PTO_DOING_TASK] = "task",
  [PTO_DOING_TURN] = "turn",           [PTO_DOING_ROOM] = "room",
  [PTO_DOING_COHORT] = "cluster",      [PTO_DOING_AWAIT] = "await",
  [PTO_DOING_AWAIT_ALL] = "await-all", [PTO_DOING_END] = "end",
};

static void
add_submitter (JsonBuilder *json, const struct pto_look_submitter *submitter)
{
  pto_json_begin_object (json, "submitter");
  pto_json_add_string (json, "doing", doings[submitter->doing]);
  if (submitter->for_ns > 0)
    pto_json_add_int (json, "for_ns", submitter->for_ns);
  if (submitter->doing == PTO_DOING_ROOM)
    pto_json_add_int (json, "ring", submitter->ring);
  if (submitter->doing == PTO_DOING_ROOM || submitter->doing == PTO_DOING_COHORT)
    {
      pto_json_add_string (json, "short_of", submitter->shortage.what);
      pto_json_add_int (json, "used", submitter->shortage.used);
      pto_json_add_int (json, "all", submitter->shortage.all);
      pto_json_add_string (json, "knob", submitter->shortage.knob);
    }
  if (submitter->task.id != PTO_TASK_NONE)
    add_task (json, &submitter->task);
  json_builder_end_object (json);
}

/* --- what chips and levels have alike --- */

static void
add_totals (JsonBuilder *json, const struct pto_machine_totals *totals)
{
  pto_json_begin_object (json, "totals");
  pto_json_add_int (json, "runs", totals->runs);
  pto_json_add_int (json, "failed_runs", totals->failed_runs);
  pto_json_add_int (json, "submitted", totals->submitted);
  pto_json_add_int (json, "completed", totals->completed);
  pto_json_add_int (json, "failed", totals->failed);
  pto_json_add_int (json, "edges", totals->edges);
  pto_json_add_int (json, "stalls", totals->stalls);
  pto_json_add_int (json, "peak_live_tasks", totals->peak_live);
  pto_json_add_int (json, "run_ns", totals->run_ns);
  pto_json_begin_array (json, "heap_peak");
  for (guint r = 0; r < PTO_RINGS; r++)
    json_builder_add_int_value (json, (gint64) totals->heap_peak[r]);
  json_builder_end_array (json);
  json_builder_end_object (json);
}

static void
add_gauges (JsonBuilder *json, const struct pto_look *look, PtoLookQueueName queue_name,
            gconstpointer data)
{
  char kind[48];

  pto_json_begin_array (json, "rings");
  for (guint r = 0; r < PTO_RINGS; r++)
    {
      const struct pto_look_ring *ring = &look->rings[r];

      json_builder_begin_object (json);
      pto_json_add_int (json, "ring", r);
      pto_json_add_int (json, "tasks", look->running ? ring->next - ring->first : 0);
      pto_json_add_int (json, "window", ring->window);
      pto_json_add_int (json, "first", ring->first);
      pto_json_add_int (json, "next", ring->next);
      pto_json_add_int (json, "heap_used", look->running ? ring->heap_used : 0);
      pto_json_add_int (json, "heap", ring->heap);
      pto_json_add_int (json, "heap_peak", ring->heap_peak);
      pto_json_add_int (json, "edges", look->running ? ring->edges : 0);
      pto_json_add_int (json, "edge_pool", ring->edge_pool);
      pto_json_add_int (json, "argument_bytes_used", look->running ? ring->storage_used : 0);
      pto_json_add_int (json, "argument_bytes", ring->storage);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
  pto_json_begin_object (json, "map");
  pto_json_add_int (json, "used", look->running ? look->map_used : 0);
  pto_json_add_int (json, "capacity", look->map_capacity);
  json_builder_end_object (json);
  pto_json_begin_array (json, "queues");
  for (guint q = 0; q < look->n_queues; q++)
    {
      queue_name (data, q, kind, sizeof kind);
      json_builder_begin_object (json);
      pto_json_add_string (json, "for", kind);
      pto_json_add_int (json, "ready", look->queued[q]);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
}

static void
add_run (JsonBuilder *json, const struct pto_look *look, const char *title,
         PtoLookQueueName queue_name, gconstpointer data)
{
  guint64 retired = 0;

  if (!look->running)
    {
      pto_json_add_string (json, "run", NULL);
      return;
    }
  for (guint r = 0; r < PTO_RINGS; r++)
    retired += look->rings[r].first;
  pto_json_begin_object (json, "run");
  pto_json_add_string (json, "title", title);
  pto_json_add_int (json, "for_ns", look->for_ns);
  if (look->failed != PTO_OK)
    pto_json_add_boolean (json, "has_failed", TRUE);
  if (look->captures)
    pto_json_add_boolean (json, "is_capture", TRUE);
  /* No more are complete than were submitted, though one of the two was read later. */
  pto_json_add_int (json, "submitted", MAX (look->submitted, look->completed));
  pto_json_add_int (json, "completed", look->completed);
  pto_json_add_int (json, "failed", look->failures);
  pto_json_add_int (json, "retired", retired);
  pto_json_add_int (json, "running", look->n_running);
  pto_json_add_int (json, "ready", look->n_ready);
  pto_json_add_int (json, "blocked", look->n_pending);
  if (look->n_unseen > 0)
    pto_json_add_int (json, "not_looked_at", look->n_unseen);
  pto_json_add_int (json, "edges", look->edges);
  pto_json_add_int (json, "stalls", look->stalls);
  pto_json_add_int (json, "peak_live_tasks", look->peak_live);
  add_submitter (json, &look->submitter);
  pto_json_begin_array (json, "waiting");
  for (guint i = 0; i < look->n_waiting; i++)
    add_waiting (json, &look->waiting[i], queue_name, data);
  json_builder_end_array (json);
  json_builder_end_object (json);
}

/* --- chips --- */

static void
name_chip_queue (gconstpointer data, guint32 queue, char *text, gsize size)
{
  g_strlcpy (text, pto_chip_queue_name (queue), size);
}

static void
add_core (JsonBuilder *json, const struct pto_core_look *core, gboolean is_timed)
{
  static const char *const names[]
      = { [PTO_CORE_IDLE] = N_ ("idle"),     [PTO_CORE_CHANGING] = N_ ("changing"),
          [PTO_CORE_RUNS] = N_ ("runs"),     [PTO_CORE_POPS] = N_ ("pops"),
          [PTO_CORE_PUSHES] = N_ ("pushes"), [PTO_CORE_MEETS] = N_ ("meets") };

  json_builder_begin_object (json);
  pto_json_add_string (json, "core", core->name);
  pto_json_add_int (json, "cluster", core->cluster);
  pto_json_add_int (json, "scheduler", core->scheduler);
  pto_json_add_string (json, "doing", names[core->doing]);
  if (is_timed)
    pto_json_add_int (json, "busy_ns", core->busy_ns);
  if (core->doing > PTO_CORE_CHANGING)
    {
      add_task (json, &core->task);
      if (core->for_ns > 0)
        pto_json_add_int (json, "for_ns", core->for_ns);
      if (core->n_blocks > 1)
        {
          pto_json_add_int (json, "block", core->block);
          pto_json_add_int (json, "blocks", core->n_blocks);
        }
      if (core->doing == PTO_CORE_POPS || core->doing == PTO_CORE_PUSHES)
        pto_json_add_int (json, "pipe", core->pipe);
      if (core->doing == PTO_CORE_MEETS)
        {
          pto_json_add_int (json, "met", core->n_met);
          pto_json_add_int (json, "members", core->n_members);
        }
      pto_json_begin_array (json, "tensors");
      for (guint i = 0; i < core->n_tensors; i++)
        {
          const struct pto_look_tensor *tensor = &core->tensors[i];
          char address[24];

          g_snprintf (address, sizeof address, "0x%" G_GINT64_MODIFIER "x", tensor->address);
          json_builder_begin_object (json);
          pto_json_add_int (json, "argument", tensor->argument);
          pto_json_add_string (json, "type", pto_dtype_name (tensor->dtype));
          pto_json_begin_array (json, "shape");
          for (guint d = 0; d < tensor->ndims; d++)
            json_builder_add_int_value (json, (gint64) tensor->shapes[d]);
          json_builder_end_array (json);
          pto_json_add_string (json, "address", address);
          json_builder_end_object (json);
        }
      json_builder_end_array (json);
      if (core->n_all_tensors > core->n_tensors)
        pto_json_add_int (json, "more_tensors", core->n_all_tensors - core->n_tensors);
    }
  json_builder_end_object (json);
}

void
pto_look_add_chip (JsonBuilder *json, const struct pto_chip_look *look, const char *title)
{
  add_totals (json, &look->run.totals);
  add_run (json, &look->run, title, name_chip_queue, NULL);
  pto_json_begin_array (json, "schedulers");
  for (guint s = 0; s < look->n_schedulers; s++)
    {
      const struct pto_scheduler_look *scheduler = &look->schedulers[s];

      json_builder_begin_object (json);
      pto_json_add_string (json, "scheduler", scheduler->name);
      pto_json_add_int (json, "cores", scheduler->n_cores);
      pto_json_add_int (json, "busy", scheduler->n_busy);
      pto_json_add_int (json, "completed", scheduler->completed);
      pto_json_add_string (json, "doing",
                           scheduler->is_core                        ? N_ ("runs a core")
                           : scheduler->n_busy == scheduler->n_cores ? N_ ("waits for its cores")
                           : scheduler->sleeps                       ? N_ ("sleeps")
                                                                     : N_ ("works"));
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
  pto_json_begin_array (json, "cores");
  for (guint c = 0; c < look->n_cores; c++)
    add_core (json, &look->cores[c], look->timed);
  json_builder_end_array (json);
  add_gauges (json, &look->run, name_chip_queue, NULL);
}

/* --- levels --- */

static void
add_child (JsonBuilder *json, const struct pto_child_look *child)
{
  json_builder_begin_object (json);
  pto_json_add_string (json, "path", child->path);
  pto_json_add_string (json, "kind", child->kind == PTO_CHILD_SUB ? "sub" : "worker");
  if (child->kind != PTO_CHILD_SUB)
    pto_json_add_int (json, "level", child->level);
  if (child->pid != 0)
    pto_json_add_int (json, "pid", (guint64) child->pid);
  pto_json_add_string (json, "life", child->life);
  if (child->stopped)
    pto_json_add_boolean (json, "is_stopped", TRUE);
  pto_json_add_int (json, "lives", child->lives);
  if (child->runs)
    {
      add_task (json, &child->task);
      pto_json_add_int (json, "member", child->member);
      if (child->n_lost > 0)
        pto_json_add_int (json, "times_lost", child->n_lost);
    }
  else if (child->request != NULL)
    pto_json_add_string (json, "request", child->request);
  if (child->request != NULL)
    {
      pto_json_add_int (json, "for_ns", child->for_ns);
      pto_json_add_int (json, "sign_ns", child->sign_ns);
    }
  if (child->far)
    {
      pto_json_add_string (json, "address", child->address);
      if (child->far_pid != 0)
        pto_json_add_int (json, "far_pid", child->far_pid);
      if (child->suspect)
        pto_json_add_boolean (json, "is_suspect", TRUE);
      pto_json_add_int (json, "silences", child->silences);
      pto_json_add_int (json, "bytes_sent", child->sent);
      pto_json_add_int (json, "bytes_received", child->received);
      pto_json_add_int (json, "bytes_saved", child->saved);
    }
  json_builder_end_object (json);
}

void
pto_look_add_level (JsonBuilder *json, const struct pto_level_look *look, const char *title,
                    PtoLookQueueName queue_name, gconstpointer data)
{
  add_totals (json, &look->run.totals);
  add_run (json, &look->run, title, queue_name, data);
  pto_json_add_int (json, "restarts", look->restarts);
  pto_json_add_int (json, "retried_tasks", look->retried);
  pto_json_begin_array (json, "children");
  for (guint i = 0; i < look->n_children; i++)
    add_child (json, &look->children[i]);
  json_builder_end_array (json);
  add_gauges (json, &look->run, queue_name, data);
}
