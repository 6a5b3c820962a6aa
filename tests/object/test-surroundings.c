/* test-surroundings.c: what foreign code brings along, does it stay whole, and does it stay its
 * own?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "level-test.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE_S 110
#define N 64

static const char *const backends[] = { "par", "det", "threads" };

typedef struct
{
  char *dir;
  const char *backend;
  PtoBuffer *buffer;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;

  fixture->dir = object_test_make_dir ();
  fixture->backend = backend;
  fixture->buffer = pto_buffer_new (N * sizeof (float), &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *fixture, gconstpointer backend)
{
  pto_buffer_unref (fixture->buffer);
  object_test_remove_dir (fixture->dir);
}

/* The buffer as whole numbers, which kernels and the test share. */
static _Atomic int *
words (Fixture *fixture)
{
  return (_Atomic int *) (guintptr) pto_buffer_get_address (fixture->buffer);
}

static PtoCallable *
make_kernel (Fixture *fixture, const char *name, const char *text, const char *flag)
{
  const char *flags[] = { flag, NULL };
  g_autoptr (GError) error = NULL;
  PtoCallable *kernel = object_test_kernel (fixture->dir, name, text);

  if (flag != NULL)
    pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), flags, &error);
  g_assert_no_error (error);
  return kernel;
}

static PtoWorker *
make_checked_worker (const char *backend, const char *check)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = pto_worker_new_chip (NULL, &error);

  g_assert_no_error (error);
  pto_worker_set_parameter (worker, "backend", backend, &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (worker, "check", check, &error);
  g_assert_no_error (error);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  return worker;
}

static PtoWorker *
make_worker (const char *backend)
{
  return make_checked_worker (backend, "none");
}

typedef struct
{
  PtoCallable *kernel;
  PtoBuffer *buffer;
  guint n_tasks;
} Graph;

static gboolean
submit_some (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Graph *graph = data;
  g_autoptr (PtoTensor) tensor = object_test_vector (graph->buffer);

  for (guint i = 0; i < graph->n_tasks; i++)
    if (!pto_orchestrator_submit_full (orchestrator, graph->kernel, error, PTO_INOUT (tensor),
                                       NULL))
      return FALSE;
  return TRUE;
}

static gboolean
run (PtoWorker *worker, PtoCallable *kernel, Fixture *fixture, guint n_tasks, GError **error)
{
  Graph graph = { kernel, fixture->buffer, n_tasks };

  return pto_worker_run (worker, submit_some, &graph, NULL, NULL, NULL, error);
}

/* One worker's whole life. */
static void
run_and_close (Fixture *fixture, PtoCallable *kernel)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = make_worker (fixture->backend);

  run (worker, kernel, fixture, 1, &error);
  g_assert_no_error (error);
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
}

static void
wait_for (_Atomic int *word, int value)
{
  gint64 end = g_get_monotonic_time () + DEADLINE_S * G_USEC_PER_SEC;

  while (atomic_load (word) != value)
    {
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      g_usleep (1000);
    }
}

