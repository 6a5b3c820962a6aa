/* parameters.c: the knobs of a worker, by name.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parameters.h"

#include "exec/pto-exec.h"
#include "exec/translate.h"
#include "forced-order-text.h"
#include "tensor-map.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/nearest-word.h" /* after what defines _() */

enum kind
{
  KIND_COUNT,
  KIND_SIZE,
  KIND_POWER_OF_TWO,
  KIND_CHOICE,
  KIND_HAZARDS,
  KIND_SCHEDULE,
  KIND_BOOLEAN
};

/* Which workers look at it. */
enum workers
{
  ALL,
  CHIPS,
  LEVELS /* 3 and up */
};

struct description
{
  const char *name;
  const char *variable;
  enum kind kind;
  enum workers of;
  uint64_t fallback;
  uint64_t min;
  uint64_t max;
  const char *text;
  uint64_t of_levels;       /* the fallback from level 3 on; 0: the same */
  const char *const *names; /* of choices, from 0 to max */
  const char *list;
};

static const char *const backends[] = { "par", "det", "threads" };
static const char *const checks[] = { "none", "access" };
static const char *const costs[] = { "own", "chip", "cpu", "virtual" };

#define GIB (UINT64_C (1) << 30)

static const struct description descriptions[PTO_N_PARAMETERS] = {
  [PTO_PARAMETER_BACKEND]
  = { "backend", "PTO_BACKEND", KIND_CHOICE, CHIPS, PTO_BACKEND_PAR, 0, 2,
      N_ ("par: fibers on a few threads; det: seeded, virtual clock; threads: a thread a core"),
      .names = backends, .list = N_ ("par, det or threads") },
  [PTO_PARAMETER_SEED] = { "seed", "PTO_SEED", KIND_COUNT, CHIPS, 1, 0, UINT64_MAX,
                           N_ ("seed of the det back end's choices") },
  [PTO_PARAMETER_TASK_WINDOW]
  = { "task-window", "PTO2_RING_TASK_WINDOW", KIND_POWER_OF_TWO, ALL, 65536, 4, PTO_MAX_TASK_WINDOW,
      N_ ("slots of each task ring, all but one usable; a power of two, or four of them"),
      PTO_MAX_TASK_WINDOW },
  [PTO_PARAMETER_HEAP]
  = { "heap", "PTO2_RING_HEAP", KIND_SIZE, ALL, GIB, 1024, GIB * 1024,
      N_ ("bytes of each ring for outputs that the runtime allocates; or four numbers") },
  [PTO_PARAMETER_DEP_POOL]
  = { "dep-pool", "PTO2_RING_DEP_POOL", KIND_COUNT, ALL, 65536, 16, 1u << 28,
      N_ ("dependencies of the live tasks of each ring; rounded up to a power of two; or four numbers"),
      1u << 26 },
  [PTO_PARAMETER_MAP_POOL]
  = { "map-pool", "PTO2_TENSORMAP_POOL_SIZE", KIND_COUNT, ALL, 65536, 16, 1u << 28,
      N_ ("nodes of the TensorMap: live regions and their readers"), 1u << 26 },
  [PTO_PARAMETER_HAZARDS]
  = { "hazards", "PTO_HAZARDS", KIND_HAZARDS, ALL, PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_WAR,
      0, 7, N_ ("which hazards order tasks: raw,waw,war; raw,waw gives the seeds' exact edges") },
  [PTO_PARAMETER_READY_SHARDS] = { "ready-queue-shards", "PTO2_READY_QUEUE_SHARDS", KIND_COUNT,
                                   CHIPS, 1, 1, 16, N_ ("ready queues of each core type") },
  [PTO_PARAMETER_AICPU_THREADS]
  = { "aicpu-threads", "PTO_AICPU_THREADS", KIND_COUNT, CHIPS, 0, 0, 64,
      N_ ("scheduler threads + 1 orchestrator; 0 = the platform's") },
  [PTO_PARAMETER_CLUSTERS]
  = { "clusters", "PTO_CLUSTERS", KIND_COUNT, CHIPS, 0, 0, PTO_MAX_CLUSTERS,
      N_ ("clusters of the simulated chip, more or less than its platform has; 0 = the platform's") },
  [PTO_PARAMETER_CARRIERS]
  = { "carriers", "PTO_CARRIERS", KIND_COUNT, CHIPS, 0, 0, 256,
      N_ ("par: threads beside the caller's; 0 = one less than there are CPUs, at least one") },
  [PTO_PARAMETER_TIMEOUT]
  = { "timeout", "PTO_TIMEOUT", KIND_COUNT, ALL, 10000, 1, 86400000,
      N_ ("milliseconds without any task finishing before a run is given up") },
  [PTO_PARAMETER_STACK] = { "stack", "PTO_STACK", KIND_SIZE, CHIPS, 1u << 20, 16384, GIB,
                            N_ ("bytes of a core's stack") },
  [PTO_PARAMETER_GUARD]
  = { "guard", "PTO_GUARD", KIND_SIZE, CHIPS, PTO_GUARD_DEFAULT, 0, 4096,
      N_ ("bytes behind memory of tasks, and on both sides of buffers, that are checked for stray "
          "writes, in eights; 0 = none") },
  [PTO_PARAMETER_TRACE] = { "trace", "PTO_TRACE", KIND_BOOLEAN, ALL, 0, 0, 1,
                            N_ ("record what every core, or child, did") },
  [PTO_PARAMETER_TRACE_LEVEL]
  = { "trace-level", "PTO_TRACE_LEVEL", KIND_COUNT, ALL, 3, 1, 4,
      N_ ("how much of a run is recorded: 1 kernels, 2 and their dispatch, 3 and their dependencies, "
          "4 and their arguments and what rings hold") },
  [PTO_PARAMETER_TRACE_RECORDS]
  = { "trace-records", "PTO_TRACE_RECORDS", KIND_COUNT, ALL, 1u << 20, 16, 1u << 28,
      N_ ("records that each core, child and control thread may make") },
  [PTO_PARAMETER_UTILIZATION] = { "utilization", "PTO_UTILIZATION", KIND_BOOLEAN, CHIPS, 0, 0, 1,
                                  N_ ("time every kernel, for the busy times of the statistics") },
  [PTO_PARAMETER_TASK_TIMEOUT]
  = { "task-timeout", "PTO_TASK_TIMEOUT", KIND_COUNT, LEVELS, 0, 0, 86400000,
      N_ ("level 3 and up: milliseconds of one task without a sign of life; 0 = no limit") },
  [PTO_PARAMETER_STOP_TIMEOUT]
  = { "stop-timeout", "PTO_STOP_TIMEOUT", KIND_COUNT, LEVELS, 2000, 0, 86400000,
      N_ ("level 3 and up: milliseconds that a child may stand stopped; 0 = no limit") },
  [PTO_PARAMETER_ISOLATE]
  = { "isolate", "PTO_ISOLATE", KIND_BOOLEAN, CHIPS, 0, 0, 1,
      N_ ("level 2: the chip is a process of its own; one below another worker is so already") },
  [PTO_PARAMETER_ARENA]
  = { "arena", "PTO_ARENA", KIND_SIZE, LEVELS, GIB * 16, 1u << 20, GIB * 1024,
      N_ ("level 3 and up, isolate: address space for what is shared after the start") },
  [PTO_PARAMETER_PIPE_DEPTH] = { "pipe-depth", "PTO_PIPE_DEPTH", KIND_COUNT, CHIPS, 8, 1, 65536,
                                 N_ ("entries of a pipe between the cores of a cluster") },
  [PTO_PARAMETER_BLOCKED_NOTICE]
  = { "blocked-notice", "PTO_BLOCKED_NOTICE", KIND_COUNT, ALL, 1000, 0, 86400000,
      N_ ("milliseconds that a submit waits for room in a ring before a warning; 0 = none") },
  [PTO_PARAMETER_RENAME]
  = { "rename", "PTO_RENAME", KIND_BOOLEAN, ALL, 0, 0, 1,
      N_ ("an output over contents that are still used gets new memory, where there is some") },
  [PTO_PARAMETER_BUILD_MODE]
  = { "build-mode", "PTO_BUILD_MODE", KIND_COUNT, CHIPS, 1, 0, 1,
      N_ ("tasks that are added by hand run: 1: once they are published; 0: when their scope ends") },
  [PTO_PARAMETER_JITTER]
  = { "jitter", "PTO_JITTER", KIND_COUNT, CHIPS, 0, 0, 1000,
      N_ ("det: each kernel takes up to so many percent longer, as the seed has it") },
  [PTO_PARAMETER_CHECK]
  = { "check", "PTO_CHECK", KIND_CHOICE, ALL, PTO_CHECK_NOTHING, 0, 1,
      N_ ("access: what kernels read and write is compared with their tasks' arguments; or none"),
      .names = checks, .list = N_ ("none or access") },
  [PTO_PARAMETER_SCHEDULE]
  = { "schedule", "PTO_SCHEDULE", KIND_SCHEDULE, CHIPS, 0, 0, 1,
      N_ ("det: tasks run one after the other, in an order that pto explore has printed, such as "
          "1:3-after-1:7; empty: as they come") },
  [PTO_PARAMETER_COSTS]
  = { "costs", "PTO_COSTS", KIND_CHOICE, CHIPS, PTO_COSTS_OWN, 0, 3,
      N_ ("det: what kernels take: own: as they say; chip, cpu, virtual: as measured (pto calibrate)"),
      .names = costs, .list = N_ ("own, chip, cpu or virtual") },
  [PTO_PARAMETER_REMOTE_PING]
  = { "remote-ping", "PTO_REMOTE_PING", KIND_COUNT, LEVELS, 1000, 10, 3600000,
      N_ ("remote workers: milliseconds of silence after which one is asked whether it is there") },
  [PTO_PARAMETER_REMOTE_SUSPECT]
  = { "remote-suspect", "PTO_REMOTE_SUSPECT", KIND_COUNT, LEVELS, 3000, 0, 86400000,
      N_ ("remote workers: milliseconds without an answer until one gets no new task; 0 = no limit") },
  [PTO_PARAMETER_REMOTE_LEASE]
  = { "remote-lease", "PTO_REMOTE_LEASE", KIND_COUNT, LEVELS, 30000, 0, 86400000,
      N_ ("remote workers: milliseconds without an answer until one is lost, and ends; 0 = no limit") },
  [PTO_PARAMETER_REMOTE_LEAVE]
  = { "remote-leave", "PTO_REMOTE_LEAVE", KIND_SIZE, LEVELS, 65536, 1, GIB * 1024,
      N_ ("remote workers: bytes from which on a result stays there until somebody needs it elsewhere") },
  [PTO_PARAMETER_RETRIES]
  = { "retries", "PTO_RETRIES", KIND_COUNT, LEVELS, 2, 0, 1000,
      N_ ("level 3 and up: how often a task is run again that was lost with its worker, if its callable "
          "is idempotent or it had not begun; 0 = never") },
};

