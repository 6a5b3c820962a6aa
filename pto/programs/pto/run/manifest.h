/* manifest.h: what does an example's pto.ini say?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

#include <pto/pto.h>

G_BEGIN_DECLS

/* How far an output may be from what is expected of it. */
typedef struct
{
  double rtol;
  double atol;
  gboolean equal_nan;    /* what is no number equals what is none */
  double mismatch_share; /* of the elements, which may be wrong */
} Tolerance;

typedef struct
{
  char *name;
  char *group; /* of the file */
  char *title;
  Tolerance tolerance;
  GPtrArray *parameters; /* names, then values, in turn: of the runtime */
} ManifestCase;

typedef struct
{
  char *file; /* the pto.ini, as the person would name it */
  char *name;
  PtoCallable *chip;
  char *reference;
  GPtrArray *cases; /* ManifestCase, as in the file */
  char *default_case;
  GKeyFile *keys;
} Manifest;

/* Every file named in it exists, every number is one. An error is one line that names file and
 * thing. */
Manifest *manifest_load (const char *name, GError **error);
void manifest_free (Manifest *manifest);
/* name may be NULL: the default. The error lists the cases there are. */
const ManifestCase *manifest_find_case (Manifest *manifest, const char *name, GError **error);
/* The keys by which a case says how far an output may be from what is expected. */
extern const char *const manifest_tolerance_keys[];
/* A key of a case as text, or NULL. Caller frees. */
char *manifest_dup_value (Manifest *manifest, const ManifestCase *item, const char *key);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Manifest, manifest_free)

G_END_DECLS
