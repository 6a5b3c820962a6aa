/* test-remote-packed.c: do changed bytes of a Run, or of its reply, give an error, or a sound task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Both ends of a remote worker are played in one process, without a connection: the bridge packs
 * tasks of random tensors, the far end reads them, runs one that looks at every byte, and answers.
 * In each round the Run or the reply is changed in a few places. Memory of the far end is from
 * malloc(), so that a sanitizer knows where each block ends. PTO_TEST_TIMES as many are changed as
 * the suite does.
 */
#include "config.h"

#include "../../pto/process/arena.h"
#include "../../pto/process/write-log.h"

#include "../../pto/base/error.h"
#include "../../pto/remote/parent/bridge-parts.h"
#include "../../pto/remote/parent/bridge.h"
#include "../../pto/remote/worker/serve.h"
#include "../../pto/worker/worker.h"
#include "../mutate.h"
#include "pto-remote.h"

#include <stdlib.h>
#include <string.h>

#define BOARD 4096u
#define ARGS_MAX 4u
#define ARENA (G_GUINT64_CONSTANT (1) << 20)

enum what
{
  NOTHING,
  RUN,
  REPLY
};

/* One program. */
static struct
{
  GRand *random;
  PtoFarEnd *session;
  PtoBridge *child;
  enum what what; /* is changed */
  guint n_served, n_fails;
  guint n_refused; /* of all rounds */
} test;

static guint64 board[BOARD]; /* of the bridge: what tasks read and write */

/* --- memory of the far end --- */

static guint64 in_arena;

uint64_t __wrap_pto_arena_alloc (uint64_t bytes);
uint64_t
__wrap_pto_arena_alloc (uint64_t bytes)
{
  if (bytes > ARENA - in_arena)
    return 0;
  in_arena += bytes;
  return (uint64_t) (uintptr_t) g_malloc (bytes);
}

void __wrap_pto_arena_free (uint64_t address, uint64_t bytes);
void
__wrap_pto_arena_free (uint64_t address, uint64_t bytes)
{
  in_arena -= bytes;
  g_free ((gpointer) (guintptr) address);
}

/* --- the far end --- */

/* Adds 1 to what is written, and looks at the rest. */
static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  test.n_served++;
  mutate_look_at (call->digest, PTO_DIGEST_BYTES);
  mutate_look_at (call->config, sizeof *call->config);
  mutate_look_at (call->args.scalars, (gsize) call->args.scalar_count * sizeof (uint64_t));
  if (call->kinds != NULL)
    mutate_look_at (call->kinds, (gsize) call->args.scalar_count);
  for (int32_t i = 0; i < call->args.tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &call->args.tensors[i];
      guint64 bytes = pto_dtype_size ((DataType) tensor->dtype);
      guint8 *at = (guint8 *) (guintptr) tensor->data;

      for (guint32 d = 0; d < tensor->ndims; d++)
        bytes *= tensor->shapes[d];
      for (guint64 b = 0; b < bytes; b++)
        if ((tensor->access & PTO_WIRE_WRITE) != 0)
          at[b]++;
        else
          mutate_look_at (&at[b], 1);
    }
  if (test.n_fails == 0)
    return 0;
  pto_failure_set (failure, PTO_STATUS_TASK_FAILED, NULL, "%s", "it was to fail");
  return PTO_STATUS_TASK_FAILED;
}

static void
far_begin (PtoWorker *worker)
{
  PtoFarEnd *session = g_new0 (PtoFarEnd, 1);

  session->worker = worker;
  session->mailbox = pto_call_mailbox_new ();
  session->server.serve = serve;
  session->blocks
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, pto_far_end_block_free);
  session->failure = g_new0 (struct pto_failure, 1);
  session->n_wanted = G_MAXUINT;
  g_mutex_init (&session->lock);
  test.session = session;
}

