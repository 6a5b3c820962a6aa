/* kernel-sync.c: how do kernels wait for each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pipes are under the lock of their cluster, which nobody keeps while he waits. A core that waits
 * says for what (core->waits) and has read its word before it lets go of the lock; whoever changes
 * the pipe adds to that word afterwards, so the park returns at once if that came in between. At
 * the barrier the last one stores the round (release) before it adds to the others' words; they
 * read the word before they read the round (acquire). What a core waits for changes under the lock,
 * so who has that may read of the task of one that waits.
 */
#include "kernel-sync.h"

#include "pto/exec/exec-private.h"
#include "pto/exec/guarded-call.h"
#include "pto/exec/pto-atomic.h"
#include "pto/exec/translate.h"
#include "builtin-kernels.h"
#include "check.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_NS 100u
#define NAMED_MAX 8u
#define LEFT_SIZE 400u
/* Of a block: a cluster has no more than 16 cores of a type. */
#define MEMBERS_MAX 32u

struct entry
{
  void *data;
  uint64_t bytes;
  uint64_t capacity;
  /* Where accesses are checked: of who pushed it, and of who popped what was there before. */
  struct pto_check_point pushed;
  struct pto_check_point popped;
};

/* Of the last push, or pop. Texts that stay for the run. */
struct user
{
  pto_task_id task;
  uint32_t block;
  uint32_t n_blocks;
  const char *kernel;
  const char *core;
};

struct pipe
{
  uint32_t first;
  uint32_t n;
  struct user pusher; /* kernel NULL: nobody yet */
  struct user popper;
  struct entry *entries; /* depth; NULL until the first push */
};

struct pto_pipes
{
  struct pto_pipes *next;
  pto_task_id task;
  uint32_t block;
  /* Of its members: how many have ended, and, a bit each, which have begun and ended. */
  uint32_t n_ended;
  uint32_t begun;
  uint32_t ended;
  const char *cores[MEMBERS_MAX]; /* of those that have begun */
  struct pipe pipes[PTO2_PIPES];
};

struct cluster
{
  alignas (64) _Atomic uint32_t lock;
  struct pto_pipes *busy; /* of blocks that run */
  struct pto_pipes *idle;
  struct pto_pipes own;
};

struct pto_interconnect
{
  uint32_t n_clusters;
  uint32_t depth;
  struct cluster *clusters;
  /* Has a member of a party been given pipes since the last reset? W: cores, relaxed: the end of
   * the run orders it. */
  _Atomic uint32_t used;
};

/* --- making and ending --- */

struct pto_interconnect *
pto_interconnect_new (uint32_t n_clusters, uint32_t depth)
{
  struct pto_interconnect *interconnect = calloc (1, sizeof *interconnect);
  void *clusters = NULL;

  if (interconnect == NULL
      || posix_memalign (&clusters, 64, n_clusters * sizeof (struct cluster)) != 0)
    {
      free (interconnect);
      return NULL;
    }
  memset (clusters, 0, n_clusters * sizeof (struct cluster));
  *interconnect = (struct pto_interconnect){ n_clusters, depth, clusters, 0 };
  return interconnect;
}

static void
free_pipes (const struct pto_interconnect *interconnect, struct pto_pipes *pipes)
{
  for (uint32_t p = 0; p < PTO2_PIPES; p++)
    if (pipes->pipes[p].entries != NULL)
      {
        for (uint32_t e = 0; e < interconnect->depth; e++)
          free (pipes->pipes[p].entries[e].data);
        free (pipes->pipes[p].entries);
      }
}

void
pto_interconnect_free (struct pto_interconnect *interconnect)
{
  if (interconnect == NULL)
    return;
  pto_interconnect_reset (interconnect);
  for (uint32_t c = 0; c < interconnect->n_clusters; c++)
    {
      struct pto_pipes *next;

      for (struct pto_pipes *pipes = interconnect->clusters[c].idle; pipes != NULL; pipes = next)
        {
          next = pipes->next;
          free_pipes (interconnect, pipes);
          free (pipes);
        }
      free_pipes (interconnect, &interconnect->clusters[c].own);
    }
  free (interconnect->clusters);
  free (interconnect);
}

static void
empty (struct pto_pipes *pipes)
{
  for (uint32_t p = 0; p < PTO2_PIPES; p++)
    {
      pipes->pipes[p].n = 0;
      pipes->pipes[p].pusher.kernel = pipes->pipes[p].popper.kernel = NULL;
    }
}

