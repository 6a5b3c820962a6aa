/* machine-isolated-number.c: does a kernel write to an address that it was given as a number?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The process of an isolated chip has copies of the program's private memory as it was when the
 * process began. What a kernel writes there is lost. A number that lies in memory which is copied
 * for the run becomes the address of the copy. If another one is an address over there, the bytes
 * there are compared: before the task is submitted, and after the run. A number does not say how
 * large its object is, but the C library's allocator notes that in front of it. If both processes
 * have the same note there, the object is one that the program had when the process began, and all
 * of it is compared. Otherwise the chip's process may have allocated what is there, so no more are
 * compared than every allocator gives.
 */
#include "config.h"

#include "machine-isolated.h"

#include "base/error.h"
#include "common/text.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* No address is below, or above. */
#define LOWEST_ADDRESS UINT64_C (0x10000)
#define HIGHEST_ADDRESS UINT64_C (0x7fffffffffff)
/* What every allocator gives at least, and what is compared at most. */
#define LOOKED_AT 16u
#define LOOKED_AT_MAX (UINT64_C (16) << 20)

typedef struct
{
  guint64 address; /* the key */
  guint n;         /* bytes that can be read there; 0: none */
  guint8 *before;
  PTO2TaskId task; /* PTO2_TASK_NONE: it is an argument of the run */
  IsolatedPlace at;
  guint argument;
  guint32 kernel;
} Number;

static void
number_free (gpointer data)
{
  Number *number = data;

  g_free (number->before);
  g_free (number);
}

GHashTable *
pto_isolated_new_numbers (void)
{
  return g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, number_free);
}

/* Returns how many bytes a process has at the address, up to n; less than 0: that cannot be known.
 */
static gssize
read_at (pid_t process, guint64 address, gpointer bytes, gsize n)
{
  struct iovec here = { bytes, n };
  struct iovec there = { (gpointer) (guintptr) address, n };
  gssize got = process_vm_readv (process, &here, 1, &there, 1, 0);

  return got < 0 && errno == EFAULT ? 0 : got;
}

static gssize
read_there (IsolatedMachine *self, guint64 address, gpointer bytes, gsize n)
{
  return read_at (pto_solo_process_id (self->solo), address, bytes, n);
}

/* What glibc notes in front of an object: the size of the one before, and of this one, in bytes
 * that begin with the note, and bits. */
#define NOTE_BYTES 16u
#define NOTE_IN_USE 1u /* of the object before */
#define NOTE_MAPPED 2u
#define NOTE_SIZE(note) ((note)[1] & ~UINT64_C (7))

static gboolean
read_notes (IsolatedMachine *self, guint64 address, guint64 here[2], guint64 there[2])
{
  return read_at (getpid (), address - NOTE_BYTES, here, NOTE_BYTES) == NOTE_BYTES
         && read_there (self, address - NOTE_BYTES, there, NOTE_BYTES) == NOTE_BYTES;
}

/* Returns how many bytes belong to the object that begins at the address. */
static guint64
measure (IsolatedMachine *self, guint64 address)
{
#ifdef __GLIBC__
  guint64 here[2];
  guint64 there[2];
  guint64 page = (guint64) sysconf (_SC_PAGESIZE);
  guint64 bytes = LOOKED_AT;

  if (sizeof (gsize) != sizeof (guint64) || address % NOTE_BYTES != 0
      || !read_notes (self, address, here, there)
      || ((here[1] ^ there[1]) & ~(guint64) NOTE_IN_USE) != 0 || NOTE_SIZE (here) < 2 * NOTE_BYTES
      || NOTE_SIZE (here) % NOTE_BYTES != 0 || NOTE_SIZE (here) > HIGHEST_ADDRESS - address)
    return LOOKED_AT;
  if ((here[1] & NOTE_MAPPED) != 0)
    {
      if ((address - NOTE_BYTES - here[0]) % page == 0 && (here[0] + NOTE_SIZE (here)) % page == 0)
        bytes = NOTE_SIZE (here) - NOTE_BYTES;
    }
  else
    {
      bytes = NOTE_SIZE (here) - NOTE_BYTES / 2;
      if (!read_notes (self, address + NOTE_SIZE (here), here, there)
          || (here[1] & there[1] & NOTE_IN_USE) == 0 || NOTE_SIZE (here) < NOTE_BYTES)
        bytes = LOOKED_AT;
    }
  return MIN (bytes, LOOKED_AT_MAX);
#else
  return LOOKED_AT;
#endif
}

/* So that the next run finds it again. Where that fails, it does not. */
static void
put_back (IsolatedMachine *self, const Number *number)
{
  struct iovec here = { number->before, number->n };
  struct iovec there = { (gpointer) (guintptr) number->address, number->n };

  (void) process_vm_writev (pto_solo_process_id (self->solo), &here, 1, &there, 1, 0);
}

/* --- the run --- */

