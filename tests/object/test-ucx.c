/* test-ucx.c: does the module for UCX move what it is told to, and does it say so when it can not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two ends talk to each other, in threads of this process or with a second process of this program,
 * which a socket ties to the first one as the connection of a remote worker does. What the module
 * knows is parts with tags: of generations and keys its users make the tags.
 */
#include "config.h"

#include "../../pto/common/fabric-module.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern const PtoFabricEngine pto_fabric_engine;

#define TAG 0x7061727400000000
#define LARGE (40 << 20)
#define OTHER_END 3 /* the socket in the second process */

#if defined(__SANITIZE_THREAD__)
#define IS_THREAD_SANITIZER TRUE
#else
#define IS_THREAD_SANITIZER FALSE
#endif

static const gsize sizes[] = { 1, 7, 64, 4095, 8192, 65537, 1 << 20, (8 << 20) + 3 };
static char *program;

static gboolean
goes_by_shared_memory (void)
{
  return g_strcmp0 (g_getenv ("UCX_TLS"), "sm,self") == 0;
}

/* --- an end --- */

typedef struct
{
  gpointer fabric;
  int connection;
} End;

static void
write_all (int to, gconstpointer data, gsize size)
{
  g_assert_cmpint (send (to, data, size, MSG_NOSIGNAL), ==, size);
}

static void
read_all (int from, gpointer to, gsize size)
{
  g_assert_cmpint (recv (from, to, size, MSG_WAITALL), ==, size);
}

/* Tells the other end its address, and connects to what that tells. */
static void
open_end (End *end, int connection)
{
  g_autoptr (GBytes) address = NULL;
  g_autofree char *cause = NULL;
  g_autofree char *theirs = NULL;
  gsize size;

  end->connection = connection;
  end->fabric = pto_fabric_engine.open (&address, &cause);
  g_assert_cmpstr (cause, ==, NULL);
  g_assert_nonnull (end->fabric);
  size = g_bytes_get_size (address);
  write_all (connection, &size, sizeof size);
  write_all (connection, g_bytes_get_data (address, NULL), size);
  read_all (connection, &size, sizeof size);
  theirs = g_malloc (size);
  read_all (connection, theirs, size);
  g_assert_true (pto_fabric_engine.connect (end->fabric, theirs, size, &cause));
  g_assert_cmpstr (cause, ==, NULL);
}

/* Both ends have come so far. */
static void
wait_for_other (End *end)
{
  char byte = 0;

  write_all (end->connection, &byte, 1);
  read_all (end->connection, &byte, 1);
}

static void
close_end (End *end)
{
  pto_fabric_engine.close (end->fabric);
  close (end->connection);
}

static PtoFabricResult
move_part (End *end, PtoFabricWay way, gpointer memory, gsize size, guint64 tag, char **cause)
{
  return pto_fabric_engine.move (end->fabric, way, memory, size, TAG + tag, end->connection, cause);
}

static void
assert_moves (End *end, PtoFabricWay way, gpointer memory, gsize size, guint64 tag)
{
  g_autofree char *cause = NULL;
  PtoFabricResult result = move_part (end, way, memory, size, tag, &cause);

  g_assert_cmpstr (cause, ==, NULL);
  g_assert_cmpint (result, ==, PTO_FABRIC_MOVED);
}

/* One part each way. Until then UCX itself makes its connections, and UCX 1.13 ends the process
 * (wireup_ep->pending_count == 0) of whose other end goes meanwhile, which no caller can help. */
static void
meet (End *end, gboolean is_first)
{
  guint8 byte = 0;

  for (guint i = 0; i < 2; i++)
    assert_moves (end, is_first == (i == 0) ? PTO_FABRIC_OUT : PTO_FABRIC_IN, &byte, 1, 1000 + i);
  wait_for_other (end);
}

static void
fill (guint8 *memory, gsize size, guint seed)
{
  for (gsize i = 0; i < size; i++)
    memory[i] = (guint8) (i * 31 + (i >> 8) * 7 + seed);
}

static void
assert_filled (const guint8 *memory, gsize size, guint seed)
{
  for (gsize i = 0; i < size; i++)
    if (memory[i] != (guint8) (i * 31 + (i >> 8) * 7 + seed))
      g_error ("byte %zu of %zu is %u", i, size, memory[i]);
}

/* --- what the other end does --- */

typedef void (*Part) (End *end);

