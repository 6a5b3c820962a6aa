/* chip-submit-several.c: what becomes of a submit of more than one kernel on one core, and of
 * clusters?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Orchestrator thread only. Source: seed 000 sections 16 to 18, with the names of its listings.
 */
#include "pto/core/cohort.h"
#include "pto/core/submit.h"
#include "pto/exec/translate.h"
#include "builtin-kernels.h"
#include "chip-private.h"
#include "kernel-sync.h"

#include <stdlib.h>

#define PER_BLOCK 3u /* AIC, AIV0, AIV1 */

/* The members of one block; 0: it is refused. */
static uint32_t
list_members (struct pto_chip *chip, const struct pto_submit *task, const PTO2Submit *asked,
              struct pto_need members[PER_BLOCK])
{
  uint32_t n = 0;

  if (asked->mixed == NULL)
    {
      if (!pto_chip_is_sound (chip, asked->kernel_id, asked->worker_type, task))
        return 0;
      members[0] = (struct pto_need){ .queue = task->queue,
                                      .place = PTO_PLACE_ANY,
                                      .kernel = task->kernel };
      return 1;
    }
  for (uint32_t i = 0; i < PER_BLOCK; i++)
    {
      enum pto_core_type type = i == 0 ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV;

      if (asked->mixed[i] == PTO2_KERNEL_NONE)
        continue;
      if (!pto_chip_is_sound (chip, asked->mixed[i], (int32_t) type, task))
        return 0;
      members[n++] = (struct pto_need){ .queue = type,
                                        .place = PTO_PLACE_ANY,
                                        .kernel = (uint32_t) asked->mixed[i],
                                        .sub = i > 1 ? 1 : 0 };
    }
  if (n == 0)
    pto_chip_refuse (chip, _ ("a mixed task has a kernel for the AIC or for an AIV"));
  return n;
}

/* The place that a member of a group names. false: there is none such. */
static bool
find_place (struct pto_chip *chip, int32_t member, int32_t core, struct pto_need *need)
{
  const struct pto_platform *platform = chip->platform;
  bool is_aic = need->queue == PTO_CORE_TYPE_AIC;
  uint32_t per_cluster = is_aic ? platform->aic_per_cluster : platform->aiv_per_cluster;

  if (core == -1)
    return true;
  if (core < 0 || (uint32_t) core >= per_cluster * chip->clusters)
    {
      pto_chip_refuse (chip, _ ("member %d of a group is for %s%d; this chip has %s0 to %s%u"),
                       member, is_aic ? "AIC" : "AIV", core, is_aic ? "AIC" : "AIV",
                       is_aic ? "AIC" : "AIV", per_cluster * chip->clusters - 1);
      return false;
    }
  need->place
      = (uint32_t) core / per_cluster * (platform->aic_per_cluster + platform->aiv_per_cluster)
        + (is_aic ? 0 : platform->aic_per_cluster) + (uint32_t) core % per_cluster;
  return true;
}

/* Do its members' parameters make up the task's? */
static bool
are_params_split (struct pto_chip *chip, const PTO2Submit *asked)
{
  int64_t n = 0;

  for (int32_t i = 0; asked->group_params != NULL && i < asked->n_group; i++)
    {
      n += asked->group_params[i];
      if (asked->group_params[i] < 0)
        {
          pto_chip_refuse (chip, _ ("member %d of a group has %d parameters"), i,
                           asked->group_params[i]);
          return false;
        }
    }
  if (asked->group_params != NULL && n != asked->n_params)
    pto_chip_refuse (
        chip, _ ("the members of a group have %" PRId64 " parameters together, and the task %d"), n,
        asked->n_params);
  else if (asked->group_params != NULL && n > PTO_CHIP_ARGS_MAX)
    pto_chip_refuse (
        chip,
        _ ("the members of a group have %" PRId64 " arguments together; a task takes at most %u"),
        n, PTO_CHIP_ARGS_MAX);
  else
    return true;
  return false;
}

/* The members of a group, each of which is a block; 0: it is refused. */
static uint32_t
list_group (struct pto_chip *chip, const struct pto_submit *task, const PTO2Submit *asked,
            struct pto_need members[])
{
  const struct pto_program *program = chip->program;
  struct pto_submit own = *task;
  uint32_t first = 0;

