/* test-mailbox.c: is every request answered once and whole, wherever the child is and whenever it
 * dies?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/status.h"
#include "../../pto/process/mailbox.h"
#include "../../pto/process/process.h"

#include <glib.h>

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_S 120

#ifdef __SANITIZE_THREAD__
#define UNDER_TSAN true
#else
#define UNDER_TSAN false
#endif

/* --- a parent with children --- */

#define CHILDREN 3

/* Shared, as a level has it: the hub in front, mailboxes behind it. */
struct family
{
  struct pto_hub hub;
  struct pto_mailbox mailbox[CHILDREN];
};

/* The parent's end of each. */
static struct pto_link links[CHILDREN];

static struct pto_link *
link_of (const struct pto_mailbox *mailbox)
{
  for (guint i = 0; i < CHILDREN; i++)
    if (links[i].mailbox == mailbox)
      return &links[i];
  g_assert_not_reached ();
}

static struct family *
family_new (void)
{
  struct family *family
      = mmap (NULL, sizeof *family, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  g_assert_true (family != MAP_FAILED);
  pto_bell_init (&family->hub.bell, -1);
  /* The test looks at the bell itself. */
  atomic_store (&family->hub.bell.asleep, PTO_BELL_LISTENS);
  for (guint i = 0; i < CHILDREN; i++)
    pto_mailbox_link (&links[i], &family->mailbox[i]);
  return family;
}

static void
family_free (struct family *family)
{
  munmap (family, sizeof *family);
}

/* Waits for any ring behind the last look. */
static void
listen (struct pto_exec *exec, struct family *family, uint32_t seen)
{
  if (exec == NULL)
    pto_bell_sleep (&family->hub.bell, seen, PTO_NEVER);
  else
    g_assert_cmpint (pto_park (exec, &family->hub.bell.word, seen, PTO_NEVER), ==, PTO_PARK_WOKEN);
}

/* As a pump does: ring, bit, mailbox. */
static uint32_t
wait_answer (struct pto_exec *exec, struct family *family, uint32_t i, struct pto_failure *failure)
{
  uint64_t bits = 0;

  for (;;)
    {
      uint32_t seen = pto_word_get (&family->hub.bell.word);

      bits |= pto_hub_take (&family->hub, 0);
      if ((bits >> i & 1) != 0)
        break;
      listen (exec, family, seen);
    }
  g_assert_cmpuint (bits, ==, UINT64_C (1) << i);
  g_assert_true (pto_link_is_idle (link_of (&family->mailbox[i])));
  g_assert_true (pto_link_is_taken (link_of (&family->mailbox[i])));
  return pto_link_answer (link_of (&family->mailbox[i]), failure);
}

static void
post (struct pto_exec *exec, struct pto_mailbox *mailbox, enum pto_request request, uint32_t bytes)
{
  g_assert_true (pto_link_is_idle (link_of (mailbox)));
  pto_link_post (exec, link_of (mailbox),
                 &(struct pto_letter){ .request = request, .bytes = bytes });
}

/* A task of one tensor and two scalars: what is asked, and a number. */
enum
{
  ADD,         /* the number to the tensor's first element */
  FAIL,        /* with a text that has the number in it */
  FAIL_MUTELY, /* without one */
  WAIT,        /* until it is cancelled; the number of beats before */
  DIE
};

static void
post_task (struct pto_exec *exec, struct pto_mailbox *mailbox, uint64_t what, uint64_t number,
           int32_t *element)
{
  struct pto_continuous_tensor *tensors;
  uint64_t *scalars;

  memset (mailbox->digest, (int) number, sizeof mailbox->digest);
  mailbox->config.block_dim = (int32_t) number;
  pto_blob_begin (mailbox->body, 1, 2, &tensors, &scalars);
  tensors[0] = (struct pto_continuous_tensor){
    .data = (uint64_t) (uintptr_t) element, .shapes = { 1 }, .ndims = 1, .dtype = 1
  };
  scalars[0] = what;
  scalars[1] = number;
  post (exec, mailbox, PTO_REQUEST_TASK, (uint32_t) pto_blob_size (1, 2));
}

/* --- the server --- */

struct server_state
{
  struct pto_exec *exec;
  uint64_t tasks, requests;
  /* Of the last REGISTER. */
  uint64_t bytes;
  uint64_t sum;
};

static uint32_t
serve_task (struct server_state *state, const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t number = call->args.scalars[1];

  g_assert_cmpint (call->args.tensor_count, ==, 1);
  g_assert_cmpint (call->args.scalar_count, ==, 2);
  g_assert_true (call->body == call->mailbox->body);
  g_assert_true (call->digest == call->mailbox->digest);
  g_assert_cmpint (call->config->block_dim, ==, (int32_t) number);
  for (guint i = 0; i < PTO_DIGEST_BYTES; i++)
    g_assert_cmpint (call->digest[i], ==, (uint8_t) number);
  state->tasks++;
  switch (call->args.scalars[0])
    {
    case ADD:
      *(int32_t *) (uintptr_t) call->args.tensors[0].data += (int32_t) number;
      return PTO_OK;
    case FAIL:
      pto_failure_set (failure, (int32_t) number, "some-domain", "number %u", (guint) number);
      return PTO_STATUS_EXPLICIT;
    case FAIL_MUTELY:
      return PTO_STATUS_EXPLICIT;
    case WAIT:
      while (number-- > 0)
        pto_call_beat (call);
      while (!pto_call_is_cancelled (call))
        if (state->exec != NULL)
          pto_charge (state->exec, 100);
      pto_failure_set (failure, 0, NULL, "cancelled");
      return PTO_STATUS_CANCELLED;
    default:
      _exit (42);
    }
}

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  struct server_state *state = data;

  state->requests++;
  if (call->request == PTO_REQUEST_TASK)
    return serve_task (state, call, failure);
  g_assert_cmpint (call->args.tensor_count, ==, 0);
  g_assert_null (call->config);
  if (call->request == PTO_REQUEST_REGISTER)
    {
      state->bytes = call->bytes;
      state->sum = 0;
      for (uint64_t i = 0; i < call->bytes; i++)
        state->sum += call->body[i];
    }
  return PTO_OK;
}

