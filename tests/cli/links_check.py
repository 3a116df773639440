"""Checks bench/network.py. usage: links_check.py costs|packets"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
sys.dont_write_bytecode = True

import network

RATE, STREAM = 450, 100  # Mb/s of the link; and the measured stream is as long as that of a link of so many
WHOLE = 20000  # bytes of a packet on average, at least: on an Ethernet it has 1,500


def costs():
    """400 messages in 2 ms; then 6 messages with 3,000,000 bytes in 30 us and 1.5 ms."""
    cost = network.costs((400, 200, 0.002), (6, 3000000, 0.00153))
    assert abs(cost["message"] - 5e-6) < 1e-12 and abs(cost["byte"] - 5e-10) < 1e-16, cost
    assert network.costs((400, 200, 0.002), (6, 3000000, 0.00001))["byte"] == 0, "less than the messages' own"


def packets():
    """The mean size of what a host receives of one stream."""
    network.enter()
    with tempfile.TemporaryDirectory() as folder:
        net = network.Network(2, folder)
        net.shape(RATE)
        read = lambda: json.loads(net.on(1, "ip", "-s", "-j", "link", "show", "eth0"))[0]["stats64"]["rx"]
        before = read()
        net.measure(STREAM)
        after = read()
    mean = (after["bytes"] - before["bytes"]) / (after["packets"] - before["packets"])
    assert mean >= WHOLE, f"a packet has {mean:.0f} bytes on average, expected at least {WHOLE}: the link cuts them up"


try:
    {"costs": costs, "packets": packets}[sys.argv[1]]()
except network.Skipped as reason:
    print(reason)
    sys.exit(77)
