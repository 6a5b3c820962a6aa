/* machine-isolated.h: what do the halves of a chip in another process know of each
 * other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The parent's half (machine-isolated.c; -record.c: orchestration functions; -graph.c: graphs)
 * is the machine behind a worker. The child's half (-child.c) has the chip, a machine like that of
 * any worker (machine-chip.c), and does with it what its parent's worker would. Between them is
 * a solo child (../process/single-child.h): runs on its first lane, registrations, graphs and
 * traces on the second.
 */
#pragma once

#include "process/command-stream.h"
#include "process/single-child.h"
#include "process/staging.h"

#include "sim/chip.h"
#include "sim/device-memory.h"

#include "machine.h"
#include "pto-error.h"

G_BEGIN_DECLS

#define PTO_ISOLATED_LANE_RUN 0
#define PTO_ISOLATED_LANE_CONTROL 1

/* Cores that keep notes: the most clusters there can be, three cores each. */
#define PTO_ISOLATED_NOTES 3072u

/* The body of REGISTER: this, the language of each object's source, then the registration. */
typedef struct
{
  guint32 index;     /* the registry's */
  guint32 n_objects; /* a byte each */
} IsolatedRegister;

/* What orchestrations log, on its way to the handlers of the parent's program. */
#define PTO_ISOLATED_MESSAGES 16u
typedef struct
{
  guint32 flags; /* GLogLevelFlags */
  char text[1276];
} IsolatedMessage;

/* In shared memory. What the child writes is believed only where it can do no harm. */
typedef struct
{
  /* W: parent, before the request. */
  struct pto_params params;      /* UP */
  struct pto_call_config config; /* RUN */
  guint32 has_config;            /* RUN: else the default of everything */
  char title[512];               /* RUN */
  guint32 n_args;                /* RUN: the body is so many struct pto_chip_arg */
  guint32 is_stream;             /* RUN: the stream submits */
  guint32 is_capture;            /* RUN: it is written down, and does not run */
  guint64 graph;         /* RUN: which one is launched; 0: none. Behind the arguments are the
                          * numbers of its kernels, guint32 each */
  guint32 schedule_at;   /* RUN: 1 + where its text is in the body; 0: it has none */
  PtoChildTrace fetched; /* TRACE, CAPTURED: that; the child writes its size */

  /* W: child, before the answer. */
  struct pto_run_stats statistics; /* RUN */
  guint32 has_statistics;

  /* All children together, one after the other. W: child, when a run ends; parent, of a run whose
   * child has died, or which has failed after it. */
  struct pto_machine_totals totals;

  /* W: child, while it runs. */
  struct pto_core_note notes[PTO_ISOLATED_NOTES];
  IsolatedMessage messages[PTO_ISOLATED_MESSAGES];
  /* How far the run is. Relaxed: they are numbers for people. W: parent, before RUN; child, while
   * it runs. */
  _Atomic guint64 submitted;
  _Atomic guint64 completed;
  _Atomic guint64 failed;
  guint32 n_written; /* atomic; W: child, behind the message */
  guint32 n_read;    /* atomic; W: parent, behind its copy */
} IsolatedShared;

/* The stream lies behind it. */
static inline struct pto_stream *
pto_isolated_get_stream (IsolatedShared *shared)
{
  return (struct pto_stream *) (gpointer) ((guint8 *) shared + (sizeof *shared + 63) / 64 * 64);
}

/* --- machine-isolated-child.c --- */

typedef struct
{
  PtoTreeNode *node; /* of the worker */
  struct pto_solo *solo;
  struct pto_heaps heaps; /* the chip's, at the same addresses on both sides */

  /* --- in the child --- */
  struct pto_params params;
  PtoMachine *chip;
  GMutex lock;         /* guards the tables: both lanes use them */
  GHashTable *targets; /* digest -> PtoRegistration, owned */
  GHashTable *graphs; /* number -> struct pto_plan, owned; none is forgotten while it is launched */
  PtoTrace *trace;    /* between the two requests for it */
  struct pto_plan *captured;
} IsolatedChild;

/* What serves each lane; child stays where it is. */
void pto_isolated_child_get_server (IsolatedChild *child, guint lane, struct pto_server *server);

