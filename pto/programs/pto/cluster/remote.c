/* remote.c: who is let in, where pto-remote listens?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An authority for one cluster: a directory for each end, with what that end needs and nothing
 * else, and the authority's key in one that goes nowhere. What a certificate is for is its purpose
 * and the organizational unit of its subject; pto-remote asks for both.
 */
#include "config.h"

#include "cluster.h"

#include "common/save-file.h"

#include <errno.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <string.h>

#ifdef HAVE_GNUTLS
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#endif

#define DAYS_MAX 36500

static gint option_days = 365;
static char **option_parents;

static const GOptionEntry entries[]
    = { { "days", 0, 0, G_OPTION_ARG_INT, &option_days,
          N_ ("How long certificates are valid (default: 365)"), N_ ("NUMBER") },
        { "parent", 0, 0, G_OPTION_ARG_STRING_ARRAY, &option_parents,
          N_ ("The name of one who may submit (default: parent); may be given several times"),
          N_ ("NAME") },
        G_OPTION_ENTRY_NULL };

#ifdef HAVE_GNUTLS

#define AUTHORITY "authority"
/* Clocks of machines differ. */
#define EARLIER_S 3600
#define DAY_S 86400
/* X.509: the longest common name. */
#define NAME_MAX_BYTES 64

typedef struct
{
  gnutls_x509_crt_t certificate;
  gnutls_x509_privkey_t key;
} Identity;

static void
identity_clear (Identity *identity)
{
  if (identity->certificate != NULL)
    gnutls_x509_crt_deinit (identity->certificate);
  if (identity->key != NULL)
    gnutls_x509_privkey_deinit (identity->key);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Identity, identity_clear)

static gboolean
check (int code, const char *what, GError **error)
{
  if (code >= 0)
    return TRUE;
  return tool_fail (error, "%s: %s", what, gnutls_strerror (code));
}

static gboolean
make_directory (const char *path, GError **error)
{
  if (g_mkdir (path, 0700) == 0 || errno == EEXIST)
    return TRUE;
  return tool_fail (error, _ ("%s: can not be made: %s"), path, g_strerror (errno));
}

static gboolean
save (const char *directory, const char *name, const gnutls_datum_t *text, int mode, GError **error)
{
  g_autofree char *path = g_build_filename (directory, name, NULL);

  return pto_save (path, (const char *) text->data, text->size, mode, error);
}

static gboolean
save_certificate (const char *directory, const char *name, gnutls_x509_crt_t certificate,
                  GError **error)
{
  gnutls_datum_t text = { NULL, 0 };
  gboolean ok
      = check (gnutls_x509_crt_export2 (certificate, GNUTLS_X509_FMT_PEM, &text), directory, error)
        && save (directory, name, &text, 0644, error);

  gnutls_free (text.data);
  return ok;
}

static gboolean
save_key (const char *directory, gnutls_x509_privkey_t key, GError **error)
{
  gnutls_datum_t text = { NULL, 0 };
  gboolean ok
      = check (gnutls_x509_privkey_export2 (key, GNUTLS_X509_FMT_PEM, &text), directory, error)
        && save (directory, "key.pem", &text, 0600, error);

  if (text.data != NULL)
    gnutls_memset (text.data, 0, text.size);
  gnutls_free (text.data);
  return ok;
}

static const char *
get_role (gboolean is_parent)
{
  return is_parent ? "parent" : "worker";
}

static int
set_subject (gnutls_x509_crt_t crt, const char *oid, const char *text)
{
  return gnutls_x509_crt_set_dn_by_oid (crt, oid, 0, text, (unsigned) strlen (text));
}

/* The first that is wrong of what is done in turn; 0: none is. */
#define THEN(code, step) ((code) == 0 ? (step) : (code))

