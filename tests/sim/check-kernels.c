/* check-kernels.c: kernels that touch what they are told to.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-kernels.h"

#include <pthread.h>
#include <stdlib.h>

/* What is read is kept, and what is written comes from here: nothing is left out. */
static volatile uint8_t seen;
static uint8_t table[4096];

static void
touch_own (void)
{
  volatile uint8_t stack[3000];
  uint8_t *allocated = malloc (5000);

  for (uint32_t i = 0; i < sizeof stack; i++)
    stack[i] = (uint8_t) i;
  for (uint32_t i = 0; i < sizeof table; i++)
    table[i] += stack[i % sizeof stack];
  for (uint32_t i = 0; allocated != NULL && i < 5000; i++)
    ((volatile uint8_t *) allocated)[i] = table[i % sizeof table];
  free (allocated);
}

struct piece
{
  uint8_t *at;
  uint32_t n;
};

static void *
write_piece (void *data)
{
  const struct piece *piece = data;

  for (uint32_t i = 0; i < piece->n; i++)
    ((volatile uint8_t *) piece->at)[i] = 0x5a;
  return NULL;
}

static void
touch_aside (uint8_t *at, uint32_t n)
{
  struct piece piece = { at, n };
  pthread_t thread;

  if (pthread_create (&thread, NULL, write_piece, &piece) == 0)
    pthread_join (thread, NULL);
}

#ifdef CHECK_WAITS
#define check_touch_1 check_wait_1
#define check_touch_2 check_wait_2
#define check_touch_3 check_wait_3

/* Apart, so that its reads are not close to those of others. */
static __attribute__ ((noinline)) void
await (int64_t *args, const uint8_t *at)
{
  while (*(const volatile uint8_t *) at == 0)
    pto_relax (args);
}

static __attribute__ ((noinline)) void
await_atomic (int64_t *args, const uint8_t *at)
{
  while (__atomic_load_n (at, __ATOMIC_ACQUIRE) == 0)
    pto_relax (args);
}

static __attribute__ ((noinline)) void
await_count (int64_t *args, const uint8_t *at)
{
  while (__atomic_load_n ((const uint32_t *) (const void *) at, __ATOMIC_ACQUIRE)
         != get_block_num (args))
    pto_relax (args);
}
#endif

static void
touch (int64_t *args, uint32_t n_tensors)
{
  for (const int64_t *word = args + n_tensors; *word != 0; word++)
    {
      uint64_t what = (uint64_t) *word;
      uint32_t n = (uint32_t) what & 0xffffff;
      uint32_t only = (uint32_t) what >> 24 & 0xff;
      const TensorData *tensor = (const TensorData *) (uintptr_t) args[what >> 48 & 0xff];
      uint8_t *at
          = (uint8_t *) (uintptr_t) (tensor->buffer.addr
                                     + tensor->start_offset * pto_dtype_size (tensor->dtype))
            + (int64_t) (what >> 32 & 0xffff) - 0x8000;
      uint8_t copy[256];

      if (only >= 0x80 ? only - 0x80 != get_sub_block_id (args)
                       : only != 0 && only != get_block_idx (args) + 1)
        continue;
      if ((what >> 63) != 0)
        at += (uint64_t) get_block_idx (args) * n;
      switch (what >> 56 & 0x7f)
        {
        case DO_READ:
          for (uint32_t i = 0; i < n; i++)
            seen = at[i];
          break;
        case DO_WRITE:
          for (uint32_t i = 0; i < n; i++)
            ((volatile uint8_t *) at)[i] = (uint8_t) i;
          break;
        case DO_COPY_OUT:
          memcpy (copy, at, n);
          seen = copy[n - 1];
          break;
        case DO_COPY_IN:
          memset (copy, 1, sizeof copy);
          memmove (at, copy, n);
          break;
        case DO_SET:
          memset (at, 3, n);
          break;
        case DO_SYNC:
          pto_sync_all (args);
          break;
        case DO_PUSH:
          TPUSH (args, 0, at, n);
          break;
        case DO_POP:
          TPOP (args, 0, at, n);
          break;
        case DO_ATOMIC:
          __atomic_fetch_add ((uint32_t *) (void *) at, 1,
                              n == 0 ? __ATOMIC_RELAXED : __ATOMIC_ACQ_REL);
          break;
        case DO_RAISE:
          *(volatile uint8_t *) at = 1;
          break;
        case DO_PUBLISH:
          __atomic_store_n (at, 1, __ATOMIC_RELEASE);
          break;
        case DO_LIBRARY:
          for (uint32_t i = 0; i < sizeof copy; i++)
            ((volatile uint8_t *) copy)[i] = i % 3 == 0 ? 0xa5 : 0x77;
          memccpy (at, copy, 0, n);
          break;
        case DO_THREAD:
          touch_aside (at, n);
          break;
        case DO_ALL:
          pto_writes_all (args);
          break;
#ifdef CHECK_WAITS
        case DO_AWAIT:
          await (args, at);
          break;
        case DO_AWAIT_ATOMIC:
          await_atomic (args, at);
          break;
        case DO_AWAIT_COUNT:
          await_count (args, at);
          break;
#endif
        case DO_FAULT:
          *(volatile uint8_t *) (uintptr_t) args[n_tensors + 1] = 1;
          break;
        case DO_OWN:
          touch_own ();
          break;
        default:
          break;
        }
    }
}

void
check_touch_1 (int64_t *args)
{
  touch (args, 1);
}

void
check_touch_2 (int64_t *args)
{
  touch (args, 2);
}

void
check_touch_3 (int64_t *args)
{
  touch (args, 3);
}
