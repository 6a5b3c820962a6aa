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

/* As the kernel calls the processor; NULL: it does not. */
static char *
dup_model (void)
{
  g_autofree char *text = NULL;
  const char *line = NULL;

  if (g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL))
    line = strstr (text, "model name");
  line = line != NULL ? strchr (line, ':') : NULL;
  return line != NULL ? g_strstrip (g_strndup (line + 1, strcspn (line + 1, "\n"))) : NULL;
}

char *
bench_dup_machine (void)
{
  g_autofree char *model = dup_model ();
  g_autofree char *distribution = g_get_os_info (G_OS_INFO_KEY_PRETTY_NAME);
  struct utsname system = { 0 };

  uname (&system);
  system.release[strcspn (system.release, "-")] = '\0';
  return g_strdup_printf (
      _ ("%u CPUs (%s), %.0f GiB, %s, %s %s"), tool_count_cpus (),
      model != NULL ? model : system.machine, (double) tool_count_memory () / (1 << 30),
      distribution != NULL ? distribution : "?", system.sysname, system.release);
}
