/* key-file.h: what does a file of keys in groups say?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-error.h"

G_BEGIN_DECLS

typedef struct
{
  char *file; /* as the person would name it */
  GKeyFile *keys;
} PtoManifest;

void pto_manifest_clear (PtoManifest *manifest);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PtoManifest, pto_manifest_clear)

/* Reads its file. Refuses what is no text, and what is there twice. */
gboolean pto_manifest_load (PtoManifest *manifest, GError **error);
/* Refuses keys of a group that are not known. */
gboolean pto_manifest_check_keys (const PtoManifest *manifest, const char *group,
                                  const char *const *known, GError **error);
/* Without the blanks around it; NULL: it is not there. */
char *pto_manifest_dup_value (const PtoManifest *manifest, const char *group, const char *key);
/* Says what is wrong with the file; always FALSE. */
gboolean pto_manifest_fail (const PtoManifest *manifest, PtoError code, GError **error,
                            const char *format, ...) G_GNUC_PRINTF (4, 5);

G_END_DECLS
