"""What ``explain`` says of models, their assumptions, laws, keys and other words."""

import json
from inspect import signature
from pathlib import Path

import pytest
from hypothesis import given, settings

import vegasmodel as vm
from tests.helpers import scenario
from tests.homes import HOME
from vegasmodel.command_line.commands import run
from vegasmodel.report.explanations import EXPLANATIONS
from vegasmodel.report.lookup import keys
from vegasmodel.report.meanings import ASSUMPTIONS
from vegasmodel.simulation import SIMULATORS
from vegasmodel.testing import strategies

OWN = (  # of user-defined laws
    "own-law-grows",
    "own-law-grows-slowly",
    "own-law-repairs",
    "own-law-returns-change",
    "own-law-swings-little",
)


@pytest.mark.parametrize("model", vm.MODELS)
def test_a_model_is_explained_by_the_hypotheses_that_its_answers_name(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", model, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["model"] == model
    assert document["equations"]
    assert document["source"]
    assert document["accuracy"]
    if model != "rounds":  # whose first call compiles; its own test has it
        case = HOME["minicycle" if model == "fluid" else model]
        named = {a.name for a in vm.predict(case, model).assumptions}
        # in answers of other scenarios
        of_fluid = {"whole-laws", "whole-stack", "sends-after-warm-up", "one-ack-a-packet", *OWN}
        of_fluid |= {"ns2-passes-packets"}
        others = {
            "bands": {"quasi-static", "many-packets-queued"},
            "minicycle": {"only-growing-windows-lose"},
        }
        some = ({"fluid": of_fluid} | others).get(model, set())
        assert set(document["hypotheses"]) - some == named
    assert run(["explain", model]) == 0
    assert document["equations"][0] in capsys.readouterr().out


def check_hypotheses(case: vm.Scenario) -> set[str]:
    """Assert that ``explain`` lists each assumption that a model's answer has; return them all."""
    named = set()
    for answer in vm.predict_all(case):
        mine = {a.name for a in answer.assumptions}
        assert mine <= set(EXPLANATIONS[answer.model].hypotheses), answer.model
        named |= mine
    return named


@settings(max_examples=40, deadline=None, derandomize=True)
@given(strategies.scenarios(queue=strategies.queues()))
def test_each_assumption_of_an_answer_is_explained(case: vm.Scenario) -> None:
    check_hypotheses(case)


def test_assumptions_on_laws_and_stacks_are_explained() -> None:
    vm.register_law("explained", lambda f: 1.0)
    run = {"duration": "60 s"}
    laws = ({"law": "vegas", "start": "5 s"}, {"law": "cubic"}, {"law": "explained"})
    case = scenario(*({"variant": "linux", **law} for law in laws), buffer="20 pkt", run=run)
    assert {"whole-stack", "whole-laws", *OWN} <= check_hypotheses(case)


def test_a_word_of_a_column_s_name_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "error"]) == 0
    shown = capsys.readouterr().out
    assert "ln ratio error: ln(model / measured)" in shown
    assert "baseRTT error:" in shown
    assert run(["explain", "mean"]) == 0
    assert capsys.readouterr().out.startswith("mean pkt/s: the column `pkt/s` of a group")
    assert vm.explain("pkt/s").startswith("pkt/s: packets that a flow delivers per second")
    assert run(["explain", "jain"]) == 0
    assert "Jain's fairness index" in capsys.readouterr().out


HEADS = (
    *("delivered pkt", "lost pkt", "rexmit pkt", "control", "first", "last", "packet B", "ACKs"),
    *("queue pkt", "window pkt", "least RTT", "pkt/ACK", "range", "queueing delay", "baseRTT"),
    *("RTT", "loss", "status", "reason", "broken", "sd, %", "mean pkt/s"),
)


@pytest.mark.parametrize("head", HEADS)
def test_the_head_of_a_column_is_explained(head: str) -> None:
    name, _, said = vm.explain(head).splitlines()[0].partition(": ")
    assert name in (head, head.removesuffix(" pkt"))
    assert said


