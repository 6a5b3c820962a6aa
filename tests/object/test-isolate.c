/* test-isolate.c: does a chip in a process of its own do what one here does, and hold what that can
 * not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The tests of workers run once more with the environment's PTO_ISOLATE; here is what they do not
 * ask.
 */
#include "object-test.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 1000
#define DEADLINE_US (60 * G_USEC_PER_SEC)

typedef struct
{
  char *dir;
  PtoWorker *worker;
  PtoCallable *add;
  PtoCallable *fill;
  PtoCallable *evil; /* or NULL */
  PtoBuffer *buffer;
  float *array; /* private memory */
} Fixture;

static PtoWorker *
make_worker (gboolean isolate)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = g_object_new (PTO_TYPE_WORKER, "isolate", isolate, NULL);

  g_assert_cmpint (pto_worker_get_isolate (worker), ==, isolate);
  pto_worker_set_parameter (worker, "timeout", "400", &error);
  g_assert_no_error (error);
  return worker;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  fixture->dir = object_test_make_dir ();
  fixture->add = object_test_kernel (fixture->dir, "add.c", object_test_add);
  fixture->fill = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  fixture->worker = make_worker (TRUE);
  pto_worker_start (fixture->worker, NULL, &error);
  g_assert_no_error (error);
  fixture->buffer = pto_buffer_new (N * sizeof (float), NULL);
  fixture->array = g_new0 (float, N);
}

/* Processes that this one has, without those that are about to go. */
static guint
count_children (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/children", (int) getpid ());
  g_autofree char *text = NULL;
  guint n = 0;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return 0;
  for (const char *at = text; *at != '\0'; at++)
    n += *at == ' ';
  return n;
}

static guint
count_descriptors (void)
{
  DIR *dir = opendir ("/proc/self/fd");
  guint n = 0;

  while (readdir (dir) != NULL)
    n++;
  closedir (dir);
  return n;
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  /* Whoever still has it. */
  pto_worker_close (fixture->worker);
  g_assert_cmpuint (count_children (), ==, 0);
  g_object_unref (fixture->worker);
  g_object_unref (fixture->add);
  g_object_unref (fixture->fill);
  g_clear_object (&fixture->evil);
  pto_buffer_unref (fixture->buffer);
  g_free (fixture->array);
  object_test_remove_dir (fixture->dir);
}

static guint32
bits_of (float value)
{
  guint32 bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

static PtoTensor *
array_tensor (float *array, guint64 n)
{
  return pto_tensor_new_external ((guint64) (guintptr) array, PTO_DTYPE_FLOAT32, 1, &n);
}

/* buffer = 3 */
static gboolean
fill_buffer (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) x = object_test_vector (fixture->buffer);

  return pto_orchestrator_submit_full (orchestrator, fixture->fill, error, PTO_OUT_EXISTING (x),
                                       PTO_SCALAR (bits_of (3)), NULL);
}

static guint write_line; /* of the submit in write_past() */

/* Of the program's own memory, with room behind it. */
static gboolean
write_past (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) x = array_tensor (fixture->array, N - 20);

  write_line = __LINE__ + 1;
  return pto_orchestrator_submit_full (orchestrator, fixture->evil, error, PTO_OUT_EXISTING (x),
                                       NULL);
}

