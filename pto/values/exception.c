/* exception.c: what was an error in the language that it comes from?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An error of the domain PTO_EXCEPTION has its exception inside. A language that makes an error of
 * its own of each one that it gets, out of domain, code and message, loses what is inside: it frees
 * ours then, on the thread that was given it, and finds there what it was. In the other direction
 * it says first what it is about to fail with.
 */
#include "config.h"

#include "exception.h"

#include "base/digest.h"
#include "base/getter.h"

#include <string.h>

/* type, message, trace, members; contents, and their digest */
#define WIRE_TYPE "(sssavayay)"

/**
 * PtoException:
 *
 * An exception of a language, which a function of this or of another process has failed with: its
 * type, its message, where it was raised, and, of a group, its members.
 *
 * Thread safety: any thread; immutable. A fork copies the value.
 *
 * Since: 0.1
 */
struct _PtoException
{
  gatomicrefcount ref_count;
  char *type_name;
  char *message;
  char *trace;        /* or NULL */
  GPtrArray *members; /* PtoException */
  GBytes *contents;   /* or NULL */
};

G_DEFINE_BOXED_TYPE (PtoException, pto_exception, pto_exception_ref, pto_exception_unref)

/* Of this thread. */
static GPrivate thrown
    = G_PRIVATE_INIT ((GDestroyNotify) pto_exception_unref); /* what the next error will be of */
static GPrivate last
    = G_PRIVATE_INIT ((GDestroyNotify) pto_exception_unref); /* of the error that was freed last */

/* What an error has inside, where GLib puts it: right before. */
typedef struct
{
  PtoException *exception; /* or NULL */
} Inside;

static Inside *
get_inside (const GError *error)
{
  const gsize alignment = 2 * sizeof (gsize);

  return (Inside *) ((guint8 *) error - ((sizeof (Inside) + alignment - 1) & ~(alignment - 1)));
}

static void
error_init (GError *error)
{
  get_inside (error)->exception = g_private_get (&thrown);
  g_private_set (&thrown, NULL);
}

static void
error_copy (const GError *from, GError *to)
{
  PtoException *exception = get_inside (from)->exception;

  get_inside (to)->exception = exception != NULL ? pto_exception_ref (exception) : NULL;
}

static void
error_clear (GError *error)
{
  g_private_replace (&last, get_inside (error)->exception);
}

/**
 * pto_exception_quark:
 *
 * Gives the domain of errors that were exceptions.
 *
 * Thread safety: any thread.
 *
 * Returns: the quark behind `PTO_EXCEPTION`
 *
 * Since: 0.1
 */
GQuark
pto_exception_quark (void)
{
  static gsize quark; /* atomic */

  if (g_once_init_enter (&quark))
    g_once_init_leave (&quark,
                       g_error_domain_register_static ("pto-exception-quark", sizeof (Inside),
                                                       error_init, error_copy, error_clear));
  return (GQuark) quark;
}

/**
 * pto_exception_new:
 * @type_name: what the language calls its type, such as `ValueError`
 * @message: what it says
 * @trace: (nullable): where it was raised: lines of text
 * @members: (array length=n_members) (nullable): of a group
 * @n_members: number of members
 *
 * Makes an exception. What is not UTF-8 is made so.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an exception
 *
 * Since: 0.1
 */
PtoException *
pto_exception_new (const char *type_name, const char *message, const char *trace,
                   PtoException **members, gsize n_members)
{
  PtoException *exception;

  g_return_val_if_fail (type_name != NULL, NULL);
  g_return_val_if_fail (message != NULL, NULL);
  g_return_val_if_fail (members != NULL || n_members == 0, NULL);

  exception = g_new0 (PtoException, 1);
  g_atomic_ref_count_init (&exception->ref_count);
  exception->type_name = g_utf8_make_valid (type_name, -1);
  exception->message = g_utf8_make_valid (message, -1);
  exception->trace = trace != NULL ? g_utf8_make_valid (trace, -1) : NULL;
  exception->members = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_exception_unref);
  for (gsize i = 0; i < n_members; i++)
    g_ptr_array_add (exception->members, pto_exception_ref (members[i]));
  return exception;
}

