/* read-only-list.h: how is a list shown that only its owner changes?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* What it shows is always what is in model, whose signals it emits as its own. Whoever has it can
 * not change that. Thread safety: as the model. */
GListModel *pto_list_new (GListModel *model);

G_END_DECLS
