# whatif_cases.py: which graphs does a record of a chip have to be played again for?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An example whose cases are graphs of tasks of several parts, each kind by itself and all of them together. Kernels
compute nothing: they take their time, and wait for each other through pipes, at barriers and in turns."""
import os

CASES = ("blocks", "mixed", "at_once", "groups", "clusters", "turns", "off", "ranks", "all")

INI = """\
[example]
name=parts
default-case=all

[orchestration]
source=orch.c

[kernel 0]
name=cube
source=plain.c
core=aic
cost=constant:7000

[kernel 1]
name=vector
source=plain.c
core=aiv
cost=constant:3100

[kernel 2]
name=push
source=push.c
core=aic
cost=constant:5300

[kernel 3]
name=pop
source=pop.c
core=aiv
cost=constant:2700

[kernel 4]
name=meet
source=meet.c
core=aiv
cost=constant:4100

[kernel 5]
name=send
source=send.c
core=aic
cost=constant:6100

[kernel 6]
name=receive
source=receive.c
core=aiv
cost=constant:3700

[reference]
source=reference.c
"""
KERNEL = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  int64_t word = 7;
  (void) args;
  (void) word;
  %s
}
"""
KERNELS = {
    "plain.c": "",
    # To each vector core of the block, and what each answers.
    "push.c": "for (uint32_t i = 0; i < 2; i++) TPUSH (args, i, &word, 8); "
              "for (uint32_t i = 0; i < 2; i++) TPOP (args, 2 + i, &word, 8);",
    "pop.c": "TPOP (args, get_sub_block_id (args), &word, 8); TPUSH (args, 2 + get_sub_block_id (args), &word, 8);",
    "meet.c": "pto_sync_all (args);",
    "send.c": "TPUSH (args, 0, &word, 8);",
    "receive.c": "TPOP (args, 0, &word, 8);",
}
REFERENCE = """\
#include "pto_reference.h"
enum { ROWS = 16, COLUMNS = 8 };
int pto_reference_inputs (PTO2Case *c)
{
  uint64_t shape[2] = { ROWS, COLUMNS };
  uint64_t n = 64;
  void *rows = c->ops->array (c, "rows", (DataType) PTO_DTYPE_FLOAT32, 2, shape, true);
  int32_t *flags = (int32_t *) c->ops->array (c, "flags", (DataType) PTO_DTYPE_INT32, 1, &n, false);
  if (rows == NULL || flags == NULL)
    return pto_case_fail (c, "no arrays");
  for (uint64_t i = 0; i < n; i++)
    flags[i] = i % 3 != 0;
  c->ops->scalar (c, "kinds", (uint64_t) c->ops->integer (c, "kinds", 255));
  return 0;
}
int pto_reference_compute (PTO2Case *c)
{
  return c->ops->expected (c, "rows") == NULL;
}
"""
ORCHESTRATION = """\
#include "pto_orchestration_api.h"
enum { CUBE, VECTOR, PUSH, POP, MEET, SEND, RECEIVE };
enum { BLOCKS = 1, MIXED = 2, AT_ONCE = 4, GROUPS = 8, CLUSTERS = 16, TURNS = 32, OFF = 64, RANKS = 128 };
enum { ROUNDS = 24, ROWS = 16, COLUMNS = 8 };
static const int32_t three[3] = { PUSH, POP, POP };
static const int32_t meet[3] = { PTO2_KERNEL_NONE, MEET, MEET };
static const int32_t two[3] = { CUBE, VECTOR, PTO2_KERNEL_NONE };
static const int32_t vectors[3] = { PTO2_KERNEL_NONE, VECTOR, VECTOR };
static const int32_t both[2] = { CUBE, VECTOR };
static const int32_t pair[2] = { VECTOR, VECTOR };
static const int32_t cores[2] = { 3, 6 };

static Tensor
row (const Tensor *rows, uint64_t i)
{
  uint64_t shape[2] = { 1, COLUMNS };
  uint64_t at[2] = { i % ROWS, 0 };
  return pto2_tensor_view (rows, shape, at);
}

static void
plain (PTO2Runtime *rt, const Tensor *rows, uint64_t i)
{
  PTOParam params[] = { make_inout_param (row (rows, i)) };
  pto2_rt_submit_task (rt, i % 2 == 0 ? CUBE : VECTOR, i % 2 == 0 ? PTO2_WORKER_CUBE : PTO2_WORKER_VECTOR, params, 1);
}

static void
several (PTO2Runtime *rt, const Tensor *rows, uint64_t i, int32_t kernel, const int32_t *mixed, int32_t n, bool at_once,
         int32_t cluster, int32_t priority)
{
  PTOParam params[] = { make_inout_param (row (rows, i)) };
  PTO2Submit submit = pto2_make_submit (mixed != NULL ? PTO2_KERNEL_NONE : kernel,
                                        kernel == CUBE || kernel == SEND ? PTO2_WORKER_CUBE : PTO2_WORKER_VECTOR,
                                        params, 1);
  submit.mixed = mixed;
  submit.block_dim = n;
  submit.sync_start = at_once;
  submit.in_cluster = cluster >= 0;
  submit.cluster_id = cluster >= 0 ? cluster : 0;
  submit.priority = priority;
  pto2_rt_submit (rt, &submit);
}

static void
grouped (PTO2Runtime *rt, const Tensor *rows, uint64_t i)
{
  PTOParam params[] = { make_inout_param (row (rows, i)) };
  PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, params, 1);
  submit.group = i % 3 == 0 ? pair : both;
  submit.n_group = 2;
  submit.group_cores = i % 3 == 0 ? cores : NULL;
  pto2_rt_submit (rt, &submit);
}

static void
in_cluster (PTO2Runtime *rt, const Tensor *rows, uint64_t i)
{
  PTO2_SCOPE (rt)
  {
    int32_t cluster = pto2_rt_allocate_cluster (rt);
    several (rt, rows, i, RECEIVE, NULL, 1, false, cluster, 0);
    several (rt, rows, i + 5, VECTOR, NULL, 1, false, cluster, 0);
    several (rt, rows, i + 1, SEND, NULL, 1, false, cluster, 0);
    several (rt, rows, i + 2, 0, two, 2, false, cluster, 0);
    if (i % 2 == 0)
      pto2_rt_free_cluster (rt, cluster);
  }
}

static void
in_turn (PTO2Runtime *rt, const Tensor *rows, uint64_t i)
{
  PTOParam params[] = { make_commutative_param (row (rows, i % 3)), make_commutative_param (row (rows, 4 + i % 2)) };
  pto2_rt_submit_task (rt, i % 4 == 0 ? CUBE : VECTOR, i % 4 == 0 ? PTO2_WORKER_CUBE : PTO2_WORKER_VECTOR, params,
                       1 + i % 2);
}

static void
perhaps (PTO2Runtime *rt, const Tensor *rows, const Tensor *flags, uint64_t i)
{
  PTOParam params[] = { make_inout_param (row (rows, i)) };
  PTO2Submit submit = pto2_make_submit (VECTOR, PTO2_WORKER_VECTOR, params, 1);
  submit.condition = flags;
  submit.condition_index = &i;
  submit.block_dim = i % 5 == 0 ? 3 : 1;
  pto2_rt_submit (rt, &submit);
}

PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  (void) args;
  (void) arg_count;
  return (PTO2OrchestrationConfig){ .expected_arg_count = 3 };
}

int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor rows = pto2_rt_arg_tensor (rt, 0);
  Tensor flags = pto2_rt_arg_tensor (rt, 1);
  uint64_t kinds = args[2];
  (void) arg_count;
  for (uint64_t i = 0; i < ROUNDS; i++)
    {
      plain (rt, &rows, 3 * i);
      if ((kinds & BLOCKS) != 0)
        several (rt, &rows, i, i % 3 == 0 ? CUBE : VECTOR, NULL, 3 + (int32_t) (i % 9), false, -1, 0);
      if ((kinds & MIXED) != 0)
        several (rt, &rows, i, 0, i % 3 == 0 ? three : i % 3 == 1 ? two : vectors, 1 + (int32_t) (i % 5), false, -1, 0);
      if ((kinds & AT_ONCE) != 0)
        several (rt, &rows, i, MEET, i % 4 == 3 ? meet : NULL, 2 + (int32_t) (i % 3), true, -1, 0);
      if ((kinds & GROUPS) != 0)
        grouped (rt, &rows, i);
      if ((kinds & CLUSTERS) != 0)
        in_cluster (rt, &rows, i);
      if ((kinds & TURNS) != 0)
        in_turn (rt, &rows, i);
      if ((kinds & OFF) != 0)
        perhaps (rt, &rows, &flags, i);
      if ((kinds & RANKS) != 0)
        several (rt, &rows, 5 * i, i % 2 == 0 ? VECTOR : CUBE, i % 4 == 1 ? two : NULL, 1 + (int32_t) (i % 4), false, -1,
                 (int32_t) (i % 4));
      plain (rt, &rows, 7 * i + 1);
    }
  return 0;
}
"""

