/* answer.h: when does a process begin to answer by itself?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All that makes, reads or prints an answer is done under PTO_LOCK_ANSWERING, which forks wait for:
 * a copy of the process finds no lock of GLib, GObject or json-glib held by it. The lock is let go
 * to wait, and only then: for those who ask, and for those below.
 */
#pragma once

#include "pto-answer.h"
#include "state.h"

G_BEGIN_DECLS

/* Before a machine is prepared, which may fork: the environment may say that this process, and
 * those below it, answer. */
void pto_answer_look_at_environment (void);
/* Whoever has launched this process says so. */
void pto_answer_want (void);
/* From here on, if this process, or the one that has forked it, is to. */
void pto_answer_start_if_wanted (void);
/* Are processes below to? Also of one that was just forked. */
gboolean pto_answer_is_wanted (void);

/* Where nobody says how long those below are waited for. */
#define PTO_ANSWER_WITHIN_MS 1000u

/* What the workers of this process and of those below it do; only: the one that has that machine.
 * Any thread, without the lock. */
char *pto_answer_tell (PtoMachine *only, PtoAnswerFormat format);
/* Under the lock. state: it is changed. */
char *pto_answer_print (JsonNode *state, PtoAnswerFormat format);

/* answer-server.c: one at a time begins or ends it; without the lock. When it has begun there
 * is somebody who answers, if only SIGQUIT; that is warned of. */
gboolean pto_answerer_begin (GError **error);
void pto_answerer_end (void);
/* In the copy that a fork has made, of which it is the only thread. Takes no lock. */
void pto_answerer_leave (void);

/* answer-client.c: asks processes, all at one time. Each entry is filled: the answer's object, or
 * why there is none. Any thread, without the lock. */
typedef struct
{
  int process;
  gboolean wants_family; /* to be told who listens of its family, if it does not */
  JsonNode *answer;      /* owned; NULL: */
  GError *error;         /* owned */
} PtoAsked;
void pto_answer_ask_many (PtoAsked *asked, guint n, guint within_ms, GCancellable *cancellable);

/* What processes below say goes to the rows of an answer that name them; who says nothing is said
 * not to. Takes the answer. All under the lock, which whoever waits for the descriptors lets go. */
typedef struct _PtoGathering PtoGathering;
PtoGathering *pto_gathering_new (JsonNode *state, guint within_ms);
/* Its descriptors are added behind those that are there. */
void pto_gathering_add_fds (PtoGathering *self, GArray *fds);
/* fds: its own. FALSE: it is over. */
gboolean pto_gathering_go_on (PtoGathering *self, const GPollFD *fds);
gint64 pto_gathering_get_deadline (const PtoGathering *self);
JsonNode *pto_gathering_finish (PtoGathering *self);
void pto_gathering_free (PtoGathering *self);
/* Until it is over. */
void pto_gathering_wait (PtoGathering *self);
/* In a copy: only closes its descriptors. */
void pto_gathering_leave (PtoGathering *self);

/* Where a process of that number listens: an abstract address, and its length. */
struct sockaddr_un;
guint pto_answer_make_address (int process, struct sockaddr_un *address);
/* Where it does if somebody else does there: in the directory for such things of its user, which
 * nobody else can write to. 0: there is none. */
guint pto_answer_make_own_address (int process, guint user, struct sockaddr_un *address);
/* "pto-ask 1 json 700\n"; "pto-answer 1 ok 1234\n" and so many bytes, or "pto-answer 1 no WHY\n".
 */
#define PTO_ANSWER_VERSION 1

G_END_DECLS
