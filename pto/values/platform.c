/* platform.c: which chips can be simulated?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Those of the simulator by their names, and those that a file describes by its path: no name has a
 * slash or a dot.
 */
#include "config.h"

#include "platform.h"

#include "base/error.h"
#include "base/getter.h"
#include "base/key-file.h"
#include "common/text.h"

#include <string.h>

#define MAX_CLUSTERS 1024u
#define MAX_CORES_PER_CLUSTER 16u
#define MAX_THREADS 64u
#define MAX_COST 1000000000u /* a second */

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
  struct pto_platform raw; /* its texts are the platform's */
};

G_DEFINE_BOXED_TYPE (PtoPlatform, pto_platform, pto_platform_copy, pto_platform_free)

static PtoPlatform *
platform_new (const struct pto_platform *raw, const char *name, const char *description)
{
  PtoPlatform *platform = g_new (PtoPlatform, 1);

  platform->raw = *raw;
  platform->raw.name = g_strdup (name);
  platform->raw.description = g_strdup (description);
  return platform;
}

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

gboolean
pto_platform_is_file (const char *name)
{
  return strpbrk (name, "/.") != NULL;
}

/* --- a chip in a file --- */

/* A key of a group: where its number goes, and what it may be. */
typedef struct
{
  const char *group;
  const char *name;
  goffset offset; /* in struct pto_platform */
  guint64 min;
  guint64 max;
} Key;

#define KEY(group, name, field, min, max)                               \
  {                                                                     \
    group, name, G_STRUCT_OFFSET (struct pto_platform, field), min, max \
  }

static const Key keys[] = {
  KEY ("platform", "clusters", clusters, 1, MAX_CLUSTERS),
  KEY ("platform", "aic-per-cluster", aic_per_cluster, 1, MAX_CORES_PER_CLUSTER),
  KEY ("platform", "aiv-per-cluster", aiv_per_cluster, 1, MAX_CORES_PER_CLUSTER),
  KEY ("platform", "aicpu-threads", aicpu_threads, 2, MAX_THREADS),
  KEY ("costs", "submit", costs.submit, 0, MAX_COST),
  KEY ("costs", "submit-argument", costs.submit_argument, 0, MAX_COST),
  KEY ("costs", "dispatch", costs.dispatch, 0, MAX_COST),
  KEY ("costs", "poll", costs.poll, 0, MAX_COST),
  KEY ("costs", "fanout", costs.fanout, 0, MAX_COST),
  KEY ("costs", "start", costs.start, 0, MAX_COST),
  KEY ("costs", "finish", costs.finish, 0, MAX_COST),
  KEY ("costs", "pipe", costs.pipe, 0, MAX_COST),
};

G_STATIC_ASSERT (sizeof (struct pto_platform_costs) == 8 * sizeof (guint32)); /* all can be said */

static gboolean
get_number (const PtoManifest *manifest, const char *group, const char *key, guint64 min,
            guint64 max, guint64 *value, GError **error)
{
  g_autofree char *text = pto_manifest_dup_value (manifest, group, key);

  if (text == NULL || g_ascii_string_to_unsigned (text, 10, min, max, value, NULL))
    return TRUE;
  return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                            _ ("[%s]: %s=%s: a number from %" PRIu64 " to %" PRIu64 " wanted"),
                            group, key, text, min, max);
}

/* What has no effect is a mistake. */
static gboolean
check_names (const PtoManifest *manifest, GError **error)
{
  static const char *const known_groups[] = { "platform", "costs", NULL };
  g_auto (GStrv) groups = g_key_file_get_groups (manifest->keys, NULL);

  for (guint g = 0; groups[g] != NULL; g++)
    {
      g_autoptr (GPtrArray) known = g_ptr_array_new ();

      if (!g_strv_contains (known_groups, groups[g]))
        return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                                  _ ("unknown group [%s] (known: [platform], [costs])"), groups[g]);
      for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
        if (strcmp (keys[i].group, groups[g]) == 0)
          g_ptr_array_add (known, (gpointer) keys[i].name);
      if (strcmp (groups[g], "platform") == 0)
        for (const char *const *more
             = (const char *const[]){ "counter-hz", "description", "like", NULL };
             *more != NULL; more++)
          g_ptr_array_add (known, (gpointer) *more);
      g_ptr_array_add (known, NULL);
      if (!pto_manifest_check_keys (manifest, groups[g], (const char *const *) known->pdata, error))
        return FALSE;
    }
  if (g_key_file_has_group (manifest->keys, "platform"))
    return TRUE;
  return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                            _ ("the group [platform] is missing"));
}

