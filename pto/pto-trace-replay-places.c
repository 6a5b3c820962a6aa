/* pto-trace-replay-places.c: which cores are there, and who waits for which of them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The rules are those of pto/core/place.c and pto/core/cohort.c, which say why; names are the same.
 * Here one looks at a time, nobody fails and no core goes away.
 */
#include "config.h"

#include "pto-trace-replay-places-private.h"

#include <string.h>

enum
{
  NONE = PTO_REPLAY_NONE,
  LANE_MIXED = PTO_N_CORE_TYPES,
  N_LANES,
  TURN_BITS = 56
};

typedef struct
{
  guint32 first; /* party */
  guint32 last;
  guint32 cluster; /* that it has chosen */
} Lane;

typedef struct
{
  guint32 waiting; /* a bit each */
  Lane of[N_LANES];
} Lanes;

typedef struct
{
  Lanes lanes;
  guint32 open; /* 1 while it is held, and 1 for each task that is for it */
  guint32 n_of[PTO_N_CORE_TYPES];
} Cluster;

typedef struct
{
  const PtoReplayParts *parts;
  guint64 turn;
  guint32 next; /* in its lane */
  guint32 cluster;
  guint32 lane; /* NONE: it waits at its places */
  guint32 n_kept;
  guint32 next_block;
  guint32 n_of[PTO_N_CORE_TYPES];
} Party;

/* A member of a party: by the number that it has among all. */
typedef struct
{
  guint32 party;
  guint32 kept; /* core */
  guint32 next; /* at the place of its name */
  guint32 previous;
} Member;

typedef struct
{
  gboolean kept;
  guint32 keeper; /* member */
  guint32 granted;
  guint32 next_granted;
  guint32 first; /* members that wait for just this one */
  guint32 last;
  gboolean lately;
} Berth;

typedef struct
{
  gboolean called;
  guint32 granted; /* core */
  guint32 n_named;
  guint32 n_bound;
} Desk; /* a scheduler's */

struct _PtoReplayLine
{
  const PtoReplay *replay;
  guint64 turn;
  Lanes lanes;
  Cluster *clusters;
  Party *parties; /* as PtoReplay.parts */
  Member *members;
  Berth *berths; /* by core */
  Desk *desks;
  guint32 n_named;
  guint32 n_bound;
  /* Of holds of the orchestration: the cluster that each is. */
  guint32 *held;
  guint32 next_cluster;
};

/* --- which cores there are --- */

static guint32
type_of_member (const PtoReplay *replay, const PtoReplayParts *parts, guint32 member)
{
  return replay->runs[replay->tasks[parts->task].first_run + member].type;
}

/* Who names all of its places can wait at each of them, if they are of one type. */
static guint32
lane_of (const PtoReplay *replay, const PtoReplayParts *parts)
{
  guint32 type = type_of_member (replay, parts, 0);
  gboolean named = !parts->together;

  for (guint32 m = 0; m < parts->n_members; m++)
    named = named && replay->names[parts->first_member + m] != NONE;
  for (guint32 m = 0; m < parts->n_members; m++)
    if (type_of_member (replay, parts, m) != type)
      return LANE_MIXED;
  return named ? NONE : type;
}

static PtoReplayLine *
line_new (const PtoReplayPlaces *places, const PtoReplay *replay)
{
  PtoReplayLine *line = g_new0 (PtoReplayLine, 1);

  line->replay = replay;
  line->clusters = g_new0 (Cluster, places->n_clusters);
  line->parties = g_new0 (Party, MAX (replay->n_parts, 1));
  line->members = g_new0 (Member, MAX (replay->n_members, 1));
  line->berths = g_new0 (Berth, MAX (places->n_cores, 1));
  line->desks = g_new0 (Desk, places->n_schedulers);
  line->held = g_new (guint32, MAX (replay->n_held, 1));
  for (guint c = 0; c < places->n_cores; c++)
    {
      line->clusters[c / places->per_cluster].n_of[places->core_type[c]]++;
      line->berths[c] = (Berth){ .keeper = NONE, .first = NONE, .last = NONE };
    }
  for (guint s = 0; s < places->n_schedulers; s++)
    line->desks[s].granted = NONE;
  for (guint32 p = 0; p < replay->n_parts; p++)
    {
      const PtoReplayParts *parts = &replay->parts[p];
      Party *party = &line->parties[p];

      party->parts = parts;
      party->cluster = NONE;
      for (guint32 m = 0; m < parts->n_members; m++)
        {
          line->members[parts->first_member + m] = (Member){ p, NONE, NONE, NONE };
          if (m < parts->block || !parts->together)
            party->n_of[type_of_member (replay, parts, m)]++;
        }
      if (parts->n_members > 0)
        party->lane = lane_of (replay, parts);
    }
  return line;
}

