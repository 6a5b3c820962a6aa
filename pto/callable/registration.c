/* registration.c: what does a worker keep of a callable that it has?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * And, of a function, where it is in this process, and how it is called.
 */
#include "config.h"

#include "registration.h"

#include "exec/libc-hooks.h"

#include "base/error.h"
#include "common/text.h"
#include "compile/loaded-object.h"
#include "compile/object-file.h"
#include "mpi/rank-client.h"
#include "call-foreign.h"
#include "function.h"

#include <dlfcn.h>
#include <string.h>

/* --- life --- */

static void
registration_clear (gpointer data)
{
  PtoRegistration *registration = data;

  if (registration->free_loaded != NULL)
    registration->free_loaded (registration->loaded);
  g_clear_object (&registration->imported);
  if (registration->module != NULL && !pto_foreign_outlives (registration->module))
    dlclose (registration->module);
  g_clear_pointer (&registration->handle, pto_callable_handle_unref);
  g_clear_pointer (&registration->descriptor, g_bytes_unref);
  g_clear_pointer (&registration->sources, g_bytes_unref);
  g_clear_pointer (&registration->objects, g_ptr_array_unref);
  g_clear_pointer (&registration->contents, g_byte_array_unref);
  g_clear_object (&registration->callable);
  g_free (registration->name);
  g_free (registration->targets);
  g_clear_pointer (&registration->old_targets, g_ptr_array_unref);
}

void
pto_registration_set_targets (PtoRegistration *registration, const PtoTargets *targets)
{
  gpointer before = registration->targets;

  if (before != NULL && registration->old_targets == NULL)
    registration->old_targets = g_ptr_array_new_with_free_func (g_free);
  if (before != NULL)
    g_ptr_array_add (registration->old_targets, before);
  g_atomic_pointer_set (&registration->targets,
                        targets != NULL ? g_memdup2 (targets, sizeof *targets) : NULL);
}

PtoRegistration *
pto_registration_ref (PtoRegistration *registration)
{
  return g_atomic_rc_box_acquire (registration);
}

void
pto_registration_unref (PtoRegistration *registration)
{
  g_atomic_rc_box_release_full (registration, registration_clear);
}

PtoRegistration *
pto_registration_take (PtoCallable *callable, const char *name, PtoTargetNamespace target,
                       GBytes *descriptor, GBytes *sources, GPtrArray *objects,
                       GByteArray *contents)
{
  PtoRegistration *registration = g_atomic_rc_box_new0 (PtoRegistration);

  registration->callable = g_object_ref (callable);
  registration->name = g_strdup (name);
  registration->target = target;
  registration->descriptor = descriptor;
  registration->sources = sources;
  registration->objects = objects;
  registration->contents = contents;
  pto_digest_data (g_bytes_get_data (descriptor, NULL), g_bytes_get_size (descriptor),
                   registration->digest);
  return registration;
}

/* --- functions --- */

static gboolean
resolve_symbol (PtoRegistration *registration, GError **error)
{
  PtoCallable *callable = registration->callable;
  const char *library
      = callable->path != NULL ? callable->path : PTO_IMPORTED_FUNCTION (callable)->library;
  g_autofree char *prefix = NULL;
  g_autofree char *data = NULL;
  g_autofree char *refusal = NULL;
  const char *why;
  gpointer module;
  gpointer symbol;
  gsize size;

  if (g_file_get_contents (library, &data, &size, NULL))
    refusal = pto_object_file_explain_sanitizer (data, size);
  module = refusal == NULL ? pto_foreign_load (library, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (module == NULL)
    {
      why = refusal != NULL ? refusal : dlerror ();
      prefix = g_strconcat (library, ": ", NULL);
      if (why != NULL && g_str_has_prefix (why, prefix))
        why += strlen (prefix);
      g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, _ ("\"%s\": %s: can not be loaded: %s"),
                   registration->name, library, why != NULL ? why : _ ("no reason given"));
      return FALSE;
    }
  symbol = dlsym (module, PTO_IMPORTED_FUNCTION (callable)->symbol);
  if (symbol == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, _ ("\"%s\": %s: exports no function %s"),
                   registration->name, library, PTO_IMPORTED_FUNCTION (callable)->symbol);
      dlclose (module);
      return FALSE;
    }
  if (callable->path != NULL
      && !pto_module_check_library (library, registration->contents->data, registration->name,
                                    module, error))
    {
      dlclose (module);
      return FALSE;
    }
  registration->module = module;
  registration->function = (GCallback) symbol;
  registration->is_native = TRUE;
  return TRUE;
}

