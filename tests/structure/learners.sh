#!/bin/sh
# A learner is one folder or file, and one line in learners.c: no learner includes another, nothing else includes one or names
# its symbol, the folders of learn call down only; and no circle of headers runs across folders of any room.
# usage: learners.sh ROOT
set -eu
. "$(dirname "$0")/common.sh"
root=$1
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }

python3 - "$root" >"$work/found" <<'END'
import pathlib, re, sys

root = pathlib.Path(sys.argv[1])
source = root / "src"
include = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)

# --- no circle of interfaces across folders ------------------------------------------------------------------------------
# A .c file may call what is listed in a folder whose files know its own header (forms of a collective, passes of a plan):
# that is how registries work. Headers of two folders that need each other are one interface in two places.
def unit(path):
    return str(path.relative_to(source).with_suffix(""))

edges = {}
for path in sorted(source.rglob("*.h")):
    to = edges.setdefault(unit(path), set())
    for name in include.findall(path.read_text(errors="replace")):
        if (source / name).exists() and unit(source / name) != unit(path):
            to.add(unit(source / name))

def components(graph):
    """Tarjan's, without recursion."""
    index, low, on, stack, out, count = {}, {}, set(), [], [], 0
    for begin in graph:
        if begin in index:
            continue
        work = [(begin, iter(sorted(graph.get(begin, ()))))]
        index[begin] = low[begin] = count; count += 1
        stack.append(begin); on.add(begin)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = count; count += 1
                    stack.append(other); on.add(other)
                    work.append((other, iter(sorted(graph.get(other, ())))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        last = stack.pop(); on.discard(last); part.append(last)
                        if last == node:
                            break
                    out.append(sorted(part))
    return out

for part in components(edges):
    folders = {str(pathlib.PurePath(u).parent) for u in part}
    if len(folders) > 1:
        print("src: a circle of includes across folders: " + ", ".join(part))

# --- the room learn ----------------------------------------------------------------------------------------------------
learn = source / "learn"
if learn.is_dir():
    layers = ["loss", "learner.h", "model", "keep", "solve", "supervised", "LEARNER", "learners.c", "learn.h", "run"]
    symbol = re.compile(r"^const plait_learner (pli_\w+) = ", re.M)

    def place(path):
        parts = path.relative_to(learn).parts
        return parts[0]

    own = {}  # place -> symbols of its learners
    for path in sorted(learn.rglob("*.c")):
        for name in symbol.findall(path.read_text()):
            own.setdefault(place(path), []).append(name)
    # learner.h is a layer, and so is a file of a small learner with its header.
    def layer(name):
        stem = name.split(".")[0]
        if name in layers:
            return name
        if name in own or name + ".c" in own or stem + ".c" in own:
            return "LEARNER"
        return None

    def family(name):
        return name.split(".")[0]

    listed = (learn / "learners.c").read_text() if (learn / "learners.c").exists() else ""
    for where, names in own.items():
        for name in names:
            if len(re.findall(r"\b%s\b" % name, listed)) != 1:
                print(f"src/learn/learners.c: {name} of src/learn/{where} is not listed once")
    for path in sorted(learn.rglob("*.[ch]")):
        if path.stem.endswith(("_test", "_fuzz")):
            continue
        here = place(path)
        mine = layer(here)
        text = path.read_text()
        if mine is None:
            print(f"{path.relative_to(root)}: src/learn/{here} is neither a layer nor a learner")
            continue
        for name in include.findall(text):
            if not name.startswith("learn/"):
                continue
            there = name.split("/")[1]
            other = layer(there)
            if other is None or other == mine and (mine != "LEARNER" or family(here) == family(there)):
                continue
            if other == mine:
                print(f"{path.relative_to(root)}: the learner {here} includes {name} of another")
            elif layers.index(other) > layers.index(mine):
                print(f"{path.relative_to(root)}: {here} includes {name}, which is above it")
            elif other == "LEARNER":
                print(f"{path.relative_to(root)}: {here} includes {name} of a learner; it knows learners by learner.h")
        if here == "learners.c":
            continue
        for where, names in own.items():
            for name in names:
                if family(where) != family(here) and re.search(r"\b%s\b" % name, text):
                    print(f"{path.relative_to(root)}: names {name}, which learners.c alone does")
END
while read -r line; do violation "$line"; done <"$work/found"
verdict "learn, and circles across folders"
