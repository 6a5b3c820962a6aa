/* cluster-file.c: which remote workers does a file name?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is wrong with it is found when it is read, and no later: each worker is made once then, and
 * thrown away.
 */
#include "config.h"

#include "pto-cluster-file.h"

#include "base/error.h"
#include "base/key-file.h"
#include "common/remote-address.h"
#include "common/text.h"
#include "remote/launch/mpi-job.h"
#include "worker.h"

#include "core/parameters.h"
#include "exec/nearest-word.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE_S 60
#define DEADLINE_MAX_S 86400
#define CLUSTER_GROUP "cluster"
#define DEFAULT_GROUP "default"
#define LAUNCHER_GROUP "launcher "
#define WORKER_GROUP "worker "
#define JOB_GROUP "job "

/* Where one or more workers are. */
typedef struct
{
  char *name;
  char *group;
  char *address;
  char **command;    /* what has it listen there; NULL: that is nobody's business here */
  GVariant *options; /* of pto_worker_new_remote() */
  guint n_workers;
  guint n_ranks; /* of the job whose ranks they are; 0: of none */
  guint rank;    /* of the first of them */
} Place;

struct _PtoClusterFile
{
  GObject parent_instance;

  /* Immutable. */
  PtoManifest manifest;
  guint deadline;
  GPtrArray *places;
};

/**
 * PtoClusterFile:
 *
 * A file that names remote workers: on which hosts they are, how they are launched or where they
 * listen, and what they have.
 *
 * [method@Pto.Worker.add_cluster] puts all of them below a worker; `pto cluster up` has those
 * listen that are to. Some may be the ranks of one job of MPI. What may stand in such a file is in
 * the chapter "Other machines".
 *
 * Source: seed 001 section 2. Thread safety: any thread. A fork keeps it usable in the child.
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoClusterFile, pto_cluster_file, G_TYPE_OBJECT)

static void
place_free (gpointer data)
{
  Place *place = data;

  g_free (place->name);
  g_free (place->group);
  g_free (place->address);
  g_strfreev (place->command);
  g_clear_pointer (&place->options, g_variant_unref);
  g_free (place);
}

static void
pto_cluster_file_finalize (GObject *object)
{
  PtoClusterFile *self = PTO_CLUSTER_FILE (object);

  pto_manifest_clear (&self->manifest);
  g_ptr_array_unref (self->places);
  G_OBJECT_CLASS (pto_cluster_file_parent_class)->finalize (object);
}

static void
pto_cluster_file_class_init (PtoClusterFileClass *class)
{
  G_OBJECT_CLASS (class)->finalize = pto_cluster_file_finalize;
}

static void
pto_cluster_file_init (PtoClusterFile *self)
{
  self->places = g_ptr_array_new_with_free_func (place_free);
}

/* --- values --- */

G_GNUC_PRINTF (4, 5)
static gboolean
refuse (PtoClusterFile *self, const char *group, GError **error, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list arguments;

  va_start (arguments, format);
  message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  return pto_manifest_fail (&self->manifest, PTO_ERROR_INVALID_ARGS, error, "[%s]: %s", group,
                            message);
}

/* Takes what somebody else has found. */
static gboolean
refuse_for (PtoClusterFile *self, const char *group, GError *local, GError **error)
{
  refuse (self, group, error, "%s", local->message);
  g_error_free (local);
  return FALSE;
}

static gboolean
has_key (PtoClusterFile *self, const char *group, const char *key)
{
  return g_key_file_has_key (self->manifest.keys, group, key, NULL);
}

/* Where it stands what a worker says, or who says it for all of them. */
static const char *
find_group (PtoClusterFile *self, const char *group, const char *key)
{
  return has_key (self, group, key) ? group : DEFAULT_GROUP;
}

/* NULL: it is not there. */
static char *
dup_value (PtoClusterFile *self, const char *group, const char *key)
{
  return pto_manifest_dup_value (&self->manifest, find_group (self, group, key), key);
}

static gboolean
get_number (PtoClusterFile *self, const char *group, const char *key, guint usual, guint least,
            guint most, guint *value, GError **error)
{
  g_autofree char *text = dup_value (self, group, key);
  guint64 number = usual;

  if (text != NULL && !g_ascii_string_to_unsigned (text, 10, least, most, &number, NULL))
    return refuse (self, find_group (self, group, key), error,
                   _ ("%s=%s: a number from %u to %u is wanted"), key, text, least, most);
  *value = (guint) number;
  return TRUE;
}

/* Without the blanks around each; NULL: it is not there. */
static char **
dup_list (PtoClusterFile *self, const char *group, const char *key)
{
  char **list = g_key_file_get_string_list (self->manifest.keys, find_group (self, group, key), key,
                                            NULL, NULL);

  for (guint i = 0; list != NULL && list[i] != NULL; i++)
    g_strstrip (list[i]);
  return list;
}

/* A file of the machine that reads this one; beside it, by whatever name it was found, or with an
 * absolute path. */
