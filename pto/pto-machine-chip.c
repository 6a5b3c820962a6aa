/* pto-machine-chip.c: how is a simulated chip the machine behind a worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Loads what is registered, runs graphs on sim/chip.h, keeps the numbers and the record of the last
 * run. The chip itself lives from start to stop; what is loaded can be there before.
 */
#include "config.h"

#include "pto-machine-private.h"

#include "../sim/chip.h"

#include "pto-call-config-private.h"
#include "pto-callable-private.h"
#include "pto-chip-orchestration-private.h"
#include "pto-compiler-private.h"
#include "pto-dump-private.h"
#include "pto-error-private.h"
#include "pto-identity-private.h"
#include "pto-log-private.h"
#include "pto-module-private.h"
#include "pto-platform-private.h"
#include "pto-task-args-private.h"
#include "pto-tensor-private.h"
#include "pto-trace-private.h"
#include "pto-worker.h"

#include <string.h>

/* What a shared object is asked for. */
typedef PTO2OrchestrationConfig (*ConfigFunc) (uint64_t *args, int arg_count);
typedef int (*EntryFunc) (PTO2Runtime *rt, uint64_t *args, int arg_count);
typedef void (*VoidEntryFunc) (PTO2Runtime *rt, uint64_t *args, int arg_count);
typedef void (*KernelFunc) (int64_t *args);

/* A registration's objects: PtoRegistration.loaded. */
typedef struct
{
  GPtrArray *modules; /* loaded objects, as the registration has them */
  GPtrArray *memory;  /* names and cost tables that kernels point to */

  struct pto_kernel kernel; /* of a kernel */

  /* Of an orchestration. */
  ConfigFunc config;
  EntryFunc entry;
  gboolean returns_int;
  struct pto_kernel *kernels; /* by function id */
  guint n_kernels;
} Loaded;

typedef struct
{
  PtoMachine parent;

  /* W: start, stop, and before a run who has taken the machine (renew_lost_chip()), with the lock;
   * R: who has taken the machine, who has the lock, and chip_cancel() without either. */
  struct pto_chip *chip;
  /* W: before start. */
  struct pto_core_note *notes; /* the caller's, or NULL */
  guint n_notes;
  const struct pto_heaps *heaps; /* the same */
  /* PTO_MAX_KERNELS, those of orchestration functions, by the registry's index. A run reads entries
   * without a lock, so that an entry changes only while it is not in use: add() writes one that no
   * task can name yet, remove() one that none can name any more. */
  struct pto_kernel *kernels;

  /* W: who has taken the machine. */
  uint64_t *words; /* arguments of the orchestration under way, as its entry gets them */
  int n_words;

  /* --- under the parent's lock --- */
  guint n_kernels;   /* used at some time */
  gboolean recorded; /* the chip holds a record: no run is under way */
  gboolean checked;  /* the same of what was touched */
  char **kernel_names;
  guint n_kernel_names;
  char *title;
  PtoTrace *trace; /* made on the first request */
} ChipMachine;

/* --- what is registered --- */

gboolean
pto_machine_chip_accepts (PtoMachine *machine, PtoCallable *callable, GError **error)
{
  if (callable->kind == PTO_CALLABLE_KERNEL || callable->kind == PTO_CALLABLE_CHIP)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               "\"%s\" is %s, which no chip runs: register it on a worker of level 3 or up",
               callable->name, pto_callable_describe_kind (callable->kind));
  return FALSE;
}

static void
unload (gpointer module)
{
  pto_module_unload (module);
}

static void
loaded_free (gpointer data)
{
  Loaded *loaded = data;

  g_ptr_array_unref (loaded->modules);
  g_ptr_array_unref (loaded->memory);
  g_free (loaded->kernels);
  g_free (loaded);
}

