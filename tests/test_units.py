"""Conversion of text with units."""

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from vegasmodel.fields import units
from vegasmodel.fields.errors import FieldError, show
from vegasmodel.fields.rules import nearest
from vegasmodel.fields.units import format_rate, format_time, parse


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.5 Mbit/s", "rate", 187.5),  # 1.5e6 / 8 / 1000
        ("1080pkt/s", "rate", 1080.0),
        ("1 Gbps", "rate", 125_000.0),
        ("125 kB/s", "rate", 125.0),
        ("13.2 ms", "time", 0.0132),
        ("2 us", "time", 2e-6),
        ("1 min", "time", 60.0),
        ("20 pkt", "packets", 20.0),
        ("20", "packets", 20.0),
        (20, "packets", 20.0),
        ("31.25 KB", "packets", 31.25),
        ("inf", "packets", math.inf),
        ("30 kB", "packets", 30.0),
        ("10 %", "fraction", 0.1),
        (0.25, "fraction", 0.25),
        ("50 1/s", "frequency", 50.0),
        ("500 B", "bytes", 500.0),
        ("1 KiB", "bytes", 1024.0),
    ],
)
def test_parse(text: object, kind: str, value: float) -> None:
    got = parse(text, kind, field="x", packet_size=1000.0, infinite=kind == "packets")
    assert got == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("80", "time"),
        (80, "time"),
        ("80 m", "time"),
        ("80 pkt", "time"),
        ("-1 ms", "time"),
        ("nan s", "time"),
        ("inf", "time"),
        ("1e999 s", "time"),
        ("1/0 s", "time"),
        ("9**9**9**9 s", "time"),
        ("2^9999999 s", "time"),
        ("__import__('os')", "time"),
        ("", "time"),
        ("s" * 10_000, "time"),
        ("ms 3 ((", "time"),
        (True, "packets"),
        (None, "packets"),
        ([1], "packets"),
        ("5 ms", "packets"),
        ("10 %", "packets"),
        ("3 s", "rate"),
        ("3 pkt", "rate"),
        (10**400, "packets"),
        ("1.5 Mbit/s", "fraction"),
    ],
)
def test_refused(text: object, kind: str) -> None:
    with pytest.raises(FieldError) as caught:
        parse(text, kind, field="link[0].field", packet_size=1000.0)
    message = str(caught.value)
    assert message.startswith("link 1, field: ")
    assert "\n" not in message
    assert len(message) < 300


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.text(max_size=30), st.sampled_from(["time", "rate", "packets", "fraction"]))
def test_any_text_is_read_or_refused(text: str, kind: str) -> None:
    try:
        value = parse(text, kind, field="f", packet_size=500.0)
    except FieldError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert math.isfinite(value)
        assert value >= 0


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(1.0, 1e5))
def test_bits_and_packets_agree(rate: float, size: float) -> None:
    bits = parse(f"{rate * size * 8!r} bit/s", "rate", field="f", packet_size=size)
    assert bits == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 2 pkt", "one number"),  # pint multiplies: 2 packets
        ("1;2 pkt", "one number"),
        ("1.5 10 pkt", "one number"),
        ("1__0 pkt", "one number"),
        ("1:3 pkt", "one number"),  # pint multiplies here, too, and leaves out the sign
        ("5 pkt 3", "one number"),
        ("5 < 6", "one number"),
        ("5 pkt; 3", "one number"),
        ("5 pkt (3)", "one number"),
        ("5 pkt # 3", "one number"),
        ("5 ± 1 pkt", "one number"),  # pint would keep the 5
        ("5 pkt[0]", "one number"),
        ("pkt", "a number is needed"),  # pint reads 1 packet
        ("%", "a number is needed"),
        ("inf 5", "a number is needed"),
    ],
)
def test_a_quantity_is_one_number_and_its_unit(text: str, said: str) -> None:
    with pytest.raises(FieldError, match=said):
        parse(text, "packets", field="f", infinite=True)


