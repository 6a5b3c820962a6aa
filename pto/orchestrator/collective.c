/* collective.c: how do workers of one level exchange tensors?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A collective is a task like any other: a function of this library that a SUB worker calls with
 * all the tensors, tagged. So who it waits for, who waits for it, records, graphs, failures and
 * cancelling are what they are for every task, and which kind of worker has made the tensors is
 * nobody's matter: what a remote one has written is here by then.
 *
 * Tensors that stay at ranks of one job are not here. Theirs is a group, with a member for each
 * rank, of a function that is looked up there (mpi/rank-client.c).
 */
#include "config.h"

#include "orchestrator.h"

#include "sim/reduction-operators.h"

#include "base/error.h"
#include "callable/callable-handle.h"
#include "callable/callable.h"
#include "common/text.h"
#include "mpi/rank-client.h"
#include "remote/launch/mpi-job.h"
#include "values/task-args.h"
#include "values/tensor.h"
#include "collective.h"
#include "pto-function.h"

#include <string.h>

/* Of each tensor at a time: all levels of the tree are in cache. */
#define CHUNK_BYTES 32768u

/* --- in a SUB worker --- */

static guint8 *
bytes_of (PtoTaskArgs *args, guint index)
{
  return (guint8 *) (guintptr) pto_tensor_get_address (pto_task_args_get_tensor (args, index));
}

static guint64
size_of (PtoTensor *tensor)
{
  return pto_tensor_get_n_elements (tensor)
         * pto_dtype_size ((DataType) pto_tensor_get_dtype (tensor));
}

static void
combine (enum pto_operator operation, DataType dtype, gpointer to, gpointer from, guint64 n)
{
  TensorData data[2];

  memset (data, 0, sizeof data);
  for (guint i = 0; i < G_N_ELEMENTS (data); i++)
    {
      data[i].ndims = 1;
      data[i].dtype = dtype;
      data[i].shapes[0] = n;
      data[i].strides[0] = 1;
    }
  data[0].buffer.addr = (guint64) (guintptr) to;
  data[1].buffer.addr = (guint64) (guintptr) from;
  pto_combine (operation, &data[0], &data[1]);
}

/* ((0 1) (2 3)) ((4 5) 6): which order workers have ended in is not seen. */
static gboolean
run_allreduce (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  enum pto_operator operation
      = (enum pto_operator) pto_task_args_get_scalar (args, pto_task_args_get_n_tensors (args));
  guint n = pto_task_args_get_n_tensors (args);
  PtoTensor *first = pto_task_args_get_tensor (args, 0);
  DataType dtype = (DataType) pto_tensor_get_dtype (first);
  guint64 size = pto_dtype_size (dtype);
  guint64 bytes = size_of (first);

  for (guint64 at = 0; at < bytes && !pto_task_args_is_cancelled (args); at += CHUNK_BYTES)
    {
      guint64 part = MIN (bytes - at, CHUNK_BYTES);

      for (guint distance = 1; distance < n; distance *= 2)
        for (guint i = 0; i + distance < n; i += 2 * distance)
          combine (operation, dtype, bytes_of (args, i) + at, bytes_of (args, i + distance) + at,
                   part / size);
      for (guint i = 1; i < n; i++)
        memcpy (bytes_of (args, i) + at, bytes_of (args, 0) + at, part);
    }
  return TRUE;
}

/* The root is the first. */
static gboolean
run_broadcast (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  guint64 bytes = size_of (pto_task_args_get_tensor (args, 0));

  for (guint i = 1; i < pto_task_args_get_n_tensors (args); i++)
    if (!pto_task_args_is_cancelled (args))
      memcpy (bytes_of (args, i), bytes_of (args, 0), bytes);
  return TRUE;
}

/* Those that are read, then as many that are written. */
static gboolean
run_alltoall (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  guint n = pto_task_args_get_n_tensors (args) / 2;
  guint64 part = size_of (pto_task_args_get_tensor (args, 0)) / n;

  for (guint to = 0; to < n && !pto_task_args_is_cancelled (args); to++)
    for (guint from = 0; from < n; from++)
      memcpy (bytes_of (args, n + to) + from * part, bytes_of (args, from) + to * part, part);
  return TRUE;
}

/* --- what workers know them by --- */

enum
{
  ALLREDUCE,
  BROADCAST,
  ALLTOALL,
  /* The same, by ranks. */
  RANKS
};

