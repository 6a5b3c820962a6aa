/* save-file.h: how does a file get there as a whole or not at all?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Also compiled into the pto program, which writes files of its own in the same way.
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Can a file be made there? Asked before long work, not after it. Of the domain G_IO_ERROR. */
gboolean pto_save_check (const char *path, GError **error);
/* A regular file is replaced only when the new one is complete, and what was begun is removed; a
 * device or a pipe is written to. A file that is new gets @mode without the umask, another one
 * keeps its own. No signal comes of it: a full disk, a limit of file sizes and a pipe that nobody
 * reads are errors, of the domain G_IO_ERROR. Any thread. */
gboolean pto_save (const char *path, const char *data, gsize length, int mode, GError **error);

/* Why a file can not be read, without its name and GLib's way to say it: of an error of
 * g_file_get_contents(). */
const char *pto_save_explain_read (const GError *error);

G_END_DECLS
