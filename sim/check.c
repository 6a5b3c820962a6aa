/* check.c: which bytes does each task touch, and may it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check.h"

#include "check-connect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_BYTES (UINT64_C (1) << PTO2_ACCESS_SHIFT)
#define WORDS PTO2_ACCESS_WORDS
/* Of a context; a power of two, and so are blocks made at once. */
#define BUCKETS 1024u
/* Of kernels whose names are kept; those beyond are the chip's own. */
#define NAMES_MAX 65536u
#define CHUNK_BLOCKS 64u
#define ARGS_CHUNK ((size_t) 1 << 20)
/* Ranges of a run that are kept: 1 GiB. */
#define RANGES_MAX (UINT64_C (1) << 26)
/* Below the frame of the function that asks: what the compiler may use without saying so. */
#define RED_ZONE 256u
#define CALLER_FRAME 1024u

/* A block as its kernel knows it, and what else is to be known. */
struct block
{
  PTO2AccessBlock public; /* first */
  uint64_t inside[WORDS];
  uint64_t wrong[WORDS];
  uint64_t early[WORDS];
  uintptr_t number;
  struct block *next; /* in its bucket */
  bool unusual;       /* something is outside, wrong or early */
};

struct pto_check_context
{
  PTO2Access public; /* first */
  struct pto_check *check;
  struct pto_check_context *idle; /* the next of those that nobody has */
  struct block *buckets[BUCKETS];
  struct block **chunks; /* of blocks */
  uint32_t n_chunks;
  uint32_t n_blocks; /* used */
  struct block **order;
  uint32_t order_capacity;
  struct block nobody; /* of memory that nobody asks about */

  /* --- of the kernel that runs --- */
  const struct pto_check_task *task;
  uint32_t number;
  uint32_t block;
  bool instrumented;
  uintptr_t frame; /* of its caller */
  uintptr_t own;
  size_t own_bytes;

  struct pto_check_range *ranges;
  uint32_t n_ranges;
  uint32_t ranges_capacity;
};

static _Thread_local PTO2Access *current __attribute__ ((tls_model ("initial-exec")));

/* --- numbers --- */

static bool
append (struct pto_check_numbers *numbers, uint32_t value)
{
  if (numbers->n == numbers->capacity)
    {
      uint32_t capacity = numbers->capacity > 0 ? numbers->capacity * 2 : 1024;
      uint32_t *items = realloc (numbers->items, capacity * sizeof *items);

      if (items == NULL)
        return false;
      numbers->items = items;
      numbers->capacity = capacity;
    }
  numbers->items[numbers->n++] = value;
  return true;
}

uint32_t
pto_check_number (const struct pto_check *check, pto_task_id id)
{
  uint32_t local = PTO_TASK_LOCAL (id);

  if (PTO_TASK_RING (id) >= PTO_RINGS || local >= PTO_CHECK_TASKS_MAX)
    return PTO_CHECK_NONE;
  return check->numbers[PTO_TASK_RING (id)][local] - 1;
}

/* --- regions --- */

void
pto_check_pieces_begin (struct pto_check_pieces *pieces, const struct pto_region *region)
{
  pieces->region = region;
  memset (pieces->index, 0, sizeof pieces->index);
  pieces->done = region->hi == region->lo;
}

bool
pto_check_pieces_next (struct pto_check_pieces *pieces, uint64_t *lo, uint64_t *hi)
{
  const struct pto_region *region = pieces->region;
  uint64_t at = region->lo;
  uint32_t d = region->n_dims;

  if (pieces->done)
    return false;
  for (uint32_t i = 0; i < region->n_dims; i++)
    at += pieces->index[i] * region->dims[i].stride;
  *lo = at;
  *hi = at + region->run;
  while (d > 0 && ++pieces->index[d - 1] == region->dims[d - 1].count)
    pieces->index[--d] = 0;
  pieces->done = d == 0;
  return true;
}

