/* remote-address.h: what is an address of a remote worker, and why is one none?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of the library and of pto-remote, so that both ends say the same of the same address. GLib only.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define PTO_REMOTE_UNIX_SCHEME "unix:"
#define PTO_REMOTE_TLS_SCHEME "tls:"

/* By its scheme; whether the rest is sound is another question. */
typedef enum
{
  PTO_REMOTE_ADDRESS_LAUNCHED, /* something is launched there, or it is no address at all */
  PTO_REMOTE_ADDRESS_UNIX,     /* somebody listens there: unix:/path */
  PTO_REMOTE_ADDRESS_TLS       /* the same: tls://host:port */
} PtoRemoteAddressKind;

PtoRemoteAddressKind pto_remote_address_get_kind (const char *address);
/* Why nobody can listen there, or connect: a sentence that names it; NULL: one can. least: the
 * lowest port, which is 0 for who listens at any. */
char *pto_remote_address_explain_listener (const char *address, guint least);
/* The same, of one that is launched by a launcher of the library. */
char *pto_remote_address_explain_launched (const char *address, const char *const *schemes);
/* The same, of one that is launched by a launcher of one's own. */
char *pto_remote_address_explain_own (const char *address);
/* Behind "://"; of an address that is sound. */
const char *pto_remote_address_get_host (const char *address);

G_END_DECLS