static void
use_closure (PtoRegistration *registration, PtoCallable *callable)
{
  const PtoClosure *closure = pto_callable_get_closure (callable);

  registration->function = closure->func;
  registration->function_data = closure->data;
  registration->is_native = pto_function_is_native (closure->func);
}

typedef struct
{
  PtoImportFunc importer;
  gpointer data;
  PtoCallableKind kind;
  const char *path;
  PtoCallable *imported;
  GError *error;
} Import;

static void
import_it (gpointer data)
{
  Import *import = data;

  import->imported = import->importer (import->kind, import->path, import->data, &import->error);
}

static gboolean
resolve_import (PtoRegistration *registration, PtoImportFunc importer, gpointer importer_data,
                GError **error)
{
  PtoCallable *callable = registration->callable;
  const char *path = PTO_IMPORTED_FUNCTION (callable)->import_path;
  Import import = { importer, importer_data, callable->kind, path, NULL, NULL };
  g_autoptr (PtoCallable) imported = NULL;
  GError *local = NULL;

  registration->function = (GCallback) pto_remote_rank_find (path);
  if (registration->function != NULL && callable->kind == PTO_CALLABLE_ORCHESTRATION)
    {
      registration->is_native = TRUE;
      return TRUE;
    }
  registration->function = NULL;
  if (importer == NULL)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
          _ ("\"%s\" has to be imported (%s), and this program has nothing that imports: set "
             "an import function on the worker"),
          registration->name, path);
      return FALSE;
    }
  pto_call_other (import_it, &import, path);
  imported = import.imported;
  local = import.error;
  if (imported == NULL && local == NULL)
    g_set_error (&local, PTO_ERROR, PTO_ERROR_NOT_FOUND, _ ("%s: there is no such function"), path);
  if (local != NULL)
    {
      pto_error_make_valid (local);
      g_propagate_error (error, local);
      return FALSE;
    }
  if (imported->kind != callable->kind || pto_callable_get_closure (imported) == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("%s: the import function gave %s instead of %s"), path,
                   pto_callable_get_closure (imported) == NULL
                       ? _ ("no function of this process")
                       : pto_callable_describe_kind (imported->kind),
                   pto_callable_describe_kind (callable->kind));
      return FALSE;
    }
  registration->imported = g_steal_pointer (&imported);
  use_closure (registration, registration->imported);
  return TRUE;
}

gboolean
pto_registration_resolve (PtoRegistration *registration, PtoImportFunc importer,
                          gpointer importer_data, GError **error)
{
  PtoCallable *callable = registration->callable;

  if (registration->function != NULL)
    return TRUE;
  switch (callable->source)
    {
    case PTO_CALLABLE_SOURCE_SYMBOL:
      return resolve_symbol (registration, error);
    case PTO_CALLABLE_SOURCE_IMPORT:
      return resolve_import (registration, importer, importer_data, error);
    case PTO_CALLABLE_SOURCE_CLOSURE:
      use_closure (registration, callable);
      return TRUE;
    case PTO_CALLABLE_SOURCE_OBJECT:
    default:
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("\"%s\" is %s: only a chip runs it"), registration->name,
                   pto_callable_describe_kind (callable->kind));
      return FALSE;
    }
}

typedef struct
{
  PtoRegistration *registration;
  PtoTaskArgs *args;
  GError *error;
  gboolean ok;
} SubCall;

static void
call_it (gpointer data)
{
  SubCall *call = data;
  PtoSubFunc func = (PtoSubFunc) call->registration->function;

  call->ok = func (call->args, call->registration->function_data, &call->error);
}

gboolean
pto_registration_call_sub (PtoRegistration *registration, PtoTaskArgs *args, GError **error)
{
  SubCall call = { registration, args, NULL, FALSE };
  GError *local = NULL;
  gboolean ok;

  if (!registration->is_native)
    pto_call_other (call_it, &call, registration->name);
  else if (!pto_call_native (call_it, &call, registration->name, &call.error, &local))
    g_clear_error (&call.error);
  if (local == NULL)
    local = call.error;
  ok = call.ok;
  if (ok && local == NULL)
    return TRUE;
  if (local == NULL)
    g_set_error (&local, PTO_ERROR, PTO_ERROR_TASK_FAILED,
                 _ ("\"%s\" failed and did not say why: it must return TRUE when it is done"),
                 registration->name);
  g_propagate_error (error, local);
  return FALSE;
}
