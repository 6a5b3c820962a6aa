/* test-identity.c: is a callable's name made of what the callable is, and of nothing else?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "registration-test.h"

#include "../../pto/callable/function.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static gboolean
succeed (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  return TRUE;
}

static gboolean
orchestrate (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
             gpointer user_data, GError **error)
{
  return TRUE;
}

/* An orchestration of two kernels, numbers 0 and 7. */
static PtoCallable *
make_chip (Fixture *fixture)
{
  static const PtoDirection signature[] = { PTO_DIRECTION_OUTPUT_EXISTING, PTO_DIRECTION_SCALAR };
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (fixture->dir, "graph.c", object_test_orchestration);
  g_autoptr (PtoCallable) fill = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  g_autoptr (PtoCallable) add = object_test_kernel (fixture->dir, "add.c", object_test_add);
  PtoCallable *chip = pto_chip_orchestration_new (path, NULL, &error);

  g_assert_no_error (error);
  pto_kernel_set_signature (PTO_KERNEL (fill), signature, G_N_ELEMENTS (signature), &error);
  g_assert_no_error (error);
  pto_kernel_set_cost (PTO_KERNEL (add), "table:1:2,3:4.5", &error);
  g_assert_no_error (error);
  pto_kernel_set_n_args (PTO_KERNEL (add), 3, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 7, "sum", add, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, NULL, fill, &error);
  g_assert_no_error (error);
  return chip;
}

/* --- descriptors --- */

static void
put_u32 (GByteArray *bytes, guint32 value)
{
  const guint8 le[]
      = { (guint8) value, (guint8) (value >> 8), (guint8) (value >> 16), (guint8) (value >> 24) };

  g_byte_array_append (bytes, le, 4);
}

static void
put_field (GByteArray *bytes, guint32 tag, gconstpointer data, gsize size)
{
  put_u32 (bytes, tag);
  put_u32 (bytes, (guint32) size);
  g_byte_array_append (bytes, data, (guint) size);
}

static void
put_text (GByteArray *bytes, const char *text)
{
  put_u32 (bytes, (guint32) strlen (text));
  g_byte_array_append (bytes, (const guint8 *) text, (guint) strlen (text));
}

/* How a source is compiled: in C, as any other. */
static void
put_recipe (GByteArray *bytes)
{
  put_u32 (bytes, PTO_LANGUAGE_C);
  put_u32 (bytes, 0);
  put_u32 (bytes, 0);
}

static void
hash (gconstpointer data, gsize size, guint8 *digest)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  gsize n = PTO_DIGEST_SIZE;

  g_checksum_update (checksum, data, (gssize) size);
  g_checksum_get_digest (checksum, digest, &n);
}

static void
hash_bytes (GBytes *bytes, guint8 *digest)
{
  hash (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), digest);
}

static void
put_file_hash (GByteArray *bytes, const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  guint8 digest[PTO_DIGEST_SIZE];
  gsize size;

  g_file_get_contents (path, &text, &size, &error);
  g_assert_no_error (error);
  hash (text, size, digest);
  g_byte_array_append (bytes, digest, sizeof digest);
}

/* The bytes, and the digest that another program (sha256sum) gives of them. */
static void
test_golden (Fixture *fixture, gconstpointer data)
{
  static const guint8 expected[] = "PTO1\x02\x03\x01\x00\x02\0\0\0"
                                   "\x01\0\0\0\x0c\0\0\0Layer.reduce"
                                   "\x06\0\0\0\x1a\0\0\0mymodel.steps:Layer.reduce";
  PtoRegistration *registration = make_import ("mymodel.steps:Layer.reduce");
  char text[2 * PTO_DIGEST_SIZE + 1];

  g_assert_cmpmem (g_bytes_get_data (registration->descriptor, NULL),
                   g_bytes_get_size (registration->descriptor), expected, sizeof expected - 1);
  g_assert_cmpmem (g_bytes_get_data (registration->sources, NULL),
                   g_bytes_get_size (registration->sources), "\0\0\0\0", 4);
  pto_digest_to_string (registration->digest, text);
  g_assert_cmpstr (text, ==, "47f45b9bd447addc3cc93ccefdbb303ff7ce7e09111f416e8c3298886e0bba49");
  g_assert_cmpint (registration->target, ==, PTO_TARGET_LOCAL_PYTHON);
  pto_registration_unref (registration);
}

