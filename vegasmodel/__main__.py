"""Starts the command ``vegasmodel``, also as ``python -m vegasmodel``.

Until the command's modules are imported, Ctrl-C and SIGTERM end the process at once and silently.
"""

import os
import signal


def main() -> None:
    """Run the command line with which this process was started, and exit."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: os._exit(128 + number))
    from vegasmodel.command_line.commands import main as command

    command()


if __name__ == "__main__":
    main()
