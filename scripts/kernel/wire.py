"""Makes links with a delay, for kernels without netem: ``wire.py RTT RTT ...``.

For each RTT there is a pair of TUN devices: ``s0 r0``, ``s1 r1``, ...  A packet that enters s
leaves r at once.  A packet that enters r (an ACK) leaves s after RTT seconds.  The process ends
when its standard input is closed.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA  # of <linux/if_tun.h>, as are the next two (IFF_TUN, IFF_NO_PI)
TUN, NO_INFORMATION = 1, 0x1000
LONGEST = 65535  # bytes of a packet


def device(name: str) -> int:
    """A TUN device in this namespace; it lives as long as the descriptor."""
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), TUN | NO_INFORMATION))
    return end


def packets(end: int) -> list[bytes]:
    """All packets that wait on a device; ``end`` is its file descriptor."""
    found = []
    try:
        while True:
            found.append(os.read(end, LONGEST))
    except OSError:  # no more, or the device is still down
        return found


def put(end: int, packet: bytes) -> None:
    """Hand a packet to the device ``end``; one that the kernel refuses (device down) is lost."""
    try:
        os.write(end, packet)
    except OSError:
        return


def main(delays: list[float]) -> None:
    """Carry packets until standard input ends.

    There is a wire for each flow. On the way back, ACKs wait for the time in ``delays``, in s.
    """
    wires = [(device(f"s{i}"), device(f"r{i}")) for i in range(len(delays))]
    # of each wire the ACKs on their way, with the time at which each is due
    waiting: list[deque[tuple[float, bytes]]] = [deque() for _ in wires]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    ends = [0, *(end for wire in wires for end in wire)]
    while True:
        due = min((queue[0][0] for queue in waiting if queue), default=float("inf"))
        pause = min(max(due - time.monotonic(), 0.0), 1.0)
        ready, _, _ = select.select(ends, [], [], pause)
        if 0 in ready:
            return
        now = time.monotonic()
        for (near, far), queue, delay in zip(wires, waiting, delays, strict=True):
            if near in ready:
                for packet in packets(near):
                    put(far, packet)
            if far in ready:
                queue.extend((now + delay, packet) for packet in packets(far))
            while queue and queue[0][0] <= now:
                put(near, queue.popleft()[1])


if __name__ == "__main__":
    main([float(word) for word in sys.argv[1:]])