/* How many bytes the dimensions from d on reach over, holes and all. */
static uint64_t
reach (const struct pto_region *region, uint32_t d)
{
  uint64_t bytes = region->run;

  for (uint32_t i = d; i < region->n_dims && i < PTO2_TENSOR_MAX_DIMS; i++)
    bytes += (region->dims[i].count - 1) * region->dims[i].stride;
  return bytes;
}

/* From dimension d on, offset bytes behind its begin. */
static bool
has_offset (const struct pto_region *region, uint32_t d, uint64_t offset)
{
  uint64_t rest;
  uint64_t most;

  if (d == region->n_dims || d == PTO2_TENSOR_MAX_DIMS)
    return offset < region->run;
  /* Strides descend, but views whose pieces overlap each other may need another than the last. */
  rest = reach (region, d + 1);
  most = offset / region->dims[d].stride;
  if (most >= region->dims[d].count)
    most = region->dims[d].count - 1;
  for (uint64_t i = most;; i--)
    {
      if (offset - i * region->dims[d].stride >= rest)
        return false;
      if (has_offset (region, d + 1, offset - i * region->dims[d].stride))
        return true;
      if (i == 0)
        return false;
    }
}

bool
pto_check_region_has (const struct pto_region *region, uint64_t address)
{
  return address >= region->lo && address < region->hi
         && has_offset (region, 0, address - region->lo);
}

const struct pto_check_arg *
pto_check_find_arg (const struct pto_check_task *task, uint64_t address, uint32_t types)
{
  for (uint32_t i = 0; i < task->n_args; i++)
    if ((types >> task->args[i].type & 1) != 0
        && pto_check_region_has (&task->args[i].region, address))
      return &task->args[i];
  return NULL;
}

/* --- the witness: the submitter --- */

static struct pto_check_arg *
take_args (struct pto_check *check, uint32_t n)
{
  size_t bytes = n * sizeof (struct pto_check_arg);
  struct pto_check_arg *args;

  if (check->chunk == NULL || check->chunk_used + bytes > check->chunk_size)
    {
      size_t size = bytes > ARGS_CHUNK / 2 ? bytes + ARGS_CHUNK : ARGS_CHUNK;
      void **chunk = malloc (size);

      if (chunk == NULL)
        return NULL;
      *chunk = check->chunk;
      check->chunk = chunk;
      check->chunk_size = size;
      check->chunk_used = 64;
    }
  args = (struct pto_check_arg *) ((uint8_t *) check->chunk + check->chunk_used);
  check->chunk_used += bytes;
  return args;
}

static void
describe_args (struct pto_check *check, struct pto_check_task *task, const struct pto_slot *slot,
               const uint8_t *types)
{
  const struct pto_payload *payload = slot->payload;
  const TensorData *tensor;
  uint32_t at = 0;
  uint32_t n = 0;
  uint32_t n_own;

  pto_payload_tensors (payload, &n_own);
  while (pto_payload_next_tensor (payload, &check->engine->shared, &at) != NULL)
    n++;
  task->args = take_args (check, n);
  if (task->args == NULL)
    {
      check->lost = true;
      return;
    }
  at = 0;
  while ((tensor = pto_payload_next_tensor (payload, &check->engine->shared, &at)) != NULL)
    {
      struct pto_check_arg *arg = &task->args[task->n_args++];
      /* One that several arguments are, which a launch describes once, comes for each of them. */
      uint32_t index = at > n_own ? at - n_own - 1 : 0;

      while (index < payload->n_args && payload->args[index] != (int64_t) (uintptr_t) tensor)
        index++;
      *arg = (struct pto_check_arg){ .buffer = tensor->buffer.addr,
                                     .bytes = tensor->buffer.size,
                                     .dtype = (uint8_t) tensor->dtype,
                                     .index = (uint16_t) index,
                                     .type = PTO_PARAM_NO_DEP };
      /* Only what a kernel sees of it is read. */
      pto_region_init (&arg->region, (const Tensor *) tensor);
      if (index < payload->n_args)
        arg->type = types[index];
    }
}

