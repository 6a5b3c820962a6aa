/* weak.c: what would a machine do that keeps only those orders that the source asks for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Vector clocks say what happens before what (hb), and what a thread may not read past any more
 * (view: hb, and what sequentially consistent fences add to it without ordering plain accesses). A
 * clock has an entry for each thread, and one more that counts sequentially consistent stores.
 */
#include "weak.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOCKS (WEAK_THREADS + 1)
#define SC WEAK_THREADS
#define HISTORY 6u       /* values that a location remembers */
#define TABLE (1u << 16) /* of locations and granules, each */
#define GRANULE 8u

/* The orders as compilers pass them. */
enum order
{
  RELAXED,
  CONSUME,
  ACQUIRE,
  RELEASE,
  ACQ_REL,
  SEQ_CST
};

struct clocks
{
  uint32_t at[CLOCKS];
};

struct thread
{
  struct clocks hb, view;
  /* what relaxed loads have read: counts after an acquire fence */
  struct clocks read_hb, read_view;
  /* at the last release fence: what relaxed stores release */
  struct clocks fence_hb, fence_view;
  bool switching;
};

struct message
{
  uint64_t value;
  struct clocks hb, view; /* released */
  /* when each thread first knew of it; 0: it does not. [SC]: its place among the sequentially
   * consistent stores */
  struct clocks seen;
  bool known; /* to all */
};

struct location
{
  uint32_t size;
  uint32_t first, n; /* the last is messages[(first + n - 1) % HISTORY] */
  struct message messages[HISTORY];
};

/* Kinds of accesses: 2 * writes + atomic. */
#define KINDS 4u

/* The last accesses to each byte of a granule. */
struct granule
{
  uint32_t known; /* bytes that were accessed; the others are rubbish */
  struct cell
  {
    const void *pc;
    uint32_t by;    /* who came last ... */
    uint32_t kinds; /* ... and how, since then */
    uint64_t used;  /* which of these there are: a bit each */
    uint32_t at[KINDS * WEAK_THREADS];
  } bytes[GRANULE];
};

/* Where what is known of an address stands: numbers are given in order and anew in each generation,
 * so that what a machine uses lies together, however its addresses are spread. Open addressing. */
struct entry
{
  uint64_t address;
  uint32_t generation; /* another one: free */
  uint32_t number;
};

struct table
{
  struct entry *entries;
  uint32_t n;
};

struct thing
{
  const void *address;
  struct clocks hb, view;
};

static const struct weak_machine *machine;
/* Other threads of the program, a ticker's for one, are none of the machine's. */
static _Thread_local bool inside;
static struct thread threads[WEAK_THREADS];
static struct clocks fences; /* the view of all sequentially consistent fences */
static uint32_t sc_stores;
static uint32_t generation;
static struct table of_locations, of_granules;
static struct location *locations;
static struct granule *granules;
static struct thing things[64];
static uint32_t n_things;

uint64_t weak_n_stale, weak_n_checked;

static void
join (struct clocks *to, const struct clocks *from)
{
  for (uint32_t i = 0; i < CLOCKS; i++)
    if (from->at[i] > to->at[i])
      to->at[i] = from->at[i];
}

static uint32_t
self (void)
{
  uint32_t index = machine->self ();

  if (index >= WEAK_THREADS)
    abort ();
  return index;
}

/* What lies together in a page stays together, for the caches. */
static uint32_t
hash (uint64_t address)
{
  uint64_t page = (address >> 12) * UINT64_C (0x9e3779b97f4a7c15);

  return (uint32_t) ((page >> 40) + (address >> 2)) & (TABLE - 1);
}

void
weak_begin (const struct weak_machine *given)
{
  if (locations == NULL)
    {
      locations = calloc (TABLE, sizeof *locations);
      granules = calloc (TABLE, sizeof *granules);
      of_locations.entries = calloc (TABLE, sizeof *of_locations.entries);
      of_granules.entries = calloc (TABLE, sizeof *of_granules.entries);
      if (locations == NULL || granules == NULL || of_locations.entries == NULL
          || of_granules.entries == NULL)
        abort ();
    }
  memset (threads, 0, sizeof threads);
  memset (&fences, 0, sizeof fences);
  for (uint32_t i = 0; i < WEAK_THREADS; i++)
    threads[i].hb.at[i] = threads[i].view.at[i] = 1;
  sc_stores = 0;
  n_things = 0;
  of_locations.n = of_granules.n = 0;
  generation++;
  inside = true;
  machine = given;
}

