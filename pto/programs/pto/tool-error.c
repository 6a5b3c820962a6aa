/* tool-error.c: how does a part of the program say why it did not do it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tool.h"

G_DEFINE_QUARK (tool_error, tool_error)

static void
set_error (GError **error, ToolError code, const char *format, va_list args)
{
  g_propagate_error (error, g_error_new_valist (TOOL_ERROR, code, format, args));
}

gboolean
tool_refuse (GError **error, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  set_error (error, TOOL_ERROR_USAGE, format, args);
  va_end (args);
  return FALSE;
}

gboolean
tool_fail (GError **error, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  set_error (error, TOOL_ERROR_TROUBLE, format, args);
  va_end (args);
  return FALSE;
}

gboolean
tool_refuse_for (GError **error, const char *what, GError *failure)
{
  if (!g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT))
    {
      g_propagate_error (error, failure);
      return FALSE;
    }
  tool_refuse (error, "%s%s", what, failure->message);
  g_error_free (failure);
  return FALSE;
}
