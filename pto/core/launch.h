/* launch.h: how is a whole graph submitted?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"
#include "plan.h"

struct pto_launch
{
  const struct pto_plan *graph; /* complete */
  const uint64_t *words;        /* what it is given, which pto_plan_check() has seen */
  const uint32_t *kernels;      /* what a submit names each of the graph's by; NULL: as it does */
  /* Where that goes, and where members do, which have no kernel there; NULL: as they did. */
  const uint32_t *queues;
  const struct pto_need *members;
  /* Called whenever some more tasks have been let go; NULL: nobody is. */
  void (*progress) (void *data);
  void *data;
};

/* Submits all tasks, in a run in which nothing was submitted yet: waits for room as any submit
 * does. A task is held until the last one that uses its memory has been submitted, not by a scope.
 * The submitter. false: the run has failed. */
bool pto_engine_launch (struct pto_engine *engine, const struct pto_launch *launch);
