/* machine-chip.c: how is a simulated chip the machine behind a worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Loads what is registered, runs graphs on sim/chip.h, keeps the numbers and the record of the last
 * run. The chip itself lives from start to stop; what is loaded can be there before.
 */
#include "config.h"

#include "machine.h"

#include "sim/chip.h"

#include "core/forced-order-text.h"

#include "base/error.h"
#include "base/log.h"
#include "callable/callable.h"
#include "callable/chip-orchestration.h"
#include "callable/identity.h"
#include "common/text.h"
#include "compile/compiler.h"
#include "compile/loaded-object.h"
#include "trace/model/trace.h"
#include "trace/predict/costs.h"
#include "values/call-config.h"
#include "values/platform.h"
#include "values/task-args.h"
#include "values/tensor.h"
#include "machine-state.h"
#include "pto-worker.h"
#include "tensor-dump.h"

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
  /* The same, or those of an orchestration, as checked runs have them; NULL: there was none. */
  struct pto_kernel *checked;

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
  struct pto_machine_totals *totals; /* likewise */
  const struct pto_heaps *heaps;     /* the same */
  /* PTO_MAX_KERNELS, those of orchestration functions, by the registry's index. A run reads entries
   * without a lock, so that an entry changes only while it is not in use: add() writes one that no
   * task can name yet, remove() one that none can name any more. */
  struct pto_kernel *kernels;
  /* The same of checked runs, in which an entry is written before a task of such a run can name it.
   * NULL: there was none. W: before such a run. */
  struct pto_kernel *checked_kernels;

  /* W: who has taken the machine. */
  uint64_t *words; /* arguments of the orchestration under way, as its entry gets them */
  int n_words;

  /* --- under the parent's lock --- */
  guint n_kernels;         /* used at some time */
  gboolean recorded;       /* the chip holds a record: no run is under way */
  gboolean checked;        /* the same of what was touched */
  GPtrArray *kernel_names; /* by function id, NULL where there is none; of that record */
  char *title;
  PtoTrace *trace; /* made on the first request */
} ChipMachine;

/* --- what is registered --- */

gboolean
pto_machine_chip_accepts (PtoMachine *machine, PtoCallable *callable, GError **error)
{
  if (callable->kind == PTO_CALLABLE_KERNEL || callable->kind == PTO_CALLABLE_CHIP)
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("\"%s\" is %s, which no chip runs: register it on a worker of level 3 or up"),
      callable->name, pto_callable_describe_kind (callable->kind));
}

static void
release (gpointer module)
{
  pto_module_release (module);
}

static void
loaded_free (gpointer data)
{
  Loaded *loaded = data;

  g_ptr_array_unref (loaded->modules);
  g_ptr_array_unref (loaded->memory);
  g_free (loaded->kernels);
  g_free (loaded->checked);
  g_free (loaded);
}

/* What the parameters want of kernels that are loaded. */
typedef struct
{
  PtoCosts *costs; /* what was measured of them; NULL: each takes what it says itself */
  PtoClock clock;  /* whose times of these count */
} Wanted;

static gboolean
find_wanted (const struct pto_params *params, Wanted *wanted, GError **error)
{
  guint64 of = params->values[PTO_PARAMETER_COSTS];

  *wanted = (Wanted){ 0 };
  if (of == PTO_COSTS_OWN || params->values[PTO_PARAMETER_BACKEND] != PTO_BACKEND_DET)
    return TRUE;
  wanted->clock = (PtoClock) (of - PTO_COSTS_OF_CHIP);
  wanted->costs = pto_costs_new_from_history (error);
  return wanted->costs != NULL;
}