static char *
dup_path (PtoClusterFile *self, const char *path)
{
  g_autofree char *real = realpath (self->manifest.file, NULL);
  g_autofree char *whole
      = g_canonicalize_filename (real != NULL ? real : self->manifest.file, NULL);
  g_autofree char *directory = g_path_get_dirname (whole);

  return g_canonicalize_filename (path, directory);
}

/* What g_key_file_get_string() would drop without a word, and what says nothing. */
static gboolean
check_values (PtoClusterFile *self, const char *group, GError **error)
{
  g_auto (GStrv) keys = g_key_file_get_keys (self->manifest.keys, group, NULL, NULL);

  for (guint i = 0; keys != NULL && keys[i] != NULL; i++)
    {
      GError *local = NULL;
      g_autofree char *value = g_key_file_get_string (self->manifest.keys, group, keys[i], &local);

      /* There may be a value, too. */
      if (local != NULL)
        return refuse_for (self, group, local, error);
      if (g_strstrip (value)[0] == '\0')
        return refuse (self, group, error, _ ("%s= has no value"), keys[i]);
    }
  return TRUE;
}

/* A directory of this machine, as the key says it. */
static gboolean
check_certificates (PtoClusterFile *self, const char *group, const char *path, GError **error)
{
  static const char *const names[] = { "ca.pem", "cert.pem", "key.pem" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *file = g_build_filename (path, names[i], NULL);

      if (access (file, R_OK) != 0)
        return refuse (self, group, error,
                       _ ("certificates=%s: %s: %s (pto remote certificates makes them)"), path,
                       names[i], g_strerror (errno));
    }
  return TRUE;
}

/* --- launchers --- */

static const char *const launcher_keys[] = { "command", "shell", NULL };

static gboolean
check_launcher (PtoClusterFile *self, const char *group, GError **error)
{
  g_autofree char *command = NULL;
  g_autoptr (GError) local = NULL;

  if (!pto_manifest_check_keys (&self->manifest, group, launcher_keys, error))
    return FALSE;
  command = pto_manifest_dup_value (&self->manifest, group, "command");
  if (command == NULL || strstr (command, PTO_REMOTE_HOST_WORD) == NULL)
    return refuse (self, group, error,
                   _ ("the key \"command\" has to be a list of words, with %s where the host is"),
                   PTO_REMOTE_HOST_WORD);
  g_key_file_get_boolean (self->manifest.keys, group, "shell", &local);
  if (local != NULL && !g_error_matches (local, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_KEY_NOT_FOUND))
    return refuse (self, group, error, _ ("shell: true or false is wanted"));
  return TRUE;
}

/* --- workers --- */

/* Or ranks of a job. */
static gboolean
names_workers (const char *group)
{
  return g_str_has_prefix (group, WORKER_GROUP) || g_str_has_prefix (group, JOB_GROUP);
}

static const char *
get_name (const char *group)
{
  return strchr (group, ' ') + 1;
}

/* How a worker comes to be there. */
typedef enum
{
  WAY_LAUNCH = 1 << 0, /* each program launches it */
  WAY_LISTEN = 1 << 1, /* pto cluster up has it listen */
  WAY_LISTEN_TLS = 1 << 2,
  WAY_CONNECT = 1 << 3, /* somebody else has it listen */
  WAY_DEFAULT = 1 << 4  /* any of them */
} Way;

#define WAY_BEGUN (WAY_LAUNCH | WAY_LISTEN | WAY_LISTEN_TLS)
#define WAY_ANY (WAY_BEGUN | WAY_CONNECT)

static const struct
{
  const char *name;
  guint ways;
} worker_keys[] = {
  { "hosts", WAY_ANY },
  { "launcher", WAY_BEGUN | WAY_DEFAULT },
  { "listen", WAY_BEGUN },
  { "connect", WAY_CONNECT },
  { "certificates", WAY_LISTEN_TLS | WAY_DEFAULT },
  { "allow", WAY_LISTEN_TLS | WAY_DEFAULT },
  { "program", WAY_BEGUN | WAY_DEFAULT },
  { "python", WAY_BEGUN | WAY_DEFAULT },
  { "roots", WAY_BEGUN | WAY_DEFAULT },
  { "devices", WAY_ANY | WAY_DEFAULT },
  { "sub-workers", WAY_ANY | WAY_DEFAULT },
  { "platform", WAY_ANY | WAY_DEFAULT },
  { "trusted-fabric", WAY_ANY | WAY_DEFAULT },
  { "workers", WAY_ANY | WAY_DEFAULT },
};

/* -1: it is none, but maybe a parameter. */
static int
find_worker_key (const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (worker_keys); i++)
    if (strcmp (worker_keys[i].name, key) == 0)
      return (int) i;
  return -1;
}

/* Which ways the worker of a group may take, as far as its keys say it. */
static guint
find_ways (PtoClusterFile *self, const char *group)
{
  g_autofree char *listen = dup_value (self, group, "listen");

  if (has_key (self, group, "connect"))
    return WAY_CONNECT;
  if (listen == NULL)
    return WAY_LAUNCH | WAY_CONNECT;
  return g_str_has_prefix (listen, PTO_REMOTE_UNIX_SCHEME) ? WAY_LISTEN : WAY_LISTEN_TLS;
}

