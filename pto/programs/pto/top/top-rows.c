/* top-rows.c: which rows does `pto top` show?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "terminal.h"
#include "top.h"

#include "common/members.h"

#include <glib/gi18n.h>
#include <string.h>

#define NAME_WIDTH 12
#define BAR_WIDTH 20

static void
row_free (gpointer data)
{
  TopRow *row = data;

  g_free (row->text);
  g_free (row);
}

G_GNUC_PRINTF (3, 4)
static void
add (GPtrArray *rows, TopKind kind, const char *format, ...)
{
  TopRow *row = g_new0 (TopRow, 1);
  va_list args;

  va_start (args, format);
  row->text = g_strdup_vprintf (format, args);
  va_end (args);
  row->kind = kind;
  g_ptr_array_add (rows, row);
}

/* --- words --- */

/* A word of the answer, which may be in no language or in the reader's. */
static const char *
word (JsonObject *of, const char *member)
{
  const char *text = member_text (of, member);

  return *text != '\0' ? _ (text) : text;
}

/* Those of which a ready task needs one: "AIC", "workers of level 3". */
static char *
needs (JsonObject *of)
{
  const char *format = N_ ("workers of level %u");
  const char *text = member_text (of, "needs");
  gsize n = strlen (format) - strlen ("%u");
  guint64 level;

  if (strncmp (text, format, n) == 0
      && g_ascii_string_to_unsigned (text + n, 10, 0, G_MAXUINT32, &level, NULL))
    return g_strdup_printf (_ ("workers of level %u"), (guint) level);
  return g_strdup (*text != '\0' ? word (of, "needs") : _ ("places"));
}

/* "3.2 s", or nothing: it is not known. */
static char *
age (JsonObject *of)
{
  guint64 ns = member_number (of, "for_ns");

  if (ns == 0)
    return g_strdup ("");
  return ns < 1000000000 ? g_strdup_printf (_ ("%.0f ms"), (double) ns / 1e6)
                         : g_strdup_printf (_ ("%.1f s"), (double) ns / 1e9);
}

static char *
bytes (guint64 value)
{
  if (value < 1024)
    return g_strdup_printf ("%" G_GUINT64_FORMAT " B", value);
  if (value < 1024 * 1024)
    return g_strdup_printf ("%.1f KiB", (double) value / 1024);
  if (value < G_GUINT64_CONSTANT (1) << 30)
    return g_strdup_printf ("%.1f MiB", (double) value / (1024 * 1024));
  return g_strdup_printf ("%.1f GiB", (double) value / (1024 * 1024 * 1024));
}

/* "[#####     ]": something in use is seen. */
static char *
bar (guint64 used, guint64 all)
{
  char *drawn = g_strdup_printf ("[%*s]", BAR_WIDTH, "");
  guint64 n = all > 0 ? (guint64) ((double) used / (double) all * BAR_WIDTH + 0.5) : 0;

  n = MIN (used > 0 ? MAX (n, 1) : n, BAR_WIDTH);
  memset (drawn + 1, '#', n);
  return drawn;
}

static char *
task (JsonObject *of)
{
  return g_strdup_printf ("%s %s", member_text (of, "task"), member_text (of, "kernel"));
}

/* --- rows --- */

