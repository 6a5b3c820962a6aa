/* trace-items.c: what can be asked of a task or an edge of a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A trace and what it holds of the workers below are parts: traces of their own, of which every one
 * knows where it lies in the outermost. The lists go through all of them, in the order that JSON
 * has them in; an item is made when it is asked for.
 */
#include "config.h"

#include "pto-trace-items.h"

#include "core/bits.h"
#include "core/task.h"

#include "trace-items.h"
#include "trace.h"

G_STATIC_ASSERT ((int) PTO_HAZARDS_RAW == (int) PTO_HAZARD_RAW);
G_STATIC_ASSERT ((int) PTO_HAZARDS_WAW == (int) PTO_HAZARD_WAW);
G_STATIC_ASSERT ((int) PTO_HAZARDS_WAR == (int) PTO_HAZARD_WAR);
G_STATIC_ASSERT ((int) PTO_HAZARDS_UNSURE == (int) PTO_HAZARD_UNSURE);
G_STATIC_ASSERT ((int) PTO_HAZARDS_EXPLICIT == (int) PTO_HAZARD_EXPLICIT);

/* One worker of the tree, with the cores or children of all its runs. */
typedef struct
{
  char *path;
  PtoTrace *trace; /* of its run with the most of them; not owned */
  guint first_core;
} Place;

/* One run of one worker. */
typedef struct
{
  PtoTraceView view;
  Place *place;
  guint first_task; /* of all, as first_edge */
  guint first_edge;
} Part;

struct _PtoTraceParts
{
  GPtrArray *parts;  /* Part */
  GPtrArray *places; /* Place */
  guint n_tasks;
  guint n_edges;
  guint n_cores;
  guint64 *core_busy; /* on the clock of the outermost */
  guint64 (*core_moved)[PTO_TRACE_N_MOVED];
};

static void
place_free (gpointer data)
{
  Place *place = data;

  g_free (place->path);
  g_free (place);
}

static Place *
find_place (PtoTraceParts *parts, GHashTable *by_path, const char *path, PtoTrace *trace)
{
  Place *place = g_hash_table_lookup (by_path, path);

  if (place == NULL)
    {
      place = g_new0 (Place, 1);
      place->path = g_strdup (path);
      place->trace = trace;
      g_hash_table_insert (by_path, place->path, place);
      g_ptr_array_add (parts->places, place);
    }
  else if (trace->topology.n_cores > place->trace->topology.n_cores)
    place->trace = trace;
  return place;
}

static void
add_part (PtoTraceParts *parts, GHashTable *by_path, const PtoTraceView *view, const char *path)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (view->trace);
  Part *part = g_new0 (Part, 1);

  part->view = *view;
  part->place = find_place (parts, by_path, path, view->trace);
  part->first_task = parts->n_tasks;
  part->first_edge = parts->n_edges;
  parts->n_tasks += analysis->n_tasks;
  parts->n_edges += analysis->n_deps;
  g_ptr_array_add (parts->parts, part);

  for (guint i = 0; i < view->trace->pieces.list->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (view->trace->pieces.list, i);
      g_autofree char *inner_path = pto_trace_dup_child_path (path, view->trace, piece->child);
      PtoTraceView inner;

      pto_trace_view_init (&inner, &part->view, i);
      add_part (parts, by_path, &inner, inner_path);
    }
}

static void
add_busy (PtoTraceParts *parts, const Part *part)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (part->view.trace);

  for (guint i = 0; i < analysis->n_entries; i++)
    {
      const PtoTraceEntry *entry = &analysis->tasks[i];

      if (entry->core != PTO_TRACE_NOWHERE)
        parts->core_busy[part->place->first_core + entry->core]
            += pto_trace_view_time (&part->view, entry->end - entry->waited)
               - pto_trace_view_time (&part->view, entry->start);
    }
}

static void
add_moved (PtoTraceParts *parts, const Part *part)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (part->view.trace);

  for (guint core = 0; analysis->transfers->len > 0 && core < analysis->n_cores; core++)
    {
      guint64 sum[PTO_TRACE_N_MOVED];

      pto_trace_sum_core (analysis, core, sum);
      for (guint i = 0; i < PTO_TRACE_N_MOVED; i++)
        parts->core_moved[part->place->first_core + core][i] += sum[i];
    }
}

