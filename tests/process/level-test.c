/* level-test.c: what do the tests of levels share? A level whose children run functions of the test
 * program, and a look at what a process holds.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include "../short.h"

#include "../../pto/core/memory-guards.h"
#include "../../pto/process/level-private.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEADLINE_NS (30 * SECOND)
/* The exit of a thread is over in /proc a moment after it was joined. */
#define SETTLE_LOOKS 2000

static const char *
function_name (void *data, uint32_t index)
{
  static const char *const names[] = { "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9" };

  return index < G_N_ELEMENTS (names) ? names[index] : "f";
}

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  struct rig_child *child = data;
  struct rig *rig = child->rig;

  atomic_store (&rig->board->pids[child->index], getpid ());
  if (call->request == PTO_REQUEST_TASK)
    return rig->config.functions[call->digest[0]](rig, call, failure);
  return rig->config.serve != NULL ? rig->config.serve (rig, child->index, call, failure) : 0;
}

static void
probe (void *data)
{
  struct rig_child *child = data;

  if (child->rig->config.probe != NULL)
    child->rig->config.probe (child->rig, child->index);
}

static void
add_child (struct rig *rig, struct pto_child_config *configs, enum pto_child_kind kind,
           uint32_t level)
{
  uint32_t i = rig->n_children++;

  rig->children[i] = (struct rig_child){ .rig = rig, .index = i };
  configs[i] = (struct pto_child_config){
    .kind = kind,
    .level = level,
    .thread = rig->config.threads,
    .server = { .serve = serve, .data = &rig->children[i], .probe = probe },
    .close = rig->config.closed,
  };
}

struct rig *
rig_try (const struct rig_config *config, bool (*cancelled) (void *data), void *data,
         struct pto_report *report)
{
  struct rig *rig = g_new0 (struct rig, 1);
  struct pto_child_config *configs = g_new0 (struct pto_child_config, PTO_CHILDREN_MAX);
  struct pto_params params;
  struct pto_level_config level = { .path = "L3/0",
                                    .level = 3,
                                    .params = &params,
                                    .restart = config->restart,
                                    .fork = config->fork,
                                    .fork_data = rig,
                                    .children = configs,
                                    .callable_name = function_name };
  static const char *const pools[] = { "task-window", "dep-pool", "map-pool" };

