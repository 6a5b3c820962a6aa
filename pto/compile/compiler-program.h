/* compiler-program.h: which compiler is there, and what is this machine to it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A command is words: the compiler's path, and its first arguments. What asks a compiler waits for
 * it, or until cancel_fd (-1: none) can be read.
 */
#pragma once

#include "process/command.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* Words of $CC, or of $CXX, or the first usual compiler that is there. */
GPtrArray *pto_compiler_find (gboolean is_c, GError **error);
/* What tells one compiler from another: the file itself, and what it says of itself. Asked once per
 * file. */
char *pto_compiler_identify (GPtrArray *command, GCancellable *cancellable, int cancel_fd,
                             GError **error);
/* What the compiler makes of flags such as -march=native: all that it defines for this machine.
 * Asked once per compiler, which identity tells from others. n_words: of the compiler itself in
 * command. NULL: it does not know such a flag, or was cancelled. */
char *pto_compiler_resolve_native (GPtrArray *command, guint n_words, const char *identity,
                                   const char *const *flags, GCancellable *cancellable,
                                   int cancel_fd);

/* While compilers are waited for on this thread, is_wanted is asked now and then, many times a
 * second: for who is watched for signs of life. FALSE ends them: G_IO_ERROR_CANCELLED. NULL: nobody
 * is to be asked any more. */
void pto_compiler_ask_while_waiting (gboolean (*is_wanted) (gpointer data), gpointer data);

/* Waits until something is to be done for one of them. FALSE with an error: it is not wanted any
 * more. */
gboolean pto_compiler_wait (struct pto_command *const *processes, guint n,
                            GCancellable *cancellable, int cancel_fd, GError **error);

/* The compiler's: its messages are in English, in which they are looked at. */
char **pto_compiler_get_environment (void);
/* What it wrote to standard error, as it can stand in a message. */
char *pto_compiler_dup_complaints (const struct pto_command *process);
/* A shell's answer to a program that is none. */
gboolean pto_compiler_could_be_run (const struct pto_command *process);

G_END_DECLS
