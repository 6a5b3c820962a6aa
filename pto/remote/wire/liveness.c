/* liveness.c: is anything heard of the other end of a connection?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "liveness.h"

#include "base/error.h"
#include "base/task-thread.h"

#include <errno.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What has come before the connection ended is still taken: who reads has so long for it. */
#define LAST_WORDS_MS 100
/* And it is looked so often whether they have done so. */
#define LAST_STEP_MS 2
#define LOOK_MIN_MS 5

struct _PtoRemoteHealth
{
  PtoRemoteStream *stream;
  PtoRemoteHealthConfig config;
  GThread *thread;
  int event; /* something is different */
  GMutex reading;
  /* Atomic, one at a time. W: whoever made it; R: the thread. */
  int tells;
  int is_over;

  /* The thread's. */
  gint64 looked_at; /* us, monotonic */
  guint signs;      /* as many as there were then */
  gint64 quiet;     /* us without one */
  gint64 silent;    /* us without one although it was asked, or is to say something by itself */
  gboolean is_asked;
  gboolean listens; /* for the answer */
  gboolean suspect; /* was told */
};

/* The shorter one of two times of which 0 is no limit. */
static guint
shorter (guint a, guint b)
{
  return a == 0 || (b != 0 && b < a) ? b : a;
}

static guint
get_period (PtoRemoteHealth *self)
{
  const PtoRemoteHealthConfig *config = &self->config;
  guint limit = shorter (config->suspect_ms, config->lease_ms) / 4;

  if (config->ping_ms == 0 || (self->is_asked && limit != 0))
    return MAX (shorter (config->ping_ms, limit), LOOK_MIN_MS);
  return MAX (config->ping_ms, LOOK_MIN_MS);
}

static void
tell (PtoRemoteHealth *self, PtoRemoteSign sign)
{
  self->config.tell (self->config.data, sign, (guint64) self->silent / 1000);
}

static void
hear (PtoRemoteHealth *self, gboolean tells)
{
  if (self->suspect && tells)
    tell (self, PTO_REMOTE_SIGN_HEARD);
  self->suspect = self->is_asked = self->listens = FALSE;
  self->quiet = self->silent = 0;
}

static void
ask (PtoRemoteHealth *self)
{
  g_autoptr (GDBusMessage) message = pto_remote_make_call ("Progress", NULL, TRUE);

  /* When there is no room for it, or somebody else waits for room, the other end is waited for
   * already. An end of the connection is found where it is waited for. */
  self->is_asked = TRUE;
  self->listens = pto_remote_stream_try_send (self->stream, message, NULL);
}

/* FALSE: there is nothing more to look after. */
static gboolean
look (PtoRemoteHealth *self)
{
  const PtoRemoteHealthConfig *config = &self->config;
  gint64 now = g_get_monotonic_time ();
  gint64 passed = MIN (now - self->looked_at, (gint64) get_period (self) * 2000);
  guint signs = pto_remote_stream_get_signs (self->stream);
  gboolean tells = g_atomic_int_get (&self->tells);

  self->looked_at = now;
  if (signs != self->signs)
    {
      self->signs = signs;
      hear (self, tells);
      return TRUE;
    }
  self->quiet += passed;
  if (self->is_asked || config->ping_ms == 0)
    self->silent = tells ? self->silent + passed : 0;
  else if (self->quiet >= (gint64) config->ping_ms * 1000)
    ask (self);
  if (config->lease_ms != 0 && self->silent >= (gint64) config->lease_ms * 1000)
    {
      tell (self, PTO_REMOTE_SIGN_EXPIRED);
      return FALSE;
    }
  if (config->suspect_ms != 0 && !self->suspect
      && self->silent >= (gint64) config->suspect_ms * 1000)
    {
      self->suspect = TRUE;
      tell (self, PTO_REMOTE_SIGN_SILENT);
    }
  return TRUE;
}

/* Nobody else does, unless there is a request. */
static void
read_answer (PtoRemoteHealth *self)
{
  self->listens = FALSE;
  if (!g_mutex_trylock (&self->reading))
    return;
  for (;;)
    {
      g_autoptr (GDBusMessage) message = pto_remote_stream_receive (self->stream, 0, NULL);

      if (message == NULL)
        break;
    }
  g_mutex_unlock (&self->reading);
}

