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
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

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
  { EVIL_RAISE_FATAL, PTO_ERROR_KERNEL_FAULT, "called raise(SIGTERM)" },
  { EVIL_PTHREAD_KILL, PTO_ERROR_KERNEL_FAULT, "called pthread_kill(SIGUSR1)" },
  { EVIL_PTHREAD_KILL_NOBODY, PTO_ERROR_KERNEL_FAULT, "crashed: Segmentation fault (signal 11)" },
  { EVIL_TGKILL, PTO_ERROR_KERNEL_FAULT, "called tgkill(SIGALRM)" },
  { EVIL_SYS_TKILL, PTO_ERROR_KERNEL_FAULT, "called tgkill(SIGHUP)" },
  { EVIL_RAISE_BLOCKED, PTO_ERROR_KERNEL_FAULT, "called raise(SIGTERM)" },
  { EVIL_RAISE_BESIDE, PTO_ERROR_KERNEL_FAULT, "called raise(SIGTERM)" },
  { EVIL_PTHREAD_KILL_BLOCKED, PTO_ERROR_KERNEL_FAULT, "called pthread_kill(SIGUSR2)" },
  { EVIL_TGKILL_BLOCKED, PTO_ERROR_KERNEL_FAULT, "called tgkill(SIGALRM)" },
  { EVIL_SYS_QUEUE_BLOCKED, PTO_ERROR_KERNEL_FAULT, "called rt_tgsigqueueinfo(SIGUSR1)" },
  { EVIL_SIGQUEUE_BLOCKED, PTO_ERROR_KERNEL_FAULT, "called pthread_sigqueue(" },
  { EVIL_RAISE_SUSPENDED, PTO_ERROR_KERNEL_FAULT, "called raise(SIGHUP)" },
  { EVIL_RAISE_POLLED, PTO_ERROR_KERNEL_FAULT, "called raise(SIGTERM)" },
  { EVIL_RAISE_SELECTED, PTO_ERROR_KERNEL_FAULT, "called raise(SIGUSR1)" },
  { EVIL_RAISE_EPOLLED, PTO_ERROR_KERNEL_FAULT, "called raise(SIGUSR2)" },
  { EVIL_RAISE_JUMPED, PTO_ERROR_KERNEL_FAULT, "called raise(SIGTERM)" },
  { EVIL_RAISE_CONTEXT, PTO_ERROR_KERNEL_FAULT, "called raise(SIGTERM)" },
  { EVIL_RAISE_RELEASED, PTO_ERROR_KERNEL_FAULT, "called raise(SIGTERM)" },
  { EVIL_RAISE_SIGSET, PTO_ERROR_KERNEL_FAULT, "called raise(SIGTERM)" },
  { EVIL_RAISE_PAUSED, PTO_ERROR_KERNEL_FAULT, "called raise(SIGHUP)" },
  { EVIL_RAISE_LEFT, 0, NULL },
  { EVIL_RAISE_HANDLED, 0, NULL },
  { EVIL_RAISE_POLLED_HANDLED, 0, NULL },
  { EVIL_RAISE_JUMPED_HANDLED, 0, NULL },
  { EVIL_RAISE_PENDING, 0, NULL },
  { EVIL_RAISE_IGNORED, 0, NULL },
  { EVIL_FORK_AND_RAISE, 0, NULL },
  { EVIL_BEGIN_PROGRAM, 0, NULL },
  { EVIL_BLOCK, 0, NULL },
  { EVIL_IGNORE_SIGINT, 0, NULL },
  { EVIL_SIGSET_SIGINT, 0, NULL },
  { EVIL_DIRECTION, 0, NULL },
  { EVIL_ALIGNMENT, 0, NULL },
  { EVIL_ROUNDING, 0, NULL },
  { EVIL_EXCEPTIONS, 0, NULL },
  { EVIL_MXCSR, 0, NULL },
  { EVIL_ARGUMENTS, 0, NULL },
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

static int fork_is_slow; /* atomic, as the next */
static int fork_is_interrupted;

/* Called when the handlers of what modules need have taken their locks, and before those of what
 * chips need, which the watcher of a chip waits for. */
static void
before_fork (void)
{
  gint64 end = g_get_monotonic_time () + 3 * G_USEC_PER_SEC / 2;

  while (g_atomic_int_get (&fork_is_slow) && g_get_monotonic_time () < end)
    usleep (1000);
}

/* Is called before the library's own handlers, and after them when the fork is over. */
static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;

static void
before_all (void)
{
  struct timespec rest = { .tv_sec = DEADLINE_S };

  pthread_mutex_lock (&first_lock);
  /* Until the interrupt comes. */
  if (g_atomic_int_get (&fork_is_interrupted))
    nanosleep (&rest, NULL);
}

