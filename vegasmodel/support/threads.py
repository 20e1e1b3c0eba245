"""Runs simulations on threads so that they end soon after the user presses Ctrl-C.

Python raises ``KeyboardInterrupt`` in its main thread only. The main thread then waits until the
other threads have ended their work, which may be a long simulation. So a simulation on a thread of
``pool`` calls ``check`` again and again. After Ctrl-C, ``check`` raises ``KeyboardInterrupt`` in
that thread, too, and so ends the simulation.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

__all__ = ["check", "pool"]

# In a thread of a pool, its attribute ``block_failed`` is an event: it is set when an error or
# Ctrl-C has ended the ``with`` block of the pool. Other threads have no such attribute.
_of_this_thread = threading.local()


@contextmanager
def pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of ``count`` threads.

    If an error or Ctrl-C ends the ``with`` block, the simulations on these threads end soon, and no
    further work begins.
    """
    block_failed = threading.Event()

    def begin_thread() -> None:
        """Tell a new thread of the pool which event its simulations must look at."""
        _of_this_thread.block_failed = block_failed

    with ThreadPoolExecutor(count, initializer=begin_thread) as made:
        try:
            yield made
        except BaseException:
            block_failed.set()
            made.shutdown(wait=False, cancel_futures=True)
            raise


def check() -> None:
    """Raise ``KeyboardInterrupt`` if an error or Ctrl-C has ended the block of this thread's pool.

    The block is the ``with`` block of ``pool``. A simulation calls this function again and again,
    so that it ends soon after the block.
    """
    block_failed = getattr(_of_this_thread, "block_failed", None)
    if block_failed is not None and block_failed.is_set():
        raise KeyboardInterrupt
