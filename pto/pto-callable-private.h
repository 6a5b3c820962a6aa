/* pto-callable-private.h: what does a worker know of a callable?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../sim/chip.h"

#include "pto-callable.h"
#include "pto-compiler-private.h"

G_BEGIN_DECLS

/* The most function ids of an orchestration, and the most kernels that closures of one worker
 * submit. */
#define PTO_MAX_KERNELS 4096u

typedef struct
{
  guint func_id;
  char *name;
  PtoCallable *kernel;
} PtoChipKernel;

struct _PtoCallable
{
  GObject parent_instance;

  PtoCallableKind kind;
  PtoCoreType core_type;
  PtoLanguage language;
  char *path;   /* absolute */
  char *symbol; /* of the kernel or of the orchestration's entry */
  char *name;

  char *cost_text;
  struct pto_cost cost; /* points are those of cost_points */
  GArray *cost_points;  /* struct pto_cost_point, or NULL */

  GArray *signature; /* PtoDirection, or NULL */
  GArray *kernels;   /* of an orchestration: PtoChipKernel, ascending func_id */
};

/* A copy of the cost with points of its own, to be freed by the caller when not NULL. */
struct pto_cost pto_callable_dup_cost (PtoCallable *kernel, struct pto_cost_point **points);

G_END_DECLS
