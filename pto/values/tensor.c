/* tensor.c: how does a program name a tensor, or a part of one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tensor.h"

#include "base/binding.h"
#include "base/error.h"
#include "base/getter.h"
#include "common/text.h"
#include "address-range.h"
#include "pto-buffer.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of Linux 5.14; headers may be older than the system. */
#define PTO_MADV_POPULATE_WRITE 23

/**
 * PtoTensor:
 *
 * A handle on a tensor: type, shape, strides, and memory that the program owns or that the runtime
 * allocates.
 *
 * A tensor made by [ctor@Pto.Tensor.new] has no memory: the runtime gives it some at the submit
 * that outputs it, in every run anew, and takes it back when the scope has ended and the last
 * consumer is done. Views share the memory of the tensor they were made from. Strides count
 * elements.
 *
 * Memory that belongs to a buffer, to bytes or to an object is kept as long as anything can reach
 * it: the tensor, its views, arguments, and every run that one of them was submitted in, to its
 * end.
 *
 * A tensor with a shape that can not be (no dimension or more than 5, an extent of 0, an overflow)
 * can be made; the call that uses it fails with the reason.
 *
 * Source: seed 000 section 11. Thread safety: any thread; runs of several workers that use a tensor
 * without memory at the same time have memory of their own each. A fork copies the handle.
 *
 * Since: 0.1
 */

/* What a machine's run has made for a tensor without memory. Claimed once by a machine, used on the
 * thread of its run only. */
typedef struct _Record Record;
struct _Record
{
  PTO2Runtime *rt; /* atomic; W: who claims it; NULL: nobody has */
  guint64 run;     /* 0: none yet */
  PTO2Buffer *storage;
  uint32_t generation;
  Record *next; /* immutable */
};

struct _PtoTensor
{
  gatomicrefcount ref_count;
  gboolean external;
  gboolean read_only; /* this handle; another one of the same memory may write */
  Tensor raw; /* storage and generation are those of the root, filled in by pto_tensor_prepare() */
  PtoTensor *root; /* what this is a view of, or NULL */

  /* Of a root with memory of somebody's, or of a level's. */
  gpointer owner;
  GDestroyNotify release; /* of owner; NULL: nobody's, the program keeps it alive */
  gsize kept;             /* atomic, a hint: the last run that has put it into its set */
  gsize written;          /* atomic, a hint: the last run that has found that it can be written */
  gboolean stand_in;      /* for what a launch of a graph has: that memory is none */
  guint home;             /* of a root: 1 + the worker that it stays at; 0: it does not stay */

  /* Of a root without memory. */
  Record first;      /* of the machine that has used it first: of all, mostly */
  Record *others;    /* atomic; those of other machines are pushed, and stay */
  guint64 allocated; /* its address, of memory that it has from the start; 0: none */
};

G_DEFINE_BOXED_TYPE_WITH_CODE (PtoTensor, pto_tensor, pto_tensor_ref, pto_tensor_unref,
                               pto_override_look ())

static PtoTensor *
tensor_new (const Tensor *raw, gboolean external)
{
  PtoTensor *tensor = g_new0 (PtoTensor, 1);

  g_atomic_ref_count_init (&tensor->ref_count);
  tensor->raw = *raw;
  tensor->external = external;
  return tensor;
}

/* Why there is no tensor of that dtype and shape. The text stays for the process. */
static const char *
describe_refusal (guint dtype)
{
  g_autofree char *text = NULL;

  if (pto_dtype_get_size ((PtoDtype) dtype) != 0)
    return _ ("the shape is refused: 1 to 5 dimensions, no extent of 0, no overflow");
  text = g_strdup_printf (_ ("the dtype is refused: %d is no PtoDtype"), (gint) dtype);
  return g_intern_string (text);
}

/* The tensor that it is a view of, or it itself. */
static inline PtoTensor *
get_root (const PtoTensor *tensor)
{
  return tensor->root != NULL ? tensor->root : (PtoTensor *) tensor;
}

static PtoTensor *
view_of (PtoTensor *tensor, const Tensor *raw, gboolean read_only)
{
  PtoTensor *view = tensor_new (raw, tensor->external);

  view->read_only = read_only;
  view->root = pto_tensor_ref (get_root (tensor));
  return view;
}

