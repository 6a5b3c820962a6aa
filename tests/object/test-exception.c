/* test-exception.c: is an exception, wherever it was raised, still one when it arrives?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <string.h>

static PtoException *
make_group (void)
{
  g_autoptr (PtoException) first = pto_exception_new ("ValueError", "one", NULL, NULL, 0);
  g_autoptr (PtoException) second = pto_exception_new ("KeyError", "two\xff", "at home", NULL, 0);
  PtoException *members[] = { first, second };

  return pto_exception_new ("ExceptionGroup", "both", "line 1\nline 2", members, 2);
}

static void
assert_group (PtoException *group)
{
  g_assert_cmpstr (pto_exception_get_type_name (group), ==, "ExceptionGroup");
  g_assert_cmpstr (pto_exception_get_message (group), ==, "both");
  g_assert_cmpstr (pto_exception_get_trace (group), ==, "line 1\nline 2");
  g_assert_cmpuint (pto_exception_get_n_members (group), ==, 2);
  g_assert_cmpstr (pto_exception_get_type_name (pto_exception_get_member (group, 0)), ==,
                   "ValueError");
  g_assert_null (pto_exception_get_trace (pto_exception_get_member (group, 0)));
  g_assert_cmpstr (pto_exception_get_message (pto_exception_get_member (group, 1)), ==,
                   "two\xef\xbf\xbd");
  g_assert_cmpstr (pto_exception_get_trace (pto_exception_get_member (group, 1)), ==, "at home");
}

/* What is thrown is in the next error, in copies of it, and found when that is freed. */
static void
test_errors (void)
{
  g_autoptr (PtoException) group = make_group ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) copy = NULL;
  g_autoptr (GError) plain = NULL;
  g_autoptr (GError) other = g_error_new_literal (PTO_ERROR, PTO_ERROR_LOAD, "other");

  pto_exception_throw (group);
  error = g_error_new_literal (PTO_EXCEPTION, 0, "why");
  plain = g_error_new_literal (PTO_EXCEPTION, 0, "nothing was thrown");
  copy = g_error_copy (error);
  g_prefix_error (&copy, "there: ");
  g_assert_true (pto_exception_get_for_error (error) == group);
  g_assert_true (pto_exception_get_for_error (copy) == group);
  g_assert_null (pto_exception_get_for_error (plain));
  g_assert_null (pto_exception_get_for_error (other));
  g_assert_null (pto_exception_get_last ());
  g_clear_error (&copy);
  g_assert_true (pto_exception_get_last () == group);
  g_clear_error (&other);
  g_assert_true (pto_exception_get_last () == group);
  g_clear_error (&plain);
  g_assert_null (pto_exception_get_last ());
}

static gboolean
throw_group (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  g_autoptr (PtoException) group = make_group ();

  pto_exception_throw (group);
  g_set_error (error, PTO_EXCEPTION, 0, "ExceptionGroup: both");
  return FALSE;
}

/* More than a mailbox takes: what it was stays, and how it ends. */
static gboolean
throw_much (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  g_autofree char *much = g_strnfill (100000, 'x');
  g_autofree char *trace = g_strconcat (much, "the end", NULL);
  g_autoptr (PtoException) exception = pto_exception_new ("Error", "why", trace, NULL, 0);

  pto_exception_throw (exception);
  g_set_error (error, PTO_EXCEPTION, 0, "Error: why");
  return FALSE;
}

static gboolean
throw_many (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  g_autofree char *much = g_strnfill (100000, 'x');
  g_autoptr (PtoException) member = pto_exception_new ("Error", much, much, NULL, 0);
  PtoException *members[100];
  g_autoptr (PtoException) group = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    members[i] = member;
  group = pto_exception_new ("Group", much, much, members, G_N_ELEMENTS (members));
  pto_exception_throw (group);
  g_set_error (error, PTO_EXCEPTION, 0, "Group");
  return FALSE;
}

/* Its domain, but nothing inside. */
static gboolean
throw_nothing (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  g_set_error (error, PTO_EXCEPTION, 0, "bare");
  return FALSE;
}

static gboolean
submit_it (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
           gpointer user_data, GError **error)
{
  return pto_orchestrator_submit_sub (orchestrator, user_data, NULL, -1, error);
}

static GError *
run_sub (PtoWorker *host, PtoSubFunc func)
{
  g_autoptr (PtoCallable) sub = pto_sub_function_new ("sub", func, NULL, NULL);
  g_autoptr (PtoCallableHandle) handle = NULL;
  GError *error = NULL;

  handle = pto_worker_register (host, sub, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (pto_worker_run (host, submit_it, handle, NULL, NULL, NULL, &error));
  g_assert_true (error->domain == PTO_EXCEPTION);
  g_assert_true (g_pattern_match_simple (
      "task 0 (\"sub\"), submitted at test-exception.c:*, on L3/0/sub0 failed: *", error->message));
  return error;
}

static void
test_from_children (void)
{
  for (guint threads = 0; threads < 2; threads++)
    {
      g_autoptr (PtoWorker) host
          = g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 1, "child-mode",
                          threads ? PTO_CHILD_MODE_THREAD : PTO_CHILD_MODE_PROCESS, NULL);
      g_autoptr (GError) group = run_sub (host, throw_group);
      g_autoptr (GError) much = run_sub (host, throw_much);
      g_autoptr (GError) many = run_sub (host, throw_many);
      g_autoptr (GError) nothing = run_sub (host, throw_nothing);
      PtoException *exception;

      assert_group (pto_exception_get_for_error (group));
      exception = pto_exception_get_for_error (much);
      g_assert_cmpstr (pto_exception_get_type_name (exception), ==, "Error");
      g_assert_cmpstr (pto_exception_get_message (exception), ==, "why");
      g_assert_true (g_str_has_suffix (pto_exception_get_trace (exception), "xthe end"));
      exception = pto_exception_get_for_error (many);
      g_assert_cmpstr (pto_exception_get_type_name (exception), ==, "Group");
      g_assert_true (g_str_has_prefix (pto_exception_get_message (exception), "xxxx"));
      g_assert_cmpuint (pto_exception_get_n_members (exception), ==, 0);
      g_assert_null (pto_exception_get_for_error (nothing));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/exception/errors", test_errors);
  g_test_add_func ("/pto/exception/from-children", test_from_children);
  return g_test_run ();
}
