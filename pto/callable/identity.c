/* identity.c: what is a callable's name, and how is it told to others?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "identity.h"

#include "base/error.h"
#include "common/save-file.h"
#include "common/text.h"
#include "chip-orchestration.h"
#include "function.h"

#include <string.h>

#define MAGIC "PTO1"
#define HEAD_SIZE 12
/* In a KERNEL field, instead of a number of arguments. */
#define ANY_SIGNATURE G_MAXUINT32

/* --- digests --- */

static gboolean
digest_file (const char *path, const char *label, guint8 *digest, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autofree char *data = NULL;
  gsize size;

  /* Not mapped: what somebody cuts off meanwhile would be a fault. */
  if (!g_file_get_contents (path, &data, &size, &local))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, _ ("%s: %s: can not be read: %s"), label,
                   path, pto_save_explain_read (local));
      return FALSE;
    }
  pto_digest_data (data, size, digest);
  return TRUE;
}

static char *
make_kernel_label (const PtoChipKernel *kernel)
{
  return g_strdup_printf (_ ("kernel %u (\"%s\")"), kernel->func_id, kernel->name);
}

/* --- writing a descriptor --- */

static void
put_u32 (GByteArray *bytes, guint32 value)
{
  guint32 le = GUINT32_TO_LE (value);

  g_byte_array_append (bytes, (const guint8 *) &le, sizeof le);
}

static void
put_text (GByteArray *bytes, const char *text)
{
  put_u32 (bytes, (guint32) strlen (text));
  g_byte_array_append (bytes, (const guint8 *) text, (guint) strlen (text));
}

static void
put_field (GByteArray *bytes, guint32 tag, gconstpointer data, gsize size)
{
  put_u32 (bytes, tag);
  put_u32 (bytes, (guint32) size);
  g_byte_array_append (bytes, data, (guint) size);
}

static void
put_text_field (GByteArray *bytes, guint32 tag, const char *text)
{
  put_field (bytes, tag, text, strlen (text));
}

static void
put_kernel (GByteArray *bytes, PtoCallable *callable, guint func_id, const char *name,
            const guint8 *content)
{
  PtoKernel *kernel = PTO_KERNEL (callable);
  g_autoptr (GByteArray) field = g_byte_array_new ();

  put_u32 (field, func_id);
  put_u32 (field, (guint32) kernel->core_type);
  g_byte_array_append (field, content, PTO_DIGEST_SIZE);
  put_text (field, PTO_DEVICE_CODE (callable)->symbol);
  put_text (field, name);
  put_text (field, kernel->cost_text);
  put_u32 (field, kernel->signature != NULL ? kernel->signature->len : ANY_SIGNATURE);
  for (guint i = 0; kernel->signature != NULL && i < kernel->signature->len; i++)
    {
      guint8 direction = (guint8) g_array_index (kernel->signature, PtoDirection, i);

      g_byte_array_append (field, &direction, 1);
    }
  put_field (bytes, PTO_FIELD_KERNEL, field->data, field->len);
}

/* NULL: it is not an orchestration of a chip. */
static const GArray *
get_kernels (PtoCallable *callable)
{
  return PTO_IS_CHIP_ORCHESTRATION (callable) ? PTO_CHIP_ORCHESTRATION (callable)->kernels : NULL;
}

static PtoTargetNamespace
find_target (PtoCallableKind kind)
{
  return kind == PTO_CALLABLE_KERNEL || kind == PTO_CALLABLE_CHIP ? PTO_TARGET_LOCAL_CHIP
                                                                  : PTO_TARGET_LOCAL_PYTHON;
}

/* name: the callable's, which its program may change meanwhile; contents: a digest for each object.
 */
