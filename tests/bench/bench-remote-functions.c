/* bench-remote-functions.c: what does a remote worker run whose connection is measured?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <pto/pto.h>

__attribute__ ((visibility ("default"))) gboolean nothing (PtoOrchestrator *orchestrator,
                                                           PtoTaskArgs *args, PtoCallConfig *config,
                                                           gpointer user_data, GError **error);

gboolean
nothing (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
         gpointer user_data, GError **error)
{
  return TRUE;
}
