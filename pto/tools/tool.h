/* tool.h: what do the parts of the pto program share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

#define TOOL_ERROR (tool_error_quark ())

typedef enum
{
  TOOL_ERROR_FAILED = 1, /* these are the program's exit status too */
  TOOL_ERROR_USAGE = 2
} ToolError;

/* The exit status after Ctrl-C, as shells have it. */
#define TOOL_INTERRUPTED (128 + 2)

GQuark tool_error_quark (void);

/* Each takes the words from its own name on, and gives FALSE after an error or a failed check. An
 * error that is not of TOOL_ERROR counts as TOOL_ERROR_FAILED. */
gboolean tool_run (char **words, GError **error);
gboolean tool_info (char **words, GError **error);
gboolean tool_trace (char **words, GError **error);
gboolean tool_whatif (char **words, GError **error);

/* Parses options; whatever goes wrong is TOOL_ERROR_USAGE. Takes the context. */
gboolean tool_parse_options (GOptionContext *context, char ***words, GError **error);
/* The help text of a command, on standard output. */
void tool_print_help (const char *command, GOptionContext *context);
GOptionContext *tool_run_get_options (void);
GOptionContext *tool_info_get_options (void);
GOptionContext *tool_trace_get_options (void);
GOptionContext *tool_whatif_get_options (void);

/* Once, before there are threads. From then on Ctrl-C cancels this cancellable. */
void tool_watch_interrupts (void);
GCancellable *tool_get_cancellable (void);
/* Then the program has said so, and says nothing else. */
gboolean tool_was_interrupted (void);

/* Can an option's file be made, and is it of the kind that its name says? Asked before long work. A
 * device or a pipe may have any name. @path may be NULL. */
gboolean tool_check_output (const char *option, const char *path, const char *suffix,
                            GError **error);

/* One more thing has gone wrong: the one before it is told now, the last by who gets the error.
 * Takes @failure, which may be NULL. */
void tool_add_failure (GError **failures, GError *failure);

/* "3 schedulers" */
char *tool_count_schedulers (guint n);
/* "12 345" */
char *tool_group_digits (guint64 value);
/* Prints an object and frees it. */
void tool_print_json (gpointer json_builder);

G_END_DECLS