static PtoTraceParts *
parts_new (PtoTrace *trace)
{
  PtoTraceParts *parts = g_new0 (PtoTraceParts, 1);
  g_autoptr (GHashTable) by_path = g_hash_table_new (g_str_hash, g_str_equal);
  const PtoTraceView view = { .trace = trace };

  parts->parts = g_ptr_array_new_with_free_func (g_free);
  parts->places = g_ptr_array_new_with_free_func (place_free);
  add_part (parts, by_path, &view, trace->path != NULL ? trace->path : "");
  for (guint i = 0; i < parts->places->len; i++)
    {
      Place *place = g_ptr_array_index (parts->places, i);

      place->first_core = parts->n_cores;
      parts->n_cores += place->trace->topology.n_cores;
    }
  parts->core_busy = g_new0 (guint64, MAX (parts->n_cores, 1));
  parts->core_moved = g_malloc0_n (MAX (parts->n_cores, 1), sizeof *parts->core_moved);
  for (guint i = 0; i < parts->parts->len; i++)
    {
      add_busy (parts, g_ptr_array_index (parts->parts, i));
      add_moved (parts, g_ptr_array_index (parts->parts, i));
    }
  return parts;
}

void
pto_trace_parts_free (PtoTraceParts *parts)
{
  if (parts == NULL)
    return;
  g_ptr_array_unref (parts->parts);
  g_ptr_array_unref (parts->places);
  g_free (parts->core_busy);
  g_free (parts->core_moved);
  g_free (parts);
}

static const PtoTraceParts *
get_parts (PtoTrace *trace)
{
  if (g_once_init_enter (&trace->parts))
    g_once_init_leave (&trace->parts, parts_new (trace));
  return trace->parts;
}

/* The last that begins at or before a position: one without tasks, or edges, is never that. */
static const Part *
find_part (const PtoTraceParts *parts, guint position, gboolean of_edge)
{
  Part **all = (Part **) parts->parts->pdata;
  guint n = pto_bisect (i, parts->parts->len,
                        (of_edge ? all[i]->first_edge : all[i]->first_task) <= position);

  return all[n > 0 ? n - 1 : 0];
}

/* --- tasks --- */

/**
 * PtoTraceTask:
 *
 * A task of a [class@Pto.Trace]: what it was, where it ran, and when what happened to it.
 *
 * Times are nanoseconds since the first record of the trace, on the trace's one clock: also those
 * of tasks that ran in workers below, in the time that the worker above has seen. What was not
 * recorded, because it did not happen or because a record was dropped, is -1.
 *
 * Thread safety: any thread. It keeps the trace. A fork keeps it usable in the child.
 *
 * Since: 0.1
 */
struct _PtoTraceTask
{
  GObject parent_instance;

  PtoTrace *trace; /* the outermost */
  const Part *part;
  const PtoTraceEntry *entry;
};

G_DEFINE_FINAL_TYPE (PtoTraceTask, pto_trace_task, G_TYPE_OBJECT)

static void
pto_trace_task_finalize (GObject *object)
{
  g_clear_object (&PTO_TRACE_TASK (object)->trace);
  G_OBJECT_CLASS (pto_trace_task_parent_class)->finalize (object);
}

static void
pto_trace_task_class_init (PtoTraceTaskClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_trace_task_finalize;
}

/* Language bindings can make an object of any type: that one is a task of which nothing is known.
 */
static void
pto_trace_task_init (PtoTraceTask *self)
{
  static const Place nowhere = { .path = (char *) "" };
  static const Part nothing = { .place = (Place *) &nowhere };
  static const PtoTraceEntry never = {
    .submit = PTO_TRACE_NEVER,
    .ready = PTO_TRACE_NEVER,
    .dispatch = PTO_TRACE_NEVER,
    .start = PTO_TRACE_NEVER,
    .end = PTO_TRACE_NEVER,
    .complete = PTO_TRACE_NEVER,
    .retire = PTO_TRACE_NEVER,
    .kernel = G_MAXUINT32,
    .core = PTO_TRACE_NOWHERE,
  };

  self->part = &nothing;
  self->entry = &never;
}

/**
 * pto_trace_task_get_id:
 * @self: a task
 *
 * Gives its 64-bit id: ring << 32 | position in that ring.
 *
 * Of one run of one worker it is the only one with that.
 *
 * Thread safety: any thread.
 *
 * Returns: an id
 *
 * Since: 0.1
 */
guint64
pto_trace_task_get_id (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), 0);

  return self->entry->id;
}

const PtoTraceView *
pto_trace_task_peek (PtoTraceTask *self, guint64 *id)
{
  *id = self->entry->id;
  return &self->part->view;
}

