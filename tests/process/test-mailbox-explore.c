/* test-mailbox-explore.c: does every run end, and rightly, whichever way parent and children
 * interleave and wherever children die?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Engine, scheduler, pool, mailboxes and bell are built with PTO_EXPLORE: every atomic operation is
 * a point where another actor may go on, chosen by the seed on the det back end. Guest, scheduler,
 * pump, keeper and children are actors. A child may die at any of these points: it never goes on
 * from there, and the keeper is told. Or it stops there, and nobody is told. What runs one at a
 * time in a process (scheduler and pump, which have one carrier) is kept so here: the other one
 * does not go on before the first one parks.
 *
 * A second build has PTO_WEAK instead, and runs on the machine of weak.h: loads may also give old
 * values, by the seed, and plain accesses that nothing orders end the program.
 *
 * Each seed is a graph, a choice of deaths and an interleaving: 10500 of them, or as many as
 * PTO_TEST_SEEDS says, PTO_TEST_TIMES as many, beginning with PTO_TEST_SEED.
 */
#include "../../pto/core/completion.h"
#include "../../pto/core/run.h"
#include "../../pto/process/pool-private.h"
#include "../short.h"
#include "pool-test.h"

#ifdef PTO_WEAK
#include "../weak/weak.h"
#include "../../pto/exec/exec-private.h"
#else
#define weak_read(memory, size) ((void) (memory))
#define weak_write(memory, size) ((void) (memory))
#define weak_release(thing) ((void) (thing))
#define weak_acquire(thing) ((void) (thing))
#define weak_store atomic_store
#endif

#include <glib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WATCHDOG_S 900
#ifdef PTO_WEAK
#define SEEDS 1600u
#elif defined(__SANITIZE_THREAD__)
/* One thread runs it all: nothing is left for it to find. */
#define SEEDS 200u
#else
#define SEEDS 10500u
#endif
#define CHILDREN 4u
#define LIVES 6u
#define TASKS 8u
/* Of points: as soon as a task is answered, and before anybody is told so. */
#define AFTER_ANSWER UINT32_MAX
#define TICK_NS UINT64_C (100000000)
#define MS UINT64_C (1000000)
/* Virtual: nothing takes so long but what hangs. */
#define HANG_NS (3600 * UINT64_C (1000000000))

void explorer_point (void);

/* pto_park() is explorer_park() in what is explored. */
#undef pto_park
enum pto_park_result pto_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected,
                               uint64_t deadline);
enum pto_park_result explorer_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected,
                                    uint64_t deadline);

enum knowledge
{
  UNKNOWN,
  PREPARED,
  COMMITTED
};

enum ending
{
  NO_END,
  DEATH,
  STOP
};

/* One life of a child: an actor. */
struct life
{
  char name[16];
  uint32_t child;
  uint32_t points;    /* until it ends ... */
  enum ending ending; /* ... in this way */
  bool over;          /* it must not go on */
  bool closed;        /* by CLOSE */
  bool knows;         /* it has the registration from birth */
  struct pto_word grave;
};

struct task
{
  uint32_t deps; /* bits of earlier tasks */
  uint32_t n_members;
  uint32_t workers[CHILDREN];
  bool fails; /* member 0 says so */
  bool idempotent;
  uint64_t written[CHILDREN]; /* by member, once */
  /* By member; of one that is idempotent perhaps several times. */
  uint32_t begun[CHILDREN];
  bool answered[CHILDREN]; /* its child died after that */
};

struct world
{
  uint64_t seed;
  uint64_t random;
  struct pool_test own;
  struct life lives[CHILDREN][LIVES];
  uint32_t n_lives[CHILDREN];
  bool busy[CHILDREN];
  int32_t runs[CHILDREN]; /* task << 8 | member, or -1 */
  bool restart;
  uint32_t retries;

  /* keeper */
  struct pto_word keeper;
  bool to_bury[CHILDREN];
  bool pace;
  bool end;
  enum pto_life seen[CHILDREN]; /* at the last point */
  uint32_t said[CHILDREN];      /* that it has come up, or will not */
  bool begun;                   /* all, for the first time */
  uint32_t deaths;

  uint32_t n_tasks;
  struct task tasks[TASKS];
  uint64_t words[TASKS];

