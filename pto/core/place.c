/* place.c: where do the members of a task run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "place.h"

#include "../exec/pto_atomic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static __attribute__ ((cold, format (printf, 4, 5))) bool
refuse (struct pto_engine *engine, uint32_t kernel, enum pto_status status, const char *format, ...)
{
  char why[256];
  va_list args;

  va_start (args, format);
  vsnprintf (why, sizeof why, format, args);
  va_end (args);
  pto_engine_fail (engine, status, "task %" PRIu64 " (%s): %s", engine->submitted,
                   pto_engine_kernel_name (engine, kernel), why);
  return false;
}

static const char *
cohort_name (const struct pto_engine *engine)
{
  return engine->config.cohort_name != NULL ? engine->config.cohort_name : "cohort";
}

static const char *
advice (const char *text)
{
  return text != NULL ? text : "ask for less";
}

static bool
admit_names (struct pto_engine *engine, uint32_t kernel, const struct pto_wish *wish)
{
  const struct pto_line *line = &engine->line;

  for (uint32_t m = 0; m < wish->n_members; m++)
    {
      const struct pto_need *need = &wish->members[m];

      if (need->place == PTO_PLACE_ANY)
        continue;
      if (need->place >= line->n_places || line->places[need->place] == NULL
          || line->places[need->place]->endpoint->queue != need->queue)
        return refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                       "member %u is for place %u, which is no %s of this machine", m, need->place,
                       engine->config.queue_names[need->queue]);
      if (wish->together)
        return refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                       "member %u names its place, but members in one %s name the %s", m,
                       cohort_name (engine), cohort_name (engine));
      for (uint32_t other = 0; other < m; other++)
        if (wish->members[other].place == need->place)
          return refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                         "members %u and %u are both for place %u and begin at once", other, m,
                         need->place);
    }
  return true;
}

static bool
has_room (const uint32_t *n_of, const uint32_t *wanted)
{
  for (uint32_t queue = 0; queue < PTO_QUEUES_MAX; queue++)
    if (n_of[queue] < wanted[queue])
      return false;
  return true;
}

static bool
admit_cohort (struct pto_engine *engine, uint32_t kernel, const struct pto_wish *wish,
              const uint32_t *wanted)
{
  const struct pto_line *line = &engine->line;
  char text[128] = "";

  if (wish->cohort != PTO_COHORT_NONE
      && (wish->cohort >= line->n_cohorts || line->cohorts[wish->cohort].of == NULL))
    return refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                   "it is for %s %u; this machine has %u: %s", cohort_name (engine), wish->cohort,
                   line->n_cohorts, advice (engine->config.more_places));
  for (uint32_t c = 0; c < line->n_cohorts; c++)
    if ((wish->cohort == PTO_COHORT_NONE || wish->cohort == c)
        && has_room (line->cohorts[c].n_of, wanted))
      return true;
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (wanted[queue] > 0)
      {
        size_t length = strlen (text);

        snprintf (text + length, sizeof text - length, "%s%u %s", length > 0 ? " and " : "",
                  wanted[queue], engine->config.queue_names[queue]);
      }
  return refuse (engine, kernel, PTO_STATUS_INVALID_ARGS, "no %s has %s: %s", cohort_name (engine),
                 text, advice (engine->config.larger_cohorts));
}

bool
pto_place_admit (struct pto_engine *engine, uint32_t kernel, const struct pto_wish *wish)
{
  uint32_t wanted[PTO_QUEUES_MAX] = { 0 };

  if (wish->n_members == 0)
    return refuse (engine, kernel, PTO_STATUS_INVALID_ARGS, "a task has at least one member");
  for (uint32_t m = 0; m < wish->n_members; m++)
    {
      if (wish->members[m].queue >= engine->config.n_queues)
        return refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                       "member %u is for places of kind %u; there are %u kinds", m,
                       wish->members[m].queue, engine->config.n_queues);
      wanted[wish->members[m].queue]++;
    }
  if (!admit_names (engine, kernel, wish))
    return false;
  if (wish->together)
    return admit_cohort (engine, kernel, wish, wanted);
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (wanted[queue] > engine->line.n_of[queue])
      return refuse (engine, kernel, PTO_STATUS_SYNC_START,
                     "%u members need %s at once; this machine has %u: %s", wanted[queue],
                     engine->config.queue_names[queue], engine->line.n_of[queue],
                     advice (engine->config.more_places));
  return true;
}

void
pto_party_init (struct pto_party *party, const struct pto_wish *wish)
{
  memset (party, 0, sizeof *party);
  atomic_init (&party->left, wish->n_members);
  atomic_init (&party->failed, 0);
  party->together = wish->together;
  party->cohort = wish->cohort;
  party->n_members = wish->n_members;
  for (uint32_t m = 0; m < wish->n_members; m++)
    {
      party->members[m] = (struct pto_party_member){ .need = wish->members[m] };
      party->n_of[wish->members[m].queue]++;
    }
}

/* --- the line --- */

