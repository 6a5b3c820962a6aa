/* test-packed.c: do changed bytes give an error, or a sound value?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of each packed form (pto/core/pack.h) values are written, changed in a few places and read; each
 * byte that a reader points to is looked at. PTO_TEST_TIMES as many are changed as the suite does.
 */
#include "../../pto/core/core-placement.h"
#include "../../pto/core/graph-plan-pack.h"
#include "../../pto/process/command-stream.h"
#include "../../pto/process/service.h"
#include "../mutate.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_BYTES (1u << 20)

/* --- graphs --- */

static guint64 shape[] = { 4, 2 };

static void
add_args (GRand *random, struct pto_plan *graph, guint t, guint *n_memory)
{
  static guint64 memory[64];
  Tensor tensor = make_tensor_external (memory, shape, 2, PTO_DTYPE_FLOAT32);

  pto_plan_add_tensor (graph, 0, 0, &tensor, g_rand_boolean (random), true);
  if (g_rand_boolean (random))
    pto_plan_add_number (graph, 7);
  if (*n_memory > 0 && g_rand_boolean (random))
    pto_plan_add_use (graph, *n_memory - 1, 0, &tensor, false, false, true);
  if (g_rand_boolean (random))
    {
      pto_plan_add_use (graph, pto_plan_add_memory (graph, 32), 0, &tensor, true, false, true);
      ++*n_memory;
    }
  if (t > 0 && g_rand_boolean (random))
    pto_plan_add_edge (graph, (guint) g_rand_int_range (random, 0, (gint32) t), t,
                       PTO_HAZARD_EXPLICIT);
}

static struct pto_plan *
make_graph (GRand *random)
{
  static guint64 memory[64];
  struct pto_plan *graph = pto_plan_new ();
  struct pto_report report = { 0 };
  Tensor tensor = make_tensor_external (memory, shape, 2, PTO_DTYPE_FLOAT32);
  struct pto_need need = { .place = PTO_PLACE_ANY };
  struct pto_wish wish
      = { .cohort = 0, .together = true, .n_at_once = 1, .n_members = 1, .members = &need };
  guint n = (guint) g_rand_int_range (random, 2, 8);
  guint n_memory = 0;

  pto_plan_add_param (graph, &(struct pto_plan_param){ .tensor = tensor,
                                                       .first = tensor.buffer.addr,
                                                       .extent = pto_tensor_extent (&tensor) });
  pto_plan_add_param (graph, &(struct pto_plan_param){ .word = 3, .fixed = true });
  pto_plan_name_param (graph, 1, "number");
  for (guint t = 0; t < n; t++)
    {
      if (t == 1)
        pto_plan_add_hold (graph, 0, true);
      pto_plan_add_task (graph,
                         &(struct pto_submit){ .kernel = t % 3,
                                               .terms.priority = t % 4,
                                               .n_blocks = t % 3,
                                               .wish = t == 1 ? &wish : NULL },
                         t % PTO_RINGS);
      pto_plan_set_place (graph, "graph.c", t);
      add_args (random, graph, t, &n_memory);
    }
  pto_plan_add_hold (graph, 0, false);
  pto_plan_complete (graph, &report);
  g_assert_cmpstr (report.message, ==, "");
  return graph;
}

static guint8 *
pack_graph (const struct pto_plan *graph, gsize *size)
{
  guint8 *bytes;

  *size = pto_plan_packed_size (graph);
  bytes = g_malloc0 (*size);
  pto_plan_pack (graph, bytes);
  return bytes;
}

static void
assert_sound (const struct pto_plan *graph)
{
  gsize size, again_size;
  g_autofree guint8 *bytes = pack_graph (graph, &size);
  g_autofree guint8 *again_bytes = NULL;
  struct pto_plan *again = pto_plan_new ();
  struct pto_report report = { 0 };

  g_assert_true (graph->complete);
  pto_plan_unpack (again, bytes, size, &report);
  g_assert_cmpstr (report.message, ==, "");
  again_bytes = pack_graph (again, &again_size);
  g_assert_cmpmem (again_bytes, again_size, bytes, size);
  pto_plan_free (again);
}