static const char *const rank_paths[RANKS] = { [ALLREDUCE] = PTO_REMOTE_RANK_ALLREDUCE,
                                               [BROADCAST] = PTO_REMOTE_RANK_BROADCAST,
                                               [ALLTOALL] = PTO_REMOTE_RANK_ALLTOALL };

static PtoCallable *functions[PTO_N_COLLECTIVES];

void
pto_collective_make_functions (void)
{
  static gsize made;

  if (!g_once_init_enter (&made))
    return;
  functions[ALLREDUCE] = pto_sub_function_new ("pto_allreduce", run_allreduce, NULL, NULL);
  functions[BROADCAST] = pto_sub_function_new ("pto_broadcast", run_broadcast, NULL, NULL);
  functions[ALLTOALL] = pto_sub_function_new ("pto_alltoall", run_alltoall, NULL, NULL);
  for (guint i = 0; i < RANKS; i++)
    {
      functions[RANKS + i]
          = pto_imported_function_new (PTO_CALLABLE_ORCHESTRATION, rank_paths[i], NULL);
      pto_callable_set_name (functions[RANKS + i], pto_callable_get_name (functions[i]));
    }
  g_once_init_leave (&made, TRUE);
}

static PtoCallableHandle *
find_handle (const PtoTreeNode *node, guint which, GError **error)
{
  return node->ops->find_collective (node->worker, which, functions[which], error);
}

/* --- what is refused --- */

/* by_ranks: it needs nobody here. */
static gboolean
check_level (PtoOrchestrator *self, const char *name, gboolean by_ranks, GError **error)
{
  g_autofree char *path = NULL;

  if (!pto_orchestrator_check_usable (self, error))
    return FALSE;
  if (self->machine->ops->submit == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                   _ ("%s is for tensors of workers, from level 3 up: tasks of a chip update one "
                      "tensor (add_reduction)"),
                   name);
      return FALSE;
    }
  if (by_ranks || self->node->n_sub_workers > 0)
    return TRUE;
  path = pto_tree_node_dup_path (self->node);
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
               _ ("%s runs in a SUB worker, and %s has none: give it one (n-sub-workers)"), name,
               path);
  return FALSE;
}

static gboolean
check_count (const char *name, gsize n, GError **error)
{
  if (n > 0)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("%s: there are no tensors: give one for each worker"), name);
  return FALSE;
}

static gboolean
is_same_shape (PtoTensor *a, PtoTensor *b)
{
  gsize n, n_others;
  const guint64 *shape = pto_tensor_get_shape (a, &n);
  const guint64 *others = pto_tensor_get_shape (b, &n_others);

  return pto_tensor_get_dtype (a) == pto_tensor_get_dtype (b) && n == n_others
         && memcmp (shape, others, n * sizeof *shape) == 0;
}

static gboolean
overlap (PtoTensor *a, PtoTensor *b)
{
  guint64 x = pto_tensor_get_address (a);
  guint64 y = pto_tensor_get_address (b);

  /* What has no memory yet overlaps with itself. */
  return a == b || (x != 0 && y != 0 && x < y + size_of (b) && y < x + size_of (a));
}

/* As many as there are, all of one shape and type, none over another. */
static gboolean
check_tensors (const char *name, PtoTensor *const *tensors, gsize n, GError **error)
{
  for (gsize i = 0; i < n; i++)
    {
      if (!pto_tensor_is_contiguous (tensors[i]))
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("%s: tensor %zu is not contiguous: copy the part that is meant"), name, i);
      else if (!is_same_shape (tensors[0], tensors[i]))
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("%s: tensor %zu has another shape or type than tensor 0: all are alike"),
                     name, i);
      else
        {
          gsize other = 0;

          while (other < i && !overlap (tensors[other], tensors[i]))
            other++;
          if (other == i)
            continue;
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       _ ("%s: tensors %zu and %zu overlap: give each worker its own"), name, other,
                       i);
        }
      return FALSE;
    }
  return TRUE;
}

/* --- ranks --- */

/* What a tensor is a rank's of; NULL: of nothing. */
static const PtoRemoteSpec *
find_rank (PtoOrchestrator *self, PtoTensor *tensor)
{
  int home = pto_tensor_get_worker (tensor);
  guint number;
  const PtoTreeNode *node
      = home >= 0 && pto_tree_node_find_child (self->node, (guint) home, &number)
            ? pto_tree_node_peek_child (self->node, number)
            : NULL;

  return node != NULL && node->remote != NULL && node->remote->job != NULL ? node->remote : NULL;
}

