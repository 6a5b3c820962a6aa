/* test-properties.c: does a worker answer what it was told, at any time of its life?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <string.h>
#include <unistd.h>

/* --- what was said is answered --- */

typedef struct
{
  const char *name;
  guint level;
  const char *platform; /* NULL: not said */
  guint device_id;
  guint n_subs;
  guint devices[2];
  guint n_devices;
  guint64 heap; /* 0: not said */
  gboolean isolate;
  PtoChildMode mode;
  PtoRestart restart;
  const char *path;
} Case;

static const Case cases[] = {
  { .name = "chip", .level = 2, .path = "L2/0" },
  { .name = "chip-of-its-own",
    .level = 2,
    .platform = "a5sim",
    .device_id = 3,
    .heap = 8 << 20,
    .path = "L2/3" },
  { .name = "isolated", .level = 2, .device_id = 7, .isolate = TRUE, .path = "L2/7" },
  { .name = "subs", .level = 3, .n_subs = 2, .restart = PTO_RESTART_ON_FAILURE, .path = "L3/0" },
  { .name = "devices",
    .level = 3,
    .platform = "a5sim",
    .device_id = 5,
    .n_subs = 1,
    .devices = { 4, 9 },
    .n_devices = 2,
    .heap = 1 << 20,
    .mode = PTO_CHILD_MODE_THREAD,
    .path = "L3/5" },
  { .name = "device-processes", .level = 3, .devices = { 6, 2 }, .n_devices = 2, .path = "L3/0" },
  { .name = "top", .level = 4, .n_subs = 3, .path = "L4/0" },
};

static PtoWorker *
make (const Case *c)
{
  GVariant *ids = NULL;

  if (c->n_devices > 0)
    ids = g_variant_new_fixed_array (G_VARIANT_TYPE_UINT32, c->devices, c->n_devices,
                                     sizeof c->devices[0]);
  return g_object_new (PTO_TYPE_WORKER, "level", c->level, "platform", c->platform, "device-id",
                       c->device_id, "n-sub-workers", c->n_subs, "device-ids", ids,
                       "heap-ring-size", c->heap, "isolate", c->isolate, "child-mode", c->mode,
                       "restart", c->restart, NULL);
}

/* By property and by function; a second time, so that no answer takes anything with it. */
static void
assert_answers (PtoWorker *worker, const Case *c, PtoWorkerState expected, guint64 default_heap)
{
  const char *platform = c->platform != NULL ? c->platform : "a2a3sim";
  guint64 expected_heap = c->heap != 0 ? c->heap : default_heap;
  PtoWorkerState expected_below
      = expected == PTO_WORKER_STATE_READY && c->mode != PTO_CHILD_MODE_THREAD
            ? PTO_WORKER_STATE_NEW
            : expected;

  for (guint i = 0; i < 2; i++)
    {
      g_autofree char *name = NULL, *path = NULL, *own_path = pto_worker_dup_path (worker);
      g_autoptr (GVariant) ids = NULL;
      guint level, device, subs;
      guint64 heap;
      gboolean isolate;
      PtoChildMode mode;
      PtoRestart restart;
      PtoWorkerState state;

      g_object_get (worker, "level", &level, "platform", &name, "device-id", &device,
                    "n-sub-workers", &subs, "device-ids", &ids, "heap-ring-size", &heap, "isolate",
                    &isolate, "child-mode", &mode, "restart", &restart, "path", &path, "state",
                    &state, NULL);
      g_assert_cmpuint (level, ==, c->level);
      g_assert_cmpuint (pto_worker_get_level (worker), ==, c->level);
      g_assert_cmpstr (name, ==, platform);
      g_assert_cmpstr (pto_worker_get_platform (worker), ==, platform);
      g_assert_cmpuint (device, ==, c->device_id);
      g_assert_cmpuint (pto_worker_get_device_id (worker), ==, c->device_id);
      g_assert_cmpuint (subs, ==, c->n_subs);
      g_assert_cmpuint (pto_worker_get_n_sub_workers (worker), ==, c->n_subs);
      g_assert_cmpuint (heap, ==, expected_heap);
      g_assert_cmpuint (pto_worker_get_heap_ring_size (worker), ==, expected_heap);
      g_assert_cmpint (isolate, ==, c->isolate);
      g_assert_cmpint (pto_worker_get_isolate (worker), ==, c->isolate);
      g_assert_cmpint (mode, ==, c->mode);
      g_assert_cmpint (pto_worker_get_child_mode (worker), ==, c->mode);
      g_assert_cmpint (restart, ==, c->restart);
      g_assert_cmpint (pto_worker_get_restart (worker), ==, c->restart);
      g_assert_cmpstr (path, ==, c->path);
      g_assert_cmpstr (own_path, ==, c->path);
      g_assert_cmpint (state, ==, expected);
      g_assert_cmpint (pto_worker_get_state (worker), ==, expected);

      g_assert_cmpuint (pto_worker_get_n_workers (worker), ==, c->n_devices);
      g_assert_null (pto_worker_get_child (worker, c->n_devices));
      g_assert_null (pto_worker_get_child (worker, G_MAXUINT));
      g_assert_cmpuint (ids != NULL ? g_variant_n_children (ids) : 0, ==, c->n_devices);
      for (guint k = 0; k < c->n_devices; k++)
        {
          PtoWorker *child = pto_worker_get_child (worker, k);
          g_autofree char *below = pto_worker_dup_path (child);
          g_autofree char *expected_path = g_strdup_printf ("%s/L2/%u", c->path, k);
          guint id;

          g_variant_get_child (ids, k, "u", &id);
          g_assert_cmpuint (id, ==, c->devices[k]);
          g_assert_cmpuint (pto_worker_get_device_id (child), ==, c->devices[k]);
          g_assert_cmpuint (pto_worker_get_level (child), ==, 2);
          g_assert_cmpstr (pto_worker_get_platform (child), ==, platform);
          /* What runs in another process is new in this one, until it is closed. */
          g_assert_cmpint (pto_worker_get_state (child), ==, expected_below);
          g_assert_cmpstr (below, ==, expected_path);
        }
    }
}