static void
lock (struct pto_engine *engine)
{
  /* Acquire: pairs with the release in unlock(). Nobody waits for anything while he has it. */
  while (pto_exchange_acquire (&engine->line.lock, 1) != 0)
    pto_yield (engine->exec);
}

static void
unlock (struct pto_engine *engine)
{
  pto_store_release (&engine->line.lock, 0);
}

/* Under the lock: that scheduler is to look. The bell that is rung behind it brings the word:
 * pto_engine_wake() adds to it (release), and its scheduler has read it (acquire) before it looks.
 */
static void
call (struct pto_engine *engine, uint32_t index, uint64_t *rung)
{
  pto_store_relaxed (&engine->words[index]->called, 1);
  *rung |= UINT64_C (1) << index;
}

/* Another task is the head of the line: what nobody wanted may be wanted now. */
static void
call_all (struct pto_engine *engine, uint64_t *rung)
{
  if (engine->line.first != NULL)
    for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
      call (engine, i, rung);
}

static void
ring (struct pto_engine *engine, uint64_t rung)
{
  for (; rung != 0; rung &= rung - 1)
    pto_engine_wake (engine, (uint32_t) __builtin_ctzll (rung));
}

static void
append (struct pto_slot **first, struct pto_slot **last, struct pto_slot *slot)
{
  slot->party->next = NULL;
  if (*first == NULL)
    *first = slot;
  else
    (*last)->party->next = slot;
  *last = slot;
}

void
pto_place_enter (struct pto_engine *engine, struct pto_slot *slot)
{
  struct pto_line *line = &engine->line;
  struct pto_party *party = slot->party;
  uint64_t rung = 0;

  lock (engine);
  party->turn = line->turn++;
  if (party->members[0].need.place != PTO_PLACE_ANY && party->n_members == 1)
    {
      struct pto_berth *berth = line->places[party->members[0].need.place];

      berth->of->n_named += berth->first == NULL;
      append (&berth->first, &berth->last, slot);
      call (engine, berth->of->index, &rung);
    }
  else
    {
      append (&line->first, &line->last, slot);
      if (line->first == slot)
        call_all (engine, &rung);
    }
  unlock (engine);
  ring (engine, rung);
}

/* --- keeping and granting places; under the lock --- */

static bool
is_free (const struct pto_berth *berth, bool patient)
{
  return berth->endpoint->running == NULL && !berth->kept && !(patient && berth->lately);
}

static void
keep (struct pto_berth *berth)
{
  struct pto_idle_ring *idle = &berth->of->idle[berth->endpoint->queue];
  uint32_t mask = idle->capacity - 1;
  uint32_t i = idle->tail;

  while (idle->items[i & mask] != berth->endpoint->index)
    i++;
  for (; i + 1 != idle->head; i++)
    idle->items[i & mask] = idle->items[(i + 1) & mask];
  idle->head--;
  berth->kept = true;
}

static void
keep_for (struct pto_berth *berth, struct pto_party *party, uint32_t member)
{
  keep (berth);
  party->members[member].kept = berth;
  party->n_kept++;
}

static void
grant (struct pto_engine *engine, struct pto_berth *berth, struct pto_slot *slot, uint32_t member,
       uint64_t *rung)
{
  berth->granted = slot;
  berth->endpoint->member = member;
  berth->next_granted = berth->of->granted;
  berth->of->granted = berth;
  call (engine, berth->of->index, rung);
}

/* Its places are idle again. */
static void
give_up (struct pto_engine *engine, struct pto_party *party, uint64_t *rung)
{
  for (uint32_t m = 0; m < party->n_members; m++)
    if (party->members[m].kept != NULL)
      {
        grant (engine, party->members[m].kept, NULL, 0, rung);
        party->members[m].kept = NULL;
      }
  party->n_kept = 0;
}

/* The head is over, or on its way: its party is not to be looked at any more. */
static void
remove_head (struct pto_engine *engine, uint64_t *rung)
{
  struct pto_line *line = &engine->line;

  line->first = line->first->party->next;
  line->cohort = PTO_COHORT_NONE;
  call_all (engine, rung);
}

/* All of the head's members have their places. */
static void
send_off (struct pto_engine *engine, uint64_t *rung)
{
  struct pto_slot *slot = engine->line.first;
  struct pto_party *party = slot->party;

  remove_head (engine, rung);
  for (uint32_t m = party->n_members; m-- > 0;)
    grant (engine, party->members[m].kept, slot, m, rung);
}

/* It will not run: what it depends on has failed, or the run has. */
static bool
is_spoiled (struct pto_engine *engine, struct pto_slot *slot)
{
  return pto_load_relaxed (&slot->poison) != PTO_TASK_NONE || pto_engine_has_failed (engine);
}

/* Those that wait for one of these places by name and have come before that turn. Gives one that
 * is over. */
