/* pto-exception.c: what was an error in the language that it comes from?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An error of the domain PTO_EXCEPTION has its exception inside. A language that makes an error of
 * its own of each one that it gets, out of domain, code and message, loses what is inside: it frees
 * ours then, on the thread that was given it, and finds there what it was. In the other direction
 * it says first what it is about to fail with.
 */
#include "config.h"

#include "pto-exception-private.h"

#include <string.h>

#define WIRE_TYPE "(sssav)"

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
};

G_DEFINE_BOXED_TYPE (PtoException, pto_exception, pto_exception_ref, pto_exception_unref)

static void
unref (gpointer exception)
{
  if (exception != NULL)
    pto_exception_unref (exception);
}

/* Of this thread. */
static GPrivate thrown = G_PRIVATE_INIT (unref); /* what the next error will be of */
static GPrivate last = G_PRIVATE_INIT (unref);   /* of the error that was freed last */

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
  exception->members = g_ptr_array_new_with_free_func (unref);
  for (gsize i = 0; i < n_members; i++)
    g_ptr_array_add (exception->members, pto_exception_ref (members[i]));
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
PtoException *
pto_exception_ref (PtoException *exception)
{
  g_return_val_if_fail (exception != NULL, NULL);

  g_atomic_ref_count_inc (&exception->ref_count);
  return exception;
}

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
const char *
pto_exception_get_type_name (PtoException *exception)
{
  g_return_val_if_fail (exception != NULL, NULL);

  return exception->type_name;
}

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
const char *
pto_exception_get_message (PtoException *exception)
{
  g_return_val_if_fail (exception != NULL, NULL);

  return exception->message;
}

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
const char *
pto_exception_get_trace (PtoException *exception)
{
  g_return_val_if_fail (exception != NULL, NULL);

  return exception->trace;
}

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
guint
pto_exception_get_n_members (PtoException *exception)
{
  g_return_val_if_fail (exception != NULL, 0);

  return exception->members->len;
}

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

static GVariant *
make_variant (PtoException *exception, gsize most_trace, gsize most_words, gboolean with_members)
{
  g_autofree char *type_name = dup_part (exception->type_name, most_words, FALSE);
  g_autofree char *message = dup_part (exception->message, most_words, FALSE);
  g_autofree char *trace = dup_part (exception->trace, most_trace, TRUE);
  GVariantBuilder members;

  g_variant_builder_init (&members, G_VARIANT_TYPE ("av"));
  for (guint i = 0; with_members && i < exception->members->len; i++)
    g_variant_builder_add (
        &members, "v",
        make_variant (g_ptr_array_index (exception->members, i), most_trace, most_words, TRUE));
  return g_variant_new (WIRE_TYPE, type_name, message, trace, &members);
}

gsize
pto_exception_pack (PtoException *exception, guint8 *bytes, gsize size)
{
  const struct
  {
    gsize trace;
    gsize words;
    gboolean with_members;
  } tries[] = { { G_MAXSIZE, G_MAXSIZE, TRUE }, { size / 2, G_MAXSIZE, TRUE },
                { size / 8, G_MAXSIZE, TRUE },  { 0, G_MAXSIZE, TRUE },
                { size / 8, size / 2, TRUE },   { 0, size / 8, TRUE },
                { size / 4, size / 4, FALSE } };

  for (guint i = 0; i < G_N_ELEMENTS (tries); i++)
    {
      g_autoptr (GVariant) variant = g_variant_ref_sink (
          make_variant (exception, tries[i].trace, tries[i].words, tries[i].with_members));

      if (g_variant_get_size (variant) > size)
        continue;
      g_variant_store (variant, bytes);
      return g_variant_get_size (variant);
    }
  return 0;
}

static PtoException *
read_variant (GVariant *variant)
{
  g_autoptr (GPtrArray) members = g_ptr_array_new_with_free_func (unref);
  g_autoptr (GVariantIter) iter = NULL;
  const char *type_name;
  const char *message;
  const char *trace;
  GVariant *member;

  g_variant_get (variant, "(&s&s&sav)", &type_name, &message, &trace, &iter);
  while (g_variant_iter_next (iter, "v", &member))
    {
      if (g_variant_is_of_type (member, G_VARIANT_TYPE (WIRE_TYPE)))
        g_ptr_array_add (members, read_variant (member));
      g_variant_unref (member);
    }
  return pto_exception_new (type_name, message, trace[0] != '\0' ? trace : NULL,
                            (PtoException **) members->pdata, members->len);
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