const char *
pto_param_name (enum pto_param param)
{
  return descriptions[param].name;
}

uint64_t
pto_param_most (enum pto_param param)
{
  return descriptions[param].max;
}

const char *
pto_param_variable (enum pto_param param)
{
  return descriptions[param].variable;
}

const char *
pto_param_description (enum pto_param param)
{
  return descriptions[param].text;
}

const char *
pto_param_no_effect (enum pto_param param, uint32_t level)
{
  bool is_chip = level <= 2;

  if (descriptions[param].of == ALL || is_chip == (descriptions[param].of == CHIPS))
    return NULL;
  if (param == PTO_PARAMETER_ISOLATE)
    return _ ("what is below it is processes already");
  return is_chip ? _ ("it is one of workers of level 3 and up") : _ ("it is one of chips");
}

/* Which of those that rings have; PTO_N_RING_PARAMETERS: none. */
static uint32_t
of_rings (enum pto_param param)
{
  return param >= PTO_PARAMETER_TASK_WINDOW && param <= PTO_PARAMETER_DEP_POOL
             ? (uint32_t) (param - PTO_PARAMETER_TASK_WINDOW)
             : PTO_N_RING_PARAMETERS;
}

bool
pto_params_differ (const struct pto_params *params, enum pto_param param)
{
  uint32_t i = of_rings (param);

  return i < PTO_N_RING_PARAMETERS && params->of_rings[i][0] != 0;
}

