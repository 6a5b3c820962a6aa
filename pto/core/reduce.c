/* reduce.c: how do tasks that reduce into the same memory run at the same time?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "reduce.h"

#include "exec/translate.h"
#include "commutative.h"
#include "outer-scope.h"
#include "record-submit.h"
#include "submit.h"

/* Open at one time: each submit looks at all of them. One more closes the oldest. */
#define SETS_MAX 64u
#define COPIES_MAX 64u
/* A set has at most one copy for so many slots of its ring, and all of its copies at most that part
 * of the heap: others want some, too. */
#define SLOTS_PER_COPY 8u
#define HEAP_PART 4u

struct set
{
  PTOParam param; /* of the first that reduced: into what, with which kernel, from which value */
  struct pto_region region;
  struct pto_reduction form;
  uint32_t number;
  uint32_t depth;    /* of the scope that it was opened in */
  uint32_t priority; /* the highest of its tasks' */
  uint32_t n_tasks;
  uint32_t n_copies;
  uint32_t room;       /* copies that there is memory for: */
  uint32_t max_copies; /* with that */
  uint32_t n_wanted;   /* copies, with any amount of memory: */
  uint32_t max_wanted;
  uint64_t serial; /* of the submit that joined last */
  struct PTO2Buffer *copies[COPIES_MAX];
};

struct pto_sets
{
  struct set *open[SETS_MAX]; /* the oldest first; no two overlap */
  uint32_t n;
  uint32_t n_opened;
  uint64_t serial;
  /* Copies of the scopes that are open, by the time since which they are free. */
  struct PTO2Buffer **free;
  uint32_t n_free;
  uint32_t max_free; /* at least n_copies: */
  uint32_t n_copies; /* of open sets, and those that are free */
  /* The last ones of those that have combined: who looks nothing up comes after them. */
  pto_task_id done[SETS_MAX];
  uint32_t n_done;
};

static void
note_open (struct pto_engine *engine)
{
  if (engine->sets->n > 0)
    engine->before |= PTO_BEFORE_SETS;
  else
    engine->before &= ~PTO_BEFORE_SETS;
}

/* A run that could not go on still counts what it would have needed. */
static bool
goes_on (const struct pto_engine *engine, pto_task_id id)
{
  return id != PTO_TASK_NONE || engine->deadlock.what != PTO_OK;
}

/* --- copies --- */

static Tensor
handle_of (const struct set *set, struct PTO2Buffer *copy)
{
  Tensor tensor = set->param.tensor;

  pto2_tensor_set_shape (&tensor, set->param.tensor.shapes, tensor.ndims, tensor.dtype);
  tensor.start_offset = 0;
  tensor.buffer.addr = copy->addr;
  tensor.buffer.size = copy->bytes;
  tensor.storage = copy;
  tensor.generation = copy->generation;
  return tensor;
}

static uint64_t
bytes_of (const Tensor *tensor)
{
  return pto2_tensor_numel (tensor) * pto_dtype_size (tensor->dtype);
}

/* Is there memory for one more that others do not miss? */
static bool
is_roomy (const struct pto_engine *engine, const struct set *set)
{
  const struct pto_ring *ring = &engine->rings[pto_engine_ring_of_depth (set->depth - 1)];

  /* A graph's memory goes when its last user is done. */
  return engine->capture != NULL
         || (ring->heap.used + pto_engine_output_bytes (engine, bytes_of (&set->param.tensor))
                 <= ring->heap.size / 2
             && ring->head - engine->tails[pto_engine_ring_of_depth (set->depth - 1)]
                    <= ring->window / 2);
}

/* Of the set's scope and its size, the one that is free for longest; NULL: there is none. */
static struct PTO2Buffer *
take_free (struct pto_sets *sets, const struct set *set)
{
  for (uint32_t i = 0; i < sets->n_free; i++)
    {
      struct PTO2Buffer *copy = sets->free[i];

      if (copy->depth != set->depth || copy->bytes != bytes_of (&set->param.tensor))
        continue;
      memmove (&sets->free[i], &sets->free[i + 1], (--sets->n_free - i) * sizeof copy);
      return copy;
    }
  return NULL;
}

