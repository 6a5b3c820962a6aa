/* trace-file.c: how is a trace kept in a file?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What trace-pack.c makes, behind a head that says what it is, how long, and what its words add
 * up to. doc/traces.md tells of both.
 */
#include "config.h"

#include "trace.h"

#include "common/save-file.h"
#include "common/text.h"

#include <string.h>

#define MAGIC "PTOTRACE"
/* Of the file. A later one may mean anything: there are no two of the same number that differ. */
#define VERSION 2 /* 1: without priorities, which are 0 there */

typedef struct
{
  char magic[8];
  guint32 version;
  guint32 head_size; /* what follows it is the trace */
  guint64 size;      /* of the trace; a multiple of 8 */
  guint64 sum;
} FileHead;

G_STATIC_ASSERT (sizeof (FileHead) == 32);

/* FNV-1a over words of 64 bits. */
static guint64
add_up (const guint8 *bytes, gsize size)
{
  guint64 sum = G_GUINT64_CONSTANT (0xcbf29ce484222325);

  for (gsize i = 0; i + sizeof sum <= size; i += sizeof sum)
    {
      guint64 word;

      memcpy (&word, bytes + i, sizeof word);
      sum = (sum ^ word) * G_GUINT64_CONSTANT (0x100000001b3);
    }
  return sum;
}

gboolean
pto_trace_save_file (PtoTrace *trace, const char *path, GError **error)
{
  gsize size = pto_trace_get_packed_size (trace);
  FileHead head = { .magic = MAGIC, .version = VERSION, .head_size = sizeof head, .size = size };
  g_autofree guint8 *bytes = g_try_malloc (sizeof head + size);

  if (bytes == NULL)
    {
      g_autofree char *name = g_filename_display_name (path);

      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE,
                   _ ("%s: no memory for a trace of %zu bytes"), name, size);
      return FALSE;
    }
  pto_trace_pack (trace, bytes + sizeof head);
  head.sum = add_up (bytes + sizeof head, size);
  memcpy (bytes, &head, sizeof head);
  return pto_save (path, (const char *) bytes, sizeof head + size, 0666, error);
}

static PtoTrace *
read_bytes (const guint8 *bytes, gsize size, const char *name, GError **error)
{
  FileHead head;
  PtoTrace *trace;

  if (size < sizeof head.magic || memcmp (bytes, MAGIC, sizeof head.magic) != 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                   _ ("%s: not a trace. pto run DIR --trace FILE.ptotrace writes one"), name);
      return NULL;
    }
  if (size < sizeof head)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                   _ ("%s: cut off: %zu bytes are less than its head"), name, size);
      return NULL;
    }
  memcpy (&head, bytes, sizeof head);
  if (head.version > VERSION)
    {
      g_set_error (
          error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
          _ ("%s: made by a later version of libpto: a file of version %u, and this one reads "
             "up to %u"),
          name, head.version, VERSION);
      return NULL;
    }
  if (head.version == 0 || head.head_size < sizeof head || head.head_size > size)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                   _ ("%s: garbled: no .ptotrace file has such a head"), name);
      return NULL;
    }
  if (head.size != size - head.head_size)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                   _ ("%s: %s: it has %zu bytes of %" PRIu64), name,
                   head.size > size - head.head_size ? _ ("cut off") : _ ("garbled"),
                   size - head.head_size, head.size);
      return NULL;
    }
  bytes += head.head_size;
  trace = add_up (bytes, head.size) == head.sum && head.size % 8 == 0
              ? pto_trace_new_from_packed (bytes, head.size)
              : NULL;
  if (trace == NULL)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                 _ ("%s: garbled: its bytes are not those that were written"), name);
  return trace;
}

/**
 * pto_trace_new_from_file:
 * @path: (type filename): a `.ptotrace` file, as [method@Pto.Trace.save] writes them
 * @error: return location for an error
 *
 * Reads a trace that was saved. It is the same trace: what it says, and its
 * [method@Pto.Trace.get_sha256], do not change.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): the trace; %NULL with an error of the domain `G_IO_ERROR` or
 *   `G_FILE_ERROR` that names the file: it can not be read, is cut off, garbled
 *   (%G_IO_ERROR_INVALID_DATA), or of a later version (%G_IO_ERROR_NOT_SUPPORTED)
 *
 * Since: 0.1
 */
PtoTrace *
pto_trace_new_from_file (const char *path, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autofree char *name = NULL;
  g_autofree char *bytes = NULL;
  gsize size;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  name = g_filename_display_name (path);
  if (!g_file_get_contents (path, &bytes, &size, &local))
    {
      g_set_error (error, local->domain, local->code, _ ("%s: can not be read: %s"), name,
                   pto_save_explain_read (local));
      return NULL;
    }
  return read_bytes ((const guint8 *) bytes, size, name, error);
}
