/* test-blob.c: do arguments, configurations and failures reach another worker as they were?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include "../../pto/values/call-config.h"
#include "../../pto/base/error.h"
#include "../../pto/values/task-args.h"
#include "../../pto/values/tensor.h"
#include "../../pto/process/arena.h"
#include "../../pto/process/call-format.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seed 001 section 3, by hand: two tensors, two scalars. */
static const guint8 golden[] = {
  /* counts */
  2, 0, 0, 0, 2, 0, 0, 0,
  /* address, 5 extents, dimensions, type (FLOAT32), zero */
  0x00, 0x10, 0x32, 0x54, 0x76, 0x98, 0x00, 0x00, /* 0x987654321000 */
  2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  /* the second: INT8 */
  0x08, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, /* 0x10000008 */
  1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 5, 0, 0, 0, 3, 0, 0, 0, 0,
  0, 0, 0,
  /* scalars */
  0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* 0x1122334455667788 */
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f  /* 1.5 */
};

static PtoTaskArgs *
make_golden (void)
{
  g_autoptr (PtoTensor) a = pto_tensor_new_external (
      G_GUINT64_CONSTANT (0x987654321000), PTO_DTYPE_FLOAT32, 2, (const guint64[]){ 2, 256 });
  g_autoptr (PtoTensor) b = pto_tensor_new_external (0x10000008, PTO_DTYPE_INT8, 5,
                                                     (const guint64[]){ 1, 2, 3, 4, 0x7fffffff });
  PtoTaskArgs *args = pto_task_args_new ();

  pto_task_args_add_tensor (args, a, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, b, PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar (args, G_GUINT64_CONSTANT (0x1122334455667788));
  pto_task_args_add_scalar_double (args, 1.5);
  return args;
}

static void
test_golden (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = make_golden ();
  g_autoptr (GBytes) blob = pto_task_args_to_blob (args, &error);

  if (G_BYTE_ORDER != G_LITTLE_ENDIAN)
    {
      g_test_skip ("the bytes are those of a little-endian machine");
      return;
    }
  g_assert_no_error (error);
  g_assert_cmpmem (g_bytes_get_data (blob, NULL), g_bytes_get_size (blob), golden, sizeof golden);
}

/* What tags a tensor had does not change a byte. */
static void
test_no_directions (void)
{
  g_autoptr (PtoTensor) tensor
      = pto_tensor_new_external (0x1000, PTO_DTYPE_UINT16, 1, (const guint64[]){ 3 });
  g_autoptr (GBytes) first = NULL;

  for (guint i = 0; i < PTO_DIRECTION_SCALAR; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
      g_autoptr (PtoTaskArgs) back = NULL;
      g_autoptr (GBytes) blob = NULL;

      pto_task_args_add_tensor (args, tensor, (PtoDirection) i);
      blob = pto_task_args_to_blob (args, &error);
      g_assert_no_error (error);
      if (first == NULL)
        first = g_bytes_ref (blob);
      g_assert_true (g_bytes_equal (first, blob));
      back = pto_task_args_new_from_blob (blob, &error);
      g_assert_no_error (error);
      g_assert_cmpint (pto_task_args_get_direction (back, 0), ==, PTO_DIRECTION_NO_DEP);
    }
}

static void
test_empty (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (GBytes) blob = pto_task_args_to_blob (args, &error);
  g_autoptr (PtoTaskArgs) back = NULL;

  g_assert_no_error (error);
  g_assert_cmpmem (g_bytes_get_data (blob, NULL), g_bytes_get_size (blob), "\0\0\0\0\0\0\0\0", 8);
  back = pto_task_args_new_from_blob (blob, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (pto_task_args_get_n_args (back), ==, 0);
}

static void
check_is_golden (PtoTaskArgs *args)
{
  const guint64 *shape;
  PtoTensor *tensor;
  gsize n;

  g_assert_cmpuint (pto_task_args_get_n_args (args), ==, 4);
  g_assert_cmpuint (pto_task_args_get_n_tensors (args), ==, 2);
  tensor = pto_task_args_get_tensor (args, 0);
  g_assert_cmphex (pto_tensor_get_address (tensor), ==, G_GUINT64_CONSTANT (0x987654321000));
  g_assert_cmpuint (pto_tensor_get_dtype (tensor), ==, PTO_DTYPE_FLOAT32);
  g_assert_true (pto_tensor_is_external (tensor));
  shape = pto_tensor_get_shape (tensor, &n);
  g_assert_cmpmem (shape, n * sizeof *shape, ((const guint64[]){ 2, 256 }), 16);
  tensor = pto_task_args_get_tensor (args, 1);
  g_assert_cmphex (pto_tensor_get_address (tensor), ==, 0x10000008);
  g_assert_cmpuint (pto_tensor_get_dtype (tensor), ==, PTO_DTYPE_INT8);
  shape = pto_tensor_get_shape (tensor, &n);
  g_assert_cmpmem (shape, n * sizeof *shape, ((const guint64[]){ 1, 2, 3, 4, 0x7fffffff }), 40);
  g_assert_cmphex (pto_task_args_get_scalar (args, 2), ==, G_GUINT64_CONSTANT (0x1122334455667788));
  g_assert_cmphex (pto_task_args_get_scalar (args, 3), ==, G_GUINT64_CONSTANT (0x3ff8000000000000));
}

/* Also from an address that is not aligned. */
static void
test_from_blob (void)
{
  for (gsize shift = 0; shift < 8; shift++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree guint8 *memory = g_malloc (sizeof golden + 8);
      g_autoptr (GBytes) blob = NULL;
      g_autoptr (PtoTaskArgs) args = NULL;

      memcpy (memory + shift, golden, sizeof golden);
      blob = g_bytes_new_static (memory + shift, sizeof golden);
      args = pto_task_args_new_from_blob (blob, &error);
      g_assert_no_error (error);
      check_is_golden (args);
    }
}

static void
assert_blob_refused (const guint8 *bytes, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) blob = g_bytes_new (bytes, size);

  g_assert_null (pto_task_args_new_from_blob (blob, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "no blob of arguments");
}

static void
test_from_other_bytes (void)
{
  guint8 bytes[sizeof golden + 1] = { 0 };
  static const struct
  {
    gsize offset;
    guint8 value;
  } changes[] = {
    { 0, 3 },  { 0, 1 },  { 3, 0x80 }, { 4, 1 },  { 7, 0x80 }, { 3, 0x7f },
    { 16, 0 }, { 24, 1 }, { 36, 0 },   { 36, 1 }, { 36, 6 },   { 40, PTO_DTYPE_COUNT },
    { 44, 1 }, { 76, 4 }, { 76, 6 },
  };

  memcpy (bytes, golden, sizeof golden);
  for (gsize size = 0; size < sizeof golden; size++)
    assert_blob_refused (bytes, size);
  assert_blob_refused (bytes, sizeof golden + 1);
  for (gsize i = 0; i < G_N_ELEMENTS (changes); i++)
    {
      memcpy (bytes, golden, sizeof golden);
      bytes[changes[i].offset] = changes[i].value;
      assert_blob_refused (bytes, sizeof golden);
    }
  /* An address of 0. */
  memcpy (bytes, golden, sizeof golden);
  memset (bytes + 8, 0, 8);
  assert_blob_refused (bytes, sizeof golden);
}

static void
assert_args_refused (PtoTaskArgs *args, const char *part)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (pto_task_args_to_blob (args, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, part);
}

static void
test_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTensor) whole
      = pto_tensor_new_external (0x1000, PTO_DTYPE_FLOAT32, 2, (const guint64[]){ 4, 4 });
  g_autoptr (PtoTensor) column
      = pto_tensor_view (whole, 2, (const guint64[]){ 4, 2 }, (const guint64[]){ 0, 1 }, &error);
  g_autoptr (PtoTensor) rows
      = pto_tensor_view (whole, 2, (const guint64[]){ 2, 4 }, (const guint64[]){ 1, 0 }, NULL);
  g_autoptr (PtoTensor) empty = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 4 });
  g_autoptr (PtoTensor) large = pto_tensor_new_external (
      0x1000, PTO_DTYPE_INT8, 2, (const guint64[]){ 2, G_GUINT64_CONSTANT (0x100000000) });
  g_autoptr (PtoTensor) wrong
      = pto_tensor_new_external (0x1000, PTO_DTYPE_INT8, 1, (const guint64[]){ 0 });
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (GBytes) blob = NULL;
  guint64 address;

  g_assert_no_error (error);
  pto_task_args_add_scalar (args, 1);
  pto_task_args_add_tensor (args, whole, PTO_DIRECTION_INPUT);
  assert_args_refused (args, "argument 1 is a tensor behind a scalar");

  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, whole, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, column, PTO_DIRECTION_INPUT);
  assert_args_refused (args, "argument 1: another worker gets whole tensors only");

  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, empty, PTO_DIRECTION_OUTPUT);
  assert_args_refused (args, "argument 0 is a tensor without memory");

  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, large, PTO_DIRECTION_INPUT);
  assert_args_refused (args, "argument 0: extent 4294967296 is too large");

  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, wrong, PTO_DIRECTION_INPUT);
  assert_args_refused (args, "argument 0: the shape is refused");

  /* A view that is contiguous goes, from its own first element. */
  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, rows, PTO_DIRECTION_INPUT);
  blob = pto_task_args_to_blob (args, &error);
  g_assert_no_error (error);
  memcpy (&address, (const guint8 *) g_bytes_get_data (blob, NULL) + 8, sizeof address);
  g_assert_cmphex (address, ==, 0x1000 + 4 * sizeof (float));
}