static void
witness_task (void *data, const struct pto_slot *slot, const uint8_t *types, bool linked)
{
  struct pto_check *check = data;
  struct pto_engine *engine = check->engine;
  uint32_t ring = PTO_TASK_RING (slot->id);
  const PTO2Runtime *runtime = engine->runtime;
  struct pto_check_task *task;

  if (check->n_tasks == PTO_CHECK_TASKS_MAX || PTO_TASK_LOCAL (slot->id) >= PTO_CHECK_TASKS_MAX)
    {
      check->n_unseen++;
      check->past.n = 0;
      return;
    }
  task = &check->tasks[check->n_tasks];
  *task = (struct pto_check_task){ .id = slot->id,
                                   .kernel = slot->kernel,
                                   .first_edge = check->edges.n,
                                   .n_waits = check->waits.n,
                                   .by_hand = engine->tracked == 0,
                                   .is_linked = linked };
  if (runtime != NULL && runtime->line > 0)
    {
      task->line = runtime->line;
      task->file = pto_trace_find_file (&check->files, runtime->file);
    }
  if (slot->heap_bytes > 0)
    {
      const struct pto_circle *heap = &engine->rings[ring].heap;
      uint64_t end = (uint64_t) (uintptr_t) heap->base + slot->heap_end;

      task->heap_hi = end;
      task->heap_lo = slot->heap_bytes < slot->heap_end ? end - slot->heap_bytes
                                                        : (uint64_t) (uintptr_t) heap->base;
    }
  describe_args (check, task, slot, types);
  for (uint32_t i = 0; i < check->past.n; i++)
    check->lost = !append (&check->edges, check->past.items[i]) || check->lost;
  task->n_edges = check->past.n;
  check->past.n = 0;
  /* Behind the rest: a core finds the task by it. The ready queue orders it. */
  check->numbers[ring][PTO_TASK_LOCAL (slot->id)] = ++check->n_tasks;
}

static void
witness_edge (void *data, pto_task_id consumer, pto_task_id producer)
{
  struct pto_check *check = data;
  uint32_t to = consumer != PTO_TASK_NONE ? pto_check_number (check, consumer) : 0;
  uint32_t from = pto_check_number (check, producer);
  bool ok;

  if (from == PTO_CHECK_NONE || to == PTO_CHECK_NONE)
    return;
  if (consumer == PTO_TASK_NONE)
    ok = append (&check->past, from);
  else if (to + 1 == check->n_tasks)
    {
      ok = append (&check->edges, from);
      check->tasks[to].n_edges += ok;
    }
  else
    ok = append (&check->late, to) && append (&check->late, from);
  check->lost = !ok || check->lost;
}

static void
witness_wait (void *data, pto_task_id id)
{
  struct pto_check *check = data;
  uint32_t number = id != PTO_TASK_NONE ? pto_check_number (check, id) : PTO_CHECK_NONE;

  if (id != PTO_TASK_NONE && number == PTO_CHECK_NONE)
    return;
  if (!append (&check->waits, number) || !append (&check->wait_tasks, check->n_tasks))
    check->lost = true;
}

/* --- making and ending --- */

