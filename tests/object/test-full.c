/* test-full.c: is anything kept of a buffer for which there is no guard any more?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The list of guards is filled by hand: as many buffers would be more mappings than a process may
 * have.
 */
#include "object-test.h"

#include "../../pto/core/memory-guards.h"

#include <string.h>

enum
{
  STEP = 16 /* of memory for each guard */
};

static guint
count_lines (const char *path)
{
  g_autofree char *text = NULL;
  guint n = 0;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  for (const char *at = text; (at = strchr (at, '\n')) != NULL; at++)
    n++;
  return n;
}

static guint
count_descriptors (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/fd", 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

/* Until none is left. */
static guint
fill_list (guint8 *memory)
{
  struct pto_fence fence = { .bytes = STEP / 2, .guard = STEP / 2 };
  guint n = 0;

  for (;;)
    {
      fence.address = (guint64) (guintptr) (memory + (gsize) STEP * n);
      g_assert_cmpuint (n, <, PTO_FENCES_MAX + 1);
      if (!pto_fence_add (&fence))
        return n;
      n++;
    }
}

static void
empty_list (guint8 *memory, guint n)
{
  /* From the end, where none has to be moved. */
  while (n-- > 0)
    pto_fence_remove ((guint64) (guintptr) (memory + (gsize) STEP * n));
}

/* Without a worker a buffer is a mapping, with one that has children a piece of the arena. */
static void
test_full (gconstpointer with_children)
{
  g_autofree guint8 *memory = g_malloc ((gsize) STEP * (PTO_FENCES_MAX + 1));
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = NULL;
  PtoBuffer *buffer;
  guint mappings, descriptors, n;

  if (with_children != NULL)
    {
      host = pto_worker_new_host (3, 0, 1, NULL, &error);
      g_assert_no_error (error);
      g_assert_true (pto_worker_start (host, NULL, &error));
      g_assert_no_error (error);
    }
  buffer = pto_buffer_new (100, &error);
  g_assert_no_error (error);
  n = fill_list (memory);
  g_assert_cmpuint (n, <, PTO_FENCES_MAX);
  g_assert_cmpuint (n, >, PTO_FENCES_MAX / 2);
  mappings = count_lines ("/proc/self/maps");
  descriptors = count_descriptors ();
  /* So large that the arena could not keep any of them. */
  for (guint i = 0; i < 64; i++)
    {
      g_assert_null (pto_buffer_new (G_GUINT64_CONSTANT (1) << 29, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY);
      object_test_assert_contains (error->message, "no memory for one more buffer");
      object_test_assert_contains (error->message, G_STRINGIFY (131072));
      g_clear_error (&error);
    }
  /* Sanitizers have some of their own. */
  g_assert_cmpuint (count_lines ("/proc/self/maps"), <, mappings + 16);
  g_assert_cmpuint (count_descriptors (), ==, descriptors);
  empty_list (memory, n);
  for (guint i = 0; i < 64; i++)
    {
      g_autoptr (PtoBuffer) large = pto_buffer_new (G_GUINT64_CONSTANT (1) << 29, &error);

      g_assert_no_error (error);
      g_assert_cmpuint (pto_buffer_get_size (large), ==, G_GUINT64_CONSTANT (1) << 29);
      /* Of the arena still: a mapping of its own would be of a file of its own. */
      g_assert_cmpint (pto_buffer_get_fd_offset (large) != 0, ==, with_children != NULL);
    }
  pto_buffer_unref (buffer);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/pto/full/mapping", NULL, test_full);
  g_test_add_data_func ("/pto/full/arena", GINT_TO_POINTER (1), test_full);
  return g_test_run ();
}