/* The child's side: a builder that is filled again and again. */
static void
test_view (void)
{
  guint8 aligned[sizeof golden] __attribute__ ((aligned (8)));
  struct pto_args_view view;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) kept = NULL;

  g_assert_cmpuint (sizeof view, ==, 24);
  memcpy (aligned, golden, sizeof golden);
  g_assert_true (pto_args_view_init (&view, aligned, sizeof aligned));
  /* Nothing is copied. */
  g_assert_true ((const guint8 *) view.tensors == aligned + 8);
  g_assert_true ((const guint8 *) view.scalars == aligned + 88);
  pto_task_args_add_scalar (args, 77);
  pto_task_args_set_view (args, &view);
  check_is_golden (args);
  kept = pto_tensor_ref (pto_task_args_get_tensor (args, 0));

  /* The next call changes the bytes: what somebody kept of the last one is still that. */
  aligned[8] = 0x40;
  pto_task_args_set_view (args, &view);
  g_assert_cmphex (pto_tensor_get_address (pto_task_args_get_tensor (args, 0)), ==,
                   G_GUINT64_CONSTANT (0x987654321040));
  g_assert_cmphex (pto_tensor_get_address (kept), ==, G_GUINT64_CONSTANT (0x987654321000));
  g_assert_false (pto_task_args_is_shared (args));
  pto_task_args_ref (args);
  g_assert_true (pto_task_args_is_shared (args));
  pto_task_args_unref (args);
}

