"""Small valid traces of every format, made from one connection whose course is known.

A sender with a fixed window of ``window`` packets through one bottleneck.  As soon as the path is
full, the round-trip time is ``window / rate`` and the throughput is ``rate``.
"""

import functools
import io
import json
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import dpkt
import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.packets.trace import Trace, make

DATA = Path(__file__).parent.parent / "data"
PAYLOAD = 1000
FIRST_BYTE = 2**32 - 50_000  # its sequence number: the numbers begin again at 0 after it
SENDER, RECEIVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
SPORT, DPORT = 40000, 5001
EPOCH = 1_700_000_000.0


def delivered(trace: Trace) -> Floats:
    """The packets of a trace that each flow delivered."""
    return np.nansum(trace.get("throughput") * np.diff(trace.edges)[:, None], axis=0)


@dataclass(frozen=True)
class Course:
    """Times of packet i: sent, begins and ends service, received; its ACK arrives at ``acked``."""

    sent: list[float]
    served: list[float]
    left: list[float]
    received: list[float]
    acked: list[float]


def course(
    packets: int = 200, window: int = 20, rate: float = 500.0, delay: float = 0.005
) -> Course:
    """Propagation: ``delay`` before the bottleneck and behind it, ``2 delay`` for the ACK."""
    result = Course([], [], [], [], [])
    for i in range(packets):
        sent = 0.0 if i < window else result.acked[i - window]
        served = max(sent + delay, result.left[-1] if i else 0.0)
        left = served + 1 / rate
        for times, value in zip(
            (result.sent, result.served, result.left, result.received, result.acked),
            (sent, served, left, left + delay, left + 3 * delay),
            strict=True,
        ):
            times.append(value)
    return result


def _frame(
    forward: bool, seq: int, ack: int, size: int, stamps: tuple[int, int], v6: bool
) -> bytes:
    ports = (SPORT, DPORT) if forward else (DPORT, SPORT)
    tcp = dpkt.tcp.TCP(
        sport=ports[0],
        dport=ports[1],
        seq=seq % 2**32,
        ack=ack % 2**32,
        flags=dpkt.tcp.TH_ACK,
        opts=b"\x01\x01\x08\x0a" + stamps[0].to_bytes(4) + stamps[1].to_bytes(4),
        data=bytes(size),
    )
    tcp.off = 8
    ends = (SENDER, RECEIVER) if forward else (RECEIVER, SENDER)
    if v6:
        source, sink = (bytes(12) + end for end in ends)
        ip = dpkt.ip6.IP6(src=source, dst=sink, nxt=6, hlim=64, plen=len(tcp), data=tcp)
        return bytes(dpkt.ethernet.Ethernet(type=0x86DD, data=ip))
    ip = dpkt.ip.IP(src=ends[0], dst=ends[1], p=6, len=20 + len(tcp), data=tcp)
    return bytes(dpkt.ethernet.Ethernet(data=ip))


def frames(run: Course, at: str = "sender", v6: bool = False) -> list[tuple[float, bytes]]:
    """Frames as seen at the sender or the receiver; timestamps tick every millisecond."""
    result = []
    for i, (sent, received, acked) in enumerate(
        zip(run.sent, run.received, run.acked, strict=True)
    ):
        seq = FIRST_BYTE + i * PAYLOAD
        # the ACK that let this packet go: the latest that is back
        freed = sum(time <= sent for time in run.acked[max(0, i - 50) : i]) + max(0, i - 50)
        echo = int(run.received[freed - 1] * 1000) + 9 if freed else 0
        data = _frame(True, seq, 1, PAYLOAD, (int(sent * 1000) + 7, echo), v6)
        ack = _frame(False, 1, seq + PAYLOAD, 0, (int(received * 1000) + 9, 0), v6)
        result.append((sent if at == "sender" else received, data))
        result.append((acked if at == "sender" else received + 1e-5, ack))
    return sorted(result, key=lambda pair: pair[0])


def pcap(packets: list[tuple[float, bytes]]) -> bytes:
    """A pcap file with times in microseconds."""
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file)
    for time, frame in packets:
        writer.writepkt(frame, EPOCH + time)
    return file.getvalue()


def pcapng(packets: list[tuple[float, bytes]]) -> bytes:
    """A pcapng file with one interface."""
    file = io.BytesIO()
    writer = dpkt.pcapng.Writer(file)
    for time, frame in packets:
        writer.writepkt(frame, EPOCH + time)
    return file.getvalue()


