"""Compares the ops and the refusals that docs/onnx.md lists with those of the code.

usage: onnx_docs.py ONNX_RUN SOURCE_DIR [--write]     --write: puts the list of refusals into the page"""
import os
import re
import subprocess
import sys

RUN, SOURCE = sys.argv[1:3]
PAGE = os.path.join(SOURCE, "docs", "onnx.md")
BEGIN, END = "<!-- refusals: made by tests/graph/onnx_docs.py --write -->\n", "<!-- end of refusals -->\n"
FILES = [("The file", ["onnx/decode.c", "form/import.c", "form/import_attrs.c"]),
         ("Elements, types, numbers by chance", ["form/import_elements.c"]), ("Shapes and reductions", ["form/import_shapes.c"]),
         ("Lengths", ["form/import_lengths.c"]), ("By number", ["form/import_numbers.c"]), ("Networks", ["form/import_layers.c"]),
         ("Images", ["form/import_images.c"]), ("Recurrent layers", ["form/import_recurrent.c"])]
CALL = re.compile(r'PLAIT_EREFUSED,\s*((?:"(?:[^"\\]|\\.)*"\s*|PLI_ONNX_TYPES\s*)+)')
TYPES = "FLOAT, DOUBLE, BFLOAT16, UINT8, INT32, INT64 and BOOL"


def plain(text):
    """A format for readers: the parts that a message fills in become `..`."""
    text = re.sub(r"'?%[-.0-9]*(?:ll|z)?[a-z]'?", "..", text).replace('\\"', '"')
    return re.sub(r"\s+", " ", text).strip()


def refusals(name):
    found = []
    for match in CALL.finditer(open(os.path.join(SOURCE, "src", "graph", name)).read()):
        parts = re.findall(r'"((?:[^"\\]|\\.)*)"|PLI_ONNX_TYPES', match.group(1).replace("PLI_ONNX_TYPES", f'"{TYPES}"'))
        text = plain("".join(parts))
        if text not in found:
            found.append(text)
    return found


def made():
    lines = []
    for title, names in FILES:
        texts = [text for name in names for text in refusals(name)]
        lines += [f"{title}:\n", "\n"] + [f"- {text}\n" for text in texts] + ["\n"] if texts else []
    return "".join(lines)


def main():
    page = open(PAGE).read()
    before, rest = page.split(BEGIN)
    listed, after = rest.split(END)
    if "--write" in sys.argv:
        with open(PAGE, "w") as file:
            file.write(before + BEGIN + made() + END + after)
        return 0
    wrong = 0
    if listed != made():
        wrong += 1
        print(f"{PAGE}: the list of refusals is not what the code refuses: {sys.argv[0]} .. --write makes it")
    ops = subprocess.run([RUN, "--ops"], check=True, capture_output=True, text=True).stdout.split()
    rows = [line for line in before.splitlines() if line.startswith("| `")]
    named = {word for row in rows for code in re.findall("`([^`]*)`", row.split(" | ")[0]) for word in code.split()}
    for op in ops:
        if op not in named:
            wrong += 1
            print(f"{PAGE}: {op} is read and not in the table")
    known = [name for _, names in FILES for name in names]
    for folder in ("form", "onnx"):
        for name in sorted(os.listdir(os.path.join(SOURCE, "src", "graph", folder))):
            here = f"{folder}/{name}"
            if re.match(r"(import|decode).*\.c$", name) and refusals(here) and here not in known:
                wrong += 1
                print(f"{here} refuses and is not listed in {sys.argv[0]}")
    print(f"{len(ops)} ops, {sum(len(refusals(name)) for name in known)} refusals, {wrong} errors")
    return 1 if wrong else 0


sys.exit(main())
