# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A notebook as a script: python3 doc/tutorial.py runs it; jupytext --to notebook doc/tutorial.py makes a notebook of it. The build
# makes a page of the manual of it, with what it prints and draws.

# %% [markdown]
# # Tutorial: from one kernel to paged attention
#
# An NPU of the Ascend kind has two kinds of cores: *cube* cores (AIC) multiply matrices, *vector* cores (AIV) do the rest, element by element. One cube core and two vector
# cores are a cluster; the chip that is simulated here, `a2a3sim`, has 24. A core runs one *kernel* at a time, a C function on memory. What is left is to say which kernel
# works on what, and in which order. You say the first, in an *orchestration*; the order follows from it.
#
# This page builds paged attention in seven steps, of four kernels of a few lines each. At the end of each step stands a picture of what the cores did, on the chip's own, virtual clock: kernels
# take as long as we say they do, the chip's own steps what its description says, and every run of this page draws the same pictures to the nanosecond. Everything is computed, too, and
# compared with NumPy.

# %%
import pathlib

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402


def kernel(name, core, cost, args, source):
    """Writes NAME.c: for which kind of core, how long (ns), how many arguments."""
    head = "#include <math.h>\n#include \"tensor.h\"\n"
    pathlib.Path(f"{name}.c").write_text(head + source)
    made = Pto.Callable.kernel(f"{name}.c", core=core, args=args)
    made.set_cost(cost)
    return made


def run(graph, *arrays, **parameters):
    """The graph on a chip of its own; what happened comes back."""
    with Pto.Worker(platform="a2a3sim") as chip:
        for parameter, value in {"backend": "det", "trace": True, **parameters}.items():
            chip.set_parameter(parameter.replace("_", "-"), value)
        chip.run(graph, *arrays)
        return chip.trace


dice = np.random.default_rng(1)

# %% [markdown]
# ## 1. One kernel, one task
#
# A kernel gets one word for each of its arguments: the address of a `TensorData`, or a number. A tensor has a first element, a shape, and a stride for each dimension.

# %%
scale = kernel("scale", "aiv", "constant:5000", 3, r"""
void
kernel_entry (int64_t *args)
{
  const TensorData *in = (const TensorData *) args[0];
  const TensorData *out = (const TensorData *) args[1];
  const float *x = (const float *) in->buffer.addr + in->start_offset;
  float *y = (float *) out->buffer.addr + out->start_offset;

  for (uint64_t i = 0; i < in->shapes[0]; i++)
    y[i] = pto_scalar_float (args[2]) * x[i];
}
""")


def one(orch, x, y):
    orch.submit(scale, x.read(), y.write_existing(), 2.0)


x, y = dice.random(4800, np.float32), np.zeros(4800, np.float32)
trace = run(one, x, y)
assert np.array_equal(y, 2 * x)
trace

# %% [markdown]
# One bar on one vector core. Above it are the chip's own processors: the *orchestrator* submits the task, a *scheduler* gives it to a core and notices its end. The other 23
# clusters did nothing and share a line.
#
# ## 2. Side by side
#
# One core of 48 is not much. Cut the vector into 48 pieces and submit a task for each. A piece is a view: nothing is copied. The pieces share no element, so no task waits for another.

# %%
def pieces(orch, x, y):
    for i in range(0, 4800, 100):
        orch.submit(scale, x[i:i + 100].read(), y[i:i + 100].write_existing(), 2.0)


y[:] = 0
trace = run(pieces, x, y)
assert np.array_equal(y, 2 * x)
trace

# %% [markdown]
# The staircase is the orchestrator: it submits one task after the other, and each core begins when it is its turn. With kernels this short most of the cores are done before the last one begins: the
# chip is bound by its submits. Longer kernels, or one task of several blocks (`block_dim=48`), are the cure. Remember the shape, it comes back.
#
# ## 3. One after the other, on both kinds of cores
#
# `matmul` is for cube cores. It takes two matrices with whatever strides they have, so a transposed view needs no kernel of its own. `softmax` takes the rows of a matrix to exp (x - max), and
# gives the maximum and the sum of each row, with which the whole softmax can be put together from parts later.

