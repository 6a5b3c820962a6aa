/* pto-platform.c: which chips can be simulated?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "../sim/platform.h"

#include "pto-error-private.h"
#include "pto-platform.h"

/**
 * PtoPlatform:
 *
 * The description of a chip that can be simulated: how many cores and control threads it has.
 *
 * Source: seed 000 section 2.3. Thread safety: any thread. A fork copies the value.
 *
 * Since: 0.1
 */
struct _PtoPlatform
{
  const struct pto_platform *description;
};

G_DEFINE_BOXED_TYPE (PtoPlatform, pto_platform, pto_platform_copy, pto_platform_free)

/**
 * pto_platform_list_names:
 *
 * Gives the names of all platforms.
 *
 * Thread safety: any thread.
 *
 * Returns: (array zero-terminated=1) (transfer full): names
 *
 * Since: 0.1
 */
char **
pto_platform_list_names (void)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (const struct pto_platform *const *p = pto_platform_all (); *p != NULL; p++)
    g_strv_builder_add (builder, (*p)->name);
  return g_strv_builder_end (builder);
}

/* The chips that are simulated, by their own names. */
static gboolean
is_hardware (const char *name)
{
  static const char *const names[] = { "a2", "a3", "a2a3", "a5", NULL };

  return g_strv_contains (names, name);
}

/**
 * pto_platform_lookup:
 * @name: the name of a platform
 * @error: where to say why there is none
 *
 * Finds the platform of a name.
 *
 * Fails with %PTO_ERROR_NOT_FOUND and the names that exist; for those of real chips, `a2a3` and
 * `a5`, it says what is missing. Thread safety: any thread.
 *
 * Returns: (transfer full): a platform
 *
 * Since: 0.1
 */
PtoPlatform *
pto_platform_lookup (const char *name, GError **error)
{
  const struct pto_platform *description;
  PtoPlatform *platform;

  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  description = pto_platform_find (name);
  if (description == NULL)
    {
      g_auto (GStrv) names = pto_platform_list_names ();
      g_autofree char *all = g_strjoinv (", ", names);

      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                   is_hardware (name)
                       ? "platform \"%s\" is the chip itself: libpto has no module that drives it "
                         "(doc/hardware.md says what one has to provide); simulated are %s"
                       : "there is no platform \"%s\": choose one of %s",
                   name, all);
      return NULL;
    }
  platform = g_new (PtoPlatform, 1);
  platform->description = description;
  return platform;
}

/**
 * pto_platform_copy:
 * @platform: a platform
 *
 * Makes a copy.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a platform
 *
 * Since: 0.1
 */
PtoPlatform *
pto_platform_copy (const PtoPlatform *platform)
{
  PtoPlatform *copy;

  g_return_val_if_fail (platform != NULL, NULL);

  copy = g_new (PtoPlatform, 1);
  *copy = *platform;
  return copy;
}

/**
 * pto_platform_free:
 * @platform: (transfer full): a platform
 *
 * Frees a platform.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_platform_free (PtoPlatform *platform)
{
  g_return_if_fail (platform != NULL);

  g_free (platform);
}

/**
 * pto_platform_get_cores_per_cluster:
 * @platform: a platform
 * @core_type: a type of core
 *
 * Gives the number of cores of a type in each cluster.
 *
 * Thread safety: any thread.
 *
 * Returns: cores
 *
 * Since: 0.1
 */
guint
pto_platform_get_cores_per_cluster (const PtoPlatform *platform, PtoCoreType core_type)
{
  g_return_val_if_fail (platform != NULL, 0);

  return core_type == PTO_CORE_AIC ? platform->description->aic_per_cluster
                                   : platform->description->aiv_per_cluster;
}

/**
 * pto_platform_get_name:
 * @platform: a platform
 *
 * Gives the name that it is found by.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a name
 *
 * Since: 0.1
 */
const char *
pto_platform_get_name (const PtoPlatform *platform)
{
  g_return_val_if_fail (platform != NULL, NULL);

  return platform->description->name;
}

/**
 * pto_platform_get_description:
 * @platform: a platform
 *
 * Gives one line about it.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): text
 *
 * Since: 0.1
 */
const char *
pto_platform_get_description (const PtoPlatform *platform)
{
  g_return_val_if_fail (platform != NULL, NULL);

  return platform->description->description;
}

/**
 * pto_platform_get_n_clusters:
 * @platform: a platform
 *
 * Gives the number of clusters.
 *
 * Thread safety: any thread.
 *
 * Returns: clusters
 *
 * Since: 0.1
 */
guint
pto_platform_get_n_clusters (const PtoPlatform *platform)
{
  g_return_val_if_fail (platform != NULL, 0);

  return platform->description->clusters;
}

/**
 * pto_platform_get_n_aicpu_threads:
 * @platform: a platform
 *
 * Gives the number of control threads: schedulers and one orchestrator.
 *
 * Thread safety: any thread.
 *
 * Returns: threads
 *
 * Since: 0.1
 */
guint
pto_platform_get_n_aicpu_threads (const PtoPlatform *platform)
{
  g_return_val_if_fail (platform != NULL, 0);

  return platform->description->aicpu_threads;
}

/**
 * pto_platform_get_counter_frequency:
 * @platform: a platform
 *
 * Gives the frequency of the chip's system counter.
 *
 * Thread safety: any thread.
 *
 * Returns: hertz
 *
 * Since: 0.1
 */
guint64
pto_platform_get_counter_frequency (const PtoPlatform *platform)
{
  g_return_val_if_fail (platform != NULL, 0);

  return platform->description->counter_hz;
}
