"""The commands ``equilibrium``, ``arrivals`` and ``rd``, each for one closed form."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq

from tests.commands.scenes import document
from vegasmodel import equilibrium
from vegasmodel.command_line.commands import run


@pytest.mark.parametrize(
    "arguments",
    [
        ["equilibrium", "--capacity", "250pkt/s", "--over-estimate", "0ms,16.2ms"],
        ["arrivals", "--n", "3"],
        ["rd", "--rate", "10", "--delay", "0", "--capacity", "100 Mbit/s"],
    ],
)
def test_closed_form_commands(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    document(capsys, [*arguments, "--json"])
    assert run(arguments) == 0
    out, _ = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 80


def test_an_equilibrium_of_whole_packets_is_one_of_many(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In ns-2 each of the two backlogs may be from 2.5 to 3.5 packets, in Linux from 3 to 4."""
    asked = ["equilibrium", "--capacity", "1000pkt/s", "--alpha", "3", "--rtt", "50ms"]
    for variant, low, high in (("ns2", 2.5, 3.5), ("linux", 3.0, 4.0)):
        told = document(capsys, [*asked, "--variant", variant, "--json"])
        ends = [1000.0 * low / (low + high), 1000.0 * high / (low + high)]
        np.testing.assert_allclose(told["rates_range_pps"], [ends, ends], rtol=1e-9)
        if variant == "ns2":  # in Linux the queue also depends on the RTT
            delays = [2.0 * low / 1000.0, 2.0 * high / 1000.0]
            np.testing.assert_allclose(told["queueing_delay_range_s"], delays, rtol=1e-9)
        assert run([*asked, "--variant", variant]) == 0
        out, _ = capsys.readouterr()
        assert f"{ends[0]:.1f} to {ends[1]:.1f}" in out
        assert "one of many equilibria" in " ".join(out.split())
        assert max(map(len, out.splitlines())) <= 80
    assert "rates_range_pps" not in document(capsys, [*asked, "--json"])


