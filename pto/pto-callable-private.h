/* pto-callable-private.h: what does a worker know of a callable?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../sim/chip.h"

#include "pto-callable.h"
#include "pto-compiler-private.h"

#include <sys/types.h>

G_BEGIN_DECLS

/* The most function ids of an orchestration, and the most kernels that closures of one worker
 * submit. */
#define PTO_MAX_KERNELS 4096u

/* The most arguments of one task on a chip. */
#define PTO_MAX_KERNEL_ARGS 128

/* What tells a closure from all others, in every process. */
#define PTO_CLOSURE_SIZE 16

typedef struct
{
  guint func_id;
  char *name;
  PtoCallable *kernel;
} PtoChipKernel;

/* In a signature: an argument of which only is known that it is there. */
#define PTO_CALLABLE_ANY_DIRECTION ((PtoDirection) 0xff)

struct _PtoCallable
{
  GObject parent_instance;

  guint64 serial; /* no other one of this process has it, also later at the same address */
  PtoCallableKind kind;
  PtoCallableSource source;
  PtoCoreType core_type;
  PtoLanguage language;
  char *path;        /* absolute; of a library that was named without one, and without file: NULL */
  char *symbol;      /* of the kernel, of the orchestration's entry, of the function */
  char *library;     /* of a symbol, as it was given */
  char *import_path; /* module:qualname */
  char *name;

  /* A closure. */
  guint8 closure[PTO_CLOSURE_SIZE];
  PtoSubFunc sub;                     /* of kind SUB; NULL for all others */
  PtoOrchestrationFunc orchestration; /* of kind ORCHESTRATION; NULL for all others */
  gpointer func_data;
  GDestroyNotify destroy;
  GMainContext *context; /* where destroy belongs */
  GThread *owner;        /* whose default context that was */
  pid_t process;         /* where it was made: a copy in a child destroys nothing */

  char *cost_text;
  struct pto_cost cost; /* points are those of cost_points */
  GArray *cost_points;  /* struct pto_cost_point, or NULL */

  GArray *signature; /* PtoDirection, PTO_CALLABLE_ANY_DIRECTION when only the number is known; or
                        NULL */
  GArray *kernels;   /* of an orchestration: PtoChipKernel, ascending func_id */
};

/* a kernel, an orchestration for a chip, ... */
const char *pto_callable_describe_kind (PtoCallableKind kind);
/* The closure of this process that has these PTO_CLOSURE_SIZE bytes, also one that its parent made
 * before the fork; a reference, or NULL. Any thread. */
PtoCallable *pto_callable_find_closure (const guint8 *closure);
/* Of a closure that is being disposed of: a reference that was found before this keeps it from
 * being finalized, and none can be found afterwards. */
void pto_callable_hide_closure (PtoCallable *closure);
/* Of one that is being finalized: destroys its data in the context where that is at home. */
void pto_callable_destroy_closure (PtoCallable *closure);
/* what: why not. */
gboolean pto_callable_check_kind (PtoCallable *callable, PtoCallableKind kind, const char *what,
                                  GError **error);
/* A copy of the cost with points of its own, to be freed by the caller when not NULL. */
struct pto_cost pto_callable_dup_cost (PtoCallable *kernel, struct pto_cost_point **points);

G_END_DECLS
