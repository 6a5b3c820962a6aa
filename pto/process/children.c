/* children.c: of what are a level's children made, and who begins, describes and ends them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "children.h"

#include "exec/os-thread.h"
#include "exec/translate.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HUB_BYTES 4096u
/* So often, and in between so long, it is looked whether last words are there that were written. */
#define WORDS_TRIES 200u
#define WORDS_US 1000u

static struct pto_body *
body_of (const struct pto_child *child)
{
  return child->data;
}

/* --- in the child --- */

/* Children that look for a while before they sleep: with the parent one for each CPU. */
static bool
may_spin (uint32_t index)
{
  cpu_set_t cpus;

  return sched_getaffinity (0, sizeof cpus, &cpus) == 0 && index + 1 < (uint32_t) CPU_COUNT (&cpus);
}

static bool
serve (const struct pto_body *body, const struct pto_server *server)
{
  const struct pto_child *child = body->child;

  return pto_mailbox_serve (NULL, child->link.mailbox, body->family->hub, child->index,
                            may_spin (child->index), server);
}

static int
process_main (void *data)
{
  const struct pto_body *body = data;
  struct pto_server server = body->config.server;

  server.is_orphan = pto_process_is_orphan;
  if (server.probe != NULL)
    server.probe (server.data);
  return serve (body, &server) ? 0 : PTO_EXIT_ORPHAN;
}

/* One request of a thread. */
struct thread_call
{
  const struct pto_server *server;
  const struct pto_call *call;
  struct pto_failure *failure;
  uint32_t status;
};

static void
serve_call (void *data)
{
  struct thread_call *call = data;

  call->status = call->server->serve (call->server->data, call->call, call->failure);
}

/* A process ends with the thread that serves (process.c); a thread of ours would leave its request
 * for ever. */
static uint32_t
serve_on_thread (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  const struct pto_body *body = data;
  struct thread_call thread_call
      = { .server = &body->config.server, .call = call, .failure = failure };

  if (pto_os_thread_survives (serve_call, &thread_call))
    return thread_call.status;
  pto_failure_set (failure, PTO_STATUS_TASK_FAILED, NULL,
                   _ ("it ended its thread (pthread_exit), which is the worker's"));
  return PTO_STATUS_TASK_FAILED;
}

static void
thread_main (void *data)
{
  struct pto_body *body = data;
  struct pto_server server = body->config.server;

  server.serve = serve_on_thread;
  server.data = body;
  serve (body, &server);
}

/* --- what a child's life asks of it --- */

static void
describe (const struct pto_child *child, char *text, size_t size, char *words, size_t words_size)
{
  struct pto_body *body = body_of (child);

  pthread_mutex_lock (&body->family->lock);
  if (body->begin_error[0] != '\0')
    snprintf (text, size, "%s", body->begin_error);
  /* Relaxed: lives is not written while the child is the carrier's, or gone. */
  else if (body->refused == pto_load_relaxed (&child->lives))
    snprintf (text, size, _ ("could not be started again: %.*s"), (int) (size - 32),
              body->failure.text);
  else
    pto_process_describe (&body->process, text, size);
  if (words != NULL)
    pto_process_last_line (&body->process, words, words_size);
  pthread_mutex_unlock (&body->family->lock);
}

static void
kill_process (struct pto_child *child, const char *why)
{
  struct pto_body *body = body_of (child);

  pthread_mutex_lock (&body->family->lock);
  pto_process_kill (&body->process, why);
  pthread_mutex_unlock (&body->family->lock);
}

static void
note_refusal (struct pto_child *child, const struct pto_failure *failure)
{
  struct pto_body *body = body_of (child);

  body->refused = pto_load_relaxed (&child->lives);
  body->failure = *failure;
}

static void
tell_change (struct pto_child *child)
{
  struct pto_family *family = body_of (child)->family;

  /* With the lock: nobody who has looked, and is about to wait, misses it. */
  pthread_mutex_lock (&family->lock);
  pthread_cond_broadcast (&family->changed);
  pthread_mutex_unlock (&family->lock);
}

