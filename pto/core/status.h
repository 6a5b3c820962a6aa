/* status.h: what can go wrong in the engine, and how it is told.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>

/* Codes as users of this family of runtimes know them (engine notes); the object layer maps them
 * one to one. */
enum pto_status
{
  PTO_OK = 0,
  PTO_STATUS_SCOPE_DEADLOCK = 1,
  PTO_STATUS_HEAP_RING = 2,
  PTO_STATUS_TASK_RING = 3,
  PTO_STATUS_DEP_POOL = 4,
  PTO_STATUS_INVALID_ARGS = 5,
  PTO_STATUS_SYNC_START = 7,
  PTO_STATUS_TENSOR_WAIT = 8,
  PTO_STATUS_EXPLICIT = 9,
  PTO_STATUS_SCOPE_OVERFLOW = 10,
  PTO_STATUS_MAP_OVERFLOW = 11,
  PTO_STATUS_SCHEDULER_TIMEOUT = 100,
  PTO_STATUS_KERNEL_FAULT = 101,  /* a kernel crashed */
  PTO_STATUS_KERNEL_HANG = 102,   /* a kernel did not return in time */
  PTO_STATUS_OUT_OF_BOUNDS = 103, /* a kernel wrote past an output */
  PTO_STATUS_READY_QUEUE = 104,
  PTO_STATUS_NO_MEMORY = 105,
  PTO_STATUS_CANCELLED = 106,
  PTO_STATUS_SYSTEM = 107, /* the operating system refused something */
  PTO_STATUS_ACCESS = 108, /* a task touched what it had not said */
  /* levels of workers; the numbers of the public errors */
  PTO_STATUS_NOT_FOUND = 204,
  PTO_STATUS_NOT_SUPPORTED = 205,
  PTO_STATUS_TASK_FAILED = 210,
  PTO_STATUS_WORKER_LOST = 211,
  PTO_STATUS_TAMPERED = 212,
  PTO_STATUS_NOT_SHARED = 213
};

/* The first fatal error of a run. Memory of the caller. */
struct pto_report
{
  enum pto_status status;
  char message[2000];
};

/* What a submit lacks that waits for room. */
struct pto_shortage
{
  char what[160]; /* "[TaskRing] BLOCKED (Flow Control): ring=0, current=15, last_alive=0" */
  char knob[160]; /* "set task-window to 32 or more" */
  uint64_t used;
  uint64_t all;
};

/* Fills the report if it holds no error yet; gives the status back. */
enum pto_status pto_report_set (struct pto_report *report, enum pto_status status,
                                const char *format, ...) __attribute__ ((format (printf, 3, 4)));
/* Behind what it says; what there is no room for is left out. */
void pto_report_append (struct pto_report *report, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
enum pto_status pto_report_setv (struct pto_report *report, enum pto_status status,
                                 const char *format, va_list args)
    __attribute__ ((format (printf, 3, 0)));
/* What is behind the last slash. */
const char *pto_base_name (const char *file);
/* Why a tensor can not be used: of its status. */
const char *pto_tensor_status_text (uint32_t status);