static guint
count_lines (const char *path, const char *text)
{
  g_autofree char *contents = NULL;
  g_auto (GStrv) lines = NULL;
  guint n = 0;

  g_assert_true (g_file_get_contents (path, &contents, NULL, NULL));
  lines = g_strsplit (contents, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    n += lines[i][0] != '\0' && strstr (lines[i], text) != NULL;
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

#define TENSOR                                                               \
  "#include \"tensor.h\"\n"                                                  \
  "#include <stdatomic.h>\n"                                                 \
  "static _Atomic int *words (int64_t *args)\n"                              \
  "{\n"                                                                      \
  "  const TensorData *t = (const TensorData *) args[0];\n"                  \
  "  return (_Atomic int *) ((float *) t->buffer.addr + t->start_offset);\n" \
  "}\n"

/* --- what outlives its worker --- */

static const char thread_source[]
    = TENSOR "#include <pthread.h>\n"
             "#include <time.h>\n"
             "static void *live (void *data)\n"
             "{\n"
             "  _Atomic int *w = data;\n"
             "  const struct timespec pause = { 0, 1000000 };\n"
             "  while (w[0] == 0)\n"
             "    nanosleep (&pause, 0);\n"
             "  w[1] = 17;\n"
             "  return 0;\n"
             "}\n"
             "void kernel_entry (int64_t *args)\n"
             "{\n"
             "  pthread_t thread;\n"
             "  if (pthread_create (&thread, 0, live, words (args)) == 0)\n"
             "    pthread_detach (thread);\n"
             "}\n";

/* A thread that a kernel began runs on when the worker is closed. */
static void
test_thread (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (PtoCallable) kernel = make_kernel (fixture, "thread.c", thread_source, "-pthread");

  run_and_close (fixture, kernel);
  atomic_store (&words (fixture)[0], 1);
  wait_for (&words (fixture)[1], 17);
}

static const char key_source[]
    = TENSOR "#include <pthread.h>\n"
             "static pthread_key_t key;\n"
             "static pthread_once_t once = PTHREAD_ONCE_INIT;\n"
             "static void done (void *data) { (*(_Atomic int *) data)++; }\n"
             "static void make (void) { pthread_key_create (&key, done); }\n"
             "void kernel_entry (int64_t *args)\n"
             "{\n"
             "  pthread_once (&once, make);\n"
             "  pthread_setspecific (key, words (args));\n"
             "}\n";

typedef struct
{
  Fixture *fixture;
  PtoCallable *kernel;
} Life;

static gpointer
live (gpointer data)
{
  Life *life = data;

  run_and_close (life->fixture, life->kernel);
  return NULL;
}

/* The destructor is called when the thread ends, whichever that is: after the worker, perhaps. */
static void
test_key (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (PtoCallable) kernel = make_kernel (fixture, "key.c", key_source, "-pthread");
  Life life = { fixture, kernel };

  for (int i = 1; i <= 3; i++)
    {
      g_thread_join (g_thread_new ("life", live, &life));
      wait_for (&words (fixture)[0], i);
    }
}

static const char openmp_source[] = TENSOR "void kernel_entry (int64_t *args)\n"
                                           "{\n"
                                           "  _Atomic int *w = words (args);\n"
                                           "#pragma omp parallel for num_threads(4)\n"
                                           "  for (int i = 0; i < 64; i++)\n"
                                           "    w[i]++;\n"
                                           "}\n";

/* OpenMP's threads spin, then sleep, in its library's code. */
static void
test_openmp (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (PtoCallable) kernel = make_kernel (fixture, "openmp.c", openmp_source, "-fopenmp");

  for (int i = 1; i <= 5; i++)
    {
      run_and_close (fixture, kernel);
      for (int w = 0; w < N; w++)
        g_assert_cmpint (words (fixture)[w], ==, i);
      g_assert_cmpuint (count_lines ("/proc/self/maps", "libgomp"), >, 0);
    }
}

/* --- what stays loaded --- */

static guint64
count_loaded (PtoWorker *worker)
{
  g_autoptr (PtoRunStatistics) statistics = pto_worker_dup_statistics (worker);

  return pto_run_statistics_get_loaded_objects (statistics);
}

enum
{
  LOADS = 1000,
  EDITS = 6
};

static void
write_edit (Fixture *fixture, const char *name, int edit)
{
  g_autofree char *text = g_strdup_printf (
      TENSOR "void kernel_entry (int64_t *args)\n{\n  words (args)[%d] = %d;\n}\n"
             "const char backend[] = \"%s\";\n",
      edit, edit + 1, fixture->backend);

  g_free (object_test_write (fixture->dir, name, text));
}

/* Registers what a file holds, and takes it back. */
static void
load (PtoWorker *worker, const char *path, Fixture *fixture, gboolean runs)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (worker, kernel, NULL, &error);

  g_assert_no_error (error);
  if (runs)
    run (worker, kernel, fixture, 1, &error);
  g_assert_no_error (error);
  pto_worker_unregister (worker, handle, &error);
  g_assert_no_error (error);
}

/* The same contents are loaded once, however often they are asked for. An edit adds one object, and
 * no descriptor. */
static void
test_loaded (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = make_worker (backend);
  g_autofree char *path = g_build_filename (fixture->dir, "edit.c", NULL);
  g_autofree char *object = NULL;
  guint descriptors;
  guint mappings;
  guint64 loaded;

  write_edit (fixture, "edit.c", 0);
  object = pto_compile_shared_object (path, NULL, &error);
  g_assert_no_error (error);
  for (int i = 0; i < 2; i++)
    load (worker, object, fixture, TRUE);
  descriptors = count_descriptors ();
  mappings = count_lines ("/proc/self/maps", "libpto-object");
  loaded = count_loaded (worker);
  g_assert_cmpuint (loaded, >=, 1);
  for (int i = 0; i < LOADS; i++)
    load (worker, object, fixture, i + 1 == LOADS);
  g_assert_cmpuint (count_descriptors (), ==, descriptors);
  g_assert_cmpuint (count_lines ("/proc/self/maps", "libpto-object"), ==, mappings);
  g_assert_cmpuint (count_loaded (worker), ==, loaded);
  for (int edit = 1; edit <= EDITS; edit++)
    {
      g_autofree char *edited = NULL;

      write_edit (fixture, "edit.c", edit);
      edited = pto_compile_shared_object (path, NULL, &error);
      g_assert_no_error (error);
      words (fixture)[edit] = 0;
      load (worker, edited, fixture, TRUE);
      g_assert_cmpint (words (fixture)[edit], ==, edit + 1);
      g_assert_cmpuint (count_loaded (worker), ==, loaded + (guint) edit);
    }
  g_assert_cmpuint (count_descriptors (), ==, descriptors);
  /* Back to the first: it is there. */
  words (fixture)[0] = 0;
  load (worker, object, fixture, TRUE);
  g_assert_cmpint (words (fixture)[0], ==, 1);
  g_assert_cmpuint (count_loaded (worker), ==, loaded + EDITS);
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
}

/* --- control words of the processor --- */

/* A float that has no leading one: 0 where such numbers are computed as 0. */
#define SMALL 3e-39f

/* Scales each number by a factor that the compiler does not know. */
#define SCALE(factor)                                          \
  "#include \"tensor.h\"\n"                                    \
  "volatile float factor = " factor ";\n"                      \
  "void kernel_entry (int64_t *args)\n"                        \
  "{\n"                                                        \
  "  const TensorData *t = (const TensorData *) args[0];\n"    \
  "  float *p = (float *) t->buffer.addr + t->start_offset;\n" \
  "  for (uint64_t i = 0; i < t->shapes[0]; i++)\n"            \
  "    p[i] *= factor;\n"                                      \
  "}\n"

static gboolean
loses_small (void)
{
  volatile float small = SMALL;
  volatile float half = small * 0.5f;

  return half == 0;
}

static gpointer
loses_small_in_thread (gpointer data)
{
  return GINT_TO_POINTER (loses_small ());
}

static void
assert_halved (Fixture *fixture, PtoWorker *worker, PtoCallable *kernel)
{
  g_autoptr (GError) error = NULL;
  static const float expected = SMALL * 0.5f; /* the compiler's */
  float *floats = object_test_floats (fixture->buffer);

  for (int i = 0; i < N; i++)
    floats[i] = SMALL;
  run (worker, kernel, fixture, 1, &error);
  g_assert_no_error (error);
  for (int i = 0; i < N; i++)
    g_assert_cmpmem (&floats[i], sizeof floats[i], &expected, sizeof expected);
}

/* GCC links a constructor into what is built with -Ofast, which has small numbers computed as 0. */
static void
test_fast_math (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) half = make_kernel (fixture, "half.c", SCALE ("0.5f"), NULL);
  g_autoptr (PtoCallable) fast = make_kernel (fixture, "fast.c", SCALE ("2"), "-Ofast");
  PtoWorker *worker = make_worker (backend);

  assert_halved (fixture, worker, half);
  run (worker, fast, fixture, 1, &error);
  g_assert_no_error (error);
  g_assert_false (loses_small ());
  g_assert_null (g_thread_join (g_thread_new ("later", loses_small_in_thread, NULL)));
  assert_halved (fixture, worker, half);
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
}