/* For so long, or until something is different. */
static void
wait_for_event (PtoRemoteHealth *self, int ms)
{
  struct pollfd event = { .fd = self->event, .events = POLLIN };
  eventfd_t value;

  if (poll (&event, 1, ms) > 0)
    eventfd_read (self->event, &value);
}

/* Is there no request, whose reply may have come before the end? */
static gboolean
is_idle (PtoRemoteHealth *self)
{
  if (!g_mutex_trylock (&self->reading))
    return FALSE;
  g_mutex_unlock (&self->reading);
  return TRUE;
}

/* While nothing is told it is for who reads to find. Where nobody reads it is told at once: who
 * speaks for nobody would be given tasks until then. FALSE: it was told. */
static gboolean
take_end (PtoRemoteHealth *self)
{
  for (guint ms = 0; ms < LAST_WORDS_MS && !g_atomic_int_get (&self->is_over)
                     && !(g_atomic_int_get (&self->tells) && is_idle (self));
       ms += LAST_STEP_MS)
    wait_for_event (self, LAST_STEP_MS);
  if (!g_atomic_int_get (&self->tells) || g_atomic_int_get (&self->is_over))
    return TRUE;
  tell (self, PTO_REMOTE_SIGN_ENDED);
  return FALSE;
}

static gpointer
look_after (gpointer data)
{
  PtoRemoteHealth *self = data;
  gboolean goes_on = TRUE;

  while (goes_on && !g_atomic_int_get (&self->is_over))
    {
      gint64 until = self->looked_at + (gint64) get_period (self) * 1000;
      gint64 ms = (until - g_get_monotonic_time () + 999) / 1000;
      struct pollfd watched[]
          = { { .fd = self->event, .events = POLLIN },
              { .fd = self->config.ping_ms != 0 ? pto_remote_stream_get_in (self->stream) : -1,
                .events = (short) (self->listens ? POLLIN | POLLRDHUP : POLLRDHUP) } };

      if (poll (watched, G_N_ELEMENTS (watched), (int) MAX (ms, 0)) > 0)
        {
          if (watched[0].revents != 0)
            wait_for_event (self, 0);
          else if ((watched[1].revents & ~POLLIN) != 0)
            {
              goes_on = take_end (self);
              continue;
            }
          else
            read_answer (self);
        }
      goes_on = look (self);
    }
  return NULL;
}

static void
health_free (PtoRemoteHealth *self)
{
  if (self->config.ping_ms != 0)
    g_mutex_unlock (&self->reading);
  g_mutex_clear (&self->reading);
  if (self->event >= 0)
    close (self->event);
  g_free (self);
}

PtoRemoteHealth *
pto_remote_health_new (PtoRemoteStream *stream, const PtoRemoteHealthConfig *config, GError **error)
{
  PtoRemoteHealth *self = g_new0 (PtoRemoteHealth, 1);

  self->stream = stream;
  self->config = *config;
  if (config->ping_ms != 0)
    self->config.ping_ms
        = shorter (config->ping_ms, shorter (config->suspect_ms / 2, config->lease_ms / 4));
  self->looked_at = g_get_monotonic_time ();
  self->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  g_mutex_init (&self->reading);
  if (config->ping_ms != 0)
    g_mutex_lock (&self->reading);
  if (self->event < 0)
    g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, "eventfd: %s", g_strerror (errno));
  else
    self->thread = pto_thread_try_new ("pto-health", look_after, self, error);
  if (self->thread == NULL)
    g_clear_pointer (&self, health_free);
  return self;
}

void
pto_remote_health_free (PtoRemoteHealth *self)
{
  g_atomic_int_set (&self->is_over, TRUE);
  eventfd_write (self->event, 1);
  g_thread_join (self->thread);
  health_free (self);
}

void
pto_remote_health_begin_to_tell (PtoRemoteHealth *self)
{
  g_atomic_int_set (&self->tells, TRUE);
}

void
pto_remote_health_end_telling (PtoRemoteHealth *self)
{
  g_atomic_int_set (&self->tells, FALSE);
  eventfd_write (self->event, 1);
}

void
pto_remote_health_begin_reading (PtoRemoteHealth *self)
{
  g_mutex_lock (&self->reading);
}

void
pto_remote_health_end_reading (PtoRemoteHealth *self)
{
  g_mutex_unlock (&self->reading);
}
