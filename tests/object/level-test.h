/* level-test.h: what do the tests of workers with children share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "object-test.h"

#include <stdatomic.h>

/* What is there before a worker and must be there after it. */
typedef struct
{
  guint descriptors;
  guint threads;
} LevelTestState;

void level_test_begin (LevelTestState *state);
/* No child, and nothing else that was not there before. */
void level_test_end (const LevelTestState *state);

/* Words that all processes share; zeroed. */
#define LEVEL_TEST_WORDS 512
typedef struct
{
  PtoBuffer *buffer;
  PtoTensor *tensor;
  _Atomic guint64 *words;
} LevelTestBoard;

void level_test_board_init (LevelTestBoard *board);
void level_test_board_clear (LevelTestBoard *board);
/* Of a tensor argument. */
_Atomic guint64 *level_test_words (PtoTaskArgs *args, guint index);
/* Waits until a word has that value; gives up with the test. */
void level_test_wait (_Atomic guint64 *word, guint64 value);
/* FALSE: the task was cancelled first. */
gboolean level_test_wait_in_task (PtoTaskArgs *args, _Atomic guint64 *word, guint64 value);

/* Not initialized. */
PtoWorker *level_test_host (guint level, guint n_devices, guint n_subs);
PtoCallableHandle *level_test_register (PtoWorker *worker, const char *name, PtoSubFunc func);
/* Of an orchestration for chips, in dir: out[i] = value for all i, of one tensor and two numbers.
 */
PtoCallable *level_test_fill (const char *dir);

/* A launch that is cancelled is no launch, and a capture that is none; the next launch is one.
 * submit is what the graph was captured from. */
void level_test_cancel_graph (PtoWorker *worker, PtoGraph *graph, PtoTaskArgs *args,
                              PtoOrchestrationFunc submit, gpointer data);

/* One task, submitted as SUB or to the next level by what handle is. */
gboolean level_test_submit (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                            PtoTensor *tensor, PtoDirection direction, guint64 number, int worker,
                            GError **error);
