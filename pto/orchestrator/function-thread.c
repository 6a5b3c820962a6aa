/* function-thread.c: how does an orchestration function on one thread drive the thread that runs
 * the chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "function-thread.h"

/* So long the function's main loop may stand, in us, before a call lets it run: less than a frame
 * of a display, and more than a call takes that waits for nothing. */
#define TURN_US 2000

/* On the stack of pto_gate_call(), whose thread waits until it is made. */
typedef struct
{
  void (*func) (gpointer data);
  gpointer data;
  gboolean is_made;
} Call;

enum
{
  WAITING, /* for the function to begin */
  BEGUN,
  ENDED,
  ABANDONED
};

struct _PtoGate
{
  gatomicrefcount ref_count;
  GMutex lock; /* guards all below; taken last of all locks */
  GCond changed;
  int state;
  Call *call;    /* to be made by the guest; NULL: none, or made */
  guint in_loop; /* calls whose thread runs its main loop meanwhile, and is to be woken */

  /* --- the function's thread's --- */
  GMainContext *context; /* the one that the function is called in, which outlives it */
  gint64 turn;           /* when that is to run next */
};

PtoGate *
pto_gate_new (void)
{
  PtoGate *gate = g_new0 (PtoGate, 1);

  g_atomic_ref_count_init (&gate->ref_count);
  g_mutex_init (&gate->lock);
  g_cond_init (&gate->changed);
  return gate;
}

PtoGate *
pto_gate_ref (PtoGate *gate)
{
  g_atomic_ref_count_inc (&gate->ref_count);
  return gate;
}

void
pto_gate_unref (PtoGate *gate)
{
  if (!g_atomic_ref_count_dec (&gate->ref_count))
    return;
  g_mutex_clear (&gate->lock);
  g_cond_clear (&gate->changed);
  g_free (gate);
}

gboolean
pto_gate_begin (PtoGate *gate)
{
  gboolean begun;

  g_mutex_lock (&gate->lock);
  begun = gate->state == WAITING;
  if (begun)
    {
      gate->state = BEGUN;
      gate->context = g_source_get_context (g_main_current_source ());
      gate->turn = g_get_monotonic_time () + TURN_US;
    }
  g_mutex_unlock (&gate->lock);
  return begun;
}

void
pto_gate_call (PtoGate *gate, void (*func) (gpointer data), gpointer data, gboolean may_run_loop)
{
  Call call = { func, data, FALSE };

  g_mutex_lock (&gate->lock);
  g_assert (gate->state == BEGUN);
  /* A call is under way whose caller is further out on this stack, and lets the loop run. The guest
   * makes that one all the same. */
  while (gate->call != NULL)
    g_cond_wait (&gate->changed, &gate->lock);
  gate->call = &call;
  g_cond_broadcast (&gate->changed);
  while (!call.is_made && (!may_run_loop || g_get_monotonic_time () < gate->turn))
    if (may_run_loop)
      g_cond_wait_until (&gate->changed, &gate->lock, gate->turn);
    else
      g_cond_wait (&gate->changed, &gate->lock);
  if (!call.is_made)
    {
      gate->in_loop++;
      while (!call.is_made)
        {
          g_mutex_unlock (&gate->lock);
          /* The wake-up stays until the context polls. One that a call further in has taken is not
           * missed: what dispatched that call returns to here. */
          g_main_context_iteration (gate->context, TRUE);
          g_mutex_lock (&gate->lock);
        }
      gate->in_loop--;
      gate->turn = g_get_monotonic_time () + TURN_US;
    }
  g_mutex_unlock (&gate->lock);
}

void
pto_gate_end (PtoGate *gate)
{
  g_mutex_lock (&gate->lock);
  gate->state = ENDED;
  g_cond_broadcast (&gate->changed);
  g_mutex_unlock (&gate->lock);
}

void
pto_gate_abandon (PtoGate *gate)
{
  g_mutex_lock (&gate->lock);
  if (gate->state == WAITING)
    gate->state = ABANDONED;
  g_cond_broadcast (&gate->changed);
  g_mutex_unlock (&gate->lock);
}

gboolean
pto_gate_serve (PtoGate *gate)
{
  gboolean ended;

  g_mutex_lock (&gate->lock);
  while (gate->state == WAITING || gate->state == BEGUN)
    {
      if (gate->call != NULL)
        {
          Call *call = gate->call;

          g_mutex_unlock (&gate->lock);
          call->func (call->data);
          g_mutex_lock (&gate->lock);
          call->is_made = TRUE;
          gate->call = NULL;
          g_cond_broadcast (&gate->changed);
          /* Under the lock: the context is there as long as the function has not returned. */
          if (gate->in_loop > 0)
            g_main_context_wakeup (gate->context);
        }
      else
        g_cond_wait (&gate->changed, &gate->lock);
    }
  ended = gate->state == ENDED;
  g_mutex_unlock (&gate->lock);
  return ended;
}