/**
 * pto_trace_task_get_name:
 * @self: a task
 *
 * Gives the name of what it ran: a kernel, or what is registered with a worker of level 3 or up.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a name; "alloc" of a task that gives memory and runs nothing, "no
 * kernel" of one that only orders
 *
 * Since: 0.1
 */
const char *
pto_trace_task_get_name (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), NULL);

  return pto_trace_get_kernel_name (self->part->view.trace, self->entry->kernel);
}

/**
 * pto_trace_task_get_path:
 * @self: a task
 *
 * Gives the worker that it was submitted to, by its place in the tree: "L3/0/L2/1".
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a path; empty for a chip that is below nobody
 *
 * Since: 0.1
 */
const char *
pto_trace_task_get_path (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), NULL);

  return self->part->place->path;
}

/**
 * pto_trace_task_get_level:
 * @self: a task
 *
 * Gives the level of the worker that it was submitted to.
 *
 * Thread safety: any thread.
 *
 * Returns: 2 for a chip
 *
 * Since: 0.1
 */
guint
pto_trace_task_get_level (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), 0);

  return self->part->view.trace != NULL ? MAX (self->part->view.trace->topology.level, 2) : 2;
}

/**
 * pto_trace_task_get_core:
 * @self: a task
 *
 * Gives where it ran: a position in the list of cores.
 *
 * Of a group that is where the member ran that ended last.
 *
 * Thread safety: any thread.
 *
 * Returns: a position; -1 when it did not run
 *
 * Since: 0.1
 */
int
pto_trace_task_get_core (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), -1);

  if (self->entry->core == PTO_TRACE_NOWHERE)
    return -1;
  return (int) (self->part->place->first_core + self->entry->core);
}

/**
 * pto_trace_task_get_priority:
 * @self: a task
 *
 * Gives the priority that it was submitted with ([method@Pto.Orchestrator.set_priority]).
 *
 * Thread safety: any thread.
 *
 * Returns: a priority, 0 to %PTO_MAX_PRIORITY; 0 also of a file that was written before priorities
 *   were recorded (version 1)
 *
 * Since: 0.1
 */
guint
pto_trace_task_get_priority (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), 0);

  return self->entry->terms.priority;
}

static gint64
get_time (PtoTraceTask *self, guint64 time)
{
  return time == PTO_TRACE_NEVER ? -1 : (gint64) pto_trace_view_time (&self->part->view, time);
}

/**
 * pto_trace_task_get_submit_ns:
 * @self: a task
 *
 * Gives when it was submitted.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock; -1 when that was not recorded
 *
 * Since: 0.1
 */
gint64
pto_trace_task_get_submit_ns (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), -1);

  return get_time (self, self->entry->submit);
}

/**
 * pto_trace_task_get_ready_ns:
 * @self: a task
 *
 * Gives when the last of the tasks that it waited for was complete.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock; -1 when that was not recorded
 *
 * Since: 0.1
 */
gint64
pto_trace_task_get_ready_ns (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), -1);

  return get_time (self, self->entry->ready);
}

/**
 * pto_trace_task_get_dispatch_ns:
 * @self: a task
 *
 * Gives when a scheduler gave it to its core.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock; -1 when that was not recorded
 *
 * Since: 0.1
 */
gint64
pto_trace_task_get_dispatch_ns (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), -1);

  return get_time (self, self->entry->dispatch);
}

/**
 * pto_trace_task_get_start_ns:
 * @self: a task
 *
 * Gives when its core began with it.
 *
 * Of a group that is of the member that ended last.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock; -1 when that was not recorded
 *
 * Since: 0.1
 */
gint64
pto_trace_task_get_start_ns (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), -1);

  return get_time (self, self->entry->start);
}

/**
 * pto_trace_task_get_end_ns:
 * @self: a task
 *
 * Gives when its core was done with it.
 *
 * Of a group that is of the member that ended last.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock; -1 when that was not recorded
 *
 * Since: 0.1
 */
gint64
pto_trace_task_get_end_ns (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), -1);

  return get_time (self, self->entry->end);
}

/**
 * pto_trace_task_get_complete_ns:
 * @self: a task
 *
 * Gives when a scheduler had seen that.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock; -1 when that was not recorded
 *
 * Since: 0.1
 */
gint64
pto_trace_task_get_complete_ns (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), -1);

  return get_time (self, self->entry->complete);
}

/**
 * pto_trace_task_get_retire_ns:
 * @self: a task
 *
 * Gives when its slot and its memory were free again.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock; -1 when that was not recorded
 *
 * Since: 0.1
 */
