/* answer.c: how does a process answer what its workers do, whatever they do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * By a thread that has no part in any run (answer-server.c).
 *
 * Processes below are given the wish to answer by the fork, and begin with a thread of their own
 * when their worker has started. In any other copy that a fork makes nothing of it is left:
 * descriptors are closed, and SIGQUIT means again what it did before.
 */
#include "config.h"

#include "answer.h"

#include "base/error.h"
#include "base/locks.h"
#include "base/log.h"
#include "common/printable.h"
#include "common/text.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* Under PTO_LOCK_ANSWER, but in a process that was just forked. */
static gboolean is_on;
static gboolean is_changing; /* somebody starts or stops it */
static gboolean is_wanted;   /* also in processes below */

/* In the copy: the thread is not there, and the socket is the parent's. */
static void
leave_to_parent (void)
{
  pto_answerer_leave ();
  is_on = is_changing = FALSE;
}

/* While the library is loaded: a fork that has begun calls none of what is registered during it. */
__attribute__ ((constructor)) static void
watch_forks (void)
{
  pthread_atfork (NULL, NULL, leave_to_parent);
}

/* --- answers --- */

/* What those below say is in it. Under the lock, which it lets go to wait for them. */
static JsonNode *
build (PtoMachine *only)
{
  PtoGathering *gathering = pto_gathering_new (pto_state_build (only), PTO_ANSWER_WITHIN_MS);

  pto_gathering_wait (gathering);
  return pto_gathering_finish (gathering);
}

/* All strings in it: what programs call their runs and kernels goes to terminals. */
static void
make_printable (JsonNode *node)
{
  g_autoptr (GList) members = NULL;

  if (JSON_NODE_HOLDS_OBJECT (node))
    members = json_object_get_values (json_node_get_object (node));
  else if (JSON_NODE_HOLDS_ARRAY (node))
    members = json_array_get_elements (json_node_get_array (node));
  else if (JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_STRING)
    {
      g_autofree char *text = pto_make_printable (json_node_dup_string (node), FALSE);

      if (strcmp (text, json_node_get_string (node)) != 0)
        json_node_set_string (node, text);
    }
  for (const GList *l = members; l != NULL; l = l->next)
    make_printable (l->data);
}

char *
pto_answer_print (JsonNode *state, PtoAnswerFormat format)
{
  g_autofree char *json = NULL;
  g_autofree char *escaped = NULL;

  if (format != PTO_ANSWER_FORMAT_JSON)
    make_printable (state);
  switch (format)
    {
    case PTO_ANSWER_FORMAT_TEXT:
      return pto_state_to_text (json_node_get_object (state));
    case PTO_ANSWER_FORMAT_METRICS:
      return pto_state_to_metrics (json_node_get_object (state));
    default:
      json = json_to_string (state, TRUE);
      escaped = pto_escape_json (json);
      return g_strconcat (escaped, "\n", NULL);
    }
}

char *
pto_answer_tell (PtoMachine *only, PtoAnswerFormat format)
{
  JsonNode *state;
  char *text;

  pto_lock (PTO_LOCK_ANSWERING);
  state = build (only);
  text = pto_answer_print (state, format);
  json_node_unref (state);
  pto_unlock (PTO_LOCK_ANSWERING);
  return text;
}

/* --- start and stop --- */

/* Waits until nobody else starts or stops it. With the lock then. */
static void
begin_change (void)
{
  pto_lock (PTO_LOCK_ANSWER);
  while (is_changing)
    {
      pto_unlock (PTO_LOCK_ANSWER);
      g_usleep (100);
      pto_lock (PTO_LOCK_ANSWER);
    }
}

static void
end_change (gboolean is_on_now)
{
  pto_lock (PTO_LOCK_ANSWER);
  is_on = is_on_now;
  is_wanted = is_wanted || is_on_now;
  is_changing = FALSE;
  pto_unlock (PTO_LOCK_ANSWER);
}

/**
 * pto_answer_start:
 * @error: where to say why not
 *
 * From now on this process answers what its workers do and wait for: to `pto top` and
 * [func@Pto.Worker.ask_process] of its own user, by a socket that belongs to its number, and to
 * SIGQUIT (Ctrl-\), unless the program has said what that is to mean, in lines on standard error.
 * So do the processes of workers that start from now on. `pto run` does it by itself, and so does a
 * program that is started with PTO_ANSWER=1 when its first worker starts.
 *
 * It is a thread that sleeps: runs do nothing for it. Does nothing when it is on already. In a copy
 * that a fork makes of the process it is off.
 *
 * Where another process has taken the socket's name it listens at one in XDG_RUNTIME_DIR; where it
 * can not listen there, either, it answers SIGQUIT, and a warning says so.
 *
 * Fails with %PTO_ERROR_SYSTEM. Thread safety: any thread.
 *
 * Returns: whether the process answers
 *
 * Since: 0.1
 */