/* --- children that are threads --- */

struct child
{
  struct family *family;
  uint32_t index;
  bool spin;
  struct server_state state;
  bool (*is_orphan) (void);
  bool result;
  pthread_t thread;
};

static void
child_serve (void *data)
{
  struct child *child = data;
  struct pto_server server
      = { .serve = serve, .data = &child->state, .is_orphan = child->is_orphan };

  child->result = pto_mailbox_serve (child->state.exec, &child->family->mailbox[child->index],
                                     &child->family->hub, child->index, child->spin, &server);
}

static void *
child_thread (void *data)
{
  child_serve (data);
  return NULL;
}

static void
child_start (struct child *child, struct family *family, uint32_t index, bool spin)
{
  *child = (struct child){ .family = family, .index = index, .spin = spin };
  g_assert_cmpint (pthread_create (&child->thread, NULL, child_thread, child), ==, 0);
}

static void
child_close (struct child *child)
{
  struct pto_failure failure;

  post (NULL, &child->family->mailbox[child->index], PTO_REQUEST_CLOSE, 0);
  g_assert_cmpuint (wait_answer (NULL, child->family, child->index, &failure), ==, PTO_OK);
  pthread_join (child->thread, NULL);
  g_assert_true (child->result);
}

static void
test_layout (void)
{
  g_assert_cmpuint (sizeof (struct pto_mailbox), <=, PTO_MAILBOX_BYTES);
  /* A usual task touches two pages, and the head of a request two lines. */
  g_assert_cmpuint (offsetof (struct pto_mailbox, body) + pto_blob_size (16, 16), <=, 2 * 4096);
  g_assert_cmpuint (offsetof (struct pto_mailbox, reply), ==, 64);
  g_assert_cmpuint (offsetof (struct pto_mailbox, digest) / 64, ==,
                    (offsetof (struct pto_mailbox, digest) + PTO_DIGEST_BYTES - 1) / 64);
  /* 128 tensors and 128 scalars of one member. */
  g_assert_cmpuint (pto_blob_size (128, 128), <=, PTO_LINK_BODY);
}

static void
test_life (gconstpointer data)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[1];
  struct pto_failure failure;
  struct child child;
  int32_t element = 0;

  /* The first request waits for the child. */
  post (NULL, mailbox, PTO_REQUEST_START, 0);
  g_assert_false (pto_link_is_idle (link_of (mailbox)));
  g_assert_false (pto_link_is_taken (link_of (mailbox)));
  child_start (&child, family, 1, data != NULL);
  g_assert_cmpuint (wait_answer (NULL, family, 1, &failure), ==, PTO_OK);

  for (int32_t i = 1; i <= 1000; i++)
    {
      post_task (NULL, mailbox, ADD, (uint64_t) i, &element);
      g_assert_cmpuint (wait_answer (NULL, family, 1, &failure), ==, PTO_OK);
      g_assert_cmpint (element, ==, i * (i + 1) / 2);
    }
  for (uint32_t i = 0; i < 200; i++)
    mailbox->body[i] = (uint8_t) i;
  post (NULL, mailbox, PTO_REQUEST_REGISTER, 200);
  g_assert_cmpuint (wait_answer (NULL, family, 1, &failure), ==, PTO_OK);
  g_assert_cmpuint (child.state.bytes, ==, 200);
  g_assert_cmpuint (child.state.sum, ==, 19900);
  post (NULL, mailbox, PTO_REQUEST_UNREGISTER, 0);
  g_assert_cmpuint (wait_answer (NULL, family, 1, &failure), ==, PTO_OK);
  child_close (&child);
  g_assert_cmpuint (child.state.tasks, ==, 1000);
  g_assert_cmpuint (child.state.requests, ==, 1004);
  family_free (family);
}