  if (!are_params_split (chip, asked))
    return 0;
  for (int32_t i = 0; i < asked->n_group; i++)
    {
      uint32_t kernel = (uint32_t) asked->group[i];
      uint32_t type = kernel < program->n_kernels ? (uint32_t) program->kernels[kernel].core_type
                                                  : PTO_CORE_TYPE_AIC;

      members[i] = (struct pto_need){ .queue = type, .place = PTO_PLACE_ANY, .kernel = kernel };
      if (asked->group_params != NULL)
        {
          own.params = task->params != NULL ? task->params + first : NULL;
          own.n_params = (uint32_t) asked->group_params[i];
          own.conditional = false; /* the condition comes after all of them */
          members[i].first_arg = (uint16_t) first;
          members[i].n_args_plus_1 = (uint16_t) (own.n_params + 1);
          first += own.n_params;
        }
      if (!pto_chip_is_sound (chip, asked->group[i], (int32_t) type, &own)
          || (asked->group_cores != NULL
              && !find_place (chip, i, asked->group_cores[i], &members[i])))
        return 0;
    }
  return (uint32_t) asked->n_group;
}

static bool
is_asked_well (struct pto_chip *chip, const PTO2Submit *asked)
{
  if (asked->block_dim < 0 || asked->block_dim > PTO_MAX_BLOCKS)
    pto_chip_refuse (chip, _ ("a task has 1 to %d blocks"), PTO_MAX_BLOCKS);
  else if (asked->n_group < 0 || (asked->n_group > 0 && asked->group == NULL))
    pto_chip_refuse (chip, _ ("a group of %d kernels at %p: it has at least one"), asked->n_group,
                     (const void *) asked->group);
  else if (asked->n_group > 0
           && (asked->kernel_id != PTO2_KERNEL_NONE || asked->block_dim != 0 || asked->mixed != NULL
               || asked->in_cluster != 0))
    pto_chip_refuse (chip, _ ("the kernels of a group are its blocks, wherever there are cores: it "
                              "has no kernel_id, no block_dim, no mixed kernels and no cluster"));
  else if (asked->n_group == 0 && (asked->group_params != NULL || asked->group_cores != NULL))
    pto_chip_refuse (chip, _ ("it says parameters or cores of members, but it is no group"));
  else if (asked->mixed == NULL && asked->n_group == 0 && asked->kernel_id < 0)
    pto_chip_refuse (chip, _ ("a task of %s has no blocks and is for no cluster"),
                     asked->kernel_id == PTO2_KERNEL_NONE ? _ ("no kernel")
                                                          : _ ("the chip's own kernel"));
  else if (asked->in_cluster != 0
           && !pto_cohort_is_held (&chip->machine.engine, (uint32_t) asked->cluster_id))
    pto_chip_refuse (chip,
                     _ ("cluster %d is not allocated: submit what is for it between "
                        "pto2_rt_allocate_cluster() and pto2_rt_free_cluster(), in its scope"),
                     asked->cluster_id);
  else
    return true;
  return false;
}

