/* costs.c: how long does each kernel take, as somebody has measured it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "costs.h"

#include "core/bits.h"

#include "base/error.h"
#include "common/json.h"
#include "common/printable.h"
#include "common/text.h"
#include "trace/model/trace.h"

#include <json-glib/json-glib.h>
#include <string.h>

/**
 * PtoCosts:
 *
 * How long kernels take, from recorded runs or from tables of measured times, and which cost
 * ([method@Pto.Kernel.set_cost]) says that best.
 *
 * Times are of a kernel's name, of the bytes of all tensor arguments of a task together, and of a
 * clock ([enum@Pto.Clock]), which are never put together. [method@Pto.Costs.add_trace],
 * [method@Pto.Costs.add_file] and [method@Pto.Costs.add_time] add some;
 * [method@Pto.Costs.dup_cost] gives what [method@Pto.Kernel.set_cost] takes;
 * [method@Pto.Costs.keep] adds them to the history beside the cache of kernels, which workers with
 * the parameter `costs` use on the back end `det`.
 *
 * Thread safety: one thread at a time. A fork keeps it usable in the child.
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoCosts, pto_costs, G_TYPE_OBJECT)

static const char *const clocks[PTO_COSTS_CLOCKS] = { "chip", "cpu", "virtual" };

const char *
pto_clock_get_name (PtoClock clock)
{
  return clocks[clock];
}

gboolean
pto_clock_from_name (const char *name, PtoClock *clock)
{
  for (guint i = 0; i < PTO_COSTS_CLOCKS; i++)
    if (strcmp (name, clocks[i]) == 0)
      {
        *clock = (PtoClock) i;
        return TRUE;
      }
  return FALSE;
}

/* --- lists of times --- */

static void
size_free (gpointer data)
{
  PtoCostsSize *size = data;

  g_array_unref (size->ns);
  g_free (size);
}

static void
kernel_free (gpointer data)
{
  PtoCostsKernel *kernel = data;

  g_free (kernel->kernel);
  g_ptr_array_unref (kernel->sizes);
  g_ptr_array_unref (kernel->records);
  g_free (kernel);
}

static void
source_free (gpointer data)
{
  PtoCostsSource *source = data;

  g_free (source->name);
  g_free (source->digest);
  g_ptr_array_unref (source->kernels);
  g_free (source);
}

GPtrArray *
pto_costs_new_list (void)
{
  return g_ptr_array_new_with_free_func (kernel_free);
}

/* Returns NULL if the list has no times of the kernel. */
static const PtoCostsKernel *
costs_find (const GPtrArray *list, const char *kernel, PtoClock clock)
{
  for (guint i = 0; i < list->len; i++)
    {
      const PtoCostsKernel *entry = g_ptr_array_index (list, i);

      if (entry->clock == clock && g_str_equal (entry->kernel, kernel))
        return entry;
    }
  return NULL;
}

/* It becomes the last; the first one goes where there are too many. */
static PtoCostsKernel *
touch_kernel (GPtrArray *list, const char *name, PtoClock clock)
{
  const PtoCostsKernel *found = costs_find (list, name, clock);
  PtoCostsKernel *kernel;
  guint index;

  if (found != NULL && g_ptr_array_find (list, found, &index))
    kernel = g_ptr_array_steal_index (list, index);
  else
    {
      kernel = g_new0 (PtoCostsKernel, 1);
      kernel->kernel = g_strdup (name);
      kernel->clock = clock;
      kernel->sizes = g_ptr_array_new_with_free_func (size_free);
      kernel->records = g_ptr_array_new_with_free_func (g_free);
    }
  g_ptr_array_add (list, kernel);
  if (list->len > PTO_COSTS_MOST_KERNELS)
    g_ptr_array_remove_index (list, 0);
  return kernel;
}