static struct pto_slot *
serve_named (struct pto_engine *engine, struct pto_places *places, bool patient, uint64_t turn,
             uint64_t *rung)
{
  for (uint32_t i = 0; i < places->n_endpoints && places->n_named > 0; i++)
    {
      struct pto_berth *berth = &places->berths[i];
      struct pto_slot *slot = berth->first;
      bool spoiled;

      if (slot == NULL)
        continue;
      spoiled = is_spoiled (engine, slot);
      if (!spoiled && (slot->party->turn >= turn || !is_free (berth, patient)))
        continue;
      berth->first = slot->party->next;
      places->n_named -= berth->first == NULL;
      if (spoiled)
        return slot;
      keep (berth);
      grant (engine, berth, slot, 0, rung);
    }
  return NULL;
}

/* The member that is to be there: one that names the place before one that takes any. */
static uint32_t
member_for (const struct pto_party *party, const struct pto_endpoint *endpoint)
{
  uint32_t any = PTO_PLACE_ANY;

  for (uint32_t m = 0; m < party->n_members; m++)
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

/* Keeps what the head needs. true: it has all. */
static bool
collect_any (struct pto_places *places, struct pto_party *party, bool patient)
{
  for (uint32_t i = 0; i < places->n_endpoints && party->n_kept < party->n_members; i++)
    {
      struct pto_berth *berth = &places->berths[i];

      if (is_free (berth, patient))
        {
          uint32_t member = member_for (party, berth->endpoint);

          if (member != PTO_PLACE_ANY)
            keep_for (berth, party, member);
        }
    }
  return party->n_kept == party->n_members;
}

static bool
collect_in (struct pto_berth *neighbour, struct pto_party *party, bool patient)
{
  for (; neighbour != NULL; neighbour = neighbour->neighbour)
    if (is_free (neighbour, patient))
      {
        uint32_t member = member_for (party, neighbour->endpoint);

        if (member != PTO_PLACE_ANY)
          keep_for (neighbour, party, member);
      }
  return party->n_kept == party->n_members;
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

/* A cohort that is free as a whole serves the head at once, whichever the head has chosen before.
 * If there is none, the head chooses one and keeps what becomes idle there: so it gets on, however
 * many others come. */
static bool
collect_cohort (struct pto_engine *engine, struct pto_places *places, struct pto_party *party,
                bool patient, uint64_t *rung)
{
  struct pto_line *line = &engine->line;
  uint32_t best = PTO_COHORT_NONE;
  uint32_t most = 0;

  for (uint32_t c = 0; c < line->n_cohorts; c++)
    {
      const struct pto_cohort *cohort = &line->cohorts[c];
      uint32_t n;

      if (cohort->of != places || !has_room (cohort->n_of, party->n_of)
          || (party->cohort != PTO_COHORT_NONE && party->cohort != c))
        continue;
      n = count_free (cohort, party, patient);
      if (n == party->n_members)
        {
          give_up (engine, party, rung);
          line->cohort = c;
          return collect_in (cohort->first, party, patient);
        }
      if (best == PTO_COHORT_NONE || n > most)
        {
          best = c;
          most = n;
        }
    }
  if (line->cohort == PTO_COHORT_NONE)
    line->cohort = best;
  return line->cohort != PTO_COHORT_NONE && line->cohorts[line->cohort].of == places
         && collect_in (line->cohorts[line->cohort].first, party, patient);
}

/* Gives one that is over. */
static struct pto_slot *
serve_line (struct pto_engine *engine, struct pto_places *places, bool patient, uint64_t *rung)
{
  for (struct pto_slot *slot = engine->line.first; slot != NULL; slot = engine->line.first)
    {
      struct pto_party *party = slot->party;
      struct pto_slot *over;

      if (is_spoiled (engine, slot))
        {
          give_up (engine, party, rung);
          remove_head (engine, rung);
          return slot;
        }
      over = serve_named (engine, places, patient, party->turn, rung);
      if (over != NULL)
        return over;
      if (!(party->together ? collect_cohort (engine, places, party, patient, rung)
                            : collect_any (places, party, patient)))
        return NULL;
      send_off (engine, rung);
    }
  return NULL;
}

void
pto_place_look (struct pto_engine *engine, struct pto_places *places, bool patient,
                struct pto_calling *calling)
{
  uint64_t rung = 0;

  lock (engine);
  calling->over = serve_line (engine, places, patient, &rung);
  if (calling->over == NULL)
    calling->over = serve_named (engine, places, patient, UINT64_MAX, &rung);
  if (!patient)
    for (uint32_t i = 0; i < places->n_endpoints; i++)
      places->berths[i].lately = false;
  calling->granted = places->granted;
  places->granted = NULL;
  pto_store_relaxed (&engine->words[places->index]->called,
                     engine->line.first != NULL || places->n_named > 0);
  unlock (engine);
  ring (engine, rung & ~(UINT64_C (1) << places->index));
}

bool
pto_party_leave (struct pto_places *places, struct pto_endpoint *endpoint, struct pto_slot *slot,
                 bool *failed)
{
  struct pto_party *party = slot->party;

  places->berths[endpoint->index].lately = true;
  endpoint->member = 0;
  if (*failed)
    pto_store_relaxed (&party->failed, 1);
  if (pto_fetch_sub_acq_rel (&party->left, 1) != 1)
    return false;
  *failed = pto_load_relaxed (&party->failed) != 0;
  return true;
}
