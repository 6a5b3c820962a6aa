/* remote-launch.c: how is the program begun, or found, that is a remote worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each launcher is a line of a table: words to which the host, the program and its arguments are
 * added. What it launches talks through its standard input and output, so no port is opened, and
 * nothing secret is on a command line; who it is, is what the launcher knows (ssh: its keys).
 *
 * Where pto-remote listens, nothing is launched there: at a Unix socket this connects itself, and
 * for TLS, which needs keys and threads that a process that was forked should not have, what is
 * launched is a relay.
 */
#include "config.h"

#include "remote-launch.h"

#include "base/error.h"
#include "common/remote-address.h"
#include "common/text.h"
#include "remote/wire/fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct
{
  const char *scheme;
  const char *words[8]; /* "%h" is the host */
  gboolean quotes;      /* a shell there reads the rest */
} Launcher;

/* Who an address means. */
typedef struct
{
  const char *const *words; /* up to a NULL; none: it is this machine */
  gboolean quotes;
  const char *host;
} Launch;

/* Highest number that can be given to a worker. */
#define ID_MAX 65535u

static const Launcher launchers[] = {
  { "local", { NULL }, FALSE },
  { "ssh", { "ssh", "-T", "-oBatchMode=yes", "--", "%h" }, TRUE },
  { "srun", { "srun", "--quiet", "--ntasks=1", "--nodelist", "%h" }, FALSE },
  { "mpirun", { "mpirun", "--quiet", "-n", "1", "--host", "%h" }, FALSE },
};

/* words: of the option launcher, or NULL; then the scheme is any name. */
static gboolean
find_launch (const char *address, const char *const *words, gboolean quotes, Launch *launch,
             GError **error)
{
  const char *schemes[G_N_ELEMENTS (launchers) + 1] = { NULL };
  g_autofree char *fault = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (launchers); i++)
    schemes[i] = launchers[i].scheme;
  if (quotes && words == NULL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("the option shell of %s is for the option launcher, which is missing"),
                       address);
  if (words != NULL && words[0] == NULL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("the launcher of %s has no words: the first is a program"), address);
  fault = words != NULL ? pto_remote_address_explain_own (address)
                        : pto_remote_address_explain_launched (address, schemes);
  if (fault != NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, fault);
      return FALSE;
    }
  *launch = (Launch){ .words = words, .quotes = quotes };
  for (guint i = 0; words == NULL && i < G_N_ELEMENTS (launchers); i++)
    if (g_str_has_prefix (address, launchers[i].scheme)
        && address[strlen (launchers[i].scheme)] == ':')
      *launch = (Launch){ .words = launchers[i].words, .quotes = launchers[i].quotes };
  if (launch->words[0] != NULL)
    launch->host = pto_remote_address_get_host (address);
  return TRUE;
}

static void
add_word (GPtrArray *argv, const Launch *launch, const char *word)
{
  g_ptr_array_add (argv, launch->quotes ? g_shell_quote (word) : g_strdup (word));
}

char *
pto_remote_put_host (const char *text, const char *host)
{
  g_auto (GStrv) parts = g_strsplit (text, PTO_REMOTE_HOST_WORD, -1);

  return g_strjoinv (host, parts);
}

gboolean
pto_remote_is_launcher (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (launchers); i++)
    if (strcmp (launchers[i].scheme, name) == 0)
      return TRUE;
  return FALSE;
}

/* The program there; its arguments follow, and a NULL. */
static GPtrArray *
begin_argv (const Launch *launch, const char *program)
{
  GPtrArray *argv = g_ptr_array_new ();

  for (guint i = 0; launch->words[i] != NULL; i++)
    g_ptr_array_add (argv, pto_remote_put_host (launch->words[i], launch->host));
  add_word (argv, launch, program);
  return argv;
}

static char **
end_argv (GPtrArray *argv)
{
  g_ptr_array_add (argv, NULL);
  return (char **) g_ptr_array_free (argv, FALSE);
}

