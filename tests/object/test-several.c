/* test-several.c: can a function say what runs as more than one kernel on one core, and where?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#define CLUSTERS 4
#define BLOCKS 100
#define NUMBERS 1000

#define HEAD                                                      \
  "#include \"pto_block.h\"\n"                                    \
  "#include \"tensor.h\"\n"                                       \
  "static int32_t *\n"                                            \
  "cells (int64_t arg)\n"                                         \
  "{\n"                                                           \
  "  return (int32_t *) ((const TensorData *) arg)->buffer.addr;" \
  "}\n"                                                           \
  "void kernel_entry (int64_t *args)\n"

enum
{
  BLOCK,  /* its block's cell of args[0] += 10 * blocks + args[1] */
  CUBE,   /* pushes 5 */
  VECTOR, /* its cell of three for each block: 1 + sub-block, + what it popped, if it is the first
           */
  MEET,   /* sets its cell, and after a barrier all others have */
  MEET_CUBE,
  SCRATCH, /* adds up 0 ... NUMBERS - 1 in args[1], into args[0] */
  N_KERNELS
};

static const struct
{
  PtoCoreType type;
  const char *text;
} sources[N_KERNELS] = {
  [BLOCK] = { PTO_CORE_AIV, HEAD "{ cells (args[0])[get_block_idx (args)]\n"
                                 "    += 10 * (int32_t) get_block_num (args) + args[1]; }\n" },
  [CUBE] = { PTO_CORE_AIC, HEAD "{ int32_t five = 5; TPUSH (args, 0, &five, 4);\n"
                                "  cells (args[0])[3 * get_block_idx (args)] += 1; }\n" },
  [VECTOR] = { PTO_CORE_AIV, HEAD "{ int32_t sub = get_sub_block_id (args), more = 0;\n"
                                  "  if (sub == 0) TPOP (args, 0, &more, 4);\n"
                                  "  cells (args[0])[3 * get_block_idx (args) + 1 + sub]\n"
                                  "    += 1 + sub + more; }\n" },
  [MEET] = { PTO_CORE_AIV, HEAD "{ int32_t sum = 0; cells (args[0])[get_block_idx (args)] = 1;\n"
                                "  pto_sync_all (args);\n"
                                "  for (uint32_t i = 0; i < get_block_num (args); i++)\n"
                                "    sum += cells (args[0])[i];\n"
                                "  pto_sync_all (args);\n"
                                "  cells (args[0])[get_block_idx (args)] = sum; }\n" },
  [MEET_CUBE] = { PTO_CORE_AIC, HEAD "{ int32_t sum = 0;\n"
                                     "  cells (args[0])[get_block_idx (args)] = 1;\n"
                                     "  pto_sync_all (args);\n"
                                     "  for (uint32_t i = 0; i < get_block_num (args); i++)\n"
                                     "    sum += cells (args[0])[i];\n"
                                     "  pto_sync_all (args);\n"
                                     "  cells (args[0])[get_block_idx (args)] = 100 + sum; }\n" },
  [SCRATCH]
  = { PTO_CORE_AIV, HEAD "{ int32_t sum = 0;\n"
                         "  for (int32_t i = 0; i < 1000; i++) cells (args[1])[i] = i;\n"
                         "  for (int32_t i = 0; i < 1000; i++) sum += cells (args[1])[i];\n"
                         "  cells (args[0])[0] += sum; }\n" },
};

typedef struct
{
  char *dir;
  PtoCallable *kernels[N_KERNELS];
  PtoBuffer *buffer;
  PtoTensor *tensor; /* of all of it */
  PtoTensor *shape;  /* without memory */
  PtoWorker *worker;
  int cluster; /* of another run */
} Chip;

static gint32 *
cells (Chip *chip)
{
  return (gint32 *) pto_buffer_get_address (chip->buffer);
}