static void
put_kernel (GByteArray *bytes, guint32 func_id, const char *path, const char *name,
            const char *cost, const char *signature)
{
  g_autoptr (GByteArray) field = g_byte_array_new ();

  put_u32 (field, func_id);
  put_u32 (field, PTO_CORE_AIV);
  put_file_hash (field, path);
  put_text (field, "kernel_entry");
  put_text (field, name);
  put_text (field, cost);
  if (signature != NULL)
    put_text (field, signature);
  else
    put_u32 (field, G_MAXUINT32);
  put_field (bytes, 8, field->data, field->len);
}

/* As the head of pto/callable/identity.h says, written once more. */
static void
test_golden_chip (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) chip = make_chip (fixture);
  PtoRegistration *registration = make (chip);
  g_autoptr (GByteArray) expected = g_byte_array_new ();
  g_autoptr (GByteArray) content = g_byte_array_new ();
  g_autoptr (GByteArray) sources = g_byte_array_new ();

  g_assert_cmpuint (registration->objects->len, ==, 3);
  g_byte_array_append (expected, (const guint8 *) "PTO1\x01\0\0\0", 8);
  put_u32 (expected, 6);
  put_field (expected, 1, "graph", 5);
  put_field (expected, 2, "a2a3sim", 7);
  put_field (expected, 3, "aicpu_orchestration_entry", 25);
  put_file_hash (content, g_ptr_array_index (registration->objects, 0));
  put_field (expected, 4, content->data, content->len);
  put_kernel (expected, 0, g_ptr_array_index (registration->objects, 1), "fill", "linear:1000:0.05",
              "\x03\x05");
  put_kernel (expected, 7, g_ptr_array_index (registration->objects, 2), "sum", "table:1:2,3:4.5",
              "\xff\xff\xff");
  g_assert_cmpmem (g_bytes_get_data (registration->descriptor, NULL),
                   g_bytes_get_size (registration->descriptor), expected->data, expected->len);
  put_u32 (sources, 3);
  for (guint i = 0; i < 3; i++)
    {
      static const char *const names[] = { "graph.c", "fill.c", "add.c" };
      g_autofree char *path = g_build_filename (fixture->dir, names[i], NULL);

      put_text (sources, g_ptr_array_index (registration->objects, i));
      put_text (sources, path);
      put_recipe (sources);
    }
  g_assert_cmpmem (g_bytes_get_data (registration->sources, NULL),
                   g_bytes_get_size (registration->sources), sources->data, sources->len);
  g_assert_cmpint (registration->target, ==, PTO_TARGET_LOCAL_CHIP);
  pto_registration_unref (registration);
}

static void
assert_same (PtoCallable *a, PtoCallable *b, gboolean same)
{
  PtoRegistration *first = make (a);
  PtoRegistration *second = make (b);

  g_assert_cmpint (memcmp (first->digest, second->digest, PTO_DIGEST_SIZE) == 0, ==, same);
  pto_registration_unref (first);
  pto_registration_unref (second);
}

/* Where a source lies does not matter; what it says, and all that is said of it, does. */
static void
test_content (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) first = object_test_kernel (fixture->dir, "add.c", object_test_add);
  g_autoptr (PtoCallable) same = object_test_kernel (fixture->dir, "other.c", object_test_add);
  g_autoptr (PtoCallable) fill = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  g_autoptr (PtoCallable) cube = NULL;
  PtoRegistration *here;
  PtoRegistration *there;

  assert_same (first, same, FALSE);
  pto_callable_set_name (same, "add");
  assert_same (first, same, TRUE);
  pto_callable_set_name (fill, "add");
  assert_same (first, fill, FALSE);

  pto_kernel_set_cost (PTO_KERNEL (same), "linear:1000:0.050", &error);
  g_assert_no_error (error);
  assert_same (first, same, FALSE);
  pto_kernel_set_cost (PTO_KERNEL (same), "linear:1000:0.05", &error);
  assert_same (first, same, TRUE);

  /* No arguments is not the same as any. */
  pto_kernel_set_signature (PTO_KERNEL (same), (const PtoDirection[]){ PTO_DIRECTION_INPUT }, 0,
                            &error);
  g_assert_no_error (error);
  assert_same (first, same, FALSE);
  pto_kernel_set_signature (PTO_KERNEL (same), NULL, 0, &error);
  assert_same (first, same, TRUE);

  cube = pto_kernel_new (PTO_CORE_AIC, pto_callable_get_path (first), NULL, &error);
  g_assert_no_error (error);
  assert_same (first, cube, FALSE);

  here = make (first);
  there = pto_registration_new (first, "a5sim", FALSE, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (memcmp (here->digest, there->digest, PTO_DIGEST_SIZE), !=, 0);
  pto_registration_unref (here);
  pto_registration_unref (there);
}

