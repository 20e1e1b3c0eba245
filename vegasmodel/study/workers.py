"""Distributes the work of a sweep over threads, processes or a Dask cluster.

A sweep evaluates a model at many points. It is divided into blocks of points; a worker computes one
block at a time.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from pathlib import Path

from vegasmodel import laws
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Choice
from vegasmodel.study.grid import Block
from vegasmodel.study.models import answers
from vegasmodel.study.points import Figures, Points
from vegasmodel.support import extras

__all__ = ["ENGINES", "check", "each", "pool"]

ENGINES = ("local", "dask")
# unfinished blocks per worker; one in all if blocks are computed one at a time
BLOCKS_PER_WORKER = 2
Submit = Callable[[Points, str], "Future[Figures]"]  # the points of a block, and the model's name


def check(engine: str, scheduler: str | None) -> None:
    """Check the options ``engine`` and ``scheduler`` of a sweep.

    Raises ``FieldError`` for an unknown engine, or if a scheduler is given and the engine is not
    Dask. Raises ``ExtraMissing`` if the engine is Dask and Dask is not installed.
    """
    Choice(ENGINES).check(engine, "engine")
    if engine == "dask":
        extras.need("dask", "the engine dask")
    elif scheduler is not None:
        raise FieldError("scheduler", scheduler, "only with the engine dask")


class _Pool:
    """The workers that compute a sweep: threads, processes or a Dask cluster.

    ``width`` is the number of blocks that they compute at the same time.  ``submit(points, model)``
    gives the points of a block to a worker and returns a future of the results.
    """

    def __init__(self, submit: Submit, width: int) -> None:
        self.submit, self.width = submit, width


@contextlib.contextmanager
def pool(engine: str, scheduler: str | None, processes: int, threads: int) -> Iterator[_Pool]:
    """Yield the workers that compute the blocks of a sweep.

    The first of these rules that applies says what the workers are:

    1. If ``engine`` is ``"dask"``, they are the workers of the Dask cluster at the address
       ``scheduler``, or of one that is started on this machine if that is ``None``.
    2. If ``processes`` is above 1, they are this number of processes.
    3. If ``threads`` is above 1, they are this number of threads.
    4. Otherwise the calling thread computes all blocks.
    """
    if engine == "dask":
        with _dask(scheduler) as workers:
            yield workers
    elif processes > 1:
        # started by somebody else, so they are not killed here
        other_children = multiprocessing.active_children()
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(processes, context, initializer=_end_with_parent)

        def submit(points: Points, model: str) -> Future[Figures]:
            """Let a worker process run the model at the points."""
            with _ignoring_interrupts():  # a worker starts when the first work comes
                return executor.submit(_with_files, laws.files(), points, model)

        try:
            yield _Pool(submit, processes)
        except BaseException:  # nobody will use the unfinished work
            for child in multiprocessing.active_children():
                if child not in other_children:
                    child.kill()
            raise
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
    elif threads > 1:
        in_threads = ThreadPoolExecutor(threads)
        try:
            yield _Pool(lambda points, model: in_threads.submit(answers, points, model), threads)
        finally:
            in_threads.shutdown(wait=False, cancel_futures=True)
    else:
        yield _Pool(_in_process, 1)


def _with_files(files: Sequence[Path], points: Points, model: str) -> Figures:
    """Register the user's own congestion control laws in a worker process, then call ``answers``.

    ``files`` are the Python files that define these laws.
    """
    for file in files:
        laws.register_file(file)
    return answers(points, model)


def _with_laws(user_laws: Sequence[laws.Law], points: Points, model: str) -> Figures:
    """Register the user's congestion control laws in a Dask worker, then call ``answers``.

    The laws are sent to the worker (``user_laws``), because its machine may lack the files that
    define them.
    """
    for law in user_laws:
        laws.add(law)
    return answers(points, model, 1)


def _in_process(points: Points, model: str) -> Future[Figures]:
    """Compute the points in the calling thread; returns a future that already has the results."""
    done: Future[Figures] = Future()
    done.set_result(answers(points, model))
    return done


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Let worker processes that start in the ``with`` block ignore Ctrl-C, SIGTERM and SIGHUP.

    The parent process handles these signals.  In the thread that runs the block, a signal takes
    effect only when the block ends.
    """
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """Start a thread that ends this worker process when its parent process ends for any reason."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        """Wait for the end of the parent process, then end this one."""
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _dask(scheduler: str | None) -> Iterator[_Pool]:
    """Yield the workers of the Dask cluster at the address ``scheduler``.

    Without an address, a cluster is started on this machine, with one process per core.  Raises
    ``FieldError`` if the cluster cannot be reached.
    """
    import distributed

    with contextlib.ExitStack() as stack:
        if scheduler is None:
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=os.cpu_count(),
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=50,
                )
            )
        else:
            cluster = scheduler
        try:
            client = stack.enter_context(distributed.Client(cluster, timeout="20s"))
        except (OSError, TimeoutError, ValueError) as error:
            reason = " ".join(str(error).split())[:100] or type(error).__name__
            raise FieldError(
                "scheduler", scheduler, f"a Dask scheduler's address ({reason})"
            ) from None
        threads = client.nthreads()
        executor = client.get_executor(pure=False)

        def submit(points: Points, model: str) -> Future[Figures]:
            """Let a worker of the cluster run the model at the points."""
            user_laws = points.scenario.own_laws
            future: Future[Figures] = executor.submit(_with_laws, user_laws, points, model)
            return future

        yield _Pool(submit, max(1, sum(threads.values())))


def each(
    workers: _Pool, points: Callable[[Block], Points], model: str, blocks: Sequence[Block]
) -> Iterator[tuple[Block, Figures]]:
    """Compute the blocks of a sweep; yield each block with its results as soon as it is ready.

    ``workers`` compute them, and ``points`` returns the points of a block.  At most two blocks per
    worker are submitted at a time (with a single worker, one), so that few blocks are in memory.
    """
    waiting = iter(blocks)
    under_way: dict[Future[Figures], Block] = {}
    while True:
        while len(under_way) < (BLOCKS_PER_WORKER * workers.width if workers.width > 1 else 1):
            block = next(waiting, None)
            if block is None:
                break
            under_way[workers.submit(points(block), model)] = block
        if not under_way:
            return
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            yield under_way.pop(future), future.result()
