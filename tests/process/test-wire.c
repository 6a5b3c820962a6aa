/* test-wire.c: do calls and failures lie in shared memory as seed 001 lays them out, and is what
 * arrives sound?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/process/call-format.h"

#include <glib.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- blob --- */

/* Seed 001 section 3, byte by byte: two tensors and one scalar. */
static void
test_golden_bytes (void)
{
  static const uint8_t golden[] = {
    0x02, 0,    0,    0,    0x01, 0,    0,    0,    /* T, S */
    0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x00, 0x00, /* data */
    0x10, 0,    0,    0,    0x80, 0,    0,    0,    /* shapes */
    0,    0,    0,    0,    0,    0,    0,    0,    /* */
    0,    0,    0,    0,                            /* */
    0x02, 0,    0,    0,                            /* ndims */
    0x00, 0,    0,    0,    0,    0,    0,    0,    /* dtype, zero */
    0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88, /* data */
    0x01, 0,    0,    0,    0x02, 0,    0,    0,    /* shapes */
    0x03, 0,    0,    0,    0x04, 0,    0,    0,    /* */
    0x05, 0,    0,    0,                            /* */
    0x05, 0,    0,    0,                            /* ndims */
    0x03, 0,    0,    0,    0,    0,    0,    0,    /* dtype, zero */
    0x2a, 0,    0,    0,    0,    0,    0,    0x80, /* scalar */
  };
  alignas (8) uint8_t bytes[sizeof golden];
  struct pto_continuous_tensor *tensors;
  struct pto_args_view view;
  uint64_t *scalars;

  if (G_BYTE_ORDER != G_LITTLE_ENDIAN)
    {
      g_test_skip ("the bytes are those of a little-endian machine");
      return;
    }
  memset (bytes, 0xa5, sizeof bytes);
  g_assert_cmpuint (pto_blob_size (2, 1), ==, sizeof golden);
  pto_blob_begin (bytes, 2, 1, &tensors, &scalars);
  tensors[0] = (struct pto_continuous_tensor){
    .data = UINT64_C (0x0000504030201000), .shapes = { 16, 128 }, .ndims = 2, .dtype = 0
  };
  tensors[1] = (struct pto_continuous_tensor){
    .data = UINT64_C (0x8899aabbccddeeff), .shapes = { 1, 2, 3, 4, 5 }, .ndims = 5, .dtype = 3
  };
  scalars[0] = UINT64_C (0x800000000000002a);
  g_assert_cmpmem (bytes, sizeof bytes, golden, sizeof golden);

  /* And back, without a copy. */
  g_assert_true (pto_args_view_init (&view, bytes, sizeof bytes));
  g_assert_cmpint (view.tensor_count, ==, 2);
  g_assert_cmpint (view.scalar_count, ==, 1);
  g_assert_true ((const uint8_t *) view.tensors == bytes + 8);
  g_assert_true ((const uint8_t *) view.scalars == bytes + 8 + 2 * 40);
  g_assert_cmpuint (view.tensors[1].shapes[4], ==, 5);
  g_assert_cmpuint (view.scalars[0], ==, UINT64_C (0x800000000000002a));
}

/* Is a blob of so many bytes, with these numbers in its head, accepted? */
static bool
accepts (int32_t tensor_count, int32_t scalar_count, uint64_t bytes)
{
  alignas (8) uint8_t blob[1024] = { 0 };
  struct pto_blob head = { tensor_count, scalar_count };
  struct pto_args_view view;

  memcpy (blob, &head, sizeof head);
  return pto_args_view_init (&view, blob, bytes);
}

static void
test_view_refuses_what_does_not_fit (void)
{
  g_assert_true (accepts (3, 4, 8 + 3 * 40 + 4 * 8));
  g_assert_false (accepts (3, 4, 8 + 3 * 40 + 4 * 8 - 1));
  g_assert_false (accepts (3, 4, 7));
  g_assert_false (accepts (3, 4, 0));
  g_assert_true (accepts (0, 0, 8));
  g_assert_false (accepts (-1, 4, 1024));
  g_assert_false (accepts (4, -1, 1024));
  /* Whose size would not fit in 32 bits. */
  g_assert_false (accepts (INT32_MAX, INT32_MAX, 1024));
}

