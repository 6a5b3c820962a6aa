/* pto-exception.h: what was an error in the language that it comes from?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

/**
 * PTO_EXCEPTION:
 *
 * The domain of errors that were exceptions of a language; the code says nothing.
 *
 * Since: 0.1
 */
#define PTO_EXCEPTION (pto_exception_quark ())

#define PTO_TYPE_EXCEPTION (pto_exception_get_type ())

typedef struct _PtoException PtoException;

PTO_AVAILABLE_IN_0_1
GQuark pto_exception_quark (void);
PTO_AVAILABLE_IN_0_1
GType pto_exception_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoException *pto_exception_new (const char *type_name, const char *message, const char *trace,
                                 PtoException **members, gsize n_members);
PTO_AVAILABLE_IN_0_1
PtoException *pto_exception_new_with_contents (const char *type_name, const char *message,
                                               const char *trace, PtoException **members,
                                               gsize n_members, GBytes *contents);
PTO_AVAILABLE_IN_0_1
PtoException *pto_exception_ref (PtoException *exception);
PTO_AVAILABLE_IN_0_1
void pto_exception_unref (PtoException *exception);
PTO_AVAILABLE_IN_0_1
const char *pto_exception_get_type_name (PtoException *exception);
PTO_AVAILABLE_IN_0_1
const char *pto_exception_get_message (PtoException *exception);
PTO_AVAILABLE_IN_0_1
const char *pto_exception_get_trace (PtoException *exception);
PTO_AVAILABLE_IN_0_1
guint pto_exception_get_n_members (PtoException *exception);
PTO_AVAILABLE_IN_0_1
GBytes *pto_exception_get_contents (PtoException *exception);
PTO_AVAILABLE_IN_0_1
char *pto_exception_to_string (PtoException *exception);
PTO_AVAILABLE_IN_0_1
PtoException *pto_exception_get_member (PtoException *exception, guint index);
PTO_AVAILABLE_IN_0_1
PtoException *pto_exception_get_for_error (const GError *error);
PTO_AVAILABLE_IN_0_1
void pto_exception_throw (PtoException *exception);
PTO_AVAILABLE_IN_0_1
PtoException *pto_exception_get_last (void);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoException, pto_exception_unref)

G_END_DECLS
