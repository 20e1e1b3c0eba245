"""Measures the running kernel's TCP between network namespaces; uses the standard library only.

    sudo python3 rig.py JOB.json LOG        # job.py makes the job from a scenario file

    sender --- one link a flow, its delay here ---> router --- rate and buffer here ---> receiver

The bottleneck is a link made by netem: packets leave one after another; one is in service and up to
``buffer`` packets wait.  ACKs are delayed on their way back, outside the bottleneck, so that the
round trip of a single data packet takes ``rtt``.

If the kernel has no netem, a process delays the ACKs (``wire.py``).  The link is then a token
bucket of one packet over a FIFO of ``buffer`` packets.  A token bucket releases a packet when a
real link would begin to send it, so the service time is added to the delay.

All devices are in three namespaces.  The machine's own interfaces, routes and settings do not
change, except the parameters of ``tcp_vegas``, which are restored afterwards.  No text is passed to
a shell.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
TOOLS = ("ip", "tc", "ss", "ethtool", "tee")  # programs that must be installed
ETHERNET = 14  # bytes of header that the queueing discipline counts
SETTINGS = {  # of the three namespaces only
    "net/ipv4/ip_forward": "1",
    "net/ipv4/tcp_no_metrics_save": "1",
    "net/ipv4/tcp_rmem": "4096 131072 33554432",
    "net/ipv4/tcp_wmem": "4096 131072 33554432",
    "net/ipv6/conf/all/disable_ipv6": "1",
}
VEGAS = Path("/sys/module/tcp_vegas/parameters")
CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
AT_ONCE = "100gbit"  # rate of a queue that keeps packets in order but hardly delays them: 0.12 us
REORDERED = ("TCPSACKReorder", "TCPRenoReorder", "TCPTSReorder")  # of /proc/net/netstat
# A token bucket may save tokens for this time, s, beside those of one packet: a timer of the kernel
# that is late by up to so much then does not slow the link.
SPARE = 1e-4


class RigError(Exception):
    """Something is missing, or the kernel refused something; the message is one line."""


def run(*words: str, text: str | None = None) -> str:
    """Run a command without a shell; return its output.  If it fails, raises ``RigError``."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "failed").splitlines()[-1]
        raise RigError(f"{' '.join(words)}: {reason}")
    return done.stdout


def check(job: dict[str, Any]) -> None:
    """Check that root rights, tools and congestion controls are there; else raise ``RigError``.

    ``job`` is the content of a job file, which names the congestion control of each flow.
    """
    controls = sorted({flow["control"] for flow in job["flows"]})
    for name in controls:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,14}", name):
            raise RigError(f"congestion control {name[:20]!r}: a name such as reno")
    if os.geteuid() != 0:
        raise RigError("needs root, to make network namespaces: run it with sudo")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise RigError(f"needs {', '.join(missing)}: apt install iproute2 ethtool")
    for name in controls:
        if name not in CONTROLS.read_text().split() and shutil.which("modprobe"):
            with contextlib.suppress(RigError):
                run("modprobe", f"tcp_{name}")
        if name not in CONTROLS.read_text().split():
            known = " ".join(sorted(CONTROLS.read_text().split()))
            raise RigError(f"kernel {os.uname().release} has no tcp_{name}, only {known}")


@contextlib.contextmanager
def vegas_parameters(wanted: dict[str, int] | None) -> Iterator[None]:
    """Set the parameters of tcp_vegas for the ``with`` block and restore them at its end.

    They hold for the whole machine. ``wanted`` has their values by name; ``None`` sets none.
    """
    before: dict[str, str] = {}
    try:
        for key, value in (wanted or {}).items():
            before[key] = (VEGAS / key).read_text()
            (VEGAS / key).write_text(str(value))
        yield
    finally:
        for key, old in before.items():
            (VEGAS / key).write_text(old)