/* What comes goes back, each byte one more. */
static void
answer_all (End *end)
{
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autofree guint8 *memory = g_malloc (sizes[i]);

      assert_moves (end, PTO_FABRIC_IN, memory, sizes[i], 2 * i);
      for (gsize k = 0; k < sizes[i]; k++)
        memory[k]++;
      assert_moves (end, PTO_FABRIC_OUT, memory, sizes[i], 2 * i + 1);
    }
  /* A part may have gone before it has come, and the other way round: who hangs up then cuts it
   * off. */
  wait_for_other (end);
}

static void
send_some (End *end)
{
  guint8 memory[4096];

  fill (memory, sizeof memory, 5);
  assert_moves (end, PTO_FABRIC_OUT, memory, sizeof memory, 0);
  wait_for_other (end);
}

/* Is not there for what was begun with it. */
static void
stand_still (End *end)
{
  char byte;

  g_assert_cmpint (recv (end->connection, &byte, 1, 0), <=, 1);
}

static void
die (End *end)
{
  char byte;

  read_all (end->connection, &byte, 1);
  raise (SIGKILL);
}

/* Takes one part after the other, until it is stopped in the midst of one. */
static void
take_on (End *end)
{
  g_autofree guint8 *memory = g_malloc (LARGE);
  g_autofree char *cause = NULL;

  while (move_part (end, PTO_FABRIC_IN, memory, LARGE, PTO_FABRIC_OUT, &cause) == PTO_FABRIC_MOVED)
    ;
}

static const struct
{
  const char *name;
  Part part;
} parts[] = { { "answer", answer_all },
              { "some", send_some },
              { "still", stand_still },
              { "die", die },
              { "on", take_on } };

static Part
find_part (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (g_str_equal (parts[i].name, name))
      return parts[i].part;
  g_assert_not_reached ();
}

/* --- the other end --- */

typedef struct
{
  End end;
  Part part;
  int connection;
  GThread *thread;
  GPid pid; /* 0: a thread */
} Other;

static gpointer
run_other (gpointer data)
{
  Other *other = data;
  End end;

  open_end (&end, other->connection);
  meet (&end, FALSE);
  other->part (&end);
  close_end (&end);
  return NULL;
}

static void
take_socket (gpointer data)
{
  dup2 (GPOINTER_TO_INT (data), OTHER_END);
}

static void
start (Other *other, End *end, const char *name, gboolean is_process)
{
  int pair[2];

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
  *other = (Other){ .part = find_part (name), .connection = pair[1] };
  if (is_process)
    {
      char *arguments[] = { program, (char *) "--other", (char *) name, NULL };
      g_autoptr (GError) error = NULL;

      g_spawn_async (NULL, arguments, NULL,
                     G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_LEAVE_DESCRIPTORS_OPEN, take_socket,
                     GINT_TO_POINTER (pair[1]), &other->pid, &error);
      g_assert_no_error (error);
      close (pair[1]);
    }
  else
    other->thread = g_thread_new ("other", run_other, other);
  open_end (end, pair[0]);
  meet (end, TRUE);
}

static void
join (Other *other, int expected)
{
  int status;

  if (other->thread != NULL)
    g_thread_join (other->thread);
  else
    {
      g_assert_cmpint (waitpid (other->pid, &status, 0), ==, other->pid);
      g_assert_cmpint (status, ==, expected);
    }
}

/* --- tests --- */

static void
test_sizes (gconstpointer is_process)
{
  Other other;
  End end;

  start (&other, &end, "answer", is_process != NULL);
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autofree guint8 *memory = g_malloc (sizes[i]);

      fill (memory, sizes[i], i);
      assert_moves (&end, PTO_FABRIC_OUT, memory, sizes[i], 2 * i);
      memset (memory, 0, sizes[i]);
      assert_moves (&end, PTO_FABRIC_IN, memory, sizes[i], 2 * i + 1);
      assert_filled (memory, sizes[i], i + 1);
    }
  wait_for_other (&end);
  close_end (&end);
  join (&other, 0);
}

/* A part of another length is a failure, and so is all that follows. */
static void
test_length (gconstpointer size)
{
  g_autofree guint8 *memory = g_malloc0 (8192);
  g_autofree char *cause = NULL;
  g_autofree char *again = NULL;
  gsize n = GPOINTER_TO_SIZE (size);
  Other other;
  End end;

  start (&other, &end, "some", FALSE);
  g_assert_cmpint (move_part (&end, PTO_FABRIC_IN, memory, n, 0, &cause), ==, PTO_FABRIC_FAILED);
  g_assert_nonnull (cause);
  if (n > 4096)
    g_assert_cmpstr (cause, ==, "a part has 4096 bytes, and not 8192");
  for (gsize i = n; i < 8192; i++)
    g_assert_cmpint (memory[i], ==, 0);
  g_assert_cmpint (move_part (&end, PTO_FABRIC_IN, memory, n, 1, &again), ==, PTO_FABRIC_FAILED);
  g_assert_cmpstr (again, ==, cause);
  wait_for_other (&end);
  close_end (&end);
  join (&other, 0);
}

