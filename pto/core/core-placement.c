/* core-placement.c: where do the members of a task run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "core-placement.h"

#include "exec/translate.h"

#include <sched.h>

/* Of a turn: above them is how far its priority is below the highest. */
#define TURN_BITS 56

/* --- which places there are --- */

static bool
reserve (void **items, uint32_t *n, uint32_t wanted, size_t size)
{
  char *grown;

  if (wanted <= *n)
    return true;
  grown = realloc (*items, wanted * size);
  if (grown == NULL)
    return false;
  memset (grown + *n * size, 0, (wanted - *n) * size);
  *items = grown;
  *n = wanted;
  return true;
}

static bool
register_place (struct pto_line *line, struct pto_berth *berth)
{
  const struct pto_endpoint *endpoint = berth->endpoint;
  struct pto_cohort *cohort;

  if (!reserve ((void **) &line->places, &line->n_places, endpoint->number + 1,
                sizeof *line->places))
    return false;
  line->places[endpoint->number] = berth;
  line->n_of[endpoint->queue]++;
  line->n_left[endpoint->queue]++;
  if (endpoint->cohort == PTO_COHORT_NONE)
    return true;
  if (!reserve ((void **) &line->cohorts, &line->n_cohorts, endpoint->cohort + 1,
                sizeof *line->cohorts))
    return false;
  cohort = &line->cohorts[endpoint->cohort];
  cohort->of = berth->of;
  cohort->n_of[endpoint->queue]++;
  berth->neighbour = cohort->first;
  cohort->first = berth;
  return true;
}

bool
pto_places_init (struct pto_places *places, struct pto_engine *engine, uint32_t index,
                 struct pto_endpoint **endpoints, uint32_t n_endpoints)
{
  uint32_t capacity = 1;

  places->index = index;
  places->endpoints = endpoints;
  places->n_endpoints = n_endpoints;
  while (capacity < n_endpoints)
    capacity *= 2;
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    {
      places->idle[queue].capacity = capacity;
      places->idle[queue].items = calloc (capacity, sizeof (uint32_t));
      if (places->idle[queue].items == NULL)
        return false;
    }
  places->berths = calloc (n_endpoints, sizeof *places->berths);
  if (places->berths == NULL)
    return false;
  /* A cohort lists them from the last one on: from its first one on, this way. */
  for (uint32_t i = n_endpoints; i-- > 0;)
    {
      struct pto_endpoint *endpoint = endpoints[i];

      endpoint->index = i;
      endpoint->running = NULL;
      places->berths[i] = (struct pto_berth){ .endpoint = endpoint, .of = places };
      if (!register_place (&engine->line, &places->berths[i]))
        return false;
    }
  for (uint32_t i = 0; i < n_endpoints; i++)
    if (!endpoints[i]->away)
      pto_idle_push (&places->idle[endpoints[i]->queue], i);
  return true;
}

void
pto_places_destroy (struct pto_places *places, struct pto_engine *engine)
{
  for (uint32_t queue = 0; queue < PTO_QUEUES_MAX; queue++)
    {
      free (places->idle[queue].items);
      places->idle[queue].items = NULL;
    }
  free (places->berths);
  places->berths = NULL;
  /* A machine is taken down as a whole. */
  if (engine != NULL)
    pto_line_clear (&engine->line);
}

/* --- can there be such places? --- */

/* Says what makes a block fit. */
static const char *
advise_larger (const struct pto_engine *engine)
{
  return engine->config.larger_cohorts != NULL ? _ (engine->config.larger_cohorts)
                                               : _ ("ask for less");
}

/* Says what makes so many cohorts. */
static const char *
advise_more (const struct pto_engine *engine, uint64_t n_cohorts, char *text, size_t size)
{
  if (engine->config.more_places == NULL || n_cohorts > engine->config.most_cohorts)
    return _ ("ask for less");
  snprintf (text, size, _ ("%s, at least %" PRIu64), _ (engine->config.more_places), n_cohorts);
  return text;
}

static bool
admit_names (struct pto_engine *engine, uint32_t kernel, const struct pto_wish *wish,
             uint32_t n_blocks)
{
  const struct pto_line *line = &engine->line;

  for (uint32_t m = 0; m < wish->n_members; m++)
    {
      const struct pto_need *need = &wish->members[m];

      if (need->place == PTO_PLACE_ANY)
        continue;
      if (need->place >= line->n_places || line->places[need->place] == NULL
          || line->places[need->place]->endpoint->queue != need->queue)
        return pto_engine_refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                                  _ ("member %u is for place %u, which is no %s of this machine"),
                                  m, need->place, engine->config.queue_names[need->queue]);
      if (n_blocks > 1)
        return pto_engine_refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                                  _ ("member %u names its place, but the task has %u blocks"), m,
                                  n_blocks);
      if (wish->together)
        return pto_engine_refuse (
            engine, kernel, PTO_STATUS_INVALID_ARGS,
            _ ("member %u names its place, but members in one %s name the %s"), m,
            _ (pto_engine_cohort_name (engine)), _ (pto_engine_cohort_name (engine)));
      for (uint32_t other = 0; other < m; other++)
        if (wish->members[other].place == need->place)
          return pto_engine_refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                                    _ ("members %u and %u are both for place %u and begin at once"),
                                    other, m, need->place);
    }
  return true;
}

