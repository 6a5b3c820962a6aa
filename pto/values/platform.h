/* platform.h: what does a chip's simulation need to know of its platform?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "sim/chip-platform.h"

#include "pto-platform.h"

G_BEGIN_DECLS

/* Is it the path of a file, and not a name? */
gboolean pto_platform_is_file (const char *name);
/* As long as the platform. */
const struct pto_platform *pto_platform_get_raw (const PtoPlatform *platform);

G_END_DECLS