uint64_t
pto_params_of_ring (const struct pto_params *params, enum pto_param param, uint32_t ring)
{
  return pto_params_differ (params, param) ? params->of_rings[of_rings (param)][ring]
                                           : params->values[param];
}

void
pto_params_init (struct pto_params *params, uint32_t level)
{
  params->level = level;
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    params->values[i] = level > 2 && descriptions[i].of_levels != 0 ? descriptions[i].of_levels
                                                                    : descriptions[i].fallback;
  memset (params->of_rings, 0, sizeof params->of_rings);
}

static enum pto_status
refuse (struct pto_report *report, const char *as, const char *value, const char *expected)
{
  return pto_report_set (report, PTO_STATUS_INVALID_ARGS, _ ("%s: \"%s\" is not %s"), as, value,
                         expected);
}

static enum pto_status
refuse_range (struct pto_report *report, const char *as, const char *value,
              const struct description *d)
{
  return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                         d->kind == KIND_POWER_OF_TWO
                             ? _ ("%s: \"%s\" is not a power of two from %" PRIu64 " to %" PRIu64)
                         : d->kind == KIND_SIZE
                             ? _ ("%s: \"%s\" is not a size from %" PRIu64 " to %" PRIu64
                                  " bytes; K, M, G and T behind it are 1024 and its powers")
                             : _ ("%s: \"%s\" is not a number from %" PRIu64 " to %" PRIu64),
                         as, value, d->min, d->max);
}

