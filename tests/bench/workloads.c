/* workloads.c: which tasks are in W1 to W6, which edges do they imply, and which order must they
 * keep?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "workloads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READERS 64      /* W3 */
#define WIDTH 16        /* W4 */
#define BLOCKS 8        /* W6: of a group */
#define GROUP_BUFFERS 4 /* W6: query and three accumulators */
#define BLOCK_BUFFERS 5 /* W6: scores, probabilities, maxima, sums, product */

static const struct
{
  uint32_t size;
  uint32_t small;
} sizes[BENCH_WORKLOADS]
    = { { 100000, 2000 }, { 100000, 2000 }, { 1000, 12 }, { 2000, 60 }, { 40, 10 }, { 256, 16 } };

/* What a benchmark can not do without, it does not run without. */
static void *
allocate (uint64_t n, uint64_t size)
{
  void *memory = calloc (n > 0 ? n : 1, size);

  if (memory == NULL)
    {
      fprintf (stderr, "bench: no memory for %llu bytes\n", (unsigned long long) (n * size));
      exit (EXIT_FAILURE);
    }
  return memory;
}

bool
bench_workload_init (struct bench_workload *workload, const char *name, bool small)
{
  memset (workload, 0, sizeof *workload);
  if (name[0] != 'W' || name[1] < '1' || name[1] > '0' + BENCH_WORKLOADS || name[2] != '\0')
    return false;
  workload->id = (uint32_t) (name[1] - '0');
  bench_workload_resize (workload,
                         small ? sizes[workload->id - 1].small : sizes[workload->id - 1].size);
  return true;
}

void
bench_workload_resize (struct bench_workload *workload, uint32_t n)
{
  workload->size = n;
  switch (workload->id)
    {
    case 1:
      workload->n_tasks = workload->n_buffers = n;
      break;
    case 2:
      workload->n_tasks = n;
      workload->n_buffers = 1;
      break;
    case 3:
      workload->n_tasks = n * (READERS + 2);
      workload->n_buffers = READERS + 2;
      break;
    case 4:
      workload->n_tasks = n * WIDTH;
      workload->n_buffers = 2 * WIDTH;
      break;
    case 5:
      workload->n_tasks = n + n * (n - 1) + n * (n - 1) * (n - 2) / 6;
      workload->n_buffers = n * n;
      break;
    default:
      workload->n_tasks = n * (1 + 4 * BLOCKS);
      workload->n_buffers = n * (GROUP_BUFFERS + BLOCKS * BLOCK_BUFFERS);
      break;
    }
}

/* Where the tasks of a stream go. */
struct stream
{
  bench_submit submit;
  void *data;
  uint32_t index;
};

static inline void
emit (struct stream *stream, bool cube, uint32_t n_inputs, uint32_t n_accesses,
      const struct bench_access *accesses)
{
  struct bench_task task = { stream->index++, n_inputs, n_accesses, cube, accesses };

  stream->submit (stream->data, &task);
}

static void
generate_independent (const struct bench_workload *workload, struct stream *stream)
{
  for (uint32_t i = 0; i < workload->size; i++)
    emit (stream, false, 0, 1, &(struct bench_access){ i, BENCH_OUT });
}

static void
generate_chain (const struct bench_workload *workload, struct stream *stream)
{
  for (uint32_t i = 0; i < workload->size; i++)
    emit (stream, false, 0, 1, &(struct bench_access){ 0, BENCH_INOUT });
}

static void
generate_fan (const struct bench_workload *workload, struct stream *stream)
{
  struct bench_access reader[2] = { { 0, BENCH_IN } };
  struct bench_access reducer[READERS + 1];

  for (uint32_t i = 0; i < READERS; i++)
    reducer[i] = (struct bench_access){ 1 + i, BENCH_IN };
  reducer[READERS] = (struct bench_access){ 1 + READERS, BENCH_OUT };
  for (uint32_t round = 0; round < workload->size; round++)
    {
      emit (stream, false, 0, 1, &(struct bench_access){ 0, BENCH_OUT });
      for (uint32_t i = 0; i < READERS; i++)
        {
          reader[1] = (struct bench_access){ 1 + i, BENCH_OUT };
          emit (stream, false, 1, 2, reader);
        }
      emit (stream, false, READERS, READERS + 1, reducer);
    }
}

static void
generate_stencil (const struct bench_workload *workload, struct stream *stream)
{
  for (uint32_t step = 0; step < workload->size; step++)
    {
      uint32_t from = step % 2 * WIDTH;
      uint32_t to = WIDTH - from;

      for (uint32_t i = 0; i < WIDTH; i++)
        {
          struct bench_access accesses[4];
          uint32_t n = 0;

          for (uint32_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < WIDTH; j++)
            accesses[n++] = (struct bench_access){ from + j, BENCH_IN };
          accesses[n] = (struct bench_access){ to + i, BENCH_OUT };
          emit (stream, false, n, n + 1, accesses);
        }
    }
}

