/* sim-test.h: what do the tests of the simulated chip share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every test has a deadline: alarm() ends the program, which the harness reports as a failure.
 * Kernels run on the chip's threads and call nothing of GLib: they write what they saw to memory,
 * the test looks at it after the run.
 */
#pragma once

#include "../../pto/exec/pto-exec.h"
#include "../../sim/chip.h"
#include "../../sim/device-memory.h"
#include "../short.h"

#include <glib.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define SIM_SANITIZED 1
#define SIM_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define SIM_SANITIZED 1
#elif defined(__clang__) && defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIM_SANITIZED 1
#define SIM_TSAN 1
#elif __has_feature(address_sanitizer)
#define SIM_SANITIZED 1
#endif
#endif

/* Repetitions, fewer where every access is checked. */
#ifdef SIM_SANITIZED
#define SCALE(n) ((n) / 20)
#else
#define SCALE(n) SCALE_SHORT (n)
#endif

/* For functions that crash or loop on purpose. */
#define NOT_SANITIZED                                                                         \
  __attribute__ ((no_sanitize ("address"), no_sanitize ("thread"), no_sanitize ("undefined"), \
                  noinline))

#define DEADLINE_S 300

#define AIC PTO2_WORKER_CUBE
#define AIV PTO2_WORKER_VECTOR

typedef void (*SimTest) (enum pto_backend backend);
typedef int (*SimOrchestration) (PTO2Runtime *rt, void *data);

extern const char *const sim_backend_names[3];

int sim_main (int argc, char **argv, void (*add) (void));
/* name: "file/behaviour". On all back ends, or once (the test then gets PTO_BACKEND_DET). */
void sim_add (const char *name, SimTest test);
void sim_add_once (const char *name, SimTest test);

/* A chip of a2a3sim. settings: "task-window=16 heap=4M", NULL for the defaults. */
struct pto_chip *sim_chip (enum pto_backend backend, const char *settings);
struct pto_chip *sim_chip_on (const struct pto_platform *platform, enum pto_backend backend,
                              const char *settings);
/* Runs and asserts success. stats may be NULL. */
void sim_run (struct pto_chip *chip, const struct pto_program *program,
              SimOrchestration orchestrate, void *data, struct pto_run_stats *stats);
/* The same, recorded. */
const struct pto_trace *sim_record (struct pto_chip *chip, const struct pto_program *program,
                                    SimOrchestration orchestrate, void *data,
                                    struct pto_run_stats *stats);
/* Runs and asserts that it fails with the status and that the message holds all the words
 * (NULL-terminated). */
void sim_run_fails (struct pto_chip *chip, const struct pto_program *program,
                    SimOrchestration orchestrate, void *data, enum pto_status status,
                    ...) G_GNUC_NULL_TERMINATED;
void sim_assert_says (const struct pto_report *report, enum pto_status status,
                      ...) G_GNUC_NULL_TERMINATED;
/* Runs the vector example: the chip is well. */
void sim_assert_well (struct pto_chip *chip);

/* The vector example: f = (a + b + 1)(a + b + 2) + (a + b), or without the last sum. */
#define SIM_VECTOR_N 16384
struct sim_vector
{
  bool four; /* the form of four tasks */
  float a[SIM_VECTOR_N];
  float b[SIM_VECTOR_N];
  float f[SIM_VECTOR_N];
};
extern const struct pto_program sim_vector_program;
int sim_vector (PTO2Runtime *rt, void *vector);

/* --- traces --- */

/* Calls see() for every record of a kind, buffer by buffer. */
void sim_trace_each (const struct pto_trace *trace, uint32_t kind,
                     void (*see) (const struct pto_trace_record *record, void *data), void *data);
uint64_t sim_trace_count (const struct pto_trace *trace, uint32_t kind);
bool sim_trace_equal (const struct pto_trace *a, const struct pto_trace *b);
/* Everything a trace must show of any run whose tasks have kernels: each task once in every state
 * and in order, each of its parts on a core of its own, no core with two of them at a time,
 * sequence numbers that count up, consumers after producers. */
void sim_assert_trace (struct pto_chip *chip, const struct pto_run_stats *stats);

/* --- this process --- */

uint64_t sim_resident_bytes (void);
uint64_t sim_page_faults (void);
unsigned int sim_count_threads (void);
/* Waits until there are as many threads as before. */
void sim_assert_threads (unsigned int before);
unsigned int sim_count_descriptors (void);
unsigned int sim_count_mappings (void);

/* Spends that much time, as the clock on the wall goes. For kernels. */
void sim_spend_ns (uint64_t ns);

static inline uint64_t
sim_float_bits (float value)
{
  union
  {
    float f;
    uint32_t u;
  } bits = { .f = value };

  return bits.u;
}

/* A kernel's tensor argument, and where its first element is. */
static inline const TensorData *
sim_tensor (int64_t *args, int index)
{
  return (const TensorData *) (uintptr_t) args[index];
}

static inline void *
sim_data (int64_t *args, int index)
{
  const TensorData *t = sim_tensor (args, index);

  return (void *) (uintptr_t) (t->buffer.addr + t->start_offset * pto_dtype_size (t->dtype));
}