static PtoTensor *
tensor_new_view (PtoTensor *tensor, const Tensor *raw, GError **error)
{
  if (raw->status != PTO2_TENSOR_OK)
    {
      static const char *const reasons[] = {
        [PTO2_TENSOR_OUT_OF_BOUNDS] = N_ ("the view reaches beyond its tensor"),
        [PTO2_TENSOR_BAD_RESHAPE]
        = N_ ("a reshape needs a contiguous tensor and the same number of elements"),
        [PTO2_TENSOR_BAD_TRANSPOSE] = N_ ("there is no such dimension to exchange"),
      };
      g_autofree char *text = pto_tensor_to_string (tensor);

      pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("tensor %s: %s"), text,
                  raw->status == PTO2_TENSOR_BAD_SHAPE   ? describe_refusal ((guint) raw->dtype)
                  : raw->status < G_N_ELEMENTS (reasons) ? _ (reasons[raw->status])
                                                         : _ ("it can not be used"));
      return NULL;
    }
  return view_of (tensor, raw, tensor->read_only);
}

static PtoTensor *
tensor_new_owned (const Tensor *raw, gpointer owner, GDestroyNotify release)
{
  PtoTensor *tensor = tensor_new (raw, TRUE);

  tensor->owner = owner;
  tensor->release = release;
  return tensor;
}

/* A number of dimensions that the engine's 32 bits can not hold is as wrong as any other above 5.
 */
static uint32_t
clamp_dims (gsize n_dims)
{
  return (uint32_t) MIN (n_dims, PTO2_TENSOR_MAX_DIMS + 1);
}

static Tensor
make_external (guint64 address, PtoDtype dtype, gsize n_dims, const guint64 *shape)
{
  return make_tensor_external ((void *) (guintptr) address, (const uint64_t *) shape,
                               clamp_dims (n_dims), (DataType) dtype);
}

/* A tensor that begins at offset in size bytes. what: of what they are, for the message. */
static gboolean
make_inside (const char *what, guint64 address, guint64 size, guint64 offset, PtoDtype dtype,
             gsize n_dims, const guint64 *shape, Tensor *raw, GError **error)
{
  *raw = make_external (address + offset, dtype, n_dims, shape);
  if (raw->status != PTO2_TENSOR_OK)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, "%s", describe_refusal ((guint) dtype));
  if (offset > size || raw->buffer.size > size - offset)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("a tensor of %" PRIu64 " bytes at offset %" PRIu64
                          " does not fit in %s of %" PRIu64 " bytes"),
                       (guint64) raw->buffer.size, offset, what, size);
  if (offset % pto_dtype_get_size (dtype) != 0)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("offset %" PRIu64 " is no multiple of the element size %u"), offset,
                       pto_dtype_get_size (dtype));
  return TRUE;
}