static bool
parse_number (const char *text, bool suffixes, uint64_t *value)
{
  char *end;
  uint64_t unit = 1;

  if (!isdigit ((unsigned char) text[0]))
    return false;
  errno = 0;
  *value = strtoull (text, &end, 10);
  if (errno != 0)
    return false;
  if (suffixes && *end != '\0' && end[1] == '\0')
    {
      const char *units = "KMGT";
      const char *found = strchr (units, toupper ((unsigned char) *end));

      if (found == NULL)
        return false;
      for (const char *u = units; u <= found; u++)
        unit *= 1024;
      end++;
    }
  if (*end != '\0' || *value > UINT64_MAX / unit)
    return false;
  *value *= unit;
  return true;
}

static bool
parse_hazards (const char *text, uint64_t *value)
{
  *value = 0;
  while (*text != '\0')
    {
      size_t length = strcspn (text, ",");
      uint32_t hazard = pto_hazard_named (text, length);

      if (hazard == 0)
        return false;
      *value |= hazard;
      text += length + (text[length] == ',');
    }
  return (*value & PTO_HAZARD_RAW) != 0;
}

/* as: what to call it in a message, the parameter's name or its variable's. */
static enum pto_status
set (struct pto_params *params, int index, const char *as, const char *text,
     struct pto_report *report)
{
  const struct description *d = &descriptions[index];
  uint64_t value = 0;

  switch (d->kind)
    {
    case KIND_SCHEDULE:
      if (text[0] != '\0')
        {
          struct pto_schedule schedule;
          enum pto_status status = pto_schedule_parse (&schedule, text, as, report);

          if (status != PTO_OK)
            return status;
          pto_schedule_clear (&schedule);
          value = 1;
        }
      break;
    case KIND_CHOICE:
      while (value <= d->max && strcmp (text, d->names[value]) != 0)
        value++;
      if (value > d->max)
        return refuse (report, as, text, _ (d->list));
      break;
    case KIND_HAZARDS:
      if (!parse_hazards (text, &value))
        return refuse (report, as, text, _ ("a list of raw, waw, war with at least raw"));
      break;
    case KIND_BOOLEAN:
      if (strcmp (text, "1") == 0 || strcmp (text, "true") == 0 || strcmp (text, "yes") == 0)
        value = 1;
      else if (strcmp (text, "0") != 0 && strcmp (text, "false") != 0 && strcmp (text, "no") != 0)
        return refuse (report, as, text, _ ("0 or 1"));
      break;
    case KIND_COUNT:
    case KIND_SIZE:
    case KIND_POWER_OF_TWO:
      if (!parse_number (text, d->kind != KIND_COUNT || index != PTO_PARAMETER_SEED, &value)
          || value < d->min || value > d->max)
        return refuse_range (report, as, text, d);
      if (d->kind == KIND_POWER_OF_TWO && (value & (value - 1)) != 0)
        return refuse_range (report, as, text, d);
      if (index == PTO_PARAMETER_GUARD && value % 8 != 0)
        return refuse (report, as, text, _ ("a multiple of 8"));
      if (index == PTO_PARAMETER_AICPU_THREADS && value == 1)
        return refuse (report, as, text, _ ("0 or at least 2 (a scheduler and the orchestrator)"));
      break;
    }
  params->values[index] = value;
  return PTO_OK;
}

