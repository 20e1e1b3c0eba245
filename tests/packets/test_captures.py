"""Captures whose every packet is known: random ones, and those that were once read wrongly."""

import itertools
import random
import struct
from dataclasses import replace

import numpy as np
import pytest

from tests.packets import captures
from tests.packets.captures import ACK, FIN, RST, SYN, Frame, Options
from tests.packets.samples import delivered
from vegasmodel.packets import read
from vegasmodel.packets.readers import segments
from vegasmodel.packets.trace import TraceError
from vegasmodel.report.lookup import explain

COUNT = 12  # seeds of each of the shares below; benchmarks/fuzz_captures.py takes 10,000


@pytest.mark.parametrize("share", range(10))
def test_random_captures_are_counted_exactly_or_said_to_be_unknown(share, tmp_path):
    said = []
    for seed in range(share * COUNT, (share + 1) * COUNT):
        rng = random.Random(seed)
        options = captures.draw(rng)
        capture = captures.make(options, rng)
        found, what = captures.wrong(options, capture, tmp_path / "trace")
        assert not found, (seed, options)
        if captures.told(options):
            assert what == "exact", (seed, options)
        said.append(what)
    assert {"exact", "unknown"} == set(said)  # neither all nor nothing is said to be unknown


@pytest.mark.parametrize("number", [70, 2**16 - 1, 2**32 - 1])
def test_numbers_that_begin_again_at_0_still_tell_the_order(number):
    """Timestamps have 32 bits and the identifiers of IPv4 have 16: the later one is 50 further."""
    stamps = segments.Flow(0, (), 0.0, 0)
    stamps.sent(0, 1000, -1, number, 0.0)
    assert stamps.later(-1, (number + 50) % 2**32) is True
    assert stamps.later(-1, (number - 50) % 2**32) is False
    assert stamps.later(-1, number) is None
    stamps.sent(1000, 2000, -1, (number + 50) % 2**32, 0.1)
    stamps.sent(0, 1000, -1, number, 0.2)  # a copy does not lead back
    assert stamps.later(-1, (number + 49) % 2**32) is False
    assert stamps.later(-1, (number + 51) % 2**32) is True
    ids = segments.Flow(0, (), 0.0, 0)
    ids.sent(0, 1000, number % 2**16, -1, 0.0)
    assert ids.later((number + 50) % 2**16, -1) is True
    assert ids.later((number - 50) % 2**16, -1) is False


@pytest.mark.parametrize(
    ("singly", "between", "waited"),
    [(600, 0.0, False), (400, 0.0, True), (400, 1.0, True), (600, 1.0, False)],
)
def test_an_ack_of_one_packet_may_have_waited_if_most_acks_are_of_several(singly, between, waited):
    """Of 1000 bytes, ``singly`` were acknowledged packet by packet; ACKs of two come at once."""
    flow = segments.Flow(0, (), 0.0, 0)
    flow.per_ack, flow.counted = {1: singly, 2: 1000 - singly}, 1000
    assert flow.waited(1, between) is waited
    assert flow.waited(2, 0.0) is False
    assert flow.waited(1, between) is (waited or between > 0.04)  # the one before was of two


def one(tmp_path, seed=1, **options):
    """A capture with these options only: the trace, its true values and frames."""
    plain = replace(Options(), **options)
    capture = captures.make(plain, random.Random(seed))
    (tmp_path / "trace").write_bytes(capture.data)
    return read(tmp_path / "trace"), capture


def connection(options, seed):
    """A connection that has run, with the options ``options``."""
    lines = captures.Connection(options, random.Random(seed), 1.0)
    lines.run()
    return lines


def records_of(frames, options, isns=(1, 2)):
    """The frames as a capture holds them; ``isns`` are the ends' first sequence numbers."""
    return [(frame.time, *captures._bytes(frame, isns, options)) for frame in frames]


def read_from(records, tmp_path):
    """The trace that the reader makes of a pcap file with these records."""
    (tmp_path / "trace").write_bytes(captures._pcap(records, 65535))
    return read(tmp_path / "trace")


def total(trace, name):
    return np.sum(trace.get(name), axis=0)