/**
 * pto_exception_new_with_contents:
 * @type_name: what the language calls its type, such as `ValueError`
 * @message: what it says
 * @trace: (nullable): where it was raised: lines of text
 * @members: (array length=n_members) (nullable): of a group
 * @n_members: number of members
 * @contents: the exception, as its language can make it anew
 *
 * Makes an exception that has all of what it was, beside what every language can read of it.
 *
 * Contents that are more than a mailbox takes, about 2 KB, do not reach another process; the rest
 * does. Thread safety: any thread.
 *
 * Returns: (transfer full): an exception
 *
 * Since: 0.1
 */
PtoException *
pto_exception_new_with_contents (const char *type_name, const char *message, const char *trace,
                                 PtoException **members, gsize n_members, GBytes *contents)
{
  PtoException *exception;

  g_return_val_if_fail (contents != NULL, NULL);

  exception = pto_exception_new (type_name, message, trace, members, n_members);
  if (exception != NULL)
    exception->contents = g_bytes_ref (contents);
  return exception;
}

/**
 * pto_exception_ref:
 * @exception: an exception
 *
 * Takes a reference.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): @exception
 *
 * Since: 0.1
 */
PTO_DEFINE_REF (PtoException, pto_exception_ref, exception)

/**
 * pto_exception_unref:
 * @exception: (transfer full): an exception
 *
 * Releases a reference.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_exception_unref (PtoException *exception)
{
  g_return_if_fail (exception != NULL);

  if (!g_atomic_ref_count_dec (&exception->ref_count))
    return;
  g_ptr_array_unref (exception->members);
  g_clear_pointer (&exception->contents, g_bytes_unref);
  g_free (exception->type_name);
  g_free (exception->message);
  g_free (exception->trace);
  g_free (exception);
}

/**
 * pto_exception_get_type_name:
 * @exception: an exception
 *
 * Gives what its language calls its type.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a name
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (const char *, pto_exception_get_type_name, PtoException, exception,
                   exception->type_name)

/**
 * pto_exception_get_message:
 * @exception: an exception
 *
 * Gives what it says.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): text
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (const char *, pto_exception_get_message, PtoException, exception,
                   exception->message)

/**
 * pto_exception_get_trace:
 * @exception: an exception
 *
 * Gives where it was raised, as its language tells that.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): lines of text; %NULL: that is not known
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (const char *, pto_exception_get_trace, PtoException, exception, exception->trace)

/**
 * pto_exception_get_n_members:
 * @exception: an exception
 *
 * Gives how many exceptions it is a group of.
 *
 * Thread safety: any thread.
 *
 * Returns: 0 for one that is no group
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (guint, pto_exception_get_n_members, PtoException, exception,
                   exception->members->len)

/**
 * pto_exception_get_member:
 * @exception: a group
 * @index: which, less than [method@Pto.Exception.get_n_members]
 *
 * Gives one of the exceptions that it is a group of.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): an exception; %NULL: there are not so many
 *
 * Since: 0.1
 */
PtoException *
pto_exception_get_member (PtoException *exception, guint index)
{
  g_return_val_if_fail (exception != NULL, NULL);

  return index < exception->members->len ? g_ptr_array_index (exception->members, index) : NULL;
}

/**
 * pto_exception_get_contents:
 * @exception: an exception
 *
 * Gives the exception as its language can make it anew, which may run what it names: so only what
 * this process has made is here, and what a process that it has forked, or one below that, has told
 * its parent, byte by byte as that has made it. An exception of a remote worker has none.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): for the language that made them; %NULL: there are none
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (GBytes *, pto_exception_get_contents, PtoException, exception,
                   exception->contents)

/**
 * pto_exception_to_string:
 * @exception: an exception
 *
 * Says what it is, for people.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): such as `ValueError: no such row`
 *
 * Since: 0.1
 */