static void
generate_cholesky (const struct bench_workload *workload, struct stream *stream)
{
  uint32_t n = workload->size;

#define TILE(i, j) ((i) *n + (j))
  for (uint32_t k = 0; k < n; k++)
    {
      emit (stream, false, 0, 1, &(struct bench_access){ TILE (k, k), BENCH_INOUT });
      for (uint32_t i = k + 1; i < n; i++)
        {
          struct bench_access trsm[2] = { { TILE (k, k), BENCH_IN }, { TILE (i, k), BENCH_INOUT } };

          emit (stream, false, 1, 2, trsm);
        }
      for (uint32_t i = k + 1; i < n; i++)
        {
          struct bench_access syrk[2] = { { TILE (i, k), BENCH_IN }, { TILE (i, i), BENCH_INOUT } };

          for (uint32_t j = k + 1; j < i; j++)
            {
              struct bench_access gemm[3] = { { TILE (i, k), BENCH_IN },
                                              { TILE (j, k), BENCH_IN },
                                              { TILE (i, j), BENCH_INOUT } };

              emit (stream, true, 2, 3, gemm);
            }
          emit (stream, true, 1, 2, syrk);
        }
    }
#undef TILE
}

static void
generate_attention (const struct bench_workload *workload, struct stream *stream)
{
  for (uint32_t group = 0; group < workload->size; group++)
    {
      uint32_t query = group * (GROUP_BUFFERS + BLOCKS * BLOCK_BUFFERS);
      uint32_t accumulators = query + 1;
      struct bench_access hub[3] = { { accumulators, BENCH_OUT },
                                     { accumulators + 1, BENCH_OUT },
                                     { accumulators + 2, BENCH_OUT } };

      emit (stream, false, 0, 3, hub);
      for (uint32_t block = 0; block < BLOCKS; block++)
        {
          uint32_t scores = query + GROUP_BUFFERS + block * BLOCK_BUFFERS;
          uint32_t probabilities = scores + 1, maxima = scores + 2, sums = scores + 3,
                   product = scores + 4;
          struct bench_access qk[2] = { { query, BENCH_IN }, { scores, BENCH_OUT } };
          struct bench_access sf[4] = { { scores, BENCH_IN },
                                        { probabilities, BENCH_OUT },
                                        { maxima, BENCH_OUT },
                                        { sums, BENCH_OUT } };
          struct bench_access pv[2] = { { probabilities, BENCH_IN }, { product, BENCH_OUT } };
          struct bench_access up[6] = { { maxima, BENCH_IN },
                                        { sums, BENCH_IN },
                                        { product, BENCH_IN },
                                        { accumulators, BENCH_INOUT },
                                        { accumulators + 1, BENCH_INOUT },
                                        { accumulators + 2, BENCH_INOUT } };

          emit (stream, true, 1, 2, qk);
          emit (stream, false, 1, 4, sf);
          emit (stream, true, 1, 2, pv);
          emit (stream, false, 3, 6, up);
        }
    }
}

void
bench_workload_generate (const struct bench_workload *workload, bench_submit submit, void *data)
{
  static void (*const generators[BENCH_WORKLOADS]) (const struct bench_workload *, struct stream *)
      = { generate_independent, generate_chain,    generate_fan,
          generate_stencil,     generate_cholesky, generate_attention };
  struct stream stream = { submit, data, 0 };

  generators[workload->id - 1](workload, &stream);
}

#define NOBODY UINT32_MAX

/* The sequential rule: a reader comes after the last writer, a writer after the last writer and
 * after all who read what it wrote. */
struct builder
{
  struct bench_graph *graph;
  uint32_t *writer;  /* of each buffer; NOBODY */
  uint32_t *readers; /* of each buffer: its last reader's node; NOBODY */
  struct reader
  {
    uint32_t task;
    uint32_t next;
  } * nodes;
  uint32_t n_nodes;
  uint32_t *seen; /* by producer: the last consumer that named it, + 1 */
  uint32_t *path; /* by task: tasks on the longest path that ends with it */
  uint32_t (*edges)[2];
  uint64_t n_edges;
  uint64_t room;
};

static void
add_edge (struct builder *builder, uint32_t producer, uint32_t consumer)
{
  if (producer == NOBODY || builder->seen[producer] == consumer + 1)
    return;
  builder->seen[producer] = consumer + 1;
  if (builder->n_edges == builder->room)
    {
      builder->room = builder->room * 2 + 1024;
      builder->edges = realloc (builder->edges, builder->room * sizeof *builder->edges);
      if (builder->edges == NULL)
        {
          fprintf (stderr, "bench: no memory for %llu edges\n", (unsigned long long) builder->room);
          exit (EXIT_FAILURE);
        }
    }
  builder->edges[builder->n_edges][0] = producer;
  builder->edges[builder->n_edges][1] = consumer;
  builder->n_edges++;
  if (builder->path[producer] >= builder->path[consumer])
    builder->path[consumer] = builder->path[producer] + 1;
}

