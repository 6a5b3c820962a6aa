/* attention.h: what do the kernels of one block agree on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block has QUERIES queries, one half for each vector core. Scores go from the cube core to the
 * vector cores, a row of one query an entry; weights come back.
 */
#pragma once

#include "tensor.h"

#define QUERIES 32u
#define HALF (QUERIES / 2)
#define KEYS_MAX 1024u

/* Pipes, each of the two vector cores with one of its own. */
enum
{
  PIPE_SCORES = 0,
  PIPE_WEIGHTS = 2
};

/* The arguments of both kernels. */
enum
{
  ARG_QUERIES, /* [blocks * QUERIES, width] */
  ARG_KEYS,    /* [keys, width] */
  ARG_VALUES,  /* [keys, width] */
  ARG_OUT      /* as the queries */
};

static inline const TensorData *
tensor_of (const int64_t *args, int index)
{
  return (const TensorData *) (uintptr_t) args[index];
}

static inline float *
floats_of (const int64_t *args, int index)
{
  const TensorData *tensor = tensor_of (args, index);

  return (float *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}
