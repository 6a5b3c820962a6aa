/* tensor-dump.c: what was in the tensors of a run before and after each task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Follows the tasks as a watch does (../core/memory-observer.h). Whoever submits notes what a
 * task's tensors are, for a kernel may spoil its own arguments; whoever dispatches it, and whoever
 * sees its end, writes the files. These are different threads: the lock orders the table and the
 * list. The tensors themselves need none, for nobody writes them at those two moments. Nothing here
 * yields to another fiber while it holds the lock.
 */
#include "config.h"

#include "tensor-dump.h"

#include "base/error.h"
#include "common/json.h"
#include "common/text.h"
#include "values/address-range.h"
#include "values/tensor-dump-filter.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* What CallConfig.enable_dump_tensor says. */
enum
{
  DUMP_BOTH = 1,
  DUMP_BEFORE,
  DUMP_AFTER
};

typedef struct
{
  guint32 index;
  guint32 type; /* PTO_PARAM_* */
  TensorData tensor;
} Argument;

/* Of the table until it has ended, and of its files. */
typedef struct
{
  guint64 id;
  guint64 order; /* of its submit */
  char *kernel;
  char *source; /* "file:line"; NULL */
  guint n_args;
  Argument args[];
} Task;

/* A file. */
typedef struct
{
  Task *task;
  const Argument *argument; /* of it */
  gboolean after;
  gboolean failed; /* the task */
  char *name;
} Entry;

struct _PtoDump
{
  struct pto_watch watch;
  char *prefix;
  int what;
  PtoDumpFilter *filter;
  GMutex lock; /* of what follows */
  GHashTable *tasks;
  GPtrArray *entries;
  guint64 n_submitted; /* the submitter's own */
  GError *failure;     /* the first */
};

static gboolean
is_read (guint type)
{
  return type == PTO_PARAM_INPUT || type == PTO_PARAM_INOUT || type == PTO_PARAM_COMMUTATIVE
         || type == PTO_PARAM_NO_DEP || type == PTO_PARAM_REDUCTION;
}

static gboolean
is_written (guint type)
{
  return type != PTO_PARAM_INPUT && type != PTO_PARAM_NO_DEP;
}

/* --- the files --- */

static const char *
get_descr (guint dtype)
{
  /* What NumPy has no type for is the bits. */
  static const char *const descr[PTO_DTYPE_COUNT] = {
    [PTO_DTYPE_FLOAT32] = "f4", [PTO_DTYPE_FLOAT16] = "f2",       [PTO_DTYPE_BFLOAT16] = "u2",
    [PTO_DTYPE_INT8] = "i1",    [PTO_DTYPE_INT16] = "i2",         [PTO_DTYPE_INT32] = "i4",
    [PTO_DTYPE_INT64] = "i8",   [PTO_DTYPE_UINT8] = "u1",         [PTO_DTYPE_UINT16] = "u2",
    [PTO_DTYPE_UINT32] = "u4",  [PTO_DTYPE_UINT64] = "u8",        [PTO_DTYPE_BOOL] = "b1",
    [PTO_DTYPE_FLOAT64] = "f8", [PTO_DTYPE_FLOAT8_E4M3FN] = "u1", [PTO_DTYPE_FLOAT8_E5M2] = "u1",
    [PTO_DTYPE_INT4] = "i1"
  };

  return descr[dtype];
}

/* The head of an .npy file: its length is a multiple of 64. */
static GByteArray *
make_head (const TensorData *tensor)
{
  g_autoptr (GString) text = g_string_new (NULL);
  GByteArray *bytes = g_byte_array_new ();
  guint16 length;

  g_string_append_printf (text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                          pto_dtype_size (tensor->dtype) == 1 ? '|'
                          : G_BYTE_ORDER == G_LITTLE_ENDIAN   ? '<'
                                                              : '>',
                          get_descr (tensor->dtype));
  for (guint d = 0; d < tensor->ndims; d++)
    g_string_append_printf (text, "%" G_GUINT64_FORMAT "%s", (guint64) tensor->shapes[d],
                            tensor->ndims == 1      ? ","
                            : d + 1 < tensor->ndims ? ", "
                                                    : "");
  g_string_append (text, "), }");
  while ((10 + text->len + 1) % 64 != 0)
    g_string_append_c (text, ' ');
  g_string_append_c (text, '\n');
  length = GUINT16_TO_LE ((guint16) text->len);
  g_byte_array_append (bytes, (const guint8 *) "\x93NUMPY\x01", 8);
  g_byte_array_append (bytes, (const guint8 *) &length, sizeof length);
  g_byte_array_append (bytes, (const guint8 *) text->str, (guint) text->len);
  return bytes;
}