/* A tensor that can not be, whatever wrote it, is one that can not be used. */
static void
test_view_damaged (void)
{
  static const struct
  {
    guint32 ndims;
    guint32 dtype;
  } wrong[]
      = { { 0, 0 }, { 6, 0 }, { G_MAXUINT32, 0 }, { 1, PTO_DTYPE_COUNT }, { 1, G_MAXUINT32 } };
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      struct pto_continuous_tensor tensor = {
        .data = 4096, .shapes = { 1, 1, 1, 1, 1 }, .ndims = wrong[i].ndims, .dtype = wrong[i].dtype
      };
      struct pto_args_view view = { .tensors = &tensor, .tensor_count = 1 };
      PtoTensor *made;

      pto_task_args_set_view (args, &view);
      made = pto_task_args_get_tensor (args, 0);
      g_assert_nonnull (pto_tensor_get_refusal (made));
      g_assert_cmpuint (pto_tensor_get_n_dims (made), ==, 0);
      g_assert_cmpuint (pto_tensor_get_n_bytes (made), ==, 0);
    }
}

/* Whatever a name holds, an error can be shown. */
static void
test_errors_are_text (void)
{
  g_autoptr (GError) error = NULL;

  g_set_error (&error, PTO_ERROR, PTO_ERROR_LOAD, "%s: %s", "name\xff", "caf\xc3\xa9 \xc3");
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  g_assert_cmpstr (error->message, ==, "name\xef\xbf\xbd: caf\xc3\xa9 \xef\xbf\xbd");
  g_prefix_error (&error, "%s: ", "\x80");
  g_assert_cmpstr (error->message, ==, "\xef\xbf\xbd: name\xef\xbf\xbd: caf\xc3\xa9 \xef\xbf\xbd");
  g_clear_error (&error);
  g_set_error_literal (&error, PTO_ERROR, PTO_ERROR_LOAD, "100 %s \xff");
  g_assert_cmpstr (error->message, ==, "100 %s \xef\xbf\xbd");
  g_set_error (NULL, PTO_ERROR, PTO_ERROR_LOAD, "nobody wants it");
  g_prefix_error (NULL, "nobody wants it");
}

