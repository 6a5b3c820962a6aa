/* probe-openmp.c: does this compiler come with an OpenMP runtime, and does it know iterators in
 * depend clauses?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <omp.h>

int
main (void)
{
  int words[2] = { 0, 0 };

#pragma omp parallel
#pragma omp single
#pragma omp task depend(iterator(int i = 0 : 2), inout : words[i])
  words[0] = omp_get_num_threads ();
  return words[1];
}