/* --- the parent's half --- */

/* Where a task was submitted. */
typedef struct
{
  const char *file; /* NULL: it is not known */
  guint32 line;
} IsolatedPlace;

/* The tasks that were given memory of this process that ends where its key says. */
typedef struct
{
  guint64 end; /* the key */
  guint64 n;   /* tasks */
  PTO2TaskId first, last;
  IsolatedPlace first_place, last_place;
  guint32 kernel; /* of the last */
  guint argument; /* of the last */
  Tensor tensor;  /* of the last; only its shape and type */
} IsolatedWriter;

/* An orchestration function's calls, on their way to the child. The first member is the table. */
typedef struct
{
  struct PTO2Runtime runtime;
  struct pto_stream_writer writer;
  gboolean over;   /* the child does not read on */
  gboolean failed; /* as far as is known here */
  /* Numbers of buffers: those of a scope are given again when it has ended. */
  guint32 n_buffers;
  guint32 generation;
  GByteArray *made;           /* of each number: some task has output the buffer */
  GArray *scopes;             /* guint32: n_buffers at their begin */
  GHashTable *writers;        /* end of copied memory -> IsolatedWriter, owned */
  guint32 n_tasks[PTO_RINGS]; /* submitted, as they are named over there ... */
  gboolean is_reducing;       /* ... where nothing has been reduced, which adds tasks */
  IsolatedPlace at;           /* the place that was written last */
} IsolatedRecorder;

typedef struct
{
  PtoMachine parent;
  IsolatedChild child;
  IsolatedRecorder recorder;
  struct pto_stage *stage; /* W: start, stop */
  struct pto_device_memory memory;

  /* Held by a thread while it uses the second lane, or begins a child. Outside of lock. */
  GMutex control;
  struct pto_solo *solo; /* W: under control; NULL: nothing was begun */
  IsolatedShared *shared;
  /* Under way; NULL: none. W: under control, the thread that has taken the machine. */
  const PtoMachineRun *run;
  gboolean wants_up;  /* between start and stop: the child is to have a chip */
  gboolean is_up;     /* and it has one */
  gboolean is_dirty;  /* a kernel has crashed in it: another one for the next run */
  gboolean recorded;  /* the child holds a record of the last run */
  PtoTrace *trace;    /* made on the first request */
  GHashTable *known;  /* digest -> PtoRegistration, owned */
  GHashTable *graphs; /* PtoGraphTag, owned: of which this child has a copy */

  /* --- of the run under way; whoever has taken the machine --- */
  guint64 far; /* what it was asked with, if that is in the arena; or 0 */
  guint far_size;
  gboolean posted; /* the child has been asked to run it */
  GError *refused; /* why it was not, if that was found out in launch() */
  guint32 n_read;  /* messages */
  gboolean died;
  gboolean is_cancelled;
  guint64 cancelled_at; /* pto_solo_clock(), as all below */
  guint64 looked;       /* at the notes */
  /* Sums of ns between looks: what this process itself did not run for is no time that a kernel has
   * taken. */
  guint64 still;   /* since a kernel began or ended */
  guint64 stopped; /* since the child stands still */
  guint32 *calls;  /* of each core, when they were looked at */
  guint64 began;
  PtoError ended_as; /* what it is that this has ended the child for; 0: nothing of a kernel's */

  GHashTable *numbers; /* address -> what is there (machine-isolated-number.c), owned */

  GPtrArray *names; /* under the parent's lock; of kernels, by the registry's index: interned */
} IsolatedMachine;

