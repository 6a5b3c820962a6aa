/* registration-test.c: what do the tests of registrations share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "registration-test.h"

void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->dir = object_test_make_dir ();
}

void
tear_down (Fixture *fixture, gconstpointer data)
{
  object_test_remove_dir (fixture->dir);
}

PtoRegistration *
make (PtoCallable *callable)
{
  g_autoptr (GError) error = NULL;
  PtoRegistration *registration
      = pto_registration_new (callable, PLATFORM, FALSE, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  return registration;
}

PtoRegistration *
make_import (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable = pto_imported_function_new (PTO_CALLABLE_SUB, path, &error);

  g_assert_no_error (error);
  return make (callable);
}