/* How many blocks have their places there at one time? */
static uint32_t
n_fitting (const uint32_t *n_of, const uint32_t *wanted)
{
  uint32_t n = UINT32_MAX;

  for (uint32_t queue = 0; queue < PTO_QUEUES_MAX; queue++)
    if (wanted[queue] > 0 && n_of[queue] / wanted[queue] < n)
      n = n_of[queue] / wanted[queue];
  return n;
}

/* "1 AIC and 2 AIV" */
static void
describe_block (const struct pto_engine *engine, const uint32_t *wanted, char *text, size_t size)
{
  text[0] = '\0';
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (wanted[queue] > 0)
      {
        size_t length = strlen (text);

        snprintf (text + length, size - length, "%s%u %s", length > 0 ? _ (" and ") : "",
                  wanted[queue], engine->config.queue_names[queue]);
      }
}

static bool
admit_cohort (struct pto_engine *engine, uint32_t kernel, const struct pto_wish *wish,
              const uint32_t *wanted)
{
  const struct pto_line *line = &engine->line;
  uint32_t n_at_once = wish->n_at_once > 1 ? wish->n_at_once : 1;
  uint64_t fitting = 0;
  uint32_t most = 0; /* in one cohort */
  char text[128];
  char more[128];

  if (wish->cohort != PTO_COHORT_NONE
      && (wish->cohort >= line->n_cohorts || line->cohorts[wish->cohort].of == NULL))
    return pto_engine_refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                              _ ("it is for %s %u; this machine has %u: %s"),
                              _ (pto_engine_cohort_name (engine)), wish->cohort, line->n_cohorts,
                              advise_more (engine, (uint64_t) wish->cohort + 1, more, sizeof more));
  for (uint32_t c = 0; c < line->n_cohorts; c++)
    if (wish->cohort == PTO_COHORT_NONE || wish->cohort == c)
      {
        uint32_t n = n_fitting (line->cohorts[c].n_of, wanted);

        fitting += n;
        most = max_of (most, n);
      }
  if (fitting >= n_at_once)
    return true;
  describe_block (engine, wanted, text, sizeof text);
  if (n_at_once == 1 || most == 0)
    return pto_engine_refuse (engine, kernel, PTO_STATUS_INVALID_ARGS, _ ("no %s has %s: %s"),
                              _ (pto_engine_cohort_name (engine)), text, advise_larger (engine));
  return pto_engine_refuse (
      engine, kernel, PTO_STATUS_SYNC_START,
      _ ("%u blocks of %s begin at once; %s%s has places for %" PRIu64 ": %s"), n_at_once, text,
      wish->cohort == PTO_COHORT_NONE ? _ ("this machine") : _ ("its "),
      wish->cohort == PTO_COHORT_NONE ? "" : _ (pto_engine_cohort_name (engine)), fitting,
      wish->cohort == PTO_COHORT_NONE
          ? advise_more (engine, (n_at_once + UINT64_C (1) * most - 1) / most, more, sizeof more)
          : advise_larger (engine));
}

/* The number of cohorts like the largest ones that have these places together; UINT64_MAX: none
 * has a place of a kind. */
static uint64_t
n_cohorts_for (const struct pto_line *line, const uint32_t *wanted)
{
  uint64_t n = 0;

  for (uint32_t queue = 0; queue < PTO_QUEUES_MAX; queue++)
    {
      uint32_t most = 0;

      for (uint32_t c = 0; c < line->n_cohorts; c++)
        most = max_of (most, line->cohorts[c].n_of[queue]);
      if (wanted[queue] > 0 && most == 0)
        return UINT64_MAX;
      if (wanted[queue] > 0 && (wanted[queue] - 1) / most + UINT64_C (1) > n)
        n = (wanted[queue] - 1) / most + UINT64_C (1);
    }
  return n;
}

bool
pto_place_admit (struct pto_engine *engine, uint32_t kernel, const struct pto_wish *wish,
                 uint32_t n_blocks)
{
  uint32_t wanted[PTO_QUEUES_MAX] = { 0 };
  char more[128];

  if (wish->n_members == 0)
    return pto_engine_refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                              _ ("a task has at least one member"));
  for (uint32_t m = 0; m < wish->n_members; m++)
    {
      if (wish->members[m].queue >= engine->config.n_queues)
        return pto_engine_refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                                  _ ("member %u is for places of kind %u; there are %u kinds"), m,
                                  wish->members[m].queue, engine->config.n_queues);
      wanted[wish->members[m].queue]++;
    }
  if (!admit_names (engine, kernel, wish, n_blocks))
    return false;
  if (wish->together)
    {
      for (uint32_t queue = 0; queue < PTO_QUEUES_MAX && wish->n_at_once > 1; queue++)
        wanted[queue] /= wish->n_at_once;
      return admit_cohort (engine, kernel, wish, wanted);
    }
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (wanted[queue] > engine->line.n_of[queue])
      return pto_engine_refuse (
          engine, kernel, PTO_STATUS_SYNC_START,
          _ ("%u members need %s at once; this machine has %u: %s"), wanted[queue],
          engine->config.queue_names[queue], engine->line.n_of[queue],
          advise_more (engine, n_cohorts_for (&engine->line, wanted), more, sizeof more));
  return true;
}