static gboolean
load_kernel (Loaded *loaded, PtoCallable *callable, const char *name, const PtoCompilerJob *job,
             gboolean checks, struct pto_kernel *kernel, GError **error)
{
  PtoKernel *described = PTO_KERNEL (callable);
  struct pto_cost_point *points;
  PtoModule *module = pto_module_load (job, error);
  gpointer entry;

  if (module == NULL)
    return FALSE;
  g_ptr_array_add (loaded->modules, module);
  entry = pto_module_find_symbol (module, job, callable->symbol, PTO_MODULE_KERNEL, error);
  if (entry == NULL)
    return FALSE;
  kernel->name = g_strdup (name);
  g_ptr_array_add (loaded->memory, (gpointer) kernel->name);
  kernel->entry = (KernelFunc) entry;
  kernel->instrumented = pto_module_look_up (module, PTO_MODULE_ACCESS_SYMBOL) != NULL;
  if (checks && !kernel->instrumented)
    pto_log (G_LOG_LEVEL_MESSAGE,
             "%s: %s: it was not compiled to be checked: it is taken to touch what its arguments "
             "say",
             job->label, job->path);
  kernel->core_type = described->core_type == PTO_CORE_AIC ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV;
  kernel->n_args_plus_1 = (uint32_t) (pto_kernel_get_n_args (described) + 1);
  kernel->never_combines = !pto_kernel_may_combine (described);
  kernel->cost = pto_kernel_dup_cost (described, &points);
  if (points != NULL)
    g_ptr_array_add (loaded->memory, points);
  return TRUE;
}

