/* function-thread.h: how does an orchestration function on one thread drive the thread that runs
 * the chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The chip has one guest: the thread inside pto_chip_run(). The orchestration function of an
 * asynchronous run belongs in its owner's main context, another thread. So the guest waits in
 * pto_gate_serve() and makes the calls that the function hands it with pto_gate_call(), one at a
 * time, each finished before the function goes on.
 *
 * A call that takes longer lets the function's main context run meanwhile, within the call: nothing
 * asynchronous keeps a main loop from running while kernels run.
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct _PtoGate PtoGate;

PtoGate *pto_gate_new (void);
PtoGate *pto_gate_ref (PtoGate *gate);
void pto_gate_unref (PtoGate *gate);

/* Function's thread, in a source of its main context: FALSE when the guest has given up waiting for
 * the function to begin. */
gboolean pto_gate_begin (PtoGate *gate);
/* Function's thread, between begin and end: makes a call on the guest and waits for it.
 * may_run_loop: the main context runs if that takes long; then the caller holds no lock. */
void pto_gate_call (PtoGate *gate, void (*func) (gpointer data), gpointer data,
                    gboolean may_run_loop);
/* Function's thread: the function has returned. */
void pto_gate_end (PtoGate *gate);
/* Any thread: the function will never begin. Does nothing once it has. */
void pto_gate_abandon (PtoGate *gate);
/* Guest: makes calls until the function has returned. FALSE when it will never begin. */
gboolean pto_gate_serve (PtoGate *gate);

G_END_DECLS
