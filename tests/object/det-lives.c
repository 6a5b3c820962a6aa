/* det-lives.c: who runs tasks in virtual time, and what is done to them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "det-test.h"

#include <stdio.h>
#include <string.h>

#define TICK_NS (10 * MS)
#define PATROL_NS (500 * US)

/* --- what a task does --- */

static uint64_t
mix (uint64_t a, uint64_t b)
{
  uint64_t z = (a ^ (b + UINT64_C (0x9e3779b97f4a7c15) + (a << 6) + (a >> 2)))
               * UINT64_C (0xff51afd7ed558ccd);

  return z ^ (z >> 32);
}

uint64_t
sum_up (uint32_t number, uint64_t *const at[ARGS_MAX])
{
  const struct task *task = &test.tasks[number];
  uint64_t sum = mix (number, test.seed);

  for (uint32_t a = 0; a < task->n_args; a++)
    for (uint32_t i = 0; task->args[a].use != USE_WRITE && i < task->args[a].n; i++)
      sum = mix (sum, at[a][i]);
  return sum;
}

void
write_all (uint32_t number, uint64_t sum, uint64_t *const at[ARGS_MAX])
{
  const struct task *task = &test.tasks[number];

  for (uint32_t a = 0; a < task->n_args; a++)
    for (uint32_t i = 0; task->args[a].use != USE_READ && i < task->args[a].n; i++)
      at[a][i] = mix (sum, a * (BOARD + LARGE) + i);
}

/* Whatever it is, its memory is there. */
static uint32_t
run_anything (const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t sum = 0;

  world_step (world_random (200000));
  for (int32_t i = 0; i < call->args.tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &call->args.tensors[i];
      uint64_t bytes = (uint64_t) pto_dtype_size ((DataType) tensor->dtype);
      uint8_t *data = (uint8_t *) (uintptr_t) tensor->data;

      for (uint32_t d = 0; d < tensor->ndims; d++)
        bytes *= tensor->shapes[d];
      for (uint64_t b = 0; b < bytes; b++)
        if ((tensor->access & PTO_WIRE_WRITE) != 0)
          data[b] = (uint8_t) b;
        else
          sum += data[b];
    }
  if (sum % 16 != 1)
    return 0;
  pto_failure_set (failure, PTO_STATUS_TASK_FAILED, NULL, "planned");
  return PTO_STATUS_TASK_FAILED;
}

/* Where it runs. */
static uint32_t
run_task (struct life *life, const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t *at[ARGS_MAX];
  uint32_t number;
  struct task *task;

  if (test.profile.damages)
    return run_anything (call, failure);
  if (call->args.scalar_count != 1 || call->args.scalars[0] >= test.n_tasks)
    fail_seed ("a task that is none");
  number = (uint32_t) call->args.scalars[0];
  task = &test.tasks[number];
  if ((uint32_t) call->args.tensor_count != task->n_args)
    fail_seed ("task %u has %d arguments", number, call->args.tensor_count);
  for (uint32_t a = 0; a < task->n_args; a++)
    {
      if (call->args.tensors[a].shapes[0] != task->args[a].n)
        fail_seed ("argument %u of task %u has %u elements", a, number,
                   call->args.tensors[a].shapes[0]);
      at[a] = (uint64_t *) (uintptr_t) call->args.tensors[a].data;
    }
  if (task->n_begun++ > task->n_again)
    fail_seed ("task %u is run twice", number);
  if (sum_up (number, at) != task->sum)
    fail_seed ("task %u reads what it should not", number);
  for (uint64_t left = task->takes; left > 0;)
    {
      uint64_t some = 1 + world_random (300000);

      some = MIN (some, left);
      world_step (some);
      left -= some;
      if (call->mailbox != NULL)
        pto_call_beat (call);
      if (pto_call_is_cancelled (call))
        {
          pto_failure_set (failure, PTO_STATUS_CANCELLED, NULL, "cancelled");
          return PTO_STATUS_CANCELLED;
        }
    }
  if (sum_up (number, at) != task->sum)
    fail_seed ("what task %u reads is written meanwhile", number);
  if (task->plan == PLAN_CRASH)
    {
      life->is_touched = true;
      process_kill (process_current ());
      world_step (0);
    }
  if (task->plan == PLAN_FAIL)
    {
      /* Half of it. */
      for (uint32_t a = 0; a < task->n_args; a++)
        for (uint32_t i = 0; task->args[a].use != USE_READ && i < task->args[a].n; i += 2)
          at[a][i] = number;
      pto_failure_set (failure, PTO_STATUS_TASK_FAILED, NULL, "planned %u", number);
      return PTO_STATUS_TASK_FAILED;
    }
  write_all (number, task->sum, at);
  task->has_worked = true;
  return 0;
}

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_TASK)
    return run_task (data, call, failure);
  world_step (world_random (200000));
  return 0;
}

