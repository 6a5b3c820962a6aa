/* state-text.c: what do workers do and wait for, in lines for people?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "state.h"

#include "common/printable.h"
#include "common/text.h"

#include <string.h>

#define NAME_WIDTH 12

static char *
format_time (guint64 ns)
{
  double seconds = (double) ns / 1e9;

  if (ns < 1000000)
    return g_strdup_printf (_ ("%.0f us"), (double) ns / 1e3);
  if (seconds < 1)
    return g_strdup_printf (_ ("%.0f ms"), (double) ns / 1e6);
  if (seconds < 600)
    return g_strdup_printf (_ ("%.1f s"), seconds);
  return g_strdup_printf (_ ("%.1f h"), seconds / 3600);
}

static char *
format_bytes (guint64 bytes)
{
  static const char *const units[] = { NULL, "KiB", "MiB", "GiB", "TiB" };
  double value = (double) bytes;
  guint unit = 0;

  for (; value >= 1024 && unit + 1 < G_N_ELEMENTS (units); unit++)
    value /= 1024;
  return unit == 0 ? g_strdup_printf (_ ("%" PRIu64 " bytes"), bytes)
                   : g_strdup_printf ("%.1f %s", value, units[unit]);
}

/* The beginning of a line: how deep, and what it is about. */
static void
append_name (GString *text, guint depth, const char *name)
{
  int width = MAX (NAME_WIDTH, (int) pto_count_columns (name) + 1);

  g_string_append_printf (text, "%*s", 2 * (int) depth, "");
  pto_append_padded (text, name, -width);
}

static void
append_for (GString *text, JsonObject *object)
{
  guint64 ns = member_number (object, "for_ns");
  g_autofree char *time = format_time (ns);

  if (ns > 0)
    g_string_append_printf (text, _ (", for %s"), time);
}

/* "task 17 (mul)", "task 17 of ring 1 (mul)"; a task of other kinds of places is named the same. */
static char *
tell_task (JsonObject *object)
{
  const char *label = member_text_or (object, "task", "?");
  const char *kernel = member_text_or (object, "kernel", "?");
  const char *local = strchr (label, ':');

  return local != NULL ? g_strdup_printf (_ ("task %s of ring %.*s (%s)"), local + 1,
                                          (int) (local - label), label, kernel)
                       : g_strdup_printf (_ ("task %s (%s)"), label, kernel);
}

/* A word that a member is, which the process has in no language or in the reader's. */
static const char *
get_word (JsonObject *object, const char *member)
{
  const char *word = member_text_or (object, member, "?");

  return *word != '\0' ? _ (word) : word;
}

static gboolean
has (JsonObject *object, const char *member)
{
  return *member_text (object, member) != '\0';
}

/* Those of which a ready task needs one: "AIC", "workers of level 3". */
static char *
tell_needs (JsonObject *task)
{
  const char *format = N_ ("workers of level %u");
  const char *needs = member_text (task, "needs");
  gsize length = strlen (format) - strlen ("%u");
  guint64 level;

  if (strncmp (needs, format, length) == 0
      && g_ascii_string_to_unsigned (needs + length, 10, 0, G_MAXUINT32, &level, NULL))
    return g_strdup_printf (_ ("workers of level %u"), (guint) level);
  return g_strdup (get_word (task, "needs"));
}

/* "task 17 (mul), which is running" */
static void
append_cause (GString *text, JsonObject *object)
{
  g_autofree char *task = tell_task (object);

  g_string_append_printf (text, _ ("%s, which is %s"), task, get_word (object, "state"));
}

/* --- a run --- */