static void
add_submitter (GPtrArray *rows, JsonObject *submitter, int indent)
{
  static const struct
  {
    const char *doing;
    const char *words;
    TopKind kind;
  } all[] = {
    { "orchestration", N_ ("in the orchestration"), TOP_BUSY },
    { "call", N_ ("submits"), TOP_BUSY },
    { "task", N_ ("runs each task itself"), TOP_BUSY },
    { "turn", N_ ("waits for its turn"), TOP_WAITS },
    { "room", N_ ("waits for room"), TOP_WAITS },
    { "cluster", N_ ("waits for a cluster"), TOP_WAITS },
    { "await", N_ ("waits for task"), TOP_WAITS },
    { "await-all", N_ ("waits for all tasks"), TOP_WAITS },
    { "end", N_ ("waits for the end"), TOP_WAITS },
  };
  g_autofree char *since = age (submitter);
  g_autofree char *which = task (submitter);
  g_autofree char *name = terminal_pad (_ ("submitter"), NAME_WIDTH);

  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    if (member_is (submitter, "doing", all[i].doing))
      {
        g_autofree char *words = terminal_pad (_ (all[i].words), 22);

        add (rows, all[i].kind, "%*s%s %s %s  %s%s%s", indent, "", name, words, since,
             *member_text (submitter, "task") != '\0' ? which : "",
             *member_text (submitter, "knob") != '\0' ? ": " : "", word (submitter, "knob"));
      }
}

static void
add_rings (GPtrArray *rows, JsonObject *worker, int indent)
{
  for (guint i = 0; i < member_length (worker, "rings"); i++)
    {
      JsonObject *ring = member_element (worker, "rings", i);
      guint64 window = MAX (member_number (ring, "window"), 1) - 1;
      g_autofree char *slots = bar (member_number (ring, "tasks"), window);
      g_autofree char *heap = bar (member_number (ring, "heap_used"), member_number (ring, "heap"));
      g_autofree char *used = bytes (member_number (ring, "heap_used"));
      g_autofree char *total = bytes (member_number (ring, "heap"));
      g_autofree char *title = g_strdup_printf (_ ("ring %u"), i);
      g_autofree char *name = terminal_pad (title, NAME_WIDTH);

      if (i > 0 && member_number (ring, "tasks") == 0)
        continue;
      add (rows, TOP_PLAIN, "%*s%s %s %" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT "  %s %s %s/%s",
           indent, "", name, slots, member_number (ring, "tasks"), window, _ ("heap"), heap, used,
           total);
    }
}

static void
add_cores (GPtrArray *rows, JsonObject *worker, int indent)
{
  JsonObject *scheduler, *core;

  for (guint i = 0; (scheduler = member_next (worker, "schedulers", &i)) != NULL;)
    {
      g_autofree char *cores
          = bar (member_number (scheduler, "busy"), member_number (scheduler, "cores"));

      add (rows, TOP_PLAIN, "%*s%-*s %s %" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT "  %s", indent,
           "", NAME_WIDTH, member_text (scheduler, "scheduler"), cores,
           member_number (scheduler, "busy"), member_number (scheduler, "cores"),
           word (scheduler, "doing"));
    }
  for (guint i = 0; (core = member_next (worker, "cores", &i)) != NULL;)
    {
      g_autofree char *since = age (core);
      g_autofree char *which = task (core);
      gboolean waits = member_is (core, "doing", "pops") || member_is (core, "doing", "pushes")
                       || member_is (core, "doing", "meets");

      if (member_is (core, "doing", "idle"))
        add (rows, TOP_IDLE, "%*s%-*s %s", indent, "", NAME_WIDTH, member_text (core, "core"),
             _ ("idle"));
      else
        {
          g_autofree char *padded = terminal_pad (word (core, "doing"), 8);
          g_autofree char *time = terminal_pad (since, 8);

          add (rows, waits ? TOP_WAITS : TOP_BUSY, "%*s%-*s %s %s %s", indent, "", NAME_WIDTH,
               member_text (core, "core"), padded, time,
               *member_text (core, "task") != '\0' ? which : "");
        }
    }
}

