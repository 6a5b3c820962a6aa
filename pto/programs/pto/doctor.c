/* doctor.c: what does this machine lack?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each thing is tried as the library, or a program, uses it: a compiler compiles, a file is
 * written, a language loads the library. What it does not use is not asked for: memory that
 * processes share is in memory files, for which neither the size of /dev/shm nor the limit of
 * locked memory counts.
 */
#include "config.h"

#include "terminal.h"
#include "tool.h"

#include "common/fabric-module.h"
#include "common/json.h"
#include "common/printable.h"

#include <dlfcn.h>
#include <errno.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <linux/membarrier.h>
#include <pto/pto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A host with a few chips; what is less is told, with the number that is there. */
#define PROCESSES_LEAST 256
#define FILES_LEAST 256
#define BYTES_LEAST (G_GUINT64_CONSTANT (16) << 30)

static gboolean option_json;

static const GOptionEntry entries[]
    = { { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON object"), NULL },
        G_OPTION_ENTRY_NULL };

typedef enum
{
  THING_OK,
  THING_LOW,    /* it is there, but less than it may need */
  THING_MISSING /* it is not, or does not work */
} ThingState;

typedef struct
{
  const char *name; /* to be translated */
  gboolean needed;
  ThingState state;
  char *found;  /* NULL: nothing */
  char *advice; /* what to install or to set; NULL: nothing */
} Thing;

/* What was looked at so far, and whether every run needs what comes now. */
static GArray *things;
static gboolean is_needed;

static void
thing_clear (gpointer data)
{
  Thing *thing = data;

  g_free (thing->found);
  g_free (thing->advice);
}

/* What was found, behind what would help where it is not well. */
G_GNUC_PRINTF (4, 5)
static ThingState
add (const char *name, ThingState state, const char *advice, const char *format, ...)
{
  Thing thing = { .name = name, .needed = is_needed, .state = state };
  va_list args;

  va_start (args, format);
  thing.found = g_strdup_vprintf (format, args);
  va_end (args);
  thing.advice = state != THING_OK ? g_strdup (advice) : NULL;
  g_array_append_val (things, thing);
  return state;
}

/* The first line: a compiler goes on for long. */
static char *
dup_first_line (const char *text)
{
  return g_strndup (text, strcspn (text, "\n"));
}

/* What a program prints; NULL: there is none, or it has failed, and @words is what it said of that.
 */
static char *
ask (const char *const *words, char **trouble)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *out = NULL;
  g_autofree char *said = NULL;
  int status;

  if (g_spawn_sync (NULL, (char **) words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &said,
                    &status, &error)
      && g_spawn_check_wait_status (status, NULL))
    return g_strstrip (g_steal_pointer (&out));
  if (trouble != NULL)
    *trouble = error != NULL ? g_strdup (error->message) : g_strstrip (g_steal_pointer (&said));
  return NULL;
}

/* --- what a run needs --- */

/* Its file is another one each time. A manifest would stay for each: none is kept of a text with
 * that word. */
static const char kernel[] = "/* __has_include */\n"
                             "#include \"tensor.h\"\n"
                             "#ifdef __cplusplus\nextern \"C\"\n#endif\n"
                             "void\nkernel_entry (int64_t *args)\n{\n  (void) args;\n}\n";

/* As a user's compiler is called, but into a directory of its own: what is cached says nothing. */
static gboolean
try_compiler (const char *compiler, const char *source, const char *directory, const char *api_dir,
              char **trouble)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) words = NULL;
  g_auto (GStrv) command = NULL;
  g_autofree char *path = g_build_filename (directory, source, NULL);
  g_autofree char *object = g_build_filename (directory, "kernel.so", NULL);
  g_autofree char *include = g_strconcat ("-I", api_dir, NULL);
  g_autofree char *said = NULL;
  g_autoptr (GError) error = NULL;

  if (!g_shell_parse_argv (compiler, NULL, &words, &error)
      || !g_file_set_contents (path, kernel, -1, &error))
    {
      *trouble = g_strdup (error->message);
      return FALSE;
    }
  g_strv_builder_addv (builder, (const char **) words);
  g_strv_builder_add_many (builder, "-shared", "-fPIC", include, "-o", object, path, NULL);
  command = g_strv_builder_end (builder);
  said = ask ((const char *const *) command, trouble);
  g_unlink (path);
  g_unlink (object);
  return said != NULL;
}

