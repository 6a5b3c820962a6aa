/* mailbox.c: how does a parent hand one child one request, and get one answer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "mailbox.h"

#include "core/status.h"
#include "exec/pto-atomic.h"
#include "exec/translate.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* How long a child looks for the next request before it sleeps: about what a wake-up costs. */
#define SPIN_NS 20000u
/* No status is as high. */
#define STATUS_END 1000u

/* --- hub --- */

void
pto_hub_mark (struct pto_exec *exec, struct pto_hub *hub, uint32_t index)
{
  /* Release: behind the reply; pairs with the exchange in pto_hub_take(). The ring orders the rest.
   */
  pto_fetch_or_release (&hub->answered[index / 64], UINT64_C (1) << (index % 64));
  pto_bell_ring (exec, &hub->bell);
}

uint64_t
pto_hub_take (struct pto_hub *hub, uint32_t word)
{
  /* Most looks find nothing: only the line is read then. Relaxed: a bit that comes behind this look
   * is followed by a ring. */
  if (pto_load_relaxed (&hub->answered[word]) == 0)
    return 0;
  return pto_exchange_acquire (&hub->answered[word], 0);
}

/* --- parent --- */

void
pto_mailbox_guard (struct pto_mailbox *mailbox)
{
  /* Where pages are larger there is none. */
  mprotect ((char *) mailbox + PTO_MAILBOX_BYTES - PTO_MAILBOX_GUARD, PTO_MAILBOX_GUARD, PROT_NONE);
}

static uint32_t
number_of (const struct pto_link *link)
{
  return pto_load_relaxed (&link->number);
}

void
pto_mailbox_link (struct pto_link *link, struct pto_mailbox *mailbox)
{
  link->mailbox = mailbox;
  atomic_init (&link->number, 0);
  pto_link_reset (link);
}

void
pto_link_reset (struct pto_link *link)
{
  struct pto_mailbox *mailbox = link->mailbox;
  uint32_t number = number_of (link);

  /* All relaxed: nobody else is there; what begins the next child publishes them. */
  pto_word_init (&mailbox->post, number, false);
  pto_store_relaxed (&mailbox->cancel, number - 1);
  mailbox->status = PTO_OK;
  pto_store_relaxed (&mailbox->silent, 0);
  pto_store_relaxed (&mailbox->reply, 2 * number);
}

/* 0: not taken, 1: taken, 2: answered; more: none of a server's. Acquire: pairs with the releases
 * in pto_mailbox_serve(). */
static uint32_t
step_of (const struct pto_link *link)
{
  return pto_load_acquire (&link->mailbox->reply) - (2 * number_of (link) - 2);
}

bool
pto_link_is_idle (const struct pto_link *link)
{
  return step_of (link) == 2;
}

bool
pto_link_is_taken (const struct pto_link *link)
{
  uint32_t step = step_of (link);

  return step == 1 || step == 2;
}

bool
pto_link_is_sound (const struct pto_link *link)
{
  uint32_t step = step_of (link);

  /* A child takes no number but the next: while there is none, post is set right by the next. */
  return step == 2
         || (step < 2 && pto_load_relaxed (&link->mailbox->post.value) == number_of (link));
}

uint32_t
pto_link_answer (const struct pto_link *link, struct pto_failure *failure)
{
  uint32_t status = link->mailbox->status;

  if (status == PTO_OK)
    return PTO_OK;
  pto_failure_copy (failure, &link->mailbox->failure);
  return status < STATUS_END ? status : PTO_STATUS_TASK_FAILED;
}

void
pto_link_post (struct pto_exec *exec, struct pto_link *link, const struct pto_letter *letter)
{
  struct pto_mailbox *mailbox = link->mailbox;
  uint32_t number = number_of (link) + 1;

  mailbox->request = letter->request;
  mailbox->bytes = letter->bytes;
  mailbox->far_body = letter->far_body;
  mailbox->task = letter->task;
  mailbox->terms = letter->terms;
  mailbox->record = letter->record;
  if (letter->config != NULL)
    memcpy (&mailbox->config, letter->config, letter->config_bytes);
  if (letter->checks)
    pto_wire_config_set_check (&mailbox->config, true);
  /* Numbers come again after hours: an old wish must not meet a new request. Relaxed: goes out with
   * the release below. */
  pto_store_relaxed (&mailbox->cancel, number - 1);
  pto_store_relaxed (&link->number, number);
  pto_shared_set (exec, &mailbox->post, number);
}

