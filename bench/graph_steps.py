"""(g) Whole training steps of small networks beside PyTorch (PyPI torch; eager, and compiled once beside it), on two threads."""
import sys

from common import BUILD, Run, Skipped, header, median, need_module, need_plait, pairs, row, run_alone

NETS = (("mlp", 1.0), ("small", 3.0), ("cnn", 0.9), ("lstm", 1.2))


def peer(name, steps, threads, compiled):
    """The same step by PyTorch; run in the private environment."""
    import json
    import resource
    import time

    import torch
    from torch import nn

    torch.manual_seed(1)
    torch.set_num_threads(threads)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.LSTM(64, 128)
            self.out = nn.Linear(128, 64)

        def forward(self, x):
            return self.out(self.cells(x)[0]).flatten(0, 1)

    def dense(*widths):
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def images():
        return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))

    net, x, rows, classes = {
        "mlp": lambda: (dense(784, 512, 256, 10), torch.randn(256, 784), 256, 10),
        "small": lambda: (dense(128, 256, 256, 10), torch.randn(32, 128), 32, 10),
        "cnn": lambda: (images(), torch.randn(64, 1, 28, 28), 64, 10),
        "lstm": lambda: (Lstm(), torch.randn(64, 16, 64), 1024, 64),
    }[name]()
    label = torch.arange(rows) * 7 % classes
    if compiled:
        net = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    seconds = []
    for step in range(-steps // 5 - 3, steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(net(x), label)
        loss.backward()
        optimizer.step()
        loss.item()
        if step >= 0:
            seconds.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"net": name, "step_seconds": sorted(seconds)[len(seconds) // 2], "peak_mib": peak}))


def main(steps=200, count=5, threads=2):
    need_plait()
    python = need_module("torch", "torch")
    header("(g) training steps beside PyTorch eager, ms a step; figure: how many times as fast")
    good = True
    for name, wanted in NETS:
        arguments = [name, "--steps", steps, "--threads", threads]
        ours, theirs = pairs(count, lambda: Run([BUILD / "bench" / "graph_steps", *arguments]).json(),
                             lambda: Run([python, __file__, "--peer", name, steps, threads]).json())
        mine, other = (median([result["step_seconds"] for result in results]) * 1e3 for results in (ours, theirs))
        good &= row(name, mine, other, None, (">=", wanted), other / mine, "ms")
        try:
            fast = Run([python, __file__, "--peer", name, steps, threads, "compiled"]).json()["step_seconds"] * 1e3
            row(f"{name}: beside torch.compile", mine, fast, None, None, fast / mine, "ms")
        except Skipped as reason:
            print(f"  {name}: torch.compile does not run here: {str(reason).strip().splitlines()[-1]}")
        share = median([result["gflop_s"] / result["sgemm_gflop_s"] for result in ours])
        good &= row(f"{name}: products at this share of the sgemm peak", share, None, 1, (">=", 0.8) if name == "mlp" else None,
                    share if name == "mlp" else None)
        memory, their_memory = (median([result["peak_mib"] for result in results]) for results in (ours, theirs))
        good &= row(f"{name}: peak memory", memory, their_memory, None, ("<=", 1.0), memory / their_memory, "MiB")
    return good


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:] == ["compiled"])
    else:
        run_alone(main)