static gboolean
load_orchestration (Loaded *loaded, PtoCallable *callable, const PtoCompilerJob *jobs,
                    gboolean checks, GError **error)
{
  PtoChipOrchestration *chip = PTO_CHIP_ORCHESTRATION (callable);
  PtoModule *module = pto_module_load (&jobs[0], error);
  const int *marker;
  gpointer symbol;

  if (module == NULL)
    return FALSE;
  g_ptr_array_add (loaded->modules, module);
  symbol = pto_module_find_symbol (module, &jobs[0], callable->symbol, PTO_MODULE_ENTRY, error);
  if (symbol == NULL)
    return FALSE;
  loaded->entry = (EntryFunc) symbol;
  symbol = pto_module_find_symbol (module, &jobs[0], PTO_MODULE_CONFIG_SYMBOL, PTO_MODULE_CONFIG,
                                   error);
  if (symbol == NULL)
    return FALSE;
  loaded->config = (ConfigFunc) symbol;
  /* An object that somebody built does not say what its entry returns: nothing is made of it. */
  marker = pto_module_look_up (module, PTO_COMPILER_RETURNS_INT);
  loaded->returns_int = marker != NULL && *marker != 0;

  loaded->n_kernels = pto_chip_orchestration_get_n_kernels (chip);
  loaded->kernels = g_new0 (struct pto_kernel, MAX (loaded->n_kernels, 1));
  for (guint i = 0; i < chip->kernels->len; i++)
    {
      PtoChipKernel *entry = &g_array_index (chip->kernels, PtoChipKernel, i);

      if (!load_kernel (loaded, entry->kernel, entry->name, &jobs[1 + i], checks,
                        &loaded->kernels[entry->func_id], error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
chip_add (PtoMachine *machine, PtoRegistration *registration, GCancellable *cancellable,
          GError **error)
{
  ChipMachine *self = (ChipMachine *) machine;
  PtoCallable *callable = registration->callable;
  gboolean is_kernel = callable->kind == PTO_CALLABLE_KERNEL;
  gboolean checks = machine->params->values[PTO_PARAMETER_CHECK] == PTO_CHECK_ACCESS;
  guint n_jobs;
  PtoCompilerJob *jobs;
  Loaded *loaded;
  gboolean ok;

  if (is_kernel && registration->index >= PTO_MAX_KERNELS)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "a worker holds at most %u kernels for its orchestration functions: unregister "
                   "some",
                   PTO_MAX_KERNELS);
      return FALSE;
    }
  jobs = pto_registration_make_jobs (registration, &n_jobs);
  loaded = g_new0 (Loaded, 1);
  loaded->modules = g_ptr_array_new_with_free_func (unload);
  loaded->memory = g_ptr_array_new_with_free_func (g_free);
  ok = is_kernel ? load_kernel (loaded, callable, callable->name, &jobs[0], checks, &loaded->kernel,
                                error)
                 : load_orchestration (loaded, callable, jobs, checks, error);
  pto_registration_free_jobs (jobs, n_jobs);
  if (!ok)
    {
      loaded_free (loaded);
      return FALSE;
    }
  registration->loaded = loaded;
  registration->free_loaded = loaded_free;
  if (is_kernel)
    {
      g_mutex_lock (&self->parent.lock);
      self->kernels[registration->index] = loaded->kernel;
      self->n_kernels = MAX (self->n_kernels, registration->index + 1);
      g_mutex_unlock (&self->parent.lock);
    }
  return TRUE;
}

static void
chip_remove (PtoMachine *machine, PtoRegistration *registration)
{
  ChipMachine *self = (ChipMachine *) machine;

  if (registration->callable->kind != PTO_CALLABLE_KERNEL)
    return;
  g_mutex_lock (&self->parent.lock);
  memset (&self->kernels[registration->index], 0, sizeof (struct pto_kernel));
  g_mutex_unlock (&self->parent.lock);
}

/* --- life --- */

static gboolean
chip_prepare (PtoMachine *machine, GError **error)
{
  return TRUE;
}

static gboolean
chip_start (PtoMachine *machine, GCancellable *cancellable, GError **error)
{
  ChipMachine *self = (ChipMachine *) machine;
  g_autoptr (PtoPlatform) platform = NULL;
  struct pto_report report = { 0 };

  platform = pto_platform_lookup (pto_worker_get_platform (machine->worker), error);
  if (platform == NULL)
    return FALSE;
  self->chip = pto_chip_new_in_heaps (pto_platform_get_raw (platform), machine->params, self->heaps,
                                      &report);
  if (self->chip == NULL)
    {
      pto_error_set_from_report (error, PTO_STATUS_SYSTEM, &report);
      return FALSE;
    }
  pto_machine_make_heaps (machine);
  pto_chip_set_log (self->chip, pto_machine_log, machine);
  pto_chip_set_notes (self->chip, self->notes, self->n_notes);
  return TRUE;
}

static void
chip_stop (PtoMachine *machine)
{
  ChipMachine *self = (ChipMachine *) machine;

  g_mutex_lock (&self->parent.lock);
  g_clear_object (&self->trace);
  self->recorded = self->checked = FALSE;
  g_mutex_unlock (&self->parent.lock);
  if (self->chip == NULL)
    return;
  pto_chip_take_heaps (self->chip, pto_machine_peek_heaps (machine));
  g_clear_pointer (&self->chip, pto_chip_free);
  pto_machine_release_heaps (machine);
}

/* Names by function id, NULL where there is none: for the record of a run. */
static char **
copy_kernel_names (const struct pto_kernel *kernels, guint n_kernels)
{
  char **names = g_new0 (char *, n_kernels + 1);

  for (guint i = 0; i < n_kernels; i++)
    names[i] = g_strdup (kernels[i].name);
  return names;
}

static void
clear_kernel_names (ChipMachine *self)
{
  for (guint i = 0; i < self->n_kernel_names; i++)
    g_free (self->kernel_names[i]);
  g_clear_pointer (&self->kernel_names, g_free);
  self->n_kernel_names = 0;
}

static void
chip_free (PtoMachine *machine)
{
  ChipMachine *self = (ChipMachine *) machine;

  chip_stop (machine);
  g_free (self->kernels);
  clear_kernel_names (self);
  g_free (self->title);
  pto_machine_take_down (machine);
  g_free (self);
}

/* --- run --- */

/* How many of something the chip has: its parameter, or what its platform has. */
static guint
get_extent (ChipMachine *self, enum pto_param param)
{
  const struct pto_platform *platform = pto_chip_platform (self->chip);
  guint64 value = self->parent.params->values[param];

  if (value != 0)
    return (guint) value;
  return param == PTO_PARAMETER_CLUSTERS ? platform->clusters : platform->aicpu_threads;
}

static gboolean
make_run_config (ChipMachine *self, const PtoCallConfig *config, struct pto_run_config *run_config,
                 GError **error)
{
  guint clusters = get_extent (self, PTO_PARAMETER_CLUSTERS);
  guint threads = get_extent (self, PTO_PARAMETER_AICPU_THREADS);

  if (config == NULL)
    return TRUE;
  if ((guint) config->block_dim > clusters)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "block_dim is %d, but the worker has %u cluster%s", config->block_dim, clusters,
                   clusters == 1 ? "" : "s");
      return FALSE;
    }
  if ((guint) config->aicpu_thread_num > threads)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "aicpu_thread_num is %d, but the worker has %u control threads",
                   config->aicpu_thread_num, threads);
      return FALSE;
    }
  run_config->block_dim = (uint32_t) config->block_dim;
  run_config->aicpu_threads = (uint32_t) config->aicpu_thread_num;
  run_config->record = MAX (run_config->record, pto_call_config_get_record_level (config));
  return TRUE;
}