static void
chip_init (Chip *chip, const char *backend, gboolean isolate)
{
  const guint64 n = 3 * BLOCKS;
  const guint64 numbers = NUMBERS;
  g_autoptr (GError) error = NULL;

  chip->dir = object_test_make_dir ();
  for (guint i = 0; i < N_KERNELS; i++)
    {
      g_autofree char *name = g_strdup_printf ("kernel%u.c", i);
      g_autofree char *path = object_test_write (chip->dir, name, sources[i].text);

      chip->kernels[i] = pto_kernel_new (sources[i].type, path, NULL, &error);
      g_assert_no_error (error);
    }
  chip->buffer = pto_buffer_new (n * sizeof (gint32), &error);
  g_assert_no_error (error);
  memset (cells (chip), 0, n * sizeof (gint32));
  chip->tensor = pto_tensor_new_for_buffer (chip->buffer, 0, PTO_DTYPE_INT32, 1, &n, &error);
  g_assert_no_error (error);
  chip->shape = pto_tensor_new (PTO_DTYPE_INT32, 1, &numbers);
  chip->worker = g_object_new (PTO_TYPE_WORKER, "isolate", isolate, NULL);
  pto_worker_set_parameter (chip->worker, "backend", backend, &error);
  pto_worker_set_parameter (chip->worker, "clusters", G_STRINGIFY (CLUSTERS), &error);
  pto_worker_set_parameter (chip->worker, "aicpu-threads", "3", &error);
  g_assert_no_error (error);
}

static void
chip_clear (Chip *chip)
{
  pto_worker_close (chip->worker);
  g_object_unref (chip->worker);
  for (guint i = 0; i < N_KERNELS; i++)
    g_object_unref (chip->kernels[i]);
  pto_tensor_unref (chip->tensor);
  pto_tensor_unref (chip->shape);
  pto_buffer_unref (chip->buffer);
  object_test_remove_dir (chip->dir);
}

static PtoTaskArgs *
make_args (Chip *chip)
{
  PtoTaskArgs *args = pto_task_args_new ();

  pto_task_args_add_tensor (args, chip->tensor, PTO_DIRECTION_INOUT);
  return args;
}

