/* report.c: how is the first error of a run told?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "status.h"

#include <stdio.h>
#include <string.h>

enum pto_status
pto_report_setv (struct pto_report *report, enum pto_status status, const char *format,
                 va_list args)
{
  if (report == NULL || report->status != PTO_OK)
    return status;
  report->status = status;
  vsnprintf (report->message, sizeof report->message, format, args);
  return status;
}

enum pto_status
pto_report_set (struct pto_report *report, enum pto_status status, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  pto_report_setv (report, status, format, args);
  va_end (args);
  return status;
}

void
pto_report_append (struct pto_report *report, const char *format, ...)
{
  size_t length = strlen (report->message);
  va_list args;

  va_start (args, format);
  vsnprintf (report->message + length, sizeof report->message - length, format, args);
  va_end (args);
}
