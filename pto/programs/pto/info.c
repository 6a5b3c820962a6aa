/* info.c: which chips, back ends and parameters are there, and what is this machine?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tool.h"

#include "common/json.h"

#include <glib/gi18n.h>
#include <pto/pto.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

static gboolean option_json;

static const GOptionEntry entries[]
    = { { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON object"), NULL },
        G_OPTION_ENTRY_NULL };

guint
tool_count_cpus (void)
{
  cpu_set_t set;

  if (sched_getaffinity (0, sizeof set, &set) == 0)
    return (guint) CPU_COUNT (&set);
  return g_get_num_processors ();
}

guint64
tool_count_memory (void)
{
  long pages = sysconf (_SC_PHYS_PAGES);
  long size = sysconf (_SC_PAGESIZE);

  return pages > 0 && size > 0 ? (guint64) pages * (guint64) size : 0;
}

static char **
list_backends (void)
{
  g_autoptr (GEnumClass) class = g_type_class_ref (PTO_TYPE_BACKEND);
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();

  for (guint i = 0; i < class->n_values; i++)
    g_strv_builder_add (names, class->values[i].value_nick);
  return g_strv_builder_end (names);
}

/* The chips themselves. */
static const char *const hardware[] = { "a2a3", "a5" };
static const char no_hardware[]
    = N_ ("the chips themselves: there is no module for them (doc/hardware.md)");

