/* state.c: what do the workers of a process do, and what do they wait for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "state.h"

#include "common/json.h"
#include "machine/tree-node.h"
#include "pto-version.h"

#include <string.h>
#include <unistd.h>

/* --- workers --- */

static const char *
get_backend (const PtoMachine *machine)
{
  static const char *const names[] = { "par", "det", "threads" };
  guint64 backend = machine->params->values[PTO_PARAMETER_BACKEND];

  return backend < G_N_ELEMENTS (names) ? names[backend] : NULL;
}

typedef struct
{
  PtoMachine *machine;     /* compared with others; not used */
  const PtoTreeNode *node; /* the same */
  const PtoTreeNode *above;
  guint number;
  JsonObject *object; /* owned */
} Told;

static void
told_free (gpointer data)
{
  Told *told = data;

  json_object_unref (told->object);
  g_free (told);
}

static void
tell_machine (PtoMachine *machine, gpointer data)
{
  GPtrArray *list = data;
  const PtoTreeNode *node = machine->node;
  Told *told = g_new0 (Told, 1);
  g_autoptr (JsonBuilder) json = json_builder_new ();
  g_autoptr (JsonNode) root = NULL;
  g_autofree char *path = pto_tree_node_dup_path (node);

  json_builder_begin_object (json);
  pto_json_add_string (json, "path", path);
  /* Several of one path may be in a process. */
  pto_json_add_int (json, "number", node->serial);
  pto_json_add_int (json, "level", node->level);
  if (node->level == 2)
    {
      pto_json_add_string (json, "platform", node->platform);
      pto_json_add_string (json, "backend", get_backend (machine));
    }
  if (node->is_isolated)
    {
      pto_json_add_boolean (json, "is_isolated", TRUE);
    }
  machine->ops->tell (machine, json);
  json_builder_end_object (json);
  root = json_builder_get_root (json);
  *told = (Told){ machine, node, node->parent, node->number, json_node_dup_object (root) };
  g_ptr_array_add (list, told);
}

/* The row of a worker that is a thread of this process, where the one above it has rows for its
 * children; NULL: there is none. */
static JsonObject *
find_row (GPtrArray *list, const Told *below)
{
  for (guint i = 0; i < list->len && below->above != NULL; i++)
    {
      const Told *told = g_ptr_array_index (list, i);

      if (told->node == below->above)
        return member_element (told->object, "children", below->number);
    }
  return NULL;
}

JsonNode *
pto_state_build (PtoMachine *only)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (told_free);
  g_autoptr (JsonNode) root = json_node_new (JSON_NODE_OBJECT);
  JsonObject *state = json_object_new ();
  JsonArray *workers = json_array_new ();
  const char *program = g_get_prgname ();

  /* All of them, since those that are threads of this process are machines of their own. */
  pto_machine_visit (NULL, tell_machine, list);
  json_node_take_object (root, state);
  json_object_set_int_member (state, "version", 1);
  json_object_set_string_member (state, "library", PTO_VERSION_S);
  json_object_set_int_member (state, "pid", getpid ());
  if (program != NULL && g_utf8_validate (program, -1, NULL))
    json_object_set_string_member (state, "program", program);
  json_object_set_array_member (state, "workers", workers);
  for (guint i = 0; i < list->len; i++)
    {
      const Told *told = g_ptr_array_index (list, i);
      JsonObject *row = find_row (list, told);

      if (row != NULL)
        {
          JsonArray *below = json_array_new ();

          json_array_add_object_element (below, json_object_ref (told->object));
          json_object_set_array_member (row, "below", below);
        }
      /* Also if it is asked itself. */
      if (only != NULL ? told->machine == only : row == NULL)
        json_array_add_object_element (workers, json_object_ref (told->object));
    }
  return g_steal_pointer (&root);
}

static void
visit_list (JsonObject *from, const char *name, PtoStateVisit visit, gpointer data)
{
  JsonObject *worker, *row;

  for (guint i = 0; (worker = member_next (from, name, &i)) != NULL;)
    {
      visit (worker, data);
      for (guint k = 0; (row = member_next (worker, "children", &k)) != NULL;)
        visit_list (row, "below", visit, data);
    }
}

void
pto_state_visit_workers (JsonObject *state, PtoStateVisit visit, gpointer data)
{
  visit_list (state, "workers", visit, data);
}
