"""Fuzzes one reader with atheris, which prefers inputs that reach new code (coverage).

Started by ``fuzz_readers.py --guided``:  python fuzz_guided.py FORMAT COUNT SEED FOLDER

The compiled reader of ns-2's traces runs as plain Python here.  So atheris sees its coverage, and
Python reports every index outside an array.
"""

import importlib
import json
import os
import sys
from pathlib import Path

try:
    import atheris
except ModuleNotFoundError:
    sys.exit("this needs atheris: pip install atheris")

ROOT = Path(__file__).parent.parent
os.environ["NUMBA_DISABLE_JIT"] = "1"
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["vegasmodel.packets"]):
    importlib.import_module("vegasmodel.packets.reading")
    for module in (ROOT / "vegasmodel" / "packets" / "readers").glob("[a-z]*.py"):
        importlib.import_module(f"vegasmodel.packets.readers.{module.stem}")

fuzz_readers = importlib.import_module("fuzz_readers")
samples = importlib.import_module("tests.packets.samples")

LONGEST = 8192  # bytes of an input
EVERY = 200  # inputs after which the counts are written


def main() -> None:
    """Feed ``COUNT`` inputs to the reader and write the counts to ``FOLDER/count.json``."""
    name, count, seed, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    watch = fuzz_readers.Watch(name, folder)
    wrong: list[str] = []

    def feed(data: bytes) -> None:
        """Read one input, which atheris has made.

        The process ends inside atheris, so the counts are written now and then, and at the end.
        """
        reason = watch.feed(data, name)
        done = watch.count.outcomes.total()
        if reason:
            wrong.append(fuzz_readers.keep(data, name, f"guided-{done}", reason))
        if done % EVERY == 0 or done >= count:
            found = (watch.count.outcomes, watch.count.slowest, watch.count.largest, wrong)
            (folder / "count.json").write_text(json.dumps(found))

    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir()
    for i, sample in enumerate(samples.every_format(packets=6, lines=12)[name]):
        (corpus / str(i)).write_bytes(sample)
    escaped = (
        "".join(f"\\x{byte:02x}" for byte in word)
        for word in importlib.import_module("tests.packets.mutations").NASTY
    )
    words.write_text("".join(f'"{word}"\n' for word in escaped))
    flags = [f"-runs={count}", f"-seed={seed}", f"-max_len={LONGEST}", f"-dict={words}"]
    limits = ["-rss_limit_mb=4096", "-timeout=100", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *flags, *limits, str(corpus)], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