  /* A registration, as who asks for it sees it ... */
  bool known; /* from here on a child has it from birth */
  bool is_over;
  bool agreed; /* then: it was not taken back */
  /* ... and each child. */
  enum knowledge registered[CHILDREN];
};

static struct world *world;
static bool exploring;
static uint64_t n_points, n_deaths, n_lost, n_retried; /* over all seeds */
static uint64_t n_agreed, n_refused, n_broken, n_given_up;
static uint64_t n_steps[PTO_LIFE_GONE + 1][PTO_LIFE_GONE + 1];
static const char *carrier;

static const char scheduler_name[] = "scheduler";
static const char pump_name[] = "pump";
static const char keeper_name[] = "keeper";

static uint32_t
below (uint32_t n)
{
  world->random = world->random * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
  return (uint32_t) ((world->random >> 33) % n);
}

/* --- the explorer --- */

static bool
is_carried (const char *name)
{
  return name == scheduler_name || name == pump_name;
}

static struct life *
life_of (const char *name)
{
  for (uint32_t c = 0; c < world->own.n_children; c++)
    for (uint32_t l = 0; l < world->n_lives[c]; l++)
      if (world->lives[c][l].name == name)
        return &world->lives[c][l];
  return NULL;
}

static void
rest_in_peace (struct life *life)
{
  for (;;)
    pto_park (world->own.exec, &life->grave, 0, PTO_NEVER);
}

static void
tell_keeper (void)
{
  pto_word_set (world->own.exec, &world->keeper, pto_word_get (&world->keeper) + 1);
}

static bool
is_answered (uint32_t child)
{
  const struct pto_mailbox *mailbox = world->own.children[child].link.mailbox;

  return atomic_load (&mailbox->reply) == 2 * atomic_load (&mailbox->post.value);
}

static void
end_life (struct life *life)
{
  if (world->runs[life->child] >= 0 && is_answered (life->child))
    world->tasks[world->runs[life->child] >> 8].answered[world->runs[life->child] & 0xff] = true;
  world->deaths++;
  n_deaths++;
  life->over = true;
  weak_release (&life->over);
  world->busy[life->child] = false;
  if (life->ending == DEATH)
    {
      world->to_bury[life->child] = true;
      tell_keeper ();
    }
}

#define TO(life) (1u << PTO_LIFE_##life)

/* What may follow upon what. */
static const uint32_t steps[PTO_LIFE_GONE + 1] = {
  [PTO_LIFE_STARTING] = TO (IDLE) | TO (KILLED) | TO (LOST) | TO (GONE),
  [PTO_LIFE_IDLE] = TO (BUSY) | TO (LOST) | TO (GONE),
  [PTO_LIFE_BUSY] = TO (IDLE) | TO (ASKED) | TO (ENDING) | TO (KILLED) | TO (LOST) | TO (GONE),
  [PTO_LIFE_ASKED] = TO (IDLE) | TO (ENDING) | TO (KILLED) | TO (LOST) | TO (GONE),
  [PTO_LIFE_ENDING] = TO (KILLED) | TO (LOST) | TO (GONE),
  [PTO_LIFE_KILLED] = TO (LOST) | TO (GONE),
  [PTO_LIFE_LOST] = TO (BEGINNING),
  [PTO_LIFE_BEGINNING] = TO (BEGUN),
  [PTO_LIFE_BEGUN] = TO (STARTING),
};

/* Each step of a life is one that there is, and its owner's. */
static void
check_lives (const char *name)
{
  for (uint32_t c = 0; c < world->own.n_children; c++)
    {
      enum pto_life life = (enum pto_life) atomic_load_explicit (&world->own.children[c].life,
                                                                 memory_order_relaxed);
      enum pto_life seen = world->seen[c];

      if (life == seen)
        continue;
      world->seen[c] = life;
      n_steps[seen][life]++;
      g_assert_cmpuint (steps[seen] >> life & 1, ==, 1);
      if (seen == PTO_LIFE_LOST || seen == PTO_LIFE_BEGINNING)
        g_assert_true (!is_carried (name) && name != keeper_name && life_of (name) == NULL);
      else
        g_assert_true (is_carried (name));
    }
}