def test_verdicts_and_other_words_are_explained() -> None:
    from paper_checks.summary import VERDICTS

    for verdict in VERDICTS:
        assert vm.explain(verdict).startswith(f"{verdict}: a verdict of the command `paper`")
    assert "bandwidth-delay product" in vm.explain("BDP")
    assert "new --from-trace" in vm.explain("guesses")


def test_what_phase_effects_are_is_explained() -> None:
    said = vm.explain("phase-effects")
    for part in ("always the same flow that loses", "10 %", "docs/scenario.md"):
        assert part in said


def test_names_are_explained_in_python() -> None:
    assert vm.explain("phase-effects").endswith("\nAn assumption of rounds.")
    assert vm.explain("NRMSE").startswith("throughput NRMSE: root mean square error")
    assert vm.explain("minicycle").startswith("minicycle: one Vegas beside one Reno flow")
    with pytest.raises(vm.FieldError, match=r"^name: 'phase-effect' .*mean 'phase-effects'"):
        vm.explain("phase-effect")
    assert vm.explain("phase") == vm.explain("phase-effects")
    with pytest.raises(vm.FieldError, match=r"a law of your own: register_law, --laws"):
        vm.explain("my-own-law")


def test_the_meaning_of_an_assumption_completes_the_sentence_it_holds_if() -> None:
    for name in ASSUMPTIONS:
        assert not vm.explain(name).startswith(f"{name}: it holds if if "), name


