/* level-inspect.c: what does each child of a level do, as somebody sees it who has no part in its
 * run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The task of a child's place is written before the request is posted and cleared behind its
 * answer. So what stands there while one and the same request is not answered, by the number of it
 * and the answer in the mailbox, is the task of that request.
 */
#include "level-inspect.h"

#include "core/inspect-read.h"
#include "exec/translate.h"
#include "level-private.h"
#include "write-log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
pto_level_queue_name (const struct pto_level *level, uint32_t queue, char *text, size_t size)
{
  const struct pto_pool *pool = level->pool;

  if (queue >= pool->n_classes)
    snprintf (text, size, N_ ("nobody"));
  else if (pool->classes[queue].kind == PTO_CHILD_SUB)
    snprintf (text, size, N_ ("SUB workers"));
  else if (pool->classes[queue].level == 2)
    snprintf (text, size, N_ ("chips"));
  else
    snprintf (text, size, N_ ("workers of level %u"), pool->classes[queue].level);
}

static const char *
name_life (enum pto_life life)
{
  static const char *const names[] = {
    [PTO_LIFE_STARTING] = N_ ("starting"), [PTO_LIFE_IDLE] = N_ ("idle"),
    [PTO_LIFE_BUSY] = N_ ("busy"),         [PTO_LIFE_ASKED] = N_ ("asked to stop"),
    [PTO_LIFE_ENDING] = N_ ("ending"),     [PTO_LIFE_KILLED] = N_ ("killed"),
    [PTO_LIFE_BEGUN] = N_ ("starting"),    [PTO_LIFE_LOST] = N_ ("lost"),
    [PTO_LIFE_BEGINNING] = N_ ("lost"),    [PTO_LIFE_GONE] = N_ ("gone"),
  };

  return names[life];
}

static const char *
name_request (uint32_t request)
{
  switch (request)
    {
    case PTO_REQUEST_START:
      return N_ ("start");
    case PTO_REQUEST_TASK:
      return "task"; /* which is marked elsewhere, with its plural */
    case PTO_REQUEST_REGISTER:
    case PTO_REQUEST_COMMIT:
    case PTO_REQUEST_UNREGISTER:
      return N_ ("registration");
    case PTO_REQUEST_CLOSE:
      return N_ ("close");
    case PTO_REQUEST_TRACE:
      return N_ ("trace");
    case PTO_REQUEST_MEMORY:
    case PTO_REQUEST_FETCH:
      return N_ ("memory");
    default:
      return NULL;
    }
}

static uint64_t
age (uint64_t now, uint64_t since)
{
  return now > since ? now - since : 0;
}

static void
look_at_task (const struct pto_level *level, const struct pto_station *station, uint64_t now,
              struct pto_child_look *look)
{
  const struct pto_engine *engine = &level->machine.engine;
  const struct pto_child *child = station->child;
  /* Acquire, by the look at the answer: what was written before the post. */
  uint32_t number = atomic_load_explicit (&child->link.number, memory_order_acquire);
  const struct pto_slot *slot;
  uint64_t posted;
  uint32_t request;

  if (pto_link_is_idle (&child->link))
    return;
  slot = pto_peek (&station->endpoint.running);
  request = pto_peek (&child->request);
  look->request = name_request (request);
  look->member = pto_peek (&station->endpoint.member);
  look->for_ns = age (now, pto_peek (&child->asked_at));
  look->sign_ns = age (now, pto_peek (&child->since));
  posted = pto_peek (&station->posted);
  look->runs = request == PTO_REQUEST_TASK && slot != NULL
               && pto_look_at_task (engine, pto_peek (&slot->id), &look->task);
  if (look->runs)
    look->n_lost = pto_peek (&station->n_lost);
  /* A record knows it better. */
  if (look->runs && pto_peek (&level->pool->runs) != NULL)
    {
      uint64_t stamp = pto_engine_stamp (engine);
      struct pto_scale scale = { .from = stamp, .to = pto_wall_clock () - engine->time_base };

      look->for_ns = pto_scale (age (stamp, posted), &scale);
    }
  atomic_thread_fence (memory_order_acquire);
  if (atomic_load_explicit (&child->link.number, memory_order_relaxed) != number)
    {
      look->runs = false;
      look->request = NULL;
    }
}

static void
look_at_child (struct pto_level *level, uint32_t index, uint64_t now, struct pto_child_look *look)
{
  const struct pto_child *child = &level->family.children[index];
  const struct pto_body *body = &level->family.bodies[index];
  enum pto_life life = pto_child_life (child);

  memcpy (look->path, child->path, sizeof look->path);
  look->kind = child->kind;
  look->level = child->level;
  look->number = child->number;
  look->thread = child->thread;
  look->life = name_life (life);
  look->stopped = atomic_load_explicit (&child->found, memory_order_relaxed) == PTO_FOUND_STOPPED;
  look->lives = atomic_load_explicit (&child->lives, memory_order_relaxed);
  if (!child->thread && pthread_mutex_trylock (&level->family.lock) == 0)
    {
      if (!body->process.dead)
        look->pid = (int) body->process.pid;
      pthread_mutex_unlock (&level->family.lock);
    }
  look->far = level->writes != NULL && body->config.far;
  if (look->far)
    {
      struct pto_traffic *traffic = pto_writes_traffic (level->writes, index);

      look->sent = atomic_load_explicit (&traffic->sent, memory_order_relaxed);
      look->received = atomic_load_explicit (&traffic->received, memory_order_relaxed);
      look->saved = atomic_load_explicit (&traffic->saved, memory_order_relaxed);
      look->silences = atomic_load_explicit (&traffic->silences, memory_order_relaxed);
      look->suspect = pto_child_is_there (child) && pto_child_is_suspect (child);
      look->address = body->config.address;
      if (pto_child_is_there (child))
        look->far_pid = atomic_load_explicit (&traffic->process, memory_order_relaxed);
    }
  if (life == PTO_LIFE_STARTING
      || (level->machine.door.running
          && (life == PTO_LIFE_BUSY || life == PTO_LIFE_ASKED || life == PTO_LIFE_KILLED)))
    look_at_task (level, &level->pool->stations[index], now, look);
}

struct pto_level_look *
pto_level_look (struct pto_level *level)
{
  struct pto_level_look *look = calloc (1, sizeof *look);
  uint64_t now;

  if (look == NULL || !pto_look_begin (&level->machine))
    {
      free (look);
      return NULL;
    }
  look->n_children = level->family.n_children;
  look->children = calloc (look->n_children + 1, sizeof *look->children);
  if (look->children != NULL)
    {
      now = pto_peek (&level->pool->time)
            + atomic_load_explicit (&level->pool->ticked, memory_order_relaxed);
      pto_look (&level->machine, &look->run);
      look->restarts = pto_peek (&level->pool->restarts);
      look->retried = pto_peek (&level->pool->retried);
      for (uint32_t i = 0; i < look->n_children; i++)
        look_at_child (level, i, now, &look->children[i]);
    }
  pto_look_end (&level->machine);
  if (look->children != NULL)
    return look;
  free (look);
  return NULL;
}

bool
pto_level_count (struct pto_level *level, bool is_inside, struct pto_look_counts *counts)
{
  if (!is_inside)
    return pto_look_count_from_outside (&level->machine, counts);
  pto_look_count (&level->machine, counts);
  return true;
}

void
pto_level_look_free (struct pto_level_look *look)
{
  if (look == NULL)
    return;
  free (look->children);
  free (look);
}
