/* ucx.c: how does UCX move what is too large for a message of a remote worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One thread does all that is done with UCX: it begins what others want, makes UCX go on, and
 * sleeps at the worker's descriptor. It never looks again and again, and somebody goes on with what
 * this end still owes to the other when a part has come, and nobody here waits any more.
 *
 * A part is a message with a tag: the receiver names its memory first, and what is long is moved by
 * a rendezvous, from memory to memory where the fabric can do that. One-sided operations were
 * measured: over TCP, and between processes of one machine when deaths of peers are to be noticed,
 * UCX makes them of messages, with copies; and keys to all of the memory would be out of hand for
 * as long as the worker lives, where those of a rendezvous are for one part.
 *
 * Deaths of peers are always asked for, which is what err_mode=PEER does.
 */
#include "config.h"

#include "common/fabric-module.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

#define CLOSE_MS 200
/* How long the other end is waited for without sleep, where it does not say that it has made room:
 * so long it may take to be given a processor. */
#define AWAKE_US 2000

typedef enum
{
  IDLE,
  WANTED,
  UNDER_WAY,
  HAS_ENDED
} State;

typedef struct
{
  int end; /* eventfd: HAS_ENDED */
  /* Under the lock. */
  State state;
  gpointer memory;
  gsize size;
  guint64 tag;
  char *cause; /* of a failure */
  /* The thread's. */
  gpointer request; /* of UCX; NULL: none */
} Move;

typedef struct
{
  ucp_context_h context;
  ucp_worker_h worker;
  ucp_ep_h peer; /* NULL: not connected */
  int progress;  /* UCX's descriptor */
  int wake;      /* eventfd: something is wanted */
  GThread *thread;
  GMutex lock;
  /* Under the lock. */
  Move moves[2]; /* by their way */
  char *cause;   /* of the first failure; NULL: none */
  gboolean is_over;
} Fabric;

/* What UCX says of an error by itself, the last time; it would print it. */
static GMutex said_lock;
static char *said;

static ucs_log_func_rc_t
take_log (const char *file, unsigned line, const char *function, ucs_log_level_t level,
          const ucs_log_component_config_t *component, const char *format, va_list arguments)
{
  if (level <= UCS_LOG_LEVEL_ERROR)
    {
      g_mutex_lock (&said_lock);
      g_free (said);
      said = g_strdup_vprintf (format, arguments);
      g_mutex_unlock (&said_lock);
    }
  return UCS_LOG_FUNC_RC_STOP;
}

static char *
dup_cause (ucs_status_t status)
{
  char *cause;

  g_mutex_lock (&said_lock);
  cause = said != NULL ? g_strdup_printf ("%s (%s)", ucs_status_string (status), said)
                       : g_strdup (ucs_status_string (status));
  g_mutex_unlock (&said_lock);
  return cause;
}

/* --- the thread --- */

/* Under the lock. cause: taken; NULL: it has come to a good end. */
static void
end_move (Move *move, char *cause)
{
  move->cause = cause;
  move->state = HAS_ENDED;
  eventfd_write (move->end, 1);
}

static void
end_with_status (Fabric *fabric, Move *move, ucs_status_t status, gsize size)
{
  char *cause = NULL;

  if (status != UCS_OK)
    cause = dup_cause (status);
  else if (size != move->size)
    cause = g_strdup_printf ("a part has %zu bytes, and not %zu", size, move->size);
  g_mutex_lock (&fabric->lock);
  if (cause != NULL && fabric->cause == NULL)
    fabric->cause = g_strdup (cause);
  if (move->state == UNDER_WAY)
    end_move (move, cause);
  else
    g_free (cause);
  g_mutex_unlock (&fabric->lock);
}

static void
take_sent (void *request, ucs_status_t status, void *data)
{
  Fabric *fabric = data;
  Move *move = &fabric->moves[PTO_FABRIC_OUT];

  end_with_status (fabric, move, status, move->size);
}

static void
take_received (void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *data)
{
  Fabric *fabric = data;

  end_with_status (fabric, &fabric->moves[PTO_FABRIC_IN], status, info->length);
}

/* The peer is gone for UCX: what it would have sent does not come any more. */
static void
take_failure (void *data, ucp_ep_h peer, ucs_status_t status)
{
  Fabric *fabric = data;

  g_mutex_lock (&fabric->lock);
  if (fabric->cause == NULL)
    fabric->cause = dup_cause (status);
  for (guint i = 0; i < G_N_ELEMENTS (fabric->moves); i++)
    if (fabric->moves[i].state == WANTED || fabric->moves[i].state == UNDER_WAY)
      end_move (&fabric->moves[i], g_strdup (fabric->cause));
  g_mutex_unlock (&fabric->lock);
}

