/* costs-history.c: what was measured of kernels so far?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A file beside the cache of kernels, of JSON (doc/time.md describes it). Who changes it holds a
 * lock on another file, reads, and replaces it as a whole: no change is lost, and who only reads
 * needs no lock.
 */
#include "config.h"

#include "costs.h"

#include "base/error.h"
#include "common/json.h"
#include "common/save-file.h"
#include "common/text.h"
#include "compile/object-cache.h"

#include <errno.h>
#include <fcntl.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FORMAT "libpto costs"
#define VERSION 1

/**
 * pto_costs_dup_history_path:
 * @error: return location for an error
 *
 * Gives where the history of kernels' times is: a file beside the cache of kernels. It need not
 * exist.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): the path; %NULL with %PTO_ERROR_SYSTEM when the directory is not to be
 *   used
 *
 * Since: 0.1
 */
char *
pto_costs_dup_history_path (GError **error)
{
  g_autofree char *dir = NULL;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  dir = pto_cache_dup_dir (error);
  return dir != NULL ? g_build_filename (dir, "costs.json", NULL) : NULL;
}

/* --- reading --- */

static gboolean
refuse (const char *path, const char *why, GError **error)
{
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     _ ("%s: no history of kernels' times: %s (remove it, and calibrate again)"),
                     path, why);
}

static JsonObject *
as_object (JsonNode *node)
{
  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

static JsonArray *
get_array (JsonObject *object, const char *name)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, name) : NULL;

  return node != NULL && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
}

static const char *
get_text (JsonObject *object, const char *name)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, name) : NULL;

  return node != NULL && json_node_get_value_type (node) == G_TYPE_STRING
             ? json_node_get_string (node)
             : NULL;
}

static gboolean
get_count (JsonObject *object, const char *name, guint64 *value)
{
  JsonNode *node = json_object_get_member (object, name);

  if (node == NULL || json_node_get_value_type (node) != G_TYPE_INT64
      || json_node_get_int (node) < 0)
    return FALSE;
  *value = (guint64) json_node_get_int (node);
  return TRUE;
}

static gboolean
read_size (GPtrArray *list, const char *kernel, PtoClock clock, JsonObject *object)
{
  JsonArray *array = get_array (object, "ns");
  g_autoptr (GArray) times = g_array_new (FALSE, FALSE, sizeof (double));
  guint64 bytes = PTO_COSTS_NO_SIZE;
  guint64 seen;

  if (array == NULL || !get_count (object, "seen", &seen)
      || (json_object_has_member (object, "bytes") && !get_count (object, "bytes", &bytes)))
    return FALSE;
  for (guint i = 0; i < json_array_get_length (array); i++)
    {
      JsonNode *node = json_array_get_element (array, i);
      double ns = JSON_NODE_HOLDS_VALUE (node) ? json_node_get_double (node) : -1;

      if (!pto_costs_is_time (ns))
        return FALSE;
      g_array_append_val (times, ns);
    }
  if (times->len == 0)
    return FALSE;
  pto_costs_list_add (list, kernel, clock, bytes, (double *) (void *) times->data, times->len,
                      MAX (seen, times->len));
  return TRUE;
}

static gboolean
read_kernel (GPtrArray *list, JsonObject *object)
{
  const char *kernel = get_text (object, "kernel");
  const char *name = get_text (object, "clock");
  JsonArray *sizes = get_array (object, "sizes");
  JsonArray *records = get_array (object, "records");
  PtoClock clock;

  if (kernel == NULL || name == NULL || sizes == NULL || !pto_clock_from_name (name, &clock))
    return FALSE;
  for (guint i = 0; i < json_array_get_length (sizes); i++)
    if (!read_size (list, kernel, clock, as_object (json_array_get_element (sizes, i))))
      return FALSE;
  for (guint i = 0; records != NULL && i < json_array_get_length (records); i++)
    {
      JsonNode *node = json_array_get_element (records, i);

      if (json_node_get_value_type (node) != G_TYPE_STRING)
        return FALSE;
      pto_costs_list_add_record (list, kernel, clock, json_node_get_string (node));
    }
  return TRUE;
}

static gboolean
read_history (const char *path, const char *text, gsize length, GPtrArray *list, GError **error)
{
  g_autoptr (JsonParser) parser = json_parser_new_immutable ();
  g_autofree char *why = NULL;
  JsonObject *object;
  JsonArray *kernels;
  guint64 version;

  if (!json_parser_load_from_data (parser, text, (gssize) length, NULL))
    return refuse (path, _ ("it is not JSON"), error);
  object = as_object (json_parser_get_root (parser));
  kernels = get_array (object, "kernels");
  if (g_strcmp0 (get_text (object, "format"), FORMAT) != 0 || kernels == NULL
      || !get_count (object, "version", &version))
    return refuse (path, _ ("it says something else"), error);
  if (version != VERSION)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                   _ ("%s: of version %" PRIu64 ", but this libpto knows %d: use a later one, "
                      "or remove it"),
                   path, version, VERSION);
      return FALSE;
    }
  for (guint i = 0; i < json_array_get_length (kernels); i++)
    if (!read_kernel (list, as_object (json_array_get_element (kernels, i))))
      {
        why = g_strdup_printf (_ ("kernel %u of it is not as it was written"), i);
        return refuse (path, why, error);
      }
  return TRUE;
}