/* Of options that were looked at. */
static char **
make_argv (const Launch *launch, const char *program, char **roots, const char *python,
           const char *fabric, gboolean serialized)
{
  GPtrArray *argv = begin_argv (launch, program);

  if (python != NULL)
    {
      add_word (argv, launch, "--python");
      add_word (argv, launch, python);
    }
  if (serialized)
    add_word (argv, launch, "--serialized-python");
  if (fabric != NULL)
    {
      add_word (argv, launch, "--trusted-fabric");
      add_word (argv, launch, fabric);
    }
  for (guint i = 0; roots != NULL && roots[i] != NULL; i++)
    {
      add_word (argv, launch, "--root");
      add_word (argv, launch, roots[i]);
    }
  return end_argv (argv);
}

static const struct
{
  const char *name;
  const char *type;
  const char *what;
} known_options[] = {
  { "devices", "u", N_ ("a number") },    { "sub-workers", "u", N_ ("a number") },
  { "platform", "s", N_ ("a text") },     { "program", "s", N_ ("a text") },
  { "python", "s", N_ ("a text") },       { "roots", "as", N_ ("a list of texts") },
  { "certificates", "s", N_ ("a text") }, { "launcher", "as", N_ ("a list of texts") },
  { "shell", "b", N_ ("true or false") }, { "trusted-fabric", "s", N_ ("a text") },
  { "id", "u", N_ ("a number") },         { "serialized-python", "b", N_ ("true or false") },
};

/* Is it an option of that address? */
static gboolean
check_use (PtoRemoteAddressKind kind, const char *address, const char *name, GError **error)
{
  gboolean is_there = strcmp (name, "python") == 0 || strcmp (name, "roots") == 0;
  gboolean is_launcher = strcmp (name, "launcher") == 0 || strcmp (name, "shell") == 0;

  if (kind != PTO_REMOTE_ADDRESS_LAUNCHED && is_launcher)
    g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 _ ("the option %s is not for %s: nothing is launched there"), name, address);
  else if (kind != PTO_REMOTE_ADDRESS_LAUNCHED && is_there)
    g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 _ ("the option %s is not for %s: whoever began pto-remote --listen there has "
                    "chosen it"),
                 name, address);
  else if (kind != PTO_REMOTE_ADDRESS_TLS && strcmp (name, "certificates") == 0)
    g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 _ ("the option certificates is for tls://host:port, not for %s"), address);
  else
    return TRUE;
  return FALSE;
}

static gboolean
check_options (GVariant *options, PtoRemoteAddressKind kind, const char *address, GError **error)
{
  GVariantIter iter;
  const char *name;
  GVariant *value;

  g_variant_iter_init (&iter, options);
  while (g_variant_iter_loop (&iter, "{&sv}", &name, &value))
    {
      guint i = 0;

      while (i < G_N_ELEMENTS (known_options) && strcmp (known_options[i].name, name) != 0)
        i++;
      if (i < G_N_ELEMENTS (known_options)
          && g_variant_is_of_type (value, G_VARIANT_TYPE (known_options[i].type)))
        {
          if (check_use (kind, address, name, error))
            continue;
        }
      else if (i == G_N_ELEMENTS (known_options))
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("a remote worker has no option \"%s\": there are devices, sub-workers, "
                        "platform, program, python, roots, certificates, launcher, shell, "
                        "trusted-fabric, serialized-python and id"),
                     name);
      else
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("the option %s of a remote worker is %s (GVariant type %s)"), name,
                     known_options[i].what, known_options[i].type);
      g_variant_unref (value);
      return FALSE;
    }
  return TRUE;
}

/* Of this machine: as the environment says, or what was installed with this library; elsewhere, and
 * where that is not there, it is looked for in PATH. */
static char *
dup_program (const char *host)
{
  const char *variable = g_getenv ("PTO_REMOTE");
  Dl_info info;

  if (host != NULL)
    return g_strdup ("pto-remote");
  if (variable != NULL && *variable != '\0')
    return g_strdup (variable);
  if (dladdr ((void *) pto_remote_spec_new, &info) != 0 && info.dli_fname != NULL)
    {
      g_autofree char *real = realpath (info.dli_fname, NULL);
      g_autofree char *libdir = g_path_get_dirname (real != NULL ? real : info.dli_fname);
      g_autofree char *bindir = g_canonicalize_filename (PTO_BIN_DIR_FROM_LIBDIR, libdir);
      char *program = g_build_filename (bindir, "pto-remote", NULL);

      if (g_file_test (program, G_FILE_TEST_IS_EXECUTABLE))
        return program;
      g_free (program);
    }
  return g_strdup ("pto-remote");
}

