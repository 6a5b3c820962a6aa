/* test-solo.c: a child that is alone, the memory that stands in for others, and the stream.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/process/single-child.h"
#include "../../pto/process/staging.h"
#include "../../pto/process/command-stream.h"

#include <dirent.h>
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA (64u << 20)
#define PAGE 4096u

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

/* --- solo --- */

/* What the requests of these tests mean. */
enum
{
  ECHO = PTO_REQUEST_REGISTER, /* answers with the first byte of the body as its status */
  DIE = PTO_REQUEST_RUN,
  START = PTO_REQUEST_START, /* rings for some time before it is answered */
  HANG = PTO_REQUEST_TRACE
};

static struct pto_solo *rung; /* by its child while that starts, or NULL */

static void
ring_for_a_while (void)
{
  for (guint i = 0; i < 200; i++)
    {
      pto_solo_ring (rung, 0);
      g_usleep (100);
    }
}

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  switch ((int) call->request)
    {
    case ECHO:
      pto_failure_set (failure, call->body[0], NULL, "said %u", call->body[0]);
      return call->body[0];
    case START:
      if (rung != NULL)
        ring_for_a_while ();
      return 0;
    case DIE:
      g_assert_cmpint (write (2, "so long\n", 8), ==, 8);
      raise (SIGKILL);
      return 0;
    case HANG:
      for (;;)
        pause ();
    default:
      return 0;
    }
}