static void
test_closure (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) a = pto_sub_function_new ("f", succeed, NULL, NULL);
  g_autoptr (PtoCallable) b = pto_sub_function_new ("f", succeed, NULL, NULL);

  assert_same (a, b, FALSE);
  assert_same (a, a, TRUE);
}

static void
test_cancelled (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("f", succeed, NULL, NULL);

  g_cancellable_cancel (cancellable);
  g_assert_null (pto_registration_new (callable, PLATFORM, FALSE, NULL, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* --- from bytes --- */

static PtoRegistration *
send (PtoRegistration *registration)
{
  g_autoptr (GError) error = NULL;
  PtoRegistration *received = pto_registration_new_from_bytes (
      registration->digest, registration->descriptor, registration->sources, &error);

  g_assert_no_error (error);
  g_assert_cmpmem (received->digest, PTO_DIGEST_SIZE, registration->digest, PTO_DIGEST_SIZE);
  g_assert_true (g_bytes_equal (received->descriptor, registration->descriptor));
  g_assert_true (g_bytes_equal (received->sources, registration->sources));
  g_assert_cmpstr (received->name, ==, registration->name);
  g_assert_cmpint (received->target, ==, registration->target);
  g_assert_cmpint (pto_callable_get_kind (received->callable), ==,
                   pto_callable_get_kind (registration->callable));
  g_assert_cmpint (pto_callable_get_source (received->callable), ==,
                   pto_callable_get_source (registration->callable));
  return received;
}

static void
test_send_chip (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) chip = make_chip (fixture);
  PtoRegistration *registration = make (chip);
  PtoRegistration *received = send (registration);
  PtoCallable *callable = received->callable;
  const PtoDirection *signature;
  PtoCompilerJob *jobs;
  guint n_jobs;
  gsize n;

  g_assert_true (callable != chip);
  g_assert_cmpstr (pto_callable_get_name (callable), ==, "graph");
  g_assert_cmpstr (pto_device_code_get_symbol (PTO_DEVICE_CODE (callable)), ==,
                   "aicpu_orchestration_entry");
  g_assert_cmpuint (pto_chip_orchestration_get_n_kernels (PTO_CHIP_ORCHESTRATION (callable)), ==,
                    8);
  g_assert_cmpstr (pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (callable), 0),
                   ==, "fill");
  g_assert_cmpstr (pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (callable), 7),
                   ==, "sum");
  g_assert_cmpstr (pto_kernel_get_cost (PTO_KERNEL (
                       pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (callable), 7))),
                   ==, "table:1:2,3:4.5");
  g_assert_cmpint (pto_kernel_get_core_type (PTO_KERNEL (
                       pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (callable), 0))),
                   ==, PTO_CORE_AIV);
  signature = pto_kernel_get_signature (
      PTO_KERNEL (pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (callable), 0)), &n);
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpint (signature[0], ==, PTO_DIRECTION_OUTPUT_EXISTING);
  g_assert_null (pto_kernel_get_signature (
      PTO_KERNEL (pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (callable), 7)), &n));
  g_assert_cmpint (pto_kernel_get_n_args (PTO_KERNEL (
                       pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (callable), 7))),
                   ==, 3);

  /* The objects stand where the callable's own kernels are. */
  jobs = pto_registration_make_jobs (received, &n_jobs);
  g_assert_cmpuint (n_jobs, ==, 3);
  for (guint i = 0; i < 3; i++)
    g_assert_cmpstr (jobs[i].object, ==, g_ptr_array_index (registration->objects, i));
  g_assert_cmpstr (jobs[2].label, ==, "kernel \"sum\"");
  pto_registration_free_jobs (jobs, n_jobs);
  pto_registration_unref (received);
  pto_registration_unref (registration);
}

static void
test_send_kernel (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "add.c", object_test_add);
  PtoRegistration *registration;
  PtoRegistration *received;

  pto_callable_set_name (kernel, "a name of its own");
  registration = make (kernel);
  received = send (registration);
  g_assert_cmpstr (pto_callable_get_name (received->callable), ==, "a name of its own");
  pto_registration_unref (received);
  pto_registration_unref (registration);
}