static void
far_end (void)
{
  PtoFarEnd *session = test.session;

  g_hash_table_unref (session->blocks);
  g_assert_cmpuint (in_arena, ==, 0);
  g_clear_error (&session->unheard);
  g_mutex_clear (&session->lock);
  g_free (session->failure);
  free (session->mailbox);
  g_free (session);
}

/* --- between the two --- */

/* Takes a body, which is not floating, and gives another one. */
static GVariant *
change (GVariant *body)
{
  g_autoptr (GVariant) old = body;
  g_autoptr (GVariant) bytes = g_variant_get_child_value (old, 0);
  gsize size = g_variant_get_size (bytes);
  guint8 *copy = g_memdup2 (g_variant_get_data (bytes), size);
  /* The copy has no room behind it, so that a sanitizer sees a read past its end. */
  gsize left = mutate (test.random, copy, size);
  gpointer tight = g_memdup2 (copy, MAX (left, 1));

  g_free (copy);
  return g_variant_ref_sink (g_variant_new (
      "(@ay)", g_variant_new_from_data (G_VARIANT_TYPE ("ay"), tight, left, TRUE, g_free, tight)));
}

GVariant *__wrap_pto_bridge_call (PtoBridge *self, const char *method, GVariant *arguments,
                                  const char *type, GError **error);
GVariant *
__wrap_pto_bridge_call (PtoBridge *self, const char *method, GVariant *arguments, const char *type,
                        GError **error)
{
  g_autoptr (GVariant) body = NULL;
  g_autoptr (GVariant) reply = NULL;

  if (strcmp (method, "Run") != 0)
    {
      g_variant_unref (g_variant_ref_sink (arguments));
      g_set_error (error, PTO_ERROR, PTO_ERROR_INTERNAL, "%s", method);
      return NULL;
    }
  body = g_variant_ref_sink (arguments);
  if (test.what == RUN)
    body = change (body);
  reply = pto_far_end_run_tasks (test.session, body, error);
  if (reply == NULL)
    {
      test.n_refused++;
      return NULL;
    }
  g_variant_ref_sink (reply);
  return test.what == REPLY ? change (g_steal_pointer (&reply)) : g_steal_pointer (&reply);
}

/* --- the bridge --- */

static GPtrArray *
list_nothing (gpointer data, guint worker)
{
  return g_ptr_array_new ();
}

/* A task of random parts of the board, of which no two overlap, and what it leaves there. */
static guint
make_task (struct pto_continuous_tensor *tensors, guint64 *expected)
{
  static const guint32 access[] = { PTO_WIRE_READ, PTO_WIRE_READ | PTO_WIRE_WRITE, PTO_WIRE_WRITE };
  guint n = (guint) g_rand_int_range (test.random, 1, ARGS_MAX + 1);
  guint at = 0;

  memcpy (expected, board, sizeof board);
  for (guint i = 0; i < n; i++)
    {
      guint first = at + (guint) g_rand_int_range (test.random, 0, 8);
      guint width = (guint) g_rand_int_range (test.random, 1, 4);
      guint height = (guint) g_rand_int_range (test.random, 1, 9);
      guint32 does = access[g_rand_int_range (test.random, 0, G_N_ELEMENTS (access))];

      tensors[i] = (struct pto_continuous_tensor){ .data = (guint64) (guintptr) &board[first],
                                                   .shapes = { height, width },
                                                   .ndims = 2,
                                                   .dtype = PTO_DTYPE_UINT64,
                                                   .access = does };
      at = first + width * height;
      for (guint e = first; e < at && (does & PTO_WIRE_WRITE) != 0; e++)
        {
          guint8 *byte = (guint8 *) &expected[e];

          if ((does & PTO_WIRE_READ) == 0)
            expected[e] = 0;
          for (guint b = 0; b < 8; b++)
            byte[b]++;
        }
    }
  return n;
}