void
pto_replay_places_init (PtoReplayPlaces *places, const PtoReplay *replay, PtoTrace *trace,
                        const PtoReplaySettings *settings)
{
  guint aic = trace->topology.aic_per_cluster;

  *places
      = (PtoReplayPlaces){ .n_clusters = settings->clusters, .n_schedulers = settings->schedulers };
  places->per_cluster = MAX (aic + trace->topology.aiv_per_cluster, 1);
  places->n_cores = places->n_clusters * places->per_cluster;
  places->first = g_new (guint32, places->n_schedulers + 1);
  places->core_scheduler = g_new (guint32, places->n_cores);
  places->core_type = g_new (guint32, places->n_cores);
  places->core_run = g_new (guint32, places->n_cores);
  places->idle = (PtoReplayQueue (*)[PTO_N_CORE_TYPES]) g_new0 (
      PtoReplayQueue, (gsize) places->n_schedulers * PTO_N_CORE_TYPES);
  for (guint s = 0; s <= places->n_schedulers; s++)
    places->first[s]
        = (guint32) ((guint64) places->n_clusters * s / places->n_schedulers) * places->per_cluster;
  for (guint s = 0; s < places->n_schedulers; s++)
    {
      for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
        places->idle[s][t].items = g_new (guint32, (gsize) places->n_cores + 1);
      for (guint32 c = places->first[s]; c < places->first[s + 1]; c++)
        {
          places->core_scheduler[c] = s;
          places->core_run[c] = PTO_REPLAY_IDLE;
          places->core_type[c]
              = c % places->per_cluster < aic ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV;
          pto_replay_push_idle (places, c);
        }
    }
  if (replay->n_members > 0 || replay->n_holds > 0)
    places->line = line_new (places, replay);
}

void
pto_replay_places_clear (PtoReplayPlaces *places)
{
  for (guint s = 0; s < places->n_schedulers; s++)
    for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
      g_free (places->idle[s][t].items);
  g_free (places->idle);
  g_free (places->first);
  g_free (places->core_scheduler);
  g_free (places->core_type);
  g_free (places->core_run);
  if (places->line == NULL)
    return;
  g_free (places->line->clusters);
  g_free (places->line->parties);
  g_free (places->line->members);
  g_free (places->line->berths);
  g_free (places->line->desks);
  g_free (places->line->held);
  g_free (places->line);
}

/* How many blocks have their places there at one time? */
static guint32
n_fitting (const guint32 *n_of, const guint32 *wanted)
{
  guint32 n = G_MAXUINT32;

  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    if (wanted[t] > 0)
      n = MIN (n, n_of[t] / wanted[t]);
  return n;
}

static gboolean
admits (const PtoReplayPlaces *places, const Party *party)
{
  const PtoReplayLine *line = places->line;
  const PtoReplayParts *parts = party->parts;
  guint32 n_of[PTO_N_CORE_TYPES] = { 0 };

  for (guint32 m = 0; m < parts->n_members; m++)
    {
      guint32 place = line->replay->names[parts->first_member + m];

      if (place != NONE
          && (place >= places->n_cores
              || places->core_type[place] != type_of_member (line->replay, parts, m)))
        return FALSE;
    }
  for (guint c = 0; c < places->n_clusters; c++)
    for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
      n_of[t] += line->clusters[c].n_of[t];
  if (!parts->together)
    return n_fitting (n_of, party->n_of) > 0;
  /* All clusters are equal. */
  return n_fitting (line->clusters[0].n_of, party->n_of)
             * (parts->hold == PTO_TRACE_NOWHERE ? places->n_clusters : 1)
         >= parts->n_members / parts->block;
}

gboolean
pto_replay_line_admits (const PtoReplayPlaces *places)
{
  for (guint p = 0; p < places->line->replay->n_parts; p++)
    if (places->line->parties[p].parts->n_members > 0
        && !admits (places, &places->line->parties[p]))
      return FALSE;
  return TRUE;
}

