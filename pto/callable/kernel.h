/* kernel.h: what is there of a kernel beyond what a callable has?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "sim/chip.h"

#include "values/task-args.h"
#include "device-code.h"
#include "pto-kernel.h"

G_BEGIN_DECLS

/* In a signature: an argument of which only is known that it is there. */
#define PTO_CALLABLE_ANY_DIRECTION ((PtoDirection) 0xff)

struct _PtoKernel
{
  PtoDeviceCode parent_instance;

  PtoCoreType core_type;
  char *cost_text;
  struct pto_cost cost; /* points are those of cost_points */
  GArray *cost_points;  /* struct pto_cost_point, or NULL */
  GArray *signature;    /* PtoDirection, PTO_CALLABLE_ANY_DIRECTION when only the number is known;
                           or NULL */
  GList link;           /* of a source, among those that may be submitted; data: this, or NULL */
};

struct _PtoKernelClass
{
  PtoDeviceCodeClass parent_class;
};

/* A copy of the cost with points of its own, to be freed by the caller when not NULL. */
struct pto_cost pto_kernel_dup_cost (PtoKernel *kernel, struct pto_cost_point **points);

/* As pto_kernel_set_cost(); who begins the message. */
gboolean pto_kernel_set_cost_of (PtoKernel *kernel, const char *who, const char *cost,
                                 GError **error);

/* The same of a text; FALSE: it says no cost, or more than there can be. why: NULL, or where to say
 * of the latter what stands behind the text; NULL of the former. */
gboolean pto_kernel_parse_cost (const char *text, struct pto_cost *cost,
                                struct pto_cost_point **points, const char **why);

/* --- new-kernels.c --- */

/* A kernel of a source, as it was when it was asked for. */
typedef struct
{
  gconstpointer kernel; /* to be compared: it may be gone */
  guint64 serial;
  guint revision;
  PtoCompilerJob job;
} PtoExpectedKernel;

/* It may be submitted from now on; and its end. */
void pto_kernel_expect (PtoKernel *kernel);
void pto_kernel_expect_no_more (PtoKernel *kernel);
/* PtoExpectedKernel: what was made since that serial, which becomes the youngest's; the youngest
 * first. NULL: nothing was. */
GPtrArray *pto_kernel_list_expected (guint64 *seen);

/* Does it not say that it takes something else than a kernel that combines what is reduced? */
gboolean pto_kernel_may_combine (PtoKernel *kernel);
/* Are these of the number and the directions that it says it takes? FALSE, too: it is none. */
gboolean pto_kernel_check_args (PtoCallable *kernel, const PtoArg *args, guint n_args,
                                GError **error);

G_END_DECLS