struct pto_chip_arg *
pto_machine_make_chip_args (PtoTaskArgs *args, const char *name, guint *n_args, GError **error)
{
  g_autofree struct pto_chip_arg *made = NULL;
  const PtoArg *list = NULL;
  guint n = 0;

  if (args != NULL)
    list = pto_task_args_peek (args, &n);
  if (!pto_task_args_check_terms (args, FALSE, error)
      || !pto_args_admit (list, n, TRUE, 0, NULL, error))
    {
      g_prefix_error (error, "orchestration \"%s\": ", name);
      return NULL;
    }
  made = g_new0 (struct pto_chip_arg, MAX (n, 1));
  for (guint i = 0; i < n; i++)
    {
      const PtoTensor *tensor = list[i].tensor;

      if (tensor == NULL)
        {
          made[i].word = pto_arg_get_word (&list[i]);
          made[i].kind = list[i].kind;
          continue;
        }
      made[i].word = pto_tensor_get_first_address (tensor);
      if (made[i].word == 0)
        {
          g_set_error (
              error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
              "orchestration \"%s\": argument %u is a tensor without memory: give it an address or "
              "a buffer",
              name, i);
          return NULL;
        }
      if (pto_direction_writes (list[i].direction) && !pto_tensor_can_be_written (tensor))
        {
          pto_args_set_not_writable (i, list[i].direction, error);
          g_prefix_error (error, "orchestration \"%s\": ", name);
          return NULL;
        }
      made[i].tensor = *pto_tensor_peek (tensor);
      if (pto_tensor_is_read_only (list[i].tensor))
        made[i].read_only = pto_tensor_get_extent (tensor);
    }
  *n_args = n;
  return g_steal_pointer (&made);
}

G_GNUC_PRINTF (3, 4)
static void
set_call_error (GError **error, enum pto_status status, const char *format, ...)
{
  struct pto_report report = { .status = status };
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  g_strlcpy (report.message, message, sizeof report.message);
  pto_error_set_from_report (error, status, &report);
}

/* A call of an orchestration's code. */
typedef struct
{
  const Loaded *loaded;
  PTO2Runtime *rt;
  uint64_t *words;
  int n_words;
  int result; /* of the entry; of the configuration the expected number of arguments */
} Call;

static void
call_config (int64_t *data)
{
  Call *call = (Call *) data;

  call->result = call->loaded->config (call->words, call->n_words).expected_arg_count;
}

static void
call_entry (int64_t *data)
{
  Call *call = (Call *) data;

  if (call->loaded->returns_int)
    call->result = call->loaded->entry (call->rt, call->words, call->n_words);
  else
    ((VoidEntryFunc) (gpointer) call->loaded->entry) (call->rt, call->words, call->n_words);
}