static void
add_task (void *data, const struct bench_task *task)
{
  struct builder *builder = data;

  builder->path[task->index] = 1;
  for (uint32_t i = 0; i < task->n_accesses; i++)
    {
      uint32_t buffer = task->accesses[i].buffer;

      add_edge (builder, builder->writer[buffer], task->index);
      if (task->accesses[i].mode != BENCH_IN)
        for (uint32_t r = builder->readers[buffer]; r != NOBODY; r = builder->nodes[r].next)
          add_edge (builder, builder->nodes[r].task, task->index);
    }
  for (uint32_t i = 0; i < task->n_accesses; i++)
    {
      uint32_t buffer = task->accesses[i].buffer;

      if (task->accesses[i].mode == BENCH_IN)
        {
          builder->nodes[builder->n_nodes]
              = (struct reader){ task->index, builder->readers[buffer] };
          builder->readers[buffer] = builder->n_nodes++;
        }
      else
        {
          builder->writer[buffer] = task->index;
          builder->readers[buffer] = NOBODY;
        }
    }
  if (builder->graph->depth < builder->path[task->index])
    builder->graph->depth = builder->path[task->index];
}

static void
count_accesses (void *data, const struct bench_task *task)
{
  *(uint64_t *) data += task->n_accesses;
}

struct bench_graph *
bench_graph_new (const struct bench_workload *workload)
{
  struct bench_graph *graph = allocate (1, sizeof *graph);
  struct builder builder = { .graph = graph };
  uint32_t n = workload->n_tasks;
  uint64_t n_accesses = 0;
  uint32_t *next;

  bench_workload_generate (workload, count_accesses, &n_accesses);
  builder.writer = allocate (workload->n_buffers, sizeof *builder.writer);
  builder.readers = allocate (workload->n_buffers, sizeof *builder.readers);
  memset (builder.writer, 0xff, workload->n_buffers * sizeof *builder.writer);
  memset (builder.readers, 0xff, workload->n_buffers * sizeof *builder.readers);
  builder.nodes = allocate (n_accesses, sizeof *builder.nodes);
  builder.seen = allocate (n, sizeof *builder.seen);
  builder.path = allocate (n, sizeof *builder.path);

  graph->n_tasks = n;
  bench_workload_generate (workload, add_task, &builder);
  graph->first_successor = allocate (n + 1, sizeof *graph->first_successor);
  graph->n_predecessors = allocate (n, sizeof *graph->n_predecessors);
  graph->successors = allocate (builder.n_edges, sizeof *graph->successors);
  for (uint64_t e = 0; e < builder.n_edges; e++)
    {
      graph->first_successor[builder.edges[e][0] + 1]++;
      graph->n_predecessors[builder.edges[e][1]]++;
    }
  for (uint32_t i = 0; i < n; i++)
    graph->first_successor[i + 1] += graph->first_successor[i];
  next = allocate (n, sizeof *next);
  memcpy (next, graph->first_successor, n * sizeof *next);
  for (uint64_t e = 0; e < builder.n_edges; e++)
    graph->successors[next[builder.edges[e][0]]++] = builder.edges[e][1];

  free (next);
  free (builder.edges);
  free (builder.path);
  free (builder.seen);
  free (builder.nodes);
  free (builder.readers);
  free (builder.writer);
  return graph;
}

void
bench_graph_free (struct bench_graph *graph)
{
  if (graph == NULL)
    return;
  free (graph->first_successor);
  free (graph->successors);
  free (graph->n_predecessors);
  free (graph);
}

/* W: tasks, with sequentially consistent operations: this is no place to be fast, and a runtime
 * must order two tasks by itself anyway. */
struct buffer
{
  _Atomic uint32_t version;
  _Atomic uint32_t readers; /* tasks that have read this version, to the end */
  _Atomic uint32_t writing; /* task + 1 that writes now */
};

/* What sequential order implies for one access. */
struct expectation
{
  struct bench_access access;
  uint32_t version;
  uint32_t readers; /* of a writer: who must have read before */
};

struct bench_check
{
  uint32_t n_tasks;
  uint32_t n_buffers;
  struct buffer *buffers;
  uint32_t *first; /* n_tasks + 1 positions in expectations */
  struct expectation *expectations;
  _Atomic uint8_t *done; /* by task: times it ran */
  _Atomic uint32_t n_done;
  _Atomic uint32_t n_errors;
  char message[200]; /* W: who raised n_errors from 0 */
};

