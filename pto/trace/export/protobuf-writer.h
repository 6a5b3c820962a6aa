/* protobuf-writer.h: how are messages of Protocol Buffers written?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. The wire format: a field is a varint of its number << 3 | its type, and then a
 * varint, eight bytes, or a length and so many bytes; a message in a message is the latter.
 * https://protobuf.dev/programming-guides/encoding/
 */
#pragma once

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

enum
{
  PTO_PROTO_VARINT = 0,
  PTO_PROTO_FIXED64 = 1,
  PTO_PROTO_BYTES = 2
};

typedef struct
{
  guint8 *data;
  gsize size;
  gsize capacity;
} PtoProto;

static inline void
pto_proto_clear (PtoProto *proto)
{
  g_clear_pointer (&proto->data, g_free);
  proto->size = proto->capacity = 0;
}

/* Room for n bytes more, which are part of it from now on. */
static inline guint8 *
pto_proto_extend (PtoProto *proto, gsize n)
{
  guint8 *at;

  if (proto->capacity - proto->size < n)
    {
      proto->capacity = MAX (2 * proto->capacity, proto->size + n + 4096);
      proto->data = g_realloc (proto->data, proto->capacity);
    }
  at = proto->data + proto->size;
  proto->size += n;
  return at;
}

static inline guint
pto_proto_varint_size (guint64 value)
{
  guint n = 1;

  for (; value >= 0x80; value >>= 7)
    n++;
  return n;
}

static inline void
pto_proto_write_varint (guint8 *at, guint64 value)
{
  for (; value >= 0x80; value >>= 7)
    *at++ = (guint8) (value | 0x80);
  *at = (guint8) value;
}

static inline void
pto_proto_put_varint (PtoProto *proto, guint64 value)
{
  pto_proto_write_varint (pto_proto_extend (proto, pto_proto_varint_size (value)), value);
}

static inline void
pto_proto_put_tag (PtoProto *proto, guint field, guint type)
{
  pto_proto_put_varint (proto, (guint64) field << 3 | type);
}

/* Of an int64, or a bool, the same: a negative one has ten bytes. */
static inline void
pto_proto_put_uint (PtoProto *proto, guint field, guint64 value)
{
  pto_proto_put_tag (proto, field, PTO_PROTO_VARINT);
  pto_proto_put_varint (proto, value);
}

static inline void
pto_proto_put_fixed64 (PtoProto *proto, guint field, guint64 value)
{
  guint64 bytes = GUINT64_TO_LE (value);

  pto_proto_put_tag (proto, field, PTO_PROTO_FIXED64);
  memcpy (pto_proto_extend (proto, sizeof bytes), &bytes, sizeof bytes);
}

static inline void
pto_proto_put_string (PtoProto *proto, guint field, const char *string)
{
  gsize length = strlen (string);

  pto_proto_put_tag (proto, field, PTO_PROTO_BYTES);
  pto_proto_put_varint (proto, length);
  memcpy (pto_proto_extend (proto, length), string, length);
}

/* Opens a message in the message; gives what closes it. Until then its length has one byte. */
static inline gsize
pto_proto_begin (PtoProto *proto, guint field)
{
  pto_proto_put_tag (proto, field, PTO_PROTO_BYTES);
  pto_proto_extend (proto, 1);
  return proto->size;
}

static inline void
pto_proto_end (PtoProto *proto, gsize begin)
{
  gsize length = proto->size - begin;
  guint n = pto_proto_varint_size (length);

  if (n > 1)
    {
      pto_proto_extend (proto, n - 1);
      memmove (proto->data + begin + n - 1, proto->data + begin, length);
    }
  pto_proto_write_varint (proto->data + begin - 1, length);
}

G_END_DECLS
