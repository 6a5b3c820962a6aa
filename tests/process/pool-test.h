/* pool-test.h: a pool on the det back end whose children are the test's.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../../pto/core/scheduler.h"
#include "../../pto/process/mailbox.h"
#include "../../pto/process/pool.h"

struct pool_test
{
  struct pto_exec *exec;
  struct pto_engine *engine;
  struct pto_scheduler *scheduler;
  struct pto_pool *pool;
  struct pto_hub *hub;
  struct pto_child *children; /* L3/0/sub0 and on */
  uint32_t n_children;
};

/* An engine with tasks for heap and as many slots and edges. stack_size 0: as usual. */
void pool_test_init (struct pool_test *test, uint64_t seed, size_t stack_size, uint32_t window,
                     uint32_t edges, uint32_t n_children, const struct pto_child_ops *ops,
                     void *data, bool restart);
/* hub and children of the config are filled in. Nothing runs yet. */
void pool_test_add_pool (struct pool_test *test, struct pto_pool_config *config);
void pool_test_clear (struct pool_test *test);