static ThingState
check_compiler (const char *name, const char *source, const char *directory, const char *api_dir,
                const char *advice)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *compiler = pto_dup_compiler (source, &error);
  g_autofree char *trouble = NULL;
  g_autofree char *line = NULL;

  if (compiler == NULL)
    return add (name, THING_MISSING, advice, "%s", error->message);
  if (api_dir == NULL || directory == NULL
      || try_compiler (compiler, source, directory, api_dir, &trouble))
    return add (name, THING_OK, NULL, "%s", compiler);
  line = dup_first_line (trouble);
  return add (name, THING_MISSING, advice, _ ("%s compiles no kernel: %s"), compiler, line);
}

/* The library's own words where it does not trust the directory. directory: NULL: nothing can be
 * built. */
static void
check_cache (const char *directory)
{
  g_autofree char *path = g_build_filename (g_get_user_cache_dir (), "libpto", NULL);
  g_autofree char *probe = g_build_filename (path, "doctor-XXXXXX", NULL);
  g_autofree char *source = NULL;
  g_autofree char *object = NULL;
  g_autofree char *line = NULL;
  g_autoptr (GError) error = NULL;
  int fd;

  if (g_mkdir_with_parents (path, 0700) != 0 || (fd = g_mkstemp (probe)) < 0)
    {
      add (N_ ("cache"), THING_MISSING, _ ("name a directory of your own in XDG_CACHE_HOME"),
           _ ("%s can not be written: %s"), path, g_strerror (errno));
      return;
    }
  close (fd);
  g_unlink (probe);
  if (directory != NULL)
    {
      source = g_build_filename (directory, "doctor.c", NULL);
      if (g_file_set_contents (source, kernel, -1, &error))
        object = pto_compile_shared_object (source, tool_get_cancellable (), &error);
      g_unlink (source);
    }
  line = error != NULL ? dup_first_line (error->message) : NULL;
  add (N_ ("cache"), line != NULL ? THING_MISSING : THING_OK, NULL, "%s",
       line != NULL ? line : path);
}

static void
check_processes (void)
{
  int fd = (int) syscall (SYS_pidfd_open, getpid (), 0);

  if (fd < 0)
    add (N_ ("processes"), THING_MISSING, _ ("Linux 5.4 or newer, where nothing forbids that call"),
         _ ("pidfd_open: %s"), g_strerror (errno));
  else
    {
      close (fd);
      add (N_ ("processes"), THING_OK, NULL, _ ("children can be watched"));
    }
}

static void
check_shared_memory (void)
{
  int fd = memfd_create ("pto-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  gsize size = 1 << 20;
  char *memory = MAP_FAILED;

  if (fd >= 0 && ftruncate (fd, (off_t) size) == 0)
    memory = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED)
    add (N_ ("shared memory"), THING_MISSING,
         _ ("look at `ulimit -f`, which counts for it, and at what limits memory"),
         _ ("no memory file: %s"), g_strerror (errno));
  else
    {
      memory[0] = 1;
      munmap (memory, size);
      add (N_ ("shared memory"), THING_OK, NULL, _ ("memory files"));
    }
  if (fd >= 0)
    close (fd);
}

/* --- what a run may need --- */

static char *
dup_limit (rlim_t limit, gboolean is_size)
{
  if (limit == RLIM_INFINITY)
    return g_strdup (_ ("unlimited"));
  return is_size ? g_format_size_full (limit, G_FORMAT_SIZE_IEC_UNITS)
                 : g_strdup_printf ("%" G_GUINT64_FORMAT, (guint64) limit);
}

