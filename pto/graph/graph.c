/* graph.c: how does a program hold a task graph that is built first and launched many times?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "graph.h"

#include "base/error.h"
#include "base/getter.h"
#include "base/source-place.h"
#include "common/text.h"
#include "values/tensor.h"

#include <string.h>
#include <sys/mman.h>

G_STATIC_ASSERT ((int) PTO_SCALAR_KIND_UNSIGNED == (int) PTO_PLAN_UNSIGNED);
G_STATIC_ASSERT ((int) PTO_SCALAR_KIND_SIGNED == (int) PTO_PLAN_SIGNED);
G_STATIC_ASSERT ((int) PTO_SCALAR_KIND_FLOAT == (int) PTO_PLAN_FLOAT);
G_STATIC_ASSERT ((int) PTO_SCALAR_KIND_DOUBLE == (int) PTO_PLAN_DOUBLE);

/* What stands for memory while a graph is built by hand: addresses, nothing else. */
#define REGION_BYTES (G_GUINT64_CONSTANT (1) << 40)
#define REGION_UNIT 4096u

/**
 * PtoGraph:
 *
 * A task graph that is built first and launched many times, each time with other arguments of the
 * same shapes and types.
 *
 * It is captured from an orchestration ([method@Pto.Worker.capture],
 * [method@Pto.Worker.capture_callable]), or built by hand: arguments and tensors, tasks, and which
 * comes after which. [method@Pto.Worker.run_graph] launches it on any worker that has what its
 * tasks run on: cores for kernels; for other callables workers like those of the one that captured
 * it, and the callables themselves. Tasks are submitted without looking for dependencies, so that
 * each costs a fraction of what a submit does. A launched task's memory is held until the last task
 * that uses it is done; no scope holds it. A graph keeps the buffers in memory of remote workers
 * that it was captured with and that are no arguments.
 *
 * Source: seed 000 sections 1.1 and 1.2. Thread safety: it is built on one thread; once it is
 * complete, any thread. A fork has a copy of its own.
 *
 * Since: 0.1
 */

G_DEFINE_FINAL_TYPE (PtoGraph, pto_graph, G_TYPE_OBJECT)

static void
pto_graph_finalize (GObject *object)
{
  PtoGraph *self = PTO_GRAPH (object);

  g_atomic_int_set (&self->tag->gone, TRUE);
  g_atomic_rc_box_release (self->tag);
  pto_plan_free (self->plan);
  g_ptr_array_unref (self->kernels);
  g_ptr_array_unref (self->registrations);
  g_ptr_array_unref (self->memory);
  g_array_unref (self->made);
  g_array_unref (self->turns);
  if (self->region != NULL)
    munmap (self->region, REGION_BYTES);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (pto_graph_parent_class)->finalize (object);
}

static void
pto_graph_class_init (PtoGraphClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_graph_finalize;
}

static void
pto_graph_init (PtoGraph *self)
{
  static gsize graphs; /* atomic */

  self->tag = g_atomic_rc_box_new0 (PtoGraphTag);
  self->tag->id = (guint64) g_atomic_pointer_add (&graphs, 1) + 1;
  self->plan = pto_plan_new ();
  if (self->plan == NULL)
    g_error ("no memory for a graph");
  self->kernels = g_ptr_array_new_with_free_func (g_object_unref);
  self->registrations = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_registration_unref);
  self->memory = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_tensor_unref);
  self->made = g_array_new (FALSE, FALSE, sizeof (PtoGraphMade));
  self->turns = g_array_new (FALSE, FALSE, sizeof (PtoGraphTurn));
  g_mutex_init (&self->lock);
}

/* --- for workers --- */

PtoCallable *
pto_graph_get_kernel (PtoGraph *graph, guint index)
{
  return index < graph->kernels->len ? g_ptr_array_index (graph->kernels, index) : NULL;
}

