/* machine-level.c: how is a level of children the machine behind a worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Its life, and its runs. machine-level-registrations.c: what the children have;
 * machine-level-submit.c: what they are given to do; and machine-level-graph.c: whole
 * graphs of that.
 */
#include "config.h"

#include "machine-level.h"

#include "base/error.h"
#include "base/log.h"
#include "values/call-config.h"
#include "machine-state.h"
#include "tensor-dump.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The most that all forks of a start wait for other threads to sleep, and one that comes later. */
#define QUIET_US 20000
#define QUIET_AGAIN_US 2000

/* --- life --- */

static PtoCallable *
import_for_child (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  LevelMachine *self = data;

  return pto_tree_node_import (self->parent.node, kind, path, error);
}

/* Does any other thread of this process run just now, or would it if it had a CPU? */
static gboolean
others_run (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/task", 0, NULL);
  pid_t own = gettid ();
  const char *id;

  while (dir != NULL && (id = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_strconcat ("/proc/self/task/", id, "/stat", NULL);
      g_autofree char *stat = NULL;
      const char *state;

      if (atoi (id) == own || !g_file_get_contents (path, &stat, NULL, NULL))
        continue;
      state = strrchr (stat, ')');
      if (state != NULL && state[1] != '\0' && state[2] == 'R')
        return TRUE;
    }
  return FALSE;
}

/* A lock that another thread holds during the fork is held in the child for ever: GLib's allocator
 * has such locks, and its worker thread uses it for a moment after every compiler that has ended. A
 * thread that sleeps holds none of those. One that computes is not waited for long: a
 * child that is caught all the same hangs at START (worker/child-server.c), and is ended when that
 * takes too long. */
static void
wait_for_quiet (LevelMachine *self)
{
  while (others_run () && g_get_monotonic_time () < self->quiet_until)
    g_usleep (100);
}

/* The thread that forks. Without a lock: in the child nobody would give it back. */
static pid_t
fork_child (void *data)
{
  LevelMachine *self = data;

  if (self->quiet_until < g_get_monotonic_time ())
    self->quiet_until = g_get_monotonic_time () + QUIET_AGAIN_US;
  pto_machine_level_take_snapshot (self);
  wait_for_quiet (self);
  return pto_tree_node_fork (self->parent.node);
}

static void
free_children (LevelMachine *self)
{
  for (guint i = 0; i < self->n_children; i++)
    self->children[i].destroy (self->children[i].server);
  g_clear_pointer (&self->children, g_free);
  g_clear_pointer (&self->bound, g_free);
  self->n_children = 0;
}

/* Workers first, in the order of their ids; then SUB workers. */
static struct pto_child_config *
make_children (LevelMachine *self, const char *path)
{
  const PtoTreeNode *node = self->parent.node;
  guint n_workers = node->children->len;
  guint n_subs = node->n_sub_workers;
  struct pto_child_config *configs = g_new0 (struct pto_child_config, MAX (n_workers + n_subs, 1));
  PtoChildParent parent = { .list = pto_machine_level_list,
                            .import = import_for_child,
                            .data = self,
                            .writes = &self->writes };

  self->n_children = n_workers + n_subs;
  self->has_given_ids = FALSE;
  self->children = g_new0 (LevelChild, MAX (self->n_children, 1));
  self->bound = g_new0 (guint32, MAX (self->n_children, 1));
  for (guint i = 0; i < self->n_children; i++)
    {
      PtoTreeNode *child = i < n_workers ? pto_tree_node_peek_child (node, i) : NULL;
      g_autofree char *name = child != NULL ? pto_tree_node_dup_path (child)
                                            : g_strdup_printf ("%s/sub%u", path, i - n_workers);

      parent.index = i;
      self->has_given_ids = self->has_given_ids || (child != NULL && child->id != i);
      if (child != NULL && child->remote != NULL)
        {
          configs[i].far = true;
          configs[i].address = child->remote->address;
          configs[i].leave_bytes = child->params->values[PTO_PARAMETER_REMOTE_LEAVE];
        }
      self->children[i].server = node->ops->make_child (child, name, &parent, &configs[i].server,
                                                        &self->children[i].destroy);
      configs[i].kind = child != NULL ? PTO_CHILD_NEXT : PTO_CHILD_SUB;
      configs[i].level = child != NULL ? child->level : 0;
      configs[i].id_plus_1 = child != NULL ? child->id + 1 : 0;
      /* A worker that has children of its own is a process always: its forks come before its
       * threads. */
      configs[i].thread
          = node->child_mode == PTO_CHILD_MODE_THREAD && (child == NULL || child->level == 2);
    }
  return configs;
}

static gboolean
level_prepare (PtoMachine *machine, GError **error)
{
  LevelMachine *self = (LevelMachine *) machine;
  const PtoTreeNode *node = machine->node;
  g_autofree char *path = pto_tree_node_dup_path (node);
  g_autofree struct pto_child_config *children = make_children (self, path);
  struct pto_level_config config = { .level = node->level,
                                     .params = machine->params,
                                     .restart = node->restart == PTO_RESTART_ON_FAILURE,
                                     .fork = fork_child,
                                     .fork_data = self,
                                     .children = children,
                                     .n_children = self->n_children,
                                     .callable_name = pto_machine_level_get_name,
                                     .callable_name_data = self,
                                     .log = pto_machine_log,
                                     .log_data = machine };
  struct pto_report report = { 0 };
  struct pto_level *level;
  enum pto_status status = PTO_OK;

  g_strlcpy (config.path, path, sizeof config.path);
  self->process = getpid ();
  self->quiet_until = g_get_monotonic_time () + QUIET_US;
  g_mutex_lock (&self->parent.lock);
  self->starting = TRUE;
  g_mutex_unlock (&self->parent.lock);
  pto_machine_level_take_snapshot (self);
  level = pto_level_new (&config, &report);
  self->writes = level != NULL ? pto_level_writes (level) : NULL;
  if (level == NULL)
    status = report.status != PTO_OK ? report.status : PTO_STATUS_SYSTEM;
  else
    status = pto_level_fork (level, &report);
  if (status != PTO_OK)
    {
      pto_level_free (level);
      free_children (self);
      pto_machine_level_end_start (self);
      return pto_error_set_from_report (error, status, &report);
    }
  /* A registration that is given up meanwhile looks at it. */
  g_mutex_lock (&self->parent.lock);
  self->level = level;
  pto_machine_make_heaps (&self->parent);
  g_mutex_unlock (&self->parent.lock);
  return TRUE;
}

static void
level_stop (PtoMachine *machine)
{
  LevelMachine *self = (LevelMachine *) machine;
  struct pto_level *level;

  if (self->level == NULL)
    return;
  if (self->process != getpid ())
    {
      /* A copy that a fork made: what it counts is the parent's. */
      pto_level_free (g_steal_pointer (&self->level));
      return;
    }
  pto_machine_hide (machine);
  g_mutex_lock (&self->parent.lock);
  level = g_steal_pointer (&self->level);
  g_clear_object (&self->trace);
  while (self->users > 0)
    g_cond_wait (&self->changed, &self->parent.lock);
  g_mutex_unlock (&self->parent.lock);
  pto_level_take_heaps (level, pto_machine_peek_heaps (&self->parent));
  pto_level_free (level);
  pto_machine_release_heaps (&self->parent);
  free_children (self);
  pto_machine_level_clear_memory (self);
  /* Nobody is forked any more. */
  pto_machine_level_drop_snapshot (self);
}

static bool
is_cancelled (void *data)
{
  return g_cancellable_is_cancelled (data);
}

static gboolean
level_start (PtoMachine *machine, GCancellable *cancellable, GError **error)
{
  LevelMachine *self = (LevelMachine *) machine;
  struct pto_report report = { 0 };
  enum pto_status status;

  /* Whoever asks what a start waits for is told. */
  pto_machine_show (machine);
  status = pto_level_start (self->level, is_cancelled, cancellable, &report);
  if (status != PTO_OK)
    {
      pto_machine_hide (machine);
      pto_level_give_up_start (self->level);
      level_stop (machine);
    }
  pto_machine_level_end_start (self);
  return pto_error_set_from_report (error, status, &report);
}

static void
level_free (PtoMachine *machine)
{
  LevelMachine *self = (LevelMachine *) machine;

  if (self->level != NULL && self->process != getpid ())
    {
      /* Locks may be another thread's of the parent for ever. */
      level_stop (machine);
      return;
    }
  level_stop (machine);
  g_clear_object (&self->trace);
  pto_machine_level_clear_known (self);
  g_array_unref (self->memory);
  g_array_unref (self->leaving);
  pto_machine_take_down (machine);
  g_cond_clear (&self->changed);
  g_free (self);
}

/* --- run --- */

/* It is in another process, and is seen only as a part of this one's record. */
static void
warn_of_unseen_traces (LevelMachine *self)
{
  const PtoTreeNode *node = self->parent.node;

  for (guint i = 0; i < node->children->len && !self->warned; i++)
    {
      PtoTreeNode *child = pto_tree_node_peek_child (node, i);

      if (child->params->values[PTO_PARAMETER_TRACE] == 0
          || !pto_machine_level_child_is_apart (node, i))
        continue;
      g_warning ("trace of %s has no effect: it is a part of the trace of %s: set it there",
                 pto_tree_node_get_path (child).text, pto_tree_node_get_path (node).text);
      self->warned = TRUE;
    }
}

static void
set_trace (LevelMachine *self, PtoTrace *trace)
{
  g_mutex_lock (&self->parent.lock);
  g_clear_object (&self->trace);
  self->trace = trace;
  g_mutex_unlock (&self->parent.lock);
}

static gboolean
level_run (PtoMachine *machine, const PtoMachineRun *run, GError **error)
{
  LevelMachine *self = (LevelMachine *) machine;
  struct pto_run_stats stats = { 0 };
  struct pto_failure failure = { 0 };
  struct pto_report report = { 0 };
  const char *choice = run->config != NULL ? pto_call_config_find_choice (run->config) : NULL;
  g_autofree struct pto_chip_arg *given = NULL;
  g_autoptr (PtoDump) dump = NULL;
  enum pto_status status;
  gboolean dumped;

  self->n_given = 0;
  if (!pto_dump_open (run->config, &dump, error))
    return FALSE;
  if (run->capture != NULL || run->is_launch)
    {
      given = pto_machine_make_chip_args (run->args, run->title, PTO_ARGS_OF_GRAPH, &self->n_given,
                                          error);
      if (given == NULL)
        return FALSE;
    }
  self->given = given;
  self->dump = run->capture == NULL ? dump : NULL;
  self->run = run;

  pto_machine_note_title (machine, run->title);
  self->n_tasks = 0;
  self->passed_on = FALSE;
  memset (self->bound, 0, self->n_children * sizeof *self->bound);
  self->recording = pto_machine_get_recording_level (machine, run);
  set_trace (self, NULL);
  if (!self->recording)
    warn_of_unseen_traces (self);
  pto_level_check (self->level, pto_machine_checks (machine, run));
  if (run->capture != NULL)
    status = pto_level_run (self->level, self->recording, NULL, run->is_cancelled, run->data,
                            pto_machine_level_capture, self, &stats, &failure, &report);
  else
    status
        = pto_level_run (self->level, self->recording, pto_dump_get_watch (dump), run->is_cancelled,
                         run->data, run->orchestrate, run->data, &stats, &failure, &report);
  pto_machine_level_settle_memory (self);
  dumped = pto_dump_finish (dump, run->title, status == PTO_OK ? error : NULL);
  if (status == PTO_OK && run->capture != NULL)
    status = pto_plan_complete (run->capture, &report);
  self->run = NULL;
  self->given = NULL;
  self->dump = NULL;
  pto_machine_keep_statistics (machine, &stats);
  if (pto_level_trace (self->level) != NULL)
    set_trace (self, pto_machine_level_make_trace (self, run));
  /* It is the function's to look at and to pass on to chips: only now is it known that it did not.
   */
  if (status == PTO_OK && choice != NULL && !self->passed_on)
    pto_log (G_LOG_LEVEL_WARNING,
             "%s of the run's configuration had no effect on %s, which is no chip: give a "
             "configuration to the tasks for chips",
             choice, pto_tree_node_get_path (machine->node).text);
  if (status == PTO_OK)
    return dumped;
  if (failure.bytes > 0)
    pto_failure_propagate (&failure, error);
  else
    pto_error_set_from_report (error, status, &report);
  return FALSE;
}

static void
level_cancel (PtoMachine *machine)
{
  LevelMachine *self = (LevelMachine *) machine;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parent.lock);

  if (self->level != NULL)
    pto_level_cancel (self->level);
}

