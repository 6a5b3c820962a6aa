/* level-thread.h: who looks after a level's children while nobody runs anything?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One thread that sleeps in poll(): on the children's deaths and words, on the level's bell, on
 * time. It carries the level's actors when the guest does not (pto_exec_keep()), and lets pool time
 * pass, as often as the pool wants: not at all while nothing is under way.
 */
#pragma once

#include "children.h"
#include "pool.h"

struct pto_keeper
{
  struct pto_family *family;
  struct pto_pool *pool;
  struct pto_exec *exec;
  int event; /* of the bell; what children can write is not asked */
  uint64_t tick_ns;
  pthread_t thread;
  bool has_thread;
  struct pollfd *watched;
  struct pto_words words;
  /* enum pto_pace that is wanted. W: carrier; R: keeper. seq_cst against resting: either the keeper
   * sees it, or the carrier sees what the keeper has settled for, and wakes it. */
  _Atomic uint32_t pace;
  _Atomic uint32_t resting;
  _Atomic uint32_t stop;
};

/* Of a keeper that has its family and event; no thread. limits: it looks several times in the
 * shortest of them. false: no memory. */
bool pto_keeper_init (struct pto_keeper *keeper, const struct pto_child_limits *limits);
void pto_keeper_clear (struct pto_keeper *keeper);
/* pool and exec are set. 0, or error says why. */
int pto_keeper_start (struct pto_keeper *keeper, char *error, size_t error_size);
void pto_keeper_stop (struct pto_keeper *keeper);
/* For struct pto_pool_config. Carrier. */
void pto_keeper_set_pace (void *keeper, enum pto_pace pace);