  rig->config = *config;
  rig->board
      = mmap (NULL, sizeof *rig->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  g_assert_true (rig->board != MAP_FAILED);
  for (uint32_t i = 0; i < G_N_ELEMENTS (rig->digests); i++)
    memset (rig->digests[i], (int) i, PTO_DIGEST_BYTES);
  pto_params_init (&params, 3);
  /* Small, so that a test that makes hundreds of levels is quick. */
  g_assert_cmpint (pto_params_set (&params, "heap", "16M", report), ==, PTO_OK);
  g_assert_cmpint (pto_params_set (&params, "arena", "64M", report), ==, PTO_OK);
  /* An emulator pays for each page that is reserved, and the defaults reserve many GiB. */
  if (RUN_SHORT)
    for (uint32_t i = 0; i < G_N_ELEMENTS (pools); i++)
      g_assert_cmpint (pto_params_set (&params, pools[i], "1M", report), ==, PTO_OK);
  for (const char *const *p = config->parameters; p != NULL && *p != NULL; p += 2)
    g_assert_cmpint (pto_params_set (&params, p[0], p[1], report), ==, PTO_OK);
  for (uint32_t i = 0; i < config->chips; i++)
    add_child (rig, configs, PTO_CHILD_NEXT, 2);
  for (uint32_t i = 0; i < config->workers; i++)
    add_child (rig, configs, PTO_CHILD_NEXT, 3);
  for (uint32_t i = 0; i < config->subs; i++)
    add_child (rig, configs, PTO_CHILD_SUB, 0);
  level.n_children = rig->n_children;
  rig->level = pto_level_new (&level, report);
  g_free (configs);
  if (rig->level != NULL && pto_level_fork (rig->level, report) == PTO_OK)
    {
      if (pto_level_start (rig->level, cancelled, data, report) == PTO_OK)
        return rig;
      pto_level_give_up_start (rig->level);
    }
  rig_free (rig);
  return NULL;
}

struct rig *
rig_new (const struct rig_config *config)
{
  struct pto_report report = { 0 };
  struct rig *rig = rig_try (config, NULL, NULL, &report);

  g_assert_cmpstr (report.message, ==, "");
  g_assert_nonnull (rig);
  return rig;
}

void
rig_free (struct rig *rig)
{
  pto_level_free (rig->level);
  munmap (rig->board, sizeof *rig->board);
  g_free (rig);
}

static int
orchestrate (PTO2Runtime *rt, void *data)
{
  struct rig *rig = data;

  g_assert_true (rt == &rig->level->machine.runtime);
  rig->rt = rt;
  rig->result = 0;
  rig->graph (rig, rig->data);
  rig->rt = NULL;
  /* What a submit was refused for is not the run's. */
  rig->report = (struct pto_report){ 0 };
  return rig->result;
}

enum pto_status
rig_run (struct rig *rig, void (*graph) (struct rig *rig, void *data), void *data)
{
  enum pto_status status;

  rig->graph = graph;
  rig->data = data;
  rig->report = (struct pto_report){ 0 };
  memset (&rig->failure, 0, sizeof rig->failure);
  status = pto_level_run (rig->level, rig->record, NULL, rig->cancelled, rig->cancelled_data,
                          orchestrate, rig, &rig->stats, &rig->failure, &rig->report);
  g_assert_cmpint (status, ==, rig->report.status);
  g_assert_cmpuint (rig->stats.completed, ==, rig->stats.tasks);
  return status;
}

void
rig_run_ok (struct rig *rig, void (*graph) (struct rig *rig, void *data), void *data)
{
  enum pto_status status = rig_run (rig, graph, data);

  g_assert_cmpstr (rig->report.message, ==, "");
  g_assert_cmpint (status, ==, PTO_OK);
  g_assert_cmpuint (rig->stats.failed, ==, 0);
}

/* --- submits --- */

static enum pto_status
submit (struct rig *rig, uint32_t function, enum pto_child_kind kind, uint32_t serves,
        const struct pto_member *members, uint32_t n_members, PTOParam *params, uint32_t n_params)
{
  struct pto_level_task task = { .digest = rig->digests[function],
                                 .name = function_name (NULL, function),
                                 .members = members,
                                 .n_members = n_members,
                                 .kind = (uint32_t) kind,
                                 .serves = serves };
  pto_task_id id;

  rig->report = (struct pto_report){ 0 };
  snprintf (task.config.output_prefix, sizeof task.config.output_prefix, "prefix %u", function);
  task.config.block_dim = 1 + (int32_t) function;
  return pto_level_submit (
      rig->level,
      &(struct pto_submit){ .kernel = function, .params = params, .n_params = n_params }, &task,
      &id, &rig->report);
}

enum pto_status
rig_try_submit (struct rig *rig, uint32_t function, enum pto_child_kind kind, uint32_t serves,
                uint32_t worker, PTOParam *params, uint32_t n_params)
{
  struct pto_member member = { .worker = worker };

  for (uint32_t i = 0; i < n_params; i++)
    if (params[i].type == PTO_PARAM_SCALAR)
      member.n_scalars++;
    else
      member.n_tensors++;
  return submit (rig, function, kind, serves, &member, 1, params, n_params);
}

void
rig_submit (struct rig *rig, uint32_t function, enum pto_child_kind kind, uint32_t worker,
            PTOParam *params, uint32_t n_params)
{
  enum pto_status status = rig_try_submit (rig, function, kind, kind == PTO_CHILD_SUB ? 0 : 2,
                                           worker, params, n_params);

  g_assert_cmpstr (rig->report.message, ==, "");
  g_assert_cmpint (status, ==, PTO_OK);
}

enum pto_status
rig_try_group (struct rig *rig, uint32_t function, uint32_t n, const uint32_t *workers,
               const PTOParam *tensor, uint64_t scalar)
{
  struct pto_member members[PTO_CHILDREN_MAX];
  PTOParam params[3 * PTO_CHILDREN_MAX];
  uint32_t n_params = 0;
  uint16_t n_tensors = tensor != NULL;

  g_assert_cmpuint (n, <=, PTO_CHILDREN_MAX);
  for (uint32_t m = 0; m < n; m++)
    {
      members[m] = (struct pto_member){ .first_tensor = (uint16_t) (m * n_tensors),
                                        .n_tensors = n_tensors,
                                        .first_scalar = (uint16_t) (2 * m),
                                        .n_scalars = 2,
                                        .worker = workers != NULL ? workers[m] : ANY };
      if (tensor != NULL)
        params[n_params++] = *tensor;
    }
  for (uint32_t m = 0; m < n; m++)
    {
      params[n_params++] = make_scalar_param (scalar);
      params[n_params++] = make_scalar_param (m);
    }
  return submit (rig, function, PTO_CHILD_SUB, 0, members, n, params, n_params);
}

void
rig_group (struct rig *rig, uint32_t function, uint32_t n, const uint32_t *workers,
           const PTOParam *tensor, uint64_t scalar)
{
  enum pto_status status = rig_try_group (rig, function, n, workers, tensor, scalar);

  g_assert_cmpstr (rig->report.message, ==, "");
  g_assert_cmpint (status, ==, PTO_OK);
}

const struct pto_level_targets *
rig_subs (struct rig *rig)
{
  memset (&rig->subs, 0, sizeof rig->subs);
  for (uint32_t i = 0; i < rig->level->family.n_children; i++)
    if (rig->level->family.children[i].kind == PTO_CHILD_SUB)
      pto_level_add_target (&rig->subs, i);
  return &rig->subs;
}

Tensor
rig_words (struct rig *rig, uint32_t first, uint64_t n)
{
  g_assert_cmpuint (first + n, <=, G_N_ELEMENTS (rig->board->words));
  return make_tensor_external (&rig->board->words[first], (uint64_t[]){ n }, 1, PTO_DTYPE_UINT64);
}

Tensor
rig_tensor (struct rig *rig, uint64_t n)
{
  Tensor tensor;

  pto2_rt_init_tensor_pool (rig->rt);
  tensor = make_tensor ((uint64_t[]){ n }, 1, PTO_DTYPE_UINT64);
  g_assert_cmpuint (tensor.status, ==, PTO2_TENSOR_OK);
  g_assert_nonnull (tensor.storage);
  return tensor;
}

/* --- in children --- */

uint64_t *
call_data (const struct pto_call *call, int32_t tensor)
{
  g_assert_cmpint (tensor, <, call->args.tensor_count);
  return (uint64_t *) (uintptr_t) call->args.tensors[tensor].data;
}

uint64_t
call_scalar (const struct pto_call *call, int32_t scalar)
{
  g_assert_cmpint (scalar, <, call->args.scalar_count);
  return call->args.scalars[scalar];
}

uint32_t
call_fail (struct pto_failure *failure, uint32_t status, const char *text)
{
  pto_failure_set (failure, (int32_t) status, "pto-error-quark", "%s", text);
  return status;
}

/* --- meeting --- */

static void
sleep_on (struct pto_word *word, uint32_t seen, uint64_t deadline)
{
  if (pto_wall_clock () > deadline)
    g_error ("process %d waits in vain", (int) getpid ());
  /* Several may wait at one gate, and the word wakes one: so in steps. */
  pto_shared_park (NULL, word, seen, 20000, pto_wall_clock () + 2 * MS);
}

void
gate_pass (struct board *board, uint32_t gate)
{
  uint64_t deadline = pto_wall_clock () + DEADLINE_NS;

  atomic_fetch_add (&board->reached[gate], 1);
  while (pto_word_get (&board->gates[gate]) == 0)
    sleep_on (&board->gates[gate], 0, deadline);
}

void
gate_meet (struct board *board, uint32_t gate, uint32_t n)
{
  uint64_t deadline = pto_wall_clock () + DEADLINE_NS;

  if (atomic_fetch_add (&board->reached[gate], 1) + 1 >= n)
    {
      gate_open (board, gate);
      return;
    }
  while (pto_word_get (&board->gates[gate]) == 0)
    sleep_on (&board->gates[gate], 0, deadline);
}

void
gate_open (struct board *board, uint32_t gate)
{
  pto_shared_set (NULL, &board->gates[gate], 1);
}

void
gate_wait_reached (struct board *board, uint32_t gate, uint32_t n)
{
  uint64_t deadline = pto_wall_clock () + DEADLINE_NS;

  while (atomic_load (&board->reached[gate]) < n)
    {
      if (pto_wall_clock () > deadline)
        g_error ("nobody comes to gate %u", gate);
      g_usleep (200);
    }
}

void
board_wait (struct board *board, uint32_t counter, uint64_t value)
{
  uint64_t deadline = pto_wall_clock () + DEADLINE_NS;

  while (atomic_load (&board->counters[counter]) < value)
    {
      if (pto_wall_clock () > deadline)
        g_error ("counter %u stays below %" G_GUINT64_FORMAT, counter, value);
      g_usleep (200);
    }
}

/* --- holdings --- */

static uint32_t
count_entries (const char *path)
{
  DIR *directory = opendir (path);
  uint32_t n = 0;

  if (directory == NULL)
    return 0;
  while (readdir (directory) != NULL)
    n++;
  closedir (directory);
  return n;
}

static uint32_t
count_lines (const char *path)
{
  char line[512];
  FILE *file = fopen (path, "re");
  uint32_t n = 0;

  g_assert_nonnull (file);
  while (fgets (line, sizeof line, file) != NULL)
    /* The heap of the C library, and what it maps for threads, is its own business. */
    n += strstr (line, "/dev/zero") != NULL || strstr (line, "memfd") != NULL
         || strstr (line, "rw-s") != NULL || strstr (line, "---s") != NULL;
  fclose (file);
  return n;
}

static uint32_t
count_children (void)
{
  DIR *tasks = opendir ("/proc/self/task");
  struct dirent *entry;
  uint32_t n = 0;

  g_assert_nonnull (tasks);
  while ((entry = readdir (tasks)) != NULL)
    {
      char path[64];
      int pid;
      FILE *file;

      snprintf (path, sizeof path, "/proc/self/task/%.20s/children", entry->d_name);
      file = fopen (path, "re");
      if (file == NULL)
        continue;
      while (fscanf (file, "%d", &pid) == 1)
        n++;
      fclose (file);
    }
  closedir (tasks);
  return n;
}

static uint32_t
count_threads (void)
{
  uint32_t n = count_entries ("/proc/self/task");
#ifdef __SANITIZE_THREAD__
  /* It has one of its own, which comes and goes with forks, and has the program's name. */
  DIR *tasks = opendir ("/proc/self/task");
  struct dirent *entry;

  while ((entry = readdir (tasks)) != NULL)
    {
      g_autofree char *path = g_strconcat ("/proc/self/task/", entry->d_name, "/comm", NULL);
      g_autofree char *name = NULL;

      if (atoi (entry->d_name) != getpid () && g_file_get_contents (path, &name, NULL, NULL)
          && g_str_has_prefix (name, "test-process"))
        n--;
    }
  closedir (tasks);
#endif
  return n;
}

struct holdings
holdings_now (void)
{
  /* What a process makes once is no leak. */
  bool ready = pto_fence_init ();
  struct holdings now = { .descriptors = count_entries ("/proc/self/fd"),
                          .mappings = count_lines ("/proc/self/maps"),
                          .threads = count_threads (),
                          .children = count_children () };

  g_assert_true (ready);
  return now;
}

void
holdings_assert (const struct holdings *before)
{
  struct holdings now = holdings_now ();

  for (int i = 0; i < SETTLE_LOOKS && !SAME_THREADS (now.threads, before->threads); i++)
    {
      g_usleep (1000);
      now = holdings_now ();
    }
  g_assert_cmpuint (now.descriptors, ==, before->descriptors);
  g_assert_cmpuint (now.mappings, ==, before->mappings);
  if (!SAME_THREADS (now.threads, before->threads))
    g_assert_cmpuint (now.threads, ==, before->threads);
  g_assert_cmpuint (now.children, ==, before->children);
}

void
assert_says (const char *message, const char *text)
{
  if (strstr (message, text) == NULL)
    g_error ("\"%s\" does not say \"%s\"", message, text);
}

int
level_test_main (int argc, char **argv, void (*add_tests) (void))
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  add_tests ();
  return g_test_run ();
}
