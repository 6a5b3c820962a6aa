/* tool.h: what do the parts of the pto program share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

#define TOOL_ERROR (tool_error_quark ())

/* These are the program's exit statuses, too. */
typedef enum
{
  TOOL_ERROR_FAILED = 1, /* it was done, and what was looked at is not as it must be */
  TOOL_ERROR_USAGE = 2,
  TOOL_ERROR_TROUBLE = 3 /* it could not be done */
} ToolError;

/* The exit status after Ctrl-C, as shells have it. */
#define TOOL_INTERRUPTED (128 + 2)
/* What shells show for a program that SIGPIPE has ended. */
#define TOOL_CUT (128 + 13)

GQuark tool_error_quark (void);
/* Set an error, of what was typed and of what could not be done. Both return FALSE. */
gboolean tool_refuse (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);
gboolean tool_fail (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* Takes an error of the library: an argument that it refuses is what was typed, which is named. */
gboolean tool_refuse_for (GError **error, const char *what, GError *failure);

/* --- the sub-commands: one table, which help, the manual page and completions are made of --- */

/* A word that an operand or the value of an option may be. */
typedef struct
{
  const char *name;
  const char *operands; /* what comes behind it; NULL: nothing */
  const char *purpose;
} ToolWord;

/* All texts are to be translated. A metavariable, of operands as of options, says what may stand
 * there, and completions go by it: alternatives are apart by "|". FILE is any file, FILE.ext and
 * such are files that end so, PREFIX is the beginning of a file's name, DIR is a directory,
 * PLATFORM and PARAMETER=VALUE are what the library lists, CASE is one of the manifest in DIR, PID
 * is a process that answers, @words_name is one of the words, what is in small letters is meant
 * literally. Anything else is somebody's own, such as NUMBER. */
typedef struct
{
  const char *name;
  const char *purpose;  /* a line of the list */
  const char *operands; /* NULL: none */
  const char *missing;  /* what is asked where none is given; NULL: it needs none */
  const char *summary;
  const char *notes; /* below the options; NULL: none */
  const GOptionEntry *entries;
  const char *words_title; /* NULL: there are none */
  const char *words_name;
  void (*add_words) (GArray *words); /* of ToolWord */
  /* Takes its own name and the operands, and gives FALSE after an error or a failed check. An error
   * that is not of TOOL_ERROR counts as TOOL_ERROR_TROUBLE. */
  gboolean (*run) (char **words, GError **error);
} ToolCommand;

extern const ToolCommand tool_bench_command;
extern const ToolCommand tool_calibrate_command;
extern const ToolCommand tool_cluster_command;
extern const ToolCommand tool_doctor_command;
extern const ToolCommand tool_explore_command;
extern const ToolCommand tool_help_command;
extern const ToolCommand tool_info_command;
extern const ToolCommand tool_new_command;
extern const ToolCommand tool_remote_command;
extern const ToolCommand tool_run_command;
extern const ToolCommand tool_top_command;
extern const ToolCommand tool_trace_command;
extern const ToolCommand tool_whatif_command;

/* Up to a NULL. */
extern const ToolCommand *const tool_commands[];
/* Those that stand before a command, and those that stand anywhere. */
extern const GOptionEntry tool_first_options[];
extern const GOptionEntry tool_common_options[];
extern const char tool_purpose[];

typedef struct
{
  int status;
  const char *means;
} ToolStatus;

/* Up to one that means nothing. */
extern const ToolStatus tool_statuses[];

/* Of ToolWord; empty where there are none. */
GArray *tool_list_words (const ToolCommand *command);
/* Does what was typed: @words begin with the program's name. Whatever is wrong with its options and
 * operands is TOOL_ERROR_USAGE. */
gboolean tool_dispatch (char ***words, GError **error);

/* The manual page, or a completion for a shell: "man", "bash", "zsh". */
gboolean tool_print_page (const char *kind, GError **error);
void tool_append_bash (GString *text);
void tool_append_zsh (GString *text);

/* The number that an option has; text: NULL: it was not given, and the value stays. */
gboolean tool_parse_number (const char *option, const char *text, guint64 least, guint64 most,
                            guint64 *value, GError **error);
/* From now on pto top can ask what this process does. Where that can not be had, a warning. */
void tool_listen (void);
/* What this thread says in between goes into what programs read, or what people of all languages
 * compare: it is in English. */
void tool_begin_document (void);
void tool_end_document (void);
/* The example of doc/own.md, which the build takes from there; up to one without a name. */
typedef struct
{
  const char *name;
  const char *text;
} ToolFile;
extern const ToolFile tool_new_files[];

/* What a shell calls this program: "pto" if it is found by that name, otherwise what it was called
 * by. */
const char *tool_program (void);
/* What the library tells, on standard output, with nothing in it that a terminal would obey. */
void tool_print (const char *text, gboolean is_json);

/* Once, before there are threads. From then on Ctrl-C cancels this cancellable. */
void tool_watch_interrupts (void);
GCancellable *tool_get_cancellable (void);
/* Then the program has said so, and says nothing else. */
gboolean tool_was_interrupted (void);

/* Can a file be made, and is it of the kind that its name says? Asked before long work. A device or
 * a pipe may have any name. @what: the option or the word that it is given with. @path may be NULL.
 */
gboolean tool_check_output (const char *what, const char *path, const char *suffix, GError **error);
/* Is it another file than this one, which is read, or written as well, whatever both are called?
 * Either path may be NULL. */
gboolean tool_check_other (const char *what, const char *path, const char *other, GError **error);

/* A line on standard error, without control characters: names in it are somebody's. */
void tool_print_error (const char *message);
/* One more thing has gone wrong: the one before it is told now, the last by who gets the error.
 * Takes @failure, which may be NULL. If one of them is TOOL_ERROR_FAILED, all of them are. */
void tool_add_failure (GError **failures, GError *failure);
int tool_get_status (const GError *error);

/* What this process may use, which is not always what the machine has; bytes. */
guint tool_count_cpus (void);
guint64 tool_count_memory (void);
/* "3 schedulers" */
char *tool_count_schedulers (guint n);
/* "12 345" */
char *tool_group_digits (guint64 value);
/* A line of a table; value: NULL: there is none. The second: one for each line of a text. */
void tool_print_row (const char *name, const char *value);
void tool_print_lines (const char *name, const char *text);
/* The first word of @value tells which it is, and has a colour. */
void tool_print_verdict (const char *name, gboolean is_good, const char *value);
void tool_print_row_printf (const char *name, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* From here to tool_release_output() what is printed waits, and then goes out in one piece: a
 * reader that ends after the first line has had all of it. */
void tool_hold_output (void);
/* Returns FALSE if it could not be written; main() reports that. */
gboolean tool_release_output (void);
/* Prints an object and frees it. */
void tool_print_json (gpointer json_builder);

G_END_DECLS