THREE = """\
static const int32_t three[3] = { PUSH, POP, POP };
static const int32_t meet[3] = { PTO2_KERNEL_NONE, MEET, MEET };
"""
RANDOM = """\
static uint64_t state;

static uint64_t
draw (uint64_t n)
{
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (state >> 33) % n;
}

static void
one_of (PTO2Runtime *rt, const Tensor *rows, const Tensor *flags, uint64_t kinds)
{
  uint64_t r = draw (1000);
  uint64_t kind = draw (8);

  if ((kinds >> kind & 1) == 0)
    return;
  switch (kind)
    {
    case 0:
      several (rt, rows, r, r % 3 == 0 ? CUBE : VECTOR, NULL, 2 + (int32_t) draw (12), false, -1, 0);
      break;
    case 1:
      several (rt, rows, r, 0, r % 2 == 0 ? two : vectors, 1 + (int32_t) draw (5), false, -1, 0);
      break;
    case 2:
      several (rt, rows, r, VECTOR, NULL, 2 + (int32_t) draw (4), true, -1, 0);
      break;
    case 3:
      PTO2_SCOPE (rt)
      {
        for (uint64_t k = draw (5); k > 0; k--)
          plain (rt, rows, draw (1000));
      }
      break;
    case 4:
      in_turn (rt, rows, r);
      break;
    case 5:
      perhaps (rt, rows, flags, r % 64);
      break;
    case 6:
      several (rt, rows, r, r % 2 == 0 ? VECTOR : CUBE, r % 4 == 1 ? two : NULL, 1 + (int32_t) draw (4), false, -1,
               (int32_t) draw (4));
      break;
    case 7:
      grouped (rt, rows, 3 * r + 1);
      break;
    default:
      break;
    }
}

int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor rows = pto2_rt_arg_tensor (rt, 0);
  Tensor flags = pto2_rt_arg_tensor (rt, 1);
  uint64_t n, kinds;
  (void) arg_count;
  state = args[2] * 77777 + 12345;
  n = 5 + draw (60);
  kinds = draw (256);
  for (uint64_t i = 0; i < n; i++)
    {
      one_of (rt, &rows, &flags, kinds);
      plain (rt, &rows, draw (1000));
    }
  return 0;
}
"""