static bool
read_flag (void *data)
{
  return *(const bool *) data;
}

static void
test_cancelled (void)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTaskArgs) copy = NULL;
  bool flag = false;

  g_assert_false (pto_task_args_is_cancelled (args));
  pto_task_args_set_cancelled (args, read_flag, &flag);
  g_assert_false (pto_task_args_is_cancelled (args));
  flag = true;
  g_assert_true (pto_task_args_is_cancelled (args));
  /* It is of the call, not of the values. */
  copy = pto_task_args_copy (args);
  g_assert_false (pto_task_args_is_cancelled (copy));
  pto_task_args_set_cancelled (args, NULL, NULL);
  g_assert_false (pto_task_args_is_cancelled (args));
}

/* Seed 001 section 4, field by field. */
static void
test_config (void)
{
  g_autoptr (PtoCallConfig) config = pto_call_config_new ();
  g_autoptr (PtoCallConfig) back = NULL;
  g_autoptr (PtoCallConfig) usual = NULL;
  g_autofree char *longest = g_strnfill (1018, 'p');
  struct pto_call_config wire;
  gint32 numbers[7];

  memset (&wire, 0xff, sizeof wire);
  pto_call_config_to_wire (NULL, &wire);
  memcpy (numbers, &wire, sizeof numbers);
  g_assert_cmpmem (numbers, sizeof numbers, ((const gint32[]){ 0, 0, 0, 0, 0, 0, 0 }), 28);
  /* Two ends of text; nobody reads on behind them. */
  g_assert_cmpuint (pto_wire_config_bytes (&wire), ==, 30);
  g_assert_cmpint (wire.output_prefix[0], ==, 0);
  g_assert_cmpint (wire.output_prefix[1], ==, 0);
  usual = pto_call_config_new_from_wire (&wire);
  g_assert_cmpint (usual->aicpu_thread_num, ==, 0);
  g_assert_cmpint (usual->enable_access_check, ==, 0);
  g_assert_null (usual->output_prefix);

  pto_call_config_set_block_dim (config, 1);
  pto_call_config_set_aicpu_thread_num (config, 3);
  pto_call_config_set_enable_l2_swimlane (config, 4);
  pto_call_config_set_enable_dump_tensor (config, 5);
  pto_call_config_set_enable_pmu (config, 6);
  pto_call_config_set_enable_dep_gen (config, 7);
  pto_call_config_set_enable_scope_stats (config, 8);
  pto_call_config_set_enable_access_check (config, 1);
  pto_call_config_set_output_prefix (config, longest);
  pto_call_config_set_dump_filter (config, "QK.2");
  pto_call_config_to_wire (config, &wire);
  memcpy (numbers, &wire, sizeof numbers);
  g_assert_cmpmem (numbers, sizeof numbers, ((const gint32[]){ 1, 3, 4, 5, 6, 7, 0x108 }), 28);
  g_assert_cmpstr ((const char *) &wire + 28, ==, longest);
  back = pto_call_config_new_from_wire (&wire);
  g_assert_cmpint (back->aicpu_thread_num, ==, 3);
  g_assert_cmpint (back->block_dim, ==, 1);
  g_assert_cmpint (back->enable_l2_swimlane, ==, 4);
  g_assert_cmpint (back->enable_dump_tensor, ==, 5);
  g_assert_cmpint (back->enable_pmu, ==, 6);
  g_assert_cmpint (back->enable_dep_gen, ==, 7);
  g_assert_cmpint (back->enable_scope_stats, ==, 8);
  g_assert_cmpint (back->enable_access_check, ==, 1);
  g_assert_cmpstr (back->output_prefix, ==, longest);
  g_assert_cmpstr (back->dump_filter, ==, "QK.2");

  /* One that was torn off has no end. */
  memset (wire.output_prefix, 'x', sizeof wire.output_prefix);
  g_clear_pointer (&back, pto_call_config_free);
  back = pto_call_config_new_from_wire (&wire);
  g_assert_cmpuint (strlen (back->output_prefix), ==, 1024);
}

