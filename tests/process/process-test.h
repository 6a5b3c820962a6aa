/* process-test.h: what do the tests of child processes share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is to be seen in a child is checked there and told by its exit status or by what it writes.
 * Every test has a deadline: alarm() ends the program, and the children go with it.
 */
#pragma once

#include "../../pto/process/process.h"

#include <glib.h>

#include <stdio.h>
#include <unistd.h>

#define DEADLINE_S 60

/* In a child: no framework there. */
#define CHECK(condition)                                                        \
  do                                                                            \
    if (!(condition))                                                           \
      {                                                                         \
        dprintf (STDERR_FILENO, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        _exit (99);                                                             \
      }                                                                         \
  while (0)

/* A file that stands in for a standard descriptor. */
struct stand_in
{
  int target, saved, file;
};

extern struct pto_words words;

guint count_entries (const char *path);
void add (const char *path, void (*test) (void));
void begin_with (struct pto_process *process, const char *path, int (*function) (void *),
                 void *data, struct pto_process_config config);
void begin (struct pto_process *process, int (*function) (void *), void *data);
void take_words (struct pto_process *process);
/* As a keeper does: looks at both descriptors until the child is dead. */
void wait_dead (struct pto_process *process);
void assert_described (const struct pto_process *process, const char *expected);
void assert_last_line (const struct pto_process *process, const char *expected);
/* The child has found everything right. */
void expect_success (struct pto_process *process);
struct stand_in put_in_place (int target, int file);
char *take_out (struct stand_in s);
int wait_for_ever (void *data);
int return_data (void *data);
/* For a config: gives the child's state when it sleeps, all set up, or is dead. data: a char. */
pid_t fork_and_watch (void *data);
