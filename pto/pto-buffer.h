/* pto-buffer.h: how does a program get memory that tensors can lie in?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_BUFFER (pto_buffer_get_type ())

PTO_AVAILABLE_IN_0_1
GType pto_buffer_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoBuffer *pto_buffer_new (guint64 size, GError **error) G_GNUC_WARN_UNUSED_RESULT;
PTO_AVAILABLE_IN_0_1
PtoBuffer *pto_buffer_ref (PtoBuffer *buffer);
PTO_AVAILABLE_IN_0_1
void pto_buffer_unref (PtoBuffer *buffer);
PTO_AVAILABLE_IN_0_1
guint64 pto_buffer_get_size (PtoBuffer *buffer);
PTO_AVAILABLE_IN_0_1
guint64 pto_buffer_get_address (PtoBuffer *buffer);
PTO_AVAILABLE_IN_0_1
int pto_buffer_get_fd (PtoBuffer *buffer);
PTO_AVAILABLE_IN_0_1
guint64 pto_buffer_get_fd_offset (PtoBuffer *buffer);
PTO_AVAILABLE_IN_0_1
GBytes *pto_buffer_ref_bytes (PtoBuffer *buffer);

PTO_AVAILABLE_IN_0_1
PtoWorker *pto_buffer_get_worker (PtoBuffer *buffer);
PTO_AVAILABLE_IN_0_1
gboolean pto_buffer_is_remote (PtoBuffer *buffer);
PTO_AVAILABLE_IN_0_1
gboolean pto_buffer_write (PtoBuffer *buffer, guint64 offset, GBytes *bytes, GError **error);
PTO_AVAILABLE_IN_0_1
GBytes *pto_buffer_read (PtoBuffer *buffer, guint64 offset, guint64 size, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_buffer_copy_to (PtoBuffer *buffer, PtoBuffer *to, guint64 offset, guint64 to_offset,
                             guint64 size, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_buffer_export (PtoBuffer *buffer, guint64 offset, guint64 size, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_buffer_to_string (PtoBuffer *buffer);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoBuffer, pto_buffer_unref)

G_END_DECLS