char *
pto_exception_to_string (PtoException *exception)
{
  g_return_val_if_fail (exception != NULL, NULL);

  return exception->message[0] != '\0'
             ? g_strdup_printf ("%s: %s", exception->type_name, exception->message)
             : g_strdup (exception->type_name);
}

/**
 * pto_exception_get_for_error:
 * @error: an error
 *
 * Gives the exception that an error was: of this process, or of the child that failed.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): an exception; %NULL: the error was none
 *
 * Since: 0.1
 */
PtoException *
pto_exception_get_for_error (const GError *error)
{
  g_return_val_if_fail (error != NULL, NULL);

  return error->domain == PTO_EXCEPTION ? get_inside (error)->exception : NULL;
}

/**
 * pto_exception_throw:
 * @exception: an exception
 *
 * Says what the next error of the domain %PTO_EXCEPTION that is made on this thread is of.
 *
 * For a callback in a language that can give domain, code and message of an error, but not what is
 * inside: before it fails with such an error. Thread safety: any thread, for itself.
 *
 * Since: 0.1
 */
void
pto_exception_throw (PtoException *exception)
{
  g_return_if_fail (exception != NULL);

  g_private_replace (&thrown, pto_exception_ref (exception));
}

/**
 * pto_exception_get_last:
 *
 * Gives the exception of the error of the domain %PTO_EXCEPTION that was freed last on this thread.
 *
 * For a language that makes an error of its own of each one that it gets, when a call has failed
 * with that domain. In C there is [func@Pto.Exception.get_for_error]. Thread safety: any thread,
 * for itself; good until the next such error is freed there.
 *
 * Returns: (transfer none) (nullable): an exception
 *
 * Since: 0.1
 */
PtoException *
pto_exception_get_last (void)
{
  return g_private_get (&last);
}

GError *
pto_exception_make_error (PtoException *exception, const char *message)
{
  g_private_replace (&thrown, exception != NULL ? pto_exception_ref (exception) : NULL);
  return g_error_new_literal (PTO_EXCEPTION, 0, message);
}

/* --- between processes --- */

/* At a character, of a text that is too long its end or its begin. */
static char *
dup_part (const char *text, gsize most, gboolean at_end)
{
  gsize length = text != NULL ? strlen (text) : 0;
  g_autofree char *part = NULL;

  if (length <= most)
    return g_strdup (text != NULL ? text : "");
  part = at_end ? g_strdup (text + length - most) : g_strndup (text, most);
  return g_utf8_make_valid (part, -1);
}

typedef struct
{
  gsize trace;
  gsize words;
  gboolean with_members;
  gboolean with_contents;
} Most;

static GVariant *
make_bytes (gconstpointer data, gsize size)
{
  return g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, data, size, 1);
}

/* A child, or a kernel of it, may write anything anywhere by mistake: what is there should be what
 * was packed. */
static void
make_contents (PtoException *exception, gboolean with_contents, GVariant **contents,
               GVariant **digest)
{
  guint8 bytes[PTO_DIGEST_SIZE];
  gconstpointer data;
  gsize size;

  if (exception->contents == NULL || !with_contents)
    {
      *contents = make_bytes (NULL, 0);
      *digest = make_bytes (NULL, 0);
      return;
    }
  data = g_bytes_get_data (exception->contents, &size);
  pto_digest_data (data, size, bytes);
  *contents = make_bytes (data, size);
  *digest = make_bytes (bytes, sizeof bytes);
}