static enum pto_status
begin_process (struct pto_body *body, struct pto_report *report)
{
  const struct pto_family_config *family = &body->family->config;
  struct pto_process_config config = { .fork = family->fork,
                                       .fork_data = family->fork_data,
                                       .main = process_main,
                                       .data = body,
                                       .labels = body->config.far };

  return pto_process_begin (&body->process, &config, report);
}

static bool
begin_again (struct pto_child *child)
{
  struct pto_body *body = body_of (child);
  struct pto_family *family = body->family;
  struct pto_report report = { 0 };
  bool ok;

  /* The child must not be born with the keeper inside of the executor, or of what it knows of
   * processes. */
  pto_exec_hold (family->exec);
  pthread_mutex_lock (&family->lock);
  body->begin_error[0] = '\0';
  ok = begin_process (body, &report) == PTO_OK;
  if (!ok)
    snprintf (body->begin_error, sizeof body->begin_error, _ ("could not be begun again (%.200s)"),
              report.message);
  pthread_mutex_unlock (&family->lock);
  pto_exec_unhold (family->exec);
  /* The keeper watches it from now on. */
  eventfd_write (family->event, 1);
  return ok;
}

static const struct pto_child_ops ops = { .describe = describe,
                                          .kill = kill_process,
                                          .refused = note_refusal,
                                          .changed = tell_change,
                                          .begin = begin_again };

/* --- making --- */

static void
make_child (struct pto_family *family, uint32_t i)
{
  const struct pto_child_config *config = &family->config.children[i];
  struct pto_child *child = &family->children[i];
  struct pto_body *body = &family->bodies[i];
  struct pto_mailbox *mailbox
      = (struct pto_mailbox *) (family->shared + HUB_BYTES + (size_t) i * PTO_MAILBOX_BYTES);

  pto_mailbox_guard (mailbox);
  pto_mailbox_link (&child->link, mailbox);
  child->ops = &ops;
  child->data = body;
  child->index = i;
  child->kind = config->kind;
  child->level = config->level;
  child->thread = config->thread;
  child->restart = family->config.restart;
  child->far = config->far && !config->thread;
  child->leave_bytes = config->leave_bytes;
  child->number = family->n_kind[config->kind]++;
  if (config->kind == PTO_CHILD_SUB)
    snprintf (child->path, sizeof child->path, "%s/sub%u", family->config.path, child->number);
  else
    snprintf (child->path, sizeof child->path, "%s/L%u/%u", family->config.path, config->level,
              config->id_plus_1 != 0 ? config->id_plus_1 - 1 : child->number);
  pto_child_init (child);
  body->family = family;
  body->child = child;
  body->config = *config;
  pto_process_init (&body->process, child->path);
  family->n_processes += !config->thread;
  family->has_processes[config->kind] = family->has_processes[config->kind] || !config->thread;
}

bool
pto_family_init (struct pto_family *family, const struct pto_family_config *config,
                 struct pto_report *report)
{
  uint32_t n = config->n_children;

  memset (family, 0, sizeof *family);
  family->config = *config;
  family->event = -1;
  pthread_mutex_init (&family->lock, NULL);
  pthread_cond_init (&family->changed, NULL);
  family->bodies = calloc (n + 1, sizeof *family->bodies);
  family->children = calloc (n + 1, sizeof *family->children);
  family->shared_size = HUB_BYTES + (size_t) n * PTO_MAILBOX_BYTES;
  family->shared = mmap (NULL, family->shared_size, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (family->shared == MAP_FAILED)
    family->shared = NULL;
  if (family->bodies == NULL || family->children == NULL || family->shared == NULL)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for the %u children of %s"), n,
                      config->path);
      return false;
    }
  family->hub = (struct pto_hub *) family->shared;
  family->n_children = n;
  for (uint32_t i = 0; i < n; i++)
    make_child (family, i);
  /* Bodies have copies of what the caller holds. */
  family->config.children = NULL;
  return true;
}

