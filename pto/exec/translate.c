/* translate.c: who translates?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "translate.h"

#include <stddef.h>

/* Written before there are threads, then only read. */
static const char *(*translate) (const char *);
static const char *(*translate_count) (const char *, const char *, unsigned long);

void
pto_text_translate_with (const char *(*text) (const char *text),
                         const char *(*count) (const char *one, const char *many, unsigned long n))
{
  translate = text;
  translate_count = count;
}

const char *
pto_text (const char *text)
{
  return translate != NULL ? translate (text) : text;
}

const char *
pto_text_count (const char *one, const char *many, unsigned long n)
{
  if (translate_count != NULL)
    return translate_count (one, many, n);
  return n == 1 ? one : many;
}