static gboolean
refuse_key (PtoClusterFile *self, const char *group, const char *key, Way way, GError **error)
{
  g_autoptr (GString) known = g_string_new (NULL);
  g_autofree char *devices = dup_value (self, group, "devices");
  /* What chips have is set on those; the defaults are also for workers that have some. */
  gboolean has_chips = way == WAY_DEFAULT || (devices != NULL && strcmp (devices, "0") != 0);
  struct pto_nearest nearest = { .word = key };
  guint ways = way == WAY_DEFAULT ? WAY_DEFAULT : find_ways (self, group);
  char question[200];

  if (find_worker_key (key) >= 0 && way == WAY_DEFAULT)
    return refuse (self, group, error, _ ("%s: each [worker NAME] and [job NAME] says that itself"),
                   key);
  if (find_worker_key (key) >= 0 && way == WAY_CONNECT)
    return refuse (self, group, error,
                   _ ("%s is not for a worker with the key connect: whoever listens there has "
                      "chosen it"),
                   key);
  if (find_worker_key (key) >= 0)
    return refuse (self, group, error,
                   _ ("%s is for workers that listen with TLS: listen=tls://%s:7000"), key,
                   PTO_REMOTE_HOST_WORD);
  for (guint i = 0; i < G_N_ELEMENTS (worker_keys); i++)
    {
      g_string_append_printf (known, "%s%s", i > 0 ? ", " : "", worker_keys[i].name);
      if ((worker_keys[i].ways & ways) != 0 && !has_key (self, group, worker_keys[i].name))
        pto_nearest_try (&nearest, worker_keys[i].name);
    }
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    {
      const char *name = pto_param_name ((enum pto_param) i);

      if ((has_chips || pto_param_no_effect ((enum pto_param) i, PTO_REMOTE_LEVEL) == NULL)
          && !has_key (self, group, name))
        pto_nearest_try (&nearest, name);
    }
  return refuse (self, group, error, _ ("unknown key \"%s\" (known: %s, and parameters)%s"), key,
                 known->str, pto_nearest_ask (&nearest, question, sizeof question));
}

/* What is no key of a worker is a parameter. */
static gboolean
check_worker_keys (PtoClusterFile *self, const char *group, Way way, GError **error)
{
  g_auto (GStrv) keys = g_key_file_get_keys (self->manifest.keys, group, NULL, NULL);

  for (guint i = 0; keys != NULL && keys[i] != NULL; i++)
    {
      int found = find_worker_key (keys[i]);

      if (found >= 0 ? (worker_keys[found].ways & way) == 0
                     : pto_worker_find_parameter (keys[i]) < 0)
        return refuse_key (self, group, keys[i], way, error);
    }
  return TRUE;
}

static void
add_text (GVariantBuilder *options, const char *name, const char *value)
{
  if (value != NULL)
    g_variant_builder_add (options, "{sv}", name, g_variant_new_string (value));
}

static void
add_list (GVariantBuilder *options, const char *name, char **list)
{
  if (list != NULL)
    g_variant_builder_add (options, "{sv}", name,
                           g_variant_new_strv ((const char *const *) list, -1));
}

static void
add_argument (GPtrArray *arguments, const char *name, const char *value)
{
  if (value != NULL)
    g_ptr_array_add (arguments, g_strdup_printf ("--%s=%s", name, value));
}

static void
add_arguments (GPtrArray *arguments, const char *name, char **values)
{
  for (guint i = 0; values != NULL && values[i] != NULL; i++)
    add_argument (arguments, name, values[i]);
}

/* The one who listens: a name, without the user who begins it there. */
static char *
dup_with_host (PtoClusterFile *self, const char *group, const char *key, const char *host)
{
  g_autofree char *text = dup_value (self, group, key);
  const char *at = host != NULL ? strrchr (host, '@') : NULL;

  return text != NULL && host != NULL ? pto_remote_put_host (text, at != NULL ? at + 1 : host)
                                      : g_steal_pointer (&text);
}

/* Where one listens; a path of this machine may be relative, to the file. NULL: it is not there. */
static gboolean
read_listener (PtoClusterFile *self, const char *group, const char *key, const char *host,
               char **address, GError **error)
{
  g_autofree char *text = dup_with_host (self, group, key, host);
  g_autofree char *fault = NULL;

  if (text != NULL && host == NULL && strstr (text, PTO_REMOTE_HOST_WORD) != NULL)
    return refuse (self, group, error, _ ("%s=%s: there are no hosts that %s would be"), key, text,
                   PTO_REMOTE_HOST_WORD);
  if (text != NULL && g_str_has_prefix (text, PTO_REMOTE_UNIX_SCHEME)
      && text[strlen (PTO_REMOTE_UNIX_SCHEME)] != '\0')
    {
      g_autofree char *path = dup_path (self, text + strlen (PTO_REMOTE_UNIX_SCHEME));

      if (host != NULL)
        return refuse (self, group, error,
                       _ ("%s=%s is reached on this machine only, and hosts names another: write "
                          "tls://%s:7000"),
                       key, text, PTO_REMOTE_HOST_WORD);
      *address = g_strconcat (PTO_REMOTE_UNIX_SCHEME, path, NULL);
    }
  else
    *address = g_steal_pointer (&text);
  /* Nobody would find the port that 0 means. */
  fault = *address != NULL ? pto_remote_address_explain_listener (*address, 1) : NULL;
  return fault == NULL || refuse (self, group, error, "%s: %s", key, fault);
}

