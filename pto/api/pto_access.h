/* pto_access.h: what does a kernel read and write?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Not for programs: it comes before a kernel's source when accesses are checked (check=access). The
 * compiler then calls a function before each access to memory (-fsanitize=thread), and these are
 * here, in the kernel's own object and hidden there. What is known of an access is looked up in a
 * table of the core's; what is not found there, or not allowed, is asked of libpto. Valid C17 and
 * C++17. Thread safety: on the thread that runs the kernel.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#ifdef PTO2_ACCESS_HOOKS
#include <string.h>
#endif

#ifdef __cplusplus
extern "C"
{
#endif

/* Memory is looked at in blocks of 1024 bytes, each with a bit a byte. */
#define PTO2_ACCESS_SHIFT 10
#define PTO2_ACCESS_WORDS 16
#define PTO2_ACCESS_ENTRIES 64
/* The number is of what object and library say to each other: an object with another one is not
 * seen. */
#define PTO2_ACCESS_TABLE pto2_access_table_2

/* An access: bits. */
#define PTO2_ACCESS_WRITE 1
#define PTO2_ACCESS_ATOMIC 2
#define PTO2_ACCESS_ACQUIRE 4 /* an atomic operation that has been done */
#define PTO2_ACCESS_RELEASE 8 /* an atomic operation that will be done */
#define PTO2_ACCESS_EXACT 16  /* the object waits somewhere with pto_relax(): ask each time */
#define PTO2_ACCESS_NEAR 32   /* a read close to such a place */
#define PTO2_ACCESS_ALL 64    /* no access: the kernel writes all of its outputs */
#define PTO2_ACCESS_OWNS 128  /* no access: the kernel has allocated that memory */

/* Bytes of code around a pto_relax() in which its loop is taken to be. */
#define PTO2_ACCESS_LOOP 256

  typedef struct PTO2AccessWord
  {
    uint64_t may_read;
    uint64_t may_write;
    uint64_t read; /* before it was written */
    uint64_t written;
  } PTO2AccessWord;

  typedef struct PTO2AccessBlock
  {
    PTO2AccessWord words[PTO2_ACCESS_WORDS];
  } PTO2AccessBlock;

  typedef struct PTO2AccessEntry
  {
    uintptr_t number; /* of the block: its address, shifted */
    PTO2AccessBlock *block;
  } PTO2AccessEntry;

  /* What one kernel that runs may do, and has done: blocks that it has touched lately. */
  typedef struct PTO2Access
  {
    PTO2AccessEntry entries[PTO2_ACCESS_ENTRIES];
  } PTO2Access;

  /* Written by libpto when the object has been loaded. */
  typedef struct PTO2AccessTable
  {
    intptr_t current; /* from the thread pointer to a PTO2Access * */
    /* what: PTO2_ACCESS_*; pc: of the access */
    void (*ask) (PTO2Access *access, uintptr_t address, size_t size, int what, uintptr_t pc);
  } PTO2AccessTable;

#ifdef PTO2_ACCESS_HOOKS

#define PTO2_ACCESS_OWN \
  __attribute__ ((visibility ("hidden"), used, no_sanitize ("thread"), no_instrument_function))
#define PTO2_ACCESS_INLINE \
  static __inline__ __attribute__ ((always_inline, no_sanitize ("thread"), no_instrument_function))

  __attribute__ ((visibility ("default"), used)) PTO2AccessTable PTO2_ACCESS_TABLE = { 0, 0 };

  /* Asked for anew each time: a kernel that waits may go on on another thread. Before the object is
   * connected nobody is asked. */
  PTO2_ACCESS_INLINE PTO2Access *
  pto2_access_current_ (void)
  {
    intptr_t offset = PTO2_ACCESS_TABLE.current;
    PTO2Access *access;

    if (__builtin_expect (offset == 0, 0))
      return 0;
#if defined(__x86_64__)
    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(access) : "r"(offset));
#elif defined(__aarch64__)
    uintptr_t thread;

    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(thread));
    access = *(PTO2Access **) (thread + (uintptr_t) offset);
#else
    access = *(PTO2Access **) ((uintptr_t) __builtin_thread_pointer () + (uintptr_t) offset);
#endif
    return access;
  }