@pytest.mark.parametrize("merged", [2, 4, 6])
@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_segments_that_the_card_merged_are_several_packets(merged, at, tmp_path):
    trace, _ = one(tmp_path, merged=merged, packets=600, window=60, at=at, delayed_ack=True)
    np.testing.assert_allclose(delivered(trace), [600])
    assert trace.get("packet_size")[0] == 1500
    assert "known-packet-size" not in trace.doubts


def test_the_smaller_of_the_two_segment_sizes_counts(tmp_path):
    """One end announces a segment size that is larger by 7000 B.

    Packets of 1448 B of data are also the guess for a capture that tells no segment size.
    """
    for seed, mss in itertools.product(range(12), (1448, 1200)):
        trace, _ = one(tmp_path, seed, mss=mss, merged=4, packets=100)
        np.testing.assert_allclose(delivered(trace), [100])


def test_without_a_syn_the_size_of_merged_packets_is_assumed_and_said(tmp_path):
    trace, _ = one(tmp_path, merged=4, syns=False, packets=100)
    assert "known-packet-size" in trace.doubts
    assert trace.get("packet_size") is None
    np.testing.assert_allclose(delivered(trace) * trace.get("payload"), [100 * 1448])


def test_a_loopback_packet_is_one_packet(tmp_path, monkeypatch):
    """65,483 B in one packet: the loopback interface has no network card that could split it."""
    monkeypatch.setitem(captures.ENDS, 4, (b"\x7f\0\0\1", b"\x7f\0\0\1"))
    trace, _ = one(tmp_path, mss=65_483, syns=False, stamps=True, packets=200, snap=160)
    np.testing.assert_allclose(delivered(trace), [200])


def test_an_ip_length_of_zero_stands_for_the_frames_own(tmp_path):
    trace, _ = one(tmp_path, zero_length=True, merged=8, snap=96, packets=200, window=40)
    np.testing.assert_allclose(delivered(trace), [200])


@pytest.mark.parametrize("connections", [2, 3])
def test_a_syn_begins_a_connection_on_ports_that_had_one(connections, tmp_path):
    trace, _ = one(tmp_path, connections=connections, packets=1000)
    np.testing.assert_allclose(delivered(trace), [1000] * connections)
    assert trace.flows[1] == trace.flows[0] + " #2"


def test_an_ack_is_bounded_by_the_data_seen(tmp_path):
    """One RST and one ACK carry a random acknowledgement number."""
    for seed, flags in ((1, RST | ACK), (2, ACK)):
        rng = random.Random(seed)
        plain = replace(Options(), packets=1000)
        lines = captures.Connection(plain, rng, 1.0)
        lines.run()
        isns = (rng.randrange(2**32), rng.randrange(2**32))
        stray = Frame(lines.frames[700].time, False, 0, 0, 10**9, flags)
        frames = [*lines.frames[:700], stray, *lines.frames[700:]]
        trace = read_from(records_of(frames, plain, isns), tmp_path)
        np.testing.assert_allclose(delivered(trace), [1000])


def test_copies_are_no_retransmissions(tmp_path):
    trace, capture = one(tmp_path, copied=0.3, packets=500)
    assert len(capture.frames) > 1200
    assert total(trace, "retransmits") == total(trace, "sent") - 500 == 0
    trace, capture = one(tmp_path, copied=0.3, loss=0.02, packets=500)
    assert capture.truths[0].again > 0
    np.testing.assert_allclose(total(trace, "retransmits") * 1448, capture.truths[0].again)


def test_the_doubt_about_copies_says_what_would_tell_them(tmp_path):
    name = "retransmissions-told-from-copies"
    lossy = {"at": "receiver", "loss": 0.1, "packets": 300}
    blind, _ = one(tmp_path, ids=False, stamps=False, **lossy)
    for what in ("IPv4 identifiers that count", "TCP timestamps"):
        assert what in blind.doubts[name]
        assert what in explain(name)
    for given in ({"ids": True, "stamps": False}, {"ids": False, "stamps": True}):
        trace, _ = one(tmp_path, **given, **lossy)
        assert name not in trace.doubts