static gboolean
check_arguments (ChipMachine *self, const PtoMachineRun *run, const struct pto_chip_arg *args,
                 guint n, GError **error)
{
  const char *name = run->registration->name;
  Call call = { run->registration->loaded, NULL, NULL, 0, 0 };
  enum pto_status status;
  char why[256];

  g_free (self->words);
  self->words = g_new (uint64_t, MAX (n, 1));
  self->n_words = (int) n;
  for (guint i = 0; i < n; i++)
    self->words[i] = args[i].word;
  call.words = self->words;
  call.n_words = self->n_words;
  status = pto_chip_call (self->chip, call_config, (int64_t *) &call, why, sizeof why);
  if (status != PTO_OK)
    {
      set_call_error (error, status, "orchestration \"%s\" (%s): aicpu_orchestration_config() %s",
                      name, pto_callable_get_origin (run->registration->callable), why);
      return FALSE;
    }
  if (call.result == self->n_words)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               "orchestration \"%s\" expects %d argument%s, but %d %s given", name, call.result,
               call.result == 1 ? "" : "s", self->n_words, self->n_words == 1 ? "is" : "are");
  return FALSE;
}

static gboolean
chip_enter (PtoMachine *machine, const PtoMachineRun *run, PTO2Runtime *rt, GError **error)
{
  ChipMachine *self = (ChipMachine *) machine;
  const Loaded *loaded = run->registration->loaded;
  PtoCallable *callable = run->registration->callable;
  /* One for each thread: the entry may run on another one the next time. */
  PTO2Runtime **current
      = pto_module_look_up (g_ptr_array_index (loaded->modules, 0), "pto2_current_runtime");
  Call call = { loaded, rt, self->words, self->n_words, 0 };
  enum pto_status status;
  char why[256];
  int line;

  if (current != NULL)
    *current = rt;
  status = pto_chip_call (self->chip, call_entry, (int64_t *) &call, why, sizeof why);
  if (current != NULL)
    *current = NULL;
  line = pto_chip_last_line (self->chip);
  if (status == PTO_OK && call.result == 0)
    return TRUE;
  if (status == PTO_OK)
    g_set_error (error, PTO_ERROR, PTO_ERROR_EXPLICIT,
                 "orchestration \"%s\" failed: %s() returned %d", run->registration->name,
                 callable->symbol, call.result);
  else if (line > 0)
    set_call_error (error, status, "orchestration \"%s\": after the submit at %s:%d it %s",
                    run->registration->name, pto_callable_get_origin (callable), line, why);
  else
    set_call_error (error, status, "orchestration \"%s\" (%s): before its first submit it %s",
                    run->registration->name, pto_callable_get_origin (callable), why);
  return FALSE;
}

static gboolean
run_program (ChipMachine *self, const PtoMachineRun *run, const struct pto_run_config *run_config,
             PtoDump *dump, GError **error)
{
  const Loaded *loaded = run->registration != NULL ? run->registration->loaded : NULL;
  /* All that there can be: a kernel may be added while a function runs. */
  struct pto_program program = { loaded != NULL ? loaded->kernels : self->kernels,
                                 loaded != NULL ? loaded->n_kernels : PTO_MAX_KERNELS };
  struct pto_run_stats statistics = { 0 };
  struct pto_report report = { 0 };
  enum pto_status status;
  gboolean dumped;
  guint n_names;

  pto_machine_note_title (&self->parent, run->title);
  g_mutex_lock (&self->parent.lock);
  g_clear_object (&self->trace);
  self->recorded = self->checked = FALSE;
  g_mutex_unlock (&self->parent.lock);

  status = pto_chip_run (self->chip, &program, run_config, run->orchestrate, run->data, &statistics,
                         &report);
  dumped = pto_dump_finish (dump, run->title, status == PTO_OK ? error : NULL);

  pto_machine_keep_statistics (&self->parent, &statistics);
  g_mutex_lock (&self->parent.lock);
  n_names = loaded != NULL ? program.n_kernels : self->n_kernels;
  self->checked = self->parent.params->values[PTO_PARAMETER_CHECK] == PTO_CHECK_ACCESS;
  self->recorded = run_config->record > 0 || pto_params_recording (self->parent.params) > 0;
  if (self->recorded)
    {
      clear_kernel_names (self);
      self->kernel_names = copy_kernel_names (program.kernels, n_names);
      self->n_kernel_names = n_names;
      g_free (self->title);
      self->title = g_strdup (run->title);
    }
  g_mutex_unlock (&self->parent.lock);

  if (status != PTO_OK)
    pto_error_set_from_report (error, status, &report);
  return status == PTO_OK && dumped;
}

