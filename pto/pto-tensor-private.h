/* pto-tensor-private.h: how does a tensor of the object layer become one of the engine?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_orchestration_api.h"

#include "pto-tensor.h"

G_BEGIN_DECLS

/* Why a tensor can not be used, or NULL. */
const char *pto_tensor_get_refusal (const PtoTensor *tensor);
/* The engine's handle for a submit of that run, whose number no other run has; makes the record of
 * a tensor without memory on its first use in the run. FALSE when the run has failed. Orchestrator
 * thread. */
gboolean pto_tensor_prepare (PtoTensor *tensor, PTO2Runtime *rt, guint64 run, Tensor *handle);
/* It has memory of the run already: where. */
void pto_tensor_set_allocated (PtoTensor *tensor, guint64 address);
/* Address of the first element; 0 when the runtime allocates. */
guint64 pto_tensor_get_first_address (const PtoTensor *tensor);

G_END_DECLS
