"""The registry of laws: names, files and packages that register laws, and who knows them."""

import inspect
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import vegasmodel as vm
from tests.laws.scenes import scenario
from vegasmodel import laws
from vegasmodel.command_line.commands import run
from vegasmodel.fields.errors import FieldError
from vegasmodel.scenario import LAWS, Link


def test_scenario_files_name_a_registered_law():
    text = """
    [[link]]
    capacity = "1080 pkt/s"
    buffer = "20 pkt"
    [[flow]]
    law = "own-reno"
    rtt = "80 ms"
    """
    assert vm.Scenario.from_toml(text).flows[0].law == "own-reno"
    with pytest.raises(FieldError, match="own-reno"):
        vm.Scenario.from_toml(text.replace("own-reno", "own-remo"))


def test_a_law_of_your_own_cannot_be_measured_in_ns2():
    """ns-2 and ns-3 may have a law of that name: both have Veno, which vegasmodel does not run."""
    flows = [vm.Flow("own-reno", "60 ms"), vm.Flow("vegas", "60 ms")]
    scenario = vm.Scenario([Link(1080.0, buffer=20)], flows)
    said = (
        r"'own-reno' cannot be measured in ns-2; vegasmodel runs only vegas, .*cubic there; "
        r"give compare a trace"
    )
    with pytest.raises(FieldError, match=said):
        vm.compare(scenario, models=["equilibrium"])


MINE = """import vegasmodel as vm

@vm.register_law("mine")
def drift(f):
    return 1.0
"""


SCENARIO = '[[link]]\ncapacity = "1080 pkt/s"\nbuffer = "20 pkt"\n[[flow]]\nrtt = "80 ms"\nlaw = '


def test_a_file_registers_laws_for_the_command_line(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "s.toml").write_text(SCENARIO + '"mine"')
    arguments = ["predict", str(tmp_path / "s.toml"), "--model", "equilibrium"]
    assert run(arguments) == 2
    assert "or a law of your own (register_law, --laws)" in capsys.readouterr().err
    run([*arguments, "--laws", str(tmp_path / "mine.py"), "--json"])
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert found["reason"].startswith("no closed form has the law mine;")


