/* check-touch.c: what may a kernel touch, and what has it touched?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-context.h"

#include <stdlib.h>
#include <string.h>

/* Below the frame of the function that asks: what the compiler may use without saying so. */
#define RED_ZONE 256u
#define CALLER_FRAME 1024u

struct pto_check_context *
pto_check_context_new (struct pto_check *check)
{
  struct pto_check_context *context = calloc (1, sizeof *context);

  if (context == NULL)
    return NULL;
  context->check = check;
  memset (context->public.entries, 0xff, sizeof context->public.entries);
  for (uint32_t w = 0; w < PTO_CHECK_WORDS; w++)
    context->nobody.public.words[w].may_read = context->nobody.public.words[w].may_write
        = UINT64_MAX;
  return context;
}

static void
free_context (struct pto_check_context *context)
{
  for (uint32_t c = 0; c < context->n_chunks; c++)
    free (context->chunks[c]);
  free (context->chunks);
  free (context->listed);
  free (context->after);
  free (context->looks);
  free (context->doubts);
  free (context->ranges);
  free (context);
}

void
pto_check_free_contexts (struct pto_check *check)
{
  while (check->idle != NULL)
    {
      struct pto_check_context *context = check->idle;

      check->idle = context->idle;
      free_context (context);
    }
}

/* Members of a group have only those that each of them was given. */
bool
pto_check_has_arg (const struct pto_check_call *call, const struct pto_check_arg *arg)
{
  return arg->index - call->first_arg < call->n_args;
}

static void
describe_block (const struct pto_check_context *context, struct pto_check_block *block)
{
  uint64_t begin = (uint64_t) block->number << PTO2_ACCESS_SHIFT;
  uint64_t unnamed[PTO_CHECK_WORDS] = { 0 };
  uint64_t input[PTO_CHECK_WORDS] = { 0 };
  uint64_t output[PTO_CHECK_WORDS] = { 0 };
  uint64_t both[PTO_CHECK_WORDS] = { 0 };

  for (uint32_t a = 0; a < context->task->n_args; a++)
    {
      const struct pto_check_arg *arg = &context->task->args[a];
      uint64_t lo = arg->region.lo + arg->moved;
      uint64_t hi = arg->region.hi + arg->moved;
      uint64_t bits[PTO_CHECK_WORDS];

      if (lo >= begin + PTO_CHECK_BLOCK_BYTES || hi <= begin
          || !pto_check_has_arg (&context->call, arg))
        continue;
      memset (bits, 0, sizeof bits);
      pto_check_set_region (bits, begin, &arg->region, 0, lo);
      for (uint32_t w = 0; w < PTO_CHECK_WORDS; w++)
        {
          block->inside[w] |= bits[w];
          if (arg->type == PTO_PARAM_NO_DEP)
            unnamed[w] |= bits[w];
          else if (arg->type == PTO_PARAM_INPUT)
            input[w] |= bits[w];
          else if ((PTO_CHECK_OUTPUTS >> arg->type & 1) != 0)
            output[w] |= bits[w];
          else
            both[w] |= bits[w];
        }
    }
  for (uint32_t w = 0; w < PTO_CHECK_WORDS; w++)
    {
      PTO2AccessWord *word = &block->public.words[w];

      /* Where another argument says what the task does, one without dependencies allows no more. */
      both[w] |= unnamed[w] & ~(input[w] | output[w]);
      block->twice[w] = input[w] & output[w] & ~both[w];
      word->may_read = input[w] | both[w];
      word->may_write = (output[w] | both[w]) & ~block->twice[w];
    }
}

/* Is the block of the address so near a view of the task that it may be meant for that? */
static bool
is_near_a_view (const struct pto_check_task *task, uintptr_t address)
{
  uint64_t begin = address & ~(PTO_CHECK_BLOCK_BYTES - 1);

  for (uint32_t a = 0; a < task->n_args; a++)
    if (begin < task->args[a].region.hi + PTO_CHECK_NEAR_BYTES
        && begin + PTO_CHECK_BLOCK_BYTES + PTO_CHECK_NEAR_BYTES > task->args[a].region.lo)
      return true;
  return false;
}