/* The chip that it is like in all that is not said. */
static const struct pto_platform *
find_like (const PtoManifest *manifest, GError **error)
{
  g_autofree char *like = pto_manifest_dup_value (manifest, "platform", "like");
  g_auto (GStrv) names = pto_platform_list_names ();
  g_autofree char *all = g_strjoinv (", ", names);
  const struct pto_platform *found = like != NULL ? pto_platform_find (like) : *pto_platform_all ();

  if (found == NULL)
    pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                       _ ("[platform]: like=%s: one of %s wanted"), like, all);
  return found;
}

/* What no single number says. */
static gboolean
check_shape (const PtoManifest *manifest, const struct pto_platform *raw, GError **error)
{
  guint cores = raw->clusters * (raw->aic_per_cluster + raw->aiv_per_cluster);

  if (raw->aicpu_threads - 1 > raw->clusters)
    return pto_manifest_fail (
        manifest, PTO_ERROR_INVALID_ARGS, error,
        P_ ("[platform]: aicpu-threads=%u means %u scheduler for clusters=%u: "
            "each needs at least one",
            "[platform]: aicpu-threads=%u means %u schedulers for clusters=%u: "
            "each needs at least one",
            raw->aicpu_threads - 1),
        raw->aicpu_threads, raw->aicpu_threads - 1, raw->clusters);
  if (cores > PTO_CORES_MAX)
    return pto_manifest_fail (
        manifest, PTO_ERROR_INVALID_ARGS, error,
        _ ("[platform]: clusters=%u of %u + %u cores are %u: at most %u wanted"), raw->clusters,
        raw->aic_per_cluster, raw->aiv_per_cluster, cores, PTO_CORES_MAX);
  return TRUE;
}

static PtoPlatform *
load_file (const char *name, GError **error)
{
  g_auto (PtoManifest) manifest = { 0 };
  g_autofree char *path = g_canonicalize_filename (name, NULL);
  g_autofree char *description = NULL;
  const struct pto_platform *like;
  struct pto_platform raw;
  guint64 counter_hz;

  manifest.file = g_strdup (name);
  if (!pto_manifest_load (&manifest, error) || !check_names (&manifest, error)
      || (like = find_like (&manifest, error)) == NULL)
    return NULL;
  raw = *like;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      guint32 *field = G_STRUCT_MEMBER_P (&raw, keys[i].offset);
      guint64 value = *field;

      if (!get_number (&manifest, keys[i].group, keys[i].name, keys[i].min, keys[i].max, &value,
                       error))
        return NULL;
      *field = (guint32) value;
    }
  counter_hz = raw.counter_hz;
  if (!get_number (&manifest, "platform", "counter-hz", 1, G_GUINT64_CONSTANT (1000000000000),
                   &counter_hz, error)
      || !check_shape (&manifest, &raw, error))
    return NULL;
  raw.counter_hz = counter_hz;
  description = pto_manifest_dup_value (&manifest, "platform", "description");
  if (description == NULL)
    description = g_strdup_printf (
        "%u cluster%s of %u AIC + %u AIV, %u scheduler%s + 1 orchestrator, %" G_GUINT64_FORMAT
        " Hz counter",
        raw.clusters, raw.clusters == 1 ? "" : "s", raw.aic_per_cluster, raw.aiv_per_cluster,
        raw.aicpu_threads - 1, raw.aicpu_threads == 2 ? "" : "s", (guint64) raw.counter_hz);
  return platform_new (&raw, path, description);
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
 * @name: (type filename): the name of a platform, or the path of a file that describes one: what
 * has a slash or a dot is a path
 * @error: where to say why there is none
 *
 * Finds the platform of a name, or of a file.
 *
 * A file has the group `[platform]` with `clusters`, `aic-per-cluster`, `aiv-per-cluster`,
 * `aicpu-threads` (schedulers and one orchestrator), `counter-hz`, `description` and `like`, and
 * the group `[costs]` with what the chip's own steps take on its virtual clock, in ns: `submit` and
 * `submit-argument` (orchestrator, a task and each of its tensors), `dispatch`, `poll` and `fanout`
 * (scheduler: starting a task, finding one that has ended, each consumer), `start`, `finish` and
 * `pipe` (core). What it does not say is as on the platform that `like` names, `a2a3sim` at first.
 * It is read again by each worker that starts.
 *
 * Fails with %PTO_ERROR_NOT_FOUND and the names that exist, or when there is no such file; for
 * those of real chips, `a2a3` and `a5`, it says what is missing. Fails with
 * %PTO_ERROR_INVALID_ARGS for a file that says something else, naming group, key and what is
 * wanted. Thread safety: any thread.
 *
 * Returns: (transfer full): a platform
 *
 * Since: 0.1
 */