static void
append_submitter (GString *text, guint depth, JsonObject *submitter)
{
  const char *doing = member_text (submitter, "doing");
  g_autofree char *task = tell_task (submitter);

  append_name (text, depth, _ ("submitter"));
  if (strcmp (doing, "orchestration") == 0)
    g_string_append (text, _ ("is in the code of the orchestration"));
  else if (strcmp (doing, "call") == 0)
    g_string_append (text, _ ("submits"));
  else if (strcmp (doing, "task") == 0)
    g_string_append (text, _ ("runs each task itself as it submits it"));
  else if (strcmp (doing, "turn") == 0)
    g_string_append (text, _ ("waits for its turn: all share one thread, which is in a kernel"));
  else if (strcmp (doing, "room") == 0 || strcmp (doing, "cluster") == 0)
    {
      g_string_append_printf (text,
                              doing[0] == 'r'
                                  ? _ ("waits for room: %s, active=%" PRIu64 "/%" PRIu64)
                                  : _ ("waits for a cluster: %s, active=%" PRIu64 "/%" PRIu64),
                              get_word (submitter, "short_of"), member_number (submitter, "used"),
                              member_number (submitter, "all"));
      append_for (text, submitter);
      if (has (submitter, "task"))
        g_string_append_printf (text, _ ("; the oldest, %s, is %s"), task,
                                get_word (submitter, "state"));
      g_string_append_printf (text, _ (": for submits to go on, %s\n"),
                              get_word (submitter, "knob"));
      return;
    }
  else if (strcmp (doing, "await") == 0)
    g_string_append_printf (text, _ ("waits for %s, which is %s"), task,
                            get_word (submitter, "state"));
  else if (strcmp (doing, "await-all") == 0)
    g_string_append (text, _ ("waits for all that it has submitted"));
  else
    g_string_append (text, _ ("has submitted everything and waits for the end"));
  append_for (text, submitter);
  g_string_append_c (text, '\n');
}

static void
append_waiting (GString *text, guint depth, JsonObject *task)
{
  guint n_told = member_length (task, "after");
  guint64 n = member_number (task, "producers");
  guint64 places = member_number (task, "places");
  g_autofree char *words = tell_task (task);
  g_autofree char *needs = tell_needs (task);
  g_autoptr (GString) causes = g_string_new (NULL);
  JsonObject *cause;

  append_name (text, depth, _ ("waits"));
  for (guint i = 0; (cause = member_next (task, "after", &i)) != NULL;)
    {
      g_string_append (causes, i > 1 ? _ (", ") : "");
      append_cause (causes, cause);
    }
  if (n > n_told)
    g_string_append_printf (
        causes, n_told > 0 ? _ (", and %" PRIu64 " more") : _ ("%" PRIu64 " more"), n - n_told);
  if (n > 0)
    g_string_append_printf (text, _ ("%s for %s"), words, causes->str);
  else if (places > 0)
    g_string_append_printf (text, _ ("%s for %" PRIu64 " places at once, of which it has %" PRIu64),
                            words, places, member_number (task, "kept_places"));
  else if (member_is (task, "state", "ready"))
    g_string_append_printf (text, _ ("%s: ready, for an idle one of %s"), words, needs);
  else
    g_string_append_printf (text, _ ("%s to be let go"), words);
  g_string_append_c (text, '\n');
}

static void
append_run (GString *text, guint depth, JsonObject *run)
{
  guint n_told = member_length (run, "waiting");
  JsonObject *task;
  JsonObject *submitter = member_object (run, "submitter");
  guint64 blocked = member_number (run, "blocked");
  guint64 unseen = member_number (run, "not_looked_at");
  guint64 others = blocked + member_number (run, "ready") + unseen;

  append_name (text, depth, _ ("tasks"));
  g_string_append_printf (text,
                          _ ("%" PRIu64 " submitted, %" PRIu64 " complete, %" PRIu64
                             " running, %" PRIu64 " ready, %" PRIu64 " blocked"),
                          member_number (run, "submitted"), member_number (run, "completed"),
                          member_number (run, "running"), member_number (run, "ready"), blocked);
  if (unseen > 0)
    g_string_append_printf (text, _ (", %" PRIu64 " not looked at"), unseen);
  if (member_flag (run, "has_failed"))
    g_string_append (text, _ ("; the run has failed, and ends"));
  g_string_append_c (text, '\n');
  if (submitter != NULL)
    append_submitter (text, depth, submitter);
  for (guint i = 0; (task = member_next (run, "waiting", &i)) != NULL;)
    append_waiting (text, depth, task);
  if (others > n_told)
    {
      append_name (text, depth, "");
      g_string_append_printf (text, _ ("and %" PRIu64 " others\n"), others - n_told);
    }
}

/* --- chips --- */

static void
append_tensor (GString *text, JsonObject *tensor)
{
  JsonArray *shape = member_array (tensor, "shape");
  g_autoptr (GString) extents = g_string_new (NULL);

  for (guint i = 0; i < member_length (tensor, "shape"); i++)
    g_string_append_printf (extents, "%s%" G_GINT64_FORMAT, i > 0 ? ", " : "",
                            json_array_get_int_element (shape, i));
  g_string_append_printf (text, _ ("argument %" PRIu64 " %s [%s] at %s"),
                          member_number (tensor, "argument"), member_text_or (tensor, "type", "?"),
                          extents->str, member_text_or (tensor, "address", "?"));
}

