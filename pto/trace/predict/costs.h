/* costs.h: what is known of each kernel's times?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. Times are kept by kernel, clock and size, and of each size no more than can tell
 * its median; so what is known of a kernel has an upper limit, however often it has run.
 */
#pragma once

#include "pto-costs.h"

G_BEGIN_DECLS

enum
{
  PTO_COSTS_CLOCKS = 3,
  PTO_COSTS_MOST_TIMES = 64,     /* of a size */
  PTO_COSTS_MOST_SIZES = 256,    /* of a kernel on a clock */
  PTO_COSTS_MOST_KERNELS = 4096, /* of all together */
  PTO_COSTS_MOST_RECORDS = 64    /* that are known again, of a kernel on a clock */
};

/* The size of a task whose arguments were not recorded. */
#define PTO_COSTS_NO_SIZE G_MAXUINT64

typedef struct
{
  guint64 bytes; /* of all tensor arguments together; PTO_COSTS_NO_SIZE */
  guint64 seen;  /* times there ever were */
  GArray *ns;    /* double: the last PTO_COSTS_MOST_TIMES, or as many that stand for a run's */
} PtoCostsSize;

typedef struct
{
  char *kernel;
  PtoClock clock;
  GPtrArray *sizes;   /* PtoCostsSize, by bytes */
  GPtrArray *records; /* digests of the traces and tables that times are of, the last ones last */
} PtoCostsKernel;

/* What was added at once. */
typedef struct
{
  char *name;
  char *digest;       /* NULL: single times, which count whenever they are added */
  GPtrArray *kernels; /* PtoCostsKernel */
} PtoCostsSource;

struct _PtoCosts
{
  GObject parent_instance;

  GPtrArray *kernels;  /* PtoCostsKernel, who was added to last is last */
  GPtrArray *fresh;    /* PtoCostsSource: what the history has not been told yet */
  GPtrArray *repeated; /* names of sources of which nothing was added, since they were before */
};

/* costs.c */
const char *pto_clock_get_name (PtoClock clock);
gboolean pto_clock_from_name (const char *name, PtoClock *clock);
GPtrArray *pto_costs_new_list (void);
/* seen: how many times these are, or stand for. Sorts ns. */
void pto_costs_list_add (GPtrArray *list, const char *kernel, PtoClock clock, guint64 bytes,
                         double *ns, guint n, guint64 seen);
/* Of a kernel that is there. */
void pto_costs_list_add_record (GPtrArray *list, const char *kernel, PtoClock clock,
                                const char *digest);
/* No kernel's times twice of the same record. FALSE: all of them were there already. */
gboolean pto_costs_list_add_source (GPtrArray *list, const PtoCostsSource *source);
/* Finite, and of a length that a clock can have. */
gboolean pto_costs_is_time (double ns);
/* Of doubles, for sorting. */
gint pto_costs_compare_times (gconstpointer a, gconstpointer b);
/* format: of one double, which is written as everywhere. */
void pto_costs_append_number (GString *text, const char *format, double value, const char *unit);
/* Takes the digest and the kernels. */
void pto_costs_add_source (PtoCosts *self, const char *name, char *digest, GPtrArray *kernels);
/* Of what a record is; never two of one. */
char *pto_costs_make_digest (gconstpointer bytes, gsize size);

/* costs-table.c: a table of measured times, .csv or .json. Nothing is added where a part of it
 * is wrong. */
gboolean pto_costs_read_table (PtoCosts *self, const char *path, GError **error);

/* costs-history.c: what is kept beside the cache of kernels. */
GPtrArray *pto_costs_load_history (GError **error);
/* fresh: PtoCostsSource, what comes to it; forget: whose times go, "" of all. Either may be NULL.
 * repeated: where the names go of those that were there already. Gives what is there then. */
GPtrArray *pto_costs_change_history (const GPtrArray *fresh, const char *forget,
                                     GPtrArray *repeated, GError **error);

/* costs-fit.c: a kernel's times as a cost. */
typedef struct
{
  guint64 bytes;
  double ns; /* the median */
  guint64 seen;
} PtoCostsPoint;

typedef struct
{
  const char *model; /* "constant", "linear", "table" */
  double base_ns;    /* of the first two */
  double ns_per_byte;
  GArray *points;      /* PtoCostsPoint, by bytes; one without a size stands alone */
  guint64 seen;        /* times that the points are the medians of */
  double median_error; /* of all times that are kept: how far off, as a share of them */
  double worst_error;  /* of all points */
  char *cost;          /* as pto_kernel_set_cost() takes it */
} PtoCostsFit;

void pto_costs_fit (const PtoCostsKernel *kernel, PtoCostsFit *fit);
void pto_costs_fit_clear (PtoCostsFit *fit);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PtoCostsFit, pto_costs_fit_clear)

G_END_DECLS
