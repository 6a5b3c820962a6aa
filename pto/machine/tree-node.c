/* tree-node.c: where in its tree is a worker, and what is it made of?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tree-node.h"

#include "base/error.h"
#include "base/locks.h"
#include "common/text.h"

#include <unistd.h>

/* As many of its workers are named by a message. */
#define IDS_SHOWN 16

/* A language's way of doing something, of which a process has one at most. */
typedef struct
{
  gpointer func; /* atomic; W: once, under PTO_LOCK_DEFAULTS, behind user_data */
  gpointer user_data;
} Default;

static Default default_fork;
static Default default_import;

void
pto_tree_node_clear (PtoTreeNode *self)
{
  for (guint i = 0; i < self->children->len; i++)
    pto_tree_node_peek_child (self, i)->parent = NULL;
  g_clear_pointer (&self->children, g_ptr_array_unref);
  g_clear_pointer (&self->remote, pto_remote_spec_free);
  g_free (self->platform);
  g_free (self->path);
  if (self->fork_destroy != NULL)
    self->fork_destroy (self->fork_data);
  if (self->import_destroy != NULL)
    self->import_destroy (self->import_data);
}

char *
pto_tree_node_dup_path (const PtoTreeNode *self)
{
  g_autofree char *above = NULL;

  if (self->path != NULL)
    return g_strdup (self->path);
  if (self->parent == NULL)
    return g_strdup_printf ("L%u/%u", self->level, self->device_id);
  above = pto_tree_node_dup_path (self->parent);
  return g_strdup_printf ("%s/L%u/%u", above, self->level, self->id);
}

PtoNodePath
pto_tree_node_get_path (const PtoTreeNode *self)
{
  g_autofree char *path = pto_tree_node_dup_path (self);
  PtoNodePath made;

  g_strlcpy (made.text, path, sizeof made.text);
  return made;
}

PtoTreeNode *
pto_tree_node_peek_child (const PtoTreeNode *self, guint number)
{
  return g_ptr_array_index (self->children, number);
}

gboolean
pto_tree_node_find_child (const PtoTreeNode *self, guint id, guint *number)
{
  /* Its place, as a rule. */
  *number = id;
  if (id < self->children->len && pto_tree_node_peek_child (self, id)->id == id)
    return TRUE;
  for (*number = 0; *number < self->children->len; ++*number)
    if (pto_tree_node_peek_child (self, *number)->id == id)
      return TRUE;
  return FALSE;
}

char *
pto_tree_node_describe_ids (const PtoTreeNode *self)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < self->children->len && i < IDS_SHOWN; i++)
    g_string_append_printf (text, "%s%u", i > 0 ? ", " : "",
                            pto_tree_node_peek_child (self, i)->id);
  if (self->children->len > IDS_SHOWN)
    g_string_append (text, ", ...");
  return g_string_free (text, FALSE);
}

pid_t
pto_tree_node_fork (const PtoTreeNode *self)
{
  PtoForkFunc func;

  while (self->fork == NULL && self->parent != NULL)
    self = self->parent;
  if (self->fork != NULL)
    return self->fork (self->fork_data);
  func = (PtoForkFunc) g_atomic_pointer_get (&default_fork.func);
  return func != NULL ? func (default_fork.user_data) : fork ();
}

PtoCallable *
pto_tree_node_import (const PtoTreeNode *self, PtoCallableKind kind, const char *path,
                      GError **error)
{
  PtoImportFunc func;

  while (self->import == NULL && self->parent != NULL)
    self = self->parent;
  if (self->import != NULL)
    return self->import (kind, path, self->import_data, error);
  func = (PtoImportFunc) g_atomic_pointer_get (&default_import.func);
  if (func != NULL)
    return func (kind, path, default_import.user_data, error);
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
               _ ("\"%s\" can not be imported: no interpreter has said how, see "
                  "pto_worker_set_import_func()"),
               path);
  return NULL;
}

static void
set_default (Default *way, gpointer func, gpointer user_data, GDestroyNotify destroy)
{
  gboolean is_first;

  pto_lock (PTO_LOCK_DEFAULTS);
  is_first = way->func == NULL;
  if (is_first)
    {
      way->user_data = user_data;
      /* seq_cst: behind user_data; pairs with the load of whoever calls it. */
      g_atomic_pointer_set (&way->func, func);
    }
  pto_unlock (PTO_LOCK_DEFAULTS);
  if (!is_first && destroy != NULL)
    destroy (user_data);
}

void
pto_tree_node_set_default_fork (PtoForkFunc func, gpointer user_data, GDestroyNotify destroy)
{
  set_default (&default_fork, (gpointer) func, user_data, destroy);
}

void
pto_tree_node_set_default_import (PtoImportFunc func, gpointer user_data, GDestroyNotify destroy)
{
  set_default (&default_import, (gpointer) func, user_data, destroy);
}