static void
check_works (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;

  memset (object_test_floats (fixture->buffer), 0, N * sizeof (float));
  pto_worker_run (fixture->worker, fill_buffer, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (object_test_floats (fixture->buffer)[i], ==, 3);
}

/* --- what kernels do to a process --- */

typedef struct
{
  const char *name;
  const char *text; /* what kernel_entry does with p, the address of its output */
  gboolean may_pass;
} Evil;

static const Evil evils[] = {
  { "segmentation-fault", "*bad = 1;" },
  { "division", "volatile int zero = 0; p[0] = (float) (7 / zero);" },
  { "trap", "__builtin_trap ();" },
  { "abort", "abort ();" },
  { "exit", "exit (3);" },
  { "raw-exit", "raw (SYS_exit_group, 3);" },
  { "raw-thread-exit", "raw (SYS_exit, 3);" },
  { "pthread-exit", "pthread_exit (0);" },
  { "pthread-cancel", "pthread_cancel (pthread_self ()); for (;;) pthread_testcancel ();" },
  { "kill", "kill (getpid (), SIGKILL); pause ();" },
  { "fault-in-a-thread", "pthread_t t; pthread_create (&t, 0, crash, 0); pthread_join (t, 0);" },
  { "default-handler", "signal (SIGSEGV, SIG_DFL); *bad = 1;" },
  { "no-alternate-stack",
    "stack_t off = { .ss_flags = SS_DISABLE }; sigaltstack (&off, 0); deep (p);" },
  { "stack-overflow", "deep (p);" },
  { "huge-frame", "volatile char frame[8 << 20]; frame[0] = 1; p[0] = frame[0];" },
  { "blocked-signals",
    "sigset_t all; sigfillset (&all); sigprocmask (SIG_SETMASK, &all, 0); for (;;) pause ();" },
  { "endless-loop", "for (;;) __asm__ volatile (\"\");" },
  { "scribbled-stack", "memset ((char *) __builtin_frame_address (0) - 64, 0x5a, 100000);", TRUE },
  { "output-unmapped", "munmap ((void *) ((uintptr_t) p & ~4095ul), 4096); p[0] = 1;" },
  { "output-protected",
    "mprotect ((void *) ((uintptr_t) p & ~4095ul), 4096, PROT_READ); p[0] = 1;" },
#ifdef __x86_64__
  { "breakpoint", "__asm__ volatile (\"int3\");" },
  { "direction-flag", "__asm__ volatile (\"std\");", TRUE },
  { "thread-register", "syscall (SYS_arch_prctl, 0x1002, 0); errno = 1;" },
#endif
  { "arguments-overwritten", "memset (args, 0xff, 16);", TRUE },
  { "signal-mask", "sigset_t all; sigfillset (&all); pthread_sigmask (SIG_SETMASK, &all, 0);",
    TRUE },
};

static const char evil_head[]
    = "#define _GNU_SOURCE\n"
      "#include \"tensor.h\"\n"
      "#include <errno.h>\n"
      "#include <pthread.h>\n"
      "#include <signal.h>\n"
      "#include <stdlib.h>\n"
      "#include <string.h>\n"
      "#include <sys/mman.h>\n"
      "#include <sys/syscall.h>\n"
      "#include <unistd.h>\n"
      "static volatile int *volatile bad = (volatile int *) 8;\n"
      "static void *crash (void *p) { *bad = 1; return p; }\n"
      /* Not through the C library, whose exit a chip knows. */
      "static inline long raw (long number, long a)\n"
      "{\n"
      "#if defined(__x86_64__)\n"
      "  __asm__ volatile (\"syscall\" : \"+a\"(number) : \"D\"(a) : \"rcx\", \"r11\", \"memory\");\n"
      "  return number;\n"
      "#elif defined(__aarch64__)\n"
      "  register long x8 __asm__ (\"x8\") = number, x0 __asm__ (\"x0\") = a;\n"
      "  __asm__ volatile (\"svc 0\" : \"+r\"(x0) : \"r\"(x8) : \"memory\");\n"
      "  return x0;\n"
      "#else\n"
      "  return syscall (number, a);\n"
      "#endif\n"
      "}\n"
      "static __attribute__ ((noinline)) float deep (volatile float *p)\n"
      "{ volatile float a[256]; a[0] = p[0]; return bad == 0 ? 0 : a[0] + deep (a); }\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *x = (const TensorData *) args[0];\n"
      "  float *p = (float *) x->buffer.addr;\n"
      "  (void) crash; (void) deep; (void) raw; (void) p;\n  ";

static gboolean
submit_evil (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) x = object_test_vector (fixture->buffer);

  return pto_orchestrator_submit_full (orchestrator, fixture->fill, error, PTO_OUT_EXISTING (x),
                                       PTO_SCALAR (bits_of (1)), NULL)
         && pto_orchestrator_submit_full (orchestrator, fixture->evil, error, PTO_INOUT (x), NULL);
}

static void
test_evil (Fixture *fixture, gconstpointer data)
{
  const Evil *evil = data;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strconcat (evil_head, evil->text, "\n}\n", NULL);
  gboolean ok;

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  pto_callable_set_name (fixture->evil, "evil");
  for (guint i = 0; i < 2; i++)
    {
      ok = pto_worker_run (fixture->worker, submit_evil, fixture, NULL, NULL, NULL, &error);
      if (!ok)
        {
          g_test_message ("%s", error->message);
          object_test_assert_contains (error->message, "task 1 ");
          object_test_assert_contains (error->message, "(evil)");
          object_test_assert_contains (error->message, " on core AIV");
          g_assert_null (strchr (error->message, '\n'));
        }
      else
        g_assert_true (evil->may_pass);
      g_clear_error (&error);
      check_works (fixture);
    }
}

/* --- memory --- */

/* y = x + x, of two parts that overlap by half, and into a third that overlaps them. */
static gboolean
add_parts (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
           GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) first = array_tensor (fixture->array, 400);
  g_autoptr (PtoTensor) second = array_tensor (fixture->array + 200, 400);
  g_autoptr (PtoTensor) third = array_tensor (fixture->array + 500, 400);
  g_autoptr (PtoTensor) all = array_tensor (fixture->array, N);
  g_autoptr (PtoTensor) last
      = pto_tensor_view (all, 1, (const guint64[]){ 100 }, (const guint64[]){ 900 }, error);

  return last != NULL
         && pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (first),
                                          PTO_IN (second), PTO_OUT_EXISTING (third), NULL)
         && pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (third),
                                          PTO_IN (second), PTO_OUT_EXISTING (second), NULL)
         && pto_orchestrator_submit_full (orchestrator, fixture->fill, error,
                                          PTO_OUT_EXISTING (last), PTO_SCALAR (bits_of (9)), NULL);
}