/**
 * pto_tensor_new: (constructor)
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 *
 * Makes a tensor that the runtime gives memory at the submit that outputs it.
 *
 * Source: seed 000 section 11, `make_tensor()`. Thread safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_new (PtoDtype dtype, gsize n_dims, const guint64 *shape)
{
  Tensor raw = make_external (0, dtype, n_dims, shape);

  return tensor_new (&raw, FALSE);
}

/**
 * pto_tensor_new_external: (constructor)
 * @address: address of the first element: device memory, a buffer's, or any memory of this process
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 *
 * Makes a tensor over memory that the caller keeps alive while it is in use.
 *
 * For memory that belongs to something, [ctor@Pto.Tensor.new_for_object],
 * [ctor@Pto.Tensor.new_for_bytes] and [ctor@Pto.Tensor.new_for_buffer] do that.
 *
 * An address in memory of the runtime ([method@Pto.Orchestrator.alloc], outputs of tasks) names the
 * tensor that has this memory, or a part of it: the same tasks are waited for. A submit fails if
 * the memory is no tensor's any more, or if the part reaches beyond the tensor.
 *
 * Source: seed 000 section 11, `make_tensor_external()`. Thread safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_new_external (guint64 address, PtoDtype dtype, gsize n_dims, const guint64 *shape)
{
  Tensor raw = make_external (address, dtype, n_dims, shape);

  return tensor_new (&raw, TRUE);
}

/**
 * pto_tensor_new_external_full: (skip)
 * @address: address of the first element
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @owner: (nullable): what the memory belongs to
 * @release: called with @owner when nothing can reach the memory any more
 *
 * Makes a tensor over memory that belongs to something.
 *
 * The tensor, its views, arguments that name one of them, a run that one was submitted in, and an
 * asynchronous run that was given one keep @owner. @release is called once, on the thread that lets
 * go last.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_new_external_full (guint64 address, PtoDtype dtype, gsize n_dims, const guint64 *shape,
                              gpointer owner, GDestroyNotify release)
{
  Tensor raw = make_external (address, dtype, n_dims, shape);

  g_return_val_if_fail (release != NULL, NULL);

  return tensor_new_owned (&raw, owner, release);
}

/**
 * pto_tensor_new_for_object: (constructor)
 * @address: address of the first element
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @owner: what the memory belongs to
 *
 * Makes a tensor over memory that belongs to an object, and keeps the object as long as anything
 * can reach the memory: the tensor, its views, arguments that name one of them, a run that one was
 * submitted in, and an asynchronous run that was given one.
 *
 * Thread safety: any thread; the last reference may be dropped on any other.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_new_for_object (guint64 address, PtoDtype dtype, gsize n_dims, const guint64 *shape,
                           GObject *owner)
{
  Tensor raw = make_external (address, dtype, n_dims, shape);

  g_return_val_if_fail (G_IS_OBJECT (owner), NULL);

  return tensor_new_owned (&raw, g_object_ref (owner), g_object_unref);
}

/**
 * pto_tensor_new_for_buffer: (constructor)
 * @buffer: where the elements lie
 * @offset: bytes before the first element
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why there is none
 *
 * Makes a tensor in a buffer, and keeps the buffer as long as the tensor.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the shape is refused or reaches beyond the buffer. Thread
 * safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_new_for_buffer (PtoBuffer *buffer, guint64 offset, PtoDtype dtype, gsize n_dims,
                           const guint64 *shape, GError **error)
{
  Tensor raw;

  g_return_val_if_fail (buffer != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!make_inside ("a buffer", pto_buffer_get_address (buffer), pto_buffer_get_size (buffer),
                    offset, dtype, n_dims, shape, &raw, error))
    return NULL;
  return tensor_new_owned (&raw, pto_buffer_ref (buffer), (GDestroyNotify) pto_buffer_unref);
}

/**
 * pto_tensor_new_for_bytes: (constructor)
 * @bytes: where the elements lie
 * @offset: bytes before the first element
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why there is none
 *
 * Makes a tensor of bytes that tasks only read, and keeps the bytes as long as anything can reach
 * them.
 *
 * As an output it is refused: see [method@Pto.Tensor.as_read_only].
 * Fails with %PTO_ERROR_INVALID_ARGS when the shape is refused or reaches beyond the bytes. Thread
 * safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_new_for_bytes (GBytes *bytes, guint64 offset, PtoDtype dtype, gsize n_dims,
                          const guint64 *shape, GError **error)
{
  PtoTensor *tensor;
  gconstpointer data;
  gsize size;
  Tensor raw;

  g_return_val_if_fail (bytes != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  data = g_bytes_get_data (bytes, &size);
  if (!make_inside ("bytes", (guint64) (guintptr) data, size, offset, dtype, n_dims, shape, &raw,
                    error))
    return NULL;
  tensor = tensor_new_owned (&raw, g_bytes_ref (bytes), (GDestroyNotify) g_bytes_unref);
  tensor->read_only = TRUE;
  return tensor;
}

/**
 * pto_tensor_ref:
 * @tensor: a tensor
 *
 * Takes a reference.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): @tensor
 *
 * Since: 0.1
 */
PTO_DEFINE_REF (PtoTensor, pto_tensor_ref, tensor)