static void
test_send_functions (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) symbol
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, "libm.so.6:cos", &error);
  PtoRegistration *first = make_import ("a.b:c");
  PtoRegistration *second = make (symbol);
  PtoRegistration *received;

  g_assert_no_error (error);
  received = send (first);
  g_assert_cmpstr (PTO_IMPORTED_FUNCTION (received->callable)->import_path, ==, "a.b:c");
  pto_registration_unref (received);
  pto_registration_unref (first);
  received = send (second);
  g_assert_cmpstr (PTO_IMPORTED_FUNCTION (received->callable)->library, ==, "libm.so.6");
  g_assert_cmpstr (pto_imported_function_get_symbol (PTO_IMPORTED_FUNCTION (received->callable)),
                   ==, "cos");
  g_assert_null (pto_callable_get_path (received->callable));
  pto_registration_unref (received);
  pto_registration_unref (second);
}

/* A closure is found in the process that made it, also under another name, and in its children. */
static void
test_send_closure (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable
      = pto_orchestration_function_new ("f", orchestrate, &error, NULL);
  PtoRegistration *registration = make (callable);
  PtoRegistration *received;
  pid_t child;
  int status;

  pto_callable_set_name (callable, "g");
  received = send (registration);
  g_assert_true (received->callable == callable);
  g_assert_cmpstr (received->name, ==, "f");
  pto_registration_unref (received);

  child = fork ();
  if (child == 0)
    {
      received = pto_registration_new_from_bytes (registration->digest, registration->descriptor,
                                                  registration->sources, NULL);
      _exit (received != NULL && received->callable == callable ? 3 : 4);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 3);
  pto_registration_unref (registration);
}

static gpointer
make_closures (gpointer user_data)
{
  int *stop = user_data;

  while (!g_atomic_int_get (stop))
    g_object_unref (pto_sub_function_new ("f", succeed, NULL, NULL));
  return NULL;
}

/* Forked while another thread makes one: the child still finds its own. */
static void
test_fork_while_made (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("f", succeed, NULL, NULL);
  int stop = FALSE;
  GThread *thread = g_thread_new ("closures", make_closures, &stop);

  for (guint i = 0; i < 200; i++)
    {
      pid_t child = fork ();
      int status;

      if (child == 0)
        _exit (pto_callable_find_closure (pto_callable_get_closure (callable)->id) == callable ? 5
                                                                                               : 6);
      g_assert_cmpint (waitpid (child, &status, 0), ==, child);
      g_assert_true (WIFEXITED (status));
      g_assert_cmpint (WEXITSTATUS (status), ==, 5);
    }
  g_atomic_int_set (&stop, TRUE);
  g_thread_join (thread);
}

