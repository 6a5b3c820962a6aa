/* single-child.c: a child that is alone: how is it asked, and watched by those who ask?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "single-child.h"

#include "exec/exec-private.h"
#include "exec/os-thread.h"
#include "exec/pto-atomic.h"
#include "exec/translate.h"
#include "child.h"
#include "mailbox.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define MS UINT64_C (1000000)
#define SPIN_LOOKS 32
#define CLOSE_NS (2000 * MS)
#define HUB_BYTES 4096u

struct lane
{
  struct pto_hub *hub;
  struct pto_link link;
  struct pto_server server;
  int event;
};

struct pto_solo
{
  char path[80];
  pto_fork_func fork;
  void *fork_data;
  uint32_t generation; /* of the process that it belongs to */
  uint8_t *shared;     /* hubs, mailboxes, memory */
  size_t shared_size;
  struct lane lanes[PTO_SOLO_LANES];
  bool has_arena;
  struct pto_shared_map *map;

  pthread_mutex_t lock; /* guards all below; innermost. The child never takes it */
  struct pto_process process;
  struct pto_words words;
};

static uint8_t *
memory_of (const struct pto_solo *solo)
{
  return solo->shared + PTO_SOLO_LANES * (HUB_BYTES + PTO_MAILBOX_BYTES);
}

static bool
make_lanes (struct pto_solo *solo, const struct pto_solo_config *config, struct pto_report *report)
{
  uint8_t *mailboxes = solo->shared + PTO_SOLO_LANES * HUB_BYTES;

  for (uint32_t i = 0; i < PTO_SOLO_LANES; i++)
    {
      struct lane *lane = &solo->lanes[i];
      struct pto_mailbox *mailbox
          = (struct pto_mailbox *) (void *) (mailboxes + i * PTO_MAILBOX_BYTES);

      lane->hub = (struct pto_hub *) (void *) (solo->shared + i * HUB_BYTES);
      lane->server = config->servers[i];
      lane->server.is_orphan = pto_process_is_orphan;
      lane->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
      if (lane->event < 0)
        {
          pto_report_set (report, PTO_STATUS_SYSTEM, _ ("%s can not be started: eventfd: %s"),
                          solo->path, strerror (errno));
          return false;
        }
      pto_bell_init (&lane->hub->bell, lane->event);
      pto_mailbox_link (&lane->link, mailbox);
      pto_mailbox_guard (mailbox);
    }
  return true;
}

struct pto_solo *
pto_solo_new (const struct pto_solo_config *config, struct pto_report *report)
{
  struct pto_solo *solo = calloc (1, sizeof *solo);

  _Static_assert(sizeof (struct pto_hub) <= HUB_BYTES, "a page each");
  if (solo == NULL)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for a child"));
      return NULL;
    }
  snprintf (solo->path, sizeof solo->path, "%s", config->path);
  solo->fork = config->fork;
  solo->fork_data = config->fork_data;
  solo->generation = pto_process_generation ();
  pthread_mutex_init (&solo->lock, NULL);
  pto_process_init (&solo->process, solo->path);
  for (uint32_t i = 0; i < PTO_SOLO_LANES; i++)
    solo->lanes[i].event = -1;
  solo->shared_size = PTO_SOLO_LANES * (HUB_BYTES + PTO_MAILBOX_BYTES) + config->bytes;
  solo->shared = mmap (NULL, solo->shared_size, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (solo->shared == MAP_FAILED)
    solo->shared = NULL;
  if (solo->shared == NULL)
    pto_report_set (report, PTO_STATUS_SYSTEM, _ ("%s can not be started: %s: %s"), solo->path,
                    "mmap", strerror (errno));
  if (solo->shared == NULL || !make_lanes (solo, config, report))
    {
      pto_solo_free (solo);
      return NULL;
    }
  solo->has_arena = pto_arena_acquire (config->arena, report) == PTO_OK;
  if (!solo->has_arena)
    {
      pto_solo_free (solo);
      return NULL;
    }
  return solo;
}

void
pto_solo_free (struct pto_solo *solo)
{
  if (solo == NULL)
    return;
  pto_solo_end (solo, false);
  if (solo->has_arena)
    pto_arena_release ();
  for (uint32_t i = 0; i < PTO_SOLO_LANES; i++)
    if (solo->lanes[i].event >= 0)
      close (solo->lanes[i].event);
  if (solo->shared != NULL)
    munmap (solo->shared, solo->shared_size);
  pto_shared_map_free (solo->map);
  pthread_mutex_destroy (&solo->lock);
  free (solo);
}