static void
test_answers (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) plain = pto_worker_new (c->level, NULL, NULL);
  guint64 default_heap = pto_worker_get_heap_ring_size (plain);
  LevelTestState state;
  PtoWorker *worker;

  level_test_begin (&state);
  worker = make (c);
  assert_answers (worker, c, PTO_WORKER_STATE_NEW, default_heap);
  g_assert_true (pto_worker_start (worker, NULL, &error));
  g_assert_no_error (error);
  assert_answers (worker, c, PTO_WORKER_STATE_READY, default_heap);
  pto_worker_close (worker);
  assert_answers (worker, c, PTO_WORKER_STATE_CLOSED, default_heap);
  g_assert_finalize_object (worker);
  level_test_end (&state);
}

/* A parameter is the same thing as the property that says it. */
static void
test_parameters (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = pto_worker_new_chip (NULL, &error);

  g_assert_no_error (error);
  for (guint i = 0; i < 4; i++)
    {
      g_autofree char *heap = g_strdup_printf ("%uM", 1u << i);

      g_assert_true (pto_worker_set_parameter (worker, "heap", heap, &error));
      g_assert_true (pto_worker_set_parameter (worker, "isolate", i % 2 == 1 ? "1" : "0", &error));
      g_assert_no_error (error);
      g_assert_cmpuint (pto_worker_get_heap_ring_size (worker), ==, (guint64) (1u << i) << 20);
      g_assert_cmpint (pto_worker_get_isolate (worker), ==, i % 2 == 1);
    }
}

/* --- workers that are nothing --- */

static gboolean
do_nothing (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  return TRUE;
}

/* Whatever is asked of a worker of a level that there is not, it says that there is not. */
static void
test_no_such_level (void)
{
  static const guint levels[] = { 0, 1, 16, 17, G_MAXUINT };
  g_autoptr (PtoCallable) callable
      = pto_orchestration_function_new ("nothing", do_nothing, NULL, NULL);
  guint64 word = 0, at = (guint64) (guintptr) &word;

  for (guint i = 0; i < G_N_ELEMENTS (levels); i++)
    for (guint step = 0; step < 8; step++)
      {
        g_autoptr (GError) error = NULL;
        g_autoptr (GBytes) bytes = g_bytes_new_static ("abcd", 4);
        PtoWorker *worker = g_object_new (PTO_TYPE_WORKER, "level", levels[i], NULL);
        g_autofree char *level = g_strdup_printf ("level %u", levels[i]);

        g_assert_null (pto_worker_ref_trace (worker));
        g_assert_cmpuint (pto_worker_get_level (worker), ==, levels[i]);
        if (step == 0)
          g_assert_false (pto_worker_start (worker, NULL, &error));
        else if (step == 1)
          g_assert_null (pto_worker_register (worker, callable, NULL, &error));
        else if (step == 2)
          g_assert_false (pto_worker_run (worker, do_nothing, NULL, NULL, NULL, NULL, &error));
        else if (step == 3)
          g_assert_cmpuint (pto_worker_malloc (worker, 8, &error), ==, 0);
        else if (step == 4)
          g_assert_false (pto_worker_free (worker, at, &error));
        else if (step == 5)
          g_assert_false (pto_worker_copy_to (worker, at, bytes, &error));
        else if (step == 6)
          g_assert_null (pto_worker_copy_from (worker, at, 8, &error));
        else
          g_assert_false (pto_worker_copy_from_address (worker, at, at, 8, &error));
        g_assert_nonnull (error);
        g_assert_true (error->domain == PTO_ERROR);
        /* Or how it would become clear. */
        if (strstr (error->message, "pto_worker_start()") == NULL)
          object_test_assert_contains (error->message, level);
        g_assert_finalize_object (worker);
      }
}