void
explorer_point (void)
{
  const char *name;
  struct life *life;

  if (!exploring)
    return;
  n_points++;
  name = pto_actor_name ();
  check_lives (name);
  pto_yield (world->own.exec);
  life = life_of (name);
  if (life == NULL)
    return;
  if (!life->over && life->ending != NO_END
      && (life->points == AFTER_ANSWER ? world->runs[life->child] >= 0 && is_answered (life->child)
                                       : life->points-- == 0))
    end_life (life);
  if (life->over)
    rest_in_peace (life);
}

#ifdef PTO_WEAK
/* Guest, carrier of scheduler and pump, keeper, and a process for each child: who is begun again
 * goes on where the one before ended. */
static uint32_t
self (void)
{
  const char *name = pto_actor_name ();
  const struct life *life = life_of (name);

  return life != NULL ? 3 + life->child : is_carried (name) ? 1 : name == keeper_name ? 2 : 0;
}

static uint32_t
choose_age (uint32_t n)
{
  return below (4) == 0 ? below (n) : 0;
}
#endif

static void
explore_on (bool on)
{
#ifdef PTO_WEAK
  static const struct weak_machine machine
      = { .self = self, .point = explorer_point, .choose = choose_age };

  if (on)
    weak_begin (&machine);
  else
    weak_end ();
#endif
  exploring = on;
}

/* pto_yield() is this one in the engine. */
void explorer_yield (struct pto_exec *exec);
void
explorer_yield (struct pto_exec *exec)
{
  pto_yield (exec);
}

static void
enter_domain (const char *name)
{
  while (carrier != NULL)
    pto_yield (world->own.exec);
  carrier = name;
}

enum pto_park_result
explorer_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  const char *name = pto_actor_name ();
  enum pto_park_result result;
  struct life *life;

  if (is_carried (name))
    carrier = NULL;
  result = pto_park (exec, word, expected, deadline);
  if (is_carried (name))
    enter_domain (name);
  life = life_of (name);
  if (life != NULL && life->over)
    rest_in_peace (life);
  if (result == PTO_PARK_DEADLOCK)
    g_error ("seed %" G_GUINT64_FORMAT ": nobody can run, and %s waits", world->seed, name);
  return result;
}

static void
scheduler_main (void *data)
{
  enter_domain (scheduler_name);
  pto_scheduler_main (data);
  carrier = NULL;
}

static void
pump_main (void *data)
{
  enter_domain (pump_name);
  pto_pool_pump (data);
  carrier = NULL;
}

/* --- children --- */

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  struct life *life = data;
  uint32_t result = 0;

  g_assert_false (life->over);
  g_assert_false (world->busy[life->child]);
  world->busy[life->child] = true;
  explorer_point ();
  switch (call->request)
    {
    case PTO_REQUEST_TASK:
      {
        weak_read (call->args.scalars, 2 * sizeof call->args.scalars[0]);
        uint32_t task = (uint32_t) call->args.scalars[0];
        uint32_t member = (uint32_t) call->args.scalars[1];
        struct task *t = &world->tasks[task];

        world->runs[life->child] = (int32_t) (task << 8 | member);
        g_assert_cmpuint (t->begun[member]++, <=, t->idempotent ? world->retries : 0);
        /* Of what was lost nothing is there. */
        g_assert_cmpuint (world->words[task], <, t->n_members);
        if (t->workers[member] != PTO_WORKER_ANY)
          g_assert_cmpuint (t->workers[member], ==, life->child);
        for (uint32_t d = 0; d < task; d++)
          if ((t->deps >> d & 1) != 0)
            {
              g_assert_cmpuint (world->words[d], ==, world->tasks[d].n_members);
              weak_read (world->tasks[d].written,
                         world->tasks[d].n_members * sizeof world->tasks[d].written[0]);
            }
        explorer_point ();
        world->words[task]++;
        weak_write (&t->written[member], sizeof t->written[member]);
        if (t->fails && member == 0)
          {
            pto_failure_set (failure, PTO_STATUS_TASK_FAILED, NULL, "as told");
            result = PTO_STATUS_TASK_FAILED;
          }
        break;
      }
    case PTO_REQUEST_START:
      world->registered[life->child] = life->knows ? COMMITTED : UNKNOWN;
      break;
    case PTO_REQUEST_REGISTER:
      if (world->registered[life->child] == UNKNOWN)
        world->registered[life->child] = PREPARED;
      break;
    case PTO_REQUEST_COMMIT:
      g_assert_cmpint (world->registered[life->child], !=, UNKNOWN);
      world->registered[life->child] = COMMITTED;
      break;
    case PTO_REQUEST_UNREGISTER:
      world->registered[life->child] = UNKNOWN;
      break;
    case PTO_REQUEST_CLOSE:
      /* All have it, or nobody. */
      if (world->is_over)
        g_assert_cmpint (world->registered[life->child], ==, world->agreed ? COMMITTED : UNKNOWN);
      break;
    default:
      break;
    }
  explorer_point ();
  world->busy[life->child] = false;
  return result;
}