gboolean
pto_graph_name_kernels (PtoGraph *graph, PtoCallable *(*find) (guint number, gpointer data),
                        gpointer data, GError **error)
{
  for (guint k = 0; k < graph->plan->n_kernels; k++)
    {
      struct pto_plan_kernel *kernel = &graph->plan->kernels[k];
      PtoCallable *callable;

      if (kernel->kernel >= PTO_MAX_KERNELS)
        continue; /* none, or one that every chip has */
      callable = find (kernel->kernel, data);
      if (callable == NULL)
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                       _ ("kernel %u was unregistered while it was captured"), kernel->kernel);
          return FALSE;
        }
      kernel->kernel = graph->kernels->len;
      g_ptr_array_add (graph->kernels, callable);
    }
  return TRUE;
}

void
pto_graph_keep_registration (PtoGraph *graph, PtoRegistration *registration)
{
  if (!g_ptr_array_find (graph->registrations, registration, NULL))
    g_ptr_array_add (graph->registrations, pto_registration_ref (registration));
}

void
pto_graph_name_registrations (PtoGraph *graph)
{
  for (guint k = 0; k < graph->plan->n_kernels; k++)
    for (guint i = 0; i < graph->registrations->len; i++)
      {
        PtoRegistration *registration = g_ptr_array_index (graph->registrations, i);

        if (registration->index != graph->plan->kernels[k].kernel)
          continue;
        graph->plan->kernels[k].kernel = i;
        break;
      }
}

void
pto_graph_keep_memory (PtoGraph *graph, GHashTable *tensors)
{
  GHashTableIter iter;
  gpointer tensor;
  guint64 offset;

  if (graph->plan->n_kept == 0 || tensors == NULL)
    return;
  g_hash_table_iter_init (&iter, tensors);
  while (g_hash_table_iter_next (&iter, &tensor, NULL))
    {
      guint32 param = pto_plan_find_param (graph->plan, pto_tensor_peek (tensor), &offset);

      if (param != UINT32_MAX && param >= pto_plan_n_given (graph->plan))
        g_ptr_array_add (graph->memory, pto_tensor_ref (tensor));
    }
}

PtoRegistration *
pto_graph_get_registration (PtoGraph *graph, guint index)
{
  return index < graph->registrations->len ? g_ptr_array_index (graph->registrations, index) : NULL;
}

/* --- by hand --- */

gboolean
pto_graph_check_open (PtoGraph *self, GError **error)
{
  return !self->plan->complete
         || pto_refuse (
             error, PTO_ERROR_INVALID_ARGS,
             _ ("the graph is complete: it was captured, completed or launched, and nothing "
                "can be added to it"));
}

/* An address for that much that nobody else has. 0: none is left. */
static guint64
reserve (PtoGraph *self, guint64 bytes, GError **error)
{
  guint64 room = bytes / REGION_UNIT * REGION_UNIT + 2 * REGION_UNIT;
  guint64 address;

  if (self->region == NULL)
    {
      gpointer region = mmap (NULL, REGION_BYTES, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

      self->region = region != MAP_FAILED ? region : NULL;
    }
  if (self->region == NULL || bytes >= REGION_BYTES || room > REGION_BYTES - self->used)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
                   _ ("no address space for a tensor of %" PRIu64 " bytes in a graph"), bytes);
      return 0;
    }
  address = (guint64) (guintptr) self->region + self->used;
  self->used += room;
  return address;
}

/* A tensor that stands for memory that a launch has. */
static PtoTensor *
make_stand_in (PtoGraph *self, PtoDtype dtype, gsize n_dims, const guint64 *shape, GError **error)
{
  g_autoptr (PtoTensor) tensor = pto_tensor_new (dtype, n_dims, shape);
  guint64 address;

  if (!pto_graph_check_open (self, error))
    return NULL;
  if (pto_tensor_get_refusal (tensor) != NULL)
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS, "%s", pto_tensor_get_refusal (tensor));
      return NULL;
    }
  address = reserve (self, pto_tensor_get_n_bytes (tensor), error);
  if (address == 0)
    return NULL;
  return pto_tensor_new_stand_in (address, dtype, n_dims, shape, G_OBJECT (self));
}

/**
 * pto_graph_new:
 *
 * Makes a graph without tasks.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a graph
 *
 * Since: 0.1
 */
PtoGraph *
pto_graph_new (void)
{
  return g_object_new (PTO_TYPE_GRAPH, NULL);
}