/* Who names all of its places can wait at each of them: of one kind, since those who need several
 * stand behind each other. */
static uint32_t
lane_of (const struct pto_party *party)
{
  uint32_t kind = party->members[0].need.queue;
  bool named = !party->together;

  for (uint32_t m = 0; m < party->n_members; m++)
    named = named && party->members[m].need.place != PTO_PLACE_ANY;
  for (uint32_t m = 0; m < party->n_members; m++)
    if (party->members[m].need.queue != kind)
      return PTO_LANE_MIXED;
  return named ? PTO_LANE_NONE : kind;
}

void
pto_party_init (struct pto_party *party, const struct pto_wish *wish, uint32_t n_blocks)
{
  memset (party, 0, sizeof *party);
  pto_parts_init (&party->parts, n_blocks, n_blocks * wish->n_members);
  atomic_init (&party->course, PTO_PARTY_UNDECIDED);
  party->together = wish->together;
  party->cohort = wish->cohort;
  party->n_members = wish->n_members;
  party->block = wish->n_members / (wish->n_at_once > 1 ? wish->n_at_once : 1);
  for (uint32_t m = 0; m < wish->n_members; m++)
    {
      party->members[m] = (struct pto_party_member){ .need = wish->members[m], .number = m };
      if (m < party->block || !wish->together)
        party->n_of[wish->members[m].queue]++;
    }
  party->lane = lane_of (party);
}

/* --- the line --- */

/* Under the lock: that scheduler is to look. The bell that is rung behind it brings the word:
 * pto_engine_wake() adds to it (release), and its scheduler has read it (acquire) before it looks.
 */
static void
call (struct pto_engine *engine, uint32_t index, uint64_t *rung)
{
  pto_store_relaxed (&engine->words[index]->called, 1);
  *rung |= UINT64_C (1) << index;
}

/* Another task is the first in a lane: what nobody wanted may be wanted now. */
static void
call_all (struct pto_engine *engine, uint64_t *rung)
{
  if (engine->line.lanes.waiting != 0 || engine->line.n_named > 0 || engine->line.n_bound > 0)
    for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
      call (engine, i, rung);
}

static void
ring (struct pto_engine *engine, uint64_t rung)
{
  for (; rung != 0; rung &= rung - 1)
    pto_engine_wake (engine, (uint32_t) __builtin_ctzll (rung));
}

static struct pto_party *
party_of (struct pto_party_member *member)
{
  return (struct pto_party *) ((char *) (member - member->number)
                               - offsetof (struct pto_party, members));
}

/* The cohort that it is for, or NULL. */
static struct pto_cohort *
cohort_of (const struct pto_line *line, const struct pto_party *party)
{
  return party->together && party->cohort != PTO_COHORT_NONE ? &line->cohorts[party->cohort] : NULL;
}

/* Whether somebody is in a lane there has changed. */
static void
note_waiting (struct pto_line *line, struct pto_lanes *lanes, struct pto_cohort *cohort,
              uint32_t lane)
{
  uint32_t change;

  lanes->waiting ^= 1u << lane;
  if (cohort == NULL)
    return;
  change = (lanes->waiting >> lane & 1) != 0 ? 1 : UINT32_MAX;
  line->n_bound += change;
  ((struct pto_places *) cohort->of)->n_bound += change;
}

/* Gives whether it is the first one there. */
static bool
enter_lane (struct pto_line *line, struct pto_party *party)
{
  struct pto_cohort *cohort = cohort_of (line, party);
  struct pto_lanes *lanes = cohort != NULL ? &cohort->lanes : &line->lanes;
  struct pto_lane *lane = &lanes->of[party->lane];
  struct pto_slot **at = &lane->first;

  party->next = NULL;
  if ((lanes->waiting >> party->lane & 1) == 0)
    {
      note_waiting (line, lanes, cohort, party->lane);
      *lane = (struct pto_lane){ party->slot, party->slot, PTO_COHORT_NONE };
      return true;
    }
  if (lane->last->party->turn < party->turn)
    {
      lane->last->party->next = party->slot;
      lane->last = party->slot;
      return false;
    }
  while ((*at)->party->turn < party->turn)
    at = &(*at)->party->next;
  party->next = *at;
  *at = party->slot;
  if (lane->first != party->slot)
    return false;
  lane->cohort = PTO_COHORT_NONE;
  return true;
}

static void
leave_lane (struct pto_line *line, const struct pto_party *party)
{
  struct pto_cohort *cohort = cohort_of (line, party);
  struct pto_lanes *lanes = cohort != NULL ? &cohort->lanes : &line->lanes;
  struct pto_lane *lane = &lanes->of[party->lane];

  lane->first = party->next;
  lane->cohort = PTO_COHORT_NONE;
  if (lane->first == NULL)
    note_waiting (line, lanes, cohort, party->lane);
}

