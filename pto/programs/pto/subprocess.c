/* subprocess.c: what does a program print until it ends?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * g_subprocess_communicate() of GLib 2.74 is not called: its context ends while a source of it is
 * still being unreferenced, because GLib's own thread may hold the last reference, and whoever
 * locks the context once more waits for ever. Here it outlives all that is in it.
 */
#include "config.h"

#include "tool.h"

typedef struct
{
  GSubprocess *process;
  GMainLoop *loop;
  char **output;
  char **errors;
  GError **error;
  gboolean ok;
} Talk;

static gboolean
give_up (gpointer data)
{
  g_subprocess_force_exit (data);
  return G_SOURCE_REMOVE;
}

static void
on_communicated (GObject *object, GAsyncResult *result, gpointer data)
{
  Talk *talk = data;

  (void) object;
  talk->ok = g_subprocess_communicate_utf8_finish (talk->process, result, talk->output,
                                                   talk->errors, talk->error);
  g_main_loop_quit (talk->loop);
}

gboolean
tool_communicate (GSubprocess *process, guint seconds, GCancellable *cancellable, char **output,
                  char **errors, GError **error)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_autoptr (GMainLoop) loop = g_main_loop_new (context, FALSE);
  Talk talk
      = { .process = process, .loop = loop, .output = output, .errors = errors, .error = error };

  g_main_context_push_thread_default (context);
  if (seconds != 0)
    {
      g_autoptr (GSource) alarm = g_timeout_source_new_seconds (seconds);

      g_source_set_callback (alarm, give_up, process, NULL);
      g_source_attach (alarm, context);
    }
  g_subprocess_communicate_utf8_async (process, NULL, cancellable, on_communicated, &talk);
  g_main_loop_run (loop);
  g_main_context_pop_thread_default (context);
  return talk.ok;
}
