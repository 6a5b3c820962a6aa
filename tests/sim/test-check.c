/* test-check.c: is it found what kernels touch and must not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-test.h"

#include "../../sim/check-connect.h"

extern PTO2AccessTable pto2_access_table_2;

static void
add_tests (void)
{
  pto_check_connect (&pto2_access_table_2);
  check_add_task_tests ();
  check_add_order_tests ();
  check_add_bytes_tests ();
  check_add_parts_tests ();
  check_add_graph_tests ();
  check_add_run_tests ();
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
