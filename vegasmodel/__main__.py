"""The command ``vegasmodel``: it can be stopped before the rest is loaded."""

import os
import signal

if __name__ == "__main__" or signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    for _number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(_number) != signal.SIG_IGN:
            signal.signal(_number, lambda number, _: os._exit(128 + number))


def main() -> None:
    """Run the command line; does not return."""
    from vegasmodel import exits

    exits.main(_run)


def _run() -> int:
    from vegasmodel import cli

    return cli.run()


if __name__ == "__main__":
    main()
