"""Writes docs/python-reference.md and the type stub plait/__init__.pyi from the package's docstrings and signatures.
The test python.docs checks that both are up to date. usage: reference.py ROOT [--check]"""
import inspect
import os
import sys

sys.path.pop(0)  # the sources beside this script have no built module
import plait  # noqa: E402

HEAD = """# The Python package, name by name

Written by `bindings/python/reference.py` from the docstrings. [python.md](python.md) is the guide.
"""
STUB_HEAD = '''"""Written by bindings/python/reference.py."""
from os import PathLike
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np
'''
KINDS = {bool: "bool", int: "int", float: "float", str: "str"}
GIVEN = {"callback": "Optional[Callable[[Any], Any]]", "n_jobs": "Optional[int]", "random_state": "Any",
         "class_weight": "Any", "max_features": "Any", "max_samples": "Optional[float]", "max_depth": "Optional[int]",
         "hidden_layer_sizes": "Union[int, Sequence[int]]"}
ARRAYS = {"predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "inverse_transform", "get",
          "values"}
SELVES = {"fit", "partial_fit"}


def public(thing):
    return [(name, value) for name, value in inspect.getmembers(thing)
            if not name.startswith("_")
            and (inspect.isfunction(value) or inspect.ismethod(value) or isinstance(value, property))
            and (value.fget if isinstance(value, property) else value).__module__.startswith("plait")]


def text_of(thing):
    return inspect.getdoc(thing) or ""


def signature_of(thing, name):
    parts = [part for part in inspect.signature(thing).parameters.values() if part.name != "self"]
    return f"{name}{inspect.Signature(parts)}"


def entry(name, thing):
    if not inspect.isclass(thing):
        return f"\n## {name}\n\n`{signature_of(thing, name)}`\n\n{prose(text_of(thing))}\n"
    head = signature_of(thing.__init__, name) if hasattr(thing, "fit") else name
    lines = [f"\n## {name}\n\n`{head}`\n\n{prose(text_of(thing))}\n"]
    for method, value in public(thing):
        shown = f"{method}" if isinstance(value, property) else signature_of(value, method)
        lines.append(f"- `{shown}`: {' '.join(text_of(value).split()) or 'as in scikit-learn'}")
    return "\n".join(lines) + "\n"


def prose(text):
    """Examples of a docstring as a fenced block."""
    before, mark, example = text.partition("\n>>> ")
    return before.strip() + (f"\n\n```pycon\n>>> {example.strip()}\n```" if mark else "")


def reference():
    return HEAD + "".join(entry(name, getattr(plait, name)) for name in plait.__all__)


def kind_of(part):
    if part.name in GIVEN:
        return GIVEN[part.name]
    kind = KINDS.get(type(part.default))
    if kind is None:
        return "Any"
    return f"Union[int, {kind}]" if kind == "float" else kind


def stub_of(thing, name):
    shown = []
    for part in inspect.signature(thing).parameters.values():
        if part.name == "self":
            shown.append("self")
            continue
        if part.kind == part.KEYWORD_ONLY and "*" not in shown and not any(p.startswith("*") for p in shown):
            shown.append("*")
        star = {part.VAR_KEYWORD: "**", part.VAR_POSITIONAL: "*"}.get(part.kind, "")
        shown.append(f"{star}{part.name}: {kind_of(part)}" + (" = ..." if part.default is not part.empty else ""))
    return f"def {name}({', '.join(shown)})"


def class_stub(name, thing):
    bases = [b.__name__ for b in thing.__mro__[1:] if b.__name__ in plait.__all__ or b in (RuntimeError, dict)]
    lines = [f"class {name}{'(' + bases[0] + ')' if bases else ''}:"]
    if hasattr(thing, "fit"):
        lines.append(f"    {stub_of(thing.__init__, '__init__')} -> None: ...")
        lines.append("    def get_params(self, deep: bool = ...) -> dict: ...")
        lines.append(f"    def set_params(self, **params: Any) -> {name}: ...")
        lines.append("    def __getattr__(self, name: str) -> Any: ...")
    for method, value in public(thing):
        if isinstance(value, property):
            lines += ["    @property", f"    def {method}(self) -> Any: ..."]
            continue
        if inspect.ismethod(value):
            lines += ["    @classmethod", f"    {stub_of(value, method).replace('(', '(cls, ', 1)} -> {name}: ..."]
            continue
        made = name if method in SELVES else "np.ndarray" if method in ARRAYS else "Table" if method == "table" else "Any"
        lines.append(f"    {stub_of(value, method)} -> {made}: ...")
    return "\n".join(lines if len(lines) > 1 else [lines[0] + " ..."])


def stubs():
    parts = [STUB_HEAD, "__version__: str", ""]
    order = sorted(plait.__all__, key=lambda name: (len(getattr(getattr(plait, name), "__mro__", ())), name))
    for name in order:
        thing = getattr(plait, name)
        made = {"train": "Record", "compare": "Comparison", "run": "list"}.get(name, "Any")
        parts.append(class_stub(name, thing) if inspect.isclass(thing) else f"{stub_of(thing, name)} -> {made}: ...")
    return "\n".join(parts) + "\n"


def main(root, check):
    stale = []
    for path, text in (("docs/python-reference.md", reference()), ("bindings/python/plait/__init__.pyi", stubs())):
        path = os.path.join(root, path)
        with open(path, encoding="utf-8") if os.path.exists(path) else open(os.devnull) as f:
            if f.read() == text:
                continue
        stale.append(path)
        if not check:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    if check and stale:
        sys.exit(f"not up to date: {', '.join(stale)}; run bindings/python/reference.py ROOT")


main(sys.argv[1], "--check" in sys.argv)