pto_task_id
pto_chip_submit_several (struct pto_chip *chip, struct pto_submit *task, const PTO2Submit *asked)
{
  bool is_group = asked->n_group > 0;
  int32_t asked_blocks = is_group ? asked->n_group : asked->block_dim;
  uint32_t n_blocks = asked_blocks > 1 ? (uint32_t) asked_blocks : 1;
  bool at_once = (asked->sync_start != 0 || is_group) && n_blocks > 1;
  struct pto_need block[PER_BLOCK];
  struct pto_need *members = block;
  struct pto_wish wish
      = { .together = asked->mixed != NULL || asked->in_cluster != 0,
          .cohort = asked->in_cluster != 0 ? (uint32_t) asked->cluster_id : PTO_COHORT_NONE };
  pto_task_id id = PTO_TASK_NONE;
  uint32_t n;

  if (!is_asked_well (chip, asked))
    return PTO_TASK_NONE;
  if (at_once)
    {
      uint32_t of_cluster
          = (uint32_t) chip->platform->aic_per_cluster + chip->platform->aiv_per_cluster;

      /* More than any such chip has cores are refused, whatever their number is. */
      if (n_blocks > (asked->in_cluster != 0 ? of_cluster : PTO_CORES_MAX))
        {
          if (asked->in_cluster != 0)
            pto_chip_refuse_with (
                chip, PTO_STATUS_SYNC_START,
                _ ("%u blocks begin at once; a cluster has %u cores: submit fewer blocks, or choose a "
                   "platform with larger clusters"),
                n_blocks, of_cluster);
          else
            pto_chip_refuse_with (chip, PTO_STATUS_SYNC_START,
                                  _ ("%u blocks begin at once; such a chip has at most %u cores: "
                                     "submit fewer blocks"),
                                  n_blocks, PTO_CORES_MAX);
          return PTO_TASK_NONE;
        }
      members = calloc (n_blocks * PER_BLOCK, sizeof *members);
      if (members == NULL)
        {
          pto_chip_refuse_with (chip, PTO_STATUS_NO_MEMORY, _ ("no memory for %u blocks"),
                                n_blocks);
          return PTO_TASK_NONE;
        }
    }
  n = is_group ? list_group (chip, task, asked, members)
               : list_members (chip, task, asked, members);
  if (n > 0)
    {
      task->kernel = members[0].kernel;
      task->queue = members[0].queue;
      task->n_blocks = at_once ? 1 : n_blocks;
      for (uint32_t m = n; at_once && !is_group && m < n_blocks * n; m++)
        members[m] = members[m % n];
      wish.members = members;
      wish.n_members = at_once && !is_group ? n_blocks * n : n;
      wish.n_at_once = at_once ? n_blocks : 0;
      /* Blocks of one kernel that begin as they can, anywhere, need no places of their own. */
      if (wish.together || at_once || members[0].place != PTO_PLACE_ANY)
        task->wish = &wish;
      id = pto_chip_submit_sound (chip, task);
    }
  if (members != block)
    free (members);
  return id;
}

bool
pto_chip_take_cluster (void *data, uint32_t cluster)
{
  struct pto_chip *chip = data;

  return pto_interconnect_clear (chip->interconnect, &chip->machine.engine, cluster);
}

int32_t
pto_chip_allocate_cluster (PTO2Runtime *rt)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  struct pto_guard *guard;
  uint32_t cluster;

  if (pto_machine_is_elsewhere (&chip->machine, "pto2_rt_allocate_cluster"))
    return -1;
  guard = pto_machine_come_in (&chip->machine);
  cluster = pto_cohort_hold (&chip->machine.engine, rt->line > 0 ? rt->file : NULL, rt->line);
  pto_machine_go_out (&chip->machine, guard);
  return cluster == PTO_COHORT_NONE ? -1 : (int32_t) cluster;
}

void
pto_chip_free_cluster (PTO2Runtime *rt, int32_t cluster_id)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  struct pto_guard *guard;

  if (pto_machine_is_elsewhere (&chip->machine, "pto2_rt_free_cluster"))
    return;
  guard = pto_machine_come_in (&chip->machine);
  if (pto_cohort_is_held (&chip->machine.engine, (uint32_t) cluster_id))
    pto_cohort_let_go (&chip->machine.engine, (uint32_t) cluster_id);
  else
    pto_chip_refuse (chip, _ ("cluster %d is freed, but it is not allocated"), cluster_id);
  pto_machine_go_out (&chip->machine, guard);
}

int32_t
pto_chip_cluster_count (PTO2Runtime *rt)
{
  return (int32_t) pto_chip_of_runtime (rt)->clusters;
}

int32_t
pto_chip_cluster_cores (PTO2Runtime *rt, int32_t cluster_id, int32_t worker_type, int32_t cores[],
                        int32_t n)
{
  const struct pto_chip *chip = pto_chip_of_runtime (rt);
  int32_t first;
  int32_t count;

  if ((uint32_t) cluster_id >= chip->clusters || (uint32_t) worker_type >= PTO_N_CORE_TYPES)
    return -1;
  count = (int32_t) (worker_type == PTO2_WORKER_CUBE ? chip->platform->aic_per_cluster
                                                     : chip->platform->aiv_per_cluster);
  first = cluster_id * count;
  for (int32_t i = 0; i < count && i < n; i++)
    cores[i] = first + i;
  return count;
}
