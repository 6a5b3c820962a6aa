/* kernel-sync.h: how do kernels wait for each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Kernels of one block in one cluster talk through its pipes: bounded queues, each entry a copy of
 * some bytes. A mixed block has pipes of its own, empty when it begins; tasks for an allocated
 * cluster share that cluster's as long as it is held. Kernels of a task that begins all at once
 * meet in pto_sync_all(). A kernel that waits here has parked its core. When the run fails, the
 * core is woken and the kernel is given up. Source: seed 000 sections 16 and 18.4.
 */
#pragma once

#include "hardware.h"

struct pto_pipes;
struct pto_interconnect;

/* What a core waits for: one of these, with a pipe's number in the upper bits. */
enum pto_wait
{
  PTO_WAIT_NOTHING,
  PTO_WAIT_POP,
  PTO_WAIT_PUSH,
  PTO_WAIT_SYNC
};

extern const PTO2KernelOps pto_kernel_ops;
/* The same for kernels that run on the core's own thread: the core does it. */
extern const PTO2KernelOps pto_kernel_ops_apart;

/* Of so many clusters; NULL: no memory. */
struct pto_interconnect *pto_interconnect_new (uint32_t n_clusters, uint32_t depth);
void pto_interconnect_free (struct pto_interconnect *interconnect);
/* Nobody runs: all pipes are empty. */
void pto_interconnect_reset (struct pto_interconnect *interconnect);
/* A cluster is allocated: so are its own. false: who had it has left something there, and the run
 * has failed. */
bool pto_interconnect_clear (struct pto_interconnect *interconnect, struct pto_engine *engine,
                             uint32_t cluster);
/* The run has ended well: has somebody left something in a cluster's own? */
enum pto_status pto_interconnect_check (const struct pto_interconnect *interconnect,
                                        struct pto_report *report);

/* A member of a party is about to run a block, or has. The core. false: entries are left that
 * nobody can pop any more, and the run has failed. */
void pto_interconnect_enter (struct pto_core *core);
bool pto_interconnect_leave (struct pto_core *core);

/* Wakes the core if it waits here: it looks whether the run has failed. Any thread. */
void pto_interconnect_wake (struct pto_core *core);
/* Of a kernel that did not return: how one waits for another, and who began with it. Its core. */
void pto_interconnect_describe_others (const struct pto_core *core, char *text, size_t size);
/* It waits here, and nothing will wake it: fails the run in words that name whoever waits with it.
 * false: it does not wait here. Any thread, with its cores standing. */
bool pto_interconnect_report (struct pto_core *core);