void
weak_end (void)
{
  machine = NULL;
  inside = false;
}

/* The thread's own switch is none of its steps, if that is instrumented, too. */
static bool
is_off (void)
{
  return !inside || machine == NULL || threads[self ()].switching;
}

/* The switch point; the machine may be gone behind it. */
static bool
is_on (void)
{
  struct thread *thread;

  if (is_off ())
    return false;
  thread = &threads[self ()];
  thread->switching = true;
  machine->point ();
  thread->switching = false;
  return machine != NULL;
}

/* --- plain memory --- */

/* The number of an address; TABLE: it has none, and gets one where make says so, which is *fresh.
 */
static inline uint32_t
find (struct table *table, uint64_t address, bool make, bool *fresh)
{
  for (uint32_t i = hash (address);; i = (i + 1) & (TABLE - 1))
    {
      struct entry *entry = &table->entries[i];

      *fresh = entry->generation != generation;
      if (!*fresh && entry->address != address)
        continue;
      if (*fresh && !make)
        return TABLE;
      if (*fresh && table->n == TABLE - 1)
        abort ();
      if (*fresh)
        *entry = (struct entry){ address, generation, table->n++ };
      return entry->number;
    }
}

static struct granule *
granule_at (uint64_t address, bool make)
{
  bool fresh;
  uint32_t number = find (&of_granules, address, make, &fresh);

  if (number == TABLE)
    return NULL;
  if (fresh)
    granules[number].known = 0;
  return &granules[number];
}

static void
race (const char *what, uint64_t address, const void *pc, const void *other, uint32_t by,
      uint32_t before)
{
  extern const char __executable_start[];
  unsigned long here = (unsigned long) ((const char *) pc - __executable_start);
  unsigned long there = (unsigned long) ((const char *) other - __executable_start);
  char command[160];

  fprintf (stderr, "# data race: thread %u at %#lx %s %#lx, which thread %u used at %#lx\n", by,
           here, what, (unsigned long) address, before, there);
  /* A return address is behind the call. */
  snprintf (command, sizeof command,
            "addr2line -fise /proc/%d/exe %#lx %#lx 2>&1 | paste -sd' ' | sed 's/^/# /' >&2",
            (int) getpid (), here - 1, there - 1);
  if (system (command) != 0)
    fprintf (stderr, "# addr2line -fise PROGRAM %#lx %#lx says where that is\n", here, there);
  abort ();
}

/* Accesses of a kind by anybody. */
#define OF_KIND(kind) (((UINT64_C (1) << WEAK_THREADS) - 1) << WEAK_THREADS * (kind))

/* Which accesses race with one of that kind, where nothing orders them. */
static const uint64_t rivals[KINDS] = {
  OF_KIND (2) | OF_KIND (3),                             /* reads */
  OF_KIND (2),                                           /* reads atomically */
  OF_KIND (0) | OF_KIND (1) | OF_KIND (2) | OF_KIND (3), /* writes */
  OF_KIND (0) | OF_KIND (2),                             /* writes atomically */
};

static void
note (uint64_t address, uint64_t size, bool writes, bool atomic, const void *pc)
{
  uint32_t by = self ();
  const struct clocks *hb = &threads[by].hb;
  uint32_t kind = 2u * writes + atomic;
  uint32_t place = WEAK_THREADS * kind + by;
  /* A word is not used as bytes, except where many words are. */
  uint64_t step = address % 4 == 0 && (size == 4 || size == 8 || size == 16) ? 4 : 1;

  struct granule *granule = NULL;

  weak_n_checked++;
  for (uint64_t end = address + size; address < end; address += step)
    {
      struct cell *cell;

      if (granule == NULL || address % GRANULE < step)
        granule = granule_at (address & ~(uint64_t) (GRANULE - 1), true);
      cell = &granule->bytes[address % GRANULE];
      if ((granule->known >> address % GRANULE & 1) == 0)
        {
          cell->used = 0;
          cell->by = WEAK_THREADS;
          granule->known |= 1u << address % GRANULE;
        }
      /* Otherwise nobody has been there since the thread did the same. */
      if (cell->by != by || (cell->kinds >> kind & 1) == 0)
        for (uint64_t left = cell->used & rivals[kind]; left != 0; left &= left - 1)
          {
            uint32_t other = (uint32_t) __builtin_ctzll (left);

            if (other % WEAK_THREADS != by && cell->at[other] > hb->at[other % WEAK_THREADS])
              race (writes ? "writes" : "reads", address, pc, cell->pc, by, other % WEAK_THREADS);
          }
      cell->pc = pc;
      cell->kinds = 1u << kind | (cell->by == by ? cell->kinds : 0);
      cell->by = by;
      cell->used |= UINT64_C (1) << place;
      cell->at[place] = hb->at[by];
    }
}