void *
pto_solo_memory (const struct pto_solo *solo)
{
  return memory_of (solo);
}

bool
pto_solo_is_own (const struct pto_solo *solo)
{
  return solo->generation == pto_process_generation ();
}

/* --- the child --- */

static void
serve_second (void *data)
{
  struct pto_solo *solo = data;
  struct lane *lane = &solo->lanes[1];

  pto_mailbox_serve (NULL, lane->link.mailbox, lane->hub, 0, false, &lane->server);
}

static bool
may_spin (void)
{
  cpu_set_t cpus;

  return sched_getaffinity (0, sizeof cpus, &cpus) == 0 && CPU_COUNT (&cpus) > 1;
}

static int
child_main (void *data)
{
  struct pto_solo *solo = data;
  struct lane *lane = &solo->lanes[0];
  char error[128];
  pthread_t second;

  if (lane->server.probe != NULL)
    lane->server.probe (lane->server.data);
  if (pto_os_thread_start (&second, "pto-control", NULL, serve_second, solo, error, sizeof error)
      != 0)
    {
      fprintf (stderr, "%s\n", error);
      return EXIT_FAILURE;
    }
  return pto_mailbox_serve (NULL, lane->link.mailbox, lane->hub, 0, may_spin (), &lane->server)
             ? 0
             : PTO_EXIT_ORPHAN;
}

/* --- its life --- */

bool
pto_solo_is_alive (const struct pto_solo *solo)
{
  return pto_solo_is_own (solo) && solo->process.pid != 0 && !solo->process.dead;
}

/* With the lock. */
static bool
look (struct pto_solo *solo)
{
  if (pto_process_reap (&solo->process))
    pto_process_take_words (&solo->process, &solo->words);
  return pto_solo_is_alive (solo);
}

bool
pto_solo_look (struct pto_solo *solo)
{
  bool alive;

  pthread_mutex_lock (&solo->lock);
  alive = look (solo);
  pthread_mutex_unlock (&solo->lock);
  return alive;
}

bool
pto_solo_is_stopped (struct pto_solo *solo)
{
  bool stopped;

  pthread_mutex_lock (&solo->lock);
  stopped = pto_process_look (&solo->process);
  pthread_mutex_unlock (&solo->lock);
  return stopped;
}

void
pto_solo_kill (struct pto_solo *solo, const char *why)
{
  pthread_mutex_lock (&solo->lock);
  pto_process_kill (&solo->process, why);
  pthread_mutex_unlock (&solo->lock);
}

static enum pto_status
begin_once (struct pto_solo *solo, struct pto_report *report)
{
  struct pto_process_config config
      = { .fork = solo->fork, .fork_data = solo->fork_data, .main = child_main, .data = solo };
  enum pto_status status;

  for (uint32_t i = 0; i < PTO_SOLO_LANES; i++)
    pto_link_reset (&solo->lanes[i].link);
  pto_solo_post (solo, 0, PTO_REQUEST_START, 0, 0);
  pthread_mutex_lock (&solo->lock);
  status = pto_process_begin (&solo->process, &config, report);
  pthread_mutex_unlock (&solo->lock);
  return status;
}

/* false: it hangs in a lock that another thread of its parent held. */
static bool
await_taken (struct pto_solo *solo, uint64_t limit)
{
  uint64_t until = pto_wall_clock () + limit;

  while (!pto_link_is_taken (&solo->lanes[0].link))
    {
      uint64_t now = pto_wall_clock ();

      if (now >= until)
        return false;
      if (pto_solo_wait (solo, 0, pto_solo_listen (solo, 0), 0, now + MS < until ? now + MS : until)
          != PTO_SOLO_LOOK)
        break;
    }
  return true;
}

/* Whatever rings meanwhile. false: it has died. */
static bool
await_started (struct pto_solo *solo)
{
  enum pto_solo_event event;

  do
    event = pto_solo_wait (solo, 0, pto_solo_listen (solo, 0), 0, PTO_NEVER);
  while (event == PTO_SOLO_LOOK);
  return event == PTO_SOLO_ANSWERED;
}