static void
after_all (void)
{
  pthread_mutex_unlock (&first_lock);
}

static void
watch_forks_first (void)
{
  pthread_atfork (before_all, after_all, after_all);
}

static void
set_up_with (Fixture *fixture, const char *backend, const char *timeout, const char *const *flags)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  g_autoptr (GError) error = NULL;
  g_autofree char *orchestration = source ("evil-orchestration.cc");
  g_autofree char *kernel_path = source ("evil-kernel.cc");
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (orchestration, NULL, &error);
  g_autoptr (PtoCallable) kernel = NULL;

  alarm (3 * DEADLINE_S);
  g_assert_no_error (error);
  kernel = pto_kernel_new (PTO_CORE_AIV, kernel_path, NULL, &error);
  g_assert_no_error (error);
  pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), flags, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "evil", kernel, &error);
  g_assert_no_error (error);
  fixture->worker = pto_worker_new_chip (NULL, &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (fixture->worker, "backend", backend, &error);
  pto_worker_set_parameter (fixture->worker, "timeout", timeout, &error);
  g_assert_no_error (error);
  pto_worker_start (fixture->worker, NULL, &error);
  g_assert_no_error (error);
  fixture->handle = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_assert_no_error (error);
  pthread_once (&once, watch_forks_first);
  fixture->buffer = pto_buffer_new (N * sizeof (float), &error);
  g_assert_no_error (error);
}

static void
set_up (Fixture *fixture, const char *backend)
{
  set_up_with (fixture, backend, "300", NULL);
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
run_kernels (const char *backend, const char *const *flags)
{
  Fixture fixture;
  Caller caller;

  if (skipped ())
    return;
  set_up_with (&fixture, backend, "300", flags);
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

static void
test_kernels (gconstpointer backend)
{
  run_kernels (backend, NULL);
}

/* One that has thread-local variables, and so runs on another thread than its actor. */
static void
test_kernels_apart (gconstpointer backend)
{
  static const char *const flags[] = { "-DEVIL_APART", NULL };

  run_kernels (backend, flags);
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

/* Is it found where the function ends, after its submits? */
static gboolean
is_late (int evil)
{
  return evil == EVIL_RAISE_BLOCKED || evil == EVIL_SYS_QUEUE_BLOCKED
         || evil == EVIL_SIGQUEUE_BLOCKED;
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
                                         where == 0 && !is_late (rows[i].evil)
                                             ? "evil-orchestration.cc): before its first "
                                               "submit it "
                                         : where <= 1 ? place
                                                      : "aicpu_orchestration_config() ");
          }
        g_assert_cmpint (ok, ==, rows[i].says == NULL);
        assert_well (&fixture, &caller);
      }
  tear_down (&fixture);
}

/* --- shells --- */

