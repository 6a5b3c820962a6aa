/* trace.c: what happened to every task of a run, and how is it looked at?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "trace.h"

#include "common/save-file.h"
#include "common/text.h"

#include <math.h>
#include <string.h>

/**
 * PtoTrace:
 *
 * The record of one run: when every task was submitted, became ready, was dispatched, ran and gave
 * its slot back, on which core, and which tasks it waited for.
 *
 * A worker records a run when its parameter `trace` is 1; [method@Pto.Worker.ref_trace] gives the
 * record of the last run. A trace is a value: it never changes, and it outlives the worker. It is
 * saved as a Perfetto trace or as Trace Event JSON, which ui.perfetto.dev opens, as a picture (SVG)
 * with one row per core, or as a report (HTML), a page in which one can look around. Of a worker of
 * level 3 or up, children stand where a chip has cores, and what each worker below did inside of a
 * task is part of the trace, on the same clock, in all of them.
 *
 * Times are nanoseconds since the first record, on the virtual clock (back end `det`) or on the
 * wall clock (the others). A task is named by its 64-bit id: ring << 32 | position in that ring.
 *
 * Thread safety: any thread. A fork keeps the trace usable in the child.
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoTrace, pto_trace, G_TYPE_OBJECT)

static void
pto_trace_finalize (GObject *object)
{
  PtoTrace *self = PTO_TRACE (object);

  pto_trace_places_free (self->places);
  g_clear_pointer (&self->parts, g_ptr_array_unref);
  pto_trace_analysis_free (self->analysis);
  g_free (self->records);
  g_free (self->starts);
  g_free (self->drops);
  g_strfreev (self->kernel_names);
  g_strfreev (self->files);
  g_free (self->title);
  g_free (self->path);
  g_strfreev (self->rows);
  pto_trace_pieces_clear (&self->pieces);
  g_free (self->sha256);
  G_OBJECT_CLASS (pto_trace_parent_class)->finalize (object);
}

static void
pto_trace_class_init (PtoTraceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_trace_finalize;
}

static void
pto_trace_init (PtoTrace *self)
{
  /* Language bindings can make an object of any type: that one is an empty trace. */
  self->starts = g_new0 (guint64, 1);
  self->drops = g_new0 (guint64, 1);
  self->kernel_names = g_new0 (char *, 1);
  self->files = g_new0 (char *, 1);
  self->title = g_strdup ("");
  pto_trace_pieces_init (&self->pieces);
}

gint
pto_trace_compare_times (gconstpointer a, gconstpointer b)
{
  return pto_trace_order (*(const guint64 *) a, *(const guint64 *) b);
}

PtoTrace *
pto_trace_new_from_run (const struct pto_trace *records, const struct pto_trace_topology *topology,
                        const char *const *kernel_names, guint n_kernel_names, const char *title)
{
  PtoTrace *self = g_object_new (PTO_TYPE_TRACE, NULL);
  guint64 total = 0;

  self->topology = *topology;
  self->n_buffers = records->n_buffers;
  self->starts = g_renew (guint64, self->starts, self->n_buffers + 1);
  self->drops = g_renew (guint64, self->drops, MAX (self->n_buffers, 1));
  for (guint b = 0; b < self->n_buffers; b++)
    {
      self->starts[b] = total;
      self->drops[b] = records->buffers[b].dropped;
      self->dropped += records->buffers[b].dropped;
      total += records->buffers[b].count;
    }
  self->starts[self->n_buffers] = total;

  self->records = g_renew (struct pto_trace_record, self->records, MAX (total, 1));
  for (guint b = 0; b < self->n_buffers; b++)
    if (records->buffers[b].count > 0)
      memcpy (self->records + self->starts[b], records->buffers[b].records,
              records->buffers[b].count * sizeof (struct pto_trace_record));

  self->n_kernel_names = n_kernel_names;
  self->kernel_names = g_renew (char *, self->kernel_names, n_kernel_names + 1);
  for (guint i = 0; i < n_kernel_names; i++)
    self->kernel_names[i] = kernel_names[i] != NULL && kernel_names[i][0] != '\0'
                                ? g_utf8_make_valid (kernel_names[i], -1)
                                : g_strdup_printf ("kernel %u", i);
  self->kernel_names[n_kernel_names] = NULL;

  self->n_files = records->files.n;
  self->files = g_renew (char *, self->files, self->n_files + 1);
  for (guint i = 0; i < self->n_files; i++)
    self->files[i] = g_utf8_make_valid (records->files.names[i], -1);
  self->files[self->n_files] = NULL;

  g_free (self->title);
  self->title = g_utf8_make_valid (title != NULL ? title : "", -1);
  return self;
}