static void
check_limits (void)
{
  const struct
  {
    const char *name;
    int resource;
    gboolean is_size;
    guint64 least;
    const char *advice;
  } limits[] = {
    { N_ ("process limit"), RLIMIT_NPROC, FALSE, PROCESSES_LEAST,
      N_ ("ulimit -u 1024, for workers of level 3 and up: a process for each chip") },
    { N_ ("file limit"), RLIMIT_NOFILE, FALSE, FILES_LEAST,
      N_ ("ulimit -n 1024, for workers of level 3 and up: some files for each child") },
    { N_ ("address space"), RLIMIT_AS, TRUE, BYTES_LEAST,
      N_ ("ulimit -v unlimited, or set heap and arena to less (pto info)") },
    { N_ ("file size"), RLIMIT_FSIZE, TRUE, BYTES_LEAST,
      N_ ("ulimit -f unlimited: it counts for memory that processes share, too") },
  };

  for (guint i = 0; i < G_N_ELEMENTS (limits); i++)
    {
      g_autofree char *found = NULL;
      struct rlimit limit;
      gboolean is_low;

      if (getrlimit ((__rlimit_resource_t) limits[i].resource, &limit) != 0)
        continue;
      is_low = limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < limits[i].least;
      found = dup_limit (limit.rlim_cur, limits[i].is_size);
      add (limits[i].name, is_low ? THING_LOW : THING_OK, _ (limits[i].advice), "%s", found);
    }
}

static void
check_membarrier (void)
{
  long can = syscall (SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  long needed = MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
  gboolean is_there = can > 0 && (can & needed) == needed;

  add (N_ ("membarrier"), is_there ? THING_OK : THING_MISSING,
       _ ("Linux 4.14 or newer, where nothing forbids that call: tasks cost more without it"), "%s",
       is_there ? _ ("expedited") : _ ("none that is expedited"));
}

#if defined(__x86_64__)
static gboolean
has_flag (const char *flags, const char *flag)
{
  g_auto (GStrv) words = g_strsplit (flags, " ", -1);

  return g_strv_contains ((const char *const *) words, flag);
}
#endif

/* The times of cores are counted by the processor's counter (pto_ticks()). */
static void
check_clock (void)
{
#if defined(__x86_64__)
  g_autofree char *text = NULL;
  const char *flags = NULL;

  if (g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL))
    flags = strstr (text, "\nflags");
  if (flags != NULL)
    {
      g_autofree char *line = dup_first_line (flags + 1);
      gboolean is_constant = has_flag (line, "constant_tsc") && has_flag (line, "nonstop_tsc");

      add (N_ ("clock"), is_constant ? THING_OK : THING_LOW,
           _ ("wall-clock times of kernels may be off: take the virtual clock, --backend det"),
           "%s",
           is_constant ? _ ("the processor's counter has one rate and never stops")
                       : _ ("the processor's counter does not say that it has one rate "
                            "(constant_tsc, nonstop_tsc)"));
      return;
    }
#endif
  add (N_ ("clock"), THING_OK, NULL, _ ("the processor's counter has one rate"));
}

/* --- languages --- */

/* Lines: which it is, gi, the typelib, the override, and NumPy, each empty or what it is. */
static const char python_program[]
    = "import sys\n"
      "print(sys.executable)\n"
      "for look in ('import gi; found = gi.__version__',\n"
      "             'import gi; gi.require_version(\"Pto\", \"1\"); from gi.repository import Pto;'\n"
      "             'Pto.Platform; found = \"Pto 1\"',\n"
      "             'import gi.overrides.Pto; found = gi.overrides.Pto.__file__',\n"
      "             'import numpy; found = numpy.__version__'):\n"
      "    found = ''\n"
      "    try:\n"
      "        exec(look)\n"
      "    except Exception:\n"
      "        pass\n"
      "    print(found)\n";

enum
{
  PYTHON_PROGRAM,
  PYTHON_GI,
  PYTHON_TYPELIB,
  PYTHON_OVERRIDE,
  PYTHON_NUMPY
};