/* One more copy for the set, filled. Its memory is of the set's scope, also where the submit is in
 * one within it: that one's tasks may go before the set is closed. false: the run has failed. */
static bool
add_copy (struct pto_engine *engine, struct set *set, uint32_t priority)
{
  uint32_t depth = engine->depth;
  struct PTO2Buffer *copy = is_roomy (engine, set) ? NULL : take_free (engine->sets, set);
  bool fresh = copy == NULL;
  PTOParam params[2];
  pto_task_id id;

  if (fresh)
    {
      if (set->n_copies > 0 && !is_roomy (engine, set))
        return true;
      copy = pto_array_has_room (engine->sets->free, engine->sets->n_copies, engine->sets->max_free)
                 ? calloc (1, sizeof *copy)
                 : NULL;
      if (copy == NULL)
        return pto_engine_fail (engine, PTO_STATUS_NO_MEMORY,
                                _ ("no memory for a copy of what is reduced"));
      engine->sets->n_copies++;
      copy->bytes = bytes_of (&set->param.tensor);
      copy->depth = set->depth;
      copy->space.creator = PTO_TASK_NONE;
    }
  set->copies[set->n_copies++] = copy;
  params[0].type = PTO_PARAM_OUTPUT;
  params[0].tensor = handle_of (set, copy);
  params[1].type = PTO_PARAM_SCALAR;
  params[1].scalar = set->param.scalar;
  if (fresh)
    pto_engine_step_out (engine, set->depth);
  id = pto_engine_submit (engine, &(struct pto_submit){ .kernel = set->form.fill,
                                                        .queue = set->form.fill_queue,
                                                        .params = params,
                                                        .n_params = 2,
                                                        .terms.priority = priority });
  engine->depth = depth;
  if (engine->observed)
    pto_observe_reduce (engine, id, PTO_TRACE_REDUCE_FILL, set->number, set->room);
  return goes_on (engine, id);
}

/* --- sets --- */

static bool
is_same (const struct set *set, const PTOParam *param)
{
  const Tensor *a = &set->param.tensor;
  const Tensor *b = &param->tensor;

  return param->type == PTO_PARAM_REDUCTION && param->combine == set->param.combine
         && param->scalar == set->param.scalar && a->storage == b->storage
         && (a->storage != NULL ? a->generation == b->generation : a->buffer.addr == b->buffer.addr)
         && a->start_offset == b->start_offset && a->dtype == b->dtype && a->ndims == b->ndims
         && memcmp (a->shapes, b->shapes, a->ndims * sizeof *a->shapes) == 0
         && memcmp (a->strides, b->strides, a->ndims * sizeof *a->strides) == 0;
}

/* Where an argument lies, for who comes after others. false: nowhere, or nobody asks. */
static bool
find_region (const PTOParam *param, struct pto_region *region)
{
  Tensor tensor;

  if (param->type == PTO_PARAM_SCALAR || param->type == PTO_PARAM_NO_DEP
      || param->type == PTO_PARAM_SCRATCH || param->tensor.status != PTO2_TENSOR_OK)
    return false;
  tensor = param->tensor;
  if (tensor.storage != NULL)
    {
      if (tensor.storage->generation != tensor.generation)
        return false;
      tensor.buffer.addr = tensor.storage->addr;
    }
  pto_region_init (region, &tensor);
  return tensor.buffer.addr != 0;
}

static bool
meets (const struct set *set, const struct pto_region *region)
{
  bool unsure;

  return region->lo < set->region.hi && set->region.lo < region->hi
         && pto_region_overlaps (&set->region, region, &unsure);
}

static pto_task_id
combine (struct pto_engine *engine, const struct set *set, const Tensor *to, const Tensor *from)
{
  PTOParam params[2]
      = { pto2_make_param (PTO_PARAM_INOUT, to), pto2_make_param (PTO_PARAM_INPUT, from) };
  pto_task_id id
      = pto_engine_submit (engine, &(struct pto_submit){ .kernel = set->form.combine,
                                                         .queue = set->form.combine_queue,
                                                         .params = params,
                                                         .n_params = 2,
                                                         .terms.priority = set->priority });

  if (engine->observed)
    pto_observe_reduce (engine, id, PTO_TRACE_REDUCE_COMBINE, set->number, 0);
  return id;
}