/* The location of an atomic operation. */
static struct location *
location_at (uint64_t address, bool make)
{
  bool fresh;
  uint32_t number = find (&of_locations, address, make, &fresh);

  if (number == TABLE)
    return NULL;
  if (fresh)
    locations[number].n = 0;
  return &locations[number];
}

static void
plain (uint64_t address, uint64_t size, bool writes, const void *pc)
{
  for (uint32_t i = 0; i < sizeof machine->own / sizeof machine->own[0]; i++)
    if (address - (uint64_t) (uintptr_t) machine->own[i].memory < machine->own[i].size)
      return;
  note (address, size, writes, false, pc);
  if (writes)
    /* Ordered behind every use of the location, or it was a race: what it was is forgotten. */
    for (uint64_t at = address & ~(uint64_t) 3; at < address + size; at += 4)
      {
        struct location *location = location_at (at, false);

        if (location != NULL)
          location->n = 0;
      }
}

void
weak_read (const void *memory, uint64_t size)
{
  if (machine != NULL)
    plain ((uint64_t) (uintptr_t) memory, size, false, __builtin_return_address (0));
}

void
weak_write (const void *memory, uint64_t size)
{
  if (machine != NULL)
    plain ((uint64_t) (uintptr_t) memory, size, true, __builtin_return_address (0));
}

void
weak_forget (const void *memory, uint64_t size)
{
  uint64_t address = (uint64_t) (uintptr_t) memory;

  if (machine == NULL)
    return;
  for (uint64_t at = address; at < address + size; at++)
    {
      struct granule *granule = granule_at (at & ~(uint64_t) (GRANULE - 1), false);
      struct location *location = location_at (at, false);

      if (granule != NULL)
        granule->known &= ~(1u << at % GRANULE);
      if (location != NULL)
        location->n = 0;
    }
}

static struct thing *
thing_at (const void *address)
{
  for (uint32_t i = 0; i < n_things; i++)
    if (things[i].address == address)
      return &things[i];
  if (n_things == sizeof things / sizeof things[0])
    abort ();
  memset (&things[n_things], 0, sizeof things[0]);
  things[n_things].address = address;
  return &things[n_things++];
}

void
weak_release (const void *address)
{
  struct thing *thing;
  struct thread *thread;
  uint32_t by;

  if (machine == NULL)
    return;
  by = self ();
  thread = &threads[by];
  thing = thing_at (address);
  join (&thing->hb, &thread->hb);
  join (&thing->view, &thread->view);
  thread->hb.at[by] = ++thread->view.at[by];
}

void
weak_acquire (const void *address)
{
  struct thing *thing;
  struct thread *thread;

  if (machine == NULL)
    return;
  thread = &threads[self ()];
  /* Another actor may have been this thread, and ended at a switch point. */
  thread->switching = false;
  thing = thing_at (address);
  join (&thread->hb, &thing->hb);
  join (&thread->view, &thing->view);
}

/* --- atomic operations --- */

static uint64_t
peek (uint64_t address, uint32_t size)
{
  uint64_t value = 0;

  memcpy (&value, (const void *) (uintptr_t) address, size);
  return value;
}

static struct message *
nth (struct location *location, uint32_t i)
{
  return &location->messages[(location->first + i) % HISTORY];
}

static struct message *
append (struct location *location, uint64_t value)
{
  struct message *message;

  if (location->n == HISTORY)
    {
      location->first = (location->first + 1) % HISTORY;
      location->n--;
    }
  message = nth (location, location->n++);
  memset (message, 0, sizeof *message);
  message->value = value;
  return message;
}