static GBytes *
make_descriptor (PtoCallable *callable, const char *name, const char *platform,
                 GByteArray *contents)
{
  GByteArray *bytes = g_byte_array_new ();
  guint32 n_fields = 2; /* the name, and what a closure or an import path have */
  const GArray *kernels = get_kernels (callable);
  const guint8 head[] = { (guint8) callable->kind, (guint8) callable->source,
                          (guint8) find_target (callable->kind), 0 };

  if (callable->kind == PTO_CALLABLE_CHIP)
    n_fields = 4 + kernels->len;
  else if (callable->kind == PTO_CALLABLE_KERNEL || callable->source == PTO_CALLABLE_SOURCE_SYMBOL)
    n_fields = 3;
  g_byte_array_append (bytes, (const guint8 *) MAGIC, 4);
  g_byte_array_append (bytes, head, sizeof head);
  put_u32 (bytes, n_fields);
  put_text_field (bytes, PTO_FIELD_NAME, name);
  switch (callable->source)
    {
    case PTO_CALLABLE_SOURCE_OBJECT:
      put_text_field (bytes, PTO_FIELD_PLATFORM, platform);
      if (callable->kind == PTO_CALLABLE_KERNEL)
        {
          put_kernel (bytes, callable, 0, name, contents->data);
          break;
        }
      put_text_field (bytes, PTO_FIELD_SYMBOL, PTO_DEVICE_CODE (callable)->symbol);
      put_field (bytes, PTO_FIELD_CONTENT, contents->data, PTO_DIGEST_SIZE);
      for (guint i = 0; i < kernels->len; i++)
        {
          PtoChipKernel *entry = &g_array_index (kernels, PtoChipKernel, i);

          put_kernel (bytes, entry->kernel, entry->func_id, entry->name,
                      contents->data + (i + 1) * PTO_DIGEST_SIZE);
        }
      break;
    case PTO_CALLABLE_SOURCE_SYMBOL:
      put_text_field (bytes, PTO_FIELD_SYMBOL, PTO_IMPORTED_FUNCTION (callable)->symbol);
      if (contents->len > 0)
        put_field (bytes, PTO_FIELD_CONTENT, contents->data, PTO_DIGEST_SIZE);
      else
        put_text_field (bytes, PTO_FIELD_LIBRARY, PTO_IMPORTED_FUNCTION (callable)->library);
      break;
    case PTO_CALLABLE_SOURCE_CLOSURE:
      put_field (bytes, PTO_FIELD_CLOSURE, pto_callable_get_closure (callable)->id,
                 PTO_CLOSURE_SIZE);
      break;
    case PTO_CALLABLE_SOURCE_IMPORT:
      put_text_field (bytes, PTO_FIELD_IMPORT, PTO_IMPORTED_FUNCTION (callable)->import_path);
      break;
    default:
      g_assert_not_reached ();
    }
  return g_byte_array_free_to_bytes (bytes);
}

/* Its own first. */
PtoDeviceCode *
pto_device_code_get_part (PtoDeviceCode *code, guint object)
{
  const GArray *kernels = get_kernels (PTO_CALLABLE (code));

  return object == 0 ? code
                     : PTO_DEVICE_CODE (g_array_index (kernels, PtoChipKernel, object - 1).kernel);
}

static const char *
get_origin (PtoCallable *callable, guint object)
{
  return pto_callable_get_origin (
      PTO_CALLABLE (pto_device_code_get_part (PTO_DEVICE_CODE (callable), object)));
}

static void
put_words (GByteArray *bytes, char **words)
{
  guint n = words != NULL ? g_strv_length (words) : 0;

  put_u32 (bytes, n);
  for (guint i = 0; i < n; i++)
    put_text (bytes, words[i]);
}

static GBytes *
make_sources (PtoCallable *callable, GPtrArray *objects)
{
  GByteArray *bytes = g_byte_array_new ();

  put_u32 (bytes, objects->len);
  for (guint i = 0; i < objects->len; i++)
    {
      put_text (bytes, g_ptr_array_index (objects, i));
      if (PTO_IS_DEVICE_CODE (callable))
        {
          PtoDeviceCode *part = pto_device_code_get_part (PTO_DEVICE_CODE (callable), i);

          put_text (bytes, get_origin (callable, i));
          put_u32 (bytes, (guint32) part->language);
          put_words (bytes, part->include_dirs);
          put_words (bytes, part->compiler_flags);
        }
      else /* a library, which is its own */
        {
          put_text (bytes, callable->path);
          put_u32 (bytes, PTO_LANGUAGE_OBJECT);
          put_words (bytes, NULL);
          put_words (bytes, NULL);
        }
    }
  return g_byte_array_free_to_bytes (bytes);
}

/* --- registrations --- */

/* Consumes descriptor, sources, objects and contents. */
static PtoRegistration *
registration_new (PtoCallable *callable, const char *name, GBytes *descriptor, GBytes *sources,
                  GPtrArray *objects, GByteArray *contents)
{
  return pto_registration_take (callable, name, find_target (callable->kind), descriptor, sources,
                                objects, contents);
}

