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
  const char *path;
  PtoTrace *trace; /* of its run with the most of them; not owned */
  guint first_core;
} Place;

struct _PtoTracePlaces
{
  GArray *places; /* Place, by the number of a worker */
  guint n_cores;
  guint64 *core_busy; /* on the clock of the outermost */
  guint64 (*core_moved)[PTO_TRACE_N_MOVED];
};

static guint
get_first_core (const PtoTracePlaces *places, const PtoTracePart *part)
{
  return g_array_index (places->places, Place, part->worker).first_core;
}

static void
add_busy (PtoTracePlaces *places, const PtoTracePart *part)
{
  guint first = get_first_core (places, part);

  for (guint i = 0; i < part->analysis->n_entries; i++)
    {
      const PtoTraceEntry *entry = &part->analysis->tasks[i];

      if (entry->core != PTO_TRACE_NOWHERE)
        places->core_busy[first + entry->core]
            += pto_trace_part_time (part, entry->end - entry->waited)
               - pto_trace_part_time (part, entry->start);
    }
  for (guint core = 0; part->analysis->transfers->len > 0 && core < part->analysis->n_cores; core++)
    {
      guint64 sum[PTO_TRACE_N_MOVED];

      pto_trace_sum_core (part->analysis, core, sum);
      for (guint i = 0; i < PTO_TRACE_N_MOVED; i++)
        places->core_moved[first + core][i] += sum[i];
    }
}

static PtoTracePlaces *
places_new (const GPtrArray *parts)
{
  PtoTracePlaces *places = g_new0 (PtoTracePlaces, 1);

  places->places = g_array_new (FALSE, FALSE, sizeof (Place));
  for (guint i = 0; i < parts->len; i++)
    {
      const PtoTracePart *part = g_ptr_array_index (parts, i);
      Place fresh = { .path = part->path, .trace = part->trace };
      Place *place;

      if (part->worker == places->places->len)
        g_array_append_val (places->places, fresh);
      place = &g_array_index (places->places, Place, part->worker);
      if (part->trace->topology.n_cores > place->trace->topology.n_cores)
        place->trace = part->trace;
    }
  for (guint i = 0; i < places->places->len; i++)
    {
      Place *place = &g_array_index (places->places, Place, i);

      place->first_core = places->n_cores;
      places->n_cores += place->trace->topology.n_cores;
    }
  places->core_busy = g_new0 (guint64, MAX (places->n_cores, 1));
  places->core_moved = g_malloc0_n (MAX (places->n_cores, 1), sizeof *places->core_moved);
  for (guint i = 0; i < parts->len; i++)
    add_busy (places, g_ptr_array_index (parts, i));
  return places;
}

void
pto_trace_places_free (PtoTracePlaces *places)
{
  if (places == NULL)
    return;
  g_array_unref (places->places);
  g_free (places->core_busy);
  g_free (places->core_moved);
  g_free (places);
}

static const PtoTracePlaces *
get_places (PtoTrace *trace)
{
  if (g_once_init_enter (&trace->places))
    g_once_init_leave (&trace->places, places_new (pto_trace_get_parts (trace)));
  return trace->places;
}

