/* evil-kernel.cc: a kernel that does what it is told by its first argument, and then fills its
 * second.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

#include "pto_block.h"

#define EVIL_ENGINE(args, call) pto_relax (args)
#define EVIL_ENGINE_CALLS 1
#include "evil.h"

#ifdef EVIL_APART
/* Then it is called on a thread that belongs to its core. */
static thread_local volatile int n_calls;

static __attribute__ ((noinline)) void
count_call ()
{
  n_calls = n_calls + 1;
}

struct EvilEnd
{
  int what = EVIL_NONE;
  ~EvilEnd () { evil_do (what, NULL); }
};
static thread_local EvilEnd evil_object;
static pthread_key_t evil_key;
static pthread_once_t evil_once = PTHREAD_ONCE_INIT;

static void
evil_end (void *what)
{
  evil_do ((int) (intptr_t) what, NULL);
}

static void
make_key (void)
{
  pthread_key_create (&evil_key, evil_end);
}

static __attribute__ ((noinline)) void
do_at_end (int what)
{
  pthread_once (&evil_once, make_key);
  if (what >= EVIL_BY_KEY)
    pthread_setspecific (evil_key, (void *) (intptr_t) (what - EVIL_BY_KEY));
  else
    evil_object.what = what - EVIL_BY_OBJECT;
}
#endif

extern "C" void
kernel_entry (int64_t *args)
{
  const TensorData *f = (const TensorData *) args[1];
  float *data = (float *) f->buffer.addr + f->start_offset;
  uint64_t n = f->shapes[0];

#ifdef EVIL_APART
  count_call ();
  if (args[0] >= EVIL_BY_OBJECT)
    do_at_end ((int) args[0]);
#endif
  evil_do ((int) args[0], args);
  for (uint64_t i = 0; i < n; i++)
    data[i] = 7;
}