/* Whether somebody waits for it by name has changed. */
static void
note_named (struct pto_line *line, const struct pto_berth *berth, bool named)
{
  uint32_t index = berth->endpoint->index;
  uint64_t bit = UINT64_C (1) << (index % 64);

  berth->of->named[index / 64] ^= bit;
  berth->of->n_named += named ? 1 : UINT32_MAX;
  line->n_named += named ? 1 : UINT32_MAX;
}

static void
wait_at (struct pto_line *line, struct pto_berth *berth, struct pto_party_member *member)
{
  struct pto_party_member *before = berth->last;

  if (berth->first == NULL)
    note_named (line, berth, true);
  while (before != NULL && party_of (before)->turn > party_of (member)->turn)
    before = before->previous;
  member->previous = before;
  member->next = before != NULL ? before->next : berth->first;
  if (member->next != NULL)
    member->next->previous = member;
  else
    berth->last = member;
  if (before != NULL)
    before->next = member;
  else
    berth->first = member;
}

static void
leave_berth (struct pto_line *line, struct pto_berth *berth, struct pto_party_member *member)
{
  if (member->previous != NULL)
    member->previous->next = member->next;
  else
    berth->first = member->next;
  if (member->next != NULL)
    member->next->previous = member->previous;
  else
    berth->last = member->previous;
  if (berth->first == NULL)
    note_named (line, berth, false);
}

/* --- keeping and granting places; under the lock --- */

static uint32_t
n_words (const struct pto_places *places)
{
  return (places->n_endpoints + 63) / 64;
}

static bool
is_free (const struct pto_berth *berth, bool patient)
{
  uint32_t index = berth->endpoint->index;

  return berth->endpoint->running == NULL && !berth->endpoint->away && !berth->kept
         && !(patient && (berth->of->lately[index / 64] >> (index % 64) & 1) != 0);
}

/* Out of the idle ones. */
static void
take (struct pto_berth *berth)
{
  struct pto_idle_ring *idle = &berth->of->idle[berth->endpoint->queue];
  uint32_t mask = idle->capacity - 1;
  uint32_t i = idle->tail;

  while (idle->items[i & mask] != berth->endpoint->index)
    i++;
  for (; i + 1 != idle->head; i++)
    idle->items[i & mask] = idle->items[(i + 1) & mask];
  idle->head--;
}

static void
keep (struct pto_berth *berth, struct pto_party *party, struct pto_party_member *member)
{
  take (berth);
  berth->kept = true;
  berth->keeper = member;
  member->kept = berth;
  party->n_kept++;
}

static void
grant (struct pto_engine *engine, struct pto_berth *berth, struct pto_slot *slot, uint32_t member,
       uint32_t block, uint64_t *rung)
{
  berth->keeper = NULL;
  berth->granted = slot;
  berth->endpoint->member = member;
  berth->endpoint->block = block;
  berth->endpoint->n_blocks = 1;
  berth->next_granted = berth->of->granted;
  berth->of->granted = berth;
  call (engine, berth->of->index, rung);
}

/* The places of its members from that one on are idle again. */
static void
give_up (struct pto_engine *engine, struct pto_party *party, uint32_t from, uint64_t *rung)
{
  for (uint32_t m = from; m < party->n_members; m++)
    if (party->members[m].kept != NULL)
      {
        grant (engine, party->members[m].kept, NULL, 0, 0, rung);
        party->members[m].kept = NULL;
        party->n_kept--;
      }
}

/* Whose turn is later keeps nothing: then nobody waits for a place of one who waits for his. Who
 * comes with the lowest priority comes after all who are there. */
static void
take_back (struct pto_engine *engine, uint64_t turn, uint64_t *rung)
{
  const struct pto_line *line = &engine->line;

  for (uint32_t p = 0; p < line->n_places; p++)
    {
      struct pto_berth *berth = line->places[p];

      if (berth != NULL && berth->keeper != NULL && party_of (berth->keeper)->turn > turn)
        give_up (engine, party_of (berth->keeper), 0, rung);
    }
}

void
pto_place_enter (struct pto_engine *engine, struct pto_slot *slot)
{
  struct pto_line *line = &engine->line;
  struct pto_party *party = slot->party;
  uint64_t rung = 0;

  pto_engine_lock (engine, &engine->line.lock);
  party->slot = slot;
  party->turn = line->turn++ | (uint64_t) (PTO_MAX_PRIORITY - slot->priority) << TURN_BITS;
  if (slot->priority > 0)
    take_back (engine, party->turn, &rung);
  if (party->lane != PTO_LANE_NONE)
    {
      const struct pto_cohort *cohort = cohort_of (line, party);

      if (enter_lane (line, party) && cohort == NULL)
        call_all (engine, &rung);
      else if (cohort != NULL)
        call (engine, cohort->of->index, &rung);
    }
  else
    for (uint32_t m = 0; m < party->n_members; m++)
      {
        struct pto_berth *berth = line->places[party->members[m].need.place];

        wait_at (line, berth, &party->members[m]);
        call (engine, berth->of->index, &rung);
      }
  pto_store_release (&engine->line.lock, 0);
  ring (engine, rung);
}

