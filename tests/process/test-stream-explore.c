/* test-stream-explore.c: is every command of a stream read, and its answer, and does the writer
 * never wait for what has happened, whichever way its steps and those of the reader interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Both run on the machine of weak.h, as sides (sides.h) whose steps are explored as explorer.h
 * says. Words that other processes wait for (exec/shared.h) are played.
 */
#include "../../pto/exec/shared-wait.h"
#include "../../pto/process/command-stream.h"

#include "../weak/explorer.h"
#include "../weak/sides.h"

#include <glib.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WATCHDOG_S 60
#define ROUNDS 2

static struct pto_stream *stream;
static struct pto_stream_writer writer;
static struct pto_word rung; /* the reader to the writer */
static int32_t n_calls;      /* made by the reader */
static int result;

/* --- words that are shared --- */

enum pto_park_result
pto_shared_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected, uint64_t spin_ns,
                 uint64_t deadline)
{
  return pto_park (explorer.exec, word, expected, PTO_NEVER);
}

void
pto_shared_set (struct pto_exec *exec, struct pto_word *word, uint32_t value)
{
  weak_word_set (explorer.exec, word, value);
}

/* --- texts, which are read and written as a whole --- */

size_t
strnlen (const char *text, size_t max)
{
  size_t n = 0;

  while (n < max && text[n] != '\0')
    n++;
  weak_read (text, n + (n < max));
  return n;
}

int
snprintf (char *text, size_t size, const char *format, ...)
{
  va_list args;
  int n;

  va_start (args, format);
  n = vsnprintf (text, size, format, args);
  va_end (args);
  weak_write (text, (uint64_t) n + 1);
  return n;
}

/* --- the reader --- */

static int32_t
allocate_cluster (PTO2Runtime *rt)
{
  return 10 * ++n_calls;
}

static const PTO2RuntimeOps ops = { .size = sizeof ops, .allocate_cluster = allocate_cluster };
static PTO2Runtime runtime = { .ops = &ops };

static bool
has_failed (PTO2Runtime *rt)
{
  return n_calls == ROUNDS;
}

static const char *
get_failure (PTO2Runtime *rt)
{
  return "enough";
}

static void
ring (void *data)
{
  weak_word_set (explorer.exec, &rung, weak_word_get (&rung) + 1);
}

static void
reader_main (void *arg)
{
  const struct pto_stream_target target
      = { .rt = &runtime, .has_failed = has_failed, .get_failure = get_failure, .ring = ring };

  result = pto_stream_replay (stream, &target);
}

/* --- the writer --- */

static void
writer_main (void *arg)
{
  for (int32_t round = 1; round <= ROUNDS; round++)
    {
      pto_stream_put (&writer, PTO_COMMAND_ALLOCATE_CLUSTER, &(struct pto_said){ .a = 0, .b = 0 });
      for (;;)
        {
          uint32_t heard = weak_word_get (&rung);
          char failure[PTO_STREAM_TEXT];

          pto_stream_get_failure (&writer, failure);
          g_assert_true (failure[0] == '\0' || strcmp (failure, "enough") == 0);
          if (pto_stream_is_read (&writer, true))
            break;
          pto_park (explorer.exec, &rung, heard, PTO_NEVER);
        }
      g_assert_true (pto_stream_is_sound (&writer));
      g_assert_cmpint (pto_stream_get_answer (&writer, NULL, 0), ==, 10 * round);
      g_assert_true (pto_stream_has_begun (&writer));
      g_assert_cmpint (pto_stream_has_failed (&writer), ==, round == ROUNDS);
    }
  pto_stream_put (&writer, PTO_COMMAND_END, &(struct pto_said){ .a = 7 });
}

static void
begin (const void *scenario)
{
  pto_stream_begin (&writer, stream);
  pto_word_init (&rung, 0, false);
  n_calls = result = 0;
  sides_start (writer_main, NULL);
  sides_start (reader_main, NULL);
}

static void
check (const void *scenario)
{
  for (uint32_t i = 0; i < n_sides; i++)
    if (!sides[i].ended)
      g_error ("schedule %" G_GUINT64_FORMAT ": side %u sleeps for ever", explorer.schedules, i);
  g_assert_cmpint (result, ==, 7);
}

static void
test_answers (void)
{
  stream = aligned_alloc (64, (pto_stream_size () + 63) & ~(gsize) 63);
  memset (stream, 0, pto_stream_size ());
  sides_explore (
      &(struct sides_paths){
          .bound = 2, .stale_bound = 2, .at_least = 1000, .begin = begin, .end = check },
      NULL);
  free (stream);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/stream-explore/answers", test_answers);
  return g_test_run ();
}