static bool
is_over (const struct pto_engine *engine, pto_task_id id)
{
  return pto_task_is_retired (engine->tails, id)
         && !(engine->failed.count > 0 && pto_task_set_has (&engine->failed, id));
}

/* Instead of all that are noted one task, which comes after them; without memory there is none, and
 * the run has failed. */
static void
fold_done (struct pto_engine *engine)
{
  struct pto_sets *sets = engine->sets;
  uint32_t n = 0;

  for (uint32_t i = 0; i < sets->n_done; i++)
    if (!is_over (engine, sets->done[i]))
      sets->done[n++] = sets->done[i];
  if (n > 1)
    {
      sets->done[0] = pto_engine_submit (engine, &(struct pto_submit){ .kernel = PTO_KERNEL_NONE,
                                                                       .producers = sets->done,
                                                                       .n_producers = n });
      n = sets->done[0] != PTO_TASK_NONE;
    }
  sets->n_done = n;
}

/* In pairs, so that copies of n places are combined in the time of log n. */
static void
close_set (struct pto_engine *engine, uint32_t index)
{
  struct pto_sets *sets = engine->sets;
  struct set *set = sets->open[index];
  /* Without memory for the first one there is none, and the run has failed. */
  Tensor first = set->n_copies > 0 ? handle_of (set, set->copies[0]) : set->param.tensor;
  pto_task_id last = PTO_TASK_NONE;

  memmove (&sets->open[index], &sets->open[index + 1], (--sets->n - index) * sizeof sets->open[0]);
  note_open (engine);
  for (uint32_t step = 1; step < set->n_copies; step *= 2)
    for (uint32_t i = 0; i + step < set->n_copies; i += 2 * step)
      {
        Tensor to = handle_of (set, set->copies[i]);
        Tensor from = handle_of (set, set->copies[i + step]);

        combine (engine, set, &to, &from);
      }
  if (set->n_copies > 0)
    last = combine (engine, set, &set->param.tensor, &first);
  if (last != PTO_TASK_NONE)
    {
      if (sets->n_done == SETS_MAX)
        fold_done (engine);
      sets->done[sets->n_done++] = last;
    }
  for (uint32_t i = 0; i < set->n_copies; i++)
    sets->free[sets->n_free++] = set->copies[i];
  free (set);
}

/* Those that look nothing up come after one task, which comes after all that combine. */
static void
settle_all (struct pto_engine *engine)
{
  struct pto_sets *sets = engine->sets;

  while (sets->n > 0)
    close_set (engine, 0);
  fold_done (engine);
  if (sets->n_done == 0)
    return;
  engine->combined = sets->done[0];
  engine->before |= PTO_BEFORE_COMBINED;
}

/* Before what a submit accesses is looked up; NULL: before everything. */
static void
settle (struct pto_engine *engine, const struct pto_submit *submit)
{
  struct pto_sets *sets = engine->sets;

  if (submit == NULL)
    settle_all (engine);
  else if (engine->tracked != 0)
    for (uint32_t i = 0; i < submit->n_params && sets->n > 0; i++)
      {
        const PTOParam *param = &submit->params[i];
        struct pto_region region;

        if (!find_region (param, &region))
          continue;
        for (uint32_t s = 0; s < sets->n;)
          if (!is_same (sets->open[s], param) && meets (sets->open[s], &region))
            close_set (engine, s);
          else
            s++;
      }
}

static void
limit_copies (const struct pto_engine *engine, const struct pto_submit *submit, struct set *set)
{
  const struct pto_ring *ring = &engine->rings[pto_engine_ring_of_depth (set->depth - 1)];
  uint32_t queue = submit->queue < PTO_QUEUES_MAX ? submit->queue : submit->wish->members[0].queue;
  uint64_t room = ring->heap.size / HEAP_PART
                  / pto_engine_output_bytes (engine, bytes_of (&set->param.tensor));
  uint32_t n = engine->line.n_of[queue] < COPIES_MAX ? engine->line.n_of[queue] : COPIES_MAX;

  n = n > 0 ? n : 1;
  set->max_wanted = n;
  set->room = ring->window / SLOTS_PER_COPY;
  if (set->room > room)
    set->room = (uint32_t) room;
  if (set->room == 0)
    set->room = 1;
  set->max_copies = n < set->room ? n : set->room;
}