void
pto_device_code_set_job (PtoDeviceCode *part, const char *name, PtoCompilerJob *job)
{
  job->path = PTO_CALLABLE (part)->path;
  job->language = part->language;
  job->is_kernel = PTO_IS_KERNEL (part);
  if (job->is_kernel)
    job->core_type = PTO_KERNEL (part)->core_type;
  else
    job->entry = part->symbol;
  job->label
      = g_strdup_printf (job->is_kernel ? _ ("kernel \"%s\"") : _ ("orchestration \"%s\""), name);
  job->include_dirs = g_strdupv (part->include_dirs);
  job->flags = g_strdupv (part->compiler_flags);
}

/* Everything that has to be built: itself first. */
PtoCompilerJob *
pto_device_code_make_jobs (PtoDeviceCode *code, guint *n_jobs)
{
  const GArray *kernels = get_kernels (PTO_CALLABLE (code));
  guint n_kernels = kernels != NULL ? kernels->len : 0;
  PtoCompilerJob *jobs = g_new0 (PtoCompilerJob, 1 + n_kernels);

  *n_jobs = 1 + n_kernels;
  pto_device_code_set_job (code, PTO_CALLABLE (code)->name, &jobs[0]);
  for (guint i = 0; i < n_kernels; i++)
    {
      PtoChipKernel *entry = &g_array_index (kernels, PtoChipKernel, i);

      pto_device_code_set_job (PTO_DEVICE_CODE (entry->kernel), entry->name, &jobs[1 + i]);
    }
  return jobs;
}

PtoCompilerJob *
pto_registration_make_jobs (PtoRegistration *registration, guint *n_jobs)
{
  PtoCompilerJob *jobs
      = pto_device_code_make_jobs (PTO_DEVICE_CODE (registration->callable), n_jobs);

  for (guint i = 0; i < *n_jobs; i++)
    {
      jobs[i].path = get_origin (registration->callable, i);
      jobs[i].object = g_strdup (g_ptr_array_index (registration->objects, i));
      memcpy (jobs[i].digest, registration->contents->data + i * PTO_DIGEST_SIZE, PTO_DIGEST_SIZE);
    }
  return jobs;
}

void
pto_registration_free_jobs (PtoCompilerJob *jobs, guint n_jobs)
{
  for (guint i = 0; i < n_jobs; i++)
    {
      g_free ((gpointer) jobs[i].label);
      pto_compiler_job_clear (&jobs[i]);
    }
  g_free (jobs);
}

static void
add_object (const char *path, const guint8 *digest, GPtrArray *objects, GByteArray *contents)
{
  g_ptr_array_add (objects, g_strdup (path));
  g_byte_array_append (contents, digest, PTO_DIGEST_SIZE);
}

/* The shared objects that a callable is made of, each with its digest. */
static gboolean
find_objects (PtoCallable *callable, gboolean checks_access, GPtrArray *objects,
              GByteArray *contents, PtoCompilerProgress progress, gpointer user_data,
              GCancellable *cancellable, GError **error)
{
  PtoCompilerJob *jobs;
  guint n_jobs;
  gboolean ok;

  if (callable->source == PTO_CALLABLE_SOURCE_SYMBOL && callable->path != NULL)
    {
      guint8 digest[PTO_DIGEST_SIZE];

      if (!digest_file (callable->path, callable->name, digest, error))
        return FALSE;
      add_object (callable->path, digest, objects, contents);
      return TRUE;
    }
  if (callable->source != PTO_CALLABLE_SOURCE_OBJECT)
    return TRUE;
  jobs = pto_device_code_make_jobs (PTO_DEVICE_CODE (callable), &n_jobs);
  for (guint i = 0; i < n_jobs; i++)
    jobs[i].checks_access = checks_access;
  ok = pto_compiler_build (jobs, n_jobs, progress, user_data, cancellable, error);
  for (guint i = 0; ok && i < n_jobs; i++)
    {
      add_object (jobs[i].object, jobs[i].digest, objects, contents);
      pto_device_code_keep_files (pto_device_code_get_part (PTO_DEVICE_CODE (callable), i),
                                  &jobs[i]);
    }
  pto_registration_free_jobs (jobs, n_jobs);
  return ok;
}