static void
test_graph (void)
{
  GRand *random = g_rand_new_with_seed (g_test_rand_int () & 0x7fffffff);
  guint n_sound = 0, n_refused = 0;

  for (guint i = 0; i < mutate_get_n (); i++)
    {
      struct pto_plan *graph = make_graph (random);
      struct pto_plan *copy = pto_plan_new ();
      struct pto_report report = { 0 };
      gsize size;
      g_autofree guint8 *bytes = pack_graph (graph, &size);
      g_autofree guint8 *exact = NULL;

      size = mutate (random, bytes, size);
      exact = g_memdup2 (bytes, size);
      if (pto_plan_unpack (copy, exact, size, &report) == PTO_OK)
        {
          assert_sound (copy);
          n_sound++;
        }
      else
        {
          g_assert_cmpstr (report.message, !=, "");
          n_refused++;
        }
      pto_plan_free (graph);
      pto_plan_free (copy);
    }
  g_assert_cmpuint (n_sound, >, 0);
  g_assert_cmpuint (n_refused, >, 0);
  g_rand_free (random);
}

/* Another form is called by its number. */
static void
test_version (void)
{
  GRand *random = g_rand_new_with_seed (1);
  struct pto_plan *graph = make_graph (random);
  struct pto_plan *copy = pto_plan_new ();
  struct pto_report report = { 0 };
  gsize size;
  g_autofree guint8 *bytes = pack_graph (graph, &size);

  g_assert_cmpmem (bytes, 4, "PTOG", 4);
  g_assert_cmpuint (bytes[4], ==, 1);
  bytes[4] = 9;
  g_assert_cmpint (pto_plan_unpack (copy, bytes, size, &report), ==, PTO_STATUS_TAMPERED);
  g_assert_cmpstr (report.message, ==,
                   "a graph in form 9, of another libpto: this one reads form 1");
  pto_plan_free (graph);
  pto_plan_free (copy);
  g_rand_free (random);
}

/* --- calls in a message --- */

static gsize
write_calls (GRand *random, guint8 *bytes, gsize size)
{
  static const guint8 digest[PTO_DIGEST_BYTES] = { 1, 2, 3 };
  struct pto_pack pack = pto_pack_write (bytes, size);
  struct pto_call_config config = { .block_dim = 2, .output_prefix = "a prefix" };

  for (gint n = g_rand_int_range (random, 1, 4); n > 0; n--)
    {
      struct pto_continuous_tensor tensors[3] = { { .data = 4096, .ndims = 1, .shapes = { 8 } } };
      guint64 scalars[3] = { 1, 2, 3 };
      guint8 kinds[3] = { 0, 1, 2 };
      struct pto_call_counts counts = { .config_bytes = pto_wire_config_bytes (&config),
                                        .n_tensors = (guint) g_rand_int_range (random, 0, 4),
                                        .n_scalars = (guint) g_rand_int_range (random, 0, 4) };
      struct pto_call call = { .digest = digest,
                               .config = &config,
                               .task = 77,
                               .terms.priority = 3,
                               .args = { .tensors = tensors, .scalars = scalars },
                               .kinds = kinds };

      counts.n_kinds = g_rand_boolean (random) ? counts.n_scalars : 0;
      pto_call_pack_head (&pack, &call, &counts);
      pto_call_pack_args (&pack, &call, &counts);
    }
  g_assert_false (pack.bad);
  return pack.at;
}

static guint
look_at_calls (const guint8 *bytes, gsize size, guint32 *priority)
{
  struct pto_call all = { .request = PTO_REQUEST_TASKS, .body = bytes, .bytes = size };
  struct pto_call one;
  guint64 at = 0;
  guint n = 0;

  while (pto_call_next_task (&all, &at, &one))
    {
      n++;
      g_assert_cmpuint (at, <=, size);
      *priority = one.terms.priority;
      mutate_look_at (one.digest, PTO_DIGEST_BYTES);
      mutate_look_at (one.config, offsetof (struct pto_call_config, output_prefix) + 1);
      mutate_look_at (one.args.tensors, (gsize) one.args.tensor_count * sizeof *one.args.tensors);
      mutate_look_at (one.args.scalars, (gsize) one.args.scalar_count * sizeof *one.args.scalars);
      if (one.kinds != NULL)
        mutate_look_at (one.kinds, (gsize) one.args.scalar_count);
    }
  return n;
}

static void
test_calls (void)
{
  GRand *random = g_rand_new_with_seed (g_test_rand_int () & 0x7fffffff);
  guint n_sound = 0, n_refused = 0;

  for (guint i = 0; i < mutate_get_n (); i++)
    {
      guint64 words[512] = { 0 };
      guint8 *bytes = (guint8 *) words;
      gsize size = write_calls (random, bytes, sizeof words);
      guint32 priority = 0;
      guint n = look_at_calls (bytes, size, &priority);
      g_autofree guint8 *exact = NULL;

      g_assert_cmpuint (n, >, 0);
      g_assert_cmpuint (priority, ==, 3);
      size = mutate (random, bytes, size);
      exact = g_memdup2 (bytes, MAX (size, 1));
      if (look_at_calls (exact, size, &priority) == n)
        n_sound++;
      else
        n_refused++;
    }
  g_assert_cmpuint (n_sound, >, 0);
  g_assert_cmpuint (n_refused, >, 0);
  g_rand_free (random);
}

