/* task-args.h: how do the arguments of a task lie in memory?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_orchestration_api.h"

#include "pto-task-args.h"
#include "tensor.h"

G_BEGIN_DECLS

/* A kernel that combines what is reduced, and what copies begin with: of g_atomic_rc_box_new(). */
typedef struct
{
  PtoCallable *combine;
  GValue initial;
} PtoArgCombine;

typedef struct
{
  PtoDirection direction;
  PtoScalarKind kind; /* of a scalar */
  PtoTensor *tensor;  /* NULL for a scalar */
  /* An integer, or the bits of a double: also for FLOAT, which is made one where it becomes a word.
   */
  guint64 scalar;
  /* Of a reduction: a kernel, owned, or NULL and a PtoReduction; PTO_ARG_UNSAID: nobody said it. */
  PtoArgCombine *combine;
  guint operation;
} PtoArg;
#define PTO_ARG_UNSAID G_MAXUINT

struct pto_args_view;         /* ../process/call-format.h */
struct pto_continuous_tensor; /* ../process/call-format.h */

void pto_arg_combine_release (PtoArgCombine *combine);
/* A tensor with all that is said of it; takes what the argument owns. */
void pto_task_args_append (PtoTaskArgs *args, const PtoArg *arg);
/* What a reduction is for the runtime, but for the number of its kernel, which the caller knows;
 * PTO_ERROR_INVALID_ARGS, naming the argument. */
gboolean pto_arg_find_reduction (const PtoArg *arg, guint index, gint32 *combine, guint64 *initial,
                                 GError **error);
/* What a word of pto_orchestrator_submit_full() says of the value behind it; FALSE: nothing. */
gboolean pto_arg_set_word (PtoArg *arg, const char *word);
/* The 64 bits that a kernel gets of a scalar. */
guint64 pto_arg_get_word (const PtoArg *arg);
/* What looks at arguments. */
typedef enum
{
  PTO_ARGS_OF_WORKER, /* a function or a worker below, which gets each with its type */
  PTO_ARGS_OF_GRAPH,  /* a capture or a launch: 64 bits of a number */
  PTO_ARGS_OF_CHIP    /* a chip here: the same, and the memory must be here */
} PtoArgsUse;

/* Can they be used so? run, kept: of pto_tensor_admit(). PTO_ERROR_INVALID_ARGS, naming the
 * argument. */
gboolean pto_args_admit (const PtoArg *args, guint n_args, PtoArgsUse use, guint64 run,
                         GHashTable **kept, GError **error);
gboolean pto_arg_prepare_scratch (const PtoArg *arg, guint index, PTO2Runtime *rt, guint64 run,
                                  PTOParam *param, GError **error);
/* Puts the argument before what an error says, if there is one. FALSE. */
gboolean pto_arg_name_error (guint index, GError **error);
/* A tensor as a machine's run takes it. FALSE with an error: refused; without: the run has failed.
 * Orchestrator thread. */
static inline gboolean
pto_arg_prepare (const PtoArg *arg, guint index, PTO2Runtime *rt, guint64 run, PTOParam *param,
                 GError **error)
{
  param->type = (PTOParamType) arg->direction;
  param->scalar = 0;
  if (G_UNLIKELY (arg->direction == PTO_DIRECTION_SCRATCH))
    return pto_arg_prepare_scratch (arg, index, rt, run, param, error);
  return pto_tensor_prepare (arg->tensor, rt, run,
                             arg->direction != PTO_DIRECTION_OUTPUT
                                 && arg->direction != PTO_DIRECTION_REDUCTION,
                             &param->tensor, error)
         || pto_arg_name_error (index, error);
}
/* Their memory can not be written: the sentence. */
void pto_args_set_not_writable (guint index, PtoDirection direction, GError **error);
static inline gboolean
pto_direction_writes (PtoDirection direction)
{
  return direction == PTO_DIRECTION_OUTPUT || direction == PTO_DIRECTION_INOUT
         || direction == PTO_DIRECTION_OUTPUT_EXISTING || direction == PTO_DIRECTION_COMMUTATIVE
         || direction == PTO_DIRECTION_REDUCTION;
}
/* Whose memory an output goes to is none of its kernel's business. */
static inline gboolean
pto_direction_fits (PtoDirection expected, PtoDirection given)
{
  return given == expected
         || (expected == PTO_DIRECTION_OUTPUT && given == PTO_DIRECTION_OUTPUT_EXISTING);
}
/* The tag in words. */
const char *pto_direction_describe (PtoDirection direction);

/* What a submit says beside its arguments. */
typedef struct
{
  GArray *after;        /* guint64: tasks that it comes after; NULL: none */
  PtoTensor *condition; /* of which one element decides; NULL: none */
  guint64 index[PTO2_TENSOR_MAX_DIMS];
  gsize n_index;
  /* More than one kernel on one core, or where that is. */
  gboolean has_block_dim;
  int block_dim; /* as it was given */
  gboolean sync_start;
  gboolean has_cluster;
  int cluster;
  guint n_reductions; /* of its arguments */
} PtoTaskTerms;

static inline gboolean
pto_task_terms_is_several (const PtoTaskTerms *terms)
{
  return terms->has_block_dim || terms->sync_start || terms->has_cluster;
}
/* Which of these it says, in words; NULL: none. */
const char *pto_task_terms_describe_several (const PtoTaskTerms *terms);
/* A group is one task: the condition of one of its members is that of all. FALSE: there is one
 * already. */
gboolean pto_task_terms_take_condition (PtoTaskTerms *group, const PtoTaskTerms *member,
                                        GError **error);

/* args: NULL for none. What is not for a call that is no submit is refused:
 * pto_task_args_check_terms(). */
const PtoTaskTerms *pto_task_args_get_terms (const PtoTaskArgs *args);
gboolean pto_task_args_check_terms (const PtoTaskArgs *args, gboolean may_reduce, GError **error);

const PtoArg *pto_task_args_peek (const PtoTaskArgs *args, guint *n_args);
PtoTaskArgs *pto_task_args_copy (const PtoTaskArgs *args);

/* What a tensor is on its way to another worker; the address may be 0. index: of the argument, for
 * the message. Fails with PTO_ERROR_INVALID_ARGS: not contiguous, or an extent of 2^32 or more. */
gboolean pto_task_args_pack_tensor (const PtoTaskArgs *args, guint index,
                                    struct pto_continuous_tensor *packed, GError **error);
/* A worker's call has tensors first, then scalars. PTO_ERROR_INVALID_ARGS, naming the argument. */
gboolean pto_task_args_check_order (const PtoTaskArgs *args, GError **error);
/* The child's side: what the view says, instead of what was there; no directions, and all scalars
 * unsigned. */
void pto_task_args_set_view (PtoTaskArgs *args, const struct pto_args_view *view);
/* Then: a PtoScalarKind for each scalar, which is as it was in its PtoArg. NULL: nothing to say. */
void pto_task_args_set_kinds (PtoTaskArgs *args, const guint8 *kinds);
/* What pto_task_args_is_cancelled() asks; NULL: nothing. Not while another thread may ask. */
void pto_task_args_set_cancelled (PtoTaskArgs *args, bool (*is_cancelled) (void *data),
                                  gpointer data);
/* Has somebody else a reference, who may still look at it? */
gboolean pto_task_args_is_shared (PtoTaskArgs *args);

G_END_DECLS