void
pto_link_cancel (struct pto_link *link)
{
  if (!pto_link_is_idle (link))
    pto_store_relaxed (&link->mailbox->cancel, number_of (link));
}

uint8_t *
pto_link_digest (const struct pto_link *link)
{
  return link->mailbox->digest;
}

uint8_t *
pto_link_body (const struct pto_link *link)
{
  return link->mailbox->body;
}

uint32_t
pto_link_kept_tasks (const struct pto_link *link)
{
  /* Acquire: pairs with the release in pto_call_keep_tasks(). */
  uint64_t kept = pto_load_acquire (&link->mailbox->kept);

  return kept >> 32 == number_of (link) ? (uint32_t) kept : UINT32_MAX;
}

uint64_t
pto_link_failed_tasks (const struct pto_link *link, uint32_t n)
{
  uint64_t all = n < 64 ? (UINT64_C (1) << n) - 1 : UINT64_MAX;
  const struct pto_mailbox *mailbox = link->mailbox;

  if (mailbox->status == PTO_OK)
    return 0;
  return (mailbox->failed & all) != 0 ? mailbox->failed & all : all;
}

uint64_t
pto_link_busy (const struct pto_link *link)
{
  return link->mailbox->busy;
}

void
pto_link_stamps (const struct pto_link *link, uint64_t *began, uint64_t *ended)
{
  *began = link->mailbox->began;
  *ended = link->mailbox->ended;
}

bool
pto_link_task_stamps (const struct pto_link *link, uint32_t number, struct pto_stamps *stamps)
{
  const struct pto_mailbox *mailbox = link->mailbox;
  bool is_there = number < mailbox->n_stamps && number < sizeof mailbox->body / sizeof *stamps;

  if (is_there)
    *stamps = ((const struct pto_stamps *) (const void *) mailbox->body)[number];
  else
    memset (stamps, 0, sizeof *stamps);
  return is_there;
}

uint32_t
pto_link_beat (const struct pto_link *link)
{
  /* Relaxed: only that it changes counts. */
  return pto_load_relaxed (&link->mailbox->beat);
}

bool
pto_link_is_silent (const struct pto_link *link)
{
  /* Relaxed: behind the exchange in pto_hub_take(), or nobody acts upon it. */
  return pto_load_relaxed (&link->mailbox->silent) != 0;
}

/* --- child --- */

bool
pto_call_is_cancelled (const struct pto_call *call)
{
  /* Relaxed: a hint. post does not change while the call runs. */
  return pto_load_relaxed (&call->mailbox->cancel) == pto_load_relaxed (&call->mailbox->post.value);
}

void
pto_call_beat (const struct pto_call *call)
{
  /* Relaxed: only that it changes counts. */
  pto_fetch_add_relaxed (&call->mailbox->beat, 1);
}

void
pto_call_set_silent (const struct pto_call *call, bool silent)
{
  /* Relaxed: the bit is set with release. */
  pto_store_relaxed (&call->mailbox->silent, silent);
  pto_hub_mark (NULL, call->hub, call->index);
}

struct pto_mailbox *
pto_call_mailbox_new (void)
{
  struct pto_mailbox *mailbox
      = (struct pto_mailbox *) aligned_alloc (alignof (struct pto_mailbox), sizeof *mailbox);

  if (mailbox == NULL)
    return NULL;
  memset (mailbox, 0, sizeof *mailbox);
  /* Request 1 is there for ever, and none is cancelled. */
  pto_word_init (&mailbox->post, 1, false);
  return mailbox;
}

void
pto_call_mailbox_cancel (struct pto_mailbox *mailbox, bool cancelled)
{
  /* Relaxed: a hint. */
  pto_store_relaxed (&mailbox->cancel, cancelled ? pto_load_relaxed (&mailbox->post.value) : 0);
}