static void *
reserve (size_t bytes)
{
  void *memory = mmap (NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  return memory != MAP_FAILED ? memory : NULL;
}

static void
release (void *memory, size_t bytes)
{
  if (memory != NULL)
    munmap (memory, bytes);
}

static struct pto_check_context *
context_new (struct pto_check *check)
{
  struct pto_check_context *context = calloc (1, sizeof *context);

  if (context == NULL)
    return NULL;
  context->check = check;
  memset (context->public.entries, 0xff, sizeof context->public.entries);
  for (uint32_t w = 0; w < WORDS; w++)
    context->nobody.public.words[w].may_read = context->nobody.public.words[w].may_write
        = UINT64_MAX;
  return context;
}

static void
context_free (struct pto_check_context *context)
{
  for (uint32_t c = 0; c < context->n_chunks; c++)
    free (context->chunks[c]);
  free (context->chunks);
  free (context->order);
  free (context->ranges);
  free (context);
}

struct pto_check *
pto_check_new (struct pto_engine *engine)
{
  struct pto_check *check = calloc (1, sizeof *check);
  bool ok;

  if (check == NULL)
    return NULL;
  check->engine = engine;
  check->witness = (struct pto_witness){ check, witness_task, witness_edge, witness_wait };
  pthread_mutex_init (&check->lock, NULL);
  check->tasks = reserve (PTO_CHECK_TASKS_MAX * sizeof *check->tasks);
  ok = check->tasks != NULL;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      check->numbers[r] = reserve (PTO_CHECK_TASKS_MAX * sizeof *check->numbers[r]);
      ok = ok && check->numbers[r] != NULL;
    }
  if (!ok)
    {
      pto_check_free (check);
      return NULL;
    }
  engine->witness = &check->witness;
  return check;
}

void
pto_check_begin_run (struct pto_check *check)
{
  for (uint32_t t = 0; t < check->n_tasks; t++)
    {
      struct pto_check_part *part = check->tasks[t].parts;

      while (part != NULL)
        {
          struct pto_check_part *next = part->next;

          free (part);
          part = next;
        }
      check->numbers[PTO_TASK_RING (check->tasks[t].id)][PTO_TASK_LOCAL (check->tasks[t].id)] = 0;
    }
  while (check->chunk != NULL)
    {
      void *before = *(void **) check->chunk;

      free (check->chunk);
      check->chunk = before;
    }
  for (uint32_t i = 0; i < check->files.n; i++)
    free (check->files.names[i]);
  memset (&check->files, 0, sizeof check->files);
  for (uint32_t k = 0; k < check->n_names; k++)
    free (check->names[k]);
  free (check->names);
  check->names = NULL;
  check->n_names = 0;
  check->n_tasks = 0;
  check->n_unseen = check->n_ranges = 0;
  check->past.n = check->edges.n = check->late.n = check->waits.n = check->wait_tasks.n = 0;
  check->lost = false;
  free (check->bounds);
  free (check->last);
  check->bounds = NULL;
  check->last = NULL;
  check->n_bounds = 0;
}

void
pto_check_end_run (struct pto_check *check)
{
  struct pto_engine *engine = check->engine;

  for (uint32_t t = 0; t < check->n_tasks; t++)
    {
      uint32_t kernel = check->tasks[t].kernel & ~(PTO_KERNEL_IF | PTO_KERNEL_PARTS);

      if (check->tasks[t].kernel == PTO_KERNEL_NONE || kernel >= NAMES_MAX)
        continue;
      if (kernel >= check->n_names)
        {
          char **names = realloc (check->names, (kernel + 1) * sizeof (char *));

          if (names == NULL)
            return;
          memset (names + check->n_names, 0, (kernel + 1 - check->n_names) * sizeof (char *));
          check->names = names;
          check->n_names = kernel + 1;
        }
      if (check->names[kernel] == NULL)
        check->names[kernel] = strdup (pto_engine_kernel_name (engine, kernel));
    }
}

void
pto_check_free (struct pto_check *check)
{
  if (check == NULL)
    return;
  pto_check_begin_run (check);
  if (check->engine->witness == &check->witness)
    check->engine->witness = NULL;
  release (check->tasks, PTO_CHECK_TASKS_MAX * sizeof *check->tasks);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    release (check->numbers[r], PTO_CHECK_TASKS_MAX * sizeof *check->numbers[r]);
  while (check->idle != NULL)
    {
      struct pto_check_context *context = check->idle;

      check->idle = context->idle;
      context_free (context);
    }
  free (check->past.items);
  free (check->edges.items);
  free (check->late.items);
  free (check->waits.items);
  free (check->wait_tasks.items);
  pthread_mutex_destroy (&check->lock);
  free (check);
}

