/* binding.h: is a language here that has the library without its override?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* Called where a type is registered that an override completes: before a program can miss it. */
void pto_override_look (void);

/* Does GJS run in this process? Any thread. */
gboolean pto_override_is_javascript (void);

G_END_DECLS
