/* scope.h: how long do tasks and buffers of the runtime live?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

void pto_engine_scope_begin (struct pto_engine *engine, const char *file, int32_t line);
/* Tasks in it, and in scopes inside, which are to be manual, too, come after those that they name
 * and no others; nothing is recorded of what they access. Memory of the runtime stays for them all
 * the same. */
void pto_engine_manual_scope_begin (struct pto_engine *engine, const char *file, int32_t line);
void pto_engine_scope_end (struct pto_engine *engine);
/* The orchestration has returned without ending them: the run fails. */
void pto_engine_refuse_open (struct pto_engine *engine) __attribute__ ((cold));
/* The end of a run closes what is still open. */
void pto_engine_close_scopes (struct pto_engine *engine);
/* A record in the innermost scope; NULL when there is no memory. */
struct PTO2Buffer *pto_engine_new_buffer (struct pto_engine *engine, uint64_t bytes,
                                          uint32_t *generation);
