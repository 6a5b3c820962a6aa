/* level-control.c: what is asked of a level's children besides tasks, by any thread, and who waits
 * for it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-private.h"

#include "core/submit.h"
#include "exec/translate.h"
#include "arena.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_NS 20000u

void
pto_level_begin_lost (struct pto_level *level)
{
  if (!pto_pool_has_lost (level->pool))
    return;
  if (pto_load_acquire (&level->guest) == (uint64_t) pthread_self ())
    pto_pool_begin_lost (level->pool);
  else if (pthread_mutex_trylock (&level->guest_lock) == 0)
    {
      pto_exec_enter (level->machine.engine.exec);
      pto_pool_begin_lost (level->pool);
      pto_exec_leave (level->machine.engine.exec);
      pthread_mutex_unlock (&level->guest_lock);
    }
}

/* Waits for a control request; false: it was cancelled, and goes on without us. */
static bool
await (struct pto_level *level, struct pto_control *control, bool (*cancelled) (void *data),
       void *data)
{
  while (pto_word_get (&control->done) == 0)
    {
      pto_level_begin_lost (level);
      if (cancelled != NULL && cancelled (data))
        {
          pto_store_release (&control->cancel, 1);
          pto_bell_ring (NULL, &level->family.hub->bell);
          return false;
        }
      pto_shared_park (NULL, &control->done, 0, SPIN_NS, pto_wall_clock () + PTO_LEVEL_POLL_NS);
    }
  return true;
}

/* Waits until the child has begun a life after the given one, or will have none; false: cancelled.
 */
static bool
await_life (struct pto_level *level, const struct pto_child *child, uint32_t life,
            bool (*cancelled) (void *data), void *data)
{
  while (!pto_child_has_started_since (child, life) && !pto_child_is_gone (child))
    {
      pto_level_begin_lost (level);
      if (cancelled != NULL && cancelled (data))
        return false;
      /* Whose turn it is to begin children may change without a word: a run ends. */
      pto_family_wait (&level->family, child, life, PTO_LEVEL_POLL_NS);
    }
  return true;
}

static void
free_from_arena (void *body, uint64_t bytes)
{
  pto_arena_free ((uint64_t) (uintptr_t) body, bytes);
}

static void
free_from_heap (void *body, uint64_t bytes)
{
  free (body);
}

static bool
are_threads (const struct pto_level *level, const struct pto_level_targets *targets)
{
  for (uint32_t i = 0; i < level->family.n_children; i++)
    if (pto_pool_has_bit (targets->bits, i) && !level->family.children[i].thread)
      return false;
  return true;
}

/* A body that no link takes, to where children see it. */
static bool
place_body (const struct pto_level *level, struct pto_control *control,
            const struct pto_level_targets *targets, const void *body)
{
  if (control->bytes <= PTO_LINK_BODY)
    return true;
  control->far = true;
  /* Thread children see everything. */
  if (!are_threads (level, targets))
    {
      control->body = (void *) (uintptr_t) pto_arena_alloc (control->bytes);
      control->free_body = free_from_arena;
    }
  else
    {
      control->body = malloc (control->bytes);
      control->free_body = free_from_heap;
    }
  if (control->body == NULL)
    {
      control->free_body = NULL;
      return false;
    }
  memcpy (control->body, body, control->bytes);
  return true;
}

/* Sends it; NULL: there was no memory for it. */
static struct pto_control *
send_control (struct pto_level *level, enum pto_request request,
              const struct pto_level_targets *targets, const uint8_t *digest, const void *body,
              uint64_t bytes, struct pto_report *report)
{
  struct pto_control *control = pto_control_new (request, digest, body, bytes);

  if (control == NULL || !place_body (level, control, targets, body))
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY,
                      _ ("no room for the %" PRIu64 " bytes of a registration: set arena to more"),
                      bytes);
      if (control != NULL)
        pto_control_unref (control);
      return NULL;
    }
  memcpy (control->targets, targets->bits, sizeof control->targets);
  pto_pool_control (level->pool, control);
  return control;
}

static enum pto_status
report_refusal (const struct pto_level *level, const struct pto_control *control,
                struct pto_report *report)
{
  const char *path;

  if (control->refused == UINT32_MAX)
    return PTO_OK;
  path = level->family.children[control->refused].path;
  if (control->agreed)
    return pto_report_set (report, (enum pto_status) PTO_STATUS_WORKER_LOST,
                           _ ("%s had agreed to the registration, and %s before all others had; "
                              "nothing was registered"),
                           path, control->failure.text);
  if (control->lost)
    return pto_report_set (report, (enum pto_status) PTO_STATUS_WORKER_LOST,
                           _ ("%s %s while it registered it; nothing was registered"), path,
                           control->failure.text);
  return pto_report_set (report, control->status,
                         _ ("registration on %s refused: %s; nothing was registered"), path,
                         control->failure.text);
}

bool
pto_level_is_gone (const struct pto_level *level, uint32_t child)
{
  return pto_child_is_gone (&level->family.children[child]);
}

bool
pto_level_has_memory (const Tensor *tensor)
{
  Tensor located = *tensor;

  /* Of what is nowhere any more the submit says why. */
  return pto_engine_locate (&located) != NULL || located.buffer.addr != 0;
}

enum pto_status
pto_level_control (struct pto_level *level, enum pto_request request,
                   const struct pto_level_targets *targets, const uint8_t *digest, const void *body,
                   uint64_t bytes, bool (*cancelled) (void *data), void *data,
                   struct pto_report *report)
{
  struct pto_control *control = send_control (level, request, targets, digest, body, bytes, report);
  enum pto_status status = PTO_OK;
  struct pto_report ignored = { 0 };

