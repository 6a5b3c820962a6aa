/* test-arguments.c: does what a task is given live long enough, and arrive as what it was?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ELEMENTS 64

/* Memory that is spoilt when it is let go of. */
typedef struct
{
  float values[ELEMENTS];
  guint *released;
  GThread *thread; /* where that must happen; NULL: anywhere */
} Piece;

static void
release_piece (gpointer data)
{
  Piece *piece = data;

  if (piece->thread != NULL)
    g_assert_true (piece->thread == g_thread_self ());
  for (guint i = 0; i < ELEMENTS; i++)
    piece->values[i] = -1;
  ++*piece->released;
  g_free (piece);
}

static PtoTensor *
make_piece (float value, guint *released, GThread *thread)
{
  Piece *piece = g_new (Piece, 1);

  for (guint i = 0; i < ELEMENTS; i++)
    piece->values[i] = value;
  piece->released = released;
  piece->thread = thread;
  return pto_tensor_new_external_full ((guint64) (guintptr) piece->values, PTO_DTYPE_FLOAT32, 1,
                                       (const guint64[]){ ELEMENTS }, piece, release_piece);
}

/* --- what keeps --- */

/* The bytes of a view are those between its first and its last element, and keep the memory. */
static void
test_tensor_bytes (void)
{
  g_autoptr (GError) error = NULL;
  guint released = 0;
  PtoTensor *tensor = make_piece (3, &released, NULL);
  PtoTensor *columns = pto_tensor_as_strided (tensor, 2, (const guint64[]){ 2, 3 },
                                              (const guint64[]){ 5, 1 }, 4, &error);
  g_autoptr (PtoTensor) unplaced = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 4 });
  g_autoptr (PtoTensor) refused
      = pto_tensor_new_external (4096, PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 0 });
  GBytes *bytes;
  gsize size;

  g_assert_no_error (error);
  bytes = pto_tensor_ref_bytes (columns, &error);
  g_assert_no_error (error);
  g_assert_true (
      g_bytes_get_data (bytes, &size)
      == (gconstpointer) (guintptr) (pto_tensor_get_address (tensor) + 4 * sizeof (float)));
  g_assert_cmpuint (size, ==, (5 + 2 + 1) * sizeof (float));
  g_clear_pointer (&tensor, pto_tensor_unref);
  g_clear_pointer (&columns, pto_tensor_unref);
  g_assert_cmpuint (released, ==, 0);
  g_assert_cmpfloat (*(const float *) g_bytes_get_data (bytes, NULL), ==, 3);
  g_bytes_unref (bytes);
  g_assert_cmpuint (released, ==, 1);

  g_assert_null (pto_tensor_ref_bytes (unplaced, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_assert_nonnull (strstr (error->message, "tensor float32 [4] has no memory"));
  g_clear_error (&error);
  g_assert_null (pto_tensor_ref_bytes (refused, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
}

static void
test_views_and_arguments (void)
{
  g_autoptr (GError) error = NULL;
  guint released = 0;
  PtoTensor *tensor = make_piece (1, &released, NULL);
  PtoTensor *view
      = pto_tensor_view (tensor, 1, (const guint64[]){ 8 }, (const guint64[]){ 8 }, &error);
  PtoTensor *matrix = pto_tensor_reshape (view, 2, (const guint64[]){ 2, 4 }, &error);
  PtoTensor *turned = pto_tensor_transpose (matrix, 0, 1, &error);
  PtoTensor *for_reading = pto_tensor_as_read_only (turned);
  PtoTaskArgs *args = pto_task_args_new ();

  g_assert_no_error (error);
  g_clear_pointer (&tensor, pto_tensor_unref);
  g_clear_pointer (&view, pto_tensor_unref);
  g_clear_pointer (&matrix, pto_tensor_unref);
  g_clear_pointer (&turned, pto_tensor_unref);
  g_assert_cmpuint (released, ==, 0);
  pto_task_args_add_tensor (args, for_reading, PTO_DIRECTION_INPUT);
  g_clear_pointer (&for_reading, pto_tensor_unref);
  g_assert_cmpuint (released, ==, 0);
  pto_task_args_reset (args);
  g_assert_cmpuint (released, ==, 1);
  pto_task_args_unref (args);
}

static void
test_object (void)
{
  GObject *owner = g_object_new (PTO_TYPE_WORKER, NULL);
  float values[4] = { 1, 2, 3, 4 };
  PtoTensor *tensor = pto_tensor_new_for_object ((guint64) (guintptr) values, PTO_DTYPE_FLOAT32, 1,
                                                 (const guint64[]){ 4 }, owner);
  gpointer weak = owner;

  g_object_add_weak_pointer (owner, &weak);
  g_object_unref (owner);
  g_assert_nonnull (weak);
  g_assert_cmpuint (pto_tensor_get_address (tensor), ==, (guint64) (guintptr) values);
  g_assert_false (pto_tensor_is_read_only (tensor));
  pto_tensor_unref (tensor);
  g_assert_null (weak);
}

static void
test_bytes (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new ("0123456789abcdef", 16);
  const guint64 shape = 3;
  PtoTensor *tensor = pto_tensor_new_for_bytes (bytes, 4, PTO_DTYPE_FLOAT32, 1, &shape, &error);

  g_assert_no_error (error);
  g_assert_true (pto_tensor_is_read_only (tensor));
  g_assert_cmpmem ((gconstpointer) (guintptr) pto_tensor_get_address (tensor), 4, "4567", 4);
  g_clear_pointer (&bytes, g_bytes_unref);
  g_assert_cmpmem ((gconstpointer) (guintptr) pto_tensor_get_address (tensor), 4, "4567", 4);
  pto_tensor_unref (tensor);

  bytes = g_bytes_new ("0123456789abcdef", 16);
  g_assert_null (pto_tensor_new_for_bytes (bytes, 8, PTO_DTYPE_FLOAT32, 1, &shape, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "does not fit in bytes of 16 bytes");
}

/* --- on a chip --- */

typedef struct
{
  char *dir;
  PtoCallable *add;
  PtoCallable *add_scalar;
  PtoCallable *fill;
  PtoWorker *worker;
  PtoBuffer *buffer;
  PtoTensor *sum; /* of ELEMENTS, in buffer */
  guint released;
  GThread *thread;
  GMainLoop *loop;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;

  fixture->dir = object_test_make_dir ();
  fixture->add = object_test_kernel (fixture->dir, "add.c", object_test_add);
  fixture->add_scalar = object_test_kernel (fixture->dir, "add_scalar.c", object_test_add_scalar);
  fixture->fill = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  fixture->worker = pto_worker_new_chip ("a2a3sim", &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (fixture->worker, "backend", backend, &error);
  g_assert_no_error (error);
  pto_worker_start (fixture->worker, NULL, &error);
  g_assert_no_error (error);
  fixture->buffer = pto_buffer_new (ELEMENTS * sizeof (float), &error);
  g_assert_no_error (error);
  fixture->sum = pto_tensor_new_for_buffer (fixture->buffer, 0, PTO_DTYPE_FLOAT32, 1,
                                            (const guint64[]){ ELEMENTS }, &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *fixture, gconstpointer backend)
{
  g_clear_object (&fixture->worker);
  pto_tensor_unref (fixture->sum);
  pto_buffer_unref (fixture->buffer);
  g_object_unref (fixture->add);
  g_object_unref (fixture->add_scalar);
  g_object_unref (fixture->fill);
  object_test_remove_dir (fixture->dir);
}

#define PIECES 300

/* sum += piece, with pieces that nobody but the run knows any more. */
static gboolean
add_pieces (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  Fixture *fixture = data;

  for (guint i = 0; i < PIECES; i++)
    {
      g_autoptr (PtoTensor) piece = make_piece ((float) i, &fixture->released, fixture->thread);

      for (guint again = 0; again < 2; again++)
        if (!pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (fixture->sum),
                                           PTO_IN (piece), PTO_INOUT (fixture->sum), NULL))
          return FALSE;
    }
  g_assert_cmpuint (fixture->released, ==, 0);
  return TRUE;
}

static void
check_sum (Fixture *fixture, float expected)
{
  for (guint i = 0; i < ELEMENTS; i++)
    g_assert_cmpfloat (object_test_floats (fixture->buffer)[i], ==, expected);
}

static void
test_run_keeps (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;

  for (guint run = 1; run <= 2; run++)
    {
      fixture->released = 0;
      pto_worker_run (fixture->worker, add_pieces, fixture, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (fixture->released, ==, PIECES);
      check_sum (fixture, (float) (run * PIECES * (PIECES - 1)));
    }
}

static gboolean
fail_after_pieces (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                   gpointer data, GError **error)
{
  if (!add_pieces (orchestrator, args, config, data, error))
    return FALSE;
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "wanted by the test");
  return FALSE;
}

static void
test_failed_run_lets_go (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (
      pto_worker_run (fixture->worker, fail_after_pieces, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_FAILED);
  g_assert_cmpuint (fixture->released, ==, PIECES);
}

static void
finished (GObject *object, GAsyncResult *result, gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GError) error = NULL;

  if (g_async_result_is_tagged (result, (gpointer) pto_worker_run_async))
    pto_worker_run_finish (PTO_WORKER (object), result, &error);
  else
    pto_worker_run_callable_finish (PTO_WORKER (object), result, &error);
  g_assert_no_error (error);
  g_main_loop_quit (fixture->loop);
}

/* Let go of where the function is at home, which may be all that its language allows. */
static void
test_asynchronous_run (Fixture *fixture, gconstpointer backend)
{
  fixture->thread = g_thread_self ();
  fixture->loop = g_main_loop_new (NULL, FALSE);
  pto_worker_run_async (fixture->worker, add_pieces, fixture, NULL, NULL, NULL, NULL, finished,
                        fixture);
  g_main_loop_run (fixture->loop);
  while (fixture->released < PIECES)
    g_main_context_iteration (NULL, TRUE);
  check_sum (fixture, PIECES * (PIECES - 1));
  g_main_loop_unref (fixture->loop);
}

static PtoCallableHandle *
register_fill (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (fixture->dir, "orch.c", object_test_orchestration);
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (path, NULL, &error);
  PtoCallableHandle *handle;

  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, NULL, fixture->fill, &error);
  g_assert_no_error (error);
  handle = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_assert_no_error (error);
  return handle;
}

/* A registered run gets an address only; an asynchronous one outlives the caller's arguments. */
static void
test_registered_run (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  PtoCallableHandle *handle = register_fill (fixture);
  PtoTaskArgs *args = pto_task_args_new ();
  PtoTensor *piece = make_piece (0, &fixture->released, NULL);

  pto_task_args_add_tensor (args, piece, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (args, ELEMENTS);
  fixture->loop = g_main_loop_new (NULL, FALSE);
  pto_worker_run_callable_async (fixture->worker, handle, args, NULL, NULL, finished, fixture);
  pto_task_args_unref (args);
  pto_tensor_unref (piece);
  g_assert_cmpuint (fixture->released, ==, 0);
  g_main_loop_run (fixture->loop);
  while (fixture->released == 0)
    g_main_context_iteration (NULL, TRUE);
  g_main_loop_unref (fixture->loop);
  pto_callable_handle_unref (handle);
}

/* Two runs at once take the tensor's hint from each other, and still keep it once each. */
typedef struct
{
  Fixture *fixture;
  PtoWorker *worker;
  PtoTensor *shared;
} Sharer;

static gboolean
read_shared (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Sharer *sharer = data;
  g_autoptr (PtoTensor) out = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 1,
                                                            (const guint64[]){ ELEMENTS }, error);

  for (guint i = 0; i < 500 && out != NULL; i++)
    if (!pto_orchestrator_submit_full (orchestrator, sharer->fixture->add_scalar, error,
                                       PTO_IN (sharer->shared), PTO_OUT (out), PTO_SCALAR_FLOAT (1),
                                       NULL))
      return FALSE;
  return out != NULL;
}

static gpointer
run_sharer (gpointer data)
{
  Sharer *sharer = data;
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < 5; i++)
    {
      pto_worker_run (sharer->worker, read_shared, sharer, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
    }
  return NULL;
}

static void
test_two_workers (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *other = pto_worker_new_chip ("a2a3sim", &error);
  PtoTensor *shared = make_piece (1, &fixture->released, NULL);
  Sharer sharers[] = { { fixture, fixture->worker, shared }, { fixture, other, shared } };
  GThread *thread;

  g_assert_no_error (error);
  pto_worker_set_parameter (other, "backend", backend, &error);
  pto_worker_start (other, NULL, &error);
  g_assert_no_error (error);
  thread = g_thread_new ("other", run_sharer, &sharers[1]);
  run_sharer (&sharers[0]);
  g_thread_join (thread);
  g_assert_cmpuint (fixture->released, ==, 0);
  pto_tensor_unref (shared);
  g_assert_cmpuint (fixture->released, ==, 1);
  g_object_unref (other);
}

/* --- what may not be written --- */

typedef struct
{
  Fixture *fixture;
  PtoTensor *tensor;
  PtoDirection direction;
} Refused;

static gboolean
fill_it (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
         GError **error)
{
  Refused *refused = data;
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();

  pto_task_args_add_tensor (task, refused->tensor, refused->direction);
  pto_task_args_add_scalar_float (task, 5);
  return pto_orchestrator_submit (orchestrator, refused->fixture->fill, task, error);
}

static void
test_read_only (Fixture *fixture, gconstpointer backend)
{
  static const PtoDirection directions[]
      = { PTO_DIRECTION_OUTPUT, PTO_DIRECTION_INOUT, PTO_DIRECTION_OUTPUT_EXISTING };
  static const char *const names[] = { "an output", "an inout", "an existing output" };
  g_autoptr (GBytes) bytes = g_bytes_new_static ("0123456789abcdef", 16);
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTensor) whole
      = pto_tensor_new_for_bytes (bytes, 0, PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 4 }, &error);
  g_autoptr (PtoTensor) view
      = pto_tensor_view (whole, 1, (const guint64[]){ 2 }, (const guint64[]){ 2 }, &error);
  Refused refused = { fixture, view, PTO_DIRECTION_OUTPUT };

  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (directions); i++)
    {
      g_autofree char *expected = g_strdup_printf (
          "kernel \"fill\": argument 0 is %s, but its memory can only be read", names[i]);

      refused.direction = directions[i];
      g_assert_false (
          pto_worker_run (fixture->worker, fill_it, &refused, NULL, NULL, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, expected);
      g_clear_error (&error);
    }
  g_assert_cmpmem (g_bytes_get_data (bytes, NULL), 16, "0123456789abcdef", 16);

  /* The same memory can be written by another name. */
  refused.tensor = fixture->sum;
  pto_worker_run (fixture->worker, fill_it, &refused, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  check_sum (fixture, 5);
  refused.tensor = pto_tensor_as_read_only (fixture->sum);
  g_assert_false (pto_worker_run (fixture->worker, fill_it, &refused, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  pto_tensor_unref (refused.tensor);
}

/* Only the address is known: the system says that it can not be written. */
static void
test_read_only_mapping (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  PtoCallableHandle *handle = register_fill (fixture);
  gsize size = ELEMENTS * sizeof (float);
  Refused refused = { fixture, NULL, PTO_DIRECTION_OUTPUT_EXISTING };
  void *mapping = mmap (NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_autoptr (PtoTensor) tensor = pto_tensor_new_external (
      (guint64) (guintptr) mapping, PTO_DTYPE_FLOAT32, 1, (const guint64[]){ ELEMENTS });

  g_assert_true (mapping != MAP_FAILED);
  if (madvise (mapping, size, 23 /* MADV_POPULATE_WRITE */) == 0 || errno != EINVAL)
    {
      g_test_skip ("this system does not say what can be written");
      return;
    }
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (args, ELEMENTS);
  g_assert_false (pto_worker_run_callable (fixture->worker, handle, args, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "orchestration \"orch\": argument 0 is an existing "
                                               "output, but its memory can only be read");
  g_clear_error (&error);
  refused.tensor = tensor;
  g_assert_false (pto_worker_run (fixture->worker, fill_it, &refused, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message,
                               "argument 0 is an existing output, but its memory can only be read");
  g_clear_error (&error);
  g_assert_cmpint (mprotect (mapping, size, PROT_READ | PROT_WRITE), ==, 0);
  pto_worker_run (fixture->worker, fill_it, &refused, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (((float *) mapping)[ELEMENTS - 1], ==, 5);
  pto_worker_run_callable (fixture->worker, handle, args, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (((float *) mapping)[ELEMENTS - 1], ==, 7);
  munmap (mapping, size);
  pto_callable_handle_unref (handle);
}

/* --- numbers --- */

/* out = what a kernel reads of four numbers, as doubles */
static const char read_scalars[] = "#include \"tensor.h\"\n"
                                   "void kernel_entry (int64_t *args)\n"
                                   "{\n"
                                   "  const TensorData *out = (const TensorData *) args[0];\n"
                                   "  int64_t *words = (int64_t *) out->buffer.addr;\n"
                                   "  double wide = pto_scalar_double (args[4]);\n"
                                   "  words[0] = (uint64_t) args[1];\n"
                                   "  words[1] = args[2];\n"
                                   "  words[2] = (int64_t) (pto_scalar_float (args[3]) * 1024);\n"
                                   "  words[3] = (int64_t) (wide * (1LL << 60));\n"
                                   "}\n";

typedef struct
{
  PtoCallable *kernel;
  PtoTensor *out;
  double number; /* given as a float */
} Numbers;

static gboolean
give_numbers (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Numbers *numbers = data;

  return pto_orchestrator_submit_full (orchestrator, numbers->kernel, error,
                                       PTO_OUT_EXISTING (numbers->out), PTO_SCALAR (G_MAXUINT64),
                                       PTO_SCALAR_SIGNED (-2), PTO_SCALAR_FLOAT (numbers->number),
                                       PTO_SCALAR_DOUBLE (0x1p-60 + 0x1p-10), NULL);
}

static void
test_numbers_at_a_kernel (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "read.c", read_scalars);
  g_autoptr (PtoTensor) out = pto_tensor_new_for_buffer (fixture->buffer, 0, PTO_DTYPE_INT64, 1,
                                                         (const guint64[]){ 4 }, &error);
  const gint64 *words = (gconstpointer) object_test_floats (fixture->buffer);
  Numbers numbers = { kernel, out, 2.5 };

  pto_worker_run (fixture->worker, give_numbers, &numbers, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (words[0], ==, -1);
  g_assert_cmpint (words[1], ==, -2);
  g_assert_cmpint (words[2], ==, 2560);
  g_assert_cmpint (words[3], ==, (1LL << 50) + 1);

  numbers.number = -1e39;
  g_assert_false (
      pto_worker_run (fixture->worker, give_numbers, &numbers, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message,
                               "kernel \"read\": argument 3: -1e+39 is too large for a float");
}

/* --- levels 3 and 4 --- */

enum
{
  WORD_ASKED = 8, /* kinds of the numbers, then their values as bits of a double */
  WORD_VALUES = 16,
  WORD_READ = 24
};

static void
add_numbers (PtoTaskArgs *args)
{
  pto_task_args_add_scalar (args, G_MAXUINT64);
  pto_task_args_add_scalar_signed (args, -2);
  pto_task_args_add_scalar_float (args, 0.1);
  pto_task_args_add_scalar_double (args, 0.1);
}

/* args: board; numbers. */
static gboolean
note_numbers (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  for (guint i = 0; i < 4; i++)
    {
      double value = pto_task_args_get_scalar_double (args, 1 + i);
      guint64 bits;

      memcpy (&bits, &value, sizeof bits);
      words[WORD_ASKED + i] = pto_task_args_get_scalar_kind (args, 1 + i);
      words[WORD_VALUES + i] = bits;
    }
  words[WORD_READ] = pto_task_args_get_scalar (args, 2);
  return TRUE;
}

static void
check_numbers (LevelTestBoard *board)
{
  static const double values[] = { 0x1p64, -2, 0.1, 0.1 };

  for (guint i = 0; i < 4; i++)
    {
      guint64 bits = board->words[WORD_VALUES + i];
      double value;

      memcpy (&value, &bits, sizeof value);
      g_assert_cmpuint (board->words[WORD_ASKED + i], ==, i);
      g_assert_cmpfloat (value, ==, values[i]);
    }
  g_assert_cmpint ((gint64) board->words[WORD_READ], ==, -2);
}

typedef struct
{
  PtoCallableHandle *handle;
  LevelTestBoard *board;
  gboolean group;
  guint released;
} LevelRun;

static gboolean
submit_numbers (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  LevelRun *run = data;
  g_autoptr (PtoTaskArgs) first = pto_task_args_new ();
  g_autoptr (PtoTaskArgs) second = pto_task_args_new ();
  PtoTaskArgs *members[] = { second, first };

  pto_task_args_add_tensor (first, run->board->tensor, PTO_DIRECTION_INOUT);
  add_numbers (first);
  /* The other member's numbers are of other kinds, and come first. */
  pto_task_args_add_tensor (second, run->board->tensor, PTO_DIRECTION_NO_DEP);
  for (guint i = 0; i < 30; i++)
    pto_task_args_add_scalar (second, i);
  if (run->group)
    return pto_orchestrator_submit_sub_group (orchestrator, run->handle, members, 2, NULL, 0,
                                              error);
  return pto_orchestrator_submit_sub (orchestrator, run->handle, first, -1, error);
}

/* The member with 30 numbers has nothing to say. */
static gboolean
note_own_numbers (PtoTaskArgs *args, gpointer data, GError **error)
{
  return pto_task_args_get_n_scalars (args) == 30
             ? pto_task_args_get_scalar_kind (args, 7) == PTO_SCALAR_KIND_UNSIGNED
             : note_numbers (args, data, error);
}

static void
test_numbers_at_a_function (void)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *host = level_test_host (3, 0, 2);
  PtoCallableHandle *handle = level_test_register (host, "note", note_own_numbers);
  LevelTestBoard board;
  LevelRun run = { handle, &board, FALSE };

  level_test_board_init (&board);
  for (guint group = 0; group < 2; group++)
    {
      run.group = group == 1;
      for (guint i = WORD_ASKED; i <= WORD_READ; i++)
        board.words[i] = 99;
      pto_worker_run (host, submit_numbers, &run, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      check_numbers (&board);
    }
  pto_callable_handle_unref (handle);
  g_object_unref (host);
  level_test_board_clear (&board);
}

static gboolean
note_as_orchestration (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                       gpointer data, GError **error)
{
  return note_numbers (args, NULL, error);
}

static gboolean
submit_to_level_3 (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                   gpointer data, GError **error)
{
  LevelRun *run = data;
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();

  pto_task_args_add_tensor (task, run->board->tensor, PTO_DIRECTION_INOUT);
  add_numbers (task);
  return pto_orchestrator_submit_next_level (orchestrator, run->handle, task, NULL, -1, error);
}

static void
test_numbers_at_level_4 (void)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *top = level_test_host (4, 0, 0);
  PtoWorker *middle = level_test_host (3, 0, 1);
  g_autoptr (PtoCallable) callable
      = pto_orchestration_function_new ("note", note_as_orchestration, NULL, NULL);
  PtoCallableHandle *handle = pto_worker_register (top, callable, NULL, &error);
  LevelTestBoard board;
  LevelRun run = { handle, &board, FALSE };

  g_assert_no_error (error);
  level_test_board_init (&board);
  g_assert_true (pto_worker_add_worker (top, middle, &error));
  pto_worker_run (top, submit_to_level_3, &run, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  check_numbers (&board);
  pto_callable_handle_unref (handle);
  g_object_unref (middle);
  g_object_unref (top);
  level_test_board_clear (&board);
}

/* A float is one for the orchestration of a chip, also by way of level 3. */
static const char float_orchestration[]
    = "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int n)\n"
      "{\n"
      "  return (PTO2OrchestrationConfig){ 5 };\n"
      "}\n"
      "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)\n"
      "{\n"
      "  uint64_t shape = 4;\n"
      "  Tensor f = make_tensor_external ((void *) args[0], &shape, 1, PTO_DTYPE_INT64);\n"
      "  PTOParam params[] = { make_output_existing_param (f), make_scalar_param (args[1]),\n"
      "                        make_signed_param ((int64_t) args[2]),\n"
      "                        make_float_param (pto_scalar_float ((int64_t) args[3])),\n"
      "                        make_double_param (pto_scalar_double ((int64_t) args[4])) };\n"
      "  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 5);\n"
      "  return 0;\n"
      "}\n";

static gboolean
submit_to_chip (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  LevelRun *run = data;
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();

  pto_task_args_add_tensor (task, run->board->tensor, PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar (task, G_MAXUINT64);
  pto_task_args_add_scalar_signed (task, -2);
  pto_task_args_add_scalar_float (task, 2.5);
  pto_task_args_add_scalar_double (task, 0x1p-60 + 0x1p-10);
  return pto_orchestrator_submit_next_level (orchestrator, run->handle, task, NULL, -1, error);
}

static void
test_numbers_at_a_chip (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = object_test_make_dir ();
  g_autofree char *path = object_test_write (dir, "float_orch.c", float_orchestration);
  g_autoptr (PtoCallable) kernel = object_test_kernel (dir, "read.c", read_scalars);
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (path, NULL, &error);
  PtoWorker *host = level_test_host (3, 1, 0);
  PtoCallableHandle *handle;
  LevelTestBoard board;
  LevelRun run = { NULL, &board, FALSE };

  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "read", kernel, &error);
  g_assert_no_error (error);
  handle = run.handle = pto_worker_register (host, chip, NULL, &error);
  g_assert_no_error (error);
  level_test_board_init (&board);
  pto_worker_run (host, submit_to_chip, &run, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint ((gint64) board.words[0], ==, -1);
  g_assert_cmpint ((gint64) board.words[1], ==, -2);
  g_assert_cmpint ((gint64) board.words[2], ==, 2560);
  g_assert_cmpint ((gint64) board.words[3], ==, (1LL << 50) + 1);
  pto_callable_handle_unref (handle);
  g_object_unref (host);
  level_test_board_clear (&board);
  object_test_remove_dir (dir);
}

static void
release_board (gpointer data)
{
  LevelRun *run = data;

  run->released++;
}

/* A tensor over the board that goes when nobody needs it. */
static gboolean
submit_and_drop (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  LevelRun *run = data;

  for (guint i = 0; i < 20; i++)
    {
      g_autoptr (PtoTensor) tensor = pto_tensor_new_external_full (
          (guint64) (guintptr) run->board->words, PTO_DTYPE_UINT64, 1,
          (const guint64[]){ LEVEL_TEST_WORDS }, run, release_board);

      if (!level_test_submit (orchestrator, run->handle, tensor, PTO_DIRECTION_INOUT, 1, -1, error))
        return FALSE;
    }
  g_assert_cmpuint (run->released, ==, 0);
  return TRUE;
}

/* args: board; number. */
static gboolean
count (PtoTaskArgs *args, gpointer data, GError **error)
{
  level_test_words (args, 0)[0] += pto_task_args_get_scalar (args, 1);
  return TRUE;
}

static gboolean
submit_read_only (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                  gpointer data, GError **error)
{
  LevelRun *run = data;
  g_autoptr (PtoTensor) tensor = pto_tensor_as_read_only (run->board->tensor);

  return level_test_submit (orchestrator, run->handle, tensor, PTO_DIRECTION_INPUT, 1, -1, error)
         && level_test_submit (orchestrator, run->handle, tensor, PTO_DIRECTION_INOUT, 1, -1,
                               error);
}

static void
test_level_keeps (void)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *host = level_test_host (3, 0, 2);
  PtoCallableHandle *handle = level_test_register (host, "count", count);
  LevelTestBoard board;
  LevelRun run = { handle, &board, FALSE };

  level_test_board_init (&board);
  pto_worker_run (host, submit_and_drop, &run, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (run.released, ==, 20);
  g_assert_cmpuint (board.words[0], ==, 20);

  g_assert_false (pto_worker_run (host, submit_read_only, &run, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (
      error->message, "task of \"count\": argument 0 is an inout, but its memory can only be read");
  g_assert_cmpuint (board.words[0], ==, 21);
  pto_callable_handle_unref (handle);
  g_object_unref (host);
  level_test_board_clear (&board);
}

static gboolean
allocate (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
          GError **error)
{
  PtoTensor **kept = data;

  *kept = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_UINT64, 1, (const guint64[]){ 4 }, error);
  return *kept != NULL;
}

/* What somebody still looks at is there, whatever it holds by then. */
static void
test_allocated_outlives_worker (void)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *host = level_test_host (3, 0, 1);
  PtoTensor *kept = NULL;
  PtoTensor *view;
  gulong page = (gulong) sysconf (_SC_PAGESIZE);
  guint64 address;

  pto_worker_run (host, allocate, &kept, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  view = pto_tensor_view (kept, 1, (const guint64[]){ 2 }, (const guint64[]){ 2 }, &error);
  g_assert_no_error (error);
  address = pto_tensor_get_address (kept);
  g_object_unref (host);
  pto_tensor_unref (kept);
  g_assert_cmpuint (*(const guint64 *) (guintptr) pto_tensor_get_address (view), ==, 0);
  pto_tensor_unref (view);
  /* And then it is gone. */
  g_assert_cmpint (msync ((void *) (guintptr) (address & ~(guint64) (page - 1)), page, MS_ASYNC),
                   ==, -1);
  g_assert_cmpint (errno, ==, ENOMEM);
}

int
main (int argc, char **argv)
{
  static const char *const backends[] = { "par", "det", "threads" };
  static const struct
  {
    const char *name;
    void (*func) (Fixture *fixture, gconstpointer backend);
  } tests[] = {
    { "run-keeps", test_run_keeps },
    { "failed-run-lets-go", test_failed_run_lets_go },
    { "asynchronous-run", test_asynchronous_run },
    { "registered-run", test_registered_run },
    { "two-workers", test_two_workers },
    { "read-only", test_read_only },
    { "read-only-mapping", test_read_only_mapping },
    { "numbers-at-a-kernel", test_numbers_at_a_kernel },
  };

  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/arguments/tensor-bytes", test_tensor_bytes);
  g_test_add_func ("/pto/arguments/views-and-arguments", test_views_and_arguments);
  g_test_add_func ("/pto/arguments/object", test_object);
  g_test_add_func ("/pto/arguments/bytes", test_bytes);
  for (guint b = 0; b < G_N_ELEMENTS (backends); b++)
    for (guint i = 0; i < G_N_ELEMENTS (tests); i++)
      {
        g_autofree char *path
            = g_strdup_printf ("/pto/arguments/%s/%s", backends[b], tests[i].name);

        g_test_add (path, Fixture, backends[b], set_up, tests[i].func, tear_down);
      }
  g_test_add_func ("/pto/arguments/numbers-at-a-function", test_numbers_at_a_function);
  g_test_add_func ("/pto/arguments/numbers-at-level-4", test_numbers_at_level_4);
  g_test_add_func ("/pto/arguments/numbers-at-a-chip", test_numbers_at_a_chip);
  g_test_add_func ("/pto/arguments/level-keeps", test_level_keeps);
  g_test_add_func ("/pto/arguments/allocated-outlives-worker", test_allocated_outlives_worker);
  return g_test_run ();
}