static void
child_main (void *data)
{
  struct life *life = data;
  struct pto_server server = { .serve = serve, .data = life };

  weak_acquire (life);
  pto_mailbox_serve (world->own.exec, world->own.children[life->child].link.mailbox, world->own.hub,
                     life->child, false, &server);
  life->closed = life->over = true;
  weak_release (&life->over);
  /* A process ends then. */
  world->to_bury[life->child] = true;
  tell_keeper ();
}

static void
spawn (void (*fn) (void *), void *arg, const char *name)
{
  char error[256] = "";

  pto_exec_spawn (world->own.exec, 0, name, fn, arg, error, sizeof error);
  g_assert_cmpstr (error, ==, "");
}

static void
begin_child (uint32_t index, enum ending ending, uint32_t points)
{
  struct life *life;

  g_assert_cmpuint (world->n_lives[index], <, LIVES);
  life = &world->lives[index][world->n_lives[index]++];
  *life
      = (struct life){ .child = index, .ending = ending, .points = points, .knows = world->known };
  snprintf (life->name, sizeof life->name, "child%u.%u", index, world->n_lives[index]);
  pto_word_init (&life->grave, 0, false);
  world->runs[index] = -1;
  weak_release (life);
  spawn (child_main, life, life->name);
}

/* --- keeper --- */

static void
keeper_main (void *data)
{
  while (!world->end)
    {
      uint32_t seen = pto_word_get (&world->keeper);
      uint64_t now = pto_now (world->own.exec);

      if (now > HANG_NS)
        g_error ("seed %" G_GUINT64_FORMAT ": it goes on for ever", world->seed);
      /* As a death that has been taken with an answer: the pump looks without the guest's bit. */
      if (world->begun)
        {
          weak_acquire (&world->begun);
          pto_hub_mark (world->own.exec, world->own.hub, below (world->own.n_children));
        }
      for (uint32_t c = 0; c < world->own.n_children; c++)
        if (world->to_bury[c])
          {
            world->to_bury[c] = false;
            explorer_point ();
            /* The kernel has told it. */
            weak_acquire (&world->lives[c][world->n_lives[c] - 1].over);
            pto_child_found_dead (&world->own.children[c]);
            pto_hub_mark (world->own.exec, world->own.hub, c);
          }
      if (pto_park (world->own.exec, &world->keeper, seen, world->pace ? now + TICK_NS : PTO_NEVER)
          == PTO_PARK_TIMEOUT)
        {
          for (uint32_t c = 0; c < world->own.n_children; c++)
            {
              const struct life *life = &world->lives[c][world->n_lives[c] - 1];

              pto_child_found_stopped (&world->own.children[c], life->over && life->ending == STOP);
            }
          pto_pool_tick (world->own.pool, TICK_NS);
        }
    }
}

/* --- what the pool asks --- */

static void
describe (const struct pto_child *child, char *text, size_t size, char *words, size_t words_size)
{
  snprintf (text, size, "died");
  if (words != NULL)
    words[0] = '\0';
}

static void
kill_child (struct pto_child *child, const char *why)
{
  struct life *life = &world->lives[child->index][world->n_lives[child->index] - 1];

  /* Only who stands still is ever killed here. */
  g_assert_true (life->over);
  g_assert_cmpint (life->ending, ==, STOP);
  world->to_bury[child->index] = true;
  tell_keeper ();
}

static void
refused (struct pto_child *child, const struct pto_failure *failure)
{
  g_assert_not_reached ();
}

static void
changed (struct pto_child *child)
{
  world->said[child->index]++;
  n_lost += !pto_child_is_there (child);
}

/* The guest. */
static bool
begin_again (struct pto_child *child)
{
  begin_child (child->index, NO_END, 0);
  return true;
}

