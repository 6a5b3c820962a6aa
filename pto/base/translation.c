/* translation.c: how does a binding say its messages in the reader's language?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-translation.h"

#include "common/text.h"

/**
 * pto_dup_translation:
 * @text: an English text, of one thing when @many is given
 * @many: (nullable): the same text of several
 * @n: how many there are; of no effect without @many
 *
 * Looks up what the library's catalogue has for a text in the reader's language.
 *
 * It is for bindings, whose own messages stand in that catalogue. Where there is no translation, or
 * the program has not set its locale, it is the text itself. Unlike g_dgettext() it finds the
 * catalogue by itself, and leaves no child of a fork with a lock that another thread held. Thread
 * safety: any thread.
 *
 * Returns: (transfer full): the translation, or the text
 *
 * Since: 0.1
 */
char *
pto_dup_translation (const char *text, const char *many, guint64 n)
{
  g_return_val_if_fail (text != NULL, NULL);

  return g_strdup (many != NULL ? pto_ngettext (text, many, n) : pto_gettext (text));
}
