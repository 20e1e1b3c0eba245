"""Checks the numbers that the benchmarks get on the command line."""

import argparse
from collections.abc import Callable

__all__ = ["at_least"]


def at_least(least: int, most: int | None = None) -> Callable[[str], int]:
    """The ``type`` of an argument of ``argparse`` that is a whole number from ``least`` on.

    With ``most`` the number may be at most ``most``. Any other text makes ``argparse`` print one
    line and exit with the status 2.
    """
    allowed = f"a whole number from {least} {'on' if most is None else f'to {most}'}"

    def number(text: str) -> int:
        """The number in ``text``, for ``argparse``."""
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; {allowed}")
        return value

    return number