static gboolean
is_anywhere (PtoTensor *const *tensors, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (pto_tensor_get_worker (tensors[i]) >= 0)
      return FALSE;
  return TRUE;
}

/* Tensors of which one stays somewhere: one at each rank of a job. order: of each rank, which is
 * its. */
static gboolean
find_order (PtoOrchestrator *self, const char *name, PtoTensor *const *tensors, gsize n,
            gsize *order, GError **error)
{
  const PtoRemoteSpec *first = n > 0 ? find_rank (self, tensors[0]) : NULL;

  for (gsize i = 0; i < n; i++)
    order[i] = n;
  for (gsize i = 0; i < n; i++)
    {
      const PtoRemoteSpec *spec = find_rank (self, tensors[i]);

      if (spec != NULL && spec->job == first->job && spec->rank < n && order[spec->rank] == n
          && pto_remote_job_get_n_ranks (spec->job) == n)
        {
          order[spec->rank] = i;
          continue;
        }
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("%s: tensor %zu of %zu: where one stays at a worker (make_tensor_at), there is "
             "one at each rank of one job (add_remote_job), and no other"),
          name, i, n);
      return FALSE;
    }
  return TRUE;
}

/* --- submits --- */

static void
add_output (PtoTaskArgs *args, PtoTensor *tensor)
{
  pto_task_args_add_tensor (args, tensor,
                            pto_tensor_get_address (tensor) != 0 ? PTO_DIRECTION_OUTPUT_EXISTING
                                                                 : PTO_DIRECTION_OUTPUT);
}

static gboolean
submit (PtoOrchestrator *self, guint which, PtoTaskArgs *args, GError **error)
{
  PtoCallableHandle *handle = find_handle (self->node, which, error);

  return handle != NULL && (pto_orchestrator_submit_sub) (self, handle, args, -1, error);
}

/* By the ranks that tensors stay at. from: of an all-to-all; else NULL. word: what it is about;
 * root: of a broadcast, the tensor that is read, or -1: each is read and written. */
static gboolean
submit_to_ranks (PtoOrchestrator *self, guint which, PtoTensor *const *tensors,
                 PtoTensor *const *from, gsize n, guint64 word, gssize root, GError **error)
{
  static const char *const names[RANKS]
      = { [ALLREDUCE] = "allreduce", [BROADCAST] = "broadcast", [ALLTOALL] = "alltoall" };
  g_autofree gsize *order = g_new (gsize, n);
  g_autofree gsize *others = g_new (gsize, n);
  g_autofree int *workers = g_new (int, n);
  g_autoptr (GPtrArray) args
      = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_task_args_unref);
  PtoCallableHandle *handle;

  if (!find_order (self, names[which], tensors, n, order, error)
      || (from != NULL && !find_order (self, names[which], from, n, others, error)))
    return FALSE;
  for (gsize rank = 0; rank < n; rank++)
    {
      PtoTensor *tensor = tensors[order[rank]];
      PtoTaskArgs *member = pto_task_args_new ();

      g_ptr_array_add (args, member);
      workers[rank] = pto_tensor_get_worker (tensor);
      if (from != NULL && order[rank] != others[rank])
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       _ ("%s: tensors %zu to read and to write stay at different workers"),
                       names[which], order[rank]);
          return FALSE;
        }
      if (from != NULL)
        pto_task_args_add_tensor (member, from[order[rank]], PTO_DIRECTION_INPUT);
      if (from == NULL && root < 0)
        pto_task_args_add_tensor (member, tensor, PTO_DIRECTION_INOUT);
      else if (from == NULL && (gsize) root == order[rank])
        {
          pto_task_args_add_tensor (member, tensor, PTO_DIRECTION_INPUT);
          word = rank;
        }
      else
        add_output (member, tensor);
    }
  for (gsize rank = 0; rank < n; rank++)
    {
      pto_task_args_add_scalar (g_ptr_array_index (args, rank), word);
      pto_task_args_add_scalar (g_ptr_array_index (args, rank), rank);
      /* Of the job: its workers say which it is. */
      pto_task_args_add_scalar (g_ptr_array_index (args, rank), 0);
    }
  handle = find_handle (self->node, RANKS + which, error);
  return handle != NULL
         && (pto_orchestrator_submit_next_level_group) (self, handle, (PtoTaskArgs **) args->pdata,
                                                        n, NULL, workers, n, error);
}

