/* example.h: how is an example made ready to run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "manifest.h"
#include "reference.h"

G_BEGIN_DECLS

/* A case on a worker. */
typedef struct
{
  Manifest *manifest;
  const ManifestCase *item;
  PtoPlatform *platform;
  PtoWorker *worker;
  /* Once it has started. */
  PtoCallableHandle *handle;
  Reference *reference;
  double build_seconds;
  guint n_built; /* objects that the compiler had to make: kernels and orchestration */
} Example;

/* Finds all of it. item: NULL: the manifest's. platform: NULL: the usual one; one that is not there
 * is an option that was typed wrong, unless it is a file. */
gboolean example_open (Example *example, const char *directory, const char *item,
                       const char *platform, GError **error);
/* Starts the worker, builds what it is to run, makes the arguments. */
gboolean example_start (Example *example, GError **error);
void example_clear (Example *example);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Example, example_clear)

/* Of each argument the buffer on the device, as the reference has made it, NULL for a scalar; all
 * of them are added to args. To be freed before the worker. NULL with an error. */
GPtrArray *example_add_arguments (const Example *example, PtoTaskArgs *args, GError **error);
/* A row of a table. */
void example_print_case (const Example *example);

/* --- parameters: where they come from, and what was typed --- */

gboolean example_is_in_environment (const char *parameter);
/* --set NAME=VALUE */
gboolean example_was_set (char **set, const char *parameter);
/* From the command line: what is refused there was typed wrong. value: NULL: it was not given. */
gboolean example_set_option (Example *example, const char *option, const char *value,
                             GError **error);
gboolean example_set_options (Example *example, char **set, GError **error);
/* --schedule STRING, which may be NULL. */
gboolean example_set_schedule (Example *example, const char *schedule, GError **error);
/* Those that the case names, where the environment does not. */
gboolean example_set_case (Example *example, GError **error);

G_END_DECLS