/* Is it memory that the kernel was given beside its tensors, or has for itself? It is not checked.
 */
static bool
is_own (const struct pto_check_context *context, uintptr_t address, uintptr_t here)
{
  const struct pto_engine *engine = context->check->engine;

  if ((address >= here - RED_ZONE && address < context->frame + CALLER_FRAME)
      || address - (uintptr_t) context->call.own < context->call.own_bytes)
    return true;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      const struct pto_circle *storage = &engine->rings[r].storage;

      /* A ring's heap may lie right after this. check-report.c knows what arguments are there. */
      if (address - (uintptr_t) storage->base < storage->size)
        return !is_near_a_view (context->task, address);
    }
  return false;
}

static struct pto_check_block *
make_block (struct pto_check_context *context, uintptr_t number)
{
  uint32_t chunk = context->n_blocks / PTO_CHECK_CHUNK_BLOCKS;
  struct pto_check_block *block;

  if (chunk == context->n_chunks)
    {
      struct pto_check_block **chunks
          = realloc (context->chunks, (chunk + 1) * sizeof (struct pto_check_block *));

      if (chunks == NULL)
        return NULL;
      context->chunks = chunks;
      chunks[chunk] = malloc (PTO_CHECK_CHUNK_BLOCKS * sizeof (struct pto_check_block));
      if (chunks[chunk] == NULL)
        return NULL;
      context->n_chunks++;
    }
  block = &context->chunks[chunk][context->n_blocks++ % PTO_CHECK_CHUNK_BLOCKS];
  memset (block, 0, sizeof *block);
  block->number = number;
  block->next = context->buckets[number % PTO_CHECK_BUCKETS];
  context->buckets[number % PTO_CHECK_BUCKETS] = block;
  describe_block (context, block);
  return block;
}

static bool
list (struct pto_check_context *context, struct pto_check_block *block)
{
  if (context->n_listed == context->listed_capacity)
    {
      uint32_t capacity = context->listed_capacity > 0 ? context->listed_capacity * 2 : 64;
      struct pto_check_block **listed = realloc (context->listed, capacity * sizeof *listed);

      if (listed == NULL)
        return false;
      context->listed = listed;
      context->listed_capacity = capacity;
    }
  context->listed[context->n_listed++] = block;
  block->is_listed = true;
  return true;
}

struct pto_check_block *
pto_check_find_block (struct pto_check_context *context, uintptr_t address, uintptr_t here)
{
  uintptr_t number = address >> PTO2_ACCESS_SHIFT;
  uint32_t entry = number % PTO2_ACCESS_ENTRIES;
  struct pto_check_block *block = context->buckets[number % PTO_CHECK_BUCKETS];

  while (block != NULL && block->number != number)
    block = block->next;
  if (block == NULL)
    {
      /* A block may hold memory of several: what is a kernel's own comes in whole pages. */
      if (is_own (context, address, here))
        block = &context->nobody;
      else
        block = make_block (context, number);
    }
  if (block == NULL || (block != &context->nobody && !block->is_listed && !list (context, block)))
    {
      block = &context->nobody;
      pthread_mutex_lock (&context->check->lock);
      context->check->lost = true;
      pthread_mutex_unlock (&context->check->lock);
    }
  if (!context->is_exact)
    context->public.entries[entry] = (PTO2AccessEntry){ number, &block->public };
  return block;
}

static void
add_doubt (struct pto_check_context *context, uint64_t at, uint64_t read, uint64_t changed)
{
  struct pto_check_doubt *last
      = context->n_doubts > 0 ? &context->doubts[context->n_doubts - 1] : NULL;

  if (read == 0)
    return;
  if (last != NULL && last->at == at && last->changed == changed)
    {
      last->read |= read;
      return;
    }
  if (context->n_doubts == context->doubts_capacity)
    {
      uint32_t capacity = context->n_doubts > 0 ? context->n_doubts * 2 : 16;
      struct pto_check_doubt *doubts = realloc (context->doubts, capacity * sizeof *doubts);

      if (doubts == NULL)
        {
          pto_check_lose (context);
          return;
        }
      context->doubts = doubts;
      context->doubts_capacity = capacity;
    }
  context->doubts[context->n_doubts++] = (struct pto_check_doubt){ at, read, changed };
}