/* A kernel of an earlier run has kept its thread, and with it the chip. */
static gboolean
renew_lost_chip (ChipMachine *self, GError **error)
{
  struct pto_report report = { 0 };
  struct pto_chip *chip;

  if (!pto_chip_is_lost (self->chip))
    return TRUE;
  chip = pto_chip_renew (self->chip, &report);
  if (chip == NULL)
    {
      pto_error_set_from_report (error, PTO_STATUS_SYSTEM, &report);
      return FALSE;
    }
  g_mutex_lock (&self->parent.lock);
  g_clear_object (&self->trace);
  self->recorded = self->checked = FALSE;
  /* seq_cst: before the run begins and asks whether it is cancelled; pairs with chip_cancel(). */
  g_atomic_pointer_set (&self->chip, chip);
  g_mutex_unlock (&self->parent.lock);
  return TRUE;
}

static gboolean
chip_run (PtoMachine *machine, const PtoMachineRun *run, GError **error)
{
  ChipMachine *self = (ChipMachine *) machine;
  struct pto_run_config run_config
      = { .record = run->record, .cancelled = run->is_cancelled, .cancelled_data = run->data };
  g_autofree struct pto_chip_arg *made = NULL;
  g_autoptr (PtoDump) dump = NULL;
  guint n = run->n_given;
  gboolean ok = TRUE;

  if (!make_run_config (self, run->config, &run_config, error) || !renew_lost_chip (self, error)
      || !pto_dump_open (run->config, &dump, error))
    return FALSE;
  run_config.watch = pto_dump_get_watch (dump);
  if (run->registration != NULL || run->capture != NULL || run->is_launch)
    {
      const struct pto_chip_arg *args = run->given;

      if (args == NULL)
        args = made = pto_machine_make_chip_args (run->args, run->title, &n, error);
      ok = args != NULL
           && (run->registration == NULL || check_arguments (self, run, args, n, error));
      run_config.args = args;
      run_config.n_args = n;
      run_config.capture = run->capture;
    }
  ok = ok && run_program (self, run, &run_config, dump, error);
  g_clear_pointer (&self->words, g_free);
  return ok;
}

static void
chip_launch (PtoMachine *machine, PTO2Runtime *rt, const struct pto_plan *plan,
             const guint32 *kernels)
{
  pto_chip_launch (rt, plan, kernels);
}

/* Who has taken the machine has started it, and nobody stops it meanwhile; but a lost chip may be
 * replaced right now. No lock: a kernel may call this, and be interrupted in it. */
static void
chip_cancel (PtoMachine *machine)
{
  ChipMachine *self = (ChipMachine *) machine;

  /* seq_cst: behind the store that makes is_cancelled() say true, which is of GLib's atomics, as is
   * the store in renew_lost_chip() that this pairs with. So either this is the new chip, or the run
   * on that one, which asks when it begins, hears of the cancel by itself. The old one is never
   * freed, and nothing runs on it: it may be told. */
  pto_chip_cancel (g_atomic_pointer_get (&self->chip));
}

static guint64
chip_get_progress (PtoMachine *machine)
{
  ChipMachine *self = (ChipMachine *) machine;

  return pto_chip_progress (g_atomic_pointer_get (&self->chip));
}