void
pto_place_enter_anew (struct pto_engine *engine, struct pto_slot *slot)
{
  struct pto_party *party = slot->party;
  uint32_t n_blocks = party->parts.n_blocks;

  /* Nobody else looks at it: the line's lock brings all of it to whoever does next. */
  pto_parts_init (&party->parts, n_blocks, n_blocks * party->n_members);
  pto_store_relaxed (&party->course, PTO_PARTY_UNDECIDED);
  for (uint32_t m = 0; m < party->n_members; m++)
    party->members[m].kept = NULL;
  pto_store_relaxed (&slot->state, PTO_TASK_READY);
  pto_place_enter (engine, slot);
}

/* It is over, or on its way: its party is not to be looked at any more. It is the first one in its
 * lane. */
static void
leave_line (struct pto_engine *engine, struct pto_party *party, uint64_t *rung)
{
  struct pto_line *line = &engine->line;

  if (party->lane == PTO_LANE_NONE)
    {
      for (uint32_t m = 0; m < party->n_members; m++)
        {
          struct pto_berth *berth = line->places[party->members[m].need.place];

          leave_berth (line, berth, &party->members[m]);
          if (berth->first != NULL)
            call (engine, berth->of->index, rung);
        }
      return;
    }
  leave_lane (line, party);
  if (cohort_of (line, party) == NULL)
    call_all (engine, rung);
  else
    call (engine, cohort_of (line, party)->of->index, rung);
}

/* All members of its next block have their places. */
static void
send_off (struct pto_engine *engine, struct pto_party *party, uint64_t *rung)
{
  struct pto_slot *slot = party->slot;
  uint32_t block = party->parts.next++;
  bool is_last = party->parts.next == party->parts.n_blocks;

  if (is_last)
    leave_line (engine, party, rung);
  else if (cohort_of (&engine->line, party) == NULL)
    engine->line.lanes.of[party->lane].cohort = PTO_COHORT_NONE;
  for (uint32_t m = party->n_members; m-- > 0;)
    {
      grant (engine, party->members[m].kept, slot, m, block, rung);
      if (!is_last)
        party->members[m].kept = NULL;
    }
  party->n_kept = 0;
}

static __attribute__ ((cold)) struct pto_endpoint *
who_is_gone (const struct pto_line *line, const struct pto_party *party)
{
  for (uint32_t m = 0; m < party->n_members; m++)
    {
      const struct pto_need *need = &party->members[m].need;

      if (need->place != PTO_PLACE_ANY && line->places[need->place]->gone)
        return line->places[need->place]->endpoint;
    }
  /* Any of them is as good as any for the message. */
  for (uint32_t p = 0; p < line->n_places; p++)
    if (line->places[p] != NULL && line->places[p]->gone)
      {
        uint32_t kind = line->places[p]->endpoint->queue;

        if (party->n_of[kind] > line->n_left[kind])
          return line->places[p]->endpoint;
      }
  return NULL;
}

/* One task less for its cohort. */
static void
leave_cohort (const struct pto_line *line, const struct pto_party *party)
{
  struct pto_cohort *cohort = cohort_of (line, party);

  /* Release: pairs with the acquire of whoever takes the cohort next (cohort.c). */
  if (cohort != NULL)
    pto_fetch_sub_acq_rel (&cohort->open, 1);
}

void
pto_place_leave_out (struct pto_engine *engine, struct pto_slot *slot)
{
  uint32_t queue = pto_slot_kind (slot);

  leave_cohort (&engine->line, slot->party);
  slot->queue = (uint16_t) queue;
  slot->kernel = PTO_KERNEL_NONE;
}

/* Will it not run? What it depends on has failed, or the run has; or its places are gone. It does
 * not wait any more then. */
static bool
ends_waiting (struct pto_engine *engine, struct pto_party *party, struct pto_calling *calling,
              uint64_t *rung)
{
  bool spoiled
      = pto_load_relaxed (&party->slot->poison) != PTO_TASK_NONE || pto_engine_has_failed (engine);
  bool failed = true;

  if (!spoiled && engine->line.n_gone > 0)
    calling->gone = who_is_gone (&engine->line, party);
  if (!spoiled && calling->gone == NULL)
    return false;
  give_up (engine, party, 0, rung);
  leave_line (engine, party, rung);
  calling->ended = true;
  calling->over = party->slot;
  /* Blocks of it run, or have: whoever ends the last one settles. */
  if (party->parts.next > 0
      && !pto_parts_leave (&party->parts,
                           (party->parts.n_blocks - party->parts.next) * party->n_members, &failed))
    {
      calling->over = NULL;
      calling->gone = NULL;
    }
  else
    leave_cohort (&engine->line, party);
  return true;
}

