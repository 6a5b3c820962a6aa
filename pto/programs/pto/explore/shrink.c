/* shrink.c: which of many things does it take?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "shrink.h"

/* Piece p of n, or what is left without it. */
static GArray *
take (const GArray *items, guint p, guint n, gboolean rest)
{
  GArray *taken = g_array_new (FALSE, FALSE, sizeof (guint));
  guint first = (guint) ((guint64) items->len * p / n);
  guint end = (guint) ((guint64) items->len * (p + 1) / n);

  for (guint i = 0; i < items->len; i++)
    if ((i >= first && i < end) != rest)
      g_array_append_val (taken, g_array_index (items, guint, i));
  return taken;
}

GArray *
shrink (guint n, ShrinkTest test, gboolean (*is_over) (gpointer data), gpointer data)
{
  GArray *items = g_array_new (FALSE, FALSE, sizeof (guint));
  guint pieces = 2;

  for (guint i = 0; i < n; i++)
    g_array_append_val (items, i);
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
            if (test ((const guint *) (gpointer) taken->data, taken->len, data))
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