PtoRemoteSpec *
pto_remote_spec_new (const char *address, GVariant *options, GError **error)
{
  g_autoptr (GVariant) none = NULL;
  g_autofree const char **roots = NULL;
  g_autofree const char **words = NULL;
  g_autofree char *usual = NULL;
  g_autofree char *fault = NULL;
  const char *program = NULL;
  const char *python = NULL;
  const char *platform = NULL;
  const char *certificates = NULL;
  gboolean quotes = FALSE;
  const char *fabric = NULL;
  guint32 id = 0;
  PtoRemoteAddressKind kind = pto_remote_address_get_kind (address);
  Launch launch = { .words = launchers[0].words };
  PtoRemoteSpec *spec;

  if (options == NULL)
    options = none = g_variant_ref_sink (g_variant_new ("a{sv}", NULL));
  if (!g_variant_is_of_type (options, G_VARIANT_TYPE_VARDICT))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("options of a remote worker are of the type a{sv}, these are %s"),
                   g_variant_get_type_string (options));
      return NULL;
    }
  g_variant_lookup (options, "launcher", "^a&s", &words);
  g_variant_lookup (options, "shell", "b", &quotes);
  fault = kind != PTO_REMOTE_ADDRESS_LAUNCHED ? pto_remote_address_explain_listener (address, 1)
                                              : NULL;
  if (fault != NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, fault);
      return NULL;
    }
  if (kind == PTO_REMOTE_ADDRESS_LAUNCHED && !find_launch (address, words, quotes, &launch, error))
    return NULL;
  if (!check_options (options, kind, address, error))
    return NULL;
  if (g_variant_lookup (options, "id", "u", &id) && id > ID_MAX)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("the option id of a remote worker is 0 to %u, not %u"), ID_MAX, id);
      return NULL;
    }
  g_variant_lookup (options, "certificates", "&s", &certificates);
  if (kind == PTO_REMOTE_ADDRESS_TLS && (certificates == NULL || *certificates == '\0'))
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("%s wants to know who connects: name the directory of your certificate in the "
             "option certificates (pto remote certificates makes one)"),
          address);
      return NULL;
    }
  g_variant_lookup (options, "trusted-fabric", "&s", &fabric);
  if (fabric != NULL && !pto_remote_fabric_check_name (fabric, error))
    return NULL;
  spec = g_new0 (PtoRemoteSpec, 1);
  spec->fabric = g_strdup (fabric);
  g_variant_lookup (options, "serialized-python", "b", &spec->sends_serialized);
  spec->address = g_strdup (address);
  spec->kind = kind;
  spec->host = g_strdup (launch.host);
  spec->id = g_variant_lookup (options, "id", "u", &id) ? (gint64) id : -1;
  g_variant_lookup (options, "devices", "u", &spec->n_devices);
  g_variant_lookup (options, "sub-workers", "u", &spec->n_sub_workers);
  g_variant_lookup (options, "program", "&s", &program);
  g_variant_lookup (options, "platform", "&s", &platform);
  g_variant_lookup (options, "python", "&s", &python);
  g_variant_lookup (options, "roots", "^a&s", &roots);
  spec->platform = g_strdup (platform);
  if (program == NULL)
    program = usual = dup_program (spec->host);
  spec->program = g_strdup (program);
  if (kind == PTO_REMOTE_ADDRESS_TLS)
    spec->argv = g_strdupv ((char *[]){ (char *) program, (char *) "--connect", (char *) address,
                                        (char *) "--certificates", (char *) certificates, NULL });
  else
    spec->argv = make_argv (&launch, program, (char **) roots,
                            python != NULL && *python != '\0' ? python : NULL, fabric,
                            spec->sends_serialized);
  spec->path
      = kind == PTO_REMOTE_ADDRESS_UNIX ? spec->address + strlen (PTO_REMOTE_UNIX_SCHEME) : NULL;
  return spec;
}

char **
pto_remote_make_command (const char *address, const char *const *words, gboolean quotes,
                         const char *program, const char *const *arguments, GError **error)
{
  g_autofree char *usual = NULL;
  GPtrArray *argv;
  Launch launch;

  if (!find_launch (address, words, quotes, &launch, error))
    return NULL;
  if (program == NULL)
    program = usual = dup_program (launch.host);
  argv = begin_argv (&launch, program);
  for (guint i = 0; arguments[i] != NULL; i++)
    add_word (argv, &launch, arguments[i]);
  return end_argv (argv);
}

