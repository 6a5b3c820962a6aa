/* error.h: how does a report of the engine become a GError?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "core/status.h"

#include "pto-error.h"

G_BEGIN_DECLS

/* What the floors below call it, or another process: a code of PTO_ERROR, or, of a cancel, that of
 * GIO. And back; 0: an error of somebody else's. */
void pto_error_set_status (GError **error, enum pto_status status, const char *text);
int pto_error_get_status (const GError *error);
/* The report's own status counts, if it has one. */
void pto_error_tell_report (GError **error, enum pto_status status,
                            const struct pto_report *report);
/* The same, unless status is PTO_OK: then it returns TRUE, and sets nothing. */
static inline gboolean
pto_error_set_from_report (GError **error, enum pto_status status, const struct pto_report *report)
{
  if (status != PTO_OK)
    pto_error_tell_report (error, status, report);
  return status == PTO_OK;
}
/* FALSE: a filter refuses a system call without which nothing here works. */
gboolean pto_error_check_calls (GError **error);
gboolean pto_error_set_if_cancelled (GCancellable *cancellable, GError **error);

/* Names of files, kernels and functions, what compilers and children write: none of it need be
 * UTF-8, and a GError that is not can not even be shown by Python. So the usual functions are these
 * here, which make it so. The first one returns FALSE, which a check returns in turn. */
gboolean pto_error_set (GError **error, GQuark domain, gint code, const char *format, ...)
    G_GNUC_PRINTF (4, 5);
void pto_error_set_literal (GError **error, GQuark domain, gint code, const char *message);
void pto_error_prefix (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* Of somebody else. error may be NULL. */
void pto_error_make_valid (GError *error);

/* The same with PTO_ERROR, and FALSE for the compiler, too. */
#define pto_refuse(error, code, ...)                                \
  (__extension__({                                                  \
    pto_error_set ((error), PTO_ERROR, (gint) (code), __VA_ARGS__); \
    FALSE;                                                          \
  }))

#define g_set_error pto_error_set
#define g_set_error_literal pto_error_set_literal
#define g_prefix_error pto_error_prefix

G_END_DECLS