/* A buffer that is made while a process has children: they have it at the same address, although
 * it was not there when they began. */
static void
test_buffer_after_fork (void)
{
  struct pto_report report = { 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) before = pto_buffer_new (4096, &error);
  g_autoptr (PtoBuffer) buffer = NULL;
  g_autoptr (PtoBuffer) second = NULL;
  g_autoptr (PtoBuffer) large = NULL;
  g_autoptr (GBytes) bytes = NULL;
  guint64 base, size, address;
  int to_child[2];
  guint8 *memory;
  guint8 *again;
  pid_t child;
  int status;

  g_assert_no_error (error);
  g_assert_cmpint (pto_arena_acquire (1 << 20, &report), ==, PTO_OK);
  g_assert_true (pto_arena_range (&base, &size));
  g_assert_cmpint (pipe (to_child), ==, 0);
  child = fork ();
  if (child == 0)
    {
      /* Told where, and nothing else. */
      guint8 *place;

      close (to_child[1]);
      if (read (to_child[0], &address, sizeof address) != sizeof address)
        _exit (1);
      place = (guint8 *) (guintptr) address;
      status = *place;
      *place = 9;
      _exit (status);
    }

  buffer = pto_buffer_new (5000, &error);
  g_assert_no_error (error);
  address = pto_buffer_get_address (buffer);
  g_assert_cmphex (address, >=, base);
  g_assert_cmphex (address + 5000, <=, base + size);
  g_assert_cmpuint (pto_buffer_get_size (buffer), ==, 5000);
  memory = (guint8 *) (guintptr) address;
  memory[0] = 7;
  memory[4999] = 8;
  g_assert_cmpint (write (to_child[1], &address, sizeof address), ==, sizeof address);
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 7);
  g_assert_cmpint (memory[0], ==, 9);
  close (to_child[0]);
  close (to_child[1]);

  /* The file behind it is shared, so that there is a place in it. */
  second = pto_buffer_new (1, &error);
  g_assert_cmpuint (pto_buffer_get_fd_offset (second), !=, pto_buffer_get_fd_offset (buffer));
  again = mmap (NULL, 5000, PROT_READ, MAP_SHARED, pto_buffer_get_fd (buffer),
                (off_t) pto_buffer_get_fd_offset (buffer));
  g_assert_true (again != MAP_FAILED);
  g_assert_cmpint (again[4999], ==, 8);
  munmap (again, 5000);
  g_assert_cmpuint (pto_buffer_get_fd_offset (before), ==, 0);

  /* What was given back comes as zeros; the bytes keep it until then. */
  bytes = pto_buffer_ref_bytes (buffer);
  g_clear_pointer (&buffer, pto_buffer_unref);
  g_assert_cmpint (((const guint8 *) g_bytes_get_data (bytes, NULL))[4999], ==, 8);
  g_clear_pointer (&bytes, g_bytes_unref);
  buffer = pto_buffer_new (5000, &error);
  g_assert_cmphex (pto_buffer_get_address (buffer), ==, address);
  g_assert_cmpint (memory[4999], ==, 0);

  /* Where there is no room it is memory of its own. */
  large = pto_buffer_new (2 << 20, &error);
  g_assert_no_error (error);
  address = pto_buffer_get_address (large);
  g_assert_true (address + (2 << 20) <= base || address >= base + size);
  g_assert_cmpuint (pto_buffer_get_fd_offset (large), ==, 0);
  pto_arena_release ();
}

