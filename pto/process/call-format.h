/* call-format.h: how do a call's choices, its arguments and its result lie in memory that processes
 * share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Plain bytes, little thought: no tags, no versions, no pointers but tensors' addresses. Form 3 of
 * seed 001 section 3; CallConfig of its section 4. Thread safety: any thread, values only.
 */
#pragma once

#include "api/tensor.h"

#include <stdarg.h>
#include <stddef.h>

#define PTO_DIGEST_BYTES 32u

/* What a worker that does not see the memory would have to copy. Neither: it is passed on, and what
 * is done with it is not said. */
enum pto_wire_access
{
  PTO_WIRE_READ = 1,  /* in, before the call */
  PTO_WIRE_WRITE = 2, /* out, after it */
  /* Neither: all of it is where the call is, and nowhere else. */
  PTO_WIRE_STAYS = 4,
  /* And that, too: it lies in memory that the parent has asked that worker for. */
  PTO_WIRE_OWNED = 8,
  /* Of one that does not stay, on its way: what is read is there, and not here; and what is
   * written is left there until it is asked for. */
  PTO_WIRE_KEPT = 16,
  PTO_WIRE_LEFT = 32
};

/* Only what it does with it. */
static inline uint32_t
pto_wire_direction (uint32_t access)
{
  return access & (PTO_WIRE_READ | PTO_WIRE_WRITE);
}

/* Is it wanted where the call came from? */
static inline bool
pto_wire_comes_back (uint32_t access)
{
  return (access & (PTO_WIRE_WRITE | PTO_WIRE_STAYS | PTO_WIRE_LEFT)) == PTO_WIRE_WRITE;
}

/* A tensor on its way to another worker: contiguous, all of it in memory that both map. */
struct pto_continuous_tensor
{
  uint64_t data; /* address of the first element */
  uint32_t shapes[PTO2_TENSOR_MAX_DIMS];
  uint32_t ndims;
  uint32_t dtype;  /* DataType */
  uint32_t access; /* bits of enum pto_wire_access; a blob outside of a request: 0 */
};
_Static_assert(sizeof (struct pto_continuous_tensor) == 40, "seed 001: 40 bytes each");

/* The blob: [int32 T][int32 S][tensor x T][uint64 x S]. */
struct pto_blob
{
  _Alignas(8) int32_t tensor_count; /* what follows is aligned as well */
  int32_t scalar_count;
};
_Static_assert(sizeof (struct pto_blob) == 8, "seed 001: tensors begin at 8");

static inline uint64_t
pto_blob_size (int32_t tensor_count, int32_t scalar_count)
{
  return sizeof (struct pto_blob) + (uint64_t) tensor_count * sizeof (struct pto_continuous_tensor)
         + (uint64_t) scalar_count * sizeof (uint64_t);
}

/* Writes the head of a blob and says where its tensors and scalars are to be written. */
static inline void
pto_blob_begin (void *blob, int32_t tensor_count, int32_t scalar_count,
                struct pto_continuous_tensor **tensors, uint64_t **scalars)
{
  struct pto_blob *head = (struct pto_blob *) blob;

  head->tensor_count = tensor_count;
  head->scalar_count = scalar_count;
  *tensors = (struct pto_continuous_tensor *) (head + 1);
  *scalars = (uint64_t *) (*tensors + tensor_count);
}

/* TaskArgsView: 24 bytes, by value. Points into the mailbox; good until the call returns. */
struct pto_args_view
{
  int32_t tensor_count;
  int32_t scalar_count;
  const struct pto_continuous_tensor *tensors;
  const uint64_t *scalars;
};
_Static_assert(sizeof (struct pto_args_view) == 24, "seed 001");

/* false: counts are negative or do not fit in bytes. The only check there is on the way; the child
 * makes it before it reads on. */
static inline bool
pto_args_view_init (struct pto_args_view *view, const void *blob, uint64_t bytes)
{
  const struct pto_blob *head = (const struct pto_blob *) blob;

  if (bytes < sizeof *head || head->tensor_count < 0 || head->scalar_count < 0
      || pto_blob_size (head->tensor_count, head->scalar_count) > bytes)
    return false;
  view->tensor_count = head->tensor_count;
  view->scalar_count = head->scalar_count;
  view->tensors = (const struct pto_continuous_tensor *) (head + 1);
  view->scalars = (const uint64_t *) (view->tensors + head->tensor_count);
  return true;
}

/* CallConfig, the same at every level. Copied by value; of output_prefix only the text. */
struct pto_call_config
{
  int32_t block_dim; /* 0: all */
  int32_t aicpu_thread_num;
  int32_t enable_l2_swimlane; /* 0 to 4 */
  int32_t enable_dump_tensor;
  int32_t enable_pmu;
  int32_t enable_dep_gen;
  int32_t enable_scope_stats; /* and a bit that the seed has no place for: are accesses checked? */
  char output_prefix[1024];
};
_Static_assert(sizeof (struct pto_call_config) == 1052, "seed 001 section 4");

/* Copies a configuration, of output_prefix only what is written there (cut to fit, ends in 0
 * twice); gives the bytes that were copied. to has room for a whole one, or for as many bytes as
 * pto_wire_config_bytes() says. */
uint32_t pto_wire_config_copy (struct pto_call_config *to, const struct pto_call_config *from);
uint32_t pto_wire_config_bytes (const struct pto_call_config *config);
/* What enable_scope_stats, from 0 to 255, is but for that bit; and the bit. */
int32_t pto_wire_config_scope_stats (const struct pto_call_config *config);
bool pto_wire_config_check (const struct pto_call_config *config);
void pto_wire_config_set_check (struct pto_call_config *config, bool checks);
/* Text of its own behind that of output_prefix, which ends there: which tensors are dumped. ""
 * where there is no room for any, or none was set. */
const char *pto_wire_config_filter (const struct pto_call_config *config);
/* Of a configuration that is all 0 behind output_prefix's text; cut to fit. */
void pto_wire_config_set_filter (struct pto_call_config *config, const char *filter);

/* What became of a request, as the child says it. */
#define PTO_FAILURE_TEXT 3072u
#define PTO_FAILURE_DETAIL 2944u
struct pto_failure
{
  int32_t code;                /* of the domain; PTO_ERROR's are those of the object layer */
  uint32_t bytes;              /* of text, without the 0 behind it */
  char domain[60];             /* name of the GError's domain; "" for enum pto_status */
  char text[PTO_FAILURE_TEXT]; /* UTF-8, cut at a character; ends in 0 */
  /* What the domain has to say beyond the text, in a form of its own; nothing here looks at it. */
  uint32_t detail_bytes;
  _Alignas(8) uint8_t detail[PTO_FAILURE_DETAIL];
};

/* Fills a failure; domain NULL: "". A text that is too long is cut; there is no detail. */
void pto_failure_set (struct pto_failure *failure, int32_t code, const char *domain,
                      const char *format, ...) __attribute__ ((format (printf, 4, 5)));
/* The detail of another failure, or none. */
void pto_failure_copy_detail (struct pto_failure *to, const struct pto_failure *from);
/* Out of memory that another process may have filled with anything: to is sound, from need not be.
 */
void pto_failure_copy (struct pto_failure *to, const struct pto_failure *from);

/* Copies bytes that somebody else wrote as text: UTF-8 of printable characters, lines and tabs; a
 * question mark for everything else; cut at a character; ends in 0. size >= 1. Gives the length. */
uint32_t pto_text_copy (char *to, size_t size, const char *from, size_t bytes);
