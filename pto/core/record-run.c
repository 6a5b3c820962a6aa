/* record-run.c: is a run recorded, by whom, and what do the numbers of its clock mean?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "record-run.h"

#include "exec/translate.h"
#include "engine.h"

enum pto_status
pto_recorder_choose (struct pto_recorder *recorder, uint32_t level, uint32_t n_actors,
                     uint64_t capacity, struct pto_report *report)
{
  recorder->active = false;
  if (level == 0)
    return PTO_OK;
  if (recorder->trace != NULL && recorder->trace->n_buffers != n_actors)
    {
      pto_trace_free (recorder->trace);
      recorder->trace = NULL;
    }
  if (recorder->trace == NULL)
    recorder->trace = pto_trace_new (n_actors, capacity);
  if (recorder->trace == NULL)
    return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                           _ ("no address space for %u trace buffers of %" PRIu64
                              " records: set trace-records to less"),
                           n_actors, capacity);
  pto_trace_clear (recorder->trace);
  for (uint32_t i = 0; i < n_actors; i++)
    recorder->trace->buffers[i].level = level;
  recorder->active = true;
  return PTO_OK;
}

static bool
has_virtual_clock (const struct pto_engine *engine)
{
  return pto_exec_backend (engine->exec) == PTO_BACKEND_DET;
}

void
pto_recorder_begin (struct pto_recorder *recorder, const struct pto_engine *engine)
{
  recorder->begin_ns = has_virtual_clock (engine) ? pto_wall_clock () : engine->time_base;
}

void
pto_recorder_end (struct pto_recorder *recorder, const struct pto_engine *engine)
{
  recorder->run_ns = engine->run_ns;
  recorder->end_ns
      = has_virtual_clock (engine) ? pto_wall_clock () : recorder->begin_ns + engine->run_ns;
  recorder->scale = (struct pto_scale){ .from = engine->run_ticks, .to = engine->run_ns };
}

const struct pto_trace *
pto_recorder_trace (struct pto_recorder *recorder)
{
  if (!recorder->active)
    return NULL;
  pto_trace_scale (recorder->trace, &recorder->scale);
  recorder->scale.from = recorder->scale.to;
  return recorder->trace;
}

void
pto_recorder_tell_clock (const struct pto_recorder *recorder, struct pto_trace_topology *topology)
{
  topology->recorded = recorder->trace != NULL ? recorder->trace->buffers[0].level : 0;
  topology->begin_ns = recorder->begin_ns;
  topology->end_ns = recorder->end_ns;
  topology->run_ns = recorder->run_ns;
}

void
pto_recorder_clear (struct pto_recorder *recorder)
{
  pto_trace_free (recorder->trace);
  *recorder = (struct pto_recorder){ .trace = NULL };
}
