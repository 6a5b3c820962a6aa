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
  guint64 ns = pto_state_get_number (object, "for_ns");
  g_autofree char *time = format_time (ns);

  if (ns > 0)
    g_string_append_printf (text, _ (", for %s"), time);
}

/* "task 17 (mul)", "task 17 of ring 1 (mul)"; a task of other kinds of places is named the same. */
static void
append_task (GString *text, JsonObject *object)
{
  const char *label = pto_state_get_text (object, "task");
  const char *kernel = pto_state_get_text (object, "kernel");
  const char *local = label != NULL ? strchr (label, ':') : NULL;

  if (local != NULL)
    g_string_append_printf (text, _ ("task %s of ring %.*s (%s)"), local + 1, (int) (local - label),
                            label, kernel != NULL ? kernel : "?");
  else
    g_string_append_printf (text, _ ("task %s (%s)"), label != NULL ? label : "?",
                            kernel != NULL ? kernel : "?");
}

static char *
tell_task (JsonObject *object)
{
  GString *text = g_string_new (NULL);

  append_task (text, object);
  return g_string_free (text, FALSE);
}

/* A word that a member is, which the process has in no language or in the reader's. */
static const char *
get_word (JsonObject *object, const char *member)
{
  const char *word = pto_state_get_text (object, member);

  return word == NULL ? "?" : word[0] != '\0' ? _ (word) : word;
}