void
pto_call_mailbox_set_record (struct pto_mailbox *mailbox, uint32_t record, uint64_t task)
{
  mailbox->record = record;
  mailbox->task = task;
}

uint32_t
pto_call_mailbox_beat (const struct pto_mailbox *mailbox)
{
  /* Relaxed: only that it changes counts. */
  return pto_load_relaxed (&mailbox->beat);
}

void
pto_call_pack_head (struct pto_pack *pack, struct pto_call *call, struct pto_call_counts *counts)
{
  const uint8_t *config = (const uint8_t *) call->config;

  PTO_PACK_ARRAY (pack, call->digest, PTO_DIGEST_BYTES);
  PTO_PACK (pack, call->task);
  PTO_PACK (pack, counts->config_bytes);
  PTO_PACK (pack, counts->n_pieces);
  PTO_PACK (pack, counts->n_tensors);
  PTO_PACK (pack, counts->n_scalars);
  PTO_PACK (pack, counts->n_kinds);
  pto_pack_terms (pack, &call->terms);
  PTO_PACK_ARRAY (pack, config, counts->config_bytes);
  call->config = (const struct pto_call_config *) (const void *) config;
}

void
pto_call_pack_args (struct pto_pack *pack, struct pto_call *call,
                    const struct pto_call_counts *counts)
{
  struct pto_args_view *args = &call->args;

  PTO_PACK_ARRAY (pack, args->tensors, counts->n_tensors);
  PTO_PACK_ARRAY (pack, args->scalars, counts->n_scalars);
  PTO_PACK_ARRAY (pack, call->kinds, counts->n_kinds);
  pto_pack_align (pack);
  args->tensor_count = (int32_t) counts->n_tensors;
  args->scalar_count = (int32_t) counts->n_scalars;
}

bool
pto_call_next_task (const struct pto_call *all, uint64_t *at, struct pto_call *one)
{
  struct pto_pack pack = pto_pack_read (all->body + *at, all->bytes - *at);
  struct pto_call_counts counts = { 0 };

  *one = *all;
  one->request = PTO_REQUEST_TASK;
  pto_call_pack_head (&pack, one, &counts);
  if (counts.n_pieces != 0 || (counts.n_kinds != 0 && counts.n_kinds != counts.n_scalars)
      || counts.config_bytes <= offsetof (struct pto_call_config, output_prefix))
    return false;
  pto_call_pack_args (&pack, one, &counts);
  *at += pack.at;
  return !pack.bad;
}

void
pto_call_keep_tasks (const struct pto_call *all, uint32_t n)
{
  /* Relaxed: post does not change while the call runs. */
  uint64_t number = pto_load_relaxed (&all->mailbox->post.value);

  /* Release: pairs with the acquire in pto_link_kept_tasks(). */
  pto_store_release (&all->mailbox->kept, number << 32 | n);
  pto_hub_mark (NULL, all->hub, all->index);
}

void
pto_call_tell_tasks (const struct pto_call *all, uint64_t failed, uint64_t busy)
{
  all->mailbox->failed = failed;
  all->mailbox->busy = busy;
}

void
pto_call_tell_stamps (const struct pto_call *all, uint32_t number, const struct pto_stamps *stamps)
{
  struct pto_mailbox *mailbox = all->mailbox;

  ((struct pto_stamps *) (void *) mailbox->body)[number] = *stamps;
  mailbox->n_stamps = number + 1;
}

uint64_t
pto_call_ticks (void)
{
  return pto_ticks ();
}

uint32_t
pto_call_record (const struct pto_call *call, uint64_t *task)
{
  *task = call->mailbox->task;
  return call->mailbox->record;
}

