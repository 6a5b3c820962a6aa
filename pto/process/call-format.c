/* call-format.c: how is text made fit to travel between processes, and to be believed on arrival?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "call-format.h"

#include <stdio.h>
#include <string.h>

/* In enable_scope_stats. */
#define CHECKS_ACCESS 0x100

/* Bytes of the UTF-8 character at text, 0 when there is none: malformed, cut off, or not a
 * character that a message should hold. */
static size_t
character (const unsigned char *text, size_t bytes)
{
  uint32_t code;
  size_t n;

  if (text[0] < 0x80)
    return text[0] == '\n' || text[0] == '\t' || (text[0] >= 0x20 && text[0] != 0x7f);
  if ((text[0] & 0xe0) == 0xc0)
    {
      n = 2;
      code = text[0] & 0x1f;
    }
  else if ((text[0] & 0xf0) == 0xe0)
    {
      n = 3;
      code = text[0] & 0x0f;
    }
  else if ((text[0] & 0xf8) == 0xf0)
    {
      n = 4;
      code = text[0] & 0x07;
    }
  else
    return 0;
  if (n > bytes)
    return 0;
  for (size_t i = 1; i < n; i++)
    {
      if ((text[i] & 0xc0) != 0x80)
        return 0;
      code = code << 6 | (text[i] & 0x3f);
    }
  /* Longer than needed, the second set of control characters, half of a pair, beyond the last. */
  if (code < (n == 2   ? 0xa0u
              : n == 3 ? 0x800u
                       : 0x10000u)
      || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff)
    return 0;
  return n;
}

uint32_t
pto_text_copy (char *to, size_t size, const char *from, size_t bytes)
{
  size_t length = 0;

  for (size_t i = 0; i < bytes;)
    {
      size_t n = character ((const unsigned char *) from + i, bytes - i);
      size_t room = n > 0 ? n : 1;

      if (length + room >= size)
        break;
      if (n > 0)
        memcpy (to + length, from + i, n);
      else
        to[length] = '?';
      length += room;
      i += room;
    }
  to[length] = '\0';
  return (uint32_t) length;
}

uint32_t
pto_wire_config_bytes (const struct pto_call_config *config)
{
  const size_t room = sizeof config->output_prefix;
  size_t length = strnlen (config->output_prefix, room - 1) + 1;

  if (length < room)
    length += strnlen (config->output_prefix + length, room - 1 - length) + 1;
  return (uint32_t) (offsetof (struct pto_call_config, output_prefix) + length);
}

int32_t
pto_wire_config_scope_stats (const struct pto_call_config *config)
{
  return config->enable_scope_stats & ~CHECKS_ACCESS;
}

bool
pto_wire_config_check (const struct pto_call_config *config)
{
  return (config->enable_scope_stats & CHECKS_ACCESS) != 0;
}

void
pto_wire_config_set_check (struct pto_call_config *config, bool checks)
{
  config->enable_scope_stats = pto_wire_config_scope_stats (config) | (checks ? CHECKS_ACCESS : 0);
}

const char *
pto_wire_config_filter (const struct pto_call_config *config)
{
  const size_t room = sizeof config->output_prefix;
  size_t length = strnlen (config->output_prefix, room - 1) + 1;

  return length < room ? config->output_prefix + length : "";
}

void
pto_wire_config_set_filter (struct pto_call_config *config, const char *filter)
{
  const size_t room = sizeof config->output_prefix;
  size_t at = strnlen (config->output_prefix, room - 1) + 1;
  size_t length = at < room ? strnlen (filter, room - 1 - at) : 0;

  memcpy (config->output_prefix + (at < room ? at : 0), filter, length);
}

uint32_t
pto_wire_config_copy (struct pto_call_config *to, const struct pto_call_config *from)
{
  uint32_t bytes = pto_wire_config_bytes (from);

  memcpy (to, from, bytes - 1);
  ((char *) to)[bytes - 1] = '\0';
  return bytes;
}

void
pto_failure_set (struct pto_failure *failure, int32_t code, const char *domain, const char *format,
                 ...)
{
  /* One more than fits, so that a character that is cut shows itself. */
  char text[PTO_FAILURE_TEXT + 4];
  va_list args;
  int bytes;

  va_start (args, format);
  bytes = vsnprintf (text, sizeof text, format, args);
  va_end (args);
  if (bytes < 0)
    bytes = 0;
  if ((size_t) bytes >= sizeof text)
    bytes = sizeof text - 1;
  failure->code = code;
  failure->detail_bytes = 0;
  if (domain == NULL)
    domain = "";
  pto_text_copy (failure->domain, sizeof failure->domain, domain, strlen (domain));
  failure->bytes = pto_text_copy (failure->text, sizeof failure->text, text, (size_t) bytes);
}

void
pto_failure_copy_detail (struct pto_failure *to, const struct pto_failure *from)
{
  uint32_t bytes = from->detail_bytes;

  to->detail_bytes = bytes <= sizeof to->detail ? bytes : 0;
  memcpy (to->detail, from->detail, to->detail_bytes);
}

void
pto_failure_copy (struct pto_failure *to, const struct pto_failure *from)
{
  uint32_t bytes = from->bytes;

  if (bytes >= sizeof from->text)
    bytes = sizeof from->text - 1;
  to->code = from->code;
  pto_text_copy (to->domain, sizeof to->domain, from->domain,
                 strnlen (from->domain, sizeof from->domain));
  to->bytes = pto_text_copy (to->text, sizeof to->text, from->text, strnlen (from->text, bytes));
  pto_failure_copy_detail (to, from);
}