/* A number for each ring, or one for all. */
static enum pto_status
set_rings (struct pto_params *params, int index, const char *as, const char *text,
           struct pto_report *report)
{
  uint64_t *rings = params->of_rings[of_rings ((enum pto_param) index)];
  struct pto_params one = *params;
  uint64_t found[PTO_N_RINGS] = { 0 };
  uint64_t most = 0;
  uint32_t n = 1;

  for (const char *c = text; *c != '\0'; c++)
    n += *c == ',';
  if (n != 1 && n != PTO_N_RINGS)
    return pto_report_set (
        report, PTO_STATUS_INVALID_ARGS,
        _ ("%s: \"%s\" is %u numbers: one for all rings wanted, or %d, one for each"), as, text, n,
        PTO_N_RINGS);
  for (uint32_t r = 0; r < n; r++)
    {
      size_t length = strcspn (text, ",");
      char number[32] = "";
      enum pto_status status;

      snprintf (number, sizeof number, "%.*s", (int) length, text);
      /* What is cut off is too long for a number. */
      status = set (&one, index, as, length < sizeof number ? number : text, report);
      if (status != PTO_OK)
        return status;
      found[r] = one.values[index];
      most = found[r] > most ? found[r] : most;
      text += length + (text[length] == ',');
    }
  params->values[index] = most;
  for (uint32_t r = 0; r < PTO_N_RINGS; r++)
    rings[r] = n > 1 ? found[r] : 0;
  return PTO_OK;
}

static enum pto_status
set_any (struct pto_params *params, int index, const char *as, const char *text,
         struct pto_report *report)
{
  return of_rings ((enum pto_param) index) < PTO_N_RING_PARAMETERS
             ? set_rings (params, index, as, text, report)
             : set (params, index, as, text, report);
}

const char *
pto_params_ask (const char *name, uint32_t level, char *text, size_t size)
{
  struct pto_nearest nearest = { .word = name };

  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    if (level == 0 || pto_param_no_effect ((enum pto_param) i, level) == NULL)
      pto_nearest_try (&nearest, descriptions[i].name);
  text[0] = '\0';
  if (nearest.found != NULL)
    snprintf (text, size, _ ("; did you mean \"%s\"?"), nearest.found);
  return text;
}

enum pto_status
pto_params_set (struct pto_params *params, const char *name, const char *value,
                struct pto_report *report)
{
  char question[200];

  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    if (strcmp (descriptions[i].name, name) == 0)
      return set_any (params, i, name, value, report);
  return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                         _ ("there is no parameter \"%s\" (pto info lists them)%s"), name,
                         pto_params_ask (name, params->level, question, sizeof question));
}

bool
pto_params_get (const struct pto_params *params, const char *name, char *text, size_t size)
{
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    {
      uint64_t value = params->values[i];

      if (strcmp (descriptions[i].name, name) != 0)
        continue;
      if (descriptions[i].kind == KIND_SCHEDULE)
        text[0] = '\0';
      else if (descriptions[i].kind == KIND_CHOICE)
        snprintf (text, size, "%s", descriptions[i].names[value]);
      else if (descriptions[i].kind == KIND_HAZARDS)
        snprintf (text, size, "raw%s%s", (value & PTO_HAZARD_WAW) != 0 ? ",waw" : "",
                  (value & PTO_HAZARD_WAR) != 0 ? ",war" : "");
      else if (!pto_params_differ (params, (enum pto_param) i))
        snprintf (text, size, "%" PRIu64, value);
      else
        for (uint32_t r = 0, n = 0; r < PTO_N_RINGS && n < size; r++)
          n += (uint32_t) snprintf (text + n, size - n, "%s%" PRIu64, r > 0 ? "," : "",
                                    pto_params_of_ring (params, (enum pto_param) i, r));
      return true;
    }
  return false;
}

const char *
pto_params_choice (const struct pto_params *params, enum pto_param param)
{
  const struct description *d = &descriptions[param];

  return d->kind == KIND_CHOICE ? d->names[params->values[param]] : NULL;
}

enum pto_status
pto_params_from_environment (struct pto_params *params, struct pto_report *report)
{
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    {
      const char *value = getenv (descriptions[i].variable);
      enum pto_status status;

      if (value == NULL)
        continue;
      status = set_any (params, i, descriptions[i].variable, value, report);
      if (status != PTO_OK)
        return status;
    }
  return PTO_OK;
}
