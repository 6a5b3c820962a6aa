/* text.h: how does a message of the library come into the reader's language?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>
#include <inttypes.h> /* counts in a text: %" PRIu64, which gettext knows */

G_BEGIN_DECLS

/* As in GLib's own sources: the catalogue is bound by the first message that is translated, so that
 * a program whose runs go well never looks for it. */
#ifndef N_ /* those of the floors below lead here as well */
#define N_(text) (text)
#define _(text) pto_gettext (text)
/* A count of things: in how many forms it is said is the language's affair. */
#define P_(one, many, n) pto_ngettext (one, many, n)
/* A text that means something else in another place: context says which of them it is. */
#define C_(context, text) pto_pgettext (context "\004" text, sizeof context)
#endif

void pto_text_bind (void);
const char *pto_gettext (const char *text) G_GNUC_FORMAT (1);
const char *pto_ngettext (const char *one, const char *many, gulong n) G_GNUC_FORMAT (1)
    G_GNUC_FORMAT (2);

const char *pto_pgettext (const char *text_in_context, gsize offset) G_GNUC_FORMAT (1);

G_END_DECLS
