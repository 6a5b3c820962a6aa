/* object-test.h: what do the tests of the object layer share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <pto/pto.h>

/* A directory of the test's own; removed with what is in it. */
char *object_test_make_dir (void);
void object_test_remove_dir (char *dir);
/* Writes a file and gives its path. */
char *object_test_write (const char *dir, const char *name, const char *text);

/* Kernels: f = a + b, f = a + scalar, f = scalar; float32, one dimension. */
extern const char object_test_add[];
extern const char object_test_add_scalar[];
extern const char object_test_fill[];
/* An orchestration with two arguments, address of f and number of elements: one task of kernel 0,
 * fill (f, 7). */
extern const char object_test_orchestration[];

PtoCallable *object_test_kernel (const char *dir, const char *name, const char *text);
/* An initialized worker on the default platform. */
PtoWorker *object_test_worker (void);
PtoTensor *object_test_vector (PtoBuffer *buffer);
float *object_test_floats (PtoBuffer *buffer);

#define object_test_assert_contains(text, part)                  \
  G_STMT_START                                                   \
  {                                                              \
    const char *text_ = (text);                                  \
    if (text_ == NULL || strstr (text_, (part)) == NULL)         \
      g_error ("\"%s\" does not contain \"%s\"", text_, (part)); \
  }                                                              \
  G_STMT_END