/* Where there are too many, the one that was seen least goes, but not this one. */
static void
limit_sizes (GPtrArray *sizes, guint keep)
{
  guint least = keep == 0 ? 1 : 0;

  if (sizes->len <= PTO_COSTS_MOST_SIZES)
    return;
  for (guint i = 0; i < sizes->len; i++)
    if (i != keep
        && ((PtoCostsSize *) g_ptr_array_index (sizes, i))->seen
               < ((PtoCostsSize *) g_ptr_array_index (sizes, least))->seen)
      least = i;
  g_ptr_array_remove_index (sizes, least);
}

#define SIZE_AT(sizes, i) ((PtoCostsSize *) g_ptr_array_index (sizes, i))

static PtoCostsSize *
touch_size (GPtrArray *sizes, guint64 bytes)
{
  guint low = pto_bisect (i, sizes->len, SIZE_AT (sizes, i)->bytes < bytes);
  PtoCostsSize *size;

  if (low < sizes->len && SIZE_AT (sizes, low)->bytes == bytes)
    return SIZE_AT (sizes, low);
  size = g_new0 (PtoCostsSize, 1);
  size->bytes = bytes;
  size->ns = g_array_new (FALSE, FALSE, sizeof (double));
  g_ptr_array_insert (sizes, (gint) low, size);
  limit_sizes (sizes, low);
  return size;
}

gint
pto_costs_compare_times (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a;
  double y = *(const double *) b;

  return x < y ? -1 : x > y;
}

/* Those that stand for all: as many in each part of their order. */
static guint
thin_out (double *ns, guint n)
{
  if (n <= PTO_COSTS_MOST_TIMES)
    return n;
  qsort (ns, n, sizeof *ns, pto_costs_compare_times);
  for (guint i = 0; i < PTO_COSTS_MOST_TIMES; i++)
    ns[i] = ns[(guint64) (2 * i + 1) * n / (2 * PTO_COSTS_MOST_TIMES)];
  return PTO_COSTS_MOST_TIMES;
}

void
pto_costs_list_add (GPtrArray *list, const char *kernel, PtoClock clock, guint64 bytes, double *ns,
                    guint n, guint64 seen)
{
  PtoCostsSize *size = touch_size (touch_kernel (list, kernel, clock)->sizes, bytes);

  n = thin_out (ns, n);
  g_array_append_vals (size->ns, ns, n);
  if (size->ns->len > PTO_COSTS_MOST_TIMES)
    g_array_remove_range (size->ns, 0, size->ns->len - PTO_COSTS_MOST_TIMES);
  size->seen += seen;
}

static gboolean
has_record (const PtoCostsKernel *kernel, const char *digest)
{
  return g_ptr_array_find_with_equal_func (kernel->records, digest, g_str_equal, NULL);
}

void
pto_costs_list_add_record (GPtrArray *list, const char *kernel, PtoClock clock, const char *digest)
{
  const PtoCostsKernel *entry = costs_find (list, kernel, clock);

  if (entry == NULL || has_record (entry, digest))
    return;
  g_ptr_array_add (entry->records, g_strdup (digest));
  if (entry->records->len > PTO_COSTS_MOST_RECORDS)
    g_ptr_array_remove_index (entry->records, 0);
}

gboolean
pto_costs_list_add_source (GPtrArray *list, const PtoCostsSource *source)
{
  gboolean added = FALSE;

  for (guint i = 0; i < source->kernels->len; i++)
    {
      const PtoCostsKernel *kernel = g_ptr_array_index (source->kernels, i);
      const PtoCostsKernel *known = costs_find (list, kernel->kernel, kernel->clock);

      if (known != NULL && source->digest != NULL && has_record (known, source->digest))
        continue;
      added = TRUE;
      for (guint s = 0; s < kernel->sizes->len; s++)
        {
          const PtoCostsSize *size = g_ptr_array_index (kernel->sizes, s);

          pto_costs_list_add (list, kernel->kernel, kernel->clock, size->bytes,
                              (double *) (void *) size->ns->data, size->ns->len, size->seen);
        }
      if (source->digest != NULL)
        pto_costs_list_add_record (list, kernel->kernel, kernel->clock, source->digest);
    }
  return added;
}

