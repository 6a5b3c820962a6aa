/* callable.c: what can a worker run: a kernel, an orchestration with its kernels, or a
 * function?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/locks.h"
#include "callable.h"

#include "base/binding.h"
#include "base/error.h"
#include "common/text.h"
#include "pto-enums.h"

/**
 * PtoCallable:
 *
 * Something a worker can run: a kernel, an orchestration for a chip together with the kernels that
 * it submits, or, on workers of level 3 and up, a function.
 *
 * A kernel and an orchestration for a chip name a C or C++ source, or a shared object that is built
 * already. Nothing is compiled before a worker needs it: [method@Pto.Worker.register] builds and
 * loads it. What is changed in a callable afterwards has no effect on workers that have it.
 *
 * A function for a SUB worker or for a worker of level 3 and up is a function of this process, a
 * symbol of a library, or a path that an interpreter imports. The last two are looked up in the
 * process that runs them.
 *
 * Source: seed 001 section 2, seed 000 section 11. Thread safety: one thread at a time. A fork
 * copies the object: the copy can be called, and what was given to be destroyed with it is
 * destroyed only in the process that made it.
 *
 * Since: 0.1
 */
G_DEFINE_ABSTRACT_TYPE_WITH_CODE (PtoCallable, pto_callable, G_TYPE_OBJECT, pto_override_look ())

enum
{
  PROP_NAME = 1,
  PROP_KIND,
  PROP_SOURCE,
  PROP_PATH,
  PROP_IDEMPOTENT,
  N_PROPERTIES
};

static GParamSpec *properties[N_PROPERTIES];

static void
pto_callable_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  PtoCallable *self = PTO_CALLABLE (object);

  switch (id)
    {
    case PROP_NAME:
      g_value_set_string (value, self->name);
      break;
    case PROP_KIND:
      g_value_set_enum (value, (int) self->kind);
      break;
    case PROP_SOURCE:
      g_value_set_enum (value, (int) self->source);
      break;
    case PROP_PATH:
      g_value_take_string (value, self->path != NULL ? g_filename_display_name (self->path) : NULL);
      break;
    case PROP_IDEMPOTENT:
      g_value_set_boolean (value, self->idempotent);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
pto_callable_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  if (id == PROP_NAME && g_value_get_string (value) != NULL)
    pto_callable_set_name (PTO_CALLABLE (object), g_value_get_string (value));
  else if (id == PROP_IDEMPOTENT)
    pto_callable_set_idempotent (PTO_CALLABLE (object), g_value_get_boolean (value));
  else if (id != PROP_NAME)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
pto_callable_finalize (GObject *object)
{
  PtoCallable *self = PTO_CALLABLE (object);

  g_free (self->path);
  g_free (self->name);
  G_OBJECT_CLASS (pto_callable_parent_class)->finalize (object);
}

static const char *
get_file (PtoCallable *self)
{
  return self->path;
}

static void
pto_callable_class_init (PtoCallableClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  klass->get_origin = get_file;
  object_class->get_property = pto_callable_get_property;
  object_class->set_property = pto_callable_set_property;
  object_class->finalize = pto_callable_finalize;

  /**
   * PtoCallable:name: (getter get_name) (setter set_name)
   *
   * What messages and traces call it; %NULL changes nothing.
   *
   * Since: 0.1
   */
  properties[PROP_NAME]
      = g_param_spec_string ("name", NULL, NULL, NULL,
                             G_PARAM_READWRITE | G_PARAM_EXPLICIT_NOTIFY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoCallable:kind: (getter get_kind)
   *
   * What it is.
   *
   * Since: 0.1
   */
  properties[PROP_KIND]
      = g_param_spec_enum ("kind", NULL, NULL, PTO_TYPE_CALLABLE_KIND, PTO_CALLABLE_KERNEL,
                           G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * PtoCallable:source: (getter get_source)
   *
   * Where it comes from.
   *
   * Since: 0.1
   */
  properties[PROP_SOURCE]
      = g_param_spec_enum ("source", NULL, NULL, PTO_TYPE_CALLABLE_SOURCE,
                           PTO_CALLABLE_SOURCE_OBJECT, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * PtoCallable:path: (getter get_path)
   *
   * The file it is made from, as text that can be shown: a name that is not UTF-8 is another one
   * here.
   *
   * Since: 0.1
   */
  properties[PROP_PATH]
      = g_param_spec_string ("path", NULL, NULL, NULL, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * PtoCallable:idempotent: (getter get_idempotent) (setter set_idempotent)
   *
   * Does it do no harm to run a task of it more than once?
   *
   * Since: 0.1
   */
  properties[PROP_IDEMPOTENT]
      = g_param_spec_boolean ("idempotent", NULL, NULL, FALSE,
                              G_PARAM_READWRITE | G_PARAM_EXPLICIT_NOTIFY | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPERTIES, properties);
}

static void
pto_callable_init (PtoCallable *self)
{
  static gsize serials; /* atomic */

  self->serial = (guint64) g_atomic_pointer_add (&serials, 1) + 1;
  self->name = g_strdup ("unnamed");
}

gpointer
pto_callable_make (GType type, PtoCallableKind kind, PtoCallableSource source, const char *name)
{
  PtoCallable *callable = g_object_new (type, NULL);

  callable->kind = kind;
  callable->source = source;
  callable->is_made = TRUE;
  g_free (callable->name);
  callable->name = g_utf8_make_valid (name, -1);
  return callable;
}

gboolean
pto_callable_is_identifier (const char *text)
{
  if (!g_ascii_isalpha (*text) && *text != '_')
    return FALSE;
  while (g_ascii_isalnum (*text) || *text == '_')
    text++;
  return *text == '\0';
}

const char *
pto_callable_get_origin (PtoCallable *callable)
{
  return ((PtoCallableClass *) G_OBJECT_GET_CLASS (callable))->get_origin (callable);
}

const char *
pto_callable_describe_kind (PtoCallableKind kind)
{
  static const char *const names[]
      = { "a kernel", "an orchestration for a chip", "a function for a SUB worker",
          "an orchestration for a worker of level 3 or up" };

  return (guint) kind < G_N_ELEMENTS (names) ? names[kind] : "nothing known";
}

/**
 * pto_callable_get_source:
 * @callable: a callable
 *
 * Asks where it comes from.
 *
 * Thread safety: any thread.
 *
 * Returns: a source
 *
 * Since: 0.1
 */
PtoCallableSource
pto_callable_get_source (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), PTO_CALLABLE_SOURCE_OBJECT);

  return callable->source;
}

gboolean
pto_callable_check_made (PtoCallable *callable, GError **error)
{
  if (callable->is_made)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("\"%s\" (%s) was not made by a constructor: there is nothing to run"),
               callable->name, G_OBJECT_TYPE_NAME (callable));
  return FALSE;
}

/**
 * pto_callable_get_kind:
 * @callable: a callable
 *
 * Asks what it is.
 *
 * Thread safety: any thread.
 *
 * Returns: a kind
 *
 * Since: 0.1
 */
PtoCallableKind
pto_callable_get_kind (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), PTO_CALLABLE_KERNEL);

  return callable->kind;
}