def test_keys_of_a_scenario_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert vm.explain("flow.delayed_ack").startswith(
        "delayed_ack, in the table [[flow]] of a scenario file: whether the receiver delays ACKs"
    )
    assert vm.explain("delayed_ack") == vm.explain("flow.delayed_ack")
    assert len(vm.explain("name").splitlines()) == 2  # of a link, and of a flow
    assert vm.explain("delay").startswith("delay, in the table [[link]]")
    assert vm.explain("send_jitter").count("\n") == 0
    assert run(["explain", "jitter", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["keys"]
    assert list(said) == ["flow.send_jitter", "run.start_jitter"]
    assert run(["explain", "bufer"]) == 2
    assert "of a key; did you mean 'buffer'?" in capsys.readouterr().err
    assert run(["explain"]) == 0
    assert "flow.delayed_ack, " in capsys.readouterr().out


def test_each_key_of_a_scenario_has_a_meaning() -> None:
    for part, of in (("link", vm.Link), ("flow", vm.Flow), ("run", vm.Run)):
        fields = [name.replace("service", "class") for name in signature(of).parameters]
        explained = [key.partition(".")[2] for key in keys() if key.startswith(f"{part}.")]
        assert sorted(fields) == sorted(explained)
    assert all(keys().values())


def test_the_list_of_models_is_easy_to_read_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert run(["explain"]) == 0
    out = capsys.readouterr().out
    models, names = out.split("Laws:")
    starts = [line.split()[0] for line in models.splitlines() if line[:1].strip()]
    assert starts == list(EXPLANATIONS)  # a title's next lines are indented
    assert "base-rtt-above-propagation, " in f"{' '.join(names.split())} "
    assert max(map(len, out.splitlines())) <= 40


def test_a_listed_name_with_a_comma_is_in_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    assert ' sd, "sd, %", ' in " ".join(capsys.readouterr().out.split())


def test_every_law_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    assert "Laws: vegas, reno, newreno, sack, tahoe, cubic" in capsys.readouterr().out
    for name in ("vegas", "reno", "newreno", "sack", "tahoe", "cubic"):
        text = vm.explain(name)
        assert text.startswith(f"{name}: a law of congestion control\n")
        source = "reno" if name in ("newreno", "sack", "tahoe") else name  # they grow as Reno does
        assert f"{source}.py, line " in text
        assert "Its function drift: " in text
    said = " ".join(vm.explain("vegas").split())
    assert "0.75 times the window before the loss (paper: 0.75, ns2: 0.75, linux: 0.5" in said
    assert run(["explain", "cubic", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["law"], said["decrease"]) == ("cubic", 0.7)
    assert run(["explain", "cubix"]) == 2
    assert "did you mean 'cubic'" in capsys.readouterr().err


def test_a_law_of_the_user_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("own.py")
    path.write_text(
        "import vegasmodel as vm\n"
        '@vm.register_law("explained-own", delay_based=True, cut=lambda f: f.window / 3)\n'
        "def drift(f):\n"
        '    """Grows by two."""\n'
        "    return 2.0\n"
        'vm.register_law("explained-bare", lambda f: 1.0)\n'
        'vm.register_law("explained-steady", lambda f: 1.0, slow_start="none")\n'
    )
    assert run(["explain", "explained-own", "--laws", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Its function drift: Grows by two." in out
    assert "After a loss the window is what its function `cut` returns." in out
    assert "at the first loss, or when it computes a backlog above `gamma`." in out
    assert "Equations: own.py, line 2." in out
    assert run(["explain", "explained-bare", "--laws", str(path)]) == 0
    out = capsys.readouterr().out
    assert "drift" not in out
    assert "After a loss the window is 0.5 times the window before the loss;" in out
    assert "Its slow start ends at the first loss.\n" in out
    assert run(["explain", "explained-steady", "--laws", str(path)]) == 0
    out = capsys.readouterr().out
    assert "It starts without slow start.\n" in out
    assert "slow start ends" not in out


def test_every_model_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(EXPLANATIONS) == {*vm.MODELS, *SIMULATORS}
    assert run(["explain"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n{model} " in f"\n{text}" for model in vm.MODELS)
    assert run(["explain", "minicycel"]) == 2
    assert "did you mean 'minicycle'" in capsys.readouterr().err


def test_a_simulator_s_name_wins_over_a_key_of_which_it_is_a_part() -> None:
    """``delayed`` was explained as the key ``delayed_ack``."""
    assert vm.explain("delayed").startswith("delayed: the equations of fluid with feedback delay")
    case = vm.Scenario.from_dict(
        {
            "link": [{"capacity": "300 pkt/s", "buffer": "20 pkt"}],
            "flow": [{"law": "reno", "rtt": "60 ms", "variant": "ns2", "access": "400 pkt/s"}],
            "run": {"duration": "20 s", "warmup": "5 s"},
        }
    )
    left_out = vm.simulate(case, "delayed", samples=2).attrs["left_out"].split(", ")
    assert {"whole-stack", "recovery-as-taken"} <= set(left_out)
    assert set(left_out) <= set(EXPLANATIONS["delayed"].hypotheses)


def test_arrivals_says_what_is_queued_where_alpha_is_below_beta() -> None:
    """Equation (6) with alpha alone is not what the model solves for the defaults, 1 and 3."""
    assert "at most to beta_k" in str(vm.explain("arrivals"))
    s = vm.Scenario.from_toml(
        'packet_size = "500 B"\n[[link]]\ncapacity = "1080 pkt/s"\n'
        '[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\ncount = 2\n'
        'start = { first = "0 s", every = "9 s" }'
    )
    p = vm.predict(s, "arrivals")
    x, delay = p.base_rtt - 0.08, p.rtt_mean - 0.08
    backlog = p.throughput * (delay - x)
    assert backlog[1] == pytest.approx(1.0)
    window = 1080.0 * 0.08 + 1.0  # of the first flow alone, which keeps it unless 3 are queued
    assert backlog[0] == pytest.approx(min(3.0, window - p.throughput[0] * (0.08 + x[0])))


def test_the_columns_of_flow_tables_and_sweeps_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ["baseRTT", "RTT", "loss", "ACKs", "rexmit", "delivered", "least RTT", "packet B"]
    for name in [*names, "broken", "uncertainty"]:
        assert run(["explain", name]) == 0
        assert capsys.readouterr().out.startswith(f"{name}: ")


def test_explain_calls_an_assumption_by_one_word_and_names_the_threshold_of_enough_runs() -> None:
    said = vm.explain("enough-runs")
    assert "at most 10 % of it to either side" in said
    assert "An assumption of" in said
    for name in ("enough-runs", "minicycle", "rounds"):
        assert "A hypothesis" not in vm.explain(name)
        assert "Hypotheses" not in vm.explain(name)