/* A key, and all that certificates of either kind say. */
static int
fill (Identity *identity, const char *role, const char *name)
{
  guint8 id[20];
  size_t size = sizeof id;
  guint8 serial[16];
  time_t now = time (NULL);
  time_t end = now + (time_t) option_days * DAY_S;
  int code = gnutls_rnd (GNUTLS_RND_NONCE, serial, sizeof serial);
  gnutls_x509_crt_t crt;

  serial[0] = (guint8) ((serial[0] & 0x7f) | 0x40);
  code = THEN (code, gnutls_x509_privkey_init (&identity->key));
  code = THEN (code, gnutls_x509_crt_init (&identity->certificate));
  crt = identity->certificate;
  code = THEN (code,
               gnutls_x509_privkey_generate (identity->key, GNUTLS_PK_ECDSA,
                                             GNUTLS_CURVE_TO_BITS (GNUTLS_ECC_CURVE_SECP256R1), 0));
  code = THEN (code, gnutls_x509_crt_set_version (crt, 3));
  code = THEN (code, gnutls_x509_crt_set_serial (crt, serial, sizeof serial));
  code = THEN (code, gnutls_x509_crt_set_activation_time (crt, now - EARLIER_S));
  code = THEN (code, gnutls_x509_crt_set_expiration_time (crt, end));
  code = THEN (code, set_subject (crt, GNUTLS_OID_X520_ORGANIZATIONAL_UNIT_NAME, role));
  code = THEN (code, set_subject (crt, GNUTLS_OID_X520_COMMON_NAME, name));
  code = THEN (code, gnutls_x509_crt_set_key (crt, identity->key));
  code = THEN (code, gnutls_x509_crt_get_key_id (crt, GNUTLS_KEYID_USE_SHA1, id, &size));
  return THEN (code, gnutls_x509_crt_set_subject_key_id (crt, id, size));
}

static gboolean
read_file (const char *directory, const char *name, gnutls_datum_t *text, GError **error)
{
  g_autofree char *path = g_build_filename (directory, name, NULL);
  gsize size;

  if (!g_file_get_contents (path, (char **) &text->data, &size, error))
    return FALSE;
  text->size = (unsigned) size;
  return TRUE;
}

static gboolean
load_certificate (gnutls_x509_crt_t *certificate, const char *directory, const char *name,
                  GError **error)
{
  g_autofree char *path = g_build_filename (directory, name, NULL);
  gnutls_datum_t text = { NULL, 0 };
  gboolean ok
      = check (gnutls_x509_crt_init (certificate), path, error)
        && read_file (directory, name, &text, error)
        && check (gnutls_x509_crt_import (*certificate, &text, GNUTLS_X509_FMT_PEM), path, error);

  g_free (text.data);
  return ok;
}

/* As of now. status: what is wrong. */
static gboolean
is_of (gnutls_x509_crt_t certificate, gnutls_x509_crt_t authority, unsigned int *status)
{
  *status = 0;
  return gnutls_x509_crt_verify (certificate, &authority, 1, 0, status) == 0 && *status == 0;
}

/* What is over, or was signed by another one, is of no use. */
static gboolean
check_certificate (gnutls_x509_crt_t certificate, gnutls_x509_crt_t authority, const char *path,
                   GError **error)
{
  gnutls_datum_t text = { NULL, 0 };
  unsigned int status;

  if (is_of (certificate, authority, &status))
    return TRUE;
  gnutls_certificate_verification_status_print (status, GNUTLS_CRT_X509, &text, 0);
  tool_fail (error, _ ("%s: %s Who removes its directory gets another"), path,
             text.data != NULL ? g_strchomp ((char *) text.data) : "");
  gnutls_free (text.data);
  return FALSE;
}

static gboolean
load_authority (Identity *authority, const char *directory, GError **error)
{
  g_autofree char *certificate_path = g_build_filename (directory, "ca.pem", NULL);
  g_autofree char *key_path = g_build_filename (directory, "key.pem", NULL);
  gnutls_datum_t key = { NULL, 0 };
  gboolean ok = load_certificate (&authority->certificate, directory, "ca.pem", error)
                && check (gnutls_x509_privkey_init (&authority->key), directory, error)
                && read_file (directory, "key.pem", &key, error)
                && check (gnutls_x509_privkey_import (authority->key, &key, GNUTLS_X509_FMT_PEM),
                          key_path, error)
                && check_certificate (authority->certificate, authority->certificate,
                                      certificate_path, error);

  if (key.data != NULL)
    gnutls_memset (key.data, 0, key.size);
  g_free (key.data);
  return ok;
}