/* --- blocks: the core --- */

/* Bits of the bytes from lo to hi that are in the block. */
static void
set_bits (uint64_t bits[WORDS], uint64_t begin, uint64_t lo, uint64_t hi)
{
  uint64_t from = lo > begin ? lo - begin : 0;
  uint64_t to = hi < begin + BLOCK_BYTES ? hi - begin : BLOCK_BYTES;

  while (from < to)
    {
      uint64_t end = (from | 63) + 1 < to ? (from | 63) + 1 : to;
      uint64_t n = end - from;

      bits[from / 64] |= (n == 64 ? UINT64_MAX : ((UINT64_C (1) << n) - 1)) << from % 64;
      from = end;
    }
}

/* The bytes of a region that are in the block, from dimension d on. */
static void
set_region (uint64_t bits[WORDS], uint64_t begin, const struct pto_region *region, uint32_t d,
            uint64_t at)
{
  uint64_t rest = reach (region, d + 1);
  uint64_t stride;
  uint64_t first = 0;

  if (d == region->n_dims || d == PTO2_TENSOR_MAX_DIMS)
    {
      if (at < begin + BLOCK_BYTES && at + region->run > begin)
        set_bits (bits, begin, at, at + region->run);
      return;
    }
  stride = region->dims[d].stride;
  if (at + rest <= begin)
    first = (begin - at - rest) / stride + 1;
  for (uint64_t i = first; i < region->dims[d].count && at + i * stride < begin + BLOCK_BYTES; i++)
    set_region (bits, begin, region, d + 1, at + i * stride);
}

static void
describe_block (const struct pto_check_context *context, struct block *block)
{
  uint64_t begin = (uint64_t) block->number << PTO2_ACCESS_SHIFT;

  for (uint32_t a = 0; a < context->task->n_args; a++)
    {
      const struct pto_check_arg *arg = &context->task->args[a];
      uint64_t bits[WORDS];

      if (arg->region.lo >= begin + BLOCK_BYTES || arg->region.hi <= begin)
        continue;
      memset (bits, 0, sizeof bits);
      set_region (bits, begin, &arg->region, 0, arg->region.lo);
      for (uint32_t w = 0; w < WORDS; w++)
        {
          block->inside[w] |= bits[w];
          if (arg->type != PTO_PARAM_OUTPUT && arg->type != PTO_PARAM_OUTPUT_EXISTING)
            block->public.words[w].may_read |= bits[w];
          if (arg->type != PTO_PARAM_INPUT)
            block->public.words[w].may_write |= bits[w];
        }
    }
}

/* What the kernel was given, or has for itself: nobody's business. */
static bool
is_own (const struct pto_check_context *context, uintptr_t address, uintptr_t here)
{
  const struct pto_engine *engine = context->check->engine;

  if ((address >= here - RED_ZONE && address < context->frame + CALLER_FRAME)
      || address - context->own < context->own_bytes)
    return true;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      const struct pto_circle *storage = &engine->rings[r].storage;

      if (address - (uintptr_t) storage->base < storage->size)
        return true;
    }
  return false;
}

static struct block *
make_block (struct pto_check_context *context, uintptr_t number)
{
  uint32_t chunk = context->n_blocks / CHUNK_BLOCKS;
  struct block *block;

  if (chunk == context->n_chunks)
    {
      struct block **chunks = realloc (context->chunks, (chunk + 1) * sizeof (struct block *));

      if (chunks == NULL)
        return NULL;
      context->chunks = chunks;
      chunks[chunk] = malloc (CHUNK_BLOCKS * sizeof (struct block));
      if (chunks[chunk] == NULL)
        return NULL;
      context->n_chunks++;
    }
  block = &context->chunks[chunk][context->n_blocks++ % CHUNK_BLOCKS];
  memset (block, 0, sizeof *block);
  block->number = number;
  block->next = context->buckets[number % BUCKETS];
  context->buckets[number % BUCKETS] = block;
  describe_block (context, block);
  return block;
}

