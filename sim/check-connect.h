/* check-connect.h: how does a kernel that says what it touches find whom to tell?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Apart from check.h, for who loads objects knows of nothing else here.
 */
#pragma once

/* When the object has been loaded, before any kernel of it is called: its PTO2AccessTable. Any
 * thread. */
void pto_check_connect (void *table);
