/* test-remote-directory.c: does whoever reads a copy read what was written last?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two bridges and their other ends are played in one process, on a memory of some hundred bytes:
 * tasks of random overlapping ranges run here and there, in some order, fail, are refused, take
 * their end with them. Each step uses the real directory and the real log of writes; every byte
 * that a task reads is compared with the one memory that a plain run has.
 */
#include "config.h"

#include "../../pto/process/write-log.h"

#include "../../pto/remote/parent/block-directory.h"

#include <string.h>

#define BYTES 320u
#define BASE G_GUINT64_CONSTANT (0x10000)
#define N_FAR 2u
#define HERE N_FAR /* the child that shares the memory */
#define STEPS 60u
#define SEEDS 10000u
#define PAGE 4096u

/* One life of a remote worker: what its bridge knows, and what is at its other end. */
typedef struct
{
  PtoDirectory *directory;
  guint64 at;
  GHashTable *there; /* number -> GByteArray */
  guint64 limit;
} Far;

typedef struct
{
  GRand *dice;
  struct pto_writes *writes;
  guint8 plain[BYTES]; /* as a run without any of this would have it */
  guint8 here[BYTES];
  Far far[N_FAR];
  guint64 saved, sent;
} World;

static void
far_begin (World *world, Far *far)
{
  far->limit = (guint64) g_rand_int_range (world->dice, 1, 6) * PAGE;
  far->directory = pto_directory_new (far->limit);
  far->at = pto_writes_end (world->writes);
  far->there = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free,
                                      (GDestroyNotify) g_byte_array_unref);
}

static void
far_end (Far *far)
{
  pto_directory_free (far->directory);
  g_hash_table_unref (far->there);
}

static void
far_read_writes (World *world, guint index)
{
  Far *far = &world->far[index];
  struct pto_write write;
  enum pto_writes_next next;

  while ((next = pto_writes_next (world->writes, &far->at, &write)) != PTO_WRITES_NONE)
    if (next == PTO_WRITES_MISSED)
      pto_directory_remove (far->directory, 0, G_MAXUINT64);
    else if (write.child != index)
      pto_directory_remove (far->directory, write.begin, write.end);
}

/* What Begin says. */
static void
far_change (Far *far)
{
  g_autoptr (GArray) dropped = pto_directory_steal_dropped (far->directory);
  g_autoptr (GPtrArray) begun = pto_directory_steal_begun (far->directory);

  for (guint i = 0; i < dropped->len; i++)
    g_assert_true (g_hash_table_remove (far->there, &g_array_index (dropped, guint64, i)));
  for (guint i = 0; i < begun->len; i++)
    {
      PtoRemoteBlock *block = g_ptr_array_index (begun, i);
      GByteArray *bytes = g_byte_array_new ();

      g_byte_array_set_size (bytes, (guint) (block->end - block->begin));
      /* Whoever reads what was not put there sees that it was not. */
      memset (bytes->data, 0xee, bytes->len);
      g_hash_table_insert (far->there, g_memdup2 (&block->number, sizeof block->number), bytes);
    }
}

static guint8 *
far_bytes (Far *far, const PtoRemoteBlock *block, guint64 address)
{
  GByteArray *bytes = g_hash_table_lookup (far->there, &block->number);

  g_assert_nonnull (bytes);
  g_assert_cmpuint (address, >=, block->begin);
  g_assert_cmpuint (address - block->begin, <, bytes->len);
  return bytes->data + (address - block->begin);
}

/* There is always one beside it. */
static void
range (World *world, guint64 *begin, guint64 *end)
{
  gint32 most = g_rand_boolean (world->dice) ? 3 : (gint32) BYTES / 2;

  *begin = (guint64) g_rand_int_range (world->dice, 0, BYTES);
  *end = *begin + (guint64) g_rand_int_range (world->dice, 1, most);
  *end = MIN (*end, BYTES);
}