PtoRegistration *
pto_registration_new (PtoCallable *callable, const char *platform, gboolean checks_access,
                      PtoCompilerProgress progress, gpointer user_data, GCancellable *cancellable,
                      GError **error)
{
  g_autoptr (GPtrArray) objects = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GByteArray) contents = g_byte_array_new ();
  GBytes *descriptor;
  GBytes *sources;

  if (!pto_callable_check_made (callable, error) || pto_error_set_if_cancelled (cancellable, error)
      || !find_objects (callable, checks_access, objects, contents, progress, user_data,
                        cancellable, error))
    return NULL;
  descriptor = make_descriptor (callable, callable->name, platform, contents);
  sources = make_sources (callable, objects);
  return registration_new (callable, callable->name, descriptor, sources,
                           g_steal_pointer (&objects), g_steal_pointer (&contents));
}

PtoRegistration *
pto_registration_new_compiled (PtoCallable *kernel, const char *platform, const PtoCompilerJob *job)
{
  g_autoptr (GPtrArray) objects = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GByteArray) contents = g_byte_array_new ();
  GBytes *descriptor;
  GBytes *sources;

  add_object (job->object, job->digest, objects, contents);
  pto_device_code_keep_files (PTO_DEVICE_CODE (kernel), job);
  descriptor = make_descriptor (kernel, kernel->name, platform, contents);
  sources = make_sources (kernel, objects);
  return registration_new (kernel, kernel->name, descriptor, sources, g_steal_pointer (&objects),
                           g_steal_pointer (&contents));
}

/* --- reading what another process sent --- */

typedef struct
{
  const guint8 *data;
  gsize left;
} Reader;

static gboolean
get_bytes (Reader *reader, gsize size, const guint8 **data)
{
  if (reader->left < size)
    return FALSE;
  *data = reader->data;
  reader->data += size;
  reader->left -= size;
  return TRUE;
}

static gboolean
get_u32 (Reader *reader, guint32 *value)
{
  const guint8 *data;

  if (!get_bytes (reader, sizeof *value, &data))
    return FALSE;
  memcpy (value, data, sizeof *value);
  *value = GUINT32_FROM_LE (*value);
  return TRUE;
}

/* All that is left. */
static gboolean
get_rest (Reader *reader, char **text)
{
  if (!g_utf8_validate_len ((const char *) reader->data, reader->left, NULL))
    return FALSE;
  *text = g_strndup ((const char *) reader->data, reader->left);
  reader->data += reader->left;
  reader->left = 0;
  return TRUE;
}

static gboolean
get_sized (Reader *reader, Reader *part)
{
  guint32 size;

  if (!get_u32 (reader, &size) || !get_bytes (reader, size, &part->data))
    return FALSE;
  part->left = size;
  return TRUE;
}

static gboolean
get_text (Reader *reader, char **text)
{
  Reader part;

  return get_sized (reader, &part) && get_rest (&part, text);
}

/* The next field has to be this one. */
static gboolean
get_field (Reader *reader, guint32 tag, Reader *field)
{
  Reader at = *reader;
  guint32 found;

  if (!get_u32 (&at, &found) || found != tag || !get_sized (&at, field))
    return FALSE;
  *reader = at;
  return TRUE;
}

static gboolean
get_text_field (Reader *reader, guint32 tag, char **text)
{
  Reader field;

  return get_field (reader, tag, &field) && get_rest (&field, text);
}

/* What is read from a descriptor, beside the callable. */
typedef struct
{
  Reader reader;
  GPtrArray *paths;   /* of objects, as the sources say */
  GPtrArray *origins; /* what they were made of */
  guint n_used;       /* of both */
  GByteArray *contents;
  char *name;
  char *platform;
} Parse;

static gboolean
set_malformed (GError **error, const char *what)
{
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("no descriptor of a callable: %s"),
               what);
  return FALSE;
}

static gboolean
get_path (Reader *reader, GPtrArray *paths, GError **error)
{
  Reader part;
  char *path;

  /* A path is bytes, not text: not UTF-8, but without a 0 within. */
  if (!get_sized (reader, &part) || memchr (part.data, 0, part.left) != NULL)
    return set_malformed (error, _ ("its sources are cut off"));
  path = g_strndup ((const char *) part.data, part.left);
  g_ptr_array_add (paths, path);
  return g_path_is_absolute (path) || set_malformed (error, _ ("a source is no absolute path"));
}

/* How an object was compiled. */
typedef struct
{
  PtoLanguage language;
  char **include_dirs;
  char **flags;
} Recipe;

