/* map-test.h: what do the tests of the TensorMap share? One map, one space and a matrix in it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../../pto/core/tensor-map.h"

#include "../short.h"
#include "oracle.h"

#include <glib.h>

#define BASE UINT64_C (0x10000)
#define ALL (PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_WAR)
#define SEEDS (PTO_HAZARD_RAW | PTO_HAZARD_WAW)

/* Tasks are numbered in the order of their submits. */
typedef struct
{
  uint32_t tails[PTO_RINGS];
  struct pto_map *map;
  struct pto_space space;
  struct pto_deps deps;
  Tensor matrix; /* 16 x 16 float32 */
} MapFixture;

void map_set_up_pool (MapFixture *fixture, uint32_t pool, uint32_t hazards);
/* data: hazards, NULL for all. */
void map_set_up (MapFixture *fixture, gconstpointer data);
void map_tear_down (MapFixture *fixture, gconstpointer data);
/* path: "file/behaviour". */
void map_add (const char *path, void (*test) (MapFixture *fixture, gconstpointer data));

Tensor map_matrix_at (uint64_t addr, uint64_t rows, uint64_t columns);
Tensor map_part (const Tensor *tensor, uint64_t row, uint64_t column, uint64_t rows,
                 uint64_t columns);

/* One access by itself. */
bool map_lookup (struct pto_map *map, struct pto_space *space, const Tensor *tensor,
                 PTOParamType type, struct pto_deps *deps);
void map_insert (struct pto_map *map, struct pto_space *space, const Tensor *tensor,
                 PTOParamType type, pto_task_id task);

/* The same in the fixture's space; what is found is in its deps. */
void map_look (MapFixture *fixture, const Tensor *tensor, PTOParamType type);
void map_put (MapFixture *fixture, const Tensor *tensor, PTOParamType type, pto_task_id task);

#define map_assert_none(fixture) g_assert_cmpuint ((fixture)->deps.count, ==, 0)
#define map_assert_one(fixture, task_, kinds_)                      \
  G_STMT_START                                                      \
  {                                                                 \
    g_assert_cmpuint ((fixture)->deps.count, ==, 1);                \
    g_assert_cmphex ((fixture)->deps.items[0].task, ==, (task_));   \
    g_assert_cmphex ((fixture)->deps.items[0].kinds, ==, (kinds_)); \
  }                                                                 \
  G_STMT_END
