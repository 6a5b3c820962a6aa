/* pto-orchestrator-private.h: how does a worker lend its runtime to an orchestration function?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_orchestration_api.h"

#include "pto-gate-private.h"
#include "pto-orchestrator.h"

G_BEGIN_DECLS

/* gate: NULL when the function runs on the thread that runs the machine. run: its serial number,
 * not 0. is_cancelled is asked on the thread that runs the machine, until pto_orchestrator_end().
 */
PtoOrchestrator *pto_orchestrator_new (PtoWorker *worker, PtoGate *gate, guint64 run,
                                       bool (*is_cancelled) (void *data), gpointer data);
/* Function's thread, around the function. */
void pto_orchestrator_begin (PtoOrchestrator *orchestrator, PTO2Runtime *rt);
/* Gives the number of scopes that were left open. */
guint pto_orchestrator_end (PtoOrchestrator *orchestrator);
/* What the run has been given and still needs, once the function has returned; NULL: nothing. To be
 * let go of when all tasks are done, where the function is at home. */
GHashTable *pto_orchestrator_steal_kept (PtoOrchestrator *orchestrator);
/* Any thread: is this the thread that the function runs on? */
gboolean pto_orchestrator_is_own_thread (PtoOrchestrator *orchestrator);
/* Thread that runs the machine, while the function is under way. */
gboolean pto_orchestrator_is_cancelled (PtoOrchestrator *orchestrator);
/* Function's thread: makes a call on the thread that runs the machine. */
void pto_orchestrator_call (PtoOrchestrator *orchestrator, void (*call) (gpointer data),
                            gpointer data);

G_END_DECLS