static void
add_waiting (GPtrArray *rows, JsonObject *run, int indent)
{
  JsonObject *waiting, *cause;

  for (guint i = 0; (waiting = member_next (run, "waiting", &i)) != NULL;)
    {
      g_autofree char *which = task (waiting);
      g_autofree char *state = NULL;
      g_autofree char *padded = NULL;
      g_autoptr (GString) after = g_string_new (NULL);

      for (guint k = 0; (cause = member_next (waiting, "after", &k)) != NULL;)
        {
          g_autofree char *what = task (cause);

          g_string_append_printf (after, "%s%s (%s)", k > 1 ? ", " : "", what,
                                  word (cause, "state"));
        }
      if (after->len == 0)
        {
          g_autofree char *places = needs (waiting);

          g_string_append (after, places);
        }
      state = terminal_pad (word (waiting, "state"), NAME_WIDTH);
      padded = terminal_pad (which, 24);
      add (rows, TOP_WAITS, "%*s%s %s %s %s", indent, "", state, padded, _ ("for"), after->str);
    }
}

static void add_worker (GPtrArray *rows, JsonObject *worker, int indent);

static void
add_children (GPtrArray *rows, JsonObject *worker, int indent)
{
  JsonObject *child, *below;

  for (guint i = 0; (child = member_next (worker, "children", &i)) != NULL;)
    {
      gboolean has_task = *member_text (child, "task") != '\0';
      g_autofree char *since = age (child);
      g_autofree char *time = terminal_pad (since, 8);
      g_autofree char *life = terminal_pad (
          json_object_has_member (child, "is_suspect") ? _ ("suspect") : word (child, "life"), 8);
      g_autofree char *which = task (child);
      const char *path = member_text (child, "path");
      const char *above = member_text (worker, "path");

      if (g_str_has_prefix (path, above) && path[strlen (above)] == '/')
        path += strlen (above) + 1;
      add (rows, has_task ? TOP_BUSY : TOP_IDLE, "%*s%-*s %s %s %s%s%s%s%s", indent, "", NAME_WIDTH,
           path, life, time, member_text (child, "address"),
           has_task && *member_text (child, "address") != '\0' ? "  " : "", has_task ? which : "",
           *member_text (child, "silent") != '\0' ? "  " : "", word (child, "silent"));
      for (guint k = 0; (below = member_next (child, "below", &k)) != NULL;)
        add_worker (rows, below, indent + 2);
    }
}

static void
add_worker (GPtrArray *rows, JsonObject *worker, int indent)
{
  JsonObject *run = member_object (worker, "run");
  g_autofree char *since = age (run);

  add (rows, TOP_TITLE, "%*s%s  %s  %s  %s", indent, "", member_text (worker, "path"),
       member_text (worker, "platform"),
       run != NULL ? member_text (run, "title") : _ ("no run is under way"), since);
  indent += 2;
  if (*member_text (worker, "silent") != '\0')
    add (rows, TOP_PLAIN, "%*s%s", indent, "", word (worker, "silent"));
  if (run != NULL)
    {
      g_autofree char *name = terminal_pad (_ ("tasks"), NAME_WIDTH);

      add (rows, TOP_PLAIN,
           "%*s%s %" G_GUINT64_FORMAT " %s, %" G_GUINT64_FORMAT " %s, %" G_GUINT64_FORMAT
           " %s, %" G_GUINT64_FORMAT " %s, %" G_GUINT64_FORMAT " %s",
           indent, "", name, member_number (run, "submitted"), _ ("submitted"),
           member_number (run, "completed"), _ ("complete"), member_number (run, "running"),
           _ ("running"), member_number (run, "ready"), _ ("ready"), member_number (run, "blocked"),
           _ ("blocked"));
      add_submitter (rows, member_object (run, "submitter"), indent);
    }
  add_rings (rows, worker, indent);
  add_cores (rows, worker, indent);
  add_children (rows, worker, indent);
  if (run != NULL)
    add_waiting (rows, run, indent);
}

GPtrArray *
top_make_rows (JsonObject *state)
{
  GPtrArray *rows = g_ptr_array_new_with_free_func (row_free);
  JsonObject *worker;

  if (member_length (state, "workers") == 0)
    add (rows, TOP_PLAIN, "%s", _ ("no worker has started"));
  for (guint i = 0; (worker = member_next (state, "workers", &i)) != NULL;)
    add_worker (rows, worker, 0);
  return rows;
}
