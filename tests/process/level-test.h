/* level-test.h: what do the tests of levels share? A level whose children run functions of the test
 * program, and a look at what a process holds.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every program has a deadline: alarm() ends it, which the harness reports as a failure. A gate in
 * shared memory is what children wait at, never a clock.
 */
#pragma once

#include "../../pto/exec/shared-wait.h"
#include "../../pto/process/level.h"
#include "../../pto/process/pool.h"

#include <glib.h>

#define WATCHDOG_S 240
#define MS UINT64_C (1000000)
#define SECOND UINT64_C (1000000000)

struct rig;

/* What a child runs: 0, or a status and then failure is filled. */
typedef uint32_t (*rig_function) (struct rig *rig, const struct pto_call *call,
                                  struct pto_failure *failure);

/* Memory that the whole family sees; zeroed when a rig is made. */
struct board
{
  struct pto_word gates[64];
  _Atomic uint32_t reached[64]; /* who has come to a gate */
  _Atomic uint64_t counters[64];
  _Atomic uint32_t order;
  uint32_t ranks[4096]; /* when a task ran, by its number */
  _Atomic int pids[PTO_CHILDREN_MAX];
  uint64_t words[65536];
};

struct rig_config
{
  uint32_t chips;   /* children of kind NEXT, level 2 */
  uint32_t workers; /* and of level 3, behind them */
  uint32_t subs;
  bool threads;
  bool restart;
  bool quiet;                    /* children's standard error is not passed on */
  const char *const *parameters; /* "heap", "65536", ..., NULL */
  const rig_function *functions; /* by number */
  /* The other requests; NULL: 0. */
  uint32_t (*serve) (struct rig *rig, uint32_t index, const struct pto_call *call,
                     struct pto_failure *failure);
  void (*closed) (void *child);
  /* Of processes; NULL: none. fork is called with the rig. */
  void (*probe) (struct rig *rig, uint32_t index);
  pid_t (*fork) (void *rig);
};

struct rig_child
{
  struct rig *rig;
  uint32_t index;
};

struct rig
{
  struct rig_config config;
  struct board *board;
  struct pto_level *level;
  PTO2Runtime *rt; /* inside of a run */
  struct rig_child children[PTO_CHILDREN_MAX];
  uint32_t n_children;
  uint8_t digests[64][PTO_DIGEST_BYTES];
  struct pto_run_stats stats;
  struct pto_failure failure;
  struct pto_report report;
  uint32_t record;                /* the next runs */
  bool (*cancelled) (void *data); /* of them */
  void *cancelled_data;
  void (*graph) (struct rig *rig, void *data);
  void *data;
  struct pto_level_targets subs;
  int result; /* what the orchestration gives */
};

/* Made, forked and started; an error is fatal. */
struct rig *rig_new (const struct rig_config *config);
/* The same, as far as it goes. NULL: it has failed, report says why. */
struct rig *rig_try (const struct rig_config *config, bool (*cancelled) (void *data), void *data,
                     struct pto_report *report);
void rig_free (struct rig *rig);

/* Runs a graph; failure, report and stats are the rig's until the next. */
enum pto_status rig_run (struct rig *rig, void (*graph) (struct rig *rig, void *data), void *data);
/* And it goes well. */
void rig_run_ok (struct rig *rig, void (*graph) (struct rig *rig, void *data), void *data);

/* Inside of a graph. function: number; kind and worker as for a task. Tensors before scalars. */
enum pto_status rig_try_submit (struct rig *rig, uint32_t function, enum pto_child_kind kind,
                                uint32_t serves, uint32_t worker, PTOParam *params,
                                uint32_t n_params);
void rig_submit (struct rig *rig, uint32_t function, enum pto_child_kind kind, uint32_t worker,
                 PTOParam *params, uint32_t n_params);
#define SUB(rig, function, worker, ...)                                                \
  rig_submit ((rig), (function), PTO_CHILD_SUB, (worker), (PTOParam[]){ __VA_ARGS__ }, \
              sizeof ((PTOParam[]){ __VA_ARGS__ }) / sizeof (PTOParam))
#define CHIP(rig, function, worker, ...)                                                \
  rig_submit ((rig), (function), PTO_CHILD_NEXT, (worker), (PTOParam[]){ __VA_ARGS__ }, \
              sizeof ((PTOParam[]){ __VA_ARGS__ }) / sizeof (PTOParam))
#define ANY PTO_WORKER_ANY

/* A group of n members of SUB children that each get the tensor (if any) and two scalars: the given
 * one, and their number. workers NULL: any. */
enum pto_status rig_try_group (struct rig *rig, uint32_t function, uint32_t n,
                               const uint32_t *workers, const PTOParam *tensor, uint64_t scalar);
void rig_group (struct rig *rig, uint32_t function, uint32_t n, const uint32_t *workers,
                const PTOParam *tensor, uint64_t scalar);

/* All of its SUB children. The rig's. */
const struct pto_level_targets *rig_subs (struct rig *rig);

/* n uint64_t of the board. */
Tensor rig_words (struct rig *rig, uint32_t first, uint64_t n);
/* n uint64_t that the engine allocates. */
Tensor rig_tensor (struct rig *rig, uint64_t n);

/* In children. */
uint64_t *call_data (const struct pto_call *call, int32_t tensor);
uint64_t call_scalar (const struct pto_call *call, int32_t scalar);
uint32_t call_fail (struct pto_failure *failure, uint32_t status, const char *text);

/* Anywhere. Waits until the gate is open; n: it is passed when so many have come and it counts
 * them.
 */
void gate_pass (struct board *board, uint32_t gate);
void gate_meet (struct board *board, uint32_t gate, uint32_t n);
void gate_open (struct board *board, uint32_t gate);
/* Waits until n have come. */
void gate_wait_reached (struct board *board, uint32_t gate, uint32_t n);
/* Until the counter is that large. */
void board_wait (struct board *board, uint32_t counter, uint64_t value);

/* What a process holds. */
struct holdings
{
  uint32_t descriptors;
  uint32_t mappings;
  uint32_t threads;
  uint32_t children;
};

struct holdings holdings_now (void);
/* They are what they were; a test program that runs threads of its own gives them time. */
void holdings_assert (const struct holdings *before);

void assert_says (const char *message, const char *text);
/* Ends the program if it hangs. */
int level_test_main (int argc, char **argv, void (*add_tests) (void));