/* FALSE: it is idle. */
static gboolean
append_core (GString *text, guint depth, JsonObject *core)
{
  g_autofree char *task = tell_task (core);
  guint64 pipe = member_number (core, "pipe");
  JsonObject *tensor;

  if (member_is (core, "doing", "idle"))
    return FALSE;
  append_name (text, depth, member_text_or (core, "core", "?"));
  if (!has (core, "task"))
    {
      g_string_append (text, _ ("goes from one task to the next\n"));
      return TRUE;
    }
  g_string_append_printf (text, _ ("runs %s"), task);
  if (member_number (core, "blocks") > 1)
    g_string_append_printf (text, _ (", block %" PRIu64 " of %" PRIu64),
                            member_number (core, "block"), member_number (core, "blocks"));
  append_for (text, core);
  if (member_is (core, "doing", "pops"))
    g_string_append_printf (text, _ (": waits in TPOP() for pipe %" PRIu64 ", which is empty"),
                            pipe);
  else if (member_is (core, "doing", "pushes"))
    g_string_append_printf (text, _ (": waits in TPUSH() for pipe %" PRIu64 ", which is full"),
                            pipe);
  else if (member_is (core, "doing", "meets"))
    g_string_append_printf (
        text, _ (": waits in pto_sync_all(), where %" PRIu64 " of %" PRIu64 " have come"),
        member_number (core, "met"), member_number (core, "members"));
  for (guint i = 0; (tensor = member_next (core, "tensors", &i)) != NULL;)
    {
      g_string_append (text, i == 1 ? _ ("; ") : _ (", "));
      append_tensor (text, tensor);
    }
  if (member_number (core, "more_tensors") > 0)
    g_string_append_printf (text, _ (" and %" PRIu64 " more"),
                            member_number (core, "more_tensors"));
  g_string_append_c (text, '\n');
  return TRUE;
}

static void
append_chip (GString *text, guint depth, JsonObject *worker)
{
  JsonObject *scheduler, *core;
  guint n_idle = 0;

  for (guint i = 0; (scheduler = member_next (worker, "schedulers", &i)) != NULL;)
    {
      if (!has (scheduler, "scheduler") || !has (scheduler, "doing"))
        continue;
      append_name (text, depth, member_text (scheduler, "scheduler"));
      g_string_append_printf (
          text, _ ("%s: %" PRIu64 " of %" PRIu64 " cores are busy, %" PRIu64 " tasks complete\n"),
          member_is (scheduler, "doing", "sleeps")
              ? _ ("sleeps, nothing is ready for its idle cores")
          : member_is (scheduler, "doing", "runs a core")
              ? _ ("its thread is in the kernel of one of its cores")
              : get_word (scheduler, "doing"),
          member_number (scheduler, "busy"), member_number (scheduler, "cores"),
          member_number (scheduler, "completed"));
    }
  for (guint i = 0; (core = member_next (worker, "cores", &i)) != NULL;)
    n_idle += !append_core (text, depth, core);
  if (n_idle > 0)
    {
      append_name (text, depth, _ ("idle"));
      g_string_append_printf (text, _ ("%u of %u cores\n"), n_idle,
                              member_length (worker, "cores"));
    }
}

/* --- levels --- */

static void append_worker (GString *text, guint depth, JsonObject *worker);

/* "L2/0", "sub0": the end of a path. */
static const char *
get_name (const char *path, gboolean is_sub)
{
  const char *at = strrchr (path, '/');

  if (at == NULL)
    return path;
  if (is_sub)
    return at + 1;
  while (at > path && at[-1] != '/')
    at--;
  return at;
}

/* That of a remote worker is the one there: the one here only speaks for it. */
static void
append_process (GString *text, JsonObject *child)
{
  const char *address = member_text (child, "address");
  guint64 there = member_number (child, "far_pid");

  if (*address != '\0' && there > 0)
    g_string_append_printf (text, _ (" (remote: %s, process %" PRIu64 " there)"), address, there);
  else if (*address != '\0')
    g_string_append_printf (text, _ (" (remote: %s)"), address);
  else if (member_number (child, "pid") > 0)
    g_string_append_printf (text, _ (" (process %" PRIu64 ")"), member_number (child, "pid"));
}

