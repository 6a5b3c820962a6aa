/* test-memory.c: is device memory given back when nothing can reach it any more, and not before?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Whether the device still has it is asked by copying from its address.
 */
#include "object-test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ELEMENTS 1000
#define BYTES (ELEMENTS * sizeof (float))

typedef struct
{
  char *dir;
  PtoWorker *worker;
  PtoCallable *kernel;
  PtoBuffer *buffer; /* of the device */
  guint64 address;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  fixture->dir = object_test_make_dir ();
  fixture->worker = object_test_worker ();
  fixture->kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  fixture->buffer = pto_worker_alloc_buffer (fixture->worker, BYTES, &error);
  g_assert_no_error (error);
  fixture->address = pto_buffer_get_address (fixture->buffer);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_clear_pointer (&fixture->buffer, pto_buffer_unref);
  g_object_unref (fixture->kernel);
  if (fixture->worker != NULL)
    g_assert_finalize_object (fixture->worker);
  object_test_remove_dir (fixture->dir);
}

static gboolean
has (PtoWorker *worker, guint64 address)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = pto_worker_copy_from (worker, address, 1, &error);

  if (bytes == NULL)
    g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  return bytes != NULL;
}

static gboolean
submit_fill (PtoOrchestrator *orchestrator, PtoCallable *kernel, PtoBuffer *buffer, float value,
             GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) f = object_test_vector (buffer);

  pto_task_args_add_tensor (args, f, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar_float (args, value);
  return pto_orchestrator_submit (orchestrator, kernel, args, error);
}

static gboolean
fill (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
      GError **error)
{
  Fixture *fixture = data;

  return submit_fill (orchestrator, fixture->kernel, fixture->buffer, 3, error);
}

static void
test_use (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) sent = g_bytes_new_static ("0123456789", 10);
  g_autoptr (GBytes) received = NULL;

  g_assert_cmpuint (pto_buffer_get_size (fixture->buffer), ==, BYTES);
  g_assert_cmpuint (fixture->address % 64, ==, 0);
  g_assert_true (pto_buffer_get_worker (fixture->buffer) == fixture->worker);
  g_assert_cmpint (pto_buffer_get_fd (fixture->buffer), ==, -1);
  pto_worker_run (fixture->worker, fill, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < ELEMENTS; i++)
    g_assert_cmpfloat (object_test_floats (fixture->buffer)[i], ==, 3);

  g_assert_true (pto_buffer_write (fixture->buffer, 5, sent, &error));
  received = pto_buffer_read (fixture->buffer, 5, 10, &error);
  g_assert_no_error (error);
  g_assert_true (g_bytes_equal (sent, received));
  /* The number does for the calls that take one. */
  g_clear_pointer (&received, g_bytes_unref);
  received = pto_worker_copy_from (fixture->worker, fixture->address + 5, 10, &error);
  g_assert_no_error (error);
  g_assert_true (g_bytes_equal (sent, received));
}

