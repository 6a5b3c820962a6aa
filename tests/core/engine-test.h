/* engine-test.h: what do the tests of the engine share? A machine: an engine, schedulers and small
 * endpoints.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Kernels are functions of the test program. The thread that runs the tests is the guest and the
 * submitter; GLib is called by it alone. Every program has a deadline: alarm() ends it, which the
 * harness reports as a failure.
 */
#pragma once

#include "../../pto/core/completion.h"
#include "../../pto/core/ready.h"
#include "../../pto/core/run.h"
#include "../../pto/core/scheduler.h"
#include "../short.h"

#include <glib.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MACHINE_SANITIZED 1
#define SCALE(n) ((n) / 20)
#define WATCHDOG_S 1200
#else
#define SCALE(n) SCALE_SHORT (n)
#define WATCHDOG_S 600
#endif

#define MACHINE_SCHEDULERS_MAX 4u
#define MACHINE_ENDPOINTS_MAX 32u

/* Of a test that machine_add() has added. */
#define BACKEND(data) ((enum pto_backend) GPOINTER_TO_INT (data))

struct machine;

/* Runs a task: args as a kernel gets them. Sets *failed when the task is to count as failed. */
typedef void (*machine_kernel) (struct machine *machine, const struct pto_slot *slot, int64_t *args,
                                bool *failed);

/* The kernels that every machine has; the last argument of each is a scalar. */
enum
{
  KERNEL_NOTHING, /* has no scalar */
  KERNEL_COUNT,   /* adds 1 to an _Atomic uint32_t */
  KERNEL_GATE,    /* waits until a struct gate opens */
  KERNEL_FAIL,    /* adds 1 to an _Atomic uint32_t and fails, the run goes on */
  KERNEL_FATAL,   /* adds 1 to an _Atomic uint32_t and ends the run */
  KERNEL_FILL,    /* writes a byte all over its first tensor */
  KERNEL_CHECK,   /* tells a struct expectation what it finds in its first tensor */
  KERNEL_OWN      /* the first of the test's own */
};

/* One task waits at it. */
struct gate
{
  struct pto_word open;
  _Atomic uint32_t reached;
};

struct expectation
{
  uint8_t byte; /* all over the tensor */
  _Atomic uint32_t right;
  _Atomic uint32_t wrong;
};

struct machine_config
{
  enum pto_backend backend;
  uint64_t seed;
  uint32_t carriers;   /* par; 0: as many as there is use for */
  uint32_t schedulers; /* 0: 1 */
  uint32_t endpoints;  /* of each scheduler and queue; 0: 2 */
  uint32_t queues;     /* 0: 1 */
  uint32_t cohorts;    /* of each scheduler: its endpoints in turn; 0: there are none */
  uint32_t shards;     /* of each ready queue; 0: 2 */
  bool immediate;      /* endpoints run kernels within dispatch; otherwise each is an actor */
  bool attends;        /* schedulers wait for immediate endpoints as for those of par */
  bool far;            /* schedulers take endpoints for far away, where they do not attend */
  uint32_t window;     /* 0: 64 */
  uint64_t heap;       /* 0: 1 MiB */
  uint32_t edge_pool;  /* 0: 1024 */
  uint32_t map_pool;   /* 0: 1024 */
  uint32_t hazards;    /* 0: all */
  uint32_t guard_bytes;
  bool build_first;          /* tasks that are added run when their scope ends */
  uint64_t timeout_ns;       /* 0: a minute */
  uint64_t ring_patience_ns; /* 0: eight times the time-out */
  uint32_t submit_cost;
  uint32_t fanout_cost;
  const machine_kernel *kernels; /* KERNEL_OWN ... */
  /* As the engine's; NULL: nothing can be reduced. */
  bool (*reduction) (void *data, const PTOParam *param, struct pto_reduction *reduction, char *why,
                     size_t size);
  uint32_t (*choose) (void *data, uint32_t n);
  void *choose_data;
};

struct machine_endpoint
{
  struct pto_endpoint endpoint; /* first */
  struct machine *machine;
  struct pto_slot *slot;
  bool failed;
  bool gone;        /* for good: whatever comes fails */
  uint32_t refused; /* tasks that waited for it then */
  struct pto_word order;
  _Atomic uint32_t done;
};

struct machine
{
  struct machine_config config;
  struct pto_exec *exec;
  struct pto_engine *engine;
  struct pto_scheduler *schedulers[MACHINE_SCHEDULERS_MAX];
  struct machine_endpoint *endpoints[MACHINE_SCHEDULERS_MAX][MACHINE_ENDPOINTS_MAX];
  struct pto_endpoint *pointers[MACHINE_SCHEDULERS_MAX][MACHINE_ENDPOINTS_MAX];
  uint32_t n_endpoints; /* of each scheduler */
  struct pto_trace *trace;
  bool inside;
};