/* Several at a time, answers in any order. */
static void
test_many_children (void)
{
  enum
  {
    TASKS = 2000
  };
  struct family *family = family_new ();
  int32_t elements[CHILDREN] = { 0 };
  guint posted[CHILDREN] = { 0 }, answered = 0;
  struct child children[CHILDREN];
  struct pto_failure failure;

  for (uint32_t i = 0; i < CHILDREN; i++)
    {
      child_start (&children[i], family, i, i == 0);
      post_task (NULL, &family->mailbox[i], ADD, 1, &elements[i]);
      posted[i]++;
    }
  while (answered < CHILDREN * TASKS)
    {
      uint32_t seen = pto_word_get (&family->hub.bell.word);
      uint64_t bits = pto_hub_take (&family->hub, 0);

      if (bits == 0)
        listen (NULL, family, seen);
      for (uint32_t i = 0; i < CHILDREN; i++)
        if ((bits >> i & 1) != 0)
          {
            g_assert_true (pto_link_is_idle (link_of (&family->mailbox[i])));
            g_assert_cmpuint (pto_link_answer (link_of (&family->mailbox[i]), &failure), ==,
                              PTO_OK);
            g_assert_cmpint (elements[i], ==, posted[i]);
            answered++;
            if (posted[i] < TASKS)
              {
                post_task (NULL, &family->mailbox[i], ADD, 1, &elements[i]);
                posted[i]++;
              }
          }
    }
  for (uint32_t i = 0; i < CHILDREN; i++)
    child_close (&children[i]);
  family_free (family);
}

static void
test_failures (void)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[0];
  struct pto_failure failure;
  struct child child;

  child_start (&child, family, 0, false);
  post_task (NULL, mailbox, FAIL, 17, NULL);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_EXPLICIT);
  g_assert_cmpint (failure.code, ==, 17);
  g_assert_cmpstr (failure.domain, ==, "some-domain");
  g_assert_cmpstr (failure.text, ==, "number 17");
  /* Of the failure before there is nothing left. */
  post_task (NULL, mailbox, FAIL_MUTELY, 18, NULL);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_EXPLICIT);
  g_assert_cmpint (failure.code, ==, 0);
  g_assert_cmpstr (failure.domain, ==, "");
  g_assert_cmpstr (failure.text, ==, "");
  child_close (&child);
  family_free (family);
}

/* What does not fit is refused, and not served. */
static void
test_refused (void)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[0];
  struct pto_continuous_tensor *tensors;
  struct pto_failure failure;
  struct child child;
  uint64_t *scalars;

  child_start (&child, family, 0, false);
  pto_blob_begin (mailbox->body, 2, 2, &tensors, &scalars);
  post (NULL, mailbox, PTO_REQUEST_TASK, (uint32_t) pto_blob_size (2, 2) - 1);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_INVALID_ARGS);
  g_assert_cmpstr (failure.text, ==, "the arguments do not fit in the 103 bytes that were sent");
  post (NULL, mailbox, PTO_REQUEST_REGISTER, PTO_LINK_BODY + 1);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_INVALID_ARGS);
  g_assert_cmpstr (failure.text, ==, "a body of 10241 bytes is longer than the mailbox's 10240");
  child_close (&child);
  g_assert_cmpuint (child.state.requests, ==, 1);
  family_free (family);
}

static void
test_far_body (void)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[0];
  uint8_t *body = g_malloc (100000);
  struct pto_failure failure;
  struct child child;

  memset (body, 3, 100000);
  child_start (&child, family, 0, false);
  pto_link_post (NULL, link_of (mailbox),
                 &(struct pto_letter){ .request = PTO_REQUEST_REGISTER,
                                       .bytes = 100000,
                                       .far_body = (uint64_t) (uintptr_t) body });
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  g_assert_cmpuint (child.state.bytes, ==, 100000);
  g_assert_cmpuint (child.state.sum, ==, 300000);
  child_close (&child);
  g_free (body);
  family_free (family);
}

static void
test_cancel_and_beats (void)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[0];
  struct pto_failure failure;
  struct child child;
  int32_t element = 0;

  child_start (&child, family, 0, false);
  /* Nothing is under way: no wish for later. */
  pto_link_cancel (link_of (mailbox));
  post_task (NULL, mailbox, WAIT, 5, NULL);
  while (atomic_load (&mailbox->beat) != 5)
    sched_yield ();
  g_assert_false (pto_link_is_idle (link_of (mailbox)));
  g_assert_true (pto_link_is_taken (link_of (mailbox)));
  pto_link_cancel (link_of (mailbox));
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_CANCELLED);
  g_assert_cmpstr (failure.text, ==, "cancelled");
  /* Of a request that is answered: the next one is not meant. */
  pto_link_cancel (link_of (mailbox));
  post_task (NULL, mailbox, WAIT, 2, NULL);
  while (atomic_load (&mailbox->beat) != 7)
    sched_yield ();
  g_assert_cmpuint (atomic_load (&mailbox->cancel), !=, pto_word_get (&mailbox->post));
  pto_link_cancel (link_of (mailbox));
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_CANCELLED);
  post_task (NULL, mailbox, ADD, 1, &element);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  child_close (&child);
  family_free (family);
}