# %%
AT = r"""
#define AT(t, i, j) (((float *) (t)->buffer.addr)[(t)->start_offset + (i) * (t)->strides[0] + (j) * (t)->strides[1]])
#define ROW(t, i) (((float *) (t)->buffer.addr)[(t)->start_offset + (i) * (t)->strides[0]])
"""
matmul = kernel("matmul", "aic", "constant:8000", 4, AT + r"""
void
kernel_entry (int64_t *args)
{
  const TensorData *a = (const TensorData *) args[0];
  const TensorData *b = (const TensorData *) args[1];
  const TensorData *out = (const TensorData *) args[2];

  for (uint64_t i = 0; i < a->shapes[0]; i++)
    for (uint64_t j = 0; j < b->shapes[1]; j++)
      {
        float sum = 0;

        for (uint64_t k = 0; k < a->shapes[1]; k++)
          sum += AT (a, i, k) * AT (b, k, j);
        AT (out, i, j) = pto_scalar_float (args[3]) * sum;
      }
}
""")
softmax = kernel("softmax", "aiv", "constant:6000", 4, AT + r"""
void
kernel_entry (int64_t *args)
{
  const TensorData *in = (const TensorData *) args[0];
  const TensorData *out = (const TensorData *) args[1];
  const TensorData *most = (const TensorData *) args[2];
  const TensorData *sums = (const TensorData *) args[3];

  for (uint64_t i = 0; i < in->shapes[0]; i++)
    {
      float m = -INFINITY, sum = 0;

      for (uint64_t j = 0; j < in->shapes[1]; j++)
        m = fmaxf (m, AT (in, i, j));
      for (uint64_t j = 0; j < in->shapes[1]; j++)
        sum += AT (out, i, j) = expf (AT (in, i, j) - m);
      ROW (most, i) = m;
      ROW (sums, i) = sum;
    }
}
""")

HEADS, WIDTH, PAGE = 16, 64, 32  # rows of a query, elements of a row, tokens of a page


def scores(orch, q, k, p, most, sums):
    s = orch.tensor((HEADS, PAGE))                          # no memory yet: a ring gives it some, at the submit that writes it
    orch.submit(matmul, q.read(), k.transpose(0, 1).read(), s.write(), WIDTH ** -0.5)
    orch.submit(softmax, s.read(), p.write_existing(), most.write_existing(), sums.write_existing())


q, k = dice.standard_normal((HEADS, WIDTH), np.float32), dice.standard_normal((PAGE, WIDTH), np.float32)
p, most, sums = np.zeros((HEADS, PAGE), np.float32), np.zeros(HEADS, np.float32), np.zeros(HEADS, np.float32)
trace = run(scores, q, k, p, most, sums)
expected = np.exp(q @ k.T / 8 - (q @ k.T / 8).max(axis=1, keepdims=True))
assert np.allclose(p, expected, rtol=1e-5) and np.allclose(sums, expected.sum(axis=1), rtol=1e-5)
trace

# %% [markdown]
# `softmax` reads what `matmul` writes, so it waits for it: that is the first edge of this page, and nobody has written it down. The critical path, outlined, says so: submit, `matmul`, what the scheduler needs to
# notice its end and to start the other, `softmax`.

# %%
print(trace.explain("1"))

# %% [markdown]
# ## 4. Attention over one page
#
# Attention is `softmax (q k / 8) v`. With what the step before gives, the third task multiplies by the values of the page, and the fourth one divides by the sums. That one is more general already: it *updates* a
# result by what one more page says. Two parts of a softmax with the maxima m1 and m2 are put together by scaling both to the larger one.

# %%
update = kernel("update", "aiv", "constant:4000", 7, AT + r"""
void
kernel_entry (int64_t *args)
{
  const TensorData *part = (const TensorData *) args[0], *m2 = (const TensorData *) args[1];
  const TensorData *s2 = (const TensorData *) args[2], *out = (const TensorData *) args[3];
  const TensorData *m1 = (const TensorData *) args[4], *s1 = (const TensorData *) args[5];

  for (uint64_t i = 0; i < out->shapes[0]; i++)
    {
      float m = fmaxf (ROW (m1, i), ROW (m2, i));
      float a = expf (ROW (m1, i) - m), b = expf (ROW (m2, i) - m);
      float sum = a * ROW (s1, i) + b * ROW (s2, i);

      for (uint64_t j = 0; j < out->shapes[1]; j++)
        AT (out, i, j) = (a * AT (out, i, j) + b * AT (part, i, j)) / (args[6] ? sum : 1);
      ROW (m1, i) = m;
      ROW (s1, i) = sum;
    }
}
""")


def attend(orch, q, k, v, out, most, sums, is_last):
    """One more page: four tasks."""
    s, p = orch.tensor((HEADS, PAGE)), orch.tensor((HEADS, PAGE))
    m2, s2, part = orch.tensor(HEADS), orch.tensor(HEADS), orch.tensor((HEADS, WIDTH))
    orch.submit(matmul, q.read(), k.transpose(0, 1).read(), s.write(), WIDTH ** -0.5)
    orch.submit(softmax, s.read(), p.write(), m2.write(), s2.write())
    orch.submit(matmul, p.read(), v.read(), part.write(), 1.0)
    orch.submit(update, part.read(), m2.read(), s2.read(), out.update(), most.update(), sums.update(), int(is_last))


def one_page(orch, q, k, v, out):
    most, sums = orch.tensor(HEADS), orch.tensor(HEADS)
    orch.fill(most, -np.inf)
    orch.fill(sums, 0)
    attend(orch, q, k, v, out, most, sums, True)


def attention(q, k, v):
    """What NumPy says."""
    e = np.exp(q @ k.T / 8 - (q @ k.T / 8).max(axis=1, keepdims=True))
    return e @ v / e.sum(axis=1, keepdims=True)


