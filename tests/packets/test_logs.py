"""Logs of counters: random ones with known true values, and those once read wrongly."""

import random

import numpy as np
import pandas as pd
import pytest

from tests.packets import logs, samples
from tests.packets.samples import delivered
from vegasmodel.packets import TraceError, read

COUNT = 60  # benchmarks/fuzz_captures.py takes thousands


@pytest.mark.parametrize("kind", logs.KINDS)
def test_random_logs_are_counted_exactly(kind, tmp_path):
    for seed in range(COUNT):
        found = logs.wrong(kind, random.Random(f"{kind} {seed}"), tmp_path / "trace")
        assert not found, seed


def saved(tmp_path, data):
    path = tmp_path / "trace"
    path.write_bytes(data)
    return path


def rows(*lines):
    return ("time,flow,cc,cwnd,bytes_acked,snd_mss\n" + "\n".join(lines) + "\n").encode()


def test_a_segment_size_that_changes_makes_no_packets(tmp_path):
    """14480 B in packets of 1448 B, then packets of 724 B: 20 kB more are 20 kB."""
    data = rows("0,a,vegas,9,0,1448", "1,a,vegas,9,14480,1448", "2,a,vegas,9,28960,724")
    trace = read(saved(tmp_path, data))
    np.testing.assert_allclose(delivered(trace), [20])
    assert "from 724 to 1448 B" in trace.doubts["one-packet-size"]


def test_names_that_agree_in_their_beginning_are_no_one_flow(tmp_path):
    long = "x" * 100
    with pytest.raises(TraceError, match="a name of 1 to 100 characters"):
        read(saved(tmp_path, rows(f"0,{long}a,vegas,9,0,1448", f"1,{long}b,vegas,9,1448,1448")))
    assert read(saved(tmp_path, rows(f"0,{long},vegas,9,0,1", f"1,{long},vegas,9,2,1"))).flows


@pytest.mark.parametrize("before", [b"\t", b"  ", b"\t" * 300])
def test_blanks_before_the_header_of_a_csv_table(before, tmp_path):
    trace = read(saved(tmp_path, before + samples.LINUX_CSV))
    assert trace.data.identical(read(saved(tmp_path, samples.LINUX_CSV)).data)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("rtt_ms", "column 'rtt_ms' is not known and not read; did you mean 'rtt_us'?"),
        ("RTT_us", "column 'RTT_us' is not known and not read; did you mean 'rtt_us'?"),
        ("rtt_us,colour", "column 'colour' is not known and not read"),
        ("a1,b1,c1,d1,e1", "; and 2 more"),
        ("rtt_us,ca_state,ssthresh", None),  # the kernel recipe's own
    ],
)
def test_a_column_that_is_not_known_is_a_doubt(columns, said, tmp_path):
    head = f"time,flow,cwnd,bytes_acked,snd_mss,{columns}"
    values = ",20000" * (columns.count(",") + 1)
    table = f"{head}\n0,a,9,0,1448{values}\n1,a,9,14480,1448{values}\n"
    found = read(saved(tmp_path, table.encode())).doubts.get("known-columns")
    assert found is None if said is None else found.endswith(said)


@pytest.mark.parametrize("cell", ["", "nan", "NaN", " "])
def test_a_window_or_an_rtt_in_a_csv_table_may_be_unknown(cell, tmp_path):
    """Where Vegas's baseRTT is unknown, the smoothed RTT may still be known."""
    head = "time,flow,cwnd,bytes_acked,snd_mss,rtt_us,vegas_baseRTT_us"
    lines = [head, f"0,a,{cell},0,1000,{cell},{cell}", f"1,a,7,1000,1000,{cell},60000",
             f"2,a,{cell},5000,1000,80000,{cell}"]  # fmt: skip
    trace = read(saved(tmp_path, "\n".join(lines).encode()))
    np.testing.assert_allclose(delivered(trace), [5])
    found = [trace.get(name)[:, 0] for name in ("window", "rtt", "base_rtt")]
    np.testing.assert_allclose(found, [[7, np.nan], [np.nan, 0.08], [0.06, np.nan]])


@pytest.mark.parametrize("column", ["time", "bytes_acked", "snd_mss", "total_retrans"])
def test_the_other_numbers_of_a_csv_table_must_be_known(column, tmp_path):
    values = {"time": "1", "flow": "a", "cwnd": "7", "bytes_acked": "9", "snd_mss": "1000"}
    for cell in ("", "nan"):
        row = values | {"total_retrans": "0", column: cell}
        table = f"{','.join(row)}\n{','.join(row.values())}\n"
        with pytest.raises(TraceError, match=f"line 2: found '{cell}', expected "):
            read(saved(tmp_path, table.encode()))


