"""Measures scenarios with a stock Debian kernel, which has tcp_vegas, in a virtual machine.

    sudo .venv/bin/python scripts/kernel/debian.py build FOLDER
    .venv/bin/python scripts/kernel/debian.py run FOLDER SCENARIO.toml --out RESULTS
    .venv/bin/python scripts/kernel/debian.py run FOLDER SCENARIO.toml --out RESULTS --waits 3000

QEMU translates the instructions (no KVM), and the virtual clock counts instructions (``icount``).
So time in the virtual machine does not depend on the host, and an idle machine skips to its next
timer.  ``build`` takes the kernel and the programs from Debian's archive with apt and debootstrap.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from job import controls, job

from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import reference
from vegasmodel.scenario import Scenario

HERE = Path(__file__).resolve().parent
# of Debian, its kernel's package, and the version of the package
RELEASE, PACKAGE, VERSION = "bookworm", "linux-image-6.1.0-56-amd64", "6.1.192-2"
KERNEL = PACKAGE.removeprefix("linux-image-")  # the kernel's release
PROGRAMS = "python3-minimal,libpython3-stdlib,iproute2,kmod,ethtool"  # Debian's packages
# of the kernel's modules, the folders and single files that the rig may need
MODULES = ("net/sched", "net/ipv4", "net/ipv6", "lib", "crypto", "drivers/virtio")
SINGLE = ("drivers/net/veth.ko", "drivers/net/tun.ko", "drivers/block/virtio_blk.ko")
# folders that the file system does without; scripts that run in the virtual machine
UNUSED = ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache/apt", "var/lib/apt")
GUEST = ("rig.py", "traffic.py", "wire.py", "waits.py")
DISK = 256 << 20  # bytes for the results
QEMU = (
    *("qemu-system-x86_64", "-accel", "tcg", "-cpu", "qemu64", "-m", "1500", "-smp", "1"),
    *("-icount", "shift=0,sleep=off"),  # one instruction is one nanosecond; idle time is skipped
    *("-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio"),
)
BOOT = "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init random.trust_cpu=on"


class MissingError(Exception):
    """A program or a file is missing; the message is one line."""


def build(folder: Path) -> None:
    """Make the kernel ``vmlinuz`` and its file system ``initrd`` in ``folder`` (130 MB)."""
    _need("apt-get", "dpkg-deb", "debootstrap", "cpio", "depmod")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        root, package = Path(name, "root"), Path(name, "package")
        subprocess.run(["apt-get", "download", f"{PACKAGE}={VERSION}"], cwd=name, check=True)
        subprocess.run(["dpkg-deb", "-x", *map(str, Path(name).glob("*.deb")), package], check=True)
        include = f"--include={PROGRAMS}"
        subprocess.run(["debootstrap", "--variant=minbase", include, RELEASE, root], check=True)
        for part in UNUSED:
            shutil.rmtree(root / part)
        shutil.rmtree(root / "dev")
        (root / "dev").mkdir()
        _modules(package / "lib/modules" / KERNEL, root / "lib/modules" / KERNEL)
        subprocess.run(["depmod", "-b", root, KERNEL], check=True)
        shutil.copy(HERE / "guest_init.sh", root / "init")
        (root / "init").chmod(0o755)
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        with (folder / "initrd").open("wb") as file:
            line = ["cpio", "-o", "-H", "newc", "--quiet", "--owner", "0:0"]
            subprocess.run(line, cwd=root, input=names.encode(), stdout=file, check=True)
        shutil.copy(package / f"boot/vmlinuz-{KERNEL}", folder / "vmlinuz")


def _modules(source: Path, target: Path) -> None:
    """Copy the kernel modules that the rig may need, and the lists of all modules."""
    for part in MODULES:
        shutil.copytree(source / "kernel" / part, target / "kernel" / part)
    for one in SINGLE:
        (target / "kernel" / one).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / "kernel" / one, target / "kernel" / one)
    for index in source.glob("modules.*"):
        shutil.copy(index, target)


def run(
    folder: Path,
    scenarios: list[Scenario],
    results: Path,
    *,
    waits: int | None = None,
    **choices: Any,
) -> None:
    """Make all runs of the scenarios in one virtual machine, in order.

    ``folder`` has the machine's kernel and file system (``build``).  For each run, two files are
    written into the folder ``results``: ``FINGERPRINT.RUN.log`` with the samples, and
    ``FINGERPRINT.RUN.counted`` with the counts of packets.  FINGERPRINT is the scenario's, and RUN
    the number of the run.

    With ``waits``, the machine sends this number of packets in place of each run, to test the
    random waits of the first sender.  The file ``.counted`` then has the result.  ``choices`` are
    arguments of ``job``.
    """
    _need(QEMU[0])
    if not (folder / "initrd").exists():
        raise MissingError(f"{folder} has no initrd: build it first")
    with tempfile.TemporaryDirectory() as name:
        jobs, disk = Path(name, "jobs.tar"), Path(name, "results")
        with tarfile.open(jobs, "w") as tar:
            for script in GUEST:
                tar.add(HERE / script, script)
            for scenario in scenarios:
                for k in range(scenario.run.times):
                    made = Path(name, f"{scenario.fingerprint()}.{k}.json")
                    numbers = job(scenario, k, **choices) | ({"waits": waits} if waits else {})
                    made.write_text(json.dumps(numbers))
                    tar.add(made, made.name)
        with disk.open("wb") as file:
            file.truncate(DISK)
        drives = [f"file={path},if=virtio,format=raw" for path in (jobs, disk)]
        command = [*QEMU, "-kernel", str(folder / "vmlinuz"), "-initrd", str(folder / "initrd")]
        command += ["-append", BOOT, *(word for drive in drives for word in ("-drive", drive))]
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
        results.mkdir(parents=True, exist_ok=True)
        with tarfile.open(disk) as tar:
            tar.extractall(results, filter="data")


def _need(*programs: str) -> None:
    """Raise ``MissingError`` if a program is not installed."""
    for program in programs:
        if shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/bin") is None:
            raise MissingError(
                f"needs {program}: apt install qemu-system-x86 debootstrap cpio kmod"
            )


def main() -> int:
    """Run the command; the exit status is 2, with one line of error, if something is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("folder", type=Path)
    runner = commands.add_parser("run")
    runner.add_argument("folder", type=Path)
    runner.add_argument("files", nargs="+", type=Path)
    runner.add_argument(
        "--each", help="a key and its values: run each scenario once for each value"
    )
    runner.add_argument("--out", type=Path, required=True)
    runner.add_argument(
        "--waits",
        type=int,
        metavar="PACKETS",
        help="test the first sender's random waits by this number of packets",
    )
    runner.add_argument("--control", "-c", action="append", default=[], metavar="FLOW=NAME")
    options = parser.parse_args()
    try:
        if options.command == "build":
            build(options.folder)
        else:
            tables = reference.tables(options.files, options.each)
            scenarios = [Scenario.from_dict(table) for table in tables]
            chosen = controls(options.control)
            run(options.folder, scenarios, options.out, waits=options.waits, instead=chosen)
    except (
        FieldError,
        MissingError,
        OSError,
        subprocess.CalledProcessError,
        tarfile.TarError,
    ) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
