"""Random logs of ``ss``, ``iperf3`` and ``tcp_probe``, FlowMonitor files and ns-3 traces.

Each comes with the true values of its flows.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.packets import captures
from vegasmodel.packets import read

KINDS = ("ss", "flowmon", "ns3_ascii", "iperf3", "tcp_probe")


@dataclass
class Log:
    """A file, and for each flow the packets delivered, sent again, lost; None if it cannot tell."""

    data: bytes
    delivered: dict[str, float]
    again: dict[str, float] | None = None
    lost: dict[str, float] | None = None
    controls: dict[str, str] | None = None
    bytes: bool = False  # ``delivered`` is in bytes: the file does not tell a packet's size
    doubts: frozenset[str] | None = None  # just these, where the file decides it


def ss(rng: random.Random) -> Log:
    """Sockets that start and end, some on ports that were used before, sampled at random times."""
    lines, delivered, again, controls = list[str](), {}, {}, {}
    first: dict[str, tuple[int, int]] = {}
    sockets = []
    for k in range(rng.randint(1, 4)):
        name = f"10.0.0.{k}:40000>10.0.0.9:5001" if rng.random() < 0.7 else f"[fd::{k}]:4>[fd::9]:5"
        mss, begin = rng.choice((536, 1448, 1428)), rng.choice((0, 0, 7))
        for number in range(rng.choice((1, 1, 2))):
            end = begin + rng.randint(5, 15)
            title = name + (" #2" if number else "")
            control = rng.choice(("vegas", "reno", "cubic"))
            sockets.append([name, title, mss, begin, end, control, 0, 0])
            begin = end + rng.choice((0, 3))
    plain, one_line = rng.random() < 0.3, rng.random() < 0.3
    for step in range(40):
        lines.append(f"{1_700_000_000 + 0.1 * step + rng.uniform(0, 0.01):.6f}")
        for socket in sockets:
            name, title, mss, begin, end, control, acked, resent = socket
            if not begin <= step < end:
                continue
            if step == begin and title.endswith("#2"):
                acked = 0  # fewer than the connection before it had
            else:
                acked += mss * rng.randint(1 if step == begin else 0, 30)
            resent += mss * (rng.randint(0, 2) if rng.random() < 0.2 else 0)
            socket[6:] = [acked, resent]
            first.setdefault(title, (acked, resent) if step == 0 else (0, 0))
            delivered[title] = (acked - first[title][0]) / mss
            again[title] = (resent - first[title][1]) / mss
            controls[title] = control
            local, _, peer = name.partition(">")
            flags = rng.choice(("", "ts sack "))
            retrans = f"bytes_retrans:{resent} " if resent and not plain else ""
            old = f"retrans:0/{resent // mss} " if resent else ""
            detail = (
                f"\t {flags}{control} wscale:7,7 rto:204 rtt:{rng.uniform(20, 90):.3f}/2 mss:{mss} "
                f"pmtu:1500 cwnd:{rng.randint(2, 40)} bytes_sent:{acked + resent} {retrans}"
                f"bytes_acked:{acked} segs_out:9 {old}minrtt:20.5"
            )
            head = f"ESTAB 0 0 {local} {peer}"
            lines += [head + " " + detail.strip()] if one_line else [head, detail]
    return Log(("\n".join(lines) + "\n").encode(), delivered, again, None, controls)


def flowmon(rng: random.Random) -> Log:
    """Flows and their ACKs, numbered in any order."""
    delivered, lost, stats, places = {}, {}, list[str](), list[str]()
    count = rng.randint(1, 5)
    numbers = rng.sample(range(1, 1000), 2 * count)
    for k in range(count):
        got, gone, size = rng.randint(2, 10**6), rng.randint(0, 500), rng.choice((552, 1500))
        ends = (f"10.1.{k}.1", 49153, f"10.2.{k}.1", 5000)
        delivered["{}:{}>{}:{}".format(*ends)] = got
        lost["{}:{}>{}:{}".format(*ends)] = gone
        for number, packets, late, each, back in (
            (numbers[2 * k], got, gone, size, False),
            (numbers[2 * k + 1], got // 2, 0, 52, True),
        ):
            if not packets:
                continue
            times = [f"+{rng.uniform(a, b):.9e}ns" for a, b in ((0, 9e8), (9e9, 9.1e9))]
            stats.append(
                f'<Flow flowId="{number}" timeFirstTxPacket="{times[0]}" timeLastTxPacket='
                f'"{times[1]}" timeLastRxPacket="{times[1]}" delaySum="+1e+09ns" txBytes='
                f'"{each * (packets + late)}" txPackets="{packets + late}" rxPackets="{packets}" '
                f'lostPackets="{late}"/>'
            )
            way = (*ends[2:], *ends[:2]) if back else ends
            places.append(
                f'<Flow flowId="{number}" sourceAddress="{way[0]}" sourcePort="{way[1]}" '
                f'destinationAddress="{way[2]}" destinationPort="{way[3]}" protocol="6"/>'
            )
    rng.shuffle(stats)
    text = "".join(stats), "".join(places)
    xml = f"<FlowMonitor><FlowStats>{text[0]}</FlowStats><Ipv4FlowClassifier>{text[1]}"
    return Log(f"{xml}</Ipv4FlowClassifier></FlowMonitor>".encode(), delivered, None, lost)


def ns3_ascii(rng: random.Random) -> Log:
    """The events of a sender's device, of connections as ``captures`` makes them."""
    options = captures.Options(
        stamps=rng.random() < 0.7,
        mss=rng.choice((500, 1448)),
        loss=rng.choice((0.0, 0.05)),
        swapped=rng.choice((0.0, 0.05)),
        repeated=rng.choice((0.0, 0.03)),
        delayed_ack=rng.random() < 0.5,
        packets=rng.choice((1, 40, 90)),
        window=rng.choice((2, 20)),
        last=rng.choice((0, 333)),
    )
    lines, delivered, again, begin = list[str](), {}, {}, 1.0
    for number in range(rng.choice((1, 1, 2))):
        one = captures.Connection(options, rng, begin)
        begin = one.run()
        title = "10.0.0.1:40000>10.0.0.2:5001" + (" #2" if number else "")
        largest = min(options.mss, max(one.starts[1:]))
        delivered[title] = one.truth.delivered / largest
        again[title] = one.truth.again / largest
        isn = rng.randrange(2**32), rng.randrange(2**32)
        for frame in one.frames:
            lines += _ns3(frame, isn, options)
    return Log(("\n".join(lines) + "\n").encode(), delivered, again)