/* Reads of what no kernel may read before it has written there. */
static void
read_early (struct pto_check_context *context, struct pto_check_block *block, uint32_t word,
            uint64_t bits)
{
  uint64_t at = ((uint64_t) block->number << PTO2_ACCESS_SHIFT) + word * UINT64_C (64);
  uint64_t told
      = block->public.words[word].written | block->atomic_written[word] | block->told[word];
  uint64_t changed;
  uint64_t unseen = pto_check_find_unseen (context->check, context->task, at, told, &changed);

  block->early[word] |= bits & ~unseen;
  add_doubt (context, at, bits & unseen & ~changed, changed);
}

/* Within one word. what: PTO2_ACCESS_*. */
static void
touch_word (struct pto_check_context *context, struct pto_check_block *block, uint32_t word,
            uint64_t mask, uint32_t what)
{
  PTO2AccessWord *bits = &block->public.words[word];
  uint64_t outside = mask & ~block->inside[word];
  bool is_atomic = (what & PTO2_ACCESS_ATOMIC) != 0;

  if ((what & PTO2_ACCESS_WRITE) != 0)
    {
      uint64_t twice = mask & block->twice[word];
      uint64_t denied = mask & ~(bits->may_write | twice);

      block->wrong[word] |= denied & block->inside[word];
      block->unusual = block->unusual || denied != 0;
      bits->may_write |= denied;
      bits->may_read |= is_atomic ? mask : 0;
      bits->may_read &= ~twice;
      *(is_atomic ? &block->atomic_written[word] : &bits->written) |= mask & ~twice;
      block->twice_written[word] |= twice;
      block->overwritten[word] |= twice;
      block->unusual = block->unusual || twice != 0;
    }
  else
    {
      uint64_t stale = mask & block->overwritten[word];
      uint64_t denied = mask & ~(bits->may_read | bits->written | stale);

      block->stale[word] |= stale;
      block->unusual = block->unusual || stale != 0;
      if ((denied & block->inside[word]) != 0)
        read_early (context, block, word, denied & block->inside[word]);
      block->unusual = block->unusual || denied != 0;
      bits->may_read |= denied;
      *(is_atomic ? &block->atomic_read[word] : &bits->read) |= mask & ~bits->written;
    }
  block->unusual = block->unusual || outside != 0 || is_atomic;
}

void
pto_check_touch (struct pto_check_context *context, uintptr_t address, size_t size, uint32_t what,
                 uintptr_t here)
{
  /* It ends where the address space does. */
  if (size > UINTPTR_MAX - address)
    size = UINTPTR_MAX - address;
  while (size > 0)
    {
      struct pto_check_block *block = pto_check_find_block (context, address, here);
      uint32_t bit = (uint32_t) address & 63;
      size_t n = size < 64 - bit ? size : 64 - bit;
      uint64_t mask = (n == 64 ? UINT64_MAX : ((UINT64_C (1) << n) - 1)) << bit;

      if (block != &context->nobody)
        touch_word (context, block, (uint32_t) (address >> 6) % PTO_CHECK_WORDS, mask, what);
      address += n;
      size -= n;
    }
}

void
pto_check_forget (struct pto_check_context *context)
{
  memset (context->public.entries, 0xff, sizeof context->public.entries);
  for (uint32_t i = 0; i < context->n_blocks; i++)
    context->buckets[context->chunks[i / PTO_CHECK_CHUNK_BLOCKS][i % PTO_CHECK_CHUNK_BLOCKS].number
                     % PTO_CHECK_BUCKETS]
        = NULL;
  context->n_blocks = context->n_listed = 0;
}
