/* compare.h: what is a comparison of two traces made of?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed.
 */
#pragma once

#include "trace-answers.h"

G_BEGIN_DECLS

/* The two sides of everything: what was before, and what is after. */
enum
{
  PTO_BEFORE,
  PTO_AFTER,
  PTO_N_SIDES
};

/* Which task of one trace is which of the other one. */
typedef struct
{
  /* Of each side: the tasks that have a submit, in its order, as positions in
   * PtoTraceAnalysis.tasks. */
  guint32 *order[PTO_N_SIDES];
  guint n[PTO_N_SIDES];
  /* Of each side, by position in PtoTraceAnalysis.tasks: the same task on the other side, or
   * PTO_TRACE_NOWHERE. */
  guint32 *twin[PTO_N_SIDES];
  guint n_matched;
} PtoTraceMatch;

PtoTraceMatch *pto_trace_match_new (PtoTrace *before, PtoTrace *after);
void pto_trace_match_free (PtoTraceMatch *match);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoTraceMatch, pto_trace_match_free)

/* compare-text.c: the answer in words for people. */
void pto_trace_append_comparison (GString *text, JsonObject *object);

G_END_DECLS
