/* rename.h: when does an output get new memory?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

/* An output over all of a buffer whose contents somebody still uses: may it have other memory, and
 * wait for nobody? Where the new memory lives as long as the old one, nobody knows where that is,
 * the task itself does not use it otherwise, and at most half of the ring is taken then: memory is
 * not given back before the scope ends. param: one of params; heap: bytes of those before it. */
bool pto_rename_may (struct pto_engine *engine, const PTOParam *params, uint32_t n_params,
                     const PTOParam *param, uint64_t heap);
