/* svg.h: what do the parts of a picture of a run share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "shown.h"

G_BEGIN_DECLS

#define PTO_SVG_WIDTH 1800
#define PTO_SVG_MARGIN 28

typedef struct
{
  PtoTrace *trace;
  const PtoTraceAnalysis *analysis;
  GString *text;
  PtoLegend *legend;
  GPtrArray *shown;     /* PtoShownRow */
  GPtrArray *runs;      /* PtoSvgRow: of each core */
  GPtrArray *transfers; /* PtoSvgRow: of a child what is sent, and what comes back */
  GPtrArray *inner;     /* PtoSvgRow: what lies below the rows of children */
  guint *n_inner;       /* per core: how many of those */
  double left, right;   /* of the plot */
  double scale;         /* pixels per ns */
  double row;           /* height of a core's row */
  double *core_top;     /* per core that is not folded */
  gboolean *is_folded;  /* per core: in a cluster without work, which has no rows */
  guint n_shown_cores;
  guint n_folded_clusters;
  double fold_top;     /* of the line that says so */
  double narrow;       /* pixels: narrower bars join their neighbours */
  double inner_narrow; /* the same below the rows */
  gboolean has_joined; /* some did */
  double control_top, rows_top, rows_bottom;
  guint n_inner_left_out; /* rows for which there was no room */
  gboolean is_stretched;  /* one of those has a virtual clock */
} PtoPicture;

/* A run, or tensors on their way. */
typedef struct
{
  guint64 start; /* in the time of the picture */
  guint64 end;
  const PtoTraceEntry *task; /* of a run */
  const PtoTraceTransfer *transfer;
  guint style; /* of a run: position in the legend */
} PtoSvgBar;

typedef struct
{
  GArray *bars; /* PtoSvgBar, by start */
  guint core;   /* on whose row they are, or below it */
  /* Of a row below that: */
  const char *name;
  gboolean is_virtual;
  double top;
} PtoSvgRow;

/* --- svg-rows.c --- */

/* Where every core's row goes; gives the y below the last. */
double pto_svg_place_cores (PtoPicture *picture, double y);
/* Names, bands, and how busy each was. */
void pto_svg_append_core_labels (PtoPicture *picture);
/* Which clusters have no rows: over the lines of the axis. */
void pto_svg_append_fold (PtoPicture *picture);

/* --- svg-bars.c --- */

GPtrArray *pto_svg_rows_new (void);
PtoSvgRow *pto_svg_rows_add (GPtrArray *rows, guint core);
void pto_svg_row_add_run (PtoPicture *picture, PtoSvgRow *row, const PtoTracePart *part,
                          const PtoTraceEntry *task);
/* How narrow bars have to be to be drawn as one, for no more of runs and others than most. */
double pto_svg_measure_bars (PtoPicture *picture, const GPtrArray *runs, const GPtrArray *others,
                             guint most);
/* Draws a row: n bars at a time, as one. */
typedef void (*PtoSvgDrawFunc) (PtoPicture *picture, const PtoSvgRow *row, const PtoSvgBar *bars,
                                guint n);
void pto_svg_append_bars (PtoPicture *picture, const PtoSvgRow *row, double narrow,
                          PtoSvgDrawFunc draw);
/* One bar for several: as high as what ran is a share of its width, from the bottom up, and divided
 * among the kernels. */
void pto_svg_append_joined (PtoPicture *picture, const PtoSvgBar *bars, guint n, double x,
                            double width, double top, double height);
/* ", 8 % of it": of the time from the first start to an end, what ran. */
void pto_svg_append_share (GString *text, const PtoSvgBar *bars, guint n, guint64 end);
void pto_svg_collect_runs (PtoPicture *picture);
void pto_svg_append_runs (PtoPicture *picture);

/* --- svg-transfers.c --- */

void pto_svg_collect_transfers (PtoPicture *picture);
void pto_svg_append_transfers (PtoPicture *picture);
/* "8 bytes sent, 4 received, 0 were there already" */
void pto_svg_append_moved (GString *text, const guint64 sum[PTO_TRACE_N_MOVED]);

/* --- svg-text.c --- */

/* Two decimals at most, no trailing zeros: these numbers are most of the file. */
void pto_svg_append_number (GString *text, double value);
/* A text in which each # is one of the values. */
void pto_svg_append_numbers (GString *text, const char *form, const double *values);
/* The string is UTF-8; characters that XML does not have become U+FFFD. */
void pto_svg_append_escaped (GString *text, const char *string);
/* "12 345": groups of three, apart by a thin space. */
void pto_svg_append_grouped (GString *text, guint64 value);
/* ns as microseconds, with as many decimals as tell something: four digits in all. */
void pto_svg_append_microseconds (GString *text, guint64 ns);
/* "1.000 to 2.500 us" */
void pto_svg_append_stretch (GString *text, guint64 start, guint64 end);
/* ", 8 % of it": of the time from start to end; nothing of no time. */
void pto_svg_append_percent (GString *text, guint64 busy, guint64 start, guint64 end);
/* Leaves the element open. */
void pto_svg_append_rect (GString *text, const char *style, double x, double y, double width,
                          double height);
/* One on a line of its own. */
void pto_svg_append_box (PtoPicture *picture, const char *style, double x, double y, double width,
                         double height);
void pto_svg_append_label (PtoPicture *picture, const char *style, double x, double y,
                           const char *string);
/* About what a sans-serif font needs. */
double pto_svg_text_width (const char *string, double size);
double pto_svg_x (const PtoPicture *picture, guint64 time);

/* --- svg-tree.c --- */

/* Of a level: what is to be drawn below the rows of its workers. */
void pto_svg_collect_inner (PtoPicture *picture);
/* What it takes below the row of a child. */
double pto_svg_get_inner_height (const PtoPicture *picture, guint child);
/* When rows have their places. */
void pto_svg_append_inner (PtoPicture *picture);

G_END_DECLS