static uint64_t
first_turn (const struct pto_lanes *lanes, uint32_t lane)
{
  return (lanes->waiting >> lane & 1) != 0 ? lanes->of[lane].first->party->turn : UINT64_MAX;
}

/* Has nobody in these lanes who needs places of these kinds come before? Then nobody ever will
 * have.
 */
static bool
comes_first (const struct pto_lanes *lanes, const struct pto_party *party)
{
  if (lanes->waiting == 0)
    return true;
  if (party->lane == PTO_LANE_MIXED)
    {
      for (uint32_t kind = 0; kind < PTO_QUEUES_MAX; kind++)
        if (first_turn (lanes, kind) < party->turn)
          return false;
      return first_turn (lanes, PTO_LANE_MIXED) >= party->turn;
    }
  return first_turn (lanes, party->members[0].need.queue) >= party->turn
         && first_turn (lanes, PTO_LANE_MIXED) >= party->turn;
}

/* Is a place of that cohort for it, and for nobody who is for just this cohort? */
static bool
may_keep (const struct pto_line *line, uint32_t cohort, const struct pto_party *party)
{
  return cohort == PTO_COHORT_NONE || comes_first (&line->cohorts[cohort].lanes, party);
}

/* Keeps what the first one needs. true: it has all. */
/* Who waits first for that place by name. false: it is over. A task that needs no other place
 * begins, whoever has come first: who did has what it can use. */
static bool
serve_berth (struct pto_engine *engine, struct pto_berth *berth, bool patient, uint64_t turn,
             struct pto_calling *calling, uint64_t *rung)
{
  struct pto_party_member *member = berth->first;
  struct pto_party *party = party_of (member);

  if (ends_waiting (engine, party, calling, rung))
    return false;
  if (member->kept != NULL || party->turn >= turn || !is_free (berth, patient)
      || (party->n_members > 1
          && !(comes_first (&engine->line.lanes, party)
               && may_keep (&engine->line, berth->endpoint->cohort, party))))
    return true;
  keep (berth, party, member);
  if (party->n_kept == party->n_members)
    send_off (engine, party, rung);
  return true;
}

/* Those that wait for one of these places by name and have come before that turn. false: there is
 * one that is over. */
static bool
serve_named (struct pto_engine *engine, struct pto_places *places, bool patient, uint64_t turn,
             struct pto_calling *calling, uint64_t *rung)
{
  if (places->n_named == 0)
    return true;
  for (uint32_t word = 0; word < n_words (places); word++)
    for (uint64_t bits = places->named[word]; bits != 0; bits &= bits - 1)
      {
        struct pto_berth *berth = &places->berths[word * 64 + (uint32_t) __builtin_ctzll (bits)];

        /* A party that was sent off waits at none of its places any more. */
        if (berth->first != NULL && !serve_berth (engine, berth, patient, turn, calling, rung))
          return false;
      }
  return true;
}

/* Those that are together find their places block by block, and no place goes away where there are
 * cohorts. */
static uint32_t
current_block (const struct pto_party *party)
{
  return party->together ? party->n_kept / party->block * party->block : 0;
}

/* The member that is to be there: one that names the place before one that takes any. */
static uint32_t
member_for (const struct pto_party *party, const struct pto_endpoint *endpoint)
{
  uint32_t any = PTO_PLACE_ANY;
  uint32_t from = current_block (party);
  uint32_t end = party->together ? from + party->block : party->n_members;

  for (uint32_t m = from; m < end; m++)
    {
      const struct pto_party_member *member = &party->members[m];

      if (member->kept != NULL || member->need.queue != endpoint->queue)
        continue;
      if (member->need.place == endpoint->number)
        return m;
      if (member->need.place == PTO_PLACE_ANY && any == PTO_PLACE_ANY)
        any = m;
    }
  return any;
}

/* Keeps what the first one needs. true: it has all. */
static bool
collect_any (const struct pto_line *line, struct pto_places *places, struct pto_party *party,
             bool patient)
{
  for (uint32_t i = 0; i < places->n_endpoints && party->n_kept < party->n_members; i++)
    {
      struct pto_berth *berth = &places->berths[i];

      if (is_free (berth, patient) && may_keep (line, berth->endpoint->cohort, party))
        {
          uint32_t member = member_for (party, berth->endpoint);

          if (member != PTO_PLACE_ANY)
            keep (berth, party, &party->members[member]);
        }
    }
  return party->n_kept == party->n_members;
}

/* The same for its next block, of what is free there. true: that has all. */
static bool
collect_in (struct pto_berth *neighbour, struct pto_party *party, bool patient)
{
  uint32_t from = current_block (party);

  for (; neighbour != NULL && current_block (party) == from; neighbour = neighbour->neighbour)
    if (is_free (neighbour, patient))
      {
        uint32_t member = member_for (party, neighbour->endpoint);

        if (member != PTO_PLACE_ANY)
          keep (neighbour, party, &party->members[member]);
      }
  return current_block (party) != from;
}