/* Nothing but what the task writes changes; gives whether it ended well. */
static gboolean
run_one (void)
{
  static guint64 before[BOARD], expected[BOARD];
  static const guint8 digest[PTO_DIGEST_BYTES] = { 7 };
  struct pto_call_config config = { 0 };
  struct pto_continuous_tensor tensors[ARGS_MAX];
  guint64 scalars[] = { 1, G_MAXUINT64 };
  guint8 kinds[] = { 0, 1 };
  g_autofree struct pto_failure *failure = g_new0 (struct pto_failure, 1);
  struct pto_call call
      = { .request = PTO_REQUEST_TASK,
          .digest = digest,
          .config = &config,
          .args
          = { .scalar_count = G_N_ELEMENTS (scalars), .tensors = tensors, .scalars = scalars },
          .kinds = kinds,
          .mailbox = test.session->mailbox };
  guint32 status;

  memcpy (before, board, sizeof before);
  call.args.tensor_count = (gint32) make_task (tensors, expected);
  test.child->call = &call;
  status = pto_bridge_run_tasks (test.child, &call, failure);
  mutate_look_at (failure->text, failure->bytes);
  mutate_look_at (failure->detail, failure->detail_bytes);
  for (gint i = 0; i < call.args.tensor_count; i++)
    if ((tensors[i].access & PTO_WIRE_WRITE) != 0)
      memcpy (&before[(guint64 *) (guintptr) tensors[i].data - board],
              (gpointer) (guintptr) tensors[i].data,
              tensors[i].shapes[0] * tensors[i].shapes[1] * sizeof board[0]);
  g_assert_cmpmem (before, sizeof before, board, sizeof board);
  if (test.what == NOTHING)
    {
      g_assert_cmpuint (status, ==, test.n_fails > 0 ? PTO_STATUS_TASK_FAILED : 0);
      if (status == 0)
        g_assert_cmpmem (expected, sizeof expected, board, sizeof board);
      else
        g_assert_cmpstr (failure->text, ==, "it was to fail");
    }
  return status == 0;
}

static void
test_what (gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = pto_worker_new_remote ("local:", NULL, &error);
  struct pto_writes *writes = pto_writes_new ();
  const PtoChildParent parent = { .list = list_nothing, .writes = &writes };
  guint n = mutate_get_n (), n_well = 0;

  g_assert_no_error (error);
  memset (&test, 0, sizeof test);
  test.random = g_rand_new_with_seed (g_test_rand_int () & 0x7fffffff);
  test.what = (enum what) GPOINTER_TO_INT (data);
  far_begin (worker);
  test.child
      = pto_bridge_new (&worker->node, "L4/0/L3/0", &parent, pto_worker_pack_parameters (worker),
                        g_variant_new_array (G_VARIANT_TYPE ("a{ss}"), NULL, 0));
  test.child->directory = pto_directory_new (ARENA / 4);
  test.child->traffic = pto_writes_traffic (writes, 0);
  for (guint i = 0; i < n; i++)
    {
      test.n_fails = g_rand_int_range (test.random, 0, 4) == 0;
      n_well += run_one ();
      /* The next task must not find copies that this one has left. */
      if (test.what != NOTHING)
        {
          pto_directory_drop_all (test.child->directory);
          g_hash_table_remove_all (test.session->blocks);
        }
    }
  g_test_message ("%u of %u well, %u refused", n_well, n, test.n_refused);
  g_assert_cmpuint (n_well, >, 0);
  if (test.what == RUN)
    g_assert_cmpuint (test.n_refused, >, n / 10);
  g_assert_cmpuint (test.n_served, >, test.what == RUN ? n / 10 : n - 1);
  pto_bridge_free (test.child);
  far_end ();
  pto_writes_free (writes);
  g_rand_free (test.random);
  g_object_unref (worker);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/pto/remote-packed/sound", GINT_TO_POINTER (NOTHING), test_what);
  g_test_add_data_func ("/pto/remote-packed/run", GINT_TO_POINTER (RUN), test_what);
  g_test_add_data_func ("/pto/remote-packed/reply", GINT_TO_POINTER (REPLY), test_what);
  return g_test_run ();
}