/* A program that has them computed as 0 keeps that, and kernels do not have it on any back end. */
static void
test_fast_program (Fixture *fixture, gconstpointer backend)
{
#if defined(__x86_64__)
  g_autoptr (PtoCallable) half = make_kernel (fixture, "half.c", SCALE ("0.5f"), NULL);
  guint32 before = __builtin_ia32_stmxcsr ();
  PtoWorker *worker;

  __builtin_ia32_ldmxcsr (before | 0x8040);
  worker = make_worker (backend);
  assert_halved (fixture, worker, half);
  g_assert_true (loses_small ());
  pto_worker_close (worker);
  g_assert_true (loses_small ());
  __builtin_ia32_ldmxcsr (before);
  g_assert_finalize_object (worker);
#else
  g_test_skip ("written for x86-64");
#endif
}

static gboolean
change_rounding (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  fesetround (FE_UPWARD);
  return TRUE;
}

/* So does a function of the program that changes them for itself. */
static void
test_rounding (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = make_worker (backend);

  pto_worker_run (worker, change_rounding, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (fegetround (), ==, FE_TONEAREST);
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
}

/* --- OpenMP in children --- */

typedef void (*OpenMp) (void (*func) (void *data), void *data, unsigned int n_threads,
                        unsigned int flags);

static OpenMp openmp; /* of GCC's runtime; NULL: it is not here */

static void
count_one (void *data)
{
  atomic_fetch_add ((_Atomic guint64 *) data, 1);
}

static gboolean
count_by_openmp (PtoTaskArgs *args, gpointer data, GError **error)
{
  openmp (count_one, (void *) &level_test_words (args, 0)[0], 4, 0);
  return TRUE;
}

static gboolean
submit_count (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  gpointer *both = data;
  LevelTestBoard *board = both[1];

  return level_test_submit (orchestrator, both[0], board->tensor, PTO_DIRECTION_INOUT, 0, -1,
                            error);
}

/* A function in a child uses OpenMP as its parent did before: the threads of that are not there. */
static void
test_openmp_in_sub (void)
{
  gpointer library = dlopen ("libgomp.so.1", RTLD_NOW);
  _Atomic guint64 own = 0;
  LevelTestBoard board;
  LevelTestState state;

  if (library != NULL)
    *(void **) &openmp = dlsym (library, "GOMP_parallel");
  if (openmp == NULL)
    {
      g_test_skip ("no libgomp.so.1");
      return;
    }
  level_test_begin (&state);
  level_test_board_init (&board);
  for (guint64 i = 1; i <= 3; i++)
    {
      g_autoptr (GError) error = NULL;
      PtoWorker *host;
      PtoCallableHandle *handle;
      gpointer both[2];

      openmp (count_one, (void *) &own, 4, 0);
      g_assert_cmpuint (own, ==, 8 * i - 4);
      host = level_test_host (3, 0, 1);
      handle = level_test_register (host, "count", count_by_openmp);
      pto_worker_start (host, NULL, &error);
      g_assert_no_error (error);
      /* The parent's are begun again. */
      openmp (count_one, (void *) &own, 4, 0);
      g_assert_cmpuint (own, ==, 8 * i);
      both[0] = handle;
      both[1] = &board;
      pto_worker_run (host, submit_count, both, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (board.words[0], ==, 4 * i);
      pto_callable_handle_unref (handle);
      pto_worker_close (host);
      g_assert_finalize_object (host);
    }
  level_test_board_clear (&board);
  /* Its threads go, so that the others are counted. */
  if (dlsym (library, "omp_pause_resource_all") != NULL)
    {
      int (*pause) (int kind);

      *(void **) &pause = dlsym (library, "omp_pause_resource_all");
      pause (1);
    }
  level_test_end (&state);
}

/* So does a chip in a process of its own, whose kernels run on the thread that was forked. */
static void
test_openmp_apart (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (PtoCallable) kernel = make_kernel (fixture, "openmp.c", openmp_source, "-fopenmp");

  for (int i = 0; i < 2; i++)
    {
      g_autoptr (GError) error = NULL;
      PtoWorker *worker;

      /* On det that is this thread, too. */
      run_and_close (fixture, kernel);
      worker = pto_worker_new_chip (NULL, &error);
      g_assert_no_error (error);
      pto_worker_set_parameter (worker, "backend", backend, &error);
      g_assert_no_error (error);
      pto_worker_set_parameter (worker, "isolate", "1", &error);
      g_assert_no_error (error);
      pto_worker_start (worker, NULL, &error);
      g_assert_no_error (error);
      run (worker, kernel, fixture, 2, &error);
      g_assert_no_error (error);
      for (int w = 0; w < N; w++)
        g_assert_cmpint (words (fixture)[w], ==, 3 * (i + 1));
      pto_worker_close (worker);
      g_assert_finalize_object (worker);
    }
}

/* --- sanitizers --- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const char fill_source[] = TENSOR "void kernel_entry (int64_t *args)\n"
                                         "{\n"
                                         "  words (args)[0] = 5;\n"
                                         "}\n";

/* FALSE, and the test is skipped: the compiler has no such runtime. */
static gboolean
run_sanitized (Fixture *fixture, PtoWorker *worker, const char *text, const char *flag,
               GError **error)
{
  g_autoptr (PtoCallable) kernel = make_kernel (fixture, "sanitized.c", text, flag);
  GError *local = NULL;

  run (worker, kernel, fixture, 1, &local);
  if (g_error_matches (local, PTO_ERROR, PTO_ERROR_COMPILE))
    {
      g_test_skip (local->message);
      g_error_free (local);
      return FALSE;
    }
  if (local != NULL)
    g_propagate_error (error, local);
  return TRUE;
}

/* The runtime of AddressSanitizer ends a program that it is loaded into later. */
static void
test_address (Fixture *fixture, gconstpointer backend)
{
  if (SANITIZED)
    {
      g_test_skip ("the runtime is there");
      return;
    }
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = make_worker (backend);
  gboolean is_there = run_sanitized (fixture, worker, fill_source, "-fsanitize=address", &error);

  if (is_there && g_test_subprocess ())
    {
      g_assert_no_error (error);
      g_assert_cmpint (words (fixture)[0], ==, 5);
    }
  else if (is_there)
    {
      static const char before[] = "start the program with ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=";
      g_autofree char *library = NULL;
      const char *advice;

      g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
      object_test_assert_contains (error->message, "-fsanitize=address");
      object_test_assert_contains (error->message, before);
      advice = strstr (error->message, before) + strlen (before);
      library = g_strndup (advice, strcspn (advice, ","));
      /* Following it works. */
      g_setenv ("ASAN_OPTIONS", "detect_leaks=0", TRUE);
      g_setenv ("LD_PRELOAD", library, TRUE);
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_unsetenv ("LD_PRELOAD");
      g_unsetenv ("ASAN_OPTIONS");
      g_test_trap_assert_passed ();
    }
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
}

/* The runtime of ThreadSanitizer knows only fibers that it is told of. */
static void
test_thread_sanitizer (Fixture *fixture, gconstpointer backend)
{
  if (SANITIZED)
    {
      g_test_skip ("the runtime is there");
      return;
    }
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = make_worker (backend);

  if (run_sanitized (fixture, worker, fill_source, "-fsanitize=thread", &error))
    {
      g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
      object_test_assert_contains (error->message, "-fsanitize=thread");
      object_test_assert_contains (error->message, "build it without");
    }
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
}

static const char overflow_source[] = TENSOR "void kernel_entry (int64_t *args)\n"
                                             "{\n"
                                             "  int value = words (args)[1];\n"
                                             "  words (args)[0] = value + 1;\n"
                                             "}\n";

/* With -fno-sanitize-recover, the runtime of UBSan ends the program. */
static void
run_undefined (Fixture *fixture, PtoWorker *worker)
{
  if (SANITIZED)
    {
      g_test_skip ("the runtime is another one");
      pto_worker_close (worker);
      g_assert_finalize_object (worker);
      return;
    }
  static const char *const flags[]
      = { "-fsanitize=undefined", "-fno-sanitize-recover=undefined", NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "overflow.c", overflow_source);

  pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), flags, &error);
  g_assert_no_error (error);
  for (int i = 0; i < 3; i++)
    {
      words (fixture)[1] = G_MAXINT;
      run (worker, kernel, fixture, 1, &error);
      if (g_error_matches (error, PTO_ERROR, PTO_ERROR_COMPILE))
        {
          g_test_skip (error->message);
          g_clear_error (&error);
          break;
        }
      g_assert_error (error, PTO_ERROR, PTO_ERROR_KERNEL_FAULT);
      object_test_assert_contains (error->message, "called exit() through its sanitizer");
      g_clear_error (&error);
      words (fixture)[1] = 4;
      run (worker, kernel, fixture, 1, &error);
      g_assert_no_error (error);
      g_assert_cmpint (words (fixture)[0], ==, 5);
    }
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
}

