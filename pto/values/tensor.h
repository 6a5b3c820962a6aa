/* tensor.h: how does a tensor of the object layer become one of the engine?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_orchestration_api.h"

#include "pto-tensor.h"

G_BEGIN_DECLS

/* What a graph calls a tensor that a launch has, by an address that nobody else has. It is refused
 * wherever memory is wanted. */
PtoTensor *pto_tensor_new_stand_in (guint64 address, PtoDtype dtype, gsize n_dims,
                                    const guint64 *shape, GObject *graph);
/* It stays at that worker; of one that nobody else has yet, and that has no memory. */
void pto_tensor_set_worker (PtoTensor *tensor, guint worker);
/* Why a tensor can not be used, or NULL. */
const char *pto_tensor_get_refusal (const PtoTensor *tensor);
/* The engine's handle for a submit of that run, whose number no other run has; makes the record of
 * a tensor without memory on its first use in the run. reads: it is to have contents. FALSE without
 * an error: the run has failed. With one: the contents are those of another run. Orchestrator
 * thread. */
gboolean pto_tensor_prepare (PtoTensor *tensor, PTO2Runtime *rt, guint64 run, gboolean reads,
                             Tensor *handle, GError **error);
/* Is it a type and a shape, of which nothing has been made in the run? Orchestrator thread. */
gboolean pto_tensor_is_shape (PtoTensor *tensor, PTO2Runtime *rt, guint64 run);
/* It has memory of the run already: where, and what keeps it mapped. */
void pto_tensor_set_allocated (PtoTensor *tensor, guint64 address, gpointer owner,
                               GDestroyNotify release);
/* Address of the first element; 0 when the runtime allocates. */
guint64 pto_tensor_get_first_address (const PtoTensor *tensor);
/* FALSE: a task can not be given it, as an output if it writes. TRUE: from now to the end of the
 * run somebody holds what its memory belongs to, in a set that is made when there is something to
 * hold; kept NULL: somebody else sees to that. Thread that submits. */
gboolean pto_tensor_admit (PtoTensor *tensor, gboolean writes, guint64 run, GHashTable **kept);
/* From the first element to the last one, what a view leaves out included. */
guint64 pto_tensor_get_extent (const PtoTensor *tensor);
/* FALSE: it is for reading only, or its memory is certainly mapped so. Asks the system: once for a
 * run, not once for a task. */
gboolean pto_tensor_can_be_written (const PtoTensor *tensor);
/* As the engine sees it, but for what the runtime allocates; buffer is the memory that it is a view
 * of. */
const Tensor *pto_tensor_peek (const PtoTensor *tensor);

G_END_DECLS