static void
append_child (GString *text, guint depth, JsonObject *child)
{
  gboolean is_sub = member_is (child, "kind", "sub");
  g_autofree char *task = tell_task (child);
  JsonObject *worker;

  append_name (text, depth, get_name (member_text_or (child, "path", "?"), is_sub));
  if (has (child, "task"))
    g_string_append_printf (text, _ ("runs %s"), task);
  else if (has (child, "request"))
    g_string_append_printf (text, _ ("is asked for its %s"), get_word (child, "request"));
  else
    g_string_append (text, get_word (child, "life"));
  append_for (text, child);
  if (has (child, "task") && !member_is (child, "life", "busy"))
    g_string_append_printf (text, _ ("; %s"), get_word (child, "life"));
  if (member_flag (child, "is_stopped"))
    g_string_append (text, _ ("; it is stopped by a signal"));
  if (member_flag (child, "is_suspect"))
    g_string_append (text, _ ("; nothing is heard of it: it gets no task"));
  append_process (text, child);
  if (member_number (child, "lives") > 1)
    g_string_append_printf (text, _ ("; begun %" PRIu64 " times"), member_number (child, "lives"));
  if (has (child, "silent"))
    g_string_append_printf (text, _ ("; %s"), get_word (child, "silent"));
  g_string_append_c (text, '\n');
  for (guint i = 0; (worker = member_next (child, "below", &i)) != NULL;)
    append_worker (text, depth + 1, worker);
}

/* --- workers --- */

static void
append_rings (GString *text, guint depth, JsonObject *worker)
{
  JsonObject *ring;

  for (guint i = 0; (ring = member_next (worker, "rings", &i)) != NULL;)
    {
      g_autofree char *used = format_bytes (member_number (ring, "heap_used"));
      g_autofree char *all = format_bytes (member_number (ring, "heap"));
      g_autofree char *name = g_strdup_printf (_ ("ring %u"), (guint) member_number (ring, "ring"));

      if (member_number (ring, "tasks") == 0)
        continue;
      append_name (text, depth, name);
      g_string_append_printf (text,
                              _ ("%" PRIu64 " of %" PRIu64 " slots, %s of %s of heap, %" PRIu64
                                 " of %" PRIu64 " edges\n"),
                              member_number (ring, "tasks"), member_number (ring, "window") - 1,
                              used, all, member_number (ring, "edges"),
                              member_number (ring, "edge_pool"));
    }
}

static void
append_worker (GString *text, guint depth, JsonObject *worker)
{
  JsonObject *run = member_object (worker, "run");
  g_autofree char *time = format_time (member_number (run, "for_ns"));
  JsonObject *child;

  g_string_append_printf (text, "%*s%s:", 2 * (int) depth, "",
                          member_text_or (worker, "path", "?"));
  if (has (worker, "platform"))
    g_string_append_printf (
        text,
        member_flag (worker, "is_isolated") ? _ (" %s on %s in a process of its own,")
                                            : _ (" %s on %s,"),
        member_text (worker, "platform"), member_text_or (worker, "backend", "?"));
  if (has (worker, "silent"))
    g_string_append_printf (text, " %s\n", get_word (worker, "silent"));
  else if (run == NULL && json_object_has_member (worker, "run"))
    g_string_append (text, _ (" no run is under way\n"));
  else if (run == NULL)
    g_string_append (text, _ (" is being made, or ended\n"));
  else
    {
      g_string_append_printf (text,
                              member_flag (run, "is_capture")
                                  ? _ (" \"%s\" has been captured for %s\n")
                                  : _ (" \"%s\" has been running for %s\n"),
                              member_text_or (run, "title", "?"), time);
      append_run (text, depth + 1, run);
    }
  if (run != NULL)
    append_chip (text, depth + 1, worker);
  for (guint i = 0; (child = member_next (worker, "children", &i)) != NULL;)
    append_child (text, depth + 1, child);
  if (run != NULL)
    append_rings (text, depth + 1, worker);
}

char *
pto_state_to_text (JsonObject *state)
{
  GString *text = g_string_new (NULL);
  const char *library = member_text (state, "library");
  guint64 process = member_number (state, "pid");
  JsonObject *worker;

  if (has (state, "program"))
    g_string_append_printf (text, _ ("process %" PRIu64 " (%s), libpto %s\n"), process,
                            member_text (state, "program"), library);
  else
    g_string_append_printf (text, _ ("process %" PRIu64 ", libpto %s\n"), process, library);
  if (member_length (state, "workers") == 0)
    g_string_append_printf (text, "%s\n", _ ("no worker has started"));
  for (guint i = 0; (worker = member_next (state, "workers", &i)) != NULL;)
    append_worker (text, 0, worker);
  return g_string_free (text, FALSE);
}
