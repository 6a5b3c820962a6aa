/* pto-gate.c: how does an orchestration function on one thread drive the thread that runs the chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-gate-private.h"

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
  void (*call) (gpointer data); /* to be made by the guest; NULL: none, or made */
  gpointer data;
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
    gate->state = BEGUN;
  g_mutex_unlock (&gate->lock);
  return begun;
}

void
pto_gate_call (PtoGate *gate, void (*call) (gpointer data), gpointer data)
{
  g_mutex_lock (&gate->lock);
  g_assert (gate->state == BEGUN && gate->call == NULL);
  gate->call = call;
  gate->data = data;
  g_cond_broadcast (&gate->changed);
  while (gate->call != NULL)
    g_cond_wait (&gate->changed, &gate->lock);
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
          g_mutex_unlock (&gate->lock);
          gate->call (gate->data);
          g_mutex_lock (&gate->lock);
          gate->call = NULL;
          g_cond_broadcast (&gate->changed);
        }
      else
        g_cond_wait (&gate->changed, &gate->lock);
    }
  ended = gate->state == ENDED;
  g_mutex_unlock (&gate->lock);
  return ended;
}
