/* det-ends.h: how do a bridge and the far end of a remote worker become processes of a det-world?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the object layer has of the two, for a program whose other half knows the executor: the two
 * have names in common.
 */
#pragma once

#include "../../pto/process/service.h"
#include "../../pto/process/write-log.h"

#include <glib.h>

/* Times in ms; arena in bytes: of what the far end has, and of which the bridge uses a half. */
struct ends_config
{
  guint ping, suspect, lease;
  guint64 arena;
};

struct bridge;
struct far;
struct process; /* det-world.h */

/* What the worker of each bridge is. */
void ends_begin (guint n, const struct ends_config *config);
void ends_end (void);

/* Of one life. */
struct bridge *bridge_new (guint index, struct pto_writes *writes);
void bridge_get_server (struct bridge *bridge, struct pto_server *server);
/* Its process is over. */
void bridge_free (struct bridge *bridge);

/* The end that it launches; what it runs is what serve says, given that data. */
struct far *far_new (uint32_t (*serve) (void *data, const struct pto_call *call,
                                        struct pto_failure *failure),
                     void *data);
/* The life of its process: data of which is the far end. */
void far_main (void *far);
/* Its process is over. */
void far_free (struct far *far, struct process *process);

/* --- the program's --- */

/* That of the process that calls. */
struct bridge *test_get_bridge (void);
/* The process that calls launches the other end. false: that fails. near_end: a descriptor; pid: 0,
 * or who is to be waited for. */
bool test_launch (int *near_end, int *pid);