/* --- the object --- */

static void
pto_costs_finalize (GObject *object)
{
  PtoCosts *self = PTO_COSTS (object);

  g_ptr_array_unref (self->kernels);
  g_ptr_array_unref (self->fresh);
  g_ptr_array_unref (self->repeated);
  G_OBJECT_CLASS (pto_costs_parent_class)->finalize (object);
}

static void
pto_costs_class_init (PtoCostsClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_costs_finalize;
}

static void
pto_costs_init (PtoCosts *self)
{
  self->kernels = pto_costs_new_list ();
  self->fresh = g_ptr_array_new_with_free_func (source_free);
  self->repeated = g_ptr_array_new_with_free_func (g_free);
}

/**
 * pto_costs_new:
 *
 * Makes one that knows of no kernel.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): it
 *
 * Since: 0.1
 */
PtoCosts *
pto_costs_new (void)
{
  return g_object_new (PTO_TYPE_COSTS, NULL);
}

/**
 * pto_costs_new_from_history:
 * @error: return location for an error
 *
 * Makes one that knows what the history beside the cache of kernels does. Where there is no history
 * it knows of no kernel.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): it; %NULL with %PTO_ERROR_SYSTEM when the file can not be read,
 *   %PTO_ERROR_INVALID_ARGS when it is none, or %PTO_ERROR_NOT_SUPPORTED when it is of a later
 *   version
 *
 * Since: 0.1
 */
PtoCosts *
pto_costs_new_from_history (GError **error)
{
  g_autoptr (GPtrArray) list = NULL;
  PtoCosts *self;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  list = pto_costs_load_history (error);
  if (list == NULL)
    return NULL;
  self = pto_costs_new ();
  g_ptr_array_unref (self->kernels);
  self->kernels = g_steal_pointer (&list);
  return self;
}

gboolean
pto_costs_is_time (double ns)
{
  return ns > 0 && ns <= PTO_COST_MOST_NS;
}

char *
pto_costs_make_digest (gconstpointer bytes, gsize size)
{
  char *digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256, bytes, size);

  digest[16] = '\0';
  return digest;
}

void
pto_costs_add_source (PtoCosts *self, const char *name, char *digest, GPtrArray *kernels)
{
  PtoCostsSource *source = g_new (PtoCostsSource, 1);

  *source = (PtoCostsSource){ g_strdup (name), digest, kernels };
  if (pto_costs_list_add_source (self->kernels, source))
    g_ptr_array_add (self->fresh, source);
  else
    {
      g_ptr_array_add (self->repeated, g_strdup (name));
      source_free (source);
    }
}

/**
 * pto_costs_add_time:
 * @self: costs
 * @kernel: a kernel's name
 * @clock: whose time it is
 * @bytes: of all tensor arguments of the task together, views as large as they are seen; of a block
 *   its part
 * @ns: nanoseconds that it took
 * @error: return location for an error
 *
 * Adds one time that was measured.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %FALSE with %PTO_ERROR_INVALID_ARGS when the name is empty, or the time not above 0
 *
 * Since: 0.1
 */
gboolean
pto_costs_add_time (PtoCosts *self, const char *kernel, PtoClock clock, guint64 bytes, double ns,
                    GError **error)
{
  GPtrArray *kernels;

  g_return_val_if_fail (PTO_IS_COSTS (self), FALSE);
  g_return_val_if_fail (kernel != NULL, FALSE);
  g_return_val_if_fail ((guint) clock < PTO_COSTS_CLOCKS, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (kernel[0] == '\0' || !pto_costs_is_time (ns) || bytes > G_MAXINT64)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("kernel \"%s\": %g ns for %" PRIu64
                          " bytes: a name and a time from above 0 to 1e15 ns wanted"),
                       kernel, ns, bytes);
  kernels = pto_costs_new_list ();
  pto_costs_list_add (kernels, kernel, clock, bytes, &ns, 1, 1);
  pto_costs_add_source (self, kernel, NULL, kernels);
  return TRUE;
}

