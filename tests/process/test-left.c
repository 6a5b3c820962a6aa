/* test-left.c: is it known of each byte whether it is with a child, and what becomes of that?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/process/remote-results.h"

#include <glib.h>
#include <string.h>

#define BYTES 64u
#define CHILDREN 3u
#define N_RANGES 64u

/* What is on its way is not removed, and can be neither wanted nor asked for once more. */
static void
test_on_its_way (void)
{
  struct pto_left left;
  struct pto_left_range ranges[2];
  uint64_t who[1] = { 0 };

  pto_left_init (&left);
  g_assert_true (pto_left_add (&left, 100, 200, 0));
  pto_left_want (&left, 120, 140, who);
  g_assert_cmpuint (who[0], ==, 1);
  g_assert_cmpuint (pto_left_ask (&left, 0, ranges, 2), ==, 1);
  g_assert_cmpuint (ranges[0].begin, ==, 120);
  g_assert_cmpuint (ranges[0].end, ==, 140);
  g_assert_true (pto_left_remove (&left, 0, UINT64_MAX, PTO_LEFT_NOBODY));
  g_assert_true (pto_left_is_asked (&left, 130, 131));
  g_assert_false (pto_left_is_asked (&left, 140, 200));
  pto_left_want_all (&left, 0);
  g_assert_cmpuint (pto_left_ask (&left, 0, ranges, 2), ==, 0);
  pto_left_come (&left, 0);
  g_assert_true (pto_left_is_empty (&left));
  g_assert_false (pto_left_remove (&left, 0, UINT64_MAX, PTO_LEFT_NOBODY));
  pto_left_destroy (&left);
}

/* --- anything, beside a byte for each byte --- */

struct model
{
  uint32_t child; /* PTO_LEFT_NOBODY: it is here */
  enum pto_left_state state;
};

static void
check (struct pto_left *left, const struct model model[BYTES], uint64_t begin, uint64_t end,
       uint32_t child)
{
  enum pto_left_where wanted = PTO_LEFT_HERE;
  bool is_asked = false;
  uint64_t there = 0;
  uint32_t who = PTO_LEFT_NOBODY, lost = PTO_LEFT_NOBODY;

  for (uint64_t b = end; b-- > begin;)
    {
      is_asked
          = is_asked || (model[b].child != PTO_LEFT_NOBODY && model[b].state == PTO_LEFT_ASKED);
      there += model[b].child == child;
      if (model[b].child == PTO_LEFT_NOBODY)
        continue;
      if (model[b].state == PTO_LEFT_LOST)
        {
          wanted = PTO_LEFT_GONE;
          lost = model[b].child;
        }
      else if (wanted != PTO_LEFT_GONE)
        wanted = PTO_LEFT_SOMEWHERE;
    }
  if (wanted == PTO_LEFT_SOMEWHERE && there == end - begin)
    wanted = PTO_LEFT_THERE;
  g_assert_cmpint (pto_left_find (left, begin, end, child, &who), ==, wanted);
  if (wanted == PTO_LEFT_GONE)
    g_assert_cmpuint (who, ==, lost);
  g_assert_cmpint (pto_left_is_asked (left, begin, end), ==, is_asked);
}

static void
test_random (void)
{
  for (uint32_t round = 0; round < 300; round++)
    {
      struct model model[BYTES];
      struct pto_left left;

      pto_left_init (&left);
      for (uint32_t b = 0; b < BYTES; b++)
        model[b].child = PTO_LEFT_NOBODY;
      for (uint32_t step = 0; step < 200; step++)
        {
          uint32_t a = (uint32_t) g_test_rand_int_range (0, BYTES + 1);
          uint32_t b = (uint32_t) g_test_rand_int_range (0, BYTES + 1);
          uint32_t begin = MIN (a, b), end = MAX (a, b);
          uint32_t child = (uint32_t) g_test_rand_int_range (0, CHILDREN);
          struct pto_left_range ranges[N_RANGES];
          uint64_t who[1] = { 0 }, wanted = 0;
          bool comes = false;
          uint32_t n;

          switch (g_test_rand_int_range (0, 7))
            {
            case 0:
            case 1:
              /* Nobody writes where something is on its way to. */
              if (pto_left_is_asked (&left, begin, end))
                break;
              g_assert_true (pto_left_add (&left, begin, end, child));
              for (uint32_t i = begin; i < end; i++)
                model[i] = (struct model){ child, PTO_LEFT_LEFT };
              break;
            case 2:
              for (uint32_t i = begin; i < end; i++)
                if (model[i].child != PTO_LEFT_NOBODY && model[i].state == PTO_LEFT_ASKED)
                  comes = true;
                else if (model[i].child != child)
                  model[i].child = PTO_LEFT_NOBODY;
              g_assert_cmpint (pto_left_remove (&left, begin, end, child), ==, comes);
              break;
            case 3:
              pto_left_want (&left, begin, end, who);
              for (uint32_t i = begin; i < end; i++)
                if (model[i].child != PTO_LEFT_NOBODY && model[i].state != PTO_LEFT_LOST)
                  {
                    wanted |= UINT64_C (1) << model[i].child;
                    if (model[i].state == PTO_LEFT_LEFT)
                      model[i].state = PTO_LEFT_WANTED;
                  }
              g_assert_cmpuint (who[0], ==, wanted);
              break;
            case 4:
              n = pto_left_ask (&left, child, ranges, N_RANGES);
              for (uint32_t r = 0; r < n; r++)
                for (uint64_t i = ranges[r].begin; i < ranges[r].end; i++)
                  {
                    g_assert_cmpuint (model[i].child, ==, child);
                    g_assert_cmpint (model[i].state, ==, PTO_LEFT_WANTED);
                    model[i].state = PTO_LEFT_ASKED;
                  }
              for (uint32_t i = 0; i < BYTES; i++)
                g_assert_false (model[i].child == child && model[i].state == PTO_LEFT_WANTED);
              break;
            case 5:
              pto_left_come (&left, child);
              for (uint32_t i = 0; i < BYTES; i++)
                if (model[i].child == child && model[i].state == PTO_LEFT_ASKED)
                  model[i].child = PTO_LEFT_NOBODY;
              break;
            default:
              if (g_test_rand_int_range (0, 4) > 0)
                break;
              pto_left_lose (&left, child);
              for (uint32_t i = 0; i < BYTES; i++)
                if (model[i].child == child)
                  model[i].state = PTO_LEFT_LOST;
            }
          check (&left, model, begin, end, child);
          check (&left, model, 0, BYTES, child);
          comes = false;
          for (uint32_t i = 0; i < BYTES; i++)
            comes = comes
                    || (model[i].child != PTO_LEFT_NOBODY
                        && (model[i].state == PTO_LEFT_WANTED || model[i].state == PTO_LEFT_ASKED));
          g_assert_cmpint (pto_left_is_awaited (&left), ==, comes);
        }
      pto_left_destroy (&left);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/left/on-its-way", test_on_its_way);
  g_test_add_func ("/pto/left/random", test_random);
  return g_test_run ();
}
