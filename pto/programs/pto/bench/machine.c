/* machine.c: on what machine was it measured?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bench.h"
#include "tool.h"

#include <glib/gi18n.h>
#include <string.h>
#include <sys/utsname.h>

/* "name: value" of a file like /proc/cpuinfo, or of one like /etc/os-release. */
static char *
dup_field (const char *file, const char *name, char separator)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;

  if (!g_file_get_contents (file, &text, NULL, NULL))
    return NULL;
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    {
      char *value = strchr (lines[i], separator);

      if (value == NULL)
        continue;
      *value++ = '\0';
      if (strcmp (g_strstrip (lines[i]), name) != 0)
        continue;
      value = g_strstrip (value);
      if (*value == '"' && strlen (value) > 1)
        {
          value[strlen (value) - 1] = '\0';
          value++;
        }
      return g_strdup (value);
    }
  return NULL;
}

char *
bench_dup_machine (void)
{
  g_autofree char *model = dup_field ("/proc/cpuinfo", "model name", ':');
  g_autofree char *distribution = dup_field ("/etc/os-release", "PRETTY_NAME", '=');
  struct utsname system = { 0 };

  uname (&system);
  system.release[strcspn (system.release, "-")] = '\0';
  return g_strdup_printf (
      _ ("%u CPUs (%s), %.0f GiB, %s, %s %s"), tool_count_cpus (),
      model != NULL ? model : system.machine, (double) tool_count_memory () / (1 << 30),
      distribution != NULL ? distribution : "?", system.sysname, system.release);
}
