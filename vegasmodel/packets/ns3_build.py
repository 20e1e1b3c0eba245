"""Finds ns-3, compiles our ns-3 program at its first use and keeps it in the user's cache."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from vegasmodel.packets.engine import EngineFailed, EngineMissing, one_line
from vegasmodel.support.children import Budget, workplace
from vegasmodel.support.files import atomic_write

__all__ = ["Installation", "find", "program"]

# our program in C++: the file that is compiled, and those that it includes
SOURCES = ("ns3.cc", "ns3_connection.h", "ns3_link.h", "ns3_rate_delay.h", "ns3_wait.h")
LIBRARIES = ("point-to-point", "internet", "traffic-control", "network", "core")  # of ns-3
PATIENCE = 900.0  # seconds that the compiler may take
# how to install ns-3, for error messages
INSTALL = "apt-get install libns3-dev g++, or pip install 'vegasmodel[ns3]' (with g++)"


@dataclass(frozen=True)
class Installation:
    """An installed ns-3: its version, such as ``3.37``, and the compiler options for using it."""

    version: str
    before: tuple[str, ...]  # options that stand before the name of the source file
    after: tuple[str, ...]  # options that stand after it


@functools.cache
def find() -> Installation | None:
    """Find an installed ns-3: that of the Python package ``ns3``, else the system's, else ``None``.

    The Python package is not imported; only its headers and libraries are used.
    """
    return _of_python_package() or _of_system()


def _of_python_package() -> Installation | None:
    """The ns-3 of the Python package ``ns3``, if it is installed.

    Its library's name gives the version: ``libns3.37-core.so``.
    """
    spec = importlib.util.find_spec("ns3")
    for place in (spec.submodule_search_locations if spec else None) or ():
        root = Path(place)
        for core in sorted(root.glob("lib*/libns3.*-core.so")):
            version = core.name.removeprefix("libns").removesuffix("-core.so")
            names = tuple(f"-lns{version}-{name}" for name in LIBRARIES)
            folder = str(core.parent)
            return Installation(
                version,
                ("-std=c++20", "-isystem", str(root / "include")),
                (f"-L{folder}", f"-Wl,-rpath,{folder}", *names),
            )
    return None


def _of_system() -> Installation | None:
    """The ns-3 that the system's package manager or the user has installed, if there is one.

    A file of pkg-config tells its version. The compiler options in this file are not used, because
    they are malformed in Debian 12.
    """
    for prefix in (Path("/usr/lib"), Path("/usr/local/lib")):
        for note in sorted(
            [*prefix.glob("pkgconfig/ns3-core.pc"), *prefix.glob("*/pkgconfig/ns3-core.pc")]
        ):
            found = re.search(
                r"^Version: *([\w.]+)", note.read_text("utf-8", "replace"), re.MULTILINE
            )
            if found:
                names = tuple(f"-lns3-{name}" for name in LIBRARIES)
                return Installation(found[1], ("-std=c++17",), names)
    return None


def program() -> Path:
    """Compile our ns-3 program if needed; return its path.

    It is compiled when it is first used, and again when its source or the installed ns-3 has
    changed.  Raises ``EngineMissing`` if ns-3 or the compiler is missing, and ``EngineFailed`` if
    compiling fails.
    """
    ns3 = find()
    if ns3 is None:
        raise EngineMissing(f"ns-3 is not installed: {INSTALL}")
    compiler = shutil.which("g++")
    if compiler is None:
        raise EngineMissing(
            "the C++ program that runs ns-3 is compiled on first use: apt-get install g++"
        )
    folder = Path(str(resources.files("vegasmodel.packets")))
    digest = hashlib.sha256(repr(ns3).encode())
    for name in SOURCES:
        digest.update((folder / name).read_bytes())
    path = _cache() / f"ns3-{ns3.version}-{digest.hexdigest()[:16]}"
    if not path.is_file():
        _compile([compiler, "-O2", *ns3.before, str(folder / SOURCES[0])], ns3.after, path)
    return path


def _cache() -> Path:
    """The folder for the compiled program: vegasmodel's part of the user's cache."""
    own = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(own) if Path(own).is_absolute() else Path.home() / ".cache") / "vegasmodel"


def _compile(command: list[str], libraries: tuple[str, ...], path: Path) -> None:
    """Compile our ns-3 program to the file ``path``; raise ``EngineFailed`` if this fails.

    ``command`` is the compiler with its options and the source file. ``libraries`` are options that
    must stand after the source file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with workplace() as place, atomic_write(path) as part:
            line = [*command, "-o", str(part), *libraries]
            done = place.run(line, Budget(PATIENCE), environment={"TMPDIR": str(place.folder)})
            if done.status != 0:
                lines = done.err.splitlines()
                first = next((line for line in lines if "error" in line), "".join(lines[:1]))
                raise EngineFailed(
                    f"the C++ program that runs ns-3 does not compile: {one_line(first)}"
                )
    except subprocess.TimeoutExpired:
        raise EngineFailed(
            f"compiling the C++ program that runs ns-3 took more than {PATIENCE:g} s"
        ) from None
    except OSError as error:
        reason = f"{error.strerror or error}; XDG_CACHE_HOME names another folder"
        raise EngineFailed(
            f"the C++ program that runs ns-3 cannot be kept in {path.parent}: {reason}"
        ) from None
