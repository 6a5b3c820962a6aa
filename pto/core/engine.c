/* engine.c: what do the parts of an engine share, and who has the last word on a run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine.h"

#include "exec/translate.h"

#include <errno.h>

/* About what one node takes of address space, with what the map knows of the caller's memory. */
#define MAP_NODE_BYTES 512u

/* --- making and ending --- */

static struct pto_map *
make_map (const struct pto_engine *engine, bool watched, uint32_t pool)
{
  return pto_map_new (&(struct pto_map_config){ .pool = pool,
                                                .hazards = engine->config.hazards,
                                                .tails = watched ? engine->no_tails : engine->tails,
                                                .failed = &engine->failed });
}

static void
find_heaps (struct pto_engine *engine)
{
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;

  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    {
      const struct pto_circle *heap = &engine->rings[ring].heap;
      uint64_t base = (uint64_t) (uintptr_t) heap->base;

      begin = base < begin ? base : begin;
      end = base + heap->size > end ? base + heap->size : end;
    }
  engine->heaps_begin = begin;
  engine->heaps_size = end - begin;
}

const char *
pto_engine_largest_setting (const struct pto_engine_config *config)
{
  const char *names[] = { "task-window", "heap", "dep-pool", "map-pool", config->other_setting };
  uint64_t bytes[] = { 0, 0, 0, (uint64_t) config->map_pool * MAP_NODE_BYTES, config->other_bytes };
  uint32_t largest = 0;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      const struct pto_ring_config *ring = &config->rings[r];

      bytes[0] += (uint64_t) ring->window
                  * (sizeof (struct pto_slot) + PTO_STORAGE_PER_SLOT
                     + (uint64_t) config->n_queues * config->n_shards * sizeof (uint64_t));
      bytes[1] += ring->heap;
      bytes[2] += (uint64_t) ring->edge_pool * sizeof (struct pto_edge);
    }
  for (uint32_t i = 1; i < sizeof bytes / sizeof bytes[0]; i++)
    if (names[i] != NULL && bytes[i] > bytes[largest])
      largest = i;
  return names[largest];
}

enum pto_status
pto_engine_init (struct pto_engine *engine, struct pto_exec *exec,
                 const struct pto_engine_config *config, struct pto_report *report)
{
  uint64_t slots = 0;
  uint32_t capacity;

  memset (engine, 0, sizeof *engine);
  atomic_init (&engine->verdict, PTO_VERDICT_CLOSED);
  engine->exec = exec;
  engine->config = *config;
  pto_word_init (&engine->progress, 0, false);
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    if (!pto_ring_init (&engine->rings[ring], &config->rings[ring]))
      {
        int error = errno;

        pto_engine_destroy (engine);
        /* Less of it would be refused as well. */
        if (error == EPERM || error == EACCES || error == ENOSYS)
          return pto_report_set (report, PTO_STATUS_SYSTEM, "mmap: %s", strerror (error));
        return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                               _ ("no address space for ring %u: task-window %u, heap %" PRIu64
                                  " bytes: set %s to less"),
                               ring, config->rings[ring].window, config->rings[ring].heap,
                               pto_engine_largest_setting (config));
      }
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    slots += config->rings[ring].window;
  find_heaps (engine);
  engine->guards_ordered = config->guard_bytes > 0
                           && config->hazards == (PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_WAR);
  capacity = power_of_two_at_least (slots);
  /* Room for every slot there is: a push can not find a queue full. */
  for (uint32_t queue = 0; queue < config->n_queues; queue++)
    for (uint32_t shard = 0; shard < config->n_shards; shard++)
      if (!pto_ready_queue_init (&engine->ready[queue][shard], capacity))
        {
          pto_engine_destroy (engine);
          return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                                 _ ("no address space for a ready queue of %u tasks: set %s to "
                                    "less"),
                                 capacity, pto_engine_largest_setting (config));
        }
  engine->map = make_map (engine, config->watched, config->map_pool);
  if (engine->map == NULL)
    {
      pto_engine_destroy (engine);
      return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                             _ ("no memory for a TensorMap of %u nodes (map-pool): set %s to less"),
                             config->map_pool, pto_engine_largest_setting (config));
    }
  return PTO_OK;
}

