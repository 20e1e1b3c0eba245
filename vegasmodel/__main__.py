"""Starts the command ``vegasmodel``, which may also be typed as ``python -m vegasmodel``.

The import of the command's modules takes a moment. If Ctrl-C or SIGTERM comes meanwhile, the
process ends at once, without a traceback or other message.
"""

import os
import signal


def main() -> None:
    """Run the command line with which this process was started, and exit."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: os._exit(128 + number))
    # When NumPy is imported, OpenBLAS starts a thread for each core. Until a thread gets work, it
    # waits in a busy loop, which costs CPU time. The matrices of this package have only a few rows,
    # and for such small matrices one thread is faster. So OpenBLAS gets one thread, unless the user
    # has set another number.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from vegasmodel.command_line.commands import main as command

    command()


if __name__ == "__main__":
    main()