static struct block *
find_block (struct pto_check_context *context, uintptr_t address, uintptr_t here)
{
  uintptr_t number = address >> PTO2_ACCESS_SHIFT;
  uint32_t entry = number % PTO2_ACCESS_ENTRIES;
  struct block *block = context->buckets[number % BUCKETS];

  while (block != NULL && block->number != number)
    block = block->next;
  if (block == NULL)
    {
      /* A block may hold memory of several: what is a kernel's own comes in whole pages. */
      if (is_own (context, address, here))
        block = &context->nobody;
      else
        block = make_block (context, number);
      if (block == NULL)
        {
          block = &context->nobody;
          pthread_mutex_lock (&context->check->lock);
          context->check->lost = true;
          pthread_mutex_unlock (&context->check->lock);
        }
    }
  context->public.entries[entry] = (PTO2AccessEntry){ number, &block->public };
  return block;
}

/* Within one word. */
static void
touch_word (struct block *block, uint32_t word, uint64_t mask, bool writes)
{
  PTO2AccessBlock *public = &block->public;
  uint64_t outside = mask & ~block->inside[word];

  if (writes)
    {
      uint64_t denied = mask & ~public->words[word].may_write;

      block->wrong[word] |= denied & block->inside[word];
      block->unusual = block->unusual || denied != 0;
      public->words[word].may_write |= denied;
      public->words[word].written |= mask;
    }
  else
    {
      uint64_t denied = mask & ~(public->words[word].may_read | public->words[word].written);

      block->early[word] |= denied & block->inside[word];
      block->unusual = block->unusual || denied != 0;
      public->words[word].may_read |= denied;
      public->words[word].read |= mask;
    }
  block->unusual = block->unusual || outside != 0;
}

static void
touch (struct pto_check_context *context, uintptr_t address, size_t size, bool writes,
       uintptr_t here)
{
  /* It ends where the address space does. */
  if (size > UINTPTR_MAX - address)
    size = UINTPTR_MAX - address;
  while (size > 0)
    {
      struct block *block = find_block (context, address, here);
      uint32_t bit = (uint32_t) address & 63;
      size_t n = size < 64 - bit ? size : 64 - bit;
      uint64_t mask = (n == 64 ? UINT64_MAX : ((UINT64_C (1) << n) - 1)) << bit;

      if (block != &context->nobody)
        touch_word (block, (uint32_t) (address >> 6) % WORDS, mask, writes);
      address += n;
      size -= n;
    }
}

static void
ask (PTO2Access *access, uintptr_t address, size_t size, int writes)
{
  touch ((struct pto_check_context *) access, address, size, writes != 0,
         (uintptr_t) __builtin_frame_address (0));
}

__attribute__ ((noinline)) void
pto_check_connect (void *data)
{
  PTO2AccessTable *table = data;
  uintptr_t thread;

#if defined(__x86_64__)
  __asm__("movq %%fs:0, %0" : "=r"(thread));
#elif defined(__aarch64__)
  __asm__("mrs %0, tpidr_el0" : "=r"(thread));
#else
  thread = (uintptr_t) __builtin_thread_pointer ();
#endif
  table->current = (intptr_t) ((uintptr_t) &current - thread);
  table->ask = ask;
}

/* --- a kernel --- */

/* Not inlined, these two: a thread-local variable needs a function without a switch. */
__attribute__ ((noinline)) struct pto_check_context *
pto_check_enter (struct pto_check *check, pto_task_id id, uint32_t block, bool instrumented,
                 const void *own, size_t own_bytes)
{
  uint32_t number = pto_check_number (check, id);
  struct pto_check_context *context;

  if (number == PTO_CHECK_NONE)
    return NULL;
  pthread_mutex_lock (&check->lock);
  context = check->idle;
  if (context != NULL)
    check->idle = context->idle;
  else
    {
      context = context_new (check);
      check->lost = check->lost || context == NULL;
    }
  pthread_mutex_unlock (&check->lock);
  if (context == NULL)
    return NULL;
  context->number = number;
  context->task = &check->tasks[number];
  context->block = block;
  context->instrumented = instrumented;
  context->frame = (uintptr_t) __builtin_frame_address (0);
  context->own = (uintptr_t) own;
  context->own_bytes = own_bytes;
  if (instrumented)
    current = &context->public;
  return context;
}

