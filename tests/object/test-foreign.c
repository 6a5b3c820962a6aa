/* test-foreign.c: what holds a kernel or an orchestration that does its worst?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The rows of doc/foreign-code.md. After every one the same worker runs a good graph, on the same
 * thread, and nothing of the caller's is changed.
 */
#include "object-test.h"

#include "evil.h"

#include <dlfcn.h>
#include <sys/resource.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__clang__) && defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#define DEADLINE_S 100
#define N 37

static const char *const backends[] = { "par", "det", "threads" };

/* What it is reported as; NULL: the run ends well. */
static const struct
{
  int evil;
  PtoError code;
  const char *says;
} rows[] = {
  { EVIL_NULL, PTO_ERROR_KERNEL_FAULT, "crashed: Segmentation fault (signal 11) at address 0x8" },
  { EVIL_WILD, PTO_ERROR_KERNEL_FAULT, "crashed: Segmentation fault (signal 11)" },
  { EVIL_READ_ONLY, PTO_ERROR_KERNEL_FAULT, "crashed: Segmentation fault (signal 11)" },
  { EVIL_DIVIDE, PTO_ERROR_KERNEL_FAULT, "crashed: Floating point exception (signal 8)" },
  { EVIL_TRAP, PTO_ERROR_KERNEL_FAULT, "crashed: " },
  { EVIL_BREAKPOINT, PTO_ERROR_KERNEL_FAULT, "crashed: Trace/breakpoint trap (signal 5)" },
  { EVIL_SINGLE_STEP, PTO_ERROR_KERNEL_FAULT, "crashed: Trace/breakpoint trap (signal 5)" },
  { EVIL_ABORT, PTO_ERROR_KERNEL_FAULT, "crashed: Aborted (signal 6)" },
  { EVIL_RAISE, PTO_ERROR_KERNEL_FAULT, "crashed: Segmentation fault (signal 11)" },
  { EVIL_SYSTEM_CALL, PTO_ERROR_KERNEL_FAULT, "crashed: Bad system call (signal 31)" },
  { EVIL_JUMP, PTO_ERROR_KERNEL_FAULT, "crashed: Segmentation fault (signal 11) at address 0x10" },
  { EVIL_LONGJMP, PTO_ERROR_KERNEL_FAULT, "crashed: " },
  { EVIL_OVERFLOW, PTO_ERROR_KERNEL_FAULT, "stack" },
  { EVIL_WIDE, PTO_ERROR_KERNEL_FAULT, "stack" },
  { EVIL_LOOP, PTO_ERROR_KERNEL_HANG, "did not return" },
  { EVIL_EXIT, PTO_ERROR_KERNEL_FAULT, "called exit(3)" },
  { EVIL_EXIT_NOW, PTO_ERROR_KERNEL_FAULT, "called _exit(3)" },
  { EVIL_QUICK_EXIT, PTO_ERROR_KERNEL_FAULT, "called quick_exit(3)" },
  { EVIL_PTHREAD_EXIT, PTO_ERROR_KERNEL_FAULT, "called pthread_exit()" },
  { EVIL_PTHREAD_CANCEL, PTO_ERROR_KERNEL_FAULT, "called pthread_cancel() for its own thread" },
  { EVIL_SYS_EXIT, PTO_ERROR_KERNEL_FAULT, "called exit(2) for its thread" },
  { EVIL_SYS_EXIT_GROUP, PTO_ERROR_KERNEL_FAULT, "called exit_group(3)" },
  { EVIL_BLOCK_AND_CRASH, PTO_ERROR_KERNEL_FAULT, "crashed: Segmentation fault (signal 11)" },
  { EVIL_BLOCK_AND_LOOP, PTO_ERROR_KERNEL_HANG, "did not return" },
  { EVIL_DEFAULT_AND_CRASH, PTO_ERROR_KERNEL_FAULT, "crashed: Segmentation fault (signal 11)" },
  { EVIL_NO_STACK_AND_OVERFLOW, PTO_ERROR_KERNEL_FAULT, "stack" },
  { EVIL_THROW, PTO_ERROR_KERNEL_FAULT, "threw std::runtime_error: no row 17" },
  { EVIL_THROW_INT, PTO_ERROR_KERNEL_FAULT, "threw int" },
  { EVIL_THROW_NOEXCEPT, PTO_ERROR_KERNEL_FAULT, "crashed: Aborted (signal 6)" },
  { EVIL_THROW_LOST, PTO_ERROR_KERNEL_FAULT, "threw EvilLost" },
  { EVIL_BLOCK, 0, NULL },
  { EVIL_IGNORE_SIGINT, 0, NULL },
  { EVIL_DIRECTION, 0, NULL },
  { EVIL_ALIGNMENT, 0, NULL },
  { EVIL_ROUNDING, 0, NULL },
  { EVIL_EXCEPTIONS, 0, NULL },
  { EVIL_MXCSR, 0, NULL },
  { EVIL_ARGUMENTS, 0, NULL },
  { EVIL_FORK, 0, NULL },
};