/* --- commands --- */

static guint n_calls;
static gboolean has_failed;
static guint n_tampered;

static void
look_at_tensor (const Tensor *tensor)
{
  g_assert_cmpuint (tensor->ndims, <=, PTO2_TENSOR_MAX_DIMS);
}

static PTO2TaskId
submit_task (PTO2Runtime *rt, int32_t kernel, int32_t worker_type, PTOParam *params, int32_t n)
{
  n_calls++;
  for (int32_t i = 0; i < n && n <= PTO_STREAM_PARAMS; i++)
    if (params[i].type != PTO_PARAM_SCALAR)
      look_at_tensor (&params[i].tensor);
  return 0;
}

static PTO2TaskId
submit (PTO2Runtime *rt, const PTO2Submit *given)
{
  n_calls++;
  submit_task (rt, given->kernel_id, given->worker_type, given->params, given->n_params);
  if (given->condition != NULL)
    {
      look_at_tensor (given->condition);
      mutate_look_at (given->condition_index, PTO2_TENSOR_MAX_DIMS * sizeof (guint64));
    }
  if (given->mixed != NULL)
    mutate_look_at (given->mixed, 3 * sizeof *given->mixed);
  if (given->after != NULL)
    mutate_look_at (given->after, (gsize) given->n_after * sizeof *given->after);
  if (given->group != NULL)
    mutate_look_at (given->group, (gsize) given->n_group * sizeof *given->group);
  if (given->group_params != NULL)
    mutate_look_at (given->group_params, (gsize) given->n_group * sizeof *given->group_params);
  if (given->group_cores != NULL)
    mutate_look_at (given->group_cores, (gsize) given->n_group * sizeof *given->group_cores);
  return 0;
}

static void
begin_scope (PTO2Runtime *rt, const char *file, int32_t line)
{
  n_calls++;
  g_assert_true (file == NULL || strlen (file) < PTO_STREAM_TEXT);
}

static void
end (PTO2Runtime *rt)
{
  n_calls++;
}

static PTO2Buffer *
new_buffer (PTO2Runtime *rt, uint64_t bytes, uint32_t *generation)
{
  *generation = ++n_calls;
  return NULL;
}

static void *
touch (PTO2Runtime *rt, const Tensor *tensor, const uint64_t index[], bool write)
{
  look_at_tensor (tensor);
  if (index != NULL)
    mutate_look_at (index, tensor->ndims * sizeof *index);
  n_calls++;
  return NULL;
}

static int32_t
count (PTO2Runtime *rt)
{
  return (int32_t) n_calls++;
}

static int32_t
list_cores (PTO2Runtime *rt, int32_t cluster, int32_t type, int32_t cores[], int32_t n)
{
  return count (rt);
}

static void
free_cluster (PTO2Runtime *rt, int32_t cluster)
{
  n_calls++;
}

static const PTO2RuntimeOps ops = { .size = sizeof ops,
                                    .submit_task = submit_task,
                                    .submit = submit,
                                    .scope_begin = begin_scope,
                                    .manual_scope_begin = begin_scope,
                                    .scope_end = end,
                                    .orchestration_done = end,
                                    .new_buffer = new_buffer,
                                    .touch = touch,
                                    .allocate_cluster = count,
                                    .cluster_count = count,
                                    .cluster_cores = list_cores,
                                    .free_cluster = free_cluster };

static bool
tell_failed (PTO2Runtime *rt)
{
  return has_failed;
}

static const char *
get_failure (PTO2Runtime *rt)
{
  return "failed";
}

static void
fail (PTO2Runtime *rt, enum pto_status status, const char *message)
{
  g_assert_nonnull (message);
  has_failed = TRUE;
  n_tampered += status == PTO_STATUS_TAMPERED;
}

static const char *
keep (const char *text)
{
  return g_intern_string (strlen (text) < 10 ? text : "long");
}

static void
ring (void *data)
{
}

