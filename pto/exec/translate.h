/* translate.h: how does a message of the floors below come into the reader's language?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * These floors know neither GLib nor gettext: what is above hands down how a text is translated,
 * once, and without it a text stays as it is written. So the catalogue, where it lies and how it is
 * locked are known in one place (common/text.c), a program that has the engine alone needs none of
 * it, and a message and the GError that it ends in are in the same language. A text is looked up
 * where a message is made, which a run that goes well does not do. What programs read is not
 * marked: states and names in JSON, the lines that other runtimes print as well ("[HeapRing]
 * BLOCKED").
 */
#pragma once

/* Marks a text of a constant, which is translated with _() where it is used. */
#define N_(text) (text)
#define _(text) pto_text (text)
/* A count of things: in how many forms it is said is the language's affair. */
#define P_(one, many, n) pto_text_count (one, many, n)

const char *pto_text (const char *text) __attribute__ ((format_arg (1)));
const char *pto_text_count (const char *one, const char *many, unsigned long n)
    __attribute__ ((format_arg (1), format_arg (2)));

/* Before there are threads. */
void pto_text_translate_with (const char *(*text) (const char *text),
                              const char *(*count) (const char *one, const char *many,
                                                    unsigned long n));