__attribute__ ((noinline)) void
pto_check_resume (struct pto_check_context *context)
{
  current = context != NULL && context->instrumented ? &context->public : NULL;
}

void
pto_check_note (struct pto_check_context *context, const void *data, uint64_t bytes, bool writes)
{
  if (context != NULL && context->instrumented)
    touch (context, (uintptr_t) data, bytes, writes, (uintptr_t) __builtin_frame_address (0));
}

static void
add_range (struct pto_check_context *context, uint64_t lo, uint64_t n, uint32_t what)
{
  struct pto_check_range *last
      = context->n_ranges > 0 ? &context->ranges[context->n_ranges - 1] : NULL;

  if (last != NULL && last->what == what && last->lo + last->n == lo && last->n + n < UINT32_MAX)
    {
      last->n += (uint32_t) n;
      return;
    }
  if (context->n_ranges == context->ranges_capacity)
    {
      uint32_t capacity = context->ranges_capacity > 0 ? context->ranges_capacity * 2 : 64;
      struct pto_check_range *ranges = realloc (context->ranges, capacity * sizeof *ranges);

      if (ranges == NULL)
        return;
      context->ranges = ranges;
      context->ranges_capacity = capacity;
    }
  while (n > 0)
    {
      uint32_t piece = n < UINT32_MAX ? (uint32_t) n : UINT32_MAX - 1;

      context->ranges[context->n_ranges++] = (struct pto_check_range){ lo, piece, what };
      lo += piece;
      n -= piece;
      if (n > 0)
        {
          add_range (context, lo, n, what);
          return;
        }
    }
}

/* Runs of bits. */
static void
add_runs (struct pto_check_context *context, uint64_t at, uint64_t bits, uint32_t what)
{
  while (bits != 0)
    {
      uint32_t first = (uint32_t) __builtin_ctzll (bits);
      uint64_t rest = ~(bits >> first);
      uint32_t n = rest != 0 ? (uint32_t) __builtin_ctzll (rest) : 64;

      n = n < 64 - first ? n : 64 - first;
      add_range (context, at + first, n, what);
      bits = first + n < 64 ? bits & ~((UINT64_C (1) << (first + n)) - 1) : 0;
    }
}

/* Byte by byte: runs of what is alike. */
static void
add_word (struct pto_check_context *context, const struct block *block, uint32_t word, uint64_t at)
{
  uint64_t written = block->public.words[word].written;
  uint64_t touched = written | block->public.words[word].read;
  uint64_t outside = ~block->inside[word];
  uint64_t left = touched;

  while (left != 0)
    {
      uint32_t first = (uint32_t) __builtin_ctzll (left);
      uint64_t same = touched;
      uint32_t what = 0;
      uint64_t rest;
      uint32_t n;

#define SORT(bits, flag)                                  \
  (same &= ((bits) >> first & 1) != 0 ? (bits) : ~(bits), \
   what |= ((bits) >> first & 1) != 0 ? (flag) : 0u)
      SORT (written, PTO_CHECK_WRITTEN);
      SORT (outside, PTO_CHECK_OUTSIDE);
      SORT (block->wrong[word], PTO_CHECK_WRONG);
      SORT (block->early[word], PTO_CHECK_EARLY);
#undef SORT
      rest = ~(same >> first);
      n = rest != 0 ? (uint32_t) __builtin_ctzll (rest) : 64;
      n = n < 64 - first ? n : 64 - first;
      add_range (context, at + first, n, what);
      left = first + n < 64 ? left & ~((UINT64_C (1) << (first + n)) - 1) : 0;
    }
}

