/* inside-libc.h: is the thread that was interrupted inside the allocator or the loader?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Code that is cut off there leaves locks behind that every thread of the process needs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Finds them. Before the first handler is installed, under the lock of those. */
void pto_inside_init (void);
/* From a handler: walks the frames of its thread, innermost first, up to that address on the stack.
 * Takes no lock and no memory. A stack that does not lead anywhere ends in a fault, which is the
 * caller's to catch. *slot is where the outermost of those functions finds the address that it
 * returns to; NULL: that is not known. */
bool pto_inside_allocator (uintptr_t limit, uintptr_t **slot);
/* From a handler, in the same way and with the same fault: adds the addresses of the code that was
 * interrupted to the *n that are there, innermost first, at most max. Is one of them inside the
 * allocator or the loader? */
bool pto_inside_callers (uintptr_t *callers, uint32_t *n, uint32_t max);