/* --- the line --- */

static void
call (PtoReplayLine *line, guint32 scheduler, guint64 *rung)
{
  line->desks[scheduler].called = TRUE;
  *rung |= G_GUINT64_CONSTANT (1) << scheduler;
}

static void
call_all (const PtoReplayPlaces *places, guint64 *rung)
{
  PtoReplayLine *line = places->line;

  if (line->lanes.waiting != 0 || line->n_named > 0 || line->n_bound > 0)
    for (guint s = 0; s < places->n_schedulers; s++)
      call (line, s, rung);
}

static guint32
scheduler_of (const PtoReplayPlaces *places, guint32 cluster)
{
  return places->core_scheduler[cluster * places->per_cluster];
}

static Lanes *
lanes_of (PtoReplayLine *line, const Party *party)
{
  return party->cluster != NONE ? &line->clusters[party->cluster].lanes : &line->lanes;
}

static void
note_waiting (const PtoReplayPlaces *places, const Party *party)
{
  PtoReplayLine *line = places->line;
  Lanes *lanes = lanes_of (line, party);
  guint32 change;

  lanes->waiting ^= 1u << party->lane;
  if (party->cluster == NONE)
    return;
  change = (lanes->waiting >> party->lane & 1) != 0 ? 1 : G_MAXUINT32;
  line->n_bound += change;
  line->desks[scheduler_of (places, party->cluster)].n_bound += change;
}

/* Gives whether it is the first one there. */
static gboolean
enter_lane (const PtoReplayPlaces *places, guint32 number)
{
  PtoReplayLine *line = places->line;
  Party *party = &line->parties[number];
  Lanes *lanes = lanes_of (line, party);
  Lane *lane = &lanes->of[party->lane];
  guint32 *at = &lane->first;

  party->next = NONE;
  if ((lanes->waiting >> party->lane & 1) == 0)
    {
      note_waiting (places, party);
      *lane = (Lane){ number, number, NONE };
      return TRUE;
    }
  if (line->parties[lane->last].turn < party->turn)
    {
      line->parties[lane->last].next = number;
      lane->last = number;
      return FALSE;
    }
  while (line->parties[*at].turn < party->turn)
    at = &line->parties[*at].next;
  party->next = *at;
  *at = number;
  if (lane->first != number)
    return FALSE;
  lane->cluster = NONE;
  return TRUE;
}

static void
note_named (const PtoReplayPlaces *places, guint32 core, gboolean named)
{
  guint32 change = named ? 1 : G_MAXUINT32;

  places->line->desks[places->core_scheduler[core]].n_named += change;
  places->line->n_named += change;
}

static guint64
turn_of (const PtoReplayLine *line, guint32 member)
{
  return line->parties[line->members[member].party].turn;
}

static void
wait_at (const PtoReplayPlaces *places, guint32 core, guint32 number)
{
  PtoReplayLine *line = places->line;
  Berth *berth = &line->berths[core];
  Member *member = &line->members[number];
  guint32 before = berth->last;

  if (berth->first == NONE)
    note_named (places, core, TRUE);
  while (before != NONE && turn_of (line, before) > turn_of (line, number))
    before = line->members[before].previous;
  member->previous = before;
  member->next = before != NONE ? line->members[before].next : berth->first;
  if (member->next != NONE)
    line->members[member->next].previous = number;
  else
    berth->last = number;
  if (before != NONE)
    line->members[before].next = number;
  else
    berth->first = number;
}

static void
leave_berth (const PtoReplayPlaces *places, guint32 core, guint32 number)
{
  PtoReplayLine *line = places->line;
  Berth *berth = &line->berths[core];
  const Member *member = &line->members[number];

  if (member->previous != NONE)
    line->members[member->previous].next = member->next;
  else
    berth->first = member->next;
  if (member->next != NONE)
    line->members[member->next].previous = member->previous;
  else
    berth->last = member->previous;
  if (berth->first == NONE)
    note_named (places, core, FALSE);
}

/* --- keeping and granting --- */

static gboolean
is_free (const PtoReplayPlaces *places, guint32 core, gboolean patient)
{
  const Berth *berth = &places->line->berths[core];

  return places->core_run[core] == PTO_REPLAY_IDLE && !berth->kept && !(patient && berth->lately);
}