def test_what_pandas_writes_is_read(tmp_path):
    path = tmp_path / "run.csv"
    table = {"time": [0.0, 1.0, 2.0], "flow": ["a"] * 3, "cwnd": [9, 9, 9], "snd_mss": [1000] * 3,
             "bytes_acked": [0, 9000, 18000], "rtt_us": [np.nan, np.nan, 6e4]}  # fmt: skip
    pd.DataFrame(table).to_csv(path, index=False)
    np.testing.assert_allclose(read(path).get("rtt"), [[np.nan], [0.06]])


@pytest.mark.parametrize("twice", ["rtt_us", "time", "flow"])
def test_a_csv_table_with_two_columns_of_one_name_is_refused(twice, tmp_path):
    """One of the two would be read without a word. Columns that are not read may have one name."""
    table = "time,flow,cwnd,bytes_acked,snd_mss,rtt_us,{}\n0,1,9,0,1000,60,{}\n1,1,9,9,1000,70,{}\n"
    with pytest.raises(TraceError, match=f"line 1: found '{twice}', expected each column once"):
        read(saved(tmp_path, table.format(twice, 1, 1).encode()))
    assert read(saved(tmp_path, table.format("x,x", "5,5", "5,5").encode())).flows == ["1"]


def test_the_first_row_of_a_csv_table_gives_only_its_counts(tmp_path):
    """A window and an RTT belong to the interval that ends at their row."""
    head = "time,flow,cwnd,bytes_acked,snd_mss,rtt_us"
    trace = read(saved(tmp_path, f"{head}\n0,a,9,1000,1000,7000\n1,a,8,9000,1000,6000\n".encode()))
    np.testing.assert_allclose(delivered(trace), [8])
    np.testing.assert_allclose(trace.get("window"), [[8]])
    np.testing.assert_allclose(trace.get("rtt"), [[0.006]])


@pytest.mark.parametrize("column", ["rtt_us", "minrtt_us", "vegas_baseRTT_us"])
def test_a_kernel_s_rtt_before_the_first_sample_is_unknown(column, tmp_path):
    """The smoothed RTT is then 0, the baseRTT of its Vegas 2**31 - 1, and its minrtt 2**32 - 1."""
    table = f"time,flow,cwnd,bytes_acked,snd_mss,{column}\n0,a,9,0,1000,0\n"
    before = [0, 2**31 - 1, 2**32 - 1, 2**32 - 2]
    table += "".join(f"{k},a,9,{k}000,1000,{us}\n" for k, us in enumerate(before, start=1))
    trace = read(saved(tmp_path, table.encode()))
    name = "rtt" if column == "rtt_us" else "base_rtt"
    np.testing.assert_allclose(trace.get(name)[:, 0], [np.nan] * 3 + [4294.967294])


@pytest.mark.parametrize("kind", ["iperf3", "ss"])
def test_an_rtt_of_0_in_a_log_is_unknown(kind, tmp_path):
    """The course's RTT is always 40 ms; in one sample the kernel has none yet."""
    run = samples.course()
    data = samples.iperf3(run) if kind == "iperf3" else samples.ss_log(run)
    text = {"iperf3": (b'"rtt": 40000', b'"rtt": 0'), "ss": (b" rtt:40.0/2.1", b" rtt:0/2.1")}[kind]
    at = data.index(text[0], data.index(text[0]) + 1)  # not in the first sample, of ss alone read
    data = data[:at] + data[at:].replace(*text, 1).replace(b"minrtt:22", b"minrtt:0", 1)
    trace = read(saved(tmp_path, data))
    rtt = trace.get("rtt")[:, 0]
    assert np.isnan(rtt).sum() == 1
    assert np.nanmin(rtt) == pytest.approx(0.04)
    if kind == "ss":
        np.testing.assert_array_equal(np.isnan(trace.get("base_rtt")), np.isnan(rtt[:, None]))


def test_a_text_of_another_kind_is_refused_with_the_reason(tmp_path):
    plain = samples.LINUX_CSV
    for columns in (plain, rows("0,a,vegas,9,0,1448", "1,a,vegas,9,1448,1448")):
        assert read(saved(tmp_path, columns.replace(b"\n", b"\r\n"))).flows
        with pytest.raises(TraceError, match="line 1: found 'CR', expected a line break after it"):
            read(saved(tmp_path, columns.replace(b"\n", b"\r")))
    for data in (plain, samples.ss_log(samples.course())):
        for order in ("utf-16-le", "utf-16-be"):
            path = saved(tmp_path, ("\ufeff" + data.decode()).encode(order))
            with pytest.raises(TraceError, match="expected a text in UTF-8; this one seems to be"):
                read(path)


