/* trace.c: what happened to every task, when and where?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "trace.h"

#include <stdlib.h>
#include <sys/mman.h>

struct pto_trace *
pto_trace_new (uint32_t n_buffers, uint64_t capacity)
{
  struct pto_trace *trace = calloc (1, sizeof *trace);

  if (trace == NULL)
    return NULL;
  trace->buffers
      = aligned_alloc (alignof (struct pto_trace_buffer), n_buffers * sizeof *trace->buffers);
  if (trace->buffers == NULL)
    {
      free (trace);
      return NULL;
    }
  for (uint32_t i = 0; i < n_buffers; i++)
    {
      void *memory
          = mmap (NULL, capacity * sizeof (struct pto_trace_record), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

      if (memory == MAP_FAILED)
        {
          pto_trace_free (trace);
          return NULL;
        }
      trace->buffers[i].count = trace->buffers[i].dropped = 0;
      trace->buffers[i].records = memory;
      trace->buffers[i].capacity = capacity;
      trace->n_buffers++;
    }
  return trace;
}

void
pto_trace_free (struct pto_trace *trace)
{
  if (trace == NULL)
    return;
  for (uint32_t i = 0; i < trace->n_buffers; i++)
    munmap (trace->buffers[i].records,
            trace->buffers[i].capacity * sizeof (struct pto_trace_record));
  free (trace->buffers);
  free (trace);
}

void
pto_trace_clear (struct pto_trace *trace)
{
  for (uint32_t i = 0; i < trace->n_buffers; i++)
    trace->buffers[i].count = trace->buffers[i].dropped = 0;
}

void
pto_trace_scale (struct pto_trace *trace, const struct pto_scale *scale)
{
  if (scale->from == scale->to)
    return;
  for (uint32_t i = 0; i < trace->n_buffers; i++)
    for (uint64_t k = 0; k < trace->buffers[i].count; k++)
      {
        struct pto_trace_record *record = &trace->buffers[i].records[k];

        record->time = pto_scale (record->time, scale);
        if (record->kind == PTO_TRACE_RUN || record->kind == PTO_TRACE_STALL)
          record->extra = pto_scale (record->extra, scale);
      }
}