void
pto_trace_take_names (PtoTrace *trace, char *path, char **rows)
{
  trace->path = path;
  trace->rows = rows;
}

const PtoTraceAnalysis *
pto_trace_get_analysis (PtoTrace *trace)
{
  if (g_once_init_enter (&trace->analysis))
    g_once_init_leave (&trace->analysis, pto_trace_analysis_new (trace));
  return trace->analysis;
}

const char *
pto_trace_get_kernel_name (PtoTrace *trace, guint32 kernel)
{
  g_autofree char *name = NULL;

  if ((gint32) kernel < 0)
    return kernel == PTO_TRACE_ALLOC     ? "alloc"
           : kernel == PTO_TRACE_UNKNOWN ? "unknown kernel"
                                         : "no kernel";
  if (pto_kernel_is_builtin (kernel))
    return pto_builtin_name (kernel);
  if (kernel < trace->n_kernel_names)
    return trace->kernel_names[kernel];
  name = g_strdup_printf ("kernel %u", kernel);
  return g_intern_string (name);
}

const char *
pto_trace_tell_kernel (const char *name)
{
  static const char *const none[]
      = { N_ ("no kernel"), N_ ("unknown kernel"), N_ ("not recorded") };

  for (guint i = 0; i < G_N_ELEMENTS (none); i++)
    if (strcmp (name, none[i]) == 0)
      return _ (none[i]);
  return name;
}

char *
pto_trace_dup_task_name (guint64 id)
{
  if (PTO_TASK_RING (id) == 0)
    return g_strdup_printf ("%u", PTO_TASK_LOCAL (id));
  return g_strdup_printf (_ ("%u of ring %u"), PTO_TASK_LOCAL (id), PTO_TASK_RING (id));
}

void
pto_trace_locate_core (PtoTrace *trace, guint core, guint *cluster, guint *core_type)
{
  guint aic = trace->topology.aic_per_cluster;
  guint per_cluster = MAX (aic + trace->topology.aiv_per_cluster, 1);
  guint rest = core % per_cluster;

  if (pto_trace_is_level (trace))
    {
      *cluster = *core_type = core >= trace->topology.n_workers;
      return;
    }
  *cluster = core / per_cluster;
  *core_type = rest < aic ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV;
}

guint
pto_trace_get_n_of_type (PtoTrace *trace, guint core_type)
{
  const struct pto_trace_topology *topology = &trace->topology;

  if (pto_trace_is_level (trace))
    return core_type == 0 ? MIN (topology->n_workers, topology->n_cores)
                          : topology->n_cores - MIN (topology->n_workers, topology->n_cores);
  return topology->n_clusters
         * (core_type == PTO_CORE_TYPE_AIC ? topology->aic_per_cluster : topology->aiv_per_cluster);
}

const char *
pto_trace_get_type_name (PtoTrace *trace, guint core_type, guint n)
{
  if (!pto_trace_is_level (trace))
    return core_type == PTO_CORE_TYPE_AIC ? "AIC" : "AIV";
  if (core_type == 0)
    return n == 1 ? "worker" : "workers";
  return n == 1 ? "SUB worker" : "SUB workers";
}

double
pto_trace_get_type_utilization (PtoTrace *trace, guint core_type)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  double busy = 0;
  guint n = 0;

  for (guint c = 0; c < analysis->n_cores; c++)
    {
      guint cluster, type;

      pto_trace_locate_core (trace, c, &cluster, &type);
      if (type != core_type)
        continue;
      busy += (double) analysis->core_busy[c];
      n++;
    }
  return n > 0 && analysis->elapsed > 0 ? busy / n / (double) analysis->elapsed : 0;
}

char *
pto_trace_dup_stall_name (guint32 what)
{
  static const char *const resources[]
      = { "task ring", "heap ring", "dependency pool", "tensor map" };
  guint32 resource = what >> 8;

  if (resource == PTO_STALL_COHORT)
    return g_strdup ("a free cluster");
  if (resource == PTO_STALL_ELEMENT)
    return g_strdup ("an element");
  return g_strdup_printf (
      "%s %u", resource < G_N_ELEMENTS (resources) ? resources[resource] : "ring", what & 0xff);
}