enum pto_status
pto_solo_begin (struct pto_solo *solo, struct pto_report *report)
{
  struct pto_failure failure = { 0 };
  char text[256], words[256];
  enum pto_status status;
  bool taken = false;

  if (pto_solo_look (solo))
    return PTO_OK;
  pto_solo_end (solo, true);
  pto_shared_map_free (solo->map);
  solo->map = pto_shared_map_new (report);
  if (solo->map == NULL)
    return report->status;
  for (uint32_t i = 0; i <= PTO_CHILD_CAUGHT_MAX && !taken; i++)
    {
      status = begin_once (solo, report);
      if (status != PTO_OK)
        return status;
      taken = await_taken (solo, pto_child_caught_limit (i));
      if (!taken)
        {
          pto_solo_kill (solo, _ ("it hangs in a lock of another thread"));
          pto_solo_end (solo, true);
        }
    }
  if (taken && await_started (solo))
    {
      status = (enum pto_status) pto_solo_answer (solo, 0, &failure);
      if (status == PTO_OK)
        return PTO_OK;
      pto_solo_end (solo, true);
      return pto_report_set (report, status, _ ("%s can not be started: %.1500s"), solo->path,
                             failure.text);
    }
  if (!taken)
    return pto_report_set (report, PTO_STATUS_WORKER_LOST,
                           _ ("%s can not be started: locks of other threads held it each time"),
                           solo->path);
  pto_solo_take_words (solo);
  pto_solo_describe (solo, text, sizeof text, words, sizeof words);
  return pto_report_set (report, PTO_STATUS_WORKER_LOST, _ ("%s can not be started: it %s%s%s%s"),
                         solo->path, text, words[0] != '\0' ? _ (". Its last words: \"") : "",
                         words, words[0] != '\0' ? "\"" : "");
}

void
pto_solo_end (struct pto_solo *solo, bool at_once)
{
  struct lane *lane = &solo->lanes[0];

  if (!at_once && pto_solo_is_alive (solo) && pto_link_is_idle (&lane->link))
    {
      uint64_t until = pto_wall_clock () + CLOSE_NS;

      pto_solo_post (solo, 0, PTO_REQUEST_CLOSE, 0, 0);
      while (pto_solo_wait (solo, 0, pto_solo_listen (solo, 0), 0, until) == PTO_SOLO_LOOK
             && pto_wall_clock () < until)
        ;
      /* Answered: it prints what is left, and goes. */
      while (pto_link_is_idle (&lane->link) && pto_solo_look (solo) && pto_wall_clock () < until)
        {
          struct pollfd end = { .fd = solo->process.pidfd, .events = POLLIN };

          pto_solo_take_words (solo);
          poll (&end, 1, 10);
        }
    }
  pthread_mutex_lock (&solo->lock);
  pto_process_end (&solo->process);
  pthread_mutex_unlock (&solo->lock);
}

void
pto_solo_describe (struct pto_solo *solo, char *text, size_t size, char *words, size_t words_size)
{
  pthread_mutex_lock (&solo->lock);
  pto_process_describe (&solo->process, text, size);
  pto_process_last_line (&solo->process, words, words_size);
  pthread_mutex_unlock (&solo->lock);
}

int
pto_solo_process_id (const struct pto_solo *solo)
{
  return pto_solo_is_alive (solo) ? (int) solo->process.pid : 0;
}

struct pto_shared_map *
pto_solo_map (const struct pto_solo *solo)
{
  return solo->map;
}

/* --- requests --- */

_Static_assert(PTO_SOLO_BODY == PTO_LINK_BODY && PTO_SOLO_NEVER == PTO_NEVER, "the same");

uint8_t *
pto_solo_digest (const struct pto_solo *solo, uint32_t lane)
{
  return pto_link_digest (&solo->lanes[lane].link);
}

void *
pto_solo_body (const struct pto_solo *solo, uint32_t lane)
{
  return pto_link_body (&solo->lanes[lane].link);
}

uint64_t
pto_solo_clock (void)
{
  return pto_wall_clock ();
}

void
pto_solo_post (struct pto_solo *solo, uint32_t lane, enum pto_request request, uint64_t body,
               uint32_t bytes)
{
  pto_link_post (NULL, &solo->lanes[lane].link,
                 &(struct pto_letter){ .request = request, .bytes = bytes, .far_body = body });
}

void
pto_solo_cancel (struct pto_solo *solo, uint32_t lane)
{
  pto_link_cancel (&solo->lanes[lane].link);
}

void
pto_solo_ring (struct pto_solo *solo, uint32_t lane)
{
  pto_bell_ring (NULL, &solo->lanes[lane].hub->bell);
}