static int
compare_blocks (const void *a, const void *b)
{
  const struct block *const *x = a;
  const struct block *const *y = b;

  return (*x)->number < (*y)->number ? -1 : (*x)->number > (*y)->number;
}

static void
collect_blocks (struct pto_check_context *context)
{
  if (context->n_blocks > context->order_capacity)
    {
      struct block **order = realloc (context->order, context->n_blocks * sizeof (struct block *));

      if (order == NULL)
        return;
      context->order = order;
      context->order_capacity = context->n_blocks;
    }
  for (uint32_t i = 0; i < context->n_blocks; i++)
    context->order[i] = &context->chunks[i / CHUNK_BLOCKS][i % CHUNK_BLOCKS];
  if (context->n_blocks > 1)
    qsort (context->order, context->n_blocks, sizeof (struct block *), compare_blocks);
  for (uint32_t i = 0; i < context->n_blocks; i++)
    {
      const struct block *block = context->order[i];
      uint64_t at = (uint64_t) block->number << PTO2_ACCESS_SHIFT;

      for (uint32_t w = 0; w < WORDS; w++, at += 64)
        {
          uint64_t written = block->public.words[w].written;
          uint64_t read = block->public.words[w].read & ~written;

          if (block->unusual || (written != 0 && read != 0))
            add_word (context, block, w, at);
          else
            add_runs (context, at, written | read, written != 0 ? PTO_CHECK_WRITTEN : 0);
        }
    }
}

/* A kernel that says nothing has done what its arguments say. */
static void
collect_declared (struct pto_check_context *context)
{
  for (uint32_t a = 0; a < context->task->n_args; a++)
    {
      const struct pto_check_arg *arg = &context->task->args[a];
      struct pto_check_pieces pieces;
      uint64_t lo;
      uint64_t hi;

      if (arg->type == PTO_PARAM_NO_DEP || arg->type == PTO_PARAM_SCRATCH)
        continue;
      pto_check_pieces_begin (&pieces, &arg->region);
      while (pto_check_pieces_next (&pieces, &lo, &hi))
        add_range (context, lo, hi - lo, arg->type == PTO_PARAM_INPUT ? 0 : PTO_CHECK_WRITTEN);
    }
}

static void
forget (struct pto_check_context *context)
{
  memset (context->public.entries, 0xff, sizeof context->public.entries);
  for (uint32_t i = 0; i < context->n_blocks; i++)
    context->buckets[context->chunks[i / CHUNK_BLOCKS][i % CHUNK_BLOCKS].number % BUCKETS] = NULL;
  context->n_blocks = 0;
  context->n_ranges = 0;
}

void
pto_check_leave (struct pto_check_context *context)
{
  struct pto_check *check;
  struct pto_check_part *part;
  size_t bytes;

  if (context == NULL)
    return;
  check = context->check;
  pto_check_resume (NULL);
  if (context->instrumented)
    collect_blocks (context);
  else
    collect_declared (context);
  bytes = context->n_ranges * sizeof (struct pto_check_range);
  part = malloc (sizeof *part + bytes);
  if (part != NULL)
    {
      part->n = context->n_ranges;
      part->block = context->block;
      if (bytes > 0)
        memcpy (part->ranges, context->ranges, bytes);
    }
  pthread_mutex_lock (&check->lock);
  check->n_ranges += context->n_ranges;
  if (part == NULL || check->n_ranges > RANGES_MAX)
    {
      check->lost = true;
      free (part);
    }
  else
    {
      struct pto_check_task *task = &check->tasks[context->number];

      struct pto_check_part **at = &task->parts;

      /* In an order that says nothing of time. */
      while (*at != NULL && (*at)->block < part->block)
        at = &(*at)->next;
      part->next = *at;
      *at = part;
      task->n_parts++;
    }
  forget (context);
  context->idle = check->idle;
  check->idle = context;
  pthread_mutex_unlock (&check->lock);
}