v, out = dice.standard_normal((PAGE, WIDTH), np.float32), np.zeros((HEADS, WIDTH), np.float32)
trace = run(one_page, q, k, v, out)
assert np.allclose(out, attention(q, k, v), rtol=1e-4, atol=1e-6)
trace

# %% [markdown]
# `matmul` on a cube core, `softmax` on a vector core, `matmul`, `update`: the work goes back and forth between the two kinds, and while one works the other waits. The two fills have no one to wait for and ran beside all
# that. One request does not fill a chip.
#
# ## 5. Pages
#
# The keys and values of a conversation grow by a token a step. They are kept in *pages* of equal size anywhere in one large cache, and a table says which pages are whose. A page of the cache is a view, as any part is. Six pages of one request:

# %%
cache_k = dice.standard_normal((64, PAGE, WIDTH), np.float32)
cache_v = dice.standard_normal((64, PAGE, WIDTH), np.float32)


def request(orch, q, cache_k, cache_v, pages, out):
    with orch.scope():                                      # what it has made is given back behind this
        most, sums = orch.tensor(HEADS), orch.tensor(HEADS)
        orch.fill(most, -np.inf)
        orch.fill(sums, 0)
        for page in pages:
            k, v = (cache[page].reshape([PAGE, WIDTH]) for cache in (cache_k, cache_v))
            attend(orch, q, k, v, out, most, sums, page == pages[-1])


def paged(orch, q, cache_k, cache_v, out):
    request(orch, q, cache_k, cache_v, [7, 3, 40, 12, 9, 63], out)


out[:] = 0
trace = run(paged, q, cache_k, cache_v, out)
pages = [7, 3, 40, 12, 9, 63]
assert np.allclose(out, attention(q, cache_k[pages].reshape(-1, WIDTH), cache_v[pages].reshape(-1, WIDTH)), rtol=1e-4, atol=1e-6)
trace

# %% [markdown]
# Scores and softmax of several pages run at the same time, as nothing orders them. Only the updates are a chain: each updates what the one before has written. That is the whole of paged attention: 26 tasks, and no line
# says what waits for what.
#
# ## 6. A batch
#
# A server has many requests, of different lengths. They share nothing but the cache, which all of them only read.

# %%
lengths = [2, 1, 3, 2, 1, 2, 3, 1, 2, 2, 1, 3, 2, 1, 2, 12]
tables = [[int(page) for page in dice.permutation(64)[:n]] for n in lengths]
queries = dice.standard_normal((len(lengths), HEADS, WIDTH), np.float32)
outs = np.zeros_like(queries)


def batch(orch, queries, cache_k, cache_v, outs, priorities=None):
    for i, table in enumerate(tables):
        orch.priority = priorities[i] if priorities else 0
        q, out = (of[i].reshape([HEADS, WIDTH]) for of in (queries, outs))
        request(orch, q, cache_k, cache_v, table, out)


def check():
    for i, table in enumerate(tables):
        k, v = cache_k[table].reshape(-1, WIDTH), cache_v[table].reshape(-1, WIDTH)
        assert np.allclose(outs[i], attention(queries[i], k, v), rtol=1e-4, atol=1e-6)


trace = run(batch, queries, cache_k, cache_v, outs)
check()
trace

# %% [markdown]
# The same staircase as in step 2: the orchestrator submits 192 tasks, one after the other, and the chip has room to spare. What made it so long?

# %%
print("\n".join(trace.describe("critical-path").splitlines()[-4:]))
print(trace.summarize())

# %% [markdown]
# More than half of it is *until it was submitted*: the request of twelve pages comes last, and then its own chain of updates begins. More cores would change nothing. What helps is to submit less, in larger tasks, or
# what is long first.
#
# ## 7. A smaller chip, and who goes first
#
# On a chip of three clusters it is another matter. There tasks wait for cores, and somebody has to choose. Without priorities it is who has been ready for longest; with them, the request of twelve pages, for which everything
# waits in the end, goes before the others.

# %%
def long_first(orch, queries, cache_k, cache_v, outs):
    order = sorted(range(len(tables)), key=lambda i: -lengths[i])
    for i in order:
        orch.priority = 3 if lengths[i] > 3 else 0
        q, out = (of[i].reshape([HEADS, WIDTH]) for of in (queries, outs))
        request(orch, q, cache_k, cache_v, tables[i], out)


plain = run(batch, queries, cache_k, cache_v, outs, clusters=3)
check()
outs[:] = 0
first = run(long_first, queries, cache_k, cache_v, outs, clusters=3)
check()
print(f"as they come {plain.elapsed_ns / 1000:.1f} us, the long one first {first.elapsed_ns / 1000:.1f} us")
assert first.elapsed_ns < plain.elapsed_ns
first

# %% [markdown]
# ## What next
#
# - The example `examples/batch-paged-attention` is the same in C, with tasks for several requests at once; `pto run examples/batch-paged-attention` runs it.
# - [Traces](traces.md) says what else can be asked of a record, and *what if* questions: `pto whatif`.
# - [Time](time.md) says where the clock's numbers come from, and how kernels' costs are learned from a chip.
# - [Levels](levels.md) goes on to several chips.