/**
 * pto_graph_add_argument:
 * @graph: a graph that is not complete
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why not
 *
 * Adds a tensor to what the graph is launched with.
 *
 * What it gives stands for that tensor: it and its views are arguments of tasks of this graph, and
 * of nothing else, as they have no memory. Fails with %PTO_ERROR_INVALID_ARGS when the shape is
 * refused or the graph is complete.
 *
 * Source: seed 000 section 1.1. Thread safety: the thread that builds the graph.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_graph_add_argument (PtoGraph *graph, PtoDtype dtype, gsize n_dims, const guint64 *shape,
                        GError **error)
{
  PtoTensor *tensor;
  struct pto_plan_param param = { .fixed = false };

  g_return_val_if_fail (PTO_IS_GRAPH (graph), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  tensor = make_stand_in (graph, dtype, n_dims, shape, error);
  if (tensor == NULL)
    return NULL;
  param.tensor = *pto_tensor_peek (tensor);
  param.first = pto_tensor_get_first_address (tensor);
  param.extent = pto_tensor_get_extent (tensor);
  pto_plan_add_param (graph->plan, &param);
  return tensor;
}

/**
 * pto_graph_add_scalar_argument:
 * @graph: a graph that is not complete
 * @error: where to say why not
 *
 * Adds a number to what the graph is launched with; [method@Pto.Graph.bind_scalar] says which tasks
 * get it.
 *
 * Source: seed 000 section 1.1. Thread safety: the thread that builds the graph.
 *
 * Returns: which argument of the graph it is, from 0; -1 on failure
 *
 * Since: 0.1
 */
int
pto_graph_add_scalar_argument (PtoGraph *graph, GError **error)
{
  g_return_val_if_fail (PTO_IS_GRAPH (graph), -1);
  g_return_val_if_fail (error == NULL || *error == NULL, -1);

  if (!pto_graph_check_open (graph, error))
    return -1;
  return (int) pto_plan_add_param (graph->plan, &(struct pto_plan_param){ .fixed = false });
}

static gboolean
check_argument (PtoGraph *self, guint argument, GError **error)
{
  return argument < pto_plan_n_given (self->plan)
         || pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                        _ ("the graph has no argument %u: it has %u"), argument,
                        pto_plan_n_given (self->plan));
}

/**
 * pto_graph_set_argument_name:
 * @graph: a graph
 * @argument: an argument of its launches, from 0
 * @name: what it is called: 1 to 100 bytes, none of them a control character
 * @error: where to say why not
 *
 * Gives an argument of the graph a name, which errors of launches tell beside its number:
 * `argument 1 ("x") of the graph is 8 float32, but 9 float32 is given`.
 *
 * With the overrides the argument can be named where it is added. A capture in Python names
 * arguments as the captured function's parameters are; others have none until they are given one.
 * Two may have the same. Fails with %PTO_ERROR_INVALID_ARGS where there is no such argument, or the
 * name is not as above.
 *
 * Source: seed 000 section 1.1. Thread safety: any one thread, while no other uses the graph, as in
 * a launch; it may be complete.
 *
 * Returns: %TRUE if it is called so
 *
 * Since: 0.1
 */
gboolean
pto_graph_set_argument_name (PtoGraph *graph, guint argument, const char *name, GError **error)
{
  gsize length;
  gboolean is_good;

  g_return_val_if_fail (PTO_IS_GRAPH (graph), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  length = strlen (name);
  is_good = length > 0 && length <= PTO_PLAN_NAME_MAX && g_utf8_validate (name, -1, NULL);
  for (const char *at = name; is_good && *at != '\0'; at = g_utf8_next_char (at))
    is_good = !g_unichar_iscntrl (g_utf8_get_char (at));
  if (!check_argument (graph, argument, error))
    return FALSE;
  if (!is_good)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("argument %u of the graph: a name has 1 to %u bytes, none of them a control "
           "character"),
        argument, PTO_PLAN_NAME_MAX);
  return pto_plan_name_param (graph->plan, argument, name)
         || pto_error_set (error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
                           _ ("no memory for the name of an argument of a graph"));
}

/**
 * pto_graph_dup_argument_name:
 * @graph: a graph
 * @argument: an argument of its launches, from 0
 *
 * Gives what an argument is called.
 *
 * Thread safety: as [class@Pto.Graph].
 *
 * Returns: (transfer full) (nullable): its name; %NULL if it has none, or there is no such argument
 *
 * Since: 0.1
 */
