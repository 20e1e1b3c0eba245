"""Compiles the rules by which congestion controls (laws) move windows, and numbers sets of rules.

A rule is a function that moves a window on a certain occasion, for example at the end of a round
trip. A set (``laws.packets.PacketRules``) has one rule for each occasion. Tahoe, Reno, NewReno and
SACK use one set, Vegas another. Compiled code keeps a record of each flow, which can hold numbers
but no functions. So the sets are numbered, and ``Sender.rules`` is the number of the flow's set.
For each occasion, ``choice`` makes a compiled function that looks at this number and calls the rule
of the right set.

Some laws have no such set, and ``Sender.rules`` is 0 for their flows. These are CUBIC, whose window
``bictcp.py`` moves, and most laws that users define. The functions of a user's law are called by
their addresses in memory (``engines/outside.py``).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from vegasmodel.engines.rounds.state import jit
from vegasmodel.laws.built_in import BUILT_IN
from vegasmodel.laws.law import Law

# the sets of rules, by the field ``per_ack`` of the laws that use them
RULES = {law.per_ack: law.packets for law in BUILT_IN if law.packets is not None}
BY_ADDRESS = 0  # value of ``Sender.rules`` for a law without a set of rules
_Function = Callable[..., Any]


def number_of_rules(law: Law) -> int:
    """The number of the set of rules by which a congestion control law moves the window.

    A rule is a function that is called, for example, at an ACK. Compiled code finds the set by its
    number, which is stored in ``Sender.rules``. The number is 0 if the law has no such set. This is
    so for CUBIC and for most laws that users define.
    """
    return 1 + list(RULES).index(law.per_ack) if law.per_ack in RULES else BY_ADDRESS


@functools.cache
def rule(function: _Function) -> Any:
    """Compile a Python function of a congestion control law, and the functions that it calls."""
    variables = function.__globals__
    called = {
        name: rule(variables[name])
        for name in function.__code__.co_names
        if isinstance(variables.get(name), types.FunctionType)
    }
    # a copy of the function, for which the functions that it calls are the compiled ones
    copy = types.FunctionType(function.__code__, {**variables, **called}, function.__name__)
    return jit(copy)


def _rule_or_other(k: int, rule_k: Any, otherwise: Any, arguments: int) -> Any:
    """Compile a function that calls ``rule_k`` for senders whose set of rules has the number ``k``.

    For all other senders it calls ``otherwise``, which tests for another number (``choice``). Both
    functions take the sender's record. If ``arguments`` is 2, they take one more argument.
    """
    if arguments == 1:
        return jit(lambda f: rule_k(f) if f.rules == k else otherwise(f))
    return jit(lambda f, a: rule_k(f, a) if f.rules == k else otherwise(f, a))


def choice(name: str, by_address: _Function) -> Any:
    """A compiled function that takes a sender and calls the rule ``name`` of the sender's law.

    A rule is a function that moves the window, for example at an ACK. Most laws of the package have
    a set of rules, and ``Sender.rules`` is the number of this set. If the number is 0, the law has
    no such set. The compiled function then calls ``by_address``.
    """
    functions: Sequence[Any] = [getattr(rules, name) for rules in RULES.values()]
    # each function of the chain tests for one number, and calls the one made before it otherwise
    chain: Any = by_address
    for k, function in enumerate(functions, 1):
        chain = _rule_or_other(k, rule(function), chain, function.__code__.co_argcount)
    return chain


__all__ = ["BY_ADDRESS", "RULES", "choice", "number_of_rules", "rule"]
