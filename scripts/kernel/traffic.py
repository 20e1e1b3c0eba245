"""Bulk TCP flows inside a namespace: ``receive N``, or ``send`` with the job on standard input.

Both commands end when their standard input is closed.  They use the standard library only.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import sys
import threading
import time
from typing import Any

PORT = 5001
CHUNK = bytes(1 << 16)  # what a sender hands to the kernel at a time
LEAST = 1 << 14  # bytes that wake the receiver: ACKs do not wait for it, and it costs less
TCP_CC_INFO = 26  # not named by Python's socket module
# struct tcp_info of <linux/tcp.h>: bytes, then words, then the counters up to delivered
INFO = struct.Struct("=8B24I4Q6I4Q2I")
FIELDS = {  # for each column of a sample its place among the values of INFO
    "cwnd": 26,
    "ssthresh": 25,
    "rtt_us": 23,
    "minrtt_us": 39,
    "bytes_acked": 34,
    "unacked": 12,
    "lost": 14,
    "total_retrans": 31,
    "ca_state": 1,
    "snd_mss": 10,
    "notsent_bytes": 38,
    "delivered_pkts": 46,
    "rwnd_limited_us": 44,
}
# columns of what tcp_vegas reports (struct tcpvegas_info), and its RTT while it has measured none
VEGAS = ("vegas_enabled", "vegas_rttcnt", "vegas_baseRTT_us", "vegas_minRTT_us")
NO_SAMPLE = 2147483647


def end_with_input() -> None:
    """End this process as soon as its parent closes the pipe or ends."""

    def watch() -> None:
        """Wait for the end of standard input, then end the process."""
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def receive(flows: int) -> None:
    """Accept connections on 10.88.0.2, .3, ... and read their data, which are thrown away."""
    end_with_input()
    sockets = selectors.DefaultSelector()
    for i in range(flows):
        server = socket.create_server((f"10.88.0.{i + 2}", PORT))
        sockets.register(server, selectors.EVENT_READ, "listens")
    say("ready")
    buffer = bytearray(1 << 18)
    while True:
        for key, _ in sockets.select():
            end = key.fileobj
            assert isinstance(end, socket.socket)  # noqa: S101 - nothing else was registered
            if key.data == "listens":
                new = end.accept()[0]
                new.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, LEAST)
                sockets.register(new, selectors.EVENT_READ, "receives")
            elif not _bytes_read(end, buffer):
                sockets.unregister(end)
                end.close()


def _bytes_read(end: socket.socket, buffer: bytearray) -> int:
    """Read what has arrived into ``buffer``; return its length, 0 if the connection has ended."""
    try:
        return end.recv_into(buffer)
    except ConnectionError:
        return 0


def send() -> None:
    """Run the job's flows; write samples as CSV if the job's sampler is ``tcp_info``."""
    job = json.loads(sys.stdin.readline())
    end_with_input()
    sockets = [_socket(i, flow) for i, flow in enumerate(job["flows"])]
    say("ready")
    begun = time.monotonic()
    flows = list(zip(sockets, job["flows"], strict=True))
    for i, (end, flow) in enumerate(flows):
        line = (end, f"10.88.0.{i + 2}", begun + flow["start"], begun + flow["stop"])
        threading.Thread(target=_pour, args=line, daemon=True).start()
    if job["sampler"] == "tcp_info":
        say(",".join(("time", "flow", "cc", *FIELDS, *VEGAS)))
        for k in range(1, int(job["duration"] / job["interval"]) + 1):
            time.sleep(max(begun + k * job["interval"] - time.monotonic(), 0.0))
            for end, flow in flows:
                row = _sampled(end, flow["control"])
                if row:
                    now = time.monotonic() - begun
                    say(",".join([f"{now:.6f}", flow["name"], flow["control"], *map(str, row)]))
    time.sleep(max(begun + job["duration"] - time.monotonic(), 0.0))


def _socket(i: int, flow: dict[str, Any]) -> socket.socket:
    """Flow ``i``'s socket at the sender, with its congestion control."""
    end = socket.socket()
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow["control"].encode())
    end.bind((f"10.77.{i}.2", 0))
    return end


def _pour(end: socket.socket, peer: str, start: float, stop: float) -> None:
    """Send to ``peer`` as fast as TCP allows, from ``start`` to ``stop`` on ``time.monotonic``."""
    time.sleep(max(start - time.monotonic(), 0.0))
    end.connect((peer, PORT))
    end.settimeout(0.5)
    while time.monotonic() < stop:
        try:
            end.send(CHUNK)
        except TimeoutError:
            continue
    # close at once, by a RST: what is still in the send buffer is not sent
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


def _sampled(end: socket.socket, control: str) -> list[int] | None:
    """A connection's values of the columns ``FIELDS`` and ``VEGAS``, as the kernel reports them.

    The result is ``None`` if the connection is not established.
    """
    try:
        raw = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO.size)
        cells = INFO.unpack(raw)
        of_vegas = (0, 0, NO_SAMPLE, NO_SAMPLE)
        if control == "vegas":
            of_vegas = struct.unpack("=4I", end.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 16))
    except (OSError, struct.error):
        return None
    if cells[0] != 1 or cells[FIELDS["snd_mss"]] == 0:  # TCP_ESTABLISHED
        return None
    return [*(cells[place] for place in FIELDS.values()), *of_vegas]


def say(line: str) -> None:
    """Write one line to standard output and flush."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send()