/* What a process that was forked before sees: the bytes of a closure that it does not have. */
static void
test_late_closure (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoCallable *callable = pto_sub_function_new ("late", succeed, NULL, NULL);
  PtoRegistration *registration = make (callable);
  g_autoptr (GBytes) descriptor = g_bytes_ref (registration->descriptor);
  g_autoptr (GBytes) sources = g_bytes_ref (registration->sources);
  guint8 digest[PTO_DIGEST_SIZE];

  memcpy (digest, registration->digest, sizeof digest);
  pto_registration_unref (registration);
  g_object_unref (callable);
  g_assert_null (pto_registration_new_from_bytes (digest, descriptor, sources, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_assert_cmpstr (
      error->message, ==,
      "closure \"late\" is not in this process: it was made after the process was forked");
}

/* --- refusals --- */

static void
test_other_digest (Fixture *fixture, gconstpointer data)
{
  PtoRegistration *registration = make_import ("a.b:c");
  guint8 digest[PTO_DIGEST_SIZE];

  for (guint i = 0; i < PTO_DIGEST_SIZE * 8; i++)
    {
      g_autoptr (GError) error = NULL;

      memcpy (digest, registration->digest, sizeof digest);
      digest[i / 8] ^= (guint8) (1 << i % 8);
      g_assert_null (pto_registration_new_from_bytes (digest, registration->descriptor,
                                                      registration->sources, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_TAMPERED);
      object_test_assert_contains (error->message, "the descriptor hashes to ");
    }
  pto_registration_unref (registration);
}

static void
assert_file_refused (PtoRegistration *registration, GByteArray *sources, PtoError code,
                     const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new (sources->data, sources->len);

  g_assert_null (pto_registration_new_from_bytes (registration->digest, registration->descriptor,
                                                  bytes, &error));
  g_assert_error (error, PTO_ERROR, (int) code);
  object_test_assert_contains (error->message, part);
}

/* The descriptor is right, and what lies there is not what it says. */
static void
test_other_contents (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip = make_chip (fixture);
  PtoRegistration *registration = make (chip);
  g_autofree char *path = g_build_filename (fixture->dir, "changed.so", NULL);
  g_autofree char *text = NULL;
  gsize size;

  g_file_get_contents (g_ptr_array_index (registration->objects, 2), &text, &size, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (GByteArray) sources = g_byte_array_new ();

      put_u32 (sources, 3);
      for (guint k = 0; k < 3; k++)
        {
          put_text (sources,
                    k < 2 || i == 3 ? g_ptr_array_index (registration->objects, MIN (k, 1)) : path);
          put_text (sources, "/made/of.c");
          put_recipe (sources);
        }
      /* Nothing there; one bit; the last byte is missing; another kernel. */
      if (i == 1)
        text[size - 1] ^= 1;
      if (i == 1 || i == 2)
        {
          g_file_set_contents (path, text, (gssize) (i == 1 ? size : size - 1), &error);
          g_assert_no_error (error);
        }
      if (i == 2)
        text[size - 1] ^= 1;
      assert_file_refused (registration, sources, i == 0 ? PTO_ERROR_NOT_FOUND : PTO_ERROR_TAMPERED,
                           i == 0 ? "kernel 7 (\"sum\"): "
                                  : "contents of kernel 7 (\"sum\") hash to ");
    }
  pto_registration_unref (registration);
}

static void
test_other_sources (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "add.c", object_test_add);
  PtoRegistration *registration = make (kernel);
  const char *path = g_ptr_array_index (registration->objects, 0);
  g_autoptr (GByteArray) sources = g_byte_array_new ();
  gsize size;
  const guint8 *bytes = g_bytes_get_data (registration->sources, &size);

  for (gsize n = 0; n < size; n++)
    {
      g_byte_array_set_size (sources, 0);
      g_byte_array_append (sources, bytes, (guint) n);
      assert_file_refused (registration, sources, PTO_ERROR_INVALID_ARGS, "sources are cut off");
    }
  g_byte_array_set_size (sources, 0);
  g_byte_array_append (sources, bytes, (guint) size);
  put_u32 (sources, 0);
  assert_file_refused (registration, sources, PTO_ERROR_INVALID_ARGS, "follows its sources");

  g_byte_array_set_size (sources, 0);
  put_u32 (sources, 0);
  assert_file_refused (registration, sources, PTO_ERROR_INVALID_ARGS, "more contents than sources");
  g_byte_array_set_size (sources, 0);
  put_u32 (sources, 2);
  for (guint i = 0; i < 2; i++)
    {
      put_text (sources, path);
      put_text (sources, path);
      put_recipe (sources);
    }
  assert_file_refused (registration, sources, PTO_ERROR_INVALID_ARGS, "more sources than contents");
  /* A language that there is not; a flag that says what is made. */
  for (guint i = 0; i < 2; i++)
    {
      g_byte_array_set_size (sources, 0);
      put_u32 (sources, 1);
      put_text (sources, path);
      put_text (sources, path);
      put_u32 (sources, i == 0 ? PTO_LANGUAGE_OBJECT + 1 : PTO_LANGUAGE_C);
      put_u32 (sources, 0);
      put_u32 (sources, i);
      if (i == 1)
        put_text (sources, "-c");
      assert_file_refused (registration, sources, PTO_ERROR_INVALID_ARGS, "sources are cut off");
    }
  g_byte_array_set_size (sources, 0);
  put_u32 (sources, 1);
  put_text (sources, "add.c");
  assert_file_refused (registration, sources, PTO_ERROR_INVALID_ARGS, "no absolute path");
  pto_registration_unref (registration);
}

/* How it was compiled goes with it, as it was then, wherever it is sent. */
static void
test_source_jobs (Fixture *fixture, gconstpointer data)
{
  static const char *const flags[] = { "-DSEVEN=7", "-O1", NULL };
  static const char *const other[] = { "-DSEVEN=8", NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip = make_chip (fixture);
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "add.c", object_test_add);
  const char *const dirs[] = { fixture->dir, NULL };
  PtoRegistration *registrations[4];

  pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), flags, &error);
  g_assert_no_error (error);
  pto_device_code_set_include_dirs (PTO_DEVICE_CODE (kernel), dirs, &error);
  g_assert_no_error (error);
  registrations[0] = make (kernel);
  registrations[1] = send (registrations[0]);
  registrations[2] = make (chip);
  registrations[3] = send (registrations[2]);
  pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), other, &error);
  g_assert_no_error (error);
  pto_device_code_set_include_dirs (PTO_DEVICE_CODE (kernel), NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 4; i++)
    {
      static const char *const names[] = { "graph.c", "fill.c", "add.c" };
      guint n;
      PtoCompilerJob *jobs = pto_registration_make_source_jobs (registrations[i], &n);

      g_assert_cmpuint (n, ==, i < 2 ? 1 : 3);
      for (guint k = 0; k < n; k++)
        {
          g_autofree char *path = g_build_filename (fixture->dir, names[i < 2 ? 2 : k], NULL);

          g_assert_cmpstr (jobs[k].path, ==, path);
          g_assert_cmpint (jobs[k].language, ==, PTO_LANGUAGE_C);
          g_assert_cmpint (jobs[k].is_kernel, ==, i < 2 || k > 0);
          g_assert_null (jobs[k].object);
          if (i < 2)
            {
              g_assert_cmpstrv (jobs[k].flags, flags);
              g_assert_cmpstrv (jobs[k].include_dirs, dirs);
            }
          else
            {
              g_assert_null (jobs[k].flags);
              g_assert_null (jobs[k].include_dirs);
            }
        }
      pto_registration_free_jobs (jobs, n);
      pto_registration_unref (registrations[i]);
    }
}