/* What was measured, where something was, counts before what it says itself. */
static void
set_cost (Loaded *loaded, PtoKernel *described, const Wanted *wanted, struct pto_kernel *kernel)
{
  struct pto_cost_point *points = NULL;
  g_autofree char *measured = wanted->costs != NULL
                                  ? pto_costs_dup_cost (wanted->costs, kernel->name, wanted->clock)
                                  : NULL;

  if (measured == NULL || !pto_kernel_parse_cost (measured, &kernel->cost, &points, NULL))
    kernel->cost = pto_kernel_dup_cost (described, &points);
  if (points != NULL)
    g_ptr_array_add (loaded->memory, points);
  if (wanted->costs != NULL && measured == NULL)
    pto_log (G_LOG_LEVEL_MESSAGE,
             "kernel \"%s\": no time of it is known on the clock \"%s\": it takes %s, as it says "
             "itself",
             kernel->name, pto_clock_get_name (wanted->clock), described->cost_text);
}

/* What runs, and whether that says what it touches. */
static gboolean
load_entry (Loaded *loaded, PtoCallable *callable, const PtoCompilerJob *job,
            struct pto_kernel *kernel, GError **error)
{
  PtoModule *module = pto_module_load (job, error);
  gpointer entry;

  if (module == NULL)
    return FALSE;
  g_ptr_array_add (loaded->modules, module);
  entry = pto_module_find_symbol (module, job, PTO_DEVICE_CODE (callable)->symbol,
                                  PTO_MODULE_KERNEL, error);
  if (entry == NULL)
    return FALSE;
  kernel->entry = (KernelFunc) entry;
  if (pto_module_needs_thread (module))
    pto_kernel_set_apart (kernel);
  kernel->instrumented = pto_module_look_up (module, PTO_MODULE_ACCESS_SYMBOL) != NULL;
  kernel->hides_stores = pto_module_hides_stores (module);
  kernel->talks = pto_module_talks (module);
  return TRUE;
}

static gboolean
load_kernel (Loaded *loaded, PtoCallable *callable, const char *name, const PtoCompilerJob *job,
             const Wanted *wanted, struct pto_kernel *kernel, GError **error)
{
  PtoKernel *described = PTO_KERNEL (callable);

  if (!load_entry (loaded, callable, job, kernel, error))
    return FALSE;
  kernel->name = g_strdup (name);
  g_ptr_array_add (loaded->memory, (gpointer) kernel->name);
  kernel->core_type = described->core_type == PTO_CORE_AIC ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV;
  kernel->n_args_plus_1 = (uint32_t) (pto_kernel_get_n_args (described) + 1);
  kernel->never_combines = !pto_kernel_may_combine (described);
  set_cost (loaded, described, wanted, kernel);
  return TRUE;
}

