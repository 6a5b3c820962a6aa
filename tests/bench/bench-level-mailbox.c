/* bench-level-mailbox.c: how long is it from a request to its answer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The child is a process; the parent looks at the bell all the time, as a waiting run does for the
 * first while. A call does nothing with one tensor and two scalars.
 */
#include "bench-level.h"

#include "../../pto/core/status.h"
#include "../../pto/process/mailbox.h"
#include "../../pto/process/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define AWAKE_TRIPS 10001u
#define PARKED_TRIPS 201u

struct family
{
  struct pto_hub hub;
  struct pto_mailbox mailbox;
  struct pto_link link;
  bool awake;
};

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  (void) data;
  (void) failure;
  return call->request == PTO_REQUEST_TASK && call->args.scalars[1] != 2 ? PTO_STATUS_EXPLICIT
                                                                         : PTO_OK;
}

static int
child_main (void *data)
{
  struct family *family = data;
  struct pto_server server = { .serve = serve, .is_orphan = pto_process_is_orphan };

  return pto_mailbox_serve (NULL, &family->mailbox, &family->hub, 0, family->awake, &server) ? 0
                                                                                             : 1;
}

/* ns from before the request is written until its answer is read; 0: the child did not answer as it
 * should. */
static double
round_trip (struct family *family, enum pto_request request)
{
  uint64_t begin = bench_now ();
  struct pto_continuous_tensor *tensors;
  struct pto_failure failure;
  uint64_t *scalars;

  pto_blob_begin (pto_link_body (&family->link), 1, 2, &tensors, &scalars);
  tensors[0] = (struct pto_continuous_tensor){ .data = 64, .shapes = { 1 }, .ndims = 1 };
  scalars[0] = 1;
  scalars[1] = 2;
  pto_link_post (
      NULL, &family->link,
      &(struct pto_letter){ .request = request, .bytes = (uint32_t) pto_blob_size (1, 2) });
  while (pto_hub_take (&family->hub, 0) == 0)
    ;
  if (!pto_link_is_idle (&family->link) || pto_link_answer (&family->link, &failure) != PTO_OK)
    return 0;
  return (double) (bench_now () - begin);
}

static void
wait_until_parked (struct family *family)
{
  while (atomic_load_explicit (&family->mailbox.post.parked, memory_order_relaxed) == 0)
    ;
  bench_level_settle ();
}

/* The median of many; 0: failed. */
static double
measure (struct family *family, double *ns, uint32_t n_trips)
{
  for (uint32_t i = 0; i < n_trips; i++)
    {
      if (!family->awake)
        wait_until_parked (family);
      ns[i] = round_trip (family, PTO_REQUEST_TASK);
      if (ns[i] == 0)
        return 0;
    }
  return bench_median (ns, n_trips);
}

bool
bench_level_mailbox (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  static double ns[AWAKE_TRIPS];
  uint32_t n_trips = brief ? 50 : figure->number == 0 ? AWAKE_TRIPS : PARKED_TRIPS;
  struct family *family
      = mmap (NULL, sizeof *family, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct pto_process_config config = { .main = child_main, .data = family };
  struct pto_report report = { 0 };
  struct pto_process process;
  bool ok;

  if (family == MAP_FAILED)
    {
      perror ("bench: mmap");
      return false;
    }
  pto_bell_init (&family->hub.bell, -1);
  pto_mailbox_link (&family->link, &family->mailbox);
  family->awake = figure->number == 0;
  pto_process_init (&process, "sub0");
  if (pto_process_begin (&process, &config, &report) != PTO_OK)
    {
      fprintf (stderr, "bench: %s\n", report.message);
      munmap (family, sizeof *family);
      return false;
    }
  ok = round_trip (family, PTO_REQUEST_START) > 0;
  for (uint32_t i = 0; ok && i < reps; i++)
    {
      double median = measure (family, ns, n_trips);

      ok = median > 0;
      if (ok)
        bench_print (figure->name, figure->metric, median / 1e3, figure->unit);
    }
  ok = round_trip (family, PTO_REQUEST_CLOSE) > 0 && ok;
  if (!ok)
    fprintf (stderr, "bench: %s: the child did not answer as it should\n", figure->name);
  pto_process_end (&process);
  munmap (family, sizeof *family);
  return ok;
}
