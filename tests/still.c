/* still.c: does nobody run who has nothing to do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "still.h"

#include "../pto/exec/fiber.h"

#include <string.h>
#include <unistd.h>

/* Thread -> what the kernel has counted of it: its time on a processor, and how often it got one.
 */
static GHashTable *
count_turns (const pid_t *processes, gsize n)
{
  GHashTable *turns = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);

  for (gsize i = 0; i < n; i++)
    {
      g_autofree char *path = g_strdup_printf ("/proc/%d/task", (int) processes[i]);
      GDir *threads = g_dir_open (path, 0, NULL);
      const char *thread;

      g_assert_nonnull (threads);
      while ((thread = g_dir_read_name (threads)) != NULL)
        {
          g_autofree char *file = g_build_filename (path, thread, "schedstat", NULL);
          g_autofree char *text = NULL;

          /* One that has ended meanwhile is missing, which is a difference, too. */
          if (g_ascii_strtoll (thread, NULL, 10) != gettid ()
              && g_file_get_contents (file, &text, NULL, NULL))
            g_hash_table_insert (turns, g_steal_pointer (&file), g_steal_pointer (&text));
        }
      g_dir_close (threads);
    }
  return turns;
}

/* Who differs is added to said. */
static gboolean
is_same (GHashTable *before, GHashTable *after, GString *said)
{
  gboolean same = g_hash_table_size (before) == g_hash_table_size (after);
  GHashTableIter iter;
  gpointer file, text;

  g_hash_table_iter_init (&iter, after);
  while (g_hash_table_iter_next (&iter, &file, &text))
    {
      const char *earlier = g_hash_table_lookup (before, file);

      if (earlier != NULL && strcmp (earlier, text) == 0)
        continue;
      same = FALSE;
      g_string_append_printf (said, "\n%s: %s -> %s", (const char *) file,
                              earlier != NULL ? g_strchomp ((char *) earlier) : "new",
                              g_strchomp (text));
    }
  return same;
}

gboolean
still_wait (const pid_t *processes, gsize n)
{
  gint64 until = g_get_monotonic_time () + STILL_PATIENCE_S * G_TIME_SPAN_SECOND;

#ifdef PTO_TSAN
  g_test_skip ("the thread sanitizer has a thread that wakes up");
  return FALSE;
#endif
  if (!g_file_test ("/proc/self/schedstat", G_FILE_TEST_EXISTS))
    {
      g_test_skip ("this kernel does not tell of processors' times: no /proc/self/schedstat");
      return FALSE;
    }
  for (;;)
    {
      g_autoptr (GHashTable) before = count_turns (processes, n);
      g_autoptr (GHashTable) after = NULL;
      g_autoptr (GString) said = g_string_new (NULL);

      g_usleep (STILL_MS * 1000);
      after = count_turns (processes, n);
      if (is_same (before, after, said))
        return TRUE;
      g_test_message ("%s", said->str);
      if (g_get_monotonic_time () > until)
        g_error ("these go on for %d s, though there is nothing to do:%s", STILL_PATIENCE_S,
                 said->str);
    }
}