/* Out of the idle ones. */
static void
take (const PtoReplayPlaces *places, guint32 core)
{
  PtoReplayQueue *idle = &places->idle[places->core_scheduler[core]][places->core_type[core]];
  guint i = idle->head;

  while (idle->items[i] != core)
    i = i == places->n_cores ? 0 : i + 1;
  for (;;)
    {
      guint next = i == places->n_cores ? 0 : i + 1;

      if (next == idle->tail)
        break;
      idle->items[i] = idle->items[next];
      i = next;
    }
  idle->tail = i;
}

static void
keep (const PtoReplayPlaces *places, guint32 core, guint32 number)
{
  PtoReplayLine *line = places->line;

  take (places, core);
  line->berths[core].kept = TRUE;
  line->berths[core].keeper = number;
  line->members[number].kept = core;
  line->parties[line->members[number].party].n_kept++;
}

static void
grant (const PtoReplayPlaces *places, guint32 core, guint32 run, guint64 *rung)
{
  PtoReplayLine *line = places->line;
  Desk *desk = &line->desks[places->core_scheduler[core]];
  Berth *berth = &line->berths[core];

  berth->keeper = NONE;
  berth->granted = run;
  berth->next_granted = desk->granted;
  desk->granted = core;
  call (line, places->core_scheduler[core], rung);
}

/* The places of its members from that one on are idle again. */
static void
give_up (const PtoReplayPlaces *places, Party *party, guint32 from, guint64 *rung)
{
  Member *members = &places->line->members[party->parts->first_member];

  for (guint32 m = from; m < party->parts->n_members; m++)
    if (members[m].kept != NONE)
      {
        grant (places, members[m].kept, PTO_REPLAY_IDLE, rung);
        members[m].kept = NONE;
        party->n_kept--;
      }
}

/* Whose turn is later keeps nothing. */
static void
take_back (const PtoReplayPlaces *places, guint64 turn, guint64 *rung)
{
  PtoReplayLine *line = places->line;

  for (guint32 c = 0; c < places->n_cores; c++)
    if (line->berths[c].keeper != NONE && turn_of (line, line->berths[c].keeper) > turn)
      give_up (places, &line->parties[line->members[line->berths[c].keeper].party], 0, rung);
}

guint64
pto_replay_line_enter (PtoReplayPlaces *places, guint32 position)
{
  PtoReplayLine *line = places->line;
  const PtoReplayTask *task = &line->replay->tasks[position];
  Party *party = &line->parties[task->parts];
  guint64 rung = 0;

  party->turn = line->turn++ | (guint64) (PTO_MAX_PRIORITY - task->priority) << TURN_BITS;
  if (task->priority > 0)
    take_back (places, party->turn, &rung);
  if (party->lane != NONE)
    {
      if (enter_lane (places, task->parts) && party->cluster == NONE)
        call_all (places, &rung);
      else if (party->cluster != NONE)
        call (line, scheduler_of (places, party->cluster), &rung);
    }
  else
    for (guint32 m = 0; m < party->parts->n_members; m++)
      {
        guint32 number = party->parts->first_member + m;
        guint32 core = line->replay->names[number];

        wait_at (places, core, number);
        call (line, places->core_scheduler[core], &rung);
      }
  return rung;
}

static void
leave_line (const PtoReplayPlaces *places, Party *party, guint64 *rung)
{
  PtoReplayLine *line = places->line;
  Lane *lane;

  if (party->lane == NONE)
    {
      for (guint32 m = 0; m < party->parts->n_members; m++)
        {
          guint32 number = party->parts->first_member + m;
          guint32 core = line->replay->names[number];

          leave_berth (places, core, number);
          if (line->berths[core].first != NONE)
            call (line, places->core_scheduler[core], rung);
        }
      return;
    }
  lane = &lanes_of (line, party)->of[party->lane];
  lane->first = party->next;
  lane->cluster = NONE;
  if (lane->first == NONE)
    note_waiting (places, party);
  if (party->cluster == NONE)
    call_all (places, rung);
  else
    call (line, scheduler_of (places, party->cluster), rung);
}

