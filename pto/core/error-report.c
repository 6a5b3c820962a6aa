/* error-report.c: how is the first error of a run told?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "status.h"

#include "api/pto_orchestration_api.h"
#include "exec/translate.h"

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

const char *
pto_base_name (const char *file)
{
  const char *slash = strrchr (file, '/');

  return slash != NULL ? slash + 1 : file;
}

const char *
pto_tensor_status_text (uint32_t status)
{
  static const char *const texts[] = {
    [PTO2_TENSOR_BAD_SHAPE]
    = N_ ("a tensor has 1 to 5 dimensions of at least one element and a known type"),
    [PTO2_TENSOR_OUT_OF_BOUNDS] = N_ ("the view reaches beyond its tensor"),
    [PTO2_TENSOR_BAD_RESHAPE]
    = N_ ("reshape() needs a contiguous tensor and the same number of elements"),
    [PTO2_TENSOR_BAD_TRANSPOSE]
    = N_ ("transpose() names a dimension that the tensor does not have"),
    [PTO2_TENSOR_NO_POOL] = N_ ("make_tensor() was called outside of an orchestration"),
    [PTO2_TENSOR_NO_ARGUMENT] = N_ ("pto2_rt_arg_tensor() was asked for what was no tensor"),
    [PTO2_TENSOR_NO_INITIAL]
    = N_ ("a kernel of the program combines what is reduced, and only the program knows what "
          "copies begin with: give make_reduction_param() an initial value"),
  };

  return status < sizeof texts / sizeof texts[0] && texts[status] != NULL
             ? _ (texts[status])
             : _ ("the tensor is not initialized");
}
