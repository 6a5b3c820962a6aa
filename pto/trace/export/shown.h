/* shown.h: what do pictures and reports show of a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "trace/model/trace.h"

G_BEGIN_DECLS

/* A core, or a child, in all runs of its worker. */
typedef struct
{
  char *name;
  const char *path; /* of its worker */
  const char *kind;
  guint core; /* its number there */
  guint cluster;
  gint parent; /* row that it is below, or -1 */
  guint depth;
  GPtrArray *parts; /* PtoTracePart: the runs that have it */
} PtoShownRow;

/* PtoShownRow: each core of the outermost worker, and behind a child what did something inside. */
GPtrArray *pto_shown_list_rows (PtoTrace *trace);

typedef struct
{
  guint32 kernel; /* its number in the outermost trace; PTO_TRACE_NOWHERE: it did not run there */
  guint64 runs;
  char *name;
} PtoShownKernel;

typedef struct
{
  GArray *list;        /* PtoShownKernel: of the outermost by number, then in the order of rows */
  GHashTable *numbers; /* of the outermost -> position + 1 */
  GHashTable *names;   /* name -> position + 1 */
} PtoLegend;

PtoLegend *pto_legend_new (PtoTrace *trace, const GPtrArray *rows);
void pto_legend_free (PtoLegend *legend);
/* The position of a part's kernel: by its number in the outermost, by its name in others. One that
 * is not there comes last. */
guint pto_legend_find (PtoLegend *legend, const PtoTracePart *part, guint32 kernel);

static inline const PtoShownKernel *
pto_legend_get (const PtoLegend *legend, guint position)
{
  return &g_array_index (legend->list, PtoShownKernel, position);
}

/* What the kernel at that position is drawn with: "#7cc0ee"; the path of a hatching on a cell of 6
 * by 6, or NULL. */
const char *pto_legend_get_colour (guint position);
const char *pto_legend_get_hatching (guint position);

G_END_DECLS