/**
 * pto_tensor_unref:
 * @tensor: (transfer full): a tensor
 *
 * Releases a reference. Tasks that use the memory are not affected: their run keeps what it belongs
 * to.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_tensor_unref (PtoTensor *tensor)
{
  g_return_if_fail (tensor != NULL);

  if (!g_atomic_ref_count_dec (&tensor->ref_count))
    return;
  g_clear_pointer (&tensor->root, pto_tensor_unref);
  if (tensor->release != NULL)
    tensor->release (tensor->owner);
  for (Record *record = tensor->others, *next; record != NULL; record = next)
    {
      next = record->next;
      g_free (record);
    }
  g_free (tensor);
}

/**
 * pto_tensor_view:
 * @tensor: a tensor
 * @n_dims: number of dimensions, that of @tensor
 * @shape: (array length=n_dims): extent of each dimension of the part, in elements
 * @offsets: (array length=n_dims): where the part begins in each dimension, in elements
 * @error: where to say why there is none
 *
 * Gives a part of a tensor; it shares the tensor's memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the part reaches beyond the tensor.
 * Source: seed 000 section 11. Thread safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_view (PtoTensor *tensor, gsize n_dims, const guint64 *shape, const guint64 *offsets,
                 GError **error)
{
  Tensor raw;

  g_return_val_if_fail (tensor != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (n_dims != tensor->raw.ndims)
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("a view with %zu dimensions can not be taken of a tensor with %u"), n_dims,
                  tensor->raw.ndims);
      return NULL;
    }
  raw = pto2_tensor_view (&tensor->raw, (const uint64_t *) shape, (const uint64_t *) offsets);
  return tensor_new_view (tensor, &raw, error);
}

/**
 * pto_tensor_reshape:
 * @tensor: a contiguous tensor
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why there is none
 *
 * Gives the same elements in row-major order under another shape; it shares the tensor's memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the number of elements differs or the tensor is not
 * contiguous. Source: seed 000 section 11. Thread safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_reshape (PtoTensor *tensor, gsize n_dims, const guint64 *shape, GError **error)
{
  Tensor raw;

  g_return_val_if_fail (tensor != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  raw = pto2_tensor_reshape (&tensor->raw, (const uint64_t *) shape, clamp_dims (n_dims));
  return tensor_new_view (tensor, &raw, error);
}

/* Is every element at a place of its own, so that each can be written? Of two dimensions one steps
 * over all that the other reaches. */
static gboolean
is_apart (gsize n_dims, const guint64 *shape, const guint64 *strides)
{
  for (gsize i = 0; i < n_dims; i++)
    {
      guint64 reach = 0; /* of the dimensions that step less */

      for (gsize j = 0; j < n_dims; j++)
        if (shape[j] > 1 && (strides[j] < strides[i] || (strides[j] == strides[i] && j > i)))
          reach += (shape[j] - 1) * strides[j];
      if (shape[i] > 1 && strides[i] <= reach)
        return FALSE;
    }
  return TRUE;
}

/**
 * pto_tensor_as_strided:
 * @tensor: a contiguous tensor
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @strides: (array length=n_dims): the step of each dimension, in elements of @tensor
 * @offset: where the first element is, in elements of @tensor
 * @error: where to say why there is none
 *
 * Gives elements of a tensor that lie at regular distances; they share the tensor's memory.
 *
 * Where they are is for its kernels to respect, as for any view: `strides` in `TensorData`. No two
 * are at one place. Fails with %PTO_ERROR_INVALID_ARGS when they are, when they reach beyond
 * @tensor, or when that is not contiguous itself. Thread safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_as_strided (PtoTensor *tensor, gsize n_dims, const guint64 *shape,
                       const guint64 *strides, guint64 offset, GError **error)
{
  Tensor raw;
  guint64 left;

  g_return_val_if_fail (tensor != NULL, NULL);
  g_return_val_if_fail (shape != NULL && strides != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  raw = tensor->raw;
  if (raw.status != PTO2_TENSOR_OK)
    return tensor_new_view (tensor, &raw, error);
  if (!pto_tensor_is_contiguous (tensor))
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("elements at other distances can be had of a contiguous tensor only"));
      return NULL;
    }
  left = pto_tensor_get_n_elements (tensor);
  pto2_tensor_set_shape (&raw, (const uint64_t *) shape, clamp_dims (n_dims), raw.dtype);
  if (raw.status != PTO2_TENSOR_OK)
    return tensor_new_view (tensor, &raw, error);
  /* left: behind the last element that the dimensions so far reach. */
  left = offset < left ? left - offset - 1 : 0;
  for (gsize i = 0; i < n_dims; i++)
    {
      if (shape[i] > 1 && strides[i] > left / (shape[i] - 1))
        raw.status = PTO2_TENSOR_OUT_OF_BOUNDS;
      else if (shape[i] > 1)
        left -= (shape[i] - 1) * strides[i];
      raw.strides[i] = shape[i] > 1 ? strides[i] : 1;
    }
  if (offset >= pto_tensor_get_n_elements (tensor))
    raw.status = PTO2_TENSOR_OUT_OF_BOUNDS;
  if (raw.status == PTO2_TENSOR_OK && !is_apart (n_dims, shape, strides))
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("elements at these distances would lie at one place: copy them"));
      return NULL;
    }
  raw.start_offset += offset;
  return tensor_new_view (tensor, &raw, error);
}