static const struct pto_child_ops child_ops = { .describe = describe,
                                                .kill = kill_child,
                                                .refused = refused,
                                                .changed = changed,
                                                .begin = begin_again };

static void
set_pace (void *data, enum pto_pace pace)
{
  if (world->pace == (pace != PTO_PACE_IDLE))
    return;
  world->pace = pace != PTO_PACE_IDLE;
  tell_keeper ();
}

/* The guest. */
static bool
begin_lost (void *data)
{
  pto_pool_begin_lost (world->own.pool);
  return false;
}

#ifndef PTO_WEAK
/* The guest, as that of a level that starts: goes on when of every child something was said. What
 * it looks at is the executor's, whose token orders it: nothing to ask the machine of weak orders.
 */
static void
await_starts (void)
{
  for (;;)
    {
      uint32_t seen = pto_word_get (&world->own.pool->news);
      bool starting = pto_pool_starting (world->own.pool) != 0;

      if (pto_pool_begin_lost (world->own.pool) == 0 && !starting
          && !pto_pool_has_lost (world->own.pool))
        break;
      explorer_park (world->own.exec, &world->own.pool->news, seen, PTO_NEVER);
    }
  for (uint32_t c = 0; c < world->own.n_children; c++)
    g_assert_cmpuint (world->said[c], >=, 1);
}
#endif

/* --- a world --- */

static void
make_world (uint64_t seed)
{
  struct pto_pool_config config = {
    .pace = set_pace,
    .limits
    = { .task_ns = PTO_NEVER, .start_ns = PTO_NEVER, .close_ns = PTO_NEVER, .stop_ns = 300 * MS },
    .group_ns = PTO_NEVER
  };
  uint32_t n_children;

  world = g_new0 (struct world, 1);
  world->seed = seed;
  world->random = seed * 0x9e3779b97f4a7c15u + 1;
  n_children = 1 + below (CHILDREN);
  world->restart = below (4) != 0;
  world->retries = config.retries = below (4);
  pto_word_init (&world->keeper, 0, false);
  carrier = NULL;
  pool_test_init (&world->own, seed, 96u << 10, 16, 64, n_children, &child_ops, NULL,
                  world->restart);
  for (uint32_t c = 0; c < n_children; c++)
    /* Most have been up before: the others, should they die first, are gone. */
    if (below (4) != 0)
      atomic_init (&world->own.children[c].started, 1);
  pool_test_add_pool (&world->own, &config);
  world->pace = true;
}

static void
free_world (void)
{
  pool_test_clear (&world->own);
  g_free (world);
}

/* --- a run --- */

static void
draw_graph (bool may_fail)
{
  world->n_tasks = 1 + below (TASKS);
  memset (world->tasks, 0, sizeof world->tasks);
  memset (world->words, 0, sizeof world->words);
  for (uint32_t t = 0; t < world->n_tasks; t++)
    {
      struct task *task = &world->tasks[t];
      uint32_t taken = 0;

      task->n_members = below (3) == 0 ? 1 + below (world->own.n_children) : 1;
      for (uint32_t m = 0; m < task->n_members; m++)
        {
          uint32_t worker = below (world->own.n_children);

          task->workers[m] = PTO_WORKER_ANY;
          if (below (2) == 0 && (taken >> worker & 1) == 0)
            {
              taken |= 1u << worker;
              task->workers[m] = worker;
            }
        }
      for (uint32_t d = 0; d < t; d++)
        if (below (3) == 0)
          task->deps |= 1u << d;
      task->fails = may_fail && below (8) == 0;
      task->idempotent = below (2) == 0;
    }
}