/* All members of its next block have their places. */
static void
send_off (const PtoReplayPlaces *places, Party *party, guint64 *rung)
{
  PtoReplayLine *line = places->line;
  const PtoReplayParts *parts = party->parts;
  guint32 first
      = line->replay->tasks[parts->task].first_run + party->next_block++ * parts->n_members;

  if (party->next_block == parts->n_blocks)
    leave_line (places, party, rung);
  else if (party->cluster == NONE)
    line->lanes.of[party->lane].cluster = NONE;
  for (guint32 m = parts->n_members; m-- > 0;)
    {
      Member *member = &line->members[parts->first_member + m];

      grant (places, member->kept, first + m, rung);
      member->kept = NONE;
    }
  party->n_kept = 0;
}

static guint64
first_turn (const PtoReplayLine *line, const Lanes *lanes, guint32 lane)
{
  return (lanes->waiting >> lane & 1) != 0 ? line->parties[lanes->of[lane].first].turn
                                           : G_MAXUINT64;
}

/* Has nobody in these lanes who needs cores of these types come before? */
static gboolean
comes_first (const PtoReplayLine *line, const Lanes *lanes, const Party *party)
{
  if (lanes->waiting == 0)
    return TRUE;
  if (party->lane == LANE_MIXED)
    {
      for (guint32 type = 0; type < PTO_N_CORE_TYPES; type++)
        if (first_turn (line, lanes, type) < party->turn)
          return FALSE;
      return first_turn (line, lanes, LANE_MIXED) >= party->turn;
    }
  return first_turn (line, lanes, type_of_member (line->replay, party->parts, 0)) >= party->turn
         && first_turn (line, lanes, LANE_MIXED) >= party->turn;
}

static gboolean
may_keep (const PtoReplayLine *line, guint32 cluster, const Party *party)
{
  return comes_first (line, &line->clusters[cluster].lanes, party);
}

/* Who waits first for that place by name. */
static void
serve_berth (const PtoReplayPlaces *places, guint32 core, gboolean patient, guint64 turn,
             guint64 *rung)
{
  PtoReplayLine *line = places->line;
  guint32 number = line->berths[core].first;
  Party *party = &line->parties[line->members[number].party];

  if (line->members[number].kept != NONE || party->turn >= turn || !is_free (places, core, patient)
      || (party->parts->n_members > 1
          && !(comes_first (line, &line->lanes, party)
               && may_keep (line, core / places->per_cluster, party))))
    return;
  keep (places, core, number);
  if (party->n_kept == party->parts->n_members)
    send_off (places, party, rung);
}

static void
serve_named (const PtoReplayPlaces *places, guint scheduler, gboolean patient, guint64 turn,
             guint64 *rung)
{
  if (places->line->desks[scheduler].n_named == 0)
    return;
  for (guint32 c = places->first[scheduler]; c < places->first[scheduler + 1]; c++)
    if (places->line->berths[c].first != NONE)
      serve_berth (places, c, patient, turn, rung);
}

static guint32
current_block (const Party *party)
{
  return party->parts->together ? party->n_kept / party->parts->block * party->parts->block : 0;
}

/* The member that is to be there: one that names the place before one that takes any. */
static guint32
member_for (const PtoReplayPlaces *places, const Party *party, guint32 core)
{
  const PtoReplayLine *line = places->line;
  const PtoReplayParts *parts = party->parts;
  guint32 any = NONE;
  guint32 from = current_block (party);
  guint32 end = parts->together ? from + parts->block : parts->n_members;

  for (guint32 m = from; m < end; m++)
    {
      guint32 number = parts->first_member + m;

      if (line->members[number].kept != NONE
          || type_of_member (line->replay, parts, m) != places->core_type[core])
        continue;
      if (line->replay->names[number] == core)
        return number;
      if (line->replay->names[number] == NONE && any == NONE)
        any = number;
    }
  return any;
}

/* Keeps what the first one needs. TRUE: it has all. */
static gboolean
collect_any (const PtoReplayPlaces *places, guint scheduler, Party *party, gboolean patient)
{
  for (guint32 c = places->first[scheduler];
       c < places->first[scheduler + 1] && party->n_kept < party->parts->n_members; c++)
    if (is_free (places, c, patient) && may_keep (places->line, c / places->per_cluster, party))
      {
        guint32 number = member_for (places, party, c);

        if (number != NONE)
          keep (places, c, number);
      }
  return party->n_kept == party->parts->n_members;
}

