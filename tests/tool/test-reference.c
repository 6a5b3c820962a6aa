/* test-reference.c: do a reference and the program understand each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The reference is reference-cases.c, which checks what it gets; here is what comes of it.
 */
#include "config.h"

#include "../../pto/programs/pto/run/reference.h"
#include "../../pto/programs/pto/tool.h"

#include <glib/gstdio.h>
#include <string.h>

static char *directory;

static char *
path_of (const char *name)
{
  return g_build_filename (directory, name, NULL);
}

static void
write_file (const char *name, const char *text, gssize length)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = path_of (name);

  g_file_set_contents (path, text, length, &error);
  g_assert_no_error (error);
}

static Manifest *
load_with (const char *what, const char *reference)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text
      = g_strdup_printf ("[example]\nname=reference\n\n[orchestration]\nsource=orch.c\n\n"
                         "[kernel 0]\nname=k\nsource=k.c\ncore=aiv\n\n"
                         "[reference]\nsource=%s\n\n"
                         "[case one]\ntitle=One\ntitle[de]=Eins\nrtol=0.5\natol=0.25\nclusters=2\n"
                         "do=%s\nwhole=-12\nlargest=9223372036854775807\n"
                         "beyond=9223372036854775808\nreal=-2.25\nmore=2.25x\nwords=two words\n",
                         reference, what);
  Manifest *manifest;

  write_file ("pto.ini", text, -1);
  manifest = manifest_load (directory, &error);
  g_assert_no_error (error);
  return manifest;
}

static Manifest *
load (const char *what)
{
  return load_with (what, "reference.so");
}

/* --- what is well --- */

static void
test_arguments (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Manifest) manifest = load ("keys");
  const ManifestCase *item = manifest_find_case (manifest, NULL, &error);
  g_autoptr (Reference) reference = NULL;
  g_autofree char *unread = NULL;
  const ReferenceArgument *in, *out, *n;

  g_assert_no_error (error);
  g_assert_cmpstr (item->name, ==, "one");
  g_assert_cmpfloat (item->tolerance.rtol, ==, 0.5);
  g_assert_cmpfloat (item->tolerance.atol, ==, 0.25);
  g_assert_cmpuint (item->parameters->len, ==, 2);
  g_assert_cmpstr (g_ptr_array_index (item->parameters, 0), ==, "clusters");
  g_assert_cmpstr (g_ptr_array_index (item->parameters, 1), ==, "2");
  reference = reference_new (manifest, item, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (reference_get_n_arguments (reference), ==, 3);
  in = reference_get_argument (reference, 0);
  out = reference_get_argument (reference, 1);
  n = reference_get_argument (reference, 2);
  g_assert_cmpstr (in->name, ==, "in");
  g_assert_false (in->is_scalar || in->is_output);
  g_assert_cmpuint (in->dtype, ==, PTO_DTYPE_FLOAT32);
  g_assert_cmpuint (in->n_dims, ==, 2);
  g_assert_cmpuint (in->shape[0], ==, 2);
  g_assert_cmpuint (in->shape[1], ==, 3);
  g_assert_cmpuint (in->n_elements, ==, 6);
  g_assert_cmpuint (in->n_bytes, ==, 24);
  g_assert_cmpfloat (((const float *) in->data)[5], ==, 7);
  g_assert_null (in->expected);
  g_assert_cmpstr (out->name, ==, "out");
  g_assert_true (out->is_output && !out->is_scalar);
  g_assert_cmpuint (out->dtype, ==, PTO_DTYPE_UINT8);
  g_assert_cmpuint (out->n_dims, ==, 5);
  for (guint i = 0; i < 5; i++)
    g_assert_cmpuint (out->shape[i], ==, i + 1);
  g_assert_cmpuint (out->n_elements, ==, 120);
  g_assert_cmpuint (out->n_bytes, ==, 120);
  g_assert_cmpuint (((const guint8 *) out->data)[119], ==, 0);
  g_assert_cmpuint (((const guint8 *) out->expected)[119], ==, 9);
  g_assert_cmpstr (n->name, ==, "n");
  g_assert_true (n->is_scalar && !n->is_output);
  g_assert_cmpuint (n->value, ==, 42);
  /* What nobody has asked for, in the order of the file. */
  unread = reference_list_unread_keys (reference);
  g_assert_cmpstr (unread, ==, "beyond, more");
}