typedef struct
{
  PtoWorker *worker;
  PtoCallableHandle *handle;
  PtoBuffer *buffer;
} Fixture;

static char *
source (const char *name)
{
  return g_test_build_filename (G_TEST_DIST, "object", name, NULL);
}

static int fork_is_slow; /* atomic */

/* Called when some of the library's own handlers have taken their locks. */
static void
before_fork (void)
{
  gint64 end = g_get_monotonic_time () + G_USEC_PER_SEC;

  while (g_atomic_int_get (&fork_is_slow) && g_get_monotonic_time () < end)
    usleep (1000);
}

static void
watch_forks (void)
{
  pthread_atfork (before_fork, NULL, NULL);
}

static void
set_up (Fixture *fixture, const char *backend)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  g_autoptr (GError) error = NULL;
  g_autofree char *orchestration = source ("evil-orchestration.cc");
  g_autofree char *kernel_path = source ("evil-kernel.cc");
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (orchestration, NULL, &error);
  g_autoptr (PtoCallable) kernel = NULL;

  g_assert_no_error (error);
  kernel = pto_kernel_new (PTO_CORE_AIV, kernel_path, NULL, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "evil", kernel, &error);
  g_assert_no_error (error);
  fixture->worker = pto_worker_new_chip (NULL, &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (fixture->worker, "backend", backend, &error);
  pto_worker_set_parameter (fixture->worker, "timeout", "300", &error);
  g_assert_no_error (error);
  pto_worker_start (fixture->worker, NULL, &error);
  g_assert_no_error (error);
  /* Handlers are called last in, first out: those of what chips need come behind it, and those of
   * what modules need before. */
  pthread_once (&once, watch_forks);
  fixture->handle = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_assert_no_error (error);
  fixture->buffer = pto_buffer_new (N * sizeof (float), &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *fixture)
{
  pto_callable_handle_unref (fixture->handle);
  pto_worker_close (fixture->worker);
  g_object_unref (fixture->worker);
  pto_buffer_unref (fixture->buffer);
}

static gboolean
run (Fixture *fixture, int n, int kernel, int before, int after, int config, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  memset ((void *) (guintptr) pto_buffer_get_address (fixture->buffer), 0, N * sizeof (float));
  pto_task_args_add_scalar (args, pto_buffer_get_address (fixture->buffer));
  pto_task_args_add_scalar (args, N);
  pto_task_args_add_scalar (args, (guint64) n);
  pto_task_args_add_scalar (args, (guint64) kernel);
  pto_task_args_add_scalar (args, (guint64) before);
  pto_task_args_add_scalar (args, (guint64) after);
  pto_task_args_add_scalar (args, (guint64) config);
  return pto_worker_run_callable (fixture->worker, fixture->handle, args, NULL, NULL, error);
}

/* What a caller has and must keep. */
typedef struct
{
  sigset_t mask;
  struct sigaction sigint;
  int rounding;
  int exceptions;
} Caller;

static void
look (Caller *caller)
{
  memset (caller, 0, sizeof *caller);
  pthread_sigmask (SIG_SETMASK, NULL, &caller->mask);
  sigaction (SIGINT, NULL, &caller->sigint);
  caller->rounding = fegetround ();
  caller->exceptions = fegetexcept ();
}

static void
assert_well (Fixture *fixture, const Caller *before)
{
  g_autoptr (GError) error = NULL;
  Caller now;

  look (&now);
  for (int signo = 1; signo < SIGRTMIN; signo++)
    g_assert_cmpint (sigismember (&now.mask, signo), ==, sigismember (&before->mask, signo));
  g_assert_true (now.sigint.sa_handler == before->sigint.sa_handler);
  g_assert_cmpint (now.rounding, ==, before->rounding);
  g_assert_cmpint (now.exceptions, ==, before->exceptions);
  g_assert_true (run (fixture, 200, EVIL_NONE, EVIL_NONE, EVIL_NONE, EVIL_NONE, &error));
  g_assert_no_error (error);
  for (int i = 0; i < N; i++)
    g_assert_cmpfloat (object_test_floats (fixture->buffer)[i], ==, 7);
}

static gboolean
skipped (void)
{
#ifdef SANITIZED
  g_test_skip ("foreign code that crashes on purpose");
  return TRUE;
#else
  return FALSE;
#endif
}

static void
test_kernels (gconstpointer data)
{
  Fixture fixture;
  Caller caller;

  if (skipped ())
    return;
  set_up (&fixture, data);
  look (&caller);
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    for (int repeat = 0; repeat < 2; repeat++)
      {
        g_autoptr (GError) error = NULL;
        gboolean ok;

        g_test_message ("row %d: %s", rows[i].evil, rows[i].says);
        ok = run (&fixture, 1 + repeat * 20, rows[i].evil, EVIL_NONE, EVIL_NONE, EVIL_NONE, &error);
        if (rows[i].says == NULL)
          g_assert_no_error (error);
        else
          {
            g_assert_error (error, PTO_ERROR, (int) rows[i].code);
            object_test_assert_contains (error->message, rows[i].says);
            object_test_assert_contains (error->message, "(evil) on core AIV");
            /* The words that a name is put over do not show behind it. */
            g_assert_null (strstr (error->message, "ception\""));
            g_assert_null (strstr (error->message, "EvilLost:"));
          }
        g_assert_cmpint (ok, ==, rows[i].says == NULL);
        assert_well (&fixture, &caller);
      }
  tear_down (&fixture);
}

/* The line of the submit in evil-orchestration.cc. */
static char *
find_place (void)
{
  g_autofree char *path = source ("evil-orchestration.cc");
  g_autofree char *canonical = g_canonicalize_filename (path, NULL);
  g_autofree char *text = NULL;
  int line = 1;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  for (const char *c = text; c < strstr (text, "/* the submit */"); c++)
    line += *c == '\n';
  return g_strdup_printf ("after the submit at %s:%d it ", canonical, line);
}

static void
test_orchestrations (gconstpointer data)
{
  g_autofree char *place = find_place ();
  Fixture fixture;
  Caller caller;

  if (skipped ())
    return;
  set_up (&fixture, data);
  look (&caller);
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    for (int where = 0; where < 3; where++)
      {
        g_autoptr (GError) error = NULL;
        gboolean ok;

        /* Nobody watches a configuration: it has not begun a run. */
        if (where == 2 && (rows[i].evil == EVIL_LOOP || rows[i].evil == EVIL_BLOCK_AND_LOOP))
          continue;
        /* It would call the engine like this. */
        if (where < 2 && rows[i].evil == EVIL_ALIGNMENT)
          continue;
        g_test_message ("row %d at %d: %s", rows[i].evil, where, rows[i].says);
        ok = run (&fixture, 20, EVIL_NONE, where == 0 ? rows[i].evil : EVIL_NONE,
                  where == 1 ? rows[i].evil : EVIL_NONE, where == 2 ? rows[i].evil : EVIL_NONE,
                  &error);
        if (rows[i].says == NULL)
          g_assert_no_error (error);
        else
          {
            g_assert_error (error, PTO_ERROR, (int) rows[i].code);
            object_test_assert_contains (error->message, rows[i].says);
            object_test_assert_contains (error->message,
                                         where == 0   ? "evil-orchestration.cc): before its first "
                                                        "submit it "
                                         : where == 1 ? place
                                                      : "aicpu_orchestration_config() ");
          }
        g_assert_cmpint (ok, ==, rows[i].says == NULL);
        assert_well (&fixture, &caller);
      }
  tear_down (&fixture);
}

/* --- forks --- */

/* A fork that takes longer than a kernel may: its kernel is ended behind it, not in it. */
static void
test_slow_fork (gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  Fixture fixture;
  Caller caller;
  int status;
  pid_t pid;

  if (skipped ())
    return;
  set_up (&fixture, data);
  look (&caller);
  g_atomic_int_set (&fork_is_slow, TRUE);
  g_assert_false (run (&fixture, 1, EVIL_FORK, EVIL_NONE, EVIL_NONE, EVIL_NONE, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_KERNEL_HANG);
  g_atomic_int_set (&fork_is_slow, FALSE);
  /* The kernel's, which it did not come to wait for. */
  g_assert_cmpint (waitpid (-1, &status, 0), >, 0);
  g_assert_cmpint (status, ==, 0);
  /* Whoever forks next would wait for the same locks. */
  pid = fork ();
  if (pid == 0)
    _exit (0);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  assert_well (&fixture, &caller);
  tear_down (&fixture);
}

/* --- the program's own doing --- */

static void
own_handler (int signo)
{
  _exit (77);
}

/* A program may block signals, take the alternate stack away and put handlers of its own on top,
 * between two runs. */
static void
test_program (gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  struct sigaction own, old;
  sigset_t all, before;
  stack_t off = { .ss_flags = SS_DISABLE };
  Fixture fixture;
  Caller caller;

  if (skipped ())
    return;
  set_up (&fixture, data);
  look (&caller);
  assert_well (&fixture, &caller);
  sigfillset (&all);
  sigdelset (&all, SIGALRM);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  pthread_sigmask (SIG_SETMASK, NULL, &all);
  sigaltstack (&off, NULL);
  memset (&own, 0, sizeof own);
  own.sa_handler = own_handler;
  for (int i = 0; i < 3; i++)
    {
      static const int evils[] = { EVIL_NULL, EVIL_LOOP, EVIL_OVERFLOW };

      sigaction (SIGSEGV, &own, &old);
      for (gsize e = 0; e < G_N_ELEMENTS (evils); e++)
        {
          g_assert_false (run (&fixture, 1, evils[e], EVIL_NONE, EVIL_NONE, EVIL_NONE, &error));
          g_clear_error (&error);
          g_assert_false (run (&fixture, 1, EVIL_NONE, EVIL_NONE, evils[e], EVIL_NONE, &error));
          g_clear_error (&error);
        }
    }
  look (&caller);
  for (int signo = 1; signo < SIGRTMIN; signo++)
    g_assert_cmpint (sigismember (&caller.mask, signo), ==, sigismember (&all, signo));
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  look (&caller);
  assert_well (&fixture, &caller);
  tear_down (&fixture);
  /* What the program had installed is there again, without ours. */
  sigaction (SIGSEGV, NULL, &old);
  g_assert_true (old.sa_handler == own_handler);
  own.sa_handler = SIG_DFL;
  sigaction (SIGSEGV, &own, NULL);
}

/* --- what a process can not hold --- */

/* --- without a worker --- */

#define THREADS 4
#define CALLS 5000

static void
leave_by (gpointer data)
{
  void (*leave) (int way) = (void (*) (int)) dlsym (data, "leave");

  leave (0);
}

static gpointer
call_often (gpointer module)
{
  for (guint i = 0; i < CALLS; i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (pto_call_foreign (module, leave_by, module, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_KERNEL_FAULT);
      g_assert_cmpstr (error->message, ==, "called exit(3)");
    }
  return NULL;
}

/* Whoever comes first sees to it that the module can be called, while others call it. */
static void
test_together (void)
{
  gpointer module = dlopen (g_getenv ("PTO_TEST_FOREIGN_MODULE"), RTLD_NOW | RTLD_LOCAL);
  GThread *threads[THREADS];

  g_assert_nonnull (module);
  for (guint i = 0; i < THREADS; i++)
    threads[i] = g_thread_new ("foreign", call_often, module);
  for (guint i = 0; i < THREADS; i++)
    g_thread_join (threads[i]);
  dlclose (module);
}

static const struct
{
  const char *name;
  int evil;
} deaths[] = {
  { "raw-exit", EVIL_RAW_EXIT }, { "raw-block", EVIL_RAW_BLOCK_AND_CRASH },
  { "thread", EVIL_THREAD },     { "kill", EVIL_KILL },
  { "no-tls", EVIL_NO_TLS },
};

static void
test_deaths (gconstpointer data)
{
  gsize row = (gsize) GPOINTER_TO_SIZE (data);
  GError *error = NULL;

  if (skipped ())
    return;
#ifdef __x86_64__
  if (g_test_subprocess ())
    {
      Fixture fixture;
      struct rlimit none = { 0, 0 };

      setrlimit (RLIMIT_CORE, &none);
      set_up (&fixture, "par");
      run (&fixture, 1, deaths[row].evil, EVIL_NONE, EVIL_NONE, EVIL_NONE, &error);
      _exit (0);
    }
  g_test_trap_subprocess (NULL, 0, 0);
  g_assert_false (g_test_trap_has_passed ());
#else
  g_test_skip ("written for x86-64");
#endif
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (DEADLINE_S);
  for (gsize i = 0; i < G_N_ELEMENTS (backends); i++)
    {
      g_autofree char *kernels = g_strdup_printf ("/pto/foreign/kernels/%s", backends[i]);
      g_autofree char *orchestrations
          = g_strdup_printf ("/pto/foreign/orchestrations/%s", backends[i]);
      g_autofree char *slow_fork = g_strdup_printf ("/pto/foreign/slow-fork/%s", backends[i]);
      g_autofree char *program = g_strdup_printf ("/pto/foreign/program/%s", backends[i]);

      g_test_add_data_func (kernels, backends[i], test_kernels);
      g_test_add_data_func (orchestrations, backends[i], test_orchestrations);
      g_test_add_data_func (program, backends[i], test_program);
      g_test_add_data_func (slow_fork, backends[i], test_slow_fork);
    }
  g_test_add_func ("/pto/foreign/together", test_together);
  for (gsize i = 0; i < G_N_ELEMENTS (deaths); i++)
    {
      g_autofree char *name = g_strdup_printf ("/pto/foreign/not-held/%s", deaths[i].name);

      g_test_add_data_func (name, GSIZE_TO_POINTER (i), test_deaths);
    }
  return g_test_run ();
}
