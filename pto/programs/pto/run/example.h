/* example.h: how is an example made ready to run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "manifest.h"
#include "reference.h"

G_BEGIN_DECLS

/* A platform that is not there is an option that was typed wrong, unless it is a file. */
PtoPlatform *example_find_platform (const char *platform, GError **error);

/* --- parameters: where they come from, and what was typed --- */

gboolean example_is_in_environment (const char *parameter);
/* --set NAME=VALUE */
gboolean example_was_set (char **set, const char *parameter);
/* From the command line: what is refused there was typed wrong. */
gboolean example_set_option (PtoWorker *worker, const char *option, const char *name,
                             const char *value, GError **error);
gboolean example_set_options (PtoWorker *worker, const Manifest *manifest, const ManifestCase *item,
                              char **set, GError **error);
/* --schedule STRING, which may be NULL. */
gboolean example_set_schedule (PtoWorker *worker, const char *schedule, GError **error);
/* Those that the case names, where the environment does not. */
gboolean example_set_case (PtoWorker *worker, Manifest *manifest, const ManifestCase *item,
                           GError **error);

/* --- ready --- */

typedef struct
{
  PtoCallableHandle *handle;
  Reference *reference;
  double build_seconds;
  guint n_built; /* objects that the compiler had to make: kernels and orchestration */
} Example;

/* Starts the worker, builds what it is to run, makes the arguments. */
gboolean example_start (Example *example, PtoWorker *worker, Manifest *manifest,
                        const ManifestCase *item, GError **error);
void example_clear (Example *example);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Example, example_clear)

/* An array's buffer on the device, and its tensor among the arguments; NULL with an error. */
PtoBuffer *example_add_array (PtoWorker *worker, const ReferenceArgument *argument,
                              PtoTaskArgs *args, GError **error);

G_END_DECLS