static void
print_json (PtoWorker *worker)
{
  JsonBuilder *builder = json_builder_new ();
  g_auto (GStrv) platforms = pto_platform_list_names ();
  g_auto (GStrv) parameters = pto_worker_list_parameters ();
  g_auto (GStrv) backends = list_backends ();
  g_autofree char *c = pto_dup_compiler ("x.c", NULL);
  g_autofree char *cxx = pto_dup_compiler ("x.cpp", NULL);
  struct utsname system = { 0 };

  uname (&system);
  json_builder_begin_object (builder);
  pto_json_add_string (builder, "version", PTO_VERSION_S);

  pto_json_begin_array (builder, "platforms");
  for (guint i = 0; platforms[i] != NULL; i++)
    {
      g_autoptr (PtoPlatform) platform = pto_platform_lookup (platforms[i], NULL);

      json_builder_begin_object (builder);
      pto_json_add_string (builder, "name", platforms[i]);
      pto_json_add_string (builder, "description", pto_platform_get_description (platform));
      pto_json_add_int (builder, "clusters", pto_platform_get_n_clusters (platform));
      pto_json_add_int (builder, "aic_per_cluster",
                        pto_platform_get_cores_per_cluster (platform, PTO_CORE_AIC));
      pto_json_add_int (builder, "aiv_per_cluster",
                        pto_platform_get_cores_per_cluster (platform, PTO_CORE_AIV));
      pto_json_add_int (builder, "aicpu_threads", pto_platform_get_n_aicpu_threads (platform));
      pto_json_add_int (builder, "counter_hz", pto_platform_get_counter_frequency (platform));
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);

  pto_json_begin_array (builder, "hardware");
  for (guint i = 0; i < G_N_ELEMENTS (hardware); i++)
    {
      json_builder_begin_object (builder);
      pto_json_add_string (builder, "name", hardware[i]);
      pto_json_add_boolean (builder, "available", FALSE);
      pto_json_add_string (builder, "description", no_hardware);
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);

  pto_json_begin_object (builder, "machine");
  pto_json_add_string (builder, "system", system.sysname);
  pto_json_add_string (builder, "release", system.release);
  pto_json_add_string (builder, "architecture", system.machine);
  pto_json_add_int (builder, "cpus", tool_count_cpus ());
  pto_json_add_int (builder, "memory_bytes", tool_count_memory ());
  pto_json_add_string (builder, "c_compiler", c);
  pto_json_add_string (builder, "cxx_compiler", cxx);
  json_builder_end_object (builder);

  pto_json_begin_array (builder, "backends");
  for (guint i = 0; backends[i] != NULL; i++)
    json_builder_add_string_value (builder, backends[i]);
  json_builder_end_array (builder);

  pto_json_begin_array (builder, "parameters");
  for (guint i = 0; parameters[i] != NULL; i++)
    {
      g_autofree char *value = pto_worker_dup_parameter (worker, parameters[i], NULL);

      json_builder_begin_object (builder);
      pto_json_add_string (builder, "name", parameters[i]);
      pto_json_add_string (builder, "variable", pto_worker_get_parameter_variable (parameters[i]));
      pto_json_add_string (builder, "value", value);
      pto_json_add_string (builder, "description", pto_worker_describe_parameter (parameters[i]));
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  tool_print_json (builder);
}

static void
print_text (PtoWorker *worker)
{
  g_auto (GStrv) platforms = pto_platform_list_names ();
  g_auto (GStrv) parameters = pto_worker_list_parameters ();
  g_auto (GStrv) backends = list_backends ();
  g_autofree char *backend_list = g_strjoinv (", ", backends);
  g_autofree char *c = pto_dup_compiler ("x.c", NULL);
  g_autofree char *cxx = pto_dup_compiler ("x.cpp", NULL);
  g_autofree char *memory = g_format_size_full (tool_count_memory (), G_FORMAT_SIZE_IEC_UNITS);
  struct utsname system = { 0 };
  int widest_name = 0, widest_value = 0, widest_variable = 0;

  uname (&system);
  g_print ("pto %s\n\n%s\n", PTO_VERSION_S, _ ("Platforms"));
  for (guint i = 0; platforms[i] != NULL; i++)
    {
      g_autoptr (PtoPlatform) platform = pto_platform_lookup (platforms[i], NULL);
      guint clusters = pto_platform_get_n_clusters (platform);
      guint aic = pto_platform_get_cores_per_cluster (platform, PTO_CORE_AIC);
      guint aiv = pto_platform_get_cores_per_cluster (platform, PTO_CORE_AIV);
      g_autofree char *schedulers
          = tool_count_schedulers (pto_platform_get_n_aicpu_threads (platform) - 1);

      g_print (_ ("  %-14s%u clusters of %u AIC + %u AIV (%u cores), %s + 1 orchestrator, "
                  "counter %.0f MHz\n"),
               platforms[i], clusters, aic, aiv, clusters * (aic + aiv), schedulers,
               (double) pto_platform_get_counter_frequency (platform) / 1e6);
    }

  tool_print_row ("a2a3, a5", _ (no_hardware));

  g_print ("\n%s\n", _ ("This machine"));
  tool_print_row_printf (_ ("system"), "%s %s, %s", system.sysname, system.release, system.machine);
  tool_print_row_printf (_ ("CPUs"), _ ("%u usable"), tool_count_cpus ());
  tool_print_row (_ ("memory"), memory);
  tool_print_row (_ ("C compiler"), c != NULL ? c : _ ("none"));
  tool_print_row (_ ("C++ compiler"), cxx != NULL ? cxx : _ ("none"));

  g_print ("\n%s\n", _ ("Compiled in"));
  tool_print_row (_ ("back ends"), backend_list);
  g_print ("  %-14s%u.%u.%u\n", "GLib", glib_major_version, glib_minor_version, glib_micro_version);

  for (guint i = 0; parameters[i] != NULL; i++)
    {
      const char *variable = pto_worker_get_parameter_variable (parameters[i]);
      g_autofree char *value = pto_worker_dup_parameter (worker, parameters[i], NULL);

      widest_name = MAX (widest_name, (int) g_utf8_strlen (parameters[i], -1));
      widest_value = MAX (widest_value, value != NULL ? (int) g_utf8_strlen (value, -1) : 0);
      widest_variable
          = MAX (widest_variable, variable != NULL ? (int) g_utf8_strlen (variable, -1) : 0);
    }
  g_print ("\n%s\n", _ ("Parameters (pto run --set NAME=VALUE, or the environment variable)"));
  for (guint i = 0; parameters[i] != NULL; i++)
    {
      const char *variable = pto_worker_get_parameter_variable (parameters[i]);
      g_autofree char *value = pto_worker_dup_parameter (worker, parameters[i], NULL);

      g_print ("  %-*s  %-*s  %-*s  %s\n", widest_name, parameters[i], widest_value,
               value != NULL ? value : "", widest_variable, variable != NULL ? variable : "",
               _ (pto_worker_describe_parameter (parameters[i])));
    }
}

static gboolean
tool_info (char **words, GError **error)
{
  g_auto (GStrv) platforms = pto_platform_list_names ();
  g_autoptr (PtoWorker) worker = NULL;

  /* A worker that is never started knows the defaults and the environment. */
  worker = pto_worker_new (2, platforms[0], error);
  if (worker == NULL)
    return FALSE;
  if (option_json)
    print_json (worker);
  else
    print_text (worker);
  return TRUE;
}

const ToolCommand tool_info_command = {
  .name = "info",
  .purpose = N_ ("tell the platforms, this machine, the back ends and the parameters"),
  .summary = N_ ("Tells the platforms, this machine, the back ends and the parameters with their "
                 "values."),
  .entries = entries,
  .run = tool_info,
};
