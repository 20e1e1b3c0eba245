"""Measures how long packets wait at a sender of the rig, and in which order they leave.

``send N SEED GAP PEER`` sends N numbered datagrams in groups of one to five, with random pauses of
GAP seconds on average between groups.  ``receive N ADDRESS`` receives them at the other end of the
sender's own link and prints statistics of the waits, measured by the kernel's clocks.  Only the
standard library is used.
"""

from __future__ import annotations

import itertools
import json
import random
import socket
import struct
import sys
import time

PORT = 5002
STAMP = struct.Struct("=II Q")  # number, place in its group, ns at which it was handed over
SO_TIMESTAMPNS = 35  # not named by Python's socket module
TIME = struct.Struct("=qq")  # s and ns, as the kernel reports an arrival
LARGEST_GROUP = 5  # datagrams
SILENCE = 2.0  # seconds without a datagram, after which the others are taken for lost


def send(number: int, seed: int, gap: float, peer: str) -> None:
    """Send ``number`` datagrams to the address ``peer``, in groups of random size.

    The pauses between groups are random, with a mean of ``gap`` seconds. ``seed`` decides the
    groups and the pauses.
    """
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect((peer, PORT))
    k = 0
    while k < number:
        for place in range(rng.randint(1, LARGEST_GROUP)):
            end.send(STAMP.pack(k, place, time.time_ns()))
            k += 1
        time.sleep(rng.expovariate(1.0 / gap))


def receive(number: int, address: str) -> None:
    """Print the statistics as JSON when all ``number`` datagrams have come, or after a silence.

    They come to the address ``address`` of this host.
    """
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    end.bind((address, PORT))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    came: list[tuple[int, int, int]] = []  # number, ns handed over, ns arrived
    end.settimeout(10.0 * SILENCE)
    while len(came) < number:
        try:
            data, extra, _, _ = end.recvmsg(STAMP.size, 64)
        except TimeoutError:
            break
        end.settimeout(SILENCE)
        k, _, handed = STAMP.unpack(data)
        seconds, rest = TIME.unpack(extra[0][2])
        came.append((k, handed, seconds * 10**9 + rest))
    print(json.dumps(summary(number, came)))


def summary(number: int, came: list[tuple[int, int, int]]) -> dict[str, float]:
    """Statistics of the waits: how many packets were reordered, and how uniform the waits are.

    All packets that came count for the order (``overtaken``).  For the waits, only those count that
    found no packet waiting before them (``alone``).  ``distance`` is the Kolmogorov-Smirnov
    distance of their waits from the uniform distribution between the least and the greatest wait.
    At a level of 5 %, the test rejects this distribution above ``distance_at_5_percent``.

    ``came`` has for each packet its number, when it was handed to the kernel, and when it arrived,
    both in ns.  ``number`` is the number of packets sent.
    """
    alone = []  # waits, s, of packets that found no other packet waiting
    before = -1  # ns, when the packet before arrived
    for _, handed, arrived in came:
        if handed > before:
            alone.append((arrived - handed) / 1e9)
        before = arrived
    alone.sort()
    least, most, n = alone[0], alone[-1], len(alone)
    places = [(wait - least) / (most - least) for wait in alone]
    distance = max(max(abs(x - i / n), abs(x - (i + 1) / n)) for i, x in enumerate(places))
    return {
        "sent": number,
        "came": len(came),
        "overtaken": sum(a[0] > b[0] for a, b in itertools.pairwise(came)),
        "alone": n,
        "least_ms": 1e3 * least,
        "mean_ms": 1e3 * sum(alone) / n,
        "greatest_ms": 1e3 * most,
        "distance": distance,
        "distance_at_5_percent": 1.36 / n**0.5,  # the test's limit for many packets
    }


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
    else:
        receive(int(sys.argv[2]), sys.argv[3])
