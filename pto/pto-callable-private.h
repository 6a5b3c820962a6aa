/* pto-callable-private.h: what does a worker know of a callable?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../sim/chip.h"

#include "pto-callable.h"
#include "pto-chip-orchestration.h"
#include "pto-compiler-private.h"
#include "pto-function.h"
#include "pto-kernel.h"

#include <sys/types.h>

G_BEGIN_DECLS

/* What tells a closure from all others, in every process. */
#define PTO_CLOSURE_SIZE 16

/* In a signature: an argument of which only is known that it is there. */
#define PTO_CALLABLE_ANY_DIRECTION ((PtoDirection) 0xff)

struct _PtoCallable
{
  GObject parent_instance;

  guint64 serial; /* no other one of this process has it, also later at the same address */
  PtoCallableKind kind;
  PtoCallableSource source;
  gboolean is_made; /* by a constructor: then its type is that of its kind and source */
  PtoLanguage language;
  char *path;   /* absolute; of a library that was named without one, and without file: NULL */
  char *symbol; /* of the kernel, of the orchestration's entry, of the function; or NULL */
  char *name;
};

struct _PtoCallableClass
{
  GObjectClass parent_class;
};

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

typedef struct
{
  guint func_id;
  char *name;
  PtoCallable *kernel; /* a PtoKernel */
} PtoChipKernel;

struct _PtoChipOrchestration
{
  PtoCallable parent_instance;

  GArray *kernels; /* PtoChipKernel, ascending func_id */
};

struct _PtoChipOrchestrationClass
{
  PtoCallableClass parent_class;
};

/* A function of this process. */
typedef struct
{
  guint8 id[PTO_CLOSURE_SIZE];
  GCallback func; /* PtoSubFunc or PtoOrchestrationFunc; NULL: not made by a constructor */
  gpointer data;
  GDestroyNotify destroy;
  GMainContext *context; /* where destroy belongs */
  GThread *owner;        /* whose default context that was */
  pid_t process;         /* where it was made: a copy in a child destroys nothing */
} PtoClosure;

struct _PtoSubFunction
{
  PtoCallable parent_instance;

  PtoClosure closure;
};

struct _PtoSubFunctionClass
{
  PtoCallableClass parent_class;
};

struct _PtoOrchestrationFunction
{
  PtoCallable parent_instance;

  PtoClosure closure;
};

struct _PtoOrchestrationFunctionClass
{
  PtoCallableClass parent_class;
};

struct _PtoImportedFunction
{
  PtoCallable parent_instance;

  char *library;     /* of a symbol, as it was given */
  char *import_path; /* module:qualname */
};

struct _PtoImportedFunctionClass
{
  PtoCallableClass parent_class;
};

/* Of one of the types above, complete but for what only that has. */
gpointer pto_callable_make (GType type, PtoCallableKind kind, PtoCallableSource source,
                            const char *name);
/* Of a source or a shared object. */
PtoCallable *pto_callable_new_for_file (GType type, PtoCallableKind kind, const char *path,
                                        const char *symbol, GError **error);
/* A program can make objects by their types alone: those are nothing that can be run. */
gboolean pto_callable_check_made (PtoCallable *callable, GError **error);
/* Also what may become part of a C source. */
gboolean pto_callable_is_identifier (const char *text);

/* a kernel, an orchestration for a chip, ... */
const char *pto_callable_describe_kind (PtoCallableKind kind);
/* NULL for all that are no closures. */
PtoClosure *pto_callable_get_closure (PtoCallable *callable);
/* The closure of this process that has these PTO_CLOSURE_SIZE bytes, also one that its parent made
 * before the fork; a reference, or NULL. Any thread. */
PtoCallable *pto_callable_find_closure (const guint8 *id);
/* A copy of the cost with points of its own, to be freed by the caller when not NULL. */
struct pto_cost pto_kernel_dup_cost (PtoKernel *kernel, struct pto_cost_point **points);

G_END_DECLS