def test_comments_in_a_csv_table(tmp_path):
    """Only where the first column is the time: elsewhere # may begin a name."""
    plain = read(saved(tmp_path, samples.LINUX_CSV))
    lines = samples.LINUX_CSV.splitlines(keepends=True)
    noted = [b"# a program, 3,4\n", b"#\n", *lines[:3], b"# again\n", *lines[3:]]
    assert read(saved(tmp_path, b"".join(noted))).data.identical(plain.data)
    named = b"flow,time,cwnd,bytes_acked,snd_mss\n#1,0,9,0,1448\n#1,1,9,1448,1448\n"
    assert read(saved(tmp_path, b"# one flow\n" + named)).flows == ["#1"]
    with pytest.raises(TraceError, match=r"line 2: found 'time,flow,bytes_acked'.*missing: cwnd"):
        read(saved(tmp_path, b"# a\ntime,flow,bytes_acked\n"))
    with pytest.raises(TraceError, match="line 4: found '# b', expected 5 columns"):
        read(saved(tmp_path, b"# a\n" + named.replace(b"1,1,9", b" b\n#1,1,9")))


def test_a_csv_table_that_ends_within_a_row_says_so(tmp_path):
    whole = rows("0,a,vegas,9,0,1448", "1,a,vegas,9,1448,1448", "2,a,vegas,9,2896,1448")
    plain = read(saved(tmp_path, whole))
    assert "whole-file" not in plain.doubts
    assert read(saved(tmp_path, whole[:-1])).data.identical(plain.data)  # without a line break
    cut = read(saved(tmp_path, whole + b"3,a,vegas,9,43"))
    assert cut.data.identical(plain.data)
    assert "within a line" in cut.doubts["whole-file"]
    with pytest.raises(TraceError, match="line 5: found '3,a,vegas,9,43', expected 6 columns"):
        read(saved(tmp_path, whole + b"3,a,vegas,9,43\n"))


@pytest.mark.parametrize(("acked", "doubted"), [(14480, True), (1, False)])
def test_bytes_per_interval_are_doubted_but_not_an_idle_connection(acked, doubted, tmp_path):
    """A kernel's connection has acknowledged one byte, the SYN, before it has sent any data."""
    rows = "".join(f"{0.5 * k},a,10,{acked},1448\n" for k in range(9))
    trace = read(saved(tmp_path, b"time,flow,cwnd,bytes_acked,snd_mss\n" + rows.encode()))
    assert ("as if it counted each interval" in trace.doubts.get("usual-units", "")) is doubted


def test_a_csv_may_have_the_times_of_a_clock(tmp_path):
    """The flow that is first in the file starts second."""
    head, rows = b"time,flow,cwnd,bytes_acked,snd_mss\n", ""
    for flow, start in (("b", 2), ("a", 0)):
        rows += "".join(f"{{}}{k:02d}.25,{flow},10,{1000 * k},1000\n" for k in range(start, 9))
    trace = read(saved(tmp_path, head + rows.replace("{}", "17000000").encode()))
    assert (trace.begin, trace.edges[-1]) == (0.0, 8.0)
    assert trace.provenance["origin"] == "1700000000.25"
    assert dict(zip(trace.flows, trace.get("first"), strict=True)) == {"a": 0.0, "b": 1.0}
    early = read(saved(tmp_path, head + rows.replace("{}", "2").encode()))
    assert (early.begin, early.edges[-1]) == (200.25, 208.25)  # a run's own time is kept


def test_a_csv_knows_the_congestion_control(tmp_path):
    trace = read(saved(tmp_path, samples.LINUX_CSV))
    assert trace.controls == {"1": "vegas", "b": "vegas"}


def test_what_a_socket_delivers_within_the_first_sample_counts(tmp_path):
    """Socket b has a packet acknowledged 1 ms after its first event, and another one later."""
    line = "  x-1 [0] {:.6f}: tcp_probe: src={}:1 dest=c:2 snd_nxt={:#x} snd_una={:#x} snd_cwnd=9\n"
    events = ((1.0, "a", 0), (1.001, "b", 0), (1.002, "b", 1), (1.1, "a", 1), (1.2, "b", 2))
    text = "".join(line.format(t, who, 14480 + n * 1448, n * 1448) for t, who, n in events)
    trace = read(saved(tmp_path, text.encode()))
    assert trace.flows == ["a:1>c:2", "b:1>c:2"]
    np.testing.assert_allclose(delivered(trace), [1, 2])