bool
pto_engine_set_watched (struct pto_engine *engine, bool watched, uint32_t map_pool)
{
  struct pto_map *map = make_map (engine, watched, map_pool);

  if (map == NULL)
    return false;
  pto_map_follow (map, engine->map);
  pto_map_free (engine->map);
  engine->map = map;
  engine->config.watched = watched;
  return true;
}

void
pto_engine_destroy (struct pto_engine *engine)
{
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    {
      pto_ring_destroy (&engine->rings[ring]);
      free (engine->build.items[ring]);
    }
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
      pto_ready_queue_destroy (&engine->ready[queue][shard]);
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    for (uint32_t p = 0; p < PTO_MAX_PRIORITY; p++)
      pto_ready_queue_destroy (&engine->urgent[queue][p]);
  pto_line_clear (&engine->line);
  free (engine->scratch);
  if (engine->map != NULL)
    pto_map_free (engine->map);
  engine->map = NULL;
  engine->scratch = NULL;
  for (uint32_t i = 0; i < engine->n_buffer_chunks; i++)
    free (engine->buffer_chunks[i]);
  free (engine->buffer_chunks);
  free (engine->deps.items);
  pto_shared_tensors_clear (&engine->shared);
  free (engine->failed.items);
  engine->buffer_chunks = NULL;
  engine->deps.items = NULL;
  engine->failed.items = NULL;
}

void
pto_line_clear (struct pto_line *line)
{
  free (line->places);
  free (line->cohorts);
  memset (line, 0, sizeof *line);
}

void
pto_engine_wake (struct pto_engine *engine, uint32_t index)
{
  struct pto_scheduler_words *words = engine->words[index];

  pto_fetch_add_acq_rel (&words->bell.value, 1);
  pto_unpark (engine->exec, &words->bell);
}

/* --- errors --- */

bool
pto_engine_fail (struct pto_engine *engine, enum pto_status status, const char *format, ...)
{
  uint32_t open = PTO_VERDICT_OPEN;
  va_list args;

  /* One writer of the message, ever; it is read after FAILED (release below, acquire in
   * await_verdict()). Relaxed: who fails a run has come to know of it. */
  if (!pto_cas_relaxed (&engine->verdict, &open, PTO_VERDICT_FAILING))
    return false;
  va_start (args, format);
  pto_report_setv (&engine->report, status, format, args);
  va_end (args);
  /* Relaxed: says that the run has failed, and nothing else. */
  pto_store_relaxed (&engine->fatal, (uint32_t) status);
  pto_store_release (&engine->verdict, PTO_VERDICT_FAILED);
  return false;
}

void
pto_describe_at (const char *file, int32_t line, char *text, size_t size)
{
  text[0] = '\0';
  if (file != NULL)
    snprintf (text, size, _ (" at %s:%d"), pto_base_name (file), (int) line);
}

void
pto_engine_describe_call (const struct pto_engine *engine, char *text, size_t size)
{
  int32_t line;
  const char *file = pto_engine_get_call (engine, &line);

  pto_describe_at (file, line, text, size);
}

void
pto_engine_describe_place (const struct pto_engine *engine, char *text, size_t size)
{
  int32_t line;
  const char *file = pto_engine_get_call (engine, &line);
  bool is_submit = file != NULL;
  uint32_t depth = engine->depth < PTO_SCOPE_MAX ? engine->depth : PTO_SCOPE_MAX;

  while (depth-- > 0 && file == NULL)
    {
      file = engine->scopes[depth].file;
      line = engine->scopes[depth].line;
    }
  text[0] = '\0';
  if (file != NULL)
    snprintf (text, size, _ (", %s at %s:%d"), is_submit ? "submitted" : _ ("in the scope opened"),
              pto_base_name (file), line);
}

