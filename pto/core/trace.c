/* trace.c: what happened to every task, when and where?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "trace.h"

#include <string.h>

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
      void *memory = pto_pages_new (capacity * sizeof (struct pto_trace_record), MAP_PRIVATE);

      if (memory == NULL)
        {
          pto_trace_free (trace);
          return NULL;
        }
      trace->buffers[i] = (struct pto_trace_buffer){ .records = memory, .capacity = capacity };
      trace->n_buffers++;
    }
  return trace;
}

static void
forget_files (struct pto_trace_files *files)
{
  for (uint32_t i = 0; i < files->n; i++)
    free (files->names[i]);
  *files = (struct pto_trace_files){ .n = 0 };
}

void
pto_trace_free (struct pto_trace *trace)
{
  if (trace == NULL)
    return;
  forget_files (&trace->files);
  for (uint32_t i = 0; i < trace->n_buffers; i++)
    pto_pages_free (trace->buffers[i].records,
                    trace->buffers[i].capacity * sizeof (struct pto_trace_record));
  free (trace->buffers);
  free (trace);
}

void
pto_trace_clear (struct pto_trace *trace)
{
  for (uint32_t i = 0; i < trace->n_buffers; i++)
    trace->buffers[i].count = trace->buffers[i].dropped = 0;
  forget_files (&trace->files);
}

uint32_t
pto_trace_find_file (struct pto_trace_files *files, const char *name)
{
  uint32_t i = 0;

  if (name == NULL)
    return 0;
  if (name == files->last && strcmp (files->names[files->last_number - 1], name) == 0)
    return files->last_number;
  while (i < files->n && strcmp (files->names[i], name) != 0)
    i++;
  if (i == files->n)
    {
      char *copy = i < PTO_TRACE_FILES_MAX ? strdup (name) : NULL;

      if (copy == NULL)
        return 0;
      files->names[files->n++] = copy;
    }
  files->last = name;
  files->last_number = i + 1;
  return i + 1;
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

        if (PTO_TRACE_IS_WORDS (record->kind))
          continue;
        record->time = pto_scale (record->time, scale);
        if (PTO_TRACE_HAS_END (record->kind) || record->kind == PTO_TRACE_WAIT)
          record->extra = pto_scale (record->extra, scale);
      }
}