/* Those of before, and what is wanted now. */
static void
begin_moves (Fabric *fabric)
{
  for (guint i = 0; i < G_N_ELEMENTS (fabric->moves); i++)
    {
      Move *move = &fabric->moves[i];
      ucp_request_param_t param
          = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA
                              | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
              .user_data = fabric };
      gboolean is_wanted;

      g_mutex_lock (&fabric->lock);
      is_wanted = move->state == WANTED;
      if (is_wanted)
        move->state = UNDER_WAY;
      g_mutex_unlock (&fabric->lock);
      if (!is_wanted)
        continue;
      /* It was done with before the next one was wanted. */
      g_clear_pointer (&move->request, ucp_request_free);
      if (i == PTO_FABRIC_OUT)
        {
          param.cb.send = take_sent;
          move->request
              = ucp_tag_send_nbx (fabric->peer, move->memory, move->size, move->tag, &param);
        }
      else
        {
          param.cb.recv = take_received;
          move->request = ucp_tag_recv_nbx (fabric->worker, move->memory, move->size, move->tag,
                                            G_MAXUINT64, &param);
        }
      if (UCS_PTR_IS_ERR (move->request))
        end_with_status (fabric, move, UCS_PTR_STATUS (g_steal_pointer (&move->request)), 0);
    }
}

/* Hangs up; does not wait for an answer of the other end. */
static void
disconnect (Fabric *fabric)
{
  ucp_request_param_t param
      = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE };
  gint64 until = g_get_monotonic_time () + CLOSE_MS * G_TIME_SPAN_MILLISECOND;
  gpointer request = fabric->peer != NULL ? ucp_ep_close_nbx (fabric->peer, &param) : NULL;

  while (UCS_PTR_IS_PTR (request) && ucp_request_check_status (request) == UCS_INPROGRESS
         && g_get_monotonic_time () < until)
    if (ucp_worker_progress (fabric->worker) == 0)
      g_usleep (1000);
  if (UCS_PTR_IS_PTR (request))
    ucp_request_free (request);
}

static gpointer
run (gpointer data)
{
  Fabric *fabric = data;
  gboolean is_over = FALSE;
  gint64 since = 0; /* when it went on last, if it waits without sleep */

  while (!is_over)
    {
      struct pollfd waits[] = { { .fd = fabric->progress, .events = POLLIN },
                                { .fd = fabric->wake, .events = POLLIN } };
      ucs_status_t status;
      eventfd_t value;

      begin_moves (fabric);
      while (ucp_worker_progress (fabric->worker) != 0)
        since = 0;
      status = ucp_worker_arm (fabric->worker);
      /* Something has come; or the other end has to make room in shared memory, which nobody tells:
       * it may be waiting for this processor, or stand still. */
      if (status == UCS_OK)
        {
          since = 0;
          poll (waits, G_N_ELEMENTS (waits), -1);
        }
      else if (since == 0)
        since = g_get_monotonic_time ();
      else if (g_get_monotonic_time () - since < AWAKE_US)
        sched_yield ();
      else
        poll (&waits[1], 1, 1);
      /* Wherever it was seen: what stays would end each of the sleeps to come at once. */
      if (waits[1].revents != 0)
        eventfd_read (fabric->wake, &value);
      g_mutex_lock (&fabric->lock);
      is_over = fabric->is_over;
      g_mutex_unlock (&fabric->lock);
    }
  disconnect (fabric);
  return NULL;
}

/* --- the engine --- */

static void
close_fabric (gpointer data)
{
  Fabric *fabric = data;

  if (fabric->thread != NULL)
    {
      g_mutex_lock (&fabric->lock);
      fabric->is_over = TRUE;
      g_mutex_unlock (&fabric->lock);
      eventfd_write (fabric->wake, 1);
      g_thread_join (fabric->thread);
    }
  for (guint i = 0; i < G_N_ELEMENTS (fabric->moves); i++)
    {
      g_clear_pointer (&fabric->moves[i].request, ucp_request_free);
      g_free (fabric->moves[i].cause);
      close (fabric->moves[i].end);
    }
  if (fabric->worker != NULL)
    ucp_worker_destroy (fabric->worker);
  if (fabric->context != NULL)
    ucp_cleanup (fabric->context);
  close (fabric->wake);
  g_free (fabric->cause);
  g_mutex_clear (&fabric->lock);
  g_free (fabric);
}

static ucs_status_t
make_context (Fabric *fabric)
{
  ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
                          .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP };
  ucp_config_t *config;
  ucs_status_t status = ucp_config_read (NULL, NULL, &config);

  if (status != UCS_OK)
    return status;
  /* Shared memory is left out where deaths of peers are to be noticed, unless it is told to. */
  ucp_config_modify (config, "MM_ERROR_HANDLING", "y");
  status = ucp_init (&params, config, &fabric->context);
  ucp_config_release (config);
  return status;
}

