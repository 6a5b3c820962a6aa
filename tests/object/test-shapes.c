/* test-shapes.c: what does a chip's orchestration know of the tensors that it is given?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <string.h>

#define ROWS 3
#define COLUMNS 8

/* C and C++. Says what it sees of a tensor in the words of another one, and has a kernel lay the
 * elements of the first one side by side. The last argument says what it asks for in vain. */
static const char orchestration[]
    = "#include \"pto_orchestration_api.h\"\n"
      "#ifdef __cplusplus\n"
      "#define NUMEL(t) t.numel ()\n"
      "extern \"C\" {\n"
      "#else\n"
      "#define NUMEL(t) pto2_tensor_numel (&t)\n"
      "#endif\n"
      "PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int n)\n"
      "{\n"
      "  PTO2OrchestrationConfig config = { 4 };\n"
      "  return config;\n"
      "}\n"
      "static void say (PTO2Runtime *rt, Tensor said, uint64_t at, uint64_t value)\n"
      "{\n"
      "  uint64_t one[] = { 1 };\n"
      "  Tensor word = pto2_tensor_view (&said, one, &at);\n"
      "  PTOParam params[] = { make_output_existing_param (word), make_scalar_param (value) };\n"
      "  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);\n"
      "}\n"
      "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)\n"
      "{\n"
      "  Tensor x = pto2_rt_arg_tensor (rt, 0);\n"
      "  Tensor flat = pto2_rt_arg_tensor (rt, 1);\n"
      "  Tensor said = pto2_rt_arg_tensor (rt, 2);\n"
      "  PTOParam params[] = { make_input_param (x), make_output_existing_param (flat) };\n"
      "  say (rt, said, 0, x.ndims);\n"
      "  say (rt, said, 1, (uint64_t) x.dtype);\n"
      "  say (rt, said, 2, NUMEL (x));\n"
      "  say (rt, said, 3, x.shapes[0] * 100 + x.shapes[1]);\n"
      "  say (rt, said, 4, x.strides[0] * 100 + x.strides[1]);\n"
      "  say (rt, said, 5, x.buffer.addr + x.start_offset * 2 == args[0]);\n"
      "  say (rt, said, 6, flat.ndims * 100 + NUMEL (flat));\n"
      "  say (rt, said, 7, (uint64_t) said.dtype * 100 + NUMEL (said));\n"
      "  pto2_rt_submit_task (rt, 1, PTO2_WORKER_VECTOR, params, 2);\n"
      "  if (args[3] == 0)\n"
      "    return 0;\n"
      "  return pto2_rt_arg_tensor (rt, args[3] == 1 ? 3 : (int32_t) args[3]).ndims == 0 ? 0 : 1;\n"
      "}\n"
      "#ifdef __cplusplus\n"
      "}\n"
      "#endif\n";

static const char kernel_put[]
    = "#include \"tensor.h\"\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *out = (const TensorData *) args[0];\n"
      "  ((uint64_t *) out->buffer.addr)[out->start_offset] = (uint64_t) args[1];\n"
      "}\n";

static const char kernel_flatten[]
    = "#include \"tensor.h\"\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *x = (const TensorData *) args[0];\n"
      "  const TensorData *out = (const TensorData *) args[1];\n"
      "  const int16_t *from = (const int16_t *) x->buffer.addr + x->start_offset;\n"
      "  int16_t *to = (int16_t *) out->buffer.addr + out->start_offset;\n"
      "  for (uint64_t i = 0; i < x->shapes[0]; i++)\n"
      "    for (uint64_t j = 0; j < x->shapes[1]; j++)\n"
      "      *to++ = from[i * x->strides[0] + j * x->strides[1]];\n"
      "}\n";

static PtoCallable *
make_callable (const char *dir, const char *file)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (dir, file, orchestration);
  g_autoptr (PtoCallable) put = object_test_kernel (dir, "put.c", kernel_put);
  g_autoptr (PtoCallable) flatten = object_test_kernel (dir, "flatten.c", kernel_flatten);
  PtoCallable *chip = pto_chip_orchestration_new (path, NULL, &error);

  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "put", put, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 1, "flatten", flatten, &error);
  g_assert_no_error (error);
  return chip;
}

/* --- a chip at any depth below the worker that runs --- */

typedef struct
{
  PtoWorker *workers[3]; /* from the top; the last one is a chip */
  guint n_workers;
  PtoCallableHandle *chip; /* on whoever is above the chip, or on the chip */
  PtoCallableHandle *next; /* on the one of level 4 */
} Tower;