/* Before pto_relax(): says where it is, from there. */
#define PTO2_ACCESS_RELAX_SECTION "pto2_relax"
#define PTO2_ACCESS_RELAX                                                    \
  __asm__ volatile("771: .pushsection " PTO2_ACCESS_RELAX_SECTION ",\"a\"\n" \
                   ".balign 4\n"                                             \
                   ".long 771b - .\n"                                        \
                   ".popsection")

  extern const int32_t pto2_relax_first[] __asm__("__start_pto2_relax")
      __attribute__ ((weak, visibility ("hidden")));
  extern const int32_t pto2_relax_end[] __asm__("__stop_pto2_relax")
      __attribute__ ((weak, visibility ("hidden")));

  PTO2_ACCESS_OWN void pto2_access_ask_ (PTO2Access *access, uintptr_t address, size_t size,
                                         int what, uintptr_t pc);
  void
  pto2_access_ask_ (PTO2Access *access, uintptr_t address, size_t size, int what, uintptr_t pc)
  {
    const int32_t *place;

    for (place = pto2_relax_first; place != pto2_relax_end; place++)
      {
        uintptr_t from = (uintptr_t) place + (uintptr_t) (intptr_t) *place;

        what |= PTO2_ACCESS_EXACT;
        if ((what & PTO2_ACCESS_WRITE) == 0 && pc + PTO2_ACCESS_LOOP - from < 2 * PTO2_ACCESS_LOOP)
          what |= PTO2_ACCESS_NEAR;
      }
    PTO2_ACCESS_TABLE.ask (access, address, size, what, pc);
  }

/* In a function that the kernel calls. */
#define PTO2_ACCESS_PC ((uintptr_t) __builtin_return_address (0))

  PTO2_ACCESS_INLINE void
  pto2_access_one_ (const volatile void *memory, uint32_t size, int writes)
  {
    uintptr_t address = (uintptr_t) memory;
    uintptr_t number = address >> PTO2_ACCESS_SHIFT;
    uint32_t bit = (uint32_t) address & 63;
    PTO2Access *access = pto2_access_current_ ();
    PTO2AccessEntry *entry;

    if (__builtin_expect (access == 0, 0))
      return;
    entry = &access->entries[number % PTO2_ACCESS_ENTRIES];
    if (__builtin_expect (entry->number == number && bit + size <= 64, 1))
      {
        PTO2AccessWord *word = &entry->block->words[(address >> 6) % PTO2_ACCESS_WORDS];
        uint64_t mask = ((UINT64_C (1) << size) - 1) << bit;

        if (writes)
          {
            if (__builtin_expect ((mask & ~word->may_write) == 0, 1))
              {
                word->written |= mask;
                return;
              }
          }
        else if (__builtin_expect ((mask & ~(word->may_read | word->written)) == 0, 1))
          {
            word->read |= mask & ~word->written;
            return;
          }
      }
    pto2_access_ask_ (access, address, size, writes, PTO2_ACCESS_PC);
  }

  PTO2_ACCESS_INLINE void
  pto2_access_atomic_ (const volatile void *memory, size_t size, int what)
  {
    PTO2Access *access = pto2_access_current_ ();

    if (access != 0)
      pto2_access_ask_ (access, (uintptr_t) memory, size, what | PTO2_ACCESS_ATOMIC,
                        PTO2_ACCESS_PC);
  }

/* In pto_writes_all(): a function, for what is inlined there would be told as an access. */
#define PTO2_ACCESS_SAY_ALL pto2_access_say_all_ ()
  PTO2_ACCESS_OWN void pto2_access_say_all_ (void);
  void
  pto2_access_say_all_ (void)
  {
    PTO2Access *access = pto2_access_current_ ();

    if (access != 0)
      PTO2_ACCESS_TABLE.ask (access, 0, 0, PTO2_ACCESS_ALL, 0);
  }

  PTO2_ACCESS_INLINE void
  pto2_access_many_ (const volatile void *memory, size_t size, int writes)
  {
    PTO2Access *access;

    if (size - 1 < 16)
      pto2_access_one_ (memory, (uint32_t) size, writes);
    else if (size > 0 && (access = pto2_access_current_ ()) != 0)
      pto2_access_ask_ (access, (uintptr_t) memory, size, writes, PTO2_ACCESS_PC);
  }

  /* The compiler knows functions of these names, with types of its own; so they have others here.
   */
#define PTO2_ACCESS_HOOK(name, parameters)                                   \
  PTO2_ACCESS_OWN void pto2_hook_##name parameters __asm__("__tsan_" #name); \
  void pto2_hook_##name parameters

#define PTO2_ACCESS_PLAIN(name, size, writes)            \
  PTO2_ACCESS_HOOK (name, (const volatile void *memory)) \
  {                                                      \
    pto2_access_one_ (memory, size, writes);             \
  }
