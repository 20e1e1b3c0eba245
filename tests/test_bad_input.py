"""Every kind of bad file or argument: exit status 2, and one line that names the field."""

import copy
import shlex
import tomllib
from pathlib import Path

import pytest

from vegasmodel import FieldError, Scenario
from vegasmodel.command_line.commands import run
from vegasmodel.packets import read

BASE = {
    "top": 'name = "base"\npacket_size = "500 B"\n',
    "link": '[[link]]\nname = "L"\ncapacity = "1080 pkt/s"\nbuffer = "20 pkt"\n',
    "flow": '[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\n',
    "run": '[run]\nduration = "60 s"\nwarmup = "20 s"\n',
}

# kind of mistake: (section, text that replaces or extends it, what the error line must name)
FILES = {
    "unknown top key": ("top", "+colour = 3", "colour"),
    "misspelt link key": ("link", "+bufer = 3", "buffer"),
    "misspelt flow key": ("flow", "+alhpa = 3", "alpha"),
    "misspelt run key": ("run", "+seeds = 3", "seed"),
    "no link": ("link", "=", "link"),
    "no flow": ("flow", "=", "flow"),
    "no link in a list": ("link", "=link = []", "link: [] is not allowed; at least one"),
    "link is no list": ("link", "=link = 3", "link"),
    "flow is one table": ("flow", '=[flow]\nlaw = "reno"', "flow: "),
    "no capacity": ("link", '=[[link]]\nname = "L"', "link 1, key capacity"),
    "no law": ("flow", '=[[flow]]\nrtt = "80 ms"', "flow 1, key law"),
    "no rtt": ("flow", '=[[flow]]\nlaw = "reno"', "flow 1, key rtt"),
    "unknown law": ("flow", '=[[flow]]\nlaw = "vegs"\nrtt = "1 s"', "vegas"),
    "unknown variant": ("flow", '+variant = "ns3"', "flow 1, key variant"),
    "capacity without unit": ("link", "=[[link]]\ncapacity = 1080", "link 1, key capacity"),
    "capacity in seconds": ("link", '=[[link]]\ncapacity = "1 s"', "link 1, key capacity"),
    "capacity zero": ("link", '=[[link]]\ncapacity = "0 pkt/s"', "link 1, key capacity"),
    "capacity infinite": ("link", '=[[link]]\ncapacity = "inf"', "link 1, key capacity"),
    "capacity not a number": ("link", '=[[link]]\ncapacity = "nan pkt/s"', "link 1, key capacity"),
    "capacity beyond all": ("link", '=[[link]]\ncapacity = "1e300 pkt/s"', "link 1, key capacity"),
    "capacity next to none": (
        "link",
        '=[[link]]\ncapacity = "1e-300 pkt/s"',
        "link 1, key capacity",
    ),
    "rtt beyond all": ("flow", '=[[flow]]\nlaw = "reno"\nrtt = "1e300 s"', "flow 1, key rtt"),
    "starts beyond all": ("flow", '+count = 2\nstart = { every = "1e300 s" }', "flow 1, key start"),
    "duration beyond all": ("run", '=[run]\nduration = "1e300 s"', "run.duration"),
    "count a huge float": ("flow", "+count = 1e12", "flow 1, key count"),
    "negative buffer": ("link", '=[[link]]\ncapacity="1 pkt/s"\nbuffer="-1 pkt"', "buffer"),
    "loss over one": ("link", "+loss = 1.5", "link 1, key loss"),
    "delay beyond the rtt": ("link", '+delay = "50 ms"', "flow 1, key rtt"),
    "rtt below transmission": ("flow", '=[[flow]]\nlaw="reno"\nrtt="1 us"', "flow 1, key rtt"),
    "rtt negative": ("flow", '=[[flow]]\nlaw = "reno"\nrtt = "-1 ms"', "flow 1, key rtt"),
    "rtt range reversed": (
        "flow",
        '=[[flow]]\nlaw="reno"\nrtt={uniform=["2 s","1 s"]}',
        "rtt.uniform: ['2 s', '1 s'] is not allowed; two times, the shorter one first",
    ),
    "rtt range of one": (
        "flow",
        '=[[flow]]\nlaw="reno"\nrtt={uniform=["2 s"]}',
        "rtt.uniform: ['2 s'] is not allowed; a list of two times",
    ),
    "unknown discipline": ("link", '+queue = { discipline = "codel" }', "queue.discipline"),
    "queue without discipline": ("link", "+queue = { ecn = true }", "queue.discipline"),
    "red without thresholds": ("link", '+queue = { discipline = "red" }', "min_threshold"),
    "red thresholds crossed": (
        "link",
        '+queue = {discipline="red", min_threshold="9 pkt", max_threshold="5 pkt"}',
        "max_threshold",
    ),
    "red key on droptail": ("link", '+queue = {discipline="droptail", ecn=true}', "queue.ecn"),
    "rd k zero": (
        "link",
        '+queue = { discipline = "rd", k = 0 }',
        "queue.k: 0 is not allowed; a number such as 1.5, at least 1e-09",
    ),
    "drops of nobody": ("link", '+drops = [{ flow = "x", packets = [1] }]', "drops"),
    "drops no list": ("link", "+drops = 3", "drops"),
    "drops negative": ("link", '+drops = [{ flow = "vegas", packets = [-1] }]', "drops"),
    "count zero": ("flow", "+count = 0", "flow 1, key count"),
    "count a fraction": ("flow", "+count = 1.5", "flow 1, key count"),
    "count huge": ("flow", "+count = 999999999", "flow 1, key count"),
    "beta below alpha": ("flow", "+alpha = 4\nbeta = 2", "beta"),
    "alpha zero": ("flow", "+alpha = 0", "flow 1, key alpha"),
    "decrease over one": ("flow", "+decrease = 1.2", "flow 1, key decrease"),
    "start after the end": ("flow", '+start = "61 s"', "flow 1, key start"),
    "start at the end": ("flow", '+start = "60 s"', "flow 1, key start"),
    "stop at start": ("flow", '+start = "9 s"\nstop = "9 s"', "flow 1, key stop"),
    "stop before start": ("flow", '+start = "9 s"\nstop = "8 s"', "flow 1, key stop"),
    "arrivals without size": (
        "flow",
        '+arrivals = { poisson = "5 1/s" }',
        "arrivals: { poisson = '5 1/s' } needs count = 1 and a finite size",
    ),
    "arrivals unknown": ("flow", '+arrivals = { bursts = "5 1/s" }', "flow 1, key arrivals"),
    "pareto shape one": (
        "flow",
        '+size = {pareto = {mean="3 kB", shape=1.0}}',
        "size.pareto.shape: 1.0 is not allowed; a number such as 1.5, more than 1",
    ),
    "pareto mean zero": (
        "flow",
        '+size = {pareto = {mean="0 kB", shape=1.3}}',
        "flow 1, key size.pareto.mean",
    ),
    "unknown path": ("flow", '+path = ["M"]', "flow 1, key path"),
    "path twice": ("flow", '+path = ["L", "L"]', "flow 1, key path: ['L', 'L'] is"),
    "unknown direction": ("flow", '+direction = "up"', "flow 1, key direction"),
    "unknown class": ("flow", '+class = "gold"', "flow 1, key class"),
    "over_estimate negative": ("flow", '+over_estimate = "-1 ms"', "over_estimate"),
    "bool as text": ("flow", '+delayed_ack = "yes"', "flow 1, key delayed_ack"),
    "same name twice": (
        "flow",
        '+[[flow]]\nlaw = "vegas"\nrtt = "80 ms"',
        "'vegas' is the name of two flows; give",
    ),
    "name of a flow of a group": (
        "flow",
        '+count = 3\n[[flow]]\nname = "vegas[1]"\nlaw = "vegas"\nrtt = "80 ms"',
        "flow 2, key name: 'vegas[1]' is the name of two flows; give",
    ),
    "same link name twice": (
        "link",
        '+[[link]]\nname = "L"\ncapacity = "5 pkt/s"',
        "'L' is the name of two links",
    ),
    "name over two lines": ("flow", '+name = "a\\nb"', "flow 1, key name"),
    "warmup beyond duration": ("run", '=[run]\nduration = "5 s"\nwarmup = "5 s"', "run.warmup"),
    "duration zero": ("run", '=[run]\nduration = "0 s"', "run.duration"),
    "seed negative": ("run", "+seed = -1", "run.seed"),
    "runs zero": ("run", "+runs = 0", "run.runs"),
    "start_jitter beyond duration": ("run", '+start_jitter = "61 s"', "run.start_jitter"),
    "defaults unknown": ("run", '+ns2_defaults = "2.36"', "run.ns2_defaults"),
    "packet size zero": ("top", '=packet_size = "0 B"', "packet_size"),
    "no toml": ("top", "=name = [[[", "bad.toml"),
    "a number of 6000 digits": ("run", "+seed = " + "9" * 6000, "thousands of digits"),
    "deeply nested": ("top", "=x = " + "[" * 5000, "bad.toml"),
}