/* What has the tag of another generation is not taken for what is waited for. */
static void
test_tag (void)
{
  guint8 memory[4096] = { 0 };
  g_autofree char *cause = NULL;
  Other other;
  End end;

  start (&other, &end, "some", FALSE);
  write_all (end.connection, "", 1); /* it hangs up when it has sent */
  g_assert_cmpint (
      move_part (&end, PTO_FABRIC_IN, memory, sizeof memory, G_GUINT64_CONSTANT (1) << 40, &cause),
      !=, PTO_FABRIC_MOVED);
  for (gsize i = 0; i < sizeof memory; i++)
    g_assert_cmpint (memory[i], ==, 0);
  close_end (&end);
  join (&other, 0);
}

typedef struct
{
  End *end;
  PtoFabricWay way;
  guint8 *memory;
  PtoFabricResult result;
  char *cause;
  gint n;       /* atomic; parts that have gone */
  gint is_over; /* atomic */
} Moved;

static gpointer
run_move (gpointer data)
{
  Moved *moved = data;

  moved->result
      = move_part (moved->end, moved->way, moved->memory, LARGE, moved->way, &moved->cause);
  return NULL;
}

/* Both ways at once are under way when the other end goes; what was is told, and closing ends. */
static void
go_in_flight (const char *name, gboolean is_process, int expected)
{
  Moved moved[2] = { { .way = PTO_FABRIC_IN }, { .way = PTO_FABRIC_OUT } };
  GThread *threads[2];
  Other other;
  End end;

  start (&other, &end, name, is_process);
  for (guint i = 0; i < 2; i++)
    {
      moved[i].end = &end;
      moved[i].memory = g_malloc0 (LARGE);
      threads[i] = g_thread_new ("move", run_move, &moved[i]);
    }
  write_all (end.connection, "", 1);
  for (guint i = 0; i < 2; i++)
    {
      g_thread_join (threads[i]);
      g_assert_cmpint (moved[i].result, !=, PTO_FABRIC_MOVED);
      g_assert_cmpint (moved[i].cause != NULL, ==, moved[i].result == PTO_FABRIC_FAILED);
      g_free (moved[i].cause);
    }
  close_end (&end);
  for (guint i = 0; i < 2; i++)
    g_free (moved[i].memory);
  join (&other, expected);
}

static void
test_close (gconstpointer is_process)
{
  go_in_flight ("still", is_process != NULL, 0);
}

static void
test_death (void)
{
  go_in_flight ("die", TRUE, SIGKILL);
}

/* --- sleep --- */

/* Of what a fabric waits with for no longer than a moment, which it does where there is no room. */
static gint n_short; /* atomic */
static gint n_awake; /* atomic; of these, those that did not sleep */
static gint n_long;  /* atomic; waits until something comes, that have begun or ended */

int __real_poll (struct pollfd *waits, nfds_t n, int timeout_ms);
int __wrap_poll (struct pollfd *waits, nfds_t n, int timeout_ms);

int
__wrap_poll (struct pollfd *waits, nfds_t n, int timeout_ms)
{
  gboolean is_short = n == 1 && timeout_ms == 1;
  int result;

  if (!is_short)
    g_atomic_int_inc (&n_long);
  result = __real_poll (waits, n, timeout_ms);
  if (!is_short)
    g_atomic_int_inc (&n_long);
  else
    {
      if (result > 0)
        g_atomic_int_inc (&n_awake);
      g_atomic_int_inc (&n_short);
    }
  return result;
}

static gpointer
run_sender (gpointer data)
{
  Moved *moved = data;

  while (!g_atomic_int_get (&moved->is_over))
    {
      run_move (moved);
      if (moved->result != PTO_FABRIC_MOVED)
        break;
      g_atomic_int_inc (&moved->n);
    }
  return NULL;
}

/* Stops the other end. TRUE: in the midst of a part, for whose rest there is no room. What it did
 * is done with then: either the sender comes back to short waits again and again, or everybody
 * waits for something to come, and no wait begins or ends any more. */
static gboolean
stop_in_part (Other *other)
{
  int status;
  gint before;

  kill (other->pid, SIGSTOP);
  g_assert_cmpint (waitpid (other->pid, &status, WUNTRACED), ==, other->pid);
  g_assert_true (WIFSTOPPED (status));
  before = g_atomic_int_get (&n_short);
  for (guint quiet = 0; quiet < 100; quiet++)
    {
      gint n = g_atomic_int_get (&n_long);

      if (g_atomic_int_get (&n_short) - before >= 20)
        return TRUE;
      g_usleep (1000);
      if (g_atomic_int_get (&n_long) != n)
        quiet = 0;
    }
  return FALSE;
}