/* How many members have a free place there now. */
static uint32_t
count_free (const struct pto_cohort *cohort, const struct pto_party *party, bool patient)
{
  uint32_t n_of[PTO_QUEUES_MAX] = { 0 };
  uint32_t n = 0;

  for (const struct pto_berth *at = cohort->first; at != NULL; at = at->neighbour)
    {
      uint32_t queue = at->endpoint->queue;

      if (is_free (at, patient) && n_of[queue] < party->n_of[queue])
        {
          n_of[queue]++;
          n++;
        }
    }
  return n;
}

/* All of its blocks that begin at once are for that cohort. */
static bool
collect_all (const struct pto_cohort *cohort, struct pto_party *party, bool patient)
{
  while (party->n_kept < party->n_members)
    if (!collect_in (cohort->first, party, patient))
      return false;
  return true;
}

/* Those that are for just this cohort and have come before that turn, in the order in which they
 * came. Who needs one place waits for nobody while it keeps one. false: there is one that is over.
 */
static bool
serve_cohort (struct pto_engine *engine, struct pto_cohort *cohort, bool patient, uint64_t turn,
              struct pto_calling *calling, uint64_t *rung)
{
  uint32_t waiting = cohort->lanes.waiting;

  while (waiting != 0)
    {
      uint32_t next = (uint32_t) __builtin_ctz (waiting);
      struct pto_party *party;

      for (uint32_t lanes = waiting; lanes != 0; lanes &= lanes - 1)
        if (first_turn (&cohort->lanes, (uint32_t) __builtin_ctz (lanes))
            < first_turn (&cohort->lanes, next))
          next = (uint32_t) __builtin_ctz (lanes);
      party = cohort->lanes.of[next].first->party;
      if (party->turn >= turn)
        return true;
      if (ends_waiting (engine, party, calling, rung))
        return false;
      if (party->n_members > 1
          && !serve_named (engine, (struct pto_places *) cohort->of, patient, party->turn, calling,
                           rung))
        return false;
      if ((party->n_members == 1
           || (comes_first (&cohort->lanes, party) && comes_first (&engine->line.lanes, party)))
          && collect_all (cohort, party, patient))
        {
          send_off (engine, party, rung);
          waiting &= cohort->lanes.waiting;
        }
      else
        waiting &= ~(1u << next);
    }
  return true;
}

/* Those that have come before that turn and know where they are to be. false: there is one that is
 * over. */
static bool
serve_bound (struct pto_engine *engine, struct pto_places *places, bool patient, uint64_t turn,
             struct pto_calling *calling, uint64_t *rung)
{
  if (places->n_bound > 0)
    for (uint32_t c = 0; c < engine->line.n_cohorts; c++)
      if (engine->line.cohorts[c].of == places
          && !serve_cohort (engine, &engine->line.cohorts[c], patient, turn, calling, rung))
        return false;
  return serve_named (engine, places, patient, turn, calling, rung);
}

/* A cohort that is free as a whole serves the next block of the first one at once, whichever it has
 * chosen before. If there is none, it chooses one and keeps what becomes idle there: so it gets on,
 * however many others come. true: it has all. */
static bool
collect_cohort (struct pto_engine *engine, struct pto_places *places, struct pto_party *party,
                bool patient, uint64_t *rung)
{
  struct pto_line *line = &engine->line;
  struct pto_lane *lane = &line->lanes.of[party->lane];
  uint32_t best = PTO_COHORT_NONE;
  uint32_t most = 0;

  for (uint32_t c = 0; c < line->n_cohorts; c++)
    {
      const struct pto_cohort *cohort = &line->cohorts[c];
      uint32_t n;

      if (cohort->of != places || n_fitting (cohort->n_of, party->n_of) == 0
          || !may_keep (line, c, party))
        continue;
      n = count_free (cohort, party, patient);
      while (n == party->block)
        {
          give_up (engine, party, current_block (party), rung);
          lane->cohort = PTO_COHORT_NONE;
          collect_in (cohort->first, party, patient);
          if (party->n_kept == party->n_members)
            return true;
          n = count_free (cohort, party, patient);
        }
      if (best == PTO_COHORT_NONE || n > most)
        {
          best = c;
          most = n;
        }
    }
  /* Somebody with a higher priority may want that one since it was chosen; what was kept there he
   * has taken back. */
  if (lane->cohort == PTO_COHORT_NONE
      || (party->n_kept % party->block == 0 && !may_keep (line, lane->cohort, party)))
    lane->cohort = best;
  if (lane->cohort == PTO_COHORT_NONE || line->cohorts[lane->cohort].of != places)
    return false;
  if (collect_in (line->cohorts[lane->cohort].first, party, patient))
    lane->cohort = PTO_COHORT_NONE;
  return party->n_kept == party->n_members;
}

/* The first ones of a lane, as far as there are places for them. false: there is one that is over.
 */
static bool
serve_lane (struct pto_engine *engine, struct pto_places *places, uint32_t number, bool patient,
            struct pto_calling *calling, bool *sent, uint64_t *rung)
{
  struct pto_line *line = &engine->line;