gint64
pto_trace_task_get_retire_ns (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), -1);

  return get_time (self, self->entry->retire);
}

/**
 * pto_trace_task_has_failed:
 * @self: a task
 *
 * Asks whether it failed, or did not run because a task failed that it needed.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
pto_trace_task_has_failed (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), FALSE);

  return self->entry->failed;
}

/**
 * pto_trace_task_is_critical:
 * @self: a task
 *
 * Asks whether it is on the critical path of its run.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
pto_trace_task_is_critical (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), FALSE);

  return self->entry->critical;
}

static guint64
sum_bytes (PtoTraceTask *self, guint what)
{
  guint64 sum[PTO_TRACE_N_MOVED];

  /* Made by g_object_new(), it is of no trace. */
  if (self->part->view.trace == NULL)
    return 0;
  pto_trace_sum_entry (pto_trace_get_analysis (self->part->view.trace), self->entry, sum);
  return sum[what];
}

/**
 * pto_trace_task_get_bytes_sent:
 * @self: a task
 *
 * Gives how much of its tensors was sent to the worker that it ran on.
 *
 * Nothing is where that shares memory with the run. Of a group it is what travelled for the member
 * that [method@Pto.TraceTask.get_core] names.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
guint64
pto_trace_task_get_bytes_sent (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), 0);

  return sum_bytes (self, PTO_TRACE_SENT);
}

/**
 * pto_trace_task_get_bytes_received:
 * @self: a task
 *
 * Gives how much of its tensors came back from the worker that it ran on.
 *
 * What stays there, and is fetched when somebody needs it, is no task's: see
 * [method@Pto.TraceCore.get_bytes_received]. Of a group it is as for
 * [method@Pto.TraceTask.get_bytes_sent].
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
guint64
pto_trace_task_get_bytes_received (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), 0);

  return sum_bytes (self, PTO_TRACE_RECEIVED);
}

/**
 * pto_trace_task_get_bytes_saved:
 * @self: a task
 *
 * Gives how much of what it reads did not have to be sent, since it was there already.
 *
 * Of a group it is as for [method@Pto.TraceTask.get_bytes_sent].
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
guint64
pto_trace_task_get_bytes_saved (PtoTraceTask *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), 0);

  return sum_bytes (self, PTO_TRACE_SAVED);
}

/**
 * pto_trace_task_to_string:
 * @self: a task
 *
 * Says what it is, for people.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): such as `task 1:3 (add), which ran for 70 ns`
 *
 * Since: 0.1
 */
char *
pto_trace_task_to_string (PtoTraceTask *self)
{
  g_autofree char *label = NULL;
  const char *failed;

  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), NULL);

  label = pto_trace_task_dup_label (self);
  failed = self->entry->failed ? " and failed" : "";
  if (self->entry->core == PTO_TRACE_NOWHERE)
    return g_strdup_printf ("task %s (%s), which ran nothing%s", label,
                            pto_trace_task_get_name (self), failed);
  return g_strdup_printf ("task %s (%s), which ran for %" G_GINT64_FORMAT " ns%s", label,
                          pto_trace_task_get_name (self),
                          pto_trace_task_get_end_ns (self) - pto_trace_task_get_start_ns (self),
                          failed);
}

/* --- edges --- */

/**
 * PtoTraceEdge:
 *
 * That one task of a [class@Pto.Trace] waited for another one.
 *
 * Thread safety: any thread. A fork keeps it usable in the child.
 *
 * Since: 0.1
 */
struct _PtoTraceEdge
{
  GObject parent_instance;

  int producer;
  guint64 producer_id;
  guint consumer;
  PtoHazards hazards;
};

G_DEFINE_FINAL_TYPE (PtoTraceEdge, pto_trace_edge, G_TYPE_OBJECT)

static void
pto_trace_edge_class_init (PtoTraceEdgeClass *klass)
{
}

static void
pto_trace_edge_init (PtoTraceEdge *self)
{
  self->producer = -1;
}

/**
 * pto_trace_edge_get_producer:
 * @self: an edge
 *
 * Gives the task that was waited for: a position in the list of tasks.
 *
 * Thread safety: any thread.
 *
 * Returns: a position; -1 when no record of that task is there
 *
 * Since: 0.1
 */
int
pto_trace_edge_get_producer (PtoTraceEdge *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_EDGE (self), -1);

  return self->producer;
}