void
pto_remote_spec_free (PtoRemoteSpec *spec)
{
  g_free (spec->address);
  g_strfreev (spec->argv);
  if (spec->job != NULL)
    spec->unref_job (spec->job);
  g_free (spec->program);
  g_free (spec->host);
  g_free (spec->platform);
  g_free (spec->fabric);
  g_free (spec);
}

typedef struct
{
  pid_t parent;
  int death_signal;
} Birth;

/* In the new process: a terminal's Ctrl-C is for those who wait for it. Neither a launcher that is
 * still looking for its host nor a program that is no worker sees a connection that ends, nor does
 * one that was stopped: they end with who has launched them, by whom they may be ended for that. */
static void
leave_group (gpointer data)
{
  const Birth *birth = data;

  setpgid (0, 0);
  prctl (PR_SET_PDEATHSIG, (unsigned long) birth->death_signal, 0ul, 0ul, 0ul);
  /* Who was gone before that tells nobody. */
  if (getppid () != birth->parent)
    raise (birth->death_signal);
}

gboolean
pto_remote_spawn (const char *const *argv, char **environment, int in, int out, int err,
                  int death_signal, GPid *process, GError **error)
{
  Birth birth = { getpid (), death_signal };

  return g_spawn_async_with_pipes_and_fds (NULL, argv, (const char *const *) environment,
                                           G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                                           leave_group, &birth, in, out, err, NULL, NULL, 0,
                                           process, NULL, NULL, NULL, error);
}

/* Whoever made the socket sees what is sent: no stranger does. */
static gboolean
connect_unix (const PtoRemoteSpec *spec, PtoRemoteStream **stream, GError **error)
{
  struct sockaddr_un name = { .sun_family = AF_UNIX };
  struct ucred who = { 0 };
  socklen_t size = sizeof who;
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  g_strlcpy (name.sun_path, spec->path, sizeof name.sun_path);
  if (fd < 0 || connect (fd, (struct sockaddr *) &name, sizeof name) != 0)
    g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                 _ ("nobody is reached at %s: %s (pto-remote --listen %s)"), spec->address,
                 g_strerror (errno), spec->address);
  else if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0
           || (who.uid != geteuid () && who.uid != 0))
    g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 _ ("who listens at %s is user %u, and neither this one nor root"), spec->address,
                 who.uid);
  else
    {
      *stream = pto_remote_stream_new (fd, fd);
      return TRUE;
    }
  if (fd >= 0)
    close (fd);
  return FALSE;
}

gboolean
pto_remote_spec_launch (const PtoRemoteSpec *spec, PtoRemoteStream **stream, GPid *process,
                        GError **error)
{
  g_autoptr (GError) local = NULL;
  int ends[2];
  gboolean ok;

  if (spec->path != NULL)
    return connect_unix (spec, stream, error);
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return pto_refuse (error, PTO_ERROR_SYSTEM, "%s: %s", spec->address, g_strerror (errno));
  /* A launcher has something to tidy up elsewhere; a worker of this machine has not, and may stand
   * still. */
  ok = pto_remote_spawn ((const char *const *) spec->argv, NULL, ends[1], ends[1], -1,
                         spec->host != NULL ? SIGTERM : SIGKILL, process, &local);
  close (ends[1]);
  if (!ok)
    {
      close (ends[0]);
      return pto_refuse (error, PTO_ERROR_NOT_FOUND, _ ("\"%s\" for %s can not be launched: %s%s"),
                         spec->argv[0], spec->address,
                         g_error_matches (local, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT)
                             ? _ ("there is no such program")
                             : local->message,
                         spec->host == NULL
                             ? _ (": set PTO_REMOTE, or the option program, to where pto-remote is")
                             : "");
    }
  *stream = pto_remote_stream_new (ends[0], ends[0]);
  return TRUE;
}

GError *
pto_remote_spec_make_refusal (const PtoRemoteSpec *spec, const char *name)
{
  return g_error_new (
      PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
      _ ("\"%s\" is a function of this process, which %s can not be sent: register "
         "what it imports (module:qualname) or loads (library:symbol), or say which "
         "worker is to run it"),
      name, spec->address);
}
