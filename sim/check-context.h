/* check-context.h: what is known of a kernel that runs and is checked?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A context belongs to the core that runs the kernel, and is handed on when the kernel has
 * returned. It is filled by what the kernel says (check-kernel.c). check-touch.c keeps what the
 * kernel touches, check-looks.c the reads that wait for others, and check-part.c makes ranges of
 * both.
 */
#pragma once

#include "check.h"

#define PTO_CHECK_BLOCK_BYTES (UINT64_C (1) << PTO2_ACCESS_SHIFT)
#define PTO_CHECK_WORDS PTO2_ACCESS_WORDS
/* Buckets of a context, and blocks that are made at once: powers of two. */
#define PTO_CHECK_BUCKETS 1024u
#define PTO_CHECK_CHUNK_BLOCKS 64u
/* A kernel that comes back to one of so many reads after pto_relax() waits for it. */
#define PTO_CHECK_RECENT_READS 16u

/* A block as its kernel knows it, and what else is to be known. */
struct pto_check_block
{
  PTO2AccessBlock public; /* first */
  uint64_t inside[PTO_CHECK_WORDS];
  uint64_t wrong[PTO_CHECK_WORDS];
  uint64_t early[PTO_CHECK_WORDS];
  /* Bytes that are both an input and an output. The kernel asks for them each time after it has
   * written there. twice_written: since the last part began; overwritten: ever; stale: read since.
   */
  uint64_t twice[PTO_CHECK_WORDS];
  uint64_t twice_written[PTO_CHECK_WORDS];
  uint64_t overwritten[PTO_CHECK_WORDS];
  uint64_t told[PTO_CHECK_WORDS]; /* written by the parts before */
  uint64_t stale[PTO_CHECK_WORDS];
  uint64_t atomic_read[PTO_CHECK_WORDS];
  uint64_t atomic_written[PTO_CHECK_WORDS];
  uintptr_t number;
  struct pto_check_block *next; /* in its bucket */
  bool unusual;                 /* something is outside, wrong, early or atomic */
  bool is_listed;               /* touched since the last meeting */
};

struct pto_check_read
{
  uintptr_t address;
  uintptr_t pc;
};

struct pto_check_context
{
  PTO2Access public; /* first */
  struct pto_check *check;
  struct pto_check_context *idle; /* the next idle one */
  struct pto_check_block *buckets[PTO_CHECK_BUCKETS];
  struct pto_check_block **chunks; /* of blocks */
  uint32_t n_chunks;
  uint32_t n_blocks;               /* used */
  struct pto_check_block **listed; /* those touched since the last meeting */
  uint32_t n_listed;
  uint32_t listed_capacity;
  struct pto_check_block nobody; /* stands for memory that is the kernel's own */

  /* --- of the kernel that runs --- */
  const struct pto_check_task *task;
  uint32_t number;
  struct pto_check_call call;
  uint32_t round;
  /* The part that is filled. after and looks become the part's. */
  uint64_t begin;
  uint64_t released;           /* the address of the atomic write that ends it */
  struct pto_check_part *last; /* the part before it */
  struct pto_check_part **after;
  uint32_t n_after;
  uint32_t after_capacity;
  struct pto_check_look *looks;
  uint32_t n_looks;
  uint32_t looks_capacity;
  struct pto_check_doubt *doubts;
  uint32_t n_doubts;
  uint32_t doubts_capacity;
  uint32_t n_pending; /* of the looks */
  bool has_others;    /* accesses that are no looks */
  /* Reads of a kernel that waits: since its last call of pto_relax(), and before that call. */
  bool is_exact;
  bool writes_all;
  struct pto_check_read recent[PTO_CHECK_RECENT_READS];
  struct pto_check_read earlier[PTO_CHECK_RECENT_READS];
  uint32_t n_recent;
  uintptr_t frame; /* of its caller */

  struct pto_check_range *ranges;
  uint32_t n_ranges;
  uint32_t ranges_capacity;
};

/* check-region.c: sets the bits of a region's bytes, from dimension d and address at on, that lie
 * in the block which begins there. */
void pto_check_set_region (uint64_t bits[PTO_CHECK_WORDS], uint64_t begin,
                           const struct pto_region *region, uint32_t d, uint64_t at);

/* check-touch.c */
struct pto_check_context *pto_check_context_new (struct pto_check *check);
/* Was the kernel given the argument? Members of a group have only their own. */
bool pto_check_has_arg (const struct pto_check_call *call, const struct pto_check_arg *arg);
/* here: the frame of the function that the kernel calls. Returns &context->nobody for memory that
 * is not checked. */
struct pto_check_block *pto_check_find_block (struct pto_check_context *context, uintptr_t address,
                                              uintptr_t here);
/* what: PTO2_ACCESS_*. */
void pto_check_touch (struct pto_check_context *context, uintptr_t address, size_t size,
                      uint32_t what, uintptr_t here);
/* The kernel has returned. */
void pto_check_forget (struct pto_check_context *context);

/* check-apart.c: under the lock. Before the first of n_kernels of the task, whenever one has
 * returned, and then after the last one. */
void pto_check_begin_apart (struct pto_check *check, struct pto_check_task *task,
                            uint32_t n_kernels);
void pto_check_bring_back (const struct pto_check_task *task);
void pto_check_end_apart (struct pto_check_task *task);
/* While a kernel of the task runs: where the address, of a copy or next to one, is in the program.
 */
uint64_t pto_check_find_place (const struct pto_check_task *task, uint64_t address);

/* check-unseen.c. Before the first kernel of the task, and after the last one: under the lock. */
void pto_check_begin_unseen (struct pto_check *check, struct pto_check_task *task);
void pto_check_end_unseen (struct pto_check *check, struct pto_check_task *task);
/* While a kernel of the task runs. Returns bits of those of the 64 bytes from at on that were
 * written, though no kernel has told of it. told: bytes that the kernel has told of writing.
 * *changed: those of the bits that have changed themselves, and not only others of their piece. */
uint64_t pto_check_find_unseen (const struct pto_check *check, const struct pto_check_task *task,
                                uint64_t at, uint64_t told, uint64_t *changed);

/* check-looks.c */
void pto_check_settle_looks (struct pto_check_context *context);
void pto_check_add_look (struct pto_check_context *context, const struct pto_check_look *look);
void pto_check_look_there (struct pto_check_context *context, uintptr_t address, size_t size,
                           uint32_t what, uintptr_t pc);

/* check-part.c */
uint64_t pto_check_tick (struct pto_check *check);
void pto_check_lose (struct pto_check_context *context);
void pto_check_end_part (struct pto_check_context *context);
void pto_check_begin_part (struct pto_check_context *context);