static void
recipe_clear (Recipe *recipe)
{
  g_clear_pointer (&recipe->include_dirs, g_strfreev);
  g_clear_pointer (&recipe->flags, g_strfreev);
}

/* Bytes without a 0 within; NULL for none. */
static gboolean
get_words (Reader *reader, char ***words)
{
  guint32 n;

  if (!get_u32 (reader, &n) || n > reader->left / sizeof n)
    return FALSE;
  *words = n > 0 ? g_new0 (char *, (gsize) n + 1) : NULL;
  for (guint32 i = 0; i < n; i++)
    {
      Reader part;

      if (!get_sized (reader, &part) || memchr (part.data, 0, part.left) != NULL)
        return FALSE;
      (*words)[i] = g_strndup ((const char *) part.data, part.left);
    }
  return TRUE;
}

static gboolean
get_recipe (Reader *reader, Recipe *recipe)
{
  guint32 language;

  if (!get_u32 (reader, &language) || language > PTO_LANGUAGE_OBJECT)
    return FALSE;
  recipe->language = (PtoLanguage) language;
  return get_words (reader, &recipe->include_dirs) && get_words (reader, &recipe->flags)
         && pto_compiler_check_flags ((const char *const *) recipe->flags, "a source", NULL);
}

static gboolean
parse_sources (Parse *parse, GBytes *sources, GError **error)
{
  Reader reader = { .left = g_bytes_get_size (sources) };
  guint32 n;

  reader.data = g_bytes_get_data (sources, NULL);
  if (!get_u32 (&reader, &n))
    return set_malformed (error, _ ("its sources are cut off"));
  for (guint32 i = 0; i < n; i++)
    {
      Recipe recipe = { 0 };
      gboolean ok = get_path (&reader, parse->paths, error)
                    && get_path (&reader, parse->origins, error)
                    && (get_recipe (&reader, &recipe)
                        || set_malformed (error, _ ("its sources are cut off")));

      recipe_clear (&recipe);
      if (!ok)
        return FALSE;
    }
  return reader.left == 0 || set_malformed (error, _ ("something follows its sources"));
}

gboolean
pto_descriptor_is_closure (GBytes *descriptor)
{
  gsize size;
  const guint8 *head = g_bytes_get_data (descriptor, &size);

  return size >= HEAD_SIZE && memcmp (head, MAGIC, 4) == 0
         && head[5] == PTO_CALLABLE_SOURCE_CLOSURE;
}

GByteArray *
pto_registration_list_contents (GBytes *descriptor, GError **error)
{
  g_autoptr (GByteArray) contents = g_byte_array_new ();
  Reader reader = { 0 };
  const guint8 *head;

  reader.data = g_bytes_get_data (descriptor, &reader.left);
  if (!get_bytes (&reader, HEAD_SIZE, &head) || memcmp (head, MAGIC, 4) != 0)
    {
      set_malformed (error, _ ("it does not begin with its mark"));
      return NULL;
    }
  while (reader.left > 0)
    {
      const guint8 *digest = NULL;
      guint32 tag, ignored;
      Reader field;
      gboolean ok = get_u32 (&reader, &tag) && get_sized (&reader, &field);

      if (ok && tag == PTO_FIELD_CONTENT)
        ok = get_bytes (&field, PTO_DIGEST_SIZE, &digest);
      else if (ok && tag == PTO_FIELD_KERNEL)
        ok = get_u32 (&field, &ignored) && get_u32 (&field, &ignored)
             && get_bytes (&field, PTO_DIGEST_SIZE, &digest);
      if (!ok)
        {
          set_malformed (error, _ ("a field is cut off"));
          return NULL;
        }
      if (digest != NULL)
        g_byte_array_append (contents, digest, PTO_DIGEST_SIZE);
    }
  return g_steal_pointer (&contents);
}