/**
 * pto_orchestrator_allreduce:
 * @orchestrator: an orchestrator of a worker of level 3 or up
 * @tensors: (array length=n_tensors): one of each worker below, all of one shape and type
 * @n_tensors: how many there are
 * @operation: what elements are combined with
 * @error: where to say why not
 *
 * Submits a task that combines tensors, element by element, and gives the result to all of them.
 *
 * The task runs in a SUB worker, once all tasks that write or read the tensors are done. They are
 * combined in pairs, 0 with 1, 2 with 3, then these results in pairs, and so on: the bits of the
 * result do not depend on which worker has ended first. Integers wrap around; float16 and bfloat16
 * are combined as float, and each result is rounded to the nearest; what is no number stays none.
 * When a task that was to write one of them fails, this one is not run, and neither is what needs
 * its result.
 *
 * Tensors that stay ([method@Pto.Orchestrator.make_tensor_at]), one at each rank of a job of
 * [method@Pto.Worker.add_remote_job], are combined there by MPI, in the order of the ranks, and
 * need no SUB worker. A death of one fails the task with %PTO_ERROR_WORKER_LOST.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, naming the tensor: for none at all, for shapes or types that
 * differ, for tensors that overlap or are not contiguous, for elements that can not be combined,
 * and for more than 255 tensors (of @from and @to together, in an all-to-all); with
 * %PTO_ERROR_NOT_SUPPORTED on a chip, and where there is no SUB worker; and otherwise like
 * [method@Pto.Orchestrator.submit_sub]. The first of a worker waits for what its SUB workers do
 * just then, as a registration does. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_allreduce (PtoOrchestrator *orchestrator, PtoTensor *const *tensors,
                            gsize n_tensors, PtoReduction operation, GError **error)
{
  static const enum pto_operator operators[] = { [PTO_REDUCTION_SUM] = PTO_OPERATOR_SUM,
                                                 [PTO_REDUCTION_PROD] = PTO_OPERATOR_PROD,
                                                 [PTO_REDUCTION_MIN] = PTO_OPERATOR_MIN,
                                                 [PTO_REDUCTION_MAX] = PTO_OPERATOR_MAX };
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  gboolean here;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  here = is_anywhere (tensors, n_tensors);
  if (!check_level (orchestrator, "allreduce", !here, error)
      || !check_count ("allreduce", n_tensors, error)
      || !check_tensors ("allreduce", tensors, n_tensors, error))
    return FALSE;
  if ((guint) operation >= G_N_ELEMENTS (operators)
      || !pto_combine_knows (operators[operation], (DataType) pto_tensor_get_dtype (tensors[0])))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("allreduce: there is no operation %u for elements of %s: integers and floats "
                      "from 8 and 16 bits up have sum, prod, min and max"),
                   (guint) operation,
                   pto_dtype_name ((DataType) pto_tensor_get_dtype (tensors[0])));
      return FALSE;
    }
  if (!here)
    return submit_to_ranks (orchestrator, ALLREDUCE, tensors, NULL, n_tensors, operators[operation],
                            -1, error);
  for (gsize i = 0; i < n_tensors; i++)
    pto_task_args_add_tensor (args, tensors[i], PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar (args, operators[operation]);
  return submit (orchestrator, ALLREDUCE, args, error);
}

/**
 * pto_orchestrator_broadcast:
 * @orchestrator: an orchestrator of a worker of level 3 or up
 * @tensors: (array length=n_tensors): one of each worker below, all of one shape and type
 * @n_tensors: how many there are
 * @root: the number of the one that is read; the others are written
 * @error: where to say why not
 *
 * Submits a task that copies one tensor into all others.
 *
 * Workers that only read can have the one tensor itself as an input: this is for those that go on
 * to write theirs. Others that have no memory yet get some.
 *
 * Fails like [method@Pto.Orchestrator.allreduce], and with %PTO_ERROR_INVALID_ARGS for a @root that
 * is none of them. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_broadcast (PtoOrchestrator *orchestrator, PtoTensor *const *tensors,
                            gsize n_tensors, guint root, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  gboolean here;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  here = is_anywhere (tensors, n_tensors);
  if (!check_level (orchestrator, "broadcast", !here, error)
      || !check_count ("broadcast", n_tensors, error)
      || !check_tensors ("broadcast", tensors, n_tensors, error))
    return FALSE;
  if (root >= n_tensors)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("broadcast: root is %u, and there are %zu tensors: name one of them, from 0"),
                   root, n_tensors);
      return FALSE;
    }
  if (!here)
    return submit_to_ranks (orchestrator, BROADCAST, tensors, NULL, n_tensors, 0, root, error);
  pto_task_args_add_tensor (args, tensors[root], PTO_DIRECTION_INPUT);
  for (gsize i = 0; i < n_tensors; i++)
    if (i != root)
      add_output (args, tensors[i]);
  return submit (orchestrator, BROADCAST, args, error);
}

/**
 * pto_orchestrator_alltoall:
 * @orchestrator: an orchestrator of a worker of level 3 or up
 * @from: (array length=n_from): what each worker gives
 * @n_from: how many workers there are
 * @to: (array length=n_to): what each worker gets; no part of it is in @from
 * @n_to: the same as @n_from
 * @error: where to say why not
 *
 * Submits a task that gives each worker its part of what all others have: part i of tensor j goes
 * to part j of tensor i.
 *
 * The parts are those of the first dimension, as many as there are workers.
 *
 * Fails like [method@Pto.Orchestrator.allreduce], and with %PTO_ERROR_INVALID_ARGS when the numbers
 * differ, or the first dimension is no multiple of them. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_alltoall (PtoOrchestrator *orchestrator, PtoTensor *const *from, gsize n_from,
                           PtoTensor *const *to, gsize n_to, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autofree PtoTensor **all = NULL;
  gboolean here;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (from != NULL || n_from == 0, FALSE);
  g_return_val_if_fail (to != NULL || n_to == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  here = is_anywhere (from, n_from) && is_anywhere (to, n_to);
  if (!check_level (orchestrator, "alltoall", !here, error)
      || !check_count ("alltoall", n_from, error))
    return FALSE;
  if (n_to != n_from)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("alltoall: %zu tensors to read and %zu to write: each worker has one of both"), n_from,
          n_to);
      return FALSE;
    }
  /* One list: what is written overlaps with nothing that is read, either. */
  all = g_new (PtoTensor *, 2 * n_from);
  memcpy (all, from, n_from * sizeof *all);
  memcpy (all + n_from, to, n_to * sizeof *all);
  if (!check_tensors ("alltoall", all, 2 * n_from, error))
    return FALSE;
  if (pto_tensor_get_shape (from[0], NULL)[0] % n_from != 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("alltoall: the first dimension is %" PRIu64
                      ", no multiple of the %zu tensors that share it"),
                   pto_tensor_get_shape (from[0], NULL)[0], n_from);
      return FALSE;
    }
  if (!here)
    return submit_to_ranks (orchestrator, ALLTOALL, to, from, n_from, n_from, -1, error);
  for (gsize i = 0; i < n_from; i++)
    pto_task_args_add_tensor (args, from[i], PTO_DIRECTION_INPUT);
  for (gsize i = 0; i < n_to; i++)
    add_output (args, to[i]);
  return submit (orchestrator, ALLTOALL, args, error);
}

/**
 * pto_orchestrator_barrier:
 * @orchestrator: an orchestrator
 * @tensors: (array length=n_tensors): any that workers use
 * @n_tensors: how many there are
 * @error: where to say why not
 *
 * Submits a task that runs nothing: what uses one of the tensors after it waits for all who have
 * used any of them before it.
 *
 * It takes no worker and works at every level. It is [method@Pto.Orchestrator.submit_order] with
 * all tensors as INOUT, and fails like that, and for no tensors with %PTO_ERROR_INVALID_ARGS.
 * Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_barrier (PtoOrchestrator *orchestrator, PtoTensor *const *tensors, gsize n_tensors,
                          GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_count ("barrier", n_tensors, error))
    return FALSE;
  for (gsize i = 0; i < n_tensors; i++)
    pto_task_args_add_tensor (args, tensors[i], PTO_DIRECTION_INOUT);
  return (pto_orchestrator_submit_order) (orchestrator, args, error);
}