/* The last that begins at or before a position: one without tasks, or edges, is never that. */
static const PtoTracePart *
find_part (PtoTrace *trace, guint position, gboolean of_edge)
{
  const GPtrArray *parts = pto_trace_get_parts (trace);
  PtoTracePart **all = (PtoTracePart **) parts->pdata;
  guint n
      = pto_bisect (i, parts->len, (of_edge ? all[i]->first_edge : all[i]->first_task) <= position);

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
  const PtoTracePart *part;
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
  static const PtoTracePart nothing = { .path = (char *) "" };
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
PTO_TRACE_GETTER (guint64, pto_trace_task_get_id, PtoTraceTask, PTO_IS_TRACE_TASK, 0,
                  self->entry->id)

const PtoTracePart *
pto_trace_task_peek (PtoTraceTask *self, guint64 *id)
{
  *id = self->entry->id;
  return self->part;
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
PTO_TRACE_GETTER (const char *, pto_trace_task_get_name, PtoTraceTask, PTO_IS_TRACE_TASK, NULL,
                  pto_trace_get_kernel_name (self->part->trace, self->entry->kernel))

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
PTO_TRACE_GETTER (const char *, pto_trace_task_get_path, PtoTraceTask, PTO_IS_TRACE_TASK, NULL,
                  self->part->path)

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
PTO_TRACE_GETTER (guint, pto_trace_task_get_level, PtoTraceTask, PTO_IS_TRACE_TASK, 0,
                  self->part->trace != NULL ? MAX (self->part->trace->topology.level, 2) : 2)

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
  return (int) (get_first_core (get_places (self->trace), self->part) + self->entry->core);
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
PTO_TRACE_GETTER (guint, pto_trace_task_get_priority, PtoTraceTask, PTO_IS_TRACE_TASK, 0,
                  self->entry->terms.priority)

static gint64
get_time (PtoTraceTask *self, guint64 time)
{
  return time == PTO_TRACE_NEVER ? -1 : (gint64) pto_trace_part_time (self->part, time);
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
PTO_TRACE_GETTER (gint64, pto_trace_task_get_submit_ns, PtoTraceTask, PTO_IS_TRACE_TASK, -1,
                  get_time (self, self->entry->submit))

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
PTO_TRACE_GETTER (gint64, pto_trace_task_get_ready_ns, PtoTraceTask, PTO_IS_TRACE_TASK, -1,
                  get_time (self, self->entry->ready))

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
PTO_TRACE_GETTER (gint64, pto_trace_task_get_dispatch_ns, PtoTraceTask, PTO_IS_TRACE_TASK, -1,
                  get_time (self, self->entry->dispatch))

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
PTO_TRACE_GETTER (gint64, pto_trace_task_get_start_ns, PtoTraceTask, PTO_IS_TRACE_TASK, -1,
                  get_time (self, self->entry->start))

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
PTO_TRACE_GETTER (gint64, pto_trace_task_get_end_ns, PtoTraceTask, PTO_IS_TRACE_TASK, -1,
                  get_time (self, self->entry->end))

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
PTO_TRACE_GETTER (gint64, pto_trace_task_get_complete_ns, PtoTraceTask, PTO_IS_TRACE_TASK, -1,
                  get_time (self, self->entry->complete))

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
PTO_TRACE_GETTER (gint64, pto_trace_task_get_retire_ns, PtoTraceTask, PTO_IS_TRACE_TASK, -1,
                  get_time (self, self->entry->retire))

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
PTO_TRACE_GETTER (gboolean, pto_trace_task_has_failed, PtoTraceTask, PTO_IS_TRACE_TASK, FALSE,
                  self->entry->failed)

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
PTO_TRACE_GETTER (gboolean, pto_trace_task_is_critical, PtoTraceTask, PTO_IS_TRACE_TASK, FALSE,
                  self->entry->critical)

static guint64
sum_bytes (PtoTraceTask *self, guint what)
{
  guint64 sum[PTO_TRACE_N_MOVED];

  /* Made by g_object_new(), it is of no trace. */
  if (self->part->trace == NULL)
    return 0;
  pto_trace_sum_entry (self->part->analysis, self->entry, sum);
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
PTO_TRACE_GETTER (guint64, pto_trace_task_get_bytes_sent, PtoTraceTask, PTO_IS_TRACE_TASK, 0,
                  sum_bytes (self, PTO_TRACE_SENT))

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
PTO_TRACE_GETTER (guint64, pto_trace_task_get_bytes_received, PtoTraceTask, PTO_IS_TRACE_TASK, 0,
                  sum_bytes (self, PTO_TRACE_RECEIVED))

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
PTO_TRACE_GETTER (guint64, pto_trace_task_get_bytes_saved, PtoTraceTask, PTO_IS_TRACE_TASK, 0,
                  sum_bytes (self, PTO_TRACE_SAVED))

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
PTO_TRACE_GETTER (int, pto_trace_edge_get_producer, PtoTraceEdge, PTO_IS_TRACE_EDGE, -1,
                  self->producer)

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
PTO_TRACE_GETTER (guint64, pto_trace_edge_get_producer_id, PtoTraceEdge, PTO_IS_TRACE_EDGE, 0,
                  self->producer_id)

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
PTO_TRACE_GETTER (guint, pto_trace_edge_get_consumer, PtoTraceEdge, PTO_IS_TRACE_EDGE, 0,
                  self->consumer)

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
PTO_TRACE_GETTER (PtoHazards, pto_trace_edge_get_hazards, PtoTraceEdge, PTO_IS_TRACE_EDGE, 0,
                  self->hazards)

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

typedef struct _PtoTraceList PtoTraceList;

/* What a list has, and how one of them is made. */
typedef struct
{
  GType (*get_type) (void);
  gpointer (*make) (PtoTraceList *list, guint position);
} ListOf;

/* A list that never changes. */
struct _PtoTraceList
{
  GObject parent_instance;

  PtoTrace *trace;
  const ListOf *of;
  guint n_items;

  /* Of members: of which task. */
  const PtoTracePart *part;
  const PtoTraceEntry *entry;
};

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
  return ((PtoTraceList *) model)->of->get_type ();
}

static guint
list_get_n_items (GListModel *model)
{
  return ((PtoTraceList *) model)->n_items;
}

static gpointer
make_task (PtoTraceList *self, const PtoTracePart *part, const PtoTraceEntry *entry)
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
  const PtoTracePart *part = find_part (self->trace, position, TRUE);
  const PtoTraceDep *dep = &part->analysis->deps[position - part->first_edge];
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
  const PtoTracePlaces *places = get_places (self->trace);
  const Place *place;
  guint at = places->places->len;

  do
    place = &g_array_index (places->places, Place, --at);
  while (place->first_core > position);
  return pto_trace_core_make (self->trace, place->path, place->trace, position - place->first_core,
                              places->core_busy[position], places->core_moved[position]);
}

static gpointer
make_member (PtoTraceList *self, guint position)
{
  guint first = self->entry->first_member;

  return make_task (self, self->part,
                    position == 0 ? self->entry
                                  : &self->part->analysis->tasks[first + position - 1]);
}

static gpointer
make_task_of_all (PtoTraceList *self, guint position)
{
  const PtoTracePart *part = find_part (self->trace, position, FALSE);

  return make_task (self, part, &part->analysis->tasks[position - part->first_task]);
}

static const ListOf tasks = { pto_trace_task_get_type, make_task_of_all };
static const ListOf members = { pto_trace_task_get_type, make_member };
static const ListOf edges = { pto_trace_edge_get_type, make_edge };
static const ListOf cores = { pto_trace_core_get_type, make_core };

static gpointer
list_get_item (GListModel *model, guint position)
{
  PtoTraceList *self = (PtoTraceList *) model;

  return position < self->n_items ? self->of->make (self, position) : NULL;
}

static void
pto_trace_list_model_init (GListModelInterface *iface)
{
  iface->get_item_type = list_get_item_type;
  iface->get_n_items = list_get_n_items;
  iface->get_item = list_get_item;
}

static const PtoTracePart *
get_last_part (PtoTrace *trace)
{
  return pto_trace_get_part (trace, pto_trace_get_parts (trace)->len - 1);
}

static PtoTraceList *
list_new (PtoTrace *trace, const ListOf *of, guint n_items)
{
  PtoTraceList *list = g_object_new (pto_trace_list_get_type (), NULL);

  list->trace = g_object_ref (trace);
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
  const PtoTracePart *last;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  last = get_last_part (self);
  return G_LIST_MODEL (list_new (self, &tasks, last->first_task + last->analysis->n_tasks));
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
  const PtoTracePart *last;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  last = get_last_part (self);
  return G_LIST_MODEL (list_new (self, &edges, last->first_edge + last->analysis->n_deps));
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
PTO_TRACE_GETTER (GListModel *, pto_trace_list_cores, PtoTrace, PTO_IS_TRACE, NULL,
                  G_LIST_MODEL (list_new (self, &cores, get_places (self)->n_cores)))

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
  list = list_new (self->trace, &members,
                   self->entry->core == PTO_TRACE_NOWHERE ? 0 : 1 + self->entry->n_members);
  list->part = self->part;
  list->entry = self->entry;
  return G_LIST_MODEL (list);
}