static PtoTrace *
level_get_trace (PtoMachine *machine)
{
  LevelMachine *self = (LevelMachine *) machine;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parent.lock);

  return self->trace != NULL ? g_object_ref (self->trace) : NULL;
}

static guint64
level_get_progress (PtoMachine *machine)
{
  LevelMachine *self = (LevelMachine *) machine;

  return pto_level_progress (self->level);
}

static void
name_queue (gconstpointer level, guint32 queue, char *text, gsize size)
{
  pto_level_queue_name (level, queue, text, size);
}

/* From the end of start to stop there is a level. */
static void
level_tell (PtoMachine *machine, JsonBuilder *json)
{
  LevelMachine *self = (LevelMachine *) machine;
  struct pto_level_look *look = pto_level_look (self->level);
  g_autofree char *title = pto_machine_dup_title (machine);

  if (look != NULL)
    pto_look_add_level (json, look, title, name_queue, self->level);
  pto_level_look_free (look);
}

static gboolean
level_count (PtoMachine *machine, gboolean is_inside, PtoMachineCounts *counts)
{
  return pto_level_count (((LevelMachine *) machine)->level, is_inside, counts);
}

static const PtoMachineOps level_ops = {
  .accepts = pto_machine_level_accepts,
  .prepare = level_prepare,
  .start = level_start,
  .stop = level_stop,
  .free = level_free,
  .run = level_run,
  .cancel = level_cancel,
  .launch = pto_machine_level_launch,
  .has_failed = pto_machine_run_has_failed,
  .dup_failure = pto_machine_dup_failure,
  .fail = pto_machine_fail_run,
  .submit = pto_machine_level_submit,
  .order = pto_machine_level_order,
  .get_progress = level_get_progress,
  .alloc = pto_machine_level_alloc,
  .add = pto_machine_level_add,
  .remove = pto_machine_level_remove,
  .name_targets = pto_machine_level_name_targets,
  .extend = pto_machine_level_extend,
  .use_memory = pto_machine_level_use_memory,
  .get_trace = level_get_trace,
  .tell = level_tell,
  .count = level_count,
};

PtoMachine *
pto_machine_new_level (PtoTreeNode *node, const struct pto_params *params)
{
  LevelMachine *self = g_new0 (LevelMachine, 1);

  pto_machine_set_up (&self->parent, &level_ops, node, params);
  g_cond_init (&self->changed);
  pto_machine_level_init_known (self);
  pto_machine_level_init_memory (self);
  return &self->parent;
}