char *
pto_trace_tell_limit (const char *limit)
{
  static const char *const whole[]
      = { N_ ("critical path"), N_ ("submitter"),      N_ ("schedulers"), N_ ("cores"),
          N_ ("clusters"),      N_ ("a free cluster"), N_ ("an element") };
  static const char *const numbered[] = { N_ ("task ring"), N_ ("heap ring"),
                                          N_ ("dependency pool"), N_ ("tensor map"), N_ ("ring") };

  for (guint i = 0; i < G_N_ELEMENTS (whole); i++)
    if (strcmp (limit, whole[i]) == 0)
      return g_strdup (_ (whole[i]));
  for (guint i = 0; i < G_N_ELEMENTS (numbered); i++)
    {
      gsize length = strlen (numbered[i]);

      if (strncmp (limit, numbered[i], length) == 0 && limit[length] == ' ')
        return g_strconcat (_ (numbered[i]), limit + length, NULL);
    }
  return g_strdup (limit);
}

char *
pto_trace_count_tasks (guint64 n)
{
  return g_strdup_printf (P_ ("%" PRIu64 " task", "%" PRIu64 " tasks", n), n);
}

char *
pto_trace_count_edges (guint64 n)
{
  return g_strdup_printf (P_ ("%" PRIu64 " edge", "%" PRIu64 " edges", n), n);
}

char *
pto_trace_count_runs (guint64 n)
{
  return g_strdup_printf (P_ ("%" PRIu64 " run", "%" PRIu64 " runs", n), n);
}

char *
pto_trace_tell_elapsed (guint64 ns, gboolean is_virtual)
{
  g_autofree char *us = pto_trace_dup_us (ns);

  return g_strdup_printf (
      is_virtual ? _ ("%s us on the virtual clock") : _ ("%s us on the wall clock"), us);
}

char *
pto_trace_tell_busy (const char *type, guint n, double share)
{
  if (strcmp (type, "worker") == 0)
    return g_strdup_printf (P_ ("%u worker busy %.0f %%", "%u workers busy %.0f %%", n), n,
                            100 * share);
  if (strcmp (type, "SUB worker") == 0)
    return g_strdup_printf (P_ ("%u SUB worker busy %.0f %%", "%u SUB workers busy %.0f %%", n), n,
                            100 * share);
  return g_strdup_printf (_ ("%u %s busy %.0f %%"), n, type, 100 * share);
}

void
pto_trace_append_fixed (GString *text, double value, int decimals)
{
  char format[] = "%.0f";
  char buffer[64];

  format[2] = (char) ('0' + CLAMP (decimals, 0, 9));
  g_string_append (text, g_ascii_formatd (buffer, sizeof buffer, format, value));
}

/* Three decimals always: all of the nanoseconds, whatever the size of the number. */
void
pto_trace_append_us (GString *text, guint64 ns)
{
  g_string_append_printf (text, "%" G_GUINT64_FORMAT ".%03u", ns / 1000, (guint) (ns % 1000));
}

char *
pto_trace_dup_us (guint64 ns)
{
  GString *text = g_string_new (NULL);

  pto_trace_append_us (text, ns);
  return g_string_free (text, FALSE);
}

/* The bytes that a digest is made of do not depend on the machine. */
static void
checksum_add (GChecksum *sum, guint64 value)
{
  guint8 bytes[8];

  for (guint i = 0; i < 8; i++)
    bytes[i] = (guint8) (value >> (8 * i));
  g_checksum_update (sum, bytes, sizeof bytes);
}