/* Waits for the given request; false: the server is an orphan. */
static bool
wait_for_request (struct pto_exec *exec, struct pto_mailbox *mailbox, uint32_t number, bool spin,
                  const struct pto_server *server)
{
  uint32_t seen;

  /* Acquire: pairs with the release in pto_link_post(); the request can be read. Of other numbers
   * none is the parent's: it will write its own over it. */
  while ((seen = pto_load_acquire (&mailbox->post.value)) != number)
    {
      /* In two steps: who only looks need not ask the system whether its parent lives. */
      if (spin && exec == NULL
          && pto_shared_park (NULL, &mailbox->post, seen, SPIN_NS, pto_wall_clock () + SPIN_NS)
                 == PTO_PARK_WOKEN)
        continue;
      if (server->is_orphan != NULL && server->is_orphan ())
        return false;
      pto_shared_park (exec, &mailbox->post, seen, 0, PTO_NEVER);
    }
  return true;
}

static uint32_t
serve (struct pto_mailbox *mailbox, struct pto_hub *hub, uint32_t index,
       const struct pto_server *server)
{
  struct pto_call call
      = { .request = (enum pto_request) mailbox->request,
          .digest = mailbox->digest,
          .body = mailbox->far_body != 0 ? (const uint8_t *) (uintptr_t) mailbox->far_body
                                         : mailbox->body,
          .bytes = mailbox->bytes,
          .mailbox = mailbox,
          .hub = hub,
          .index = index };

  /* A server that fails without a word must not be given those of an earlier failure. */
  mailbox->failure.code = 0;
  mailbox->failure.bytes = 0;
  mailbox->failure.detail_bytes = 0;
  mailbox->failure.domain[0] = '\0';
  mailbox->failed = 0;
  mailbox->n_stamps = 0;
  if (mailbox->far_body == 0 && mailbox->bytes > PTO_LINK_BODY)
    {
      pto_failure_set (&mailbox->failure, PTO_STATUS_INVALID_ARGS, NULL,
                       _ ("a body of %u bytes is longer than the mailbox's %u"), mailbox->bytes,
                       PTO_LINK_BODY);
      return PTO_STATUS_INVALID_ARGS;
    }
  if (call.request == PTO_REQUEST_TASK)
    {
      uint64_t blob;

      call.config = &mailbox->config;
      call.terms = mailbox->terms;
      if (!pto_args_view_init (&call.args, call.body, call.bytes))
        {
          pto_failure_set (&mailbox->failure, PTO_STATUS_INVALID_ARGS, NULL,
                           _ ("the arguments do not fit in the %u bytes that were sent"),
                           mailbox->bytes);
          return PTO_STATUS_INVALID_ARGS;
        }
      /* What the scalars were lies behind the blob, a byte each, if it was sent. */
      blob = pto_blob_size (call.args.tensor_count, call.args.scalar_count);
      if (call.bytes - blob >= (uint64_t) call.args.scalar_count)
        call.kinds = call.body + blob;
    }
  return server->serve (server->data, &call, &mailbox->failure);
}

bool
pto_mailbox_serve (struct pto_exec *exec, struct pto_mailbox *mailbox, struct pto_hub *hub,
                   uint32_t index, bool spin, const struct pto_server *server)
{
  /* Relaxed: reply is our own, or of a child that is gone; what began us published both. */
  uint32_t number = pto_load_relaxed (&mailbox->post.value);
  uint32_t request;

  /* Something is posted already: then number is of the one before. */
  if (pto_load_relaxed (&mailbox->reply) != 2 * number)
    number--;
  do
    {
      if (!wait_for_request (exec, mailbox, ++number, spin, server))
        return false;
      request = mailbox->request;
      /* Of another request it is that of an old task, and nobody looks at the two stamps. */
      if (mailbox->record != 0)
        mailbox->began = pto_ticks_ordered ();
      /* Relaxed: for messages only. */
      pto_store_relaxed (&mailbox->reply, 2 * number - 1);
      /* Straight into the mailbox: nobody reads it before the store below. */
      mailbox->status = serve (mailbox, hub, index, server);
      if (mailbox->record != 0)
        mailbox->ended = pto_ticks_ordered ();
      /* Release: pairs with the acquire in pto_link_is_idle(). The one step from "not answered"
       * to "answered"; from here on the next request may be posted, so nothing of the mailbox but
       * its post is touched any more. */
      pto_store_release (&mailbox->reply, 2 * number);
      pto_hub_mark (exec, hub, index);
    }
  while (request != PTO_REQUEST_CLOSE);
  return true;
}