/* A task that reads a range and writes another, disjoint or the same. */
static void
run_far (World *world, guint index)
{
  Far *far = &world->far[index];
  PtoRemoteBlock *in, *out;
  guint64 begin, end, first, last;
  guint what = (guint) g_rand_int_range (world->dice, 0, 20);
  guint8 value = (guint8) g_rand_int (world->dice);
  g_autoptr (GArray) missing = NULL;

  range (world, &begin, &end);
  do
    range (world, &first, &last);
  while (first < end && begin < last);
  far_read_writes (world, index);
  in = pto_directory_use (far->directory, BASE + begin, BASE + end);
  out = pto_directory_use (far->directory, BASE + first, BASE + last);
  far_change (far);
  missing = pto_directory_list_missing (in, BASE + begin, BASE + end);
  world->saved += end - begin;
  for (guint i = 0; i < missing->len; i++)
    {
      const PtoRemoteSpan *span = &g_array_index (missing, PtoRemoteSpan, i);

      g_assert_cmpuint (span->begin, <, span->end);
      memcpy (far_bytes (far, in, span->begin), world->here + (span->begin - BASE),
              span->end - span->begin);
      pto_directory_add (in, span->begin, span->end);
      world->saved -= span->end - span->begin;
      world->sent += span->end - span->begin;
    }
  g_assert_cmpuint (pto_directory_count_missing (in, BASE + begin, BASE + end), ==, 0);
  g_assert_cmpmem (far_bytes (far, in, BASE + begin), end - begin, world->plain + begin,
                   end - begin);
  memset (far_bytes (far, out, BASE + first), value, last - first);
  /* As let_go_of_blocks() does (pto/remote/parent/bridge.c). */
  pto_directory_remove (far->directory, BASE + first, BASE + last);
  if (what > 1)
    {
      memset (world->here + first, value, last - first);
      memset (world->plain + first, value, last - first);
      pto_directory_add (out, BASE + first, BASE + last);
    }
  pto_directory_let_go (in);
  pto_directory_let_go (out);
  if (what == 0)
    {
      far_end (far);
      far_begin (world, far);
    }
  /* The pool says it in any case. */
  pto_writes_add (world->writes, BASE + first, BASE + last, index);
}

static void
run_here (World *world)
{
  guint64 first, last;
  guint8 value = (guint8) g_rand_int (world->dice);

  range (world, &first, &last);
  g_assert_cmpmem (world->here, BYTES, world->plain, BYTES);
  memset (world->here + first, value, last - first);
  memset (world->plain + first, value, last - first);
  pto_writes_add (world->writes, BASE + first, BASE + last, HERE);
}

static void
check_limit (const Far *far)
{
  /* Two blocks may have been in use at one time. */
  g_assert_cmpuint (pto_directory_get_bytes (far->directory), <=, far->limit + 2 * PAGE);
  g_assert_cmpuint (g_hash_table_size (far->there) * PAGE, <=, far->limit + 2 * PAGE);
}

static void
step (World *world)
{
  guint what = (guint) g_rand_int_range (world->dice, 0, 40);

  if (what == 0)
    {
      /* Another run: the program has written where it liked. */
      for (guint i = 0; i < BYTES; i += 1 + (guint) g_rand_int_range (world->dice, 0, 40))
        world->here[i] = world->plain[i] = (guint8) g_rand_int (world->dice);
      pto_writes_add_all (world->writes);
    }
  else if (what == 1)
    /* Nobody reads for so long that the log comes around. */
    for (guint i = 0; i < PTO_WRITES_MAX + 10; i++)
      pto_writes_add (world->writes, 1, 2, HERE);
  else if (what == 2)
    pto_directory_drop_all (world->far[0].directory);
  else if (what < 12)
    run_here (world);
  else
    run_far (world, (guint) g_rand_int_range (world->dice, 0, N_FAR));
  for (guint i = 0; i < N_FAR; i++)
    check_limit (&world->far[i]);
}