static gboolean
chip_use_memory (PtoMachine *machine, PtoMachineMemory *memory, GError **error)
{
  return pto_machine_use_device_memory (pto_chip_memory (((ChipMachine *) machine)->chip), memory,
                                        error);
}

/* --- after a run --- */

/* With the lock: the next run has to wait for it before it overwrites the record. */
static PtoTrace *
make_trace (ChipMachine *self)
{
  struct pto_trace_topology topology;
  const struct pto_trace *records = pto_chip_trace (self->chip);

  if (records == NULL)
    return NULL;
  pto_chip_trace_topology (self->chip, &topology);
  return pto_trace_new_from_run (records, &topology, (const char *const *) self->kernel_names,
                                 self->n_kernel_names, self->title);
}

static PtoTrace *
chip_get_trace (PtoMachine *machine)
{
  ChipMachine *self = (ChipMachine *) machine;
  PtoTrace *trace = NULL;

  g_mutex_lock (&self->parent.lock);
  if (self->trace == NULL && self->recorded)
    self->trace = make_trace (self);
  if (self->trace != NULL)
    trace = g_object_ref (self->trace);
  g_mutex_unlock (&self->parent.lock);
  return trace;
}

static char *
chip_dup_writer (PtoMachine *machine, guint64 address)
{
  ChipMachine *self = (ChipMachine *) machine;
  char text[1000] = "";

  g_mutex_lock (&self->parent.lock);
  if (self->checked)
    pto_chip_describe_writer (self->chip, address, text, sizeof text);
  g_mutex_unlock (&self->parent.lock);
  return text[0] != '\0' ? g_strdup (text) : NULL;
}

static gboolean
chip_element (PtoMachine *machine, PTO2Runtime *rt, const Tensor *tensor, const guint64 *index,
              gboolean write, gpointer value)
{
  void *element = rt->ops->touch (rt, tensor, index, write);
  gsize size = pto_dtype_size (tensor->dtype);

  if (element == NULL)
    return FALSE;
  if (write)
    memcpy (element, value, size);
  else
    memcpy (value, element, size);
  return TRUE;
}

static gboolean
chip_alloc (PtoMachine *machine, PTO2Runtime *rt, Tensor *tensor, GError **error)
{
  PTOParam output = pto2_make_param (PTO_PARAM_OUTPUT, tensor);

  if ((pto2_rt_submit_order) (rt, &output, 1, NULL, 0) == PTO2_TASK_NONE)
    return FALSE;
  tensor->buffer = output.tensor.buffer;
  return TRUE;
}

static const PtoMachineOps chip_ops = {
  .accepts = pto_machine_chip_accepts,
  .prepare = chip_prepare,
  .start = chip_start,
  .stop = chip_stop,
  .free = chip_free,
  .run = chip_run,
  .cancel = chip_cancel,
  .enter = chip_enter,
  .launch = chip_launch,
  .has_failed = pto_machine_run_has_failed,
  .dup_failure = pto_machine_dup_failure,
  .fail = pto_machine_fail_run,
  .alloc = chip_alloc,
  .element = chip_element,
  .get_progress = chip_get_progress,
  .add = chip_add,
  .remove = chip_remove,
  .use_memory = chip_use_memory,
  .get_trace = chip_get_trace,
  .dup_writer = chip_dup_writer,
};

void
pto_machine_chip_set_notes (PtoMachine *machine, struct pto_core_note *notes, guint n)
{
  ChipMachine *self = (ChipMachine *) machine;

  self->notes = notes;
  self->n_notes = n;
}

void
pto_machine_chip_set_heaps (PtoMachine *machine, const struct pto_heaps *heaps)
{
  ((ChipMachine *) machine)->heaps = heaps;
}

PtoMachine *
pto_machine_new_chip (PtoWorker *worker, const struct pto_params *params)
{
  ChipMachine *self = g_new0 (ChipMachine, 1);

  pto_machine_set_up (&self->parent, &chip_ops, worker, params);
  self->kernels = g_new0 (struct pto_kernel, PTO_MAX_KERNELS);
  return &self->parent;
}
