/* test-cluster-file.c: are the workers those that a cluster file names, and is the rest refused?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nothing is launched here: what is looked at is what would be.
 */
#include "object-test.h"

#include <glib/gstdio.h>
#include <string.h>

/* The directory of the test stands where it says $. */
static char *
put_dir (const char *text, const char *dir)
{
  g_auto (GStrv) parts = g_strsplit (text, "$", -1);

  return g_strjoinv (dir, parts);
}

/* With a directory of imports, and certificates of two, of which one lacks its key. */
static char *
make_dir (void)
{
  static const char *const files[] = { "ca.pem", "cert.pem", "key.pem" };
  char *dir = object_test_make_dir ();
  g_autofree char *model = g_build_filename (dir, "model", NULL);

  g_assert_cmpint (g_mkdir (model, 0700), ==, 0);
  for (guint i = 0; i < 2; i++)
    {
      g_autofree char *end = g_build_filename (dir, i == 0 ? "me" : "half", NULL);

      g_assert_cmpint (g_mkdir (end, 0700), ==, 0);
      for (guint k = 0; k < 3 - i; k++)
        g_free (object_test_write (end, files[k], ""));
    }
  return dir;
}

static void
remove_dir (char *dir)
{
  static const char *const below[] = { "model", "me", "half" };

  for (guint i = 0; i < G_N_ELEMENTS (below); i++)
    object_test_remove_dir (g_build_filename (dir, below[i], NULL));
  object_test_remove_dir (dir);
}

static PtoClusterFile *
read_text (const char *dir, const char *text, GError **error)
{
  g_autofree char *whole = put_dir (text, dir);
  g_autofree char *path = object_test_write (dir, "c.ini", whole);

  return pto_cluster_file_new (path, error);
}

typedef struct
{
  const char *name;
  const char *address;
  const char *command; /* words apart by spaces; NULL: there is none */
} Place;

static void
assert_text (char *found, const char *wanted, const char *dir)
{
  g_autofree char *text = wanted != NULL ? put_dir (wanted, dir) : NULL;

  g_assert_cmpstr (found, ==, text);
  g_free (found);
}

static void
assert_place (PtoClusterFile *file, guint i, const Place *place, const char *dir)
{
  g_auto (GStrv) command = pto_cluster_file_dup_command (file, i);

  assert_text (pto_cluster_file_dup_name (file, i), place->name, dir);
  assert_text (pto_cluster_file_dup_address (file, i), place->address, dir);
  assert_text (command != NULL ? g_strjoinv (" ", command) : NULL, place->command, dir);
}

static void
assert_parameter (PtoWorker *worker, const char *name, const char *value)
{
  g_autofree char *found = pto_worker_dup_parameter (worker, name, NULL);

  g_assert_cmpstr (found, ==, value);
}

static void
assert_worker (PtoWorker *root, guint i, const char *address, guint n_chips, guint n_subs)
{
  PtoWorker *worker = pto_worker_get_child (root, i);
  g_autofree char *found = pto_worker_dup_remote_address (worker);

  g_assert_cmpstr (found, ==, address);
  g_assert_cmpuint (pto_worker_get_level (worker), ==, 3);
  g_assert_cmpuint (pto_worker_get_n_workers (worker), ==, n_chips);
  g_assert_cmpuint (pto_worker_get_n_sub_workers (worker), ==, n_subs);
}

