/* pto-kernel-private.h: what is there of a kernel beyond what a callable has?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../sim/chip.h"

#include "pto-callable-private.h"
#include "pto-kernel.h"
#include "pto-task-args-private.h"

G_BEGIN_DECLS

/* In a signature: an argument of which only is known that it is there. */
#define PTO_CALLABLE_ANY_DIRECTION ((PtoDirection) 0xff)

struct _PtoKernel
{
  PtoCallable parent_instance;

  PtoCoreType core_type;
  char *cost_text;
  struct pto_cost cost; /* points are those of cost_points */
  GArray *cost_points;  /* struct pto_cost_point, or NULL */
  GArray *signature;    /* PtoDirection, PTO_CALLABLE_ANY_DIRECTION when only the number is known;
                           or NULL */
};

struct _PtoKernelClass
{
  PtoCallableClass parent_class;
};

/* A copy of the cost with points of its own, to be freed by the caller when not NULL. */
struct pto_cost pto_kernel_dup_cost (PtoKernel *kernel, struct pto_cost_point **points);

/* Does it not say that it takes something else than a kernel that combines what is reduced? */
gboolean pto_kernel_may_combine (PtoKernel *kernel);
/* Are these of the number and the directions that it says it takes? FALSE, too: it is none. */
gboolean pto_kernel_check_args (PtoCallable *kernel, const PtoArg *args, guint n_args,
                                GError **error);

G_END_DECLS