/* The location, with what is in memory as its last value. */
static struct location *
locate (uint64_t address, uint32_t size)
{
  struct location *location = location_at (address, true);
  uint64_t value = peek (address, size);

  /* It is new, or code that is not instrumented has written it: that is known to all. */
  if (location->n == 0 || nth (location, location->n - 1)->value != value)
    {
      location->n = 0;
      append (location, value)->known = true;
    }
  return location;
}

static bool
knows (const struct clocks *view, const struct message *message)
{
  if (message->known)
    return true;
  for (uint32_t i = 0; i < CLOCKS; i++)
    if (message->seen.at[i] != 0 && message->seen.at[i] <= view->at[i])
      return true;
  return false;
}

static bool
acquires (enum order order)
{
  return order == ACQUIRE || order == CONSUME || order == ACQ_REL || order == SEQ_CST;
}

static bool
releases (enum order order)
{
  return order == RELEASE || order == ACQ_REL || order == SEQ_CST;
}

/* The thread has read the message. */
static void
take (struct thread *thread, uint32_t by, struct message *message, enum order order)
{
  if (message->seen.at[by] == 0)
    message->seen.at[by] = thread->view.at[by];
  if (acquires (order))
    {
      join (&thread->hb, &message->hb);
      join (&thread->view, &message->view);
    }
  join (&thread->read_hb, &message->hb);
  join (&thread->read_view, &message->view);
}

/* Time goes on: what the thread does next is not known to those who knew all until now. */
static void
tick (struct thread *thread, uint32_t by)
{
  thread->hb.at[by] = ++thread->view.at[by];
}

static uint64_t
load (uint64_t address, uint32_t size, enum order order, const void *pc)
{
  struct location *location;
  struct thread *thread;
  struct clocks view;
  struct message *message;
  uint32_t by;
  uint32_t oldest;
  uint32_t age = 0;

  by = self ();
  thread = &threads[by];
  note (address, size, false, true, pc);
  location = locate (address, size);
  view = thread->view;
  if (order == SEQ_CST)
    {
      join (&view, &fences);
      view.at[SC] = sc_stores;
    }
  for (oldest = location->n - 1; oldest > 0; oldest--)
    if (knows (&view, nth (location, oldest)))
      break;
  if (oldest + 1 < location->n)
    age = machine->choose (location->n - oldest);
  weak_n_stale += age > 0;
  message = nth (location, location->n - 1 - age);
  take (thread, by, message, order);
  tick (thread, by);
  return message->value;
}

/* before: what a read-modify-write has read, whose release goes on in what it writes. */
static void
store (uint64_t address, uint32_t size, uint64_t value, enum order order, const void *pc,
       bool modifies)
{
  struct location *location;
  struct thread *thread;
  struct message *message, before;
  uint32_t by = self ();

  thread = &threads[by];
  note (address, size, true, true, pc);
  location = locate (address, size);
  before = *nth (location, location->n - 1);
  memcpy ((void *) (uintptr_t) address, &value, size);
  message = append (location, peek (address, size));
  message->seen.at[by] = thread->view.at[by];
  message->hb = releases (order) ? thread->hb : thread->fence_hb;
  message->view = releases (order) ? thread->view : thread->fence_view;
  if (modifies)
    {
      join (&message->hb, &before.hb);
      join (&message->view, &before.view);
    }
  if (order == SEQ_CST)
    message->seen.at[SC] = ++sc_stores;
  tick (thread, by);
}

/* What a read-modify-write reads, and a comparison that fails. */
static uint64_t
read_last (uint64_t address, uint32_t size, enum order order)
{
  struct location *location;
  struct message *message;
  uint32_t by;

  by = self ();
  location = locate (address, size);
  message = nth (location, location->n - 1);
  take (&threads[by], by, message, order);
  return message->value;
}

static void
fence (enum order order)
{
  struct thread *thread;
  uint32_t by;

  by = self ();
  thread = &threads[by];
  if (acquires (order))
    {
      join (&thread->hb, &thread->read_hb);
      join (&thread->view, &thread->read_view);
    }
  if (order == SEQ_CST)
    {
      thread->view.at[SC] = sc_stores;
      join (&thread->view, &fences);
      join (&fences, &thread->view);
    }
  if (releases (order))
    {
      thread->fence_hb = thread->hb;
      thread->fence_view = thread->view;
    }
  tick (thread, by);
}

