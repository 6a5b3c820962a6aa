/* level-graph.c: how does a level write an orchestration down as a graph, and launch one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What goes with a task is written down as its submit would have left it, and is copied as it is.
 * It names children by kind and level, and by their numbers; which places those are on the level
 * that launches it is asked anew each time, as is whether they see the memory that the launch is
 * given. Which tensors are memory of a child itself is written down anew if the capture had others.
 */
#include "level-private.h"

#include "core/graph-capture.h"
#include "core/graph-launch.h"
#include "exec/translate.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- capturing --- */

static void
refuse_capture (void *data, const char *why)
{
  struct pto_level *level = data;

  if (level->submitting != NULL)
    pto_engine_fail (&level->machine.engine, PTO_STATUS_INVALID_ARGS,
                     _ ("task %" PRIu64 " (\"%s\"): %s"), level->machine.engine.submitted,
                     level->submitting->name, why);
  else
    pto_engine_fail (&level->machine.engine, PTO_STATUS_INVALID_ARGS,
                     _ ("task %" PRIu64 ", which only orders: %s"), level->machine.engine.submitted,
                     why);
}

bool
pto_level_begin_capture (struct pto_level *level, struct pto_plan *graph)
{
  level->capture = (struct pto_capture){ .graph = graph, .refuse = refuse_capture, .data = level };
  return pto_capture_begin (&level->machine.engine, &level->capture);
}

const struct pto_member *
pto_level_graph_members (const struct pto_level_task *task)
{
  return pto_level_task_members (task);
}

/* --- launching --- */

/* What a launch asks of the level that it is for. */
struct look
{
  struct pto_level *level;
  const struct pto_plan *graph;
  const uint32_t *kernels;
  uint32_t *queues;         /* of each of the graph's kernels */
  struct pto_need *members; /* the graph's */
  uint8_t *accesses;        /* of each argument: what processes do with it, enum pto_wire_access */
  uint64_t *extra; /* what goes with the tasks in this launch; NULL: the same as when captured */
};

/* Returns what goes with a task that needs a child. */
static const struct pto_level_task *
get_extra (const struct look *look, const struct pto_plan_task *task)
{
  const uint64_t *extra = look->extra != NULL ? look->extra : look->graph->extra;

  return (const struct pto_level_task *) &extra[task->first_extra];
}

static void
note_accesses (struct look *look, const struct pto_plan_task *task,
               const struct pto_level_task *extra)
{
  const struct pto_plan_arg *args = &look->graph->args[task->first_arg];
  const uint8_t *access = pto_level_task_access (extra);

  for (uint32_t a = 0; a < extra->n_tensors; a++)
    if (PTO_PLAN_SOURCE (args[a].what) == PTO_PLAN_TENSOR)
      look->accesses[args[a].index] |= access[a] | PTO_WIRE_READ;
}

/* Writes down which tensors are memory of a child itself, if others were when the graph was
 * captured. false: no memory. */
static bool
name_owned (struct look *look, const struct pto_plan_given *given)
{
  const struct pto_plan *graph = look->graph;
  size_t bytes = (size_t) graph->n_extra * sizeof *graph->extra;
  uint32_t i = 0;

  while (i < graph->n_params && given[i].owned == graph->params[i].owned)
    i++;
  if (i == graph->n_params)
    return true;
  look->extra = malloc (bytes + 1);
  if (look->extra == NULL)
    return false;
  if (bytes > 0)
    memcpy (look->extra, graph->extra, bytes);
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    {
      const struct pto_plan_task *task = &graph->tasks[t];
      const struct pto_plan_arg *args = &graph->args[task->first_arg];
      const struct pto_level_task *extra = pto_level_graph_task (graph, t);

      if (extra == NULL)
        continue;
      for (uint32_t a = 0; a < extra->n_tensors; a++)
        {
          const uint8_t *access = &pto_level_task_access (extra)[a];
          bool owned
              = PTO_PLAN_SOURCE (args[a].what) == PTO_PLAN_TENSOR && given[args[a].index].owned;

          if (owned != ((*access & PTO_WIRE_OWNED) != 0))
            ((uint8_t *) look->extra)[access - (const uint8_t *) graph->extra]
                = pto_level_access ((PTOParamType) graph->types[task->first_arg + a],
                                    owned ? PTO_WIRE_STAYS | PTO_WIRE_OWNED : 0);
        }
    }
  return true;
}

