/* level-inspect.h: what does each child of a level do, as somebody sees it who has no part in its
 * run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "core/inspect.h"
#include "level.h"

struct pto_child_look
{
  char path[96];
  enum pto_child_kind kind;
  uint32_t level;
  uint32_t number;
  bool thread;
  int pid;          /* 0: a thread, or there is none just now */
  const char *life; /* "idle", "busy", "asked to stop", "killed", "lost", "gone", ...; a literal */
  bool stopped;     /* by a signal */
  uint32_t lives;   /* so many times it was begun */
  const char *request; /* "task", "start", ...: that it has not answered; NULL: none */
  /* It has a task, which member of it, and since when: as much as the keeper's clock shows, which
   * looks ten times a second. sign_ns: since its last sign of life. */
  bool runs;
  uint32_t member;
  uint32_t n_lost; /* so often the task was lost before, and is run again */
  struct pto_look_task task;
  uint64_t for_ns;
  uint64_t sign_ns;
  /* It shares no memory: where it is (it stays), which process it is there, or 0, and bytes of
   * tensors since the start (write-log.h). */
  bool far;
  const char *address;
  uint64_t far_pid;
  bool suspect;      /* nothing is heard of the other end: it gets no task */
  uint64_t silences; /* how often that was so */
  uint64_t sent;
  uint64_t received;
  uint64_t saved;
};

struct pto_level_look
{
  struct pto_look run;
  uint32_t n_children;
  struct pto_child_look *children;
  uint32_t restarts;
  uint64_t retried; /* tasks that were lost and run again, since the start */
};

/* NULL: it is being made or ended just now, or there is no memory. To be freed with the function
 * below. Any thread that is none of the level's, while nobody frees it. */
struct pto_level_look *pto_level_look (struct pto_level *level);
void pto_level_look_free (struct pto_level_look *look);
/* How far its run is. is_inside: whoever asks has a part in that. false: there is none. */
bool pto_level_count (struct pto_level *level, bool is_inside, struct pto_look_counts *counts);
/* What a queue of ready tasks is for: "chips", "SUB workers", "workers of level 3". */
void pto_level_queue_name (const struct pto_level *level, uint32_t queue, char *text, size_t size);
