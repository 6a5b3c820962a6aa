/* machine-level-trace.c: how does the record of a level's run become a trace of the whole
 * tree?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The level's own records are here. What its workers did inside of their tasks they keep until they
 * are asked for it, when the run is over: first how large it is, then into memory that both see.
 */
#include "config.h"

#include "machine-level.h"

#include "trace/model/trace.h"

#include "process/arena.h"

#include <string.h>

gboolean
pto_machine_level_child_is_apart (const PtoTreeNode *node, guint number)
{
  /* A worker that has children of its own is a process always. */
  return node->child_mode == PTO_CHILD_MODE_PROCESS
         || pto_tree_node_peek_child (node, number)->level > 2;
}

/* Where all workers see it: zeros. 0: there is no room. */
static guint64
alloc_for_children (LevelMachine *self, gsize size)
{
  const PtoTreeNode *node = self->parent.node;

  for (guint i = 0; i < node->children->len; i++)
    if (pto_machine_level_child_is_apart (node, i))
      return pto_arena_alloc (size);
  return (guint64) (guintptr) g_try_malloc0 (size);
}

static void
free_for_children (guint64 address, gsize size)
{
  guint64 arena, arena_size;

  if (pto_arena_range (&arena, &arena_size) && address - arena < arena_size)
    pto_arena_free (address, size);
  else
    g_free ((gpointer) (guintptr) address);
}

/* Where workers write, and what they are asked: how large it is, and then for it. */
typedef struct
{
  guint n;
  PtoChildTrace *table; /* of each; what they see */
  guint64 *sizes;       /* of the first answer; 0: it has nothing */
  guint64 *rooms;       /* 0: none yet */
} Gathering;

static void
gathering_free (Gathering *gathering)
{
  for (guint i = 0; i < gathering->n; i++)
    if (gathering->rooms[i] != 0)
      free_for_children (gathering->rooms[i], gathering->sizes[i]);
  if (gathering->table != NULL)
    free_for_children ((guint64) (guintptr) gathering->table,
                       gathering->n * sizeof (PtoChildTrace));
  g_free (gathering->sizes);
  g_free (gathering->rooms);
  g_free (gathering);
}

static void
free_left (guint64 address, guint64 bytes)
{
  gathering_free ((gpointer) (guintptr) address);
}

/* FALSE: it is not wanted any more, and belongs to those who still write there. */
static gboolean
ask (LevelMachine *self, const PtoMachineRun *run, Gathering *gathering)
{
  const guint64 address = (guint64) (guintptr) gathering->table;
  const struct pto_level_lent lent = { free_left, (guint64) (guintptr) gathering, 0 };
  struct pto_level_targets targets = { 0 };

  for (guint i = 0; i < gathering->n; i++)
    pto_level_add_target (&targets, i);
  return pto_level_gather (self->level, &targets, &address, sizeof address, &lent,
                           run->is_cancelled, run->data);
}

static void
take_pieces (LevelMachine *self, PtoTrace *trace, guint child, guint64 address, guint64 size)
{
  if (!pto_trace_pieces_unpack (&trace->pieces, child, (const guint8 *) (guintptr) address, size))
    g_warning ("%s/%s has sent no record of its runs that could be read",
               pto_tree_node_get_path (self->parent.node).text, trace->rows[child]);
}

static void
make_rooms (LevelMachine *self, PtoTrace *trace, Gathering *gathering)
{
  for (guint i = 0; i < gathering->n; i++)
    {
      PtoChildTrace *of = &gathering->table[i];
      guint64 size = of->size;

      if (size == 0)
        continue;
      gathering->rooms[i] = alloc_for_children (self, size);
      if (gathering->rooms[i] == 0)
        g_warning ("no room for a trace of %" G_GUINT64_FORMAT " bytes of %s: set arena to more",
                   size, trace->rows[i]);
      else
        gathering->sizes[i] = size;
      of->address = gathering->rooms[i];
      of->room = gathering->sizes[i];
      of->size = 0;
    }
}

static void
gather_pieces (LevelMachine *self, const PtoMachineRun *run, PtoTrace *trace)
{
  guint n = self->parent.node->children->len;
  Gathering *gathering;

  if (n == 0)
    return;
  gathering = g_new0 (Gathering, 1);
  gathering->n = n;
  gathering->sizes = g_new0 (guint64, n);
  gathering->rooms = g_new0 (guint64, n);
  gathering->table
      = (PtoChildTrace *) (guintptr) alloc_for_children (self, n * sizeof (PtoChildTrace));
  if (gathering->table == NULL)
    g_warning ("no room to ask workers for their traces: set arena to more");
  else
    {
      if (!ask (self, run, gathering))
        return;
      make_rooms (self, trace, gathering);
      if (!ask (self, run, gathering))
        return;
      for (guint i = 0; i < n; i++)
        /* Another size: it was lost, or is not what it was. */
        if (gathering->sizes[i] > 0 && gathering->table[i].size == gathering->sizes[i])
          take_pieces (self, trace, i, gathering->rooms[i], gathering->sizes[i]);
    }
  gathering_free (gathering);
}

/* "L2/1", "sub0": what stands behind the path of the level. */
static char **
make_rows (LevelMachine *self, const char *path)
{
  const PtoTreeNode *node = self->parent.node;
  guint n_workers = node->children->len;
  char **rows = g_new0 (char *, self->n_children + 1);

  for (guint i = 0; i < self->n_children; i++)
    if (i < n_workers)
      {
        g_autofree char *child = pto_tree_node_dup_path (pto_tree_node_peek_child (node, i));

        rows[i] = g_strdup (child + strlen (path) + 1);
      }
    else
      rows[i] = g_strdup_printf ("sub%u", i - n_workers);
  return rows;
}

PtoTrace *
pto_machine_level_make_trace (LevelMachine *self, const PtoMachineRun *run)
{
  char *path = pto_tree_node_dup_path (self->parent.node);
  const struct pto_trace *records = pto_level_trace (self->level);
  struct pto_trace_topology topology;
  g_autofree const char **names = NULL;
  PtoTrace *trace;
  guint n_names;

  pto_level_trace_topology (self->level, &topology);
  g_mutex_lock (&self->parent.lock);
  n_names = self->names->len;
  names = g_new0 (const char *, n_names + 1);
  for (guint i = 0; i < n_names; i++)
    names[i] = g_ptr_array_index (self->names, i);
  g_mutex_unlock (&self->parent.lock);
  trace = pto_trace_new_from_run (records, &topology, names, n_names, run->title);
  pto_trace_take_names (trace, path, make_rows (self, path));
  /* Who was asked to stop may have been ended, and nobody waits longer for a run like that. */
  if (!run->is_cancelled (run->data))
    gather_pieces (self, run, trace);
  pto_trace_settle (trace);
  return trace;
}
