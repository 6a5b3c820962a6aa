/* svg.h: what do the parts of a picture of a run share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "trace/model/trace.h"

G_BEGIN_DECLS

#define PTO_SVG_WIDTH 1800
#define PTO_SVG_MARGIN 28

typedef struct
{
  guint32 kernel;
  guint64 runs;
  char *name;
} PtoLegendEntry;

typedef struct
{
  PtoTrace *trace;
  const PtoTraceAnalysis *analysis;
  GString *text;
  GArray *legend;      /* PtoLegendEntry, by kernel */
  GHashTable *styles;  /* kernel -> position in legend + 1 */
  double left, right;  /* of the plot */
  double scale;        /* pixels per ns */
  double row;          /* height of a core's row */
  double *core_top;    /* per core that is not folded */
  gboolean *is_folded; /* per core: in a cluster without work, which has no rows */
  guint n_shown_cores;
  guint n_folded_clusters;
  double fold_top;     /* of the line that says so */
  double narrow;       /* pixels: narrower bars join their neighbours */
  double inner_narrow; /* the same below the rows */
  gboolean has_joined; /* some did */
  double control_top, rows_top, rows_bottom;
  GPtrArray **inner;      /* per core: PtoInnerRow, what lies below its row; NULL: nothing */
  guint n_inner_left_out; /* rows for which there was no room */
  gboolean is_stretched;  /* one of those has a virtual clock */
} PtoPicture;

/* What the kernel of that number in the legend is drawn with: "#7cc0ee"; the path of a hatching on
 * a cell of 6 by 6, or NULL. */
const char *pto_svg_get_colour (guint number);
const char *pto_svg_get_hatching (guint number);

/* Of a kernel of the trace: its position in the legend. */
guint pto_svg_get_style (const PtoPicture *picture, guint32 kernel);

/* --- svg-rows.c --- */

/* Where every core's row goes; gives the y below the last. */
double pto_svg_place_cores (PtoPicture *picture, double y);
/* Names, bands, and how busy each was. */
void pto_svg_append_core_labels (PtoPicture *picture);
/* Which clusters have no rows: over the lines of the axis. */
void pto_svg_append_fold (PtoPicture *picture);

/* --- svg-bars.c --- */

/* How narrow bars have to be for the picture to stay small. */
void pto_svg_measure_bars (PtoPicture *picture);
void pto_svg_append_bars (PtoPicture *picture);
/* Does the bar that is next join those from start to end? In pixels. */
gboolean pto_svg_joins (double start, double end, double next, double next_end, double narrow);
/* One bar for several, which took so many ns in all: as high as that is a share of its width, from
 * the bottom up, and divided among the kernels as parts are, by position in the legend. */
void pto_svg_append_joined (PtoPicture *picture, const guint64 *parts, guint64 took, double x,
                            double width, double top, double height);
/* ", 8 % of it" */
void pto_svg_append_share (GString *text, guint64 busy, guint64 from, guint64 to);

/* --- svg-transfers.c --- */

/* Bars of what travels, of rows that are there. */
guint pto_svg_count_transfers (const PtoPicture *picture, double narrow);
void pto_svg_append_transfers (PtoPicture *picture);
/* "8 bytes sent, 4 received, 0 were there already" */
void pto_svg_append_moved (GString *text, const guint64 sum[PTO_TRACE_N_MOVED]);

/* --- svg-text.c --- */

/* Two decimals at most, no trailing zeros: these numbers are most of the file. */
void pto_svg_append_number (GString *text, double value);
void pto_svg_append_attribute (GString *text, const char *name, double value);
/* The string is UTF-8; characters that XML does not have become U+FFFD. */
void pto_svg_append_escaped (GString *text, const char *string);
/* "12 345": groups of three, apart by a thin space. */
void pto_svg_append_grouped (GString *text, guint64 value);
/* ns as microseconds, with as many decimals as tell something: four digits in all. */
void pto_svg_append_microseconds (GString *text, guint64 ns);
/* Leaves the element open. */
void pto_svg_append_rect (GString *text, const char *style, double x, double y, double width,
                          double height);
void pto_svg_append_label (PtoPicture *picture, const char *style, double x, double y,
                           const char *string);
/* About what a sans-serif font needs. */
double pto_svg_text_width (const char *string, double size);
double pto_svg_x (const PtoPicture *picture, guint64 time);

/* --- svg-tree.c --- */

/* Of a level: what is to be drawn below the rows of its workers, and the kernels of that behind the
 * legend's own. */
void pto_svg_collect_inner (PtoPicture *picture);
void pto_svg_measure_inner (PtoPicture *picture);
/* What it takes below the row of a child. */
double pto_svg_get_inner_height (const PtoPicture *picture, guint child);
/* When rows have their places. */
void pto_svg_append_inner (PtoPicture *picture);
void pto_svg_clear_inner (PtoPicture *picture);

G_END_DECLS
