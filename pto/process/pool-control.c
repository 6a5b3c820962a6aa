/* pool-control.c: what are children asked besides tasks, who is still to be asked, and who has said
 * what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-private.h"

#include "exec/pto-atomic.h"

#include <stdlib.h>
#include <string.h>

/* A child that registers what is not wanted any more, and hears of it only when it is done. */
#define CONTROL_NS UINT64_C (30000000)

/* Is there somebody to ask? The dead are closed, and know nothing that they could forget. Who is
 * being begun again is not dead, whatever this side has heard of it: it is asked once it has
 * started. */
static bool
needs (const struct pto_control *control, const struct pto_child *child)
{
  /* Relaxed: who has asked has seen the begin, and the request's acquire brings it along. */
  enum pto_life life = pto_child_life (child);

  return life != PTO_LIFE_GONE
         && (life != PTO_LIFE_LOST || control->request == PTO_REQUEST_REGISTER
             || control->request == PTO_REQUEST_MEMORY);
}

static bool
has_targets (const struct pto_control *control)
{
  for (uint32_t word = 0; word < PTO_POOL_WORDS; word++)
    if (control->targets[word] != 0)
      return true;
  return false;
}

/* All have said yes. It keeps its place before what was asked later. A cancel that comes now is too
 * late, and is followed by an UNREGISTER. */
static void
decide (struct pto_pool *pool, struct pto_control *control)
{
  uint64_t targets[PTO_POOL_WORDS];

  memcpy (targets, control->accepted, sizeof targets);
  control->request = PTO_REQUEST_COMMIT;
  memcpy (control->targets, targets, sizeof targets);
  /* Nothing that the caller reads changes from here on. */
  pto_shared_set (pool->peers, &control->done, 1);
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    if (pto_pool_has_bit (targets, i))
      pto_pool_feed (pool, &pool->stations[i]);
}

/* One target less to wait for. The last one gives the request back: nothing of it is touched then.
 */
static void
settle_control (struct pto_pool *pool, struct pto_control *control)
{
  struct pto_control **link = &pool->controls;

  if (has_targets (control) || control->outstanding > 0)
    return;
  /* Relaxed: whoever gives it up takes it back in any case. */
  if (control->request == PTO_REQUEST_REGISTER && control->refused == UINT32_MAX
      && pto_load_relaxed (&control->cancel) == 0)
    {
      decide (pool, control);
      if (has_targets (control) || control->outstanding > 0)
        return;
    }
  while (*link != control)
    link = &(*link)->next;
  *link = control->next;
  if (control->request != PTO_REQUEST_COMMIT)
    pto_shared_set (pool->peers, &control->done, 1);
  pto_control_unref (control);
}

/* The first no, or death: nobody else is asked what would only have to be taken back. */
static void
refuse_control (struct pto_control *control, const struct pto_child *child, bool lost)
{
  control->refused = child->index;
  control->lost = lost;
  if (control->request == PTO_REQUEST_REGISTER)
    memset (control->targets, 0, sizeof control->targets);
  if (!lost)
    {
      control->status = (enum pto_status) pto_link_answer (&child->link, &control->failure);
      return;
    }
  memset (&control->failure, 0, sizeof control->failure);
  control->failure.code = PTO_STATUS_WORKER_LOST;
  control->status = (enum pto_status) PTO_STATUS_WORKER_LOST;
  child->ops->describe (child, control->failure.text, sizeof control->failure.text, NULL, 0);
  control->failure.bytes = (uint32_t) strlen (control->failure.text);
}

struct pto_control *
pto_pool_next_control (const struct pto_pool *pool, const struct pto_child *child)
{
  struct pto_control *control = pool->controls;

  while (control != NULL && !pto_pool_has_bit (control->targets, child->index))
    control = control->next;
  return control;
}

bool
pto_pool_is_to_close (const struct pto_pool *pool, const struct pto_child *child)
{
  for (const struct pto_control *control = pool->controls; control != NULL; control = control->next)
    if (control->request == PTO_REQUEST_CLOSE && pto_pool_has_bit (control->targets, child->index))
      return true;
  return false;
}

void
pto_pool_post_control (struct pto_pool *pool, struct pto_station *station,
                       struct pto_control *control)
{
  struct pto_child *child = station->child;
  bool has_body = control->request != PTO_REQUEST_COMMIT;
  struct pto_letter letter
      = { .request = control->request,
          .bytes = has_body ? (uint32_t) control->bytes : 0,
          .far_body = has_body && control->far ? (uint64_t) (uintptr_t) control->body : 0 };

  pto_pool_set_bit (control->targets, child->index, false);
  control->outstanding++;
  station->control = control;
  memcpy (pto_link_digest (&child->link), control->digest, PTO_DIGEST_BYTES);
  if (letter.bytes > 0 && !control->far)
    memcpy (pto_link_body (&child->link), control->body, control->bytes);
  pto_pool_record_asked (pool, station);
  pto_pool_begin_request (pool, child, control->request);
  pto_link_post (pool->peers, &child->link, &letter);
}

/* It ends by request, and is begun again with all that is under way from birth. */
static void
release_from_agreements (struct pto_pool *pool, const struct pto_child *child)
{
  for (struct pto_control *control = pool->controls; control != NULL; control = control->next)
    if (control->request == PTO_REQUEST_REGISTER)
      pto_pool_set_bit (control->accepted, child->index, false);
}

