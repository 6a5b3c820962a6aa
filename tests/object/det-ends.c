/* det-ends.c: how do a bridge and the far end of a remote worker become processes of a det-world?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "det-ends.h"

#include "../../pto/worker/child-server.h"
#include "../../pto/base/error.h"
#include "../../pto/remote/parent/bridge-parts.h"
#include "../../pto/remote/parent/bridge.h"
#include "../../pto/remote/launch/remote-launch.h"
#include "../../pto/remote/worker/serve.h"
#include "../../pto/worker/worker.h"
#include "pto-remote.h"

#include "det-world.h"
#include "../../pto/process/arena.h"

#include <stdlib.h>

struct bridge
{
  PtoBridge *child;
  struct pto_writes *writes;
  PtoRemoteHealth *health;
};

struct far
{
  uint32_t (*serve) (void *data, const struct pto_call *call, struct pto_failure *failure);
  void *data;
  gboolean has_returned;
  /* What its process had when it was ended. */
  PtoRemoteStream *stream;
  PtoRemoteHealth *health;
  struct pto_mailbox *mailbox;
  PtoFarEnd *session;
};

static GPtrArray *workers; /* PtoWorker */
static guint64 arena;
static struct process *freeing;

void
ends_begin (guint n, const struct ends_config *config)
{
  static const char *const names[] = { "remote-ping", "remote-suspect", "remote-lease" };
  const guint values[] = { config->ping, config->suspect, config->lease };

  arena = config->arena;
  if (workers == NULL)
    workers = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GError) error = NULL;
      PtoWorker *worker;

      if (workers->len <= i)
        {
          g_ptr_array_add (workers, pto_worker_new_remote ("local:", NULL, &error));
          g_assert_no_error (error);
        }
      worker = g_ptr_array_index (workers, i);
      for (guint p = 0; p < G_N_ELEMENTS (names); p++)
        {
          char text[16];

          g_snprintf (text, sizeof text, "%u", values[p]);
          pto_worker_set_parameter (worker, names[p], text, &error);
          g_assert_no_error (error);
        }
    }
}

void
ends_end (void)
{
  g_clear_pointer (&workers, g_ptr_array_unref);
}

/* --- the bridge --- */

static GPtrArray *
list_nothing (gpointer data, guint worker)
{
  return g_ptr_array_new ();
}

struct bridge *
bridge_new (guint index, struct pto_writes *writes)
{
  struct bridge *bridge = g_new0 (struct bridge, 1);
  const PtoChildParent parent = { .list = list_nothing, .writes = &bridge->writes, .index = index };
  PtoWorker *worker = g_ptr_array_index (workers, index);
  char path[16];

  g_snprintf (path, sizeof path, "L4/0/L3/%u", index);
  bridge->writes = writes;
  bridge->child = pto_bridge_new (&worker->node, path, &parent, pto_worker_pack_parameters (worker),
                                  g_variant_new_array (G_VARIANT_TYPE ("a{ss}"), NULL, 0));
  return bridge;
}

void
bridge_get_server (struct bridge *bridge, struct pto_server *server)
{
  pto_bridge_get_server (bridge->child, server);
}

void
bridge_free (struct bridge *bridge)
{
  g_clear_pointer (&bridge->child->stream, pto_remote_stream_free);
  g_free (bridge->health);
  pto_bridge_free (bridge->child);
  g_free (bridge);
}

gboolean __wrap_pto_remote_spec_launch (const PtoRemoteSpec *spec, PtoRemoteStream **stream,
                                        GPid *process, GError **error);
gboolean
__wrap_pto_remote_spec_launch (const PtoRemoteSpec *spec, PtoRemoteStream **stream, GPid *process,
                               GError **error)
{
  int near_end;

  if (!test_launch (&near_end, process))
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_SYSTEM, "it can not be launched");
      return FALSE;
    }
  *stream = pto_remote_stream_new (near_end, near_end);
  return TRUE;
}

/* The parameter has no number as small. */
PtoDirectory *__real_pto_directory_new (guint64 limit);
PtoDirectory *__wrap_pto_directory_new (guint64 limit);
PtoDirectory *
__wrap_pto_directory_new (guint64 limit)
{
  return __real_pto_directory_new (arena / 2);
}

/* --- the far end --- */