/* How a program comes to run at a place. */
typedef struct
{
  const char *host; /* NULL: this machine */
  char *address;    /* of a worker that is launched so */
  char **words;     /* of a launcher that the file says; NULL: of one that the library knows */
  gboolean quotes;
  char *program;
  char *python;
  char **roots;
} Launching;

static void
launching_clear (Launching *launching)
{
  g_free (launching->address);
  g_strfreev (launching->words);
  g_free (launching->program);
  g_free (launching->python);
  g_strfreev (launching->roots);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Launching, launching_clear)

static gboolean
read_launcher (PtoClusterFile *self, const char *group, Launching *launching, GError **error)
{
  g_autofree char *launcher = dup_value (self, group, "launcher");
  const char *name = launcher != NULL ? launcher : launching->host != NULL ? "ssh" : "local";
  g_autofree char *own = g_strconcat (LAUNCHER_GROUP, name, NULL);
  gboolean is_own = g_key_file_has_group (self->manifest.keys, own);

  if (!is_own && !pto_remote_is_launcher (name))
    return refuse (self, group, error,
                   _ ("launcher=%s: there is no group [%s], and the library knows local, ssh, srun "
                      "and mpirun"),
                   name, own);
  if (launching->host == NULL && (is_own || strcmp (name, "local") != 0))
    return refuse (self, group, error, _ ("launcher=%s: on which hosts? the key hosts says it"),
                   name);
  if (launching->host != NULL && !is_own && strcmp (name, "local") == 0)
    return refuse (self, group, error,
                   _ ("launcher=local is for this machine: leave it or hosts out"));
  if (is_own)
    {
      launching->words = dup_list (self, own, "command");
      launching->quotes = g_key_file_get_boolean (self->manifest.keys, own, "shell", NULL);
    }
  launching->address = launching->host != NULL ? g_strconcat (name, "://", launching->host, NULL)
                                               : g_strdup ("local:");
  return TRUE;
}

/* Files of this machine are beside the file, a program with a slash in its name, too; those of
 * others are as they are there. */
static gboolean
read_launching (PtoClusterFile *self, const char *group, Launching *launching, GError **error)
{
  gboolean is_here = launching->host == NULL;
  g_autofree char *program = dup_value (self, group, "program");

  if (!read_launcher (self, group, launching, error))
    return FALSE;
  launching->program = is_here && program != NULL && strchr (program, '/') != NULL
                           ? dup_path (self, program)
                           : g_steal_pointer (&program);
  launching->python = dup_value (self, group, "python");
  launching->roots = dup_list (self, group, "roots");
  if (launching->roots != NULL && launching->python == NULL)
    launching->python = g_strdup ("python3");
  for (guint i = 0; is_here && launching->roots != NULL && launching->roots[i] != NULL; i++)
    {
      g_autofree char *root = launching->roots[i];

      launching->roots[i] = dup_path (self, root);
      if (!g_file_test (launching->roots[i], G_FILE_TEST_IS_DIR))
        return refuse (self, find_group (self, group, "roots"), error,
                       _ ("roots: there is no directory %s"), launching->roots[i]);
    }
  return TRUE;
}

/* What has it listen there. */
static gboolean
make_command (PtoClusterFile *self, Place *place, const Launching *launching, GError **error)
{
  g_autoptr (GPtrArray) arguments = g_ptr_array_new_with_free_func (g_free);
  gboolean is_unix = g_str_has_prefix (place->address, PTO_REMOTE_UNIX_SCHEME);
  g_autofree char *certificates
      = is_unix ? NULL : dup_with_host (self, place->group, "certificates", launching->host);
  g_auto (GStrv) allowed = is_unix ? NULL : dup_list (self, place->group, "allow");
  g_autofree char *fabric = dup_value (self, place->group, "trusted-fabric");
  GError *local = NULL;

  if (!is_unix && certificates == NULL)
    return refuse (self, place->group, error,
                   _ ("listen=%s: nobody listens at a port without certificates: the key "
                      "certificates names their directory there"),
                   place->address);
  if (certificates != NULL && launching->host == NULL)
    {
      g_autofree char *relative = certificates;

      certificates = dup_path (self, relative);
      if (!check_certificates (self, find_group (self, place->group, "certificates"), certificates,
                               error))
        return FALSE;
    }
  add_argument (arguments, "listen", place->address);
  g_ptr_array_add (arguments, g_strdup ("--attached"));
  add_argument (arguments, "certificates", certificates);
  add_arguments (arguments, "allow", allowed);
  add_argument (arguments, "python", launching->python);
  add_arguments (arguments, "root", launching->roots);
  add_argument (arguments, "trusted-fabric", fabric);
  g_ptr_array_add (arguments, NULL);
  place->command = pto_remote_make_command (
      launching->address, (const char *const *) launching->words, launching->quotes,
      launching->program, (const char *const *) arguments->pdata, &local);
  return place->command != NULL || refuse_for (self, place->group, local, error);
}