static gboolean
pass_on (PtoOrchestrator *orchestrator, PtoCallableHandle *handle, PtoTaskArgs *args,
         GError **error)
{
  g_autoptr (PtoTaskArgs) copy = pto_task_args_new ();

  for (guint i = 0; i < 3; i++)
    pto_task_args_add_tensor (copy, pto_task_args_get_tensor (args, i),
                              i == 0 ? PTO_DIRECTION_INPUT : PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar (copy, pto_task_args_get_scalar (args, 3));
  return pto_orchestrator_submit_next_level (orchestrator, handle, copy, NULL, -1, error);
}

static gboolean
to_chip (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
         GError **error)
{
  return pass_on (orchestrator, ((Tower *) data)->chip, args, error);
}

static gboolean
to_level_3 (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  return pass_on (orchestrator, ((Tower *) data)->next, args, error);
}

static void
build (Tower *tower, guint level, gboolean isolate, const char *backend, PtoCallable *callable)
{
  g_autoptr (PtoCallable) function
      = pto_orchestration_function_new ("to-chip", to_chip, tower, NULL);
  g_autoptr (GError) error = NULL;
  PtoWorker *above;

  tower->n_workers = level - 1;
  for (guint i = 0; i < tower->n_workers; i++)
    tower->workers[i] = g_object_new (PTO_TYPE_WORKER, "level", level - i, "isolate",
                                      isolate && level == 2, NULL);
  pto_worker_set_parameter (tower->workers[level - 2], "backend", backend, &error);
  g_assert_no_error (error);
  above = tower->workers[level > 2 ? level - 3 : 0];
  tower->chip = pto_worker_register (above, callable, NULL, &error);
  g_assert_no_error (error);
  if (level == 4)
    tower->next = pto_worker_register (tower->workers[0], function, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 1; i < tower->n_workers; i++)
    {
      pto_worker_add_worker (tower->workers[i - 1], tower->workers[i], &error);
      g_assert_no_error (error);
    }
}

static gboolean
run (Tower *tower, PtoTaskArgs *args, GError **error)
{
  if (tower->n_workers == 1)
    return pto_worker_run_callable (tower->workers[0], tower->chip, args, NULL, NULL, error);
  return pto_worker_run (tower->workers[0], tower->n_workers == 2 ? to_chip : to_level_3, tower,
                         args, NULL, NULL, error);
}

static void
take_apart (Tower *tower)
{
  pto_worker_close (tower->workers[0]);
  g_clear_pointer (&tower->chip, pto_callable_handle_unref);
  g_clear_pointer (&tower->next, pto_callable_handle_unref);
  for (guint i = 0; i < tower->n_workers; i++)
    g_object_unref (tower->workers[i]);
}

/* --- what it is given --- */

typedef struct
{
  PtoBuffer *buffers[3];
  PtoTensor *tensors[3]; /* x, int16; its elements, int16; words, uint64 */
} Given;

/* strided: x is columns 2 to 4 of a matrix, turned. Otherwise it is a matrix of that shape. */
static void
given_init (Given *given, gboolean strided)
{
  static const PtoDtype dtypes[] = { PTO_DTYPE_INT16, PTO_DTYPE_INT16, PTO_DTYPE_UINT64 };
  static const guint64 lengths[] = { COLUMNS * COLUMNS, ROWS * COLUMNS, 8 };
  g_autoptr (GError) error = NULL;
  gint16 *words;

  for (guint i = 0; i < 3; i++)
    {
      given->buffers[i] = pto_buffer_new (lengths[i] * pto_dtype_get_size (dtypes[i]), &error);
      g_assert_no_error (error);
      given->tensors[i]
          = pto_tensor_new_for_buffer (given->buffers[i], 0, dtypes[i], 1, &lengths[i], &error);
      g_assert_no_error (error);
    }
  pto_tensor_unref (given->tensors[0]);
  given->tensors[0]
      = pto_tensor_new_for_buffer (given->buffers[0], 0, PTO_DTYPE_INT16, 2,
                                   (const guint64[]){ strided ? COLUMNS : ROWS, COLUMNS }, &error);
  g_assert_no_error (error);
  if (strided)
    {
      g_autoptr (PtoTensor) part
          = pto_tensor_view (given->tensors[0], 2, (const guint64[]){ COLUMNS, ROWS },
                             (const guint64[]){ 0, 2 }, &error);

      g_assert_no_error (error);
      pto_tensor_unref (given->tensors[0]);
      given->tensors[0] = pto_tensor_transpose (part, 0, 1, &error);
      g_assert_no_error (error);
    }
  words = (gint16 *) (guintptr) pto_buffer_get_address (given->buffers[0]);
  for (int i = 0; i < COLUMNS * COLUMNS; i++)
    words[i] = (gint16) (i - 20);
}

static void
given_clear (Given *given)
{
  for (guint i = 0; i < 3; i++)
    {
      pto_tensor_unref (given->tensors[i]);
      pto_buffer_unref (given->buffers[i]);
    }
}

static PtoTaskArgs *
make_args (const Given *given, guint64 in_vain)
{
  PtoTaskArgs *args = pto_task_args_new ();

  pto_task_args_add_tensor (args, given->tensors[0], PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, given->tensors[1], PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_tensor (args, given->tensors[2], PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar (args, in_vain);
  return args;
}

static void
check (const Given *given, gboolean strided)
{
  const guint64 expected[] = { 2,
                               PTO_DTYPE_INT16,
                               ROWS * COLUMNS,
                               ROWS * 100 + COLUMNS,
                               strided ? 100 + COLUMNS : COLUMNS * 100 + 1,
                               1,
                               100 + ROWS * COLUMNS,
                               PTO_DTYPE_UINT64 * 100 + 8 };
  const guint64 *said = (const guint64 *) (guintptr) pto_buffer_get_address (given->buffers[2]);
  const gint16 *flat = (const gint16 *) (guintptr) pto_buffer_get_address (given->buffers[1]);

  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    g_assert_cmpuint (said[i], ==, expected[i]);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++)
      g_assert_cmpint (flat[i * COLUMNS + j], ==,
                       strided ? j * COLUMNS + i + 2 - 20 : i * COLUMNS + j - 20);
}

/* --- tests --- */

typedef struct
{
  guint level;
  gboolean isolate;
  const char *backend;
  const char *file;
} Case;

static void
run_once (Tower *tower, gboolean strided)
{
  g_autoptr (PtoTaskArgs) args = NULL;
  g_autoptr (GError) error = NULL;
  Given given;

  given_init (&given, strided);
  args = make_args (&given, 0);
  run (tower, args, &error);
  g_assert_no_error (error);
  check (&given, strided);
  given_clear (&given);
}

static void
run_in_vain (Tower *tower, guint64 in_vain, const char *message)
{
  g_autoptr (PtoTaskArgs) args = NULL;
  g_autoptr (GError) error = NULL;
  Given given;

  given_init (&given, FALSE);
  args = make_args (&given, in_vain);
  g_assert_false (run (tower, args, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, message);
  given_clear (&given);
}

static void
test_shapes (gconstpointer data)
{
  const Case *test = data;
  char *dir = object_test_make_dir ();
  g_autoptr (PtoCallable) callable = make_callable (dir, test->file);
  Tower tower = { 0 };

  build (&tower, test->level, test->isolate, test->backend, callable);
  run_once (&tower, FALSE);
  /* Between workers a tensor is contiguous. */
  if (test->level == 2)
    run_once (&tower, TRUE);
  run_in_vain (&tower, 1, ", but it is a number (1): read args[3], or give the run a tensor there");
  run_in_vain (&tower, 4, "the orchestration asks for argument 4 as a tensor at ");
  run_in_vain (&tower, (guint64) G_MAXUINT32, ", but the run has 4 arguments, from 0 on");
  run_once (&tower, FALSE);
  take_apart (&tower);
  g_clear_object (&callable);
  object_test_remove_dir (dir);
}

int
main (int argc, char **argv)
{
  static const struct
  {
    const char *name;
    guint level;
    gboolean isolate;
  } places[] = {
    { "chip", 2, FALSE }, { "isolated", 2, TRUE }, { "level-3", 3, FALSE }, { "level-4", 4, FALSE }
  };
  static const char *const backends[] = { "par", "det", "threads" };
  static const char *const files[] = {
    "shapes.c",
#ifdef HAVE_CPP
    "shapes.cpp",
#endif
  };
  static Case cases[G_N_ELEMENTS (places) * G_N_ELEMENTS (backends) * G_N_ELEMENTS (files)];
  guint n = 0;

  g_test_init (&argc, &argv, NULL);
  for (guint p = 0; p < G_N_ELEMENTS (places); p++)
    for (guint b = 0; b < G_N_ELEMENTS (backends); b++)
      for (guint f = 0; f < G_N_ELEMENTS (files); f++)
        {
          g_autofree char *path
              = g_strdup_printf ("/pto/shapes/%s/%s/%s", places[p].name, backends[b], files[f]);

          cases[n] = (Case){ places[p].level, places[p].isolate, backends[b], files[f] };
          g_test_add_data_func (path, &cases[n++], test_shapes);
        }
  return g_test_run ();
}