/* --- what the compiler calls --- */

#define HOOK(type) __attribute__ ((visibility ("default"))) type
#define PC __builtin_return_address (0)
#define ADDRESS ((uint64_t) (uintptr_t) memory)

HOOK (void) __tsan_init (void);
HOOK (void) __tsan_func_entry (void *pc);
HOOK (void) __tsan_func_exit (void);
HOOK (void) __tsan_read_range (void *memory, uint64_t size);
HOOK (void) __tsan_write_range (void *memory, uint64_t size);
HOOK (void) __tsan_atomic_thread_fence (int order);
HOOK (void) __tsan_atomic_signal_fence (int order);

void
__tsan_init (void)
{
}

void
__tsan_func_entry (void *pc)
{
  (void) pc;
}

void
__tsan_func_exit (void)
{
}

void
__tsan_read_range (void *memory, uint64_t size)
{
  if (!is_off ())
    plain (ADDRESS, size, false, PC);
}

void
__tsan_write_range (void *memory, uint64_t size)
{
  if (!is_off ())
    plain (ADDRESS, size, true, PC);
}

#define PLAIN(name, size, writes)        \
  HOOK (void) name (void *memory);       \
  void name (void *memory)               \
  {                                      \
    if (!is_off ())                      \
      plain (ADDRESS, size, writes, PC); \
  }

PLAIN (__tsan_read1, 1, false)
PLAIN (__tsan_read2, 2, false)
PLAIN (__tsan_read4, 4, false)
PLAIN (__tsan_read8, 8, false)
PLAIN (__tsan_read16, 16, false)
PLAIN (__tsan_write1, 1, true)
PLAIN (__tsan_write2, 2, true)
PLAIN (__tsan_write4, 4, true)
PLAIN (__tsan_write8, 8, true)
PLAIN (__tsan_write16, 16, true)
PLAIN (__tsan_unaligned_read2, 2, false)
PLAIN (__tsan_unaligned_read4, 4, false)
PLAIN (__tsan_unaligned_read8, 8, false)
PLAIN (__tsan_unaligned_read16, 16, false)
PLAIN (__tsan_unaligned_write2, 2, true)
PLAIN (__tsan_unaligned_write4, 4, true)
PLAIN (__tsan_unaligned_write8, 8, true)
PLAIN (__tsan_unaligned_write16, 16, true)

void
__tsan_atomic_thread_fence (int order)
{
  if (is_on ())
    fence ((enum order) order);
  else
    __atomic_thread_fence (__ATOMIC_SEQ_CST);
}

void
__tsan_atomic_signal_fence (int order)
{
  (void) order;
}