static void
test_private_memory (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoWorker) here = make_worker (FALSE);
  g_autoptr (GError) error = NULL;
  float results[2][N];

  for (guint w = 0; w < 2; w++)
    for (guint round = 0; round < 3; round++)
      {
        for (guint i = 0; i < N; i++)
          fixture->array[i] = (float) (i + round);
        pto_worker_start (here, NULL, &error);
        g_assert_no_error (error);
        pto_worker_run (w == 0 ? here : fixture->worker, add_parts, fixture, NULL, NULL, NULL,
                        &error);
        g_assert_no_error (error);
        memcpy (results[w], fixture->array, sizeof results[w]);
      }
  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (results[0][i], ==, results[1][i]);
  g_assert_cmpfloat (results[1][999], ==, 9);
  g_assert_cmpfloat (results[1][500], !=, 502);
}

static gboolean
move_element (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) all = array_tensor (fixture->array, N);
  g_auto (GValue) value = G_VALUE_INIT;

  return pto_orchestrator_get_element (orchestrator, all, 1, (const guint64[]){ 6 }, &value, error)
         && pto_orchestrator_set_element (orchestrator, all, 1, (const guint64[]){ 5 }, &value,
                                          error);
}

/* Single elements, too: the process has been there for longer than their values. */
static void
test_private_element (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  for (guint round = 1; round <= 3; round++)
    {
      fixture->array[6] = (float) round;
      pto_worker_run (fixture->worker, move_element, fixture, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (fixture->array[5], ==, round);
    }
}

/* Of a registered orchestration what it writes is not known: what has changed is copied back. */
static void
test_private_memory_of_callable (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (fixture->dir, "graph.c", object_test_orchestration);
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (path, NULL, &error);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) x = array_tensor (fixture->array + 10, 100);

  g_assert_no_error (error);
  g_assert_true (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "fill",
                                                    fixture->fill, &error));
  handle = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_assert_no_error (error);
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_scalar (args, 100);
  pto_worker_run_callable (fixture->worker, handle, args, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (fixture->array[i], ==, i >= 10 && i < 110 ? 7 : 0);
}

/* More arguments than a request has room for: they go through memory of both. */
static void
test_many_arguments (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (object_test_orchestration);
  g_autofree char *path = NULL;
  g_autoptr (PtoCallable) chip = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;

  /* It takes as many as it is given. */
  g_assert_cmpuint (g_string_replace (text, "{ 2 }", "{ n }", 0), ==, 1);
  path = object_test_write (fixture->dir, "graph.c", text->str);
  chip = pto_chip_orchestration_new (path, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "fill",
                                                    fixture->fill, &error));
  handle = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_assert_no_error (error);
  for (guint step = 0; step < 3; step++)
    {
      const guint n = 1 << (6 * step + 1);
      g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
      g_autoptr (PtoTensor) x = object_test_vector (fixture->buffer);

      memset (object_test_floats (fixture->buffer), 0, N * sizeof (float));
      pto_task_args_add_tensor (args, x, PTO_DIRECTION_OUTPUT_EXISTING);
      for (guint i = 1; i < n; i++)
        pto_task_args_add_scalar (args, N);
      pto_worker_run_callable (fixture->worker, handle, args, NULL, NULL, &error);
      g_assert_no_error (error);
      for (guint i = 0; i < N; i++)
        g_assert_cmpfloat (object_test_floats (fixture->buffer)[i], ==, 7);
    }
}

static void
test_device_memory (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  guint64 address = pto_worker_malloc (fixture->worker, 100, &error);
  g_autofree char *text = g_strconcat (evil_head, "raw (SYS_exit_group, 0);\n}\n", NULL);
  char bytes[100] = "kept";

  g_assert_no_error (error);
  g_assert_true (pto_worker_copy_to_address (fixture->worker, address, (guint64) (guintptr) bytes,
                                             sizeof bytes, &error));
  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  g_assert_false (pto_worker_run (fixture->worker, submit_evil, fixture, NULL, NULL, NULL, &error));
  g_clear_error (&error);
  memset (bytes, 0, sizeof bytes);
  g_assert_true (pto_worker_copy_from_address (fixture->worker, (guint64) (guintptr) bytes, address,
                                               sizeof bytes, &error));
  g_assert_cmpstr (bytes, ==, "kept");
  g_assert_true (pto_worker_free (fixture->worker, address, &error));
  g_assert_false (pto_worker_free (fixture->worker, address, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
}

/* --- records --- */

static gboolean
many (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
      GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) x = object_test_vector (fixture->buffer);

  for (guint i = 0; i < 300; i++)
    {
      g_autoptr (PtoTensor) y = NULL;

      if (!pto_orchestrator_begin_scope (orchestrator, error))
        return FALSE;
      y = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 1, (const guint64[]){ N },
                                        error);
      if (y == NULL
          || !pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (x),
                                            PTO_IN (x), PTO_OUT (y), NULL)
          || !pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (y),
                                            PTO_IN (x), PTO_OUT_EXISTING (x), NULL)
          || !pto_orchestrator_end_scope (orchestrator, error))
        return FALSE;
    }
  return TRUE;
}