def _refused(kind: str, folder: Path, *, before: str = "") -> None:
    """The command ``predict`` refuses the file ``kind``; ``before`` precedes its ``[[flow]]``."""
    section, text, _ = FILES[kind]
    parts = dict(BASE)
    parts[section] = text[1:] + "\n" if text[0] == "=" else parts[section] + text[1:] + "\n"
    parts["flow"] = before + parts["flow"]
    path = folder / "bad.toml"
    path.write_text("".join(parts.values()))
    assert run(["predict", str(path)]) == 2


@pytest.mark.parametrize("kind", FILES)
def test_bad_file(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _refused(kind, tmp_path)
    _one_line(capsys, FILES[kind][2])
    assert [p.name for p in tmp_path.iterdir()] == ["bad.toml"]  # nothing written


@pytest.mark.parametrize("kind", [k for k, (_, _, named) in FILES.items() if "flow 1" in named])
def test_the_line_names_the_group_by_its_place(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mistakes in a group again, after a group without mistakes."""
    _refused(kind, tmp_path, before='[[flow]]\nname = "sound"\nlaw = "reno"\nrtt = "200 ms"\n')
    _one_line(capsys, FILES[kind][2].replace("flow 1", "flow 2"))


GOOD = ["ratio", "--capacity", "1080pkt/s", "--rtt", "60ms", "--buffer", "20pkt", "vegas", "reno"]


def ratio(option: str, value: str) -> list[str]:
    """The command ``GOOD`` with another value of one of its options."""
    place = GOOD.index(option) + 1
    return [*GOOD[:place], value, *GOOD[place + 1 :]]


ARGUMENTS = {
    "no such file": (["predict", "none.toml"], "none.toml"),
    "a folder as file": (["predict", "."], "."),
    "unknown model": (["predict", "SCENARIO", "--model", "minicicle"], "minicycle"),
    "unknown command": (["predikt"], "predikt"),
    "unknown option": ([*GOOD, "--speed", "3"], "--speed"),
    "missing option": (["ratio", "vegas", "reno"], "--capacity"),
    "missing argument": (["predict"], "SCENARIO"),
    "bad capacity": (ratio("--capacity", "fast"), "--capacity: 'fast' is not allowed"),
    "bad rtt": (ratio("--rtt", "60"), "--rtt: '60' is not allowed"),
    # a packet alone takes 1/5 s
    "rtt too short": (
        ratio("--capacity", "5pkt/s"),
        "--rtt: '60ms' is not allowed; at least 210.08",
    ),
    "bad buffer": (ratio("--buffer", "20 Mbit/s"), "--buffer: '20 Mbit/s' is not allowed"),
    "bad packet size": ([*GOOD, "--packet-size", "0 B"], "--packet-size"),
    "bad loss": ([*GOOD, "--loss", "2"], "--loss"),
    "bad law": ([*GOOD, "bbr"], "law"),
    "bad flow option": ([*GOOD, "vegas:alpha"], "alpha"),
    "bad flow key": ([*GOOD, "vegas:alfa=3"], "alfa"),
    "bad flow value": ([*GOOD, "vegas:alpha=many"], "alpha"),
    "picture nowhere": ([*GOOD, "--plot", "no/such/folder/p.png"], "--plot"),
    "picture of no kind": ([*GOOD, "--plot", "p.exe"], "--plot"),
    "unknown engine": (["measure", "SCENARIO", "--engine", "omnet"], "--engine"),
    "number without a unit": (["ratio", "--capacity", "250", "vegas", "reno"], "a unit is needed"),
    "capacity beyond all": (["equilibrium", "--capacity", "1e200pkt/s", "--json"], "--capacity"),
    "capacity next to none": (["arrivals", "--capacity", "1e-200pkt/s", "--json"], "--capacity"),
    "ratio beyond all": (ratio("--rtt", "1e300 s"), "--rtt: '1e300 s' is not allowed"),
    "alpha beyond all": (["arrivals", "--alpha", "1e300"], "--alpha"),
    "one bad alpha": (
        ["equilibrium", "--capacity", "9pkt/s", "--alpha", "1,1,-2"],
        "--alpha, value 3: ",
    ),
    "no such variant": (["equilibrium", "--capacity", "9pkt/s", "--variant", "ns3"], "--variant"),
    "k beyond all": (
        ["rd", "--rate", "1e9", "--delay", "1", "--capacity", "9pkt/s", "--k", "1e308"],
        "--k",
    ),
    "part of a flow": (
        ["rd", "--rate", "2.5", "--delay", "1", "--capacity", "9pkt/s"],
        "--rate-flows: 2.5 is not allowed; a whole number",
    ),
    "two alphas for five": (
        ["arrivals", "--n", "5", "--alpha", "3,4"],
        "--alpha: 2 values are not allowed; one value, or one for each of the 5 flows",
    ),
    "no RTT for Linux": (
        ["equilibrium", "--capacity", "9pkt/s", "--variant", "linux"],
        '--rtt: missing; a time such as "80 ms" is needed: variant linux',
    ),
    "max-error negative": (["compare", "SCENARIO", "--max-error", "-1"], "--max-error"),
    "max-error infinite": (["compare", "SCENARIO", "--max-error", "inf"], "--max-error"),
    "a model that compare lacks": (["compare", "SCENARIO", "--model", "vegas"], "--model: 'vegas'"),
    "first windows in the wrong order": (
        ["basins", "SCENARIO", "--windows", "9..3"],
        "--windows: '9..3' is not allowed; LOW..HIGH with 1 <= LOW <= HIGH",
    ),
    "numbers without the unit of the step": (
        ["sweep", "SCENARIO", "--out", "s.zarr", "--over", "link.buffer=10:60:10ms"],
        "link.buffer: '10' has no unit beside values in ms; write 10ms, or 10pkt",
    ),
    "numbers without the unit of the last": (
        ["sweep", "SCENARIO", "--out", "s.zarr", "--over", "link.loss=0,0.1,5 %"],
        "'0.1' has no unit beside values in %; write 0.1%, or all values as fractions",
    ),
    "an end without the unit of the other": (
        [
            "design",
            "SCENARIO",
            "--solve",
            "link.buffer",
            "--for",
            "delay=9ms",
            "--between",
            "1:9ms",
        ],
        "--between: '1' has no unit beside values in ms; write 1ms, or 1pkt",
    ),
    "a map of a scenario": (
        ["map", "good.toml", "--out", "m.png"],
        "MAP: 'good.toml' is not allowed; one of starvation, buffer-alpha, rtt-bias, linux-order; "
        "for a map of a scenario: sweep with --over twice, and --plot",
    ),
    "no folder for a sweep": (
        ["sweep", "SCENARIO", "--over", "link.buffer=1:9:1"],
        "--out: missing; the name of a folder; or --csv FILE for a table, or --json to print",
    ),
    "a file whose name is not ASCII": (["predict", "Köln.toml"], "Köln.toml: 'Köln.toml' cannot"),
    "a trace whose name is not ASCII": (
        ["inspect", "Köln.tr"],
        "Köln.tr: 'Köln.tr' cannot be read; there is no such file",
    ),
    "no option that is needed": (
        ["rd", "--delay", "1"],
        "--rate-flows: missing; number of flows of class R",
    ),
    "no scenario": (
        ["predict"],
        "SCENARIO.toml: missing; usage: vegasmodel predict [OPTIONS] SCENARIO.toml",
    ),
    "a value that is not ASCII": (ratio("--rtt", "½ s"), "--rtt: '½ s' is not allowed"),
    "a seed of no drawing": (
        ["paper", "--seed", "2"],
        "--seed: 2 is not allowed; only with --draw",
    ),
    "a seed of no random points": (
        ["sweep", "SCENARIO", "--over", "link.buffer=1:9:1", "--csv", "s.csv", "--seed", "2"],
        "--seed: 2 is not allowed; only with --draw",
    ),
    "texts beside a drawing": (["paper", "--texts", ".", "--draw", "2"], "--draw"),
    "texts beside a report": (["paper", "--texts", ".", "--html", "r.html"], "--html"),
    "max-error no number": (["compare", "SCENARIO", "--max-error", "x"], "--max-error"),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_bad_argument(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, named = ARGUMENTS[kind]
    (tmp_path / "good.toml").write_text("".join(BASE.values()))
    monkeypatch.chdir(tmp_path)
    assert run([a.replace("SCENARIO", "good.toml") for a in arguments]) == 2
    _one_line(capsys, named)
    assert [p.name for p in tmp_path.iterdir()] == ["good.toml"]


def _one_line(capsys: pytest.CaptureFixture[str], named: str) -> None:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert named in err
    assert "Traceback" not in err
    assert len(err) < 400


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("law = reno", 'law = "reno"'),
        ("  rtt = 60 ms  # empty", 'rtt = "60 ms"'),
        ("rtt=60ms", 'rtt="60ms"'),
        ("variant = [", None),
        ("alpha = 1.2.3", None),
        ('law = "reno', None),
    ],
)
def test_text_without_quotes_is_shown_with_quotes(line: str, quoted: str | None) -> None:
    with pytest.raises(FieldError, match="is not TOML") as said:
        Scenario.from_toml(f"[[flow]]\n{line}\ncount = 2\n")
    hint = f"; text needs quotes: write {quoted} in line 2"
    assert str(said.value).endswith(hint) if quoted else "quotes" not in str(said.value)


@pytest.mark.parametrize("heads", [("[flow]", "[flow]"), ("[flow]", "[[flow]]")])
def test_single_brackets_that_are_no_toml_are_named(
    heads: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    flows = "".join(f'{head}\nlaw = "vegas"\nrtt = "40 ms"\n' for head in heads)
    path.write_text(f'[[link]]\ncapacity = "250 pkt/s"\n{flows}')
    assert run(["predict", str(path)]) == 2
    assert capsys.readouterr().err.endswith("; line 3: write [[flow]], not [flow]\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[flow]]", "[[flows]]", "key flows: "),
        (
            "[[link]]",
            "runs = 3\n[[link]]",
            "key runs: 'runs' is no key here; it is a key of [run]\n",
        ),
        (
            "[[flow]]",
            "rtt = '60 ms'\n[[flow]]",
            "link 1, key rtt: 'rtt' is no key here; it is a key of [[flow]]\n",
        ),
        (
            'law = "vegas"',
            'law = "vegas"\nloss = 0.01',
            "flow 1, key loss: 'loss' is no key here; it is a key of [[link]]\n",
        ),
        (
            'law = "vegas"',
            'law = "vegas"\nmin_threshold = 5',
            "flow 1, key min_threshold: 'min_threshold' is no key here; it is a key of a link's "
            'queue with discipline = "red"\n',
        ),
        (
            "[[flow]]",
            'queue = { discipline = "droptail", k = 2 }\n[[flow]]',
            "link 1, key queue.k: 'k' is no key here; it is a key of a link's queue with "
            'discipline = "rd"\n',
        ),
        # the abbreviation max_p is RED's; max_probability is the only key that begins with it
        (
            "[[flow]]",
            'queue = { discipline = "red", min_threshold = 5, max_threshold = 9, max_p = 0.1 }\n'
            "[[flow]]",
            "link 1, key queue.max_p: 'max_p' is no key here; did you mean 'max_probability'?\n",
        ),
        (
            "[[flow]]",
            'queue = { discipline = "red", max = 9 }\n[[flow]]',  # two keys begin with it
            "link 1, key queue.max: 'max' is no key here; allowed keys: min_threshold, ",
        ),
        (
            'law = "vegas"',
            'law = "vegas"\nstart = "700 s"',
            "flow 1, key start: '700 s' is not allowed; less than 600 s, the duration of the run "
            "(run.duration)\n",
        ),
        # values of TOML that Python writes in another way: True, datetime.date(1979, 5, 27)
        ('rtt = "40 ms"', "rtt = true", "flow 1, key rtt: true is not allowed; "),
        ('rtt = "40 ms"', "rtt = 1979-05-27", "flow 1, key rtt: 1979-05-27 is not allowed; "),
        ('rtt = "40 ms"', "rtt = [07:32:00]", "flow 1, key rtt: [07:32:00] is not allowed; "),
        ('rtt = "40 ms"', "rtt = { uniform = false }", "flow 1, key rtt.uniform: false is not "),
        ('rtt = "40 ms"', "rtt = { a = [true] }", "flow 1, key rtt: { a = [true] } is not "),
        # values that fail a check between keys had no unit: stop 0.005, rtt 0.0005 and beta 3.0
        (
            'law = "vegas"',
            'law = "vegas"\nstart = "8 ms"\nstop = "5 ms"',
            "flow 1, key stop: '5 ms' is not allowed; more than 0.008 s, the start, and at most ",
        ),
        (
            'rtt = "40 ms"',
            'rtt = "500 us"',
            "flow 1, key rtt: '500 us' is not allowed; at least ",
        ),
        (
            'law = "vegas"',
            'law = "vegas"\nalpha = 5',
            "flow 1, key beta: '3 pkt' is not allowed; at least alpha, 5 pkt",
        ),
        (
            'law = "vegas"',
            'law = "vegas"\nbbr = 3',
            "flow 1, key bbr: 'bbr' is no key here; allowed keys: law, rtt, ",
        ),
        (
            'law = "vegas"',
            'law = "vegas"\narrivals = { poisson = "5 1/s" }',
            "flow 1, key arrivals: { poisson = '5 1/s' } needs count = 1 and a finite size; "
            "give the key size\n",
        ),
        (
            "[[flow]]",
            "queue = { min_threshold = 5 }\n[[flow]]",
            "link 1, key queue.discipline: missing; one of droptail, red, rd\n",
        ),
        (
            'law = "vegas"',
            'law = "vegas"\nover_estimate = "none"',
            "flow 1, key over_estimate: 'none' is not allowed; a number is needed: a time such as "
            '"80 ms", at least 0 s and at most 1e+07 s; or "measured"\n',
        ),
        (
            'rtt = "40 ms"',
            'rtt = { "at most" = "9 ms", min = true }',
            "flow 1, key rtt: { 'at most' = '9 ms', min = true } is not allowed; ",
        ),
        ('rtt = "40 ms"', 'rtt = "40 xx"', "flow 1, key rtt: '40 xx' is not allowed; a time"),
        ('rtt = "40 ms"', "", "flow 1, key rtt: missing; this key is required\n"),
        (
            "[[link]]",
            "[link]",
            "key link: { capacity = '250 pkt/s' } is not allowed; "
            "a list of tables: write [[link]], not [link]\n",
        ),
        (
            "[[flow]]",
            '[link.drops]\nflow = "vegas"\npackets = [1]\n[[flow]]',
            "link 1, key drops: { flow = 'vegas', packets = [1] } is not allowed; "
            "a list of tables: write [[link.drops]], not [link.drops]\n",
        ),
    ],
)
@pytest.mark.parametrize("command", ["predict", "compare"])
def test_a_mistake_in_a_file_names_the_file_and_no_option(
    command: str, old: str, new: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    text = '[[link]]\ncapacity = "250 pkt/s"\n[[flow]]\nlaw = "vegas"\nrtt = "40 ms"\n'
    path.write_text(text.replace(old, new))
    assert run([command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"vegasmodel: {path}, {said}")
    assert "--" not in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("count = true", "flow 1, count: true is not allowed; a whole number"),
        ("start = 1979-05-27", "flow 1, start: 1979-05-27 is not allowed; a time"),
        ('size = { "a b" = false }', "flow 1, size: { 'a b' = false } is not allowed; "),
    ],
)
def test_without_a_file_values_are_shown_as_in_one(line: str, said: str) -> None:
    """They were shown in Python's notation, such as datetime.date(1979, 5, 27)."""
    text = f'[[link]]\ncapacity = "250 pkt/s"\n[[flow]]\nlaw = "vegas"\nrtt = "40 ms"\n{line}\n'
    for read_it, given in ((Scenario.from_toml, text), (Scenario.from_dict, tomllib.loads(text))):
        with pytest.raises(FieldError) as told:
            read_it(given)
        assert str(told.value).startswith(said)
        assert str(copy.copy(told.value)) == str(told.value)
        assert str(told.value.of("x")).startswith(f"x: {said.split(': ')[1]}")


def test_what_is_no_dictionary_has_a_name() -> None:
    """The message began with a colon."""
    with pytest.raises(
        FieldError, match=r"^scenario: 5 is not allowed; a dictionary with the keys"
    ):
        Scenario.from_dict(5)  # type: ignore[arg-type]


def test_with_a_trace_a_mistake_in_the_file_names_it_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = str(Path(__file__).parent / "data" / "ns2_events.tr")
    path = tmp_path / "s.toml"
    path.write_text('[[link]]\n[[flow]]\nlaw = "vegas"\nrtt = "40 xx"\n[[flow]]\nlaw = "reno"\n')
    assert run(["compare", str(path), "--trace", trace]) == 2
    assert f"{path}, flow 1, key rtt: '40 xx'" in capsys.readouterr().err
    path.write_text(path.read_text().replace("xx", "ms"))
    assert run(["compare", str(path), "--trace", trace, "--runs", "0"]) == 2
    assert "vegasmodel: --runs: 0" in capsys.readouterr().err


def test_a_file_that_is_no_text_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xff\xfe\x00")
    assert run(["predict", str(path)]) == 2
    said = "'s.toml' cannot be read as text; a scenario is a text file in UTF-8\n"
    assert capsys.readouterr().err == f"vegasmodel: {path}: {said}"


@pytest.mark.parametrize("kind", ["ns2", "csv", "parquet"])
@pytest.mark.parametrize("command", ["predict", "compare", "measure"])
def test_a_trace_in_place_of_a_scenario_is_named(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(__file__).parent / "data" / "ns2_events.tr"
    if kind == "csv":
        path = tmp_path / "own.csv"
        path.write_text("time,flow,cwnd,bytes_acked,snd_mss\n0,a,1,0,1448\n1,a,2,1448,1448\n")
    if kind == "parquet":
        source, path = path, tmp_path / "run.parquet"
        read(source).write(path)
    assert run([command, str(path), "--json"]) == 2
    quoted = shlex.quote(str(path))  # a path with a space can be pasted into a shell
    advice = f"`vegasmodel new SCENARIO.toml --from-trace {quoted}` writes one for it\n"
    said = f"'{path.name}' is a trace, not a scenario file; {advice}"
    assert capsys.readouterr().err == f"vegasmodel: {path}: {said}"


def test_an_empty_file_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.toml"
    path.write_text("# nothing yet\n")
    assert run(["predict", str(path)]) == 2
    assert "'s.toml' has no keys; a scenario has links and flows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            ["predict", "a.toml", "-model", "rounds"],
            "'-model'. Options have two dashes: '--model'.",
        ),
        (["predict", "a.toml", "-model=rounds"], "'-model'. Options have two dashes: '--model'."),
        (
            ["simulate", "a.toml", "--start-jitter", "60 s"],
            "'--start-jitter'. In a scenario file it is a key of [run].",
        ),
        (
            ["predict", "a.toml", "--buffer=9"],
            "'--buffer'. In a scenario file it is a key of [[link]].",
        ),
        (
            ["basins", "a.toml", "--runs", "5"],
            "'--runs'. It makes one run from each random start; --starts says how many.",
        ),
        (
            ["predict", "a.toml", "--set", "flow.reno.law=cubic"],
            "'--set'. 'vegasmodel sweep FILE --over FIELD=VALUE,VALUE' predicts with other values.",
        ),
        (["-help"], "'-help'. Options have two dashes: '--help'."),
        (["predict", "a.toml", "-x"], "'-x'."),
    ],
)
def test_an_option_with_one_dash(
    line: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line) == 2
    assert capsys.readouterr().err == f"vegasmodel: No such option {said}\n"


def test_a_file_whose_name_begins_with_a_dash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "-my=1.toml").write_text("".join(BASE.values()))
    monkeypatch.chdir(tmp_path)
    assert run(["predict", "-my=1.toml"]) == 2
    _one_line(capsys, "'-my'. For the file, write './-my=1.toml'.")
    assert run(["predict", "./-my=1.toml"]) == 0