/**
 * pto_tensor_transpose:
 * @tensor: a tensor
 * @x: a dimension, from 0
 * @y: another dimension, from 0
 * @error: where to say why there is none
 *
 * Gives the same elements with two dimensions exchanged; it shares the tensor's memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when there is no such dimension.
 * Source: seed 000 section 11. Thread safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_transpose (PtoTensor *tensor, guint x, guint y, GError **error)
{
  Tensor raw;

  g_return_val_if_fail (tensor != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  raw = pto2_tensor_transpose (&tensor->raw, x, y);
  return tensor_new_view (tensor, &raw, error);
}

/**
 * pto_tensor_as_read_only:
 * @tensor: a tensor
 *
 * Gives the same elements to tasks that only read them; it shares the tensor's memory.
 *
 * Where it, or a view of it, is tagged %PTO_DIRECTION_OUTPUT, %PTO_DIRECTION_INOUT or
 * %PTO_DIRECTION_OUTPUT_EXISTING, the submit is refused with %PTO_ERROR_INVALID_ARGS.
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_tensor_as_read_only (PtoTensor *tensor)
{
  g_return_val_if_fail (tensor != NULL, NULL);

  return view_of (tensor, &tensor->raw, TRUE);
}

/**
 * pto_tensor_is_read_only:
 * @tensor: a tensor
 *
 * Asks whether tasks may only read it.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if it is refused as an output
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (gboolean, pto_tensor_is_read_only, PtoTensor, tensor, tensor->read_only)

void
pto_tensor_set_allocated (PtoTensor *tensor, guint64 address, gpointer owner,
                          GDestroyNotify release)
{
  tensor->allocated = address;
  tensor->owner = owner;
  tensor->release = release;
}

void
pto_tensor_set_worker (PtoTensor *tensor, guint worker)
{
  tensor->home = worker + 1;
}

/**
 * pto_tensor_get_worker:
 * @tensor: a tensor
 *
 * Gives the worker that a tensor stays at.
 *
 * Thread safety: any thread.
 *
 * Returns: as [method@Pto.Orchestrator.make_tensor_at] was told; -1: it goes wherever a task needs
 *   it
 *
 * Since: 0.1
 */
int
pto_tensor_get_worker (PtoTensor *tensor)
{
  g_return_val_if_fail (tensor != NULL, -1);

  return (int) get_root (tensor)->home - 1;
}

/**
 * pto_tensor_is_remote:
 * @tensor: a tensor
 *
 * Is it in memory that the program has of a remote worker ([method@Pto.Worker.alloc_buffer]), so
 * that this process can not look at its elements?
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (gboolean, pto_tensor_is_remote, PtoTensor, tensor,
                   pto_remote_range_has (tensor->raw.buffer.addr))

PtoTensor *
pto_tensor_new_stand_in (guint64 address, PtoDtype dtype, gsize n_dims, const guint64 *shape,
                         GObject *graph)
{
  PtoTensor *tensor = pto_tensor_new_for_object (address, dtype, n_dims, shape, graph);

  tensor->stand_in = TRUE;
  return tensor;
}

guint64
pto_tensor_get_first_address (const PtoTensor *tensor)
{
  if (!tensor->external)
    return 0;
  return tensor->raw.buffer.addr + tensor->raw.start_offset * pto_dtype_size (tensor->raw.dtype);
}

/**
 * pto_tensor_get_address:
 * @tensor: a tensor
 *
 * Gives the address of the first element.
 *
 * That of a tensor made by [method@Pto.Orchestrator.alloc], or of a view of one, is the tensor's
 * until the scope has ended that it was made in; it stays mapped as long as the tensor.
 *
 * Thread safety: any thread.
 *
 * Returns: an address; 0 when the runtime gives it memory at a submit, and of a tensor of
 *   [method@Pto.Graph.add_argument] or [method@Pto.Graph.make_tensor], which only stands for others
 *
 * Since: 0.1
 */