static gpointer
open_fabric (GBytes **address, char **cause)
{
  Fabric *fabric = g_new0 (Fabric, 1);
  ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                 .thread_mode = UCS_THREAD_MODE_SERIALIZED };
  ucp_address_t *own;
  gsize size;
  ucs_status_t status;

  ucs_log_push_handler (take_log);
  g_mutex_init (&fabric->lock);
  fabric->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (guint i = 0; i < G_N_ELEMENTS (fabric->moves); i++)
    fabric->moves[i].end = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  status = make_context (fabric);
  if (status == UCS_OK)
    status = ucp_worker_create (fabric->context, &params, &fabric->worker);
  if (status == UCS_OK)
    status = ucp_worker_get_efd (fabric->worker, &fabric->progress);
  if (status == UCS_OK)
    status = ucp_worker_get_address (fabric->worker, &own, &size);
  if (status == UCS_OK)
    {
      *address = g_bytes_new (own, size);
      ucp_worker_release_address (fabric->worker, own);
      return fabric;
    }
  *cause = dup_cause (status);
  close_fabric (fabric);
  return NULL;
}

static gboolean
connect_fabric (gpointer data, gconstpointer address, gsize size, char **cause)
{
  g_autoptr (GError) error = NULL;
  Fabric *fabric = data;
  ucp_ep_params_t params
      = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
                        | UCP_EP_PARAM_FIELD_ERR_HANDLER,
          .address = address,
          .err_mode = UCP_ERR_HANDLING_MODE_PEER,
          .err_handler = { .cb = take_failure, .arg = fabric } };
  ucs_status_t status = ucp_ep_create (fabric->worker, &params, &fabric->peer);

  if (status != UCS_OK)
    {
      *cause = dup_cause (status);
      return FALSE;
    }
  fabric->thread = g_thread_try_new ("pto-ucx", run, fabric, &error);
  if (fabric->thread == NULL)
    *cause = g_strdup (error->message);
  return fabric->thread != NULL;
}

static PtoFabricResult
move (gpointer data, PtoFabricWay way, gpointer memory, gsize size, guint64 tag, int connection,
      char **cause)
{
  Fabric *fabric = data;
  Move *own = &fabric->moves[way];
  struct pollfd waits[]
      = { { .fd = own->end, .events = POLLIN }, { .fd = connection, .events = POLLRDHUP } };
  eventfd_t value;

  g_mutex_lock (&fabric->lock);
  if (fabric->cause != NULL)
    *cause = g_strdup (fabric->cause);
  else
    {
      own->memory = memory;
      own->size = size;
      own->tag = tag;
      own->state = WANTED;
    }
  g_mutex_unlock (&fabric->lock);
  if (*cause != NULL)
    return PTO_FABRIC_FAILED;
  eventfd_write (fabric->wake, 1);
  while (poll (waits, G_N_ELEMENTS (waits), -1) < 0 && errno == EINTR)
    ;
  if (waits[0].revents == 0)
    return PTO_FABRIC_HUNG_UP;
  g_mutex_lock (&fabric->lock);
  eventfd_read (own->end, &value);
  own->state = IDLE;
  *cause = g_steal_pointer (&own->cause);
  g_mutex_unlock (&fabric->lock);
  return *cause == NULL ? PTO_FABRIC_MOVED : PTO_FABRIC_FAILED;
}

/* "tcp/eth0", of a line "resource 1 : md 1 dev 1 flags -- tcp/eth0": UCX tells its resources only
 * so. */
static char *
list_resources (char *told)
{
  GString *list = g_string_new (NULL);
  g_auto (GStrv) lines = g_strsplit (told, "\n", -1);

  for (guint i = 0; lines[i] != NULL; i++)
    {
      const char *name = strstr (lines[i], " -- ");

      if (name != NULL && strstr (lines[i], " resource ") != NULL)
        g_string_append_printf (list, "%s%s", list->len > 0 ? ", " : "", name + strlen (" -- "));
    }
  return g_string_free (list, FALSE);
}

static char *
describe (char **cause)
{
  Fabric fabric = { 0 };
  g_autofree char *resources = NULL;
  char *told = NULL;
  gsize size;
  ucs_status_t status;
  FILE *stream;

  ucs_log_push_handler (take_log);
  status = make_context (&fabric);
  if (status != UCS_OK)
    {
      *cause = dup_cause (status);
      return NULL;
    }
  stream = open_memstream (&told, &size);
  if (stream != NULL)
    {
      ucp_context_print_info (fabric.context, stream);
      fclose (stream);
      resources = list_resources (told);
    }
  free (told);
  ucp_cleanup (fabric.context);
  return g_strdup_printf ("UCX %s: %s", ucp_get_version_string (),
                          resources != NULL ? resources : "");
}

extern const PtoFabricEngine pto_fabric_engine;
__attribute__ ((visibility ("default"))) const PtoFabricEngine pto_fabric_engine
    = { sizeof (PtoFabricEngine), open_fabric, close_fabric, connect_fabric, move, describe };