def test_packets_that_overtake_are_no_retransmissions(tmp_path):
    """The sender's card has two queues, so the frames are reordered."""
    plain = replace(Options(), packets=300, window=30)
    frames = connection(plain, 3).frames
    for i in range(10, len(frames) - 1, 7):
        if frames[i].size and frames[i + 1].size:
            frames[i], frames[i + 1] = frames[i + 1], frames[i]
            frames[i].time, frames[i + 1].time = frames[i + 1].time, frames[i].time
    assert sum(a.seq > b.seq for a, b in itertools.pairwise(frames) if b.size) > 2
    trace = read_from(records_of(frames, plain), tmp_path)
    np.testing.assert_allclose(delivered(trace), [300])
    assert total(trace, "retransmits") == 0


@pytest.mark.parametrize("back", [0.02, 0.5, 3600.0])
def test_a_clock_that_goes_back_makes_no_short_rtt(back, tmp_path):
    plain = replace(Options(), packets=400)
    lines = connection(plain, 5)
    records = [
        (5000.0 + time - back * (i > 300), *rest)
        for i, (time, *rest) in enumerate(records_of(lines.frames, plain))
    ]
    trace = read_from(records, tmp_path)
    np.testing.assert_allclose(delivered(trace), [400])
    assert np.nanmin(trace.get("rtt_min")) > lines.truth.base
    assert np.nanmax(trace.get("rtt")) < max(lines.truth.rtts) + 2e-6
    assert "steady-clock" in trace.doubts


def place(data: bytearray, number: int) -> int:
    """The index at which the record of packet ``number`` of a pcap file begins."""
    at = 24
    for _ in range(number - 1):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
    return at


def test_an_error_about_a_packet_has_its_number(tmp_path):
    capture = captures.make(replace(Options(), packets=50), random.Random(1))
    data = bytearray(capture.data)
    struct.pack_into("<I", data, place(data, 7), 2**32 - 1)  # the packet's time in seconds
    (tmp_path / "trace").write_bytes(data)
    with pytest.raises(TraceError, match=r"packet 7: found .* a time within 1e\+09 s of the first"):
        read(tmp_path / "trace")


def test_frames_cut_within_their_headers_are_told(tmp_path):
    trace, _ = one(tmp_path, packets=50)
    assert "whole-headers" not in trace.doubts
    capture = captures.make(replace(Options(), packets=50), random.Random(1))
    data = bytearray(capture.data)
    at = place(data, 5)  # this frame keeps 50 of its bytes
    size = struct.unpack_from("<I", data, at + 8)[0]
    struct.pack_into("<I", data, at + 8, 50)
    del data[at + 16 + 50 : at + 16 + size]
    (tmp_path / "trace").write_bytes(data)
    assert "1 frames" in read(tmp_path / "trace").doubts["whole-headers"]


def test_frames_that_the_capture_lacks_make_the_count_unknown(tmp_path):
    """tcpdump missed every tenth frame with data."""
    plain = replace(Options(), packets=300)
    frames = connection(plain, 6).frames
    kept = [f for i, f in enumerate(frames) if i % 10 or not f.size or i > 500]
    trace = read_from(records_of(kept, plain), tmp_path)
    np.testing.assert_allclose(delivered(trace), [300])
    assert trace.get("retransmits") is None
    assert "every-frame-captured" in trace.doubts


def test_ports_that_are_used_again_without_a_syn_are_named_with_the_jump(tmp_path):
    """The second connection begins 7 MB beyond the first, whose 60 packets have 1448 B of data."""
    records, jump = [], 7_000_000
    for begin, isns in ((1.0, (1, 2)), (9.0, (1 + jump, 2))):
        plain = replace(Options(), syns=False, fins=False)
        lines = captures.Connection(plain, random.Random(5), begin)
        lines.run()
        records += records_of(lines.frames, plain, isns)
    trace = read_from(records, tmp_path)
    assert len(trace.flows) == 1
    wide = jump - 60 * 1448
    said = trace.doubts["every-frame-captured"]
    assert f"at most {wide / 1e6:.3g} MB in one place" in said
    assert "if the ports were used again without a FIN or SYN in the capture" in said
    assert trace.get("retransmits") is None