GBytes *
pto_registration_move_sources (GBytes *sources, GPtrArray *objects, GError **error)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  Reader reader = { .left = g_bytes_get_size (sources) };
  guint32 n;
  gboolean ok;

  reader.data = g_bytes_get_data (sources, NULL);
  ok = get_u32 (&reader, &n) && n == objects->len;
  put_u32 (bytes, objects->len);
  for (guint i = 0; ok && i < objects->len; i++)
    {
      Recipe recipe = { 0 };
      const guint8 *rest;
      Reader path;

      ok = get_sized (&reader, &path);
      rest = reader.data;
      ok = ok && get_sized (&reader, &path) && get_recipe (&reader, &recipe);
      recipe_clear (&recipe);
      if (!ok)
        break;
      put_text (bytes, g_ptr_array_index (objects, i));
      g_byte_array_append (bytes, rest, (guint) (reader.data - rest));
    }
  if (!ok || reader.left > 0)
    {
      set_malformed (error, _ ("its sources are not those of its contents"));
      return NULL;
    }
  return g_byte_array_free_to_bytes (g_steal_pointer (&bytes));
}

PtoCompilerJob *
pto_registration_make_source_jobs (PtoRegistration *registration, guint *n_jobs)
{
  PtoCompilerJob *jobs
      = pto_device_code_make_jobs (PTO_DEVICE_CODE (registration->callable), n_jobs);
  Reader reader = { .left = g_bytes_get_size (registration->sources) };
  guint32 n;
  gboolean ok;

  /* It was made here, or looked at when it came. */
  reader.data = g_bytes_get_data (registration->sources, NULL);
  ok = get_u32 (&reader, &n) && n == *n_jobs;
  for (guint i = 0; ok && i < *n_jobs; i++)
    {
      Recipe recipe = { 0 };
      Reader path;

      ok = get_sized (&reader, &path) && get_sized (&reader, &path)
           && get_recipe (&reader, &recipe);
      pto_compiler_job_clear (&jobs[i]);
      jobs[i].path = get_origin (registration->callable, i);
      jobs[i].language = recipe.language;
      jobs[i].include_dirs = g_steal_pointer (&recipe.include_dirs);
      jobs[i].flags = g_steal_pointer (&recipe.flags);
    }
  return jobs;
}

/* The file of the next content, if it is what the descriptor says. */
static const char *
take_content (Parse *parse, const guint8 *expected, const char *label, GError **error)
{
  char text[2][2 * PTO_DIGEST_SIZE + 1];
  guint8 digest[PTO_DIGEST_SIZE];
  const char *path;

  if (parse->n_used == parse->paths->len)
    {
      set_malformed (error, _ ("it has more contents than sources"));
      return NULL;
    }
  path = g_ptr_array_index (parse->paths, parse->n_used++);
  if (!digest_file (path, label, digest, error))
    return NULL;
  if (memcmp (digest, expected, PTO_DIGEST_SIZE) != 0)
    {
      pto_digest_to_string (digest, text[0]);
      pto_digest_to_string (expected, text[1]);
      g_set_error (error, PTO_ERROR, PTO_ERROR_TAMPERED,
                   _ ("contents of %s hash to %s, the descriptor says %s: %s"), label, text[0],
                   text[1], path);
      return NULL;
    }
  g_byte_array_append (parse->contents, digest, PTO_DIGEST_SIZE);
  return path;
}

/* Of the content that was taken last. */
static void
set_origin (const Parse *parse, PtoCallable *callable)
{
  PTO_DEVICE_CODE (callable)->origin
      = g_strdup (g_ptr_array_index (parse->origins, parse->n_used - 1));
}

static gboolean
parse_signature (Reader *reader, PtoCallable *kernel, GError **error)
{
  g_autofree PtoDirection *directions = NULL;
  const guint8 *data;
  guint32 n;

  if (!get_u32 (reader, &n))
    return set_malformed (error, _ ("a kernel is cut off"));
  if (n == ANY_SIGNATURE)
    return TRUE;
  if (!get_bytes (reader, n, &data))
    return set_malformed (error, _ ("a kernel is cut off"));
  directions = g_new0 (PtoDirection, MAX (n, 1));
  for (guint32 i = 0; i < n; i++)
    directions[i] = (PtoDirection) data[i];
  if (n > 0 && n <= G_MAXINT && directions[0] == PTO_CALLABLE_ANY_DIRECTION)
    return pto_kernel_set_n_args (PTO_KERNEL (kernel), (int) n, error);
  return pto_kernel_set_signature (PTO_KERNEL (kernel), directions, n, error);
}