/* Which places its members may have. */
static enum pto_status
look_at_task (struct look *look, const struct pto_plan_task *task, struct pto_report *report)
{
  const struct pto_level_task *extra;
  struct pto_need needs[PTO_CHILDREN_MAX];
  const struct pto_plan_parts *parts
      = task->parts > 0 ? &look->graph->parts[task->parts - 1] : NULL;
  enum pto_status status;

  if (task->extra_bytes == 0)
    {
      look->queues[task->kernel] = look->level->pool->nobody.queue;
      return PTO_OK;
    }
  extra = get_extra (look, task);
  status = pto_pool_place (look->level->pool, extra, pto_level_task_members (extra), 0,
                           look->kernels[task->kernel], needs, report);
  if (status != PTO_OK)
    return status;
  look->queues[task->kernel] = needs[0].queue;
  for (uint32_t m = 0; parts != NULL && m < parts->wish.n_members; m++)
    look->members[parts->first_member + m] = needs[m];
  if (look->level->family.has_processes[extra->kind])
    note_accesses (look, task, extra);
  return PTO_OK;
}

static enum pto_status
look_at_all (struct look *look, const struct pto_plan_given *given, struct pto_report *report)
{
  const struct pto_plan *graph = look->graph;
  enum pto_status status = PTO_OK;
  struct pto_report why;

  why.status = PTO_OK;
  for (uint32_t t = 0; t < graph->n_tasks && status == PTO_OK; t++)
    {
      status = look_at_task (look, &graph->tasks[t], &why);
      if (status != PTO_OK)
        pto_report_set (report, status, _ ("task %" PRIu32 " of the graph: %s"), t, why.message);
    }
  for (uint32_t i = 0; i < graph->n_params && status == PTO_OK; i++)
    if (look->accesses[i] != 0 && !given[i].owned)
      status = pto_level_check_memory (look->level, i, given[i].word, graph->params[i].extent,
                                       (look->accesses[i] & PTO_WIRE_WRITE) != 0, report);
  return status;
}

/* Children begin with what has been let go while the rest is submitted. */
static void
get_on (void *data)
{
  struct pto_level *level = data;

  pto_exec_help (level->machine.engine.exec);
  pto_pool_begin_lost (level->pool);
}

static enum pto_status
fail_for_memory (const struct pto_plan *graph, struct pto_report *report)
{
  return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                         _ ("no memory to launch a graph of %" PRIu32 " tasks"), graph->n_tasks);
}

bool
pto_level_launch (struct pto_level *level, const struct pto_plan *graph,
                  const struct pto_plan_given *given, uint32_t n, const uint32_t *kernels)
{
  struct pto_engine *engine = &level->machine.engine;
  struct look look = { .level = level, .graph = graph, .kernels = kernels };
  uint64_t *words = malloc (((size_t) graph->n_params + 1) * sizeof *words);
  struct pto_report report = { .status = PTO_OK };
  enum pto_status status;
  bool ok = false;

  look.queues = malloc (((size_t) graph->n_kernels + 1) * sizeof *look.queues);
  look.members = malloc (((size_t) graph->n_members + 1) * sizeof *look.members);
  look.accesses = calloc ((size_t) graph->n_params + 1, sizeof *look.accesses);
  if (words == NULL || look.queues == NULL || look.members == NULL || look.accesses == NULL)
    status = fail_for_memory (graph, &report);
  else
    status = pto_plan_check (graph, given, n, &report);
  if (status == PTO_OK && !name_owned (&look, given))
    status = fail_for_memory (graph, &report);
  if (status == PTO_OK)
    status = look_at_all (&look, given, &report);
  if (status == PTO_OK)
    {
      for (uint32_t i = 0; i < graph->n_params; i++)
        words[i] = given[i].word;
      ok = pto_engine_launch (engine, &(struct pto_launch){ .graph = graph,
                                                            .words = words,
                                                            .kernels = kernels,
                                                            .queues = look.queues,
                                                            .members = look.members,
                                                            .extra = look.extra,
                                                            .progress = get_on,
                                                            .data = level });
    }
  else
    pto_engine_fail (engine, status, "%s", report.message);
  free (words);
  free (look.queues);
  free (look.members);
  free (look.accesses);
  free (look.extra);
  return ok;
}