/* --- lives --- */

static struct life *
add_life (uint32_t child)
{
  struct life *life = &test.lives[test.n_lives];

  if (++test.n_lives == LIVES_MAX)
    fail_seed ("it does not come to an end");
  total.lives++;
  *life = (struct life){ .child = child, .is_touched = test.profile.damages };
  test.current[child] = life;
  return life;
}

static void
live (void *data)
{
  struct life *life = data;
  struct pto_child *child = &test.own.children[life->child];
  struct pto_server server = { .serve = serve, .data = life };

  if (life->bridge != NULL)
    bridge_get_server (life->bridge, &server);
  server.probe = NULL;
  pto_mailbox_serve (test.own.exec, child->link.mailbox, test.own.hub, life->child, false, &server);
}

void
begin_life (uint32_t child)
{
  struct life *life = add_life (child);

  if (child < test.profile.n_remotes)
    life->bridge = bridge_new (child, test.writes);
  life->process = process_new (child < test.profile.n_remotes ? "bridge" : "local", live, life);
}

struct bridge *
test_get_bridge (void)
{
  return ((struct life *) process_data (process_current ()))->bridge;
}

bool
test_launch (int *near_end, int *pid)
{
  struct life *life = process_data (process_current ());
  struct link_config config = test.profile.link;

  *pid = 0;
  if (test.profile.kills && !test.calms && world_chance (20))
    {
      life->is_touched = true;
      return false;
    }
  if (test.profile.cuts && !test.calms && world_chance (4))
    {
      config.cut_after = world_random (20000);
      life->is_touched = true;
    }
  life->far = far_new (serve, life);
  life->far_process = process_new ("far", far_main, life->far);
  life->link = link_new (&config, life->process, life->far_process, near_end);
  if (world_chance (2))
    *pid = process_pid (life->far_process);
  return true;
}

void
free_life (struct life *life)
{
  if (life->bridge != NULL)
    bridge_free (life->bridge);
  if (life->far != NULL)
    {
      far_free (life->far, life->far_process);
      process_free (life->far_process);
    }
  process_free (life->process);
  if (life->link != NULL)
    link_free (life->link);
}

/* --- as the pool knows them --- */

static void
describe (const struct pto_child *child, char *text, size_t size, char *words, size_t words_size)
{
  snprintf (text, size, "died");
  if (words != NULL)
    snprintf (words, words_size, "ouch");
}

static void
kill_child (struct pto_child *child, const char *why)
{
  struct life *life = test.current[child->index];

  if (!life->is_touched && !test.is_cancelled)
    fail_seed ("child %u is killed, to which nothing was done: %s", child->index, why);
  life->is_touched = true;
  process_kill (life->process);
}

static void
refused (struct pto_child *child, const struct pto_failure *failure)
{
  if (!test.current[child->index]->is_touched)
    fail_seed ("child %u does not start: %s", child->index, failure->text);
}

static void
changed (struct pto_child *child)
{
}

