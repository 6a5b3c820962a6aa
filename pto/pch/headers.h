/* headers.h: which headers does each file of the objects read, and no file of ours changes?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Precompiled: to read them takes more time than to compile most files. Each file includes what it
 * needs itself, and compiles without this (-Db_pch=false).
 */
#include <gio/gio.h>

#include <string.h>