/* On the virtual clock a trace is the same, byte by byte. */
static void
test_trace (Fixture *fixture, gconstpointer data)
{
  char *sha[2] = { NULL, NULL };
  guint64 virtual_ns[2];
  PtoTrace *trace = NULL;

  for (guint isolate = 0; isolate < 2; isolate++)
    {
      g_autoptr (PtoWorker) worker = make_worker (isolate);
      g_autoptr (PtoRunStatistics) statistics = NULL;
      g_autoptr (GError) error = NULL;

      g_assert_true (pto_worker_set_parameter (worker, "backend", "det", &error));
      g_assert_true (pto_worker_set_parameter (worker, "trace", "1", &error));
      g_assert_true (pto_worker_start (worker, NULL, &error));
      memset (object_test_floats (fixture->buffer), 0, N * sizeof (float));
      pto_worker_run (worker, many, fixture, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      statistics = pto_worker_dup_statistics (worker);
      g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 600);
      virtual_ns[isolate] = pto_run_statistics_get_virtual_ns (statistics);
      g_clear_object (&trace);
      trace = pto_worker_ref_trace (worker);
      g_assert_nonnull (trace);
      g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 600);
      sha[isolate] = g_strdup (pto_trace_get_sha256 (trace));
      pto_worker_close (worker);
      g_assert_null (pto_worker_ref_trace (worker));
    }
  g_assert_cmpuint (virtual_ns[0], ==, virtual_ns[1]);
  g_assert_cmpuint (virtual_ns[0], >, 0);
  g_assert_cmpstr (sha[0], ==, sha[1]);
  g_free (sha[0]);
  g_free (sha[1]);
  /* It outlives its worker and the process that made it. */
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 600);
  g_object_unref (trace);
}

/* --- ends of all kinds --- */

static gboolean
submit_slow (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) x = object_test_vector (fixture->buffer);

  for (guint i = 0; i < 100; i++)
    if (!pto_orchestrator_submit_full (orchestrator, fixture->evil, error, PTO_INOUT (x), NULL))
      return FALSE;
  return TRUE;
}

/* The chip gives up before the worker does: the kernel that has kept its core is no reason to end a
 * later run, which has another process. */
