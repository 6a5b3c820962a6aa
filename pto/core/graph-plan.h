/* graph-plan.h: which tasks are there, and which of them comes after which, before any is
 * submitted?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A graph is built once, by hand or by writing down what an orchestration submits
 * (graph-capture.h), and submitted as often as one likes (graph-launch.h). It knows no address:
 * memory is an argument of the graph, or what one of its tasks outputs. Only memory that it keeps,
 * which no launch is given, lies where it lay. When it is complete nobody writes to it, and any
 * number of threads may submit it at the same time.
 *
 * Owner: who builds it.
 */
#pragma once

#include "api/pto_orchestration_api.h"
#include "region.h"
#include "status.h"
#include "task.h"
#include "submission.h"

/* What is written where the task's arguments are. */
enum pto_plan_source
{
  PTO_PLAN_NUMBER, /* value */
  PTO_PLAN_SCALAR, /* what the launch gives as that argument */
  PTO_PLAN_TENSOR, /* memory that the launch gives as that argument, value bytes further */
  PTO_PLAN_USED,   /* memory that the task outputs, or that one before it has */
  PTO_PLAN_MADE    /* memory that is made for it */
};

struct pto_plan_arg
{
  uint64_t value;
  uint64_t start; /* of a tensor: TensorData.start_offset */
  uint32_t index; /* of the graph's argument, or of the memory */
  uint32_t what;  /* enum pto_plan_source; flags; for tensors the shape << 8 */
};
/* The task is given memory that was there before, so its core looks behind it. */
#define PTO_PLAN_FENCED 0x80u
/* With it, of memory of the graph: the task that makes it may be under way, see PTO_FENCE_PERHAPS.
 */
#define PTO_PLAN_PERHAPS 0x08u
/* The first of several arguments that are the same tensor, in a graph that is complete: a launch
 * describes that once, for all of them. They are numbered in that order. */
#define PTO_PLAN_FIRST 0x40u
/* Another one of them; start is the number. */
#define PTO_PLAN_AGAIN 0x20u
/* Of memory that is made: the task writes only a part of it, see PTO_GUARD_WRITTEN. */
#define PTO_PLAN_PART 0x10u
#define PTO_PLAN_SOURCE(what) ((enum pto_plan_source) ((what) &0x07u))
#define PTO_PLAN_SHAPE(what) ((what) >> 8)
#define PTO_PLAN_SHAPES_MAX (1u << 24)

struct pto_plan_task
{
  uint32_t kernel; /* of the graph's; with PTO_PLAN_IF */
  uint32_t first_arg;
  uint32_t first_dep;
  uint32_t n_deps;
  /* The first of them that others do not imply: who waits for those waits for all. A record of a
   * run has all. */
  uint32_t n_needed;
  uint32_t position; /* among those of its ring */
  /* The last task that uses its memory; itself, if nobody does. */
  uint32_t last_use;
  uint32_t floor; /* so many of its ring nobody will use any more when it is submitted */
  uint16_t n_args;
  uint16_t n_tensors; /* but for such as several arguments are */
  uint16_t n_made;
  uint16_t n_fenced;
  uint8_t ring;
  uint8_t perhaps; /* 1: an argument has PTO_PLAN_PERHAPS */
  /* Tokens of its updates that commute (commutative.h): how many, and where they are. */
  uint16_t n_tokens;
  uint32_t first_token;
  struct pto_terms terms;
  uint32_t parts; /* 1 + the index of what it says of them; 0: it has none */
  /* See pto_submit.extra; where that begins, in words of 8 bytes. */
  uint32_t first_extra;
  uint32_t extra_bytes;
};
#define PTO_PLAN_IF (1u << 31) /* see pto_submit.conditional */

/* Where a task is submitted, of each task apart from the rest: who launches needs it only where a
 * run is recorded, or fails. */
struct pto_plan_place
{
  uint32_t name; /* of a source, where it begins in the graph's names */
  uint32_t line; /* 0: nobody knows */
};

struct pto_plan_kernel
{
  uint32_t kernel; /* as a submit names it */
  uint32_t queue;
};

/* A task of blocks, or of several members, which are in a row; none: of one kernel on any place. */
struct pto_plan_parts
{
  struct pto_wish wish; /* its cohort as it was numbered when the graph was built */
  uint32_t n_blocks;
  uint32_t first_member; /* instead of the wish's */
};

/* A cohort is held, or let go of, before a task is submitted. */
struct pto_plan_hold
{
  uint32_t task;
  uint32_t cohort;
  bool held;
};

/* What a number is, for who is told of it: it has 64 bits. */
enum pto_plan_number
{
  PTO_PLAN_UNSIGNED,
  PTO_PLAN_SIGNED,
  PTO_PLAN_FLOAT, /* in the lower half */
  PTO_PLAN_DOUBLE
};

