/* group.c: how do four workers compute together, each needing the others while it works?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Running sums of a vector: out[i] = x[0] + ... + x[i]. Each of four members adds up its quarter,
 * tells the others, waits until it has the sums of all quarters before its own, and writes its part
 * of the result. That can only end when all four run at the same time, which is what a group is.
 * Build and run:
 *
 *   cc group.c -o group $(pkg-config --cflags --libs pto-1) && ./group
 */
#include <pto/pto.h>

#include <stdatomic.h>
#include <stdio.h>

#define MEMBERS 4
#define ELEMENTS 4096
#define QUARTER (ELEMENTS / MEMBERS)

/* What the members tell each other, in memory that they share. */
typedef struct Board
{
  gint64 sums[MEMBERS];
  /* W: its member, release after sums; R: the members behind it, acquire. */
  atomic_int told[MEMBERS];
} Board;

static gpointer
address_of (PtoTaskArgs *args, guint index)
{
  return (gpointer) (guintptr) pto_tensor_get_address (pto_task_args_get_tensor (args, index));
}

/* The sum of all quarters before this member's. Somebody else may fail instead of telling. */
static gboolean
wait_for_others (Board *board, guint64 member, PtoTaskArgs *args, gint64 *before, GError **error)
{
  *before = 0;
  for (guint64 i = 0; i < member; i++)
    {
      while (!atomic_load_explicit (&board->told[i], memory_order_acquire))
        {
          if (pto_task_args_is_cancelled (args))
            {
              g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED,
                                   "another member has failed");
              return FALSE;
            }
          g_usleep (20);
        }
      *before += board->sums[i];
    }
  return TRUE;
}

/* args: a quarter of x, the same quarter of out, the board; which member this is. */
static gboolean
running_sum (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  const gint64 *x = address_of (args, 0);
  gint64 *out = address_of (args, 1);
  Board *board = address_of (args, 2);
  guint64 member = pto_task_args_get_scalar (args, 3);
  gint64 sum = 0;

  for (int i = 0; i < QUARTER; i++)
    sum += x[i];
  board->sums[member] = sum;
  atomic_store_explicit (&board->told[member], 1, memory_order_release);

  if (!wait_for_others (board, member, args, &sum, error))
    return FALSE;
  for (int i = 0; i < QUARTER; i++)
    out[i] = sum += x[i];
  return TRUE;
}

/* One task with four members. The board is NO_DEP: the members order themselves there. */
static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
       GError **error)
{
  PtoCallableHandle *handle = user_data;
  PtoTensor *x = pto_task_args_get_tensor (args, 0);
  PtoTensor *out = pto_task_args_get_tensor (args, 1);
  PtoTensor *board = pto_task_args_get_tensor (args, 2);
  PtoTaskArgs *members[MEMBERS] = { NULL };
  guint64 shape = QUARTER;
  gboolean submitted;

  for (guint64 i = 0; i < MEMBERS; i++)
    {
      guint64 offset = i * QUARTER;
      g_autoptr (PtoTensor) from = pto_tensor_view (x, 1, &shape, &offset, NULL);
      g_autoptr (PtoTensor) to = pto_tensor_view (out, 1, &shape, &offset, NULL);

      members[i] = pto_task_args_new ();
      pto_task_args_add_tensor (members[i], from, PTO_DIRECTION_INPUT);
      pto_task_args_add_tensor (members[i], to, PTO_DIRECTION_OUTPUT_EXISTING);
      pto_task_args_add_tensor (members[i], board, PTO_DIRECTION_NO_DEP);
      pto_task_args_add_scalar (members[i], i);
    }
  submitted
      = pto_orchestrator_submit_sub_group (orchestrator, handle, members, MEMBERS, NULL, 0, error);
  for (guint i = 0; i < MEMBERS; i++)
    pto_task_args_unref (members[i]);
  return submitted;
}

static PtoTensor *
make_tensor (guint64 elements, PtoTaskArgs *args, PtoDirection direction, GError **error)
{
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (elements * sizeof (gint64), error);
  g_autoptr (PtoTensor) tensor = NULL;

  if (buffer == NULL)
    return NULL;
  tensor = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_INT64, 1, &elements, error);
  if (tensor != NULL)
    pto_task_args_add_tensor (args, tensor, direction);
  return g_steal_pointer (&tensor);
}

static gboolean
run (gboolean *passed, GError **error)
{
  g_autoptr (PtoWorker) host = pto_worker_new_host (3, 0, MEMBERS, NULL, error);
  g_autoptr (PtoCallable) function = pto_sub_function_new ("running-sum", running_sum, NULL, NULL);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) x = make_tensor (ELEMENTS, args, PTO_DIRECTION_INPUT, error);
  g_autoptr (PtoTensor) out = NULL;
  g_autoptr (PtoTensor) board = NULL;
  gint64 expected = 0;
  gint64 *p;

  if (host == NULL || x == NULL)
    return FALSE;
  out = make_tensor (ELEMENTS, args, PTO_DIRECTION_OUTPUT_EXISTING, error);
  if (out == NULL)
    return FALSE;
  board = make_tensor ((sizeof (Board) + 7) / 8, args, PTO_DIRECTION_NO_DEP, error);
  handle = pto_worker_register (host, function, NULL, board != NULL ? error : NULL);
  if (board == NULL || handle == NULL)
    return FALSE;

  p = (gint64 *) (guintptr) pto_tensor_get_address (x);
  for (int i = 0; i < ELEMENTS; i++)
    p[i] = i % 7 - 2;
  if (!pto_worker_run (host, graph, handle, args, NULL, NULL, error))
    return FALSE;

  *passed = TRUE;
  for (int i = 0; i < ELEMENTS; i++)
    {
      expected += p[i];
      if (((gint64 *) (guintptr) pto_tensor_get_address (out))[i] != expected)
        *passed = FALSE;
    }
  printf ("running sums by a group of %d: the last of %d is %" G_GINT64_FORMAT ": %s\n", MEMBERS,
          ELEMENTS, expected, *passed ? "PASS" : "FAIL");
  pto_worker_close (host);
  return TRUE;
}

int
main (void)
{
  g_autoptr (GError) error = NULL;
  gboolean passed = FALSE;

  if (!run (&passed, &error))
    fprintf (stderr, "group: %s\n", error->message);
  return passed ? 0 : 1;
}