void
pto_family_free (struct pto_family *family)
{
  if (family->shared != NULL)
    munmap (family->shared, family->shared_size);
  free (family->bodies);
  free (family->children);
  pthread_mutex_destroy (&family->lock);
  pthread_cond_destroy (&family->changed);
}

/* --- beginning --- */

enum pto_status
pto_family_fork (struct pto_family *family, struct pto_report *report)
{
  enum pto_status status = PTO_OK;

  for (uint32_t i = 0; i < family->n_children; i++)
    pto_child_post_start (&family->children[i]);
  for (uint32_t i = 0; i < family->n_children && status == PTO_OK; i++)
    if (!family->bodies[i].config.thread)
      {
        family->children[i].begun_at = pto_wall_clock ();
        status = begin_process (&family->bodies[i], report);
      }
  for (uint32_t i = 0; i < family->n_children && status == PTO_OK; i++)
    {
      const struct pto_child_config *config = &family->bodies[i].config;

      if (config->thread && config->fork != NULL)
        status = config->fork (config->server.data, report);
    }
  return status;
}

bool
pto_family_start_threads (struct pto_family *family, char *error, size_t error_size)
{
  for (uint32_t i = 0; i < family->n_children; i++)
    if (family->bodies[i].config.thread)
      {
        struct pto_body *body = &family->bodies[i];
        const char *name = strrchr (body->child->path, '/');
        char text[16];

        snprintf (text, sizeof text, "pto-%.11s", name != NULL ? name + 1 : "child");
        body->has_thread
            = pto_os_thread_start (&body->thread, text, NULL, thread_main, body, error, error_size)
              == 0;
        if (!body->has_thread)
          return false;
      }
  return true;
}

/* What it has written by now is taken by the keeper, who looks whenever there is something. */
static void
wait_for_words (struct pto_body *body)
{
  int left = 1;

  for (uint32_t i = 0; i < WORDS_TRIES && left > 0; i++)
    {
      pthread_mutex_lock (&body->family->lock);
      if (body->process.words < 0 || ioctl (body->process.words, FIONREAD, &left) != 0)
        left = 0;
      pthread_mutex_unlock (&body->family->lock);
      if (left > 0)
        usleep (WORDS_US);
    }
}

enum pto_status
pto_family_report_start (struct pto_family *family, const struct pto_child *child,
                         struct pto_report *report)
{
  struct pto_body *body = body_of (child);
  const char *address = body->config.address;
  bool refused = body->refused == pto_load_acquire (&child->lives);
  const char *answer = refused ? body->failure.text : "";
  enum pto_status status = refused ? (enum pto_status) body->failure.code : PTO_STATUS_WORKER_LOST;
  /* What fails deeper down names its place itself. */
  bool named = refused && strncmp (answer, child->path, strlen (child->path)) == 0;
  char name[sizeof child->path + 256];
  char text[512];
  char words[256] = "";

  if (address != NULL && strstr (answer, address) == NULL)
    snprintf (name, sizeof name, "%s (%s)", child->path, address);
  else
    pto_text_copy (name, sizeof name, child->path, strlen (child->path));
  if (refused && (body->failure.domain[0] != '\0' || status == PTO_OK))
    status = PTO_STATUS_SYSTEM;
  /* What it speaks for has ended, and may have said why. */
  if (refused && body->config.far && status == PTO_STATUS_WORKER_LOST)
    wait_for_words (body);
  if (!refused || (body->config.far && status == PTO_STATUS_WORKER_LOST))
    describe (child, text, sizeof text, words, sizeof words);
  if (refused)
    return pto_report_set (report, status, "%s%s%s%s%s%s", named ? "" : name,
                           named ? "" : _ (" can not be started: "), answer,
                           words[0] != '\0' ? _ (". Its last words: \"") : "", words,
                           words[0] != '\0' ? "\"" : "");
  return pto_report_set (report, status, _ ("%s can not be started: it %s%s%s%s"), name, text,
                         words[0] != '\0' ? _ (". Its last words: \"") : "", words,
                         words[0] != '\0' ? "\"" : "");
}