static PtoCallable *
parse_kernel (Parse *parse, guint32 *func_id, char **name, GError **error)
{
  g_autoptr (PtoCallable) kernel = NULL;
  g_autofree char *label = NULL;
  g_autofree char *symbol = NULL;
  g_autofree char *cost = NULL;
  const guint8 *content;
  const char *path;
  guint32 core_type;
  Reader field;

  if (!get_field (&parse->reader, PTO_FIELD_KERNEL, &field) || !get_u32 (&field, func_id)
      || !get_u32 (&field, &core_type) || !get_bytes (&field, PTO_DIGEST_SIZE, &content)
      || !get_text (&field, &symbol) || !get_text (&field, name) || !get_text (&field, &cost))
    {
      set_malformed (error, _ ("a kernel is cut off"));
      return NULL;
    }
  label = make_kernel_label (&(PtoChipKernel){ .func_id = *func_id, .name = *name });
  path = take_content (parse, content, label, error);
  if (path == NULL)
    return NULL;
  kernel = pto_kernel_new ((PtoCoreType) core_type, path, symbol, error);
  if (kernel == NULL || !pto_kernel_set_cost (PTO_KERNEL (kernel), cost, error)
      || !parse_signature (&field, kernel, error))
    return NULL;
  set_origin (parse, kernel);
  pto_callable_set_name (kernel, *name);
  return g_steal_pointer (&kernel);
}

static PtoCallable *
parse_chip (Parse *parse, guint32 n_fields, GError **error)
{
  g_autoptr (PtoCallable) chip = NULL;
  g_autofree char *label = g_strdup_printf (_ ("orchestration \"%s\""), parse->name);
  g_autofree char *symbol = NULL;
  const char *path;
  Reader content;

  if (!get_text_field (&parse->reader, PTO_FIELD_SYMBOL, &symbol)
      || !get_field (&parse->reader, PTO_FIELD_CONTENT, &content)
      || content.left != PTO_DIGEST_SIZE)
    {
      set_malformed (error, _ ("an orchestration is cut off"));
      return NULL;
    }
  path = take_content (parse, content.data, label, error);
  if (path == NULL)
    return NULL;
  chip = pto_chip_orchestration_new (path, symbol, error);
  if (chip == NULL)
    return NULL;
  set_origin (parse, chip);
  for (guint32 i = 4; i < n_fields; i++)
    {
      g_autoptr (PtoCallable) kernel = NULL;
      g_autofree char *kernel_name = NULL;
      guint32 func_id;

      kernel = parse_kernel (parse, &func_id, &kernel_name, error);
      if (kernel == NULL
          || !pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), func_id,
                                                 kernel_name, kernel, error))
        return NULL;
    }
  return g_steal_pointer (&chip);
}

static PtoCallable *
parse_symbol (Parse *parse, PtoCallableKind kind, GError **error)
{
  g_autofree char *symbol = NULL;
  g_autofree char *library = NULL;
  g_autofree char *both = NULL;
  Reader content;

  if (!get_text_field (&parse->reader, PTO_FIELD_SYMBOL, &symbol))
    {
      set_malformed (error, _ ("a function is cut off"));
      return NULL;
    }
  if (get_field (&parse->reader, PTO_FIELD_CONTENT, &content))
    {
      const char *path = NULL;

      if (content.left != PTO_DIGEST_SIZE)
        set_malformed (error, _ ("a function is cut off"));
      else
        path = take_content (parse, content.data, parse->name, error);
      if (path == NULL)
        return NULL;
      library = g_strdup (path);
    }
  else if (!get_text_field (&parse->reader, PTO_FIELD_LIBRARY, &library))
    {
      set_malformed (error, _ ("a function is cut off"));
      return NULL;
    }
  both = g_strconcat (library, ":", symbol, NULL);
  return pto_imported_function_new_for_symbol (kind, both, error);
}

static PtoCallable *
parse_closure (Parse *parse, GError **error)
{
  PtoCallable *callable;
  Reader field;

  if (!get_field (&parse->reader, PTO_FIELD_CLOSURE, &field) || field.left != PTO_CLOSURE_SIZE)
    {
      set_malformed (error, _ ("a closure is cut off"));
      return NULL;
    }
  callable = pto_callable_find_closure (field.data);
  if (callable == NULL)
    g_set_error (
        error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
        _ ("closure \"%s\" is not in this process: it was made after the process was forked"),
        parse->name);
  return callable;
}

