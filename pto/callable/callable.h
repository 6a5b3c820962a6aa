/* callable.h: what have callables of every kind?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-callable.h"

G_BEGIN_DECLS

struct _PtoCallable
{
  GObject parent_instance;

  guint64 serial; /* no other one of this process has it, also later at the same address */
  PtoCallableKind kind;
  PtoCallableSource source;
  gboolean idempotent;
  gboolean is_made; /* by a constructor: then its type is that of its kind and source */
  char *path;       /* absolute; of a library that was named without one, and without file: NULL */
  char *name;
};

struct _PtoCallableClass
{
  GObjectClass parent_class;

  /* What a person would say it comes from: its path, if it has no better answer; NULL: this
   * process. */
  const char *(*get_origin) (PtoCallable *callable);
};

/* Of a final type, complete but for what only that has. */
gpointer pto_callable_make (GType type, PtoCallableKind kind, PtoCallableSource source,
                            const char *name);
/* A program can make objects by their types alone: those are nothing that can be run. */
gboolean pto_callable_check_made (PtoCallable *callable, GError **error);
/* What messages say it is of; NULL: this process. */
const char *pto_callable_get_origin (PtoCallable *callable);
/* Also what may become part of a C source. */
gboolean pto_callable_is_identifier (const char *text);

/* a kernel, an orchestration for a chip, ... */
const char *pto_callable_describe_kind (PtoCallableKind kind);
/* In place of a module, in an import path: behind it is the function itself, as an interpreter has
 * serialized it. It is for remote workers only, where both ends say so. */
#define PTO_SERIALIZED_PYTHON "__serialized_python__:"

G_END_DECLS