static void
write_commands (struct pto_stream_writer *writer)
{
  static guint64 memory[8];
  static const int32_t list[] = { 1, 2, 3 };
  static const PTO2TaskId after[] = { 5, 6 };
  Tensor tensor = make_tensor_external (memory, shape, 2, PTO_DTYPE_FLOAT32);
  PTOParam params[] = { make_inout_param (tensor), make_scalar_param (3),
                        pto2_make_param (PTO_PARAM_REDUCTION, &tensor) };
  PTO2Submit more = pto2_make_submit (1, 0, params, 3);
  guint64 index[PTO2_TENSOR_MAX_DIMS] = { 1, 1 };

  pto_stream_put (writer, PTO_COMMAND_PLACE, &(struct pto_said){ .a = 3, .text = "x.c" });
  pto_stream_put (writer, PTO_COMMAND_BUFFER, &(struct pto_said){ .a = 0, .b = 1, .value = 100 });
  pto_stream_put (writer, PTO_COMMAND_SCOPE_BEGIN, &(struct pto_said){ .a = 4, .text = "x.c" });
  pto_stream_put (writer, PTO_COMMAND_SUBMIT,
                  &(struct pto_said){ .submit = pto2_make_submit (1, 0, params, 3) });
  more.after = after;
  more.n_after = 2;
  more.condition = &tensor;
  more.condition_index = index;
  more.mixed = list;
  more.group = more.group_params = more.group_cores = list;
  more.n_group = 3;
  pto_stream_put (writer, PTO_COMMAND_SUBMIT_MORE, &(struct pto_said){ .submit = more });
  pto_stream_put (
      writer, PTO_COMMAND_ELEMENT,
      &(struct pto_said){ .a = true,
                          .value = 5,
                          .param = &(PTOParam){ .type = PTO_PARAM_INPUT, .tensor = tensor },
                          .index = index });
  pto_stream_put (
      writer, PTO_COMMAND_ALLOC,
      &(struct pto_said){ .param = &(PTOParam){ .type = PTO_PARAM_OUTPUT, .tensor = tensor } });
  pto_stream_put (writer, PTO_COMMAND_CLUSTER_CORES, &(struct pto_said){ .a = 1, .b = 1 });
  pto_stream_put (writer, PTO_COMMAND_SCOPE_END, &(struct pto_said){ .a = 0 });
  pto_stream_put (writer, PTO_COMMAND_FAIL,
                  &(struct pto_said){ .a = PTO_STATUS_INVALID_ARGS, .text = "why" });
}

/* Does a reader of these commands get to the one at last? If not, and none of them is unsound, it
 * would wait for more. */
static gboolean
gets_to (const guint8 *bytes, guint32 last, guint32 head)
{
  guint32 at = 0;

  while (at < head && at != last)
    {
      guint32 command[2];

      memcpy (command, bytes + at, sizeof command);
      if (command[0] == PTO_COMMAND_END || command[1] < 8 || command[1] % 8 != 0
          || command[1] > head - at)
        return TRUE;
      at += command[1];
    }
  return at == last;
}

static void
test_commands (void)
{
  const struct pto_stream_target target = { .rt = &(PTO2Runtime){ .ops = &ops },
                                            .has_failed = tell_failed,
                                            .get_failure = get_failure,
                                            .fail = fail,
                                            .keep = keep,
                                            .ring = ring };
  struct pto_stream *stream = aligned_alloc (64, (pto_stream_size () + 63) & ~(gsize) 63);
  guint8 *bytes = (guint8 *) stream + pto_stream_size () - STREAM_BYTES;
  GRand *random = g_rand_new_with_seed (g_test_rand_int () & 0x7fffffff);
  struct pto_stream_writer writer;
  guint before = 0;

  memset (stream, 0, pto_stream_size ());
  for (guint i = 0; i < mutate_get_n (); i++)
    {
      guint32 last;
      int result;

      pto_stream_begin (&writer, stream);
      write_commands (&writer);
      last = writer.head;
      mutate (random, bytes, last);
      pto_stream_put (&writer, PTO_COMMAND_END, &(struct pto_said){ .a = 7 });
      if (!gets_to (bytes, last, writer.head))
        continue;
      n_calls = 0;
      has_failed = FALSE;
      before = n_tampered;
      result = pto_stream_replay (stream, &target);
      g_assert_true (n_tampered == before || result == 1);
    }
  g_assert_cmpuint (n_tampered, >, 0);
  g_rand_free (random);
  free (stream);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/packed/graph", test_graph);
  g_test_add_func ("/pto/packed/version", test_version);
  g_test_add_func ("/pto/packed/calls", test_calls);
  g_test_add_func ("/pto/packed/commands", test_commands);
  return g_test_run ();
}
