"""Checks whether a measurement and the models describe the same network.

For example, the measured Vegas may be that of Linux, while the models follow that of ns-2. The
result is a list of assumptions, each of which holds, does not hold, or is in doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from vegasmodel.measurement import ENGINES
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import VARIANTS, Scenario

VEGAS_OF = {
    "paper": "the papers' Vegas",
    "ns2": "ns-2's Vegas",
    "ns3": "ns-3's Vegas",
    "linux": "the Linux kernel's Vegas",
}


def same_case(
    scenario: Scenario, measured: Prediction, estimated: Sequence[str] = ()
) -> tuple[Assumption, ...]:
    """The assumptions under which a measurement and the models describe the same network.

    ``same-vegas`` and ``same-jitter`` say whether the measured senders behave as those in the
    models.  If the scenario file has estimates or guesses, ``estimated-parameters`` says so.  It
    also names ``estimated``: the keys that the file leaves out, and whose values the trace gave.
    """
    notes = (*same_vegas(scenario, measured), same_jitter(scenario, measured))
    doubts = [f"{'; '.join(estimated)}: from the trace"] if estimated else []
    if scenario.estimated_from is not None:
        doubts.append(f"values of the file are estimates from {scenario.estimated_from}")
    if scenario.guesses:
        doubts.append(f"guesses: {', '.join(scenario.guesses)}")
    return (
        *notes,
        *([Assumption("estimated-parameters", None, "; ".join(doubts))] if doubts else []),
    )


def same_jitter(scenario: Scenario, measured: Prediction) -> Assumption:
    """The assumption ``same-jitter``: the measured senders wait at random as the modelled ones do.

    A modelled sender waits before each packet for a random time, at most ``send_jitter``. ns-2 and
    ns-3 simulate the same waits, so the assumption holds for their runs. Any other measurement may
    name the scenario that was run. If this was ``scenario``, the assumption holds. If this was
    ``scenario`` without the waits, the measured senders do not wait. A trace of packets may also
    show that they do not wait (``packets.send_times``). For senders that do not wait, the
    assumption holds only if the modelled senders do not wait either. In all other cases it is not
    known whether the assumption holds.
    """
    without_waits = replace(
        scenario, flows=tuple(replace(g, send_jitter=0.0) for g in scenario.flows)
    )
    longest = max(scenario.jitter(group) for group in scenario.flows)
    model = f"wait up to {1e3 * longest:.3g} ms" if longest else "do not wait"
    ran = measured.extra.get("scenario")  # the fingerprint of the scenario that was run, if known
    if measured.model in ENGINES or ran == scenario.fingerprint():
        return Assumption("same-jitter", True)
    if ran == without_waits.fingerprint() or measured.extra.get("sent_at_once"):
        if not longest:
            return Assumption("same-jitter", True)
        detail = f"the model's senders {model} (send_jitter), the measurement's did not"
        return Assumption("same-jitter", False, detail)
    detail = f"the model's senders {model} (send_jitter); the trace does not tell of its own"
    return Assumption("same-jitter", None, detail)


def same_vegas(scenario: Scenario, measured: Prediction) -> tuple[Assumption, ...]:
    """The assumption ``same-vegas``: that the measured Vegas is the one that the models follow.

    TCP implementations differ in how Vegas counts its backlog and when it decides. If the
    measurement does not say which implementation ran, it is not known whether the assumption holds.
    Returns no assumption if the scenario has no Vegas flows.
    """
    ran = measured.model if measured.model in ENGINES else str(measured.extra.get("engine"))
    return vegas_of(scenario, ran)


def vegas_of(scenario: Scenario, ran: str) -> tuple[Assumption, ...]:
    """The assumption ``same-vegas``: that the measured Vegas is the one that the models follow.

    ``ran`` names what was measured, such as "ns2" or "linux".  Returns no assumption if the
    scenario has no Vegas flows.
    """
    followed = dict.fromkeys(g.variant for g in scenario.flows if g.keeps_backlog)
    if not followed:
        return ()
    if ran not in VEGAS_OF:
        return (Assumption("same-vegas", None, f"whose Vegas ran: {ran} does not tell"),)
    if set(followed) == {ran}:
        return (Assumption("same-vegas", True),)
    models = " and ".join(VEGAS_OF[variant] for variant in followed)
    way = f'; variant = "{ran}" is that one' if ran in VARIANTS else ""
    detail = f"the model follows {models}, the measurement ran {VEGAS_OF[ran]}{way}"
    return (Assumption("same-vegas", False, detail),)


def other_vegas(scenario: Scenario, models: Collection[str]) -> list[str]:
    """Warnings that the Vegas of ns-2 or ns-3 differs from the one that the models follow.

    ``models`` names the models, and possibly ns-2 and ns-3, whose results are shown together. There
    is at most one text for each of ns-2 and ns-3, and none if ``models`` names only these two.
    """
    if set(models) <= set(ENGINES):
        return []
    return [
        f"{engine}: same-vegas does not hold: {note.detail}"
        for engine in ENGINES
        if engine in models
        for note in vegas_of(scenario, engine)
        if note.holds is False
    ]