/* Of one that somebody listens at: a program connects to it. */
static gboolean
add_connected (PtoClusterFile *self, const Place *place, GVariantBuilder *options, GError **error)
{
  g_autofree char *certificates
      = pto_manifest_dup_value (&self->manifest, CLUSTER_GROUP, "certificates");
  g_autofree char *path = certificates != NULL ? dup_path (self, certificates) : NULL;

  if (g_str_has_prefix (place->address, PTO_REMOTE_UNIX_SCHEME))
    return TRUE;
  if (path == NULL)
    return refuse (self, CLUSTER_GROUP, error,
                   _ ("the key certificates is missing: [%s] wants to know who connects to %s"),
                   place->group, place->address);
  add_text (options, "certificates", path);
  return check_certificates (self, CLUSTER_GROUP, path, error);
}

/* Of one that each program launches. */
static void
add_launched (Place *place, const Launching *launching, GVariantBuilder *options)
{
  place->address = g_strdup (launching->address);
  add_text (options, "program", launching->program);
  add_text (options, "python", launching->python);
  add_list (options, "roots", launching->roots);
  add_list (options, "launcher", launching->words);
  if (launching->words != NULL)
    g_variant_builder_add (options, "{sv}", "shell", g_variant_new_boolean (launching->quotes));
}

/* One that a worker of level 3 does not look at is one of its chips. */
static gboolean
set_parameter (PtoWorker *worker, const char *key, const char *value, gboolean is_default,
               GError **error)
{
  guint n_chips = pto_worker_get_n_workers (worker);

  if (pto_param_no_effect ((enum pto_param) pto_worker_find_parameter (key), worker->node.level)
          == NULL
      || (n_chips == 0 && !is_default))
    return pto_worker_set_parameter (worker, key, value, error);
  for (guint i = 0; i < n_chips; i++)
    if (!pto_worker_set_parameter (pto_worker_peek_child (worker, i), key, value, error))
      return FALSE;
  return TRUE;
}

static gboolean
set_parameters (PtoClusterFile *self, const char *group, const char *from, PtoWorker *worker,
                GError **error)
{
  g_auto (GStrv) keys = g_key_file_get_keys (self->manifest.keys, from, NULL, NULL);

  for (guint i = 0; keys != NULL && keys[i] != NULL; i++)
    if (find_worker_key (keys[i]) < 0 && (from == group || !has_key (self, group, keys[i])))
      {
        g_autofree char *value = pto_manifest_dup_value (&self->manifest, from, keys[i]);
        GError *local = NULL;

        if (!set_parameter (worker, keys[i], value, from != group, &local))
          return refuse_for (self, from, local, error);
      }
  return TRUE;
}

/* As it will be put below a worker. */
static PtoWorker *
make_worker (PtoClusterFile *self, const Place *place, GError **error)
{
  GError *local = NULL;
  g_autoptr (PtoWorker) worker = pto_worker_new_remote (place->address, place->options, &local);

  if (worker == NULL)
    refuse_for (self, place->group, local, error);
  else if (set_parameters (self, place->group, place->group, worker, error)
           && set_parameters (self, place->group, DEFAULT_GROUP, worker, error))
    return g_steal_pointer (&worker);
  return NULL;
}

/* What a program connects to, or what it launches. */
static gboolean
read_place (PtoClusterFile *self, Place *place, const char *host, GVariantBuilder *options,
            GError **error)
{
  g_auto (Launching) launching = { .host = host };
  gboolean connects = has_key (self, place->group, "connect");
  Way way;

  if (!read_listener (self, place->group, connects ? "connect" : "listen", host, &place->address,
                      error))
    return FALSE;
  way = connects                                                    ? WAY_CONNECT
        : place->address == NULL                                    ? WAY_LAUNCH
        : g_str_has_prefix (place->address, PTO_REMOTE_UNIX_SCHEME) ? WAY_LISTEN
                                                                    : WAY_LISTEN_TLS;
  if (!check_worker_keys (self, place->group, way, error))
    return FALSE;
  if (way == WAY_CONNECT)
    return add_connected (self, place, options, error);
  if (!read_launching (self, place->group, &launching, error))
    return FALSE;
  if (way != WAY_LAUNCH)
    return make_command (self, place, &launching, error)
           && add_connected (self, place, options, error);
  add_launched (place, &launching, options);
  return TRUE;
}