/* 2^31 and 2^32 requests: an hour at full speed. */
static void
test_numbers_turn (gconstpointer data)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[0];
  uint32_t first = GPOINTER_TO_UINT (data);
  struct pto_failure failure;
  struct child child;
  int32_t element = 0;

  atomic_store (&link_of (mailbox)->number, first);
  pto_link_reset (link_of (mailbox));
  g_assert_true (pto_link_is_idle (link_of (mailbox)));
  child_start (&child, family, 0, false);
  for (int i = 1; i <= 6; i++)
    {
      post_task (NULL, mailbox, ADD, 1, &element);
      g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
      g_assert_cmpint (element, ==, i);
      /* One that was cancelled has the number that a later one will have, all 0 and all 1. */
      post_task (NULL, mailbox, WAIT, 0, NULL);
      pto_link_cancel (link_of (mailbox));
      g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_CANCELLED);
    }
  child_close (&child);
  g_assert_cmpuint (pto_word_get (&mailbox->post), ==, first + 13);
  family_free (family);

  /* Fresh memory, and the number that fresh memory has in every word, 2^32 requests later. */
  family = family_new ();
  mailbox = &family->mailbox[0];
  pto_word_init (&mailbox->post, UINT32_MAX, false);
  atomic_store (&link_of (mailbox)->number, UINT32_MAX);
  atomic_store (&mailbox->reply, 2 * UINT32_MAX);
  child_start (&child, family, 0, false);
  post_task (NULL, mailbox, WAIT, 3, NULL);
  g_assert_cmpuint (pto_word_get (&mailbox->post), ==, 0);
  while (atomic_load (&mailbox->beat) != 3)
    sched_yield ();
  g_assert_false (pto_link_is_idle (link_of (mailbox)));
  pto_link_cancel (link_of (mailbox));
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_CANCELLED);
  child_close (&child);
  family_free (family);
}

static bool
always (void)
{
  return true;
}

/* What is posted is served; then there is nobody to wait for. */
static void
test_orphan (gconstpointer data)
{
  struct family *family = family_new ();
  struct pto_failure failure;
  struct child child = { .family = family, .spin = data != NULL, .is_orphan = always };

  post (NULL, &family->mailbox[0], PTO_REQUEST_START, 0);
  child_serve (&child);
  g_assert_false (child.result);
  g_assert_cmpuint (child.state.requests, ==, 1);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  family_free (family);
}

/* --- what a child can do to the memory that it shares --- */

/* Nothing of the parent's is asked back from there. */
static void
test_written_over (void)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[0];
  struct pto_link *link = link_of (mailbox);
  struct pto_failure failure = { 0 };
  static const uint8_t bytes[] = { 0x00, 0x01, 0xa5, 0xff };

  for (uint32_t i = 1; i <= 5; i++)
    {
      post (NULL, mailbox, PTO_REQUEST_START, 0);
      atomic_store (&mailbox->reply, 2 * i);
    }
  for (guint i = 0; i < G_N_ELEMENTS (bytes); i++)
    {
      g_assert_true (pto_link_is_sound (link));
      post (NULL, mailbox, PTO_REQUEST_START, 0);
      g_assert_true (pto_link_is_sound (link));
      memset (mailbox, bytes[i], sizeof *mailbox);
      g_assert_false (pto_link_is_sound (link));
      g_assert_false (pto_link_is_idle (link));
      g_assert_false (pto_link_is_taken (link));
      pto_link_cancel (link);
      g_assert_cmpuint (pto_link_answer (link, &failure), <, 1000);
      g_assert_cmpuint (failure.bytes, <, PTO_FAILURE_TEXT);
      g_assert_cmpuint (strlen (failure.text), ==, failure.bytes);
      pto_link_reset (link);
      g_assert_true (pto_link_is_idle (link));
      g_assert_cmpuint (pto_word_get (&mailbox->post), ==, 6 + i);
      g_assert_cmpuint (pto_link_answer (link, &failure), ==, PTO_OK);
    }
  /* One of the two words. */
  post (NULL, mailbox, PTO_REQUEST_START, 0);
  atomic_store (&mailbox->post.value, 7);
  g_assert_false (pto_link_is_sound (link));
  atomic_store (&mailbox->post.value, 10);
  for (uint32_t reply = 18; reply <= 20; reply++)
    {
      atomic_store (&mailbox->reply, reply);
      g_assert_true (pto_link_is_sound (link));
      g_assert_cmpint (pto_link_is_taken (link), ==, reply > 18);
      g_assert_cmpint (pto_link_is_idle (link), ==, reply == 20);
    }
  atomic_store (&mailbox->reply, 17);
  g_assert_false (pto_link_is_sound (link));
  atomic_store (&mailbox->reply, 21);
  g_assert_false (pto_link_is_sound (link));
  family_free (family);
}

