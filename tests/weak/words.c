/* words.c: what do the actors of a test do to the words of what it explores?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Compiled with the instrumentation of weak.h, as what they call is.
 */
#include "sides.h"

#include "../../pto/exec/pto-atomic.h"

uint32_t
weak_word_get (const struct pto_word *word)
{
  return pto_word_get (word);
}

void
weak_word_set (struct pto_exec *exec, struct pto_word *word, uint32_t value)
{
  pto_word_set (exec, word, value);
}

uint32_t
weak_load (const _Atomic uint32_t *value)
{
  return pto_load_acquire (value);
}

void
weak_add (_Atomic uint32_t *value, uint32_t n)
{
  pto_fetch_add_acq_rel (value, n);
}