/* host: NULL: this machine. */
static gboolean
add_place (PtoClusterFile *self, const char *group, const char *host, GError **error)
{
  g_auto (GVariantBuilder) options = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  g_autofree char *platform = dup_value (self, group, "platform");
  g_autofree char *fabric = dup_value (self, group, "trusted-fabric");
  g_autoptr (PtoWorker) worker = NULL;
  Place *place = g_new0 (Place, 1);
  guint n_devices, n_subs;

  g_ptr_array_add (self->places, place);
  place->name = g_strjoin ("/", get_name (group), host, NULL);
  place->group = g_strdup (group);
  if (!get_number (self, group, "workers", 1, 1, PTO_MAX_CHILDREN, &place->n_workers, error)
      || !get_number (self, group, "devices", 0, 0, PTO_MAX_CHILDREN, &n_devices, error)
      || !get_number (self, group, "sub-workers", 0, 0, PTO_MAX_CHILDREN, &n_subs, error)
      || !read_place (self, place, host, &options, error))
    return FALSE;
  g_variant_builder_add (&options, "{sv}", "devices", g_variant_new_uint32 (n_devices));
  g_variant_builder_add (&options, "{sv}", "sub-workers", g_variant_new_uint32 (n_subs));
  add_text (&options, "platform", platform);
  add_text (&options, "trusted-fabric", fabric);
  place->options = g_variant_ref_sink (g_variant_builder_end (&options));
  worker = make_worker (self, place, error);
  return worker != NULL;
}

static gboolean
check_host (PtoClusterFile *self, const char *group, char **hosts, guint i, GError **error)
{
  /* What begins with a dash would be an option of the launcher. */
  if (hosts[i][0] == '\0' || hosts[i][0] == '-' || strpbrk (hosts[i], "/ \t\n") != NULL)
    return refuse (self, group, error, _ ("hosts: \"%s\" is no name of a host"), hosts[i]);
  for (guint k = 0; k < i; k++)
    if (strcmp (hosts[i], hosts[k]) == 0)
      return refuse (self, group, error,
                     _ ("hosts: %s is there twice (the key workers says how many are on each)"),
                     hosts[i]);
  return TRUE;
}

/* Those from there on are the ranks of one job, in their order. */
static gboolean
make_job (PtoClusterFile *self, guint first, GError **error)
{
  guint n = 0;

  for (guint i = first; i < self->places->len; i++)
    {
      Place *place = g_ptr_array_index (self->places, i);
      GError *local = NULL;

      if (!pto_remote_job_check (place->address, &local))
        return refuse_for (self, place->group, local, error);
      place->rank = n;
      n += place->n_workers;
    }
  for (guint i = first; i < self->places->len; i++)
    ((Place *) g_ptr_array_index (self->places, i))->n_ranks = n;
  return TRUE;
}

static gboolean
add_places (PtoClusterFile *self, const char *group, GError **error)
{
  const char *name = get_name (group);
  gboolean is_job = g_str_has_prefix (group, JOB_GROUP);
  g_autofree char *other = g_strconcat (is_job ? WORKER_GROUP : JOB_GROUP, name, NULL);
  g_auto (GStrv) hosts = dup_list (self, group, "hosts");
  guint first = self->places->len;

  if (name[0] == '\0' || strpbrk (name, " \t/") != NULL)
    return refuse (self, group, error,
                   is_job ? _ ("a job has a name, without blanks and slashes")
                          : _ ("a worker has a name, without blanks and slashes"));
  if (g_key_file_has_group (self->manifest.keys, other))
    return refuse (self, group, error, _ ("there is [%s], too: they have to have different names"),
                   other);
  if (hosts == NULL && !add_place (self, group, NULL, error))
    return FALSE;
  for (guint i = 0; hosts != NULL && hosts[i] != NULL; i++)
    if (!check_host (self, group, hosts, i, error) || !add_place (self, group, hosts[i], error))
      return FALSE;
  return !is_job || make_job (self, first, error);
}

/* Two that listen at one address are one too many. */
static gboolean
check_addresses (PtoClusterFile *self, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < self->places->len; i++)
    {
      const Place *place = g_ptr_array_index (self->places, i);

      if (place->command != NULL && !g_hash_table_add (seen, place->address))
        return refuse (self, place->group, error, _ ("listen: another one listens at %s already"),
                       place->address);
    }
  if (self->places->len > 0)
    return TRUE;
  return pto_manifest_fail (&self->manifest, PTO_ERROR_INVALID_ARGS, error,
                            _ ("it names no worker: [worker NAME] or [job NAME]"));
}

/* Before workers are made of some: those may use any other. */
static gboolean
check_group (PtoClusterFile *self, const char *group, GError **error)
{
  static const char *const cluster_keys[] = { "deadline", "certificates", NULL };

  if (!check_values (self, group, error))
    return FALSE;
  if (strcmp (group, CLUSTER_GROUP) == 0)
    return pto_manifest_check_keys (&self->manifest, group, cluster_keys, error);
  if (strcmp (group, DEFAULT_GROUP) == 0)
    return check_worker_keys (self, group, WAY_DEFAULT, error);
  if (g_str_has_prefix (group, LAUNCHER_GROUP))
    return check_launcher (self, group, error);
  return names_workers (group)
         || pto_manifest_fail (&self->manifest, PTO_ERROR_INVALID_ARGS, error,
                               _ ("unknown group [%s] (known: cluster, default, launcher NAME, "
                                  "worker NAME, job NAME)"),
                               group);
}