void
pto_interconnect_reset (struct pto_interconnect *interconnect)
{
  if (atomic_load_explicit (&interconnect->used, memory_order_relaxed) == 0)
    return;
  atomic_store_explicit (&interconnect->used, 0, memory_order_relaxed);
  for (uint32_t c = 0; c < interconnect->n_clusters; c++)
    {
      struct cluster *cluster = &interconnect->clusters[c];

      while (cluster->busy != NULL)
        {
          struct pto_pipes *pipes = cluster->busy;

          cluster->busy = pipes->next;
          pipes->next = cluster->idle;
          cluster->idle = pipes;
        }
      empty (&cluster->own);
    }
}

/* --- the pipes of a block --- */

static void
lock (struct pto_core *core)
{
  _Atomic uint32_t *word = &core->chip->interconnect->clusters[core->cluster].lock;

  /* Acquire: pairs with the release in unlock(). Nobody waits for anything while he has it, so it
   * is another thread that does. */
  while (pto_exchange_acquire (word, 1) != 0)
    sched_yield ();
}

static void
unlock (struct pto_core *core)
{
  pto_store_release (&core->chip->interconnect->clusters[core->cluster].lock, 0);
}

/* What nobody has popped, though nobody is left who could; NULL: nothing. */
static const struct pipe *
find_left (const struct pto_pipes *pipes)
{
  for (uint32_t p = 0; p < PTO2_PIPES; p++)
    if (pipes->pipes[p].n > 0)
      return &pipes->pipes[p];
  return NULL;
}

/* "task 3 of ring 0 (QK), block 1 of 4, on core AIC0" */
static void
describe_user (const struct user *user, char *text, size_t size)
{
  char block[48] = "";

  if (user->n_blocks > 1)
    snprintf (block, sizeof block, _ (", block %u of %u,"), user->block, user->n_blocks);
  snprintf (text, size, _ ("task %u of ring %u (%s)%s on core %s"), PTO_TASK_LOCAL (user->task),
            PTO_TASK_RING (user->task), user->kernel, block, user->core);
}

/* "task 3 of ring 0 (QK) on core AIC0: 2 entries ..." */
static __attribute__ ((cold)) void
describe_left (const struct pto_pipes *pipes, const struct pipe *pipe, const char *when, char *text,
               size_t size)
{
  char by[200];

  describe_user (&pipe->pusher, by, sizeof by);
  snprintf (
      text, size,
      P_ ("%s: %u entry is left in pipe %u, to which it has pushed last, when %s: pop (TPOP()) as many "
          "as are pushed",
          "%s: %u entries are left in pipe %u, to which it has pushed last, when %s: pop (TPOP()) as many "
          "as are pushed",
          pipe->n),
      by, pipe->n, (uint32_t) (pipe - pipes->pipes), when);
}

/* false: nothing is left. */
static bool
describe_left_in_cluster (const struct pto_interconnect *interconnect, uint32_t cluster, char *text,
                          size_t size)
{
  const struct pto_pipes *own = &interconnect->clusters[cluster].own;
  const struct pipe *left = find_left (own);
  char when[64];

  if (left == NULL)
    return false;
  snprintf (when, sizeof when, _ ("cluster %u is given back"), cluster);
  describe_left (own, left, when, text, size);
  return true;
}

bool
pto_interconnect_clear (struct pto_interconnect *interconnect, struct pto_engine *engine,
                        uint32_t cluster)
{
  /* Those who used them are over: whoever allocates has acquired that. */
  char left[LEFT_SIZE];

  if (!describe_left_in_cluster (interconnect, cluster, left, sizeof left))
    return true;
  pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS, "%s", left);
  return false;
}

enum pto_status
pto_interconnect_check (const struct pto_interconnect *interconnect, struct pto_report *report)
{
  char left[LEFT_SIZE];

  if (atomic_load_explicit (&interconnect->used, memory_order_relaxed) == 0)
    return PTO_OK;
  for (uint32_t c = 0; c < interconnect->n_clusters; c++)
    if (describe_left_in_cluster (interconnect, c, left, sizeof left))
      return pto_report_set (report, PTO_STATUS_INVALID_ARGS, "%s", left);
  return PTO_OK;
}

/* NULL: no memory. */
static struct pto_pipes *
find_pipes (struct cluster *cluster, pto_task_id task, uint32_t block)
{
  struct pto_pipes *pipes = cluster->busy;

  while (pipes != NULL && (pipes->task != task || pipes->block != block))
    pipes = pipes->next;
  if (pipes != NULL)
    return pipes;
  pipes = cluster->idle;
  if (pipes != NULL)
    cluster->idle = pipes->next;
  else
    pipes = calloc (1, sizeof *pipes);
  if (pipes == NULL)
    return NULL;
  pipes->task = task;
  pipes->block = block;
  pipes->n_ended = pipes->begun = pipes->ended = 0;
  empty (pipes);
  pipes->next = cluster->busy;
  cluster->busy = pipes;
  return pipes;
}

static uint32_t
member_of_block (const struct pto_core *core)
{
  return core->endpoint.member % core->party->block;
}