/**
 * pto_callable_get_path:
 * @callable: a callable
 *
 * Gives the file it is made from.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (type filename) (nullable): an absolute path; %NULL for a function of
 * this process, an import path, and a library that the loader has to find
 *
 * Since: 0.1
 */
const char *
pto_callable_get_path (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);

  return callable->path;
}

/**
 * pto_callable_get_name:
 * @callable: a callable
 *
 * Gives what messages and traces call it; at first the file's name without its suffix, or the
 * function's.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none): a name
 *
 * Since: 0.1
 */
const char *
pto_callable_get_name (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);

  return callable->name;
}

/**
 * pto_callable_set_name:
 * @callable: a callable
 * @name: a name
 *
 * Sets what messages and traces call it.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_callable_set_name (PtoCallable *callable, const char *name)
{
  char *copy;
  char *old;

  g_return_if_fail (PTO_IS_CALLABLE (callable));
  g_return_if_fail (name != NULL);

  copy = g_utf8_make_valid (name, -1);
  pto_lock (PTO_LOCK_KERNELS);
  old = callable->name;
  callable->name = copy;
  pto_unlock (PTO_LOCK_KERNELS);
  g_free (old);
  g_object_notify_by_pspec (G_OBJECT (callable), properties[PROP_NAME]);
}

/**
 * pto_callable_get_idempotent:
 * @callable: a callable
 *
 * Asks whether it was said that to run a task of it more than once does no harm.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %TRUE if so; at first %FALSE
 *
 * Since: 0.1
 */
gboolean
pto_callable_get_idempotent (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), FALSE);

  return callable->idempotent;
}

/**
 * pto_callable_set_idempotent:
 * @callable: a callable
 * @idempotent: whether it is
 *
 * Says whether to run a task of it more than once does no harm.
 *
 * A worker that the callable is registered on from then on runs a task of it again that was lost
 * with the child that ran it ([error@Pto.Error.WORKER_LOST]): on another child, or the next life of
 * the one that the task names, as often as the parameter `retries` says. What the lost one has
 * written is not seen, what comes after the task waits. That is so of tasks that read none of the
 * memory that they write, neither by their tags (INOUT, COMMUTATIVE, OUTPUT_EXISTING) nor because
 * tensors overlap, and have no NO_DEP tensor and none that stays at its worker; a group is run
 * again as a whole. All other tasks are run at most once, as are all of a callable of which nothing
 * was said. The callable's own side effects, such as files, may happen more than once.
 *
 * Where the same callable is registered several times the last one says it. Thread safety: one
 * thread at a time.
 *
 * Since: 0.1
 */
void
pto_callable_set_idempotent (PtoCallable *callable, gboolean idempotent)
{
  g_return_if_fail (PTO_IS_CALLABLE (callable));

  idempotent = !!idempotent;
  if (callable->idempotent == idempotent)
    return;
  callable->idempotent = idempotent;
  g_object_notify_by_pspec (G_OBJECT (callable), properties[PROP_IDEMPOTENT]);
}

/**
 * pto_callable_to_string:
 * @callable: a callable
 *
 * Says what it is and where it comes from, for people.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer full): such as `the kernel "add" of /home/me/add.c`
 *
 * Since: 0.1
 */
char *
pto_callable_to_string (PtoCallable *callable)
{
  static const char *const kinds[]
      = { "the kernel", "the chip's orchestration", "the SUB function", "the orchestration" };
  g_autofree char *shown = NULL;
  const char *from;

  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);

  if (!callable->is_made)
    return g_strdup_printf ("%s that was not made by a constructor", kinds[callable->kind]);
  from = pto_callable_get_origin (callable);
  shown = from != NULL ? g_filename_display_name (from) : g_strdup ("this process");
  return g_strdup_printf ("%s \"%s\" of %s", kinds[callable->kind], callable->name, shown);
}