/* With more memory it would have one copy more, and what advises to have more is to know. */
static void
count_missing (struct pto_engine *engine, const struct set *set)
{
  struct pto_demand *demand = &engine->demand[pto_engine_ring_of_depth (set->depth - 1)];

  demand->now[PTO_GOOD_TASKS] += 2; /* who fills it, who combines it */
  demand->now[PTO_GOOD_HEAP] += pto_engine_output_bytes (engine, bytes_of (&set->param.tensor));
  demand->now[PTO_GOOD_STORAGE] += 2 * PTO_STORAGE_PER_SLOT;
  /* The combining task reads the copy; a contribution comes after what fills it. */
  demand->now[PTO_GOOD_EDGES] += 4;
  demand->now[PTO_GOOD_NODES] += 2;
}

/* A set for an argument that has none. NULL: the run has failed. */
static struct set *
open_set (struct pto_engine *engine, const struct pto_submit *submit, uint32_t index)
{
  struct pto_sets *sets = engine->sets;
  const PTOParam *param = &submit->params[index];
  struct pto_reduction form;
  struct pto_region region;
  struct set *set;
  char why[768];

  if (!engine->config.reduction (engine->config.reduction_data, param, &form, why, sizeof why))
    {
      pto_engine_refuse_argument (engine, submit, index, why);
      return NULL;
    }
  find_region (param, &region);
  for (uint32_t s = 0; s < sets->n; s++)
    if (sets->open[s]->serial == sets->serial && meets (sets->open[s], &region))
      {
        pto_engine_refuse_argument (
            engine, submit, index,
            _ ("it overlaps another argument that the task reduces into in another way: one task "
               "reduces into tensors that are apart, or are the same"));
        return NULL;
      }
  if (sets->n == SETS_MAX)
    {
      uint32_t oldest = 0;

      while (oldest < sets->n && sets->open[oldest]->serial == sets->serial)
        oldest++;
      if (oldest == sets->n)
        {
          pto_engine_refuse_argument (engine, submit, index,
                                      _ ("a task reduces into at most 64 tensors"));
          return NULL;
        }
      close_set (engine, oldest);
    }
  set = calloc (1, sizeof *set);
  if (set == NULL)
    {
      pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory for what is reduced"));
      return NULL;
    }
  set->param = *param;
  set->region = region;
  set->form = form;
  set->number = sets->n_opened++;
  set->depth = engine->depth;
  limit_copies (engine, submit, set);
  sets->open[sets->n++] = set;
  return set;
}

/* The argument of a task that reduces, as the update of a copy. Tasks have the copies in turn, so
 * that which of them have one together depends on the order of the submits only. false: the run has
 * failed. */
static bool
join (struct pto_engine *engine, const struct pto_submit *submit, uint32_t index, PTOParam *param)
{
  struct pto_sets *sets = engine->sets;
  struct set *set = NULL;
  Tensor tensor;

  for (uint32_t s = 0; s < sets->n && set == NULL; s++)
    if (is_same (sets->open[s], &submit->params[index]))
      set = sets->open[s];
  if (set == NULL)
    set = open_set (engine, submit, index);
  if (set == NULL)
    return false;
  set->serial = sets->serial;
  set->priority = max_of (set->priority, submit->terms.priority);
  if (set->n_wanted < set->max_wanted)
    {
      set->n_wanted++;
      if (set->n_copies < set->max_copies && !add_copy (engine, set, submit->terms.priority))
        return false;
      if (set->n_wanted > set->n_copies)
        count_missing (engine, set);
    }
  tensor = handle_of (set, set->copies[set->n_tasks++ % set->n_copies]);
  *param = pto2_make_param (PTO_PARAM_COMMUTATIVE, &tensor);
  return true;
}