static gboolean
make_authority (Identity *authority, const char *directory, GError **error)
{
  gnutls_x509_crt_t *crt = &authority->certificate;
  int code = fill (authority, AUTHORITY, "libpto cluster");

  code = THEN (code, gnutls_x509_crt_set_basic_constraints (*crt, 1, 0));
  code = THEN (code, gnutls_x509_crt_set_key_usage (*crt, GNUTLS_KEY_KEY_CERT_SIGN));
  code = THEN (code, gnutls_x509_crt_sign2 (*crt, *crt, authority->key, GNUTLS_DIG_SHA256, 0));
  return check (code, directory, error) && save_key (directory, authority->key, error)
         && save_certificate (directory, "ca.pem", *crt, error);
}

/* Of a machine: a number is no name. */
static int
set_host (gnutls_x509_crt_t crt, const char *host)
{
  g_autoptr (GInetAddress) number = g_inet_address_new_from_string (host);

  return number != NULL
             ? gnutls_x509_crt_set_subject_alt_name (
                 crt, GNUTLS_SAN_IPADDRESS, g_inet_address_to_bytes (number),
                 (unsigned) g_inet_address_get_native_size (number), GNUTLS_FSAN_SET)
             : gnutls_x509_crt_set_subject_alt_name (crt, GNUTLS_SAN_DNSNAME, host,
                                                     (unsigned) strlen (host), GNUTLS_FSAN_SET);
}

static gboolean
make_end (const Identity *authority, const char *directory, gboolean is_parent, const char *name,
          GError **error)
{
  g_auto (Identity) end = { NULL, NULL };
  guint8 id[64];
  size_t size = sizeof id;
  int code = fill (&end, get_role (is_parent), name);
  gnutls_x509_crt_t crt = end.certificate;

  code = THEN (code, gnutls_x509_crt_set_basic_constraints (crt, 0, -1));
  code = THEN (code, gnutls_x509_crt_set_key_usage (crt, GNUTLS_KEY_DIGITAL_SIGNATURE));
  code = THEN (code, gnutls_x509_crt_set_key_purpose_oid (
                         crt, is_parent ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER, 0));
  code = THEN (code, is_parent ? 0 : set_host (crt, name));
  code = THEN (code, gnutls_x509_crt_get_subject_key_id (authority->certificate, id, &size, NULL));
  code = THEN (code, gnutls_x509_crt_set_authority_key_id (crt, id, size));
  code = THEN (code, gnutls_x509_crt_sign2 (crt, authority->certificate, authority->key,
                                            GNUTLS_DIG_SHA256, 0));
  return check (code, name, error) && make_directory (directory, error)
         && save_key (directory, end.key, error)
         && save_certificate (directory, "ca.pem", authority->certificate, error)
         && save_certificate (directory, "cert.pem", end.certificate, error);
}