static gboolean
load (PtoClusterFile *self, GError **error)
{
  g_auto (GStrv) groups = NULL;

  if (!pto_manifest_load (&self->manifest, error))
    return FALSE;
  groups = g_key_file_get_groups (self->manifest.keys, NULL);
  for (guint i = 0; groups[i] != NULL; i++)
    if (!check_group (self, groups[i], error))
      return FALSE;
  if (!get_number (self, CLUSTER_GROUP, "deadline", DEADLINE_S, 1, DEADLINE_MAX_S, &self->deadline,
                   error))
    return FALSE;
  for (guint i = 0; groups[i] != NULL; i++)
    if (names_workers (groups[i]) && !add_places (self, groups[i], error))
      return FALSE;
  return check_addresses (self, error);
}

static guint
count_workers (PtoClusterFile *self)
{
  guint n = 0;

  for (guint i = 0; i < self->places->len; i++)
    n += ((const Place *) g_ptr_array_index (self->places, i))->n_workers;
  return n;
}

/* --- public --- */

/**
 * pto_cluster_file_new:
 * @path: (type filename): of the file
 * @error: where to say why not
 *
 * Reads a cluster file, and checks all that it says.
 *
 * Its groups are `[cluster]` (`deadline`, in seconds, and `certificates`, the directory of who
 * submits), `[launcher NAME]` (`command`, a list of words with `%h` for the host, and `shell`: does
 * one there read the rest?) and `[worker NAME]`: `hosts` (none: this machine), `launcher`, `listen`
 * or `connect` (neither: each program launches it), `certificates` and `allow` of who listens,
 * `program`, `python`, `roots`, `devices`, `sub-workers`, `platform`, `trusted-fabric`, `workers`
 * (how many of them, for each program) and parameters. `%h` in addresses and `certificates` is the
 * host. `[job NAME]` has the same keys, and all its workers are the ranks of one job of MPI
 * ([method@Pto.Worker.add_remote_job]). What `[default]` says holds for all workers that do not say
 * it themselves.
 *
 * Fails with %PTO_ERROR_NOT_FOUND or %PTO_ERROR_SYSTEM if it can not be read, and with
 * %PTO_ERROR_INVALID_ARGS for what [method@Pto.Worker.add_remote_worker] would refuse, unknown keys
 * and such. Source: seed 001 section 2. Thread safety: any thread.
 *
 * Returns: (transfer full): the file
 *
 * Since: 0.1
 */
PtoClusterFile *
pto_cluster_file_new (const char *path, GError **error)
{
  g_autoptr (PtoClusterFile) self = NULL;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  self = g_object_new (PTO_TYPE_CLUSTER_FILE, NULL);
  self->manifest.file = g_strdup (path);
  return load (self, error) ? g_steal_pointer (&self) : NULL;
}

/**
 * pto_cluster_file_get_deadline:
 * @self: a cluster file
 *
 * Tells how long it may take until all that listen do, when they are begun together.
 *
 * Thread safety: any thread.
 *
 * Returns: seconds
 *
 * Since: 0.1
 */
guint
pto_cluster_file_get_deadline (PtoClusterFile *self)
{
  g_return_val_if_fail (PTO_IS_CLUSTER_FILE (self), 0);

  return self->deadline;
}

/**
 * pto_cluster_file_get_n_places:
 * @self: a cluster file
 *
 * Tells at how many places its workers are: one for each host of each `[worker NAME]` and `[job
 * NAME]`.
 *
 * Thread safety: any thread.
 *
 * Returns: the number of places
 *
 * Since: 0.1
 */
guint
pto_cluster_file_get_n_places (PtoClusterFile *self)
{
  g_return_val_if_fail (PTO_IS_CLUSTER_FILE (self), 0);

  return self->places->len;
}

static const Place *
get_place (PtoClusterFile *self, guint place)
{
  g_return_val_if_fail (PTO_IS_CLUSTER_FILE (self), NULL);

  return place < self->places->len ? g_ptr_array_index (self->places, place) : NULL;
}

/**
 * pto_cluster_file_dup_name:
 * @self: a cluster file
 * @place: a number below [method@Pto.ClusterFile.get_n_places]
 *
 * Gives the name of a place: that of its group, and behind a slash the host, if it says hosts.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): the name; %NULL: there are not so many
 *
 * Since: 0.1
 */
char *
pto_cluster_file_dup_name (PtoClusterFile *self, guint place)
{
  const Place *found = get_place (self, place);

  return found != NULL ? g_strdup (found->name) : NULL;
}

/**
 * pto_cluster_file_dup_address:
 * @self: a cluster file
 * @place: a number below [method@Pto.ClusterFile.get_n_places]
 *
 * Gives the address of a place, as [method@Pto.Worker.add_remote_worker] takes it.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): the address; %NULL: there are not so many
 *
 * Since: 0.1
 */
