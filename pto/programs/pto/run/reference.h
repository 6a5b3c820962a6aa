/* reference.h: which arguments does a case have, and what is expected of its outputs?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "manifest.h"

#include <pto_reference.h>

G_BEGIN_DECLS

typedef struct
{
  char *name;
  gboolean is_scalar;
  guint64 value; /* of a scalar */

  guint32 dtype;
  guint32 n_dims;
  guint64 shape[PTO2_TENSOR_MAX_DIMS];
  guint64 n_elements;
  guint64 n_bytes;
  gboolean is_output;
  gpointer data;     /* what the device gets */
  gpointer expected; /* of an output */
} ReferenceArgument;

typedef struct _Reference Reference;

/* Builds and loads the reference, lets it make the arguments of a case and what is expected. */
Reference *reference_new (Manifest *manifest, const ManifestCase *item, GError **error);
void reference_free (Reference *reference);
guint reference_get_n_arguments (Reference *reference);
ReferenceArgument *reference_get_argument (Reference *reference, guint index);
/* Keys of the case that neither the runtime nor the reference knows, apart by commas, each with the
 * key that may be meant; or NULL. */
char *reference_list_unread_keys (Reference *reference);

/* Elements that differ and of which one side is not finite. */
typedef struct
{
  guint64 n_nan;      /* NaN on at least one side */
  guint64 n_infinite; /* infinity on at least one side, and no NaN */
} NotFinite;

/* One output against what is expected of it. */
typedef struct
{
  guint64 n_bad;
  gboolean passed;      /* no more are bad than may be */
  double max_abs_error; /* of the elements that are finite on both sides */
  double max_rel_error; /* of those that are not expected to be 0 */
  NotFinite differing;  /* of the bad ones */
  guint64 first_index;  /* of the first that is bad, in the order of memory */
  char *first_bad;      /* "f[0, 3]: 41.5 instead of 47", of the first; NULL */
  char *bad_lines;      /* the first few, one a line; NULL */
} Comparison;

/* Lays data of the argument's type and size against what is expected. */
void reference_compare (const ReferenceArgument *argument, gconstpointer data,
                        const Tolerance *tolerance, Comparison *comparison);
void comparison_clear (Comparison *comparison);
void not_finite_add (NotFinite *sum, const NotFinite *more);
/* The largest error of all elements: max_error, which is that of the finite ones, unless one that
 * is not finite differs: then infinity, or NaN. */
double not_finite_max_error (const NotFinite *differing, double max_error);
/* "f[0, 3]: 41.5 instead of 47", of any two. */
char *reference_describe (const ReferenceArgument *argument, gconstpointer got,
                          gconstpointer expected, guint64 index);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Reference, reference_free)

G_END_DECLS