def ns3_ascii(run: Course) -> bytes:
    """Events of the sender's device 0/0 and the router's 1/1; ACKs come back to 0/0."""

    def line(kind: str, time: float, device: str, forward: bool, i: int) -> tuple[float, str]:
        ends = ("10.0.0.1 > 10.0.0.2", "10.0.0.2 > 10.0.0.1")[not forward]
        ports = ("40000 > 5001", "5001 > 40000")[not forward]
        size, seq, ack = (PAYLOAD, 1 + i * PAYLOAD, 1) if forward else (0, 1, 1 + (i + 1) * PAYLOAD)
        what = {"+": "TxQueue/Enqueue", "-": "TxQueue/Dequeue", "r": "MacRx"}[kind]
        payload = f" Payload (size={size})" if size else ""
        text = (
            f"{kind} {time:.9g} /NodeList/{device[0]}/DeviceList/{device[2]}/"
            f"$ns3::PointToPointNetDevice/{what} ns3::PppHeader (Point-to-Point Protocol: IP "
            f"(0x0021)) ns3::Ipv4Header (tos 0x0 DSCP Default ECN Not-ECT ttl 64 id {i} protocol 6 "
            f"offset (bytes) 0 flags [none] length: {size + 52} {ends}) ns3::TcpHeader ({ports} "
            f"[ACK] Seq={seq} Ack={ack} Win=65535 ns3::TcpOptionTimestamp({i};{i})){payload}"
        )
        return time, text

    lines = []
    for i in range(len(run.sent)):
        lines.append(line("+", run.sent[i], "0/0", True, i))
        lines.append(line("-", run.sent[i], "0/0", True, i))
        lines.append(line("+", run.served[i] if i == 0 else run.sent[i] + 0.005, "1/1", True, i))
        lines.append(line("-", run.served[i], "1/1", True, i))
        lines.append(line("r", run.acked[i], "0/0", False, i))
    lines.sort(key=lambda pair: pair[0])
    return "\n".join(text for _, text in lines).encode() + b"\n"


def ss_log(run: Course, every: float = 0.02, one_line: bool = False) -> bytes:
    """Output of ``ss -tin``, sampled."""
    lines = []
    for k in range(int(run.acked[-1] / every)):
        now = k * every
        acked = sum(time <= now for time in run.acked) * PAYLOAD
        lines += [
            f"{EPOCH + now:.3f}",
            "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process",
            "ESTAB 0      0      10.0.0.1:40000     10.0.0.2:5001",
            f"\t vegas wscale:7,7 rto:204 rtt:40.0/2.1 ato:40 mss:{PAYLOAD} pmtu:1500 rcvmss:536 "
            f"advmss:1448 cwnd:20 ssthresh:7 bytes_sent:{acked} bytes_acked:{acked} segs_out:9 "
            "send 2.3Mbps lastsnd:4 pacing_rate 2.8Mbps delivered:3 retrans:0/2 minrtt:22",
        ]
        if one_line:
            lines[-2:] = [lines[-2] + " " + lines[-1].strip()]
    return "\n".join(lines).encode() + b"\n"


def iperf3(run: Course, streams: int = 1) -> bytes:
    """Output of ``iperf3 --json`` at the sender; each stream has the course's packets."""
    connected = [
        {
            "socket": 5 + k,
            "local_host": "10.0.0.1",
            "local_port": 40000 + k,
            "remote_host": "10.0.0.2",
            "remote_port": 5201,
        }
        for k in range(streams)
    ]
    every, intervals = 0.1, []
    for k in range(math.ceil(run.acked[-1] / every)):
        low, high = k * every, (k + 1) * every
        figures = {
            "start": low,
            "end": high,
            "seconds": every,
            "bytes": sum(low <= time < high for time in run.acked) * PAYLOAD,
            "retransmits": k % 2,
            "snd_cwnd": 20 * PAYLOAD,
            "rtt": 40000,
            "rttvar": 900,
            "pmtu": 1500,
            "omitted": False,
            "sender": True,
        }
        intervals.append({"streams": [{"socket": 5 + k, **figures} for k in range(streams)]})
    sent = {"bytes": len(run.sent) * PAYLOAD, "min_rtt": 22000, "sender": True}
    end = [
        {"sender": {"socket": 5 + k, **sent}, "receiver": {"socket": 5 + k, **sent}}
        for k in range(streams)
    ]
    document = {
        "start": {
            "connected": connected,
            "version": "iperf 3.12",
            "timestamp": {"timesecs": int(EPOCH)},
            "tcp_mss_default": PAYLOAD,
            "test_start": {"protocol": "TCP", "num_streams": streams, "omit": 0, "reverse": 0},
        },
        "intervals": intervals,
        "end": {"streams": end, "sender_tcp_congestion": "vegas"},
    }
    return json.dumps(document, indent=1).encode()