guint64
pto_tensor_get_address (PtoTensor *tensor)
{
  const PtoTensor *root;

  g_return_val_if_fail (tensor != NULL, 0);

  root = get_root (tensor);
  if (root->stand_in)
    return 0;
  if (root->allocated == 0)
    return pto_tensor_get_first_address (tensor);
  return root->allocated + tensor->raw.start_offset * pto_dtype_size (tensor->raw.dtype);
}

/**
 * pto_tensor_get_dtype:
 * @tensor: a tensor
 *
 * Gives the type of the elements.
 *
 * Thread safety: any thread.
 *
 * Returns: a type
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (PtoDtype, pto_tensor_get_dtype, PtoTensor, tensor, (PtoDtype) tensor->raw.dtype)

/**
 * pto_tensor_get_n_dims:
 * @tensor: a tensor
 *
 * Gives the number of dimensions.
 *
 * Thread safety: any thread.
 *
 * Returns: 1 to 5; 0 for a tensor with a shape that can not be
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (guint, pto_tensor_get_n_dims, PtoTensor, tensor, tensor->raw.ndims)

/**
 * pto_tensor_get_shape:
 * @tensor: a tensor
 * @n_dims: (out): number of dimensions
 *
 * Gives the extent of each dimension.
 *
 * Thread safety: any thread.
 *
 * Returns: (array length=n_dims) (transfer none): elements
 *
 * Since: 0.1
 */
const guint64 *
pto_tensor_get_shape (PtoTensor *tensor, gsize *n_dims)
{
  g_return_val_if_fail (tensor != NULL, NULL);

  if (n_dims != NULL)
    *n_dims = tensor->raw.ndims;
  return (const guint64 *) tensor->raw.shapes;
}

/**
 * pto_tensor_get_strides:
 * @tensor: a tensor
 * @n_dims: (out): number of dimensions
 *
 * Gives the distance between neighbours in each dimension.
 *
 * Thread safety: any thread.
 *
 * Returns: (array length=n_dims) (transfer none): elements
 *
 * Since: 0.1
 */
const guint64 *
pto_tensor_get_strides (PtoTensor *tensor, gsize *n_dims)
{
  g_return_val_if_fail (tensor != NULL, NULL);

  if (n_dims != NULL)
    *n_dims = tensor->raw.ndims;
  return (const guint64 *) tensor->raw.strides;
}

/**
 * pto_tensor_get_n_elements:
 * @tensor: a tensor
 *
 * Gives the number of elements: the product of the extents.
 *
 * Thread safety: any thread.
 *
 * Returns: elements; 0 for a tensor with a shape that can not be
 *
 * Since: 0.1
 */
guint64
pto_tensor_get_n_elements (PtoTensor *tensor)
{
  g_return_val_if_fail (tensor != NULL, 0);

  return tensor->raw.status == PTO2_TENSOR_OK ? pto2_tensor_numel (&tensor->raw) : 0;
}

/**
 * pto_tensor_get_n_bytes:
 * @tensor: a tensor
 *
 * Gives the size of all elements, without what lies between them in a view.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
guint64
pto_tensor_get_n_bytes (PtoTensor *tensor)
{
  g_return_val_if_fail (tensor != NULL, 0);

  return pto_tensor_get_n_elements (tensor) * pto_dtype_size (tensor->raw.dtype);
}

/**
 * pto_tensor_ref_bytes:
 * @tensor: a tensor
 * @error: where to say why there are none
 *
 * Gives the memory of a tensor as bytes, without copying, from its first element to its last: of a
 * view with what lies between them.
 *
 * The bytes change as the tensor does, and keep it. Tasks that use it are not waited for. Fails
 * with %PTO_ERROR_INVALID_ARGS for a tensor that has no memory: one that the runtime gives some at
 * a submit, or that stands for one of a launch; and for one in memory of a remote worker. Thread
 * safety: any thread.
 *
 * Returns: (transfer full): the memory
 *
 * Since: 0.1
 */