/* A child takes no number but the next, awake or asleep, and the next sets all right. */
static void
test_posted_by_nobody (gconstpointer data)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[0];
  struct pto_failure failure;
  struct child child;
  int32_t element = 0;

  child_start (&child, family, 0, data != NULL);
  post_task (NULL, mailbox, ADD, 1, &element);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  while (atomic_load (&mailbox->post.parked) == 0)
    sched_yield ();
  atomic_store (&mailbox->post.value, 0xa5a5a5a5u);
  /* So that the next 1 is behind its look. */
  atomic_store (&mailbox->post.parked, 0);
  syscall (SYS_futex, &mailbox->post.value, FUTEX_WAKE, 1, NULL, NULL, 0);
  while (atomic_load (&mailbox->post.parked) == 0)
    sched_yield ();
  g_assert_true (pto_link_is_idle (link_of (mailbox)));
  post_task (NULL, mailbox, ADD, 1, &element);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  g_assert_cmpint (element, ==, 2);
  child_close (&child);
  g_assert_cmpuint (child.state.tasks, ==, 2);
  family_free (family);
}

/* The neighbour is out of reach. */
static void
test_guard (void)
{
  uint8_t *memory = mmap (NULL, 2 * PTO_MAILBOX_BYTES, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct pto_mailbox *mailbox = (struct pto_mailbox *) memory;
  int status;
  pid_t pid;

  g_assert_true (memory != MAP_FAILED);
  pto_mailbox_guard (mailbox);
  memset (mailbox->body, 1, sizeof mailbox->body);
  pid = fork ();
  if (pid == 0)
    {
      signal (SIGSEGV, SIG_DFL);
      memset (mailbox->body, 2, sizeof mailbox->body + PTO_MAILBOX_BYTES);
      _exit (0);
    }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  if (sysconf (_SC_PAGESIZE) == PTO_MAILBOX_GUARD)
    {
      /* A sanitizer may report it instead. */
      g_assert_cmpint (status, !=, 0);
      g_assert_cmpint (mailbox->body[PTO_LINK_BODY - 1], ==, 2);
      g_assert_cmpint (memory[PTO_MAILBOX_BYTES], ==, 0);
    }
  munmap (memory, 2 * PTO_MAILBOX_BYTES);
}

/* --- children that are actors: any order of steps --- */

static void
run_det (uint64_t seed)
{
  struct pto_exec_config config = { .backend = PTO_BACKEND_DET, .domains = 1, .seed = seed };
  struct family *family = family_new ();
  struct child children[CHILDREN];
  int32_t elements[CHILDREN] = { 0 };
  guint posted[CHILDREN] = { 0 }, open = CHILDREN;
  char error[200] = "";
  struct pto_exec *exec = pto_exec_new (&config, error, sizeof error);

  g_assert_cmpstr (error, ==, "");
  pto_exec_enter (exec);
  for (uint32_t i = 0; i < CHILDREN; i++)
    {
      children[i] = (struct child){ .family = family, .index = i, .state.exec = exec };
      if (pto_rand (exec) % 2 == 0)
        {
          post_task (exec, &family->mailbox[i], ADD, 1, &elements[i]);
          posted[i]++;
        }
      g_assert_cmpint (
          pto_exec_spawn (exec, 0, "child", child_serve, &children[i], error, sizeof error), ==, 0);
    }
  for (uint32_t i = 0; i < CHILDREN; i++)
    if (posted[i] == 0)
      {
        post_task (exec, &family->mailbox[i], ADD, 1, &elements[i]);
        posted[i]++;
      }
  while (open > 0)
    {
      uint32_t seen = pto_word_get (&family->hub.bell.word);
      uint64_t bits = pto_hub_take (&family->hub, 0);

      if (bits == 0)
        listen (exec, family, seen);
      for (uint32_t i = 0; i < CHILDREN; i++)
        if ((bits >> i & 1) != 0)
          {
            struct pto_mailbox *mailbox = &family->mailbox[i];
            struct pto_failure failure;
            uint32_t status = pto_link_answer (link_of (mailbox), &failure);

            g_assert_cmpint (elements[i], ==, MIN (posted[i], 3));
            if (posted[i] == 4)
              {
                g_assert_cmpuint (status, ==, PTO_STATUS_CANCELLED);
                post (exec, mailbox, PTO_REQUEST_CLOSE, 0);
                posted[i]++;
              }
            else if (posted[i] == 5)
              open--;
            else if (++posted[i] == 4)
              {
                post_task (exec, mailbox, WAIT, 1, NULL);
                if (pto_rand (exec) % 2 == 0)
                  pto_charge (exec, pto_rand (exec) % 300);
                pto_link_cancel (link_of (mailbox));
              }
            else
              post_task (exec, mailbox, ADD, 1, &elements[i]);
          }
    }
  pto_exec_join (exec);
  g_assert_cmpuint (pto_exec_live (exec), ==, 0);
  for (uint32_t i = 0; i < CHILDREN; i++)
    {
      g_assert_true (children[i].result);
      g_assert_cmpuint (children[i].state.requests, ==, 5);
    }
  pto_exec_leave (exec);
  pto_exec_free (exec);
  family_free (family);
}

static void
test_det (void)
{
  for (uint64_t seed = 1; seed <= 1000; seed++)
    run_det (seed);
}

/* --- children that are processes --- */

static pid_t
fork_child (struct family *family, bool spin, bool traced)
{
  pid_t pid = fork ();

  if (pid == 0)
    {
      struct child child = { .family = family, .spin = spin };

      alarm (DEADLINE_S);
      if (traced && ptrace (PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit (77);
      if (traced)
        raise (SIGSTOP);
      child_serve (&child);
      _exit (child.result ? 0 : 1);
    }
  g_assert_cmpint (pid, >, 0);
  return pid;
}

static int
wait_status (pid_t pid)
{
  int status;

  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  return status;
}

static void
close_process (struct family *family, pid_t pid)
{
  struct pto_failure failure;

  post (NULL, &family->mailbox[0], PTO_REQUEST_CLOSE, 0);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  g_assert_cmpint (wait_status (pid), ==, 0);
}

static int32_t *
shared_element (void)
{
  int32_t *element
      = mmap (NULL, sizeof *element, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  g_assert_true (element != MAP_FAILED);
  return element;
}

static void
test_process (gconstpointer data)
{
  struct family *family = family_new ();
  struct pto_failure failure;
  int32_t *element = shared_element ();
  pid_t pid;

  post (NULL, &family->mailbox[0], PTO_REQUEST_START, 0);
  pid = fork_child (family, data != NULL, false);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  for (int i = 1; i <= 2000; i++)
    {
      post_task (NULL, &family->mailbox[0], ADD, 1, element);
      g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
      g_assert_cmpint (*element, ==, i);
    }
  post_task (NULL, &family->mailbox[0], FAIL, 9, element);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_STATUS_EXPLICIT);
  g_assert_cmpstr (failure.text, ==, "number 9");
  close_process (family, pid);
  munmap (element, sizeof *element);
  family_free (family);
}

/* Asleep in its mailbox, a child whose parent is killed is gone. */
static int
serve_until_orphan (void *data)
{
  struct family *family = data;
  struct server_state state = { 0 };
  struct pto_server server = { .serve = serve, .data = &state, .is_orphan = pto_process_is_orphan };

  return pto_mailbox_serve (NULL, &family->mailbox[0], &family->hub, 0, false, &server)
             ? 1
             : PTO_EXIT_ORPHAN;
}

static void
parent_to_be_killed (struct family *family)
{
  struct pto_process_config config = { .main = serve_until_orphan, .data = family };
  struct pto_process process;

  alarm (DEADLINE_S);
  pto_process_init (&process, "L3/0/sub0");
  if (pto_process_begin (&process, &config, NULL) != PTO_OK)
    _exit (1);
  while (true)
    pause ();
}

static void
test_process_of_a_killed_parent (void)
{
  struct family *family = family_new ();
  struct pto_failure failure;
  int status;
  pid_t root;

  prctl (PR_SET_CHILD_SUBREAPER, 1ul, 0ul, 0ul, 0ul);
  post (NULL, &family->mailbox[0], PTO_REQUEST_START, 0);
  root = fork ();
  if (root == 0)
    parent_to_be_killed (family);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  while (atomic_load (&family->mailbox[0].post.parked) == 0)
    sched_yield ();
  kill (root, SIGKILL);
  g_assert_cmpint (WTERMSIG (wait_status (root)), ==, SIGKILL);
  /* Ours now. */
  g_assert_cmpint (waitpid (-1, &status, 0), >, 0);
  /* By the kernel, or by itself. */
  if (WIFEXITED (status))
    g_assert_cmpint (WEXITSTATUS (status), ==, PTO_EXIT_ORPHAN);
  else
    g_assert_cmpint (WTERMSIG (status), ==, SIGKILL);
  prctl (PR_SET_CHILD_SUBREAPER, 0ul, 0ul, 0ul, 0ul);
  family_free (family);
}

/* What a keeper does for the dead. */
static void
bury (struct family *family)
{
  uint32_t rings = pto_word_get (&family->hub.bell.word);

  pto_hub_mark (NULL, &family->hub, 0);
  g_assert_cmpuint (pto_word_get (&family->hub.bell.word), ==, rings + 1);
  g_assert_cmpuint (pto_hub_take (&family->hub, 0), ==, 1);
  g_assert_cmpuint (pto_hub_take (&family->hub, 0), ==, 0);
}

/* The next life goes on with the numbers. */
static void
live_again (struct family *family, int32_t *element)
{
  uint32_t number = pto_word_get (&family->mailbox[0].post);
  struct pto_failure failure;
  int32_t before = *element;
  pid_t pid;

  pto_link_reset (link_of (&family->mailbox[0]));
  g_assert_true (pto_link_is_idle (link_of (&family->mailbox[0])));
  g_assert_cmpuint (pto_link_answer (link_of (&family->mailbox[0]), &failure), ==, PTO_OK);
  post (NULL, &family->mailbox[0], PTO_REQUEST_START, 0);
  g_assert_cmpuint (pto_word_get (&family->mailbox[0].post), ==, number + 1);
  pid = fork_child (family, false, false);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  post_task (NULL, &family->mailbox[0], ADD, 1, element);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  g_assert_cmpint (*element, ==, before + 1);
  close_process (family, pid);
}

static void
test_death_before_between_and_in_requests (void)
{
  struct family *family = family_new ();
  struct pto_mailbox *mailbox = &family->mailbox[0];
  int32_t *element = shared_element ();
  struct pto_failure failure;
  pid_t pid;

  /* In a request. */
  post_task (NULL, mailbox, DIE, 0, element);
  pid = fork_child (family, false, false);
  g_assert_cmpint (WEXITSTATUS (wait_status (pid)), ==, 42);
  g_assert_false (pto_link_is_idle (link_of (mailbox)));
  g_assert_true (pto_link_is_taken (link_of (mailbox)));
  bury (family);
  live_again (family, element);

  /* Asleep, or on its way there; then a request for the dead. */
  pid = fork_child (family, false, false);
  post (NULL, mailbox, PTO_REQUEST_UNREGISTER, 0);
  g_assert_cmpuint (wait_answer (NULL, family, 0, &failure), ==, PTO_OK);
  kill (pid, SIGKILL);
  g_assert_cmpint (WTERMSIG (wait_status (pid)), ==, SIGKILL);
  g_assert_true (pto_link_is_idle (link_of (mailbox)));
  bury (family);
  post_task (NULL, mailbox, ADD, 1, element);
  g_assert_false (pto_link_is_idle (link_of (mailbox)));
  g_assert_false (pto_link_is_taken (link_of (mailbox)));
  live_again (family, element);
  munmap (element, sizeof *element);
  family_free (family);
}

/* --- death at any instruction ---
 *
 * A child that is stopped behind an instruction has left in shared memory what it would have left
 * if it had died there. So one walk through a request, instruction by instruction, looks at every
 * death that there is. */

struct walk
{
  struct family *family;
  pid_t pid;
  uint32_t number;
  guint steps, phase; /* reply - (2 * number - 2): 0, 1, 2 */
  guint phase_at[3];  /* the first step of each */
  struct pto_failure answer;
};

/* false: no tracing here. */
static bool
walk_begin (struct walk *walk, struct family *family, uint64_t what, int32_t *element)
{
  int status;

  *walk = (struct walk){ .family = family };
  post_task (NULL, &family->mailbox[0], what, 33, element);
  walk->number = pto_word_get (&family->mailbox[0].post);
  walk->pid = fork_child (family, false, true);
  status = wait_status (walk->pid);
  if (WIFEXITED (status))
    {
      g_assert_cmpint (WEXITSTATUS (status), ==, 77);
      return false;
    }
  g_assert_true (WIFSTOPPED (status));
  return true;
}

static void
walk_look (struct walk *walk)
{
  struct pto_mailbox *mailbox = &walk->family->mailbox[0];
  guint phase = atomic_load (&mailbox->reply) - (2 * walk->number - 2);

  g_assert_cmpuint (phase, <=, 2);
  g_assert_cmpuint (phase, >=, walk->phase);
  g_assert_cmpuint (phase, <=, walk->phase + 1);
  if (phase != walk->phase)
    walk->phase_at[phase] = walk->steps;
  walk->phase = phase;
  g_assert_cmpint (pto_link_is_idle (link_of (mailbox)), ==, phase == 2);
  g_assert_cmpint (pto_link_is_taken (link_of (mailbox)), ==, phase >= 1);
  /* The bit never runs ahead. */
  if ((atomic_load (&walk->family->hub.answered[0]) & 1) != 0)
    g_assert_cmpuint (phase, ==, 2);
  if (phase == 2)
    {
      g_assert_cmpuint (pto_link_answer (link_of (mailbox), &walk->answer), ==,
                        PTO_STATUS_EXPLICIT);
      g_assert_cmpint (walk->answer.code, ==, 33);
      g_assert_cmpstr (walk->answer.domain, ==, "some-domain");
      g_assert_cmpstr (walk->answer.text, ==, "number 33");
    }
}

/* One instruction; false: the child sleeps or is about to: the walk is over. */
static bool
walk_step (struct walk *walk)
{
  int status;
  long signo = 0;

  if (walk->phase == 2 && pto_word_get (&walk->family->hub.bell.word) != 0
      && atomic_load (&walk->family->mailbox[0].post.parked) != 0)
    return false;
  do
    {
      g_assert_cmpint (ptrace (PTRACE_SINGLESTEP, walk->pid, NULL, signo), ==, 0);
      status = wait_status (walk->pid);
      g_assert_true (WIFSTOPPED (status));
      /* Signals of others (a SIGCONT from somebody who holds the machine still, say) go on. */
      signo = WSTOPSIG (status);
    }
  while (signo != SIGTRAP);
  walk->steps++;
  return true;
}

static void
walk_kill (struct walk *walk)
{
  kill (walk->pid, SIGKILL);
  g_assert_cmpint (WTERMSIG (wait_status (walk->pid)), ==, SIGKILL);
}

static bool
can_step (void)
{
  bool can = !UNDER_TSAN;

#if !defined(__x86_64__) && !defined(__aarch64__)
  can = false;
#endif
#ifdef __SANITIZE_ADDRESS__
  can = false;
#endif
  if (!can)
    g_test_skip ("no walk instruction by instruction here");
  return can;
}

static void
test_death_at_any_instruction (void)
{
  struct family *family = family_new ();
  int32_t *element = shared_element ();
  guint deaths[40], total, n = 0;
  struct walk walk;

  if (!can_step ())
    goto out;
  if (!walk_begin (&walk, family, FAIL, element))
    {
      g_test_skip ("tracing is not allowed here");
      goto out;
    }
  do
    walk_look (&walk);
  while (walk_step (&walk));
  total = walk.steps;
  g_assert_cmpuint (walk.phase, ==, 2);
  g_test_message ("%u instructions, taken behind %u, answered behind %u", total, walk.phase_at[1],
                  walk.phase_at[2]);
  walk_kill (&walk);
  /* It had marked it itself. */
  g_assert_cmpuint (pto_hub_take (&family->hub, 0), ==, 1);
  bury (family);
  live_again (family, element);

  /* And really: around each change, and here and there. The count is not quite the same each time
   * (addresses of the C library's tables differ), the changes are looked for. */
  for (guint phase = 1; phase <= 2; phase++)
    for (guint i = 0; i < 8; i++)
      deaths[n++] = walk.phase_at[phase] - 4 + i;
  while (n < G_N_ELEMENTS (deaths))
    {
      deaths[n] = total * (n - 15) / (G_N_ELEMENTS (deaths) - 15);
      n++;
    }
  for (guint i = 0; i < n; i++)
    {
      atomic_store (&family->hub.bell.word.value, 0);
      g_assert_true (walk_begin (&walk, family, FAIL, element));
      walk_look (&walk);
      while (walk.steps < deaths[i] && walk_step (&walk))
        walk_look (&walk);
      walk_kill (&walk);
      /* Nothing happens behind the death. */
      walk_look (&walk);
      bury (family);
      live_again (family, element);
    }
out:
  munmap (element, sizeof *element);
  family_free (family);
}

/* --- */

struct registered
{
  void (*plain) (void);
  void (*with_data) (gconstpointer data);
  gpointer data;
};

static void
run_test (gconstpointer data)
{
  const struct registered *test = data;

  alarm (DEADLINE_S);
  if (test->plain != NULL)
    test->plain ();
  else
    test->with_data (test->data);
  g_assert_cmpint (waitpid (-1, NULL, WNOHANG), ==, -1);
  g_assert_cmpint (errno, ==, ECHILD);
  alarm (0);
}

static void
add (const char *path, void (*plain) (void), void (*with_data) (gconstpointer), gpointer data)
{
  struct registered *test = g_new (struct registered, 1);

  *test = (struct registered){ plain, with_data, data };
  g_test_add_data_func_full (path, test, run_test, g_free);
}

int
main (int argc, char **argv)
{
  gpointer spin = GINT_TO_POINTER (1);

  g_test_init (&argc, &argv, NULL);
  add ("/pto/mailbox/layout", test_layout, NULL, NULL);
  add ("/pto/mailbox/life", NULL, test_life, NULL);
  add ("/pto/mailbox/life/spinning", NULL, test_life, spin);
  add ("/pto/mailbox/many-children", test_many_children, NULL, NULL);
  add ("/pto/mailbox/failures", test_failures, NULL, NULL);
  add ("/pto/mailbox/refused", test_refused, NULL, NULL);
  add ("/pto/mailbox/far-body", test_far_body, NULL, NULL);
  add ("/pto/mailbox/cancel-and-beats", test_cancel_and_beats, NULL, NULL);
  add ("/pto/mailbox/numbers-turn/31", NULL, test_numbers_turn, GUINT_TO_POINTER (0x7ffffffbu));
  add ("/pto/mailbox/numbers-turn/32", NULL, test_numbers_turn, GUINT_TO_POINTER (0xfffffffbu));
  add ("/pto/mailbox/orphan", NULL, test_orphan, NULL);
  add ("/pto/mailbox/orphan/spinning", NULL, test_orphan, spin);
  add ("/pto/mailbox/written-over", test_written_over, NULL, NULL);
  add ("/pto/mailbox/posted-by-nobody", NULL, test_posted_by_nobody, NULL);
  add ("/pto/mailbox/posted-by-nobody/spinning", NULL, test_posted_by_nobody, spin);
  add ("/pto/mailbox/guard", test_guard, NULL, NULL);
  add ("/pto/mailbox/det", test_det, NULL, NULL);
  add ("/pto/mailbox/process", NULL, test_process, NULL);
  add ("/pto/mailbox/process/spinning", NULL, test_process, spin);
  add ("/pto/mailbox/process/of-a-killed-parent", test_process_of_a_killed_parent, NULL, NULL);
  add ("/pto/mailbox/death/before-between-and-in-requests",
       test_death_before_between_and_in_requests, NULL, NULL);
  add ("/pto/mailbox/death/at-any-instruction", test_death_at_any_instruction, NULL, NULL);
  return g_test_run ();
}