/* Bytes that hash to what they claim and are still no descriptor, or another one. There is one form
 * of each: what is accepted is, written again, the very same bytes. */
static void
check_bytes (const guint8 *bytes, gsize size, GBytes *sources)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) descriptor = g_bytes_new (bytes, size);
  PtoRegistration *registration;
  guint8 digest[PTO_DIGEST_SIZE];

  hash_bytes (descriptor, digest);
  registration = pto_registration_new_from_bytes (digest, descriptor, sources, &error);
  if (registration == NULL)
    {
      g_assert_nonnull (error);
      g_assert_true (error->domain == PTO_ERROR);
      return;
    }
  g_assert_no_error (error);
  {
    PtoRegistration *again
        = pto_registration_new (registration->callable, PLATFORM, FALSE, NULL, NULL, NULL, &error);

    g_assert_no_error (error);
    /* A platform's name is data to whoever reads it, and a closure's is its program's. */
    if (pto_callable_get_source (registration->callable) == PTO_CALLABLE_SOURCE_IMPORT)
      g_assert_true (g_bytes_equal (again->descriptor, descriptor));
    g_assert_cmpuint (g_bytes_get_size (again->descriptor), ==, size);
    pto_registration_unref (again);
  }
  pto_registration_unref (registration);
}

static void
check_damaged (PtoRegistration *registration)
{
  gsize size;
  const guint8 *bytes = g_bytes_get_data (registration->descriptor, &size);
  g_autofree guint8 *copy = g_malloc (size + 1);

  for (gsize n = 0; n < size; n++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GBytes) part = g_bytes_new (bytes, n);
      guint8 digest[PTO_DIGEST_SIZE];

      hash_bytes (part, digest);
      g_assert_null (pto_registration_new_from_bytes (digest, part, registration->sources, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
    }
  for (gsize i = 0; i < size; i++)
    for (guint k = 0; k < 3; k++)
      {
        static const guint8 changes[] = { 0x01, 0x80, 0xff };

        memcpy (copy, bytes, size);
        copy[i] ^= changes[k];
        check_bytes (copy, size, registration->sources);
      }
  memcpy (copy, bytes, size);
  copy[size] = 0;
  check_bytes (copy, size + 1, registration->sources);
}

static void
test_damaged (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "add.c", object_test_add);
  g_autoptr (PtoCallable) closure = pto_sub_function_new ("f", succeed, NULL, NULL);
  PtoRegistration *registrations[] = { make_import ("a.b:c"), make (closure), make (kernel) };

  for (guint i = 0; i < G_N_ELEMENTS (registrations); i++)
    {
      check_damaged (registrations[i]);
      pto_registration_unref (registrations[i]);
    }
}

