/* collective.h: what does a worker keep of collectives?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define PTO_N_COLLECTIVES 6

/* Before a worker has children: they know the functions of this library from birth, in whichever
 * process a worker needs them. Any thread. */
void pto_collective_make_functions (void);

G_END_DECLS