static char *
compute_sha256 (PtoTrace *self)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (self);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);

  g_checksum_update (sum, (const guchar *) "pto-trace-2", 11);
  checksum_add (sum, self->topology.n_schedulers);
  checksum_add (sum, self->topology.n_cores);
  checksum_add (sum, self->topology.n_clusters);
  checksum_add (sum, self->topology.aic_per_cluster);
  checksum_add (sum, self->topology.aiv_per_cluster);
  checksum_add (sum, self->topology.virtual_clock);
  checksum_add (sum, self->topology.counter_hz);
  checksum_add (sum, self->n_kernel_names);
  for (guint i = 0; i < self->n_kernel_names; i++)
    g_checksum_update (sum, (const guchar *) self->kernel_names[i],
                       (gssize) strlen (self->kernel_names[i]) + 1);
  /* Not where sources lie: that is another place on another machine. */
  checksum_add (sum, self->n_buffers);
  for (guint b = 0; b < self->n_buffers; b++)
    {
      checksum_add (sum, self->drops[b]);
      checksum_add (sum, self->starts[b + 1] - self->starts[b]);
      for (guint64 i = self->starts[b]; i < self->starts[b + 1]; i++)
        {
          const struct pto_trace_record *record = &self->records[i];
          /* Times count from the first record: the clock of a worker does not start again. */
          gboolean extra_is_time = PTO_TRACE_HAS_END (record->kind);

          /* Nor is memory where it was. */
          if (record->kind == PTO_TRACE_ARG
              && PTO_TRACE_ARG_TYPE (record->extra) != PTO_PARAM_SCALAR)
            checksum_add (sum, 0);
          else
            checksum_add (sum, PTO_TRACE_IS_WORDS (record->kind) ? record->time
                                                                 : record->time - analysis->first);
          checksum_add (sum, record->task);
          checksum_add (sum, (guint64) record->kind << 32 | record->detail);
          checksum_add (sum, extra_is_time ? record->extra - analysis->first : record->extra);
        }
    }
  for (guint i = 0; self->rows != NULL && self->rows[i] != NULL; i++)
    g_checksum_update (sum, (const guchar *) self->rows[i], (gssize) strlen (self->rows[i]) + 1);
  for (guint i = 0; i < self->pieces.list->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (self->pieces.list, i);

      checksum_add (sum, piece->child);
      checksum_add (sum, piece->task);
      g_checksum_update (sum, (const guchar *) pto_trace_get_sha256 (piece->trace), 64);
    }
  return g_strdup (g_checksum_get_string (sum));
}

/**
 * pto_trace_save:
 * @self: a trace
 * @path: (type filename): where to; `.ptotrace`, `.html`, `.perfetto-trace`, `.pftrace`, `.json`
 * and
 *   `.svg` are known
 * @error: return location for an error
 *
 * Saves the trace in the form that the name asks for: `.ptotrace` is the record as it is, which
 * [ctor@Pto.Trace.new_from_file] reads again; the others are pictures of it: `.html` a report,
 * `.perfetto-trace` (or `.pftrace`) and `.json` for ui.perfetto.dev, `.svg` rows of cores.
 *
 * The file is there as a whole or not at all: a file of that name is replaced only when the new one
 * is complete.
 *
 * Thread safety: any thread.
 *
 * Returns: whether the file was written; otherwise an error of the domain `G_IO_ERROR`
 *
 * Since: 0.1
 */