/* Why nothing can be reduced here; NULL: it can. */
static const char *
judge (const struct pto_engine *engine)
{
  if (engine->config.reduction == NULL)
    return _ (
        "what is reduced is combined by a kernel of a chip, and this level has none: reduce in "
        "the orchestrations of its chips, or say INOUT or COMMUTATIVE here");
  if (engine->tracked == 0)
    return _ (
        "nothing is reduced in a manual scope, or by a task that is added by hand, where nobody would know when to combine: reduce "
        "in an ordinary scope");
  return NULL;
}

/* Its arguments, with copies instead of what it reduces into. false: the run has failed. */
static bool
join_all (struct pto_engine *engine, const struct pto_submit *submit, PTOParam *params)
{
  const char *why = judge (engine);

  engine->sets->serial++;
  memcpy (params, submit->params, submit->n_params * sizeof *params);
  for (uint32_t i = 0; i < submit->n_params; i++)
    {
      Tensor tensor;

      if (params[i].type != PTO_PARAM_REDUCTION)
        continue;
      if (why != NULL)
        return pto_engine_refuse_argument (engine, submit, i, why);
      tensor = params[i].tensor;
      /* The submit says what is wrong with it. */
      if (pto_engine_locate (&tensor) != NULL || tensor.buffer.addr == 0)
        params[i].type = PTO_PARAM_INOUT;
      else if (!join (engine, submit, i, &params[i]))
        return false;
    }
  return true;
}

/* Which sets the task has just joined. */
static void
observe (struct pto_engine *engine, const struct pto_submit *submit, pto_task_id id)
{
  const struct pto_sets *sets = engine->sets;

  for (uint32_t i = 0; i < submit->n_params; i++)
    for (uint32_t s = 0; submit->params[i].type == PTO_PARAM_REDUCTION && s < sets->n; s++)
      if (is_same (sets->open[s], &submit->params[i]))
        pto_observe_reduce (engine, id, PTO_TRACE_REDUCE_UPDATE, sets->open[s]->number,
                            engine->accesses[i].token % PTO_TURNS);
}

static pto_task_id
submit_reducing (struct pto_engine *engine, const struct pto_submit *submit)
{
  struct pto_submit full = *submit;
  pto_task_id id = PTO_TASK_NONE;

  if (engine->sets == NULL)
    engine->sets = calloc (1, sizeof *engine->sets);
  full.params = malloc (submit->n_params * sizeof *full.params);
  if (engine->sets == NULL || full.params == NULL)
    pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory for what is reduced"));
  else if (join_all (engine, submit, full.params))
    {
      /* What it accesses otherwise comes before those that it has just joined. */
      engine->before &= ~PTO_BEFORE_SETS;
      id = pto_engine_submit (engine, &full);
      note_open (engine);
      if (engine->observed)
        observe (engine, submit, id);
      for (uint32_t i = 0; i < submit->n_params; i++)
        if (submit->params[i].type != PTO_PARAM_REDUCTION)
          submit->params[i] = full.params[i];
    }
  free (full.params);
  return id;
}

/* Before its tasks may go: they combine what they have reduced, and its copies are gone. */
static void
end_scope (struct pto_engine *engine)
{
  struct pto_sets *sets = engine->sets;
  uint32_t n = 0;

  for (uint32_t s = 0; s < sets->n;)
    if (sets->open[s]->depth == engine->depth)
      close_set (engine, s);
    else
      s++;
  for (uint32_t i = 0; i < sets->n_free; i++)
    if (sets->free[i]->depth != engine->depth)
      sets->free[n++] = sets->free[i];
    else
      {
        pto_map_drop (engine->map, &sets->free[i]->space);
        free (sets->free[i]);
        sets->n_copies--;
      }
  sets->n_free = n;
}

static const struct pto_reducer reducer
    = { .settle = settle, .submit = submit_reducing, .end_scope = end_scope };

void
pto_reduce_begin (struct pto_engine *engine)
{
  engine->reducer = &reducer;
  engine->before = engine->config.rename ? PTO_BEFORE_RENAME : 0;
}

void
pto_reduce_end (struct pto_engine *engine)
{
  if (engine->sets != NULL)
    free (engine->sets->free);
  free (engine->sets);
  engine->sets = NULL;
}