static bool
begin (struct pto_child *child)
{
  begin_life (child->index);
  return true;
}

const struct pto_child_ops det_child_ops = { .describe = describe,
                                             .kill = kill_child,
                                             .refused = refused,
                                             .changed = changed,
                                             .begin = begin };

bool
is_ever_touched (uint32_t child)
{
  for (uint32_t i = 0; i < test.n_lives; i++)
    if (test.lives[i].child == child && test.lives[i].is_touched)
      return true;
  return false;
}

/* --- who looks after things --- */

void
tick (void *data)
{
  while (!test.stops)
    {
      world_sleep (TICK_NS);
      if (test.pace != PTO_PACE_IDLE)
        pto_pool_tick (test.own.pool, TICK_NS);
    }
}

/* Finds the dead, a little later. */
void
patrol (void *data)
{
  while (!test.stops)
    {
      world_sleep (PATROL_NS);
      for (uint32_t c = 0; c < test.own.n_children; c++)
        {
          struct life *life = test.current[c];

          if (life == NULL || life->is_found || !process_is_over (life->process))
            continue;
          life->is_found = true;
          pto_child_found_dead (&test.own.children[c]);
          pto_hub_mark (test.own.exec, test.own.hub, c);
        }
    }
}

/* So much longer than the lease nobody is there any more: what is under way there has been given a
 * moment to end. */
#define GRACE (300 * MS)

/* Less than that. */
static uint64_t
random_time (uint64_t ns)
{
  return world_random ((uint32_t) (ns / US)) * US + world_random ((uint32_t) US);
}

/* Short of what makes anybody suspect, short of the lease, beyond it, or until both must have given
 * up. Who has just stood still may not have been heard of since. */
static void
freeze (struct life *life)
{
  uint64_t suspect = test.profile.ends.suspect * MS;
  uint64_t lease = test.profile.ends.lease * MS;
  uint64_t time[] = { 1 + random_time (suspect), suspect + random_time (lease / 3),
                      lease / 2 + random_time (2 * lease), 3 * lease + GRACE };
  uint32_t kind = world_random (G_N_ELEMENTS (time));
  enum pto_life before = pto_child_life (&test.own.children[life->child]);
  /* Begin and end have limits of their own. */
  bool works = before == PTO_LIFE_IDLE || before == PTO_LIFE_BUSY;

  if (kind >= 2 || (life->thawed_at > 0 && world_now () - life->thawed_at < lease))
    life->is_touched = true;
  link_freeze (life->link, true);
  life->frozen_at = world_now ();
  world_sleep (time[kind]);
  if (kind == 3 && works && !test.closes
      && !(process_is_dead (life->process) && process_is_dead (life->far_process)))
    fail_seed ("somebody outlives the lease");
  link_freeze (life->link, false);
  life->frozen_at = 0;
  life->thawed_at = world_now ();
}

static void
do_something (struct life *life)
{
  bool is_far = life->link != NULL && !link_is_over (life->link);

  switch (world_random (4))
    {
    case 0:
      if (test.profile.cuts && is_far)
        {
          life->is_touched = true;
          total.faults++;
          link_cut (life->link);
        }
      break;
    case 1:
      if (test.profile.freezes && is_far)
        {
          total.faults++;
          freeze (life);
        }
      break;
    case 2:
      if (test.profile.kills && is_far)
        {
          life->is_touched = true;
          total.faults++;
          process_kill (life->far_process);
        }
      break;
    default:
      if (test.profile.kills)
        {
          life->is_touched = true;
          total.faults++;
          process_kill (life->process);
        }
    }
}

void
harm (void *data)
{
  for (uint32_t i = 0; i < test.profile.faults && !test.calms; i++)
    {
      struct life *life;

      world_sleep (world_random ((uint32_t) (8 * MS)));
      life = test.current[world_random (test.own.n_children)];
      if (!test.calms && life != NULL && !process_is_dead (life->process))
        do_something (life);
    }
}