  if (control == NULL)
    return PTO_STATUS_NO_MEMORY;
  if (request == PTO_REQUEST_REGISTER)
    status
        = await (level, control, cancelled, data)
              ? report_refusal (level, control, report)
              : pto_report_set (report, PTO_STATUS_CANCELLED, _ ("the registration was cancelled"));
  pto_control_unref (control);
  if (status != PTO_OK)
    pto_level_control (level, PTO_REQUEST_UNREGISTER, targets, digest, NULL, 0, NULL, NULL,
                       &ignored);
  return status;
}

/* As await(). Cancelled: what was lent is the request's from then on. */
static bool
await_or_leave (struct pto_level *level, struct pto_control *control,
                const struct pto_level_lent *lent, bool (*cancelled) (void *data), void *data)
{
  if (await (level, control, cancelled, data))
    return true;
  control->free_left = lent->free;
  control->left = lent->address;
  control->left_bytes = lent->bytes;
  return false;
}

bool
pto_level_gather (struct pto_level *level, const struct pto_level_targets *targets,
                  const void *body, uint64_t bytes, const struct pto_level_lent *lent,
                  bool (*cancelled) (void *data), void *data)
{
  struct pto_report ignored = { 0 };
  struct pto_control *control
      = send_control (level, PTO_REQUEST_TRACE, targets, NULL, body, bytes, &ignored);
  bool done;

  if (control == NULL)
    return true;
  done = await_or_leave (level, control, lent, cancelled, data);
  pto_control_unref (control);
  return done;
}

static struct pto_control *
send_to_one (struct pto_level *level, uint32_t child, const void *body, uint64_t bytes,
             struct pto_report *report)
{
  struct pto_level_targets targets = { 0 };

  pto_level_add_target (&targets, child);
  return send_control (level, PTO_REQUEST_MEMORY, &targets, NULL, body, bytes, report);
}

void
pto_level_tell (struct pto_level *level, uint32_t child, const void *body, uint64_t bytes)
{
  struct pto_report ignored = { 0 };
  struct pto_control *control = send_to_one (level, child, body, bytes, &ignored);

  if (control != NULL)
    pto_control_unref (control);
}

bool
pto_level_begin_ask (struct pto_level *level, uint32_t child, const void *body, uint64_t bytes,
                     struct pto_level_asked *asked, struct pto_report *report)
{
  asked->child = child;
  asked->control = send_to_one (level, child, body, bytes, report);
  return asked->control != NULL;
}

enum pto_status
pto_level_end_ask (struct pto_level *level, const struct pto_level_asked *asked,
                   const struct pto_level_lent *lent, bool (*cancelled) (void *data), void *data,
                   struct pto_report *report)
{
  struct pto_control *control = asked->control;
  uint32_t child = asked->child;
  const char *path = level->family.children[child].path;
  enum pto_status status = PTO_OK;

  if (!await_or_leave (level, control, lent, cancelled, data))
    status = pto_report_set (report, PTO_STATUS_CANCELLED,
                             _ ("the use of memory of %s was cancelled"), path);
  else if (control->refused != UINT32_MAX && !control->lost)
    status = pto_report_set (report, control->status, "%s: %s", path, control->failure.text);
  else if (control->refused != UINT32_MAX)
    status = pto_report_set (report, (enum pto_status) PTO_STATUS_WORKER_LOST,
                             _ ("%s %s while its memory was used"), path, control->failure.text);
  else if (!pto_pool_has_bit (control->accepted, child))
    status = pto_report_set (report, (enum pto_status) PTO_STATUS_WORKER_LOST,
                             _ ("%s is gone, and so is its memory"), path);
  pto_control_unref (control);
  return status;
}

enum pto_status
pto_level_renew (struct pto_level *level, const struct pto_level_targets *targets,
                 bool (*cancelled) (void *data), void *data, struct pto_report *report)
{
  struct pto_control *control = pto_control_new (PTO_REQUEST_CLOSE, NULL, NULL, 0);
  uint32_t lives[PTO_CHILDREN_MAX];
  bool unwanted;

  if (control == NULL)
    return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                           _ ("no memory to begin children of %s again"), level->config.path);
  for (uint32_t i = 0; i < level->family.n_children; i++)
    {
      const struct pto_child *child = &level->family.children[i];

      lives[i] = UINT32_MAX;
      if (!pto_pool_has_bit (targets->bits, i) || child->thread || pto_child_is_gone (child))
        continue;
      /* Before the request: a life that it does not reach comes after this one. */
      lives[i] = pto_load_acquire (&child->lives);
      pto_pool_set_bit (control->targets, i, true);
    }
  pto_pool_control (level->pool, control);
  unwanted = !await (level, control, cancelled, data);
  pto_control_unref (control);
  for (uint32_t i = 0; i < level->family.n_children && !unwanted; i++)
    if (lives[i] != UINT32_MAX)
      {
        const struct pto_child *child = &level->family.children[i];

        unwanted = !await_life (level, child, lives[i], cancelled, data);
        if (!unwanted && !pto_child_has_started_since (child, lives[i]))
          return pto_family_report_start (&level->family, child, report);
      }
  return unwanted
             ? pto_report_set (report, PTO_STATUS_CANCELLED, _ ("the registration was cancelled"))
             : PTO_OK;
}