def write_files(directory, name, orchestration, cases):
    path = os.path.join(directory, name)
    os.makedirs(path, exist_ok=True)
    files = {file: KERNEL % body for file, body in KERNELS.items()}
    files.update({"pto.ini": INI + cases, "orch.c": orchestration, "reference.c": REFERENCE})
    for file, text in files.items():
        with open(os.path.join(path, file), "w", encoding="utf-8") as stream:
            stream.write(text)
    return path


def write(directory):
    """Gives the path of the example."""
    return write_files(directory, "parts", ORCHESTRATION,
                       "".join(f"\n[case {name}]\nclusters=6\naicpu-threads=3\n"
                               f"kinds={1 << i if name != 'all' else 255}\n" for i, name in enumerate(CASES)))


def write_random(directory, seed, clusters, threads):
    """Gives the path of an example whose tasks follow from a number. No kernel waits for another one."""
    kinds = ORCHESTRATION[:ORCHESTRATION.index("static void\nin_cluster")] + ORCHESTRATION[
        ORCHESTRATION.index("static void\nin_turn"):ORCHESTRATION.index("int\naicpu_orchestration_entry")]
    return write_files(directory, "random", kinds.replace(THREE, "") + RANDOM,
                       f"\n[case all]\nclusters={clusters}\naicpu-threads={threads}\nkinds={seed}\n")
