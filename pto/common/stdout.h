/* stdout.h: how does a program end whose standard output cannot be written?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For the programs only. The library leaves signals and streams to the program that uses it.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Call it first in main(). Opens /dev/null in place of each standard stream that is closed, so that
 * no other file takes its number. Ignores SIGPIPE and SIGXFSZ, so that a write reports an error. */
void pto_stdout_begin (void);
/* From now on standard output is this program's alone. What code that it runs prints there, and in
 * children, goes to standard error. Call it before the first thread. */
void pto_stdout_divert (void);
/* Prints and flushes. After an error, which is kept, it prints nothing. */
void pto_stdout_print (const char *text);
/* Call it after EPIPE of a file that may be standard output by another name, such as /dev/stdout.
 */
void pto_stdout_look (void);
/* Flushes what printf() has left. Returns 0 or the first error, as errno has it. */
int pto_stdout_finish (void);
/* Returns TRUE if that error is EPIPE: the reader has gone. Any thread; the rest is for the main
 * thread. */
gboolean pto_stdout_is_cut (void);
/* Ends this process as a write to a pipe without a reader does, whatever this process inherited for
 * SIGPIPE. Remove temporary files and end children before. */
_Noreturn void pto_stdout_end_by_pipe (void);

G_END_DECLS
