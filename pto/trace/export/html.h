/* html.h: what do the parts of a report share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "trace/model/trace.h"

G_BEGIN_DECLS

/* A run in the page: the trace itself, and each run of a worker below it. */
typedef struct
{
  PtoTraceView view;
  const PtoTraceAnalysis *analysis;
  char *path;       /* of its worker; "": a chip that is below nobody */
  guint parent;     /* position among the sections; of the first one its own */
  guint32 task;     /* entry of the page that it is the inside of, or PTO_TRACE_NOWHERE */
  guint32 child;    /* of the parent's trace */
  guint32 first;    /* entry of the page that is its first */
  GPtrArray *inner; /* Section: what ran inside of its tasks */
  guint32 *rows;    /* per core: row of the page */
  guint32 *styles;  /* per entry of the analysis: kernel of the page */
  guint32 *files;   /* per source file of the trace: file of the page */
} PtoHtmlSection;

typedef struct
{
  char *name;
  char *path; /* of the worker that it belongs to */
  const char *kind;
  guint cluster;
  gint parent; /* row, or -1 */
  guint depth;
  guint64 busy;
} PtoHtmlRow;

typedef struct
{
  gint64 id; /* of the outermost trace; -1: of none */
  char *name;
} PtoHtmlKernel;

typedef struct
{
  PtoTrace *trace;
  GPtrArray *sections; /* PtoHtmlSection */
  GPtrArray *rows;     /* PtoHtmlRow */
  GArray *kernels;     /* Kernel: in the order of a picture's legend, then those that never ran */
  GHashTable *names;   /* of kernels -> position + 1 */
  GPtrArray *files;    /* names of source files */
  guint32 n_entries;
  GString *text;
} PtoHtmlPage;

static inline const PtoHtmlSection *
pto_html_get_section (const PtoHtmlPage *page, guint number)
{
  return g_ptr_array_index (page->sections, number);
}

/* --- html-text.c --- */

void pto_html_append_string (GString *text, const char *string);
void pto_html_append_member (GString *text, const char *name, const char *string);
void pto_html_append_number (GString *text, const char *name, guint64 value);
void pto_html_append_flag (GString *text, const char *name, gboolean value);
void pto_html_begin_column (GString *text, const char *name);
void pto_html_separate (GString *text);
void pto_html_put (GString *text, gint64 value);
void pto_html_put_nothing (GString *text);
void pto_html_end_column (GString *text);

/* --- html-args.c --- */

/* What tasks were given; nothing where that is not recorded. */
void pto_html_append_arguments (PtoHtmlPage *page);

/* --- html-transfers.c --- */

/* What of tensors travelled, by row and start; nothing where none did. */
void pto_html_append_transfers (PtoHtmlPage *page);

G_END_DECLS