class Network:
    """The three namespaces and their links."""

    def __init__(self, job: dict[str, Any], stack: contextlib.ExitStack) -> None:
        """Make the namespaces and links of ``job``; ``stack`` removes them when it closes."""
        self.job, self.stack = job, stack
        own = f"vegasmodel-{os.getpid()}"
        # the names of the namespaces end in s (sender), r (router) and d (destination)
        self.sender, self.router, self.receiver = (f"{own}-{role}" for role in "srd")
        for name in (self.sender, self.router, self.receiver):
            stack.callback(_delete, name)
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            for key, value in SETTINGS.items():
                if Path("/proc/sys", key).exists():
                    self.inside(name, "tee", f"/proc/sys/{key}", text=value)
        self.netem = job["delay"] != "user" and self._has_netem()
        self._bottleneck()
        if not self.netem:
            self._wire()
        for i, flow in enumerate(job["flows"]):
            self._access(i, flow)

    def inside(self, name: str, *words: str, text: str | None = None) -> str:
        """Run a command in a namespace and return its output."""
        return run("ip", "netns", "exec", name, *words, text=text)

    def python(self, name: str, script: str, *words: str) -> subprocess.Popen[str]:
        """Start a helper script in a namespace.

        It ends when its standard input is closed, which also happens if this process is killed.
        """
        line = ["ip", "netns", "exec", name, sys.executable, str(HERE / script), *words]
        pipe = subprocess.PIPE
        child = subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True)
        self.stack.callback(_end, child)
        return child

    def _has_netem(self) -> bool:
        """Whether the kernel can delay packets; raises ``RigError`` if it must, but cannot."""
        with contextlib.suppress(RigError):
            run("tc", "-n", self.router, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "0")
            return True
        if self.job["delay"] == "netem":
            raise RigError(f"kernel {os.uname().release} has no sch_netem; --delay user needs none")
        sys.stderr.write("no sch_netem in this kernel: a process delays the packets\n")
        return False

    def _pair(self, here: tuple[str, str], there: tuple[str, str], name: str, mtu: int) -> None:
        """Make a link, a veth pair, between two devices; each frame carries one packet.

        ``here`` and ``there`` are the two, each as (namespace, device). ``name`` is the part of
        their Ethernet addresses that differs from link to link. ``mtu`` is the largest IP
        packet in bytes.
        """
        new = ["link", "add", here[1], "address", f"02:00:00:{name}:01", "mtu", str(mtu)]
        peer = ["name", there[1], "address", f"02:00:00:{name}:02", "mtu", str(mtu)]
        run("ip", "-n", here[0], *new, "type", "veth", "peer", *peer, "netns", there[0])

    def _up(self, namespace: str, device: str, address: str) -> None:
        """Start a device with an address; it neither splits nor joins packets (no offload)."""
        ip = ("ip", "-n", namespace)
        run(*ip, "link", "set", device, "gso_max_segs", "1")
        off = [word for name in ("tso", "gso", "gro") for word in (name, "off")]
        self.inside(namespace, "ethtool", "-K", device, *off)
        run(*ip, "address", "add", address, "dev", device)
        run(*ip, "link", "set", device, "up")

    def _knows(self, namespace: str, device: str, address: str, ether: str) -> None:
        """Tell a namespace which Ethernet address an IP address has, so that it sends no ARP."""
        run(
            *("ip", "-n", namespace, "neighbour", "replace", address, "lladdr", ether),
            *("dev", device, "nud", "permanent"),
        )

    def _bottleneck(self) -> None:
        """Make the link from router to receiver, with the rate and the buffer of the job."""
        job = self.job
        largest = max(flow["packet_size"] for flow in job["flows"])
        self._pair((self.router, "out"), (self.receiver, "in"), "ff:ff", largest - ETHERNET)
        self._up(self.router, "out", "10.88.0.1/24")
        self._up(self.receiver, "in", "10.88.0.2/24")
        rate = round(job["rate"])
        qdisc = ("tc", "-n", self.router, "qdisc", "add", "dev", "out")
        if self.netem:
            run(*qdisc, "root", "netem", "rate", f"{rate}bit", "limit", str(job["buffer"] + 1))
        else:
            burst = largest + max(largest // 10, round(rate * SPARE / 8))
            size = ("rate", f"{rate}bit", "burst", str(burst), "limit", str(10 * largest))
            run(*qdisc, "root", "handle", "1:", "tbf", *size)
            run(*qdisc, "parent", "1:1", "handle", "10:", "pfifo", "limit", str(job["buffer"]))
        for i in range(len(job["flows"])):
            if i:
                where = (f"10.88.0.{i + 2}/24", "dev", "in")
                run("ip", "-n", self.receiver, "address", "add", *where)
            self._knows(self.router, "out", f"10.88.0.{i + 2}", "02:00:00:ff:ff:02")
        self._knows(self.receiver, "in", "10.88.0.1", "02:00:00:ff:ff:01")

    def _wire(self) -> None:
        """Start the process that makes a pair of devices for each flow and carries packets."""
        delays = [repr(flow["rtt"]) for flow in self.job["flows"]]
        _ready(self.python(self.router, "wire.py", *delays))

    def _access(self, i: int, flow: dict[str, Any]) -> None:
        """Make flow ``i``'s access link and its routes.

        Its data go to the address 10.88.0.(i + 2) of the receiver. Its ACKs wait at the router for
        the time that the round trip takes besides the transmission at the bottleneck.
        """
        # the devices at the sender's end and at the router's end of the link
        near, far, mtu = f"s{i}", f"r{i}", flow["packet_size"] - ETHERNET
        if self.netem:
            self._pair((self.router, far), (self.sender, near), f"00:{i:02x}", mtu)
        else:
            run("ip", "-n", self.router, "link", "set", near, "netns", self.sender)
            for namespace, device in ((self.sender, near), (self.router, far)):
                run("ip", "-n", namespace, "link", "set", device, "mtu", str(mtu))
        self._up(self.router, far, f"10.77.{i}.1/30")
        self._up(self.sender, near, f"10.77.{i}.2/30")
        if self.netem:
            self._knows(self.router, far, f"10.77.{i}.2", f"02:00:00:00:{i:02x}:02")
            self._knows(self.sender, near, f"10.77.{i}.1", f"02:00:00:00:{i:02x}:01")
            service = 8.0 * flow["packet_size"] / self.job["rate"]
            rest = max(flow["rtt"] - service, 0.0)
            delay = ("delay", f"{rest * 1e6:.0f}us", "limit", "100000")
            run("tc", "-n", self.router, "qdisc", "add", "dev", far, "root", "netem", *delay)
            self._waits(near, flow["send_jitter"])
        elif flow["send_jitter"] > 0.0:
            raise RigError("send_jitter needs sch_netem, which this kernel has not")
        route = [f"10.88.0.{i + 2}", "via", f"10.77.{i}.1", "dev", near]
        if flow["initial_window"]:
            route += ["initcwnd", str(flow["initial_window"])]
        run("ip", "-n", self.sender, "route", "add", *route)
        back = [f"10.77.{i}.0/30", "via", "10.88.0.1", "dev", "in"]
        if not flow["delayed_ack"]:
            back += ["quickack", "1"]
        run("ip", "-n", self.receiver, "route", "add", *back)

    def _waits(self, near: str, longest: float) -> None:
        """Let each packet of a sender wait for a random time, uniform from 0 to ``longest`` s.

        The packets keep their order.  By itself, netem sorts packets by the time at which they are
        due, so packets could overtake each other.  With a rate, a packet's delay begins when the
        packet before it has left (``netem_enqueue``), and the order is kept.
        """
        if longest > 0.0:
            half = f"{longest * 5e5:.3f}us"  # half of ``longest``, in microseconds
            # netem's arguments: the mean delay, and the largest deviation from it to either side
            wait = ("delay", half, half, "rate", AT_ONCE, "limit", "100000")
            run("tc", "-n", self.sender, "qdisc", "add", "dev", near, "root", "netem", *wait)


def _delete(name: str) -> None:
    """Delete a namespace, if there is one of this name."""
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _end(child: subprocess.Popen[str]) -> None:
    """End a helper: close its standard input; after 2 s kill it."""
    with contextlib.suppress(OSError):
        if child.stdin:
            child.stdin.close()
    try:
        child.wait(timeout=2)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _ready(child: subprocess.Popen[str]) -> None:
    """Wait for the helper's first line, ``ready``."""
    line = child.stdout.readline() if child.stdout else ""
    if line.strip() != "ready":
        raise RigError(line.strip() or "a helper process did not start")


def remove_stale() -> None:
    """Remove the namespaces of a rig that was killed before it could remove them."""
    for line in run("ip", "netns", "list").splitlines():
        found = re.match(r"vegasmodel-(\d+)-[srd]\b", line)
        if found and not Path("/proc", found[1]).exists():
            _delete(found[0])


def measure(job: dict[str, Any], log: Path) -> dict[str, Any]:
    """Run the job and write its samples to ``log``; return the router's packet counts."""
    check(job)
    remove_stale()
    with contextlib.ExitStack() as stack:
        stack.enter_context(vegas_parameters(job["vegas"]))
        network = Network(job, stack)
        _ready(network.python(network.receiver, "traffic.py", "receive", str(len(job["flows"]))))
        sender = network.python(network.sender, "traffic.py", "send")
        part = stack.enter_context(log.with_name(f".{log.name}.part").open("w", encoding="ascii"))
        stack.callback(Path(part.name).unlink, missing_ok=True)
        if sender.stdin is None or sender.stdout is None:
            raise RigError("the sender has no pipes")
        sender.stdin.write(json.dumps(job) + "\n")
        sender.stdin.flush()
        _ready(sender)
        if job["sampler"] == "ss":
            _sample(network, job, sender, part)
        else:
            shutil.copyfileobj(sender.stdout, part)
        if sender.wait():
            raise RigError("the sender failed; see its message above")
        part.close()
        Path(part.name).replace(log)
        return _counted(network)


def waits(job: dict[str, Any]) -> dict[str, Any]:
    """Test how the packets of the job's first sender wait (``waits.py``), without a measurement."""
    check(job)
    number, (flow, *_) = str(job["waits"]), job["flows"]
    gap = repr(2.0 * max(flow["send_jitter"], 1e-3))  # mean pause between two groups of packets, s
    with contextlib.ExitStack() as stack:
        network = Network(job, stack)
        receiver = network.python(network.router, "waits.py", "receive", number, "10.77.0.1")
        _ready(receiver)
        network.python(network.sender, "waits.py", "send", number, "1", gap, "10.77.0.1")
        line = receiver.stdout.readline() if receiver.stdout else ""
        return {"kernel": _kernel(), **json.loads(line)}


def _kernel() -> str:
    """The name and the release of the running kernel, such as ``Linux 6.1.0``."""
    return f"{os.uname().sysname} {os.uname().release}"


def _sample(network: Network, job: dict[str, Any], sender: Any, part: Any) -> None:
    """Write the output of ``ss`` every ``interval`` seconds, sockets in the order of the flows.

    ``job`` has the interval and the duration, and ``part`` is the file that is written. The
    sampling ends early if the process ``sender`` ends.
    """
    begun = time.monotonic()
    samples = int(job["duration"] / job["interval"]) + 1
    for k in range(samples):
        time.sleep(max(begun + k * job["interval"] - time.monotonic(), 0.0))
        if sender.poll() is not None:
            break
        now = time.monotonic() - begun
        lines = network.inside(network.sender, "ss", "-tinmHO", "dport", "=", ":5001").splitlines()
        part.write("\n".join([f"{now:.6f}", *sorted(lines, key=_peer)]) + "\n")


def _peer(line: str) -> int:
    """The last byte of the receiver's address in a line of ``ss``: 2 for the first flow."""
    found = re.search(r"10\.88\.0\.(\d+):5001", line)
    return int(found[1]) if found else 0


def _counted(network: Network) -> dict[str, Any]:
    """The packets that passed the bottleneck, the drops, and the kernel's version."""
    text = run("tc", "-n", network.router, "-s", "-j", "qdisc", "show", "dev", "out")
    fifo = next(entry for entry in json.loads(text) if entry["kind"] in ("netem", "pfifo"))
    return {
        "kernel": _kernel(),
        "link": "netem" if network.netem else "tbf",
        "delay": "netem" if network.netem else "user",
        "packets": fifo["packets"],
        "drops": fifo["drops"],
        "reordered": _reordered(network),
    }


def _reordered(network: Network) -> int:
    """How often the sender's kernel has detected reordering of packets."""
    lines = network.inside(network.sender, "cat", "/proc/net/netstat").splitlines()
    table = zip(lines[0].split(), lines[1].split(), strict=True)
    return sum(int(count) for name, count in table if name in REORDERED)


def _stop(number: int, _frame: object) -> NoReturn:
    """End the process for the signal ``number``, with the shell's exit status for it."""
    raise SystemExit(128 + number)


def catch_signals() -> None:
    """Let a signal end the measurement like an error, so that everything is removed."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _stop)


def main(arguments: list[str]) -> int:
    """Run a job file; the exit status is 2, with one line of error, if something is missing.

    ``arguments`` are the path of the job file and, unless it measures waits, that of the results.
    """
    catch_signals()
    try:
        job = json.loads(Path(arguments[0]).read_text())
        counted = waits(job) if "waits" in job else measure(job, Path(arguments[1]))
    except (RigError, OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return 2
    sys.stdout.write(json.dumps(counted) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
