/* getter.h: how is a function defined that only gives a value, or a reference, of what it is given?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

/* Takes an object that is no GObject. Of NULL, which it warns of, it gives 0. */
#define PTO_DEFINE_GETTER(type, function, Object, object, value) \
  type function (Object *object)                                 \
  {                                                              \
    g_return_val_if_fail (object != NULL, 0);                    \
                                                                 \
    return value;                                                \
  }

/* The same of a GObject. is_one: its PTO_IS_FOO. */
#define PTO_DEFINE_OBJECT_GETTER(type, function, Object, is_one, object, value) \
  type function (Object *object)                                                \
  {                                                                             \
    g_return_val_if_fail (is_one (object), 0);                                  \
                                                                                \
    return value;                                                               \
  }

/* Of what has a field ref_count, a gatomicrefcount. */
#define PTO_DEFINE_REF(Object, function, object) \
  Object *function (Object *object)              \
  {                                              \
    g_return_val_if_fail (object != NULL, NULL); \
                                                 \
    g_atomic_ref_count_inc (&object->ref_count); \
    return object;                               \
  }