static uint32_t
member_bit (const struct pto_core *core)
{
  return 1u << member_of_block (core);
}

void
pto_interconnect_enter (struct pto_core *core)
{
  struct pto_interconnect *interconnect = core->chip->interconnect;
  struct cluster *cluster = &interconnect->clusters[core->cluster];
  const struct pto_party *party = core->party;

  core->pipes = NULL;
  if (party->cohort == PTO_COHORT_NONE && party->block <= 1)
    return;
  if (atomic_load_explicit (&interconnect->used, memory_order_relaxed) == 0)
    atomic_store_explicit (&interconnect->used, 1, memory_order_relaxed);
  if (party->cohort != PTO_COHORT_NONE)
    core->pipes = &cluster->own;
  else
    {
      lock (core);
      core->pipes = find_pipes (cluster, core->payload.task_id,
                                pto_endpoint_block (&core->endpoint, party));
      if (core->pipes != NULL)
        {
          core->pipes->begun |= member_bit (core);
          core->pipes->cores[member_of_block (core)] = core->name;
        }
      unlock (core);
      if (core->pipes == NULL)
        pto_engine_fail (core->engine, PTO_STATUS_NO_MEMORY,
                         _ ("no memory for the pipes of a block"));
    }
}

bool
pto_interconnect_leave (struct pto_core *core)
{
  struct cluster *cluster = &core->chip->interconnect->clusters[core->cluster];
  struct pto_pipes *pipes = core->pipes;
  const struct pipe *pipe = NULL;
  char left[LEFT_SIZE];

  core->pipes = NULL;
  if (pipes == NULL || pipes == &cluster->own)
    return true;
  lock (core);
  pipes->ended |= member_bit (core);
  if (++pipes->n_ended == core->party->block)
    {
      struct pto_pipes **at = &cluster->busy;

      pipe = find_left (pipes);
      if (pipe != NULL)
        describe_left (pipes, pipe, _ ("all kernels of the block have ended"), left, sizeof left);
      while (*at != pipes)
        at = &(*at)->next;
      *at = pipes->next;
      pipes->next = cluster->idle;
      cluster->idle = pipes;
    }
  unlock (core);
  if (pipe != NULL)
    pto_engine_fail (core->engine, PTO_STATUS_INVALID_ARGS, "%s", left);
  return pipe == NULL;
}

/* --- waiting --- */

void
pto_interconnect_wake (struct pto_core *core)
{
  if (pto_load_relaxed (&core->waits) == PTO_WAIT_NOTHING)
    return;
  pto_fetch_add_acq_rel (&core->wake.value, 1);
  pto_unpark (core->engine->exec, &core->wake);
}

/* Under the lock, after a change: those of the cluster who wait for that. */
static void
wake_waiting (struct pto_core *core, uint32_t waits)
{
  uint32_t n = core->chip->platform->aic_per_cluster + core->chip->platform->aiv_per_cluster;
  struct pto_core *first = &core->chip->cores[core->cluster * n];

  for (struct pto_core *other = first; other < first + n; other++)
    if (other != core && pto_load_relaxed (&other->waits) == waits)
      pto_interconnect_wake (other);
}

/* The kernel is not wanted any more: its frames are dropped. */
static _Noreturn void
give_up (struct pto_guard *guard, const char *what)
{
  pto_guard_resume (guard);
  pto_guard_leave (what);
  __builtin_unreachable ();
}

static const char *const wait_names[] = { "pto_relax()", "TPOP()", "TPUSH()", "pto_sync_all()" };

/* With the lock, which it has again when it comes back: what is waited for may be there then. seen:
 * core->wake, read before that was looked at. */
static void
park (struct pto_core *core, struct pto_guard *guard, uint32_t waits, uint32_t seen)
{
  uint64_t since = core->timed ? pto_engine_stamp_own (core->engine) : 0;

  pto_store_relaxed (&core->waits, waits);
  unlock (core);
  if (!pto_engine_has_failed (core->engine))
    pto_park (core->engine->exec, &core->wake, seen, PTO_NEVER);
  if (core->timed)
    {
      core->waited += pto_engine_stamp_own (core->engine) - since;
      if (core->check != NULL)
        pto_check_resume (core->context);
    }
  lock (core);
  pto_store_relaxed (&core->waits, PTO_WAIT_NOTHING);
  if (!pto_engine_has_failed (core->engine))
    return;
  unlock (core);
  give_up (guard, wait_names[waits & 0xff]);
}