/**
 * pto_trace_edge_get_producer_id:
 * @self: an edge
 *
 * Gives the id of the task that was waited for.
 *
 * Thread safety: any thread.
 *
 * Returns: an id
 *
 * Since: 0.1
 */
guint64
pto_trace_edge_get_producer_id (PtoTraceEdge *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_EDGE (self), 0);

  return self->producer_id;
}

/**
 * pto_trace_edge_get_consumer:
 * @self: an edge
 *
 * Gives the task that waited: a position in the list of tasks.
 *
 * Thread safety: any thread.
 *
 * Returns: a position
 *
 * Since: 0.1
 */
guint
pto_trace_edge_get_consumer (PtoTraceEdge *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_EDGE (self), 0);

  return self->consumer;
}

/**
 * pto_trace_edge_get_hazards:
 * @self: an edge
 *
 * Gives why it waited.
 *
 * Thread safety: any thread.
 *
 * Returns: one reason or several
 *
 * Since: 0.1
 */
PtoHazards
pto_trace_edge_get_hazards (PtoTraceEdge *self)
{
  g_return_val_if_fail (PTO_IS_TRACE_EDGE (self), 0);

  return self->hazards;
}

/**
 * pto_trace_edge_to_string:
 * @self: an edge
 *
 * Says what it is, for people.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): such as `task 1 waits for 0x0 (RAW, EXPLICIT)`
 *
 * Since: 0.1
 */
char *
pto_trace_edge_to_string (PtoTraceEdge *self)
{
  static const char *const names[] = { "RAW", "WAW", "WAR", "UNSURE", "EXPLICIT" };
  GString *text;

  g_return_val_if_fail (PTO_IS_TRACE_EDGE (self), NULL);

  text = g_string_new (NULL);
  g_string_printf (text, "task %u waits for 0x%" G_GINT64_MODIFIER "x (", self->consumer,
                   self->producer_id);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if ((self->hazards & (1u << i)) != 0)
      g_string_append_printf (text, "%s%s", text->str[text->len - 1] == '(' ? "" : ", ", names[i]);
  g_string_append_c (text, ')');
  return g_string_free (text, FALSE);
}

/* --- lists --- */

typedef enum
{
  LIST_TASKS,
  LIST_EDGES,
  LIST_CORES,
  LIST_MEMBERS
} ListOf;

/* A list that never changes. */
typedef struct
{
  GObject parent_instance;

  PtoTrace *trace;
  const PtoTraceParts *parts;
  ListOf of;
  guint n_items;

  /* Of members: of which task. */
  const Part *part;
  const PtoTraceEntry *entry;
} PtoTraceList;

typedef struct
{
  GObjectClass parent_class;
} PtoTraceListClass;

static GType pto_trace_list_get_type (void);
static void pto_trace_list_model_init (GListModelInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (PtoTraceList, pto_trace_list, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, pto_trace_list_model_init))

static void
pto_trace_list_finalize (GObject *object)
{
  PtoTraceList *self = (PtoTraceList *) object;

  g_object_unref (self->trace);
  G_OBJECT_CLASS (pto_trace_list_parent_class)->finalize (object);
}

static void
pto_trace_list_class_init (PtoTraceListClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_trace_list_finalize;
}

static void
pto_trace_list_init (PtoTraceList *self)
{
}

static GType
list_get_item_type (GListModel *model)
{
  switch (((PtoTraceList *) model)->of)
    {
    case LIST_EDGES:
      return PTO_TYPE_TRACE_EDGE;
    case LIST_CORES:
      return PTO_TYPE_TRACE_CORE;
    case LIST_TASKS:
    case LIST_MEMBERS:
    default:
      return PTO_TYPE_TRACE_TASK;
    }
}

static guint
list_get_n_items (GListModel *model)
{
  return ((PtoTraceList *) model)->n_items;
}

static gpointer
make_task (PtoTraceList *self, const Part *part, const PtoTraceEntry *entry)
{
  PtoTraceTask *task = g_object_new (PTO_TYPE_TRACE_TASK, NULL);

  task->trace = g_object_ref (self->trace);
  task->part = part;
  task->entry = entry;
  return task;
}

static gpointer
make_edge (PtoTraceList *self, guint position)
{
  const Part *part = find_part (self->parts, position, TRUE);
  const PtoTraceDep *dep
      = &pto_trace_get_analysis (part->view.trace)->deps[position - part->first_edge];
  PtoTraceEdge *edge = g_object_new (PTO_TYPE_TRACE_EDGE, NULL);

  if (dep->producer_index != PTO_TRACE_NOWHERE)
    edge->producer = (int) (part->first_task + dep->producer_index);
  edge->producer_id = dep->producer;
  edge->consumer = part->first_task + dep->consumer;
  edge->hazards = (PtoHazards) dep->kinds;
  return edge;
}