static void
test_random (void)
{
  guint64 saved = 0;
  guint64 sent = 0;
  guint32 first = (guint32) g_test_rand_int ();

  g_test_message ("seeds from %u on", first);
  for (guint seed = 0; seed < SEEDS; seed++)
    {
      World world = { .dice = g_rand_new_with_seed (first + seed), .writes = pto_writes_new () };

      g_assert_nonnull (world.writes);
      for (guint i = 0; i < N_FAR; i++)
        far_begin (&world, &world.far[i]);
      for (guint i = 0; i < STEPS; i++)
        step (&world);
      for (guint i = 0; i < N_FAR; i++)
        far_end (&world.far[i]);
      saved += world.saved;
      sent += world.sent;
      pto_writes_free (world.writes);
      g_rand_free (world.dice);
    }
  /* Neither nothing nor all. */
  g_assert_cmpuint (saved, >, sent / 50);
  g_assert_cmpuint (sent, >, 0);
}

/* --- one thing each --- */

static void
test_spans (void)
{
  PtoDirectory *directory = pto_directory_new (PAGE);
  PtoRemoteBlock *block = pto_directory_use (directory, 100, 200);
  g_autoptr (GArray) missing = NULL;

  pto_directory_add (block, 100, 120);
  pto_directory_add (block, 150, 160);
  pto_directory_add (block, 120, 130);
  pto_directory_add (block, 158, 170);
  pto_directory_remove (directory, 125, 126);
  /* Good: 100 to 125, 126 to 130, 150 to 170. */
  g_assert_cmpuint (pto_directory_count_missing (block, 100, 200), ==, 1 + 20 + 30);
  missing = pto_directory_list_missing (block, 124, 151);
  g_assert_cmpuint (missing->len, ==, 2);
  g_assert_cmpuint (g_array_index (missing, PtoRemoteSpan, 0).begin, ==, 125);
  g_assert_cmpuint (g_array_index (missing, PtoRemoteSpan, 0).end, ==, 126);
  g_assert_cmpuint (g_array_index (missing, PtoRemoteSpan, 1).begin, ==, 130);
  g_assert_cmpuint (g_array_index (missing, PtoRemoteSpan, 1).end, ==, 150);
  pto_directory_remove (directory, 0, 1000);
  g_assert_cmpuint (pto_directory_count_missing (block, 100, 200), ==, 100);
  pto_directory_let_go (block);
  pto_directory_free (directory);
}

/* Who was not used for longest goes, and who is used does not. */
static void
test_least_recently_used (void)
{
  PtoDirectory *directory = pto_directory_new (3 * PAGE);
  PtoRemoteBlock *blocks[4];
  guint64 first;
  g_autoptr (GArray) dropped = NULL;
  g_autoptr (GPtrArray) begun = NULL;

  for (guint i = 0; i < 3; i++)
    {
      blocks[i] = pto_directory_use (directory, 1000 * i, 1000 * i + 100);
      pto_directory_let_go (blocks[i]);
    }
  begun = pto_directory_steal_begun (directory);
  g_assert_cmpuint (begun->len, ==, 3);
  g_assert_true (pto_directory_use (directory, 0, 100) == blocks[0]);
  /* Of a block that is larger a part will do. */
  g_assert_true (pto_directory_use (directory, 2050, 2051) == blocks[2]);
  pto_directory_let_go (blocks[2]);
  first = blocks[1]->number;
  blocks[3] = pto_directory_use (directory, 5000, 5100);
  dropped = pto_directory_steal_dropped (directory);
  g_assert_cmpuint (dropped->len, ==, 1);
  g_assert_cmpuint (g_array_index (dropped, guint64, 0), ==, first);
  /* More than there may be: the two that are used stay all the same. */
  pto_directory_let_go (pto_directory_use (directory, 9000, 9000 + 9 * PAGE));
  g_clear_pointer (&dropped, g_array_unref);
  dropped = pto_directory_steal_dropped (directory);
  g_assert_cmpuint (dropped->len, ==, 1);
  g_assert_cmpuint (pto_directory_get_bytes (directory), ==, 11 * PAGE);
  pto_directory_drop_all (directory);
  g_assert_cmpuint (pto_directory_get_bytes (directory), ==, 2 * PAGE);
  pto_directory_free (directory);
}