GBytes *
pto_tensor_ref_bytes (PtoTensor *tensor, GError **error)
{
  g_autofree char *text = NULL;
  guint64 address;

  g_return_val_if_fail (tensor != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  address = pto_tensor_get_address (tensor);
  if (pto_tensor_is_remote (tensor))
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("the tensor is memory of a remote worker, and is not here: read and "
                     "write its buffer"));
      return NULL;
    }
  if (address != 0 && tensor->raw.status == PTO2_TENSOR_OK)
    return g_bytes_new_with_free_func ((gconstpointer) (guintptr) address,
                                       pto_tensor_get_extent (tensor),
                                       (GDestroyNotify) pto_tensor_unref, pto_tensor_ref (tensor));
  text = pto_tensor_to_string (tensor);
  pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("tensor %s has no memory: a task outputs it, it stands for one of a graph's launch, or "
         "its shape is refused"),
      text);
  return NULL;
}

/**
 * pto_tensor_is_contiguous:
 * @tensor: a tensor
 *
 * Asks whether the elements lie in row-major order without gaps.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if they do
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (gboolean, pto_tensor_is_contiguous, PtoTensor, tensor,
                   pto2_tensor_is_contiguous (&tensor->raw))

/**
 * pto_tensor_is_external:
 * @tensor: a tensor
 *
 * Asks whether the memory is the program's own.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if it is, %FALSE if the runtime allocates it
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (gboolean, pto_tensor_is_external, PtoTensor, tensor, tensor->external)

/**
 * pto_tensor_to_string:
 * @tensor: a tensor
 *
 * Describes a tensor in words for a message: `float32 [16, 128]`.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_tensor_to_string (PtoTensor *tensor)
{
  GString *text;

  g_return_val_if_fail (tensor != NULL, NULL);

  text = g_string_new (pto_dtype_size (tensor->raw.dtype) != 0 ? pto_dtype_name (tensor->raw.dtype)
                                                               : "unknown type");
  g_string_append (text, " [");
  for (guint i = 0; i < tensor->raw.ndims; i++)
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT, i > 0 ? ", " : "",
                            (guint64) tensor->raw.shapes[i]);
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

const char *
pto_tensor_get_refusal (const PtoTensor *tensor)
{
  const PtoTensor *root = get_root (tensor);

  if (root->stand_in)
    return _ (
        "the tensor stands for an argument of a graph, or for what a task of it outputs, and has "
        "no memory of its own: it is for add_task() of that graph");
  if (tensor->raw.status == PTO2_TENSOR_OK)
    return NULL;
  return describe_refusal ((guint) tensor->raw.dtype);
}

/* Several runs at once may take the hint from each other; none holds a tensor twice. */
static G_GNUC_NO_INLINE void
keep (PtoTensor *root, guint64 run, GHashTable **kept)
{
  if (*kept == NULL)
    *kept = g_hash_table_new_full (NULL, NULL, (GDestroyNotify) pto_tensor_unref, NULL);
  g_hash_table_add (*kept, pto_tensor_ref (root));
  g_atomic_pointer_set (&root->kept, (gsize) run);
}

/* Can the system say so? Asked of memory that certainly can be written. */
static gboolean
can_ask_for_writing (gsize page_size)
{
  static gsize answer; /* g_once: 1: no, 2: yes */

  if (g_once_init_enter (&answer))
    {
      guintptr here = (guintptr) &page_size & ~(guintptr) (page_size - 1);

      g_once_init_leave (&answer,
                         madvise ((void *) here, page_size, PTO_MADV_POPULATE_WRITE) == 0 ? 2 : 1);
    }
  return answer == 2;
}

gboolean
pto_tensor_can_be_written (const PtoTensor *tensor)
{
  const PtoTensor *root = get_root (tensor);
  guint64 address = pto_tensor_get_first_address (tensor);
  gsize page_size = (gsize) sysconf (_SC_PAGESIZE);
  int saved = errno;
  gboolean refused;

  if (tensor->read_only)
    return FALSE;
  /* That of a remote worker is nothing here: a level looks whether there is such memory. */
  if (root->release != NULL || address == 0 || pto_remote_range_has (address)
      || !can_ask_for_writing (page_size))
    return TRUE;
  /* Makes the page present, as the task's first write would; changes nothing in it. Of memory that
   * is not mapped at all the task's own fault tells more. */
  refused = madvise ((void *) (guintptr) (address & ~(guint64) (page_size - 1)), page_size,
                     PTO_MADV_POPULATE_WRITE)
                != 0
            && errno == EINVAL;
  errno = saved;
  return !refused;
}

