/* explorer.c: how is every way tried in which the steps of a few actors may follow each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "explorer.h"

#include "../../pto/exec/exec-private.h"
#include "../short.h"

#include <glib.h>
#include <string.h>

#define FEW_PATHS 100u
/* Random choices of 10 that take the first option, so that preemptions come late in a path. */
#define FIRST_OF_10 8u

/* What is explored may call something else by this name. */
#undef pto_yield
void pto_yield (struct pto_exec *exec);

struct explorer explorer;

static uint64_t generator[4];

void
explorer_init (uint32_t bound, uint32_t stale_bound)
{
  memset (&explorer, 0, sizeof explorer);
  explorer.bound = bound;
  explorer.stale_bound = stale_bound;
  explorer.few = RUN_SHORT;
  for (uint32_t i = 0; i < 4; i++)
    generator[i] = i + 1;
}

void
explorer_point (void)
{
  if (!explorer.on)
    return;
  explorer.yielding = true;
  pto_yield (explorer.exec);
  explorer.yielding = false;
}

void
explorer_pause (void)
{
  if (!explorer.on)
    return;
  explorer.pausing = true;
  pto_yield (explorer.exec);
  explorer.pausing = false;
}

static uint32_t
take_option (uint32_t width)
{
  if (width == 1)
    return 0;
  g_assert_cmpuint (explorer.depth, <, EXPLORER_STEPS_MAX);
  if (explorer.depth == explorer.length)
    {
      bool first = !explorer.few || pto_rng_below (generator, 10) < FIRST_OF_10;

      explorer.path[explorer.length] = first ? 0 : (uint16_t) pto_rng_below (generator, width);
      explorer.width[explorer.length++] = (uint16_t) width;
    }
  /* The same choices lead to the same place. */
  g_assert_cmpuint (explorer.width[explorer.depth], ==, width);
  return explorer.path[explorer.depth++];
}

uint32_t
explorer_choose (void *data, uint32_t n)
{
  bool yielding = explorer.yielding;
  uint32_t option;

  (void) data;
  explorer.yielding = false;
  if (!explorer.on || explorer.pausing)
    {
      explorer.pausing = false;
      return 0;
    }
  option = take_option (yielding && explorer.preemptions >= explorer.bound ? 1 : n);
  if (!yielding)
    return option;
  explorer.preemptions += option > 0;
  return option == 0 ? n - 1 : option - 1;
}

#ifdef PTO_WEAK
static uint32_t
choose_age (uint32_t n)
{
  uint32_t age = take_option (explorer.stale < explorer.stale_bound ? n : 1);

  explorer.stale += age > 0;
  return age;
}
#endif

void
explorer_start (uint32_t (*self) (void))
{
#ifdef PTO_WEAK
  static struct weak_machine machine;

  machine = (struct weak_machine){ .self = self, .point = explorer_point, .choose = choose_age };
  weak_begin (&machine);
#else
  (void) self;
#endif
  explorer.on = true;
}

void
explorer_stop (void)
{
#ifdef PTO_WEAK
  weak_end ();
#endif
  explorer.on = false;
}

bool
explorer_advance (void)
{
  explorer.schedules++;
  explorer.depth = explorer.preemptions = explorer.stale = 0;
  if (explorer.few)
    {
      explorer.length = 0;
      return explorer.schedules < FEW_PATHS;
    }
  while (explorer.length > 0
         && explorer.path[explorer.length - 1] + 1 == explorer.width[explorer.length - 1])
    explorer.length--;
  if (explorer.length == 0)
    return false;
  explorer.path[explorer.length - 1]++;
  return true;
}
