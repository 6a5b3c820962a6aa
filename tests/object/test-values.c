/* test-values.c: are the boxed values of the object layer what they claim?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void
test_dtype_sizes (void)
{
  static const guint sizes[] = { 4, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 1, 1, 1 };

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    g_assert_cmpuint (pto_dtype_get_size ((PtoDtype) i), ==, sizes[i]);
  g_assert_cmpuint (pto_dtype_get_size ((PtoDtype) 16), ==, 0);
}

static void
test_enums_registered (void)
{
  g_autoptr (GEnumClass) dtypes = g_type_class_ref (PTO_TYPE_DTYPE);
  g_autoptr (GEnumClass) errors = g_type_class_ref (PTO_TYPE_ERROR);

  g_assert_cmpuint (dtypes->n_values, ==, PTO_DTYPE_COUNT);
  g_assert_cmpstr (g_enum_get_value (dtypes, PTO_DTYPE_BFLOAT16)->value_nick, ==, "bfloat16");
  g_assert_cmpstr (g_enum_get_value (errors, PTO_ERROR_COMPILE)->value_nick, ==, "compile");
  g_assert_cmpint (PTO_ERROR, ==, g_quark_from_string ("pto-error-quark"));
}

static void
test_version (void)
{
  g_autofree char *text
      = g_strdup_printf ("%d.%d.%d", PTO_MAJOR_VERSION, PTO_MINOR_VERSION, PTO_MICRO_VERSION);

  g_assert_cmpstr (text, ==, PTO_VERSION_S);
  g_assert_cmpuint (pto_get_major_version (), ==, PTO_MAJOR_VERSION);
  g_assert_cmpuint (pto_get_minor_version (), ==, PTO_MINOR_VERSION);
  g_assert_cmpuint (pto_get_micro_version (), ==, PTO_MICRO_VERSION);
}

/* The macro and the function say the same, on either side of each number. */
static void
test_check_version (void)
{
  const int major = PTO_MAJOR_VERSION, minor = PTO_MINOR_VERSION, micro = PTO_MICRO_VERSION;
  const struct
  {
    int major, minor, micro;
    gboolean is;
  } cases[] = {
    { major, minor, micro, TRUE },
    { major, minor, micro + 1, FALSE },
    { major, minor + 1, 0, FALSE },
    { major + 1, 0, 0, FALSE },
    { 0, 1, 0, TRUE },
    { 0, 0, 99, TRUE },
    { G_MAXINT, G_MAXINT, G_MAXINT, FALSE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_assert_true (PTO_CHECK_VERSION (cases[i].major, cases[i].minor, cases[i].micro)
                     == cases[i].is);
      g_assert_true (
          pto_check_version ((guint) cases[i].major, (guint) cases[i].minor, (guint) cases[i].micro)
          == cases[i].is);
    }
}

static void
test_buffer (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (10000, &error);
  g_autoptr (GBytes) bytes = NULL;
  guint8 *memory;
  void *again;

  g_assert_no_error (error);
  g_assert_cmpuint (pto_buffer_get_size (buffer), ==, 10000);
  memory = (guint8 *) (guintptr) pto_buffer_get_address (buffer);
  for (guint i = 0; i < 10000; i++)
    g_assert_cmpuint (memory[i], ==, 0);
  memory[5] = 42;
  bytes = pto_buffer_ref_bytes (buffer);
  g_assert_true (g_bytes_get_data (bytes, NULL) == memory);
  g_assert_cmpuint (g_bytes_get_size (bytes), ==, 10000);
  g_assert_cmpint (pto_buffer_get_fd (buffer), >=, 0);
  again = mmap (NULL, 10000, PROT_READ, MAP_SHARED, pto_buffer_get_fd (buffer), 0);
  g_assert_true (again != MAP_FAILED);
  g_assert_cmpuint (((guint8 *) again)[5], ==, 42);
  munmap (again, 10000);

  /* The bytes keep the memory. */
  g_clear_pointer (&buffer, pto_buffer_unref);
  g_assert_cmpuint (((const guint8 *) g_bytes_get_data (bytes, NULL))[5], ==, 42);
}

/* Whoever has the descriptor can not cut the memory short; a limit of file sizes ends nothing. */
static void
test_buffer_file (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (10000, &error);
  g_autoptr (PtoBuffer) without = NULL;
  struct rlimit before, small;

  g_assert_no_error (error);
  g_assert_cmpint (ftruncate (pto_buffer_get_fd (buffer), 0), ==, -1);
  g_assert_cmpint (errno, ==, EPERM);
  getrlimit (RLIMIT_FSIZE, &before);
  small = (struct rlimit){ .rlim_cur = 1024, .rlim_max = before.rlim_max };
  setrlimit (RLIMIT_FSIZE, &small);
  without = pto_buffer_new (10000, &error);
  setrlimit (RLIMIT_FSIZE, &before);
  g_assert_no_error (error);
  g_assert_cmpint (pto_buffer_get_fd (without), ==, -1);
  ((guint8 *) (guintptr) pto_buffer_get_address (without))[9999] = 3;
}

static void
test_buffer_refused (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (pto_buffer_new (0, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_null (pto_buffer_new (G_MAXUINT64, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
}

static void
test_tensor_shape (void)
{
  const guint64 shape[] = { 2, 3, 4 };
  g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_INT16, 3, shape);
  g_autoptr (PtoTensor) copy = g_boxed_copy (PTO_TYPE_TENSOR, tensor);
  g_autofree char *text = pto_tensor_to_string (tensor);
  const guint64 *values;
  gsize n = 0;

  g_assert_true (copy == tensor);
  g_assert_cmpuint (pto_tensor_get_dtype (tensor), ==, PTO_DTYPE_INT16);
  g_assert_cmpuint (pto_tensor_get_n_dims (tensor), ==, 3);
  values = pto_tensor_get_shape (tensor, &n);
  g_assert_cmpmem (values, n * sizeof *values, shape, sizeof shape);
  values = pto_tensor_get_strides (tensor, &n);
  g_assert_cmpmem (values, n * sizeof *values, ((const guint64[]){ 12, 4, 1 }), sizeof shape);
  g_assert_cmpuint (pto_tensor_get_n_elements (tensor), ==, 24);
  g_assert_cmpuint (pto_tensor_get_n_bytes (tensor), ==, 48);
  g_assert_true (pto_tensor_is_contiguous (tensor));
  g_assert_false (pto_tensor_is_external (tensor));
  g_assert_cmpuint (pto_tensor_get_address (tensor), ==, 0);
  g_assert_cmpstr (text, ==, "int16 [2, 3, 4]");
}

static void
test_tensor_views (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTensor) tensor
      = pto_tensor_new_external (0x10000, PTO_DTYPE_FLOAT32, 2, (const guint64[]){ 8, 16 });
  g_autoptr (PtoTensor) view
      = pto_tensor_view (tensor, 2, (const guint64[]){ 2, 4 }, (const guint64[]){ 3, 8 }, &error);
  g_autoptr (PtoTensor) transposed = NULL;
  g_autoptr (PtoTensor) reshaped = NULL;
  gsize n;

  g_assert_no_error (error);
  g_assert_true (pto_tensor_is_external (view));
  g_assert_cmpuint (pto_tensor_get_address (view), ==, 0x10000 + 4 * (3 * 16 + 8));
  g_assert_cmpuint (pto_tensor_get_strides (view, &n)[0], ==, 16);
  g_assert_cmpuint (pto_tensor_get_n_elements (view), ==, 8);
  g_assert_false (pto_tensor_is_contiguous (view));

  transposed = pto_tensor_transpose (view, 0, 1, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (pto_tensor_get_shape (transposed, &n)[0], ==, 4);
  g_assert_cmpuint (pto_tensor_get_strides (transposed, &n)[0], ==, 1);

  /* Views keep what they are made from. */
  g_clear_pointer (&tensor, pto_tensor_unref);
  reshaped = pto_tensor_reshape (view, 1, (const guint64[]){ 8 }, &error);
  g_assert_null (reshaped);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "float32 [2, 4]");
  object_test_assert_contains (error->message, "contiguous");
}

static void
test_tensor_strided (void)
{
  static const struct
  {
    guint64 shape[2], strides[2], offset;
    const char *says; /* NULL: it can be had */
  } rows[] = {
    { { 5, 2 }, { 20, 3 }, 7, NULL },
    { { 8, 12 }, { 1, 8 }, 0, NULL },  /* by columns */
    { { 1, 3 }, { 0, 40 }, 15, NULL }, /* one element has no step */
    { { 4, 3 }, { 3, 1 }, 84, NULL },  /* up to the last element */
    { { 4, 3 }, { 3, 1 }, 85, "reaches beyond" },
    { { 4, 3 }, { G_MAXUINT64 / 2, 1 }, 0, "reaches beyond" },
    { { 1, 1 }, { 1, 1 }, 96, "reaches beyond" },
    { { 4, 3 }, { 2, 1 }, 0, "at one place" },
    { { 4, 3 }, { 0, 1 }, 0, "at one place" },
    { { 2, 2 }, { 1, 1 }, 0, "at one place" },
    { { 0, 3 }, { 3, 1 }, 0, "shape" },
  };
  g_autoptr (PtoTensor) tensor
      = pto_tensor_new_external (0x10000, PTO_DTYPE_FLOAT64, 2, (const guint64[]){ 8, 12 });

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoTensor) view = pto_tensor_as_strided (tensor, 2, rows[i].shape, rows[i].strides,
                                                          rows[i].offset, &error);
      gsize n;

      if (rows[i].says != NULL)
        {
          g_assert_null (view);
          g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
          object_test_assert_contains (error->message, rows[i].says);
          continue;
        }
      g_assert_no_error (error);
      g_assert_cmpuint (pto_tensor_get_address (view), ==, 0x10000 + 8 * rows[i].offset);
      for (guint d = 0; d < 2; d++)
        {
          g_assert_cmpuint (pto_tensor_get_shape (view, &n)[d], ==, rows[i].shape[d]);
          g_assert_cmpuint (pto_tensor_get_strides (view, &n)[d], ==, MAX (rows[i].strides[d], 1));
        }
      /* Not of what is not contiguous itself. */
      if (!pto_tensor_is_contiguous (view))
        {
          g_assert_null (pto_tensor_as_strided (view, 1, (const guint64[]){ 1 },
                                                (const guint64[]){ 1 }, 0, &error));
          object_test_assert_contains (error->message, "contiguous tensor only");
        }
    }
}

static void
test_tensor_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (64, NULL);
  g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 8 });
  g_autoptr (PtoTensor) bad = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 0 });
  g_autoptr (PtoTensor) deep
      = pto_tensor_new (PTO_DTYPE_FLOAT32, 6, (const guint64[]){ 1, 1, 1, 1, 1, 1 });
  const struct
  {
    guint64 offset;
    guint64 extent;
    const char *part;
  } beyond[] = { { 0, 17, "64 bytes" }, { 60, 2, "64 bytes" },          { 68, 1, "64 bytes" },
                 { 2, 1, "multiple" },  { G_MAXUINT64, 1, "64 bytes" }, { 0, 0, "shape" } };

  g_assert_cmpuint (pto_tensor_get_n_elements (bad), ==, 0);
  g_assert_cmpuint (pto_tensor_get_n_dims (deep), ==, 0);
  g_assert_null (
      pto_tensor_view (tensor, 1, (const guint64[]){ 5 }, (const guint64[]){ 4 }, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "beyond");
  g_clear_error (&error);
  g_assert_null (
      pto_tensor_view (tensor, 2, (const guint64[]){ 1, 1 }, (const guint64[]){ 0, 0 }, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_null (pto_tensor_transpose (tensor, 0, 1, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_null (pto_tensor_reshape (tensor, 2, (const guint64[]){ 3, 3 }, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  for (guint i = 0; i < G_N_ELEMENTS (beyond); i++)
    {
      g_assert_null (pto_tensor_new_for_buffer (buffer, beyond[i].offset, PTO_DTYPE_FLOAT32, 1,
                                                &beyond[i].extent, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, beyond[i].part);
      g_clear_error (&error);
    }
}

/* Each constructor, and what takes a tensor that has been refused, names the dtype. */
static void
test_dtype_refused (void)
{
  static const guint64 shape[] = { 4 };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (64, &error);
  g_autoptr (GBytes) bytes = g_bytes_new_static ("0123456789abcdef", 16);
  PtoTensor *made[4];

  g_assert_no_error (error);
  g_assert_null (pto_tensor_new_for_buffer (buffer, 0, (PtoDtype) 99, 1, shape, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_assert_cmpstr (error->message, ==, "the dtype is refused: 99 is no PtoDtype");
  g_clear_error (&error);
  g_assert_null (pto_tensor_new_for_bytes (bytes, 0, (PtoDtype) -1, 1, shape, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_assert_cmpstr (error->message, ==, "the dtype is refused: -1 is no PtoDtype");
  g_clear_error (&error);
  g_assert_null (pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_INT8, 0, shape, &error));
  g_assert_true (g_str_has_prefix (error->message, "the shape is refused"));
  g_clear_error (&error);
  made[0] = pto_tensor_new ((PtoDtype) 99, 1, shape);
  made[1] = pto_tensor_new_external (pto_buffer_get_address (buffer), (PtoDtype) 99, 1, shape);
  made[2]
      = pto_tensor_new_external_full (pto_buffer_get_address (buffer), (PtoDtype) 99, 1, shape,
                                      pto_buffer_ref (buffer), (GDestroyNotify) pto_buffer_unref);
  made[3] = pto_tensor_new (PTO_DTYPE_INT8, 6, (const guint64[]){ 1, 1, 1, 1, 1, 1 });
  for (gsize i = 0; i < G_N_ELEMENTS (made); i++)
    {
      g_assert_null (pto_tensor_reshape (made[i], 1, shape, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, i < 3
                                                       ? ": the dtype is refused: 99 is no PtoDtype"
                                                       : ": the shape is refused");
      g_clear_error (&error);
      pto_tensor_unref (made[i]);
    }
}

static void
test_tensor_keeps_buffer (void)
{
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (16, NULL);
  guint64 address = pto_buffer_get_address (buffer);
  g_autoptr (PtoTensor) tensor = object_test_vector (buffer);

  g_clear_pointer (&buffer, pto_buffer_unref);
  ((float *) (guintptr) address)[3] = 1;
  g_assert_cmpuint (pto_tensor_get_address (tensor), ==, address);
}

static void
test_task_args (void)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_UINT8, 1, (const guint64[]){ 8 });
  float single = 1.5F;
  double wide = -2.25;
  guint32 single_bits;
  guint64 wide_bits;

  memcpy (&single_bits, &single, sizeof single);
  memcpy (&wide_bits, &wide, sizeof wide);
  g_assert_cmpuint (pto_task_args_get_n_args (args), ==, 0);
  pto_task_args_add_scalar (args, G_MAXUINT64);
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar_float (args, single);
  pto_task_args_add_scalar_double (args, wide);
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_NO_DEP);

  g_assert_cmpuint (pto_task_args_get_n_args (args), ==, 5);
  g_assert_cmpuint (pto_task_args_get_n_tensors (args), ==, 2);
  g_assert_cmpuint (pto_task_args_get_n_scalars (args), ==, 3);
  g_assert_cmpuint (pto_task_args_get_scalar (args, 0), ==, G_MAXUINT64);
  g_assert_null (pto_task_args_get_tensor (args, 0));
  g_assert_true (pto_task_args_get_tensor (args, 1) == tensor);
  g_assert_cmpint (pto_task_args_get_direction (args, 0), ==, PTO_DIRECTION_SCALAR);
  g_assert_cmpint (pto_task_args_get_direction (args, 1), ==, PTO_DIRECTION_INOUT);
  g_assert_cmpuint (pto_task_args_get_scalar (args, 2), ==, single_bits);
  g_assert_cmpuint (pto_task_args_get_scalar (args, 3), ==, wide_bits);
  g_assert_cmpint (pto_task_args_get_direction (args, 4), ==, PTO_DIRECTION_NO_DEP);

  pto_task_args_reset (args);
  g_assert_cmpuint (pto_task_args_get_n_args (args), ==, 0);
  g_assert_cmpuint (pto_task_args_get_n_tensors (args), ==, 0);
}

static void
assert_scalar (PtoTaskArgs *args, guint index, PtoScalarKind kind, double value, GType type)
{
  GValue boxed = G_VALUE_INIT;

  g_assert_cmpint (pto_task_args_get_scalar_kind (args, index), ==, kind);
  g_assert_cmpfloat (pto_task_args_get_scalar_double (args, index), ==, value);
  pto_task_args_get_scalar_value (args, index, &boxed);
  g_assert_true (G_VALUE_HOLDS (&boxed, type));
  if (type == G_TYPE_INT64)
    g_assert_cmpint (g_value_get_int64 (&boxed), ==, (gint64) value);
  else if (type == G_TYPE_UINT64)
    g_assert_cmpuint (g_value_get_uint64 (&boxed), ==, (guint64) value);
  else
    g_assert_cmpfloat (g_value_get_double (&boxed), ==, value);
  g_value_unset (&boxed);
}

static void
test_scalar_kinds (void)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_UINT8, 1, (const guint64[]){ 8 });
  float narrow = 0.1F;
  guint32 bits;

  memcpy (&bits, &narrow, sizeof bits);
  pto_task_args_add_scalar (args, G_GUINT64_CONSTANT (1) << 63);
  pto_task_args_add_scalar_signed (args, G_MININT64);
  pto_task_args_add_scalar_float (args, 0.1);
  pto_task_args_add_scalar_double (args, 0.1);
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_NO_DEP);
  assert_scalar (args, 0, PTO_SCALAR_KIND_UNSIGNED, 0x1p63, G_TYPE_UINT64);
  assert_scalar (args, 1, PTO_SCALAR_KIND_SIGNED, -0x1p63, G_TYPE_INT64);
  assert_scalar (args, 2, PTO_SCALAR_KIND_FLOAT, 0.1, G_TYPE_DOUBLE);
  assert_scalar (args, 3, PTO_SCALAR_KIND_DOUBLE, 0.1, G_TYPE_DOUBLE);
  assert_scalar (args, 4, PTO_SCALAR_KIND_UNSIGNED, 0, G_TYPE_UINT64);
  g_assert_cmpuint (pto_task_args_get_scalar (args, 2), ==, bits);

  /* There is no such argument, which is an answer, not a mistake of the program: also where one was
   * before. */
  for (guint n = 5; n != G_MAXUINT; n = n == 5 ? 0 : G_MAXUINT)
    {
      const guint indices[] = { n, n + 1, 4, 5, G_MAXUINT };

      for (guint i = 0; i < G_N_ELEMENTS (indices); i++)
        if (indices[i] >= n)
          {
            assert_scalar (args, indices[i], PTO_SCALAR_KIND_UNSIGNED, 0, G_TYPE_UINT64);
            g_assert_cmpint (pto_task_args_get_direction (args, indices[i]), ==,
                             PTO_DIRECTION_SCALAR);
            g_assert_null (pto_task_args_get_tensor (args, indices[i]));
            g_assert_cmpuint (pto_task_args_get_scalar (args, indices[i]), ==, 0);
          }
      pto_task_args_reset (args);
    }
}

static void
test_call_config (void)
{
  g_autoptr (PtoCallConfig) config = pto_call_config_new ();
  g_autoptr (PtoCallConfig) copy = NULL;

  g_assert_cmpint (pto_call_config_get_block_dim (config), ==, 0);
  g_assert_cmpint (pto_call_config_get_aicpu_thread_num (config), ==, 0);
  g_assert_cmpint (pto_call_config_get_enable_l2_swimlane (config), ==, 0);
  g_assert_cmpint (pto_call_config_get_enable_dump_tensor (config), ==, 0);
  g_assert_cmpint (pto_call_config_get_enable_pmu (config), ==, 0);
  g_assert_cmpint (pto_call_config_get_enable_dep_gen (config), ==, 0);
  g_assert_cmpint (pto_call_config_get_enable_scope_stats (config), ==, 0);
  g_assert_cmpstr (pto_call_config_get_output_prefix (config), ==, "");

  pto_call_config_set_block_dim (config, 1);
  pto_call_config_set_aicpu_thread_num (config, 2);
  pto_call_config_set_enable_l2_swimlane (config, 3);
  pto_call_config_set_enable_dump_tensor (config, 4);
  pto_call_config_set_enable_pmu (config, 5);
  pto_call_config_set_enable_dep_gen (config, 6);
  pto_call_config_set_enable_scope_stats (config, 7);
  pto_call_config_set_output_prefix (config, "out/");
  pto_call_config_set_dump_filter (config, "QK.1");
  copy = pto_call_config_copy (config);
  g_clear_pointer (&config, pto_call_config_free);
  g_assert_cmpint (pto_call_config_get_block_dim (copy), ==, 1);
  g_assert_cmpint (pto_call_config_get_aicpu_thread_num (copy), ==, 2);
  g_assert_cmpint (pto_call_config_get_enable_l2_swimlane (copy), ==, 3);
  g_assert_cmpint (pto_call_config_get_enable_dump_tensor (copy), ==, 4);
  g_assert_cmpint (pto_call_config_get_enable_pmu (copy), ==, 5);
  g_assert_cmpint (pto_call_config_get_enable_dep_gen (copy), ==, 6);
  g_assert_cmpint (pto_call_config_get_enable_scope_stats (copy), ==, 7);
  g_assert_cmpstr (pto_call_config_get_output_prefix (copy), ==, "out/");
  g_assert_cmpstr (pto_call_config_get_dump_filter (copy), ==, "QK.1");
}

static void
test_platforms (void)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) names = pto_platform_list_names ();
  g_autoptr (PtoPlatform) platform = pto_platform_lookup ("a2a3sim", &error);
  g_autoptr (PtoPlatform) copy = NULL;

  g_assert_no_error (error);
  g_assert_true (g_strv_contains ((const char *const *) names, "a2a3sim"));
  copy = pto_platform_copy (platform);
  g_assert_cmpstr (pto_platform_get_name (copy), ==, "a2a3sim");
  g_assert_cmpuint (strlen (pto_platform_get_description (copy)), >, 0);
  g_assert_cmpuint (pto_platform_get_n_clusters (copy), ==, 24);
  g_assert_cmpuint (pto_platform_get_cores_per_cluster (copy, PTO_CORE_AIC), ==, 1);
  g_assert_cmpuint (pto_platform_get_cores_per_cluster (copy, PTO_CORE_AIV), ==, 2);
  g_assert_cmpuint (pto_platform_get_n_aicpu_threads (copy), ==, 4);
  g_assert_cmpuint (pto_platform_get_counter_frequency (copy), ==, 50 * 1000 * 1000);

  g_assert_null (pto_platform_lookup ("a9", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "a9");
  object_test_assert_contains (error->message, "a2a3sim");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/values/dtype-sizes", test_dtype_sizes);
  g_test_add_func ("/pto/values/enums-registered", test_enums_registered);
  g_test_add_func ("/pto/values/version", test_version);
  g_test_add_func ("/pto/values/check-version", test_check_version);
  g_test_add_func ("/pto/values/buffer", test_buffer);
  g_test_add_func ("/pto/values/buffer-file", test_buffer_file);
  g_test_add_func ("/pto/values/buffer-refused", test_buffer_refused);
  g_test_add_func ("/pto/values/tensor-shape", test_tensor_shape);
  g_test_add_func ("/pto/values/tensor-views", test_tensor_views);
  g_test_add_func ("/pto/values/tensor-strided", test_tensor_strided);
  g_test_add_func ("/pto/values/tensor-refused", test_tensor_refused);
  g_test_add_func ("/pto/values/dtype-refused", test_dtype_refused);
  g_test_add_func ("/pto/values/tensor-keeps-buffer", test_tensor_keeps_buffer);
  g_test_add_func ("/pto/values/task-args", test_task_args);
  g_test_add_func ("/pto/values/scalar-kinds", test_scalar_kinds);
  g_test_add_func ("/pto/values/call-config", test_call_config);
  g_test_add_func ("/pto/values/platforms", test_platforms);
  return g_test_run ();
}
