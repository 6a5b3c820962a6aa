/* log.c: how does the library say something that is no error?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "log.h"

#include "exec/quiet-write.h"

void
pto_log (GLogLevelFlags flags, const char *format, ...)
{
  struct pto_quiet quiet;
  va_list args;

  va_start (args, format);
  pto_quiet_begin (&quiet);
  g_logv (G_LOG_DOMAIN, flags, format, args);
  pto_quiet_end (&quiet);
  va_end (args);
}
