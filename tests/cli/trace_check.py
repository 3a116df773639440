"""trace_check.py TRACE RANKS [WORD=NAME,NAME...]: a Chrome trace whose spans lie within each other or apart, on every track;
every rank is there; every worker (a rank that trains) has all NAMEs of category WORD."""
import collections
import json
import sys

trace = json.load(open(sys.argv[1]))
ranks, tracks, names = int(sys.argv[2]), collections.defaultdict(list), collections.defaultdict(set)
told = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
assert sorted(told) == list(range(ranks)), told
assert trace["otherData"]["dropped"] == 0, trace["otherData"]
for event in trace["traceEvents"]:
    assert event["ph"] in "XM", event
    if event["ph"] == "X":
        begin, length = round(event["ts"] * 1000), round(event["dur"] * 1000)  # whole nanoseconds
        assert length >= 0 and event["name"] and event["cat"] in ("phase", "step", "call", "wait", "op"), event
        assert event["cat"] != "wait" or event["args"]["for"], event
        tracks[event["pid"], event["tid"]].append((begin, -length))
        fused = event["name"].replace("fused ", "").replace(" + ", ", ")  # "matmul + add, relu" is three
        names[event["pid"], event["cat"]].update(fused.split(", ") if event["cat"] == "op" else [event["name"]])
assert sum(map(len, tracks.values())) == trace["otherData"]["spans"]
assert {pid for pid, _ in tracks} == set(range(ranks)), "a rank without spans"
for track, spans in tracks.items():
    ends = []
    for begin, length in sorted(spans):
        while ends and ends[-1] <= begin and not (length == 0 and ends[-1] == begin):
            ends.pop()
        assert not ends or begin - length <= ends[-1], f"{track}: {begin} for {-length} ns crosses an end at {ends[-1]}"
        ends.append(begin - length)
for wanted in sys.argv[3:]:
    category, listed = wanted.split("=")
    for rank in range(ranks):
        if told[rank].startswith("rank "):
            missing = set(listed.split(",")) - names[rank, category]
            assert not missing, f"{told[rank]} has no {category} {missing}, but {names[rank, category]}"
