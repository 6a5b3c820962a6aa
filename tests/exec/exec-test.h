/* exec-test.h: what do the tests of floor 0 share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every test has a deadline: alarm() ends the program, which the harness reports as a failure.
 */
#pragma once

#include "../../pto/exec/fiber.h"
#include "../../pto/exec/pto-exec.h"
#include "../short.h"

#include <glib.h>

#include <time.h>
#include <unistd.h>

#define WATCHDOG_S 120

/* For functions that crash or loop on purpose, and their like. */
#define NOT_SANITIZED                                                                         \
  __attribute__ ((no_sanitize ("address"), no_sanitize ("thread"), no_sanitize ("undefined"), \
                  noinline))

#ifdef PTO_TSAN
#define SCALE(n) ((n) / 20)
#else
#define SCALE(n) SCALE_SHORT (n)
#endif

static const char *const backend_names[] = { "par", "det", "threads", "host" };

static inline struct pto_exec *
new_exec (enum pto_backend backend, uint32_t domains, uint64_t seed)
{
  struct pto_exec_config config = { .backend = backend, .domains = domains, .seed = seed };
  char error[256] = "";
  struct pto_exec *exec = pto_exec_new (&config, error, sizeof error);

  g_assert_cmpstr (error, ==, "");
  g_assert_nonnull (exec);
  return exec;
}

static inline void
spawn (struct pto_exec *exec, uint32_t domain, void (*fn) (void *), void *arg)
{
  char error[256] = "";
  int status = pto_exec_spawn (exec, domain, "actor", fn, arg, error, sizeof error);

  g_assert_cmpstr (error, ==, "");
  g_assert_cmpint (status, ==, 0);
}

/* Waits until *word has reached value (modulo 2^32). */
static inline void
wait_for (struct pto_exec *exec, struct pto_word *word, uint32_t value)
{
  uint32_t seen;

  while ((int32_t) ((seen = pto_word_get (word)) - value) < 0)
    pto_park (exec, word, seen, PTO_NEVER);
}

static inline uint64_t
clock_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static inline void
add_for_backend (const char *name, enum pto_backend backend, void (*fn) (gconstpointer backend))
{
  char *path = g_strdup_printf ("/pto/exec/%s/%s", backend_names[backend], name);

  g_test_add_data_func (path, GSIZE_TO_POINTER (backend), fn);
  g_free (path);
}

static inline void
add_for_backends (const char *name, void (*fn) (gconstpointer backend))
{
  for (gsize i = 0; i < G_N_ELEMENTS (backend_names); i++)
    add_for_backend (name, (enum pto_backend) i, fn);
}

/* Where every actor may have a deadline. On host only the guest has one. */
static inline void
add_for_deadlines (const char *name, void (*fn) (gconstpointer backend))
{
  for (gsize i = 0; i < G_N_ELEMENTS (backend_names); i++)
    if (i != PTO_BACKEND_HOST)
      add_for_backend (name, (enum pto_backend) i, fn);
}