gboolean
pto_trace_save (PtoTrace *self, const char *path, GError **error)
{
  static const struct
  {
    const char *suffix;
    gboolean (*save) (PtoTrace *trace, const char *path, GError **error);
  } forms[] = { { ".html", pto_trace_save_html },
                { ".json", pto_trace_save_json },
                { ".perfetto-trace", pto_trace_save_perfetto },
                { ".pftrace", pto_trace_save_perfetto },
                { ".svg", pto_trace_save_svg },
                { ".ptotrace", pto_trace_save_file } };
  g_autofree char *lower = NULL;
  g_autofree char *name = NULL;

  g_return_val_if_fail (PTO_IS_TRACE (self), FALSE);
  g_return_val_if_fail (path != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  lower = g_ascii_strdown (path, -1);
  for (guint i = 0; i < G_N_ELEMENTS (forms); i++)
    if (g_str_has_suffix (lower, forms[i].suffix))
      return forms[i].save (self, path, error);
  name = g_filename_display_name (path);
  g_set_error (
      error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
      _ ("%s: a trace is saved as .ptotrace (the record), .html (a report), .perfetto-trace "
         "or .json (for ui.perfetto.dev), or .svg (a picture)"),
      name);
  return FALSE;
}

static gboolean
save_text (PtoTrace *self, char *(*make) (PtoTrace *trace), const char *path, GError **error)
{
  g_autofree char *text = NULL;

  g_return_val_if_fail (PTO_IS_TRACE (self), FALSE);
  g_return_val_if_fail (path != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  text = make (self);
  return pto_save (path, text, strlen (text), 0666, error);
}

/**
 * pto_trace_save_html:
 * @self: a trace
 * @path: (type filename): where to
 * @error: return location for an error
 *
 * Saves the trace as a report, see [method@Pto.Trace.to_html].
 *
 * Thread safety: any thread.
 *
 * Returns: whether the file was written
 *
 * Since: 0.1
 */
gboolean
pto_trace_save_html (PtoTrace *self, const char *path, GError **error)
{
  return save_text (self, pto_trace_to_html, path, error);
}

/**
 * pto_trace_save_json:
 * @self: a trace
 * @path: (type filename): where to
 * @error: return location for an error
 *
 * Saves the trace as Trace Event JSON, see [method@Pto.Trace.to_json].
 *
 * Thread safety: any thread.
 *
 * Returns: whether the file was written
 *
 * Since: 0.1
 */
gboolean
pto_trace_save_json (PtoTrace *self, const char *path, GError **error)
{
  return save_text (self, pto_trace_to_json, path, error);
}

/**
 * pto_trace_save_svg:
 * @self: a trace
 * @path: (type filename): where to
 * @error: return location for an error
 *
 * Saves the trace as a picture, see [method@Pto.Trace.to_svg].
 *
 * Thread safety: any thread.
 *
 * Returns: whether the file was written
 *
 * Since: 0.1
 */
gboolean
pto_trace_save_svg (PtoTrace *self, const char *path, GError **error)
{
  return save_text (self, pto_trace_to_svg, path, error);
}

/**
 * pto_trace_get_title:
 * @self: a trace
 *
 * What the run was, in a few words; the pictures show it.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): the title, maybe empty
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (const char *, pto_trace_get_title, PtoTrace, PTO_IS_TRACE, NULL, self->title)

/**
 * pto_trace_get_sha256:
 * @self: a trace
 *
 * A digest of everything recorded: equal for two runs on the back end `det` with the same seed,
 * kernels, configuration and input, whatever the machine and the title.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): 64 hexadecimal digits
 *
 * Since: 0.1
 */
const char *
pto_trace_get_sha256 (PtoTrace *self)
{
  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  if (g_once_init_enter (&self->sha256))
    g_once_init_leave (&self->sha256, compute_sha256 (self));
  return self->sha256;
}

/**
 * pto_trace_is_virtual:
 * @self: a trace
 *
 * Do the times count on the chip's virtual clock (`det`), or on the wall clock?
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE for the virtual clock
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (gboolean, pto_trace_is_virtual, PtoTrace, PTO_IS_TRACE, FALSE,
                  self->topology.virtual_clock)

/**
 * pto_trace_get_recorded:
 * @self: a trace
 *
 * How many records there are, with those of workers below. Recorded and dropped records are all
 * that the run produced.
 *
 * Thread safety: any thread.
 *
 * Returns: the number of records
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_recorded, PtoTrace, PTO_IS_TRACE, 0,
                  pto_trace_count_records (self))

/**
 * pto_trace_get_dropped:
 * @self: a trace
 *
 * How many records found their buffer full, or were of a run of a worker that did not fit any more,
 * and are missing. The parameter `trace-records` sets the size of a buffer.
 *
 * Thread safety: any thread.
 *
 * Returns: the number of records
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_dropped, PtoTrace, PTO_IS_TRACE, 0, self->dropped)

/**
 * pto_trace_get_n_tasks:
 * @self: a trace
 *
 * How many tasks were recorded.
 *
 * Thread safety: any thread.
 *
 * Returns: the number of tasks
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_n_tasks, PtoTrace, PTO_IS_TRACE, 0,
                  pto_trace_get_analysis (self)->n_tasks)

/**
 * pto_trace_get_n_edges:
 * @self: a trace
 *
 * How many pairs of tasks were recorded of which the second waits for the first.
 *
 * Thread safety: any thread.
 *
 * Returns: the number of edges
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_n_edges, PtoTrace, PTO_IS_TRACE, 0,
                  pto_trace_get_analysis (self)->n_deps)

/**
 * pto_trace_get_elapsed_ns:
 * @self: a trace
 *
 * From the first record to the end of the last kernel.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_elapsed_ns, PtoTrace, PTO_IS_TRACE, 0,
                  pto_trace_get_analysis (self)->elapsed)

/**
 * pto_trace_dup_critical_path:
 * @self: a trace
 * @n_tasks: (out): how many tasks there are on the path
 *
 * The chain of tasks that made the run last as long as it did.
 *
 * It is followed backward from the task that ended last, always to what kept the task from starting
 * earlier: the producer that ended last, or the task before it on the same core when the core was
 * still busy. A task that runs as blocks is there once. The path begins with a task that waited for
 * nothing but its own submit.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (array length=n_tasks) (nullable): ids of tasks, by time; %NULL when
 *   nothing ran
 *
 * Since: 0.1
 */
guint64 *
pto_trace_dup_critical_path (PtoTrace *self, gsize *n_tasks)
{
  g_autoptr (GHashTable) ids = NULL;
  const PtoTraceAnalysis *analysis;
  guint64 *path;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (n_tasks != NULL, NULL);

  analysis = pto_trace_get_analysis (self);
  *n_tasks = 0;
  if (analysis->n_critical == 0)
    return NULL;
  path = g_new (guint64, analysis->n_critical_tasks);
  ids = g_hash_table_new (g_int64_hash, g_int64_equal);
  for (guint i = 0; i < analysis->n_critical; i++)
    {
      PtoTraceEntry *entry = &analysis->tasks[analysis->critical[i]];

      if (g_hash_table_add (ids, &entry->id))
        path[(*n_tasks)++] = entry->id;
    }
  return path;
}

/**
 * pto_trace_get_critical_path_ns:
 * @self: a trace
 *
 * From the start of the first task of the critical path to the end of its last one.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds of the trace's clock
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_critical_path_ns, PtoTrace, PTO_IS_TRACE, 0,
                  pto_trace_get_analysis (self)->critical_ns)

/**
 * pto_trace_get_n_cores:
 * @self: a trace
 *
 * How many cores the chip had, of both types; of a worker of level 3 or up, how many children.
 *
 * Thread safety: any thread.
 *
 * Returns: the number of cores
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint, pto_trace_get_n_cores, PtoTrace, PTO_IS_TRACE, 0, self->topology.n_cores)

/**
 * pto_trace_dup_core_name:
 * @self: a trace
 * @core: a core, counted from 0
 *
 * Names a core, for example "AIV17": its type and its number among the cores of that type. Of a
 * worker of level 3 or up it names a child: "L2/0", "sub1".
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): the name; %NULL when there is no such core
 *
 * Since: 0.1
 */
char *
pto_trace_dup_core_name (PtoTrace *self, guint core)
{
  guint cluster, type;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  if (core >= self->topology.n_cores)
    return NULL;
  if (self->rows != NULL)
    return g_strdup (self->rows[core]);
  pto_trace_locate_core (self, core, &cluster, &type);
  if (type == PTO_CORE_TYPE_AIC)
    return g_strdup_printf ("AIC%u", core - cluster * self->topology.aiv_per_cluster);
  return g_strdup_printf ("AIV%u", core - (cluster + 1) * self->topology.aic_per_cluster);
}

/**
 * pto_trace_get_core_utilization:
 * @self: a trace
 * @core: a core, counted from 0
 *
 * Which share of the run the core spent in kernels that did not wait for others.
 *
 * Thread safety: any thread.
 *
 * Returns: 0 (idle) to 1 (always busy); 0 when there is no such core
 *
 * Since: 0.1
 */
double
pto_trace_get_core_utilization (PtoTrace *self, guint core)
{
  const PtoTraceAnalysis *analysis;

  g_return_val_if_fail (PTO_IS_TRACE (self), 0);
  if (core >= self->topology.n_cores)
    return 0;
  analysis = pto_trace_get_analysis (self);
  return analysis->elapsed > 0 ? (double) analysis->core_busy[core] / (double) analysis->elapsed
                               : 0;
}

/**
 * pto_trace_to_string:
 * @self: a trace
 *
 * Describes it in words, for a person: `208 tasks, 240 edges, 268500 ns on the virtual clock`.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_trace_to_string (PtoTrace *self)
{
  const PtoTraceAnalysis *analysis;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  analysis = pto_trace_get_analysis (self);
  return g_strdup_printf ("%s%s%u task%s, %u edge%s, %" G_GUINT64_FORMAT " ns on the %s clock",
                          self->title, self->title[0] != '\0' ? ": " : "", analysis->n_tasks,
                          analysis->n_tasks == 1 ? "" : "s", analysis->n_deps,
                          analysis->n_deps == 1 ? "" : "s", analysis->elapsed,
                          self->topology.virtual_clock ? "virtual" : "wall");
}
