/* kernel.h: what does a chip know of the kernels that it runs?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum pto_core_type
{
  PTO_CORE_TYPE_AIC = 0,
  PTO_CORE_TYPE_AIV = 1,
  PTO_N_CORE_TYPES = 2
};

/* What a kernel costs on the virtual clock. */
enum pto_cost_model
{
  PTO_COST_LINEAR, /* base + per_byte * bytes of all tensor arguments */
  PTO_COST_TABLE,  /* piecewise linear in the bytes of all tensor arguments */
  PTO_COST_MEASURE /* what it takes here (then a trace is not reproducible) */
};

/* No number of a cost is greater. */
#define PTO_COST_MOST_NS 1e15
/* Where virtual clocks end: 52 days. A double has each ns until there, and what all cores of a chip
 * (PTO_CORES_MAX) were busy for fits in 64 bits. */
#define PTO_VIRTUAL_CLOCK_END (UINT64_C (1) << 52)

struct pto_cost_point
{
  uint64_t bytes;
  double ns;
};

struct pto_cost
{
  enum pto_cost_model model;
  uint32_t n_points;
  double base_ns;
  double ns_per_byte;
  /* PTO_COST_TABLE: ascending bytes; memory of the owner of the kernel */
  const struct pto_cost_point *points;
};

/* What it says of so many bytes, of a model that does not measure. */
double pto_cost_get_ns (const struct pto_cost *cost, uint64_t bytes);

struct pto_kernel
{
  const char *name; /* NULL: no kernel has this function id */
  void (*entry) (int64_t *args);
  enum pto_core_type core_type;
  struct pto_cost cost;
  uint32_t n_args_plus_1; /* 0: it takes any number of arguments */
  /* A kernel that combines takes a tensor to read and write, and one to read. This one takes other
   * arguments. */
  bool never_combines;
  bool instrumented; /* it says what it touches (pto_access.h) */
  bool hides_stores; /* but may write without saying so */
  bool talks; /* it may see what others write to memory while it runs, or tell them something */
  void (*apart) (int64_t *args); /* what entry calls on the core's own thread; NULL: nothing */
};

/* Its object keeps something for each thread: each core calls the kernel on a thread of its own.
 * Before the first run with it. */
void pto_kernel_set_apart (struct pto_kernel *kernel);

/* Kernels by function id. Must live for the run. */
struct pto_program
{
  const struct pto_kernel *kernels;
  uint32_t n_kernels;
};
