/* det-world.c: what do processes see that are actors of one executor, in virtual time?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "det-world-private.h"

#include "../../pto/exec/shared-wait.h"

#include <string.h>

/* Marks the names of our actors. */
#define MARK '@'
/* What a system call takes. */
#define CALL_NS 400

struct world world;

/* --- the world --- */

struct actor *
world_self (void)
{
  const char *name;

  if (world.exec == NULL)
    return NULL;
  name = pto_actor_name ();
  return name != NULL && name[0] == MARK ? (struct actor *) (uintptr_t) name : NULL;
}

void
world_begin (uint64_t seed)
{
  memset (&world, 0, sizeof world);
  fd_begin ();
  world.rng = seed * UINT64_C (0x9e3779b97f4a7c15) + 1;
  world.next_pid = FIRST_PID;
}

void
world_enter (struct pto_exec *exec)
{
  world.exec = exec;
}

void
world_end (void)
{
  fd_end ();
  g_assert_null (world.processes);
  world.exec = NULL;
}

uint64_t
world_now (void)
{
  return pto_now (world.exec);
}

uint64_t
world_roll (void)
{
  uint64_t z = (world.rng += UINT64_C (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint32_t
world_random (uint32_t n)
{
  return n > 0 ? (uint32_t) (world_roll () % n) : 0;
}

bool
world_chance (uint32_t n)
{
  return world_random (n) == 0;
}

uint32_t
world_lines (void)
{
  return world.n_lines;
}

const char *
world_last_line (void)
{
  return world.last_line;
}

/* --- actors --- */

void
actor_check_alive (struct actor *actor)
{
  if (actor->process->is_dead)
    longjmp (actor->end, 1);
}

/* False: the time came. */
bool
world_wait (const void *a, const void *b, const void *c, uint64_t until)
{
  struct actor *actor = world_self ();
  enum pto_park_result result;
  uint32_t seen;

  if (actor == NULL)
    g_error ("the program itself waits");
  seen = pto_word_get (&actor->word);
  actor->whats[0] = a;
  actor->whats[1] = b;
  actor->whats[2] = c;
  result = pto_park (world.exec, &actor->word, seen, until);
  memset (actor->whats, 0, sizeof actor->whats);
  actor_check_alive (actor);
  return result != PTO_PARK_TIMEOUT;
}

static void
wake_actor (struct actor *actor)
{
  pto_word_set (world.exec, &actor->word, pto_word_get (&actor->word) + 1);
  if (actor->parked_on != NULL)
    pto_unpark (world.exec, actor->parked_on);
}

void
world_wake (const void *what)
{
  for (struct process *p = world.processes; p != NULL; p = p->next)
    for (struct actor *a = p->actors; a != NULL; a = a->next)
      for (int i = 0; i < WHATS; i++)
        if (a->whats[i] == what)
          {
            wake_actor (a);
            break;
          }
}

void
world_sleep (uint64_t ns)
{
  struct actor *actor = world_self ();

  pto_charge (world.exec, ns);
  if (actor != NULL)
    actor_check_alive (actor);
}

void
world_step (uint64_t ns)
{
  world_sleep (ns + world_random (CALL_NS) + 1);
}

/* --- processes --- */

static void
run_actor (void *data)
{
  struct actor *actor = data;
  struct process *process = actor->process;

  if (setjmp (actor->end) == 0)
    {
      actor_check_alive (actor);
      actor->result = actor->func (actor->data);
    }
  actor->is_over = true;
  world_wake (actor);
  process = actor->process;
  process->n_live--;
  world_wake (process);
}

struct actor *
actor_new (struct process *process, const char *name, GThreadFunc func, gpointer data)
{
  struct actor *actor = g_new0 (struct actor, 1);
  char error[256];

  g_snprintf (actor->name, sizeof actor->name, "%c%s-%s", MARK, process->name, name);
  actor->process = process;
  actor->func = func;
  actor->data = data;
  pto_word_init (&actor->word, 0, false);
  actor->next = process->actors;
  process->actors = actor;
  process->n_live++;
  g_assert_cmpint (
      pto_exec_spawn (world.exec, 0, actor->name, run_actor, actor, error, sizeof error), ==, 0);
  return actor;
}

void
process_end (struct process *process, int status)
{
  if (process->is_dead)
    return;
  process->is_dead = true;
  process->status = status;
  fd_close_all (process);
  for (struct actor *a = process->actors; a != NULL; a = a->next)
    if (!a->is_over)
      wake_actor (a);
  world_wake (process);
}

static gpointer
run_main (gpointer data)
{
  struct process *process = data;

  process->main (process->data);
  process_end (process, 0);
  return NULL;
}

struct process *
process_new (const char *name, void (*main_func) (void *data), void *data)
{
  struct process *process = g_new0 (struct process, 1);

  g_strlcpy (process->name, name, sizeof process->name);
  process->main = main_func;
  process->data = data;
  process->pid = world.next_pid++;
  process->stdio = -1;
  process->blocks = g_hash_table_new_full (NULL, NULL, g_free, NULL);
  process->next = world.processes;
  world.processes = process;
  actor_new (process, "main", run_main, process);
  return process;
}

struct process *
process_current (void)
{
  struct actor *actor = world_self ();

  return actor != NULL ? actor->process : NULL;
}

void *
process_data (const struct process *process)
{
  return process->data;
}

bool
process_is_far (const struct process *process)
{
  return process->is_far;
}

int
process_pid (const struct process *process)
{
  return process->pid;
}

void
process_kill (struct process *process)
{
  process_end (process, -1);
}

bool
process_is_dead (const struct process *process)
{
  return process->is_dead;
}

bool
process_is_over (const struct process *process)
{
  return process->is_dead && process->n_live == 0;
}

int
process_status (const struct process *process)
{
  return process->status;
}

void
process_free (struct process *process)
{
  struct process **link = &world.processes;

  g_assert_true (process_is_over (process));
  while (*link != process)
    link = &(*link)->next;
  *link = process->next;
  while (process->actors != NULL)
    {
      struct actor *actor = process->actors;

      process->actors = actor->next;
      g_free (actor);
    }
  g_hash_table_unref (process->blocks);
  g_free (process);
}

void *
process_alloc (struct process *process, size_t size, size_t limit)
{
  size_t pages = (size + 4095) / 4096 * 4096;
  void *memory;

  if (pages > limit - MIN (limit, process->allocated))
    return NULL;
  memory = g_malloc0 (size);
  process->allocated += pages;
  g_hash_table_insert (process->blocks, memory, GSIZE_TO_POINTER (size));
  return memory;
}

void
process_release (struct process *process, void *memory, size_t size)
{
  g_assert_cmpuint (GPOINTER_TO_SIZE (g_hash_table_lookup (process->blocks, memory)), ==, size);
  process->allocated -= (size + 4095) / 4096 * 4096;
  g_hash_table_remove (process->blocks, memory);
}

size_t
process_allocated (const struct process *process)
{
  return process->allocated;
}