/* --- configuration --- */

static void
test_config_travels_without_the_rest_of_its_text (void)
{
  struct pto_call_config from, to;

  memset (&from, 0x5a, sizeof from);
  from.block_dim = 24;
  from.enable_scope_stats = 1;
  strcpy (from.output_prefix, "run-7");
  memset (&to, 0xa5, sizeof to);
  from.output_prefix[6] = '\0';
  g_assert_cmpuint (pto_wire_config_bytes (&from), ==, 28 + 7);
  g_assert_cmpuint (pto_wire_config_copy (&to, &from), ==, 28 + 7);
  g_assert_cmpint (to.block_dim, ==, 24);
  g_assert_cmpint (to.enable_scope_stats, ==, 1);
  g_assert_cmpstr (to.output_prefix, ==, "run-7");
  g_assert_cmpstr (pto_wire_config_filter (&to), ==, "");
  g_assert_cmpuint ((uint8_t) to.output_prefix[7], ==, 0xa5);
  /* And with another text behind it, as far as there is room. */
  memset (from.output_prefix + 6, 0, sizeof from.output_prefix - 6);
  pto_wire_config_set_filter (&from, "QK.2");
  g_assert_cmpuint (pto_wire_config_copy (&to, &from), ==, 28 + 6 + 5);
  g_assert_cmpstr (to.output_prefix, ==, "run-7");
  g_assert_cmpstr (pto_wire_config_filter (&to), ==, "QK.2");
  g_assert_cmpuint ((uint8_t) to.output_prefix[11], ==, 0xa5);
  memset (from.output_prefix, 0, sizeof from.output_prefix);
  memset (from.output_prefix, 'p', 1020);
  pto_wire_config_set_filter (&from, "longer");
  g_assert_cmpstr (pto_wire_config_filter (&from), ==, "lo");
  g_assert_cmpuint (pto_wire_config_bytes (&from), ==, 1052);
  memset (from.output_prefix, 'p', 1023);
  pto_wire_config_set_filter (&from, "longer");
  g_assert_cmpstr (pto_wire_config_filter (&from), ==, "");
  g_assert_cmpuint (strlen (from.output_prefix), ==, 1023);
  /* Without an end: cut, and then it has one. */
  memset (from.output_prefix, 'x', sizeof from.output_prefix);
  g_assert_cmpuint (pto_wire_config_copy (&to, &from), ==, 1052);
  g_assert_cmpuint (strlen (to.output_prefix), ==, 1023);
}

/* --- text --- */

static void
check_text (const char *from, size_t bytes, size_t size, const char *expected)
{
  char to[64];

  memset (to, '#', sizeof to);
  g_assert_cmpuint (pto_text_copy (to, size, from, bytes), ==, strlen (expected));
  g_assert_cmpstr (to, ==, expected);
  for (size_t i = size; i < sizeof to; i++)
    g_assert_cmpint (to[i], ==, '#');
}

