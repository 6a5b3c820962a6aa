/* det-link.c: what is between processes of virtual time, and which descriptors name it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "det-world-private.h"

#include <errno.h>
#include <string.h>

/* Of a world: no number is given twice. */
#define FDS_MAX 8192

struct chunk
{
  uint64_t at; /* when it arrives */
  size_t size;
};

/* One direction. */
struct pipe
{
  GByteArray *bytes; /* on the way, or not read yet */
  GArray *chunks;
  GByteArray *before; /* what was written last, where there is damage */
  uint64_t last;      /* arrival of the newest */
  bool is_closed;     /* by who writes, or because it is cut: an end follows the bytes */
  bool is_reset;      /* that end is an error */
  bool is_deaf;       /* nobody reads any more */
  uint64_t end_at;
  uint64_t written;
};

struct link
{
  struct link_config config;
  struct pipe to[2]; /* to the near end, to the far end */
  uint32_t n_open[2];
  bool is_frozen;
  bool is_cut;
};

static struct fd fds[FDS_MAX];
static int n_fds;
static uint32_t damage;

/* --- links --- */

static void
pipe_init (struct pipe *pipe)
{
  pipe->bytes = g_byte_array_new ();
  pipe->chunks = g_array_new (FALSE, FALSE, sizeof (struct chunk));
  pipe->before = g_byte_array_new ();
}

static void
pipe_clear (struct pipe *pipe)
{
  g_byte_array_unref (pipe->bytes);
  g_array_unref (pipe->chunks);
  g_byte_array_unref (pipe->before);
}

struct link *
link_new (const struct link_config *config, struct process *near, struct process *far,
          int *near_end)
{
  struct link *link = g_new0 (struct link, 1);

  link->config = *config;
  pipe_init (&link->to[0]);
  pipe_init (&link->to[1]);
  *near_end = fd_add (FD_LINK, near, link, 0);
  far->is_far = true;
  far->stdio = fd_add (FD_LINK, far, link, 1);
  return link;
}

void
link_free (struct link *link)
{
  g_assert_true (link_is_over (link));
  pipe_clear (&link->to[0]);
  pipe_clear (&link->to[1]);
  g_free (link);
}

static uint64_t
arrival (struct link *link, struct pipe *pipe)
{
  uint64_t at = world_now () + link->config.delay
                + (link->config.jitter > 0 ? world_roll () % link->config.jitter : 0);

  pipe->last = MAX (pipe->last, at);
  return pipe->last;
}

/* Nothing follows. */
static void
end_pipe (struct link *link, int to, bool is_reset)
{
  struct pipe *pipe = &link->to[to];

  if (pipe->is_closed)
    return;
  pipe->is_closed = true;
  pipe->is_reset = is_reset;
  pipe->end_at = arrival (link, pipe);
  world_wake (pipe);
}

static void
drop_bytes (struct pipe *pipe)
{
  g_byte_array_set_size (pipe->bytes, 0);
  g_array_set_size (pipe->chunks, 0);
}

void
link_cut (struct link *link)
{
  if (link->is_cut)
    return;
  link->is_cut = true;
  for (int to = 0; to < 2; to++)
    {
      /* What is on the way may arrive, or not. */
      if (world_chance (2))
        drop_bytes (&link->to[to]);
      end_pipe (link, to, world_chance (2));
      world_wake (&link->to[to]);
    }
}

void
link_freeze (struct link *link, bool frozen)
{
  link->is_frozen = frozen;
  if (!frozen)
    {
      world_wake (&link->to[0]);
      world_wake (&link->to[1]);
    }
}

bool
link_has_hung_up (const struct link *link, uint64_t ns)
{
  return !link->is_frozen && link->to[0].is_closed && link->to[0].end_at + ns < world_now ();
}

bool
link_is_over (const struct link *link)
{
  return link->n_open[0] + link->n_open[1] == 0;
}