static void
expect_task (void *data, const struct bench_task *task)
{
  struct bench_check *check = data;
  uint32_t position = check->first[task->index];

  for (uint32_t i = 0; i < task->n_accesses; i++)
    {
      struct bench_access access = task->accesses[i];
      struct buffer *buffer = &check->buffers[access.buffer];

      check->expectations[position++]
          = (struct expectation){ access, atomic_load (&buffer->version),
                                  atomic_load (&buffer->readers) };
      if (access.mode == BENCH_IN)
        atomic_fetch_add (&buffer->readers, 1);
      else
        {
          atomic_fetch_add (&buffer->version, 1);
          atomic_store (&buffer->readers, 0);
        }
    }
  check->first[task->index + 1] = position;
}

struct bench_check *
bench_check_new (const struct bench_workload *workload)
{
  struct bench_check *check = allocate (1, sizeof *check);
  uint64_t n_accesses = 0;

  bench_workload_generate (workload, count_accesses, &n_accesses);
  check->n_tasks = workload->n_tasks;
  check->n_buffers = workload->n_buffers;
  check->buffers = allocate (workload->n_buffers, sizeof *check->buffers);
  check->first = allocate (workload->n_tasks + 1, sizeof *check->first);
  check->expectations = allocate (n_accesses, sizeof *check->expectations);
  check->done = allocate (workload->n_tasks, sizeof *check->done);
  bench_workload_generate (workload, expect_task, check);
  memset ((void *) check->buffers, 0, workload->n_buffers * sizeof *check->buffers);
  return check;
}

void
bench_check_free (struct bench_check *check)
{
  if (check == NULL)
    return;
  free (check->buffers);
  free (check->first);
  free (check->expectations);
  free ((void *) check->done);
  free (check);
}

static void
fail (struct bench_check *check, uint32_t index, const struct expectation *expectation,
      const char *what, uint32_t value, uint32_t expected)
{
  if (atomic_fetch_add (&check->n_errors, 1) == 0)
    snprintf (check->message, sizeof check->message,
              "task %u, buffer %u: %s is %u, sequential order gives %u", index,
              expectation->access.buffer, what, value, expected);
}

static void
look (struct bench_check *check, uint32_t index, const struct expectation *expectation,
      uint32_t self)
{
  struct buffer *buffer = &check->buffers[expectation->access.buffer];
  uint32_t version = atomic_load (&buffer->version);
  uint32_t writing = atomic_load (&buffer->writing);

  if (version != expectation->version)
    fail (check, index, expectation, "its version", version, expectation->version);
  if (writing != self)
    fail (check, index, expectation, "the task that writes it, plus 1,", writing, self);
}

void
bench_check_execute (struct bench_check *check, uint32_t index)
{
  const struct expectation *begin = check->expectations + check->first[index];
  const struct expectation *end = check->expectations + check->first[index + 1];

  for (const struct expectation *e = begin; e < end; e++)
    {
      struct buffer *buffer = &check->buffers[e->access.buffer];

      look (check, index, e, 0);
      if (e->access.mode == BENCH_IN)
        continue;
      if (atomic_load (&buffer->readers) != e->readers)
        fail (check, index, e, "the number of its readers", atomic_load (&buffer->readers),
              e->readers);
      atomic_store (&buffer->writing, index + 1);
    }

  for (uint32_t spins = index * 2654435761u >> 28 == 0 ? 3000 : 0; spins > 0; spins--)
    atomic_signal_fence (memory_order_seq_cst);

  for (const struct expectation *e = begin; e < end; e++)
    look (check, index, e, e->access.mode == BENCH_IN ? 0 : index + 1);
  for (const struct expectation *e = begin; e < end; e++)
    {
      struct buffer *buffer = &check->buffers[e->access.buffer];

      if (e->access.mode == BENCH_IN)
        {
          atomic_fetch_add (&buffer->readers, 1);
          continue;
        }
      atomic_store (&buffer->readers, 0);
      atomic_store (&buffer->version, e->version + 1);
      atomic_store (&buffer->writing, 0);
    }
  if (atomic_fetch_add (&check->done[index], 1) != 0 && atomic_fetch_add (&check->n_errors, 1) == 0)
    snprintf (check->message, sizeof check->message, "task %u ran twice", index);
  atomic_fetch_add (&check->n_done, 1);
}

bool
bench_check_passed (const struct bench_check *check, char *message, uint32_t size)
{
  uint32_t n_done = atomic_load (&check->n_done);

  if (atomic_load (&check->n_errors) > 0)
    snprintf (message, size, "%s (%u such)", check->message, atomic_load (&check->n_errors));
  else if (n_done != check->n_tasks)
    snprintf (message, size, "%u of %u tasks ran", n_done, check->n_tasks);
  else
    return true;
  return false;
}
