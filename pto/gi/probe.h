/* probe.h: does the scanner work here? A declaration that it can read. */
/* SPDX-License-Identifier: LGPL-2.1-or-later */
int probe_answer (void);
