/* nearest-word.h: which word was meant?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Included after what defines _().
 */
#pragma once

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PTO_NEAREST_MAX 48u /* bytes; longer words are like none */

/* Letters are alike whatever their case, and so are _ and -. */
static inline int
pto_nearest_fold (char c)
{
  return c == '_' ? '-' : tolower ((unsigned char) c);
}

/* Returns how many letters must be put in, left out, changed or exchanged with the next one. */
static inline size_t
pto_nearest_distance (const char *one, const char *other)
{
  size_t rows[3][PTO_NEAREST_MAX + 1];
  size_t n = strlen (one);
  size_t m = strlen (other);

  if (n > PTO_NEAREST_MAX || m > PTO_NEAREST_MAX)
    return PTO_NEAREST_MAX;
  for (size_t j = 0; j <= m; j++)
    rows[0][j] = j;
  for (size_t i = 1; i <= n; i++)
    {
      size_t *row = rows[i % 3];
      const size_t *above = rows[(i + 2) % 3];
      const size_t *before = rows[(i + 1) % 3];

      row[0] = i;
      for (size_t j = 1; j <= m; j++)
        {
          int a = pto_nearest_fold (one[i - 1]);
          int b = pto_nearest_fold (other[j - 1]);

          row[j] = above[j - 1] + (a != b);
          if (above[j] + 1 < row[j])
            row[j] = above[j] + 1;
          if (row[j - 1] + 1 < row[j])
            row[j] = row[j - 1] + 1;
          if (i > 1 && j > 1 && a == pto_nearest_fold (other[j - 2])
              && b == pto_nearest_fold (one[i - 2]) && before[j - 2] + 1 < row[j])
            row[j] = before[j - 2] + 1;
        }
    }
  return rows[n % 3][m];
}

/* One search; word is what was typed. */
struct pto_nearest
{
  const char *word;
  const char *found; /* NULL: none is near enough */
  size_t distance;
};

static inline void
pto_nearest_try (struct pto_nearest *nearest, const char *candidate)
{
  size_t length = strlen (nearest->word);
  size_t distance = pto_nearest_distance (nearest->word, candidate);

  if (distance > (length < 5 ? (length + 1) / 3 : 1 + length / 4)
      || (nearest->found != NULL && distance >= nearest->distance))
    return;
  nearest->found = candidate;
  nearest->distance = distance;
}

/* Writes the question that follows a message, or nothing. pto/core/parameters.c has the text, too,
 * from where the catalogues take it. */
static inline const char *
pto_nearest_ask (const struct pto_nearest *nearest, char *text, size_t size)
{
  text[0] = '\0';
  if (nearest->found != NULL)
    snprintf (text, size, _ ("; did you mean \"%s\"?"), nearest->found);
  return text;
}
