/* liveness.h: is anything heard of the other end of a connection?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A thread that sleeps. Whoever asks (ping_ms) sends Progress when nothing was heard for so long,
 * which the other end answers at once, whatever it runs: so a long kernel is no silence, and while
 * messages come anyway nothing is asked. From the question on the silence counts. The other end
 * asks nothing: it counts from the last that it has heard.
 *
 * Time in which this process did not run, or the machine slept, is not counted: nobody listened.
 */
#pragma once

#include "remote-messages.h"

G_BEGIN_DECLS

typedef enum
{
  PTO_REMOTE_SIGN_SILENT,  /* for suspect_ms */
  PTO_REMOTE_SIGN_HEARD,   /* again */
  PTO_REMOTE_SIGN_EXPIRED, /* silent for lease_ms; it is the last sign */
  PTO_REMOTE_SIGN_ENDED    /* the connection has; the last sign. Only whoever asks is told */
} PtoRemoteSign;

typedef struct
{
  /* Where the others are short, it is asked more often: two times in suspect_ms, four times in
   * lease_ms. 0: nothing is asked. */
  guint ping_ms;
  guint suspect_ms; /* 0: never; as the next */
  guint lease_ms;
  /* On the thread. ms: of silence. */
  void (*tell) (gpointer data, PtoRemoteSign sign, guint64 ms);
  gpointer data;
} PtoRemoteHealthConfig;

typedef struct _PtoRemoteHealth PtoRemoteHealth;

/* From now on it is asked, and nothing is told. Of whoever asks the caller is the one who reads.
 * NULL: it has no thread. */
PtoRemoteHealth *pto_remote_health_new (PtoRemoteStream *stream,
                                        const PtoRemoteHealthConfig *config, GError **error);
/* Ends the thread, which may be in the middle of telling something. */
void pto_remote_health_free (PtoRemoteHealth *health);

/* Signs are told from here on; and not any more, once what is being told has been. Who made it. */
void pto_remote_health_begin_to_tell (PtoRemoteHealth *health);
void pto_remote_health_end_telling (PtoRemoteHealth *health);

/* Between the two the caller alone reads, and answers to what was asked here are among what comes.
 * Who made it. */
void pto_remote_health_begin_reading (PtoRemoteHealth *health);
void pto_remote_health_end_reading (PtoRemoteHealth *health);

G_END_DECLS
