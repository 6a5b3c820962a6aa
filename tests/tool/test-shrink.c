/* test-shrink.c: is what is left after shrinking enough, and none of it too much?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/programs/pto/explore/shrink.h"

#define N_MAX 9

typedef struct
{
  /* Of each set of items, as bits: does it happen? */
  guint8 happens[1 << N_MAX];
  guint n_tests;
  guint limit; /* of them; 0: none */
} Table;

static guint
bits_of (const GArray *items)
{
  guint bits = 0;

  for (guint i = 0; i < items->len; i++)
    {
      guint item = g_array_index (items, guint, i);

      g_assert_true (i == 0 || item > g_array_index (items, guint, i - 1));
      bits |= 1u << item;
    }
  return bits;
}

/* With all numbers below n. */
static GArray *
shrink_numbers (guint n, ShrinkTest test, gboolean (*is_over) (gpointer data), gpointer data)
{
  g_autoptr (GArray) items = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint i = 0; i < n; i++)
    g_array_append_val (items, i);
  return shrink (items, test, is_over, data);
}

static gboolean
test_table (const GArray *items, gpointer data)
{
  Table *table = data;

  table->n_tests++;
  return table->happens[bits_of (items)];
}

static gboolean
is_over (gpointer data)
{
  const Table *table = data;

  return table->limit > 0 && table->n_tests >= table->limit;
}

/* Whatever it takes: what is left is enough, and is not without any one of it. */
static void
test_minimal (void)
{
  Table *table = g_new (Table, 1);

  for (guint round = 0; round < 20000; round++)
    {
      guint n = (guint) g_test_rand_int_range (0, N_MAX + 1);
      int rare = g_test_rand_int_range (1, 12);
      g_autoptr (GArray) left = NULL;
      guint bits;

      for (guint set = 0; set < 1u << n; set++)
        table->happens[set] = g_test_rand_int_range (0, rare) == 0;
      table->happens[(1u << n) - 1] = TRUE;
      table->n_tests = table->limit = 0;
      left = shrink_numbers (n, test_table, is_over, table);
      bits = bits_of (left);
      g_assert_true (table->happens[bits]);
      for (guint i = 0; i < left->len; i++)
        g_assert_false (table->happens[bits & ~(1u << g_array_index (left, guint, i))]);
    }
  g_free (table);
}

/* At any time what is left so far is enough. */
static void
test_stopped (void)
{
  Table *table = g_new (Table, 1);

  for (guint round = 0; round < 5000; round++)
    {
      g_autoptr (GArray) left = NULL;

      for (guint set = 0; set < 1u << N_MAX; set++)
        table->happens[set] = g_test_rand_int_range (0, 3) == 0;
      table->happens[(1u << N_MAX) - 1] = TRUE;
      table->n_tests = 0;
      table->limit = (guint) g_test_rand_int_range (1, 30);
      left = shrink_numbers (N_MAX, test_table, is_over, table);
      g_assert_cmpuint (table->n_tests, <=, table->limit);
      g_assert_true (table->happens[bits_of (left)]);
    }
  g_free (table);
}

/* What needs some, and does not mind others. */
typedef struct
{
  guint8 needed[2000];
  guint n_needed;
  guint n_tests;
} Needs;

static gboolean
test_needs (const GArray *items, gpointer data)
{
  Needs *needs = data;
  guint found = 0;

  needs->n_tests++;
  for (guint i = 0; i < items->len; i++)
    found += needs->needed[g_array_index (items, guint, i)];
  return found == needs->n_needed;
}

static void
test_few_of_many (void)
{
  for (guint round = 0; round < 200; round++)
    {
      Needs needs = { { 0 }, 0, 0 };
      guint n = (guint) g_test_rand_int_range (1, 2000);
      guint wanted = (guint) g_test_rand_int_range (0, 5);
      g_autoptr (GArray) left = NULL;

      for (guint k = 0; k < wanted; k++)
        {
          guint item = (guint) g_test_rand_int_range (0, (int) n);

          needs.n_needed += !needs.needed[item];
          needs.needed[item] = 1;
        }
      left = shrink_numbers (n, test_needs, NULL, &needs);
      g_assert_cmpuint (left->len, ==, needs.n_needed);
      for (guint i = 0; i < left->len; i++)
        g_assert_cmpuint (needs.needed[g_array_index (left, guint, i)], ==, 1);
      /* Not by trying one after the other. */
      g_assert_cmpuint (needs.n_tests, <, 600);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/shrink/minimal", test_minimal);
  g_test_add_func ("/pto/shrink/stopped", test_stopped);
  g_test_add_func ("/pto/shrink/few-of-many", test_few_of_many);
  return g_test_run ();
}
