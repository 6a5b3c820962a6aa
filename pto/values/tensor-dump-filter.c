/* tensor-dump-filter.c: of which tasks and arguments is there a dump?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "common/text.h"
#include "tensor-dump-filter.h"

#include <string.h>

/* "QK.2", "1:17", "s*": tasks of kernels with such a name, or one task; all its tensors, or one. */
typedef struct
{
  char *text;
  GPatternSpec *kernel; /* NULL: a task */
  guint64 task;
  guint argument;   /* G_MAXUINT: all */
  gboolean matched; /* the submitter's; read when the run is over */
} Term;

static void
term_free (gpointer data)
{
  Term *term = data;

  g_clear_pointer (&term->kernel, g_pattern_spec_free);
  g_free (term->text);
  g_free (term);
}

/* NULL: it is none. */
static Term *
parse_term (const char *text)
{
  const char *dot = strrchr (text, '.');
  g_autofree char *name = NULL;
  const char *colon;
  guint64 argument = G_MAXUINT, ring = 0, position;
  Term *term;

  if (dot != NULL
      && !g_ascii_string_to_unsigned (dot + 1, 10, 0, PTO_MAX_ARGS - 1, &argument, NULL))
    {
      /* A name may have one. */
      dot = NULL;
      argument = G_MAXUINT;
    }
  name = dot != NULL ? g_strndup (text, (gsize) (dot - text)) : g_strdup (text);
  if (name[0] == '\0')
    return NULL;
  term = g_new0 (Term, 1);
  term->text = g_strdup (text);
  term->argument = (guint) argument;
  colon = strchr (name, ':');
  if (colon != NULL)
    {
      g_autofree char *first = g_strndup (name, (gsize) (colon - name));

      if (!g_ascii_string_to_unsigned (first, 10, 0, PTO_RINGS - 1, &ring, NULL))
        ring = PTO_RINGS;
    }
  if (ring < PTO_RINGS
      && g_ascii_string_to_unsigned (colon != NULL ? colon + 1 : name, 10, 0, G_MAXUINT32,
                                     &position, NULL))
    term->task = PTO_TASK_ID (ring, position);
  else
    term->kernel = g_pattern_spec_new (name);
  return term;
}

PtoDumpFilter *
pto_dump_filter_new (const char *text, char **why)
{
  g_auto (GStrv) words = g_strsplit_set (text, ", ", -1);
  PtoDumpFilter *filter = g_ptr_array_new_with_free_func (term_free);

  for (guint i = 0; words[i] != NULL; i++)
    {
      Term *term;

      if (words[i][0] == '\0')
        continue;
      term = parse_term (words[i]);
      if (term == NULL)
        {
          if (why != NULL)
            *why = g_strdup_printf (
                _ ("dump_filter: \"%s\" is no task: name a kernel (QK, s*), a task (17, "
                   "1:17), or one argument of them (QK.2)"),
                words[i]);
          break;
        }
      g_ptr_array_add (filter, term);
    }
  return filter;
}

char *
pto_dump_check_filter (const char *text)
{
  char *why = NULL;

  g_ptr_array_unref (pto_dump_filter_new (text, &why));
  return why;
}

static gboolean
matches_kernel (const Term *term, const struct pto_watched *task)
{
  const char *name;

  for (guint m = 0; (name = pto_watched_kernel (task, m)) != NULL; m++)
    if (g_pattern_spec_match_string (term->kernel, name))
      return TRUE;
  return FALSE;
}

gboolean
pto_dump_filter_has (PtoDumpFilter *filter, const struct pto_watched *task, guint argument)
{
  gboolean wanted = filter->len == 0;

  for (guint i = 0; i < filter->len; i++)
    {
      Term *term = filter->pdata[i];

      if ((term->argument != G_MAXUINT && term->argument != argument)
          || (term->kernel != NULL ? !matches_kernel (term, task) : term->task != task->id))
        continue;
      term->matched = TRUE;
      wanted = TRUE;
    }
  return wanted;
}

gboolean
pto_dump_filter_may_have (const PtoDumpFilter *filter, const char *kernel, guint argument)
{
  for (guint i = 0; i < filter->len; i++)
    {
      const Term *term = filter->pdata[i];

      if ((term->argument == G_MAXUINT || term->argument == argument) && term->kernel != NULL
          && g_pattern_spec_match_string (term->kernel, kernel))
        return TRUE;
    }
  return filter->len == 0;
}

void
pto_dump_filter_warn (const PtoDumpFilter *filter)
{
  for (guint i = 0; i < filter->len; i++)
    {
      const Term *term = filter->pdata[i];

      if (!term->matched)
        g_warning ("dump_filter: no task of the run matches \"%s\"", term->text);
    }
}