/* The dimensions from which on all elements lie one behind the other, and how many these are. */
static guint
count_inner (const TensorData *tensor, guint64 *n)
{
  guint d = tensor->ndims;

  *n = 1;
  while (d > 0 && (tensor->shapes[d - 1] == 1 || tensor->strides[d - 1] == *n))
    *n *= tensor->shapes[--d];
  return d;
}

/* The head, and rows that lie apart, in the order of the file. */
typedef struct
{
  struct iovec rows[64];
  guint n;
} Batch;

static gboolean
write_batch (int fd, Batch *batch)
{
  struct iovec *row = batch->rows;
  struct iovec *end = row + batch->n;

  while (row < end)
    {
      gssize n = writev (fd, row, (int) (end - row));

      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return FALSE;
      for (; row < end && (gsize) n >= row->iov_len; row++)
        n -= (gssize) row->iov_len;
      if (n > 0)
        {
          row->iov_base = (guint8 *) row->iov_base + n;
          row->iov_len -= (gsize) n;
        }
    }
  batch->n = 0;
  return TRUE;
}

/* The system reads them: where there is no memory it says so, and nobody faults. */
static gboolean
write_elements (int fd, const TensorData *tensor, Batch *batch)
{
  guint64 size = pto_dtype_size (tensor->dtype);
  guint8 *base = (guint8 *) (uintptr_t) tensor->buffer.addr + tensor->start_offset * size;
  guint64 index[PTO2_TENSOR_MAX_DIMS] = { 0 };
  guint64 inner;
  guint outer = count_inner (tensor, &inner);

  for (guint d = 0; d < tensor->ndims; d++)
    if (tensor->shapes[d] == 0)
      return write_batch (fd, batch);
  for (;;)
    {
      guint64 offset = 0;
      guint d = outer;

      for (guint k = 0; k < outer; k++)
        offset += index[k] * tensor->strides[k];
      batch->rows[batch->n++] = (struct iovec){ base + offset * size, inner * size };
      if (batch->n == G_N_ELEMENTS (batch->rows) && !write_batch (fd, batch))
        return FALSE;
      while (d > 0 && ++index[d - 1] == tensor->shapes[d - 1])
        index[--d] = 0;
      if (d == 0)
        return write_batch (fd, batch);
    }
}

static gboolean
write_file (const char *path, const TensorData *tensor, GError **error)
{
  g_autoptr (GByteArray) head = make_head (tensor);
  Batch batch = { .rows = { { head->data, head->len } }, .n = 1 };
  int fd = g_open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  g_autofree char *shown = NULL;
  gboolean ok;
  int saved;

  ok = fd >= 0 && write_elements (fd, tensor, &batch);
  saved = errno;
  if (fd >= 0 && close (fd) != 0 && ok)
    {
      ok = FALSE;
      saved = errno;
    }
  if (ok)
    return TRUE;
  /* Half a file is none. */
  if (fd >= 0)
    g_unlink (path);
  shown = g_filename_display_name (path);
  g_set_error (error, G_FILE_ERROR, (gint) g_file_error_from_errno (saved),
               _ ("tensor dump: %s: %s"), shown, g_strerror (saved));
  return FALSE;
}

static void
clear_task (gpointer data)
{
  Task *task = data;

  g_free (task->kernel);
  g_free (task->source);
}

static void
task_unref (gpointer task)
{
  g_atomic_rc_box_release_full (task, clear_task);
}

static void
entry_free (gpointer data)
{
  Entry *entry = data;

  task_unref (entry->task);
  g_free (entry->name);
  g_free (entry);
}

