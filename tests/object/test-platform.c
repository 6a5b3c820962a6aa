/* test-platform.c: is a chip what a file says of it, and is what is wrong in there said?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <glib/gstdio.h>
#include <string.h>

#define SMALL                                                                         \
  "[platform]\nclusters=3\naic-per-cluster = 2\naiv-per-cluster=4\naicpu-threads=3\n" \
  "counter-hz=1000\ndescription=a small one\n"

static char *
write_file (const char *dir, const char *text)
{
  return object_test_write (dir, "chip.ini", text);
}

static void
test_file (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = object_test_make_dir ();
  g_autofree char *path = write_file (dir, SMALL);
  g_autoptr (PtoPlatform) platform = pto_platform_lookup (path, &error);
  g_autoptr (PtoPlatform) copy = NULL;
  g_autoptr (PtoPlatform) like = NULL;

  g_assert_no_error (error);
  copy = pto_platform_copy (platform);
  g_clear_pointer (&platform, pto_platform_free);
  g_assert_cmpstr (pto_platform_get_name (copy), ==, path);
  g_assert_cmpstr (pto_platform_get_description (copy), ==, "a small one");
  g_assert_cmpuint (pto_platform_get_n_clusters (copy), ==, 3);
  g_assert_cmpuint (pto_platform_get_cores_per_cluster (copy, PTO_CORE_AIC), ==, 2);
  g_assert_cmpuint (pto_platform_get_cores_per_cluster (copy, PTO_CORE_AIV), ==, 4);
  g_assert_cmpuint (pto_platform_get_n_aicpu_threads (copy), ==, 3);
  g_assert_cmpuint (pto_platform_get_counter_frequency (copy), ==, 1000);

  /* What is not said is as on another one. */
  g_free (write_file (dir, "[platform]\nlike=a5sim\nclusters=7\n"));
  like = pto_platform_lookup (path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (pto_platform_get_n_clusters (like), ==, 7);
  g_assert_cmpuint (pto_platform_get_n_aicpu_threads (like), ==, 5);
  g_assert_cmpuint (pto_platform_get_counter_frequency (like), ==, 1000 * 1000 * 1000);
  g_assert_cmpstr (pto_platform_get_description (like), ==,
                   "7 clusters of 1 AIC + 2 AIV, 4 schedulers + 1 orchestrator, 1000000000 Hz "
                   "counter");
  object_test_remove_dir (dir);
}

static gboolean
submit_two (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
            gpointer kernel, GError **error)
{
  g_autoptr (PtoTaskArgs) fill = pto_task_args_new ();

  pto_task_args_add_tensor (fill, pto_task_args_get_tensor (args, 0), PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar_float (fill, 4.0f);
  return pto_orchestrator_submit (orchestrator, kernel, fill, error)
         && pto_orchestrator_submit (orchestrator, kernel, fill, error);
}

/* Two tasks, one after the other. Gives how long they took on the chip's clock. */
static guint64
run_on (PtoWorker *worker, PtoCallable *kernel, guint aic, guint aiv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (16, &error);
  g_autoptr (PtoTensor) tensor = object_test_vector (buffer);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoRunStatistics) statistics = NULL;

  g_assert_no_error (error);
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_INOUT);
  pto_worker_set_parameter (worker, "backend", "det", &error);
  g_assert_no_error (error);
  pto_worker_run (worker, submit_two, kernel, args, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (buffer)[3], ==, 4);
  statistics = pto_worker_dup_statistics (worker);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIC), ==, aic);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIV), ==, aiv);
  return pto_run_statistics_get_virtual_ns (statistics);
}

/* A worker finds its file wherever the program has gone meanwhile; the costs are those of the
 * clock: what each task takes more is there twice. */
static void
test_run (void)
{
  static const char *const costs[]
      = { "submit=0\nsubmit-argument=0\ndispatch=0\npoll=0\nfanout=0\nstart=0\nfinish=0\n",
          "submit=0\nsubmit-argument=0\ndispatch=0\npoll=0\nfanout=0\nstart=70000\nfinish=0\n",
          "submit=0\nsubmit-argument=0\ndispatch=300000\npoll=0\nfanout=0\nstart=0\nfinish=0\n" };
  static const guint64 more[] = { 0, 2 * 70000, 2 * 300000 };
  char *dir = object_test_make_dir ();
  g_autofree char *here = g_get_current_dir ();
  g_autoptr (PtoCallable) kernel = object_test_kernel (dir, "fill.c", object_test_fill);
  guint64 least = 0;

  g_assert_true (pto_kernel_set_cost (PTO_KERNEL (kernel), "constant:1000", NULL));
  for (guint i = 0; i < G_N_ELEMENTS (costs); i++)
    {
      g_autofree char *text = g_strdup_printf ("%s[costs]\n%s", SMALL, costs[i]);
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoWorker) worker = NULL;
      guint64 ns;

      g_free (write_file (dir, text));
      g_assert_cmpint (g_chdir (dir), ==, 0);
      worker = pto_worker_new_chip ("chip.ini", &error);
      g_assert_no_error (error);
      g_assert_cmpint (g_chdir (here), ==, 0);
      ns = run_on (worker, kernel, 6, 12);
      if (i == 0)
        least = ns;
      g_assert_cmpuint (ns, ==, least + more[i]);
    }
  object_test_remove_dir (dir);
}

