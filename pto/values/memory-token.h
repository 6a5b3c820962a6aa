/* memory-token.h: how is memory of a remote worker named in a text?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A token says which tree it is of, which worker below that, in which of its lives, which piece of
 * memory, and which part of that; and it is sealed with a key that the tree has and nobody else.
 * So whoever has a token has that memory and no other, and what is changed, or made up, is known.
 * What a token says is not secret.
 *
 * Thread safety: any thread.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What a tree knows its tokens by; random. */
typedef struct
{
  guint8 name[16];
  guint8 key[32];
} PtoTokenSeal;

typedef struct
{
  char *path; /* of the worker; owned by who reads */
  guint32 life;
  guint64 number; /* of the piece; never given twice by a tree */
  guint64 offset;
  guint64 size;
} PtoMemoryToken;

/* FALSE: the system has nothing random. */
gboolean pto_token_seal_make (PtoTokenSeal *seal, GError **error);
char *pto_memory_token_to_string (const PtoMemoryToken *token, const PtoTokenSeal *seal);
/* seal: NULL: the tree has made none. path: of the worker that is asked, for what errors say. */
gboolean pto_memory_token_from_string (const char *text, const PtoTokenSeal *seal, const char *path,
                                       PtoMemoryToken *token, GError **error);

G_END_DECLS