static gboolean
load_orchestration (Loaded *loaded, PtoCallable *callable, const PtoCompilerJob *jobs,
                    const Wanted *wanted, GError **error)
{
  PtoChipOrchestration *chip = PTO_CHIP_ORCHESTRATION (callable);
  PtoModule *module = pto_module_load (&jobs[0], error);
  const int *marker;
  gpointer symbol;

  if (module == NULL)
    return FALSE;
  g_ptr_array_add (loaded->modules, module);
  symbol = pto_module_find_symbol (module, &jobs[0], PTO_DEVICE_CODE (callable)->symbol,
                                   PTO_MODULE_ENTRY, error);
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

      if (!load_kernel (loaded, entry->kernel, entry->name, &jobs[1 + i], wanted,
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
  Wanted wanted;
  guint n_jobs;
  PtoCompilerJob *jobs;
  Loaded *loaded;
  gboolean ok;

  if (is_kernel && registration->index >= PTO_MAX_KERNELS)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("a worker holds at most %u kernels for its orchestration functions: unregister "
           "some"),
        PTO_MAX_KERNELS);
  if (!find_wanted (machine->params, &wanted, error))
    return FALSE;
  jobs = pto_registration_make_jobs (registration, &n_jobs);
  loaded = g_new0 (Loaded, 1);
  loaded->modules = g_ptr_array_new_with_free_func (release);
  loaded->memory = g_ptr_array_new_with_free_func (g_free);
  ok = is_kernel ? load_kernel (loaded, callable, callable->name, &jobs[0], &wanted,
                                &loaded->kernel, error)
                 : load_orchestration (loaded, callable, jobs, &wanted, error);
  pto_registration_free_jobs (jobs, n_jobs);
  g_clear_object (&wanted.costs);
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
  if (self->checked_kernels != NULL)
    memset (&self->checked_kernels[registration->index], 0, sizeof (struct pto_kernel));
  g_mutex_unlock (&self->parent.lock);
}

/* --- kernels that say what they touch --- */

/* Kernels of a registration that are compiled once more. */
typedef struct
{
  PtoRegistration *registration;
  PtoCompilerJob *jobs; /* of all its objects */
  guint n_jobs;
  PtoCompilerJob *wanted; /* those of them, for the compiler: whose words are the others' */
  guint *objects;         /* which ones they are */
  guint n_wanted;
} Recompilation;

/* The plain kernel that an object has. */
static struct pto_kernel *
find_plain (PtoRegistration *registration, guint object)
{
  Loaded *loaded = registration->loaded;
  GArray *kernels;

  if (registration->callable->kind == PTO_CALLABLE_KERNEL)
    return &loaded->kernel;
  kernels = PTO_CHIP_ORCHESTRATION (registration->callable)->kernels;
  return &loaded->kernels[g_array_index (kernels, PtoChipKernel, object - 1).func_id];
}

static void
begin_recompilation (PtoRegistration *registration, Recompilation *all)
{
  guint first = registration->callable->kind == PTO_CALLABLE_KERNEL ? 0 : 1;

  *all = (Recompilation){ .registration = registration };
  all->jobs = pto_registration_make_source_jobs (registration, &all->n_jobs);
  all->wanted = g_new0 (PtoCompilerJob, all->n_jobs);
  all->objects = g_new0 (guint, all->n_jobs);
  for (guint i = first; i < all->n_jobs; i++)
    if (find_plain (registration, i)->instrumented)
      continue;
    else if (all->jobs[i].language == PTO_LANGUAGE_OBJECT)
      pto_log (G_LOG_LEVEL_MESSAGE,
               "%s: %s: it was not compiled to be checked: it is taken to touch what its arguments "
               "say",
               all->jobs[i].label, all->jobs[i].path);
    else
      {
        all->objects[all->n_wanted] = i;
        all->wanted[all->n_wanted++] = all->jobs[i];
      }
}

static void
end_recompilation (Recompilation *all)
{
  for (guint i = 0; i < all->n_wanted; i++)
    {
      g_free (all->wanted[i].object);
      g_clear_pointer (&all->wanted[i].files, pto_source_files_unref);
    }
  pto_registration_free_jobs (all->jobs, all->n_jobs);
  g_free (all->wanted);
  g_free (all->objects);
}

/* What is checked should be what runs otherwise. */
static gboolean
compare_with_plain (Recompilation *all, GCancellable *cancellable, GError **error)
{
  const guint8 *digests = all->registration->contents->data;

  for (guint i = 0; i < all->n_wanted; i++)
    if (!g_file_test (all->wanted[i].path, G_FILE_TEST_EXISTS))
      return pto_refuse (error, PTO_ERROR_NOT_FOUND,
                         _ ("%s: %s is gone, and has to be compiled once more to be checked"),
                         all->wanted[i].label, all->wanted[i].path);
  if (!pto_compiler_build (all->wanted, all->n_wanted, NULL, NULL, cancellable, error))
    return FALSE;
  for (guint i = 0; i < all->n_wanted; i++)
    {
      PtoCompilerJob *job = &all->wanted[i];

      if (memcmp (job->digest, digests + all->objects[i] * PTO_DIGEST_SIZE, PTO_DIGEST_SIZE) != 0)
        pto_log (G_LOG_LEVEL_WARNING,
                 "%s: %s has changed since it was registered: what is checked is what it is now",
                 job->label, job->path);
      g_clear_pointer (&job->object, g_free);
      job->was_cached = FALSE;
      job->checks_access = TRUE;
    }
  return TRUE;
}

/* By who has taken the machine, and where it is in another process also for him: one at a time. */
static gboolean
load_checked (PtoRegistration *registration, GCancellable *cancellable, GError **error)
{
  Loaded *loaded = registration->loaded;
  PtoCallable *callable = registration->callable;
  gboolean is_kernel = callable->kind == PTO_CALLABLE_KERNEL;
  guint n = is_kernel ? 1 : MAX (loaded->n_kernels, 1);
  g_autofree struct pto_kernel *made = NULL;
  Recompilation all;
  gboolean ok = TRUE;

  if (loaded->checked != NULL)
    return TRUE;
  made = g_memdup2 (is_kernel ? &loaded->kernel : loaded->kernels, n * sizeof *made);
  begin_recompilation (registration, &all);
  if (all.n_wanted > 0)
    ok = compare_with_plain (&all, cancellable, error)
         && pto_compiler_build (all.wanted, all.n_wanted, NULL, NULL, cancellable, error);
  for (guint i = 0; i < all.n_wanted && ok; i++)
    {
      guint object = all.objects[i];
      const PtoChipKernel *entry = is_kernel
                                       ? NULL
                                       : &g_array_index (PTO_CHIP_ORCHESTRATION (callable)->kernels,
                                                         PtoChipKernel, object - 1);

      ok = load_entry (loaded, is_kernel ? callable : entry->kernel, &all.wanted[i],
                       &made[is_kernel ? 0 : entry->func_id], error);
    }
  end_recompilation (&all);
  if (ok)
    loaded->checked = g_steal_pointer (&made);
  return ok;
}

/* In a process of its own a run and what names its kernels come on two threads. */
static void
ensure_checked_kernels (ChipMachine *self)
{
  g_mutex_lock (&self->parent.lock);
  if (self->checked_kernels == NULL)
    self->checked_kernels = g_new0 (struct pto_kernel, PTO_MAX_KERNELS);
  g_mutex_unlock (&self->parent.lock);
}

static gboolean
chip_instrument (PtoMachine *machine, PtoRegistration *registration, GCancellable *cancellable,
                 GError **error)
{
  ChipMachine *self = (ChipMachine *) machine;
  Loaded *loaded = registration->loaded;

  if (!load_checked (registration, cancellable, error))
    return FALSE;
  ensure_checked_kernels (self);
  g_mutex_lock (&self->parent.lock);
  self->checked_kernels[registration->index] = loaded->checked[0];
  g_mutex_unlock (&self->parent.lock);
  return TRUE;
}

/* Before a checked run. */
static gboolean
prepare_checked_run (ChipMachine *self, const PtoMachineRun *run, GError **error)
{
  if (run->registration != NULL)
    return load_checked (run->registration, run->cancellable, error);
  ensure_checked_kernels (self);
  return TRUE;
}

/* --- life --- */

static gboolean
chip_start (PtoMachine *machine, GCancellable *cancellable, GError **error)
{
  ChipMachine *self = (ChipMachine *) machine;
  g_autoptr (PtoPlatform) platform = NULL;
  struct pto_report report = { 0 };

  platform = pto_platform_lookup (machine->node->platform, error);
  if (platform == NULL)
    return FALSE;
  self->chip = pto_chip_new_in_heaps (pto_platform_get_raw (platform), machine->params, self->heaps,
                                      &report);
  if (self->chip == NULL)
    return pto_error_set_from_report (error, PTO_STATUS_SYSTEM, &report);
  pto_machine_make_heaps (machine);
  pto_chip_set_log (self->chip, pto_machine_log, machine);
  pto_chip_set_notes (self->chip, self->notes, self->n_notes);
  if (self->totals != NULL)
    pto_chip_set_totals (self->chip, self->totals);
  pto_machine_show (machine);
  return TRUE;
}

static void
chip_stop (PtoMachine *machine)
{
  ChipMachine *self = (ChipMachine *) machine;

  pto_machine_hide (machine);
  g_mutex_lock (&self->parent.lock);
  g_clear_object (&self->trace);
  self->recorded = self->checked = FALSE;
  g_mutex_unlock (&self->parent.lock);
  if (self->chip == NULL)
    return;
  /* What warns from here on. */
  pto_machine_note_title (machine, "close");
  pto_chip_take_heaps (self->chip, pto_machine_peek_heaps (machine));
  g_clear_pointer (&self->chip, pto_chip_free);
  pto_machine_release_heaps (machine);
}

static void
chip_free (PtoMachine *machine)
{
  ChipMachine *self = (ChipMachine *) machine;

  chip_stop (machine);
  g_free (self->kernels);
  g_free (self->checked_kernels);
  g_ptr_array_unref (self->kernel_names);
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
  if (param == PTO_PARAMETER_CLUSTERS)
    return platform->clusters;
  /* Each scheduler has a cluster. */
  return MIN (platform->aicpu_threads, get_extent (self, PTO_PARAMETER_CLUSTERS) + 1);
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
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        P_ ("block_dim is %d, but the worker has %u cluster: set clusters to %d or more",
            "block_dim is %d, but the worker has %u clusters: set clusters to %d or more",
            clusters),
        config->block_dim, clusters, config->block_dim);
  if ((guint) config->aicpu_thread_num > threads)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("aicpu_thread_num is %d, but the worker has %u control threads: set "
                          "aicpu-threads to %d or more"),
                       config->aicpu_thread_num, threads, config->aicpu_thread_num);
  run_config->block_dim = (uint32_t) config->block_dim;
  run_config->aicpu_threads = (uint32_t) config->aicpu_thread_num;
  run_config->record = MAX (run_config->record, pto_call_config_get_record_level (config));
  return TRUE;
}