/* Also of a shared one, which has no worker. */
static void
test_ranges (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoBuffer) shared = pto_buffer_new (BYTES, NULL);
  PtoBuffer *const buffers[] = { fixture->buffer, shared };
  g_autoptr (GBytes) ten = g_bytes_new_static ("0123456789", 10);

  g_assert_null (pto_buffer_get_worker (shared));
  for (guint i = 0; i < G_N_ELEMENTS (buffers); i++)
    {
      static const guint64 outside[][2]
          = { { BYTES, 1 }, { 0, BYTES + 1 }, { 1, G_MAXUINT64 }, { G_MAXUINT64, 1 } };
      g_autoptr (GError) error = NULL;
      g_autoptr (GBytes) end = NULL;

      for (guint k = 0; k < G_N_ELEMENTS (outside); k++)
        {
          g_assert_null (pto_buffer_read (buffers[i], outside[k][0], outside[k][1], &error));
          g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
          g_clear_error (&error);
        }
      g_assert_false (pto_buffer_write (buffers[i], BYTES - 9, ten, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      g_clear_error (&error);
      g_assert_true (pto_buffer_write (buffers[i], BYTES - 10, ten, &error));
      end = pto_buffer_read (buffers[i], BYTES - 10, 10, &error);
      g_assert_no_error (error);
      g_assert_true (g_bytes_equal (end, ten));
    }
}

static void
test_last_reference (Fixture *fixture, gconstpointer data)
{
  PtoTensor *tensor = object_test_vector (fixture->buffer);

  g_clear_pointer (&fixture->buffer, pto_buffer_unref);
  g_assert_true (has (fixture->worker, fixture->address));
  pto_tensor_unref (tensor);
  g_assert_false (has (fixture->worker, fixture->address));
}

static void
test_not_by_number (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (pto_worker_free (fixture->worker, fixture->address, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "belongs to a buffer");
  g_assert_true (has (fixture->worker, fixture->address));
}

/* The memory lives as long as the buffer; the device is gone. */
static void
test_closed_first (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("x", 1);
  PtoWorker *worker = g_object_ref (fixture->worker);

  pto_worker_run (fixture->worker, fill, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  if (data != NULL)
    pto_worker_close (fixture->worker);
  g_clear_object (&fixture->worker);
  if (data == NULL)
    {
      /* The buffer keeps its worker, and that its device. */
      g_object_unref (worker);
      g_assert_true (pto_buffer_write (fixture->buffer, 0, bytes, &error));
      g_assert_no_error (error);
      return;
    }
  g_assert_cmpfloat (object_test_floats (fixture->buffer)[ELEMENTS - 1], ==, 3);
  g_assert_false (pto_buffer_write (fixture->buffer, 0, bytes, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_null (pto_buffer_read (fixture->buffer, 0, 1, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_pointer (&fixture->buffer, pto_buffer_unref);
  g_assert_finalize_object (worker);
}

typedef struct
{
  Fixture *fixture;
  PtoBuffer *unused;
  guint64 address;
} Inside;

static gpointer
let_go (gpointer data)
{
  pto_buffer_unref (data);
  return NULL;
}

/* Who lets go does not wait for the run, whose end comes after: not even on another thread. */
static gboolean
let_go_inside (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  Inside *inside = data;
  Fixture *fixture = inside->fixture;
  PtoWorker *worker = pto_orchestrator_get_worker (orchestrator);
  PtoBuffer *own = pto_worker_alloc_buffer (worker, BYTES, error);

  g_assert_nonnull (own);
  inside->address = pto_buffer_get_address (own);
  if (!submit_fill (orchestrator, fixture->kernel, own, 4, error)
      || !submit_fill (orchestrator, fixture->kernel, fixture->buffer, 5, error))
    return FALSE;
  pto_buffer_unref (own);
  g_clear_pointer (&fixture->buffer, pto_buffer_unref);
  g_thread_join (g_thread_new ("let-go", let_go, g_steal_pointer (&inside->unused)));
  g_assert_true (has (worker, inside->address));
  g_assert_true (has (worker, fixture->address));
  return TRUE;
}

static void
test_run_under_way (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  Inside inside = { .fixture = fixture };
  guint64 unused;

  inside.unused = pto_worker_alloc_buffer (fixture->worker, 64, &error);
  g_assert_no_error (error);
  unused = pto_buffer_get_address (inside.unused);
  pto_worker_run (fixture->worker, let_go_inside, &inside, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (has (fixture->worker, inside.address));
  g_assert_false (has (fixture->worker, fixture->address));
  g_assert_false (has (fixture->worker, unused));
}

static gboolean
close_inside (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Fixture *fixture = data;

  if (!submit_fill (orchestrator, fixture->kernel, fixture->buffer, 6, error))
    return FALSE;
  pto_worker_close (fixture->worker);
  g_clear_pointer (&fixture->buffer, pto_buffer_unref);
  return TRUE;
}

static void
test_closed_inside (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (
      pto_worker_run (fixture->worker, close_inside, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
}

/* In a copy of the process the buffer is let go of, and the device is not asked. */
static void
test_fork (Fixture *fixture, gconstpointer data)
{
  int status;
  pid_t child = fork ();

  g_assert_cmpint (child, >=, 0);
  if (child == 0)
    {
      g_autoptr (GError) error = NULL;

      alarm (60);
      if (pto_buffer_read (fixture->buffer, 0, 1, &error) != NULL
          || !g_error_matches (error, PTO_ERROR, PTO_ERROR_BUSY))
        _exit (1);
      g_clear_error (&error);
      if (pto_worker_free (fixture->worker, fixture->address, &error)
          || !g_error_matches (error, PTO_ERROR, PTO_ERROR_BUSY))
        _exit (2);
      pto_buffer_unref (fixture->buffer);
      _exit (0);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_cmpint (status, ==, 0);
  g_assert_true (has (fixture->worker, fixture->address));
}

/* As many as there are places for, then one more round: nothing is left of the first. */
static void
test_many (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  for (guint round = 0; round < 20; round++)
    {
      PtoBuffer *buffers[200];

      for (guint i = 0; i < G_N_ELEMENTS (buffers); i++)
        {
          buffers[i] = pto_worker_alloc_buffer (fixture->worker, 1 << 16, &error);
          g_assert_no_error (error);
        }
      for (guint i = 0; i < G_N_ELEMENTS (buffers); i++)
        pto_buffer_unref (buffers[i]);
    }
  g_assert_null (pto_worker_alloc_buffer (fixture->worker, 0, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_null (pto_worker_alloc_buffer (fixture->worker, G_MAXINT64, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY);
}

static void
test_no_device (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = pto_worker_new_host (3, 1, 0, NULL, &error);
  g_autoptr (PtoWorker) chip = pto_worker_new_chip (NULL, &error);

  g_assert_no_error (error);
  g_assert_null (pto_worker_alloc_buffer (host, 64, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  pto_worker_close (chip);
  g_assert_null (pto_worker_alloc_buffer (chip, 64, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
}

/* What needs the machine starts a worker that was not started. */
static void
test_new_worker (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) chip = pto_worker_new_chip (NULL, &error);
  g_autoptr (PtoBuffer) buffer = NULL;

  g_assert_no_error (error);
  buffer = pto_worker_alloc_buffer (chip, 64, &error);
  g_assert_no_error (error);
  g_assert_nonnull (buffer);
  g_assert_cmpint (pto_worker_get_state (chip), ==, PTO_WORKER_STATE_READY);
}

#define ADD(name, function, data) \
  g_test_add ("/pto/memory/" name, Fixture, data, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  ADD ("use", test_use, NULL);
  ADD ("ranges", test_ranges, NULL);
  ADD ("last-reference", test_last_reference, NULL);
  ADD ("not-by-number", test_not_by_number, NULL);
  ADD ("closed-first", test_closed_first, "close");
  ADD ("forgotten-first", test_closed_first, NULL);
  ADD ("run-under-way", test_run_under_way, NULL);
  ADD ("closed-inside", test_closed_inside, NULL);
  ADD ("fork", test_fork, NULL);
  ADD ("many", test_many, NULL);
  g_test_add_func ("/pto/memory/no-device", test_no_device);
  g_test_add_func ("/pto/memory/new-worker", test_new_worker);

  return g_test_run ();
}
