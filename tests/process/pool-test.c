/* pool-test.c: a pool on the det back end whose children are the test's.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-test.h"

#include "../../pto/core/run.h"

#include <glib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
kernel_name (void *data, uint32_t kernel)
{
  return "task";
}

static void *
lines (size_t size)
{
  void *memory = NULL;

  g_assert_cmpint (posix_memalign (&memory, 64, (size + 63) / 64 * 64), ==, 0);
  memset (memory, 0, size);
  return memory;
}

void
pool_test_init (struct pool_test *test, uint64_t seed, size_t stack_size, uint32_t window,
                uint32_t edges, uint32_t n_children, const struct pto_child_ops *ops, void *data,
                bool restart)
{
  static const char *const queue_names[] = { "workers", "nobody" };
  struct pto_exec_config exec_config
      = { .backend = PTO_BACKEND_DET, .domains = 1, .seed = seed, .stack_size = stack_size };
  const struct pto_ring_config ring = { window, edges, 65536 };
  struct pto_engine_config engine_config = { .rings = { ring, ring, ring, ring },
                                             .map_pool = edges,
                                             .hazards = PTO_HAZARD_RAW,
                                             .n_queues = 2,
                                             .n_shards = 1,
                                             .n_schedulers = 1,
                                             .timeout_ns = 1000000000,
                                             .ring_patience_ns = PTO_NEVER,
                                             .end_patience_ns = PTO_NEVER,
                                             .queue_names = queue_names,
                                             .kernel_name = kernel_name };
  struct pto_report report = { 0 };
  char error[256] = "";

  test->n_children = n_children;
  test->exec = pto_exec_new (&exec_config, error, sizeof error);
  g_assert_cmpstr (error, ==, "");
  test->engine = lines (sizeof *test->engine);
  pto_engine_init (test->engine, test->exec, &engine_config, &report);
  g_assert_cmpstr (report.message, ==, "");
  test->hub = lines (sizeof *test->hub);
  pto_bell_init (&test->hub->bell, -1);
  test->children = lines (n_children * sizeof *test->children);
  for (uint32_t c = 0; c < n_children; c++)
    {
      struct pto_child *child = &test->children[c];

      pto_mailbox_link (&child->link, lines (sizeof (struct pto_mailbox)));
      child->index = child->number = c;
      child->kind = PTO_CHILD_SUB;
      child->ops = ops;
      child->data = data;
      child->restart = restart;
      pto_child_init (child);
      snprintf (child->path, sizeof child->path, "L3/0/sub%u", c);
    }
}

void
pool_test_add_pool (struct pool_test *test, struct pto_pool_config *config)
{
  struct pto_scheduler_config scheduler = { .index = 0, .sorted = true };

  config->path = "L3/0";
  config->hub = test->hub;
  config->children = test->children;
  config->n_children = test->n_children;
  g_assert_cmpuint (pto_pool_n_queues (test->children, test->n_children), ==,
                    test->engine->config.n_queues);
  test->pool = pto_pool_new (test->engine, test->exec, config);
  g_assert_nonnull (test->pool);
  scheduler.endpoints = pto_pool_endpoints (test->pool, &scheduler.n_endpoints);
  test->scheduler = lines (sizeof *test->scheduler);
  g_assert_true (pto_scheduler_init (test->scheduler, test->engine, &scheduler));
}

void
pool_test_clear (struct pool_test *test)
{
  pto_exec_free (test->exec);
  pto_engine_destroy (test->engine);
  pto_scheduler_destroy (test->scheduler);
  pto_pool_free (test->pool);
  for (uint32_t c = 0; c < test->n_children; c++)
    free (test->children[c].link.mailbox);
  free (test->children);
  free (test->hub);
  free (test->engine);
  free (test->scheduler);
}
