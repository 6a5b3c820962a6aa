/* graph-launch.h: how is a whole graph submitted?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"
#include "graph-plan.h"

struct pto_launch
{
  const struct pto_plan *graph; /* complete */
  const uint64_t *words;   /* of each of its params: what it is given, as pto_plan_check() has seen
                              it, and where memory is that it keeps */
  const uint32_t *kernels; /* what a submit names each of the graph's by; NULL: as it does */
  /* Where that goes, and where members do, which have no kernel there; NULL: as they did. */
  const uint32_t *queues;
  const struct pto_need *members;
  const uint64_t *extra; /* what goes with its tasks, laid out as the graph's; NULL: that */
  /* Called before each task, when all before it have been let go; NULL: many go at a time. false:
   * the run has failed. */
  bool (*pace) (void *data, uint32_t task);
  /* Called whenever some more tasks have been let go; NULL: nobody is. */
  void (*progress) (void *data);
  void *data;
};

/* Submits all tasks, in a run in which nothing was submitted yet: waits for room as any submit
 * does. A task is held until the last one that uses its memory has been submitted, not by a scope.
 * The submitter. false: the run has failed. */
bool pto_engine_launch (struct pto_engine *engine, const struct pto_launch *launch);

/* Returns the file and the line where a task that is not over was submitted; NULL: it is not known.
 * Any thread that runs a part of it. */
const char *pto_engine_get_place (const struct pto_engine *engine,
                                  const struct pto_payload *payload, uint32_t *line);
/* The same as ", submitted at x.c:12", or nothing. */
void pto_engine_describe_submit (const struct pto_engine *engine, const struct pto_payload *payload,
                                 char *text, size_t size);