static void
test_unread (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Manifest) manifest = load ("none-of-these");
  g_autoptr (Reference) reference
      = reference_new (manifest, manifest_find_case (manifest, "one", NULL), &error);
  g_autofree char *unread = NULL;

  g_assert_no_error (error);
  unread = reference_list_unread_keys (reference);
  g_assert_cmpstr (unread, ==, "whole, largest, beyond, real, more, words");
}

/* --- what is not --- */

static const struct
{
  const char *what;
  const char *message;
} refusals[] = {
  { "status", "pto_reference_inputs() gave 3 and no reason" },
  { "fail", "the first reason" },
  { "integer", "words=two words: a whole number wanted" },
  { "too-large", "beyond=9223372036854775808: a whole number wanted" },
  { "real", "words=two words: a number wanted" },
  { "more-than-real", "more=2.25x: a number wanted" },
  { "dtype", "array \"x\": 99 is no type of an element" },
  { "dims-0", "array \"x\": 0 dimensions, 1 to 5 wanted" },
  { "dims-6", "array \"x\": 6 dimensions, 1 to 5 wanted" },
  { "none", "array \"x\": a dimension is 0, or all together are too large" },
  { "huge", "array \"x\": a dimension is 0, or all together are too large" },
  { "larger", "array \"x\": a dimension is 0, or all together are too large" },
  { "nothing", "the reference declares no output" },
  { "twice", "the argument \"n\" is there twice" },
  { "scalar-twice", "the argument \"in\" is there twice" },
  { "no-input", "there is no array \"elsewhere\"" },
  { "scalar-input", "there is no array \"n\"" },
  { "unsaid", "the reference does not say what to expect of \"out\"" },
  { "compute-status", "pto_reference_compute() gave -4 and no reason" },
  { "late-array", "pto_reference_compute() adds the argument \"x\"" },
  { "late-scalar", "pto_reference_compute() adds the argument \"x\"" },
  { "no-output", "there is no output \"elsewhere\"" },
  { "input-output", "there is no output \"in\"" },
  { "scalar-output", "there is no output \"n\"" },
};

static void
test_refusals (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (refusals); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (Manifest) manifest = load (refusals[i].what);
      g_autofree char *expected
          = g_strdup_printf ("%s/pto.ini: case \"one\": %s", directory, refusals[i].message);

      g_assert_null (reference_new (manifest, manifest_find_case (manifest, "one", NULL), &error));
      g_assert_error (error, TOOL_ERROR, TOOL_ERROR_TROUBLE);
      g_assert_cmpstr (error->message, ==, expected);
    }
}

/* Reports a file that is no object. Its name is its own: what was loaded stays loaded. */
static void
test_no_module (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Manifest) manifest = NULL;
  g_autofree char *path = path_of ("no-object.so");

  write_file ("no-object.so", "no object", -1);
  manifest = load_with ("keys", "no-object.so");
  g_assert_null (reference_new (manifest, manifest_find_case (manifest, NULL, NULL), &error));
  g_assert_error (error, TOOL_ERROR, TOOL_ERROR_TROUBLE);
  g_assert_nonnull (strstr (error->message, "pto.ini: [reference]: "));
  g_assert_nonnull (strstr (error->message, "no-object.so"));
  g_assert_cmpint (g_unlink (path), ==, 0);
}

int
main (int argc, char **argv)
{
  g_autofree char *module = NULL;
  gsize length;
  int result;

  g_test_init (&argc, &argv, NULL);
  directory = g_dir_make_tmp ("pto-reference-XXXXXX", NULL);
  g_assert_nonnull (directory);
  g_assert_true (g_file_get_contents (g_getenv ("PTO_TEST_REFERENCE"), &module, &length, NULL));
  write_file ("reference.so", module, (gssize) length);
  write_file ("orch.c", "", 0);
  write_file ("k.c", "", 0);
  g_test_add_func ("/pto/reference/arguments", test_arguments);
  g_test_add_func ("/pto/reference/unread", test_unread);
  g_test_add_func ("/pto/reference/refusals", test_refusals);
  g_test_add_func ("/pto/reference/no-module", test_no_module);
  result = g_test_run ();
  for (guint i = 0; i < 4; i++)
    {
      static const char *const names[] = { "reference.so", "orch.c", "k.c", "pto.ini" };
      g_autofree char *path = path_of (names[i]);

      g_unlink (path);
    }
  g_assert_cmpint (g_rmdir (directory), ==, 0);
  g_free (directory);
  return result;
}