/* An argument of its launches, or memory that it keeps. */
struct pto_plan_param
{
  Tensor tensor;   /* its shape; ndims 0: it is a number */
  uint64_t kind;   /* of a number: enum pto_plan_number */
  uint64_t word;   /* of a number: the only one that there may be, if it is fixed; of memory that
                      is kept: what its owner knows it by */
  uint64_t first;  /* where its first element was when the graph was built ... */
  uint64_t extent; /* ... and how many bytes there are to the last one */
  uint32_t name;   /* 1 + where that begins in the graph's names; 0: it has none */
  bool fixed;
  bool written; /* by a task */
  bool owned;   /* by a worker when the graph was built; see struct pto_plan_given */
};

struct pto_plan_edge
{
  uint32_t consumer;
  uint32_t producer;
  uint32_t kinds;
};

/* An argument of a task that reduces (graph-plan-reduce.c). Where the tensor lies is said as for
 * pto_plan_add_use() if it is memory of the graph, else as for pto_plan_add_tensor(). */
struct pto_plan_reduction
{
  Tensor tensor;
  bool is_memory;
  uint32_t index; /* of that memory, or of the graph's argument */
  uint64_t offset;
  uint32_t turn; /* token of those who update the tensor */
  /* A token of nobody else: of those who update the copy, if it is this task that gets it first. */
  uint32_t token;
  uint32_t fill, fill_queue; /* kernels as tasks have them */
  uint32_t combine, combine_queue;
  uint64_t initial; /* bits, as the kernel that fills gets them */

  /* What follows is filled in here. */
  uint32_t task;
  uint32_t arg;      /* of all arguments of the graph's tasks */
  uint32_t token_at; /* of all tokens of the graph's tasks */
  uint32_t set;
  uint32_t before; /* which reduction was given the same copy before; UINT32_MAX: none */
};

struct pto_plan
{
  struct pto_plan_task *tasks;
  struct pto_plan_place *places; /* of the tasks */
  char *names;                   /* of sources and of arguments, each ended by 0 */
  struct pto_plan_arg *args;
  uint8_t *types; /* of the args, apart from them as the places: PTO_PARAM_*, as they were given */
  struct pto_dep *deps; /* of the tasks, as if every ring began at 0 */
  TensorData *shapes;   /* without addresses */
  struct pto_plan_kernel *kernels;
  struct pto_plan_param *params;
  struct pto_plan_parts *parts;
  struct pto_need *members; /* their kernels: the graph's */
  uint32_t *tokens;
  uint64_t *extra;
  struct pto_plan_hold *holds; /* in order; at one time a cohort is held once */
  uint32_t *creators;          /* of its memory: tasks; UINT32_MAX: nobody yet */
  uint64_t *sizes;             /* of its memory, in bytes */
  uint32_t *rings[PTO_RINGS];  /* tasks of each, by position */
  uint32_t n_in_ring[PTO_RINGS];
  uint32_t n_tasks;
  uint32_t n_names; /* bytes */
  uint32_t n_args;
  uint32_t n_deps;
  uint32_t n_orders; /* deps that do not only keep memory */
  uint32_t n_shapes;
  uint32_t n_shared; /* tensors that several arguments are */
  uint32_t n_kernels;
  uint32_t n_params;
  uint32_t n_kept; /* params: the last ones, which no launch is given */
  uint32_t n_parts;
  uint32_t n_members;
  uint32_t n_tokens;
  uint32_t n_extra; /* words */
  uint32_t n_holds;
  uint32_t n_cohorts; /* all numbers of cohorts are below */
  uint32_t n_memory;
  uint32_t max_deps; /* of one task */
  uint32_t max_args; /* of one task, without its condition */
  bool captured;     /* what comes after what follows from types; else it was named */
  bool complete;

  /* While it is built. */
  struct pto_plan_edge *edges;
  uint32_t n_edges;
  struct pto_plan_reduction *reductions;
  uint32_t n_reductions;
  uint32_t *shape_table;
  uint32_t shape_mask;
  bool no_memory;
};

struct pto_plan *pto_plan_new (void);
void pto_plan_free (struct pto_plan *graph);

/* --- building. What runs out of memory is told by the end. --- */

/* Gives its number. */
uint32_t pto_plan_add_param (struct pto_plan *graph, const struct pto_plan_param *param);
/* The same of memory that it keeps, behind all that launches are given. */
void pto_plan_add_kept (struct pto_plan *graph, const struct pto_plan_param *param);
/* Of one that was added; the name is copied. Also of a graph that is complete, while nobody has
 * it but the caller. false: no memory. */
bool pto_plan_name_param (struct pto_plan *graph, uint32_t param, const char *name);
uint32_t pto_plan_add_memory (struct pto_plan *graph, uint64_t bytes);
/* A task in that ring, as the submit says, but for what it comes after and its arguments: those are
 * added before the next task. */
