/* task-label.c: which task of a trace, or of what a worker did inside of one, is meant?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Ids are those of one run of one worker: "17", or "1:17" of ring 1. Inside of a task of another
 * worker it is "7/1:17", and where several workers ran that, as a group does, "7.1/1:17": on the
 * second of them, in the order of the trace's rows.
 */
#include "config.h"

#include "pto-trace-items.h"
#include "pto-trace-topics.h"

#include "core/task.h"

#include "common/text.h"
#include "trace/model/trace-items.h"
#include "trace-answers.h"

#include <string.h>

void
pto_trace_append_task_label (GString *text, guint64 id)
{
  if (PTO_TASK_RING (id) > 0)
    g_string_append_printf (text, "%u:", PTO_TASK_RING (id));
  g_string_append_printf (text, "%u", PTO_TASK_LOCAL (id));
}

char *
pto_trace_dup_task_label (guint64 id)
{
  GString *text = g_string_new (NULL);

  pto_trace_append_task_label (text, id);
  return g_string_free (text, FALSE);
}

/* "7.1/", of what the part is inside of. */
static void
append_outer (GString *text, const PtoTracePart *part)
{
  const GPtrArray *pieces;
  guint64 task;
  guint position = 0, n = 0;

  if (part->parent == NULL)
    return;
  append_outer (text, part->parent);
  pieces = part->parent->trace->pieces.list;
  task = ((const PtoTracePiece *) g_ptr_array_index (pieces, part->piece))->task;
  for (guint i = 0; i < pieces->len; i++)
    if (((const PtoTracePiece *) g_ptr_array_index (pieces, i))->task == task)
      {
        n++;
        position += i < part->piece;
      }
  pto_trace_append_task_label (text, task);
  if (n > 1)
    g_string_append_printf (text, ".%u", position);
  g_string_append_c (text, '/');
}

/**
 * pto_trace_task_dup_label:
 * @self: a task
 *
 * Gives what names it in the whole trace, for [method@Pto.Trace.explain] and `pto trace FILE why`.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): `17`, `1:17` of ring 1, or `7/1:17` inside of task 7 of the worker
 * above
 *
 * Since: 0.1
 */
char *
pto_trace_task_dup_label (PtoTraceTask *self)
{
  GString *text;
  guint64 id;

  g_return_val_if_fail (PTO_IS_TRACE_TASK (self), NULL);

  text = g_string_new (NULL);
  append_outer (text, pto_trace_task_peek (self, &id));
  pto_trace_append_task_label (text, id);
  return g_string_free (text, FALSE);
}

/* "17", "1:17" or the whole of an id in decimal. */
static gboolean
parse_id (const char *word, guint64 *id)
{
  const char *colon = strchr (word, ':');
  g_autofree char *first = NULL;
  guint64 ring;

  if (colon == NULL)
    return g_ascii_string_to_unsigned (word, 10, 0, G_MAXUINT64, id, NULL);
  first = g_strndup (word, (gsize) (colon - word));
  if (!g_ascii_string_to_unsigned (first, 10, 0, PTO_RINGS - 1, &ring, NULL)
      || !g_ascii_string_to_unsigned (colon + 1, 10, 0, G_MAXUINT32, id, NULL))
    return FALSE;
  *id |= ring << 32;
  return TRUE;
}

/* "7", or "7.1". */
static gboolean
parse_outer (const char *word, guint64 *id, guint64 *position, gboolean *has_position)
{
  const char *point = strchr (word, '.');
  g_autofree char *first = point != NULL ? g_strndup (word, (gsize) (point - word)) : NULL;

  *has_position = point != NULL;
  return parse_id (first != NULL ? first : word, id)
         && (point == NULL
             || g_ascii_string_to_unsigned (point + 1, 10, 0, G_MAXUINT32, position, NULL));
}

/* Goes to what a worker did inside of that task. */
static gboolean
enter (PtoTraceFound *found, guint64 id, guint64 position, gboolean has_position, GError **error)
{
  g_autofree char *name = pto_trace_dup_task_name (id);
  g_autofree char *path = NULL;
  PtoTrace *outer = found->trace;
  g_autoptr (GString) which = g_string_new (NULL);
  guint n = 0;

  for (guint i = 0; i < outer->pieces.list->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (outer->pieces.list, i);

      if (piece->task != id)
        continue;
      g_string_append (which, n > 0 ? ", " : "");
      pto_trace_append_task_label (which, id);
      g_string_append_printf (which, ".%u (%s)", n, outer->rows[piece->child]);
      if (n == position)
        {
          g_free (path);
          path = pto_trace_dup_child_path (found->path, outer, piece->child);
          found->trace = piece->trace;
        }
      n++;
    }
  if (n == 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                   _ ("task %s: the trace has nothing that a worker recorded inside of it"), name);
      return FALSE;
    }
  if (position >= n || (n > 1 && !has_position))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                   P_ ("task %s: %u worker recorded what happened inside of it: say which of %s",
                       "task %s: %u workers recorded what happened inside of it: say which of %s",
                       n),
                   name, n, which->str);
      return FALSE;
    }
  g_free (found->path);
  found->path = g_steal_pointer (&path);
  return TRUE;
}

gboolean
pto_trace_find_label (PtoTrace *trace, const char *label, PtoTraceFound *found, GError **error)
{
  g_auto (GStrv) words = g_strsplit (label, "/", -1);
  guint n = g_strv_length (words);
  gboolean ok = n > 0;

  *found = (PtoTraceFound){ .trace = trace, .path = g_strdup (trace->path) };
  for (guint i = 0; ok && i + 1 < n; i++)
    {
      guint64 id, position = 0;
      gboolean has_position;

      ok = parse_outer (words[i], &id, &position, &has_position);
      if (ok && !enter (found, id, position, has_position, error))
        return FALSE;
    }
  if (ok && parse_id (words[n - 1], &found->id))
    {
      if (n > 1)
        found->within = g_strndup (label, strlen (label) - strlen (words[n - 1]) - 1);
      return TRUE;
    }
  g_set_error (
      error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
      _ ("\"%s\" is no task: it is a number, 17, one of a ring, 1:17, of which there are 0 to "
         "%u, or one inside of another worker's task, 7/1:17"),
      label, PTO_RINGS - 1);
  return FALSE;
}

void
pto_trace_found_clear (PtoTraceFound *found)
{
  g_clear_pointer (&found->path, g_free);
  g_clear_pointer (&found->within, g_free);
}