void
pto_pool_answer_control (struct pto_pool *pool, struct pto_station *station, bool yes, bool lost)
{
  const struct pto_child *child = station->child;
  struct pto_control *control = station->control;

  station->control = NULL;
  control->outstanding--;
  if (control->request == PTO_REQUEST_CLOSE)
    release_from_agreements (pool, child);
  if (control->request == PTO_REQUEST_COMMIT)
    ; /* whoever has asked reads what it came to already */
  else if (yes)
    pto_pool_set_bit (control->accepted, child->index, true);
  else if (control->refused == UINT32_MAX)
    refuse_control (control, child, lost);
  settle_control (pool, control);
}

void
pto_pool_drop_dead (struct pto_pool *pool, const struct pto_child *child)
{
  struct pto_control *next;

  for (struct pto_control *control = pool->controls; control != NULL; control = next)
    {
      next = control->next;
      if (!needs (control, child))
        pto_pool_set_bit (control->targets, child->index, false);
      if (control->request == PTO_REQUEST_REGISTER
          && pto_pool_has_bit (control->accepted, child->index))
        {
          pto_pool_set_bit (control->accepted, child->index, false);
          if (control->refused == UINT32_MAX)
            {
              control->agreed = true;
              refuse_control (control, child, true);
            }
        }
      settle_control (pool, control);
    }
}

/* New control requests, oldest first. */
static void
take_new (struct pto_pool *pool)
{
  struct pto_control *stack;
  struct pto_control *queue = NULL;
  struct pto_control **end = &pool->controls;

  if (pto_load_relaxed (&pool->incoming) == NULL)
    return;
  /* Acquire pairs with the release in pto_pool_control(). */
  stack = pto_exchange_acq_rel (&pool->incoming, NULL);
  while (stack != NULL)
    {
      struct pto_control *next = stack->next;

      stack->next = queue;
      queue = stack;
      stack = next;
    }
  while (*end != NULL)
    end = &(*end)->next;
  *end = queue;
  while (queue != NULL)
    {
      struct pto_control *control = queue;

      /* It may be given back below. */
      queue = control->next;
      if (control->last)
        pto_pool_begin_to_close (pool);
      for (uint32_t i = 0; i < PTO_CHILDREN_MAX; i++)
        if (i >= pool->config.n_children || !needs (control, &pool->config.children[i]))
          pto_pool_set_bit (control->targets, i, false);
      for (uint32_t i = 0; i < pool->config.n_children; i++)
        if (pto_pool_has_bit (control->targets, i))
          pto_pool_feed (pool, &pool->stations[i]);
      settle_control (pool, control);
    }
}

/* Nobody waits for what the child does. Copies and traces have memory of their own, so a slow one
 * may go on, with all that it has, as long as nobody waits for its end. */
static void
stop_control (struct pto_pool *pool, const struct pto_control *control, struct pto_child *child)
{
  if ((control->request == PTO_REQUEST_MEMORY || control->request == PTO_REQUEST_TRACE)
      && !pool->closing)
    pto_link_cancel (&child->link);
  else
    pto_pool_cancel_child (pool, child, CONTROL_NS);
}

/* Control requests that are not wanted any more: who was not asked yet is not asked. */
static void
drop_unwanted (struct pto_pool *pool)
{
  struct pto_control *next;

  for (struct pto_control *control = pool->controls; control != NULL; control = next)
    {
      next = control->next;
      /* What is decided is done: it is taken back by what comes behind it. */
      if (pto_load_relaxed (&control->cancel) == 0 || control->request == PTO_REQUEST_COMMIT)
        continue;
      memset (control->targets, 0, sizeof control->targets);
      for (uint32_t i = 0; i < pool->config.n_children; i++)
        if (pool->stations[i].control == control)
          stop_control (pool, control, &pool->config.children[i]);
      settle_control (pool, control);
    }
}

void
pto_pool_take_controls (struct pto_pool *pool)
{
  take_new (pool);
  drop_unwanted (pool);
}

static void
free_controls (struct pto_control *control)
{
  while (control != NULL)
    {
      struct pto_control *next = control->next;

      pto_control_unref (control);
      control = next;
    }
}

void
pto_pool_free_controls (struct pto_pool *pool)
{
  free_controls (pool->controls);
  free_controls (pto_load_acquire (&pool->incoming));
}

/* --- any thread --- */

struct pto_control *
pto_control_new (enum pto_request request, const uint8_t *digest, const void *body, uint64_t bytes)
{
  struct pto_control *control;
  uint64_t copied = bytes <= PTO_LINK_BODY ? bytes : 0;

  control = calloc (1, sizeof *control + copied);
  if (control == NULL)
    return NULL;
  control->request = request;
  control->refused = UINT32_MAX;
  control->bytes = bytes;
  control->body = control + 1;
  if (copied > 0)
    memcpy (control->body, body, copied);
  if (digest != NULL)
    memcpy (control->digest, digest, PTO_DIGEST_BYTES);
  pto_word_init (&control->done, 0, false);
  atomic_init (&control->cancel, 0);
  atomic_init (&control->references, 1);
  return control;
}

void
pto_control_unref (struct pto_control *control)
{
  /* Acquire and release: the last one sees all that the others did with it. */
  if (pto_fetch_sub_acq_rel (&control->references, 1) != 1)
    return;
  if (control->free_body != NULL)
    control->free_body (control->body, control->bytes);
  if (control->free_left != NULL)
    control->free_left (control->left, control->left_bytes);
  free (control);
}

void
pto_pool_control (struct pto_pool *pool, struct pto_control *control)
{
  pto_fetch_add_relaxed (&control->references, 1);
  control->next = pto_load_relaxed (&pool->incoming);
  /* Release pairs with the acquire in take_controls(). */
  while (!pto_cas_acq_rel (&pool->incoming, &control->next, control))
    ;
  pto_pool_ring (pool);
}
