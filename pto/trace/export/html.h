/* html.h: what do the parts of a report share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "shown.h"

G_BEGIN_DECLS

/* A run in the page. */
typedef struct
{
  const PtoTracePart *part;
  guint32 *rows;  /* per core: row of the page */
  guint32 *files; /* per source file of the trace: file of the page */
} PtoHtmlSection;

typedef struct
{
  PtoTrace *trace;
  PtoHtmlSection *sections; /* of each part */
  guint n_sections;
  GPtrArray *rows; /* PtoShownRow */
  PtoLegend *legend;
  GPtrArray *files; /* names of source files */
  GString *text;
} PtoHtmlPage;

/* --- html-text.c --- */

void pto_html_append_string (GString *text, const char *string);
void pto_html_append_member (GString *text, const char *name, const char *string);
void pto_html_append_number (GString *text, const char *name, guint64 value);
void pto_html_append_flag (GString *text, const char *name, gboolean value);
void pto_html_begin_column (GString *text, const char *name);
void pto_html_separate (GString *text);
void pto_html_put (GString *text, gint64 value);
void pto_html_end_column (GString *text);

/* Columns of numbers, which are filled line by line. */
typedef struct
{
  const char *const *names;
  GString **columns;
  guint n;
  guint n_lines;
} PtoHtmlTable;

/* What is null in a column. */
#define PTO_HTML_NOTHING G_MININT64

PtoHtmlTable *pto_html_table_new (const char *const *names, guint n);
/* A value for each column. */
void pto_html_table_add (PtoHtmlTable *table, const gint64 *values);
/* Without those columns that are not said: bits, by position. Frees it. */
void pto_html_table_end (PtoHtmlTable *table, GString *text, guint32 left_out);
/* As a member that is an object, with the number of lines before them: "n". */
void pto_html_table_end_object (PtoHtmlTable *table, GString *text, const char *name,
                                guint32 left_out);

/* --- html-args.c --- */

/* What tasks were given; nothing where that is not recorded. */
void pto_html_append_arguments (PtoHtmlPage *page);

/* --- html-transfers.c --- */

/* What of tensors travelled, by row and start; nothing where none did. */
void pto_html_append_transfers (PtoHtmlPage *page);

G_END_DECLS