struct pto_chip_arg *
pto_machine_make_chip_args (PtoTaskArgs *args, const char *name, PtoArgsUse use, guint *n_args,
                            GError **error)
{
  g_autofree struct pto_chip_arg *made = NULL;
  const PtoArg *list = NULL;
  guint n = 0;

  if (args != NULL)
    list = pto_task_args_peek (args, &n);
  if (!pto_task_args_check_terms (args, FALSE, error)
      || !pto_args_admit (list, n, use, 0, NULL, error))
    {
      g_prefix_error (error, _ ("orchestration \"%s\": "), name);
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
              _ ("orchestration \"%s\": argument %u is a tensor without memory: give it an address or "
                 "a buffer"),
              name, i);
          return NULL;
        }
      if (pto_direction_writes (list[i].direction) && !pto_tensor_can_be_written (tensor))
        {
          pto_args_set_not_writable (i, list[i].direction, error);
          g_prefix_error (error, _ ("orchestration \"%s\": "), name);
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
static gboolean
set_call_error (GError **error, enum pto_status status, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  pto_error_set_status (error, status, message);
  return FALSE;
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
  g_autofree char *given = NULL;
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
    return set_call_error (error, status,
                           _ ("orchestration \"%s\" (%s): aicpu_orchestration_config() %s"), name,
                           pto_callable_get_origin (run->registration->callable), why);
  if (call.result == self->n_words)
    return TRUE;
  given
      = g_strdup_printf (P_ ("%d is given", "%d are given", (gulong) self->n_words), self->n_words);
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     P_ ("orchestration \"%s\" expects %d argument, but %s",
                         "orchestration \"%s\" expects %d arguments, but %s", (gulong) call.result),
                     name, call.result, given);
}