/* --- traces --- */

/* A kernel's time in a trace. */
typedef struct
{
  guint32 kernel;
  guint64 bytes;
  double ns;
} Sample;

/* As the virtual clock counts them (sim/ai-core.c). */
static guint64
count_bytes (const PtoTraceAnalysis *analysis, const PtoTraceEntry *task, guint32 n_blocks)
{
  guint64 bytes = 0;

  if (task->n_args == 0)
    return PTO_COSTS_NO_SIZE;
  for (guint i = 0; i < task->n_args; i++)
    {
      const PtoTraceArg *arg = &analysis->args[task->first_arg + i];

      if (arg->type != PTO_PARAM_SCALAR)
        bytes += pto_trace_arg_bytes (arg);
    }
  return MIN (bytes / n_blocks, G_MAXINT64);
}

static guint32
count_blocks (const PtoTraceAnalysis *analysis, const PtoTraceEntry *task)
{
  guint32 last = task->block != PTO_TRACE_NOWHERE ? task->block : 0;

  for (guint i = 0; i < task->n_members; i++)
    {
      guint32 block = analysis->tasks[task->first_member + i].block;

      if (block != PTO_TRACE_NOWHERE)
        last = MAX (last, block);
    }
  return last + 1;
}

static void
add_entry (GArray *samples, PtoTrace *trace, const PtoTraceEntry *entry, guint64 bytes)
{
  Sample sample = { .kernel = entry->kernel, .bytes = bytes };

  if (entry->core == PTO_TRACE_NOWHERE || entry->start == PTO_TRACE_NEVER
      || entry->end == PTO_TRACE_NEVER || entry->failed || entry->kernel >= trace->n_kernel_names
      || entry->end - entry->start <= entry->waited)
    return;
  sample.ns = (double) (entry->end - entry->start - entry->waited);
  g_array_append_val (samples, sample);
}

static gint
compare_samples (gconstpointer a, gconstpointer b)
{
  const Sample *x = a;
  const Sample *y = b;

  if (x->kernel != y->kernel)
    return x->kernel < y->kernel ? -1 : 1;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Of a chip; what a worker above it gives its children are no kernels. */
static void
add_chip (GPtrArray *kernels, PtoTrace *trace)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  PtoClock clock = trace->topology.virtual_clock ? PTO_CLOCK_VIRTUAL : PTO_CLOCK_CPU;
  g_autoptr (GArray) samples = g_array_new (FALSE, FALSE, sizeof (Sample));
  g_autoptr (GArray) times = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];
      guint64 bytes = count_bytes (analysis, task, count_blocks (analysis, task));

      add_entry (samples, trace, task, bytes);
      for (guint m = 0; m < task->n_members; m++)
        add_entry (samples, trace, &analysis->tasks[task->first_member + m], bytes);
    }
  /* Those of one kernel and size stay in their order. */
  g_array_sort (samples, compare_samples);
  for (guint i = 0; i < samples->len; i++)
    {
      const Sample *sample = &g_array_index (samples, Sample, i);
      double *ns;

      g_array_append_val (times, sample->ns);
      if (i + 1 < samples->len && compare_samples (sample, sample + 1) == 0)
        continue;
      ns = (double *) (void *) times->data;
      pto_costs_list_add (kernels, pto_trace_get_kernel_name (trace, sample->kernel), clock,
                          sample->bytes, ns, times->len, times->len);
      g_array_set_size (times, 0);
    }
}

static void
add_tree (GPtrArray *kernels, PtoTrace *trace)
{
  if (!pto_trace_is_level (trace))
    add_chip (kernels, trace);
  else
    for (guint i = 0; i < trace->pieces.list->len; i++)
      add_tree (kernels, ((PtoTracePiece *) g_ptr_array_index (trace->pieces.list, i))->trace);
}