/* What is empty at the end has been stripped. */
static const char *
get_line (char **answer, guint line)
{
  return answer != NULL && line < g_strv_length (answer) ? answer[line] : "";
}

/* Of the Python on the path, or Debian's, where the first has no gi. NULL: there is none. */
static char **
ask_python (void)
{
  const char *const names[] = { "python3", "/usr/bin/python3" };
  char **answer = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (names) && *get_line (answer, PYTHON_GI) == '\0'; i++)
    {
      g_autofree char *said
          = ask ((const char *const[]){ names[i], "-c", python_program, NULL }, NULL);
      g_auto (GStrv) lines = said != NULL ? g_strsplit (said, "\n", -1) : NULL;

      if (answer != NULL && *get_line (lines, PYTHON_GI) == '\0')
        continue;
      g_strfreev (answer);
      answer = g_steal_pointer (&lines);
    }
  return answer;
}

/* The directory that the library is in. */
static char *
dup_libdir (void)
{
  g_autofree char *real = NULL;
  Dl_info info;

  if (dladdr ((void *) pto_get_major_version, &info) == 0 || info.dli_fname == NULL)
    return NULL;
  real = realpath (info.dli_fname, NULL);
  return g_path_get_dirname (real != NULL ? real : info.dli_fname);
}

/* Installed or in a build directory, or nowhere. */
static char *
advise_typelib (void)
{
  g_autofree char *libdir = dup_libdir ();
  const char *const below[] = { "girepository-1.0", "." };

  for (guint i = 0; libdir != NULL && i < G_N_ELEMENTS (below); i++)
    {
      g_autofree char *joined = g_build_filename (libdir, below[i], NULL);
      g_autofree char *directory = g_canonicalize_filename (joined, NULL);
      g_autofree char *typelib = g_build_filename (directory, "Pto-1.typelib", NULL);

      if (g_file_test (typelib, G_FILE_TEST_IS_REGULAR))
        return g_strdup_printf (
            "export GI_TYPELIB_PATH=\"%s${GI_TYPELIB_PATH:+:$GI_TYPELIB_PATH}\" "
            "LD_LIBRARY_PATH=\"%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"",
            directory, libdir);
    }
  return g_strdup (_ ("apt install gobject-introspection libgirepository1.0-dev, and build libpto "
                      "again"));
}

/* fact: what is there; NULL or empty: nothing, which is said by what. */
static void
add_fact (const char *name, const char *fact, const char *what, const char *advice)
{
  gboolean is_there = fact != NULL && fact[0] != '\0';

  add (name, is_there ? THING_OK : THING_MISSING, advice, "%s", is_there ? fact : what);
}

static void
check_python (void)
{
  g_auto (GStrv) answer = ask_python ();
  const char *gi = get_line (answer, PYTHON_GI);
  gboolean has_gi = gi[0] != '\0';
  gboolean has_typelib = has_gi && *get_line (answer, PYTHON_TYPELIB) != '\0';
  g_autofree char *found
      = has_gi ? g_strdup_printf (_ ("%s, PyGObject %s"), answer[PYTHON_PROGRAM], gi) : NULL;
  g_autofree char *advice = advise_typelib ();

  add_fact (N_ ("Python"), found,
            answer != NULL ? _ ("it has no module gi") : _ ("there is no python3"),
            _ ("apt install python3-gi, for programs in Python"));
  add_fact (N_ ("typelib"), has_typelib ? answer[PYTHON_TYPELIB] : NULL,
            has_gi ? _ ("Python does not find it") : _ ("not looked for without Python"),
            has_gi ? advice : NULL);
  add_fact (N_ ("Python override"), has_typelib ? get_line (answer, PYTHON_OVERRIDE) : NULL,
            has_typelib ? _ ("Python does not find gi/overrides/Pto.py")
                        : _ ("not looked for without the typelib"),
            has_typelib
                ? _ ("name the directory above gi in PYTHONPATH, or start programs by meson "
                     "devenv -C build")
                : NULL);
  add_fact (N_ ("NumPy"), get_line (answer, PYTHON_NUMPY), _ ("none"),
            _ ("apt install python3-numpy, for arrays in Python"));
}

