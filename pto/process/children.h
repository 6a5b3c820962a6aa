/* children.h: of what are a level's children made, and who begins, describes and ends them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each is a process or a thread, with a mailbox in memory that all of them share. What a child is
 * doing is child.h's to say; this is what its life is lived in.
 *
 * Lock: what is known of processes (descriptors, last words) has one, innermost: the carrier
 * describes and kills, the keeper buries, the guest begins.
 */
#pragma once

#include "child.h"
#include "mailbox.h"
#include "process.h"

#include <poll.h>
#include <pthread.h>

struct pto_body
{
  struct pto_family *family;
  struct pto_child *child;
  struct pto_child_config config;
  struct pto_process process; /* under the lock */
  char begin_error[256];      /* under the lock: why it could not be begun again; "" */
  pthread_t thread;
  bool has_thread;

  /* --- the carrier's, behind GONE anybody's --- */
  uint32_t refused; /* number of the life that has answered START with this: */
  struct pto_failure failure;
};

struct pto_family_config
{
  const char *path;
  const struct pto_child_config *children;
  uint32_t n_children;
  bool restart;
  pto_fork_func fork;
  void *fork_data;
};

struct pto_family
{
  struct pto_family_config config;
  uint8_t *shared; /* hub and mailboxes */
  size_t shared_size;
  struct pto_hub *hub;
  uint32_t n_children;
  uint32_t n_processes;
  struct pto_child *children;
  struct pto_body *bodies;
  bool has_processes[PTO_N_CHILD_KINDS];
  uint32_t n_kind[PTO_N_CHILD_KINDS];
  /* Set before anything begins. */
  struct pto_exec *exec; /* whose carrier is held back while a child is begun again */
  int event;             /* the keeper's: it looks at who was begun */

  pthread_mutex_t lock;
  pthread_cond_t changed; /* a child has started, or died; for those that are no actors */
};

/* No process, no thread. false: a report says why, and there is only pto_family_free(). */
bool pto_family_init (struct pto_family *family, const struct pto_family_config *config,
                      struct pto_report *report);
/* After pto_family_end(). */
void pto_family_free (struct pto_family *family);

/* Posts START to all, forks the processes, then those of threads. Native stack. */
enum pto_status pto_family_fork (struct pto_family *family, struct pto_report *report);
/* false: error says why. */
bool pto_family_start_threads (struct pto_family *family, char *error, size_t error_size);
/* The words for a child that kept the level from coming up. */
enum pto_status pto_family_report_start (struct pto_family *family, const struct pto_child *child,
                                         struct pto_report *report);
/* Is there a child whose end is still to come? */
bool pto_family_is_left (const struct pto_family *family);
/* Was there ever something of this child that can be asked to close? */
bool pto_family_was_begun (const struct pto_family *family, uint32_t index);
/* SIGKILL to all processes; others are asked to stop. */
void pto_family_give_up (struct pto_family *family);
/* Waits for threads, ends what is left of processes, and closes what the children's owner has. */
void pto_family_end (struct pto_family *family);

/* Waits until one has started or died, or for so long; any thread. */
void pto_family_wait (struct pto_family *family, const struct pto_child *child, uint32_t life,
                      uint64_t ns);

/* --- the keeper --- */

/* Two each. Descriptors are read under the lock; they may be closed, and their numbers be others',
 * by the time poll() sees them: then a look at the child finds nothing. */
void pto_family_watch (struct pto_family *family, struct pollfd *watched);
/* After poll(): takes what they say, and notes who is dead. */
void pto_family_look (struct pto_family *family, const struct pollfd *watched,
                      struct pto_words *words);
/* Who stands still? */
void pto_family_look_who_is_stopped (struct pto_family *family);