/* A chip below another worker is as well what the file says. */
static void
test_below (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = object_test_make_dir ();
  g_autofree char *path = write_file (dir, SMALL);
  g_autoptr (PtoWorker) host = pto_worker_new_host (3, 2, 0, path, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (pto_worker_get_platform (pto_worker_get_child (host, 1)), ==, path);
  pto_worker_start (host, NULL, &error);
  g_assert_no_error (error);
  pto_worker_close (host);
  object_test_remove_dir (dir);
}

static void
test_refused (void)
{
  static const struct
  {
    const char *text;
    PtoError code;
    const char *says;
  } cases[] = {
    { NULL, PTO_ERROR_NOT_FOUND, "there is no such file" },
    { "clusters=3\n", PTO_ERROR_INVALID_ARGS, "Key file " },
    { "[costs]\nsubmit=1\n", PTO_ERROR_INVALID_ARGS, "the group [platform] is missing" },
    { "[platform]\n[cost]\n", PTO_ERROR_INVALID_ARGS,
      "unknown group [cost] (known: [platform], [costs])" },
    { "[platform]\nclusters=1\nclusters=2\n", PTO_ERROR_INVALID_ARGS,
      "line 3: the key \"clusters\" is there twice in [platform]" },
    { "[platform]\ncluster=3\n", PTO_ERROR_INVALID_ARGS,
      "[platform]: unknown key \"cluster\" (known: clusters, aic-per-cluster, aiv-per-cluster, "
      "aicpu-threads, counter-hz, description, like)" },
    { "[platform]\n[costs]\nsubmitt=3\n", PTO_ERROR_INVALID_ARGS,
      "[costs]: unknown key \"submitt\" (known: submit, submit-argument, dispatch, poll, fanout, "
      "start, finish, pipe)" },
    { "[platform]\nlike=a9sim\n", PTO_ERROR_INVALID_ARGS,
      "[platform]: like=a9sim: one of a2a3sim, a5sim wanted" },
    { "[platform]\nclusters=0\n", PTO_ERROR_INVALID_ARGS,
      "[platform]: clusters=0: a number from 1 to 1024 wanted" },
    { "[platform]\naiv-per-cluster=many\n", PTO_ERROR_INVALID_ARGS,
      "[platform]: aiv-per-cluster=many: a number from 1 to 16 wanted" },
    { "[platform]\naicpu-threads=1\n", PTO_ERROR_INVALID_ARGS,
      "[platform]: aicpu-threads=1: a number from 2 to 64 wanted" },
    { "[platform]\ncounter-hz=-1\n", PTO_ERROR_INVALID_ARGS,
      "[platform]: counter-hz=-1: a number from 1 to 1000000000000 wanted" },
    { "[platform]\n[costs]\npoll=1000000001\n", PTO_ERROR_INVALID_ARGS,
      "[costs]: poll=1000000001: a number from 0 to 1000000000 wanted" },
    { "[platform]\nclusters=2\n", PTO_ERROR_INVALID_ARGS,
      "[platform]: aicpu-threads=4 means 3 schedulers for clusters=2: " },
    { "[platform]\nclusters=1024\naiv-per-cluster=3\n", PTO_ERROR_INVALID_ARGS,
      "[platform]: clusters=1024 of 1 + 3 cores are 4096: at most 3072 wanted" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      char *dir = object_test_make_dir ();
      g_autofree char *path = g_build_filename (dir, "chip.ini", NULL);
      g_autofree char *begin = g_strdup_printf ("%s: %s", path, cases[i].says);

      if (cases[i].text != NULL)
        g_free (write_file (dir, cases[i].text));
      g_test_message ("%s", cases[i].says);
      g_assert_null (pto_worker_new_chip (path, &error));
      g_assert_error (error, PTO_ERROR, (int) cases[i].code);
      if (strncmp (error->message, begin, strlen (begin)) != 0)
        g_error ("\"%s\" does not begin with \"%s\"", error->message, begin);
      g_assert_null (strchr (error->message, '\n'));
      object_test_remove_dir (dir);
    }
}

/* The parameter clusters is a chip of more cores than there can be: of this platform. */
static void
test_too_many_cores (void)
{
  char *dir = object_test_make_dir ();
  g_autofree char *path
      = write_file (dir, "[platform]\nclusters=4\naic-per-cluster=16\naiv-per-cluster=16\n");

  for (guint isolate = 0; isolate < 2; isolate++)
    {
      g_autoptr (PtoWorker) worker
          = g_object_new (PTO_TYPE_WORKER, "platform", path, "isolate", isolate != 0, NULL);
      g_autoptr (GError) error = NULL;

      g_assert_true (pto_worker_set_parameter (worker, "clusters", "97", &error));
      g_assert_false (pto_worker_start (worker, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message,
                                   "clusters 97 of 32 cores are 3104 cores: a chip has at most "
                                   "3072, so one of this platform 1 to 96 clusters");
      g_clear_error (&error);
      g_assert_true (pto_worker_set_parameter (worker, "clusters", "5", &error));
      g_assert_true (pto_worker_start (worker, NULL, &error));
      g_assert_no_error (error);
      pto_worker_close (worker);
    }
  object_test_remove_dir (dir);
}

/* The chips themselves. */
static void
test_hardware (void)
{
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (pto_platform_lookup (i == 0 ? "a2a3" : "a5", &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
      object_test_assert_contains (error->message, i == 0 ? "\"a2a3\"" : "\"a5\"");
      object_test_assert_contains (error->message, "is the chip itself: libpto has no module");
      object_test_assert_contains (error->message, "simulated are a2a3sim, a5sim");
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/platform/file", test_file);
  g_test_add_func ("/pto/platform/run", test_run);
  g_test_add_func ("/pto/platform/below", test_below);
  g_test_add_func ("/pto/platform/refused", test_refused);
  g_test_add_func ("/pto/platform/hardware", test_hardware);
  g_test_add_func ("/pto/platform/too-many-cores", test_too_many_cores);
  return g_test_run ();
}