/* "task 3 of ring 0 (QK) on core AIC0 in TPUSH() to pipe 2, which is full (8 of 8 entries)" */
static void
describe (struct pto_core *core, uint32_t waits, char *text, size_t size)
{
  uint32_t depth = core->chip->interconnect->depth;
  uint32_t kind = waits & 0xff;
  char task[400];

  pto_core_describe_task (core, task, sizeof task);
  if (kind == PTO_WAIT_SYNC)
    snprintf (text, size, _ ("%s in pto_sync_all(), where %u of %u have come"), task,
              pto_load_relaxed (&core->party->met), core->party->n_members);
  else
    snprintf (text, size,
              kind == PTO_WAIT_POP ? _ ("%s in %s from pipe %u, which is empty (%u of %u entries)")
                                   : _ ("%s in %s to pipe %u, which is full (%u of %u entries)"),
              task, wait_names[kind], waits >> 8, kind == PTO_WAIT_POP ? 0 : depth, depth);
}

/* Where a core is that waits in pto_sync_all(). */
struct meeting
{
  const struct pto_party *party; /* NULL: it is not there */
  uint32_t member;
};

static void
list_meetings (struct pto_chip *chip, struct meeting *meetings)
{
  for (uint32_t c = 0; c < chip->n_cores; c++)
    {
      struct pto_core *core = &chip->cores[c];

      lock (core);
      if ((pto_load_relaxed (&core->waits) & 0xff) == PTO_WAIT_SYNC)
        meetings[c] = (struct meeting){ core->party, core->endpoint.member };
      unlock (core);
    }
}

/* Under the lock: do others of its block wait, too, a bit each? */
static uint32_t
find_waiting (struct pto_core *core)
{
  uint32_t n = core->chip->platform->aic_per_cluster + core->chip->platform->aiv_per_cluster;
  struct pto_core *first = &core->chip->cores[core->cluster * n];
  uint32_t waiting = 0;

  for (struct pto_core *other = first; other < first + n; other++)
    if (pto_load_relaxed (&other->waits) != PTO_WAIT_NOTHING && other->pipes == core->pipes)
      waiting |= member_bit (other);
  return waiting;
}

/* ". In cluster 3 task 4 of ring 0 (push) on core AIV6 was the last to push to it": blocks have no
 * pipes of their own where a cluster is allocated, so who is on the other side is who has been
 * there. Under the lock. */
static void
describe_other_side (const struct pto_core *core, uint32_t waits, char *text, size_t size)
{
  bool pops = (waits & 0xff) == PTO_WAIT_POP;
  const struct pipe *pipe = &core->pipes->pipes[waits >> 8];
  const struct user *user = pops ? &pipe->pusher : &pipe->popper;
  char who[200];

  if (user->kernel == NULL)
    {
      snprintf (text, size,
                pops ? _ (". In cluster %u nobody has pushed to it")
                     : _ (". In cluster %u nobody has popped from it"),
                core->cluster);
      return;
    }
  describe_user (user, who, sizeof who);
  snprintf (text, size,
            pops ? _ (". In cluster %u %s was the last to push to it")
                 : _ (". In cluster %u %s was the last to pop from it"),
            core->cluster, who);
}

/* ". Of its block (push) has not begun, (other) on core AIV3 runs": the others, but for those that
 * wait. true: somebody may yet end the wait. Under the lock, and the same that those who wait have
 * been described under: whoever begins to wait between the two would be named in neither. */
static bool
describe_rest (struct pto_core *core, char *text, size_t size)
{
  const struct cluster *cluster = &core->chip->interconnect->clusters[core->cluster];
  uint32_t n = 0;
  bool may_end = false;
  uint32_t waiting;
  uint32_t waits;
  int used = 0;

  text[0] = '\0';
  waits = pto_load_relaxed (&core->waits);
  if (waits == PTO_WAIT_NOTHING || core->pipes == NULL || core->pipes == &cluster->own)
    {
      if (waits != PTO_WAIT_NOTHING && core->pipes != NULL)
        describe_other_side (core, waits, text, size);
      return false;
    }
  waiting = find_waiting (core);
  for (uint32_t k = 0; k < core->party->block; k++)
    {
      uint32_t bit = 1u << k;
      uint32_t m = core->endpoint.member / core->party->block * core->party->block + k;
      const struct pto_kernel *kernel
          = pto_program_kernel (core->chip->program, core->party->members[m].need.kernel);

      if ((waiting & bit) != 0)
        continue;
      may_end = may_end || (core->pipes->ended & bit) == 0;
      if ((size_t) used < size)
        used += snprintf (text + used, size - (size_t) used, "%s(%s)%s%s %s",
                          n++ == 0 ? _ (". Of its block ") : ", ", kernel->name,
                          (core->pipes->begun & bit) != 0 ? _ (" on core ") : "",
                          (core->pipes->begun & bit) != 0 ? core->pipes->cores[k] : "",
                          (core->pipes->ended & bit) != 0   ? _ ("has ended")
                          : (core->pipes->begun & bit) != 0 ? _ ("runs")
                                                            : _ ("has not begun"));
    }
  return may_end;
}