gboolean
pto_answer_start (GError **error)
{
  gboolean was_on, is_begun;

  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  begin_change ();
  was_on = is_on;
  is_wanted = is_wanted || was_on;
  is_changing = !was_on;
  pto_unlock (PTO_LOCK_ANSWER);
  if (was_on)
    return TRUE;
  is_begun = pto_answerer_begin (error);
  end_change (is_begun);
  return is_begun;
}

/**
 * pto_answer_stop:
 *
 * Ends what [func@Pto.answer_start] began in this process; SIGQUIT means again what it did before.
 * Processes of workers that have started go on until they end. Does nothing when it is off.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_answer_stop (void)
{
  gboolean was_on;

  begin_change ();
  is_wanted = FALSE;
  was_on = is_changing = is_on;
  pto_unlock (PTO_LOCK_ANSWER);
  if (!was_on)
    return;
  pto_answerer_end ();
  end_change (FALSE);
}

/**
 * pto_answer_is_on:
 *
 * Says whether this process answers ([func@Pto.answer_start]).
 *
 * Thread safety: any thread.
 *
 * Returns: whether it does
 *
 * Since: 0.1
 */
gboolean
pto_answer_is_on (void)
{
  gboolean result;

  begin_change ();
  result = is_on;
  pto_unlock (PTO_LOCK_ANSWER);
  return result;
}

void
pto_answer_want (void)
{
  begin_change ();
  is_wanted = TRUE;
  pto_unlock (PTO_LOCK_ANSWER);
}

gboolean
pto_answer_is_wanted (void)
{
  gboolean result;

  begin_change ();
  result = is_wanted;
  pto_unlock (PTO_LOCK_ANSWER);
  return result;
}

void
pto_answer_look_at_environment (void)
{
  const char *value = g_getenv ("PTO_ANSWER");

  if (value != NULL && value[0] != '\0' && strcmp (value, "0") != 0)
    pto_answer_want ();
}

void
pto_answer_start_if_wanted (void)
{
  g_autoptr (GError) error = NULL;
  gboolean is_to_start;

  begin_change ();
  is_to_start = is_wanted && !is_on;
  pto_unlock (PTO_LOCK_ANSWER);
  if (is_to_start && !pto_answer_start (&error))
    pto_log (G_LOG_LEVEL_WARNING, "%s", error->message);
}

/* --- asking --- */

/**
 * pto_worker_ask_process:
 * @process: the number of a process of the caller's user; 0 or its own: this one
 * @format: how it is to be told
 * @cancellable: (nullable): ends the wait
 * @error: where to say why not
 *
 * Asks a process what its workers do just now and what they wait for: runs, tasks, cores,
 * schedulers, the submitter, rings, and everybody below them. It answers also when all of them
 * hang; a process is asked that has called [func@Pto.answer_start], except for this one, which
 * need not have. Nothing is sent to one that does not listen. Processes below have about a second
 * to say what they do; the row of one that does not says so.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when no process can have that number, %PTO_ERROR_NOT_FOUND
 * when there is no such process, %PTO_ERROR_NOT_SUPPORTED when it
 * does not answer or is of another version, %PTO_ERROR_BUSY when it does not answer within three
 * seconds, %PTO_ERROR_TAMPERED when somebody else answers in its place, %PTO_ERROR_SYSTEM, and
 * %G_IO_ERROR_CANCELLED. Thread safety: any thread.
 *
 * Returns: (transfer full): the answer
 *
 * Since: 0.1
 */
char *
pto_worker_ask_process (gint64 process, PtoAnswerFormat format, GCancellable *cancellable,
                        GError **error)
{
  PtoAsked asked = { .wants_family = TRUE };
  char *text;

  g_return_val_if_fail (format <= PTO_ANSWER_FORMAT_METRICS, NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (pto_error_set_if_cancelled (cancellable, error))
    return NULL;
  if (process == 0 || process == getpid ())
    return pto_answer_tell (NULL, format);
  if (process < 0 || process > G_MAXINT)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("%" PRId64 " is the number of no process"), process);
      return NULL;
    }
  asked.process = (int) process;
  pto_answer_ask_many (&asked, 1, 3 * PTO_ANSWER_WITHIN_MS, cancellable);
  if (asked.answer == NULL)
    {
      g_propagate_error (error, asked.error);
      return NULL;
    }
  pto_lock (PTO_LOCK_ANSWERING);
  text = pto_answer_print (asked.answer, format);
  json_node_unref (asked.answer);
  pto_unlock (PTO_LOCK_ANSWERING);
  return text;
}