def _ns3(frame: captures.Frame, isns: tuple[int, int], options: captures.Options) -> list[str]:
    mine, other = isns if frame.forward else isns[::-1]
    ends = "10.0.0.1 > 10.0.0.2" if frame.forward else "10.0.0.2 > 10.0.0.1"
    ports = "40000 > 5001" if frame.forward else "5001 > 40000"
    names = ((captures.SYN, "SYN"), (captures.FIN, "FIN"), (captures.ACK, "ACK"))
    flags = "|".join(name for bit, name in names if frame.flags & bit)
    stamp = f" ns3::TcpOptionTimestamp({frame.stamp};{frame.echo})" if options.stamps else ""
    payload = f" Payload (size={frame.size})" if frame.size else ""
    number = (other + 1 + frame.ack) % 2**32
    text = (
        "/NodeList/0/DeviceList/0/$ns3::PointToPointNetDevice/{} ns3::PppHeader (Point-to-Point "
        "Protocol: IP (0x0021)) ns3::Ipv4Header (tos 0x0 DSCP Default ECN Not-ECT ttl "
        f"{64 if frame.forward else 62} id {frame.ident} protocol 6 offset (bytes) 0 flags [none] "
        f"length: {frame.size + 40 + 12 * options.stamps} {ends}) ns3::TcpHeader ({ports} [{flags}]"
        f" Seq={(mine + 1 + frame.seq) % 2**32} Ack={number} Win=65535{stamp}){payload}"
    )
    if frame.forward:
        kinds = (("+", "TxQueue/Enqueue"), ("-", "TxQueue/Dequeue"))
    else:
        kinds = (("r", "MacRx"),)
    return [f"{kind} {frame.time:.9f} {text.format(what)}" for kind, what in kinds]