/* "task 3 of ring 0 (pop) on core AIV1 in TPOP() ...; and ...": those that wait on the cores first
 * to end - 1, each under the lock, without which nobody who waits goes on to another task. Returns
 * how many they are. */
static uint32_t
describe_waiting (struct pto_chip *chip, uint32_t first, uint32_t end, bool locked, char *text,
                  size_t size)
{
  uint32_t n = 0;

  text[0] = '\0';
  for (uint32_t c = first; c < end && n < NAMED_MAX; c++)
    {
      struct pto_core *core = &chip->cores[c];
      char one[240];
      uint32_t waits;

      if (!locked)
        lock (core);
      waits = pto_load_relaxed (&core->waits);
      if (waits != PTO_WAIT_NOTHING)
        describe (core, waits, one, sizeof one);
      if (!locked)
        unlock (core);
      if (waits == PTO_WAIT_NOTHING)
        continue;
      if (n++ > 0)
        snprintf (text + strlen (text), size - strlen (text), "%s", _ ("; and "));
      snprintf (text + strlen (text), size - strlen (text), "%s", one);
    }
  return n;
}

/* ". Not there: block 1 (QK), block 3 (QK)": who has not come to where this core waits. */
static void
describe_missing (struct pto_core *core, const struct meeting *meetings, char *text, size_t size)
{
  const struct pto_chip *chip = core->chip;
  const struct pto_party *party;
  uint32_t n = 0;
  int used = 0;

  text[0] = '\0';
  lock (core);
  party = (pto_load_relaxed (&core->waits) & 0xff) == PTO_WAIT_SYNC ? core->party : NULL;
  for (uint32_t m = 0; party != NULL && m < party->n_members; m++)
    {
      const struct pto_kernel *kernel
          = pto_program_kernel (chip->program, party->members[m].need.kernel);
      char block[32] = "";
      uint32_t c = 0;

      while (c < chip->n_cores && (meetings[c].party != party || meetings[c].member != m))
        c++;
      if (c < chip->n_cores || n++ >= NAMED_MAX)
        continue;
      if (party->n_members > party->block)
        snprintf (block, sizeof block, _ ("block %u "), m / party->block);
      used += snprintf (text + used, size - (size_t) used, "%s%s(%s)",
                        n == 1 ? _ (". Not there: ") : ", ", block, kernel->name);
      if ((size_t) used >= size)
        used = (int) size - 1;
    }
  unlock (core);
  if (n > NAMED_MAX)
    snprintf (text + used, size - (size_t) used, _ (" and %u others"), n - NAMED_MAX);
}

void
pto_interconnect_describe_others (const struct pto_core *core, char *text, size_t size)
{
  const struct pto_party *party = core->party;
  bool at_once = party != NULL && core->parts != NULL && core->parts->n_blocks <= 1;
  uint32_t n = 0;
  int used;

  /* The call that has ended has an even number now. */
  used = snprintf (text, size, "%s",
                   core->relaxed + 1 == pto_load_relaxed (&core->guard.call)
                       ? _ ("; it waited for another kernel, in a loop with pto_relax()")
                       : _ (", and call pto_relax() in a loop that waits for another kernel"));
  for (uint32_t m = 0; at_once && m < party->n_members; m++)
    {
      const struct pto_party_member *member = &party->members[m];
      const struct pto_core *other = (const struct pto_core *) member->kept->endpoint;
      char block[32] = "";

      if (other == core || n++ >= NAMED_MAX || (size_t) used >= size)
        continue;
      if (party->n_members > party->block)
        snprintf (block, sizeof block, _ ("block %u "), m / party->block);
      used += snprintf (text + used, size - (size_t) used, _ ("%s%s(%s) on core %s"),
                        n == 1 ? _ (". With it began ") : ", ", block,
                        pto_program_kernel (core->chip->program, member->need.kernel)->name,
                        other->name);
    }
  if (n > NAMED_MAX && (size_t) used < size)
    snprintf (text + used, size - (size_t) used, _ (" and %u others"), n - NAMED_MAX);
}