static void
submit (uint32_t number)
{
  static const uint8_t digest[PTO_DIGEST_BYTES];
  struct task *task = &world->tasks[number];
  uint8_t extra[PTO_LEVEL_TASK_BYTES (sizeof (struct pto_call_config))
                + CHILDREN * sizeof (struct pto_member) + TASKS] __attribute__ ((aligned (8)));
  struct pto_level_task *to = (struct pto_level_task *) extra;
  struct pto_member *members;
  PTOParam params[TASKS + 1 + 2 * CHILDREN];
  struct pto_need needs[CHILDREN];
  struct pto_wish wish
      = { .cohort = PTO_COHORT_NONE, .n_members = task->n_members, .members = needs };
  struct pto_report report = { 0 };
  uint8_t *access;
  uint32_t n = 0;
  uint32_t n_tensors;

  memset (extra, 0, sizeof extra);
  to->digest = digest;
  to->name = "task";
  to->n_members = task->n_members;
  to->kind = PTO_CHILD_SUB;
  to->idempotent = task->idempotent;
  to->config_bytes = offsetof (struct pto_call_config, output_prefix) + 1;
  members = (struct pto_member *) (extra + PTO_LEVEL_TASK_BYTES (to->config_bytes));
  access = (uint8_t *) (members + task->n_members);
  for (uint32_t d = 0; d <= number; d++)
    if (d == number || (task->deps >> d & 1) != 0)
      {
        Tensor tensor
            = make_tensor_external (&world->words[d], (uint64_t[]){ 1 }, 1, PTO_DTYPE_UINT64);

        access[n] = d < number         ? PTO_WIRE_READ
                    : task->idempotent ? PTO_WIRE_WRITE
                                       : PTO_WIRE_READ | PTO_WIRE_WRITE;
        params[n++] = pto2_make_param (d < number         ? PTO_PARAM_INPUT
                                       : task->idempotent ? PTO_PARAM_OUTPUT
                                                          : PTO_PARAM_OUTPUT_EXISTING,
                                       &tensor);
      }
  n_tensors = to->n_tensors = n;
  for (uint32_t m = 0; m < task->n_members; m++)
    {
      members[m] = (struct pto_member){ .n_tensors = (uint16_t) n_tensors,
                                        .first_scalar = (uint16_t) (2 * m),
                                        .n_scalars = 2,
                                        .worker = task->workers[m] };
      params[n++] = make_scalar_param (number);
      params[n++] = make_scalar_param (m);
    }
  g_assert_cmpint (pto_pool_place (world->own.pool, to, members, 16, 0, needs, &report), ==,
                   PTO_OK);
  pto_engine_submit (world->own.engine, &(struct pto_submit){ .params = params,
                                                              .n_params = n,
                                                              .extra = extra,
                                                              .extra_bytes = sizeof extra,
                                                              .wish = &wish });
}

static bool
somebody_is_gone (void)
{
  for (uint32_t c = 0; c < world->own.n_children; c++)
    if (pto_child_is_gone (&world->own.children[c]))
      return true;
  return false;
}

/* Deaths happened or not: which tasks failed must follow from which failed by themselves. */
static void
check_run (uint32_t deaths)
{
  const struct pto_first_failure *first = pto_pool_first_failure (world->own.pool);
  uint64_t roots = 0;

  g_assert_cmpuint (pto_engine_completed (world->own.engine), ==, world->n_tasks);
  for (uint32_t t = 0; t < world->n_tasks; t++)
    {
      struct task *task = &world->tasks[t];
      uint32_t state = atomic_load (&pto_ring_slot (&world->own.engine->rings[0], t)->state);
      bool needs_failed = false;

      g_assert_true (state == PTO_TASK_COMPLETED || state == PTO_TASK_FAILED);
      for (uint32_t d = 0; d < t; d++)
        if ((task->deps >> d & 1) != 0
            && atomic_load (&pto_ring_slot (&world->own.engine->rings[0], d)->state)
                   == PTO_TASK_FAILED)
          needs_failed = true;
      if (needs_failed)
        g_assert_cmpint (state, ==, PTO_TASK_FAILED);
      for (uint32_t m = 0; m < task->n_members; m++)
        {
          if (needs_failed)
            g_assert_cmpuint (task->begun[m], ==, 0);
          if (state == PTO_TASK_COMPLETED && !task->idempotent)
            g_assert_cmpuint (task->begun[m], ==, 1);
          else if (state == PTO_TASK_COMPLETED)
            g_assert_cmpuint (task->begun[m], >=, 1);
        }
      if (state == PTO_TASK_FAILED && !needs_failed)
        {
          roots++;
          if (deaths == 0 || (task->idempotent && deaths <= world->retries && !somebody_is_gone ()))
            g_assert_true (task->fails);
          /* An answer that was given before a death counts. */
          if (task->n_members == 1 && task->answered[0])
            g_assert_true (task->fails);
        }
      if (state == PTO_TASK_COMPLETED)
        {
          g_assert_false (task->fails);
          weak_read (task->written, task->n_members * sizeof task->written[0]);
        }
    }
  g_assert_cmpuint (first->roots, ==, roots);
  g_assert_cmpint (first->task != PTO_TASK_NONE, ==, roots > 0);
}

