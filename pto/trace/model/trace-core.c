/* trace-core.c: what can be asked of a core of a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-trace-items.h"

#include "trace-items.h"
#include "trace.h"

/**
 * PtoTraceCore:
 *
 * What tasks of a [class@Pto.Trace] ran on: a core of a chip, or a child of a worker of level 3 or
 * up.
 *
 * Thread safety: any thread. It keeps the trace. A fork keeps it usable in the child.
 *
 * Since: 0.1
 */
struct _PtoTraceCore
{
  GObject parent_instance;

  PtoTrace *trace;  /* the outermost */
  const char *path; /* the trace's */
  char *name;
  PtoTraceCoreKind kind;
  guint number;
  int cluster;
  guint64 busy;
  guint64 moved[PTO_TRACE_N_MOVED];
};

G_DEFINE_FINAL_TYPE (PtoTraceCore, pto_trace_core, G_TYPE_OBJECT)

static void
pto_trace_core_finalize (GObject *object)
{
  PtoTraceCore *self = PTO_TRACE_CORE (object);

  g_clear_object (&self->trace);
  g_free (self->name);
  G_OBJECT_CLASS (pto_trace_core_parent_class)->finalize (object);
}

static void
pto_trace_core_class_init (PtoTraceCoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_trace_core_finalize;
}

static void
pto_trace_core_init (PtoTraceCore *self)
{
  self->cluster = -1;
}

PtoTraceCore *
pto_trace_core_make (PtoTrace *trace, const char *path, PtoTrace *of, guint number, guint64 busy,
                     const guint64 moved[PTO_TRACE_N_MOVED])
{
  PtoTraceCore *self = g_object_new (PTO_TYPE_TRACE_CORE, NULL);
  guint cluster, type;

  self->trace = g_object_ref (trace);
  self->path = path;
  self->number = number;
  self->busy = busy;
  memcpy (self->moved, moved, sizeof self->moved);
  self->name = pto_trace_dup_core_name (of, number);
  pto_trace_locate_core (of, number, &cluster, &type);
  if (pto_trace_is_level (of))
    self->kind = type == 0 ? PTO_TRACE_CORE_WORKER : PTO_TRACE_CORE_SUB_WORKER;
  else
    {
      self->kind = type == PTO_CORE_TYPE_AIC ? PTO_TRACE_CORE_AIC : PTO_TRACE_CORE_AIV;
      self->cluster = (int) cluster;
    }
  return self;
}

/**
 * pto_trace_core_get_name:
 * @self: a core
 *
 * Names it, for example "AIV17": its type and its number among those of that type.
 *
 * Of a worker of level 3 or up a child: "L2/0", "sub1".
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a name
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (const char *, pto_trace_core_get_name, PtoTraceCore, PTO_IS_TRACE_CORE, NULL,
                  self->name != NULL ? self->name : "")

/**
 * pto_trace_core_get_path:
 * @self: a core
 *
 * Gives the worker that it belongs to, by its place in the tree: "L3/0/L2/1".
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a path; empty for a chip that is below nobody
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (const char *, pto_trace_core_get_path, PtoTraceCore, PTO_IS_TRACE_CORE, NULL,
                  self->path != NULL ? self->path : "")

/**
 * pto_trace_core_get_kind:
 * @self: a core
 *
 * Says what it is.
 *
 * Thread safety: any thread.
 *
 * Returns: its kind
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (PtoTraceCoreKind, pto_trace_core_get_kind, PtoTraceCore, PTO_IS_TRACE_CORE,
                  PTO_TRACE_CORE_AIC, self->kind)

/**
 * pto_trace_core_get_index:
 * @self: a core
 *
 * Gives its number among the cores of its worker; those of a cluster are neighbours, AIC before
 * AIV.
 *
 * Thread safety: any thread.
 *
 * Returns: a number, from 0
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint, pto_trace_core_get_index, PtoTraceCore, PTO_IS_TRACE_CORE, 0, self->number)

/**
 * pto_trace_core_get_cluster:
 * @self: a core
 *
 * Gives the cluster of the chip that it is in.
 *
 * Thread safety: any thread.
 *
 * Returns: a cluster; -1 for a child
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (int, pto_trace_core_get_cluster, PtoTraceCore, PTO_IS_TRACE_CORE, -1,
                  self->cluster)

/**
 * pto_trace_core_get_busy_ns:
 * @self: a core
 *
 * Gives how long tasks ran on it, over all runs of its worker, without the time in which they
 * waited for others.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_core_get_busy_ns, PtoTraceCore, PTO_IS_TRACE_CORE, 0,
                  self->busy)

/**
 * pto_trace_core_get_bytes_sent:
 * @self: a core
 *
 * Gives how much of tensors was sent to it, over all runs of its worker.
 *
 * Nothing is where it shares memory with that. What did not travel for one task alone counts, too:
 * copies that the program makes while a run is under way, for instance.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_core_get_bytes_sent, PtoTraceCore, PTO_IS_TRACE_CORE, 0,
                  self->moved[PTO_TRACE_SENT])

/**
 * pto_trace_core_get_bytes_received:
 * @self: a core
 *
 * Gives how much of tensors came from it, over all runs of its worker.
 *
 * What had stayed there, and was fetched when somebody needed it, counts, too.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_core_get_bytes_received, PtoTraceCore, PTO_IS_TRACE_CORE, 0,
                  self->moved[PTO_TRACE_RECEIVED])

/**
 * pto_trace_core_get_bytes_saved:
 * @self: a core
 *
 * Gives how much of tensors did not have to be sent to it, since it was there already.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_core_get_bytes_saved, PtoTraceCore, PTO_IS_TRACE_CORE, 0,
                  self->moved[PTO_TRACE_SAVED])

/**
 * pto_trace_core_to_string:
 * @self: a core
 *
 * Says what it is, for people.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): such as `L3/0/L2/1 AIV17, busy for 70 ns`
 *
 * Since: 0.1
 */
char *
pto_trace_core_to_string (PtoTraceCore *self)
{
  const char *path;

  g_return_val_if_fail (PTO_IS_TRACE_CORE (self), NULL);

  path = pto_trace_core_get_path (self);
  return g_strdup_printf ("%s%s%s, busy for %" G_GUINT64_FORMAT " ns", path,
                          path[0] != '\0' ? " " : "", pto_trace_core_get_name (self), self->busy);
}