static void
check_gjs (void)
{
  static const char program[]
      = "imports.gi.versions.Pto = '1'; const { GLib, Pto } = imports.gi; Pto.Platform;"
        "print(GLib.quark_try_string('pto-javascript-override') !== 0 ? 'override' : 'none');";
  g_autofree char *path = g_find_program_in_path ("gjs");
  g_autofree char *said
      = path != NULL ? ask ((const char *const[]){ path, "-c", program, NULL }, NULL) : NULL;
  g_autofree char *advice = advise_typelib ();

  if (path == NULL)
    add (N_ ("JavaScript"), THING_MISSING, _ ("apt install gjs, for programs in JavaScript"),
         _ ("there is no gjs"));
  else if (said == NULL)
    add (N_ ("JavaScript"), THING_MISSING, advice, _ ("%s does not find the typelib"), path);
  else if (strcmp (said, "override") != 0)
    add (N_ ("JavaScript"), THING_LOW,
         _ ("name the directory of gjs-1.0 in XDG_DATA_DIRS, or start programs by meson devenv -C "
            "build"),
         _ ("%s does not find the override"), path);
  else
    add (N_ ("JavaScript"), THING_OK, NULL, "%s", path);
}

static void
check_browser (void)
{
  const char *const names[]
      = { "xdg-open", "firefox", "firefox-esr", "chromium", "google-chrome", "epiphany", NULL };
  g_autofree char *found = NULL;

  for (guint i = 0; names[i] != NULL && found == NULL; i++)
    found = g_find_program_in_path (names[i]);
  add_fact (N_ ("browser"), found, _ ("none that is known"),
            _ ("apt install chromium, or look at reports (--report) on another machine"));
}

/* What this program was built with. */
static void
check_build (void)
{
#ifdef HAVE_NCURSES
  add (N_ ("screen"), THING_OK, NULL, _ ("pto top has ncurses"));
#else
  add (N_ ("screen"), THING_MISSING, _ ("apt install libncurses-dev, and build libpto again"),
       _ ("pto top tells once: no ncurses"));
#endif
#ifdef HAVE_GNUTLS
  add (N_ ("TLS"), THING_OK, NULL, _ ("remote workers at tls:// have GnuTLS"));
#else
  add (N_ ("TLS"), THING_MISSING, _ ("apt install libgnutls28-dev, and build libpto again"),
       _ ("no remote workers at tls://: no GnuTLS"));
#endif
}

/* --- remote workers --- */

/* Where the library looks for it on this machine; NULL: nowhere. */
static char *
find_remote (void)
{
  const char *variable = g_getenv ("PTO_REMOTE");
  g_autofree char *libdir = dup_libdir ();
  g_autofree char *joined = g_build_filename (libdir != NULL ? libdir : "", PTO_BIN_DIR_FROM_LIBDIR,
                                              "pto-remote", NULL);
  g_autofree char *installed = g_canonicalize_filename (joined, NULL);

  if (variable != NULL && *variable != '\0')
    return g_find_program_in_path (variable);
  return libdir != NULL && g_file_test (installed, G_FILE_TEST_IS_EXECUTABLE)
             ? g_steal_pointer (&installed)
             : g_find_program_in_path ("pto-remote");
}

/* A worker is refused by one of another version. */
static void
check_remote (const char *remote)
{
  g_autofree char *wanted = g_strdup_printf ("pto-remote %u.%u.%u", pto_get_major_version (),
                                             pto_get_minor_version (), pto_get_micro_version ());
  g_autofree char *trouble = NULL;
  g_autofree char *said
      = remote != NULL ? ask ((const char *const[]){ remote, "--version", NULL }, &trouble) : NULL;
  g_autofree char *line = NULL;

  if (remote == NULL)
    add (N_ ("remote workers"), THING_MISSING,
         _ ("name it in PTO_REMOTE, for remote workers of this machine"),
         _ ("there is no pto-remote"));
  else if (g_strcmp0 (said, wanted) == 0)
    add (N_ ("remote workers"), THING_OK, NULL, "%s", remote);
  else
    {
      line = dup_first_line (said != NULL ? said : trouble);
      add (N_ ("remote workers"), THING_LOW,
           _ ("name another one in PTO_REMOTE, for remote workers of this machine"),
           _ ("%s is not of this version, %s, but says \"%s\""), remote,
           wanted + strlen ("pto-remote "), line);
    }
}