void pto_isolated_recorder_init (IsolatedMachine *self);
void pto_isolated_recorder_clear (IsolatedMachine *self);
/* A run is about to begin. */
void pto_isolated_recorder_begin (IsolatedMachine *self);
/* The orchestration has ended with that result. */
void pto_isolated_recorder_end (IsolatedMachine *self, int result);
/* Names the task that was to write there, or the last of several, and its argument; NULL: none. */
char *pto_isolated_describe_overrun (IsolatedMachine *self, const struct pto_overrun *overrun);
/* As the machine's functions of these names. */
gboolean pto_isolated_has_failed (PTO2Runtime *rt);
char *pto_isolated_dup_failure (PTO2Runtime *rt);
void pto_isolated_fail (PTO2Runtime *rt, enum pto_status status, const char *message);
void pto_isolated_catch_up (PTO2Runtime *rt);
gboolean pto_isolated_alloc (PtoMachine *machine, PTO2Runtime *rt, Tensor *tensor, GError **error);
gboolean pto_isolated_element (PtoMachine *machine, PTO2Runtime *rt, const Tensor *tensor,
                               const guint64 *index, gboolean write, gpointer value);

/* --- machine-isolated.c, for the others --- */

/* Posts a request on a lane that no other thread uses; digest and body may be NULL. *far: where the
 * body lies in the arena until the answer, if it is too long for the lane; or 0. */
gboolean pto_isolated_post (IsolatedMachine *self, guint lane, enum pto_request request,
                            const guint8 *digest, const GByteArray *body, guint64 *far,
                            GError **error);
/* Under control: the same, and waits for the answer. what: for messages. cancellable: ends the
 * child as well. */
gboolean pto_isolated_ask (IsolatedMachine *self, guint lane, enum pto_request request,
                           const guint8 *digest, const GByteArray *body, const char *what,
                           GCancellable *cancellable, GError **error);
/* Of a run: its name, for messages. */
const char *pto_isolated_name_kernel (IsolatedMachine *self, guint32 kernel);
/* Appends ", submitted at x.c:12", or nothing. */
void pto_isolated_append_place (GString *text, IsolatedPlace at);
/* Under control, while nothing runs: what a request for its size and then for itself gives, in the
 * arena. 0: there is none, or with an error: it could not be had. */
guint64 pto_isolated_fetch (IsolatedMachine *self, enum pto_request request, const char *what,
                            guint64 *size, GError **error);
/* Asks the child for the run that is under way. plan, kernels: of a launch. */
gboolean pto_isolated_post_run (IsolatedMachine *self, const struct pto_plan *plan,
                                const guint32 *kernels, GError **error);

/* --- machine-isolated-number.c --- */

GHashTable *pto_isolated_new_numbers (void);
/* A number that a task is given, or the run (PTO2_TASK_NONE), before that begins. An address of
 * memory that is copied becomes that of the copy. at: where the task was submitted. FALSE with a
 * report: what a kernel writes there could not be found. */
gboolean pto_isolated_place_number (IsolatedMachine *self, guint64 *word, PTO2TaskId task,
                                    IsolatedPlace at, guint argument, guint32 kernel,
                                    struct pto_report *report);
/* Memory that a task is given as a tensor is copied from here on. FALSE with a report: a task
 * before it was given an address in it as a number, which is not that of the copy. */
gboolean pto_isolated_meet_numbers (IsolatedMachine *self, guint64 address, guint64 bytes,
                                    struct pto_report *report);
/* The same for the numbers that a graph has, before it is launched; they stay as they are. */
gboolean pto_isolated_watch_numbers (IsolatedMachine *self, const struct pto_plan *plan,
                                     const guint32 *kernels, struct pto_report *report);
/* After the run: FALSE with an error if a kernel has written to such an address. */
gboolean pto_isolated_check_numbers (IsolatedMachine *self, GError **error);

/* --- machine-isolated-graph.c --- */

/* As the machine's function launch. */
void pto_isolated_launch (PtoMachine *machine, PTO2Runtime *rt, const struct pto_plan *plan,
                          const guint32 *kernels);
/* Under control: drops the child's copies of graphs that are gone. */
void pto_isolated_forget_graphs (IsolatedMachine *self);
/* A run has ended well that was a capture: fills the plan. */
gboolean pto_isolated_take_captured (IsolatedMachine *self, struct pto_plan *plan, GError **error);

/* Waits for something of the run that is under way, once, and looks after the child: cancels, ends
 * what hangs. heard: as for pto_solo_wait(). FALSE: the request is answered, or the child has died
 * (died). */
gboolean pto_isolated_wait (IsolatedMachine *self, guint32 heard, guint64 spin_ns);

G_END_DECLS
