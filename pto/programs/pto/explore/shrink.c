/* shrink.c: which of many things does it take?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "shrink.h"

/* Piece p of n, or what is left without it. */
static GArray *
take (GArray *items, guint p, guint n, gboolean rest)
{
  GArray *taken = g_array_copy (items);
  guint first = (guint) ((guint64) items->len * p / n);
  guint end = (guint) ((guint64) items->len * (p + 1) / n);

  if (rest)
    g_array_remove_range (taken, first, end - first);
  else
    {
      g_array_set_size (taken, end);
      g_array_remove_range (taken, 0, first);
    }
  return taken;
}

GArray *
shrink (GArray *all, ShrinkTest test, gboolean (*is_over) (gpointer data), gpointer data)
{
  GArray *items = g_array_copy (all);
  guint pieces = 2;

  while (items->len > 0)
    {
      GArray *found = NULL;
      gboolean is_piece = FALSE;

      pieces = MIN (pieces, items->len);
      /* One piece alone; then all but one. Of two pieces these are the same; of one: nothing. */
      for (guint round = pieces > 2 ? 0 : 1; round < 2 && found == NULL; round++)
        for (guint p = 0; p < pieces && found == NULL; p++)
          {
            g_autoptr (GArray) taken = take (items, p, pieces, round == 1);

            if (is_over != NULL && is_over (data))
              return items;
            if (test (taken, data))
              {
                found = g_steal_pointer (&taken);
                is_piece = round == 0;
              }
          }
      if (found != NULL)
        {
          g_array_unref (items);
          items = found;
          pieces = is_piece ? 2 : MAX (pieces - 1, 2);
        }
      else if (pieces < items->len)
        pieces = MIN (pieces * 2, items->len);
      else
        break;
    }
  return items;
}