static void
check_ucx (void)
{
  g_autofree char *cause = NULL;
  const PtoFabricEngine *engine
      = pto_fabric_load ("ucx", (gconstpointer) pto_get_major_version, &cause);
  g_autofree char *found = engine != NULL ? engine->describe (&cause) : NULL;
  g_autofree char *line = cause != NULL ? dup_first_line (cause) : NULL;

  add_fact (N_ ("UCX"), found, engine != NULL ? cause : line,
            engine != NULL
                ? _ ("look at UCX_TLS and UCX_NET_DEVICES, which say what UCX may use")
                : _ ("apt install libpto-1-ucx, or libucx-dev and build libpto again, for a fabric "
                     "that is trusted"));
}

/* Each worker of a job has one, beside pto-remote. */
static void
check_mpi (const char *remote)
{
  g_autofree char *path = g_find_program_in_path ("mpirun");
  g_autofree char *trouble = NULL;
  g_autofree char *said
      = path != NULL ? ask ((const char *const[]){ path, "--version", NULL }, &trouble) : NULL;
  g_autofree char *line = path != NULL ? dup_first_line (said != NULL ? said : trouble) : NULL;
  g_autofree char *directory = remote != NULL ? g_path_get_dirname (remote) : NULL;
  g_autofree char *rank
      = directory != NULL ? g_build_filename (directory, "pto-mpi-rank", NULL) : NULL;
  gboolean has_rank = rank != NULL && g_file_test (rank, G_FILE_TEST_IS_EXECUTABLE);
  const char *install = _ ("apt install openmpi-bin, for remote workers that are ranks of one job");

  if (path == NULL)
    add (N_ ("MPI"), THING_MISSING,
         has_rank ? install
                  : _ ("apt install openmpi-bin libopenmpi-dev, and build libpto again, for remote "
                       "workers that are ranks of one job"),
         _ ("there is no mpirun"));
  else if (said == NULL)
    add (N_ ("MPI"), THING_MISSING, install, _ ("%s does not say its version: %s"), path, line);
  else if (!has_rank)
    add (N_ ("MPI"), THING_MISSING, _ ("apt install libopenmpi-dev, and build libpto again"),
         _ ("%s, but there is no pto-mpi-rank beside pto-remote"), line);
  else
    add (N_ ("MPI"),
         strstr (line, "Open MPI") != NULL || strstr (line, "OpenRTE") != NULL ? THING_OK
                                                                               : THING_LOW,
         _ ("Open MPI is what ranks of a job are begun by: apt install openmpi-bin"), "%s, %s",
         line, rank);
}

/* --- all of it --- */

static void
check_all (void)
{
  g_autofree char *directory = g_dir_make_tmp ("pto-doctor-XXXXXX", NULL);
  g_autoptr (GError) error = NULL;
  g_autofree char *api_dir = pto_dup_api_dir (&error);
  g_autofree char *remote = find_remote ();
  ThingState compiler;

  is_needed = TRUE;
  if (directory == NULL)
    add (N_ ("temporary files"), THING_MISSING, _ ("name a directory of your own in TMPDIR"),
         _ ("%s can not be written"), g_get_tmp_dir ());
  add_fact (N_ ("headers"), api_dir, error != NULL ? error->message : NULL,
            _ ("name their directory in PTO_API_DIR"));
  compiler = check_compiler (N_ ("C compiler"), "kernel.c", directory, api_dir,
                             _ ("apt install gcc libc6-dev, or name another one in CC"));
  check_cache (compiler == THING_OK && api_dir != NULL ? directory : NULL);
  check_processes ();
  check_shared_memory ();

  is_needed = FALSE;
  check_compiler (N_ ("C++ compiler"), "kernel.cc", directory, api_dir,
                  _ ("apt install g++, for kernels and orchestrations in C++"));
  check_limits ();
  check_membarrier ();
  check_clock ();
  check_python ();
  check_gjs ();
  check_browser ();
  check_build ();
  check_remote (remote);
  check_ucx ();
  check_mpi (remote);
  if (directory != NULL)
    g_rmdir (directory);
}

