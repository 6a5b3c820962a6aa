/* check-test.h: what do the tests of the access check share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "sim-test.h"

#include "../../pto/core/graph-plan.h"
#include "check-kernels.h"

#define SIDE 32u
/* Bytes of a tensor that the runtime makes. */
#define MADE 64u

enum
{
  TOUCH_1,
  TOUCH_2,
  TOUCH_3,
  PLAIN,
  CUBE,
  WAIT_1,
  WAIT_2,
  WAIT_CUBE,
  STAIN,
  DOT,
  SHOW,
  HIDES
};

extern const struct pto_program program;

/* Memory of the program: bytes in one dimension, and a square of them. */
extern uint8_t memory[8 * SIDE * SIDE];
extern uint8_t square[SIDE * SIDE];

Tensor bytes_of (uint8_t *from, uint64_t n);
/* A part of memory whose buffer is all of it. */
Tensor part (uint64_t from, uint64_t n);
Tensor tile (uint64_t row, uint64_t column, uint64_t rows, uint64_t columns);

#define S(word) make_scalar_param (word)
#define COUNT(...) ((int32_t) (sizeof ((PTOParam[]){ __VA_ARGS__ }) / sizeof (PTOParam)))
/* One line, so that messages are known. */
#define SUBMIT(rt, kernel, ...)                                      \
  pto2_rt_submit_task ((rt), (kernel), (kernel) == CUBE ? AIC : AIV, \
                       ((PTOParam[]){ __VA_ARGS__, S (0) }), COUNT (__VA_ARGS__) + 1)
#define AFTER(rt, kernel, task, ...)                                                    \
  pto2_rt_submit_task_after ((rt), (kernel), AIV, ((PTOParam[]){ __VA_ARGS__, S (0) }), \
                             COUNT (__VA_ARGS__) + 1, &(PTO2TaskId){ task }, 1)

struct pto_chip *chip_of (enum pto_backend backend, const char *more);

/* The chip that passes(), fails() and fails_saying() make. */
extern enum pto_backend check_backend;
extern const char *check_settings;

void passes (SimOrchestration orchestrate, void *data);
/* The whole message but for what stands between " at " and the line. */
void fails (SimOrchestration orchestrate, void *data, const char *expected);
/* The message has these words. */
void fails_saying (SimOrchestration orchestrate, void *data, const char *expected);

/* --- orchestrations of several files --- */

int write_input (PTO2Runtime *rt, void *data);
/* By one byte; many tasks come between them, which have retired before the second one comes. */
int hide_long_ago (PTO2Runtime *rt, void *data);
/* The same in order, by the last of those between them. */
int follow_long_ago (PTO2Runtime *rt, void *data);
int use_rings (PTO2Runtime *rt, void *data);
int take_turns (PTO2Runtime *rt, void *data);
int reduce (PTO2Runtime *rt, void *data);
/* Each block writes a piece, all meet, and each reads what all have written. */
int meet (PTO2Runtime *rt, void *data);
int launch (PTO2Runtime *rt, void *graph);

/* --- the files --- */

void check_add_task_tests (void);
void check_add_order_tests (void);
void check_add_bytes_tests (void);
void check_add_parts_tests (void);
void check_add_graph_tests (void);
void check_add_run_tests (void);