char *
pto_graph_dup_argument_name (PtoGraph *graph, guint argument)
{
  g_return_val_if_fail (PTO_IS_GRAPH (graph), NULL);

  return argument < pto_plan_n_given (graph->plan)
             ? g_strdup (pto_plan_get_param_name (graph->plan, argument))
             : NULL;
}

/**
 * pto_graph_make_tensor:
 * @graph: a graph that is not complete
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why not
 *
 * Makes a tensor that one task of the graph outputs, and others use.
 *
 * Each launch gives it memory when that task is submitted, until the last task that uses it is
 * done. Those are submitted behind that task; when they run is said by
 * [method@Pto.Graph.add_successor]. Like an argument it is good for tasks of this graph only.
 *
 * Source: seed 000 section 1.1. Thread safety: the thread that builds the graph.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_graph_make_tensor (PtoGraph *graph, PtoDtype dtype, gsize n_dims, const guint64 *shape,
                       GError **error)
{
  PtoTensor *tensor;
  PtoGraphMade made;

  g_return_val_if_fail (PTO_IS_GRAPH (graph), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  tensor = make_stand_in (graph, dtype, n_dims, shape, error);
  if (tensor == NULL)
    return NULL;
  made.address = pto_tensor_get_first_address (tensor);
  made.bytes = pto_tensor_get_n_bytes (tensor);
  made.memory = pto_plan_add_memory (graph->plan, made.bytes);
  g_array_append_val (graph->made, made);
  return tensor;
}

/**
 * pto_graph_set_place:
 * @graph: a graph that is not complete
 * @file: (nullable): the name of a source, of which what is behind the last slash is kept; %NULL:
 * it is not known
 * @line: a line of it, from 1
 *
 * Says where the program is that adds tasks next: records and errors of each launch name it.
 *
 * It holds until the next call. Nobody has to call it: in C and C++ each
 * [method@Pto.Graph.add_task] notes its own place, and with the overrides those of Python and
 * JavaScript do. What is captured has the places of its submits. Source: seed 000 section 1.1.
 * Thread safety: the thread that builds the graph.
 *
 * Since: 0.1
 */
void
pto_graph_set_place (PtoGraph *graph, const char *file, guint line)
{
  g_return_if_fail (PTO_IS_GRAPH (graph));

  graph->file = pto_source_intern (graph->file, file);
  graph->line = line;
}

static gboolean
check_task (PtoGraph *self, guint task, GError **error)
{
  return task < self->plan->n_tasks
         || pto_refuse (
             error, PTO_ERROR_INVALID_ARGS,
             _ ("the graph has no task %u: it has %u, and a task is named by what add_task() gave"),
             task, self->plan->n_tasks);
}

/**
 * pto_graph_bind_scalar:
 * @graph: a graph that is not complete
 * @task: a task
 * @index: which of its arguments, a number
 * @argument: an argument of the graph, of [method@Pto.Graph.add_scalar_argument]
 * @error: where to say why not
 *
 * Has a task get the number that the graph is launched with, instead of the one that it was added
 * with.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS where there is no such task or argument, or where one is a
 * tensor. Source: seed 000 section 1.1. Thread safety: the thread that builds the graph.
 *
 * Returns: %TRUE if it does
 *
 * Since: 0.1
 */
gboolean
pto_graph_bind_scalar (PtoGraph *graph, guint task, guint index, guint argument, GError **error)
{
  struct pto_plan *plan;

  g_return_val_if_fail (PTO_IS_GRAPH (graph), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_graph_check_open (graph, error) || !check_task (graph, task, error))
    return FALSE;
  plan = graph->plan;
  if (argument >= plan->n_params || plan->params[argument].tensor.ndims > 0)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("argument %u of the graph is no number: add_scalar_argument() makes one"),
                       argument);
  return pto_plan_bind_scalar (plan, task, index, argument)
         || pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                        _ ("argument %u of task %u is no number, of %u arguments"), index, task,
                        plan->tasks[task].n_args);
}

