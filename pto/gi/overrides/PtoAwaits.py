# PtoAwaits.py: how is what takes its time awaited in asyncio?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# On a thread of Python's; cancelling the task cancels what is under way, which is waited for.
import contextlib
import contextvars
import functools


async def awaited(runner, cancellable, call, undo=None):
    """undo(result) if it came to one all the same, and nobody is given it."""
    import asyncio
    job = runner.submit(contextvars.copy_context().run, call)
    future = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if cancellable is not None:
            cancellable.cancel()
        job.cancel()  # if it has not begun
        while not future.done():  # whoever is told that it has ended may use the arrays again
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        if not future.cancelled() and future.exception() is None and undo is not None:
            undo(future.result())
        raise


async def await_alone(cancellable, call, *args, undo=None, **named):
    """On a thread of its own: beside what else is under way."""
    import concurrent.futures
    runner = concurrent.futures.ThreadPoolExecutor(1, "pto-" + call.__name__)
    try:
        return await awaited(runner, cancellable, functools.partial(call, *args, **named), undo)
    finally:
        runner.shutdown(wait=False)