bool
pto_interconnect_report (struct pto_core *core)
{
  struct pto_chip *chip = core->chip;
  uint32_t waits = pto_load_relaxed (&core->waits);
  struct meeting *meetings = NULL;
  char text[NAMED_MAX * 240];
  char missing[NAMED_MAX * 80] = "";
  char rest[NAMED_MAX * 80] = "";
  char verdict[120];
  uint32_t n;

  snprintf (verdict, sizeof verdict, "%s", _ ("nobody will end that"));
  if (waits == PTO_WAIT_NOTHING)
    return false;
  if (pto_engine_has_failed (core->engine))
    return true;
  if ((waits & 0xff) == PTO_WAIT_SYNC)
    {
      n = describe_waiting (chip, 0, chip->n_cores, false, text, sizeof text);
      meetings = calloc (chip->n_cores, sizeof *meetings);
      if (meetings != NULL)
        {
          list_meetings (chip, meetings);
          describe_missing (core, meetings, missing, sizeof missing);
          free (meetings);
        }
    }
  else
    {
      uint32_t size = chip->platform->aic_per_cluster + chip->platform->aiv_per_cluster;

      lock (core);
      n = describe_waiting (chip, core->cluster * size, (core->cluster + 1) * size, true, text,
                            sizeof text);
      if (describe_rest (core, rest, sizeof rest))
        snprintf (verdict, sizeof verdict, _ ("nobody has ended that for %" PRIu64 " ms (timeout)"),
                  core->engine->config.timeout_ns / 1000000);
      unlock (core);
    }
  /* All of them may have gone on meanwhile. */
  if (n > 0)
    pto_engine_fail (core->engine, PTO_STATUS_KERNEL_HANG, "%s: %s%s%s%s", text, verdict,
                     (waits & 0xff) == PTO_WAIT_PUSH ? _ ("; set pipe-depth to more, or pop") : "",
                     missing, rest);
  return true;
}

/* --- what kernels call --- */

/* Whose arguments are these? Of a kernel that is alone only its actor says so; it may ask from a
 * thread of its own, and any core will do for the words of a refusal. */
static struct pto_core *
core_of (const int64_t *args)
{
  const struct pto_services *services = (const struct pto_services *) (uintptr_t) args[-2];
  const struct pto_actor *actor = pto_thread_self ()->current;
  struct pto_chip *chip = services->chip;

  if (services->core != NULL)
    return services->core;
  for (uint32_t c = 0; c < chip->n_cores && actor != NULL; c++)
    if (actor->arg == &chip->cores[c])
      return &chip->cores[c];
  return &chip->cores[0];
}

/* Ends the process if it is a copy that the kernel has made with fork(): its cores are not in it.
 */
static inline void
refuse_copy (const int64_t *args, uint32_t kind)
{
  const struct pto_services *services = (const struct pto_services *) (uintptr_t) args[-2];

  if (__builtin_expect (services->chip->forks != pto_guard_forks, 0))
    pto_guard_end_copy (wait_names[kind]);
}

/* Pauses the guarded call of a kernel that calls the engine. */
static inline struct pto_guard *
come_in (const int64_t *args, uint32_t kind)
{
  refuse_copy (args, kind);
  return pto_guard_pause ();
}

/* The kernel asks for what is not to be had: the run fails, and the kernel is given up. */
static _Noreturn __attribute__ ((cold, format (printf, 4, 5))) void
refuse (struct pto_core *core, struct pto_guard *guard, uint32_t kind, const char *format, ...)
{
  char task[400];
  char why[300];
  va_list args;

  va_start (args, format);
  vsnprintf (why, sizeof why, format, args);
  va_end (args);
  pto_core_describe_task (core, task, sizeof task);
  pto_engine_fail (core->engine, PTO_STATUS_INVALID_ARGS, "%s: %s: %s", task, wait_names[kind],
                   why);
  give_up (guard, wait_names[kind]);
}

static struct pipe *
find_pipe (struct pto_core *core, struct pto_guard *guard, uint32_t kind, uint32_t pipe)
{
  if (core->parts == NULL || core->pipes == NULL)
    refuse (core, guard, kind,
            _ ("the kernel is alone: pipes are between kernels of a mixed task, or of tasks in an "
               "allocated cluster"));
  if (pipe >= PTO2_PIPES)
    refuse (core, guard, kind, _ ("there is no pipe %u: a cluster has %u"), pipe, PTO2_PIPES);
  return &core->pipes->pipes[pipe];
}

static bool
store (struct pipe *pipe, uint32_t depth, const void *data, uint64_t bytes)
{
  struct entry *entry;

  if (pipe->entries == NULL)
    pipe->entries = calloc (depth, sizeof *pipe->entries);
  if (pipe->entries == NULL)
    return false;
  entry = &pipe->entries[(pipe->first + pipe->n) % depth];
  if (entry->capacity < bytes)
    {
      void *grown = realloc (entry->data, bytes);

      if (grown == NULL)
        return false;
      entry->data = grown;
      entry->capacity = bytes;
    }
  if (bytes > 0)
    memcpy (entry->data, data, bytes);
  entry->bytes = bytes;
  pipe->n++;
  return true;
}

static struct entry *
last_entry (struct pipe *pipe, uint32_t depth)
{
  return &pipe->entries[(pipe->first + pipe->n - 1) % depth];
}

/* Pipes of one block, not of an allocated cluster. */
static bool
has_own_pipes (const struct pto_core *core)
{
  return core->pipes != &core->chip->interconnect->clusters[core->cluster].own;
}

