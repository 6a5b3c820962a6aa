/* fabric.c: how do large tensors go past the connection of a remote worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "fabric.h"

#include "base/error.h"
#include "common/text.h"

#include <poll.h>
#include <string.h>

/* In Hello: the engine, its address, and the key of all parts. */
#define OPTION "fabric"
#define OPTION_TYPE "(sayt)"
/* When both have ended, the connection says why: so long after the fabric it may still do so. */
#define LAST_WORDS_MS 100

struct _PtoRemoteFabric
{
  const PtoFabricEngine *engine; /* of the module, which stays */
  gpointer opened;
  char *name;
  guint64 key;
  gboolean is_near;
  /* Parts so far. Of who receives, of who sends. */
  guint64 n_in;
  guint64 n_out;
};

gboolean
pto_remote_fabric_check_name (const char *name, GError **error)
{
  if (pto_fabric_is_known (name))
    return TRUE;
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     _ ("\"%s\" is no engine of a trusted fabric (trusted-fabric): there is ucx"),
                     name);
}

static const PtoFabricEngine *
load (const char *name, GError **error)
{
  g_autofree char *cause = NULL;
  const PtoFabricEngine *engine = pto_fabric_load (name, (gconstpointer) load, &cause);

  if (engine == NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD,
                 _ ("the trusted fabric (%s) can not be used here: %s; install it, and a libpto "
                    "that was built with it, or leave trusted-fabric out (pto doctor)"),
                 name, cause);
  return engine;
}

static PtoRemoteFabric *
open_fabric (const char *name, gboolean is_near, GBytes **address, GError **error)
{
  const PtoFabricEngine *engine = load (name, error);
  g_autofree char *cause = NULL;
  PtoRemoteFabric *fabric;
  gpointer opened;

  if (engine == NULL)
    return NULL;
  opened = engine->open (address, &cause);
  if (opened == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD,
                   _ ("the trusted fabric (%s) can not be used here: %s"), name, cause);
      return NULL;
    }
  fabric = g_new0 (PtoRemoteFabric, 1);
  fabric->engine = engine;
  fabric->opened = opened;
  fabric->name = g_strdup (name);
  fabric->is_near = is_near;
  return fabric;
}

static gboolean
connect_fabric (PtoRemoteFabric *fabric, GVariant *address, GError **error)
{
  g_autofree char *cause = NULL;
  gsize size;
  gconstpointer data = g_variant_get_fixed_array (address, &size, 1);

  if (size == 0)
    cause = g_strdup (_ ("it has told no address"));
  else if (fabric->engine->connect (fabric->opened, data, size, &cause))
    return TRUE;
  return pto_refuse (error, PTO_ERROR_LOAD,
                     _ ("the other end is not reached through the trusted fabric (%s): %s"),
                     fabric->name, cause);
}

static void
add_option (PtoRemoteFabric *fabric, GVariantDict *options, GBytes *address)
{
  g_variant_dict_insert (options, OPTION, "(s@ayt)", fabric->name,
                         g_variant_new_from_bytes (G_VARIANT_TYPE_BYTESTRING, address, TRUE),
                         fabric->key);
}

void
pto_remote_fabric_free (PtoRemoteFabric *fabric)
{
  fabric->engine->close (fabric->opened);
  g_free (fabric->name);
  g_free (fabric);
}

/* --- hello --- */

PtoRemoteFabric *
pto_remote_fabric_new (const char *name, GVariantDict *options, GError **error)
{
  g_autoptr (GBytes) address = NULL;
  PtoRemoteFabric *fabric = open_fabric (name, TRUE, &address, error);

  if (fabric == NULL)
    return NULL;
  fabric->key = (guint64) g_random_int () << 32 | g_random_int ();
  add_option (fabric, options, address);
  return fabric;
}

gboolean
pto_remote_fabric_connect (PtoRemoteFabric *fabric, GVariant *answer, GError **error)
{
  g_autoptr (GVariant) option
      = g_variant_lookup_value (answer, OPTION, G_VARIANT_TYPE (OPTION_TYPE));
  g_autoptr (GVariant) address = NULL;

  if (option == NULL)
    return pto_refuse (error, PTO_ERROR_NOT_SUPPORTED,
                       _ ("the libpto there knows no trusted fabric (%s)"), fabric->name);
  address = g_variant_get_child_value (option, 1);
  return connect_fabric (fabric, address, error);
}

gboolean
pto_remote_fabric_check (GVariant *options, const char **name, GError **error)
{
  const char *declared = g_getenv (PTO_REMOTE_FABRIC_VARIABLE);

  *name = NULL;
  g_variant_lookup (options, OPTION, "(&s@ayt)", name, NULL, NULL);
  if (*name == NULL || g_strcmp0 (declared, *name) == 0)
    return *name == NULL || pto_remote_fabric_check_name (*name, error);
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     _ ("the fabric (%s) is trusted by one end only: pto-remote was begun without "
                        "--trusted-fabric=%s"),
                     *name, *name);
}

PtoRemoteFabric *
pto_remote_fabric_accept (const char *name, GVariant *options, GVariantDict *answer, GError **error)
{
  g_autoptr (GBytes) address = NULL;
  g_autoptr (GVariant) theirs = NULL;
  PtoRemoteFabric *fabric = open_fabric (name, FALSE, &address, error);

  if (fabric == NULL)
    return NULL;
  g_variant_lookup (options, OPTION, "(&s@ayt)", NULL, &theirs, &fabric->key);
  add_option (fabric, answer, address);
  if (connect_fabric (fabric, theirs, error))
    return fabric;
  pto_remote_fabric_free (fabric);
  return NULL;
}

/* --- parts --- */

static gboolean
move (PtoRemoteFabric *fabric, PtoRemoteStream *stream, PtoFabricWay way, gpointer memory,
      gsize size, GError **error)
{
  gboolean goes_far = (way == PTO_FABRIC_OUT) == fabric->is_near;
  struct pollfd connection = { .fd = pto_remote_stream_get_in (stream), .events = POLLRDHUP };
  g_autofree char *cause = NULL;
  PtoFabricResult result;
  guint64 number;

  if (size == 0)
    return TRUE;
  number = way == PTO_FABRIC_OUT ? fabric->n_out++ : fabric->n_in++;
  result = fabric->engine->move (fabric->opened, way, memory, size,
                                 fabric->key + 2 * number + goes_far, connection.fd, &cause);
  if (result == PTO_FABRIC_MOVED)
    {
      pto_remote_stream_hear (stream);
      return TRUE;
    }
  if (result == PTO_FABRIC_HUNG_UP || poll (&connection, 1, LAST_WORDS_MS) > 0)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CLOSED, _ ("the connection has ended"));
  else
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, _ ("the trusted fabric (%s) has failed: %s"),
                 fabric->name, cause);
  return FALSE;
}

gboolean
pto_remote_fabric_send (PtoRemoteFabric *fabric, PtoRemoteStream *stream, gconstpointer data,
                        gsize size, GError **error)
{
  return move (fabric, stream, PTO_FABRIC_OUT, (gpointer) data, size, error);
}

gboolean
pto_remote_fabric_receive (PtoRemoteFabric *fabric, PtoRemoteStream *stream, gpointer to,
                           gsize size, GError **error)
{
  return move (fabric, stream, PTO_FABRIC_IN, to, size, error);
}