static void
dump_argument (PtoDump *dump, Task *task, const Argument *argument, gboolean after, gboolean failed)
{
  g_autofree char *path = NULL;
  g_autofree char *kernel
      = g_strcanon (g_strdup (task->kernel), G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-", '_');
  const char *slash = strrchr (dump->prefix, '/');
  GError *error = NULL;
  Entry *entry = g_new0 (Entry, 1);

  entry->task = g_atomic_rc_box_acquire (task);
  entry->argument = argument;
  entry->after = after;
  entry->failed = failed;
  entry->name
      = g_strdup_printf ("%sdump-%u-%u-%s-arg%u-%s.npy", slash != NULL ? slash + 1 : dump->prefix,
                         PTO_TASK_RING (task->id), PTO_TASK_LOCAL (task->id), kernel,
                         argument->index, after ? "after" : "before");
  path = g_strdup_printf ("%.*s%s", slash != NULL ? (int) (slash + 1 - dump->prefix) : 0,
                          dump->prefix, entry->name);
  if (pto_remote_range_has (argument->tensor.buffer.addr))
    g_set_error (
        &error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
        _ ("tensor dump: task %u of ring %u (%s): argument %u is in the memory of a remote "
           "worker, which cannot be read here: leave it out (dump_filter)"),
        PTO_TASK_LOCAL (task->id), PTO_TASK_RING (task->id), task->kernel, argument->index);
  else
    write_file (path, &argument->tensor, &error);
  g_mutex_lock (&dump->lock);
  if (error == NULL)
    g_ptr_array_add (dump->entries, g_steal_pointer (&entry));
  else if (dump->failure == NULL)
    dump->failure = g_steal_pointer (&error);
  g_mutex_unlock (&dump->lock);
  g_clear_pointer (&entry, entry_free);
  g_clear_error (&error);
}

/* --- the tasks --- */

static char *
dup_source (const struct pto_watched *task)
{
  const char *slash;

  if (task->file == NULL)
    return NULL;
  slash = strrchr (task->file, '/');
  return g_strdup_printf ("%s:%d", slash != NULL ? slash + 1 : task->file, (int) task->line);
}

static void
on_submitted (struct pto_watch *watch, const struct pto_watched *watched)
{
  PtoDump *dump = (PtoDump *) watch;
  guint64 order = dump->n_submitted++;
  Task *task;

  if (pto_watched_kernel (watched, 0) == NULL)
    return;
  task = g_atomic_rc_box_alloc0 (sizeof *task + watched->n_args * sizeof *task->args);
  for (guint i = 0; i < watched->n_args; i++)
    if (watched->types[i] != PTO_PARAM_SCALAR && pto_dump_filter_has (dump->filter, watched, i))
      task->args[task->n_args++]
          = (Argument){ i, watched->types[i], *pto_watched_tensor (watched, i) };
  if (task->n_args == 0)
    {
      task_unref (task);
      return;
    }
  task->id = watched->id;
  task->order = order;
  task->kernel = g_strdup (pto_watched_kernel (watched, 0));
  task->source = dup_source (watched);
  g_mutex_lock (&dump->lock);
  g_hash_table_insert (dump->tasks, &task->id, task);
  g_mutex_unlock (&dump->lock);
}

static void
on_begins (struct pto_watch *watch, pto_task_id id)
{
  PtoDump *dump = (PtoDump *) watch;
  gint64 key = (gint64) id;
  Task *task;

  if (dump->what == DUMP_AFTER)
    return;
  g_mutex_lock (&dump->lock);
  task = g_hash_table_lookup (dump->tasks, &key);
  g_mutex_unlock (&dump->lock);
  for (guint i = 0; task != NULL && i < task->n_args; i++)
    if (is_read (task->args[i].type))
      dump_argument (dump, task, &task->args[i], FALSE, FALSE);
}

static void
on_ended (struct pto_watch *watch, pto_task_id id, bool failed)
{
  PtoDump *dump = (PtoDump *) watch;
  gint64 key = (gint64) id;
  Task *task;

  g_mutex_lock (&dump->lock);
  task = g_hash_table_lookup (dump->tasks, &key);
  if (task != NULL)
    g_hash_table_steal (dump->tasks, &key);
  g_mutex_unlock (&dump->lock);
  if (task == NULL)
    return;
  for (guint i = 0; dump->what != DUMP_BEFORE && i < task->n_args; i++)
    if (is_written (task->args[i].type))
      dump_argument (dump, task, &task->args[i], TRUE, failed);
  task_unref (task);
}

/* --- the list --- */

static gint
compare_entries (gconstpointer a, gconstpointer b)
{
  const Entry *x = *(Entry *const *) a;
  const Entry *y = *(Entry *const *) b;

  if (x->task->order != y->task->order)
    return x->task->order < y->task->order ? -1 : 1;
  if (x->argument->index != y->argument->index)
    return x->argument->index < y->argument->index ? -1 : 1;
  return x->after - y->after;
}

static void
add_entry (JsonBuilder *json, const Entry *entry)
{
  static const char *const tags[]
      = { [PTO_PARAM_INPUT] = "INPUT",         [PTO_PARAM_OUTPUT] = "OUTPUT",
          [PTO_PARAM_INOUT] = "INOUT",         [PTO_PARAM_OUTPUT_EXISTING] = "OUTPUT_EXISTING",
          [PTO_PARAM_NO_DEP] = "NO_DEP",       [PTO_PARAM_COMMUTATIVE] = "COMMUTATIVE",
          [PTO_PARAM_REDUCTION] = "REDUCTION", [PTO_PARAM_SCRATCH] = "SCRATCH" };
  const TensorData *tensor = &entry->argument->tensor;
  g_autofree char *id = g_strdup_printf ("%" G_GUINT64_FORMAT, entry->task->id);

  json_builder_begin_object (json);
  pto_json_add_string (json, "file", entry->name);
  pto_json_add_string (json, "task", id);
  pto_json_add_int (json, "ring", PTO_TASK_RING (entry->task->id));
  pto_json_add_int (json, "position", PTO_TASK_LOCAL (entry->task->id));
  pto_json_add_string (json, "kernel", entry->task->kernel);
  if (entry->task->source != NULL)
    pto_json_add_string (json, "submitted_at", entry->task->source);
  pto_json_add_int (json, "argument", entry->argument->index);
  if (entry->argument->type < G_N_ELEMENTS (tags) && tags[entry->argument->type] != NULL)
    pto_json_add_string (json, "tag", tags[entry->argument->type]);
  pto_json_add_string (json, "when", entry->after ? "after" : "before");
  pto_json_add_string (json, "dtype", pto_dtype_name (tensor->dtype));
  pto_json_begin_array (json, "shape");
  for (guint d = 0; d < tensor->ndims; d++)
    json_builder_add_int_value (json, (gint64) tensor->shapes[d]);
  json_builder_end_array (json);
  if (entry->failed)
    pto_json_add_boolean (json, "failed", TRUE);
  json_builder_end_object (json);
}

static gboolean
write_list (PtoDump *dump, const char *title, GError **error)
{
  g_autoptr (JsonBuilder) json = json_builder_new_immutable ();
  g_autoptr (JsonNode) root = NULL;
  g_autofree char *text = NULL;
  g_autofree char *path = g_strconcat (dump->prefix, "dump.json", NULL);

  g_ptr_array_sort (dump->entries, compare_entries);
  json_builder_begin_object (json);
  pto_json_add_string (json, "format", "libpto tensor dump");
  pto_json_add_int (json, "version", 1);
  pto_json_add_string (json, "title", title != NULL ? title : "");
  pto_json_begin_array (json, "tensors");
  for (guint i = 0; i < dump->entries->len; i++)
    add_entry (json, dump->entries->pdata[i]);
  json_builder_end_array (json);
  json_builder_end_object (json);
  root = json_builder_get_root (json);
  text = json_to_string (root, TRUE);
  return g_file_set_contents (path, text, -1, error);
}

gboolean
pto_dump_open (const PtoCallConfig *config, PtoDump **opened, GError **error)
{
  PtoDump *dump;

  *opened = NULL;
  if (config == NULL || config->enable_dump_tensor == 0)
    return TRUE;
  if (pto_call_config_get_output_prefix (config)[0] == '\0')
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("enable_dump_tensor = %d writes files: give an output_prefix to say where"),
        config->enable_dump_tensor);
  dump = g_new0 (PtoDump, 1);
  dump->watch = (struct pto_watch){ on_submitted, on_begins, on_ended };
  dump->prefix = g_strdup (config->output_prefix);
  dump->what = config->enable_dump_tensor;
  /* The configuration was checked. */
  dump->filter = pto_dump_filter_new (pto_call_config_get_dump_filter (config), NULL);
  g_mutex_init (&dump->lock);
  dump->tasks = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, task_unref);
  dump->entries = g_ptr_array_new_with_free_func (entry_free);
  *opened = dump;
  return TRUE;
}

struct pto_watch *
pto_dump_get_watch (PtoDump *dump)
{
  return dump != NULL ? &dump->watch : NULL;
}

gboolean
pto_dump_reads (const PtoDump *dump, const char *kernel, guint argument)
{
  return dump != NULL && pto_dump_filter_may_have (dump->filter, kernel, argument);
}

gboolean
pto_dump_finish (PtoDump *dump, const char *title, GError **error)
{
  if (dump == NULL)
    return TRUE;
  if (error != NULL)
    pto_dump_filter_warn (dump->filter);
  if (dump->failure != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&dump->failure));
      return FALSE;
    }
  return write_list (dump, title, error);
}

void
pto_dump_free (PtoDump *dump)
{
  g_hash_table_unref (dump->tasks);
  g_ptr_array_unref (dump->entries);
  g_ptr_array_unref (dump->filter);
  g_clear_error (&dump->failure);
  g_mutex_clear (&dump->lock);
  g_free (dump->prefix);
  g_free (dump);
}
