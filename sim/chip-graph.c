/* chip-graph.c: how does a chip write an orchestration down as a graph, and launch one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pto/core/graph-launch.h"
#include "pto/exec/translate.h"
#include "builtin-kernels.h"
#include "chip-private.h"

#include <stdlib.h>

/* --- capturing --- */

struct pto_plan_param
pto_chip_arg_param (const struct pto_chip_arg *arg)
{
  bool is_tensor = arg->tensor.ndims > 0;

  return (struct pto_plan_param){ .tensor = arg->tensor,
                                  .word = arg->word,
                                  .first = arg->word,
                                  .kind = arg->kind,
                                  .extent = is_tensor ? pto_tensor_extent (&arg->tensor) : 0,
                                  .fixed = !is_tensor };
}

struct pto_plan_given
pto_chip_arg_given (const struct pto_chip_arg *arg)
{
  return (struct pto_plan_given){ .word = arg->word,
                                  .tensor = arg->tensor.ndims > 0 ? &arg->tensor : NULL,
                                  .kind = arg->kind,
                                  .read_only = arg->read_only > 0 };
}

static void
refuse_capture (void *chip, const char *why)
{
  pto_chip_refuse ((struct pto_chip *) chip, "%s", why);
}

static int
capture_orchestration (PTO2Runtime *rt, void *data)
{
  struct pto_chip_capture *capture = data;

  if (!pto_capture_begin (&pto_chip_of_runtime (rt)->machine.engine, &capture->capture))
    return 1;
  return capture->orchestrate (rt, capture->data);
}

void
pto_chip_begin_capture (struct pto_chip *chip, struct pto_chip_capture *capture,
                        struct pto_plan *graph, struct pto_run *run)
{
  *capture = (struct pto_chip_capture){
    .capture = { .graph = graph, .refuse = refuse_capture, .data = chip },
    .orchestrate = run->orchestrate,
    .data = run->data,
  };
  for (uint32_t i = 0; i < chip->n_args; i++)
    {
      struct pto_plan_param param = pto_chip_arg_param (&chip->args[i]);

      pto_plan_add_param (graph, &param);
    }
  run->orchestrate = capture_orchestration;
  run->data = capture;
}

/* --- launching --- */

/* Is there such a kernel for that queue? Of a graph of another process nobody knows. */
static bool
has_kernel (const struct pto_chip *chip, uint32_t id, uint32_t queue)
{
  if (id == PTO_KERNEL_NONE)
    return queue < chip->machine.engine.config.n_queues;
  if (pto_kernel_is_builtin (id))
    return queue == PTO_CORE_TYPE_AIV;
  return id < chip->program->n_kernels && chip->program->kernels[id].name != NULL
         && (uint32_t) chip->program->kernels[id].core_type == queue;
}

/* false: the program does not have them, and the run has failed. */
static bool
check_kernels (struct pto_chip *chip, const struct pto_plan *graph, const uint32_t *kernels)
{
  for (uint32_t k = 0; k < graph->n_kernels; k++)
    {
      uint32_t id = kernels != NULL ? kernels[k] : graph->kernels[k].kernel;

      if (!has_kernel (chip, id, graph->kernels[k].queue))
        {
          pto_engine_fail (
              &chip->machine.engine, PTO_STATUS_INVALID_ARGS,
              _ ("the graph has tasks of kernel %u on %s cores, which this program does "
                 "not have"),
              id, graph->kernels[k].queue == PTO_CORE_TYPE_AIC ? "AIC" : "AIV");
          return false;
        }
    }
  return true;
}

bool
pto_chip_launch (PTO2Runtime *rt, const struct pto_plan *graph, const uint32_t *kernels)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  uint32_t n = chip->n_args;
  struct pto_plan_given *given = calloc ((size_t) n + 1, sizeof *given);
  uint64_t *words = calloc ((size_t) n + 1, sizeof *words);
  struct pto_report report = { .status = PTO_OK };
  bool ok = false;

  for (uint32_t i = 0; i < n && given != NULL && words != NULL; i++)
    {
      words[i] = chip->args[i].word;
      given[i] = pto_chip_arg_given (&chip->args[i]);
    }
  if (given == NULL || words == NULL)
    pto_engine_fail (&chip->machine.engine, PTO_STATUS_NO_MEMORY,
                     _ ("no memory for the %u arguments of a graph"), n);
  else if (pto_plan_check (graph, given, n, &report) != PTO_OK)
    pto_engine_fail (&chip->machine.engine, report.status, "%s", report.message);
  /* Of a graph of another process nobody knows. */
  else if (graph->max_args > PTO_CHIP_ARGS_MAX)
    pto_engine_fail (&chip->machine.engine, PTO_STATUS_INVALID_ARGS,
                     _ ("the graph has a task of %u arguments: a kernel can have %u at most"),
                     graph->max_args, PTO_CHIP_ARGS_MAX);
  else if (check_kernels (chip, graph, kernels))
    ok = pto_engine_launch (
        &chip->machine.engine,
        &(struct pto_launch){ .graph = graph, .words = words, .kernels = kernels });
  free (given);
  free (words);
  return ok;
}
