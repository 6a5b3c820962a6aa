/* error.c: how is a failure told to the caller?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "exec/translate.h"
#include "error.h"
#include "common/text.h"

#include "exec/needed-calls.h"

/**
 * pto_error_quark:
 *
 * Gives the domain of the library's errors.
 *
 * Thread safety: any thread.
 *
 * Returns: the quark behind `PTO_ERROR`
 *
 * Since: 0.1
 */
GQuark
pto_error_quark (void)
{
  return g_quark_from_static_string ("pto-error-quark");
}

/* The floors below say their part of a message in the language of this one. While the library is
 * loaded: there may be no thread yet that reads it. */
__attribute__ ((constructor)) static void
translate_below (void)
{
  pto_text_translate_with (pto_gettext, pto_ngettext);
}

void
pto_error_make_valid (GError *error)
{
  char *message;

  if (error == NULL || g_utf8_validate (error->message, -1, NULL))
    return;
  message = g_utf8_make_valid (error->message, -1);
  g_free (error->message);
  error->message = message;
}

void
pto_error_set_literal (GError **error, GQuark domain, gint code, const char *message)
{
  GError *made = g_error_new_literal (domain, code, message);

  pto_error_make_valid (made);
  g_propagate_error (error, made);
}

gboolean
pto_error_set (GError **error, GQuark domain, gint code, const char *format, ...)
{
  GError *made;
  va_list args;

  va_start (args, format);
  made = g_error_new_valist (domain, code, format, args);
  va_end (args);
  pto_error_make_valid (made);
  g_propagate_error (error, made);
  return FALSE;
}

void
pto_error_prefix (GError **error, const char *format, ...)
{
  g_autofree char *prefix = NULL;
  char *message;
  va_list args;

  if (error == NULL || *error == NULL)
    return;
  va_start (args, format);
  prefix = g_strdup_vprintf (format, args);
  va_end (args);
  message = g_strconcat (prefix, (*error)->message, NULL);
  g_free ((*error)->message);
  (*error)->message = message;
  pto_error_make_valid (*error);
}

/* The one table between the engine's codes and ours. */
static const struct
{
  enum pto_status status;
  int code;         /* of PTO_ERROR; a cancel is what GIO says it is */
  const char *text; /* when the engine left no report */
} codes[] = {
  { PTO_STATUS_SCOPE_DEADLOCK, PTO_ERROR_SCOPE_DEADLOCK,
    N_ ("tasks of an open scope hold every slot") },
  { PTO_STATUS_HEAP_RING, PTO_ERROR_HEAP_RING, N_ ("a heap ring is exhausted") },
  { PTO_STATUS_TASK_RING, PTO_ERROR_TASK_RING, N_ ("a task ring is exhausted") },
  { PTO_STATUS_DEP_POOL, PTO_ERROR_DEP_POOL, N_ ("a dependency pool is exhausted") },
  { PTO_STATUS_INVALID_ARGS, PTO_ERROR_INVALID_ARGS, N_ ("an argument is refused") },
  { PTO_STATUS_SYNC_START, PTO_ERROR_SYNC_START, N_ ("a synchronised start can not be had") },
  { PTO_STATUS_TENSOR_WAIT, PTO_ERROR_TENSOR_WAIT, N_ ("waiting for a tensor came to nothing") },
  { PTO_STATUS_EXPLICIT, PTO_ERROR_EXPLICIT, N_ ("the orchestration failed the run") },
  { PTO_STATUS_SCOPE_OVERFLOW, PTO_ERROR_SCOPE_OVERFLOW,
    N_ ("scopes are nested too deeply or not balanced") },
  { PTO_STATUS_MAP_OVERFLOW, PTO_ERROR_MAP_OVERFLOW, N_ ("the TensorMap is exhausted") },
  { PTO_STATUS_SCHEDULER_TIMEOUT, PTO_ERROR_SCHEDULER_TIMEOUT,
    N_ ("nothing made progress in time") },
  { PTO_STATUS_KERNEL_FAULT, PTO_ERROR_KERNEL_FAULT, N_ ("a kernel crashed") },
  { PTO_STATUS_KERNEL_HANG, PTO_ERROR_KERNEL_HANG, N_ ("a kernel did not return in time") },
  { PTO_STATUS_OUT_OF_BOUNDS, PTO_ERROR_OUT_OF_BOUNDS, N_ ("a kernel wrote past an output") },
  { PTO_STATUS_READY_QUEUE, PTO_ERROR_READY_QUEUE, N_ ("a ready queue failed") },
  { PTO_STATUS_NO_MEMORY, PTO_ERROR_NO_MEMORY, N_ ("memory is not to be had") },
  { PTO_STATUS_CANCELLED, G_IO_ERROR_CANCELLED, N_ ("the run was cancelled") },
  { PTO_STATUS_SYSTEM, PTO_ERROR_SYSTEM, N_ ("the operating system refused something") },
  { PTO_STATUS_ACCESS, PTO_ERROR_ACCESS, N_ ("a task touched what it had not said") },
};

static int
find_code (enum pto_status status)
{
  for (guint i = 0; i < G_N_ELEMENTS (codes); i++)
    if (codes[i].status == status)
      return codes[i].code;
  /* Those of this layer go through the one below as they are: from a child to its parent. */
  if ((int) status >= PTO_ERROR_COMPILE && (int) status <= PTO_ERROR_NOT_SHARED)
    return (int) status;
  return PTO_ERROR_INTERNAL;
}

void
pto_error_set_status (GError **error, enum pto_status status, const char *text)
{
  g_set_error_literal (error, status == PTO_STATUS_CANCELLED ? G_IO_ERROR : PTO_ERROR,
                       find_code (status), text);
}

int
pto_error_get_status (const GError *error)
{
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return PTO_STATUS_CANCELLED;
  return error->domain == PTO_ERROR ? error->code : 0;
}

void
pto_error_tell_report (GError **error, enum pto_status status, const struct pto_report *report)
{
  const char *text = report->message;

  if (report->status != PTO_OK)
    status = report->status;
  for (guint i = 0; text[0] == '\0' && i < G_N_ELEMENTS (codes); i++)
    if (codes[i].status == status)
      text = _ (codes[i].text);
  if (text[0] == '\0')
    g_set_error (error, PTO_ERROR, find_code (status), _ ("the runtime failed with status %d"),
                 (int) status);
  else
    pto_error_set_status (error, status, text);
}

gboolean
pto_error_set_if_cancelled (GCancellable *cancellable, GError **error)
{
  if (!g_cancellable_is_cancelled (cancellable))
    return FALSE;
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, _ ("cancelled"));
  return TRUE;
}

gboolean
pto_error_check_calls (GError **error)
{
  char text[PTO_REFUSAL_BYTES];

  if (pto_needed_calls_are_there (text))
    return TRUE;
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_SYSTEM, text);
  return FALSE;
}