/* What the program has is all there, and goes when the program says so: not with what others have
 * written, nor for room. */
static void
test_owned (void)
{
  PtoDirectory *directory = pto_directory_new (4 * PAGE);
  const guint64 far = G_GUINT64_CONSTANT (1) << 40;
  g_autoptr (GArray) dropped = NULL;
  g_autoptr (GPtrArray) begun = NULL;
  PtoRemoteBlock *block;
  guint64 number;

  pto_directory_own (directory, far + 2 * PAGE, far + 3 * PAGE);
  pto_directory_own (directory, far, far + 100);
  begun = pto_directory_steal_begun (directory);
  g_assert_cmpuint (begun->len, ==, 2);
  g_assert_cmpuint (pto_directory_get_n_owned (directory), ==, 2);
  g_assert_cmpuint (pto_directory_get_bytes (directory), ==, 0);
  block = pto_directory_find_owned (directory, far + 10, far + 100);
  g_assert_nonnull (block);
  g_assert_cmpuint (block->begin, ==, far);
  number = block->number;
  g_assert_null (pto_directory_find_owned (directory, far + 10, far + 101));
  g_assert_null (pto_directory_find_owned (directory, far - 1, far + 1));
  g_assert_null (pto_directory_find_owned (directory, far + PAGE, far + PAGE + 1));
  g_assert_null (pto_directory_find_owned (directory, 0, 1));

  g_assert_true (pto_directory_use (directory, far + 4, far + 8) == block);
  pto_directory_remove (directory, 0, G_MAXUINT64);
  g_assert_cmpuint (pto_directory_count_missing (block, far, far + 100), ==, 0);
  g_assert_cmpuint (pto_directory_find_missing (directory, far, far + 100), ==, 0);
  pto_directory_let_go (block);
  pto_directory_let_go (pto_directory_use (directory, PAGE, PAGE + 9 * PAGE));
  pto_directory_drop_all (directory);
  g_assert_true (pto_directory_find_owned (directory, far, far + 1) == block);

  g_assert_false (pto_directory_disown (directory, far + 1));
  g_assert_true (pto_directory_disown (directory, far));
  g_assert_false (pto_directory_disown (directory, far));
  g_assert_null (pto_directory_find_owned (directory, far, far + 1));
  g_assert_nonnull (pto_directory_find_owned (directory, far + 2 * PAGE, far + 3 * PAGE));
  dropped = pto_directory_steal_dropped (directory);
  g_assert_cmpuint (dropped->len, ==, 1); /* the other end has never heard of the large one */
  g_assert_cmpuint (g_array_index (dropped, guint64, 0), ==, number);
  pto_directory_free (directory);
}

/* Of what tasks leave there is less room where the program has much. */
static void
test_room_beside_owned (void)
{
  PtoDirectory *directory = pto_directory_new (4 * PAGE);
  const guint64 far = G_GUINT64_CONSTANT (1) << 40;

  pto_directory_own (directory, far, far + 4 * PAGE);
  for (guint i = 0; i < 4; i++)
    pto_directory_let_go (pto_directory_use (directory, i * PAGE + 1, (i + 1) * PAGE));
  g_assert_cmpuint (pto_directory_get_bytes (directory), ==, 2 * PAGE);
  pto_directory_free (directory);
}

typedef struct
{
  struct pto_writes *writes;
  int is_done; /* atomic; W: writer, R: reader */
} Log;

#define ADDED 200000u