static gboolean
add_trace (PtoCosts *self, PtoTrace *trace, const char *name, GError **error)
{
  g_autoptr (GPtrArray) kernels = pto_costs_new_list ();
  gsize size = pto_trace_get_packed_size (trace);
  g_autofree guint8 *bytes = g_malloc (MAX (size, 1));

  add_tree (kernels, trace);
  if (kernels->len == 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, _ ("%s%sno kernel ran in this trace"),
                   name, name[0] != '\0' ? ": " : "");
      return FALSE;
    }
  pto_trace_pack (trace, bytes);
  pto_costs_add_source (self, name, pto_costs_make_digest (bytes, size),
                        g_steal_pointer (&kernels));
  return TRUE;
}

/**
 * pto_costs_add_trace:
 * @self: costs
 * @trace: a trace
 * @error: return location for an error
 *
 * Adds what each kernel took in a recorded run, less the time in which it waited for others: on
 * %PTO_CLOCK_VIRTUAL where that was the run's clock, otherwise on %PTO_CLOCK_CPU. Of a
 * trace of level 4 sizes are known, too; one that has not recorded its tasks' arguments gives a
 * constant. Of workers above chips all runs of these count. A record that was counted before is not
 * counted again ([method@Pto.Costs.list_repeated]).
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %FALSE with %PTO_ERROR_NOT_FOUND when no kernel ran in it
 *
 * Since: 0.1
 */