static gpointer
make_core (PtoTraceList *self, guint position)
{
  const Place *place;
  guint at = self->parts->places->len;

  do
    place = g_ptr_array_index (self->parts->places, --at);
  while (place->first_core > position);
  return pto_trace_core_make (self->trace, place->path, place->trace, position - place->first_core,
                              self->parts->core_busy[position], self->parts->core_moved[position]);
}

static gpointer
list_get_item (GListModel *model, guint position)
{
  PtoTraceList *self = (PtoTraceList *) model;
  const PtoTraceAnalysis *analysis;
  const Part *part;

  if (position >= self->n_items)
    return NULL;
  switch (self->of)
    {
    case LIST_EDGES:
      return make_edge (self, position);
    case LIST_CORES:
      return make_core (self, position);
    case LIST_MEMBERS:
      analysis = pto_trace_get_analysis (self->part->view.trace);
      return make_task (self, self->part,
                        position == 0 ? self->entry
                                      : &analysis->tasks[self->entry->first_member + position - 1]);
    case LIST_TASKS:
    default:
      part = find_part (self->parts, position, FALSE);
      analysis = pto_trace_get_analysis (part->view.trace);
      return make_task (self, part, &analysis->tasks[position - part->first_task]);
    }
}

static void
pto_trace_list_model_init (GListModelInterface *iface)
{
  iface->get_item_type = list_get_item_type;
  iface->get_n_items = list_get_n_items;
  iface->get_item = list_get_item;
}

static PtoTraceList *
list_new (PtoTrace *trace, ListOf of, guint n_items)
{
  PtoTraceList *list = g_object_new (pto_trace_list_get_type (), NULL);

  list->trace = g_object_ref (trace);
  list->parts = get_parts (trace);
  list->of = of;
  list->n_items = n_items;
  return list;
}

/**
 * pto_trace_list_tasks:
 * @self: a trace
 *
 * Lists the tasks of the run in the order of their submit, then those that ran in workers below,
 * run by run.
 *
 * The list never changes; what is in it is made when it is asked for, and keeps the trace.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a list of [class@Pto.TraceTask]
 *
 * Since: 0.1
 */
GListModel *
pto_trace_list_tasks (PtoTrace *self)
{
  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  return G_LIST_MODEL (list_new (self, LIST_TASKS, get_parts (self)->n_tasks));
}

/**
 * pto_trace_list_edges:
 * @self: a trace
 *
 * Lists which tasks waited for which, by the task that waited.
 *
 * The list never changes; what is in it is made when it is asked for.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a list of [class@Pto.TraceEdge]
 *
 * Since: 0.1
 */
GListModel *
pto_trace_list_edges (PtoTrace *self)
{
  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  return G_LIST_MODEL (list_new (self, LIST_EDGES, get_parts (self)->n_edges));
}

/**
 * pto_trace_list_cores:
 * @self: a trace
 *
 * Lists the cores of the chip or, of a worker of level 3 or up, its children, then the cores and
 * children of the workers below that have recorded a run.
 *
 * The list never changes; what is in it is made when it is asked for, and keeps the trace.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a list of [class@Pto.TraceCore]
 *
 * Since: 0.1
 */
GListModel *
pto_trace_list_cores (PtoTrace *self)
{
  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  return G_LIST_MODEL (list_new (self, LIST_CORES, get_parts (self)->n_cores));
}

/**
 * pto_trace_task_list_members:
 * @self: a task
 *
 * Lists where it ran: of a group the member that ended last, then the others; of another task that
 * ran, only itself.
 *
 * Members are tasks of the same id and the same times, but for core, start and end.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a list of [class@Pto.TraceTask]
 *
 * Since: 0.1
 */
GListModel *
pto_trace_task_list_members (PtoTraceTask *self)
{
  PtoTraceList *list;

  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), NULL);

  if (self->trace == NULL)
    return G_LIST_MODEL (g_list_store_new (PTO_TYPE_TRACE_TASK));
  list = list_new (self->trace, LIST_MEMBERS,
                   self->entry->core == PTO_TRACE_NOWHERE ? 0 : 1 + self->entry->n_members);
  list->part = self->part;
  list->entry = self->entry;
  return G_LIST_MODEL (list);
}