static void
run (struct pto_control *control)
{
  struct pto_report report = { 0 };

  begin_lost (NULL);
  pto_pool_begin_run (world->own.pool);
  pto_engine_begin (world->own.engine);
  world->own.engine->cancelled = begin_lost;
  for (uint32_t t = 0; t < world->n_tasks; t++)
    {
      submit (t);
      /* A bit that was set for nothing costs a look, at whatever moment. */
      pto_hub_mark (world->own.exec, world->own.hub, below (world->own.n_children));
      if (control != NULL && t == world->n_tasks / 2)
        {
          world->known = world->known || control->request == PTO_REQUEST_REGISTER;
          pto_pool_control (world->own.pool, control);
        }
    }
  pto_engine_end (world->own.engine, &report);
  g_assert_cmpstr (report.message, ==, "");
  n_retried += pto_pool_retried (world->own.pool);
}

static void
await (struct pto_control *control, bool begins)
{
  while (pto_word_get (&control->done) == 0)
    {
      if (begins)
        begin_lost (NULL);
      explorer_park (world->own.exec, &control->done, 0, pto_now (world->own.exec) + TICK_NS);
    }
}

/* As a level does: what was refused, or is given up, is taken back. */
static void
end_registration (struct pto_control *control, bool gives_up)
{
  struct pto_control *back;

  if (gives_up)
    {
      for (uint32_t n = below (40); n > 0; n--)
        explorer_point ();
      atomic_store (&control->cancel, 1);
      pto_bell_ring (world->own.exec, &world->own.hub->bell);
    }
  else
    {
      await (control, true);
      world->agreed = control->refused == UINT32_MAX;
      if (world->deaths == 0)
        {
          g_assert_true (world->agreed);
          g_assert_cmpuint (control->accepted[0], ==, (1u << world->own.n_children) - 1);
        }
      n_broken += !world->agreed && control->agreed;
    }
  n_agreed += world->agreed;
  n_given_up += gives_up;
  n_refused += !world->agreed && !gives_up;
  if (!world->agreed)
    {
      back = pto_control_new (PTO_REQUEST_UNREGISTER, NULL, NULL, 0);
      world->known = false;
      memset (back->targets, 0xff, sizeof back->targets);
      pto_pool_control (world->own.pool, back);
      pto_control_unref (back);
    }
  world->is_over = true;
}

/* Who lets go of it last may write it: the others are done with all of it. */
static void
take_whole (void *body, uint64_t bytes)
{
  weak_write ((struct pto_control *) body - 1, sizeof (struct pto_control));
}