static gpointer
add_many (gpointer data)
{
  Log *log = data;

  /* Of every entry the end is the begin and one more. */
  for (guint64 i = 1; i <= ADDED; i++)
    pto_writes_add (log->writes, i, i + 1, (guint32) i);
  g_atomic_int_set (&log->is_done, TRUE);
  return NULL;
}

/* What is only there is neither thrown away for room nor forgotten with the copies, is listed, and
 * is a copy like any other once it has come. */
static void
test_only (void)
{
  PtoDirectory *directory = pto_directory_new (2 * PAGE);
  PtoRemoteBlock *block = pto_directory_use (directory, BASE, BASE + PAGE);
  g_autoptr (GArray) dropped = NULL;
  GArray *only;

  pto_directory_add (block, BASE, BASE + 100);
  pto_directory_add_left (block, BASE + 50, BASE + 80);
  pto_directory_let_go (block);
  only = pto_directory_list_left (directory, BASE + 60, BASE + 200);
  g_assert_cmpuint (only->len, ==, 1);
  g_assert_true (g_array_index (only, PtoRemoteLeft, 0).block == block);
  g_assert_cmpuint (g_array_index (only, PtoRemoteLeft, 0).begin, ==, BASE + 60);
  g_assert_cmpuint (g_array_index (only, PtoRemoteLeft, 0).end, ==, BASE + 80);
  g_array_unref (only);
  pto_directory_remove_copies (directory, 0, G_MAXUINT64);
  g_assert_cmpuint (pto_directory_count_missing (block, BASE + 50, BASE + 80), ==, 0);
  g_assert_cmpuint (pto_directory_count_missing (block, BASE, BASE + 100), ==, 70);
  pto_directory_drop_all (directory);
  for (guint i = 1; i <= 4; i++)
    pto_directory_let_go (pto_directory_use (directory, BASE + i * PAGE, BASE + (i + 1) * PAGE));
  g_assert_cmpuint (pto_directory_find_missing (directory, BASE + 50, BASE + 80), ==, 0);
  /* Others have it by now, and it is written anew. */
  pto_directory_add (block, BASE + 50, BASE + 60);
  pto_directory_remove_only (directory, 0, G_MAXUINT64);
  g_assert_cmpuint (pto_directory_count_missing (block, BASE + 50, BASE + 80), ==, 20);
  pto_directory_drop_all (directory);
  dropped = pto_directory_steal_dropped (directory);
  g_assert_cmpuint (pto_directory_get_bytes (directory), ==, 0);
  g_assert_cmpuint (pto_directory_find_missing (directory, BASE + 50, BASE + 60), ==, 10);
  pto_directory_free (directory);
}

/* What is listed of a range, as "begin-end" from the base. */
static char *
list_left (PtoDirectory *directory, guint64 begin, guint64 end)
{
  g_autoptr (GArray) list = pto_directory_list_left (directory, begin, end);
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < list->len; i++)
    {
      const PtoRemoteLeft *left = &g_array_index (list, PtoRemoteLeft, i);

      g_string_append_printf (text, "%s%u-%u", i > 0 ? " " : "", (guint) (left->begin - BASE),
                              (guint) (left->end - BASE));
    }
  return g_string_free (text, FALSE);
}

/* A tensor that stays, and one that was left, may be in one block, side by side or one after the
 * other: each is what it is, and neither is thrown away. */
