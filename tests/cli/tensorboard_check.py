"""tensorboard_check.py DIR RECORD METRICS [net]: TensorBoard reads DIR, and finds there what the run's record (--json) and its
metrics say; of a net its graph."""
import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
events.Reload()
record = json.loads(open(sys.argv[2]).read().splitlines()[-1])
lines = [json.loads(line) for line in open(sys.argv[3])]
near = lambda a, b: math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-30)
scalar = lambda tag: [(e.step, e.value) for e in events.Scalars(tag)]

# progress: the clocks of the metrics, one to one
losses = scalar("train/loss")
expected = [(line["clock"], line["loss"]) for line in lines if line["event"] == "clock" and line["loss"] is not None]
assert len(losses) == len(expected) > 0, (losses, expected)
assert all(a[0] == b[0] and near(a[1], b[1]) for a, b in zip(losses, expected)), (losses, expected)
validated = scalar("validation/loss")
expected = [(line["clock"], line["validation_loss"]) for line in lines if line["event"] == "epoch"]
assert [s for s, _ in validated] == [s for s, _ in expected] and all(near(a[1], b[1]) for a, b in zip(validated, expected))
right = [line["validation_accuracy"] for line in lines if line["event"] == "epoch"]
assert len(right) == record["epochs"] and all(near(a[1], b) and 0.5 < b <= 1 for a, b in zip(scalar("validation/accuracy"), right))
rates = [v for _, v in scalar("train/learning_rate")]
expected = [line["learning_rate"] for line in lines if line["event"] == "clock"]
assert len(rates) == len(expected) and all(near(a, b) for a, b in zip(rates, expected)), (rates, expected)
assert rates == sorted(rates, reverse=True) and rates[0] > rates[-1] >= 0, rates  # a cosine
assert all(v > 0 for _, v in scalar("speed/clocks_per_second"))
sent = [v for _, v in scalar("bytes/sent_by_leading_rank")]
assert sent == sorted(sent) and 0 < sent[-1] < record["bytes_sent"]

# the end: the record
for tag, key in (("end/objective", "objective"), ("end/train_loss", "train_loss"), ("test/loss", "test_loss"),
                 ("test/accuracy", "test_accuracy"), ("bytes/sent_by_all", "bytes_sent")):
    assert near(scalar(tag)[-1][1], record[key]) and scalar(tag)[-1][0] == record["clocks"], (tag, scalar(tag), record[key])

# histograms: each table before training and after each epoch, with as many values as it has
widths = {"w1": record["features"] * 16, "b1": 16, "w2": 16, "b2": 1} if len(sys.argv) > 4 else {"w": record["features"], "b": 1}
assert sorted(events.Tags()["histograms"]) == sorted("weights/" + name for name in widths)
for name, values in widths.items():
    found = events.Histograms("weights/" + name)
    assert [h.step for h in found] == [record["clocks"] // record["epochs"] * e for e in range(record["epochs"] + 1)]
    for h in (f.histogram_value for f in found):
        assert h.num == values == sum(h.bucket) and h.min <= h.max and near(h.bucket_limit[-1], h.max), (name, h)
        assert h.sum_squares >= h.sum * h.sum / h.num * (1 - 1e-9)
    assert found[0].histogram_value.sum_squares != found[-1].histogram_value.sum_squares, name + " has not moved"

if len(sys.argv) > 4:
    nodes = {node.name: node for node in events.Graph().node}
    assert len(nodes) == len(events.Graph().node), "names of nodes are not unique"
    for node in nodes.values():
        for source in node.input:
            assert source.split(":")[0] in nodes, f"{node.name} has an input {source}"
    assert {"x", "w1", "b1", "w2", "b2"} <= set(nodes)
    assert {"matmul", "relu", "inc", "row_loss"} <= {node.op for node in nodes.values()}
    first = next(node for node in nodes.values() if list(node.input) == ["x", "w1"])
    assert first.op == "matmul" and [d.size for d in first.attr["_output_shapes"].list.shape[0].dim] == [-1, 16], first
else:
    assert not events.Tags()["graph"]