def iperf3(rng: random.Random) -> Log:
    """Streams in one or both directions.

    Some intervals are omitted, some streams end before others.
    """
    mss, told, omit = rng.choice((536, 1428, 1448, 8948)), rng.random() < 0.7, rng.choice((0, 0, 3))
    host = rng.choice((("10.0.0.1", "10.0.0.2"), ("fd::1", "fd::2"), ("::ffff:10.0.0.1",) * 2))
    control, count = rng.choice(("vegas", "cubic", None)), rng.randint(1, 5)
    sends = [rng.choice((True, True, False)) for _ in range(count)]
    over = [rng.choice((99, 99, rng.randint(omit + 1, 12))) for _ in range(count)]
    over[0] = 99
    acked, again = [0] * count, [0] * count
    start, intervals, connected = 0.0, [], list[dict[str, object]]()
    for k in range(count):
        ends = {"local_host": host[0], "local_port": 40000 + k}
        connected.append({"socket": 5 + k, **ends, "remote_host": host[1], "remote_port": 5201})
    for step in range(rng.randint(omit + 1, 20)):
        start = 0.0 if step == omit else start  # the clock begins anew
        end, row = start + rng.uniform(0.1, 1.1), []
        for k in range(count):
            if step >= over[k]:
                continue
            got, resent = rng.randrange(10**7) * rng.choice((0, 1, 1)), rng.choice((0, 0, 3))
            one = {"socket": 5 + k, "start": start, "end": end, "seconds": end - start}
            one |= {"bytes": got, "omitted": step < omit, "sender": sends[k]}
            if sends[k]:
                one |= {"retransmits": resent, "snd_cwnd": 10 * mss, "rtt": 40_000, "rttvar": 9}
            row.append(one)
            if step >= omit:
                acked[k] += got
                again[k] += resent
        rng.shuffle(row)
        intervals.append({"streams": row, "sum": {"bytes": 1}})
        start = end
    document = {
        "start": {
            "connected": connected,
            **({rng.choice(("tcp_mss", "tcp_mss_default")): mss} if told else {}),
            "test_start": {"protocol": "TCP", "num_streams": count, "omit": omit},
        },
        "intervals": intervals,
        "end": {"streams": [], **({"sender_tcp_congestion": control} if control else {})},
    }
    names = []
    for k in range(count):
        bare = [name.removeprefix("::ffff:") for name in host]
        shown = [f"[{name}]" if ":" in name else name for name in bare]
        ends = [f"{shown[0]}:{40000 + k}", f"{shown[1]}:5201"]
        names.append(">".join(ends if sends[k] else ends[::-1]))
    doubts = {"bytes-arrived"} if any(sends) else set()
    doubts |= set() if told else {"known-packet-size"}
    return Log(
        json.dumps(document, indent=rng.choice((None, 1))).encode(),
        dict(zip(names, map(float, acked), strict=True)),
        {name: float(n) for name, n, sent in zip(names, again, sends, strict=True) if sent} or None,
        controls=dict.fromkeys(names, control) if control else {},
        bytes=True,
        doubts=frozenset(doubts),
    )


