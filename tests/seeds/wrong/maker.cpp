// maker.cpp: what does the host of seed 004 do wrong? PTO_TEST_HOST says it.
// SPDX-License-Identifier: LGPL-2.1-or-later
#include "device_runner.h"

static bool
is_asked (const char *what)
{
  return g_strcmp0 (g_getenv ("PTO_TEST_HOST"), what) == 0;
}

extern "C" int
InitRuntimeImpl (Runtime *runtime)
{
  if (is_asked ("throws"))
    throw std::runtime_error ("my own words");
  if (is_asked ("throws 3"))
    throw 3;
  if (is_asked ("edge"))
    runtime->add_successor (0, 1);
  if (is_asked ("task"))
    runtime->add_task ({}, 5);
  return is_asked ("gives") ? 3 : 0;
}

extern "C" int
FinalizeRuntimeImpl (Runtime *)
{
  return is_asked ("task") ? 2 : 0;
}