static void
explore (uint64_t seed)
{
  struct pto_control *control = pto_control_new (PTO_REQUEST_REGISTER, NULL, NULL, 0);
  struct pto_control *renewal = pto_control_new (PTO_REQUEST_CLOSE, NULL, NULL, 0);
  struct pto_control *close = pto_control_new (PTO_REQUEST_CLOSE, NULL, NULL, 0);
  uint32_t mode;
  bool registers, renews;

  make_world (seed);
  mode = below (4);
  registers = below (3) == 0;
  renews = below (4) == 0;
  pto_exec_enter (world->own.exec);
  spawn (scheduler_main, world->own.scheduler, scheduler_name);
  spawn (pump_main, world->own.pool, pump_name);
  spawn (keeper_main, NULL, keeper_name);
  explore_on (true);
  for (uint32_t c = 0; c < world->own.n_children; c++)
    {
      /* Nobody, one, all, or as it comes. */
      bool ends = mode == 0   ? false
                  : mode == 1 ? c == seed % world->own.n_children
                              : mode == 2 || below (2);

      pto_child_post_start (&world->own.children[c]);
      begin_child (c,
                   !ends            ? NO_END
                   : below (3) == 0 ? STOP
                                    : DEATH,
                   below (3) == 0 ? AFTER_ANSWER : below (80));
    }
  world->begun = true;
  weak_release (&world->begun);
#ifndef PTO_WEAK
  if (below (2) == 0)
    await_starts ();
#endif
  draw_graph (true);
  memset (control->targets, 0xff, sizeof control->targets);
  control->free_body = take_whole;
  memset (renewal->targets, 0xff, sizeof renewal->targets);
  run (registers ? control : NULL);
  check_run (world->deaths);
  if (registers)
    end_registration (control, below (4) == 0);
  pto_control_unref (control);
  /* The next run on the same pool. Who stands still only now is found when it is asked. */
  for (uint32_t c = 0; c < world->own.n_children; c++)
    for (uint32_t l = 0; l < world->n_lives[c]; l++)
      if (!world->lives[c][l].over)
        world->lives[c][l].ending = NO_END;
  for (uint32_t again = 0;; again++)
    {
      draw_graph (false);
      run (renews && again == 0 ? renewal : NULL);
      check_run (world->deaths);
      if (pto_pool_first_failure (world->own.pool)->roots == 0 || !world->restart
          || somebody_is_gone ())
        break;
      /* Each of these has found one of those that stand still. */
      g_assert_cmpuint (again, <=, world->own.n_children);
    }
  if (pto_pool_first_failure (world->own.pool)->roots == 0)
    for (uint32_t t = 0; t < world->n_tasks; t++)
      g_assert_cmpuint (world->words[t], ==, world->tasks[t].n_members);
  if (renews)
    await (renewal, true);
  close->last = true;
  memset (close->targets, 0xff, sizeof close->targets);
  pto_pool_control (world->own.pool, close);
  await (close, false);
  for (uint32_t c = 0; c < world->own.n_children; c++)
    g_assert_true (world->lives[c][world->n_lives[c] - 1].over || is_answered (c));
  while (pto_exec_help (world->own.exec))
    ;
  /* Nothing that was said has been left unheard. */
  for (uint32_t w = 0; w < PTO_CHILDREN_MAX / 64; w++)
    g_assert_cmpuint (atomic_load (&world->own.hub->answered[w]), ==, 0);
  g_assert_false (world->pace);
  pto_pool_stop (world->own.pool);
  pto_scheduler_stop (world->own.scheduler);
  world->end = true;
  tell_keeper ();
  while (pto_exec_help (world->own.exec))
    ;
  explore_on (false);
  pto_exec_join (world->own.exec);
  g_assert_null (carrier);
  pto_exec_leave (world->own.exec);
  pto_control_unref (renewal);
  pto_control_unref (close);
  free_world ();
}

static uint64_t
number (const char *variable, uint64_t fallback)
{
  const char *text = g_getenv (variable);

  return text != NULL ? g_ascii_strtoull (text, NULL, 10) : fallback;
}

static void
test_seeds (void)
{
  uint64_t first = number ("PTO_TEST_SEED", 1);
  uint64_t n = number ("PTO_TEST_SEEDS", SCALE_SHORT (SEEDS)) * number ("PTO_TEST_TIMES", 1);

  for (uint64_t seed = first; seed < first + n; seed++)
    {
      if (g_test_verbose ())
        g_test_message ("seed %" G_GUINT64_FORMAT, seed);
      explore (seed);
    }
  /* All that there are, but for those of who is given up while it closes. */
  for (uint32_t from = 0; n >= 10000 && from <= PTO_LIFE_GONE; from++)
    for (uint32_t to = 0; to <= PTO_LIFE_GONE; to++)
      if ((steps[from] >> to & 1) != 0 && n_steps[from][to] == 0)
        g_assert_true (from == PTO_LIFE_ASKED ? to == PTO_LIFE_ENDING
                                              : from == PTO_LIFE_ENDING && to == PTO_LIFE_KILLED);
  g_test_message ("%" G_GUINT64_FORMAT " switch points, %" G_GUINT64_FORMAT
                  " deaths, %" G_GUINT64_FORMAT " ends seen, %" G_GUINT64_FORMAT " tasks run again",
                  n_points, n_deaths, n_lost, n_retried);
  g_assert_true (n < 1000 || n_retried > n / 20);
  g_test_message ("registrations: %" G_GUINT64_FORMAT " agreed, %" G_GUINT64_FORMAT
                  " refused, of which %" G_GUINT64_FORMAT " after a yes, %" G_GUINT64_FORMAT
                  " given up",
                  n_agreed, n_refused, n_broken, n_given_up);
  if (n >= 10000)
    g_assert_true (n_agreed > 0 && n_refused > n_broken && n_broken > 0 && n_given_up > 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/mailbox-explore/seeds", test_seeds);
  return g_test_run ();
}