/**
 * pto_graph_add_successor:
 * @graph: a graph that is not complete
 * @task: a task
 * @successor: the task that begins when it is done
 * @error: where to say why not
 *
 * Has one task come after another, which may have been added later. Twice is no trouble.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS where there is no such task, or only one. Source: seed 000
 * section 1.2. Thread safety: the thread that builds the graph.
 *
 * Returns: %TRUE if it does
 *
 * Since: 0.1
 */
gboolean
pto_graph_add_successor (PtoGraph *graph, guint task, guint successor, GError **error)
{
  g_return_val_if_fail (PTO_IS_GRAPH (graph), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_graph_check_open (graph, error) || !check_task (graph, task, error)
      || !check_task (graph, successor, error))
    return FALSE;
  if (task == successor)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("task %u can not come after itself"),
                       task);
  pto_plan_add_edge (graph->plan, task, successor, PTO_HAZARD_EXPLICIT);
  return TRUE;
}

/**
 * pto_graph_complete:
 * @graph: a graph
 * @error: where to say why not
 *
 * Says that nothing will be added any more: which the first launch does, too.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when tasks wait for each other in a circle, or use a tensor
 * that no task outputs. Thread safety: any thread, when nobody adds to it any more.
 *
 * Returns: %TRUE if it can be launched
 *
 * Since: 0.1
 */
gboolean
pto_graph_complete (PtoGraph *graph, GError **error)
{
  struct pto_report report = { .status = PTO_OK };
  gboolean ok;

  g_return_val_if_fail (PTO_IS_GRAPH (graph), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  g_mutex_lock (&graph->lock);
  ok = graph->plan->complete || pto_plan_complete (graph->plan, &report) == PTO_OK;
  g_mutex_unlock (&graph->lock);
  if (!ok)
    pto_error_set_from_report (error, report.status, &report);
  return ok;
}

/**
 * pto_graph_get_n_tasks:
 * @graph: a graph
 *
 * Gives how many tasks it has.
 *
 * Thread safety: as [class@Pto.Graph].
 *
 * Returns: a number
 *
 * Since: 0.1
 */
PTO_DEFINE_OBJECT_GETTER (guint, pto_graph_get_n_tasks, PtoGraph, PTO_IS_GRAPH, graph,
                          graph->plan->n_tasks)

/**
 * pto_graph_get_n_edges:
 * @graph: a graph
 *
 * Gives how many pairs of tasks there are of which one comes after the other, also those that
 * follow from others, once it is complete; 0 before.
 *
 * Thread safety: as [class@Pto.Graph].
 *
 * Returns: a number
 *
 * Since: 0.1
 */
PTO_DEFINE_OBJECT_GETTER (guint, pto_graph_get_n_edges, PtoGraph, PTO_IS_GRAPH, graph,
                          graph->plan->n_orders)

/**
 * pto_graph_get_n_arguments:
 * @graph: a graph
 *
 * Gives how many arguments a launch takes.
 *
 * Thread safety: as [class@Pto.Graph].
 *
 * Returns: a number
 *
 * Since: 0.1
 */
PTO_DEFINE_OBJECT_GETTER (guint, pto_graph_get_n_arguments, PtoGraph, PTO_IS_GRAPH, graph,
                          pto_plan_n_given (graph->plan))

/**
 * pto_graph_to_string:
 * @graph: a graph
 *
 * Says what there is in it, for people.
 *
 * Thread safety: as [class@Pto.Graph].
 *
 * Returns: (transfer full): such as `5 tasks of 2 kernels, 3 arguments`
 *
 * Since: 0.1
 */
char *
pto_graph_to_string (PtoGraph *graph)
{
  gboolean is_of_level;
  guint n;

  g_return_val_if_fail (PTO_IS_GRAPH (graph), NULL);

  is_of_level = graph->registrations->len > 0;
  n = is_of_level ? graph->registrations->len : graph->kernels->len;
  return g_strdup_printf ("%u task%s of %u %s%s, %u argument%s%s", graph->plan->n_tasks,
                          graph->plan->n_tasks == 1 ? "" : "s", n,
                          is_of_level ? "callable" : "kernel", n == 1 ? "" : "s",
                          pto_plan_n_given (graph->plan),
                          pto_plan_n_given (graph->plan) == 1 ? "" : "s",
                          graph->plan->complete ? "" : ", not complete");
}