  while ((line->lanes.waiting >> number & 1) != 0)
    {
      struct pto_party *party = line->lanes.of[number].first->party;

      if (ends_waiting (engine, party, calling, rung))
        return false;
      if (!comes_first (&line->lanes, party))
        return true;
      if (!serve_bound (engine, places, patient, party->turn, calling, rung))
        return false;
      if (!(party->together ? collect_cohort (engine, places, party, patient, rung)
                            : collect_any (line, places, party, patient)))
        return true;
      send_off (engine, party, rung);
      *sent = true;
    }
  return true;
}

/* Who is sent off lets others come first. */
static bool
serve_lanes (struct pto_engine *engine, struct pto_places *places, bool patient,
             struct pto_calling *calling, uint64_t *rung)
{
  bool sent;

  do
    {
      sent = false;
      for (uint32_t waiting = engine->line.lanes.waiting; waiting != 0; waiting &= waiting - 1)
        if (!serve_lane (engine, places, (uint32_t) __builtin_ctz (waiting), patient, calling,
                         &sent, rung))
          return false;
    }
  while (sent);
  return true;
}

void
pto_place_look (struct pto_engine *engine, struct pto_places *places, bool patient,
                struct pto_calling *calling)
{
  uint64_t rung = 0;

  *calling = (struct pto_calling){ .over = NULL };
  pto_engine_lock (engine, &engine->line.lock);
  if (serve_lanes (engine, places, patient, calling, &rung))
    serve_bound (engine, places, patient, UINT64_MAX, calling, &rung);
  if (!patient)
    memset (places->lately, 0, n_words (places) * sizeof places->lately[0]);
  calling->granted = places->granted;
  places->granted = NULL;
  pto_store_relaxed (&engine->words[places->index]->called,
                     engine->line.lanes.waiting != 0 || places->n_named > 0 || places->n_bound > 0);
  pto_store_release (&engine->line.lock, 0);
  ring (engine, rung & ~(UINT64_C (1) << places->index));
}

/* Without a switch to another actor of this carrier: whoever has the lock runs on another thread.
 */
static void
lock_here (struct pto_engine *engine)
{
  while (pto_exchange_acquire (&engine->line.lock, 1) != 0)
    sched_yield ();
}

struct pto_slot *
pto_place_take_named (struct pto_engine *engine, struct pto_berth *berth,
                      bool (*fits) (void *data, const struct pto_slot *slot), void *data,
                      bool *is_wanted)
{
  struct pto_slot *slot = NULL;
  uint64_t rung = 0;

  lock_here (engine);
  *is_wanted = berth->first != NULL || engine->line.lanes.waiting != 0 || engine->line.n_bound > 0;
  if (berth->first != NULL)
    {
      struct pto_party *party = party_of (berth->first);

      /* Who does not run is for pto_place_look() to tell. */
      if (party->lane == PTO_LANE_NONE && party->n_members == 1 && party->parts.n_blocks == 1
          && party->n_kept == 0 && pto_load_relaxed (&party->slot->poison) == PTO_TASK_NONE
          && !pto_engine_has_failed (engine) && fits (data, party->slot))
        {
          slot = party->slot;
          party->parts.next++;
          leave_line (engine, party, &rung);
        }
    }
  pto_store_release (&engine->line.lock, 0);
  ring (engine, rung & ~(UINT64_C (1) << berth->of->index));
  return slot;
}

void
pto_place_withdraw (struct pto_engine *engine, struct pto_berth *berth)
{
  struct pto_party_member *keeper;

  /* The scheduler must not give the place to anybody before it is taken. */
  lock_here (engine);
  keeper = berth->keeper;
  if (keeper != NULL)
    {
      keeper->kept = NULL;
      party_of (keeper)->n_kept--;
      berth->keeper = NULL;
      berth->kept = false;
    }
  else if (!berth->kept)
    take (berth);
  pto_store_release (&engine->line.lock, 0);
}

bool
pto_place_forget (struct pto_engine *engine, struct pto_berth *berth)
{
  struct pto_line *line = &engine->line;
  bool last;

  pto_engine_lock (engine, &engine->line.lock);
  berth->gone = true;
  line->n_gone++;
  last = --line->n_left[berth->endpoint->queue] == 0;
  pto_store_release (&engine->line.lock, 0);
  return last;
}

bool
pto_party_begins (struct pto_engine *engine, struct pto_party *party)
{
  uint32_t course = pto_load_relaxed (&party->course);
  uint32_t wanted = pto_engine_has_failed (engine) ? PTO_PARTY_PASSES_BY : PTO_PARTY_RUNS;

  if (course == PTO_PARTY_UNDECIDED && pto_cas_relaxed (&party->course, &course, wanted))
    course = wanted;
  return course == PTO_PARTY_RUNS;
}

bool
pto_party_leave (struct pto_engine *engine, struct pto_places *places,
                 struct pto_endpoint *endpoint, struct pto_slot *slot, bool *failed)
{
  struct pto_party *party = slot->party;

  places->lately[endpoint->index / 64] |= UINT64_C (1) << (endpoint->index % 64);
  endpoint->member = 0;
  if (!pto_parts_leave (&party->parts, 1, failed))
    return false;
  leave_cohort (&engine->line, party);
  return true;
}