static void
test_kept_core (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoWorker) worker = make_worker (TRUE);
  g_autoptr (GError) error = NULL;
  g_autofree char *stuck = g_strconcat (evil_head,
                                        "sigset_t all; memset (&all, 0xff, sizeof all);\n"
                                        "syscall (SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, 8);\n"
                                        "for (;;) __asm__ volatile (\"\");\n}\n",
                                        NULL);
  g_autofree char *slow = g_strconcat (evil_head, "usleep (20000);\n}\n", NULL);

  /* All of the slow ones last longer than the worker's limit; one of them far less than the chip's,
   * also where it has to wait for a processor. */
  pto_worker_set_parameter (worker, "timeout", "500", &error);
  g_assert_no_error (error);
  g_assert_true (pto_worker_start (worker, NULL, &error));
  fixture->evil = object_test_kernel (fixture->dir, "stuck.c", stuck);
  pto_callable_set_name (fixture->evil, "stuck");
  g_assert_false (pto_worker_run (worker, submit_evil, fixture, NULL, NULL, NULL, &error));
  g_test_message ("%s", error->message);
  /* Whoever ends it knows whose it was. */
  object_test_assert_contains (error->message, "task 1 of ring 0 (stuck) on core AIV");
  object_test_assert_contains (error->message, "did not return");
  g_clear_error (&error);
  g_object_unref (fixture->evil);
  fixture->evil = object_test_kernel (fixture->dir, "slow.c", slow);
  pto_worker_run (worker, submit_slow, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

/* --- processes that stand still --- */

static int
get_child (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/children", (int) getpid ());
  g_autofree char *text = NULL;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  return atoi (text);
}

/* The kernel says when it runs. */
static gpointer
stop_child (gpointer data)
{
  Fixture *fixture = data;
  volatile float *p = object_test_floats (fixture->buffer);

  while (p[0] != 2)
    g_usleep (1000);
  kill (get_child (), SIGSTOP);
  return NULL;
}

/* It is told as what it is, and no kernel is blamed for it. */
static void
test_stopped (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strconcat (
      evil_head, "p[0] = 2; for (;;) __asm__ volatile (\"\" ::: \"memory\");\n}\n", NULL);
  GThread *thread;

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  thread = g_thread_new ("stop", stop_child, fixture);
  g_assert_false (pto_worker_run (fixture->worker, submit_evil, fixture, NULL, NULL, NULL, &error));
  g_thread_join (thread);
  g_test_message ("%s", error->message);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  object_test_assert_contains (error->message, "stopped it (SIGSTOP)");
  object_test_assert_contains (error->message, "task 1 ");
  g_assert_null (strstr (error->message, "signal that ends it"));
  check_works (fixture);
}

/* Of the group: Ctrl-Z and fg, for longer than any limit. */
static void
stop_group (volatile float *p)
{
  pid_t group = getpgrp ();

  if (fork () != 0)
    return;
  setsid ();
  while (p[0] != 2)
    usleep (1000);
  kill (-group, SIGSTOP);
  sleep (3);
  kill (-group, SIGCONT);
  _exit (0);
}

static void
stopped_together (gconstpointer data)
{
  /* It ends some time after it has seen that it stood still. */
  static const char text[] = "struct timespec t;\n"
                             "p[0] = 2;\n"
                             "for (long before = 0;; before = t.tv_sec)\n"
                             "  {\n"
                             "    clock_gettime (CLOCK_MONOTONIC, &t);\n"
                             "    if (before != 0 && t.tv_sec - before >= 2)\n"
                             "      break;\n"
                             "  }\n"
                             "for (int i = 0; i < 3; i++)\n"
                             "  usleep (100000);\n"
                             "}\n";
  g_autofree char *source = g_strconcat ("#include <time.h>\n", evil_head, text, NULL);
  g_autoptr (GError) error = NULL;
  Fixture fixture = { 0 };

  setpgid (0, 0);
  fixture.dir = object_test_make_dir ();
  fixture.fill = object_test_kernel (fixture.dir, "fill.c", object_test_fill);
  fixture.evil = object_test_kernel (fixture.dir, "evil.c", source);
  fixture.worker = make_worker (data != NULL);
  fixture.buffer = pto_buffer_new (N * sizeof (float), NULL);
  /* Less than it stands still, also for the worker, which waits longer. */
  pto_worker_set_parameter (fixture.worker, "timeout", "1000", &error);
  g_assert_no_error (error);
  pto_worker_start (fixture.worker, NULL, &error);
  g_assert_no_error (error);
  stop_group (object_test_floats (fixture.buffer));
  pto_worker_run (fixture.worker, submit_evil, &fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  pto_worker_close (fixture.worker);
  g_object_unref (fixture.worker);
  g_object_unref (fixture.fill);
  g_object_unref (fixture.evil);
  pto_buffer_unref (fixture.buffer);
  object_test_remove_dir (fixture.dir);
}

static void
test_stopped_together (void)
{
  g_autofree char *path = g_strconcat (g_test_get_path (), "/subprocess", NULL);

  g_test_trap_subprocess (path, 0, 0);
  g_test_trap_assert_passed ();
}

static gpointer
cancel_when_running (gpointer data)
{
  Fixture *fixture = ((gpointer *) data)[0];
  volatile float *p = object_test_floats (fixture->buffer);

  while (p[0] != 2 && p[0] != 9)
    g_usleep (1000);
  /* So long that it is ended at once, by its chip. */
  g_usleep (150000);
  g_cancellable_cancel (((gpointer *) data)[1]);
  return NULL;
}

/* A kernel that is cut off by a cancel may have been in malloc(): nothing runs behind it there. */
static void
test_cut_off (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = g_strconcat (evil_head,
                                       "static volatile int lock;\n"
                                       "if (lock != 0) { p[0] = 9; return; }\n"
                                       "lock = 1; p[0] = 2; for (;;) __asm__ volatile (\"\");\n}\n",
                                       NULL);

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  /* Nothing but the cancel is to end it, on a busy machine, too. */
  pto_worker_close (fixture->worker);
  g_object_unref (fixture->worker);
  fixture->worker = make_worker (TRUE);
  pto_worker_set_parameter (fixture->worker, "timeout", "10000", NULL);
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (GError) error = NULL;
      gpointer both[] = { fixture, cancellable };
      GThread *thread;

      memset (object_test_floats (fixture->buffer), 0, sizeof (float));
      thread = g_thread_new ("cancel", cancel_when_running, both);
      g_assert_false (
          pto_worker_run (fixture->worker, submit_evil, fixture, NULL, NULL, cancellable, &error));
      g_assert_cmpfloat (object_test_floats (fixture->buffer)[0], ==, 2);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_thread_join (thread);
    }
  check_works (fixture);
}

static gpointer
cancel_later (gpointer data)
{
  g_usleep (50000);
  g_cancellable_cancel (data);
  return NULL;
}

/* A kernel that blocks every signal and never returns: the process is ended with its run, before it
 * is too late. */
static void
test_cancel (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoWorker) worker = g_object_new (PTO_TYPE_WORKER, "isolate", TRUE, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *text
      = g_strconcat (evil_head,
                     "sigset_t all; sigfillset (&all); sigprocmask (SIG_SETMASK, &all, 0);\n"
                     "for (;;) pause ();\n}\n",
                     NULL);
  GThread *thread;

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  g_assert_true (pto_worker_start (worker, NULL, &error));
  thread = g_thread_new ("cancel", cancel_later, cancellable);
  g_assert_false (pto_worker_run (worker, submit_evil, fixture, NULL, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_thread_join (thread);
}

typedef struct
{
  Fixture *fixture;
  PtoWorker *worker;
  PtoCallable *kernel;
  GCancellable *cancellable;
  GError *error;
  gint ended; /* atomic */
} Beside;

static gpointer
register_beside (gpointer data)
{
  Beside *beside = data;
  PtoCallableHandle *handle
      = pto_worker_register (beside->worker, beside->kernel, beside->cancellable, &beside->error);

  g_clear_pointer (&handle, pto_callable_handle_unref);
  g_atomic_int_set (&beside->ended, TRUE);
  return NULL;
}

static gpointer
run_beside (gpointer data)
{
  Beside *beside = data;

  pto_worker_run (beside->worker, submit_evil, beside->fixture, NULL, NULL, NULL, &beside->error);
  return NULL;
}

static void
await (gboolean (*is_so) (gpointer data), gpointer data, gint64 us)
{
  gint64 end = g_get_monotonic_time () + us;

  while (!is_so (data) && g_get_monotonic_time () < end)
    g_usleep (1000);
}

static gboolean
exists (gpointer path)
{
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static gboolean
is_set (gpointer word)
{
  return *(volatile float *) word == 5;
}

static gboolean
has_ended (gpointer data)
{
  return g_atomic_int_get (&((Beside *) data)->ended);
}

/* A registration that is not wanted any more does not end a run that has nothing to do with it. */
static void
test_cancel_registration (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoWorker) worker = g_object_new (PTO_TYPE_WORKER, "isolate", TRUE, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autofree char *begun = g_build_filename (fixture->dir, "begun", NULL);
  g_autofree char *go = g_build_filename (fixture->dir, "go", NULL);
  g_autofree char *text
      = g_strdup_printf ("#include \"tensor.h\"\n#include <fcntl.h>\n#include <unistd.h>\n"
                         "static __attribute__ ((constructor)) void begin (void)\n{\n"
                         "  close (open (\"%s\", O_CREAT | O_WRONLY, 0600));\n"
                         "  while (access (\"%s\", F_OK) != 0)\n    usleep (1000);\n}\n"
                         "void kernel_entry (int64_t *args) { (void) args; }\n",
                         begun, go);
  g_autofree char *wait = g_strconcat (
      evil_head, "volatile float *q = p; q[1] = 5; while (q[0] != 5) usleep (1000);\n}\n", NULL);
  g_autoptr (PtoCallable) slow = object_test_kernel (fixture->dir, "slow.c", text);
  Beside run = { .fixture = fixture, .worker = worker };
  Beside registration = { .worker = worker, .kernel = slow, .cancellable = cancellable };
  float *words = object_test_floats (fixture->buffer);
  g_autoptr (GError) error = NULL;
  GThread *threads[2];

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", wait);
  g_assert_true (pto_worker_start (worker, NULL, &error));
  threads[0] = g_thread_new ("run", run_beside, &run);
  await (is_set, words + 1, DEADLINE_US);
  threads[1] = g_thread_new ("register", register_beside, &registration);
  await (exists, begun, DEADLINE_US);
  g_cancellable_cancel (cancellable);
  /* It waits for the constructor. */
  await (has_ended, &registration, G_USEC_PER_SEC / 4);
  g_assert_false (has_ended (&registration));
  g_assert_true (g_file_set_contents (go, "", 0, &error));
  g_thread_join (threads[1]);
  g_clear_error (&registration.error);
  *(volatile float *) words = 5;
  g_thread_join (threads[0]);
  g_assert_no_error (run.error);
  check_works (fixture);
}

static void
kill_children (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/children", (int) getpid ());
  g_autofree char *text = NULL;
  char *end;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return;
  for (long pid = strtol (text, &end, 10); pid > 0; pid = strtol (end, &end, 10))
    kill ((pid_t) pid, SIGKILL);
}

typedef struct
{
  gint stop; /* atomic */
  gint us;   /* what a process and its first run take here: some are killed before, some behind */
} Killer;

static gpointer
kill_at_random (gpointer data)
{
  GRand *random = g_rand_new_with_seed (7);
  Killer *killer = data;

  while (!g_atomic_int_get (&killer->stop))
    {
      g_usleep ((gulong) g_rand_int_range (random, 0, 4 * killer->us));
      kill_children ();
    }
  g_rand_free (random);
  return NULL;
}

/* Killed at any moment of a run or between two: each run ends, well or with a death; then all is
 * well again, and nothing is left. */
static void
test_kills (Fixture *fixture, gconstpointer data)
{
  gint64 end = g_get_monotonic_time () + DEADLINE_US;
  guint descriptors, good = 0, bad = 0;
  g_autoptr (PtoCallableHandle) handle = NULL;
  Killer killer = { 0 };
  GThread *thread;
  gint64 begin;

  check_works (fixture);
  /* A compiler would be killed as well. */
  handle = pto_worker_register (fixture->worker, fixture->add, NULL, NULL);
  g_assert_nonnull (handle);
  descriptors = count_descriptors ();
  g_test_log_set_fatal_handler (NULL, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  begin = g_get_monotonic_time ();
  kill_children ();
  while (!pto_worker_run (fixture->worker, many, fixture, NULL, NULL, NULL, NULL)
         && g_get_monotonic_time () < end)
    ;
  killer.us = (gint) (g_get_monotonic_time () - begin);
  thread = g_thread_new ("killer", kill_at_random, &killer);
  while ((good < 20 || bad < 20) && g_get_monotonic_time () < end)
    {
      g_autoptr (GError) error = NULL;

      if (pto_worker_run (fixture->worker, many, fixture, NULL, NULL, NULL, &error))
        good++;
      else
        {
          g_test_message ("%s", error->message);
          g_assert_true (g_error_matches (error, PTO_ERROR, PTO_ERROR_WORKER_LOST)
                         || g_error_matches (error, PTO_ERROR, PTO_ERROR_KERNEL_FAULT));
          bad++;
        }
    }
  g_atomic_int_set (&killer.stop, TRUE);
  g_thread_join (thread);
  /* The last signal may not have been delivered yet. */
  pto_worker_run (fixture->worker, many, fixture, NULL, NULL, NULL, NULL);
  g_assert_cmpuint (good, >=, 20);
  g_assert_cmpuint (bad, >=, 20);
  check_works (fixture);
  g_assert_cmpuint (count_descriptors (), ==, descriptors);
  g_assert_cmpuint (count_children (), ==, 1);
}

/* --- the property --- */

static void
test_refused (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoWorker) chip = pto_worker_new_chip (NULL, NULL);
  g_autoptr (PtoWorker) host = pto_worker_new_host (3, 0, 1, NULL, NULL);
  g_autoptr (PtoWorker) other = g_object_new (PTO_TYPE_WORKER, "level", 3, "isolate", TRUE, NULL);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (pto_worker_set_parameter (chip, "isolate", "1", &error));
  g_assert_true (pto_worker_get_isolate (chip));
  g_assert_true (pto_worker_set_parameter (chip, "isolate", "0", &error));
  g_assert_false (pto_worker_get_isolate (chip));
  handle = pto_worker_register (chip, fixture->fill, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (pto_worker_set_parameter (chip, "isolate", "1", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "before anything is registered");
  g_clear_error (&error);
  g_assert_false (pto_worker_set_parameter (host, "isolate", "1", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_false (pto_worker_start (other, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "processes already");
}

/* A copy of this process has none of its children, and makes its own. */
static void
test_fork (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoWorker) worker = make_worker (TRUE);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (GError) error = NULL;
  int status = -1;
  pid_t pid;

  handle = pto_worker_register (worker, fixture->fill, NULL, &error);
  g_assert_no_error (error);
  pid = fork ();
  if (pid == 0)
    {
      gboolean ok
          = pto_worker_start (worker, NULL, &error)
            && pto_worker_run (worker, fill_buffer, fixture, NULL, NULL, NULL, &error)
            && object_test_floats (fixture->buffer)[N - 1] == 3
            && !pto_worker_run (fixture->worker, fill_buffer, fixture, NULL, NULL, NULL, &error);

      pto_worker_close (worker);
      _exit (ok ? 0 : 1);
    }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
  check_works (fixture);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  pto_worker_run (worker, fill_buffer, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

static void
test_past_array (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strconcat (
      evil_head, "for (int i = 0; i < (int) x->shapes[0] + 3; i++) p[i] = 5;\n}\n", NULL);

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  for (guint i = 0; i < 2; i++)
    {
      g_autofree char *said = NULL;

      g_assert_false (
          pto_worker_run (fixture->worker, write_past, fixture, NULL, NULL, NULL, &error));
      said = g_strdup_printf ("task 0 of ring 0 (evil), submitted at test-isolate.c:%u: the kernel "
                              "wrote at least 12 bytes past argument 0 (declared float32 [980])",
                              write_line);
      g_assert_error (error, PTO_ERROR, PTO_ERROR_OUT_OF_BOUNDS);
      g_assert_cmpstr (error->message, ==, said);
      g_clear_error (&error);
      /* What it had to write is there, what lies behind is as it was. */
      for (guint j = 0; j < N; j++)
        g_assert_cmpfloat (fixture->array[j], ==, j < N - 20 ? 5 : 0);
    }
  check_works (fixture);
}

static gboolean
write_past_twice (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                  gpointer data, GError **error)
{
  return write_past (orchestrator, args, config, data, error)
         && pto_orchestrator_begin_scope (orchestrator, error)
         && write_past (orchestrator, args, config, data, error)
         && pto_orchestrator_end_scope (orchestrator, error);
}

/* Behind the scope the tasks are of the ring again that was there before it. */
static gboolean
write_past_behind (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                   gpointer data, GError **error)
{
  return write_past_twice (orchestrator, args, config, data, error)
         && write_past (orchestrator, args, config, data, error);
}

/* Of several that write there the last is named, and that it may be another. */
static void
test_past_array_by_several (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strconcat (
      evil_head, "for (int i = 0; i < (int) x->shapes[0] + 1; i++) p[i] = 5;\n}\n", NULL);
  g_autofree char *place = NULL;
  g_autofree char *said = NULL;

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  g_assert_false (
      pto_worker_run (fixture->worker, write_past_twice, fixture, NULL, NULL, NULL, &error));
  place = g_strdup_printf (", submitted at test-isolate.c:%u", write_line);
  said = g_strdup_printf ("one of 2 tasks that have it, from task 0 of ring 0%s, to task 0 of ring "
                          "1 (evil)%s: the kernel wrote at least 4 bytes past argument 0 (declared "
                          "float32 [980]): several tasks have that memory: check=access names the "
                          "one that wrote",
                          place, place);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_OUT_OF_BOUNDS);
  g_assert_cmpstr (error->message, ==, said);
  g_clear_error (&error);
  g_free (said);
  g_assert_false (
      pto_worker_run (fixture->worker, write_past_behind, fixture, NULL, NULL, NULL, &error));
  said = g_strdup_printf ("one of 3 tasks that have it, from task 0 of ring 0%s, to task 1 of ring "
                          "0 (evil)%s: ",
                          place, place);
  object_test_assert_contains (error->message, said);
}

/* Two halves of an array; the copy of the end is there before a kernel writes past it. */
static gboolean
write_halves (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) first = array_tensor (fixture->array, 50);
  g_autoptr (PtoTensor) second = array_tensor (fixture->array + 50, 40);

  write_line = __LINE__ + 1;
  return pto_orchestrator_submit_full (orchestrator, fixture->evil, error,
                                       PTO_OUT_EXISTING (second), PTO_IN (second), NULL)
         && pto_orchestrator_submit_full (orchestrator, fixture->evil, error,
                                          PTO_OUT_EXISTING (first), NULL);
}

/* The task that has the end is named, which another one may have written past. */
static void
test_past_array_of_another (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strconcat (
      evil_head, "if (x->shapes[0] == 50) for (int i = 0; i < 92; i++) p[i] = 5;\n}\n", NULL);
  g_autofree char *said = NULL;

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  g_assert_false (
      pto_worker_run (fixture->worker, write_halves, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_OUT_OF_BOUNDS);
  said = g_strdup_printf (
      "task 0 of ring 0 (evil), submitted at test-isolate.c:%u: the kernel "
      "wrote at least 8 bytes past argument 1 (declared float32 [40]): several tasks "
      "have that memory: check=access names the one that wrote",
      write_line);
  g_assert_cmpstr (error->message, ==, said);
}

/* A registered orchestration is in the child: the core finds it. */
static void
test_past_array_of_callable (Fixture *fixture, gconstpointer data)
{
  g_autofree char *path = object_test_write (fixture->dir, "graph.c", object_test_orchestration);
  g_autofree char *text = g_strconcat (
      evil_head, "for (int i = 0; i < (int) x->shapes[0] + 3; i++) p[i] = 5;\n}\n", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (path, NULL, &error);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) x = array_tensor (fixture->array, 100);

  g_assert_no_error (error);
  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  g_assert_true (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "EVIL",
                                                    fixture->evil, &error));
  handle = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_assert_no_error (error);
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_scalar (args, 100);
  for (guint i = 0; i < 2; i++)
    {
      g_assert_false (pto_worker_run_callable (fixture->worker, handle, args, NULL, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_OUT_OF_BOUNDS);
      object_test_assert_contains (error->message, "task 0 of ring 0 (EVIL) on core AIV");
      object_test_assert_contains (
          error->message, "wrote at least 12 bytes past the buffer of 400 bytes of argument 0 "
                          "(declared float32 [100])");
      g_clear_error (&error);
      for (guint j = 0; j < N; j++)
        g_assert_cmpfloat (fixture->array[j], ==, j < 100 ? 5 : 0);
    }
  check_works (fixture);
}

/* A message about a death says what was written last. */
static void
test_last_words (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strconcat (
      evil_head, "write (2, \"good bye\\n\", 9); raw (SYS_exit_group, 5);\n}\n", NULL);

  fixture->evil = object_test_kernel (fixture->dir, "evil.c", text);
  g_assert_false (pto_worker_run (fixture->worker, submit_evil, fixture, NULL, NULL, NULL, &error));
  object_test_assert_contains (error->message, "exited with status 5");
  object_test_assert_contains (error->message, "good bye");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (evils); i++)
    {
      g_autofree char *path = g_strconcat ("/pto/isolate/evil/", evils[i].name, NULL);

      g_test_add (path, Fixture, &evils[i], set_up, test_evil, tear_down);
    }
#define ADD(path, function) \
  g_test_add ("/pto/isolate/" path, Fixture, NULL, set_up, function, tear_down)
  ADD ("private-memory", test_private_memory);
  ADD ("private-element", test_private_element);
  ADD ("private-memory-of-callable", test_private_memory_of_callable);
  ADD ("many-arguments-of-callable", test_many_arguments);
  ADD ("past-array", test_past_array);
  ADD ("past-array-of-callable", test_past_array_of_callable);
  ADD ("past-array-by-several", test_past_array_by_several);
  ADD ("past-array-of-another", test_past_array_of_another);
  ADD ("device-memory", test_device_memory);
  ADD ("trace", test_trace);
  ADD ("kept-core", test_kept_core);
  ADD ("stopped", test_stopped);
  g_test_add_func ("/pto/isolate/stopped-together", test_stopped_together);
  g_test_add_data_func ("/pto/isolate/stopped-together/subprocess", "", stopped_together);
  g_test_add_func ("/pto/isolate/not/stopped-together", test_stopped_together);
  g_test_add_data_func ("/pto/isolate/not/stopped-together/subprocess", NULL, stopped_together);
  ADD ("cut-off", test_cut_off);
  ADD ("cancel", test_cancel);
  ADD ("cancel-registration", test_cancel_registration);
  ADD ("kills", test_kills);
  ADD ("refused", test_refused);
  ADD ("fork", test_fork);
  ADD ("last-words", test_last_words);
#undef ADD
  return g_test_run ();
}