static void
test_remote (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoRegistration *registration = make_import ("a.b:c");
  gsize size;
  gconstpointer bytes = g_bytes_get_data (registration->descriptor, &size);
  guint8 *copy = g_memdup2 (bytes, size);
  g_autoptr (GBytes) descriptor = g_bytes_new_take (copy, size);
  guint8 digest[PTO_DIGEST_SIZE];

  copy[6] = PTO_TARGET_REMOTE_TASK_DISPATCHER;
  hash_bytes (descriptor, digest);
  g_assert_null (
      pto_registration_new_from_bytes (digest, descriptor, registration->sources, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  pto_registration_unref (registration);
}

/* --- functions --- */

static char *
build_library (Fixture *fixture, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *source = object_test_write (fixture->dir, "library.c", text);
  g_autofree char *built = pto_compile_shared_object (source, NULL, &error);
  g_autofree char *contents = NULL;
  char *path = g_build_filename (fixture->dir, "library.so", NULL);
  gsize size;

  g_assert_no_error (error);
  g_file_get_contents (built, &contents, &size, &error);
  g_assert_no_error (error);
  g_file_set_contents (path, contents, (gssize) size, &error);
  g_assert_no_error (error);
  return path;
}

/* Consumes registration: of the file, which is changed and put back. */
static void
registration_changed (const char *path, PtoRegistration *registration)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL;
  gsize size;

  g_file_get_contents (path, &contents, &size, &error);
  g_assert_no_error (error);
  contents = g_realloc (contents, size + 1);
  g_file_set_contents (path, contents, (gssize) size + 1, &error);
  g_assert_no_error (error);
  g_assert_false (pto_registration_resolve (registration, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_TAMPERED);
  object_test_assert_contains (error->message, path);
  object_test_assert_contains (error->message, "has changed while it was loaded");
  g_clear_error (&error);
  g_file_set_contents (path, contents, (gssize) size, &error);
  g_assert_no_error (error);
  g_assert_true (pto_registration_resolve (registration, NULL, NULL, &error));
  g_assert_no_error (error);
  pto_registration_unref (registration);
}

static void
test_symbol (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = build_library (
      fixture, "int given = -1;\n"
               "int yes (void *args, void *data, void **error) { given = data == 0; return 1; }\n"
               "int no (void *args, void *data, void **error) { return 0; }\n");
  g_autofree char *yes = g_strconcat (path, ":yes", NULL);
  g_autofree char *no = g_strconcat (path, ":no", NULL);
  g_autofree char *none = g_strconcat (path, ":none", NULL);
  g_autoptr (PtoCallable) first
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, yes, &error);
  g_autoptr (PtoCallable) second
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, no, &error);
  g_autoptr (PtoCallable) third
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, none, &error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autofree char *changed = NULL;
  PtoRegistration *registration;
  PtoRegistration *received;

  g_assert_no_error (error);
  /* The library is known by its contents: the path is no part of the name. */
  registration = make (first);
  g_assert_cmpuint (registration->objects->len, ==, 1);
  g_assert_cmpuint (g_bytes_get_size (registration->descriptor), ==, 12 + 11 + 11 + 40);
  received = send (registration);
  pto_registration_unref (registration);
  g_assert_true (pto_registration_resolve (received, NULL, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (pto_registration_resolve (received, NULL, NULL, &error));
  g_assert_true (pto_registration_call_sub (received, args, &error));
  g_assert_no_error (error);
  pto_registration_unref (received);

  registration = make (second);
  g_assert_true (pto_registration_resolve (registration, NULL, NULL, &error));
  g_assert_false (pto_registration_call_sub (registration, args, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_TASK_FAILED);
  g_clear_error (&error);
  pto_registration_unref (registration);

  registration = make (third);
  g_assert_false (pto_registration_resolve (registration, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  object_test_assert_contains (error->message, "exports no function none");
  g_clear_error (&error);

  /* Changed between the registration and the load. */
  registration_changed (path, make (second));

  /* Changed between the registration and its arrival. */
  changed = build_library (fixture, "int none;\n");
  g_assert_cmpstr (changed, ==, path);
  g_assert_null (pto_registration_new_from_bytes (registration->digest, registration->descriptor,
                                                  registration->sources, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_TAMPERED);
  object_test_assert_contains (error->message, "contents of none hash to ");
  pto_registration_unref (registration);
}

static void
test_library_without_path (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) there
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, "libm.so.6:cos", &error);
  g_autoptr (PtoCallable) away
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, "libpto-no-such.so:f", &error);
  PtoRegistration *registration = make (there);

  g_assert_cmpuint (registration->objects->len, ==, 0);
  g_assert_true (pto_registration_resolve (registration, NULL, NULL, &error));
  g_assert_no_error (error);
  pto_registration_unref (registration);
  registration = make (away);
  g_assert_false (pto_registration_resolve (registration, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  object_test_assert_contains (error->message,
                               "\"f\": libpto-no-such.so: can not be loaded: cannot open ");
  pto_registration_unref (registration);
}

typedef struct
{
  guint calls;
  PtoCallable *result;
  gboolean fail;
} Importer;

static PtoCallable *
import_function (PtoCallableKind kind, const char *path, gpointer user_data, GError **error)
{
  Importer *importer = user_data;

  importer->calls++;
  g_assert_cmpint (kind, ==, PTO_CALLABLE_SUB);
  g_assert_cmpstr (path, ==, "a.b:c");
  if (importer->fail)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "ModuleNotFoundError: a.b");
      return NULL;
    }
  return importer->result != NULL ? g_object_ref (importer->result) : NULL;
}

static gboolean
count_call (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  (*(guint *) user_data)++;
  return TRUE;
}

static void
test_import (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  guint calls = 0;
  g_autoptr (PtoCallable) function = pto_sub_function_new ("c", count_call, &calls, NULL);
  g_autoptr (PtoCallable) other = pto_orchestration_function_new ("c", orchestrate, NULL, NULL);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  Importer importer = { 0 };
  PtoRegistration *registration = make_import ("a.b:c");

  g_assert_false (pto_registration_resolve (registration, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);

  importer.fail = TRUE;
  g_assert_false (pto_registration_resolve (registration, import_function, &importer, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_FAILED);
  g_clear_error (&error);

  importer.fail = FALSE;
  g_assert_false (pto_registration_resolve (registration, import_function, &importer, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_error (&error);

  importer.result = other;
  g_assert_false (pto_registration_resolve (registration, import_function, &importer, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);

  importer.result = function;
  g_assert_true (pto_registration_resolve (registration, import_function, &importer, &error));
  g_assert_true (pto_registration_resolve (registration, import_function, &importer, &error));
  g_assert_cmpuint (importer.calls, ==, 4);
  g_clear_object (&function);
  g_assert_true (pto_registration_call_sub (registration, args, &error));
  g_assert_cmpuint (calls, ==, 1);
  pto_registration_unref (registration);
}

static gboolean
fail_with_error (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_BUSY, "busy");
  /* An error is a failure, whatever is returned. */
  return TRUE;
}

static void
test_call_fails (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("f", fail_with_error, NULL, NULL);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  PtoRegistration *registration = make (callable);

  g_assert_true (pto_registration_resolve (registration, NULL, NULL, &error));
  g_assert_false (pto_registration_call_sub (registration, args, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  pto_registration_unref (registration);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

#define ADD(path, test) g_test_add (path, Fixture, NULL, set_up, test, tear_down)
  ADD ("/pto/identity/golden", test_golden);
  ADD ("/pto/identity/golden-chip", test_golden_chip);
  ADD ("/pto/identity/content", test_content);
  ADD ("/pto/identity/closure", test_closure);
  ADD ("/pto/identity/cancelled", test_cancelled);
  ADD ("/pto/identity/send-chip", test_send_chip);
  ADD ("/pto/identity/send-kernel", test_send_kernel);
  ADD ("/pto/identity/send-functions", test_send_functions);
  ADD ("/pto/identity/send-closure", test_send_closure);
  ADD ("/pto/identity/fork-while-made", test_fork_while_made);
  ADD ("/pto/identity/late-closure", test_late_closure);
  ADD ("/pto/identity/other-digest", test_other_digest);
  ADD ("/pto/identity/other-contents", test_other_contents);
  ADD ("/pto/identity/other-sources", test_other_sources);
  ADD ("/pto/identity/source-jobs", test_source_jobs);
  ADD ("/pto/identity/damaged", test_damaged);
  ADD ("/pto/identity/remote", test_remote);
  ADD ("/pto/identity/symbol", test_symbol);
  ADD ("/pto/identity/library-without-path", test_library_without_path);
  ADD ("/pto/identity/import", test_import);
  ADD ("/pto/identity/call-fails", test_call_fails);
#undef ADD
  return g_test_run ();
}