uint32_t
pto_solo_listen (const struct pto_solo *solo, uint32_t lane)
{
  /* Acquire: pairs with the addition in pto_bell_ring(). */
  return pto_load_acquire (&solo->lanes[lane].hub->bell.word.value);
}

/* An answer or a ring. */
static bool
spin (const struct pto_solo *solo, uint32_t index, uint32_t heard, uint64_t end)
{
  do
    for (int i = 0; i < SPIN_LOOKS; i++)
      {
        if (pto_solo_listen (solo, index) != heard || pto_link_is_idle (&solo->lanes[index].link))
          return true;
        pto_pause ();
      }
  while (pto_wall_clock () < end);
  return false;
}

/* What came meanwhile: words, its death. false: nothing of that. */
static bool
look_around (struct pto_solo *solo, const struct lane *lane, int timeout_ms, bool *rung)
{
  struct pollfd watched[3] = { { .fd = lane->event, .events = POLLIN } };

  pthread_mutex_lock (&solo->lock);
  /* Under the lock; should they be closed meanwhile, poll() finds nothing that matters. */
  watched[1]
      = (struct pollfd){ .fd = solo->process.dead ? -1 : solo->process.pidfd, .events = POLLIN };
  watched[2] = (struct pollfd){ .fd = solo->process.words, .events = POLLIN };
  pthread_mutex_unlock (&solo->lock);
  *rung = false;
  if (poll (watched, 3, timeout_ms) <= 0)
    return false;
  if (watched[0].revents != 0)
    {
      pto_bell_quiet (lane->event);
      *rung = true;
    }
  if (watched[2].revents != 0)
    pto_solo_take_words (solo);
  if (watched[1].revents != 0)
    pto_solo_look (solo);
  return true;
}

enum pto_solo_event
pto_solo_wait (struct pto_solo *solo, uint32_t index, uint32_t heard, uint64_t spin_ns,
               uint64_t deadline)
{
  struct lane *lane = &solo->lanes[index];
  enum pto_solo_event event = PTO_SOLO_LOOK;
  uint64_t now;

  if (pto_link_is_idle (&lane->link))
    return PTO_SOLO_ANSWERED;
  if (spin_ns > 0 && spin (solo, index, heard, pto_wall_clock () + spin_ns))
    return pto_link_is_idle (&lane->link) ? PTO_SOLO_ANSWERED : PTO_SOLO_LOOK;
  /* seq_cst: before the look at the answer; pairs with pto_bell_ring(), which says that there is
   * one before it looks who sleeps. */
  pto_fetch_or_seq_cst (&lane->hub->bell.asleep, (uint32_t) PTO_BELL_KEEPER);
  for (bool rung = false; event == PTO_SOLO_LOOK;)
    {
      bool alive = pto_solo_is_alive (solo);

      /* In this order: who is dead by now has given its last answer. */
      if (pto_link_is_idle (&lane->link))
        event = PTO_SOLO_ANSWERED;
      else if (!alive)
        event = PTO_SOLO_DIED;
      else if (!pto_link_is_sound (&lane->link))
        pto_solo_kill (solo, _ ("it wrote into its mailbox"));
      now = pto_wall_clock ();
      /* seq_cst: behind the store above; pairs with the addition in pto_bell_ring(). */
      if (event != PTO_SOLO_LOOK || rung || now >= deadline
          || pto_load_seq_cst (&lane->hub->bell.word.value) != heard)
        break;
      look_around (solo, lane,
                   deadline == PTO_NEVER        ? -1
                   : deadline - now > 1000 * MS ? 1000
                                                : (int) ((deadline - now) / MS + 1),
                   &rung);
    }
  /* Relaxed: who still sees the bit writes, and the next wait returns once more. */
  pto_fetch_and_relaxed (&lane->hub->bell.asleep, ~(uint32_t) PTO_BELL_KEEPER);
  return event;
}

uint32_t
pto_solo_answer (const struct pto_solo *solo, uint32_t lane, struct pto_failure *failure)
{
  return pto_link_answer (&solo->lanes[lane].link, failure);
}

void
pto_solo_take_words (struct pto_solo *solo)
{
  pthread_mutex_lock (&solo->lock);
  pto_process_take_words (&solo->process, &solo->words);
  pto_words_pass_on (&solo->words);
  pthread_mutex_unlock (&solo->lock);
}
