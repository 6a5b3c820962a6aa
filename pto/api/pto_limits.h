/* pto_limits.h: how much of everything can there be?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each limit is written here and nowhere else. This file includes nothing, so that every part of
 * the library can include it, and kernels and programs can ask.
 */
#ifndef PTO_LIMITS_H
#define PTO_LIMITS_H

/**
 * PTO_TENSOR_MAX_DIMS:
 *
 * The most dimensions a tensor has.
 *
 * Since: 0.1
 */
#define PTO_TENSOR_MAX_DIMS 5
/**
 * PTO_N_RINGS:
 *
 * How many task rings a chip has, each with its own heap.
 *
 * Since: 0.1
 */
#define PTO_N_RINGS 4
/**
 * PTO_MAX_ARGS:
 *
 * The most arguments of one task.
 *
 * Since: 0.1
 */
#define PTO_MAX_ARGS 1024
/**
 * PTO_MAX_KERNEL_ARGS:
 *
 * The most arguments of one task on a chip.
 *
 * Since: 0.1
 */
#define PTO_MAX_KERNEL_ARGS 128
/**
 * PTO_MAX_BLOCKS:
 *
 * The most blocks of one task on a chip.
 *
 * Since: 0.1
 */
#define PTO_MAX_BLOCKS 268435455
/**
 * PTO_MAX_KERNELS:
 *
 * The most function ids of an orchestration, and the most kernels that functions of one worker
 * submit.
 *
 * Since: 0.1
 */
#define PTO_MAX_KERNELS 4096
/**
 * PTO_MAX_SCOPES:
 *
 * The most scopes that are open at one time, one inside of the other.
 *
 * Since: 0.1
 */
#define PTO_MAX_SCOPES 64
/**
 * PTO_MAX_TASK_WINDOW:
 *
 * The most slots of a task ring: the parameter `task-window`.
 *
 * Since: 0.1
 */
#define PTO_MAX_TASK_WINDOW 16777216
/**
 * PTO_MAX_PRIORITY:
 *
 * The highest priority of a task; 0 is that of a task that was given none.
 *
 * Since: 0.1
 */
#define PTO_MAX_PRIORITY 3
/**
 * PTO_MAX_CHILDREN:
 *
 * The most workers below a worker of level 3 or up, and the most SUB workers, together.
 *
 * Since: 0.1
 */
#define PTO_MAX_CHILDREN 256
/**
 * PTO_MAX_LEVEL:
 *
 * The highest level of a worker: more than anybody stacks.
 *
 * Since: 0.1
 */
#define PTO_MAX_LEVEL 15
/**
 * PTO_MAX_BUFFERS:
 *
 * The most buffers and blocks of device memory of a process at one time.
 *
 * Since: 0.1
 */
#define PTO_MAX_BUFFERS 131072

#endif