char *
pto_cluster_file_dup_address (PtoClusterFile *self, guint place)
{
  const Place *found = get_place (self, place);

  return found != NULL ? g_strdup (found->address) : NULL;
}

/**
 * pto_cluster_file_dup_command:
 * @self: a cluster file
 * @place: a number below [method@Pto.ClusterFile.get_n_places]
 *
 * Gives what is to be run on this machine so that `pto-remote` listens at a place, until the
 * standard input of that ends.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable) (array zero-terminated=1): the words of the command; %NULL:
 * each program launches what is there, or there are not so many
 *
 * Since: 0.1
 */
char **
pto_cluster_file_dup_command (PtoClusterFile *self, guint place)
{
  const Place *found = get_place (self, place);

  return found != NULL ? g_strdupv (found->command) : NULL;
}

/**
 * pto_cluster_file_get_n_workers:
 * @self: a cluster file
 * @place: a number below [method@Pto.ClusterFile.get_n_places]
 *
 * Tells how many workers each program has at a place.
 *
 * Thread safety: any thread.
 *
 * Returns: their number; 0: there are not so many places
 *
 * Since: 0.1
 */
guint
pto_cluster_file_get_n_workers (PtoClusterFile *self, guint place)
{
  const Place *found = get_place (self, place);

  return found != NULL ? found->n_workers : 0;
}

/**
 * pto_cluster_file_dup_job:
 * @self: a cluster file
 * @place: a number below [method@Pto.ClusterFile.get_n_places]
 * @rank: (out) (optional): of the first worker there; the others have the next ones
 *
 * Tells the ranks of which job the workers at a place are.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): the name of its group; %NULL: they are none, or there are
 * not so many places
 *
 * Since: 0.1
 */
char *
pto_cluster_file_dup_job (PtoClusterFile *self, guint place, guint *rank)
{
  const Place *found = get_place (self, place);

  if (rank != NULL)
    *rank = found != NULL ? found->rank : 0;
  return found != NULL && found->n_ranks > 0 ? g_strdup (get_name (found->group)) : NULL;
}

/**
 * pto_cluster_file_to_string:
 * @self: a cluster file
 *
 * Says in a line how many workers it names.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_cluster_file_to_string (PtoClusterFile *self)
{
  guint n;

  g_return_val_if_fail (PTO_IS_CLUSTER_FILE (self), NULL);

  n = count_workers (self);
  return g_strdup_printf ("%s: %u worker%s", self->manifest.file, n, n == 1 ? "" : "s");
}

/* The workers of a place. job: NULL: they are ranks of none. */
static gboolean
make_workers (PtoClusterFile *self, const Place *place, PtoRemoteJob *job, GPtrArray *workers,
              GError **error)
{
  for (guint i = 0; i < place->n_workers; i++)
    {
      PtoWorker *worker = make_worker (self, place, error);

      if (worker == NULL)
        return FALSE;
      g_ptr_array_add (workers, worker);
      if (job != NULL && !pto_remote_job_add (job, worker->node.remote, error))
        return FALSE;
    }
  return TRUE;
}

/**
 * pto_worker_add_cluster:
 * @worker: a new worker of level 4 or more
 * @file: which workers
 * @error: where to say why not
 *
 * Puts all remote workers of a file below this one, in its order, as
 * [method@Pto.Worker.add_remote_worker] puts one, and [method@Pto.Worker.add_remote_job] those of
 * a job.
 *
 * Those that listen have to do so when @worker is started (`pto cluster up`); others are launched
 * by that. Nothing is registered on them: [method@Pto.Worker.get_child] gives each of them.
 *
 * Fails like [method@Pto.Worker.add_worker], and then none is there. Source: seed 001 section 2.
 * Thread safety: any thread.
 *
 * Returns: %TRUE if they are there
 *
 * Since: 0.1
 */
gboolean
pto_worker_add_cluster (PtoWorker *worker, PtoClusterFile *file, GError **error)
{
  g_autoptr (GPtrArray) children = g_ptr_array_new_with_free_func (g_object_unref);
  PtoRemoteJob *job = NULL;
  gboolean ok = TRUE;
  guint n_before, n;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (PTO_IS_CLUSTER_FILE (file), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  n = count_workers (file);
  n_before = pto_worker_get_n_workers (worker) + pto_worker_get_n_sub_workers (worker);
  if (n + n_before > PTO_MAX_CHILDREN)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("%s names %u workers: a worker has at most %d below it, and there are %u"),
        file->manifest.file, n, PTO_MAX_CHILDREN, n_before);
  for (guint i = 0; ok && i < file->places->len; i++)
    {
      const Place *place = g_ptr_array_index (file->places, i);

      if (place->rank == 0)
        g_clear_pointer (&job, pto_remote_job_unref);
      if (place->n_ranks > 0 && job == NULL)
        ok = (job = pto_remote_job_new (place->n_ranks, error)) != NULL;
      ok = ok && make_workers (file, place, job, children, error);
    }
  g_clear_pointer (&job, pto_remote_job_unref);
  return ok
         && pto_worker_add_remotes (worker, (PtoWorker *const *) children->pdata, children->len,
                                    error);
}