/* Where the kernel runs that asks: first of all, before it waits for anything. */
const struct pto_endpoint *machine_here (void);

extern const char *const machine_backend_names[3];

struct machine *machine_new (const struct machine_config *config);
/* Two schedulers with four endpoints each, for a test of machine_add(). */
struct machine *machine_new_for (gconstpointer backend);
void machine_free (struct machine *machine);

/* A run. */
void machine_begin (struct machine *machine);
/* Ends it and gives its error; the text is valid until the next run. */
enum pto_status machine_end (struct machine *machine, const char **message);
/* Ends it, asserts that all went well and that nothing is held any more. */
void machine_end_ok (struct machine *machine);
/* Ends it, asserts that it has failed so, in words of which these are some. */
void machine_expect_error (struct machine *machine, enum pto_status expected, const char *text);
/* Waits until n tasks are done. */
void machine_wait_completed (struct machine *machine, uint64_t n);
/* par: from here on each task is run as it is submitted, however long tasks take. Submits some. */
void machine_go_direct (struct machine *machine);

/* Records what the submitter does from the next run on. */
void machine_record (struct machine *machine);
/* The kinds of the edge between two tasks of the last run; 0: none. */
uint32_t machine_edge (const struct machine *machine, pto_task_id consumer, pto_task_id producer);
uint32_t machine_n_edges (const struct machine *machine);

void gate_init (struct gate *gate);
void gate_open (struct machine *machine, struct gate *gate);
/* Waits until the task stands at it; an error when it does not come. */
void gate_wait_reached (struct machine *machine, struct gate *gate);

/* n bytes that the engine allocates at the submit that outputs them. */
Tensor machine_tensor (struct machine *machine, uint64_t n);
/* n bytes of the caller. */
Tensor machine_external (void *memory, uint64_t n);
/* The bytes begin ... begin + n - 1 of a tensor of one dimension. */
Tensor machine_part (const Tensor *tensor, uint64_t begin, uint64_t n);
/* Where the engine put it. */
void *machine_address (const Tensor *tensor);

static inline PTOParam
scalar (const void *pointer)
{
  return make_scalar_param ((uint64_t) (uintptr_t) pointer);
}

static inline PTOParam
byte (uint8_t value)
{
  return make_scalar_param (value);
}

static inline PTOParam
input (const Tensor *tensor)
{
  return pto2_make_param (PTO_PARAM_INPUT, tensor);
}

static inline PTOParam
output (const Tensor *tensor)
{
  return pto2_make_param (PTO_PARAM_OUTPUT, tensor);
}

static inline PTOParam
inout (const Tensor *tensor)
{
  return pto2_make_param (PTO_PARAM_INOUT, tensor);
}

static inline PTOParam
existing (const Tensor *tensor)
{
  return pto2_make_param (PTO_PARAM_OUTPUT_EXISTING, tensor);
}

static inline PTOParam
no_dep (const Tensor *tensor)
{
  return pto2_make_param (PTO_PARAM_NO_DEP, tensor);
}

/* Gives what pto_engine_submit() does. */
pto_task_id machine_submit (struct machine *machine, uint32_t kernel, uint32_t queue,
                            PTOParam *params, uint32_t n_params);
/* Counts on ran, once these tasks are done. */
pto_task_id machine_submit_after (struct machine *machine, const pto_task_id *producers,
                                  uint32_t n_producers, _Atomic uint32_t *ran);
#define SUBMIT(machine, kernel, ...) SUBMIT_TO (machine, kernel, 0, __VA_ARGS__)
#define SUBMIT_TO(machine, kernel, queue, ...)                               \
  machine_submit ((machine), (kernel), (queue), (PTOParam[]){ __VA_ARGS__ }, \
                  sizeof ((PTOParam[]){ __VA_ARGS__ }) / sizeof (PTOParam))

/* The number behind "set <knob> to " in a message, in any case of its letters; 0: it names none. */
uint64_t machine_advice (const char *message, const char *knob);
/* Sets the knob to it, and gives it. */
uint64_t machine_follow (struct machine_config *config, const char *message, const char *knob);
void machine_assert_names (const char *message, const char *text);

/* Adds the test once for each back end: /pto/<file>/<back end>/<behaviour>. */
void machine_add (const char *file, const char *behaviour, void (*test) (gconstpointer backend));

/* A generator of its own, so that a seed gives the same test everywhere. */
uint64_t machine_random (uint64_t *state);
uint32_t machine_below (uint64_t *state, uint32_t n);

int machine_main (int argc, char **argv, void (*add_tests) (void));
