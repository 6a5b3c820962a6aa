/* fabric-module.h: what is a module that moves large tensors of remote workers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A shared object under fabric/ with one symbol. The library is not linked with it, nor it with the
 * library: neither needs the other to be there.
 *
 * Thread safety: as each function says.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  PTO_FABRIC_IN,
  PTO_FABRIC_OUT
} PtoFabricWay;

typedef enum
{
  PTO_FABRIC_MOVED,
  PTO_FABRIC_HUNG_UP, /* the other end of the connection has */
  PTO_FABRIC_FAILED
} PtoFabricResult;

/* What a module has under the name PTO_FABRIC_SYMBOL. Of what fails, cause is told in the words of
 * the engine, to be freed by g_free(). */
typedef struct
{
  guint32 size; /* of this struct: of another version's it is another */
  /* A place to move things to and from, and how it is reached. NULL: it can not be made. */
  gpointer (*open) (GBytes **address, char **cause);
  void (*close) (gpointer fabric);
  /* To the only one it will ever talk to. Once, before anything is moved. */
  gboolean (*connect) (gpointer fabric, gconstpointer address, gsize size, char **cause);
  /* All of it or nothing that is worth anything; sleeps meanwhile, until there is an end of the
   * connection, too, which is polled for. After anything but MOVED nothing more is moved, and the
   * memory may still be written to. Any thread, one at a time each way. */
  PtoFabricResult (*move) (gpointer fabric, PtoFabricWay way, gpointer memory, gsize size,
                           guint64 tag, int connection, char **cause);
  /* Its version, and by which ways it would move things here. NULL: none. */
  char *(*describe) (char **cause);
} PtoFabricEngine;

#define PTO_FABRIC_SYMBOL "pto_fabric_engine"

/* --- fabric-load.c --- */

gboolean pto_fabric_is_known (const char *name);
/* Stays loaded. in_library: any function of it: the module is found from there. NULL: cause, to be
 * freed by g_free(). Any thread. */
const PtoFabricEngine *pto_fabric_load (const char *name, gconstpointer in_library, char **cause);

G_END_DECLS