/* Asked of the system once in a run. */
static gboolean
is_writable (PtoTensor *root, guint64 run)
{
  if ((gsize) g_atomic_pointer_get (&root->written) == (gsize) run)
    return TRUE;
  if (!pto_tensor_can_be_written (root))
    return FALSE;
  g_atomic_pointer_set (&root->written, (gsize) run);
  return TRUE;
}

gboolean
pto_tensor_admit (PtoTensor *tensor, gboolean writes, guint64 run, GHashTable **kept)
{
  PtoTensor *root = get_root (tensor);

  if (G_UNLIKELY (tensor->raw.status != PTO2_TENSOR_OK || root->stand_in)
      || (tensor->read_only && writes))
    return FALSE;
  if (writes && root->external && root->release == NULL && !is_writable (root, run))
    return FALSE;
  /* The engine itself keeps what the runtime has allocated, as long as a task needs it. */
  if (kept != NULL && root->release != NULL && root->external
      && (gsize) g_atomic_pointer_get (&root->kept) != (gsize) run)
    keep (root, run, kept);
  return TRUE;
}

guint64
pto_tensor_get_extent (const PtoTensor *tensor)
{
  guint64 elements = 1;

  for (guint i = 0; i < tensor->raw.ndims; i++)
    elements += (tensor->raw.shapes[i] - 1) * tensor->raw.strides[i];
  return elements * pto_dtype_size (tensor->raw.dtype);
}

/* The record of a machine, which has one run at a time. */
static Record *
find_record (PtoTensor *root, PTO2Runtime *rt)
{
  Record *record;

  if (g_atomic_pointer_get (&root->first.rt) == rt
      || g_atomic_pointer_compare_and_exchange (&root->first.rt, NULL, rt))
    return &root->first;
  for (record = g_atomic_pointer_get (&root->others); record != NULL; record = record->next)
    if (record->rt == rt)
      return record;
  record = g_new0 (Record, 1);
  record->rt = rt;
  do
    record->next = g_atomic_pointer_get (&root->others);
  while (!g_atomic_pointer_compare_and_exchange (&root->others, record->next, record));
  return record;
}

const Tensor *
pto_tensor_peek (const PtoTensor *tensor)
{
  return &tensor->raw;
}

/* The first use in a run. */
static G_GNUC_NO_INLINE gboolean
begin_record (PtoTensor *root, Record *record, guint64 run, gboolean reads, GError **error)
{
  PTO2Runtime *rt = record->rt;

  /* Another machine's record says that there was another run, whatever is in it. */
  if (reads
      && (record->run != 0 || record != &root->first
          || g_atomic_pointer_get (&root->others) != NULL))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("the tensor is one of another run, and what that wrote is gone: let "
                          "a task of this run output it first, or keep its data in an array "
                          "or a buffer"));
  record->storage = rt->ops->new_buffer (rt, root->raw.buffer.size, &record->generation);
  if (record->storage == NULL)
    return FALSE;
  record->run = run;
  return TRUE;
}

gboolean
pto_tensor_prepare (PtoTensor *tensor, PTO2Runtime *rt, guint64 run, gboolean reads, Tensor *handle,
                    GError **error)
{
  PtoTensor *root = get_root (tensor);
  Record *record;

  *handle = tensor->raw;
  if (tensor->external)
    return TRUE;
  record = find_record (root, rt);
  if (record->run != run && !begin_record (root, record, run, reads, error))
    return FALSE;
  handle->storage = record->storage;
  handle->generation = record->generation;
  return TRUE;
}

gboolean
pto_tensor_is_shape (PtoTensor *tensor, PTO2Runtime *rt, guint64 run)
{
  return !tensor->external && tensor->root == NULL && pto_tensor_get_first_address (tensor) == 0
         && find_record (tensor, rt)->run != run;
}