/* A code of this layer that a child gave comes out as it went in; the engine's are those of the
 * table; a cancel is GIO's; others are nobody's. */
static void
test_codes (void)
{
  static const int codes[] = { PTO_ERROR_HEAP_RING,   PTO_ERROR_SYSTEM,    PTO_ERROR_ACCESS,
                               PTO_ERROR_COMPILE,     PTO_ERROR_NOT_FOUND, PTO_ERROR_TASK_FAILED,
                               PTO_ERROR_WORKER_LOST, PTO_ERROR_TAMPERED,  PTO_ERROR_NOT_SHARED };
  static const int others[] = { 6, 19, 109, 150, 199, 214, 1000 };
  g_autoptr (GError) foreign = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_CLOSED, "foreign");

  for (guint i = 0; i < G_N_ELEMENTS (codes); i++)
    {
      g_autoptr (GError) error = NULL;

      pto_error_set_status (&error, (enum pto_status) codes[i], "text");
      g_assert_error (error, PTO_ERROR, codes[i]);
      g_assert_cmpint (pto_error_get_status (error), ==, codes[i]);
    }
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    {
      g_autoptr (GError) error = NULL;

      pto_error_set_status (&error, (enum pto_status) others[i], "text");
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INTERNAL);
    }
  {
    g_autoptr (GError) error = NULL;

    pto_error_set_status (&error, PTO_STATUS_CANCELLED, "text");
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_assert_cmpint (pto_error_get_status (error), ==, PTO_STATUS_CANCELLED);
  }
  g_assert_cmpint (pto_error_get_status (foreign), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/error/is-text", test_errors_are_text);
  g_test_add_func ("/pto/blob/golden", test_golden);
  g_test_add_func ("/pto/blob/no-directions", test_no_directions);
  g_test_add_func ("/pto/blob/empty", test_empty);
  g_test_add_func ("/pto/blob/from-blob", test_from_blob);
  g_test_add_func ("/pto/blob/from-other-bytes", test_from_other_bytes);
  g_test_add_func ("/pto/blob/refused", test_refused);
  g_test_add_func ("/pto/blob/view", test_view);
  g_test_add_func ("/pto/blob/view-damaged", test_view_damaged);
  g_test_add_func ("/pto/blob/cancelled", test_cancelled);
  g_test_add_func ("/pto/blob/config", test_config);
  g_test_add_func ("/pto/blob/buffer-after-fork", test_buffer_after_fork);
  g_test_add_func ("/pto/blob/codes", test_codes);
  return g_test_run ();
}