@pytest.mark.parametrize("text", ["1:30 min", "0:05 min", "60 ms:2", "3//2 s", "3%2 s", "5 ms 3"])
def test_no_number_of_a_time_is_multiplied_or_left_out_in_silence(text: str) -> None:
    with pytest.raises(FieldError, match="one number and its unit"):
        parse(text, "time", field="f")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12 kB / (4 ms)", "rate", 3000.0),
        ("1 kB per ms", "rate", 1000.0),
        ("50 1 / ms", "frequency", 50_000.0),
        ("2 s + 3e-1 s", "time", 2.3),
        ("1/4 s", "time", 0.25),
    ],
)
def test_sums_products_and_quotients_of_units_are_read(text: str, kind: str, value: float) -> None:
    size = 1000.0 if kind == "rate" else None
    assert parse(text, kind, field="f", packet_size=size) == pytest.approx(value, rel=1e-12)


def test_formats() -> None:
    assert format_rate(125.0, 1000.0) == "125 pkt/s (1 Mbit/s)"
    assert format_time(0.0132) == "13.2 ms"
    assert format_time(math.inf) == "inf"


NUMBERS = st.one_of(
    st.integers(0, 10**6).map(str),
    st.floats(0, 1e6).map(repr),
    st.decimals(0, 1e4, places=3).map(str),
)
UNITS = [*units._common_units(), "1/ms", "kB/ms", "packets/min"]  # the last three: pint's alone


@settings(max_examples=400, derandomize=True, deadline=None)
@given(NUMBERS, st.sampled_from(UNITS), st.sampled_from(list(units.KINDS)), st.floats(1.0, 65535.0))
def test_the_table_of_units_and_pint_agree_to_the_last_bit(
    number: str, unit: str, kind: str, size: float
) -> None:
    """Pint is an independent reference; fingerprints of stored runs are hashes of these floats."""
    text = f"{number} {unit}".strip()
    for packet_size in (None, size):
        try:
            want = units._by_pint(text, kind, "f", "allowed", packet_size)
        except FieldError:
            with pytest.raises(FieldError):
                units._convert(text, kind, "f", "allowed", packet_size)
        else:
            assert units._convert(text, kind, "f", "allowed", packet_size) == want


def test_every_unit_of_the_table_is_one_of_pints() -> None:
    for unit, (scale, base) in units._common_units().items():
        found = units._registry().Quantity(f"1 {unit}".strip())
        assert found.to(base.strip("%") or "dimensionless").magnitude == pytest.approx(
            scale, rel=1e-15
        )


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.floats(0, 1e12), st.sampled_from(list(units.KINDS)))
def test_what_is_written_is_read_as_the_same_value(value: float, kind: str) -> None:
    assert parse(units.write(value, kind), kind, field="f") == value


def test_written_quantities_are_short() -> None:
    assert units.write(0.08, "time") == "80 ms"
    assert units.write(0.0132, "time") == "13.2 ms"
    assert units.write(0.1999, "time") == "0.1999 s"  # 199.9 ms is another float
    assert units.write(2e-6, "time") == "2 us"
    assert units.write(1080.0, "rate") == "1080 pkt/s"
    assert units.write(math.inf, "packets") == "inf"


def test_which_texts_wait_for_a_packet_size() -> None:
    assert units.needs_packet_size("10 Mbit/s", "rate")
    assert units.needs_packet_size("30 kB", "packets")
    assert not units.needs_packet_size("10 pkt/s", "rate")
    assert not units.needs_packet_size("500 B", "bytes")
    assert not units.needs_packet_size("nonsense", "rate")