def test_without_a_packet_in_the_queue_nothing_determines_the_ranges(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """ns-2 rounds backlogs: up to 0.5 packets, alpha = 0.2 is reached without any packet."""
    asked = ["equilibrium", "--capacity", "1000pkt/s", "--alpha", "0.2", "--variant", "ns2"]
    told = document(capsys, [*asked, "--json"])
    assert told["rates_pps"] == [500.0, 500.0]
    assert told["rates_range_pps"] is None
    assert told["queueing_delay_range_s"] is None
    assert run(asked) == 0
    assert "determines the least queue" in " ".join(capsys.readouterr().out.split())


def test_a_delay_queue_without_room_is_said_to_pass_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A tenth of 4 packets is no whole packet; of 20 packets it is 2."""
    asked = ["rd", "--rate", "1", "--delay", "1", "--capacity", "1000pkt/s"]
    told = document(capsys, [*asked, "--buffer", "4", "--json"])
    assert told["buffer_D_pkt"] == 0
    assert "get nothing" in told["note"]
    assert document(capsys, [*asked, "--buffer", "20", "--json"])["note"] is None
    assert run([*asked, "--buffer", "4"]) == 0
    assert "get nothing" in " ".join(capsys.readouterr().out.split())


def test_a_rate_or_delay_that_rd_cannot_print_has_a_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An infinite buffer is called infinite; a dash stands for a class without flows."""
    asked = ["rd", "--capacity", "1000pkt/s", "--rate", "1", "--delay"]
    assert run([*asked, "1"]) == 0
    said = capsys.readouterr().out
    assert "-" not in said.replace("Rate-Delay", "")
    assert said.count("infinite") == 4  # both buffers, the delay, and when losses begin
    assert run([*asked, "0", "--buffer", "50"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(",")[0].strip() for row in rows if row.strip().endswith(" -")] == [
        "one flow of D",
        "longest queueing delay in D",
    ]
    assert rows[-1].startswith("Class D has no flows")
    told = document(capsys, [*asked[:4], "0", "--delay", "5", "--json"])
    assert told["flow_rate_R_pps"] is None
    assert told["note"].startswith("Class R has no flows")


FAILING = ["equilibrium", "--capacity", "3pkt/s", "--alpha", "1e-80,1,1"]
FAILING += ["--over-estimate", "1s,0.5s,0s"]  # 1/(1 - 0.5) + 1/(1 - 0) = 3: what is left is lost


def test_a_solver_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FAILING) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "failed" in err
    assert run([*FAILING, "--json"]) == 1
    out, _ = capsys.readouterr()
    document = json.loads(out, parse_constant=pytest.fail)
    assert document["rates_pps"] == [None] * 3
    assert document["status"].startswith("failed")


def test_the_list_of_alphas_tells_how_many_flows_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It had to have two values, or the over-estimate of each flow had to be given, too."""
    asked = ["equilibrium", "--capacity", "1200pkt/s", "--json", "--alpha"]
    np.testing.assert_allclose(document(capsys, [*asked, "1,2,3"])["rates_pps"], [200, 400, 600])
    np.testing.assert_allclose(document(capsys, [*asked, "2"])["rates_pps"], [600, 600])
    assert run([*asked, "1,2,3", "--over-estimate", "0s,0s"]) == 2
    assert "--alpha: 3 values are not allowed" in capsys.readouterr().err


def test_the_json_of_equilibrium_by_root_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equation (6) of Boutremans and Le Boudec: 3/D + 3/(D - 16.2 ms) = 250."""
    asked = ["equilibrium", "--capacity", "250pkt/s", "--alpha", "3"]
    asked += ["--over-estimate", "0ms,16.2ms", "--json"]
    delay = brentq(lambda D: 3.0 / D + 3.0 / (D - 0.0162) - 250.0, 0.0163, 1.0, xtol=1e-15)
    told = document(capsys, asked)
    assert told["queueing_delay_s"] == pytest.approx(delay)
    assert told["queue_pkt"] == pytest.approx(250.0 * delay)
    assert told["rates_pps"] == pytest.approx([3.0 / delay, 3.0 / (delay - 0.0162)])
    assert abs(told["residual"]) < 1e-14
    assert (told["capacity_pps"], told["variant"], told["status"]) == (250.0, "paper", "converged")
    right = equilibrium.solve
    monkeypatch.setattr(
        equilibrium, "solve", lambda *given, **more: right(*given, **more)._replace(residual=0.25)
    )
    assert document(capsys, asked)["residual"] == 0.25


def test_the_json_of_rd_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """12500 packets/s for 100 flows of weight 2 and 90 of weight 1: the sum of weights is 290."""
    asked = ["rd", "--rate", "100", "--delay", "90", "--capacity", "100Mbit/s", "--k", "2"]
    told = document(capsys, [*asked, "--buffer", "3130pkt", "--alpha", "2", "--json"])
    one = 12500.0 / 290.0
    expected = {
        "capacity_pps": 12500.0, "k": 2.0,
        "service_rate_R_pps": 200.0 * one, "service_rate_D_pps": 90.0 * one,
        "flow_rate_R_pps": 2.0 * one, "flow_rate_D_pps": one,
        "buffer_R_pkt": 2817.0, "buffer_D_pkt": 313.0,
        "delay_bound_s": 313.0 / (90.0 * one), "loss_onset_flows": 156.5,
    }  # fmt: skip
    assert {name: told[name] for name in expected} == pytest.approx(expected)
    assert told["note"] is None


@pytest.mark.parametrize("option", ["--capacity", "--alpha", "--over-estimate", "--rtt"])
def test_an_error_of_a_calculator_names_the_option_at_fault(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {"--capacity": "250pkt/s", "--alpha": "3", "--over-estimate": "0ms", "--rtt": "50ms"}
    asked = [word for pair in (good | {option: "7 apples"}).items() for word in pair]
    assert run(["equilibrium", *asked]) == 2
    assert capsys.readouterr().err.startswith(f"vegasmodel: {option}: '7 apples'")
