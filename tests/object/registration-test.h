/* registration-test.h: what do the tests of registrations share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "object-test.h"

#include "../../pto/callable/callable-handle.h"
#include "../../pto/callable/identity.h"
#include "../../pto/callable/registry.h"

#define PLATFORM "a2a3sim"

typedef struct
{
  char *dir;
} Fixture;

void set_up (Fixture *fixture, gconstpointer data);
void tear_down (Fixture *fixture, gconstpointer data);
PtoRegistration *make (PtoCallable *callable);
PtoRegistration *make_import (const char *path);