FLOW = (
    '<Flow flowId="{}" timeFirstTxPacket="+0ns" timeLastTxPacket="+9e9ns" timeLastRxPacket="+9e9ns"'
    ' delaySum="+1e9ns" txBytes="{}" txPackets="{}" rxPackets="{}" lostPackets="{}"/>'
)


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        (FLOW.format(1, 100, 1, 1, 0) * 2, "each flowId once"),
        (FLOW.format(1, 1000, 10, 11, 0), "rxPackets of at most the 10 sent"),
        (FLOW.format(1, 1000, 10, 5, 11), "lostPackets of at most the 10 sent"),
    ],
)
def test_flow_monitor_files_that_contradict_themselves_are_refused(flows, message, tmp_path):
    xml = f"<FlowMonitor><FlowStats>{flows}</FlowStats></FlowMonitor>".encode()
    with pytest.raises(TraceError, match=message):
        read(saved(tmp_path, xml))


def test_flow_monitor_s_data_packets_are_those_without_the_handshakes(tmp_path):
    """A SYN and an ACK of 52 bytes, and 10 packets of 1000 bytes."""
    place = '<Flow flowId="1" sourceAddress="a" sourcePort="1" destinationAddress="b" '
    place += 'destinationPort="2" protocol="{}"/>'
    for protocol, size in (("6", 1000.0), ("17", 10104 / 12)):
        xml = f"<FlowMonitor><FlowStats>{FLOW.format(1, 10104, 12, 12, 0)}</FlowStats>"
        xml += f"<Ipv4FlowClassifier>{place.format(protocol)}</Ipv4FlowClassifier></FlowMonitor>"
        trace = read(saved(tmp_path, xml.encode()))
        np.testing.assert_allclose(trace.get("packet_size"), [size])


def test_flow_monitor_s_least_rtt_is_that_of_the_handshake(tmp_path):
    """The SYN takes 20 ms, the SYN-ACK 21 ms; the mean delays are 100 ms each."""
    stats = "".join(
        FLOW.format(number, size, 10, 10, 0).replace(" time", f' timeFirstRxPacket="{at}" time', 1)
        for number, size, at in ((1, 10000, "+20ms"), (2, 520, "+21ms"))
    )
    way = '<Flow flowId="{}" sourceAddress="{}" sourcePort="1" destinationAddress="{}" '
    way += 'destinationPort="1" protocol="6"/>'
    places = way.format(1, "a", "b") + way.format(2, "b", "a")
    xml = f"<FlowMonitor><FlowStats>{stats}</FlowStats>"
    xml += f"<Ipv4FlowClassifier>{places}</Ipv4FlowClassifier></FlowMonitor>"
    trace = read(saved(tmp_path, xml.encode()))
    np.testing.assert_allclose(trace.known("rtt"), [[0.2]])
    np.testing.assert_allclose(trace.known("rtt_min"), [[0.041]])


def test_flow_monitor_addresses_are_whole_or_refused(tmp_path):
    place = '<Flow flowId="1" sourceAddress="{}" sourcePort="1" destinationAddress="b" '
    place = place.format("x" * 51) + 'destinationPort="2" protocol="6"/>'
    xml = f"<FlowMonitor><FlowStats>{FLOW.format(1, 100, 1, 1, 0)}</FlowStats>"
    xml += f"<Ipv4FlowClassifier>{place}</Ipv4FlowClassifier></FlowMonitor>"
    with pytest.raises(TraceError, match="sourceAddress of at most 50"):
        read(saved(tmp_path, xml.encode()))


def test_a_simulators_clock_never_goes_back(tmp_path):
    lines = samples.ns3_ascii(samples.course(packets=20)).split(b"\n")
    with pytest.raises(TraceError, match="does not decrease"):
        read(saved(tmp_path, b"\n".join([lines[40], lines[0]])))


def test_one_sample_is_too_few(tmp_path):
    path = tmp_path / "t.csv"
    head = "time,flow,cwnd,bytes_acked,snd_mss\n"
    for rows, found in (("", "no samples"), ("1,a,9,0,1000\n", "samples at one time")):
        path.write_text(head + rows)
        with pytest.raises(TraceError, match=f"found '{found}', expected samples at two times"):
            read(path)
