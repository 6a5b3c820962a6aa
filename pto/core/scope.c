/* scope.c: how long do tasks and buffers of the runtime live?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "scope.h"

#include "exec/translate.h"
#include "cohort.h"
#include "deadlock-demand.h"
#include "manual-build.h"
#include "outer-scope.h"
#include "record-submit.h"

static __attribute__ ((cold)) void
refuse_inside (struct pto_engine *engine, const char *file, int32_t line)
{
  const struct pto_scope *outer = &engine->scopes[engine->depth - 1];
  char here[256];
  char there[256];

  pto_describe_at (file, line, here, sizeof here);
  pto_describe_at (outer->file, outer->line, there, sizeof there);
  pto_engine_fail (
      engine, PTO_STATUS_INVALID_ARGS,
      _ ("%s%s finds dependencies, but lies in %s%s, whose tasks it can not see: open a "
         "manual one there, too"),
      file != NULL ? _ ("the scope opened") : _ ("a scope"), here,
      outer->file != NULL ? _ ("the manual one opened") : _ ("a manual one"), there);
}

static void
open_scope (struct pto_engine *engine, const char *file, int32_t line, bool manual)
{
  struct pto_scope *scope;
  uint32_t ring;

  if (engine->depth >= PTO_SCOPE_MAX)
    {
      char here[256];

      /* Counted, so that the ends that follow find their begins. */
      engine->depth++;
      pto_describe_at (file, line, here, sizeof here);
      pto_engine_fail (
          engine, PTO_STATUS_SCOPE_OVERFLOW,
          _ ("scopes are nested more than %u deep%s%s: end one before another begins, or "
             "put the tasks of several into one"),
          PTO_SCOPE_MAX, file != NULL ? _ (", by the one opened") : "", here);
      return;
    }
  if (engine->depth > 0 && engine->scopes[engine->depth - 1].manual && !manual)
    refuse_inside (engine, file, line);
  /* Nothing that it accesses is looked up. */
  if (PTO_UNLIKELY (engine->sets != NULL) && manual)
    engine->reducer->settle (engine, NULL);
  scope = &engine->scopes[engine->depth++];
  ring = pto_engine_ring_of_depth (engine->depth - 1);
  scope->held = engine->demand[ring].now[PTO_GOOD_TASKS];
  scope->first = engine->rings[ring].head;
  scope->buffers = engine->n_buffers;
  scope->file = file;
  scope->line = line;
  scope->manual = manual;
  engine->tracked = manual ? 0 : PTO_PARAM_NO_DEP;
  engine->by_hand = engine->by_hand || manual;
  if (engine->trace != NULL)
    pto_observe_scope (engine, engine->depth - 1, true);
}

void
pto_engine_scope_begin (struct pto_engine *engine, const char *file, int32_t line)
{
  open_scope (engine, file, line, false);
}

void
pto_engine_manual_scope_begin (struct pto_engine *engine, const char *file, int32_t line)
{
  open_scope (engine, file, line, true);
}

static void
drop_buffers (struct pto_engine *engine, uint32_t keep)
{
  while (engine->n_buffers > keep)
    {
      struct PTO2Buffer *buffer = pto_engine_buffer_at (engine, --engine->n_buffers);

      buffer->generation++;
      pto_map_drop (engine->map, &buffer->space);
    }
}

/* The scope's own reference is not a count in its tasks but the ring's floor: tasks from there on
 * stay. */
static void
close_scope (struct pto_engine *engine)
{
  uint32_t depth;
  uint32_t ring;
  struct pto_scope *scope;

  if (PTO_UNLIKELY (engine->sets != NULL))
    engine->reducer->end_scope (engine);
  depth = --engine->depth;
  ring = pto_engine_ring_of_depth (depth);
  scope = &engine->scopes[depth];

  if (PTO_UNLIKELY (engine->build.n[ring] > 0))
    pto_build_end_scope (engine, ring, scope->first);
  /* Otherwise a scope around it that shares the ring keeps a task in front of this one's. */
  if (scope->held == 0)
    pto_engine_count_scope_end (engine, ring);
  if (depth < PTO_RINGS)
    engine->rings[ring].floor = engine->rings[ring].head;
  else if (scope->held == 0)
    /* Scopes that share the last ring: this one's tasks go when every task before them may. */
    for (uint32_t outer = depth - 1;
         outer >= PTO_RINGS - 1 && engine->scopes[outer].first == scope->first; outer--)
      {
        engine->scopes[outer].first = engine->rings[ring].head;
        if (outer == PTO_RINGS - 1)
          engine->rings[ring].floor = engine->rings[ring].head;
      }
  drop_buffers (engine, scope->buffers);
  if (PTO_UNLIKELY (engine->line.n_held > 0))
    pto_cohort_let_go_of_scope (engine, depth + 1);
  engine->tracked = depth > 0 && engine->scopes[depth - 1].manual ? 0 : PTO_PARAM_NO_DEP;
  if (engine->trace != NULL)
    pto_observe_scope (engine, depth, false);
}

void
pto_engine_scope_end (struct pto_engine *engine)
{
  if (engine->depth > PTO_SCOPE_MAX)
    engine->depth--;
  else if (engine->depth <= 1)
    {
      char place[256];

      pto_engine_describe_call (engine, place, sizeof place);
      pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS, _ ("scope_end without a scope_begin%s"),
                       place);
    }
  else
    close_scope (engine);
}

void
pto_engine_refuse_open (struct pto_engine *engine)
{
  const struct pto_scope *scope;
  char where[256];

  /* It has failed already. */
  if (engine->depth > PTO_SCOPE_MAX)
    return;
  scope = &engine->scopes[engine->depth - 1];
  pto_describe_at (scope->file, scope->line, where, sizeof where);
  pto_engine_fail (
      engine, PTO_STATUS_SCOPE_OVERFLOW,
      _ ("the orchestration has returned, but %s%s is still open, %" PRIu32
         " in all: each scope_begin needs its scope_end, also where the orchestration returns early"),
      scope->file != NULL ? _ ("the scope opened") : _ ("a scope"), where, engine->depth - 1);
}

void
pto_engine_close_scopes (struct pto_engine *engine)
{
  engine->depth = min_of (engine->depth, PTO_SCOPE_MAX);
  while (engine->depth > 0)
    close_scope (engine);
}

struct PTO2Buffer *
pto_engine_new_buffer (struct pto_engine *engine, uint64_t bytes, uint32_t *generation)
{
  struct PTO2Buffer *buffer;

  if (engine->n_buffers == engine->n_buffer_chunks * PTO_BUFFERS_PER_CHUNK)
    {
      struct PTO2Buffer **chunks = realloc (
          engine->buffer_chunks, (engine->n_buffer_chunks + 1) * sizeof *engine->buffer_chunks);

      if (chunks != NULL)
        {
          engine->buffer_chunks = chunks;
          chunks[engine->n_buffer_chunks] = calloc (PTO_BUFFERS_PER_CHUNK, sizeof **chunks);
        }
      if (chunks == NULL || chunks[engine->n_buffer_chunks] == NULL)
        {
          pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory for buffer %u"),
                           engine->n_buffers);
          *generation = 0;
          return NULL;
        }
      engine->n_buffer_chunks++;
    }
  buffer = pto_engine_buffer_at (engine, engine->n_buffers++);
  buffer->addr = 0;
  buffer->bytes = bytes;
  buffer->depth = engine->depth;
  buffer->space.creator = PTO_TASK_NONE;
  buffer->space.pinned = false;
  *generation = buffer->generation;
  return buffer;
}
