"""Explains a name: of a model, a congestion control ("law"), a key, a column or an assumption.

The texts about models are in ``explanations.py``, those about other names in ``meanings.py``.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

from vegasmodel import laws
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import nearest
from vegasmodel.report.explanations import EXPLANATIONS
from vegasmodel.report.meanings import ASSUMPTIONS, COLUMNS, WORDS
from vegasmodel.scenario import Flow, Link, Run
from vegasmodel.stacks import STACKS
from vegasmodel.support.text_table import Text

__all__ = ["explain", "keys", "keys_like", "law_facts", "models_with"]

_REPAIR = {  # for each value of ``Law.recovery``, how the sender repairs losses
    "scoreboard": "it knows all missing packets, and retransmits them in one round trip",
    "hole by hole": "it learns of one missing packet per round trip",
    "one hole": "it retransmits one packet; if more are missing, it waits for its timer",
    "slow start": "it begins slow start with a window of one packet",
}
_SLOW_START = {  # for each value of ``Law.slow_start``, a sentence
    "until loss": "Its slow start ends at the first loss.",
    "gamma": "Its slow start ends at the first loss, or when it computes a backlog above `gamma`.",
    "none": "It starts without slow start.",
}
_UNIT = re.compile(r",? (pkt/s|pkt|mbit/s|s|%)$")  # behind the name of a column


def explain(name: str) -> str:
    """The meaning of a name in a result, a table or a scenario file, as text.

    The name may be that of a model, a law or an assumption, of a column of printed tables, or of a
    key of a scenario file.  For example, ``explain("phase-effects")`` says when this assumption
    holds, and which models make it.  A part of the name of a column or a key is enough:
    ``explain("error")`` explains all columns with this word, and ``explain("jitter")`` the keys
    ``send_jitter`` and ``start_jitter``.  If no column or key has the word, a word of the name of
    an assumption is enough, too: ``explain("phase")`` explains ``phase-effects``.  A unit behind
    the name of a column may stay: ``explain("lost pkt")`` explains ``lost``.

    Raises ``FieldError``, which gives the nearest name, if there is no such name.
    """
    if not isinstance(name, str):
        raise FieldError("name", name, "a name, as text")
    if name in EXPLANATIONS:
        return Text(f"{name}: {EXPLANATIONS[name]}")
    if laws.known(name):
        return Text(_law_text(name))
    known = (*ASSUMPTIONS, *COLUMNS, *WORDS)
    word = name.lower() if name in known else _UNIT.sub("", name.lower())
    if name in known:
        found = [name]
    else:
        with_word = [each for each in known if word in (each.lower(), *each.lower().split())]
        of_files = keys_like(word)
        # keys of scenario files come first if the word is a whole key
        is_key = any(key.partition(".")[2] == word for key in of_files)
        found = [*of_files, *with_word] if is_key else [*with_word, *of_files]
        found = found or [each for each in ASSUMPTIONS if word in each.split("-")]
    if not found:
        bare_keys = [key.partition(".")[2] for key in keys()]
        near = nearest(name, [*EXPLANATIONS, *laws.names(), *known, *bare_keys])
        allowed = f"one of {', '.join(EXPLANATIONS)}, or the name of a law (a law of your own: "
        allowed += "register_law, --laws), of an assumption or of a key"
        raise FieldError("name", name, allowed + near)
    return Text("\n".join(map(_meaning, found)))


@functools.cache
def keys() -> dict[str, str]:
    """The meaning of each key of a link, a flow and the run, by names such as ``flow.rtt``.

    The meanings are those that ``help`` prints about ``Link``, ``Flow`` and ``Run``.
    """
    found = {}
    for part, cls in (("link", Link), ("flow", Flow), ("run", Run)):
        # the docstring of the class has an entry for each key, such as "- ``rtt``: ..."
        entries = re.split(r"^- ", inspect.getdoc(cls) or "", flags=re.MULTILINE)[1:]
        for entry in entries:
            names, _, text = " ".join(entry.split("\n\n")[0].split()).partition(": ")
            for name in re.findall(r"\w+", names):
                in_file = "class" if name == "service" else name
                found[f"{part}.{in_file}"] = text.replace("``", "`").rstrip(".")
    return found


def keys_like(word: str) -> list[str]:
    """The names of the keys called ``word``; if there is none, those of which ``word`` is a part.

    For example, ``window`` is a part of ``max_window``.
    """
    without_table = {key: key.partition(".")[2] for key in keys()}  # "rtt" for "flow.rtt"
    whole = [key for key, bare in without_table.items() if word in (key, bare)]
    return whole or [key for key, bare in without_table.items() if word in bare.split("_")]


def models_with(name: str) -> list[str]:
    """The names of the models that make the assumption ``name``."""
    return [model for model, known in EXPLANATIONS.items() if name in known.hypotheses]


def law_facts(name: str) -> dict[str, Any]:
    """What the command ``explain`` prints with ``--json`` about a congestion control law.

    ``says`` is the docstring of the law's function ``drift``, and ``where`` is that function's
    place in a file; both are ``None`` if unknown.  The other keys are fields of ``laws.Law``.
    ``decrease`` is the factor by which a loss multiplies the window, as the variant ``paper`` has
    it by default.  It is ``None`` if the law's function ``cut`` gives the window after a loss
    instead.
    """
    law = laws.find(name)
    code = inspect.unwrap(law.drift).__code__ if inspect.isfunction(law.drift) else None
    return {
        "law": name,
        "says": inspect.getdoc(law.drift),
        "where": code and f"{code.co_filename}, line {code.co_firstlineno}",
        "decrease": None if law.cut else law.decrease,
        "slow_start": law.slow_start,
        "recovery": law.recovery,
        "state": dict(law.state),
    }


def _kept_numbers(state: dict[str, float]) -> str:
    """The names of the numbers that a law keeps, with their first values."""
    texts = [f"{name} ({value:g})" for name, value in state.items()]
    return ", ".join(texts).replace("(", "(at first ", 1)


def _law_text(name: str) -> str:
    """The facts about a law as text of several lines."""
    known, law = law_facts(name), laws.find(name)
    loss = f"is {law.decrease:g} times the window before the loss"
    if law.keeps_backlog:
        loss += f" ({', '.join(f'{stack.name}: {stack.decrease:g}' for stack in STACKS.values())})"
    loss += "; the key `decrease` of a [[flow]] sets another factor"
    if law.cut is not None:
        loss = "is what its function `cut` returns"
    lines = [
        f"{name}: a law of congestion control",
        "",
        *([f"Its function drift: {' '.join(known['says'].split())}"] if known["says"] else []),
        f"After a loss the window {loss}.",
        _SLOW_START[law.slow_start],
        f"Repair of losses: {_REPAIR[law.recovery]}.",
        *([f"It keeps these numbers: {_kept_numbers(known['state'])}."] if known["state"] else []),
        *([f"Equations: {known['where']}."] if known["where"] else []),
    ]
    return "\n".join(lines)


def _meaning(name: str) -> str:
    """The meaning of a column, a word, a key or an assumption, as text.

    For an assumption the text also names the models that make it.
    """
    plain = COLUMNS.get(name) or WORDS.get(name)
    if plain is not None:
        return f"{name}: {plain}."
    if name in keys():
        part, _, key = name.partition(".")
        table = "[run]" if part == "run" else f"[[{part}]]"
        return f"{key}, in the table {table} of a scenario file: {keys()[name]}."
    models = models_with(name)
    made_by = f"\nAn assumption of {', '.join(models)}." if models else ""
    return f"{name}: it holds if {ASSUMPTIONS[name]}.{made_by}"
