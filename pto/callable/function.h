/* function.h: where does a function come from that a worker calls?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "callable.h"
#include "pto-function.h"

#include <sys/types.h>

G_BEGIN_DECLS

/* What tells a closure from all others, in every process. */
#define PTO_CLOSURE_SIZE 16

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
  char *import_path;     /* module:qualname, of the same function; or NULL */
  gboolean is_javascript;
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

  char *symbol;      /* of a library; NULL: an import path */
  char *library;     /* of a symbol, as it was given */
  char *import_path; /* module:qualname */
};

struct _PtoImportedFunctionClass
{
  PtoCallableClass parent_class;
};

/* module:qualname? PTO_ERROR_INVALID_ARGS. */
gboolean pto_callable_check_import_path (const char *path, GError **error);
/* NULL for all that are no closures. */
PtoClosure *pto_callable_get_closure (PtoCallable *callable);
/* A function of JavaScript, which only its own thread can call. */
gboolean pto_callable_is_javascript (PtoCallable *callable);
/* The closure of this process that has these PTO_CLOSURE_SIZE bytes, also one that its parent made
 * before the fork; a reference, or NULL. Any thread. */
PtoCallable *pto_callable_find_closure (const guint8 *id);

G_END_DECLS