#define PTO2_ACCESS_SIZE(size)                                \
  PTO2_ACCESS_PLAIN (read##size, size, 0)                     \
  PTO2_ACCESS_PLAIN (write##size, size, 1)                    \
  PTO2_ACCESS_PLAIN (volatile_read##size, size, 0)            \
  PTO2_ACCESS_PLAIN (volatile_write##size, size, 1)           \
  PTO2_ACCESS_PLAIN (read_write##size, size, 1)               \
  PTO2_ACCESS_PLAIN (unaligned_read##size, size, 0)           \
  PTO2_ACCESS_PLAIN (unaligned_write##size, size, 1)          \
  PTO2_ACCESS_PLAIN (unaligned_volatile_read##size, size, 0)  \
  PTO2_ACCESS_PLAIN (unaligned_volatile_write##size, size, 1) \
  PTO2_ACCESS_PLAIN (unaligned_read_write##size, size, 1)
  PTO2_ACCESS_SIZE (1)
  PTO2_ACCESS_SIZE (2)
  PTO2_ACCESS_SIZE (4)
  PTO2_ACCESS_SIZE (8)
  PTO2_ACCESS_SIZE (16)

  PTO2_ACCESS_HOOK (read_range, (const volatile void *memory, size_t size))
  {
    pto2_access_many_ (memory, size, 0);
  }

  PTO2_ACCESS_HOOK (write_range, (const volatile void *memory, size_t size))
  {
    pto2_access_many_ (memory, size, 1);
  }

  PTO2_ACCESS_HOOK (init, (void) ) {}
  PTO2_ACCESS_HOOK (func_entry, (void *caller))
  {
    (void) caller;
  }
  PTO2_ACCESS_HOOK (func_exit, (void) ) {}
  PTO2_ACCESS_HOOK (vptr_update, (void *place, void *value))
  {
    (void) value;
    pto2_access_one_ (place, sizeof (void *), 1);
  }
  PTO2_ACCESS_HOOK (vptr_read, (void *place))
  {
    pto2_access_one_ (place, sizeof (void *), 0);
  }
  PTO2_ACCESS_HOOK (atomic_thread_fence, (int order))
  {
    (void) order;
    __atomic_thread_fence (__ATOMIC_SEQ_CST);
  }
  PTO2_ACCESS_HOOK (atomic_signal_fence, (int order))
  {
    (void) order;
    __atomic_signal_fence (__ATOMIC_SEQ_CST);
  }

  /* Atomic operations are these functions: they do what was asked for, in the strictest order. */
#define PTO2_ACCESS_RESULT(type, name, parameters)                           \
  PTO2_ACCESS_OWN type pto2_hook_##name parameters __asm__("__tsan_" #name); \
  type pto2_hook_##name parameters

/* Before and after an operation that reads and writes. */
#define PTO2_ACCESS_BEFORE(bits, order)  \
  pto2_access_atomic_ (memory, bits / 8, \
                       PTO2_ACCESS_WRITE | (order >= __ATOMIC_RELEASE ? PTO2_ACCESS_RELEASE : 0))
#define PTO2_ACCESS_AFTER(bits, order)                               \
  do                                                                 \
    {                                                                \
      if (order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE)    \
        pto2_access_atomic_ (memory, bits / 8, PTO2_ACCESS_ACQUIRE); \
    }                                                                \
  while (0)
#define PTO2_ACCESS_CHANGE(bits, type, name, builtin)                  \
  PTO2_ACCESS_RESULT (type, atomic##bits##_##name,                     \
                      (volatile type * memory, type value, int order)) \
  {                                                                    \
    type result;                                                       \
                                                                       \
    PTO2_ACCESS_BEFORE (bits, order);                                  \
    result = builtin (memory, value, __ATOMIC_SEQ_CST);                \
    PTO2_ACCESS_AFTER (bits, order);                                   \
    return result;                                                     \
  }
#define PTO2_ACCESS_COMPARE(bits, type, name)                                           \
  PTO2_ACCESS_RESULT (                                                                  \
      int, atomic##bits##_compare_exchange_##name,                                      \
      (volatile type * memory, type * expected, type value, int order, int failure))    \
  {                                                                                     \
    int result;                                                                         \
                                                                                        \
    (void) failure;                                                                     \
    PTO2_ACCESS_BEFORE (bits, order);                                                   \
    result = __atomic_compare_exchange_n (memory, expected, value, 0, __ATOMIC_SEQ_CST, \
                                          __ATOMIC_SEQ_CST);                            \
    PTO2_ACCESS_AFTER (bits, order);                                                    \
    return result;                                                                      \
  }
#define PTO2_ACCESS_ATOMICS(bits, type)                                                            \
  PTO2_ACCESS_RESULT (type, atomic##bits##_load, (const volatile type *memory, int order))         \
  {                                                                                                \
    type result = __atomic_load_n (memory, __ATOMIC_SEQ_CST);                                      \
                                                                                                   \
    (void) order;                                                                                  \
    pto2_access_atomic_ (memory, bits / 8, PTO2_ACCESS_ACQUIRE);                                   \
    return result;                                                                                 \
  }                                                                                                \
  PTO2_ACCESS_HOOK (atomic##bits##_store, (volatile type * memory, type value, int order))         \
  {                                                                                                \
    (void) order;                                                                                  \
    pto2_access_atomic_ (memory, bits / 8, PTO2_ACCESS_WRITE | PTO2_ACCESS_RELEASE);               \
    __atomic_store_n (memory, value, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  PTO2_ACCESS_CHANGE (bits, type, exchange, __atomic_exchange_n)                                   \
  PTO2_ACCESS_CHANGE (bits, type, fetch_add, __atomic_fetch_add)                                   \
  PTO2_ACCESS_CHANGE (bits, type, fetch_sub, __atomic_fetch_sub)                                   \
  PTO2_ACCESS_CHANGE (bits, type, fetch_and, __atomic_fetch_and)                                   \
  PTO2_ACCESS_CHANGE (bits, type, fetch_or, __atomic_fetch_or)                                     \
  PTO2_ACCESS_CHANGE (bits, type, fetch_xor, __atomic_fetch_xor)                                   \
  PTO2_ACCESS_CHANGE (bits, type, fetch_nand, __atomic_fetch_nand)                                 \
  PTO2_ACCESS_COMPARE (bits, type, strong)                                                         \
  PTO2_ACCESS_COMPARE (bits, type, weak)                                                           \
  PTO2_ACCESS_RESULT (type, atomic##bits##_compare_exchange_val,                                   \
                      (volatile type * memory, type expected, type value, int order, int failure)) \
  {                                                                                                \
    (void) failure;                                                                                \
    PTO2_ACCESS_BEFORE (bits, order);                                                              \
    __atomic_compare_exchange_n (memory, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    PTO2_ACCESS_AFTER (bits, order);                                                               \
    return expected;                                                                               \
  }
  PTO2_ACCESS_ATOMICS (8, uint8_t)
  PTO2_ACCESS_ATOMICS (16, uint16_t)
  PTO2_ACCESS_ATOMICS (32, uint32_t)
  PTO2_ACCESS_ATOMICS (64, uint64_t)

  /* What is copied by the C library; clang calls the latter. */
#define PTO2_ACCESS_LIBRARY(name, wrapped, parameters, before, arguments)           \
  void *pto2_real_##wrapped parameters __asm__("__real_" #wrapped);                 \
  PTO2_ACCESS_OWN void *pto2_wrap_##wrapped parameters __asm__("__wrap_" #wrapped); \
  void *pto2_wrap_##wrapped parameters                                              \
  {                                                                                 \
    before;                                                                         \
    return pto2_real_##wrapped arguments;                                           \
  }                                                                                 \
  PTO2_ACCESS_OWN void *pto2_hook_##wrapped parameters __asm__("__tsan_" #wrapped); \
  void *pto2_hook_##wrapped parameters                                              \
  {                                                                                 \
    before;                                                                         \
    return pto2_real_##wrapped arguments;                                           \
  }
#define PTO2_ACCESS_COPIES (pto2_access_many_ (from, n, 0), pto2_access_many_ (to, n, 1))
  PTO2_ACCESS_LIBRARY (memcpy, memcpy, (void *to, const void *from, size_t n), PTO2_ACCESS_COPIES,
                       (to, from, n))
  PTO2_ACCESS_LIBRARY (memmove, memmove, (void *to, const void *from, size_t n), PTO2_ACCESS_COPIES,
                       (to, from, n))
  PTO2_ACCESS_LIBRARY (memset, memset, (void *to, int value, size_t n),
                       pto2_access_many_ (to, n, 1), (to, value, n))
  PTO2_ACCESS_LIBRARY (memcpy, __memcpy_chk, (void *to, const void *from, size_t n, size_t room),
                       PTO2_ACCESS_COPIES, (to, from, n, room))
  PTO2_ACCESS_LIBRARY (memmove, __memmove_chk, (void *to, const void *from, size_t n, size_t room),
                       PTO2_ACCESS_COPIES, (to, from, n, room))
  PTO2_ACCESS_LIBRARY (memset, __memset_chk, (void *to, int value, size_t n, size_t room),
                       pto2_access_many_ (to, n, 1), (to, value, n, room))

  /* What a kernel allocates is its own. */
  PTO2_ACCESS_INLINE void *
  pto2_access_own_ (void *memory, size_t size)
  {
    PTO2Access *access = memory != 0 ? pto2_access_current_ () : 0;

    if (access != 0)
      PTO2_ACCESS_TABLE.ask (access, (uintptr_t) memory, size, PTO2_ACCESS_OWNS, 0);
    return memory;
  }

#define PTO2_ACCESS_ALLOCATES(name, parameters, size, arguments)              \
  void *pto2_real_##name parameters __asm__("__real_" #name);                 \
  PTO2_ACCESS_OWN void *pto2_wrap_##name parameters __asm__("__wrap_" #name); \
  void *pto2_wrap_##name parameters                                           \
  {                                                                           \
    return pto2_access_own_ (pto2_real_##name arguments, size);               \
  }
  PTO2_ACCESS_ALLOCATES (malloc, (size_t n), n, (n))
  PTO2_ACCESS_ALLOCATES (calloc, (size_t n, size_t each), n *each, (n, each))
  PTO2_ACCESS_ALLOCATES (realloc, (void *memory, size_t n), n, (memory, n))
  PTO2_ACCESS_ALLOCATES (aligned_alloc, (size_t alignment, size_t n), n, (alignment, n))
#ifdef __cplusplus
  /* operator new and new[]. */
  PTO2_ACCESS_ALLOCATES (_Znwm, (size_t n), n, (n))
  PTO2_ACCESS_ALLOCATES (_Znam, (size_t n), n, (n))
#endif

  /* GCC makes instructions of short copies without a word. Those of the size of a register are
   * accesses to it, as any; the others are told of. With _FORTIFY_SOURCE they have been replaced.
   */
#if defined(__GNUC__) && !defined(__clang__) \
    && !(defined(__USE_FORTIFY_LEVEL) && __USE_FORTIFY_LEVEL > 0)
#ifdef __cplusplus
#define PTO2_ACCESS_NOTHROW noexcept
#else
#define PTO2_ACCESS_NOTHROW
#endif
#define PTO2_ACCESS_REPLACE \
  extern __inline __attribute__ ((gnu_inline, always_inline, artificial)) void *
#define PTO2_ACCESS_IS_WORD(n) (__builtin_constant_p (n) && (n) <= 16 && ((n) & ((n) -1)) == 0)
  PTO2_ACCESS_REPLACE
  memcpy (void *to, const void *from, size_t n) PTO2_ACCESS_NOTHROW
  {
    return PTO2_ACCESS_IS_WORD (n) ? __builtin_memcpy (to, from, n)
                                   : pto2_wrap_memcpy (to, from, n);
  }
  PTO2_ACCESS_REPLACE
  memmove (void *to, const void *from, size_t n) PTO2_ACCESS_NOTHROW
  {
    return PTO2_ACCESS_IS_WORD (n) ? __builtin_memmove (to, from, n)
                                   : pto2_wrap_memmove (to, from, n);
  }
  PTO2_ACCESS_REPLACE
  memset (void *to, int value, size_t n) PTO2_ACCESS_NOTHROW
  {
    return pto2_wrap_memset (to, value, n);
  }

  /* Kernels, and headers such as those of std::copy(), also call the builtin functions by name. */
  PTO2_ACCESS_INLINE void *
  pto2_access_memcpy_ (void *to, const void *from, size_t n)
  {
    return memcpy (to, from, n);
  }
  PTO2_ACCESS_INLINE void *
  pto2_access_memmove_ (void *to, const void *from, size_t n)
  {
    return memmove (to, from, n);
  }
  PTO2_ACCESS_INLINE void *
  pto2_access_memset_ (void *to, int value, size_t n)
  {
    return memset (to, value, n);
  }
#define __builtin_memcpy pto2_access_memcpy_
#define __builtin_memmove pto2_access_memmove_
#define __builtin_memset pto2_access_memset_
#endif

#endif

#ifdef __cplusplus
}
#endif