#define MODIFY(bits, name, built_in, expression)                                              \
  HOOK (uint##bits##_t)                                                                       \
  __tsan_atomic##bits##_##name (volatile void *memory, uint##bits##_t operand, int order);    \
  uint##bits##_t __tsan_atomic##bits##_##name (volatile void *memory, uint##bits##_t operand, \
                                               int order)                                     \
  {                                                                                           \
    uint##bits##_t value;                                                                     \
                                                                                              \
    if (!is_on ())                                                                            \
      return built_in ((volatile uint##bits##_t *) memory, operand, __ATOMIC_SEQ_CST);        \
    value = (uint##bits##_t) read_last (ADDRESS, bits / 8, (enum order) order);               \
    store (ADDRESS, bits / 8, (uint##bits##_t) (expression), (enum order) order, PC, true);   \
    return value;                                                                             \
  }

#define COMPARE(bits, kind)                                                                       \
  HOOK (int)                                                                                      \
  __tsan_atomic##bits##_compare_exchange_##kind (volatile void *memory, void *expected,           \
                                                 uint##bits##_t desired, int order, int fail);    \
  int __tsan_atomic##bits##_compare_exchange_##kind (volatile void *memory, void *expected,       \
                                                     uint##bits##_t desired, int order, int fail) \
  {                                                                                               \
    uint##bits##_t *before = expected;                                                            \
    uint##bits##_t value;                                                                         \
                                                                                                  \
    if (!is_on ())                                                                                \
      return __atomic_compare_exchange_n ((volatile uint##bits##_t *) memory, before, desired,    \
                                          false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
    value = (uint##bits##_t) peek (ADDRESS, bits / 8);                                            \
    if (value != *before)                                                                         \
      {                                                                                           \
        note (ADDRESS, bits / 8, false, true, PC);                                                \
        read_last (ADDRESS, bits / 8, (enum order) fail);                                         \
        *before = value;                                                                          \
        return 0;                                                                                 \
      }                                                                                           \
    read_last (ADDRESS, bits / 8, (enum order) order);                                            \
    store (ADDRESS, bits / 8, desired, (enum order) order, PC, true);                             \
    return 1;                                                                                     \
  }

#define ATOMIC(bits)                                                                         \
  HOOK (uint##bits##_t) __tsan_atomic##bits##_load (const volatile void *memory, int order); \
  uint##bits##_t __tsan_atomic##bits##_load (const volatile void *memory, int order)         \
  {                                                                                          \
    if (!is_on ())                                                                           \
      return __atomic_load_n ((const volatile uint##bits##_t *) memory, __ATOMIC_SEQ_CST);   \
    return (uint##bits##_t) load (ADDRESS, bits / 8, (enum order) order, PC);                \
  }                                                                                          \
  HOOK (void)                                                                                \
  __tsan_atomic##bits##_store (volatile void *memory, uint##bits##_t value, int order);      \
  void __tsan_atomic##bits##_store (volatile void *memory, uint##bits##_t value, int order)  \
  {                                                                                          \
    if (!is_on ())                                                                           \
      {                                                                                      \
        __atomic_store_n ((volatile uint##bits##_t *) memory, value, __ATOMIC_SEQ_CST);      \
        return;                                                                              \
      }                                                                                      \
    store (ADDRESS, bits / 8, value, (enum order) order, PC, false);                         \
  }                                                                                          \
  MODIFY (bits, exchange, __atomic_exchange_n, operand)                                      \
  MODIFY (bits, fetch_add, __atomic_fetch_add, value + operand)                              \
  MODIFY (bits, fetch_sub, __atomic_fetch_sub, value - operand)                              \
  MODIFY (bits, fetch_and, __atomic_fetch_and, value &operand)                               \
  MODIFY (bits, fetch_or, __atomic_fetch_or, value | operand)                                \
  MODIFY (bits, fetch_xor, __atomic_fetch_xor, value ^ operand)                              \
  COMPARE (bits, strong)                                                                     \
  COMPARE (bits, weak)

ATOMIC (8)
ATOMIC (16)
ATOMIC (32)
ATOMIC (64)

void
weak_store (_Atomic uint32_t *memory, uint32_t value)
{
  __tsan_atomic32_store (memory, value, RELEASE);
}

/* Sources are compiled with the names of these instead of the C library's, which is not
 * instrumented. */
void *weak_memcpy (void *to, const void *from, size_t size);
void *weak_memmove (void *to, const void *from, size_t size);
void *weak_memset (void *to, int byte, size_t size);
void weak_free (void *memory);
void *weak_realloc (void *memory, size_t size);

void *
weak_memcpy (void *to, const void *from, size_t size)
{
  weak_read (from, size);
  weak_write (to, size);
  return memcpy (to, from, size);
}

void *
weak_memmove (void *to, const void *from, size_t size)
{
  weak_read (from, size);
  weak_write (to, size);
  return memmove (to, from, size);
}

void *
weak_memset (void *to, int byte, size_t size)
{
  weak_write (to, size);
  return memset (to, byte, size);
}

/* Ordered behind every use of the block, or it is a race: who gets it next knows nothing of that.
 */
static void
give_back (void *memory, const void *pc)
{
  uint64_t size = memory != NULL && !is_off () ? malloc_usable_size (memory) : 0;
  uint64_t address = (uint64_t) (uintptr_t) memory;

  for (uint64_t at = address; at < address + size; at++)
    {
      const struct granule *granule = granule_at (at & ~(uint64_t) (GRANULE - 1), false);

      if (granule != NULL && (granule->known >> at % GRANULE & 1) != 0)
        note (at, 1, true, false, pc);
    }
  weak_forget (memory, size);
}

void
weak_free (void *memory)
{
  give_back (memory, __builtin_return_address (0));
  free (memory);
}

void *
weak_realloc (void *memory, size_t size)
{
  give_back (memory, __builtin_return_address (0));
  return realloc (memory, size);
}
