"""Starts the command ``vegasmodel``.

Until the command has imported its modules, Ctrl-C and SIGTERM end the process without a message.
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