@pytest.mark.parametrize("jump", [7_000_000, 50_000, -1_000_000, 2_000_000_000])
def test_data_after_an_acknowledged_fin_is_of_a_new_connection(jump, tmp_path):
    """The capture lacks the SYNs of the second connection on the same ports."""
    records = []
    for begin, syns, isns in ((1.0, True, (1, 2)), (9.0, False, (1 + 60 * 1448 + jump, 2))):
        plain = replace(Options(), syns=syns, fins=True)
        lines = captures.Connection(plain, random.Random(5), begin)
        lines.run()
        records += records_of(lines.frames, plain, (isns[0] % 2**32, isns[1]))
    trace = read_from(records, tmp_path)
    np.testing.assert_allclose(delivered(trace), [60, 60])
    assert trace.flows[1] == trace.flows[0] + " #2"
    assert "every-frame-captured" not in trace.doubts


def test_a_keep_alive_after_an_acknowledged_fin_is_no_new_connection(tmp_path):
    """A client asks, and closes its half; its keep-alive has one byte in the place of the FIN."""
    frames = [
        Frame(1.0, True, -1, 0, 0, SYN, mss=1460),
        Frame(1.04, False, -1, 0, 0, SYN | ACK, mss=1460),
        Frame(1.041, True, 0, 0, 0),
        Frame(1.05, True, 0, 300, 0),
        Frame(1.051, True, 300, 0, 0, FIN | ACK),
        Frame(1.09, False, 0, 0, 301),
    ]
    for i in range(60):
        frames.append(Frame(1.1 + 0.02 * i, False, 1448 * i, 1448, 301))
        frames.append(Frame(1.11 + 0.02 * i, True, 301, 0, 1448 * (i + 1)))
    frames.insert(60, Frame(frames[60].time - 1e-3, True, 300, 1, frames[59].ack))
    for ident, frame in enumerate(frames, 1):
        frame.ident = ident
    trace = read_from(records_of(frames, Options(stamps=False)), tmp_path)
    assert trace.flows == ["10.0.0.2:5001>10.0.0.1:40000"]
    np.testing.assert_allclose(delivered(trace), [60])


@pytest.mark.parametrize("data", [True, False])
def test_a_flow_of_which_the_capture_has_only_acks_is_mentioned(data, tmp_path):
    records = []
    for options, whole in ((Options(), True), (Options(version=6), data)):
        frames = connection(options, 5).frames
        seen = [frame for frame in frames if whole or not frame.size]
        records += records_of(seen, options)
    trace = read_from(sorted(records), tmp_path)
    assert len(trace.flows) == 1 + data
    said = trace.doubts.get("data-captured", "")
    assert said.startswith("1 flow has ACKs only") is not data
    np.testing.assert_allclose(delivered(trace)[0], [60])


def test_a_retransmission_timer_is_no_round_trip_at_the_receiver(tmp_path):
    """After the ACK of packet 24, sent again, the sender is silent until its timer for 27 expires.

    Packets 27 and 32 are then sent together and echo that ACK, which is 0.5 s old.  Other data
    follow the ACK that they echo by 50 ms, or by 100 ms behind a lost packet.
    """
    o, data, ms = Options(at="receiver", ids=False), [], 1000
    arrivals = [(0.05 * i, i) for i in range(32) if i not in (24, 27)]
    arrivals += [(1.60, 24), (2.10, 27), (2.101, 32)]
    arrivals += [(2.151 + 0.05 * k, 33 + k) for k in range(5)]
    got, cum, stamp = set(), 0, 0
    for time, i in sorted(arrivals):
        data.append(Frame(time, True, i * o.mss, o.mss, 0, stamp=1 + int(time * ms)))
        data[-1].echo = 6600 if i == 32 else stamp
        got.add(i)
        while cum in got:
            cum += 1
        stamp = 5000 + int(time * ms)
        data.append(Frame(time + 1e-5, False, 0, 0, cum * o.mss, stamp=stamp))
    records = [(frame.time, *captures._bytes(frame, (1, 2), o)) for frame in data]
    (tmp_path / "trace").write_bytes(captures._pcap(records, 65535))
    trace = read(tmp_path / "trace")
    assert np.nanmin(trace.get("rtt")) == pytest.approx(0.05, abs=1e-3)
    assert np.nanmax(trace.get("rtt")) < 0.101  # packet 25 echoes an ACK that 24, lost, did