const char *
pto_engine_more_places (const struct pto_engine *engine)
{
  return engine->config.more_places != NULL ? _ (engine->config.more_places) : _ ("ask for less");
}

bool
pto_engine_refuse (struct pto_engine *engine, uint32_t kernel, enum pto_status status,
                   const char *format, ...)
{
  char place[256];
  char why[1024];
  va_list args;

  va_start (args, format);
  vsnprintf (why, sizeof why, format, args);
  va_end (args);
  pto_engine_describe_place (engine, place, sizeof place);
  return pto_engine_fail (engine, status, _ ("task %" PRIu64 " (%s)%s: %s"), engine->submitted,
                          pto_engine_kernel_name (engine, kernel), place, why);
}

bool
pto_engine_cancel (struct pto_engine *engine)
{
  struct pto_guard *guard = pto_guard_pause ();
  uint32_t verdict = PTO_VERDICT_OPEN;

  /* Between what makes engine->cancelled say true and the look for a run; pairs with the fence in
   * pto_engine_begin(): either this sees the run, or the run sees that. */
  pto_fence_seq_cst ();
  /* Acquire: pairs with the release in pto_engine_begin(). */
  if (pto_cas_acquire (&engine->verdict, &verdict, PTO_VERDICT_FAILING))
    {
      pto_report_set (&engine->report, PTO_STATUS_CANCELLED, _ ("the run was cancelled"));
      pto_store_relaxed (&engine->fatal, PTO_STATUS_CANCELLED);
      pto_fetch_add_relaxed (&engine->progress.value, 1);
      pto_unpark (engine->exec, &engine->progress);
      /* Last: the run does not end before, and with it perhaps the executor. */
      pto_store_release (&engine->verdict, PTO_VERDICT_FAILED);
      verdict = PTO_VERDICT_FAILED;
    }
  pto_guard_resume (guard);
  return verdict != PTO_VERDICT_CLOSED;
}

bool
pto_engine_ask_cancelled (struct pto_engine *engine)
{
  if (engine->cancelled == NULL || pto_engine_has_failed (engine)
      || !engine->cancelled (engine->cancelled_data))
    return false;
  pto_engine_fail (engine, PTO_STATUS_CANCELLED, _ ("the run was cancelled"));
  return true;
}

/* Of a run that has failed. Acquire: the report, and whoever wrote it is done with this engine. Not
 * "while FAILING": who knows of the failure by the relaxed word alone may still see OPEN. */
static void
await_verdict (struct pto_engine *engine)
{
  while (pto_load_acquire (&engine->verdict) != PTO_VERDICT_FAILED)
    pto_yield (engine->exec);
}

bool
pto_engine_close_verdict (struct pto_engine *engine)
{
  uint32_t verdict = PTO_VERDICT_OPEN;

  if (pto_cas_relaxed (&engine->verdict, &verdict, PTO_VERDICT_CLOSED))
    return true;
  await_verdict (engine);
  return false;
}

enum pto_status
pto_engine_tell (struct pto_engine *engine, struct pto_report *report)
{
  await_verdict (engine);
  return pto_report_set (report, engine->report.status, "%s", engine->report.message);
}

uint64_t
pto_engine_recycled (const struct pto_engine *engine)
{
  uint64_t n = 0;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    if (engine->rings[r].head > engine->rings[r].window)
      n += engine->rings[r].head - engine->rings[r].window;
  return n;
}

enum pto_task_state
pto_engine_task_state (const struct pto_engine *engine, pto_task_id id)
{
  const struct pto_ring *ring = &engine->rings[PTO_TASK_RING (id)];

  if (pto_task_is_retired (engine->tails, id))
    return PTO_TASK_CONSUMED;
  if ((int32_t) (PTO_TASK_LOCAL (id) - ring->head) >= 0)
    return PTO_TASK_FREE;
  return (enum pto_task_state) pto_load_acquire (&pto_ring_slot (ring, PTO_TASK_LOCAL (id))->state);
}