static struct pto_solo *
make_solo (void)
{
  struct pto_solo_config config = { .path = "L2/0", .bytes = PAGE, .arena = ARENA };
  struct pto_report report = { 0 };
  struct pto_solo *solo;

  config.servers[0].serve = config.servers[1].serve = serve;
  solo = pto_solo_new (&config, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_nonnull (solo);
  return solo;
}

static void
begin (struct pto_solo *solo)
{
  struct pto_report report = { 0 };

  pto_solo_begin (solo, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_true (pto_solo_is_alive (solo));
}

static enum pto_solo_event
await (struct pto_solo *solo, uint32_t lane)
{
  uint64_t deadline = pto_solo_clock () + UINT64_C (20000000000);
  enum pto_solo_event event;

  do
    event = pto_solo_wait (solo, lane, pto_solo_listen (solo, lane), 1000, deadline);
  while (event == PTO_SOLO_LOOK && pto_solo_clock () < deadline);
  return event;
}

static void
check_echo (struct pto_solo *solo, uint32_t lane, uint8_t status)
{
  struct pto_failure failure = { 0 };
  g_autofree char *text = g_strdup_printf ("said %u", status);

  ((uint8_t *) pto_solo_body (solo, lane))[0] = status;
  pto_solo_post (solo, lane, (enum pto_request) ECHO, 0, 1);
  g_assert_cmpint (await (solo, lane), ==, PTO_SOLO_ANSWERED);
  g_assert_cmpuint (pto_solo_answer (solo, lane, &failure), ==, status);
  if (status != 0)
    g_assert_cmpstr (failure.text, ==, text);
}

/* The second lane answers while the first is busy; who dies is begun again; nothing is left. */
static void
test_solo (void)
{
  guint descriptors = count_descriptors ();
  struct pto_solo *solo = make_solo ();
  char how[128], words[128];

  for (guint round = 0; round < 3; round++)
    {
      begin (solo);
      for (guint i = 0; i < 200; i++)
        check_echo (solo, i % 2, (uint8_t) i);
      pto_solo_post (solo, 0, (enum pto_request) (round == 1 ? HANG : DIE), 0, 0);
      if (round == 1)
        {
          check_echo (solo, 1, 7);
          pto_solo_kill (solo, "it hangs");
        }
      g_assert_cmpint (await (solo, 0), ==, PTO_SOLO_DIED);
      g_assert_false (pto_solo_is_alive (solo));
      pto_solo_describe (solo, how, sizeof how, words, sizeof words);
      g_assert_cmpstr (how, ==, round == 1 ? "was ended: it hangs" : "died (signal 9, Killed)");
      g_assert_cmpstr (words, ==, round == 1 ? "" : "so long");
    }
  begin (solo);
  check_echo (solo, 0, 0);
  pto_solo_free (solo);
  g_assert_cmpuint (count_descriptors (), ==, descriptors);
}

/* --- caught by a lock --- */

static struct
{
  GMutex lock;
  guint caught; /* so many forks find it held */
  guint forks;
} trap;

static pid_t
fork_into_trap (void *data)
{
  gboolean held = trap.forks++ < trap.caught;
  pid_t pid;

  if (held)
    g_mutex_lock (&trap.lock);
  pid = fork ();
  if (held && pid != 0)
    g_mutex_unlock (&trap.lock);
  return pid;
}

static void
step_into_trap (void *data)
{
  g_mutex_lock (&trap.lock);
  g_mutex_unlock (&trap.lock);
}

/* A child that a lock of the parent holds is ended, and another one takes its place. */
static void
test_caught (void)
{
  for (guint caught = 0; caught <= 2; caught++)
    {
      struct pto_solo_config config
          = { .path = "L2/0", .fork = fork_into_trap, .bytes = PAGE, .arena = ARENA };
      struct pto_report report = { 0 };
      struct pto_solo *solo;

      config.servers[0].serve = config.servers[1].serve = serve;
      config.servers[0].probe = step_into_trap;
      trap.caught = caught;
      trap.forks = 0;
      solo = pto_solo_new (&config, &report);
      g_assert_nonnull (solo);
      begin (solo);
      /* On a busy machine more of them come late. */
      g_assert_cmpuint (trap.forks, >, caught);
      check_echo (solo, 0, 3);
      pto_solo_free (solo);
      /* None of them is left. */
      g_assert_cmpint (waitpid (-1, NULL, WNOHANG), ==, -1);
      g_assert_cmpint (errno, ==, ECHILD);
    }
}

/* A ring is never lost: neither before nor during the wait. */
static gpointer
ring (gpointer data)
{
  g_usleep (2000);
  pto_solo_ring (data, 0);
  return NULL;
}

static void
test_ring (void)
{
  struct pto_solo *solo = make_solo ();

  begin (solo);
  pto_solo_post (solo, 0, (enum pto_request) HANG, 0, 0);
  for (guint i = 0; i < 20; i++)
    {
      uint32_t heard = pto_solo_listen (solo, 0);
      GThread *thread = i % 2 == 0 ? g_thread_new ("ring", ring, solo) : NULL;

      if (thread == NULL)
        pto_solo_ring (solo, 0);
      g_assert_cmpint (pto_solo_wait (solo, 0, heard, 0, PTO_SOLO_NEVER), ==, PTO_SOLO_LOOK);
      if (thread != NULL)
        g_thread_join (thread);
    }
  pto_solo_free (solo);
}

/* What rings while a child starts is no death of it. */
static void
test_ring_at_start (void)
{
  rung = make_solo ();
  begin (rung);
  check_echo (rung, 0, 1);
  pto_solo_free (g_steal_pointer (&rung));
}

/* --- stage --- */

typedef struct
{
  struct pto_stage *stage;
  struct pto_shared_map *map;
  uint8_t *memory; /* private, PAGES of them */
} Stage;

#define PAGES 16u
#define STAGE_GUARD 64u

static void
set_up (Stage *fixture, gconstpointer data)
{
  struct pto_report report = { 0 };

  g_assert_cmpint (pto_arena_acquire (ARENA, &report), ==, PTO_OK);
  fixture->map = pto_shared_map_new (&report);
  fixture->stage = pto_stage_new (STAGE_GUARD);
  /* With holes on both sides, so that nothing melts into it. */
  fixture->memory = mmap (NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  fixture->memory += PAGE;
  mprotect (fixture->memory, PAGES * PAGE, PROT_READ | PROT_WRITE);
  for (guint i = 0; i < PAGES * PAGE; i++)
    fixture->memory[i] = (uint8_t) (i * 7);
}

static void
tear_down (Stage *fixture, gconstpointer data)
{
  pto_stage_free (fixture->stage);
  pto_shared_map_free (fixture->map);
  munmap (fixture->memory - PAGE, (PAGES + 2) * PAGE);
  pto_arena_release ();
}

static uint8_t *
place (Stage *fixture, guint offset, guint bytes, bool written)
{
  struct pto_report report = { 0 };
  uint64_t address = (uint64_t) (uintptr_t) fixture->memory + offset;
  uint64_t placed = pto_stage_place (fixture->stage, address, bytes, written, &report);
  uint64_t arena, size;

  g_assert_cmpstr (report.message, ==, "");
  pto_arena_range (&arena, &size);
  g_assert_cmpuint (placed - arena, <, size);
  return (uint8_t *) (uintptr_t) placed;
}

static enum pto_status
end (Stage *fixture)
{
  struct pto_report report = { 0 };

  return pto_stage_end (fixture->stage, NULL, &report);
}

/* Whatever is mentioned in whatever order, every byte has one place; what is written, and only
 * that, comes back. */
static void
test_stage_random (Stage *fixture, gconstpointer data)
{
  for (guint run = 0; run < 50; run++)
    {
      g_autofree uint8_t *expected = g_memdup2 (fixture->memory, PAGES * PAGE);
      gssize distance = 0;

      pto_stage_begin (fixture->stage, fixture->map);
      for (guint i = 0; i < 20; i++)
        {
          guint offset = (guint) g_test_rand_int_range (0, PAGES * PAGE - 1);
          guint bytes = (guint) g_test_rand_int_range (1, (gint32) (PAGES * PAGE - offset) + 1);
          bool written = g_test_rand_int_range (0, 2) == 0;
          uint8_t *placed = place (fixture, offset, bytes, written);

          if (i == 0)
            distance = placed - (fixture->memory + offset);
          g_assert_cmpint (placed - (fixture->memory + offset), ==, distance);
          g_assert_cmpmem (placed, bytes, expected + offset, bytes);
          if (written)
            {
              guint8 value = (guint8) g_test_rand_int_range (0, 256);

              memset (placed, value, bytes);
              memset (expected + offset, value, bytes);
            }
        }
      g_assert_cmpint (end (fixture), ==, PTO_OK);
      g_assert_cmpmem (fixture->memory, PAGES * PAGE, expected, PAGES * PAGE);
    }
}

/* Memory that was placed to be read goes back if it has changed there, and only then: the program
 * may have written to its own meanwhile. */
static void
test_stage_only_read (Stage *fixture, gconstpointer data)
{
  uint8_t *memory = fixture->memory;

  for (guint changed = 0; changed < 2; changed++)
    for (guint bytes = 1; bytes < 3 * PAGE; bytes += 97)
      {
        uint8_t *placed;

        memset (memory, 7, PAGES * PAGE);
        pto_stage_begin (fixture->stage, fixture->map);
        placed = place (fixture, 10, bytes, false);
        place (fixture, 10 + bytes / 2, bytes, false);
        memory[10] = 8;
        if (changed == 1)
          placed[bytes - 1] = 9;
        g_assert_cmpint (end (fixture), ==, PTO_OK);
        g_assert_cmpuint (memory[10 + bytes - 1], ==, changed == 1 ? 9 : bytes == 1 ? 8 : 7);
        g_assert_cmpuint (memory[10 + bytes], ==, 7);
        if (changed == 0)
          g_assert_cmpuint (memory[10], ==, 8);
      }
}

/* A byte changed behind what was placed is found, as far as nothing else of the run lies there;
 * what the program has there stays as it is. */
static void
test_stage_guards (Stage *fixture, gconstpointer data)
{
  enum
  {
    FREE,
    READ,
    WRITTEN
  };
  guint found = 0;

  for (guint run = 0; run < 300; run++)
    {
      g_autofree uint8_t *before = g_memdup2 (fixture->memory, PAGES * PAGE);
      uint8_t is[2048] = { FREE };
      struct pto_report report = { 0 };
      struct pto_overrun overrun = { 0 };
      gssize distance = 0;
      guint last = 0, room = 0, hit;

      pto_stage_begin (fixture->stage, fixture->map);
      for (guint i = 0; i < 12; i++)
        {
          guint offset = (guint) g_test_rand_int_range (0, 1800);
          guint bytes = (guint) g_test_rand_int_range (1, 100);
          bool written = g_test_rand_int_range (0, 3) > 0;

          distance = place (fixture, offset, bytes, written) - (fixture->memory + offset);
          for (guint b = offset; b < offset + bytes; b++)
            is[b] = (uint8_t) MAX (is[b], written ? WRITTEN : READ);
        }
      /* One end of what was placed. */
      for (guint b = 0; b + 1 < sizeof is; b++)
        if (is[b] != FREE && is[b + 1] == FREE && (last == 0 || g_test_rand_int_range (0, 2) == 0))
          last = b;
      while (last > 0 && room < STAGE_GUARD && is[last + 1 + room] == FREE)
        room++;
      hit = room > 0 && run % 3 > 0 ? (guint) g_test_rand_int_range (1, (gint32) room + 1) : 0;
      if (hit > 0)
        fixture->memory[distance + (gssize) (last + hit)] ^= 0x20;
      g_assert_cmpint (pto_stage_end (fixture->stage, &overrun, &report), ==,
                       hit > 0 ? PTO_STATUS_OUT_OF_BOUNDS : PTO_OK);
      g_assert_cmpuint (overrun.bytes, ==, hit);
      g_assert_cmpuint (overrun.end, ==,
                        hit > 0 ? (uint64_t) (uintptr_t) (fixture->memory + last + 1) : 0);
      if (hit > 0)
        {
          g_autofree char *says
              = g_strdup_printf ("wrote at least %u byte%s past the ", hit, hit == 1 ? "" : "s");

          g_assert_nonnull (strstr (report.message, says));
          found++;
        }
      g_assert_cmpmem (fixture->memory, PAGES * PAGE, before, PAGES * PAGE);
    }
  g_assert_cmpuint (found, >, 100);
}

/* How much was written past what. */
static void
test_stage_names (Stage *fixture, gconstpointer data)
{
  g_autofree char *says = g_strdup_printf ("wrote at least 3 bytes past the 100 bytes at %p that",
                                           fixture->memory + 50);
  struct pto_report report = { 0 };

  pto_stage_begin (fixture->stage, fixture->map);
  place (fixture, 50, 100, true)[102] ^= 1;
  g_assert_cmpint (pto_stage_end (fixture->stage, NULL, &report), ==, PTO_STATUS_OUT_OF_BOUNDS);
  g_assert_nonnull (strstr (report.message, says));
}

/* What the child sees as well is handed over as it is, until it has become something else between
 * two runs. */
static void
test_stage_looks_again (Stage *fixture, gconstpointer data)
{
  struct pto_report report = { 0 };
  uint8_t *shared = mmap (NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct pto_shared_map *map;
  uint64_t address = (uint64_t) (uintptr_t) shared + PAGE;

  g_assert_true (mmap (shared + PAGE, PAGE, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
                 == shared + PAGE);
  map = pto_shared_map_new (&report);
  for (guint run = 0; run < 3; run++)
    {
      uint8_t *placed;

      pto_stage_begin (fixture->stage, map);
      placed = (uint8_t *) (uintptr_t) pto_stage_place (fixture->stage, address, 8, true, &report);
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpint (placed == shared + PAGE, ==, run < 2);
      placed[0] = (uint8_t) (run + 1);
      g_assert_cmpint (end (fixture), ==, PTO_OK);
      g_assert_cmpuint (shared[PAGE], ==, run + 1);
      if (run == 1)
        g_assert_true (mmap (shared + PAGE, PAGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
                       == shared + PAGE);
    }
  pto_shared_map_free (map);
  munmap (shared, 3 * PAGE);
}

/* What was only read is left alone, whatever became of the copy. */
static void
test_stage_inputs (Stage *fixture, gconstpointer data)
{
  uint8_t *placed;

  mprotect (fixture->memory, PAGES * PAGE, PROT_READ);
  pto_stage_begin (fixture->stage, fixture->map);
  place (fixture, 100, 1000, false);
  g_assert_cmpint (end (fixture), ==, PTO_OK);
  /* Written, but as it was. */
  pto_stage_begin (fixture->stage, fixture->map);
  place (fixture, 100, 1000, true);
  g_assert_cmpint (end (fixture), ==, PTO_OK);
  /* A change that cannot be made. */
  for (guint written = 0; written < 2; written++)
    {
      pto_stage_begin (fixture->stage, fixture->map);
      placed = place (fixture, 100, 1000, written == 1);
      placed[5] ^= 1;
      g_assert_cmpint (end (fixture), ==, PTO_STATUS_INVALID_ARGS);
    }
}

/* A mapping that has grown: what lies across its former end goes to a place of its own, unless a
 * part of it has one already. Memory that nobody can read stays where it is. */
static void
test_stage_growth (Stage *fixture, gconstpointer data)
{
  struct pto_report report = { 0 };
  uint64_t address = (uint64_t) (uintptr_t) fixture->memory;
  uint8_t *placed;

  mprotect (fixture->memory + 8 * PAGE, 8 * PAGE, PROT_NONE);
  pto_stage_begin (fixture->stage, fixture->map);
  g_assert_cmpuint (pto_stage_place (fixture->stage, address + 8 * PAGE, 10, true, &report), ==,
                    address + 8 * PAGE);
  place (fixture, 10, 100, true);
  mprotect (fixture->memory + 8 * PAGE, 8 * PAGE, PROT_READ | PROT_WRITE);
  placed = place (fixture, 7 * PAGE, 2 * PAGE, true);
  memset (placed, 0x77, 2 * PAGE);
  g_assert_cmpuint (pto_stage_place (fixture->stage, address, 8 * PAGE, false, &report), ==, 0);
  g_assert_nonnull (strstr (report.message, "mapped anew"));
  g_assert_cmpint (end (fixture), ==, PTO_OK);
  for (guint i = 0; i < 2 * PAGE; i++)
    g_assert_cmpuint (fixture->memory[7 * PAGE + i], ==, 0x77);
  g_assert_cmpuint (fixture->memory[7 * PAGE - 1], !=, 0x77);
}

/* Memory of the arena, and what was shared before the fork, is itself. */
static void
test_stage_shared (Stage *fixture, gconstpointer data)
{
  struct pto_report report = { 0 };
  uint64_t piece = pto_arena_alloc (100);

  pto_stage_begin (fixture->stage, fixture->map);
  g_assert_cmpuint (pto_stage_place (fixture->stage, piece, 100, true, &report), ==, piece);
  g_assert_cmpuint (pto_stage_place (fixture->stage, piece + 20, 10, true, &report), ==,
                    piece + 20);
  g_assert_cmpint (end (fixture), ==, PTO_OK);
  pto_arena_free (piece, 100);
}

/* --- stream --- */

#define COMMANDS 20000

typedef struct
{
  struct PTO2Runtime runtime;
  struct pto_stream *stream;
  guint n; /* calls */
  guint n_urgent;
  guint n_failed; /* of fail() */
  guint depth;
  guint rings; /* atomic */
} Replay;

static PTO2Buffer *
replay_new_buffer (PTO2Runtime *rt, uint64_t bytes, uint32_t *generation)
{
  Replay *self = (Replay *) rt;

  *generation = 1000 + (uint32_t) bytes;
  self->n++;
  return (PTO2Buffer *) (uintptr_t) (64 * bytes);
}

static PTO2TaskId
replay_submit (PTO2Runtime *rt, int32_t kernel, int32_t type, PTOParam *params, int32_t n)
{
  Replay *self = (Replay *) rt;
  guint i = self->n++;
  gboolean has_place = i % 20 < 10;

  g_assert_cmpstr (rt->file, ==, has_place ? "there.c" : NULL);
  g_assert_cmpint (rt->line, ==, has_place ? (int) (i / 10 * 10 + 1) : 0);
  g_assert_cmpint (kernel, ==, (int) i);
  g_assert_cmpint (type, ==, (int) (i % 2));
  g_assert_cmpint (n, ==, i % 7 == 3 ? 1000 : (int) (i % 5));
  for (int32_t p = 0; p < n && n < 1000; p++)
    if (p % 2 == 0)
      {
        g_assert_cmpint (params[p].type, ==, PTO_PARAM_SCALAR);
        g_assert_cmpuint (params[p].scalar, ==, i * 10 + (guint) p);
      }
    else
      {
        const Tensor *tensor = &params[p].tensor;

        g_assert_cmpint (params[p].type, ==,
                         p == 3 && i % 3 == 0 ? PTO_PARAM_REDUCTION : PTO_PARAM_INOUT);
        if (params[p].type == PTO_PARAM_REDUCTION)
          {
            g_assert_cmpint (params[p].combine, ==, -3 - (int) i);
            g_assert_cmphex (params[p].scalar, ==, UINT64_C (0x8000000000000007) * i);
          }
        g_assert_cmpuint (tensor->buffer.addr, ==, 4096 + i);
        g_assert_cmpuint (tensor->buffer.size, ==, 6 * 4);
        g_assert_cmpuint (tensor->ndims, ==, 2);
        g_assert_cmpuint (tensor->shapes[1], ==, 3);
        g_assert_cmpuint (tensor->strides[0], ==, 3);
        g_assert_null (tensor->storage);
      }
  return i;
}

/* Of a priority that is not 0. */
static PTO2TaskId
replay_urgent (PTO2Runtime *rt, const PTO2Submit *submit)
{
  g_assert_cmpint (submit->priority, ==, submit->kernel_id % 4);
  ((Replay *) rt)->n_urgent++;
  return replay_submit (rt, submit->kernel_id, submit->worker_type, submit->params,
                        submit->n_params);
}

static void
replay_scope_begin (PTO2Runtime *rt, const char *file, int32_t line)
{
  Replay *self = (Replay *) rt;

  g_assert_cmpstr (file, ==, line == 7 ? "here.c" : NULL);
  self->depth++;
}

static void
replay_manual_scope_begin (PTO2Runtime *rt, const char *file, int32_t line)
{
  g_assert_cmpstr (file, ==, "by-hand.c");
  g_assert_cmpint (line, ==, 9);
  ((Replay *) rt)->depth++;
}

static void
replay_scope_end (PTO2Runtime *rt)
{
  ((Replay *) rt)->depth--;
}

static void
replay_nothing (PTO2Runtime *rt)
{
}

static const PTO2RuntimeOps replay_ops = { .size = sizeof (PTO2RuntimeOps),
                                           .submit_task = replay_submit,
                                           .submit = replay_urgent,
                                           .scope_begin = replay_scope_begin,
                                           .manual_scope_begin = replay_manual_scope_begin,
                                           .scope_end = replay_scope_end,
                                           .orchestration_done = replay_nothing,
                                           .init_tensor_pool = replay_nothing,
                                           .new_buffer = replay_new_buffer };

static bool
has_failed (PTO2Runtime *rt)
{
  return ((Replay *) rt)->n_failed > 0;
}

static const char *
get_failure (PTO2Runtime *rt)
{
  return "task 7: no\033 more";
}

static void
fail (PTO2Runtime *rt, enum pto_status status, const char *message)
{
  g_assert_cmpint (status, ==, PTO_STATUS_EXPLICIT);
  g_assert_cmpstr (message, ==, "enough");
  ((Replay *) rt)->n_failed++;
}

static const char *
keep (const char *text)
{
  return g_intern_string (text);
}

static void
count_ring (void *data)
{
  g_atomic_int_inc (&((Replay *) data)->rings);
}

static gpointer
replay (gpointer data)
{
  Replay *self = data;
  struct pto_stream_target target = { .rt = &self->runtime,
                                      .has_failed = has_failed,
                                      .get_failure = get_failure,
                                      .fail = fail,
                                      .keep = keep,
                                      .ring = count_ring,
                                      .data = self };

  return GINT_TO_POINTER (pto_stream_replay (self->stream, &target));
}

/* What is written comes out, in order and whole, though the ring is full most of the time. */
static void
test_stream (void)
{
  gint64 end_time = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;
  Replay self = { .runtime.ops = &replay_ops };
  struct pto_stream_writer writer;
  uint64_t shape[2] = { 2, 3 };
  char why[PTO_STREAM_TEXT] = "x";
  PTOParam params[5];
  GThread *thread;

  self.stream
      = mmap (NULL, pto_stream_size (), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pto_stream_begin (&writer, self.stream);
  g_assert_false (pto_stream_has_begun (&writer));
  thread = g_thread_new ("replay", replay, &self);
  pto_stream_put (&writer, PTO_COMMAND_SCOPE_BEGIN, &(struct pto_said){ .a = 7, .text = "here.c" });
  pto_stream_put (&writer, PTO_COMMAND_SCOPE_BEGIN, &(struct pto_said){ .a = 0, .text = NULL });
  pto_stream_put (&writer, PTO_COMMAND_MANUAL_SCOPE_BEGIN,
                  &(struct pto_said){ .a = 9, .text = "by-hand.c" });
  for (int i = 0; i < COMMANDS; i++)
    {
      for (int p = 0; p < 5; p++)
        if (p % 2 == 0)
          params[p] = make_scalar_param ((uint64_t) (i * 10 + p));
        else
          params[p] = make_inout_param (
              make_tensor_external ((void *) (uintptr_t) (4096 + i), shape, 2, PTO_DTYPE_FLOAT32));
      if (i % 3 == 0)
        {
          params[3].type = PTO_PARAM_REDUCTION;
          params[3].combine = -3 - i;
          params[3].scalar = UINT64_C (0x8000000000000007) * (uint64_t) i;
        }
      while (!pto_stream_has_room (&writer, true))
        {
          g_assert_true (pto_stream_is_sound (&writer));
          g_assert_cmpint (g_get_monotonic_time (), <, end_time);
          g_usleep (10);
        }
      if (i % 10 == 0)
        {
          pto_stream_put (&writer, PTO_COMMAND_PLACE,
                          &(struct pto_said){ .a = i % 20 == 0 ? i + 1 : 0,
                                              .text = i % 20 == 0 ? "there.c" : NULL });
          while (!pto_stream_has_room (&writer, true))
            g_usleep (10);
        }
      if (i % 4 == 0)
        pto_stream_put (&writer, PTO_COMMAND_SUBMIT,
                        &(struct pto_said){ .submit = pto2_make_submit (
                                                i, i % 2, params, i % 7 == 3 ? 1000 : i % 5) });
      else
        pto_stream_put (
            &writer, PTO_COMMAND_SUBMIT_MORE,
            &(struct pto_said){ .submit = (PTO2Submit){ .size = sizeof (PTO2Submit),
                                                        .kernel_id = i,
                                                        .worker_type = i % 2,
                                                        .params = params,
                                                        .n_params = i % 7 == 3 ? 1000 : i % 5,
                                                        .priority = i % 4 } });
    }
  pto_stream_put (&writer, PTO_COMMAND_SCOPE_END, &(struct pto_said){ .a = 0 });
  pto_stream_put (&writer, PTO_COMMAND_SCOPE_END, &(struct pto_said){ .a = 0 });
  pto_stream_put (&writer, PTO_COMMAND_SCOPE_END, &(struct pto_said){ .a = 0 });
  while (!pto_stream_is_read (&writer, true))
    g_usleep (10);
  g_assert_true (pto_stream_has_begun (&writer));
  g_assert_false (pto_stream_has_failed (&writer));
  pto_stream_get_failure (&writer, why);
  g_assert_cmpstr (why, ==, "");
  pto_stream_put (&writer, PTO_COMMAND_FAIL,
                  &(struct pto_said){ .a = PTO_STATUS_EXPLICIT, .text = "enough" });
  while (!pto_stream_is_read (&writer, true))
    g_usleep (10);
  g_assert_true (pto_stream_has_failed (&writer));
  pto_stream_get_failure (&writer, why);
  g_assert_cmpstr (why, ==, "task 7: no? more");
  pto_stream_put (&writer, PTO_COMMAND_END, &(struct pto_said){ .a = 42 });
  g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (thread)), ==, 42);
  g_assert_cmpuint (self.n, ==, COMMANDS);
  g_assert_cmpuint (self.n_urgent, ==, COMMANDS - (COMMANDS + 3) / 4);
  g_assert_cmpuint (self.n_failed, ==, 1);
  g_assert_cmpuint (self.depth, ==, 0);
  munmap (self.stream, pto_stream_size ());
}

static PTO2TaskId
check_buffer (PTO2Runtime *rt, int32_t kernel, int32_t type, PTOParam *params, int32_t n)
{
  Replay *self = (Replay *) rt;

  g_assert_cmpint (n, ==, 1);
  g_assert_true (params[0].tensor.storage == (PTO2Buffer *) (uintptr_t) (64 * 5));
  /* 0: of the buffer; 1: of one that its number stood for before. */
  g_assert_cmpint (params[0].tensor.generation == 1005, ==, kernel == 0);
  self->depth++;
  return PTO2_TASK_NONE;
}

/* A number that stands for another buffer by now does not give that. */
static void
test_stream_buffers (void)
{
  PTO2RuntimeOps ops = replay_ops;
  Replay self = { .runtime.ops = &ops };
  struct pto_stream_writer writer;
  uint64_t shape[1] = { 5 };
  PTOParam param = make_inout_param (make_tensor_external (NULL, shape, 1, PTO_DTYPE_INT8));
  GThread *thread;

  ops.submit_task = check_buffer;
  self.stream
      = mmap (NULL, pto_stream_size (), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pto_stream_begin (&writer, self.stream);
  thread = g_thread_new ("replay", replay, &self);
  pto_stream_put (&writer, PTO_COMMAND_BUFFER, &(struct pto_said){ .a = 99, .b = 1, .value = 4 });
  pto_stream_put (&writer, PTO_COMMAND_BUFFER, &(struct pto_said){ .a = 99, .b = 2, .value = 5 });
  param.tensor.storage = (PTO2Buffer *) (uintptr_t) 100;
  param.tensor.generation = 2;
  pto_stream_put (&writer, PTO_COMMAND_SUBMIT,
                  &(struct pto_said){ .submit = pto2_make_submit (0, 0, &param, 1) });
  param.tensor.generation = 1;
  pto_stream_put (&writer, PTO_COMMAND_SUBMIT,
                  &(struct pto_said){ .submit = pto2_make_submit (1, 0, &param, 1) });
  pto_stream_put (&writer, PTO_COMMAND_END, &(struct pto_said){ .a = 0 });
  g_thread_join (thread);
  g_assert_cmpuint (self.depth, ==, 2);
  munmap (self.stream, pto_stream_size ());
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/solo/life", test_solo);
  g_test_add_func ("/pto/solo/caught", test_caught);
  g_test_add_func ("/pto/solo/ring", test_ring);
  g_test_add_func ("/pto/solo/ring-at-start", test_ring_at_start);
#define ADD(path, function) \
  g_test_add ("/pto/stage/" path, Stage, NULL, set_up, function, tear_down)
  ADD ("random", test_stage_random);
  ADD ("only-read", test_stage_only_read);
  ADD ("guards", test_stage_guards);
  ADD ("names", test_stage_names);
  ADD ("inputs", test_stage_inputs);
  ADD ("looks-again", test_stage_looks_again);
  ADD ("growth", test_stage_growth);
  ADD ("shared", test_stage_shared);
#undef ADD
  g_test_add_func ("/pto/stream/order", test_stream);
  g_test_add_func ("/pto/stream/buffers", test_stream_buffers);
  return g_test_run ();
}