static const char *const states[]
    = { [THING_OK] = N_ ("ok"), [THING_LOW] = N_ ("low"), [THING_MISSING] = N_ ("missing") };

static void
print_json (gboolean is_ready)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  pto_json_add_boolean (builder, "ready", is_ready);
  pto_json_begin_array (builder, "checks");
  for (guint i = 0; i < things->len; i++)
    {
      const Thing *thing = &g_array_index (things, Thing, i);

      json_builder_begin_object (builder);
      pto_json_add_string (builder, "name", thing->name);
      pto_json_add_boolean (builder, "needed", thing->needed);
      pto_json_add_string (builder, "state", states[thing->state]);
      pto_json_add_string (builder, "found", thing->found);
      pto_json_add_string (builder, "advice", thing->advice);
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  tool_print_json (builder);
}

static const TerminalColour colours[]
    = { [THING_OK] = TERMINAL_GOOD, [THING_LOW] = TERMINAL_POOR, [THING_MISSING] = TERMINAL_BAD };

static void
print_text (void)
{
  const char *const titles[] = { N_ ("Needed"), N_ ("For more") };

  for (int more = 0; more < 2; more++)
    {
      g_print ("%s%s\n", more ? "\n" : "", _ (titles[more]));
      for (guint i = 0; i < things->len; i++)
        {
          const Thing *thing = &g_array_index (things, Thing, i);
          const char *words = _ (states[thing->state]);
          g_autofree char *state = NULL;
          g_autofree char *name = NULL;
          g_autofree char *line = NULL;

          if (thing->needed == (more == 1))
            continue;
          state = terminal_paint (STDOUT_FILENO, colours[thing->state], words);
          g_print ("  %s%*s ", state, MAX (8 - (int) pto_count_columns (words), 0), "");
          name = terminal_pad (_ (thing->name), 16);
          line = g_strdup_printf ("%s %s%s%s\n", name, thing->found,
                                  thing->advice != NULL ? _ (": ") : "",
                                  thing->advice != NULL ? thing->advice : "");
          tool_print (line, FALSE);
        }
    }
}

static gboolean
tool_doctor (char **words, GError **error)
{
  g_autoptr (GString) missing = g_string_new (NULL);

  things = g_array_new (FALSE, FALSE, sizeof (Thing));
  g_array_set_clear_func (things, thing_clear);
  if (option_json)
    tool_begin_document ();
  check_all ();
  if (option_json)
    tool_end_document ();
  for (guint i = 0; i < things->len; i++)
    {
      const Thing *thing = &g_array_index (things, Thing, i);

      if (thing->needed && thing->state == THING_MISSING)
        g_string_append_printf (missing, "%s%s", missing->len > 0 ? _ (", ") : "", _ (thing->name));
    }
  if (option_json)
    print_json (missing->len == 0);
  else
    print_text ();
  g_array_unref (things);
  if (missing->len == 0)
    return TRUE;
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("no graph runs here: %s"), missing->str);
  return FALSE;
}

const ToolCommand tool_doctor_command = {
  .name = "doctor",
  .purpose = N_ ("tell what this machine lacks, and how it is had"),
  .summary = N_ ("Tries what libpto needs on this machine, and what it can use: a line for each, "
                 "with what to\ninstall or to set where it is missing."),
  .notes = N_ ("The exit status is 1 when something is missing that every run needs."),
  .entries = entries,
  .run = tool_doctor,
};