static void
test_undefined (Fixture *fixture, gconstpointer backend)
{
  run_undefined (fixture, make_worker (backend));
}

static void
test_undefined_checked (Fixture *fixture, gconstpointer backend)
{
  run_undefined (fixture, make_checked_worker (backend, "access"));
}

/* Clang links no runtime to a shared object. */
static void
test_undefined_clang (Fixture *fixture, gconstpointer backend)
{
  static const char *const flags[] = { "-fsanitize=undefined", NULL };
  g_autofree char *clang = g_find_program_in_path ("clang");
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "overflow.c", overflow_source);
  PtoWorker *worker;

  if (clang == NULL || SANITIZED)
    {
      g_test_skip ("no clang, or the runtime is another one");
      return;
    }
  g_setenv ("CC", clang, TRUE);
  worker = make_worker (backend);
  pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), flags, &error);
  g_assert_no_error (error);
  run (worker, kernel, fixture, 1, &error);
  g_unsetenv ("CC");
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  object_test_assert_contains (error->message, "with -fsanitize-trap=undefined, or without");
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
}

int
main (int argc, char **argv)
{
  static const struct
  {
    const char *name;
    void (*test) (Fixture *fixture, gconstpointer backend);
  } tests[] = {
    { "thread", test_thread },
    { "key", test_key },
    { "openmp", test_openmp },
    { "loaded", test_loaded },
    { "fast-math", test_fast_math },
    { "fast-program", test_fast_program },
    { "rounding", test_rounding },
    { "openmp-apart", test_openmp_apart },
    { "address", test_address },
    { "thread-sanitizer", test_thread_sanitizer },
    { "undefined", test_undefined },
    { "undefined-checked", test_undefined_checked },
    { "undefined-clang", test_undefined_clang },
  };

  /* They ask for the end of the program, and the runtime reads them as the program began. */
  if (!SANITIZED && g_getenv ("UBSAN_OPTIONS") != NULL)
    {
      g_unsetenv ("UBSAN_OPTIONS");
      execv ("/proc/self/exe", argv);
    }
  g_test_init (&argc, &argv, NULL);
  alarm (DEADLINE_S);
  for (gsize t = 0; t < G_N_ELEMENTS (tests); t++)
    for (gsize b = 0; b < G_N_ELEMENTS (backends); b++)
      {
        g_autofree char *path
            = g_strdup_printf ("/pto/surroundings/%s/%s", tests[t].name, backends[b]);

        g_test_add (path, Fixture, backends[b], set_up, tests[t].test, tear_down);
      }
  g_test_add_func ("/pto/surroundings/openmp-in-sub", test_openmp_in_sub);
  return g_test_run ();
}
