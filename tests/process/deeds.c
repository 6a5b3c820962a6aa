/* deeds.c: what do the tasks of tests do, well or badly?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "deeds.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t
count (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  atomic_fetch_add (&rig->board->counters[call_scalar (call, 0)], 1);
  return 0;
}

static uint32_t
fail (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  count (rig, call, failure);
  return call_fail (failure, PTO_STATUS_TASK_FAILED, "ValueError: it is too blue");
}

static uint32_t
die (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  static const char words[] = "first\nthe sky is falling\n";

  g_assert_cmpint (write (STDERR_FILENO, words, sizeof words - 1), ==, sizeof words - 1);
  switch (call_scalar (call, 0))
    {
    case BY_KILL:
      raise (SIGKILL);
      break;
    case BY_SEGV:
      /* A sanitizer has a handler, and more to say. */
      signal (SIGSEGV, SIG_DFL);
      raise (SIGSEGV);
      break;
    case BY_ABORT:
      abort ();
    case BY_EXIT:
      exit (3);
    case BY_STOP:
      raise (SIGSTOP);
      break;
    }
  return 0;
}

static uint32_t
hang (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  count (rig, call, failure);
  for (;;)
    pause ();
  return 0;
}

static uint32_t
listen_to (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  count (rig, call, failure);
  while (!pto_call_is_cancelled (call))
    g_usleep (200);
  return call_fail (failure, PTO_STATUS_CANCELLED, "stopped");
}

static uint32_t
beat (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  for (uint64_t i = 0; i < call_scalar (call, 0); i++)
    {
      g_usleep (call_scalar (call, 1) * 1000);
      pto_call_beat (call);
    }
  return 0;
}

static uint32_t
gate (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  gate_pass (rig->board, (uint32_t) call_scalar (call, 0));
  return 0;
}

/* The first child's. */
static uint32_t
scribble (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  struct pto_hub *hub = (struct pto_hub *) ((char *) call->mailbox - 4096);

  hub->bell.event = (int32_t) call_scalar (call, 0);
  return 0;
}

const rig_function deeds[] = { count, fail, die, hang, listen_to, beat, gate, scribble };

PTOParam
scalar (uint64_t value)
{
  return make_scalar_param (value);
}

uint64_t
counter (const struct rig *rig, uint32_t index)
{
  return atomic_load (&rig->board->counters[index]);
}

void
forty_tasks (struct rig *rig, void *data)
{
  for (int i = 0; i < 40; i++)
    SUB (rig, COUNT, ANY, scalar (9));
}

bool
always (void *data)
{
  return true;
}

void
die_then_work (struct rig *rig, void *data)
{
  SUB (rig, DIE, 0, scalar (BY_KILL));
  for (int i = 0; i < 10; i++)
    SUB (rig, COUNT, 0, scalar (0));
}