/* Waits with the lock until the pipe holds something, or has room. */
static void
wait_for_pipe (struct pto_core *core, struct pto_guard *guard, const struct pipe *pipe,
               uint32_t kind, uint32_t number)
{
  uint32_t depth = core->chip->interconnect->depth;

  lock (core);
  while (kind == PTO_WAIT_POP ? pipe->n == 0 : pipe->n == depth)
    {
      park (core, guard, kind | number << 8, pto_word_get (&core->wake));
    }
}

/* A fault at the kernel's own memory is its own: that is looked at before the guard is put away. */
static void
touch (const void *data, uint64_t bytes)
{
  if (bytes > 0)
    {
      (void) *(const volatile char *) data;
      (void) ((const volatile char *) data)[bytes - 1];
    }
}

static struct user
user_of (const struct pto_core *core)
{
  return (struct user){ .task = core->payload.task_id,
                        .block = (uint32_t) (core->block & PTO_MAX_BLOCKS),
                        .n_blocks = pto_parts_blocks (core->parts, core->party),
                        .kernel = core->payload.kernel->name,
                        .core = core->name };
}

static void
push (const int64_t *args, uint32_t number, const void *data, uint64_t bytes)
{
  struct pto_check_point pushed = { 0 };
  struct pto_check_point popped = { 0 };
  struct pto_guard *guard;
  struct pto_core *core;
  struct pipe *pipe;
  bool ok;

  touch (data, bytes);
  guard = come_in (args, PTO_WAIT_PUSH);
  core = core_of (args);
  if (core->check != NULL && !core->is_apart)
    pto_check_note (core->context, data, bytes, false);
  pipe = find_pipe (core, guard, PTO_WAIT_PUSH, number);
  if (core->check != NULL)
    pto_check_release (core->context, &pushed);
  pto_charge (core->engine->exec, core->chip->platform->costs.pipe);
  wait_for_pipe (core, guard, pipe, PTO_WAIT_PUSH, number);
  ok = store (pipe, core->chip->interconnect->depth, data, bytes);
  if (ok)
    {
      if (core->check != NULL)
        {
          struct entry *entry = last_entry (pipe, core->chip->interconnect->depth);

          entry->pushed = pushed;
          popped = entry->popped;
        }
      pipe->pusher = user_of (core);
      wake_waiting (core, PTO_WAIT_POP | number << 8);
    }
  unlock (core);
  if (!ok)
    refuse (core, guard, PTO_WAIT_PUSH, _ ("no memory for %" PRIu64 " bytes"), bytes);
  if (core->check != NULL)
    pto_check_acquire (core->context, &popped, has_own_pipes (core));
  pto_guard_resume (guard);
}

static void
pop (const int64_t *args, uint32_t number, void *data, uint64_t bytes)
{
  struct pto_check_point pushed = { 0 };
  struct pto_check_point popped = { 0 };
  struct pto_guard *guard;
  struct pto_core *core;
  struct pipe *pipe;
  struct entry *entry;
  uint64_t found;

  touch (data, bytes);
  guard = come_in (args, PTO_WAIT_POP);
  core = core_of (args);
  if (core->check != NULL && !core->is_apart)
    pto_check_note (core->context, data, bytes, true);
  pipe = find_pipe (core, guard, PTO_WAIT_POP, number);
  if (core->check != NULL)
    pto_check_release (core->context, &popped);
  pto_charge (core->engine->exec, core->chip->platform->costs.pipe);
  wait_for_pipe (core, guard, pipe, PTO_WAIT_POP, number);
  entry = &pipe->entries[pipe->first];
  found = entry->bytes;
  if (found == bytes)
    {
      if (core->check != NULL)
        {
          pushed = entry->pushed;
          entry->popped = popped;
        }
      if (bytes > 0)
        memcpy (data, entry->data, bytes);
      pipe->first = (pipe->first + 1) % core->chip->interconnect->depth;
      pipe->n--;
      pipe->popper = user_of (core);
      wake_waiting (core, PTO_WAIT_PUSH | number << 8);
    }
  unlock (core);
  if (found != bytes)
    refuse (core, guard, PTO_WAIT_POP,
            _ ("%" PRIu64 " bytes from pipe %u, whose next entry has %" PRIu64), bytes, number,
            found);
  if (core->check != NULL)
    pto_check_acquire (core->context, &pushed, has_own_pipes (core));
  pto_guard_resume (guard);
}

