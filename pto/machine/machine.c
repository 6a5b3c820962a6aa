/* machine.c: what do the machines behind workers have alike?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "machine.h"

#include "sim/device-memory.h"

#include "base/error.h"
#include "base/locks.h"
#include "base/log.h"
#include "common/text.h"
#include "values/call-config.h"
#include "values/run-statistics.h"

#include <sys/mman.h>

void
pto_machine_set_up (PtoMachine *machine, const PtoMachineOps *ops, PtoTreeNode *node,
                    const struct pto_params *params)
{
  machine->ops = ops;
  machine->node = node;
  machine->params = params;
  g_mutex_init (&machine->lock);
}

void
pto_machine_take_down (PtoMachine *machine)
{
  g_free (machine->log_context);
  g_mutex_clear (&machine->lock);
}

/* --- who can be asked --- */

/* PtoMachine, under PTO_LOCK_MACHINES. In a copy that a fork made nothing of it is shown: machines
 * are their process's, and so is who asked just then. */
static GPtrArray *shown;
static guint shown_forks;

/* With the lock. */
static void
forget_those_of_a_parent (void)
{
  if (shown == NULL)
    shown = g_ptr_array_new ();
  if (shown_forks == pto_count_forks ())
    return;
  for (guint i = 0; i < shown->len; i++)
    ((PtoMachine *) g_ptr_array_index (shown, i))->n_visitors = 0;
  g_ptr_array_set_size (shown, 0);
  shown_forks = pto_count_forks ();
}

void
pto_machine_show (PtoMachine *machine)
{
  pto_lock (PTO_LOCK_MACHINES);
  forget_those_of_a_parent ();
  g_ptr_array_add (shown, machine);
  pto_unlock (PTO_LOCK_MACHINES);
}

void
pto_machine_hide (PtoMachine *machine)
{
  pto_lock (PTO_LOCK_MACHINES);
  forget_those_of_a_parent ();
  while (machine->n_visitors > 0)
    {
      pto_unlock (PTO_LOCK_MACHINES);
      g_usleep (100);
      pto_lock (PTO_LOCK_MACHINES);
    }
  g_ptr_array_remove (shown, machine);
  pto_unlock (PTO_LOCK_MACHINES);
}

void
pto_machine_visit (PtoMachine *only, void (*visit) (PtoMachine *machine, gpointer data),
                   gpointer data)
{
  g_autoptr (GPtrArray) machines = g_ptr_array_new ();

  pto_lock (PTO_LOCK_MACHINES);
  forget_those_of_a_parent ();
  for (guint i = 0; i < shown->len; i++)
    {
      PtoMachine *machine = g_ptr_array_index (shown, i);

      if (only != NULL && machine != only)
        continue;
      machine->n_visitors++;
      g_ptr_array_add (machines, machine);
    }
  pto_unlock (PTO_LOCK_MACHINES);
  for (guint i = 0; i < machines->len; i++)
    {
      PtoMachine *machine = g_ptr_array_index (machines, i);

      visit (machine, data);
      pto_lock (PTO_LOCK_MACHINES);
      machine->n_visitors--;
      pto_unlock (PTO_LOCK_MACHINES);
    }
}

/* --- a run --- */

void
pto_machine_note_title (PtoMachine *machine, const char *title)
{
  g_mutex_lock (&machine->lock);
  g_free (machine->log_context);
  machine->log_context = g_strdup (title);
  g_mutex_unlock (&machine->lock);
}

char *
pto_machine_dup_title (PtoMachine *machine)
{
  char *title;

  /* Who has it may make a trace, which takes long. */
  if (!g_mutex_trylock (&machine->lock))
    return NULL;
  title = g_strdup (machine->log_context);
  g_mutex_unlock (&machine->lock);
  return title;
}

guint
pto_machine_get_recording_level (const PtoMachine *machine, const PtoMachineRun *run)
{
  guint level = MAX (run->record, pto_call_config_get_record_level (run->config));

  return level > 0 ? level : pto_params_recording (machine->params);
}

gboolean
pto_machine_checks (const PtoMachine *machine, const PtoMachineRun *run)
{
  return run->capture == NULL
         && ((run->config != NULL && run->config->enable_access_check != 0)
             || machine->params->values[PTO_PARAMETER_CHECK] == PTO_CHECK_ACCESS);
}

void
pto_machine_log (gpointer data, int32_t severity, const char *message)
{
  PtoMachine *machine = data;
  GLogLevelFlags flags = severity <= PTO2_LOG_WARN   ? G_LOG_LEVEL_WARNING
                         : severity == PTO2_LOG_INFO ? G_LOG_LEVEL_INFO
                                                     : G_LOG_LEVEL_DEBUG;
  const char *context = machine->log_context != NULL ? machine->log_context : "orchestration";

  if (machine->log != NULL)
    machine->log (flags, context, message, machine->log_data);
  else
    pto_log (flags, "%s: %s", context, message);
}