uint32_t pto_plan_add_task (struct pto_plan *graph, const struct pto_submit *submit, uint32_t ring);
/* Of the task that was added last: where it is submitted, which is copied. line 0: nobody knows. */
void pto_plan_set_place (struct pto_plan *graph, const char *file, uint32_t line);
/* Of the task that is added next: a cohort is held before it, or let go of. */
void pto_plan_add_hold (struct pto_plan *graph, uint32_t cohort, bool held);
/* And of that task: one of its updates that commute is told apart by that. */
void pto_plan_add_token (struct pto_plan *graph, uint32_t token);
/* Those of one token take turns with those of the other from now on. */
void pto_plan_merge_tokens (struct pto_plan *graph, uint32_t from, uint32_t to);
void pto_plan_add_number (struct pto_plan *graph, uint64_t value);
/* tensor: as it would be submitted but for its address, which is the memory's, offset bytes
 * further. writes: so it is an output of the task; fenced: as PTO_PLAN_FENCED. */
void pto_plan_add_tensor (struct pto_plan *graph, uint32_t param, uint64_t offset,
                          const Tensor *tensor, bool writes, bool fenced);
/* The first task that outputs it makes it. ordered: any other one comes after that. */
void pto_plan_add_use (struct pto_plan *graph, uint32_t memory, uint64_t offset,
                       const Tensor *tensor, bool makes, bool writes, bool ordered);
/* Of the argument that was added last: PTO_PARAM_*, where it is another one than what was said of
 * it lets one think: made OUTPUT, else written INOUT, else INPUT. */
void pto_plan_set_type (struct pto_plan *graph, uint32_t type);
/* As a use of memory that is not known yet, for pto_plan_add_reduction(): a tensor that is there
 * already, and is written. */
void pto_plan_add_unknown (struct pto_plan *graph, const Tensor *tensor);
/* One more; NULL: no memory. */
struct pto_plan_reduction *pto_plan_new_reduction (struct pto_plan *graph);
/* An argument of the task, which was added as a number, is what the launch gives. false: it was
 * not. */
bool pto_plan_bind_scalar (struct pto_plan *graph, uint32_t task, uint32_t index, uint32_t param);
/* kinds: PTO_HAZARD_*. Who uses memory of a task comes behind it without being told. */
void pto_plan_add_edge (struct pto_plan *graph, uint32_t producer, uint32_t consumer,
                        uint32_t kinds);
/* Which argument holds all of a tensor with memory; and how far from the argument's first element
 * that memory begins. UINT32_MAX: none. */
uint32_t pto_plan_find_param (const struct pto_plan *graph, const Tensor *tensor, uint64_t *offset);
/* The next argument of the task that was added last: it gets a copy of the tensor. */
void pto_plan_add_reduction (struct pto_plan *graph, const struct pto_plan_reduction *reduction);
/* Brings tasks into an order in which each comes behind those that it depends on, which is that of
 * their numbers where that will do. The graph is complete, or the report says why not. */
enum pto_status pto_plan_complete (struct pto_plan *graph, struct pto_report *report);
/* Of it, when the numbers of the tasks are in such an order: adds tasks that fill and combine
 * copies, and edges. by_consumer: the edges that there are, sorted so; those of i begin at
 * first[i]. Without memory graph->no_memory says so. */
void pto_plan_settle (struct pto_plan *graph, const struct pto_plan_edge *by_consumer,
                      const uint32_t *first);

/* Of a graph that is complete. NULL: nobody knows. */
static inline const char *
pto_plan_get_place (const struct pto_plan *graph, uint32_t task, uint32_t *line)
{
  const struct pto_plan_place *place = &graph->places[task];

  *line = place->line;
  return place->line > 0 ? graph->names + place->name : NULL;
}

/* How many arguments a launch gives. */
static inline uint32_t
pto_plan_n_given (const struct pto_plan *graph)
{
  return graph->n_params - graph->n_kept;
}

/* NULL: it has none. */
static inline const char *
pto_plan_get_param_name (const struct pto_plan *graph, uint32_t param)
{
  uint32_t name = graph->params[param].name;

  return name > 0 ? graph->names + (name - 1) : NULL;
}

/* --- what it is launched with --- */

/* Names of arguments are no longer. */
#define PTO_PLAN_NAME_MAX 100u

struct pto_plan_given
{
  uint64_t word;        /* a number, or where the tensor's first element is */
  const Tensor *tensor; /* NULL: a number */
  uint64_t kind;        /* of a number: enum pto_plan_number */
  bool read_only;
  bool owned; /* by a worker, whose tasks alone see it */
};

/* How a sentence names an argument: '1 ("x")'. */
struct pto_plan_words
{
  char text[PTO_PLAN_NAME_MAX + 20];
};
struct pto_plan_words pto_plan_describe_param (const struct pto_plan *graph, uint32_t param);
/* Are these n of the shapes and types that it was built for? */
enum pto_status pto_plan_check (const struct pto_plan *graph, const struct pto_plan_given *given,
                                uint32_t n, struct pto_report *report);
