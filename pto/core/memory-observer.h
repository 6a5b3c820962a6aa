/* memory-observer.h: who looks at the memory of tasks while a run goes on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Told of each task of a run whose record is full. Between the last of its producers and its first
 * kernel nobody writes what it reads, between its last kernel and its consumers nobody writes what
 * it wrote: these are the two moments at which its memory says something. Where less is recorded
 * nobody asks for a watch.
 */
#pragma once

#include "tensor-map.h"

#include <stdbool.h>

/* A task that is submitted right now. */
struct pto_watched
{
  pto_task_id id;
  uint32_t n_args;
  const uint8_t *types; /* of each argument, PTO_PARAM_* */
  const char *file;     /* where it is submitted; NULL: nobody says */
  int32_t line;
  const struct pto_engine *engine; /* for the functions below */
  const struct pto_slot *slot;
};

/* An argument that is no scalar, as kernels see it. */
const TensorData *pto_watched_tensor (const struct pto_watched *task, uint32_t argument);
/* The name of the kernel of its only member, or of several; NULL: it has no more of them. */
const char *pto_watched_kernel (const struct pto_watched *task, uint32_t member);

struct pto_watch
{
  /* The submitter, before anybody else sees the task. */
  void (*submitted) (struct pto_watch *watch, const struct pto_watched *task);
  /* All that it waits for is over, and no part of it has begun. Whoever dispatches the first; of a
   * task whose members may begin at different schedulers whoever gives it its place in the line. */
  void (*begins) (struct pto_watch *watch, pto_task_id task);
  /* All parts of it are over, and nobody who waits for it knows. Not of what never began. */
  void (*ended) (struct pto_watch *watch, pto_task_id task, bool failed);
};