static PtoCallable *
parse_callable (Parse *parse, PtoCallableKind kind, PtoCallableSource source, guint32 n_fields,
                GError **error)
{
  gboolean is_function = kind == PTO_CALLABLE_SUB || kind == PTO_CALLABLE_ORCHESTRATION;
  g_autoptr (PtoCallable) callable = NULL;
  g_autofree char *import = NULL;

  if (!get_text_field (&parse->reader, PTO_FIELD_NAME, &parse->name))
    {
      set_malformed (error, _ ("it has no name"));
      return NULL;
    }
  if (source == PTO_CALLABLE_SOURCE_OBJECT && !is_function)
    {
      g_autofree char *kernel_name = NULL;
      guint32 func_id;

      if (!get_text_field (&parse->reader, PTO_FIELD_PLATFORM, &parse->platform))
        set_malformed (error, _ ("it has no platform"));
      else if (kind == PTO_CALLABLE_KERNEL)
        callable = parse_kernel (parse, &func_id, &kernel_name, error);
      else
        callable = parse_chip (parse, n_fields, error);
    }
  else if (source == PTO_CALLABLE_SOURCE_SYMBOL && is_function)
    callable = parse_symbol (parse, kind, error);
  else if (source == PTO_CALLABLE_SOURCE_CLOSURE && is_function)
    callable = parse_closure (parse, error);
  else if (source == PTO_CALLABLE_SOURCE_IMPORT && is_function
           && get_text_field (&parse->reader, PTO_FIELD_IMPORT, &import))
    callable = pto_imported_function_new (kind, import, error);
  else
    set_malformed (error, _ ("there is no such kind of callable from such a source"));
  /* A closure is the very object of this process, whose name is its program's. */
  if (callable != NULL && source != PTO_CALLABLE_SOURCE_CLOSURE)
    pto_callable_set_name (callable, parse->name);
  return g_steal_pointer (&callable);
}

/* Everything that was read, written again, must be what was read: no second form, nothing unread.
 */
static gboolean
check_canonical (Parse *parse, PtoCallable *callable, GBytes *descriptor, GError **error)
{
  g_autoptr (GBytes) again
      = make_descriptor (callable, parse->name, parse->platform, parse->contents);

  if (!g_bytes_equal (again, descriptor))
    return set_malformed (error, _ ("it is not in its canonical form"));
  if (parse->n_used != parse->paths->len)
    return set_malformed (error, _ ("it has more sources than contents"));
  return TRUE;
}

static gboolean
check_digest (const guint8 *digest, GBytes *descriptor, GError **error)
{
  char text[2][2 * PTO_DIGEST_SIZE + 1];
  guint8 found[PTO_DIGEST_SIZE];

  pto_digest_data (g_bytes_get_data (descriptor, NULL), g_bytes_get_size (descriptor), found);
  if (memcmp (found, digest, PTO_DIGEST_SIZE) == 0)
    return TRUE;
  pto_digest_to_string (found, text[0]);
  pto_digest_to_string (digest, text[1]);
  g_set_error (error, PTO_ERROR, PTO_ERROR_TAMPERED,
               _ ("the descriptor hashes to %s, it is said to be %s"), text[0], text[1]);
  return FALSE;
}

PtoRegistration *
pto_registration_new_from_bytes (const guint8 *digest, GBytes *descriptor, GBytes *sources,
                                 GError **error)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) origins = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GByteArray) contents = g_byte_array_new ();
  g_autoptr (PtoCallable) callable = NULL;
  g_autofree char *name = NULL;
  g_autofree char *platform = NULL;
  Parse parse = { .paths = paths, .origins = origins, .contents = contents };
  const guint8 *head;
  guint32 n_fields;

  if (!check_digest (digest, descriptor, error) || !parse_sources (&parse, sources, error))
    return NULL;
  parse.reader.data = g_bytes_get_data (descriptor, &parse.reader.left);
  if (!get_bytes (&parse.reader, HEAD_SIZE - sizeof n_fields, &head) || memcmp (head, MAGIC, 4) != 0
      || !get_u32 (&parse.reader, &n_fields))
    {
      set_malformed (error, _ ("it does not begin with its mark"));
      return NULL;
    }
  callable = parse_callable (&parse, (PtoCallableKind) head[4], (PtoCallableSource) head[5],
                             n_fields, error);
  name = parse.name;
  platform = parse.platform;
  if (callable == NULL || !check_canonical (&parse, callable, descriptor, error))
    return NULL;
  return registration_new (callable, name, g_bytes_ref (descriptor), g_bytes_ref (sources),
                           g_steal_pointer (&paths), g_steal_pointer (&contents));
}