def tcp_probe(rng: random.Random) -> Log:
    """Sockets of senders and of receivers; numbers that wrap, ports used again, lost events."""
    style, cookies = rng.choice(("trace-cmd", "ftrace", "perf")), rng.random() < 0.6
    events, delivered, lost = list[tuple[float, str]](), {}, rng.choice((0, 0, 7))
    for k in range(rng.randint(1, 4)):
        mss, time = rng.choice((536, 1428, 1448)), rng.uniform(9.0, 9.5)
        local, remote = (f"10.0.0.{k}:40000", "10.0.1.9:5001")
        if rng.random() < 0.3:
            local, remote = f"[fd::{k}]:4000", "[fd::99]:5001"
        una = rng.choice((rng.randrange(2**32), 2**32 - rng.randrange(1, 40) * mss))
        for number in range(rng.choice((1, 1, 2))):
            una += number * (2**22 + rng.randrange(2**30))  # far from the connection before it
            first = seen = high = una
            cookie = f" sock_cookie={rng.randrange(1, 2**40):x}" if cookies else ""
            for i in range(rng.randint(2, 60)):
                seen, high = una, max(high, una + mss * rng.randint(4, 12))
                ends = f"src={local} dest={remote} mark=0x0 data_len=0 "
                seq = f"snd_nxt={high % 2**32:#x} snd_una={una % 2**32:#x} "
                events.append((time, f"{ends}{seq}snd_cwnd=10 ssthresh=7 snd_wnd=9 srtt=40000"
                               f" rcv_wnd=9{cookie}"))  # fmt: skip
                time += rng.choice((0.00002, 0.004, 0.04))
                una += mss * (1 if i == 0 else rng.choice((0, 1, 2, 4)))
            delivered[f"{local}>{remote}" + " #2" * number] = float(seen - first)
            time += 5.0
        if rng.random() < 0.3:  # the other end, on this host too: it sends nothing
            still = f"src={remote} dest={local} mark=0x0 data_len=9 snd_nxt=0x7 snd_una=0x7 "
            events += [(time + i, f"{still}snd_cwnd=10 srtt=9") for i in range(3)]
    events.sort(key=lambda event: event[0])
    head = {
        "trace-cmd": "  iperf3-829   [003]  {:.6f}: tcp_probe:   family=AF_INET ",
        "ftrace": "  <idle>-0       [001] ..s7. {:.6f}: tcp_probe: family=AF_INET ",
        "perf": "iperf3  829 [003] {:.6f}: tcp:tcp_probe: ",
    }[style]
    lines = [head.format(time) + text for time, text in events]
    if lost:
        lines.insert(rng.randrange(len(lines)), f"CPU:1 [LOST {lost} EVENTS]")
    doubts = {"known-packet-size"} | ({"every-event"} if lost else set())
    data = ("\n".join(lines) + "\n").encode()
    return Log(data, delivered, bytes=True, doubts=frozenset(doubts))


def wrong(kind: str, rng: random.Random, path: Path) -> str:
    """The errors of a reading of a random file."""
    log: Log = globals()[kind](rng)
    path.write_bytes(log.data)
    trace = read(path)
    if set(trace.flows) != set(log.delivered):
        return f"flows {trace.flows}, not {list(log.delivered)}"
    lengths = np.diff(trace.edges)[:, None]
    rate = trace.get("throughput")
    size = trace.get("payload") if log.bytes else 1.0
    found = {"delivered": (np.nansum(rate * lengths, axis=0) * size, log.delivered)}
    for name, true in (("retransmits", log.again), ("loss", log.lost)):
        values = trace.get(name)
        if true is not None and values is not None:
            found[name] = (np.sum(values, axis=0), true)
        elif true is not None and not trace.doubts:
            return f"{name} unknown, and no word why"
    for name, (got, true) in found.items():
        for flow, value in zip(trace.flows, got, strict=True):
            if flow not in true and np.isnan(value):
                continue
            said = np.isnan(value) and trace.doubts and log.doubts is None
            if not (said or abs(value - true[flow]) <= 1e-6 * max(1.0, 1e-3 * true[flow])):
                return f"{name} of {flow}: {value}, not {true[flow]}"
    if log.doubts is not None and set(trace.doubts) != log.doubts:
        return f"doubts {set(trace.doubts)}, not {set(log.doubts)}"
    if log.controls is not None and dict(trace.controls) != log.controls:
        return f"congestion controls {trace.controls}, not {log.controls}"
    return ""