static void
test_text_is_made_sound (void)
{
  check_text ("", 0, 8, "");
  check_text ("plain\ttext\n", 11, 32, "plain\ttext\n");
  check_text ("a\0b\x1b[1m\x7f", 8, 32, "a?b?[1m?");
  /* of 2, 3 and 4 bytes */
  check_text ("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, 32,
              "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  /* longer than needed, half of a pair, beyond the last, alone, C1 controls */
  check_text ("\xc0\xaf", 2, 32, "??");
  check_text ("\xe0\x80\xaf", 3, 32, "???");
  check_text ("\xf0\x80\x80\xaf", 4, 32, "????");
  check_text ("\xed\xa0\x80", 3, 32, "???");
  check_text ("\xf4\x90\x80\x80", 4, 32, "????");
  check_text ("\x80z\xff", 3, 32, "?z?");
  check_text ("\xc2\x85", 2, 32, "??");
  /* cut off in the source */
  check_text ("ab\xe2\x82", 4, 32, "ab??");
  /* cut at a character of the target */
  check_text ("ab\xe2\x82\xac", 5, 6, "ab\xe2\x82\xac");
  check_text ("ab\xe2\x82\xac", 5, 5, "ab");
  check_text ("abc", 3, 3, "ab");
  check_text ("abc", 3, 1, "");
}

/* Random bytes: always valid UTF-8, never beyond the end, and nothing valid is changed. */
static void
test_text_random (void)
{
  GRand *rand = g_rand_new_with_seed (7);

  for (int round = 0; round < 20000; round++)
    {
      char from[40], to[40];
      size_t bytes = (size_t) g_rand_int_range (rand, 0, sizeof from), length;
      size_t size = (size_t) g_rand_int_range (rand, 1, sizeof to);

      for (size_t i = 0; i < bytes; i++)
        /* mostly bytes that begin or go on a character */
        from[i] = (char) (g_rand_boolean (rand) ? 0x80 + g_rand_int_range (rand, 0, 128)
                                                : g_rand_int_range (rand, 0, 256));
      length = pto_text_copy (to, size, from, bytes);
      g_assert_cmpuint (length, <, size);
      g_assert_cmpint (to[length], ==, '\0');
      g_assert_true (g_utf8_validate (to, (gssize) length, NULL));
    }
  g_rand_free (rand);
}

/* --- failures --- */

static void
test_failure (void)
{
  struct pto_failure failure, copy;
  char *text = g_malloc (2 * PTO_FAILURE_TEXT);

  pto_failure_set (&failure, 5, NULL, "argument %d of \"%s\"", 1, "part");
  g_assert_cmpint (failure.code, ==, 5);
  g_assert_cmpstr (failure.domain, ==, "");
  g_assert_cmpstr (failure.text, ==, "argument 1 of \"part\"");
  g_assert_cmpuint (failure.bytes, ==, strlen (failure.text));

  /* Too long: cut, and at a character: 3 bytes each. */
  for (size_t i = 0; i + 3 < 2 * PTO_FAILURE_TEXT; i += 3)
    memcpy (text + i, "\xe2\x82\xac", 4);
  pto_failure_set (&failure, 6, "g-io-error-quark", "%s", text);
  g_assert_cmpstr (failure.domain, ==, "g-io-error-quark");
  g_assert_cmpuint (failure.bytes, ==, (PTO_FAILURE_TEXT - 1) / 3 * 3);
  g_assert_true (g_utf8_validate (failure.text, failure.bytes, NULL));
  /* What does not fit is one character, not what a cut through it would leave. */
  memcpy (text, "xx", 2);
  for (size_t i = 2; i + 3 < 2 * PTO_FAILURE_TEXT; i += 3)
    memcpy (text + i, "\xe2\x82\xac", 4);
  pto_failure_set (&failure, 6, "x", "%s", text);
  g_assert_null (strchr (failure.text, '?'));
  g_assert_cmpuint (failure.bytes, >, PTO_FAILURE_TEXT - 4);
  pto_failure_copy (&copy, &failure);
  g_assert_cmpstr (copy.text, ==, failure.text);
  g_assert_cmpuint (copy.bytes, ==, failure.bytes);
  g_assert_cmpstr (copy.domain, ==, "x");
  g_assert_cmpint (copy.code, ==, 6);
  g_free (text);
}

/* From a process that wrote wild: no end, wrong length. Behind it there is nothing to be read. */
static void
test_failure_of_a_wild_child (void)
{
  size_t size = (sizeof (struct pto_failure) + 4095) / 4096 * 4096;
  uint8_t *pages
      = mmap (NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct pto_failure *last = (struct pto_failure *) (pages + size - sizeof *last);
  struct pto_failure wild, copy;

  g_assert_cmpint (mprotect (pages + size, 4096, PROT_NONE), ==, 0);
  memset (last, 'w', sizeof *last);
  for (uint32_t bytes = PTO_FAILURE_TEXT - 1; bytes != 0; bytes = 2 * bytes + 1)
    {
      last->bytes = bytes;
      pto_failure_copy (&copy, last);
      g_assert_cmpuint (copy.bytes, ==, PTO_FAILURE_TEXT - 1);
      if (bytes == UINT32_MAX)
        break;
    }
  munmap (pages, size + 4096);
  memset (&wild, 'w', sizeof wild);
  wild.bytes = UINT32_MAX;
  pto_failure_copy (&copy, &wild);
  g_assert_cmpuint (copy.bytes, ==, PTO_FAILURE_TEXT - 1);
  g_assert_cmpuint (strlen (copy.text), ==, copy.bytes);
  g_assert_cmpuint (strlen (copy.domain), ==, sizeof copy.domain - 1);
  g_assert_cmpuint (copy.detail_bytes, ==, 0);
  wild.detail_bytes = PTO_FAILURE_DETAIL;
  pto_failure_copy (&copy, &wild);
  g_assert_cmpmem (copy.detail, copy.detail_bytes, wild.detail, sizeof wild.detail);
  pto_failure_set (&copy, 1, NULL, "none");
  g_assert_cmpuint (copy.detail_bytes, ==, 0);
  memset (&wild, 0xff, sizeof wild);
  wild.bytes = 3;
  pto_failure_copy (&copy, &wild);
  g_assert_cmpstr (copy.text, ==, "???");
  wild.bytes = 3;
  wild.text[1] = '\0';
  pto_failure_copy (&copy, &wild);
  g_assert_cmpstr (copy.text, ==, "?");
  g_assert_cmpuint (copy.bytes, ==, 1);
}

/* The length that a child says is not believed: behind the failure is nothing to be read. */
static void
test_failure_ends_with_its_memory (void)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE);
  gsize size = (sizeof (struct pto_failure) + page - 1) / page * page;
  guint8 *memory
      = mmap (NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const uint32_t lengths[]
      = { PTO_FAILURE_TEXT - 1, PTO_FAILURE_TEXT, PTO_FAILURE_TEXT + 1, 1 << 20, UINT32_MAX };
  struct pto_failure copy;

  g_assert_true (memory != MAP_FAILED);
  g_assert_cmpint (mprotect (memory + size, page, PROT_NONE), ==, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (lengths); i++)
    {
      struct pto_failure *wild
          = (struct pto_failure *) (void *) (memory + size - sizeof (struct pto_failure));

      memset (wild, 'w', sizeof *wild);
      wild->bytes = lengths[i];
      pto_failure_copy (&copy, wild);
      g_assert_cmpuint (copy.bytes, ==, PTO_FAILURE_TEXT - 1);
      g_assert_cmpuint (strspn (copy.text, "w"), ==, PTO_FAILURE_TEXT - 1);
    }
  munmap (memory, size + page);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/wire/golden-bytes", test_golden_bytes);
  g_test_add_func ("/pto/wire/view-refuses-what-does-not-fit", test_view_refuses_what_does_not_fit);
  g_test_add_func ("/pto/wire/config-travels-without-the-rest-of-its-text",
                   test_config_travels_without_the_rest_of_its_text);
  g_test_add_func ("/pto/wire/text-is-made-sound", test_text_is_made_sound);
  g_test_add_func ("/pto/wire/text-random", test_text_random);
  g_test_add_func ("/pto/wire/failure", test_failure);
  g_test_add_func ("/pto/wire/failure-of-a-wild-child", test_failure_of_a_wild_child);
  g_test_add_func ("/pto/wire/failure-ends-with-its-memory", test_failure_ends_with_its_memory);
  return g_test_run ();
}
