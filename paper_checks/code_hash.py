"""A hash of what Python files do: comments, docstrings and layout do not change it.

The hash is made from the syntax tree of each file, and is the same in Python 3.11 to 3.13.  A later
version of Python may give the nodes of the tree more fields, which are empty for code that earlier
versions can run.  So fields that are empty do not enter the hash.
"""

import ast
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["code_hash", "structure"]


def code_hash(files: Iterable[Path]) -> str:
    """A hash of the code of the ``files``, in their order; 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(structure(ast.parse(path.read_bytes())).encode())
    return digest.hexdigest()[:16]


def structure(part: object) -> str:
    """A node of the syntax tree as text, with all nodes inside it.

    ``part`` may also be the value of a node's field: a list of nodes, a name or a constant.
    Statements that are only a text, such as docstrings, are left out, and so is a field that is
    ``None`` or an empty list.  An entry of a list may be ``None``, and stays.
    """
    if isinstance(part, list):
        return "[" + ", ".join(structure(entry) for entry in part if not _is_text(entry)) + "]"
    if not isinstance(part, ast.AST):
        return repr(part)
    texts = {name: structure(value) for name, value in ast.iter_fields(part) if value is not None}
    fields = ", ".join(f"{name}={text}" for name, text in texts.items() if text != "[]")
    return f"{type(part).__name__}({fields})"


def _is_text(statement: object) -> bool:
    """Whether a statement is only a text, and so does nothing."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


if __name__ == "__main__":
    sys.stdout.write(code_hash(map(Path, sys.argv[1:])) + "\n")