@pytest.mark.parametrize("engine", ["ns2", "ns3"])
def test_measure_names_the_file_and_the_key_of_a_law_that_it_cannot_run(engine, tmp_path, capsys):
    (tmp_path / "s.toml").write_text(SCENARIO + '"own-reno"')
    assert run(["measure", str(tmp_path / "s.toml"), "--engine", engine]) == 2
    said = f"s.toml, flow 1, key law: 'own-reno' cannot be measured in ns-{engine[-1]}; "
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        (
            MINE + "print(alpha)",
            6,
            "NameError: name 'alpha' is not defined; expected a Python file that runs and calls",
        ),
        (MINE.replace("return", "retrun"), 5, "SyntaxError: invalid syntax"),
        (MINE + "raise SystemExit(3)", 6, "SystemExit: 3"),
        (
            MINE.replace('"mine"', '"mine", decreas=0.5'),
            3,
            "'decreas' is not allowed; a property of a law",
        ),
        (MINE.replace("1.0", "1 / (f.rtt - f.rtt)"), 3, "law mine: drift: .* was raised; it must"),
        (MINE.replace("1.0", "f.rrt"), 3, "law mine: drift: .*f.py, line 5"),
        ("x = 1", None, "laws: .*f.py' is not allowed; .* calls vegasmodel.register_law"),
        (None, None, "laws: .*No such file or directory"),
        (MINE.replace("mine", "reno"), 3, "law: 'reno' is the name of a law"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line(text, line, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("f.py").write_text(text)
    begin = "" if line is None else rf"f\.py, line {line}: .*"
    with pytest.raises(FieldError, match=f"^{begin}{fault}") as told:
        laws.register_file("f.py")
    assert "\n" not in str(told.value)


def test_two_files_cannot_give_one_law(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(MINE)
    laws.register_file(tmp_path / "a.py")
    laws.register_file(tmp_path / "a.py")  # again is nothing new
    with pytest.raises(FieldError, match=r"b\.py.*of other names than those of .*a\.py: mine"):
        laws.register_file(tmp_path / "b.py")


@pytest.fixture
def _package(tmp_path, monkeypatch):
    """An installed package that offers laws, as pip would install it."""
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[vegasmodel.laws]\nmine = theirs_one\nother = theirs_one\ngone = theirs_two\n"
        "ends = theirs_three\n"
    )
    (tmp_path / "theirs_one.py").write_text(MINE)
    (tmp_path / "theirs_three.py").write_text('raise SystemExit("no licence")')
    monkeypatch.syspath_prepend(tmp_path)
    laws.discovery.installed.cache_clear()
    yield
    laws.discovery.installed.cache_clear()
    sys.modules.pop("theirs_one", None)


@pytest.mark.usefixtures("_package")
def test_an_installed_package_offers_laws():
    assert {"mine", "other", "gone"} <= set(laws.names())
    assert "theirs_one" not in sys.modules  # nobody has asked for it
    assert vm.Scenario.from_toml(SCENARIO + '"mine"').flows[0].law == "mine"
    said = {
        "other": "the module theirs_one of an installed package should register it, and does not "
        "(its entry point in the group vegasmodel.laws names this module)",
        "gone": "the module theirs_two of an installed package should register it, but raised "
        "ModuleNotFoundError: No module named 'theirs_two'",
        "ends": "the module theirs_three of an installed package should register it, but raised "
        "SystemExit: no licence",
    }
    for name, reason in said.items():
        with pytest.raises(FieldError) as told:
            vm.Scenario.from_toml(f'{SCENARIO}"{name}"')
        assert str(told.value) == f"flow 1, law: '{name}' cannot be loaded; {reason}"
        with pytest.raises(FieldError, match=f"'{name}' cannot be loaded; the module theirs_"):
            vm.explain(name)


def test_every_closed_form_says_that_it_does_not_know_the_law():
    case = scenario("vegas", "own-reno")
    for found in vm.predict_all(case):
        assert found.applicable == (found.model in ("fluid", "rounds")), found.model
        if not found.applicable:
            assert "own-reno" in found.reason
    with pytest.raises(ValueError, match="own-reno"):  # decisions at every instant need thresholds
        vm.limit_cycle(case, "fluid", losers="growing")


def test_ns2_has_an_agent_for_every_law_of_the_package():
    from vegasmodel.packets.ns2_agents import AGENTS

    assert set(AGENTS) == {law.name for law in laws.BUILT_IN}


def test_packet_drivers_refuse_the_law():
    from vegasmodel.packets import ns2_support, ns3_support

    case = scenario("vegas", "own-reno")
    for support in (ns2_support, ns3_support):
        with pytest.raises(FieldError, match="own-reno"):
            support.check(case)


def test_what_cannot_be_a_law_is_one_line():
    def drift(f):
        return 1.0

    for arguments, data, field in (
        (("reno", drift), {}, "'reno' is the name of a law of the package; choose another name"),
        (("", drift), {}, "law"),
        (("mine", drift), {"decreas": 0.5}, "decreas"),
        (("mine", drift), {"decrease": 2.0}, "decrease"),
        (("mine", drift), {"recovery": "never"}, "recovery"),
        (("mine", 3.0), {}, "drift"),
        (("mine", np.vectorize(drift)), {}, r"drift: .*\(def or lambda\)"),
        (("mine", drift), {"decreas": 0.5}, "did you mean 'decrease'"),
        (("mine", drift), {"cut": lambda f: -1.0}, "cut: -1.0 is not allowed; it must return"),
        (("mine", drift), {"cut": lambda f: 1.0, "decrease": 0.5}, "decrease: 0.5 .* the function"),
        (("mine", drift), {"slow_start": ""}, "slow_start: '' is not allowed; one of until loss"),
    ):
        with pytest.raises(FieldError, match=field):
            vm.register_law(*arguments, **data)


def test_an_editor_can_complete_the_properties_of_a_law():
    """They are the arguments of ``register_law``, and its help and the page describe each."""
    properties = set(inspect.signature(vm.register_law).parameters) - {"name", "drift", "unknown"}
    assert properties == set(laws.PROPERTIES)
    page = (Path(__file__).parents[2] / "docs" / "write-your-own-law.md").read_text()
    for name in properties:
        assert f"- ``{name}``: " in inspect.getdoc(vm.register_law)
        assert f"- `{name}`: " in page


@pytest.mark.parametrize(
    "name", ["My Law!", "my law", " own", "a/b", "-x", "a=b", "a.b", "", "a" * 61]
)
def test_the_name_of_a_law_has_letters_digits_and_hyphens(name):
    """A law names flows, and stands in texts such as ``ratio:a/b=1`` and ``flow.a.alpha``."""
    with pytest.raises(FieldError, match=r"^law: .* is not allowed; .*such as my-law$"):
        vm.register_law(name, lambda f: 1.0)


@pytest.mark.parametrize("name", ["reno", "Reno", "CUBIC"])
def test_capital_letters_do_not_make_the_name_of_a_built_in_law_another(name):
    capitals = "" if name == "reno" else f", {name.lower()}, but for capital letters"
    match = f"^law: '{name}' is the name of a law of the package{capitals}; choose another name"
    with pytest.raises(FieldError, match=match):
        vm.register_law(name, lambda f: 1.0)
    assert name.lower() in vm.laws.names()
    assert name.lower() == name or name not in vm.laws.names()


@pytest.mark.parametrize("name", ["my-law", "my_law_2", "Größe", "a" * 60])
def test_a_law_may_have_a_usual_name(name):
    vm.register_law(name, lambda f: 1.0)
    case = scenario(name, "reno").replace({"flow.one.name": name})
    assert case.replace({f"flow.{name}.alpha": 2.0}).flows[0].alpha == 2.0


def test_an_unknown_law_has_the_most_similar_name():
    with pytest.raises(FieldError, match="did you mean 'own-reno'"):
        laws.find("own-renno")


def test_the_registry_is_the_scenario_s_list():
    """Messages list the laws in this order, and the simulators number them in it."""
    order = ("vegas", "reno", "newreno", "sack", "tahoe", "cubic")
    assert tuple(law.name for law in laws.BUILT_IN) == LAWS == order


@pytest.mark.parametrize("law", laws.BUILT_IN, ids=lambda law: law.name)
@pytest.mark.parametrize("stack", ["paper", "ns2", "linux"])
def test_rounds_runs_the_rules_of_the_law_s_own_file(law, stack):
    """The rules in plain Python on a plain object, against the compiled rules on a record."""
    from vegasmodel.engines.rounds import laws as senders
    from vegasmodel.engines.rounds.flows import mechanisms
    from vegasmodel.engines.rounds.state import FLOW
    from vegasmodel.stacks import STACKS

    if law.packets is None:
        pytest.skip("its drift is called by address")
    record = np.zeros(1, FLOW)
    mechanisms(law, STACKS[stack], record)
    flow = record[0]
    given = {"cwnd": 10.25, "ssthresh": 5.0, "growth": 0.1, "next": 20.0, "acked": 10.0}
    for key, value in given.items():
        flow[key] = value
    plain = SimpleNamespace(**{name: flow[name].item() for name in FLOW.names if name != "kept"})
    assert senders.acks_to_change(flow) == law.packets.acks_to_change(plain)
    senders.grow(flow, 3.0, 0.0)
    law.packets.upon_acks(plain, 3.0)
    assert flow["cwnd"] == plain.cwnd != given["cwnd"]


def test_no_law_s_recovery_is_taken_for_another_s_in_silence():
    """With the papers' law all recover alike, with a remark; with ns-2's each has its own."""
    alike = [vm.predict(scenario("vegas", law), "fluid") for law in ("reno", "tahoe")]
    np.testing.assert_array_equal(alike[0].throughput, alike[1].throughput)
    for found in alike:
        assert not {a.name: a.holds for a in found.assumptions}["recovery-as-taken"]
    own = [vm.predict(scenario("vegas", law, "ns2"), "fluid") for law in ("reno", "tahoe")]
    assert own[1].throughput[1] < 0.97 * own[0].throughput[1]
    assert all({a.name: a.holds for a in f.assumptions}["recovery-as-taken"] for f in own)
