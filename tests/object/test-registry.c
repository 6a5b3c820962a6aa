/* test-registry.c: who has registered what, how often, and who waits for whom?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "registration-test.h"

static PtoRegistration *
begin (PtoRegistry *registry, PtoRegistration *fresh, gboolean expect_first)
{
  g_autoptr (GError) error = NULL;
  gboolean is_first;
  PtoRegistration *registration
      = pto_registry_begin (registry, fresh, TRUE, NULL, &is_first, &error);

  g_assert_no_error (error);
  g_assert_cmpint (is_first, ==, expect_first);
  return registration;
}

static PtoRegistration *
add (PtoRegistry *registry, const char *path)
{
  PtoRegistration *fresh = make_import (path);
  PtoRegistration *registration = begin (registry, fresh, TRUE);

  g_assert_true (registration == fresh);
  pto_registration_unref (fresh);
  pto_registry_commit (registry, registration, TRUE);
  return registration;
}

/* Takes them all. */
static guint
count_ready (PtoRegistry *registry)
{
  g_autoptr (GPtrArray) removed
      = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_registration_unref);

  pto_registry_clear (registry, removed);
  return removed->len;
}

/* Gives whether it was the last. */
static gboolean
take_back (PtoRegistry *registry, PtoCallableHandle *handle)
{
  g_autoptr (GError) error = NULL;
  gboolean is_last;
  PtoRegistration *registration = pto_registry_release (registry, handle, &is_last, &error);

  g_assert_no_error (error);
  if (is_last)
    pto_registry_forget (registry, registration);
  pto_registration_unref (registration);
  return is_last;
}

static void
test_counted (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoRegistry *registry = pto_registry_new (5);
  PtoRegistration *first = add (registry, "a:b");
  PtoRegistration *fresh = make_import ("a:b");
  PtoRegistration *second = begin (registry, fresh, FALSE);
  g_autoptr (PtoCallableHandle) handle = pto_callable_handle_ref (first->handle);
  gboolean is_last = TRUE;
  guint index;

  g_assert_true (first == second);
  g_assert_cmpuint (pto_callable_handle_get_owner (handle), ==, 5);
  g_assert_true (pto_registry_find_callable (registry, first->callable, &index));
  g_assert_true (pto_registry_find_callable (registry, fresh->callable, &index));
  g_assert_cmpuint (index, ==, first->index);

  g_assert_false (take_back (registry, handle));
  g_assert_true (pto_registry_find_callable (registry, first->callable, &index));
  g_assert_true (take_back (registry, handle));
  g_assert_false (pto_registry_find_callable (registry, first->callable, &index));
  g_assert_null (pto_registry_lookup (registry, handle, NULL));
  g_assert_null (pto_registry_release (registry, handle, &is_last, &error));
  g_assert_false (is_last);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "\"b\" is not registered on this worker any more");
  pto_registration_unref (first);
  pto_registration_unref (second);
  pto_registration_unref (fresh);
  pto_registry_free (registry);
}

/* A program that makes another callable of the same for each run lets go of each; the next one,
 * which malloc() likes to put where the last one was, is not taken for it. */
static void
test_keeps_no_callable (Fixture *fixture, gconstpointer data)
{
  PtoRegistry *registry = pto_registry_new (5);
  PtoRegistration *first = add (registry, "a:b");
  PtoCallable *held[10] = { NULL };
  guint index;

  for (guint i = 0; i < 1000; i++)
    {
      PtoRegistration *fresh = make_import ("a:b");
      PtoCallable *callable = g_object_ref (fresh->callable);

      g_assert_false (pto_registry_find_callable (registry, callable, &index));
      pto_registration_unref (begin (registry, fresh, FALSE));
      g_assert_true (pto_registry_find_callable (registry, callable, &index));
      g_assert_cmpuint (index, ==, first->index);
      pto_registration_unref (fresh);
      if (i % 100 == 0)
        held[i / 100] = callable;
      else
        g_assert_finalize_object (callable);
    }
  g_assert_true (pto_registry_find_callable (registry, first->callable, &index));
  for (guint i = 0; i < G_N_ELEMENTS (held); i++)
    {
      g_assert_true (pto_registry_find_callable (registry, held[i], &index));
      g_assert_finalize_object (held[i]);
    }
  pto_registration_unref (first);
  g_assert_cmpuint (count_ready (registry), ==, 1);
  pto_registry_free (registry);
}