struct far *
far_new (uint32_t (*serve) (void *data, const struct pto_call *call, struct pto_failure *failure),
         void *data)
{
  struct far *far = g_new0 (struct far, 1);

  far->serve = serve;
  far->data = data;
  return far;
}

void
far_main (void *data)
{
  struct far *far = data;
  g_autoptr (GError) error = NULL;

  pto_remote_serve (&error);
  far->has_returned = TRUE;
}

/* What the system would take back. */
void
far_free (struct far *far, struct process *process)
{
  PtoFarEnd *session = far->session;

  freeing = process;
  if (far->has_returned)
    goto out;
  if (session != NULL)
    {
      g_hash_table_unref (session->blocks);
      g_free (session->failure);
      g_byte_array_unref (session->contents);
      g_clear_error (&session->unheard);
      g_queue_clear_full (&session->calls, g_object_unref);
      g_clear_pointer (&session->child, pto_child_free);
      g_clear_object (&session->worker);
      if (session->has_arena)
        pto_arena_release ();
      g_free (session);
    }
  g_free (far->health);
  free (far->mailbox);
  if (far->stream != NULL)
    pto_remote_stream_free (far->stream);
out:
  freeing = NULL;
  g_free (far);
}

/* The far end that calls; NULL: it is none. */
static struct far *
get_far (void)
{
  struct process *process = process_current ();

  return process != NULL && process_is_far (process) ? process_data (process) : NULL;
}

PtoRemoteStream *__real_pto_remote_stream_new (int in, int out);
PtoRemoteStream *__wrap_pto_remote_stream_new (int in, int out);
PtoRemoteStream *
__wrap_pto_remote_stream_new (int in, int out)
{
  PtoRemoteStream *stream = __real_pto_remote_stream_new (in, out);

  if (get_far () != NULL)
    get_far ()->stream = stream;
  return stream;
}

struct pto_mailbox *__real_pto_call_mailbox_new (void);
struct pto_mailbox *__wrap_pto_call_mailbox_new (void);
struct pto_mailbox *
__wrap_pto_call_mailbox_new (void)
{
  struct pto_mailbox *mailbox = __real_pto_call_mailbox_new ();

  if (get_far () != NULL)
    get_far ()->mailbox = mailbox;
  return mailbox;
}

PtoRemoteHealth *__real_pto_remote_health_new (PtoRemoteStream *stream,
                                               const PtoRemoteHealthConfig *config, GError **error);
PtoRemoteHealth *__wrap_pto_remote_health_new (PtoRemoteStream *stream,
                                               const PtoRemoteHealthConfig *config, GError **error);
PtoRemoteHealth *
__wrap_pto_remote_health_new (PtoRemoteStream *stream, const PtoRemoteHealthConfig *config,
                              GError **error)
{
  PtoRemoteHealth *health = __real_pto_remote_health_new (stream, config, error);

  if (get_far () != NULL)
    get_far ()->health = health;
  else
    test_get_bridge ()->health = health;
  return health;
}

void __real_pto_remote_health_free (PtoRemoteHealth *health);
void __wrap_pto_remote_health_free (PtoRemoteHealth *health);
void
__wrap_pto_remote_health_free (PtoRemoteHealth *health)
{
  __real_pto_remote_health_free (health);
  if (get_far () != NULL)
    get_far ()->health = NULL;
  else
    test_get_bridge ()->health = NULL;
}

/* What is asked of the worker there, is asked of the test. */
void __real_pto_child_get_server (PtoChild *child, struct pto_server *server);
void __wrap_pto_child_get_server (PtoChild *child, struct pto_server *server);
void
__wrap_pto_child_get_server (PtoChild *child, struct pto_server *server)
{
  struct far *far = get_far ();

  g_assert_nonnull (far);
  far->session = (PtoFarEnd *) (gpointer) ((char *) server - G_STRUCT_OFFSET (PtoFarEnd, server));
  server->serve = far->serve;
  server->data = far->data;
}

/* Each has its own. */
uint64_t __wrap_pto_arena_alloc (uint64_t bytes);
uint64_t
__wrap_pto_arena_alloc (uint64_t bytes)
{
  return (uint64_t) (uintptr_t) process_alloc (process_current (), bytes, arena);
}

void __wrap_pto_arena_free (uint64_t address, uint64_t bytes);
void
__wrap_pto_arena_free (uint64_t address, uint64_t bytes)
{
  process_release (freeing != NULL ? freeing : process_current (), (void *) (uintptr_t) address,
                   bytes);
}
