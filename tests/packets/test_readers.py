"""Readers against connections whose course is known, and against ns-2's own counters."""

import random
import re
import subprocess
from pathlib import Path

import dpkt
import numpy as np
import pytest

from tests.packets import samples
from tests.packets.samples import delivered
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import TraceError, read

RUN = samples.course(packets=2000, window=20, rate=500.0, delay=0.005)
FULL_RTT = 20 / 500.0  # window over rate, once the pipe is full
BASE_RTT = 4 * 0.005 + 1 / 500.0


def saved(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "trace"
    path.write_bytes(data)
    return path


def total(trace, name):
    return np.nansum(trace.get(name), axis=0)


def later(trace, name):
    """Mean over a time in which the path is full."""
    part = trace.data["time"].values / trace.edges[-1]
    return np.nanmean(trace.get(name)[(part > 0.5) & (part < 0.95)], axis=0)


@pytest.mark.parametrize("name", samples.FORMATS)
def test_every_sample_is_found_by_its_content(name, tmp_path):
    for sample in samples.every_format()[name]:
        path = saved(tmp_path, sample)
        assert read(path).data.identical(read(path, name).data)


@pytest.mark.parametrize("name", sorted({*samples.FORMATS} - {"pcap", "parquet"}))
def test_a_text_may_begin_with_a_byte_order_mark(name, tmp_path):
    """Excel writes one before a CSV table."""
    for sample in samples.every_format()[name]:
        plain = read(saved(tmp_path, sample))
        marked = read(saved(tmp_path, b"\xef\xbb\xbf" + sample))
        assert marked.data.identical(plain.data)


@pytest.mark.parametrize("pack", [samples.pcap, samples.pcapng])
@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_capture_of_a_fixed_window(pack, v6, at, tmp_path):
    trace = read(saved(tmp_path, pack(samples.frames(RUN, at, v6=v6))))
    assert trace.engine == "pcap"
    assert len(trace.flows) == 1
    assert trace.flows[0].endswith("5001")
    np.testing.assert_allclose(delivered(trace), 2000)
    np.testing.assert_allclose(later(trace, "throughput"), 500, rtol=0.01)
    # at the receiver the RTT comes in two parts, one by timestamps of 1 ms
    np.testing.assert_allclose(
        later(trace, "rtt"), FULL_RTT, rtol=0.001 if at == "sender" else 0.03
    )
    if at == "sender":
        np.testing.assert_allclose(np.nanmin(trace.get("rtt_min")), BASE_RTT, atol=2e-6)
        np.testing.assert_allclose(later(trace, "window"), 20)
        np.testing.assert_allclose(total(trace, "sent"), 2000)
        assert total(trace, "retransmits") == 0
    else:  # what was lost before cannot be seen there
        assert [trace.get(name) for name in ("sent", "retransmits", "window")] == [None] * 3
        assert "captured-at-the-sender" in trace.doubts


def test_capture_agrees_with_a_dpkt_loop_on_bytes(tmp_path):
    """Segments are dropped, repeated and reordered at random; a loop with dpkt counts new bytes."""
    rng = random.Random(4)
    packets = []
    for time, frame in samples.frames(RUN):
        if rng.random() < 0.95:
            packets.append((time, frame))
        if rng.random() < 0.03:
            packets.append((time + 0.001, frame))
    packets.sort(key=lambda pair: pair[0])
    packets = [
        packet
        for packet in packets
        if dpkt.ethernet.Ethernet(packet[1]).data.data.sport == samples.SPORT
    ]
    path = saved(tmp_path, samples.pcap(packets))  # data only: no ACK tells what arrived
    trace = read(path)
    new = set()
    with path.open("rb") as file:
        for _, buffer in dpkt.pcap.Reader(file):
            new.add(dpkt.ethernet.Ethernet(buffer).data.data.seq)
    assert {"acknowledgements-seen", "captured-at-the-sender"} <= set(trace.doubts)
    np.testing.assert_allclose(delivered(trace), len(new))


def test_no_rtt_across_a_retransmission(tmp_path):
    frames = samples.frames(samples.course(packets=3, window=1))
    data, ack = frames[2][1], frames[3][1]
    again = data[:58] + (9_000_000).to_bytes(4) + data[62:]  # its timestamp: sent later
    packets = [*frames[:2], (1.0, data), (3.0, again), (3.1, ack)]
    packets += [(3.1, frames[4][1]), (3.1 + BASE_RTT, frames[5][1])]
    trace = read(saved(tmp_path, samples.pcap(packets)))
    assert total(trace, "retransmits") == 1
    np.testing.assert_allclose(np.nanmax(trace.get("rtt")), BASE_RTT, atol=2e-6)


def test_a_capture_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path):
    whole = samples.pcap(samples.frames(RUN))
    trace = read(saved(tmp_path, whole[: len(whole) // 2 + 7]))
    assert 950 < delivered(trace)[0] < 1050


def test_ns3_ascii(tmp_path):
    trace = read(saved(tmp_path, samples.ns3_ascii(RUN)))
    assert trace.flows == ["10.0.0.1:40000>10.0.0.2:5001"]
    np.testing.assert_allclose(delivered(trace), 2000)
    np.testing.assert_allclose(later(trace, "rtt"), FULL_RTT, rtol=1e-3)
    np.testing.assert_allclose(later(trace, "window"), 20)
    bottleneck = trace.links.index("1/1")
    # of 20 packets in flight, 10 (delay times rate) are on the way, one in service, 9 wait
    np.testing.assert_allclose(later(trace, "queue")[bottleneck], 9, rtol=0.01)
    np.testing.assert_allclose(later(trace, "served")[bottleneck], 500, rtol=0.01)
    assert trace.get("packet_size")[0] == 1052


@pytest.mark.parametrize("one_line", [False, True])
def test_ss_log(one_line, tmp_path):
    trace = read(saved(tmp_path, samples.ss_log(RUN, one_line=one_line)))
    assert trace.flows == ["10.0.0.1:40000>10.0.0.2:5001"]
    np.testing.assert_allclose(later(trace, "throughput"), 500, rtol=0.01)
    assert set(trace.get("window").ravel()) == {20.0}
    np.testing.assert_allclose(trace.get("rtt"), 0.040)
    np.testing.assert_allclose(trace.get("base_rtt"), 0.022)


def test_ss_log_with_iso_times(tmp_path):
    text = samples.ss_log(samples.course(), every=0.1).decode()
    seconds = iter(range(100))
    text = re.sub(
        r"^\d+\.\d+$",
        lambda _: f"2026-01-01T00:00:{next(seconds):02}.250000000+00:00",
        text,
        flags=re.MULTILINE,
    )
    trace = read(saved(tmp_path, text.encode()))
    np.testing.assert_allclose(np.diff(trace.edges), 1.0)


def test_flow_monitor():
    trace = read(samples.DATA / "flowmon.xml")
    # flows 2 and 4 of the file are the ACKs of 1 and 3
    assert trace.flows == ["10.1.0.10:49153>10.1.0.14:5000", "10.1.0.2:49153>10.1.0.6:5000"]
    np.testing.assert_allclose(delivered(trace), [3392, 9930])
    np.testing.assert_allclose(total(trace, "loss"), [193, 1023])
    rtt = [441.13 / 3392 + 68.7846 / 3388, 1652.73 / 9930 + 201.583 / 9929]
    np.testing.assert_allclose(trace.get("rtt")[0], rtt, rtol=1e-6)
    # of what was dropped the file tells bytes and packets: no SYN is among them
    np.testing.assert_array_equal(trace.get("packet_size"), [203036 / 193, 1076196 / 1023])


def test_flow_monitor_refuses_entities(tmp_path):
    bomb = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "cc">]><FlowMonitor>&b;</FlowMonitor>'
    with pytest.raises(TraceError, match="document types"):
        read(saved(tmp_path, bomb))


def test_ns2_events_agree_with_ns2s_own_counters():
    """``ns2_two_flows.tcl 0.6`` printed these: packets, repeats, highest ACK, ACKs."""
    trace = read(samples.DATA / "ns2_events.tr")
    assert trace.flows == ["1", "2"]
    np.testing.assert_array_equal(total(trace, "sent"), [55, 50])
    np.testing.assert_array_equal(total(trace, "retransmits"), [4, 8])
    np.testing.assert_array_equal(total(trace, "acks"), [45, 37])


def test_ns2_events_that_the_file_has_twice_are_one_clear_line(tmp_path):
    """Twice the packets gave twice the capacity and twice the buffer."""
    lines = (samples.DATA / "ns2_events.tr").read_bytes().splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if i > 500 and line.startswith(b"+"))
    lines.insert(place, lines[place])
    with pytest.raises(TraceError, match=rf"line {place + 2}: found .*, expected each event once$"):
        read(saved(tmp_path, b"".join(lines)))


def test_ns2_events_agree_with_a_plain_loop():
    """First deliveries, drops and the largest queue, straight from the definition."""
    seen, lost, waiting, most = {"1": set(), "2": set()}, {"1": 0, "2": 0}, 0, 0
    busy = {}
    for text in (samples.DATA / "ns2_events.tr").read_text().splitlines():
        kind, time, at, to, what, _, _, fid, _, target, seq, _ = text.split()
        if kind == "r" and what == "tcp" and to == target.split(".")[0]:
            seen[fid].add(seq)
        lost[fid] += kind == "d"
        if (at, to) == ("2", "3") and kind != "r":
            if busy.get("time") != time:
                most = max(most, waiting)
            busy["time"] = time
            waiting += 1 if kind == "+" else -1
    trace = read(samples.DATA / "ns2_events.tr")
    np.testing.assert_allclose(delivered(trace), [len(seen["1"]), len(seen["2"])])
    np.testing.assert_array_equal(total(trace, "loss"), [lost["1"], lost["2"]])
    assert trace.get("queue_max")[:, trace.links.index("2-3")].max() == most


@pytest.mark.ns2
def test_a_fresh_ns2_run_agrees_with_its_counters(tmp_path):
    """Packets sent, sent again, highest ACK (from 0) and ACKs of a Vegas and a Reno source."""
    script = samples.DATA / "ns2_two_flows.tcl"
    done = subprocess.run(
        ["ns", str(script), "12"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    counters = np.array([line.split() for line in done.stdout.splitlines()], dtype=int).T
    events, variables = read(tmp_path / "out.tr"), read(tmp_path / "var.tr")
    np.testing.assert_array_equal(total(events, "sent"), counters[0])
    np.testing.assert_array_equal(total(events, "retransmits"), counters[1])
    np.testing.assert_array_equal(total(events, "acks"), counters[3])
    np.testing.assert_array_equal(total(variables, "retransmits"), counters[1])
    np.testing.assert_allclose(delivered(variables), counters[2] + 1)
    # the RTT that ns-2 traces is the same, in ticks of 10 ms
    np.testing.assert_allclose(later(events, "rtt"), later(variables, "rtt"), atol=0.01)


def test_ns2_variables_agree_with_ns2s_own_counters():
    trace = read(samples.DATA / "ns2_variables.tr")
    assert trace.flows == ["0.0>4.0", "1.0>5.0"]
    np.testing.assert_array_equal(total(trace, "retransmits"), [4, 8])
    np.testing.assert_allclose(delivered(trace), [44, 28])  # highest ACK 43 and 27, from 0


def test_ns2_gives_the_mean_and_the_least_rtt_of_each_interval(tmp_path):
    """After 1000 s an interval is longer than the 20 ms between three of these RTTs."""
    seen = {0.01: 0.05, 0.02: 0.04, 0.03: 0.06, 1000.01: 0.07, 1000.02: 0.05, 1000.03: 0.06}
    lines = "".join(f"{time:.5f}  0  0  4  0  rtt_ {rtt:.3f}\n" for time, rtt in seen.items())
    trace = read(saved(tmp_path, lines.encode()))
    least, mean = trace.get("rtt_min")[:, 0], trace.get("rtt")[:, 0]
    np.testing.assert_allclose(least[~np.isnan(least)], [0.04, 0.05])
    np.testing.assert_allclose(mean[~np.isnan(mean)], [0.05, 0.06])


def test_ns2_bottleneck_alone(tmp_path):
    """The trace has only events of the bottleneck, so packets count when they leave it."""
    lines = (samples.DATA / "ns2_events.tr").read_bytes().splitlines(keepends=True)
    path = saved(tmp_path, b"".join(line for line in lines if line.split()[2:4] == [b"2", b"3"]))
    trace = read(path)
    whole = read(samples.DATA / "ns2_events.tr")
    assert np.all(np.abs(delivered(trace) - delivered(whole)) <= 1)  # one may be on its way
    np.testing.assert_array_equal(total(trace, "loss"), total(whole, "loss"))
    assert trace.get("rtt") is None


def test_ns2_hierarchical_addresses(tmp_path):
    text = (samples.DATA / "ns2_events.tr").read_text()
    moved = re.sub(r" (\d)\.0 (\d)\.0 (\d+ \d+)$", r" 0.1.\1.0 0.1.\2.0 \3", text, flags=re.M)
    trace, whole = read(saved(tmp_path, moved.encode())), read(samples.DATA / "ns2_events.tr")
    assert trace.data.identical(whole.data)


def test_many_flows_get_fewer_bins_and_too_many_are_refused(tmp_path):
    def lines(flows):
        return "".join(
            f"r {i * 1e-3:.3f} 0 1 tcp 1000 ------- {i} 0.{i} 1.{i} 0 {i}\n" for i in range(flows)
        ).encode()

    trace = read(saved(tmp_path, lines(3000)))
    np.testing.assert_allclose(delivered(trace), np.ones(3000))
    with pytest.raises(TraceError, match="at most 10000 flows"):
        read(saved(tmp_path, lines(20_000)))


NS2 = b"r 1 0 1 tcp 9 - 1 0.0 1.0 0 0\n"
REFUSED = {
    "nan": (b"# ns-2\n" + NS2 + b"+ nan 0 1 tcp 1000 ------- 1 0.0 1.0 0 0\n", "line 3", "12"),
    "minus": (NS2 + b"r -1 0 1 tcp 9 - 1 0.0 1.0 0 1\n", "line 2", "time"),
    # 19 digits are no flat address, and one level none of a hierarchy: "0.0" would come twice
    "address": (NS2 + b"r 2 0 1 tcp 9 - 1 %s.0 1.0 1 1\n" % (b"0" * 19), "line 2", "12 columns"),
    "back": (NS2 + b"r 0.9 0 1 tcp 9 - 1 0.0 1.0 1 1\n", "line 2", "decrease"),
    "huge": (b"r 1e300 0 1 tcp 1000 ------- 1 0.0 1.0 0 0\n", "line 1", "a time from 0"),
    "long": (NS2 + b"9" * 9000, "line 2", "4096 bytes"),
    "short": (NS2 + b"r 2 0 1\n", "line 2", "12 columns"),
    "empty": (b"", "empty", "a trace"),
    "gzip": (b"\x1f\x8b\x08\x00" + b"\0" * 50, "byte 0", "gzip -d"),
    "text": (b"hello, world\n", "line 1: found 'hello, world'", "ns-2 or ns-3"),
    "own columns": (b"# a log\nt_ms,id,bytes\n0,a,0\n", "line 2: found 't_ms,id,bytes'",
                    "a CSV table with the columns time, flow, cwnd, bytes_acked, snd_mss"),
    "tcpdump": (b"20:15:01.1 IP 10.0.0.1.5001 > 10.0.0.2.40000: Flags [.], seq 1:1449\n",
                "line 1: found '20:15:01.1 IP 10.0.0.1", "a capture that tcpdump -w FILE wrote"),
    "iperf3": (b"Connecting to host a, port 1\n[ ID] Interval   Transfer   Bitrate\n",
               "line 2: found '[ ID] Interval", "iperf3 --json"),
    "csv lab": (b"time_s,flow,cwnd,snd_mss\r\n", "line 1: found 'time_s,flow,cwnd,snd_mss',",
                "bytes_acked; if 'time_s' is time (in s), rename the column to time"),
    "throughputs": (b"time_s,flow,rate_mbps\n", "line 1: found 'time_s,flow,rate_mbps'",
                    "from it compute bytes_acked"),
    "throughputs alone": (b"seconds,Mbit/s\n", "line 1: found 'seconds,Mbit/s'",
                          "'Mbit/s' seems to be a throughput"),
    "bytes": (b"\x00\x01\x02\n\xff", "byte 0: found b'", "ns-2 or ns-3"),
    "csv": (samples.LINUX_CSV + b"0.8,1,vegas,inf,7,1,1,1,1,934,1\n", "line 7", "cwnd"),
    "csv back": (samples.LINUX_CSV + b"0.1,1,vegas,1,7,1,1,1,1,934,1\n", "line 7", "decrease"),
    "csv falls": (samples.LINUX_CSV + b"0.8,1,vegas,1,7,1,1,30000,1,934,1\n",
                  "line 7: found 'bytes_acked 30000 after 37360'", "never falls"),
    "csv again": (samples.LINUX_CSV + b"0.8,1,vegas,1,7,1,1,40000,0,934,1\n",
                  "line 7: found 'total_retrans 0 after 1'", "never falls"),
    "csv without": (b"time,flow,bytes_ack,snd_mss\n", "line 1: found 'time,flow,bytes_ack,snd_mss'",
                    "missing: cwnd, bytes_acked; if 'bytes_ack' is bytes_acked (in bytes), rename"),
    "csv of two": (b"time,flow,bytes\n0,a,0\n", "line 1: found 'time,flow,bytes'",
                   "missing: cwnd, bytes_acked, snd_mss; if 'bytes' is bytes_acked (in bytes)"),
    "csv of windows": (b"time,flow,cwnd\n0,a,4\n", "line 1: found 'time,flow,cwnd'",
                       "missing: bytes_acked, snd_mss; bytes_acked is what the flow has delivered "
                       "since its start; docs/how-to.md, Record a trace, explains the columns"),
    "csv ;": (samples.LINUX_CSV.replace(b",", b";"), "line 1", "commas alone"),
    "pcap": (samples.pcap([])[:20] + b"\1\0\0\0" + b"\xff" * 16, "byte 24", "at most 262144"),
    "xml": (b"<FlowMonitor><FlowStats><Flow flowId='1'/></FlowStats>", "line 1", "time"),
    "deep": (b"<FlowMonitor>" + b"<a>" * 5000, "line 1", "32 levels"),
    "ns3": (b"+ 1 /NodeList/0/DeviceList/0/x y\nboom\n", "line 2", "ns-3 event"),
    "ss": (samples.ss_log(RUN)[15:2000], "line 3", "date +%s.%N"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_refusals_name_the_place_and_what_is_expected(name, tmp_path):
    data, place, expected = REFUSED[name]
    with pytest.raises(TraceError) as caught:
        read(saved(tmp_path, data))
    assert isinstance(caught.value, FieldError)
    assert place in str(caught.value)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_no_folder_no_format(tmp_path):
    with pytest.raises(TraceError, match=r": 'missing' cannot be read; there is no such file$"):
        read(tmp_path / "missing")
    with pytest.raises(TraceError, match="regular file"):
        read(tmp_path)
    with pytest.raises(FieldError, match="one of auto"):
        read(tmp_path, "excel")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux has it")
def test_a_file_that_cannot_be_read_in_the_middle_is_refused():
    with pytest.raises(TraceError, match=r"/mem: 'mem' cannot be read; Input/output error$"):
        read("/proc/self/mem")


@pytest.mark.parametrize("streams", [1, 3])
def test_iperf3_intervals(streams, tmp_path):
    trace = read(saved(tmp_path, samples.iperf3(RUN, streams=streams)))
    assert trace.flows == [f"10.0.0.1:{40000 + k}>10.0.0.2:5201" for k in range(streams)]
    np.testing.assert_allclose(delivered(trace), [2000] * streams)
    np.testing.assert_allclose(later(trace, "throughput"), [500] * streams, rtol=0.01)
    np.testing.assert_allclose(total(trace, "retransmits"), [(len(trace.edges) - 1) // 2] * streams)
    assert set(trace.get("window").ravel()) == {20.0}
    np.testing.assert_allclose(trace.get("rtt"), 0.040)
    assert trace.controls == dict.fromkeys(trace.flows, "vegas")
    assert f"{2_000_000 * streams} of" in trace.doubts["bytes-arrived"]


def test_iperf3_as_a_stream_of_events(tmp_path):
    plain = samples.iperf3(RUN, streams=2)
    stream = samples.iperf3_stream(plain)
    trace, whole = (read(saved(tmp_path, data)) for data in (stream, plain))
    assert trace.data.identical(whole.data)
    assert (trace.controls, trace.doubts) == (whole.controls, whole.doubts)
    lines = stream.splitlines(keepends=True)
    cut = read(saved(tmp_path, b"".join(lines[:9]) + lines[9][:50]))  # its end is missing
    assert cut.data.identical(whole.data.isel(time=slice(0, 8)).assign(last=cut.data["last"]))
    assert "within a line" in cut.doubts["whole-file"]
    with pytest.raises(TraceError, match=r"event 10: found b'{.*expected a line of JSON"):
        read(saved(tmp_path, b"".join(lines[:9]) + lines[9][:50] + b"\n"))
    for bad in (b'{"event": "start", "data": 3}\n', lines[0] + b'{"event": "interval"}\n'):
        with pytest.raises(TraceError, match="object"):
            read(saved(tmp_path, bad))


def test_warnings_before_iperf3s_json(tmp_path):
    plain = samples.iperf3(RUN)
    said = b"warning: something\niperf3: getsockopt - Protocol not available\n\n"
    assert read(saved(tmp_path, said + plain)).data.identical(read(saved(tmp_path, plain)).data)
    with pytest.raises(TraceError, match="a trace of a known format"):
        read(saved(tmp_path, b"hello\n" + plain))


def test_iperf3_in_reverse_counts_what_arrived_and_omits_what_it_omits(tmp_path):
    text = samples.iperf3(RUN).replace(b'"sender": true', b'"sender": false')
    text = text.replace(b'"omitted": false', b'"omitted": true', 5)
    trace = read(saved(tmp_path, text))
    assert trace.flows == ["10.0.0.2:5201>10.0.0.1:40000"]
    assert trace.begin == 0.5
    gone = sum(time < 0.5 for time in RUN.acked)
    np.testing.assert_allclose(delivered(trace), 2000 - gone)
    assert trace.doubts == {}


@pytest.mark.parametrize("style", ["trace-cmd", "ftrace", "perf"])
def test_tcp_probe_events(style, tmp_path):
    trace = read(saved(tmp_path, samples.tcp_probe(RUN, style)))
    assert trace.flows == ["10.0.0.1:40000>10.0.0.2:5001"]
    # the event comes before the kernel looks at the ACK: the last one's packet is missing
    np.testing.assert_allclose(delivered(trace), 1999)
    np.testing.assert_allclose(later(trace, "throughput"), 500, rtol=0.01)
    np.testing.assert_allclose(np.nanmax(trace.get("rtt")), 0.040)
    assert np.nanmin(trace.get("window")) == 20
    assert trace.get("payload")[0] == samples.PAYLOAD
    assert "known-packet-size" in trace.doubts


def test_tcp_probe_tells_connections_apart_and_lost_events(tmp_path):
    one = samples.tcp_probe(samples.course(packets=100))
    other = one.replace(b"sock_cookie=ab41", b"sock_cookie=ab42").replace(b"cpus=2", b"")
    late = re.sub(rb" (\d+\.\d+): tcp", lambda m: b" %.6f: tcp" % (float(m[1]) + 9), other)
    lost = b"CPU:1 [LOST 7 EVENTS]\n"
    trace = read(saved(tmp_path, one + lost + late))
    assert trace.flows == ["10.0.0.1:40000>10.0.0.2:5001", "10.0.0.1:40000>10.0.0.2:5001 #2"]
    np.testing.assert_allclose(delivered(trace), [99, 99])
    assert trace.doubts["every-event"].startswith("7 events")


def test_a_socket_that_sends_nothing_is_no_flow(tmp_path):
    """The receiver's socket on the same host; its snd_una never changes."""
    text = samples.tcp_probe(samples.course(packets=50))
    still = re.sub(rb"src=(\S+) dest=(\S+)", rb"src=\2 dest=\1", text).replace(b"ab41", b"ab43")
    still = re.sub(rb"(snd_una|snd_nxt)=\S+", rb"\1=0x7", still)
    both = sorted(text.splitlines() + still.splitlines()[1:], key=lambda line: line[20:40])
    trace = read(saved(tmp_path, b"\n".join(both)))
    assert trace.flows == ["10.0.0.1:40000>10.0.0.2:5001"]


@pytest.mark.parametrize("pack", [samples.pcap, samples.pcapng])
def test_a_capture_that_ends_within_a_frame_says_so(tmp_path, pack):
    """Cut in a frame's bytes, or in the header before it; not where it ends with a frame."""
    all_frames = samples.frames(RUN)
    whole, shorter = pack(all_frames), pack(all_frames[:-1])
    for data, cut in ((whole, False), (shorter, False), (whole[:-5], True)):
        assert ("whole-file" in read(saved(tmp_path, data)).doubts) is cut
    assert "whole-file" in read(saved(tmp_path, whole[: len(shorter) + 3])).doubts


@pytest.mark.parametrize("kept", [1, 20, 40])
def test_a_trace_of_ns2_that_ends_within_a_line_lacks_this_line(tmp_path, kept):
    """As when ns-2 is stopped: it writes its trace in blocks, not in lines."""
    lines = (samples.DATA / "ns2_events.tr").read_bytes().splitlines(keepends=True)
    whole = read(saved(tmp_path, b"".join(lines[:-1])))
    assert "whole-file" not in whole.doubts
    cut = read(saved(tmp_path, b"".join(lines[:-1]) + lines[-1][:kept]))
    assert cut.data.identical(whole.data)
    assert cut.doubts == whole.doubts | {
        "whole-file": "the file ends within a line, which is left out"
    }
    with pytest.raises(TraceError, match=f"line {len(lines)}: found "):
        read(saved(tmp_path, b"".join(lines[:-1]) + lines[-1][:kept] + b"\n"))
    with pytest.raises(TraceError, match="line 1: found '"):
        read(saved(tmp_path, lines[0][:20]), "ns2_tr")


@pytest.mark.parametrize("part", [0.01, 0.1, 0.3, 0.6, 0.9, 0.99])
def test_a_trace_of_ns3_that_ends_within_a_line_lacks_this_line(tmp_path, part):
    lines = samples.ns3_ascii(RUN).splitlines(keepends=True)
    assert all(line.endswith(b")\n") for line in lines)
    whole = read(saved(tmp_path, b"".join(lines[:-1])))
    assert "whole-file" not in whole.doubts
    begun = lines[-1][: max(int(part * len(lines[-1])), 1)]
    cut = read(saved(tmp_path, b"".join(lines[:-1]) + begun))
    assert cut.data.identical(whole.data)
    assert cut.doubts == whole.doubts | {
        "whole-file": "the file ends within a line, which is left out"
    }
    # only the line break is missing: the line is whole
    ended = read(saved(tmp_path, b"".join(lines)))
    assert read(saved(tmp_path, b"".join(lines)[:-1])).data.identical(ended.data)
    assert "whole-file" not in ended.doubts
    with pytest.raises(TraceError, match="line 1: found '"):
        read(saved(tmp_path, lines[0][:10]), "ns3_ascii")


@pytest.mark.parametrize("begun", [b"IP (0x0021)", b"offset (bytes)", b"TcpOptionTimestamp(18;18)"])
def test_a_line_of_ns3_may_end_at_an_inner_parenthesis(tmp_path, begun):
    lines = samples.ns3_ascii(RUN).splitlines(keepends=True)
    last = next(k for k, line in enumerate(lines) if begun in line and k > 10)
    end = lines[last].index(begun) + len(begun)
    cut = read(saved(tmp_path, b"".join(lines[:last]) + lines[last][:end]))
    assert "whole-file" in cut.doubts