static void
sync_all (const int64_t *args)
{
  struct pto_guard *guard = come_in (args, PTO_WAIT_SYNC);
  struct pto_core *core = core_of (args);
  struct pto_party *party = core->parts != NULL ? core->party : NULL;
  uint32_t round;

  if (core->parts != NULL && (party == NULL || core->parts->n_blocks > 1))
    refuse (core, guard, PTO_WAIT_SYNC,
            _ ("the blocks of this task begin as they can: submit it with sync_start"));
  if (party != NULL && party->n_members > 1)
    {
      if (core->check != NULL)
        pto_check_arrive (core->context);
      round = pto_load_acquire (&party->round);
      /* Acquire, release: the last one has seen what the others did, and so do they behind the
       * round. */
      if (pto_fetch_add_acq_rel (&party->met, 1) + 1 == party->n_members)
        {
          pto_store_relaxed (&party->met, 0);
          pto_store_release (&party->round, round + 1);
          for (uint32_t m = 0; m < party->n_members; m++)
            if (party->members[m].kept->endpoint != &core->endpoint)
              {
                struct pto_core *other = (struct pto_core *) party->members[m].kept->endpoint;

                pto_fetch_add_acq_rel (&other->wake.value, 1);
                pto_unpark (core->engine->exec, &other->wake);
              }
        }
      else
        {
          lock (core);
          for (;;)
            {
              uint32_t seen = pto_word_get (&core->wake);

              if (pto_load_acquire (&party->round) != round)
                break;
              park (core, guard, PTO_WAIT_SYNC, seen);
            }
          unlock (core);
        }
      if (core->check != NULL)
        pto_check_meet (core->context);
    }
  pto_guard_resume (guard);
}

/* Others run meanwhile; on the virtual clock it passes. */
static void
relax (const int64_t *args)
{
  struct pto_guard *guard = come_in (args, PTO_WAIT_NOTHING);
  struct pto_core *core = core_of (args);

  if (core->chip->virtual_clock)
    pto_charge (core->engine->exec, PAUSE_NS);
  else
    pto_yield (core->engine->exec);
  if (core->check != NULL)
    pto_check_relax (core->context);
  core->relaxed = pto_load_relaxed (&core->guard.call);
  if (pto_engine_has_failed (core->engine))
    give_up (guard, "pto_relax()");
  pto_guard_resume (guard);
}

const PTO2KernelOps pto_kernel_ops = { .size = sizeof (PTO2KernelOps),
                                       .push = push,
                                       .pop = pop,
                                       .sync_all = sync_all,
                                       .relax = relax };

/* --- what kernels call that run on the core's own thread --- */

struct question
{
  uint32_t kind; /* PTO_WAIT_*; nothing: pto_relax() */
  const int64_t *args;
  uint32_t number;
  void *data;
  uint64_t bytes;
};

static void
answer (int64_t *words)
{
  const struct question *question = (const struct question *) words;

  switch (question->kind)
    {
    case PTO_WAIT_PUSH:
      push (question->args, question->number, question->data, question->bytes);
      break;
    case PTO_WAIT_POP:
      pop (question->args, question->number, question->data, question->bytes);
      break;
    case PTO_WAIT_SYNC:
      sync_all (question->args);
      break;
    default:
      relax (question->args);
      break;
    }
}

/* From a thread that the kernel has begun it is as from such a thread of any kernel. */
static void
ask (struct question question)
{
  const struct pto_services *services = (const struct pto_services *) (uintptr_t) question.args[-2];
  struct pto_core *core = services->core;
  /* Relaxed: it was there before the kernel began. */
  struct pto_own_thread *own = pto_load_relaxed (&core->own_thread);

  refuse_copy (question.args, question.kind);
  if (!pto_own_thread_is_here (own))
    {
      answer ((int64_t *) &question);
      return;
    }
  /* A fault at the kernel's own memory is its own, and so is its stack. */
  touch (question.data, question.bytes);
  if (core->check != NULL && question.data != NULL)
    pto_check_note (core->context, question.data, question.bytes, question.kind == PTO_WAIT_POP);
  pto_own_thread_ask (own, answer, (int64_t *) &question);
}

static void
push_apart (const int64_t *args, uint32_t number, const void *data, uint64_t bytes)
{
  ask ((struct question){ PTO_WAIT_PUSH, args, number, (void *) (uintptr_t) data, bytes });
}

static void
pop_apart (const int64_t *args, uint32_t number, void *data, uint64_t bytes)
{
  ask ((struct question){ PTO_WAIT_POP, args, number, data, bytes });
}

static void
sync_all_apart (const int64_t *args)
{
  ask ((struct question){ .kind = PTO_WAIT_SYNC, .args = args });
}

static void
relax_apart (const int64_t *args)
{
  ask ((struct question){ .kind = PTO_WAIT_NOTHING, .args = args });
}

const PTO2KernelOps pto_kernel_ops_apart = { .size = sizeof (PTO2KernelOps),
                                             .push = push_apart,
                                             .pop = pop_apart,
                                             .sync_all = sync_all_apart,
                                             .relax = relax_apart };