/* Those of which a ready task needs one: "AIC", "workers of level 3". */
static char *
tell_needs (JsonObject *task)
{
  const char *format = N_ ("workers of level %u");
  const char *needs = pto_state_get_text (task, "needs");
  gsize length = strlen (format) - strlen ("%u");
  guint64 level;

  if (needs != NULL && strncmp (needs, format, length) == 0
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
  const char *doing = pto_state_get_text (submitter, "doing");

  append_name (text, depth, _ ("submitter"));
  if (g_strcmp0 (doing, "orchestration") == 0)
    g_string_append (text, _ ("is in the code of the orchestration"));
  else if (g_strcmp0 (doing, "call") == 0)
    g_string_append (text, _ ("submits"));
  else if (g_strcmp0 (doing, "task") == 0)
    g_string_append (text, _ ("runs each task itself as it submits it"));
  else if (g_strcmp0 (doing, "turn") == 0)
    g_string_append (text, _ ("waits for its turn: all share one thread, which is in a kernel"));
  else if (g_strcmp0 (doing, "room") == 0 || g_strcmp0 (doing, "cluster") == 0)
    {
      g_string_append_printf (
          text,
          doing[0] == 'r' ? _ ("waits for room: %s, active=%" PRIu64 "/%" PRIu64)
                          : _ ("waits for a cluster: %s, active=%" PRIu64 "/%" PRIu64),
          get_word (submitter, "short_of"), pto_state_get_number (submitter, "used"),
          pto_state_get_number (submitter, "all"));
      append_for (text, submitter);
      if (pto_state_get_text (submitter, "task") != NULL)
        {
          g_autofree char *task = tell_task (submitter);

          g_string_append_printf (text, _ ("; the oldest, %s, is %s"), task,
                                  get_word (submitter, "state"));
        }
      g_string_append_printf (text, _ (": for submits to go on, %s\n"),
                              get_word (submitter, "knob"));
      return;
    }
  else if (g_strcmp0 (doing, "await") == 0)
    {
      g_autofree char *task = tell_task (submitter);

      g_string_append_printf (text, _ ("waits for %s, which is %s"), task,
                              get_word (submitter, "state"));
    }
  else if (g_strcmp0 (doing, "await-all") == 0)
    g_string_append (text, _ ("waits for all that it has submitted"));
  else
    g_string_append (text, _ ("has submitted everything and waits for the end"));
  append_for (text, submitter);
  g_string_append_c (text, '\n');
}

static void
append_waiting (GString *text, guint depth, JsonObject *task)
{
  JsonArray *after = pto_state_get_array (task, "after");
  guint64 n = pto_state_get_number (task, "producers");
  guint64 places = pto_state_get_number (task, "places");
  g_autofree char *words = tell_task (task);

  append_name (text, depth, _ ("waits"));
  if (n > 0)
    {
      g_autoptr (GString) causes = g_string_new (NULL);

      for (guint i = 0; i < pto_state_get_length (after); i++)
        {
          JsonObject *cause = pto_state_get_element (after, i);

          if (cause == NULL)
            continue;
          g_string_append (causes, i > 0 ? _ (", ") : "");
          append_cause (causes, cause);
        }
      if (n > pto_state_get_length (after))
        g_string_append_printf (causes,
                                pto_state_get_length (after) > 0 ? _ (", and %" PRIu64 " more")
                                                                 : _ ("%" PRIu64 " more"),
                                n - pto_state_get_length (after));
      g_string_append_printf (text, _ ("%s for %s"), words, causes->str);
    }
  else if (places > 0)
    g_string_append_printf (text, _ ("%s for %" PRIu64 " places at once, of which it has %" PRIu64),
                            words, places, pto_state_get_number (task, "kept_places"));
  else if (g_strcmp0 (pto_state_get_text (task, "state"), "ready") == 0)
    {
      g_autofree char *needs = tell_needs (task);

      g_string_append_printf (text, _ ("%s: ready, for an idle one of %s"), words, needs);
    }
  else
    g_string_append_printf (text, _ ("%s to be let go"), words);
  g_string_append_c (text, '\n');
}

static void
append_run (GString *text, guint depth, JsonObject *run)
{
  JsonArray *waiting = pto_state_get_array (run, "waiting");
  JsonObject *submitter = pto_state_get_object (run, "submitter");
  guint64 blocked = pto_state_get_number (run, "blocked");
  guint64 unseen = pto_state_get_number (run, "not_looked_at");
  guint64 others = blocked + pto_state_get_number (run, "ready") + unseen;

  append_name (text, depth, _ ("tasks"));
  g_string_append_printf (
      text,
      _ ("%" PRIu64 " submitted, %" PRIu64 " complete, %" PRIu64 " running, %" PRIu64
         " ready, %" PRIu64 " blocked"),
      pto_state_get_number (run, "submitted"), pto_state_get_number (run, "completed"),
      pto_state_get_number (run, "running"), pto_state_get_number (run, "ready"), blocked);
  if (unseen > 0)
    g_string_append_printf (text, _ (", %" PRIu64 " not looked at"), unseen);
  if (pto_state_has_flag (run, "has_failed"))
    g_string_append (text, _ ("; the run has failed, and ends"));
  g_string_append_c (text, '\n');
  if (submitter != NULL)
    append_submitter (text, depth, submitter);
  for (guint i = 0; i < pto_state_get_length (waiting); i++)
    {
      JsonObject *task = pto_state_get_element (waiting, i);

      if (task != NULL)
        append_waiting (text, depth, task);
    }
  if (others > pto_state_get_length (waiting))
    {
      append_name (text, depth, "");
      g_string_append_printf (text, _ ("and %" PRIu64 " others\n"),
                              others - pto_state_get_length (waiting));
    }
}

/* --- chips --- */

static void
append_tensor (GString *text, JsonObject *tensor)
{
  JsonArray *shape = pto_state_get_array (tensor, "shape");
  const char *type = pto_state_get_text (tensor, "type");
  const char *address = pto_state_get_text (tensor, "address");
  g_autoptr (GString) extents = g_string_new (NULL);

  for (guint i = 0; i < pto_state_get_length (shape); i++)
    g_string_append_printf (extents, "%s%" G_GINT64_FORMAT, i > 0 ? ", " : "",
                            json_array_get_int_element (shape, i));
  g_string_append_printf (text, _ ("argument %" PRIu64 " %s [%s] at %s"),
                          pto_state_get_number (tensor, "argument"), type != NULL ? type : "?",
                          extents->str, address != NULL ? address : "?");
}

static gboolean
append_core (GString *text, guint depth, JsonObject *core)
{
  const char *doing = pto_state_get_text (core, "doing");
  const char *name = pto_state_get_text (core, "core");
  JsonArray *tensors = pto_state_get_array (core, "tensors");
  g_autofree char *task = NULL;
  guint64 pipe = pto_state_get_number (core, "pipe");

  if (g_strcmp0 (doing, "idle") == 0)
    return FALSE;
  append_name (text, depth, name != NULL ? name : "?");
  if (pto_state_get_text (core, "task") == NULL)
    {
      g_string_append (text, _ ("goes from one task to the next\n"));
      return TRUE;
    }
  task = tell_task (core);
  g_string_append_printf (text, _ ("runs %s"), task);
  if (pto_state_get_number (core, "blocks") > 1)
    g_string_append_printf (text, _ (", block %" PRIu64 " of %" PRIu64),
                            pto_state_get_number (core, "block"),
                            pto_state_get_number (core, "blocks"));
  append_for (text, core);
  if (g_strcmp0 (doing, "pops") == 0)
    g_string_append_printf (text, _ (": waits in TPOP() for pipe %" PRIu64 ", which is empty"),
                            pipe);
  else if (g_strcmp0 (doing, "pushes") == 0)
    g_string_append_printf (text, _ (": waits in TPUSH() for pipe %" PRIu64 ", which is full"),
                            pipe);
  else if (g_strcmp0 (doing, "meets") == 0)
    g_string_append_printf (
        text, _ (": waits in pto_sync_all(), where %" PRIu64 " of %" PRIu64 " have come"),
        pto_state_get_number (core, "met"), pto_state_get_number (core, "members"));
  for (guint i = 0; i < pto_state_get_length (tensors); i++)
    {
      JsonObject *tensor = pto_state_get_element (tensors, i);

      g_string_append (text, i == 0 ? _ ("; ") : _ (", "));
      if (tensor != NULL)
        append_tensor (text, tensor);
    }
  if (pto_state_get_number (core, "more_tensors") > 0)
    g_string_append_printf (text, _ (" and %" PRIu64 " more"),
                            pto_state_get_number (core, "more_tensors"));
  g_string_append_c (text, '\n');
  return TRUE;
}

static void
append_chip (GString *text, guint depth, JsonObject *worker)
{
  JsonArray *cores = pto_state_get_array (worker, "cores");
  JsonArray *schedulers = pto_state_get_array (worker, "schedulers");
  guint n_idle = 0;

  for (guint i = 0; i < pto_state_get_length (schedulers); i++)
    {
      JsonObject *scheduler = pto_state_get_element (schedulers, i);
      const char *name = scheduler != NULL ? pto_state_get_text (scheduler, "scheduler") : NULL;
      const char *doing = scheduler != NULL ? pto_state_get_text (scheduler, "doing") : NULL;

      if (name == NULL || doing == NULL)
        continue;
      append_name (text, depth, name);
      g_string_append_printf (
          text, _ ("%s: %" PRIu64 " of %" PRIu64 " cores are busy, %" PRIu64 " tasks complete\n"),
          g_str_equal (doing, "sleeps") ? _ ("sleeps, nothing is ready for its idle cores")
          : g_str_equal (doing, "runs a core")
              ? _ ("its thread is in the kernel of one of its cores")
              : get_word (scheduler, "doing"),
          pto_state_get_number (scheduler, "busy"), pto_state_get_number (scheduler, "cores"),
          pto_state_get_number (scheduler, "completed"));
    }
  for (guint i = 0; i < pto_state_get_length (cores); i++)
    {
      JsonObject *core = pto_state_get_element (cores, i);

      if (core != NULL && !append_core (text, depth, core))
        n_idle++;
    }
  if (n_idle > 0)
    {
      append_name (text, depth, _ ("idle"));
      g_string_append_printf (text, _ ("%u of %u cores\n"), n_idle, pto_state_get_length (cores));
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
  const char *address = pto_state_get_text (child, "address");
  guint64 there = pto_state_get_number (child, "far_pid");

  if (address != NULL && there > 0)
    g_string_append_printf (text, _ (" (remote: %s, process %" PRIu64 " there)"), address, there);
  else if (address != NULL)
    g_string_append_printf (text, _ (" (remote: %s)"), address);
  else if (pto_state_get_number (child, "pid") > 0)
    g_string_append_printf (text, _ (" (process %" PRIu64 ")"),
                            pto_state_get_number (child, "pid"));
}

static void
append_child (GString *text, guint depth, JsonObject *child)
{
  const char *path = pto_state_get_text (child, "path");
  gboolean is_sub = g_strcmp0 (pto_state_get_text (child, "kind"), "sub") == 0;
  const char *life = pto_state_get_text (child, "life");
  JsonArray *below = pto_state_get_array (child, "below");

  append_name (text, depth, path != NULL ? get_name (path, is_sub) : "?");
  if (pto_state_get_text (child, "task") != NULL)
    {
      g_autofree char *task = tell_task (child);

      g_string_append_printf (text, _ ("runs %s"), task);
    }
  else if (pto_state_get_text (child, "request") != NULL)
    g_string_append_printf (text, _ ("is asked for its %s"), get_word (child, "request"));
  else
    g_string_append (text, get_word (child, "life"));
  append_for (text, child);
  if (pto_state_get_text (child, "task") != NULL && g_strcmp0 (life, "busy") != 0)
    g_string_append_printf (text, _ ("; %s"), get_word (child, "life"));
  if (pto_state_has_flag (child, "is_stopped"))
    g_string_append (text, _ ("; it is stopped by a signal"));
  if (pto_state_has_flag (child, "is_suspect"))
    g_string_append (text, _ ("; nothing is heard of it: it gets no task"));
  append_process (text, child);
  if (pto_state_get_number (child, "lives") > 1)
    g_string_append_printf (text, _ ("; begun %" PRIu64 " times"),
                            pto_state_get_number (child, "lives"));
  if (pto_state_get_text (child, "silent") != NULL)
    g_string_append_printf (text, _ ("; %s"), get_word (child, "silent"));
  g_string_append_c (text, '\n');
  for (guint i = 0; i < pto_state_get_length (below); i++)
    {
      JsonObject *worker = pto_state_get_element (below, i);

      if (worker != NULL)
        append_worker (text, depth + 1, worker);
    }
}

/* --- workers --- */

static void
append_rings (GString *text, guint depth, JsonObject *worker)
{
  JsonArray *rings = pto_state_get_array (worker, "rings");

  for (guint i = 0; i < pto_state_get_length (rings); i++)
    {
      JsonObject *ring = pto_state_get_element (rings, i);
      g_autofree char *used = NULL;
      g_autofree char *all = NULL;
      g_autofree char *name = NULL;

      if (ring == NULL || pto_state_get_number (ring, "tasks") == 0)
        continue;
      used = format_bytes (pto_state_get_number (ring, "heap_used"));
      all = format_bytes (pto_state_get_number (ring, "heap"));
      name = g_strdup_printf (_ ("ring %u"), (guint) pto_state_get_number (ring, "ring"));
      append_name (text, depth, name);
      g_string_append_printf (
          text,
          _ ("%" PRIu64 " of %" PRIu64 " slots, %s of %s of heap, %" PRIu64 " of %" PRIu64
             " edges\n"),
          pto_state_get_number (ring, "tasks"), pto_state_get_number (ring, "window") - 1, used,
          all, pto_state_get_number (ring, "edges"), pto_state_get_number (ring, "edge_pool"));
    }
}

static void
append_worker (GString *text, guint depth, JsonObject *worker)
{
  const char *path = pto_state_get_text (worker, "path");
  const char *platform = pto_state_get_text (worker, "platform");
  const char *backend = pto_state_get_text (worker, "backend");
  JsonObject *run = pto_state_get_object (worker, "run");
  JsonArray *children = pto_state_get_array (worker, "children");

  g_string_append_printf (text, "%*s%s:", 2 * (int) depth, "", path != NULL ? path : "?");
  if (platform != NULL)
    g_string_append_printf (text,
                            pto_state_has_flag (worker, "is_isolated")
                                ? _ (" %s on %s in a process of its own,")
                                : _ (" %s on %s,"),
                            platform, backend != NULL ? backend : "?");
  if (pto_state_get_text (worker, "silent") != NULL)
    g_string_append_printf (text, " %s\n", get_word (worker, "silent"));
  else if (run == NULL && json_object_has_member (worker, "run"))
    g_string_append (text, _ (" no run is under way\n"));
  else if (run == NULL)
    g_string_append (text, _ (" is being made, or ended\n"));
  else
    {
      g_autofree char *time = format_time (pto_state_get_number (run, "for_ns"));
      const char *title = pto_state_get_text (run, "title");

      g_string_append_printf (text,
                              pto_state_has_flag (run, "is_capture")
                                  ? _ (" \"%s\" has been captured for %s\n")
                                  : _ (" \"%s\" has been running for %s\n"),
                              title != NULL ? title : "?", time);
      append_run (text, depth + 1, run);
    }
  if (run != NULL)
    append_chip (text, depth + 1, worker);
  for (guint i = 0; i < pto_state_get_length (children); i++)
    {
      JsonObject *child = pto_state_get_element (children, i);

      if (child != NULL)
        append_child (text, depth + 1, child);
    }
  if (run != NULL)
    append_rings (text, depth + 1, worker);
}

char *
pto_state_to_text (JsonObject *state)
{
  GString *text = g_string_new (NULL);
  JsonArray *workers = pto_state_get_array (state, "workers");
  const char *program = pto_state_get_text (state, "program");

  if (program != NULL)
    g_string_append_printf (text, _ ("process %" PRIu64 " (%s), libpto %s\n"),
                            pto_state_get_number (state, "pid"), program,
                            pto_state_get_text (state, "library"));
  else
    g_string_append_printf (text, _ ("process %" PRIu64 ", libpto %s\n"),
                            pto_state_get_number (state, "pid"),
                            pto_state_get_text (state, "library"));
  if (pto_state_get_length (workers) == 0)
    g_string_append_printf (text, "%s\n", _ ("no worker has started"));
  for (guint i = 0; i < pto_state_get_length (workers); i++)
    {
      JsonObject *worker = pto_state_get_element (workers, i);

      if (worker != NULL)
        append_worker (text, 0, worker);
    }
  return g_string_free (text, FALSE);
}