/* The same for its next block, of what is free there. TRUE: that has all. */
static gboolean
collect_in (const PtoReplayPlaces *places, guint32 cluster, Party *party, gboolean patient)
{
  guint32 from = current_block (party);
  guint32 first = cluster * places->per_cluster;

  for (guint32 c = first; c < first + places->per_cluster && current_block (party) == from; c++)
    if (is_free (places, c, patient))
      {
        guint32 number = member_for (places, party, c);

        if (number != NONE)
          keep (places, c, number);
      }
  return current_block (party) != from;
}

/* How many members of a block have a free core there now. */
static guint32
count_free (const PtoReplayPlaces *places, guint32 cluster, const Party *party, gboolean patient)
{
  guint32 n_of[PTO_N_CORE_TYPES] = { 0 };
  guint32 n = 0;

  for (guint32 k = 0; k < places->per_cluster; k++)
    {
      guint32 core = cluster * places->per_cluster + k;
      guint32 type = places->core_type[core];

      if (n_of[type] < party->n_of[type] && is_free (places, core, patient))
        {
          n_of[type]++;
          n++;
        }
    }
  return n;
}

/* Those that are for just this cluster and have come before that turn, as they came. */
static void
serve_cluster (const PtoReplayPlaces *places, guint scheduler, guint32 number, gboolean patient,
               guint64 turn, guint64 *rung)
{
  PtoReplayLine *line = places->line;
  Cluster *cluster = &line->clusters[number];
  guint32 waiting = cluster->lanes.waiting;

  while (waiting != 0)
    {
      guint32 next = (guint32) __builtin_ctz (waiting);
      gboolean has_all;
      Party *party;

      for (guint32 lane = next + 1; lane < N_LANES; lane++)
        if ((waiting >> lane & 1) != 0
            && first_turn (line, &cluster->lanes, lane) < first_turn (line, &cluster->lanes, next))
          next = lane;
      party = &line->parties[cluster->lanes.of[next].first];
      if (party->turn >= turn)
        return;
      if (party->parts->n_members > 1)
        serve_named (places, scheduler, patient, party->turn, rung);
      has_all = party->parts->n_members == 1
                || (comes_first (line, &cluster->lanes, party)
                    && comes_first (line, &line->lanes, party));
      while (has_all && party->n_kept < party->parts->n_members)
        has_all = collect_in (places, number, party, patient);
      if (has_all)
        {
          send_off (places, party, rung);
          waiting &= cluster->lanes.waiting;
        }
      else
        waiting &= ~(1u << next);
    }
}

/* Those that have come before that turn and know where they are to be. */
static void
serve_bound (const PtoReplayPlaces *places, guint scheduler, gboolean patient, guint64 turn,
             guint64 *rung)
{
  if (places->line->desks[scheduler].n_bound > 0)
    for (guint32 c = places->first[scheduler] / places->per_cluster;
         c < places->first[scheduler + 1] / places->per_cluster; c++)
      serve_cluster (places, scheduler, c, patient, turn, rung);
  serve_named (places, scheduler, patient, turn, rung);
}

/* A cluster that is free as a whole serves the next block of the first one at once; if there is
 * none, it chooses one and keeps what becomes idle there. TRUE: it has all. */
static gboolean
collect_cluster (const PtoReplayPlaces *places, guint scheduler, Party *party, gboolean patient,
                 guint64 *rung)
{
  PtoReplayLine *line = places->line;
  Lane *lane = &line->lanes.of[party->lane];
  guint32 n_members = party->parts->n_members;
  guint32 block = party->parts->block;
  guint32 best = NONE;
  guint32 most = 0;

  for (guint32 c = places->first[scheduler] / places->per_cluster;
       c < places->first[scheduler + 1] / places->per_cluster; c++)
    {
      guint32 n;

      if (n_fitting (line->clusters[c].n_of, party->n_of) == 0 || !may_keep (line, c, party))
        continue;
      n = count_free (places, c, party, patient);
      while (n == block)
        {
          give_up (places, party, current_block (party), rung);
          lane->cluster = NONE;
          collect_in (places, c, party, patient);
          if (party->n_kept == n_members)
            return TRUE;
          n = count_free (places, c, party, patient);
        }
      if (best == NONE || n > most)
        {
          best = c;
          most = n;
        }
    }
  if (lane->cluster == NONE
      || (party->n_kept % block == 0 && !may_keep (line, lane->cluster, party)))
    lane->cluster = best;
  if (lane->cluster == NONE || scheduler_of (places, lane->cluster) != scheduler)
    return FALSE;
  if (collect_in (places, lane->cluster, party, patient))
    lane->cluster = NONE;
  return party->n_kept == n_members;
}