static void
test_stays (void)
{
  PtoDirectory *directory = pto_directory_new (2 * PAGE);
  PtoRemoteBlock *block = pto_directory_use (directory, BASE, BASE + PAGE);
  g_autofree char *beside = NULL;
  g_autofree char *in = NULL;
  g_autofree char *over = NULL;
  g_autofree char *after = NULL;

  pto_directory_let_go (block);
  pto_directory_add_staying (block, BASE, BASE + 100);
  pto_directory_add_left (block, BASE + 100, BASE + 200);
  beside = list_left (directory, BASE + 50, BASE + 150);
  g_assert_cmpstr (beside, ==, "100-150");
  pto_directory_remove_copies (directory, 0, G_MAXUINT64);
  g_assert_cmpuint (pto_directory_count_missing (block, BASE, BASE + 200), ==, 0);
  /* The scope of the one is over, and there is a tensor like any other by now. */
  pto_directory_add_left (block, BASE + 20, BASE + 40);
  in = list_left (directory, 0, G_MAXUINT64);
  g_assert_cmpstr (in, ==, "20-40 100-200");
  pto_directory_add_staying (block, BASE + 30, BASE + 120);
  over = list_left (directory, 0, G_MAXUINT64);
  g_assert_cmpstr (over, ==, "20-30 120-200");
  /* What was left has come; what stays is enough to keep the block. */
  pto_directory_add (block, BASE + 20, BASE + 30);
  pto_directory_add (block, BASE + 120, BASE + 200);
  pto_directory_drop_all (directory);
  g_assert_cmpuint (pto_directory_get_bytes (directory), ==, PAGE);
  /* The next run: all of it is other memory. */
  pto_directory_remove (directory, 0, G_MAXUINT64);
  pto_directory_add_left (block, BASE, BASE + 100);
  after = list_left (directory, 0, G_MAXUINT64);
  g_assert_cmpstr (after, ==, "0-100");
  pto_directory_remove_only (directory, BASE + 10, BASE + 90);
  g_assert_cmpuint (pto_directory_count_missing (block, BASE, BASE + 100), ==, 80);
  pto_directory_add_staying (block, BASE + 20, BASE + 40);
  pto_directory_remove_only (directory, 0, G_MAXUINT64);
  pto_directory_drop_all (directory);
  g_assert_cmpuint (pto_directory_get_bytes (directory), ==, 0);
  pto_directory_free (directory);
}

/* Who is overtaken is told, and never reads half of an entry. */
static void
test_log (void)
{
  Log log = { .writes = pto_writes_new () };
  GThread *thread = g_thread_new ("writer", add_many, &log);
  guint64 at = 0;
  guint64 last = 0;
  guint missed = 0;

  for (;;)
    {
      gboolean was_done = g_atomic_int_get (&log.is_done);
      struct pto_write write;
      enum pto_writes_next next = pto_writes_next (log.writes, &at, &write);

      if (next == PTO_WRITES_NONE && was_done)
        break;
      missed += next == PTO_WRITES_MISSED;
      if (next != PTO_WRITES_ONE)
        continue;
      if (missed == 0)
        g_assert_cmpuint (write.begin, ==, last + 1);
      g_assert_cmpuint (write.begin, >, last);
      g_assert_cmpuint (write.end, ==, write.begin + 1);
      g_assert_cmpuint (write.child, ==, (guint32) write.begin);
      last = write.begin;
    }
  g_thread_join (thread);
  g_assert_true (missed > 0 || last == ADDED);
  g_assert_cmpuint (at, ==, ADDED);
  g_assert_cmpuint (pto_writes_life (log.writes, 3), ==, 0);
  g_assert_cmpuint (pto_writes_begin_life (log.writes, 3), ==, 1);
  g_assert_cmpuint (pto_writes_begin_life (log.writes, 3), ==, 2);
  g_assert_cmpuint (pto_writes_life (log.writes, 3), ==, 2);
  pto_writes_free (log.writes);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/remote-directory/spans", test_spans);
  g_test_add_func ("/pto/remote-directory/least-recently-used", test_least_recently_used);
  g_test_add_func ("/pto/remote-directory/owned", test_owned);
  g_test_add_func ("/pto/remote-directory/room-beside-owned", test_room_beside_owned);
  g_test_add_func ("/pto/remote-directory/only", test_only);
  g_test_add_func ("/pto/remote-directory/stays", test_stays);
  g_test_add_func ("/pto/remote-directory/log", test_log);
  g_test_add_func ("/pto/remote-directory/random", test_random);
  return g_test_run ();
}