gboolean
pto_machine_run_has_failed (PTO2Runtime *rt)
{
  return pto_runtime_has_failed (rt);
}

char *
pto_machine_dup_failure (PTO2Runtime *rt)
{
  return g_strdup (pto_runtime_tell_failure (rt));
}

void
pto_machine_fail_run (PTO2Runtime *rt, enum pto_status status, const char *message)
{
  pto_runtime_fail (rt, status, "%s", message);
}

/* --- after it --- */

void
pto_machine_keep_statistics (PtoMachine *machine, const struct pto_run_stats *statistics)
{
  g_mutex_lock (&machine->lock);
  machine->statistics = *statistics;
  machine->has_statistics = TRUE;
  g_mutex_unlock (&machine->lock);
}

PtoRunStatistics *
pto_machine_dup_statistics (PtoMachine *machine)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&machine->lock);

  return machine->has_statistics ? pto_run_statistics_new (&machine->statistics) : NULL;
}

/* --- heaps --- */

struct _PtoHeaps
{
  gatomicrefcount ref_count; /* of the machine, while it has them, and of each tensor */
  struct pto_heaps heaps;
};

/* Any thread. In a copy that a fork made, the machine's own reference stays. */
static void
release_heaps (gpointer data)
{
  struct _PtoHeaps *memory = data;

  if (!g_atomic_ref_count_dec (&memory->ref_count))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (memory->heaps.rings); i++)
    if (memory->heaps.rings[i].base != NULL)
      munmap (memory->heaps.rings[i].base, memory->heaps.rings[i].size);
  g_free (memory);
}

void
pto_machine_make_heaps (PtoMachine *machine)
{
  machine->heaps = g_new0 (struct _PtoHeaps, 1);
  g_atomic_ref_count_init (&machine->heaps->ref_count);
}

gboolean
pto_machine_has_such_heaps (PtoMachine *machine)
{
  if (machine->heaps == NULL)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (machine->heaps->heaps.rings); i++)
    if (machine->heaps->heaps.rings[i].size
        != pto_params_of_ring (machine->params, PTO_PARAMETER_HEAP, i))
      return FALSE;
  return TRUE;
}

gboolean
pto_machine_map_heaps (PtoMachine *machine, GError **error)
{
  struct pto_heaps *heaps;

  if (pto_machine_has_such_heaps (machine))
    return TRUE;
  pto_machine_release_heaps (machine);
  pto_machine_make_heaps (machine);
  heaps = &machine->heaps->heaps;
  for (guint i = 0; i < G_N_ELEMENTS (heaps->rings); i++)
    {
      guint64 size = pto_params_of_ring (machine->params, PTO_PARAMETER_HEAP, i);
      gpointer base = mmap (NULL, size, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

      if (base == MAP_FAILED)
        {
          pto_machine_release_heaps (machine);
          return pto_refuse (
              error, PTO_ERROR_NO_MEMORY,
              _ ("no address space for ring %u: heap %" PRIu64 " bytes: set heap to less"), i,
              size);
        }
      heaps->rings[i].base = base;
      heaps->rings[i].size = size;
    }
  return TRUE;
}

struct pto_heaps *
pto_machine_peek_heaps (PtoMachine *machine)
{
  return &machine->heaps->heaps;
}

void
pto_machine_release_heaps (PtoMachine *machine)
{
  g_clear_pointer (&machine->heaps, release_heaps);
}

gpointer
pto_machine_hold_heaps (PtoMachine *machine, GDestroyNotify *release)
{
  g_atomic_ref_count_inc (&machine->heaps->ref_count);
  *release = release_heaps;
  return machine->heaps;
}

/* --- device memory --- */

gboolean
pto_machine_use_device_memory (struct pto_device_memory *memory, PtoMachineMemory *call,
                               GError **error)
{
  struct pto_report report = { 0 };
  enum pto_status status = PTO_OK;

  switch (call->what)
    {
    case PTO_MEMORY_MALLOC:
      call->device = pto_device_memory_malloc (memory, call->size, &report);
      status = call->device != 0 ? PTO_OK : report.status;
      break;
    case PTO_MEMORY_FREE:
      status = call->is_in_run ? pto_device_memory_leave (memory, call->device, &report)
                               : pto_device_memory_free (memory, call->device, &report);
      break;
    case PTO_MEMORY_RELEASE:
      status = pto_device_memory_release (memory, &call->device, &call->size, &call->give, &report);
      break;
    case PTO_MEMORY_COPY_TO:
      status = pto_device_memory_copy_to (memory, call->device, call->host, call->size, &report);
      break;
    case PTO_MEMORY_COPY_FROM:
      status = pto_device_memory_copy_from (memory, call->host, call->device, call->size, &report);
      break;
    default:
      g_assert_not_reached ();
    }
  return pto_error_set_from_report (error, status, &report);
}