@pytest.mark.parametrize(
    ("text", "kind", "meant"),
    [
        ("75mB", "buffer", "75MB"),
        ("20 mbit/s", "rate", "20 Mbit/s"),
        ("20 mbps", "rate", "20 Mbps"),
        ("12 mB / (4 ms)", "rate", "12 MB / (4 ms)"),
        ("2 millibyte", "bytes", "2 Mbyte"),
    ],
)
def test_parts_of_a_bit_are_refused_with_what_was_meant(text: str, kind: str, meant: str) -> None:
    with pytest.raises(FieldError, match=re.escape(f"did you mean '{meant}'?")) as said:
        parse(text, kind, field="f", packet_size=1000.0)
    assert str(said.value).count("did you mean") == 1
    parse(meant, kind, field="f", packet_size=1000.0)
    assert parse("3 ms", "time", field="f") == 0.003  # there, m is right


@pytest.mark.parametrize("text", ["20 Mb", "20MB", "20 Mbit", "30 pkt"])
def test_an_amount_is_no_rate(text: str) -> None:
    with pytest.raises(FieldError, match=f"did you mean '{text}/s'"):
        parse(text, "rate", field="f", packet_size=1000.0)
    parse(f"{text}/s", "rate", field="f", packet_size=1000.0)
    with pytest.raises(FieldError) as said:
        parse("20 ms", "rate", field="f", packet_size=1000.0)
    assert "did you mean" not in str(said.value)


@pytest.mark.parametrize("text", ["20 nb/s", "20 ubps", "20 microbit/s"])
def test_a_nanobit_is_refused_without_a_guess(text: str) -> None:
    """Nobody who types n or u means M."""
    with pytest.raises(FieldError, match="small part of a bit") as said:
        parse(text, "rate", field="f", packet_size=1000.0)
    assert "did you mean" not in str(said.value)
    assert '"1.5 Mbit/s"' in said.value.allowed


@pytest.mark.parametrize(
    ("kind", "text", "meant"),
    [
        ("buffer", "20MS", "20 ms"),
        ("time", "60 MS", "60 ms"),
        ("rate", "3 MBit/s", "3 Mbit/s"),
        ("rate", "1 gbps", "1 Gbps"),
    ],
)
def test_wrong_capitals_of_a_unit_get_a_hint(kind: str, text: str, meant: str) -> None:
    with pytest.raises(FieldError, match=f"did you mean '{meant}'"):
        parse(text, kind, field="x", packet_size=500.0)
    with pytest.raises(FieldError) as said:
        parse("1 parsec", kind, field="x", packet_size=500.0)
    assert "did you mean" not in str(said.value)


@pytest.mark.parametrize("text", ["1.5 BDP", "1.5bdp", "1.5 Bdp", "3 bdp / 2"])
def test_a_bdp_may_have_small_letters(text: str) -> None:
    assert parse(text, "bdp", field="x") == 1.5
    link = vm.Link(100.0, buffer=text)
    assert vm.Scenario([link], [vm.Flow("reno", "80 ms")]).links[0].buffer == pytest.approx(12.0)


@pytest.mark.parametrize(("text", "kind"), [("2 pkt", "bytes"), ("2 PKT", "bytes"), ("2s", "rate")])
def test_no_hint_names_text_that_is_refused_as_well(text: str, kind: str) -> None:
    with pytest.raises(FieldError) as said:
        parse(text, kind, field="x")
    assert "did you mean" not in str(said.value)


@pytest.mark.parametrize(("text", "meant"), [("20 MBIT/S", "20 Mbit/s"), ("20 Mbit", "20 Mbit/s")])
def test_a_hint_does_not_wait_for_the_packet_size(text: str, meant: str) -> None:
    with pytest.raises(FieldError, match=f"did you mean '{meant}'"):
        parse(text, "rate", field="x")


def test_an_error_shows_a_value_without_rounding_error() -> None:
    """50 times 1e-6 is 4.9999999999999996e-05."""
    assert str(FieldError("start", 50 * 1e-6, "less")) == "start: 5e-05 is not allowed; less"
    assert show(123456.789012345) == "123456.789012345"
    assert show(60.0) == "60.0"
    assert show(1.7976931348623157e308) == "1.7976931348623157e+308"