def iperf3_stream(document: bytes) -> bytes:
    """The output of ``iperf3 --json-stream`` in place of that of ``iperf3 --json``."""
    whole = json.loads(document)
    events = [("start", whole["start"]), *(("interval", data) for data in whole["intervals"])]
    lines = [json.dumps({"event": k, "data": data}) for k, data in [*events, ("end", whole["end"])]]
    return "\n".join(lines).encode() + b"\n"


def tcp_probe(run: Course, style: str = "trace-cmd") -> bytes:
    """Events of a sender's socket, one per ACK, in the format of one of the tools."""
    family, cookie = "family=AF_INET ", " sock_cookie=ab41"
    tail = " skbaddr=00000000a1b2c3d4 skaddr=00000000d4c3b2a1"
    lines = {"trace-cmd": ["cpus=2"], "ftrace": ["# tracer: nop", "#"], "perf": []}[style]
    for i, time in enumerate(run.acked):
        out = sum(sent < time for sent in run.sent)
        numbers = f"snd_nxt={(FIRST_BYTE + out * PAYLOAD) % 2**32:#x} "
        numbers += f"snd_una={(FIRST_BYTE + i * PAYLOAD) % 2**32:#x} snd_cwnd=20 ssthresh=7 "
        ends = "src=10.0.0.1:40000 dest=10.0.0.2:5001 mark=0x0 data_len=0 "
        ends += numbers + "snd_wnd=65536 srtt=40000 rcv_wnd=65536"
        lines.append(
            {
                "trace-cmd": f"  iperf3-829   [003]  {9 + time:.6f}: tcp_probe:   ",
                "ftrace": f"  <idle>-0       [001] ..s7. {9 + time:.6f}: tcp_probe: ",
                "perf": f"iperf3  829 [003] {9 + time:.6f}: tcp:tcp_probe: ",
            }[style]
            + ("" if style == "perf" else family)
            + ends
            + ("" if style == "perf" else cookie)
            + (tail if style == "ftrace" else "")
        )
    return "\n".join(lines).encode() + b"\n"


LINUX_CSV = b"""\
time,flow,cc,cwnd,ssthresh,rtt_us,minrtt_us,bytes_acked,total_retrans,snd_mss,vegas_baseRTT_us
0.2,1,vegas,10,7,50000,40000,0,0,934,2147483647
0.4,1,vegas,10,7,50000,40000,18680,0,934,40035
0.6,1,vegas,12,7,51000,40000,37360,1,934,40035
0.4001,b,vegas,4,7,52000,40000,9340,0,934,40100
0.6001,b,vegas,5,7,52000,40000,14010,0,934,40100
"""


def parquet() -> bytes:
    """A trace file as the package writes it."""
    rates = np.arange(10.0).reshape(5, 2)
    given = {"throughput": rates, "rtt": np.full((5, 2), 0.08), "first": np.zeros(2)}
    trace = make("ns2", np.arange(1.0, 6.0), ["f0", "f1"], given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        trace.write(path)
        return path.read_bytes()


FORMATS = ("csv", "ns2_tr", "ns3_ascii", "flowmon", "pcap", "ss", "iperf3", "tcp_probe", "parquet")


@functools.cache
def every_format(packets: int = 40, lines: int = 120) -> dict[str, list[bytes]]:
    """Samples for each reader, small enough to be mutated thousands of times."""
    short = course(packets=60, window=10)
    events = (DATA / "ns2_events.tr").read_bytes().split(b"\n")
    variables = (DATA / "ns2_variables.tr").read_bytes().split(b"\n")
    few = course(packets=max(lines // 10, 3), window=4)
    found = {
        "csv": [LINUX_CSV],
        "ns2_tr": [b"\n".join(events[:lines]), b"\n".join(variables[: 2 * lines // 3])],
        "ns3_ascii": [ns3_ascii(few)],
        "flowmon": [(DATA / "flowmon.xml").read_bytes()],
        "pcap": [pcap(frames(short)[:packets]), pcapng(frames(short, v6=True)[:packets])],
        "ss": [ss_log(short, every=0.05), ss_log(short, every=0.05, one_line=True)],
        "iperf3": [iperf3(short), iperf3(short, streams=2), iperf3_stream(iperf3(short))],
        "tcp_probe": [tcp_probe(few, style) for style in ("trace-cmd", "ftrace", "perf")],
        "parquet": [parquet()],
    }
    assert tuple(found) == FORMATS
    return found