static GVariant *
make_variant (PtoException *exception, const Most *most)
{
  g_autofree char *type_name = dup_part (exception->type_name, most->words, FALSE);
  g_autofree char *message = dup_part (exception->message, most->words, FALSE);
  g_autofree char *trace = dup_part (exception->trace, most->trace, TRUE);
  GVariantBuilder members;
  GVariant *contents;
  GVariant *digest;

  g_variant_builder_init (&members, G_VARIANT_TYPE ("av"));
  for (guint i = 0; most->with_members && i < exception->members->len; i++)
    g_variant_builder_add (&members, "v",
                           make_variant (g_ptr_array_index (exception->members, i), most));
  make_contents (exception, most->with_contents, &contents, &digest);
  return g_variant_new ("(sssav@ay@ay)", type_name, message, trace, &members, contents, digest);
}

gsize
pto_exception_pack (PtoException *exception, gboolean with_contents, guint8 *bytes, gsize size)
{
  /* Of what has contents the words can be cut: the contents have them, too. */
  const Most tries[]
      = { { G_MAXSIZE, G_MAXSIZE, TRUE, TRUE }, { size / 2, G_MAXSIZE, TRUE, TRUE },
          { size / 8, G_MAXSIZE, TRUE, TRUE },  { 0, G_MAXSIZE, TRUE, TRUE },
          { 0, size / 8, TRUE, TRUE },          { G_MAXSIZE, G_MAXSIZE, TRUE, FALSE },
          { size / 2, G_MAXSIZE, TRUE, FALSE }, { size / 8, G_MAXSIZE, TRUE, FALSE },
          { 0, G_MAXSIZE, TRUE, FALSE },        { size / 8, size / 2, TRUE, FALSE },
          { 0, size / 8, TRUE, FALSE },         { size / 4, size / 4, FALSE, FALSE } };

  for (guint i = 0; i < G_N_ELEMENTS (tries); i++)
    {
      g_autoptr (GVariant) variant = NULL;

      if (tries[i].with_contents && !with_contents)
        continue;
      variant = g_variant_ref_sink (make_variant (exception, &tries[i]));
      if (g_variant_get_size (variant) > size)
        continue;
      g_variant_store (variant, bytes);
      return g_variant_get_size (variant);
    }
  return 0;
}

/* NULL: there are none, or they are not what was packed. */
static GBytes *
read_contents (GVariant *contents, GVariant *digest)
{
  guint8 found[PTO_DIGEST_SIZE];
  gconstpointer data;
  gconstpointer told;
  gsize size;
  gsize n;

  data = g_variant_get_fixed_array (contents, &size, 1);
  told = g_variant_get_fixed_array (digest, &n, 1);
  if (n != sizeof found)
    return NULL;
  pto_digest_data (data, size, found);
  return memcmp (found, told, n) == 0 ? g_bytes_new (data, size) : NULL;
}

static PtoException *
read_variant (GVariant *variant)
{
  g_autoptr (GPtrArray) members
      = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_exception_unref);
  g_autoptr (GVariantIter) iter = NULL;
  const char *type_name;
  const char *message;
  const char *trace;
  g_autoptr (GVariant) contents = NULL;
  g_autoptr (GVariant) digest = NULL;
  PtoException *exception;
  GVariant *member;

  g_variant_get (variant, "(&s&s&sav@ay@ay)", &type_name, &message, &trace, &iter, &contents,
                 &digest);
  while (g_variant_iter_next (iter, "v", &member))
    {
      if (g_variant_is_of_type (member, G_VARIANT_TYPE (WIRE_TYPE)))
        g_ptr_array_add (members, read_variant (member));
      g_variant_unref (member);
    }
  exception = pto_exception_new (type_name, message, trace[0] != '\0' ? trace : NULL,
                                 (PtoException **) members->pdata, members->len);
  exception->contents = read_contents (contents, digest);
  return exception;
}

PtoException *
pto_exception_unpack (const guint8 *bytes, gsize size)
{
  /* A copy: the other process may write there still. */
  g_autoptr (GBytes) copy = g_bytes_new (bytes, size);
  g_autoptr (GVariant) variant
      = g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE (WIRE_TYPE), copy, FALSE));

  return g_variant_is_normal_form (variant) ? read_variant (variant) : NULL;
}