static void
test_other_owner (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoRegistry *mine = pto_registry_new (1);
  PtoRegistry *others = pto_registry_new (2);
  PtoRegistration *a = add (mine, "a:b");
  PtoRegistration *b = add (others, "a:b");
  PtoRegistration *found;

  g_assert_false (pto_callable_handle_equal (a->handle, b->handle));
  g_assert_null (pto_registry_lookup (mine, b->handle, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "\"b\" is not registered on this worker: its handle "
                                               "is of another worker");
  g_clear_error (&error);
  found = pto_registry_lookup (mine, a->handle, &error);
  g_assert_no_error (error);
  g_assert_true (found == a);
  pto_registration_unref (found);
  pto_registration_unref (a);
  pto_registration_unref (b);
  pto_registry_free (mine);
  pto_registry_free (others);
}

/* What a machine refused was never there. */
static void
test_rolled_back (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoRegistry *registry = pto_registry_new (1);
  PtoRegistration *fresh = make_import ("a:b");
  PtoRegistration *begun = begin (registry, fresh, TRUE);
  PtoRegistration *again;
  guint index;

  /* Not to be found while it is being added. */
  g_assert_null (pto_registry_lookup (registry, begun->handle, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_assert_false (pto_registry_find_callable (registry, fresh->callable, &index));
  pto_registry_commit (registry, begun, FALSE);
  g_assert_null (pto_registry_lookup (registry, begun->handle, NULL));
  g_assert_cmpuint (count_ready (registry), ==, 0);
  again = add (registry, "a:b");
  g_assert_cmpuint (again->index, ==, begun->index);
  pto_registration_unref (again);
  pto_registration_unref (begun);
  pto_registration_unref (fresh);
  pto_registry_free (registry);
}

/* A private slot is another's only when nothing can name it any more. */
static void
test_indices (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "add.c", object_test_add);
  PtoRegistry *registry = pto_registry_new (1);
  PtoRegistration *a = add (registry, "m:a");
  PtoRegistration *b = add (registry, "m:b");
  PtoRegistration *of_kernel = make (kernel);
  PtoRegistration *begun = begin (registry, of_kernel, TRUE);
  g_autoptr (GPtrArray) removed
      = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_registration_unref);
  PtoRegistration *released;
  PtoRegistration *c;
  PtoRegistration *d;
  gboolean is_last;

  pto_registry_commit (registry, begun, TRUE);
  g_assert_cmpuint (a->index, ==, 0);
  g_assert_cmpuint (b->index, ==, 1);
  g_assert_cmpuint (begun->index, ==, 0);
  released = pto_registry_release (registry, a->handle, &is_last, &error);
  g_assert_true (is_last);
  c = add (registry, "m:c");
  g_assert_cmpuint (c->index, ==, 2);
  pto_registry_forget (registry, released);
  d = add (registry, "m:d");
  g_assert_cmpuint (d->index, ==, 0);

  pto_registry_clear (registry, removed);
  g_assert_cmpuint (removed->len, ==, 4);
  g_assert_null (pto_registry_lookup (registry, b->handle, NULL));

  pto_registration_unref (released);
  pto_registration_unref (a);
  pto_registration_unref (b);
  pto_registration_unref (c);
  pto_registration_unref (d);
  pto_registration_unref (of_kernel);
  pto_registration_unref (begun);
  pto_registry_free (registry);
}

typedef struct
{
  PtoRegistry *registry;
  int adding; /* atomic: threads between begin and commit */
  int added;  /* atomic: what a machine would hold of it */
  int rounds;
} Race;

/* Everybody registers and unregisters the same content. The machine has it once at a time, and
 * nobody gets a handle that it does not have. */
static gpointer
race (gpointer data)
{
  Race *self = data;

  for (int i = 0; i < self->rounds; i++)
    {
      PtoRegistration *fresh = make_import ("a:b");
      gboolean is_first;
      gboolean is_last;
      PtoRegistration *registration
          = pto_registry_begin (self->registry, fresh, TRUE, NULL, &is_first, NULL);

      g_assert_nonnull (registration);
      if (is_first)
        {
          gboolean ok = i % 3 != 0;

          g_assert_cmpint (g_atomic_int_add (&self->adding, 1), ==, 0);
          g_thread_yield ();
          if (ok)
            g_atomic_int_inc (&self->added);
          g_assert_true (g_atomic_int_dec_and_test (&self->adding));
          pto_registry_commit (self->registry, registration, ok);
          if (!ok)
            {
              pto_registration_unref (registration);
              pto_registration_unref (fresh);
              continue;
            }
        }
      g_assert_cmpint (g_atomic_int_get (&self->added), >, 0);
      pto_registration_unref (
          pto_registry_release (self->registry, registration->handle, &is_last, NULL));
      if (is_last)
        {
          pto_registry_forget (self->registry, registration);
          g_atomic_int_add (&self->added, -1);
        }
      pto_registration_unref (registration);
      pto_registration_unref (fresh);
    }
  return NULL;
}

static void
test_race (Fixture *fixture, gconstpointer data)
{
  Race self = { .registry = pto_registry_new (1), .rounds = 500 };
  GThread *threads[4];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("race", race, &self);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_cmpint (self.added, ==, 0);
  g_assert_cmpuint (count_ready (self.registry), ==, 0);
  pto_registry_free (self.registry);
}

typedef struct
{
  PtoRegistry *registry;
  PtoRegistration *fresh;
  GCancellable *cancellable;
  PtoRegistration *result;
  gboolean is_first;
  GError *error;
} Waiter;

static gpointer
wait_for_other (gpointer data)
{
  Waiter *waiter = data;

  waiter->result = pto_registry_begin (waiter->registry, waiter->fresh, TRUE, waiter->cancellable,
                                       &waiter->is_first, &waiter->error);
  return NULL;
}

/* Whoever comes second waits for the first, and is the first when that one was refused. */
static void
test_waits (Fixture *fixture, gconstpointer data)
{
  for (guint i = 0; i < 3; i++)
    {
      Waiter waiter = { .registry = pto_registry_new (1),
                        .fresh = make_import ("a:b"),
                        .cancellable = g_cancellable_new () };
      PtoRegistration *fresh = make_import ("a:b");
      PtoRegistration *first = begin (waiter.registry, fresh, TRUE);
      GThread *thread = g_thread_new ("waiter", wait_for_other, &waiter);

      if (i == 0)
        {
          g_cancellable_cancel (waiter.cancellable);
          g_thread_join (thread);
          g_assert_null (waiter.result);
          g_assert_error (waiter.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
          pto_registry_commit (waiter.registry, first, TRUE);
        }
      else
        {
          pto_registry_commit (waiter.registry, first, i == 1);
          g_thread_join (thread);
          g_assert_no_error (waiter.error);
          g_assert_cmpint (waiter.is_first, ==, i == 2);
          g_assert_true (waiter.result == (i == 1 ? first : waiter.fresh));
          if (i == 2)
            pto_registry_commit (waiter.registry, waiter.result, TRUE);
          pto_registration_unref (waiter.result);
        }
      g_clear_error (&waiter.error);
      pto_registration_unref (first);
      pto_registration_unref (fresh);
      pto_registration_unref (waiter.fresh);
      pto_registry_free (waiter.registry);
      g_object_unref (waiter.cancellable);
    }
}

/* Who may not wait for another thread is refused at once, and keeps nothing. */
static void
test_may_not_wait (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoRegistry *registry = pto_registry_new (1);
  PtoRegistration *first = make_import ("a:b");
  PtoRegistration *second = make_import ("a:b");
  gboolean is_first;

  pto_registration_unref (begin (registry, first, TRUE));
  g_assert_null (pto_registry_begin (registry, second, FALSE, NULL, &is_first, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_BUSY);
  object_test_assert_contains (error->message, "another thread is registering \"b\"");
  g_clear_error (&error);
  pto_registry_commit (registry, first, TRUE);
  g_assert_true (pto_registry_begin (registry, second, FALSE, NULL, &is_first, &error) == first);
  g_assert_no_error (error);
  g_assert_cmpuint (first->count, ==, 2);
  pto_registration_unref (first);
  pto_registration_unref (first);
  pto_registration_unref (second);
  pto_registry_free (registry);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

#define ADD(path, test) g_test_add (path, Fixture, NULL, set_up, test, tear_down)
  ADD ("/pto/registry/counted", test_counted);
  ADD ("/pto/registry/keeps-no-callable", test_keeps_no_callable);
  ADD ("/pto/registry/other-owner", test_other_owner);
  ADD ("/pto/registry/rolled-back", test_rolled_back);
  ADD ("/pto/registry/indices", test_indices);
  ADD ("/pto/registry/race", test_race);
  ADD ("/pto/registry/waits", test_waits);
  ADD ("/pto/registry/may-not-wait", test_may_not_wait);
#undef ADD
  return g_test_run ();
}