static void
test_everything (void)
{
  static const char text[]
      = "# a comment\n[cluster]\ndeadline = 7\ncertificates = me\n"
        "[default]\npython=python3.11\ndevices=2\nremote-lease=5000\nclusters=3\n"
        "[launcher own]\ncommand=enter;--on=%h;--\nshell=true\n"
        "[worker here]\nlisten=unix:socket\nroots=model;\nprogram=bin/pto-remote\n"
        "sub-workers=1\nworkers=2\nremote-lease=6000\n"
        "[worker far]\nhosts=one; me@two\nlisten=tls://%h:7000\ncertificates=/etc/%h\n"
        "allow=a;b\nlauncher=srun\n"
        "[worker own]\nhosts=three\nlauncher=own\nlisten=tls://%h:7001\ncertificates=x\n"
        "roots=/m y;/n\nprogram=r\ntrusted-fabric=ucx\n"
        "[worker each]\nhosts=four\nplatform=a5sim\n"
        "[worker mine]\ndevices=0\n"
        "[worker there]\nhosts=five\nconnect=tls://%h:7002\n";
  static const Place places[] = {
    { "here", "unix:$/socket",
      "$/bin/pto-remote --listen=unix:$/socket --attached --python=python3.11 --root=$/model" },
    { "far/one", "tls://one:7000",
      "srun --quiet --ntasks=1 --nodelist one pto-remote --listen=tls://one:7000 --attached "
      "--certificates=/etc/one --allow=a --allow=b --python=python3.11" },
    { "far/me@two", "tls://two:7000",
      "srun --quiet --ntasks=1 --nodelist me@two pto-remote --listen=tls://two:7000 --attached "
      "--certificates=/etc/two --allow=a --allow=b --python=python3.11" },
    { "own/three", "tls://three:7001",
      "enter --on=three -- 'r' '--listen=tls://three:7001' '--attached' '--certificates=x' "
      "'--python=python3.11' '--root=/m y' '--root=/n' '--trusted-fabric=ucx'" },
    { "each/four", "ssh://four", NULL },
    { "mine", "local:", NULL },
    { "there/five", "tls://five:7002", NULL },
  };
  g_autoptr (GError) error = NULL;
  char *dir = make_dir ();
  g_autoptr (PtoClusterFile) file = read_text (dir, text, &error);
  g_autoptr (PtoWorker) root = pto_worker_new_host (4, 0, 1, NULL, NULL);
  g_autofree char *address = g_strdup_printf ("unix:%s/socket", dir);

  g_assert_no_error (error);
  g_assert_cmpuint (pto_cluster_file_get_deadline (file), ==, 7);
  g_assert_cmpuint (pto_cluster_file_get_n_places (file), ==, G_N_ELEMENTS (places));
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    assert_place (file, i, &places[i], dir);

  g_assert_true (pto_worker_add_cluster (root, file, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (pto_worker_get_n_workers (root), ==, 8);
  assert_worker (root, 0, address, 2, 1);
  assert_worker (root, 1, address, 2, 1);
  assert_worker (root, 3, "tls://two:7000", 2, 0);
  assert_worker (root, 5, "ssh://four", 2, 0);
  assert_worker (root, 6, "local:", 0, 0);
  assert_worker (root, 7, "tls://five:7002", 2, 0);
  /* What one says itself is the stronger; what is one of chips is set on them, if there are any. */
  assert_parameter (pto_worker_get_child (root, 1), "remote-lease", "6000");
  assert_parameter (pto_worker_get_child (root, 2), "remote-lease", "5000");
  assert_parameter (pto_worker_get_child (pto_worker_get_child (root, 1), 1), "clusters", "3");
  g_assert_cmpstr (
      pto_worker_get_platform (pto_worker_get_child (pto_worker_get_child (root, 5), 0)), ==,
      "a5sim");
  remove_dir (dir);
}

/* All of them or none, below one that may have them. */
static void
test_add (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = make_dir ();
  g_autoptr (PtoClusterFile) file = read_text (dir, "[worker a]\nworkers=255\n", &error);
  g_autoptr (PtoWorker) root = pto_worker_new_host (4, 0, 0, NULL, NULL);
  g_autoptr (PtoWorker) low = pto_worker_new_host (3, 0, 0, NULL, NULL);
  g_autoptr (PtoWorker) closed = pto_worker_new_host (4, 0, 0, NULL, NULL);

  g_assert_no_error (error);
  g_assert_false (pto_worker_add_cluster (low, file, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_assert_cmpstr (error->message, ==,
                   "a remote worker is one of level 3, and is below one of level 4 or more, not 3");
  g_clear_error (&error);
  g_assert_true (pto_worker_add_cluster (root, file, &error));
  g_assert_cmpuint (pto_worker_get_n_workers (root), ==, 255);
  g_assert_false (pto_worker_add_cluster (root, file, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message,
                               "c.ini names 255 workers: a worker has at most 256 below it, and "
                               "there are 255");
  g_assert_cmpuint (pto_worker_get_n_workers (root), ==, 255);
  g_clear_error (&error);
  pto_worker_close (closed);
  g_assert_false (pto_worker_add_cluster (closed, file, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_assert_cmpuint (pto_worker_get_n_workers (closed), ==, 0);
  remove_dir (dir);
}

typedef struct
{
  const char *text;
  const char *message; /* behind the name of the file; up to here if it ends in "..." */
} Wrong;

static const Wrong wrongs[] = {
  { "", "it names no worker: [worker NAME] or [job NAME]" },
  { "[cluster]\n", "it names no worker: [worker NAME] or [job NAME]" },
  { "[worker a]\nx\n", "Key file contains line ..." },
  { "[worker a]\ndevices=1\ndevices=2\n",
    "line 3: the key \"devices\" is there twice in [worker a]" },
  { "[worker a]\n[worker a]\n", "line 2: the group [worker a] is there twice" },
  { "[workers]\n",
    "unknown group [workers] (known: cluster, default, launcher NAME, worker NAME, job NAME)" },
  { "[worker ]\n", "[worker ]: a worker has a name, without blanks and slashes" },
  { "[worker a/b]\n", "[worker a/b]: a worker has a name, without blanks and slashes" },
  { "[job a b]\n", "[job a b]: a job has a name, without blanks and slashes" },
  { "[job a]\n[worker a]\n",
    "[job a]: there is [worker a], too: they have to have different names" },
  { "[job a]\nranks=2\n", "[job a]: unknown key \"ranks\" (known: hosts, launcher..." },
  { "[job a]\nworkers=0\n", "[job a]: workers=0: a number from 1 to 256 is wanted" },
  { "[cluster]\ncertificates=me\n[job a]\nconnect=tls://me:1\n",
    "[job a]: tls://me:1 is no rank of a job: mpirun begins nothing where pto-remote listens; "
    "write local:, ssh://host, srun://host or mpirun://host" },
  { "[worker a]\nhosts=\n", "[worker a]: hosts= has no value" },
  { "[worker a]\ndevices=1\\\n", "[worker a]: Key file contains key ..." },
  /* Keys. */
  { "[worker a]\nhost=one\n",
    "[worker a]: unknown key \"host\" (known: hosts, launcher, listen, connect, certificates, "
    "allow, program, python, roots, devices, sub-workers, platform, trusted-fabric, workers, and "
    "parameters); did you mean \"hosts\"?" },
  { "[cluster]\ntimeout=5\n",
    "[cluster]: unknown key \"timeout\" (known: deadline, certificates)" },
  { "[default]\nhost=one\n", "[default]: unknown key \"host\" (known: hosts, launcher..." },
  { "[default]\nlisten=unix:x\n",
    "[default]: listen: each [worker NAME] and [job NAME] says that itself" },
  { "[launcher l]\nwords=%h\n", "[launcher l]: unknown key \"words\" (known: command, shell)" },
  { "[worker a]\nhosts=one\nallow=me\n",
    "[worker a]: allow is for workers that listen with TLS: listen=tls://%h:7000" },
  { "[worker a]\nlisten=unix:x\ncertificates=me\n",
    "[worker a]: certificates is for workers that listen with TLS: listen=tls://%h:7000" },
  { "[worker a]\nconnect=unix:x\nroots=model\n",
    "[worker a]: roots is not for a worker with the key connect: whoever listens there has chosen "
    "it" },
  { "[worker a]\nconnect=unix:x\nlisten=unix:y\n",
    "[worker a]: listen is not for a worker with the key connect: whoever listens there has "
    "chosen it" },
  /* Values. */
  { "[cluster]\ndeadline=0\n", "[cluster]: deadline=0: a number from 1 to 86400 is wanted" },
  { "[cluster]\ndeadline=1 s\n", "[cluster]: deadline=1 s: a number from 1 to 86400 is wanted" },
  { "[worker a]\ndevices=257\n", "[worker a]: devices=257: a number from 0 to 256 is wanted" },
  { "[default]\nworkers=0\n[worker a]\n",
    "[default]: workers=0: a number from 1 to 256 is wanted" },
  { "[worker a]\nplatform=b6\n", "[worker a]: there is no platform \"b6\": choose one of..." },
  { "[worker a]\ntrusted-fabric=rope\n",
    "[worker a]: \"rope\" is no engine of a trusted fabric (trusted-fabric): there is ucx" },
  { "[worker a]\nremote-lease=long\n",
    "[worker a]: remote-lease: \"long\" is not a number from 0 to 86400000" },
  { "[worker a]\nclusters=3\n",
    "[worker a]: parameter clusters has no effect on a worker of level 3: it is one of chips..." },
  { "[default]\nremote-lease=long\n[worker a]\n",
    "[default]: remote-lease: \"long\" is not a number from 0 to 86400000" },
  { "[worker a]\ndevices=200\nsub-workers=57\n",
    "[worker a]: 200 devices and 57 SUB workers are too many: a worker has at most 256 below it" },
  { "[worker a]\nroots=model;nowhere\n", "[worker a]: roots: there is no directory $/nowhere" },
  /* Hosts and launchers. */
  { "[worker a]\nhosts=one;-x\n", "[worker a]: hosts: \"-x\" is no name of a host" },
  { "[worker a]\nhosts=one;;two\n", "[worker a]: hosts: \"\" is no name of a host" },
  { "[worker a]\nhosts=one two\n", "[worker a]: hosts: \"one two\" is no name of a host" },
  { "[worker a]\nhosts=one;two;one\n",
    "[worker a]: hosts: one is there twice (the key workers says how many are on each)" },
  { "[worker a]\nhosts=one\nlauncher=rsh\n",
    "[worker a]: launcher=rsh: there is no group [launcher rsh], and the library knows local, "
    "ssh, srun and mpirun" },
  { "[worker a]\nlauncher=ssh\n",
    "[worker a]: launcher=ssh: on which hosts? the key hosts says it" },
  { "[worker a]\nhosts=one\nlauncher=local\n",
    "[worker a]: launcher=local is for this machine: leave it or hosts out" },
  { "[launcher l]\nshell=true\n",
    "[launcher l]: the key \"command\" has to be a list of words, with %h where the host is" },
  { "[launcher l]\ncommand=enter\n",
    "[launcher l]: the key \"command\" has to be a list of words, with %h where the host is" },
  { "[launcher l]\ncommand=enter;%h\nshell=maybe\n",
    "[launcher l]: shell: true or false is wanted" },
  /* Addresses. */
  { "[worker a]\nlisten=tcp:1\n",
    "[worker a]: listen: \"tcp:1\" is no address where somebody listens: those are tls://host:port "
    "and unix:/path" },
  { "[worker a]\nlisten=unix:\n",
    "[worker a]: listen: \"unix:\" is no address of a remote worker: it names no path: write "
    "unix:/path" },
  { "[worker a]\nconnect=tls://one:99999\n",
    "[worker a]: connect: \"tls://one:99999\" is no address of a remote worker: \"99999\" is no "
    "port: 1 to 65535 are" },
  { "[worker a]\nhosts=one\nlisten=tls://%h:0\n",
    "[worker a]: listen: \"tls://one:0\" is no address of a remote worker: \"0\" is no port: 1 to "
    "65535 are" },
  { "[worker a]\nlisten=tls://%h:1\n",
    "[worker a]: listen=tls://%h:1: there are no hosts that %h would be" },
  { "[worker a]\nhosts=one\nconnect=unix:x\n",
    "[worker a]: connect=unix:x is reached on this machine only, and hosts names another: write "
    "tls://%h:7000" },
  { "[worker a]\nlisten=unix:x\n[worker b]\nlisten=unix:$/x\n",
    "[worker b]: listen: another one listens at unix:$/x already" },
  { "[cluster]\ncertificates=me\n[worker a]\nhosts=one;two\nlisten=tls://x:1\ncertificates=y\n",
    "[worker a]: listen: another one listens at tls://x:1 already" },
  /* Certificates. */
  { "[worker a]\nlisten=tls://me:1\n",
    "[worker a]: listen=tls://me:1: nobody listens at a port without certificates: the key "
    "certificates names their directory there" },
  { "[worker a]\nlisten=tls://me:1\ncertificates=half\n",
    "[worker a]: certificates=$/half: key.pem: No such file or directory (pto remote certificates "
    "makes them)" },
  { "[worker a]\nlisten=tls://me:1\ncertificates=me\n",
    "[cluster]: the key certificates is missing: [worker a] wants to know who connects to "
    "tls://me:1" },
  { "[cluster]\ncertificates=none\n[worker a]\nconnect=tls://me:1\n",
    "[cluster]: certificates=$/none: ca.pem: No such file or directory (pto remote certificates "
    "makes them)" },
};

static void
test_wrong (void)
{
  char *dir = make_dir ();

  for (guint i = 0; i < G_N_ELEMENTS (wrongs); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoClusterFile) file = read_text (dir, wrongs[i].text, &error);
      g_autofree char *wanted = put_dir (wrongs[i].message, dir);
      g_autofree char *whole = g_strdup_printf ("%s/c.ini: %s", dir, wanted);
      gsize n = strlen (whole);

      if (file != NULL)
        g_error ("\"%s\" is taken", wrongs[i].text);
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      g_assert_null (strchr (error->message, '\n'));
      if (g_str_has_suffix (whole, "..."))
        {
          g_assert_cmpuint (strlen (error->message), >, n - 3);
          error->message[n - 3] = whole[n - 3] = '\0';
        }
      g_assert_cmpstr (error->message, ==, whole);
    }
  remove_dir (dir);
}

/* A suggested key is taken in its place, and is not there already. */
static void
test_suggestions (void)
{
  static const struct
  {
    const char *before; /* what is wrong ends it */
    const char *meant;  /* NULL: nothing */
    const char *value;
  } rows[] = {
    { "[worker a]\nroot", "roots", "." },
    { "[worker a]\nconnect=unix:/x\nroot", NULL, "." },
    { "[worker a]\nlauncher=local\nluncher", NULL, "local" },
    { "[worker a]\ncluster", NULL, "3" },
    { "[worker a]\ndevices=0\ncluster", NULL, "3" },
    { "[worker a]\ndevices=1\ncluster", "clusters", "3" },
    { "[default]\ndevices=1\n[worker a]\ncluster", "clusters", "3" },
    { "[worker a]\n[default]\ncluster", "clusters", "3" },
    { "[worker a]\n[default]\nhots", NULL, "one" },
    { "[worker a]\nremote_lease", "remote-lease", "3000" },
    { "[job a]\nhots", "hosts", "one" },
    { "[worker a]\ndevices=1\ndevics", NULL, "1" },
  };
  char *dir = make_dir ();

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autofree char *text = g_strdup_printf ("%s=%s\n", rows[i].before, rows[i].value);
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoClusterFile) file = read_text (dir, text, &error);
      const char *asked;

      g_assert_null (file);
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      asked = strstr (error->message, "; did you mean ");
      if (rows[i].meant == NULL)
        g_assert_cmpstr (asked, ==, NULL);
      else
        {
          const char *line = strrchr (rows[i].before, '\n') + 1;
          g_autofree char *mended = g_strdup_printf ("%.*s%s=%s\n", (int) (line - rows[i].before),
                                                     rows[i].before, rows[i].meant, rows[i].value);
          g_autofree char *question = g_strdup_printf ("; did you mean \"%s\"?", rows[i].meant);
          g_autoptr (GError) none = NULL;
          g_autoptr (PtoClusterFile) good = read_text (dir, mended, &none);

          g_assert_cmpstr (asked, ==, question);
          g_assert_no_error (none);
          g_assert_nonnull (good);
        }
    }
  remove_dir (dir);
}

static void
test_unreadable (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = make_dir ();
  g_autofree char *path = g_build_filename (dir, "none.ini", NULL);

  g_assert_null (pto_cluster_file_new (path, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "none.ini: there is no such file");
  g_clear_error (&error);
  g_assert_null (pto_cluster_file_new (dir, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_SYSTEM);
  g_clear_error (&error);
  g_assert_null (read_text (dir, "\xff\n", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  remove_dir (dir);
}

/* What a file's own launcher says can be said of one worker, too. */
static void
test_options (void)
{
  g_autoptr (PtoWorker) root = pto_worker_new_host (4, 0, 0, NULL, NULL);
  static const struct
  {
    const char *address;
    const char *options;
    const char *message;
  } wrong[] = {
    { "own://one", "{'launcher': <@as []>}", "the launcher of own://one has no words" },
    { "own:", "{'launcher': <['enter', '%h']>}", "\"own:\" is no address" },
    { "own://one", "{'launcher': <'enter'>}", "\"own://one\" is no address" },
    { "ssh://one", "{'shell': <true>}",
      "the option shell of ssh://one is for the option launcher" },
    { "unix:/x", "{'launcher': <['enter', '%h']>}",
      "the option launcher is not for unix:/x: nothing is launched there" },
  };
  g_autoptr (GVariant) own = g_variant_ref_sink (
      g_variant_new_parsed ("{'launcher': <['enter', '%%h']>, 'shell': <true>}"));
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GVariant) options
          = g_variant_parse (G_VARIANT_TYPE_VARDICT, wrong[i].options, NULL, NULL, &error);

      g_assert_no_error (error);
      g_assert_null (pto_worker_add_remote_worker (root, wrong[i].address, options, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, wrong[i].message);
      g_clear_error (&error);
    }
  g_assert_nonnull (pto_worker_add_remote_worker (root, "own://one", own, &error));
  g_assert_no_error (error);
}

/* One that is not there is nothing, and no word on standard error. */
static void
test_places (void)
{
  char *dir = make_dir ();
  g_autoptr (PtoClusterFile) file = read_text (dir, "[worker one]\n", NULL);

  g_assert_cmpuint (pto_cluster_file_get_n_places (file), ==, 1);
  for (guint place = 1; place < 3; place++)
    {
      g_assert_null (pto_cluster_file_dup_name (file, place));
      g_assert_null (pto_cluster_file_dup_address (file, place));
      g_assert_null (pto_cluster_file_dup_command (file, place));
      g_assert_null (pto_cluster_file_dup_job (file, place, NULL));
      g_assert_cmpuint (pto_cluster_file_get_n_workers (file, place), ==, 0);
    }
  remove_dir (dir);
}

/* All workers of one are ranks of one job, in the order of the file, and no others are. */
static void
test_job (void)
{
  static const struct
  {
    const char *job;
    guint rank;
    guint n_workers;
  } places[] = { { NULL, 0, 2 }, { "fit", 0, 2 }, { "fit", 2, 2 }, { "other", 0, 3 } };
  g_autoptr (GError) error = NULL;
  char *dir = make_dir ();
  g_autoptr (PtoClusterFile) file = read_text (dir,
                                               "[default]\nworkers=2\n[worker alone]\n"
                                               "[job fit]\nhosts=one;two\ndevices=1\n"
                                               "remote-lease=5000\n"
                                               "[job other]\nlisten=unix:x\nworkers=3\n",
                                               &error);
  g_autoptr (PtoWorker) root = pto_worker_new_host (4, 0, 0, NULL, NULL);

  g_assert_no_error (error);
  g_assert_cmpuint (pto_cluster_file_get_n_places (file), ==, G_N_ELEMENTS (places));
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    {
      guint rank = 7;

      assert_text (pto_cluster_file_dup_job (file, i, &rank), places[i].job, dir);
      g_assert_cmpuint (rank, ==, places[i].rank);
      g_assert_cmpuint (pto_cluster_file_get_n_workers (file, i), ==, places[i].n_workers);
    }
  assert_text (pto_cluster_file_dup_name (file, 2), "fit/two", dir);
  g_assert_true (pto_worker_add_cluster (root, file, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (pto_worker_get_n_workers (root), ==, 9);
  assert_worker (root, 1, "local:", 0, 0);
  assert_worker (root, 5, "ssh://two", 1, 0);
  assert_parameter (pto_worker_get_child (root, 5), "remote-lease", "5000");
  remove_dir (dir);
}

/* Of a job and of a file: where one is too many there is none of them. */
static void
test_all_or_none (void)
{
  static const char *const addresses[] = { "local:", "local:", "local:", NULL };
  char *dir = make_dir ();
  g_autoptr (PtoClusterFile) file
      = read_text (dir, "[worker one]\n[worker two]\nworkers=2\n", NULL);
  g_autoptr (PtoWorker) full = pto_worker_new_host (4, 0, PTO_MAX_CHILDREN - 2, NULL, NULL);
  g_autoptr (PtoWorker) root = pto_worker_new_host (4, 0, PTO_MAX_CHILDREN - 3, NULL, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree PtoWorker **ranks = NULL;

  g_assert_null (pto_worker_add_remote_job (full, addresses, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "a worker has at most");
  g_clear_error (&error);
  g_assert_false (pto_worker_add_cluster (full, file, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_assert_cmpuint (pto_worker_get_n_workers (full), ==, 0);
  g_clear_error (&error);
  ranks = pto_worker_add_remote_job (root, addresses, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 3; i++)
    g_assert_true (ranks[i] == pto_worker_get_child (root, i));
  remove_dir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/cluster-file/everything", test_everything);
  g_test_add_func ("/pto/cluster-file/add", test_add);
  g_test_add_func ("/pto/cluster-file/wrong", test_wrong);
  g_test_add_func ("/pto/cluster-file/suggestions", test_suggestions);
  g_test_add_func ("/pto/cluster-file/unreadable", test_unreadable);
  g_test_add_func ("/pto/cluster-file/options", test_options);
  g_test_add_func ("/pto/cluster-file/places", test_places);
  g_test_add_func ("/pto/cluster-file/job", test_job);
  g_test_add_func ("/pto/cluster-file/all-or-none", test_all_or_none);
  return g_test_run ();
}