/* Keeps what is there now. Returns FALSE with a report if that cannot be known. */
static gboolean
watch (IsolatedMachine *self, guint64 address, PTO2TaskId task, IsolatedPlace at, guint argument,
       guint32 kernel, struct pto_report *report)
{
  Number *number;
  guint8 first[LOOKED_AT];
  guint64 bytes;
  gssize n;

  if (address < LOWEST_ADDRESS || address > HIGHEST_ADDRESS
      || g_hash_table_contains (self->numbers, &address))
    return TRUE;
  number = g_new0 (Number, 1);
  *number = (Number){
    .address = address, .task = task, .at = at, .argument = argument, .kernel = kernel
  };
  g_hash_table_insert (self->numbers, &number->address, number);
  n = read_there (self, address, first, sizeof first);
  if (n == 0 || pto_shared_map_check (pto_solo_map (self->solo), address, 1, false) == PTO_VISIBLE)
    return TRUE;
  if (n > 0)
    {
      bytes = measure (self, address);
      number->before = g_malloc (bytes);
      n = read_there (self, address, number->before, bytes);
      number->n = n > 0 ? (guint) n : 0;
      return TRUE;
    }
  if (pto_shared_map_check (pto_solo_map (self->solo), address, 1, false) == PTO_VISIBLE_UNMAPPED)
    return TRUE;
  pto_report_set (report, PTO_STATUS_SYSTEM,
                  _ ("argument %u is a number that is an address of this process, and whether the "
                     "chip's process has other memory there cannot be known: process_vm_readv: "
                     "%s: give the memory as a tensor, or set isolate to 0"),
                  argument, strerror (errno));
  return FALSE;
}

gboolean
pto_isolated_place_number (IsolatedMachine *self, guint64 *word, PTO2TaskId task, IsolatedPlace at,
                           guint argument, guint32 kernel, struct pto_report *report)
{
  guint64 address = *word;

  *word = pto_stage_find (self->stage, address);
  return *word != address || watch (self, address, task, at, argument, kernel, report);
}

gboolean
pto_isolated_meet_numbers (IsolatedMachine *self, guint64 address, guint64 bytes,
                           struct pto_report *report)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->numbers);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      const Number *number = value;
      g_autoptr (GString) place = g_string_new (NULL);

      if (number->n == 0 || number->address - address >= bytes)
        continue;
      pto_isolated_append_place (place, number->at);
      if (place->len > 0)
        g_string_append_c (place, ',');
      pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                      _ ("argument %u of task %u of ring %u%s is a number, the address of memory "
                         "that is given as a tensor only now. The chip's process had other memory "
                         "there: give that task the tensor as well, or set isolate to 0"),
                      number->argument, PTO_TASK_LOCAL (number->task), PTO_TASK_RING (number->task),
                      place->str);
      return FALSE;
    }
  return TRUE;
}

gboolean
pto_isolated_watch_numbers (IsolatedMachine *self, const struct pto_plan *plan,
                            const guint32 *kernels, struct pto_report *report)
{
  for (guint32 t = 0; t < plan->n_tasks; t++)
    {
      const struct pto_plan_task *task = &plan->tasks[t];
      guint32 kernel = task->kernel & ~PTO_PLAN_IF;
      IsolatedPlace at;

      at.file = pto_plan_get_place (plan, t, &at.line);
      for (guint a = 0; a < task->n_args; a++)
        {
          const struct pto_plan_arg *arg = &plan->args[task->first_arg + a];

          /* It stays as it is, also if it lies in an array of this run. */
          if (PTO_PLAN_SOURCE (arg->what) == PTO_PLAN_NUMBER
              && !watch (self, arg->value, PTO_TASK_ID (task->ring, task->position), at, a,
                         kernel < plan->n_kernels ? kernels[kernel] : kernel, report))
            return FALSE;
        }
    }
  return TRUE;
}

/* The run has ended, and its process is there. */
gboolean
pto_isolated_check_numbers (IsolatedMachine *self, GError **error)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->numbers);
  while (!self->died && g_hash_table_iter_next (&iter, NULL, &value))
    {
      const Number *number = value;
      g_autofree guint8 *after = g_malloc (number->n);
      g_autoptr (GString) who = g_string_new (NULL);

      if (number->n == 0
          || read_there (self, number->address, after, number->n) != (gssize) number->n
          || memcmp (after, number->before, number->n) == 0)
        continue;
      put_back (self, number);
      if (number->task == PTO2_TASK_NONE)
        g_string_printf (who, _ ("orchestration \"%s\""), self->run->title);
      else
        g_string_printf (who, _ ("task %u of ring %u (%s)"), PTO_TASK_LOCAL (number->task),
                         PTO_TASK_RING (number->task),
                         pto_isolated_name_kernel (self, number->kernel));
      pto_isolated_append_place (who, number->at);
      return pto_refuse (
          error, PTO_ERROR_OUT_OF_BOUNDS,
          _ ("%s: a kernel wrote to the address that argument %u is as a number. The "
             "chip's process has memory of its own there: give the program's as a tensor, "
             "or make it with a buffer, or set isolate to 0"),
          who->str, number->argument);
    }
  return TRUE;
}