void
link_shut (struct link *link, int side)
{
  struct pipe *to_other = &link->to[!side];
  struct pipe *to_self = &link->to[side];
  /* As a socket: the end is an error to who has sent what nobody read. */
  bool unread = to_self->bytes->len > 0;

  end_pipe (link, !side, unread);
  to_self->is_deaf = true;
  drop_bytes (to_self);
  to_self->is_closed = true;
  to_self->end_at = 0;
  world_wake (to_other);
  world_wake (to_self);
}

static void
add_bytes (struct link *link, int to, const guint8 *bytes, size_t size)
{
  struct pipe *pipe = &link->to[to];

  g_byte_array_append (pipe->bytes, bytes, (guint) size);
  while (size > 0)
    {
      struct chunk chunk
          = { arrival (link, pipe), world_chance (4) ? 1 + world_random ((uint32_t) size) : size };

      g_array_append_val (pipe->chunks, chunk);
      size -= chunk.size;
    }
  world_wake (pipe);
}

void
world_damage (uint32_t n)
{
  damage = n;
}

/* In place of what was written. */
static void
add_damaged (struct link *link, int to, const guint8 *bytes, size_t size)
{
  struct pipe *pipe = &link->to[to];
  g_autoptr (GByteArray) other = g_byte_array_new ();
  /* Mostly where the message says what it is. */
  uint32_t reach = (uint32_t) (world_chance (2) ? MIN (size, 64) : size);
  uint32_t at = world_random (reach);

  g_byte_array_append (other, bytes, (guint) size);
  switch (world_random (6))
    {
    case 0:
      other->data[at] = (guint8) world_random (256);
      break;
    case 1:
      g_byte_array_remove_range (other, at, 1 + world_random ((uint32_t) size - at));
      break;
    case 2:
      g_byte_array_append (other, bytes + at, (guint) (size - at));
      break;
    case 3:
      g_byte_array_set_size (other, 0);
      break;
    case 4:
      if (pipe->before->len > 0)
        g_byte_array_append (other, pipe->before->data, pipe->before->len);
      break;
    default:
      other->data[at] ^= (guint8) (1u << world_random (8));
    }
  if (other->len > 0)
    add_bytes (link, to, other->data, other->len);
}

static void
write_bytes (struct link *link, int to, const guint8 *bytes, size_t size)
{
  struct pipe *pipe = &link->to[to];

  if (damage == 0 || size == 0 || !world_chance (damage))
    add_bytes (link, to, bytes, size);
  else
    add_damaged (link, to, bytes, size);
  if (damage == 0)
    return;
  g_byte_array_set_size (pipe->before, 0);
  g_byte_array_append (pipe->before, bytes, (guint) MIN (size, 4096));
}

size_t
link_room (const struct link *link, int to)
{
  return link->config.capacity - MIN (link->config.capacity, link->to[to].bytes->len);
}

/* Of what there is, how much has arrived; next: when more does, or the end. */
size_t
link_arrived (const struct link *link, int to, uint64_t *next)
{
  const struct pipe *pipe = &link->to[to];
  size_t n = 0;

  *next = PTO_NEVER;
  if (link->is_frozen)
    return 0;
  for (guint i = 0; i < pipe->chunks->len; i++)
    {
      const struct chunk *chunk = &g_array_index (pipe->chunks, struct chunk, i);

      if (chunk->at > world_now ())
        {
          *next = chunk->at;
          return n;
        }
      n += chunk->size;
    }
  if (pipe->is_closed && pipe->end_at > world_now ())
    *next = pipe->end_at;
  return n;
}

bool
link_has_ended (const struct link *link, int to)
{
  return link->to[to].is_closed
         && (link->to[to].is_deaf || (!link->is_frozen && link->to[to].end_at <= world_now ()));
}