/* --- whoever is below --- */

/* Workers that outlive the one above them are nobody's. */
static void
test_orphans (void)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *above = level_test_host (4, 0, 0);
  PtoWorker *below[3];

  for (guint i = 0; i < 3; i++)
    {
      g_autofree char *expected = g_strdup_printf ("L4/0/L3/%u", i);
      g_autofree char *path = NULL;

      below[i] = level_test_host (3, 0, 1);
      g_assert_true (pto_worker_add_worker (above, below[i], &error));
      g_assert_no_error (error);
      path = pto_worker_dup_path (below[i]);
      g_assert_cmpstr (path, ==, expected);
      g_assert_true (pto_worker_get_child (above, i) == below[i]);
    }
  g_assert_finalize_object (above);
  for (guint i = 0; i < 3; i++)
    {
      g_autofree char *path = pto_worker_dup_path (below[i]);

      g_assert_cmpstr (path, ==, "L3/0");
      pto_worker_start (below[i], NULL, &error);
      g_assert_no_error (error);
      g_assert_finalize_object (below[i]);
    }
}

/* --- functions that it was given --- */

typedef struct
{
  guint called;
  guint destroyed;
} Given;

static pid_t
fork_here (gpointer data)
{
  ((Given *) data)->called++;
  return fork ();
}

static PtoCallable *
import_nothing (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  ((Given *) data)->called++;
  g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, "nothing is imported here");
  return NULL;
}

static void
destroyed (gpointer data)
{
  ((Given *) data)->destroyed++;
}

static void
give (PtoWorker *worker, gboolean import, Given *given)
{
  if (import)
    pto_worker_set_import_func (worker, given != NULL ? import_nothing : NULL, given,
                                given != NULL ? destroyed : NULL);
  else
    pto_worker_set_fork_func (worker, given != NULL ? fork_here : NULL, given,
                              given != NULL ? destroyed : NULL);
}

/* Another one takes the place of the first, none of it; later ones are let go of at once. */
static void
test_given (gconstpointer import)
{
  g_autoptr (GError) error = NULL;
  Given given[4] = { { 0 } };
  PtoWorker *host = level_test_host (3, 0, 2);

  give (host, import != NULL, &given[0]);
  give (host, import != NULL, &given[1]);
  g_assert_cmpuint (given[0].destroyed, ==, 1);
  g_assert_cmpuint (given[1].destroyed, ==, 0);
  give (host, import != NULL, NULL);
  g_assert_cmpuint (given[1].destroyed, ==, 1);
  give (host, import != NULL, &given[2]);
  g_assert_true (pto_worker_start (host, NULL, &error));
  g_assert_no_error (error);
  give (host, import != NULL, &given[3]);
  g_assert_cmpuint (given[3].destroyed, ==, 1);
  give (host, import != NULL, NULL);
  g_assert_cmpuint (given[2].destroyed, ==, 0);
  g_assert_cmpuint (given[2].called, ==, import != NULL ? 0 : 2);
  pto_worker_close (host);
  g_assert_cmpuint (given[2].destroyed, ==, 0);
  g_assert_finalize_object (host);
  for (guint i = 0; i < 4; i++)
    {
      g_assert_cmpuint (given[i].destroyed, ==, 1);
      g_assert_cmpuint (given[i].called, ==, i == 2 && import == NULL ? 2 : 0);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/pto/properties/answers/", cases[i].name, NULL);

      g_test_add_data_func (path, &cases[i], test_answers);
    }
  g_test_add_func ("/pto/properties/parameters", test_parameters);
  g_test_add_func ("/pto/properties/no-such-level", test_no_such_level);
  g_test_add_func ("/pto/properties/orphans", test_orphans);
  g_test_add_data_func ("/pto/properties/given/fork", NULL, test_given);
  g_test_add_data_func ("/pto/properties/given/import", GINT_TO_POINTER (1), test_given);
  return g_test_run ();
}