gboolean
pto_costs_add_trace (PtoCosts *self, PtoTrace *trace, GError **error)
{
  g_return_val_if_fail (PTO_IS_COSTS (self), FALSE);
  g_return_val_if_fail (PTO_IS_TRACE (trace), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return add_trace (self, trace, pto_trace_get_title (trace), error);
}

/**
 * pto_costs_add_file:
 * @self: costs
 * @path: (type filename): a trace (`.ptotrace`), or a table of measured times (`.csv`, `.json`)
 * @error: return location for an error
 *
 * Adds the times of a file: of a trace as [method@Pto.Costs.add_trace] does; those of a table are
 * on %PTO_CLOCK_CHIP.
 *
 * A table has a row for each time: the columns, or members, `kernel`; `us`, `ns` or `ms`; and
 * `bytes`, of all tensor arguments together, or `shape`, these themselves
 * (`float32[128x128] float32[128x128]`), or neither. Nothing is added where a row is wrong.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %FALSE with an error that names the file, and the line of a table
 *
 * Since: 0.1
 */
gboolean
pto_costs_add_file (PtoCosts *self, const char *path, GError **error)
{
  g_autofree char *lower = NULL;
  g_autoptr (PtoTrace) trace = NULL;

  g_return_val_if_fail (PTO_IS_COSTS (self), FALSE);
  g_return_val_if_fail (path != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  lower = g_ascii_strdown (path, -1);
  if (g_str_has_suffix (lower, ".csv") || g_str_has_suffix (lower, ".json"))
    return pto_costs_read_table (self, path, error);
  trace = pto_trace_new_from_file (path, error);
  return trace != NULL && add_trace (self, trace, path, error);
}

/**
 * pto_costs_list_repeated:
 * @self: costs
 *
 * Lists what was added and had been counted before, so that nothing came of it: files and traces of
 * which all kernels' times were in here, or, once [method@Pto.Costs.keep] has asked it, in the
 * history. Each kernel there knows the last 64 records that its times are of;
 * [method@Pto.Costs.forget] forgets these, too.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer full) (array zero-terminated=1): the paths of files, the titles of traces, in
 *   the order in which it was found
 *
 * Since: 0.1
 */
char **
pto_costs_list_repeated (PtoCosts *self)
{
  g_autoptr (GStrvBuilder) builder = NULL;

  g_return_val_if_fail (PTO_IS_COSTS (self), NULL);

  builder = g_strv_builder_new ();
  for (guint i = 0; i < self->repeated->len; i++)
    g_strv_builder_add (builder, g_ptr_array_index (self->repeated, i));
  return g_strv_builder_end (builder);
}

/* --- answers --- */

static gint
compare_kernels (gconstpointer a, gconstpointer b)
{
  const PtoCostsKernel *x = *(const PtoCostsKernel *const *) a;
  const PtoCostsKernel *y = *(const PtoCostsKernel *const *) b;
  gint order = strcmp (x->kernel, y->kernel);

  return order != 0 ? order : (gint) x->clock - (gint) y->clock;
}

/* By name, then by clock. */
static GPtrArray *
sort_kernels (PtoCosts *self)
{
  GPtrArray *sorted = g_ptr_array_new ();

  for (guint i = 0; i < self->kernels->len; i++)
    g_ptr_array_add (sorted, g_ptr_array_index (self->kernels, i));
  g_ptr_array_sort (sorted, compare_kernels);
  return sorted;
}

/**
 * pto_costs_list_kernels:
 * @self: costs
 *
 * Lists the kernels of which something is known, in order of their names.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer full) (array zero-terminated=1): names
 *
 * Since: 0.1
 */
char **
pto_costs_list_kernels (PtoCosts *self)
{
  g_autoptr (GPtrArray) sorted = NULL;
  GPtrArray *names;

  g_return_val_if_fail (PTO_IS_COSTS (self), NULL);

  sorted = sort_kernels (self);
  names = g_ptr_array_new ();
  for (guint i = 0; i < sorted->len; i++)
    {
      const char *name = ((PtoCostsKernel *) g_ptr_array_index (sorted, i))->kernel;

      if (names->len == 0 || !g_str_equal (g_ptr_array_index (names, names->len - 1), name))
        g_ptr_array_add (names, g_strdup (name));
    }
  g_ptr_array_add (names, NULL);
  return (char **) g_ptr_array_free (names, FALSE);
}

/**
 * pto_costs_dup_cost:
 * @self: costs
 * @kernel: a kernel's name
 * @clock: whose times count
 *
 * Gives the cost that says best what the kernel was seen to take, as [method@Pto.Kernel.set_cost]
 * takes it: a constant where the medians of all sizes are within 2 % of one, a line where they are
 * within 10 % of one, on average; otherwise a table of them.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer full) (nullable): text; %NULL when no time of it is known on that clock
 *
 * Since: 0.1
 */
char *
pto_costs_dup_cost (PtoCosts *self, const char *kernel, PtoClock clock)
{
  g_auto (PtoCostsFit) fit = { 0 };
  const PtoCostsKernel *found;

  g_return_val_if_fail (PTO_IS_COSTS (self), NULL);
  g_return_val_if_fail (kernel != NULL, NULL);
  g_return_val_if_fail ((guint) clock < PTO_COSTS_CLOCKS, NULL);

  found = costs_find (self->kernels, kernel, clock);
  if (found == NULL)
    return NULL;
  pto_costs_fit (found, &fit);
  return g_steal_pointer (&fit.cost);
}

static void
add_fit (JsonBuilder *json, const PtoCostsKernel *kernel)
{
  g_auto (PtoCostsFit) fit = { 0 };

  pto_costs_fit (kernel, &fit);
  json_builder_begin_object (json);
  pto_json_add_string (json, "kernel", kernel->kernel);
  pto_json_add_string (json, "clock", pto_clock_get_name (kernel->clock));
  pto_json_add_string (json, "model", fit.model);
  pto_json_add_string (json, "cost", fit.cost);
  if (fit.model[0] != 't')
    pto_json_add_double (json, "base_ns", fit.base_ns);
  if (fit.model[0] == 'l')
    pto_json_add_double (json, "ns_per_byte", fit.ns_per_byte);
  pto_json_add_int (json, "samples", fit.seen);
  pto_json_add_double (json, "median_error", fit.median_error);
  pto_json_add_double (json, "worst_error", fit.worst_error);
  pto_json_begin_array (json, "sizes");
  for (guint i = 0; i < fit.points->len; i++)
    {
      const PtoCostsPoint *point = &g_array_index (fit.points, PtoCostsPoint, i);

      json_builder_begin_object (json);
      if (point->bytes != PTO_COSTS_NO_SIZE)
        pto_json_add_int (json, "bytes", point->bytes);
      pto_json_add_double (json, "median_ns", point->ns);
      pto_json_add_int (json, "samples", point->seen);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
  json_builder_end_object (json);
}

/**
 * pto_costs_describe_json:
 * @self: costs
 *
 * Answers as JSON what [method@Pto.Costs.describe] answers as text, and the median of each size.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer full): an object of JSON
 *
 * Since: 0.1
 */
char *
pto_costs_describe_json (PtoCosts *self)
{
  g_autoptr (GPtrArray) sorted = NULL;
  g_autoptr (JsonBuilder) json = NULL;
  g_autoptr (JsonNode) root = NULL;

  g_return_val_if_fail (PTO_IS_COSTS (self), NULL);

  sorted = sort_kernels (self);
  json = json_builder_new_immutable ();
  json_builder_begin_object (json);
  pto_json_begin_array (json, "kernels");
  for (guint i = 0; i < sorted->len; i++)
    add_fit (json, g_ptr_array_index (sorted, i));
  json_builder_end_array (json);
  json_builder_end_object (json);
  root = json_builder_get_root (json);
  return json_to_string (root, TRUE);
}

void
pto_costs_append_number (GString *text, const char *format, double value, const char *unit)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (text, g_ascii_formatd (buffer, sizeof buffer, format, value));
  g_string_append (text, unit);
}

static void
append_fit (GString *text, const PtoCostsKernel *kernel, guint width)
{
  g_auto (PtoCostsFit) fit = { 0 };
  g_autoptr (GString) error = g_string_new (NULL);
  g_autofree char *name = g_strdup (kernel->kernel);
  const PtoCostsPoint *first, *last;

  pto_costs_fit (kernel, &fit);
  pto_costs_append_number (error, "%.1f", 100 * fit.median_error, " %");
  pto_make_printable (name, FALSE);
  pto_append_padded (text, name, -(int) width);
  g_string_append_printf (text, "  %-7s  %-8s  %5u  %8" G_GUINT64_FORMAT "  %7s  ",
                          pto_clock_get_name (kernel->clock), fit.model, fit.points->len, fit.seen,
                          error->str);
  first = &g_array_index (fit.points, PtoCostsPoint, 0);
  last = &g_array_index (fit.points, PtoCostsPoint, fit.points->len - 1);
  if (fit.model[0] == 't')
    {
      g_autoptr (GString) least = g_string_new (NULL);
      g_autoptr (GString) most = g_string_new (NULL);

      pto_costs_append_number (least, "%.1f", first->ns, " ns");
      pto_costs_append_number (most, "%.1f", last->ns, " ns");
      g_string_append_printf (text, _ ("%s of %" PRIu64 " bytes to %s of %" PRIu64 " bytes"),
                              least->str, first->bytes, most->str, last->bytes);
    }
  else
    pto_costs_append_number (text, "%.1f", fit.base_ns, " ns");
  if (fit.model[0] == 'l')
    {
      g_string_append (text, " + ");
      pto_costs_append_number (text, "%.6g", fit.ns_per_byte, _ (" ns/byte"));
    }
  if (last->bytes == PTO_COSTS_NO_SIZE)
    g_string_append (text, _ (" (sizes were not recorded)"));
  g_string_append_c (text, '\n');
}

/**
 * pto_costs_describe:
 * @self: costs
 *
 * Tells of each kernel and clock which cost says best what it was seen to take: its model with its
 * coefficients, of how many sizes and times it is made, and by how much these are off, in the
 * median.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer full): lines that end in a newline each
 *
 * Since: 0.1
 */
char *
pto_costs_describe (PtoCosts *self)
{
  g_autoptr (GPtrArray) sorted = NULL;
  const struct
  {
    const char *words;
    int width;
  } headings[] = { { _ ("clock"), -7 },  { _ ("model"), -8 }, { _ ("sizes"), 5 },
                   { _ ("samples"), 8 }, { _ ("error"), 7 },  { _ ("time"), 0 } };
  guint width = pto_count_columns (_ ("kernel"));
  GString *text;

  g_return_val_if_fail (PTO_IS_COSTS (self), NULL);

  sorted = sort_kernels (self);
  for (guint i = 0; i < sorted->len; i++)
    width = MAX (width,
                 pto_count_columns (((PtoCostsKernel *) g_ptr_array_index (sorted, i))->kernel));
  text = g_string_new (NULL);
  pto_append_padded (text, _ ("kernel"), -(int) width);
  for (guint i = 0; i < G_N_ELEMENTS (headings); i++)
    {
      g_string_append (text, "  ");
      pto_append_padded (text, headings[i].words, headings[i].width);
    }
  g_string_append_c (text, '\n');
  for (guint i = 0; i < sorted->len; i++)
    append_fit (text, g_ptr_array_index (sorted, i), width);
  return g_string_free (text, FALSE);
}

/* --- the history --- */

static void
take_list (PtoCosts *self, GPtrArray *list)
{
  g_ptr_array_unref (self->kernels);
  self->kernels = list;
}

/**
 * pto_costs_keep:
 * @self: costs
 * @error: return location for an error
 *
 * Adds what was added here since this was made, or kept last, to the history beside the cache of
 * kernels, but for records that were counted there before, and takes over all that is known there.
 * Of each size the last 64 times count, or as many that stand for a run's; of each kernel and clock
 * 256 sizes.
 *
 * Other processes may do the same at the same time: nothing is lost.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %FALSE with %PTO_ERROR_SYSTEM when the file can not be locked, read or written, or as
 *   [ctor@Pto.Costs.new_from_history] fails; then nothing has changed
 *
 * Since: 0.1
 */
gboolean
pto_costs_keep (PtoCosts *self, GError **error)
{
  GPtrArray *list;

  g_return_val_if_fail (PTO_IS_COSTS (self), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  list = pto_costs_change_history (self->fresh, NULL, self->repeated, error);
  if (list == NULL)
    return FALSE;
  take_list (self, list);
  g_ptr_array_set_size (self->fresh, 0);
  return TRUE;
}

/**
 * pto_costs_forget:
 * @self: costs
 * @kernel: (nullable): a kernel's name; %NULL: all
 * @error: return location for an error
 *
 * Removes a kernel's times, or all, from the history beside the cache of kernels; all also where
 * that can not be read any more. What was added here and not kept yet stays.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %FALSE with %PTO_ERROR_NOT_FOUND when nothing is known of that kernel, or as
 *   [method@Pto.Costs.keep] fails
 *
 * Since: 0.1
 */
gboolean
pto_costs_forget (PtoCosts *self, const char *kernel, GError **error)
{
  GPtrArray *list;

  g_return_val_if_fail (PTO_IS_COSTS (self), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  list = pto_costs_change_history (NULL, kernel != NULL ? kernel : "", NULL, error);
  if (list == NULL)
    return FALSE;
  take_list (self, list);
  for (guint i = 0; i < self->fresh->len; i++)
    pto_costs_list_add_source (list, g_ptr_array_index (self->fresh, i));
  return TRUE;
}

/**
 * pto_costs_to_string:
 * @self: costs
 *
 * Says in a line of how many kernels something is known.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_costs_to_string (PtoCosts *self)
{
  g_auto (GStrv) kernels = NULL;
  guint n;

  g_return_val_if_fail (PTO_IS_COSTS (self), NULL);

  kernels = pto_costs_list_kernels (self);
  n = g_strv_length (kernels);
  return g_strdup_printf ("the times of %u kernel%s", n, n == 1 ? "" : "s");
}
