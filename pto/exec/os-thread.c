/* os-thread.c: who creates and ends threads of the operating system?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "os-thread.h"

#include "exec-private.h"
#include "guard-signals.h"
#include "translate.h"

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct start
{
  void (*fn) (void *arg);
  void *arg;
  sigset_t program_mask;
  char name[16]; /* the kernel keeps 15 characters */
};

static void *
os_thread_main (void *data)
{
  struct start start = *(struct start *) data;

  free (data);
  /* Not those of the thread that makes this one: kernels compute the same on all back ends. */
  fesetenv (FE_DFL_ENV);
  pthread_setname_np (pthread_self (), start.name);
  pto_thread_self ()->program_mask = &start.program_mask;
  pto_thread_prepare (pto_thread_self ());
  start.fn (start.arg);
  return NULL;
}

int
pto_os_thread_start (pthread_t *thread, const char *name, const struct pto_stack *stack,
                     void (*fn) (void *arg), void *arg, char *error, size_t error_size)
{
  struct start *start = malloc (sizeof *start);
  sigset_t blocked, previous;
  const struct pto_thread *self = pto_thread_self ();
  pthread_attr_t attr;
  int status = 0;

  if (start == NULL)
    {
      snprintf (error, error_size, _ ("No memory for the thread %s"), name);
      return -1;
    }
  start->fn = fn;
  start->arg = arg;
  snprintf (start->name, sizeof start->name, "%s", name);
  pthread_attr_init (&attr);
  if (stack != NULL)
    status = pthread_attr_setstack (&attr, stack->base + stack->guard, stack->size);
  sigfillset (&blocked);
  pto_guard_unblock (&blocked);
  /* The new thread inherits the mask, so that no signal reaches it before it could set one. */
  pthread_sigmask (SIG_SETMASK, &blocked, &previous);
  start->program_mask = self->program_mask != NULL ? *self->program_mask : previous;
  if (status == 0)
    status = pthread_create (thread, &attr, os_thread_main, start);
  pthread_sigmask (SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy (&attr);
  if (status != 0)
    {
      free (start);
      snprintf (error, error_size, _ ("No thread for %s: %s"), name, strerror (status));
      return -1;
    }
  return 0;
}

void
pto_os_thread_join (pthread_t thread)
{
  pthread_join (thread, NULL);
}

static void
go_back (void *back)
{
  longjmp (*(jmp_buf *) back, 1);
}

static void
do_nothing (void *arg)
{
}

bool
pto_os_thread_survives (void (*fn) (void *arg), void *arg)
{
  volatile bool survives = false;
  jmp_buf back;

  /* The outer one is there so that it is taken off where the end goes on behind the inner one:
   * handlers that were added meanwhile are gone with it. */
  pthread_cleanup_push (do_nothing, NULL);
  if (setjmp (back) == 0)
    {
      pthread_cleanup_push (go_back, &back);
      fn (arg);
      survives = true;
      pthread_cleanup_pop (0);
    }
  pthread_cleanup_pop (0);
  return survives;
}