/* The whole path where that is known: of the file that was given. An object, and a file that
 * another one includes, are as the compiler named the source. */
static const char *
name_source (const char *origin, const char *file)
{
  const char *slash = strrchr (origin, '/');
  const char *end = file != NULL ? strrchr (file, '/') : NULL;

  if (file == NULL
      || strcmp (slash != NULL ? slash + 1 : origin, end != NULL ? end + 1 : file) == 0)
    return origin;
  return file;
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
    return pto_refuse (error, PTO_ERROR_EXPLICIT,
                       _ ("orchestration \"%s\" failed: %s() returned %d"), run->registration->name,
                       PTO_DEVICE_CODE (callable)->symbol, call.result);
  if (line > 0)
    return set_call_error (
        error, status, _ ("orchestration \"%s\": after the submit at %s:%d it %s"),
        run->registration->name,
        name_source (pto_callable_get_origin (callable), pto_chip_last_file (self->chip)), line,
        why);
  return set_call_error (error, status,
                         _ ("orchestration \"%s\" (%s): before its first submit it %s"),
                         run->registration->name, pto_callable_get_origin (callable), why);
}

static gboolean
run_program (ChipMachine *self, const PtoMachineRun *run, const struct pto_run_config *run_config,
             PtoDump *dump, GError **error)
{
  const Loaded *loaded = run->registration != NULL ? run->registration->loaded : NULL;
  /* All that there can be: a kernel may be added while a function runs. */
  struct pto_program program
      = { run_config->checks ? (loaded != NULL ? loaded->checked : self->checked_kernels)
                             : (loaded != NULL ? loaded->kernels : self->kernels),
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

  statistics.loaded_objects = pto_module_count_loaded ();
  pto_machine_keep_statistics (&self->parent, &statistics);
  g_mutex_lock (&self->parent.lock);
  n_names = loaded != NULL ? program.n_kernels : self->n_kernels;
  self->checked = run_config->checks;
  self->recorded = run_config->record > 0 || pto_params_recording (self->parent.params) > 0;
  if (self->recorded)
    {
      g_ptr_array_set_size (self->kernel_names, 0);
      for (guint i = 0; i < n_names; i++)
        g_ptr_array_add (self->kernel_names, g_strdup (program.kernels[i].name));
      g_free (self->title);
      self->title = g_strdup (run->title);
    }
  g_mutex_unlock (&self->parent.lock);

  return pto_error_set_from_report (error, status, &report) && dumped;
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
    return pto_error_set_from_report (error, PTO_STATUS_SYSTEM, &report);
  g_mutex_lock (&self->parent.lock);
  g_clear_object (&self->trace);
  self->recorded = self->checked = FALSE;
  /* seq_cst: before the run begins and asks whether it is cancelled; pairs with chip_cancel(). */
  g_atomic_pointer_set (&self->chip, chip);
  g_mutex_unlock (&self->parent.lock);
  return TRUE;
}

static gboolean
read_schedule (const PtoMachineRun *run, struct pto_schedule *schedule, GError **error)
{
  struct pto_report report = { 0 };
  enum pto_status status = PTO_OK;

  if (run->schedule != NULL)
    status = pto_schedule_parse (schedule, run->schedule, pto_param_name (PTO_PARAMETER_SCHEDULE),
                                 &report);
  return pto_error_set_from_report (error, status, &report);
}

static gboolean
chip_run (PtoMachine *machine, const PtoMachineRun *run, GError **error)
{
  ChipMachine *self = (ChipMachine *) machine;
  struct pto_schedule schedule = { 0 };
  struct pto_run_config run_config
      = { .record = run->record, .cancelled = run->is_cancelled, .cancelled_data = run->data };
  g_autofree struct pto_chip_arg *made = NULL;
  g_autoptr (PtoDump) dump = NULL;
  guint n = run->n_given;
  gboolean ok = TRUE;

  if (!make_run_config (self, run->config, &run_config, error) || !renew_lost_chip (self, error)
      || !pto_dump_open (run->config, &dump, error) || !read_schedule (run, &schedule, error))
    return FALSE;
  run_config.schedule = run->schedule != NULL ? &schedule : NULL;
  run_config.checks = pto_machine_checks (machine, run);
  run_config.watch = pto_dump_get_watch (dump);
  if (run->registration != NULL || run->capture != NULL || run->is_launch)
    {
      const struct pto_chip_arg *args = run->given;

      if (args == NULL)
        args = made
            = pto_machine_make_chip_args (run->args, run->title, PTO_ARGS_OF_CHIP, &n, error);
      ok = args != NULL
           && (run->registration == NULL || check_arguments (self, run, args, n, error));
      run_config.args = args;
      run_config.n_args = n;
      run_config.capture = run->capture;
    }
  ok = ok && (!run_config.checks || prepare_checked_run (self, run, error))
       && run_program (self, run, &run_config, dump, error);
  g_clear_pointer (&self->words, g_free);
  pto_schedule_clear (&schedule);
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

/* From start to stop there is a chip; one that is replaced meanwhile is never freed. */
static void
chip_tell (PtoMachine *machine, JsonBuilder *json)
{
  ChipMachine *self = (ChipMachine *) machine;
  struct pto_chip_look *look = pto_chip_look (g_atomic_pointer_get (&self->chip));
  g_autofree char *title = pto_machine_dup_title (machine);

  if (look != NULL)
    pto_look_add_chip (json, look, title);
  pto_chip_look_free (look);
}

static gboolean
chip_count (PtoMachine *machine, gboolean is_inside, PtoMachineCounts *counts)
{
  struct pto_chip *chip = g_atomic_pointer_get (&((ChipMachine *) machine)->chip);

  return chip != NULL && pto_chip_count (chip, is_inside, counts);
}

static gboolean
chip_use_memory (PtoMachine *machine, PtoMachineMemory *memory, GError **error)
{
  struct pto_chip *chip = ((ChipMachine *) machine)->chip;

  /* What no task uses is given back at once: an orchestration may take and give often. */
  memory->is_in_run = memory->is_in_run && !pto_chip_is_through (chip);
  return pto_machine_use_device_memory (pto_chip_memory (chip), memory, error);
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
  return pto_trace_new_from_run (records, &topology,
                                 (const char *const *) self->kernel_names->pdata,
                                 self->kernel_names->len, self->title);
}

static PtoTrace *
chip_get_trace (PtoMachine *machine)
{
  ChipMachine *self = (ChipMachine *) machine;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parent.lock);

  if (self->trace == NULL && self->recorded)
    self->trace = make_trace (self);
  return self->trace != NULL ? g_object_ref (self->trace) : NULL;
}

static char *
chip_dup_writer (PtoMachine *machine, guint64 address)
{
  ChipMachine *self = (ChipMachine *) machine;
  char text[1000] = "";

  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parent.lock);

  if (self->checked)
    pto_chip_describe_writer (self->chip, address, text, sizeof text);
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
  .tell = chip_tell,
  .count = chip_count,
  .add = chip_add,
  .remove = chip_remove,
  .instrument = chip_instrument,
  .use_memory = chip_use_memory,
  .get_trace = chip_get_trace,
  .dup_writer = chip_dup_writer,
};

void
pto_machine_chip_use (PtoMachine *machine, const struct pto_heaps *heaps,
                      struct pto_machine_totals *totals, struct pto_core_note *notes, guint n_notes)
{
  ChipMachine *self = (ChipMachine *) machine;

  self->heaps = heaps;
  self->totals = totals;
  self->notes = notes;
  self->n_notes = n_notes;
}

PtoMachine *
pto_machine_new_chip (PtoTreeNode *node, const struct pto_params *params)
{
  ChipMachine *self = g_new0 (ChipMachine, 1);

  pto_machine_set_up (&self->parent, &chip_ops, node, params);
  self->kernels = g_new0 (struct pto_kernel, PTO_MAX_KERNELS);
  self->kernel_names = g_ptr_array_new_with_free_func (g_free);
  return &self->parent;
}