/* Lets all shells go on that wait for the file, until none is left. */
static void
end_shells (const char *fifo)
{
  int status;

  for (;;)
    {
      int fd = open (fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      pid_t pid = waitpid (-1, &status, WNOHANG);

      if (fd >= 0)
        close (fd);
      if (pid < 0)
        break;
      if (pid == 0)
        g_usleep (1000);
    }
}

/* One that is cut off in system() leaves no signal ignored, and system() works after that. */
static void
test_shells (gconstpointer backend)
{
  g_autofree char *directory = NULL;
  g_autofree char *fifo = NULL;
  Fixture fixture;
  Caller caller;

  if (skipped ())
    return;
  directory = g_dir_make_tmp ("pto-foreign-XXXXXX", NULL);
  fifo = g_build_filename (directory, "fifo", NULL);
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  g_setenv ("EVIL_FIFO", fifo, TRUE);
  set_up (&fixture, backend);
  look (&caller);
  for (int where = 0; where < 3; where++)
    for (int repeat = 0; repeat < 2; repeat++)
      {
        g_autoptr (GError) error = NULL;
        struct sigaction now;

        g_assert_false (run (&fixture, 1 + repeat * 20,
                             where == 0 ? EVIL_SHELL_AND_WAIT : EVIL_NONE,
                             where == 1 ? EVIL_SHELL_AND_WAIT : EVIL_NONE,
                             where == 2 ? EVIL_SHELL_AND_WAIT : EVIL_NONE, EVIL_NONE, &error));
        g_assert_error (error, PTO_ERROR, PTO_ERROR_KERNEL_HANG);
        end_shells (fifo);
        sigaction (SIGQUIT, NULL, &now);
        g_assert_true (now.sa_handler == SIG_DFL);
        assert_well (&fixture, &caller);
        /* The program itself ignores them as long as it waits for a shell. */
        g_assert_cmpint (system ("kill -INT $PPID; kill -QUIT $PPID; exit 3"), ==, 3 << 8);
      }
  tear_down (&fixture);
  g_assert_cmpint (g_remove (fifo), ==, 0);
  g_assert_cmpint (g_rmdir (directory), ==, 0);
}

/* --- forks --- */

/* A copy that returns ends. So does one that calls the engine, which has the cores and the
 * scheduler in the other process, and it says why. A busy machine gives none of them the CPU soon,
 * so the timeout is long. */
static void
test_copies (gconstpointer backend)
{
  static const int evils[] = { EVIL_FORK_AND_WAIT, EVIL_FORK, EVIL_FORK_UNSEEN };
  static const char *const flags[] = { "-DEVIL_APART", NULL };

  if (skipped ())
    return;
  if (g_test_subprocess ())
    {
      for (int apart = 0; apart < 2; apart++)
        {
          g_autoptr (GError) error = NULL;
          Fixture fixture;
          Caller caller;

          set_up_with (&fixture, backend, "20000", apart ? flags : NULL);
          look (&caller);
          for (gsize i = 0; i < G_N_ELEMENTS (evils); i++)
            for (int where = 0; where < 4; where++)
              {
                /* Before the run there is no engine to call. */
                if (where == 3 && evils[i] == EVIL_FORK_AND_WAIT)
                  continue;
                run (&fixture, evils[i] == EVIL_FORK_AND_WAIT ? 1 : 20,
                     where == 0 ? evils[i] : EVIL_NONE, where == 1 ? evils[i] : EVIL_NONE,
                     where == 2 ? evils[i] : EVIL_NONE, where == 3 ? evils[i] : EVIL_NONE, &error);
                g_assert_no_error (error);
                assert_well (&fixture, &caller);
              }
          tear_down (&fixture);
        }
      return;
    }
  g_test_trap_subprocess (NULL, (guint64) DEADLINE_S * G_USEC_PER_SEC, 0);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr (
      "*pto_relax() is called in a copy of the process*pto2_rt_submit_task() is called in a copy of "
      "the process*pto2_rt_submit() is*pto2_rt_scope_begin() is*pto2_rt_manual_scope_begin() is*"
      "pto2_rt_scope_end() is*pto2_rt_orchestration_done() is*make_tensor() is*"
      "pto2_rt_arg_tensor() is*pto2_rt_get_element() is*pto2_rt_set_element() is*"
      "pto2_rt_allocate_cluster() is*pto2_rt_free_cluster() is*pto2_rt_submit() is*"
      "pto2_rt_add_successor_conditional() is*pto2_rt_publish_task() is*"
      "pto2_rt_device_malloc() is*pto_relax() is called*pto2_rt_device_malloc() is*");
}

/* A fork that takes longer than a kernel may: its kernel is ended behind it, not in it. */
static void
run_slow_fork (const char *backend, const char *timeout, int evil, int *slow)
{
  g_autoptr (GError) error = NULL;
  Fixture fixture;
  Caller caller;
  int status;
  pid_t pid;

  set_up_with (&fixture, backend, timeout, NULL);
  look (&caller);
  g_atomic_int_set (slow, TRUE);
  g_assert_false (run (&fixture, 1, evil, EVIL_NONE, EVIL_NONE, EVIL_NONE, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_KERNEL_HANG);
  g_assert_null (strstr (error->message, "not safe"));
  g_atomic_int_set (slow, FALSE);
  /* The kernel's, which it did not come to wait for. It may have heard of the interrupt as well. */
  g_assert_cmpint (waitpid (-1, &status, 0), >, 0);
  g_assert_true (WIFEXITED (status));
  if (slow == &fork_is_slow)
    g_assert_cmpint (status, ==, 0);
  /* No fork holds it any more. */
  g_assert_cmpint (pthread_mutex_trylock (&first_lock), ==, 0);
  pthread_mutex_unlock (&first_lock);
  /* Whoever forks next would wait for the same locks. */
  pid = fork ();
  if (pid == 0)
    _exit (0);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  assert_well (&fixture, &caller);
  tear_down (&fixture);
}

static void
test_slow_fork (gconstpointer backend)
{
  if (skipped ())
    return;
  run_slow_fork (backend, "300", EVIL_FORK, &fork_is_slow);
  /* The fork has as long again to come out. */
  run_slow_fork (backend, "1000", EVIL_FORK_UNSEEN_AND_LOOP, &fork_is_slow);
  run_slow_fork (backend, "1000", EVIL_FORK_UNSEEN_AND_LOOP, &fork_is_interrupted);
}

/* --- runs at one time --- */

static void
own_handler (int signo)
{
  _exit (77);
}

typedef struct
{
  Fixture fixture;
  int kernel;
  GThread *thread;
  GError *error;
} Holder;

static volatile float *
words (Holder *holder)
{
  return object_test_floats (holder->fixture.buffer);
}

static gpointer
hold (gpointer data)
{
  Holder *holder = data;

  run (&holder->fixture, 1, holder->kernel, EVIL_NONE, EVIL_NONE, EVIL_NONE, &holder->error);
  return NULL;
}

/* Until its kernel has set the disposition. */
static void
begin_to_hold (Holder *holder, int kernel)
{
  gint64 end = g_get_monotonic_time () + DEADLINE_S * G_USEC_PER_SEC / 2;

  holder->kernel = kernel;
  words (holder)[0] = 0;
  holder->thread = g_thread_new ("holder", hold, holder);
  while (words (holder)[0] == 0)
    {
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      usleep (1000);
    }
}

static void
end_holding (Holder *holder)
{
  words (holder)[1] = 1;
  g_thread_join (holder->thread);
  g_assert_no_error (holder->error);
}

static void *
disposition (int signo)
{
  struct sigaction now;

  g_assert_cmpint (sigaction (signo, NULL, &now), ==, 0);
  return (void *) now.sa_handler;
}

/* A run puts back what its own kernels have set, and what a run that goes on has set stays. */
static void
run_together (const char *backend, const char *const *flags)
{
  g_autoptr (GError) error = NULL;
  void *usr1 = disposition (SIGUSR1);
  void *usr2 = disposition (SIGUSR2);
  Holder holders[2] = { 0 };
  Holder *one = &holders[0];
  Holder *other = &holders[1];
  void *set;

  if (skipped ())
    return;
  for (guint i = 0; i < 2; i++)
    set_up_with (&holders[i].fixture, backend, "50000", flags);
  begin_to_hold (one, EVIL_HOLD_HANDLER);
  set = disposition (SIGUSR1);
  g_assert_true (set != usr1);
  /* Another run that changes nothing, one that sets the same, and a call outside of runs. */
  run (&other->fixture, 1, EVIL_NONE, EVIL_NONE, EVIL_NONE, EVIL_NONE, &error);
  g_assert_no_error (error);
  g_assert_true (disposition (SIGUSR1) == set);
  words (one)[2] = 1;
  run (&other->fixture, 1, EVIL_TAKE_SIGNALS, EVIL_NONE, EVIL_NONE, EVIL_NONE, &error);
  g_assert_no_error (error);
  g_assert_true (disposition (SIGUSR1) == set);
  g_assert_true (disposition (SIGUSR2) == usr2);
  run (&other->fixture, 1, EVIL_NONE, EVIL_NONE, EVIL_NONE, EVIL_TAKE_SIGNALS, &error);
  g_assert_no_error (error);
  g_assert_true (disposition (SIGUSR1) == set);
  g_assert_true (disposition (SIGUSR2) == usr2);
  /* The one that was first ends first: what the other has set stays. */
  begin_to_hold (other, EVIL_HOLD_IGNORED);
  end_holding (one);
  g_assert_true (disposition (SIGUSR1) == (void *) SIG_IGN);
  end_holding (other);
  g_assert_true (disposition (SIGUSR1) == usr1);
  /* The program sets one meanwhile, which stays. */
  begin_to_hold (one, EVIL_HOLD_HANDLER);
  words (one)[2] = 1;
  signal (SIGUSR1, own_handler);
  end_holding (one);
  g_assert_true (disposition (SIGUSR1) == (void *) own_handler);
  signal (SIGUSR1, (void (*) (int)) usr1);
  for (guint i = 0; i < 2; i++)
    tear_down (&holders[i].fixture);
}

static void
test_runs (gconstpointer backend)
{
  static const char *const apart[] = { "-DEVIL_APART", NULL };
  /* Where signal() has another name. */
  static const char *const strict[] = { "-std=c++17", "-D_XOPEN_SOURCE=600", NULL };

  run_together (backend, NULL);
  run_together (backend, apart);
  run_together (backend, strict);
}

/* --- destructors --- */

/* What a destructor of the kernel's does when its core's thread ends. */
static const struct
{
  int evil;
  const char *says;
} ends[] = {
  { EVIL_NONE, NULL },
  { EVIL_NULL, "crashed: Segmentation fault (signal 11) at address 0x8" },
  { EVIL_JUMP, "crashed: Segmentation fault (signal 11) at address 0x10" },
  { EVIL_ABORT, "crashed: Aborted (signal 6)" },
  { EVIL_THROW, "crashed: Aborted (signal 6)" },
  { EVIL_OVERFLOW, "used up its stack" },
  { EVIL_LOOP, "did not return within 1000 ms, and was ended: set timeout to more" },
  { EVIL_EXIT, "called exit(3)" },
  { EVIL_PTHREAD_EXIT, "called pthread_exit()" },
  { EVIL_BLOCK_AND_CRASH, "crashed: Segmentation fault (signal 11)" },
  { EVIL_BLOCK_AND_LOOP, "did not return within 1000 ms" },
  { EVIL_DEFAULT_AND_CRASH, "crashed: Segmentation fault (signal 11)" },
};

static void
test_ends (gconstpointer backend)
{
  static const char *const flags[] = { "-DEVIL_APART", NULL };
  static const int by[] = { EVIL_BY_OBJECT, EVIL_BY_KEY };

  if (skipped ())
    return;
  for (gsize i = 0; i < G_N_ELEMENTS (ends) * G_N_ELEMENTS (by); i++)
    {
      const char *says = ends[i / 2].says;
      g_autofree char *pattern = g_strdup_printf ("*thread-local memory of kernel evil, at the "
                                                  "end of core AIV*, %s*",
                                                  says);
      g_autoptr (GError) error = NULL;
      Fixture fixture;
      Caller caller;

      g_test_message ("row %d of %d: %s", ends[i / 2].evil, by[i % 2], says);
      set_up_with (&fixture, backend, "1000", flags);
      look (&caller);
      run (&fixture, 1, by[i % 2] + ends[i / 2].evil, EVIL_NONE, EVIL_NONE, EVIL_NONE, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (fixture.buffer)[N - 1], ==, 7);
      if (says != NULL)
        g_test_expect_message ("Pto", G_LOG_LEVEL_WARNING, pattern);
      tear_down (&fixture);
      g_test_assert_expected_messages ();
      set_up_with (&fixture, backend, "20000", flags);
      assert_well (&fixture, &caller);
      tear_down (&fixture);
    }
}

/* --- the program's own doing --- */

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

/* Handlers are called last in, first out: no module is loaded yet. */
static void
watch_forks (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = pto_worker_new_chip (NULL, &error);

  g_assert_no_error (error);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  pto_worker_close (worker);
  pthread_atfork (before_fork, NULL, NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  watch_forks ();
  alarm (3 * DEADLINE_S);
  for (gsize i = 0; i < G_N_ELEMENTS (backends); i++)
    {
      g_autofree char *kernels = g_strdup_printf ("/pto/foreign/kernels/%s", backends[i]);
      g_autofree char *apart = g_strdup_printf ("/pto/foreign/kernels-apart/%s", backends[i]);
      g_autofree char *orchestrations
          = g_strdup_printf ("/pto/foreign/orchestrations/%s", backends[i]);
      g_autofree char *slow_fork = g_strdup_printf ("/pto/foreign/slow-fork/%s", backends[i]);
      g_autofree char *runs = g_strdup_printf ("/pto/foreign/runs/%s", backends[i]);
      g_autofree char *at_ends = g_strdup_printf ("/pto/foreign/ends/%s", backends[i]);
      g_autofree char *copies = g_strdup_printf ("/pto/foreign/copies/%s", backends[i]);
      g_autofree char *program = g_strdup_printf ("/pto/foreign/program/%s", backends[i]);
      g_autofree char *shells = g_strdup_printf ("/pto/foreign/shells/%s", backends[i]);

      g_test_add_data_func (kernels, backends[i], test_kernels);
      g_test_add_data_func (apart, backends[i], test_kernels_apart);
      g_test_add_data_func (orchestrations, backends[i], test_orchestrations);
      g_test_add_data_func (program, backends[i], test_program);
      g_test_add_data_func (slow_fork, backends[i], test_slow_fork);
      g_test_add_data_func (runs, backends[i], test_runs);
      g_test_add_data_func (copies, backends[i], test_copies);
      g_test_add_data_func (at_ends, backends[i], test_ends);
      g_test_add_data_func (shells, backends[i], test_shells);
    }
  g_test_add_func ("/pto/foreign/together", test_together);
  for (gsize i = 0; i < G_N_ELEMENTS (deaths); i++)
    {
      g_autofree char *name = g_strdup_printf ("/pto/foreign/not-held/%s", deaths[i].name);

      g_test_add_data_func (name, GSIZE_TO_POINTER (i), test_deaths);
    }
  return g_test_run ();
}