NUMBER = r"\d+\.?\d*(?:e[+-]?\d+)?"


@pytest.mark.parametrize(
    ("ask", "upper"),
    [
        (lambda: vm.Flow("vegas", 0.1, alpha=3.0000001, beta=3.0), False),
        (lambda: vm.Red(5.0000001, 5.0), False),
        (lambda: vm.Run(duration=60.0000001, warmup=60.0000002), True),
        (lambda: vm.Run(duration=60.0000001, start_jitter=60.0000002), True),
        (lambda: vm.Link(100, loss=1.0000000000000002), True),
        (lambda: vm.Link(100, loss="1.0000000000000002"), True),
        (lambda: vm.equilibrium.minicycle.throughput(9, 1, 1, decrease=1.0000000000000002), True),
        (lambda: flow(start=9.0000002, duration=9.0000001), True),
        # the link takes 1.04 s / 7, and the two access links a hundredth of that
        (lambda: flow(rtt=1.01 * 1.04 / 7.0 - 1e-8, capacity=7.0), False),
    ],
)
def test_a_refused_value_does_not_meet_the_bound_of_the_message(
    ask: Callable[[], object], upper: bool
) -> None:
    """A beta of 3 with an alpha of 3.0000001 was refused: "at least alpha, 3 pkt"."""
    with pytest.raises(FieldError) as told:
        ask()
    shown, _, said = str(told.value).partition(": ")[2].partition(" is not allowed; ")
    unit = 1e-3 if shown.endswith(" ms'") else 1.0
    value = unit * float(re.findall(NUMBER, shown)[0])
    bounds = re.findall(f"(?:least|most|than)[a-z_, ]* ({NUMBER})( ms)?", said)
    numbers = [float(number) * (1e-3 if ms else 1.0) for number, ms in bounds]
    assert value > max(numbers) if upper else value < min(numbers)


def flow(
    rtt: float = 0.1, start: float = 0.0, duration: float = 60.0, capacity: float = 100.0
) -> vm.Scenario:
    run = vm.Run(duration=duration, warmup=1.0)
    return vm.Scenario([vm.Link(capacity)], [vm.Flow("vegas", rtt, start=start)], run=run)


def test_wrong_capitals_of_a_word_get_a_hint() -> None:
    assert nearest("CUBIC", ("vegas", "cubic")) == "; did you mean 'cubic'?"
    assert nearest("BDP", ("vegas", "cubic")) == ""


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (71183.4, 4, "71183"),
        (9999.6, 4, "10000"),
        (-123456.0, 3, "-123456"),
        (1234.5, 2, "1234"),
        (12.3456, 4, "12.35"),
        (0.0000123456, 4, "1.235e-05"),
        (2.5e7, 4, "2.5e+07"),
    ],
)
def test_tables_write_rates_of_fast_links_without_an_exponent(
    value: float, digits: int, text: str
) -> None:
    assert units.format_number(value, digits) == text
    assert format_rate(125_000.0, 1000.0) == "125000 pkt/s (1 Gbit/s)"


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("flow[0].rtt", "flow 1, key rtt"),
        ("link[1].queue.max_threshold", "link 2, key queue.max_threshold"),
        ("link[0].drops[2].packets", "link 1, drops 3, key packets"),
        ("flow[9]", "flow 10"),
        ("run.seed", "key run.seed"),
        ("capacity[0]", "key capacity[0]"),  # of an array in Python
    ],
)
def test_messages_count_the_tables_of_a_file_from_1(field: str, said: str) -> None:
    """Earlier some messages counted the tables from 0, and others from 1."""
    error = FieldError(field, 5, "something else").in_file("a.toml")
    assert str(error) == f"a.toml, {said}: 5 is not allowed; something else"
    assert error.field == field
