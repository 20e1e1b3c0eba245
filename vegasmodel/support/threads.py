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

_mine = threading.local()  # per thread of a pool: ``left``, set if the pool's block has failed


@contextmanager
def pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of ``count`` threads.

    If an error or Ctrl-C ends the ``with`` block, the simulations on these threads end soon, and no
    further work begins.
    """
    left = threading.Event()
    with ThreadPoolExecutor(count, initializer=setattr, initargs=(_mine, "left", left)) as made:
        try:
            yield made
        except BaseException:
            left.set()
            made.shutdown(wait=False, cancel_futures=True)
            raise


def check() -> None:
    """Raise ``KeyboardInterrupt`` if an error or Ctrl-C has ended the block of this thread's pool.

    The block is the ``with`` block of ``pool``. A simulation calls this function again and again,
    so that it ends soon after the block.
    """
    left = getattr(_mine, "left", None)
    if left is not None and left.is_set():
        raise KeyboardInterrupt