@pytest.mark.parametrize("flight", [1, 4])
def test_a_timer_after_a_whole_window_is_lost_is_no_round_trip_at_the_receiver(flight, tmp_path):
    """Each data segment echoes an ACK that is 50 ms old; packet 40 comes when a timer expires.

    All packets in flight were lost, and packet 40 among them is sent again.  It looks new, and
    echoes the last ACK before, 0.45 s after it.  So RTTs of 0.5 s were found.
    """
    o, data, first = Options(at="receiver", ids=False), [], 5000
    times = [0.05 * (i // flight) + 0.001 * (i % flight) for i in range(80)]
    times = [time + 0.4 * (i >= 40) for i, time in enumerate(times)]
    for i, time in enumerate(times):
        echo = -1 if i < flight else first + round(1000 * times[i - flight])
        echo = first + round(1000 * times[39]) if 40 <= i < 40 + flight else echo
        data.append(Frame(time, True, i * o.mss, o.mss, 0, stamp=1 + round(1000 * time)))
        data[-1].echo = max(echo, 0)
        stamp = first + round(1000 * time)
        data.append(Frame(time + 1e-5, False, 0, 0, (i + 1) * o.mss, stamp=stamp))
    trace = read_from(records_of(data, o), tmp_path)
    assert np.nanmedian(trace.get("rtt")) == pytest.approx(0.05, abs=2e-3)
    assert np.nanmax(trace.get("rtt")) < 0.06


@pytest.mark.parametrize("stamps", [True, False])
def test_a_handshake_whose_last_packet_holds_data_tells_the_place_of_the_capture(stamps, tmp_path):
    """Without TCP timestamps, only the handshake tells it, and the RTT was unknown."""
    o = Options(packets=200, stamps=stamps)
    capture = captures.make(o, random.Random(4))
    third = next(i for i, f in enumerate(capture.frames) if f.flags == ACK)
    assert not capture.frames[third].size
    frames = capture.frames[:third] + capture.frames[third + 1 :]
    records = [(frame.time, *captures._bytes(frame, (7, 8), o)) for frame in frames]
    (tmp_path / "trace").write_bytes(captures._pcap(records, 65535))
    trace = read(tmp_path / "trace")
    assert "captured-at-the-sender" not in trace.doubts
    assert np.nanmin(trace.get("rtt_min")) == pytest.approx(min(capture.truths[0].rtts), abs=2e-6)


def test_at_the_receiver_data_behind_a_lost_packet_count_when_they_arrive(tmp_path):
    """There they counted when the ACK number leapt over them, up to a round trip later."""
    trace, capture = one(tmp_path, at="receiver", packets=900, window=50, loss=0.02)
    assert trace.provenance["throughput"] == "data that arrived"
    seen, times = set(), []
    for frame in capture.frames:
        if frame.forward and frame.size and frame.seq not in seen:
            seen.add(frame.seq)
            times.append(frame.time - capture.frames[0].time)
    counts = np.cumsum(trace.get("throughput")[:, 0] * np.diff(trace.edges))
    expected = np.searchsorted(np.sort(times), trace.edges[1:], side="left")
    assert np.all(np.abs(counts - expected) <= 1.001)  # times are rounded to microseconds
    assert delivered(trace)[0] == pytest.approx(900)


def test_a_timer_is_no_round_trip_if_the_handshake_tells_none(tmp_path):
    """A SYN was sent again, so the first data echo tells how far the sender is.

    Packet 1 was lost, comes 0.45 s late by the timer, and looks new: it echoes the ACK of packet 0.
    """
    o, first = Options(at="receiver", ids=False), 5000
    data = [Frame(time, True, -1, 0, 0, SYN, mss=1460) for time in (0.0, 0.01)]
    data.append(Frame(0.011, False, -1, 0, 0, SYN | ACK, mss=1460))
    times = [0.061, *(0.511 + 0.05 * i for i in range(60))]
    for i, time in enumerate(times):
        stamp, echo = 1 + round(1000 * time), first + round(1000 * times[i - 1]) if i else 0
        data.append(Frame(time, True, i * o.mss, o.mss, 0, stamp=stamp, echo=echo))
        stamp = first + round(1000 * time)
        data.append(Frame(time + 1e-5, False, 0, 0, (i + 1) * o.mss, stamp=stamp))
    trace = read_from(records_of(data, o), tmp_path)
    assert np.nanmax(trace.get("rtt")) < 0.06