/* Runs it, on zeros. */
static guint64
run (Chip *chip, PtoOrchestrationFunc graph)
{
  g_autoptr (PtoRunStatistics) statistics = NULL;
  g_autoptr (GError) error = NULL;

  memset (cells (chip), 0, 3 * BLOCKS * sizeof (gint32));
  pto_worker_run (chip->worker, graph, chip, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  statistics = pto_worker_dup_statistics (chip->worker);
  return pto_run_statistics_get_tasks (statistics);
}

/* --- blocks, mixed tasks, groups, scratch memory --- */

static gboolean
submit_blocks (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  Chip *chip = data;
  g_autoptr (PtoTaskArgs) own = make_args (chip);

  pto_task_args_add_scalar (own, 7);
  pto_task_args_set_block_dim (own, BLOCKS);
  if (!pto_orchestrator_submit (orchestrator, chip->kernels[BLOCK], own, error))
    return FALSE;
  /* Then it is as it was. */
  pto_task_args_reset (own);
  pto_task_args_add_tensor (own, chip->tensor, PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar (own, 1000);
  return pto_orchestrator_submit (orchestrator, chip->kernels[BLOCK], own, error);
}

static gboolean
submit_mixed (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Chip *chip = data;
  g_autoptr (PtoTaskArgs) own = make_args (chip);

  pto_task_args_set_block_dim (own, BLOCKS);
  return pto_orchestrator_submit_mixed (orchestrator, chip->kernels[CUBE], chip->kernels[VECTOR],
                                        chip->kernels[VECTOR], own, error);
}

static gboolean
submit_sync (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Chip *chip = data;
  g_autoptr (PtoTaskArgs) own = make_args (chip);

  pto_task_args_set_block_dim (own, 2 * CLUSTERS);
  pto_task_args_set_sync_start (own, TRUE);
  return pto_orchestrator_submit (orchestrator, chip->kernels[MEET], own, error);
}

static gboolean
submit_group (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Chip *chip = data;
  g_autoptr (PtoTaskArgs) own = make_args (chip);
  PtoCallable *kernels[3 * CLUSTERS];

  for (guint i = 0; i < G_N_ELEMENTS (kernels); i++)
    kernels[i] = chip->kernels[i % 3 == 0 ? MEET_CUBE : MEET];
  return pto_orchestrator_submit_group (orchestrator, kernels, G_N_ELEMENTS (kernels), own, error);
}

static gboolean
submit_scratch (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  Chip *chip = data;
  g_autoptr (PtoTaskArgs) own = make_args (chip);

  pto_task_args_add_tensor (own, chip->shape, PTO_DIRECTION_SCRATCH);
  return pto_orchestrator_submit (orchestrator, chip->kernels[SCRATCH], own, error)
         && pto_orchestrator_submit_full (orchestrator, chip->kernels[SCRATCH], error,
                                          PTO_INOUT (chip->tensor), PTO_SCRATCH (chip->shape),
                                          NULL);
}

static void
check_values (Chip *chip)
{
  const gint32 *values = cells (chip);

  g_assert_cmpuint (run (chip, submit_blocks), ==, 2);
  for (guint i = 0; i < 3 * BLOCKS; i++)
    g_assert_cmpint (values[i], ==, i == 0 ? 2017 : i < BLOCKS ? 1007 : 0);
  g_assert_cmpuint (run (chip, submit_mixed), ==, 1);
  for (guint i = 0; i < BLOCKS; i++)
    {
      g_assert_cmpint (values[3 * i], ==, 1);
      g_assert_cmpint (values[3 * i + 1], ==, 6);
      g_assert_cmpint (values[3 * i + 2], ==, 2);
    }
  g_assert_cmpuint (run (chip, submit_sync), ==, 1);
  for (guint i = 0; i < 3 * BLOCKS; i++)
    g_assert_cmpint (values[i], ==, i < 2 * CLUSTERS ? 2 * CLUSTERS : 0);
  g_assert_cmpuint (run (chip, submit_group), ==, 1);
  for (guint i = 0; i < 3 * CLUSTERS; i++)
    g_assert_cmpint (values[i], ==, (i % 3 == 0 ? 100 : 0) + 3 * CLUSTERS);
  g_assert_cmpuint (run (chip, submit_scratch), ==, 2);
  g_assert_cmpint (values[0], ==, NUMBERS * (NUMBERS - 1));
}

/* --- clusters --- */

/* A cube kernel fills a pipe that a vector kernel, another task, empties: on one cluster. */
static gboolean
submit_for_cluster (PtoOrchestrator *orchestrator, Chip *chip, int cluster, GError **error)
{
  g_autoptr (PtoTaskArgs) own = make_args (chip);

  pto_task_args_set_cluster (own, cluster);
  return pto_orchestrator_submit (orchestrator, chip->kernels[CUBE], own, error)
         && pto_orchestrator_submit (orchestrator, chip->kernels[VECTOR], own, error);
}

static gboolean
submit_clustered (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                  gpointer data, GError **error)
{
  Chip *chip = data;
  g_autofree guint *cubes = NULL;
  g_autofree guint *vectors = NULL;
  guint seen = 0;
  gsize n;

  g_assert_cmpuint (pto_orchestrator_get_n_clusters (orchestrator), ==, CLUSTERS);
  cubes = pto_orchestrator_dup_cluster_cores (orchestrator, 3, PTO_CORE_AIC, &n, error);
  g_assert_cmpuint (n, ==, 1);
  g_assert_cmpuint (cubes[0], ==, 3);
  vectors = pto_orchestrator_dup_cluster_cores (orchestrator, 3, PTO_CORE_AIV, &n, error);
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpuint (vectors[0], ==, 6);
  g_assert_cmpuint (vectors[1], ==, 7);
  /* More than there are: each is free again when its tasks are done. */
  for (guint i = 0; i < 5 * CLUSTERS; i++)
    {
      int cluster = pto_orchestrator_allocate_cluster (orchestrator, error);

      if (cluster < 0)
        return FALSE;
      g_assert_cmpint (cluster, <, CLUSTERS);
      if (!submit_for_cluster (orchestrator, chip, cluster, error)
          || !pto_orchestrator_free_cluster (orchestrator, cluster, error))
        return FALSE;
    }
  /* All at one time, which the scope gives back, and all again. */
  for (guint round = 0; round < 2; round++)
    {
      g_autoptr (PtoScopeGuard) scope = pto_scope_guard_new (orchestrator, error);

      g_assert_nonnull (scope);
      seen = 0;
      for (guint i = 0; i < CLUSTERS; i++)
        {
          chip->cluster = pto_orchestrator_allocate_cluster (orchestrator, error);
          if (chip->cluster < 0 || !submit_for_cluster (orchestrator, chip, chip->cluster, error))
            return FALSE;
          seen |= 1u << chip->cluster;
        }
      g_assert_cmphex (seen, ==, (1u << CLUSTERS) - 1);
    }
  return TRUE;
}

static gboolean
allocate_too_many (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                   gpointer data, GError **error)
{
  for (guint i = 0; i < CLUSTERS; i++)
    g_assert_cmpint (pto_orchestrator_allocate_cluster (orchestrator, error), >=, 0);
  g_assert_cmpint (pto_orchestrator_allocate_cluster (orchestrator, error), ==, -1);
  g_assert_error (*error, PTO_ERROR, PTO_ERROR_RUN_FAILED);
  return FALSE;
}

static void
check_clusters (Chip *chip)
{
  g_autoptr (GError) error = NULL;
  guint n = 5 * CLUSTERS + 2 * CLUSTERS;

  g_assert_cmpuint (run (chip, submit_clustered), ==, 2 * n);
  g_assert_cmpint (cells (chip)[0], ==, n);
  g_assert_cmpint (cells (chip)[1], ==, 6 * n);
  g_assert_false (pto_worker_run (chip->worker, allocate_too_many, chip, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_SCOPE_DEADLOCK);
  object_test_assert_contains (error->message, "no cluster is free, and none will be: all 4 are");
  object_test_assert_contains (error->message, "set clusters to more");
}

/* --- what is refused, and loses nothing --- */

#define REFUSED(call, what, ...)                               \
  G_STMT_START                                                 \
  {                                                            \
    static const char *const words_[] = { __VA_ARGS__ };       \
    g_autoptr (GError) own_ = NULL;                            \
    GError **why = &own_;                                      \
    g_assert_false (call);                                     \
    g_assert_error (own_, PTO_ERROR, what);                    \
    for (guint i_ = 0; i_ < G_N_ELEMENTS (words_); i_++)       \
      object_test_assert_contains (own_->message, words_[i_]); \
  }                                                            \
  G_STMT_END

static gboolean
submit_refused (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  static const int bad_dims[] = { 0, -1, PTO_MAX_BLOCKS + 1 };
  static const int bad_clusters[] = { -1, CLUSTERS, G_MAXINT };
  const guint64 index = 0;
  Chip *chip = data;
  PtoCallable **kernels = chip->kernels;
  PtoCallable *cubes[CLUSTERS + 1];
  PtoCallable *holes[2] = { kernels[CUBE], NULL };
  g_autoptr (PtoTaskArgs) own = make_args (chip);
  g_autoptr (PtoTaskArgs) plain = make_args (chip);
  g_autoptr (PtoTensor) made = NULL;
  g_autoptr (PtoTensor) part = NULL;
  PtoTensor *seen[3];
  int freed;
  gsize n;

  for (guint i = 0; i < G_N_ELEMENTS (bad_dims); i++)
    {
      pto_task_args_set_block_dim (own, bad_dims[i]);
      REFUSED (pto_orchestrator_submit (orchestrator, kernels[MEET], own, why),
               PTO_ERROR_INVALID_ARGS, "kernel \"kernel3\": block_dim is", "1 to 268435455 blocks");
      REFUSED (pto_orchestrator_submit_mixed (orchestrator, kernels[CUBE], NULL, NULL, own, why),
               PTO_ERROR_INVALID_ARGS, "kernel \"kernel1\": block_dim is");
    }
  pto_task_args_set_block_dim (own, 2 * CLUSTERS + 1);
  pto_task_args_set_sync_start (own, TRUE);
  REFUSED (pto_orchestrator_submit (orchestrator, kernels[MEET], own, why), PTO_ERROR_SYNC_START,
           "kernel \"kernel3\": block_dim is 9, and with sync_start",
           "has cores for 8:", "set clusters to more");
  pto_task_args_set_block_dim (own, CLUSTERS + 1);
  REFUSED (pto_orchestrator_submit (orchestrator, kernels[MEET_CUBE], own, why),
           PTO_ERROR_SYNC_START, "block_dim is 5", "has cores for 4:");
  REFUSED (pto_orchestrator_submit_mixed (orchestrator, kernels[CUBE], kernels[VECTOR],
                                          kernels[VECTOR], own, why),
           PTO_ERROR_SYNC_START, "block_dim is 5", "has cores for 4:");
  REFUSED (pto_orchestrator_submit_group (orchestrator, kernels, 1, own, why),
           PTO_ERROR_INVALID_ARGS, "kernel \"kernel0\"", "the arguments have a block_dim",
           "leave that out");
  pto_task_args_set_condition (own, chip->tensor, 1, &index);
  REFUSED (pto_orchestrator_submit_order (orchestrator, own, why), PTO_ERROR_INVALID_ARGS,
           "no condition");
  pto_task_args_reset (own);
  pto_task_args_set_block_dim (own, 2);
  REFUSED (pto_orchestrator_submit_order (orchestrator, own, why), PTO_ERROR_INVALID_ARGS,
           "no blocks and no cluster");

  REFUSED (pto_orchestrator_submit_mixed (orchestrator, kernels[VECTOR], NULL, NULL, plain, why),
           PTO_ERROR_INVALID_ARGS, "kernel \"kernel2\" is for the AIV, but it is given as aic");
  REFUSED (pto_orchestrator_submit_mixed (orchestrator, NULL, NULL, kernels[CUBE], plain, why),
           PTO_ERROR_INVALID_ARGS, "kernel \"kernel1\" is for the AIC, but it is given as aiv1");
  REFUSED (pto_orchestrator_submit_mixed (orchestrator, NULL, NULL, NULL, plain, why),
           PTO_ERROR_INVALID_ARGS, "at least one kernel");
  for (guint i = 0; i < G_N_ELEMENTS (cubes); i++)
    cubes[i] = kernels[MEET_CUBE];
  REFUSED (pto_orchestrator_submit_group (orchestrator, cubes, CLUSTERS + 1, plain, why),
           PTO_ERROR_SYNC_START, "kernel \"kernel4\": its task needs 5 AIC cores", "has 4 of");
  REFUSED (pto_orchestrator_submit_group (orchestrator, NULL, 0, plain, why),
           PTO_ERROR_INVALID_ARGS, "a group has at least one kernel");
  REFUSED (pto_orchestrator_submit_group (orchestrator, holes, 2, plain, why),
           PTO_ERROR_INVALID_ARGS, "kernel 1 of a group is none");

  for (guint i = 0; i < G_N_ELEMENTS (bad_clusters); i++)
    {
      REFUSED (pto_orchestrator_free_cluster (orchestrator, bad_clusters[i], why),
               PTO_ERROR_INVALID_ARGS, "is freed, but it is not allocated in this run");
      REFUSED (
          pto_orchestrator_dup_cluster_cores (orchestrator, bad_clusters[i], PTO_CORE_AIV, &n, why)
              != NULL,
          PTO_ERROR_INVALID_ARGS, "there is no cluster", "this chip has 4, from 0 on");
    }
  /* Of another run. */
  REFUSED (pto_orchestrator_free_cluster (orchestrator, chip->cluster, why), PTO_ERROR_INVALID_ARGS,
           "not allocated in this run");
  REFUSED (submit_for_cluster (orchestrator, chip, chip->cluster, why), PTO_ERROR_INVALID_ARGS,
           "kernel \"kernel1\"", "not allocated in this run");
  /* Freed, and gone with its scope. */
  freed = pto_orchestrator_allocate_cluster (orchestrator, error);
  pto_task_args_reset (own);
  pto_task_args_add_tensor (own, chip->tensor, PTO_DIRECTION_INOUT);
  pto_task_args_set_cluster (own, freed);
  pto_task_args_set_block_dim (own, 3);
  pto_task_args_set_sync_start (own, TRUE);
  REFUSED (pto_orchestrator_submit (orchestrator, kernels[MEET], own, why), PTO_ERROR_SYNC_START,
           "the cluster has cores for 2:", "submit them for no cluster");
  g_assert_true (pto_orchestrator_free_cluster (orchestrator, freed, error));
  REFUSED (submit_for_cluster (orchestrator, chip, freed, why), PTO_ERROR_INVALID_ARGS,
           "not allocated in this run");
  {
    g_autoptr (PtoScopeGuard) scope = pto_scope_guard_new (orchestrator, error);

    freed = pto_orchestrator_allocate_cluster (orchestrator, error);
    g_assert_cmpint (freed, >=, 0);
  }
  REFUSED (pto_orchestrator_free_cluster (orchestrator, freed, why), PTO_ERROR_INVALID_ARGS,
           "not allocated in this run");

  made = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_INT32, 1, &(guint64){ 8 }, error);
  part = pto_tensor_view (chip->shape, 1, &(guint64){ 4 }, &index, error);
  seen[0] = chip->tensor;
  seen[1] = made;
  seen[2] = part;
  for (guint i = 0; i < G_N_ELEMENTS (seen); i++)
    REFUSED (pto_orchestrator_submit_full (orchestrator, kernels[SCRATCH], why,
                                           PTO_INOUT (chip->tensor), PTO_SCRATCH (seen[i]), NULL),
             PTO_ERROR_INVALID_ARGS, "kernel \"kernel5\": argument 1 is scratch memory",
             "a type and a shape only");
  /* And the run goes on. */
  return submit_sync (orchestrator, args, config, data, error);
}

static void
check_refused (Chip *chip)
{
  g_assert_cmpuint (run (chip, submit_refused), ==, 1);
  for (guint i = 0; i < 2 * CLUSTERS; i++)
    g_assert_cmpint (cells (chip)[i], ==, 2 * CLUSTERS);
}

/* What only a submit says is not taken for an argument of a run. */
static void
check_run_args (Chip *chip)
{
  g_autoptr (PtoCallable) fill = level_test_fill (chip->dir);
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (chip->worker, fill, NULL, &error);

  g_assert_no_error (error);
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (PtoTaskArgs) own = make_args (chip);
      g_autoptr (GError) why = NULL;

      if (i == 0)
        pto_task_args_set_block_dim (own, 2);
      else if (i == 1)
        pto_task_args_set_sync_start (own, TRUE);
      else
        pto_task_args_set_cluster (own, 0);
      g_assert_false (pto_worker_run_callable (chip->worker, handle, own, NULL, NULL, &why));
      g_assert_error (why, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (why->message, "only a submit has that");
    }
}

static void
test_chip (gconstpointer data)
{
  g_auto (GStrv) words = g_strsplit (data, " ", 2);
  Chip chip;

  chip_init (&chip, words[0], words[1] != NULL);
  for (guint round = 0; round < 2; round++)
    {
      check_values (&chip);
      check_clusters (&chip);
      check_refused (&chip);
    }
  check_run_args (&chip);
  chip_clear (&chip);
}

/* --- level 3 --- */

typedef struct
{
  PtoCallableHandle *handle;
  PtoCallable *kernel;
  LevelTestBoard board;
  PtoTensor *shape;
} Level;

/* As the kernel SCRATCH; nobody else has that memory. */
static gboolean
use_scratch (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);
  volatile guint64 *own
      = (volatile guint64 *) (guintptr) pto_tensor_get_address (pto_task_args_get_tensor (args, 1));
  guint64 sum = 0;

  for (guint i = 0; i < NUMBERS; i++)
    own[i] = i;
  g_usleep (1000);
  for (guint i = 0; i < NUMBERS; i++)
    sum += own[i];
  atomic_fetch_add (&words[0], sum);
  return TRUE;
}

static gboolean
submit_on_level (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  Level *level = data;
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();
  gsize n;

  pto_task_args_add_tensor (own, level->board.tensor, PTO_DIRECTION_NO_DEP);
  pto_task_args_add_tensor (own, level->shape, PTO_DIRECTION_SCRATCH);
  for (guint i = 0; i < 20; i++)
    if (!pto_orchestrator_submit_sub (orchestrator, level->handle, own, -1, error))
      return FALSE;
  for (guint i = 0; i < 3; i++)
    {
      pto_task_args_reset (own);
      pto_task_args_add_tensor (own, level->board.tensor, PTO_DIRECTION_NO_DEP);
      if (i == 0)
        pto_task_args_set_block_dim (own, 2);
      else if (i == 1)
        pto_task_args_set_sync_start (own, TRUE);
      else
        pto_task_args_set_cluster (own, 0);
      REFUSED (pto_orchestrator_submit_sub (orchestrator, level->handle, own, -1, why),
               PTO_ERROR_NOT_SUPPORTED, "task of \"use_scratch\": the arguments",
               "which is for kernels, on a chip", "a group runs a callable on several workers");
    }
  pto_task_args_reset (own);
  pto_task_args_add_tensor (own, level->board.tensor, PTO_DIRECTION_SCRATCH);
  REFUSED (pto_orchestrator_submit_sub (orchestrator, level->handle, own, -1, why),
           PTO_ERROR_INVALID_ARGS, "task of \"use_scratch\": argument 0 is scratch memory");
  REFUSED (pto_orchestrator_submit_mixed (orchestrator, level->kernel, NULL, NULL, NULL, why),
           PTO_ERROR_NOT_SUPPORTED, "a task of level 3 runs a registered callable",
           "submit_next_level or submit_sub, or their groups");
  REFUSED (pto_orchestrator_submit_group (orchestrator, &level->kernel, 1, NULL, why),
           PTO_ERROR_NOT_SUPPORTED, "or their groups");
  REFUSED (pto_orchestrator_allocate_cluster (orchestrator, why) >= 0, PTO_ERROR_NOT_SUPPORTED,
           "clusters are for chips");
  REFUSED (pto_orchestrator_free_cluster (orchestrator, 0, why), PTO_ERROR_NOT_SUPPORTED,
           "clusters are for chips");
  REFUSED (pto_orchestrator_dup_cluster_cores (orchestrator, 0, PTO_CORE_AIC, &n, why) != NULL,
           PTO_ERROR_NOT_SUPPORTED, "clusters are for chips");
  g_assert_cmpuint (pto_orchestrator_get_n_clusters (orchestrator), ==, 0);
  return TRUE;
}

static void
test_level (void)
{
  const guint64 numbers = NUMBERS;
  g_autofree char *dir = object_test_make_dir ();
  g_autoptr (PtoWorker) worker = level_test_host (3, 0, 3);
  g_autoptr (GError) error = NULL;
  Level level = { 0 };

  level_test_board_init (&level.board);
  level.handle = level_test_register (worker, "use_scratch", use_scratch);
  level.kernel = object_test_kernel (dir, "fill.c", object_test_fill);
  level.shape = pto_tensor_new (PTO_DTYPE_UINT64, 1, &numbers);
  pto_worker_run (worker, submit_on_level, &level, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (level.board.words[0], ==, 10 * NUMBERS * (NUMBERS - 1));
  pto_worker_close (worker);
  pto_callable_handle_unref (level.handle);
  g_object_unref (level.kernel);
  pto_tensor_unref (level.shape);
  level_test_board_clear (&level.board);
  object_test_remove_dir (g_steal_pointer (&dir));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/pto/several/par", "par", test_chip);
  g_test_add_data_func ("/pto/several/det", "det", test_chip);
  g_test_add_data_func ("/pto/several/threads", "threads", test_chip);
  g_test_add_data_func ("/pto/several/isolated-par", "par isolated", test_chip);
  g_test_add_data_func ("/pto/several/isolated-det", "det isolated", test_chip);
  g_test_add_data_func ("/pto/several/isolated-threads", "threads isolated", test_chip);
  g_test_add_func ("/pto/several/level", test_level);
  return g_test_run ();
}