/* While the other end stands still in a part, what is wanted meanwhile keeps nobody awake. */
static void
test_stop (void)
{
  Moved out = { .way = PTO_FABRIC_OUT };
  Moved in = { .way = PTO_FABRIC_IN };
  GThread *threads[2];
  gint until, awake;
  gboolean has_stopped = FALSE;
  Other other;
  End end;

  if (!goes_by_shared_memory ())
    {
      g_test_skip ("UCX_TLS is not sm,self: there is always somebody who tells of room");
      return;
    }
  start (&other, &end, "on", TRUE);
  out.end = in.end = &end;
  out.memory = g_malloc0 (LARGE);
  in.memory = g_malloc0 (LARGE);
  threads[0] = g_thread_new ("sender", run_sender, &out);
  /* Where it stops is chance: between two parts it is of no use. */
  for (guint i = 0; i < 200 && !has_stopped; i++)
    {
      gint n = g_atomic_int_get (&out.n);

      while (g_atomic_int_get (&out.n) <= n)
        g_usleep (100);
      g_usleep (i % 5 * 500);
      has_stopped = stop_in_part (&other);
      if (!has_stopped)
        kill (other.pid, SIGCONT);
    }
  g_assert_true (has_stopped);
  threads[1] = g_thread_new ("receiver", run_move, &in);
  /* One is woken at most for what has been wanted: the part that comes, and the one that goes. */
  awake = g_atomic_int_get (&n_awake);
  until = g_atomic_int_get (&n_short) + 100;
  while (g_atomic_int_get (&n_short) < until)
    g_usleep (1000);
  g_assert_cmpint (g_atomic_int_get (&n_awake) - awake, <=, 2);
  g_atomic_int_set (&out.is_over, TRUE);
  kill (other.pid, SIGKILL);
  g_thread_join (threads[0]);
  g_thread_join (threads[1]);
  g_free (out.cause);
  g_free (in.cause);
  close_end (&end);
  g_free (out.memory);
  g_free (in.memory);
  join (&other, SIGKILL);
}

static void
test_describe (void)
{
  g_autofree char *cause = NULL;
  g_autofree char *told = pto_fabric_engine.describe (&cause);

  g_assert_cmpstr (cause, ==, NULL);
  g_assert_true (g_str_has_prefix (told, "UCX "));
}

/* Opened, and closed without anybody to talk to. */
static void
test_alone (void)
{
  g_autoptr (GBytes) address = NULL;
  g_autofree char *cause = NULL;
  gpointer fabric = pto_fabric_engine.open (&address, &cause);

  g_assert_nonnull (fabric);
  pto_fabric_engine.close (fabric);
}

int
main (int argc, char **argv)
{
  if (argc == 3 && g_str_equal (argv[1], "--other"))
    {
      Other other = { .part = find_part (argv[2]), .connection = OTHER_END };

      run_other (&other);
      return 0;
    }
  program = argv[0];
  if (g_getenv ("UCX_TLS") == NULL)
    g_setenv ("UCX_TLS", "tcp", TRUE);
  if (g_str_equal (g_getenv ("UCX_TLS"), "tcp")
      && !g_file_test ("/sys/class/net", G_FILE_TEST_IS_DIR))
    {
      g_print ("1..0 # SKIP no /sys/class/net: UCX finds no network\n");
      return 0;
    }
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/ucx/describe", test_describe);
  g_test_add_func ("/pto/ucx/alone", test_alone);
  g_test_add_data_func ("/pto/ucx/sizes/threads", NULL, test_sizes);
  g_test_add_data_func ("/pto/ucx/length/shorter", GSIZE_TO_POINTER (100), test_length);
  g_test_add_data_func ("/pto/ucx/length/longer", GSIZE_TO_POINTER (8192), test_length);
  g_test_add_func ("/pto/ucx/tag", test_tag);
  g_test_add_data_func ("/pto/ucx/close/threads", NULL, test_close);
  /* The thread sanitizer does not support threads that begin in a child of a process with threads.
   */
  if (!IS_THREAD_SANITIZER)
    {
      g_test_add_data_func ("/pto/ucx/sizes/processes", "", test_sizes);
      g_test_add_data_func ("/pto/ucx/close/processes", "", test_close);
      g_test_add_func ("/pto/ucx/death", test_death);
      g_test_add_func ("/pto/ucx/stop", test_stop);
    }
  return g_test_run ();
}