/* --- ending --- */

bool
pto_family_was_begun (const struct pto_family *family, uint32_t index)
{
  const struct pto_body *body = &family->bodies[index];

  return body->config.thread ? body->has_thread : body->process.pid != 0;
}

bool
pto_family_is_left (const struct pto_family *family)
{
  for (uint32_t i = 0; i < family->n_children; i++)
    {
      enum pto_life life = (enum pto_life) pto_load_acquire (&family->children[i].life);

      if (pto_family_was_begun (family, i) && life != PTO_LIFE_GONE && life != PTO_LIFE_LOST)
        return true;
    }
  return false;
}

void
pto_family_give_up (struct pto_family *family)
{
  for (uint32_t i = 0; i < family->n_children; i++)
    {
      pto_link_cancel (&family->children[i].link);
      kill_process (&family->children[i], _ ("the start was given up"));
    }
}

void
pto_family_end (struct pto_family *family)
{
  for (uint32_t i = 0; i < family->n_children; i++)
    {
      struct pto_body *body = &family->bodies[i];

      pto_process_end (&body->process);
      if (body->has_thread)
        pto_os_thread_join (body->thread);
      body->has_thread = false;
      if (body->config.close != NULL)
        body->config.close (body->config.server.data);
      body->config.close = NULL;
    }
}

/* --- any thread --- */

void
pto_family_wait (struct pto_family *family, const struct pto_child *child, uint32_t life,
                 uint64_t ns)
{
  struct timespec until;

  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_nsec += (long) ns;
  if (until.tv_nsec >= 1000000000)
    {
      until.tv_nsec -= 1000000000;
      until.tv_sec++;
    }
  pthread_mutex_lock (&family->lock);
  if (!pto_child_has_started_since (child, life) && !pto_child_is_gone (child))
    pthread_cond_timedwait (&family->changed, &family->lock, &until);
  pthread_mutex_unlock (&family->lock);
}

/* --- the keeper --- */

void
pto_family_watch (struct pto_family *family, struct pollfd *watched)
{
  pthread_mutex_lock (&family->lock);
  for (uint32_t i = 0; i < family->n_children; i++)
    {
      const struct pto_process *process = &family->bodies[i].process;

      *watched++ = (struct pollfd){ .fd = process->dead ? -1 : process->pidfd, .events = POLLIN };
      *watched++ = (struct pollfd){ .fd = process->words, .events = POLLIN };
    }
  pthread_mutex_unlock (&family->lock);
}

static void
bury (struct pto_body *body, struct pto_words *words)
{
  struct pto_family *family = body->family;
  bool dead;

  pthread_mutex_lock (&family->lock);
  dead = pto_process_reap (&body->process);
  if (dead)
    pto_process_take_words (&body->process, words);
  pthread_mutex_unlock (&family->lock);
  if (!dead)
    return;
  pto_child_found_dead (body->child);
  pto_hub_mark (NULL, family->hub, body->child->index);
}

void
pto_family_look (struct pto_family *family, const struct pollfd *watched, struct pto_words *words)
{
  for (uint32_t i = 0; i < family->n_children; i++)
    {
      struct pto_body *body = &family->bodies[i];
      bool ends = watched[2 * i].revents != 0;
      bool says = watched[2 * i + 1].revents != 0;

      if (says)
        {
          pthread_mutex_lock (&family->lock);
          pto_process_take_words (&body->process, words);
          pthread_mutex_unlock (&family->lock);
        }
      if (ends)
        bury (body, words);
      /* Whoever reads them may take their time. */
      if (says || ends)
        pto_words_pass_on (words);
    }
}

void
pto_family_look_who_is_stopped (struct pto_family *family)
{
  for (uint32_t i = 0; i < family->n_children; i++)
    if (!family->bodies[i].config.thread)
      {
        pthread_mutex_lock (&family->lock);
        pto_child_found_stopped (&family->children[i],
                                 pto_process_look (&family->bodies[i].process));
        pthread_mutex_unlock (&family->lock);
      }
}