/* The first ones of a lane, as far as there are places for them. TRUE: one was sent off. */
static gboolean
serve_lane (const PtoReplayPlaces *places, guint scheduler, guint32 number, gboolean patient,
            guint64 *rung)
{
  PtoReplayLine *line = places->line;
  gboolean sent = FALSE;

  while ((line->lanes.waiting >> number & 1) != 0)
    {
      Party *party = &line->parties[line->lanes.of[number].first];

      if (!comes_first (line, &line->lanes, party))
        break;
      serve_bound (places, scheduler, patient, party->turn, rung);
      if (!(party->parts->together ? collect_cluster (places, scheduler, party, patient, rung)
                                   : collect_any (places, scheduler, party, patient)))
        break;
      send_off (places, party, rung);
      sent = TRUE;
    }
  return sent;
}

gboolean
pto_replay_line_calls (const PtoReplayPlaces *places, guint scheduler)
{
  return places->line->desks[scheduler].called;
}

guint64
pto_replay_line_look (PtoReplayPlaces *places, guint scheduler, gboolean patient)
{
  PtoReplayLine *line = places->line;
  Desk *desk = &line->desks[scheduler];
  guint64 rung = 0;
  gboolean sent;

  do
    {
      sent = FALSE;
      for (guint32 waiting = line->lanes.waiting; waiting != 0; waiting &= waiting - 1)
        sent |= serve_lane (places, scheduler, (guint32) __builtin_ctz (waiting), patient, &rung);
    }
  while (sent);
  serve_bound (places, scheduler, patient, G_MAXUINT64, &rung);
  for (guint32 c = places->first[scheduler]; !patient && c < places->first[scheduler + 1]; c++)
    line->berths[c].lately = FALSE;
  desk->called = line->lanes.waiting != 0 || desk->n_named > 0 || desk->n_bound > 0;
  return rung & ~(G_GUINT64_CONSTANT (1) << scheduler);
}

gboolean
pto_replay_line_take (PtoReplayPlaces *places, guint scheduler, guint32 *core, guint32 *run)
{
  Desk *desk = &places->line->desks[scheduler];
  Berth *berth;

  if (desk->granted == NONE)
    return FALSE;
  *core = desk->granted;
  berth = &places->line->berths[*core];
  desk->granted = berth->next_granted;
  berth->kept = FALSE;
  *run = berth->granted;
  return TRUE;
}

void
pto_replay_line_leave (PtoReplayPlaces *places, guint32 core)
{
  places->line->berths[core].lately = TRUE;
}

/* --- clusters of the orchestration's own --- */

void
pto_replay_line_submit (PtoReplayPlaces *places, guint32 position)
{
  PtoReplayLine *line = places->line;
  Party *party = &line->parties[line->replay->tasks[position].parts];

  if (party->parts->hold == PTO_TRACE_NOWHERE)
    return;
  party->cluster = line->held[party->parts->hold];
  line->clusters[party->cluster].open++;
}

void
pto_replay_line_complete (PtoReplayPlaces *places, guint32 position)
{
  const Party *party = &places->line->parties[places->line->replay->tasks[position].parts];

  if (party->cluster != NONE)
    places->line->clusters[party->cluster].open--;
}

/* In turn, so that work goes round. */
gboolean
pto_replay_line_hold (PtoReplayPlaces *places, guint32 hold)
{
  PtoReplayLine *line = places->line;

  for (guint32 i = 0; i < places->n_clusters; i++)
    {
      guint32 c = (line->next_cluster + i) % places->n_clusters;

      if (line->clusters[c].open == 0)
        {
          line->next_cluster = c + 1;
          line->clusters[c].open = 1;
          line->held[hold] = c;
          return TRUE;
        }
    }
  return FALSE;
}

void
pto_replay_line_let_go (PtoReplayPlaces *places, guint32 hold)
{
  places->line->clusters[places->line->held[hold]].open--;
}