gssize
link_read (struct link *link, int side, void *to, size_t size)
{
  struct pipe *pipe = &link->to[side];

  for (;;)
    {
      uint64_t next;
      size_t n = MIN (link_arrived (link, side, &next), size);

      if (n > 0)
        {
          size_t left;

          if (world_chance (8))
            n = 1 + world_random ((uint32_t) n);
          memcpy (to, pipe->bytes->data, n);
          g_byte_array_remove_range (pipe->bytes, 0, (guint) n);
          for (left = n; left > 0;)
            {
              struct chunk *chunk = &g_array_index (pipe->chunks, struct chunk, 0);
              size_t some = MIN (left, chunk->size);

              chunk->size -= some;
              left -= some;
              if (chunk->size == 0)
                g_array_remove_index (pipe->chunks, 0);
            }
          world_wake (pipe);
          return (gssize) n;
        }
      if (link_has_ended (link, side))
        {
          if (!pipe->is_reset)
            return 0;
          errno = ECONNRESET;
          return -1;
        }
      world_wait (pipe, NULL, NULL, next);
    }
}

gssize
link_write (struct link *link, int side, const struct iovec *parts, int n_parts)
{
  int to = !side;
  struct pipe *pipe = &link->to[to];
  gssize written = 0;

  for (;;)
    {
      /* Who is cut off learns it by the end of the other direction, or here. */
      if (pipe->is_closed || link->to[side].is_deaf)
        {
          errno = world_chance (2) ? EPIPE : ECONNRESET;
          return -1;
        }
      if (link_room (link, to) > 0)
        break;
      world_wait (pipe, NULL, NULL, PTO_NEVER);
    }
  for (int i = 0; i < n_parts; i++)
    {
      size_t n = MIN (parts[i].iov_len, link_room (link, to));

      if (n > 0 && world_chance (16))
        n = 1 + world_random ((uint32_t) n);
      write_bytes (link, to, parts[i].iov_base, n);
      written += (gssize) n;
      if (n < parts[i].iov_len)
        break;
    }
  if (link->config.cut_after != UINT64_MAX)
    {
      if (link->config.cut_after <= (uint64_t) written)
        link_cut (link);
      else
        link->config.cut_after -= (uint64_t) written;
    }
  return written;
}

bool
link_is_closed (const struct link *link, int to)
{
  return link->to[to].is_closed;
}

const void *
link_what (const struct link *link, int to)
{
  return &link->to[to];
}

/* --- descriptors --- */

void
fd_begin (void)
{
  memset (fds, 0, (size_t) n_fds * sizeof fds[0]);
  n_fds = 0;
  damage = 0;
}

void
fd_end (void)
{
  for (int i = 0; i < n_fds; i++)
    g_assert_cmpint (fds[i].kind, ==, FD_FREE);
}

bool
fd_is_open (int number)
{
  return fds[number - FIRST_FD].kind != FD_FREE;
}

int
fd_add (enum fd_kind kind, struct process *process, struct link *link, int side)
{
  g_assert_cmpint (n_fds, <, FDS_MAX);
  fds[n_fds] = (struct fd){ .kind = kind, .process = process, .link = link, .side = side };
  if (link != NULL)
    link->n_open[side]++;
  return FIRST_FD + n_fds++;
}

struct fd *
fd_get (int fd)
{
  struct fd *found;

  if (fd < FIRST_FD)
    return NULL;
  g_assert_cmpint (fd, <, FIRST_FD + n_fds);
  found = &fds[fd - FIRST_FD];
  g_assert_cmpint (found->kind, !=, FD_FREE);
  return found;
}

void
fd_close (int number)
{
  struct fd *fd = fd_get (number);
  struct link *link = fd->link;

  if (link != NULL && --link->n_open[fd->side] == 0)
    link_shut (link, fd->side);
  world_wake (fd);
  memset (fd, 0, sizeof *fd);
}

void
fd_close_all (struct process *process)
{
  for (int i = 0; i < n_fds; i++)
    if (fds[i].kind != FD_FREE && fds[i].process == process)
      fd_close (FIRST_FD + i);
}