static gboolean
has_file (const char *directory, const char *name)
{
  g_autofree char *path = g_build_filename (directory, name, NULL);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static gboolean
is_role (gnutls_x509_crt_t certificate, gboolean is_parent)
{
  char role[NAME_MAX_BYTES] = "";
  size_t size = sizeof role;

  return gnutls_x509_crt_get_dn_by_oid (certificate, GNUTLS_OID_X520_ORGANIZATIONAL_UNIT_NAME, 0, 0,
                                        role, &size)
             == 0
         && strcmp (role, get_role (is_parent)) == 0;
}

/* What is there stays, if it is what is wanted. */
static gboolean
check_end (const Identity *authority, const char *directory, gboolean is_parent, GError **error)
{
  g_autofree char *path = g_build_filename (directory, "cert.pem", NULL);
  g_auto (Identity) end = { NULL, NULL };

  if (!load_certificate (&end.certificate, directory, "cert.pem", error)
      || !check_certificate (end.certificate, authority->certificate, path, error))
    return FALSE;
  if (is_role (end.certificate, is_parent))
    return TRUE;
  return tool_refuse (
      error,
      is_parent ? _ ("%s is there already, and is not for one who submits: --parent wants "
                     "another name")
                : _ ("%s is there already, and is not for one who listens: a host wants "
                     "another name"),
      directory);
}

static gboolean
add_end (const Identity *authority, const char *above, gboolean is_parent, const char *name,
         GError **error)
{
  g_autofree char *directory = g_build_filename (above, name, NULL);

  if (name[0] == '\0' || name[0] == '.' || strpbrk (name, "/ \t\n") != NULL
      || strlen (name) > NAME_MAX_BYTES || strcmp (name, AUTHORITY) == 0)
    return tool_refuse (
        error, _ ("\"%s\" is no name: it has up to 64 bytes, none of them a space or a slash"),
        name);
  if (!(has_file (directory, "cert.pem") ? check_end (authority, directory, is_parent, error)
                                         : make_end (authority, directory, is_parent, name, error)))
    return FALSE;
  tool_print_row (is_parent ? _ ("parent") : _ ("worker"), directory);
  return TRUE;
}

static gboolean
make_certificates (char **words, GError **error)
{
  static char *usual[] = { (char *) "parent", NULL };
  g_autofree char *directory = g_build_filename (words[0], AUTHORITY, NULL);
  char **parents = option_parents != NULL ? option_parents : usual;
  g_auto (Identity) authority = { NULL, NULL };

  /* It is an end, or the authority. */
  if (has_file (words[0], "ca.pem"))
    return tool_refuse (
        error,
        _ ("%s is one of the directories that were made: DIR is the one that they are "
           "in"),
        words[0]);
  if (!make_directory (words[0], error) || !make_directory (directory, error)
      || !(has_file (directory, "ca.pem") ? load_authority (&authority, directory, error)
                                          : make_authority (&authority, directory, error)))
    return FALSE;
  for (guint i = 0; parents[i] != NULL; i++)
    if (!add_end (&authority, words[0], TRUE, parents[i], error))
      return FALSE;
  for (guint i = 1; words[i] != NULL; i++)
    if (!add_end (&authority, words[0], FALSE, words[i], error))
      return FALSE;
  return TRUE;
}

/* --- those of a cluster file --- */

gboolean
remote_check_certificates (const char *directory, const char *submitter, const char *host,
                           GError **error)
{
  g_autofree char *path = g_build_filename (directory, "cert.pem", NULL);
  g_auto (Identity) authority = { NULL, NULL };
  g_auto (Identity) end = { NULL, NULL };
  unsigned int status;

  if (!load_certificate (&authority.certificate, submitter, "ca.pem", error)
      || !load_certificate (&end.certificate, directory, "cert.pem", error))
    return FALSE;
  if (!is_role (end.certificate, host == NULL))
    tool_fail (error,
               host == NULL ? _ ("%s is not for one who submits (pto remote certificates --parent)")
                            : _ ("%s is not for one who listens (pto remote certificates)"),
               path);
  else if (!is_of (end.certificate, authority.certificate, &status))
    tool_fail (error, _ ("%s has expired, or is not of the authority of %s/ca.pem"), path,
               submitter);
  else if (host != NULL && !gnutls_x509_crt_check_hostname (end.certificate, host))
    tool_fail (error, _ ("%s is not for the host %s, so that nobody would connect to it"), path,
               host);
  else
    return TRUE;
  return FALSE;
}

#else

gboolean
remote_check_certificates (const char *directory, const char *submitter, const char *host,
                           GError **error)
{
  return TRUE;
}

static gboolean make_certificates (char **words, GError **error) return tool_fail (
    error, _ ("this libpto was built without TLS: install libgnutls28-dev, and build it again"));

#endif

static gboolean
tool_remote (char **words, GError **error)
{
  if (words[1] == NULL || strcmp (words[1], "certificates") != 0 || words[2] == NULL
      || words[2][0] == '\0')
    return tool_refuse (error,
                        _ ("what for? pto remote certificates DIR HOST (see pto help remote)"));
  if (option_days < 1 || option_days > DAYS_MAX)
    return tool_refuse (error, _ ("--days=%d: a number from 1 to %d is wanted"), option_days,
                        DAYS_MAX);
  return make_certificates (words + 2, error);
}

const ToolCommand tool_remote_command = {
  .name = "remote",
  .purpose = N_ ("make certificates for remote workers at tls://"),
  .operands = N_ ("certificates DIR [HOST...]"),
  .summary
  = N_ ("Makes an authority for a cluster in DIR, and below it a directory for each HOST where "
        "pto-remote\nlistens and for each one who may submit: copy it there, and name it by "
        "--certificates or in the option\ncertificates. What is there already is kept; "
        "DIR/authority has the key that signs, and stays."),
  .entries = entries,
  .run = tool_remote,
};
