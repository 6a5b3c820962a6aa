/* deeds.h: what do the tasks of tests do, well or badly?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "level-test.h"

/* Numbers of functions. */
enum
{
  COUNT,   /* any tensors; scalar: counter */
  FAIL,    /* the same, and fails */
  DIE,     /* any tensors; scalar: how */
  HANG,    /* any tensors; scalar: counter; for ever, deaf */
  LISTEN,  /* the same, until it is asked to stop */
  BEAT,    /* scalar: how often, and how long in between, in ms */
  GATE,    /* scalar: gate */
  SCRIBBLE /* scalar: descriptor for the bell */
};

/* How to die. */
enum
{
  BY_KILL,
  BY_SEGV,
  BY_ABORT,
  BY_EXIT,
  BY_STOP,
  N_WAYS
};

extern const rig_function deeds[];

/* For graphs. */
PTOParam scalar (uint64_t value);
uint64_t counter (const struct rig *rig, uint32_t index);
void forty_tasks (struct rig *rig, void *data);
uint32_t count (struct rig *rig, const struct pto_call *call, struct pto_failure *failure);
bool always (void *data);
/* With restart a task that names the dead waits for its next life. */
void die_then_work (struct rig *rig, void *data);