static GPtrArray *
load (const char *path, GError **error)
{
  g_autoptr (GPtrArray) list = pto_costs_new_list ();
  g_autoptr (GError) local = NULL;
  g_autofree char *text = NULL;
  gsize length;

  if (!g_file_get_contents (path, &text, &length, &local))
    {
      if (g_error_matches (local, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        return g_steal_pointer (&list);
      g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, _ ("%s: can not be read: %s"), path,
                   pto_save_explain_read (local));
      return NULL;
    }
  return read_history (path, text, length, list, error) ? g_steal_pointer (&list) : NULL;
}

GPtrArray *
pto_costs_load_history (GError **error)
{
  g_autofree char *path = pto_costs_dup_history_path (error);

  return path != NULL ? load (path, error) : NULL;
}

/* --- writing --- */

static void
add_size (JsonBuilder *json, const PtoCostsSize *size)
{
  json_builder_begin_object (json);
  if (size->bytes != PTO_COSTS_NO_SIZE)
    {
      pto_json_add_int (json, "bytes", size->bytes);
    }
  pto_json_add_int (json, "seen", size->seen);
  pto_json_begin_array (json, "ns");
  for (guint t = 0; t < size->ns->len; t++)
    json_builder_add_double_value (json, g_array_index (size->ns, double, t));
  json_builder_end_array (json);
  json_builder_end_object (json);
}

static char *
make_text (const GPtrArray *list)
{
  g_autoptr (JsonBuilder) json = json_builder_new_immutable ();
  g_autoptr (JsonNode) root = NULL;

  json_builder_begin_object (json);
  pto_json_add_string (json, "format", FORMAT);
  pto_json_add_signed (json, "version", VERSION);
  pto_json_begin_array (json, "kernels");
  for (guint i = 0; i < list->len; i++)
    {
      const PtoCostsKernel *kernel = g_ptr_array_index (list, i);

      json_builder_begin_object (json);
      pto_json_add_string (json, "kernel", kernel->kernel);
      pto_json_add_string (json, "clock", pto_clock_get_name (kernel->clock));
      pto_json_begin_array (json, "sizes");
      for (guint s = 0; s < kernel->sizes->len; s++)
        add_size (json, g_ptr_array_index (kernel->sizes, s));
      json_builder_end_array (json);
      if (kernel->records->len > 0)
        {
          pto_json_begin_array (json, "records");
          for (guint r = 0; r < kernel->records->len; r++)
            json_builder_add_string_value (json, g_ptr_array_index (kernel->records, r));
          json_builder_end_array (json);
        }
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
  json_builder_end_object (json);
  root = json_builder_get_root (json);
  return json_to_string (root, FALSE);
}

/* Of a file of its own, which is never replaced: -1 with an error. */
static int
take_lock (const char *path, GError **error)
{
  g_autofree char *lock = g_strconcat (path, ".lock", NULL);
  int fd = open (lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  int result = -1;

  if (fd >= 0)
    do
      result = flock (fd, LOCK_EX);
    while (result != 0 && errno == EINTR);
  if (result == 0)
    return fd;
  g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, _ ("%s: can not be locked: %s"), lock,
               g_strerror (errno));
  if (fd >= 0)
    close (fd);
  return -1;
}

/* FALSE: nothing was known of it. */
static gboolean
forget_kernel (GPtrArray *list, const char *kernel)
{
  guint n = list->len;

  for (guint i = list->len; i-- > 0;)
    {
      const PtoCostsKernel *entry = g_ptr_array_index (list, i);

      if (kernel[0] == '\0' || g_str_equal (entry->kernel, kernel))
        g_ptr_array_remove_index (list, i);
    }
  return list->len < n || kernel[0] == '\0';
}

GPtrArray *
pto_costs_change_history (const GPtrArray *fresh, const char *forget, GPtrArray *repeated,
                          GError **error)
{
  g_autofree char *path = pto_costs_dup_history_path (error);
  g_autoptr (GPtrArray) list = NULL;
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GError) local = NULL;
  g_autofree char *text = NULL;
  gboolean all = forget != NULL && forget[0] == '\0';
  gboolean good = FALSE;
  int lock;

  if (path == NULL || (lock = take_lock (path, error)) < 0)
    return NULL;
  /* A file that nobody can read must not keep anybody from beginning anew. */
  list = all ? pto_costs_new_list () : load (path, error);
  if (list != NULL && forget != NULL && !forget_kernel (list, forget))
    g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, _ ("%s: no times of a kernel \"%s\""), path,
                 forget);
  else if (list != NULL)
    {
      for (guint i = 0; fresh != NULL && i < fresh->len; i++)
        {
          const PtoCostsSource *source = g_ptr_array_index (fresh, i);

          if (!pto_costs_list_add_source (list, source))
            g_ptr_array_add (names, source->name);
        }
      text = make_text (list);
      good = pto_save (path, text, strlen (text), 0600, &local);
      if (!good)
        g_set_error_literal (error, PTO_ERROR, PTO_ERROR_SYSTEM, local->message);
      for (guint i = 0; good && i < names->len; i++)
        g_ptr_array_add (repeated, g_strdup (g_ptr_array_index (names, i)));
    }
  close (lock);
  return good ? g_steal_pointer (&list) : NULL;
}