PtoPlatform *
pto_platform_lookup (const char *name, GError **error)
{
  const struct pto_platform *description;

  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (pto_platform_is_file (name))
    return load_file (name, error);
  description = pto_platform_find (name);
  if (description == NULL)
    {
      g_auto (GStrv) names = pto_platform_list_names ();
      g_autofree char *all = g_strjoinv (", ", names);

      g_set_error (
          error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
          is_hardware (name)
              ? _ ("platform \"%s\" is the chip itself: libpto has no module that drives it "
                   "(doc/hardware.md says what one has to provide); simulated are %s")
              : _ ("there is no platform \"%s\": choose one of %s, or the path of a file "
                   "that describes one"),
          name, all);
      return NULL;
    }
  return platform_new (description, description->name, description->description);
}

const struct pto_platform *
pto_platform_get_raw (const PtoPlatform *platform)
{
  return &platform->raw;
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
  g_return_val_if_fail (platform != NULL, NULL);

  return platform_new (&platform->raw, platform->raw.name, platform->raw.description);
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

  g_free ((gpointer) platform->raw.name);
  g_free ((gpointer) platform->raw.description);
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

  return core_type == PTO_CORE_AIC ? platform->raw.aic_per_cluster : platform->raw.aiv_per_cluster;
}

/**
 * pto_platform_to_string:
 * @platform: a platform
 *
 * Says in one line what it is: for messages, and as the text of the object in Python and
 * JavaScript.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_platform_to_string (const PtoPlatform *platform)
{
  const struct pto_platform *raw;

  g_return_val_if_fail (platform != NULL, NULL);

  raw = &platform->raw;
  return g_strdup_printf ("%s: %u AIC and %u AIV cores in %u cluster%s, %u AICPU threads",
                          platform->raw.name, raw->clusters * raw->aic_per_cluster,
                          raw->clusters * raw->aiv_per_cluster, raw->clusters,
                          raw->clusters == 1 ? "" : "s", raw->aicpu_threads);
}

/**
 * pto_platform_get_name:
 * @platform: a platform
 *
 * Gives the name that it is found by.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (type filename): a name, or the absolute path of a file
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (const char *, pto_platform_get_name, const PtoPlatform, platform,
                   platform->raw.name)

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
PTO_DEFINE_GETTER (const char *, pto_platform_get_description, const PtoPlatform, platform,
                   platform->raw.description)

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
PTO_DEFINE_GETTER (guint, pto_platform_get_n_clusters, const PtoPlatform, platform,
                   platform->raw.clusters)

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
PTO_DEFINE_GETTER (guint, pto_platform_get_n_aicpu_threads, const PtoPlatform, platform,
                   platform->raw.aicpu_threads)

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
PTO_DEFINE_GETTER (guint64, pto_platform_get_counter_frequency, const PtoPlatform, platform,
                   platform->raw.counter_hz)
