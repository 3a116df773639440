"""A few hosts on one machine: each a network and a hostname of its own, on a switch whose links are shaped by `tc tbf`.

All of it lives in namespaces that the benchmark itself has entered (`enter`): mounts, processes and networks that nobody
outside sees, and that the kernel takes away with the last process in them, however that ends. Nothing is left to clean
up, and nothing is sent that another network could carry."""
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

from common import Run, Skipped

SUBNET, PORT = "10.99.0", 47000
PINGS, STREAMS = 200, 3
INSIDE = "BENCH_INSIDE"
TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "mount": "mount"}
# What one tbf lets pass at once after a pause: more than the kernel's own largest packet, 64 kB and its heads, which it would
# otherwise cut up, so that a byte costs a core ten times as much and answers to the pieces crowd the way back. And what it
# holds back: more than any window, so that nothing is lost.
BURST, QUEUE = "96kb", "64mb"


def enter():
    """Returns within namespaces of its own; what called it waits for that, and hands it a Ctrl-C."""
    if os.environ.get(INSIDE) == "1":
        for number in (signal.SIGINT, signal.SIGTERM):  # the first process of a namespace gets none that it does not take
            signal.signal(number, lambda number, _: os._exit(128 + number))
        return
    if os.geteuid() != 0:
        raise Skipped("networks of its own need root: run it as root, or by sudo")
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            raise Skipped(f"there is no {tool}: apt-get install {package}")
    command = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    child = subprocess.Popen(command, env=dict(os.environ, **{INSIDE: "1"}))
    # unshare waits deaf to signals; its child is to have them, and dies with it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: child.kill())
    code = child.wait()
    sys.exit(code if code >= 0 else 128 - code)


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skipped(f"{' '.join(str(word) for word in words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Network:
    """hosts h0, h1, ... on a switch. folder: for its own small files. window: bytes of MPI's sockets; 0: as they grow."""

    def __init__(self, count, folder, window=0):
        self.folder, self.hosts, self.window = pathlib.Path(folder), [], window
        self.folder.mkdir(parents=True, exist_ok=True)
        call("hostname", "switch")
        call("ip", "link", "set", "lo", "up")
        call("ip", "link", "add", "switch", "type", "bridge")
        call("ip", "link", "set", "switch", "up")
        call("ip", "addr", "add", f"{SUBNET}.254/24", "dev", "switch")
        names = "".join(f"{SUBNET}.{i + 1} h{i}\n" for i in range(count))
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{SUBNET}.254 switch\n{names}")
        call("mount", "--bind", self.folder / "hosts", "/etc/hosts")
        for i in range(count):
            self._add(i)

    def _add(self, i):
        holder = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", f"hostname h{i} && echo && exec sleep infinity"],
                                  stdout=subprocess.PIPE)
        holder.stdout.readline()
        self.hosts.append(holder.pid)
        (self.folder / f"h{i}").write_text(str(holder.pid))
        call("ip", "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", holder.pid)
        call("ip", "link", "set", f"port{i}", "master", "switch")
        call("ip", "link", "set", f"port{i}", "up")
        self.on(i, "ip", "link", "set", "lo", "up")
        self.on(i, "ip", "addr", "add", f"{SUBNET}.{i + 1}/24", "dev", "eth0")
        self.on(i, "ip", "link", "set", "eth0", "up")

    def within(self, i, *words):
        """The command that runs words on host i."""
        return ["nsenter", "-t", self.hosts[i], "--net", "--uts", *words]

    def on(self, i, *words):
        return call(*self.within(i, *words))

    def shape(self, megabits):
        """The same for all links, each way."""
        for i in range(len(self.hosts)):
            words = ["root", "tbf", "rate", f"{megabits}mbit", "burst", BURST, "limit", QUEUE]
            call("tc", "qdisc", "replace", "dev", f"port{i}", *words)
            self.on(i, "tc", "qdisc", "replace", "dev", "eth0", *words)

    def wire_bytes(self):
        """What all hosts have sent so far, with the heads of all layers."""
        return sum(json.loads(self.on(i, "ip", "-s", "-j", "link", "show", "eth0"))[0]["stats64"]["tx"]["bytes"]
                   for i in range(len(self.hosts)))

    def measure(self, megabits):
        """One stream between two hosts: bytes a second, seconds one way of a small message, and what TCP costs a core: seconds
        a message to send or to take, and a byte."""
        def ends(role, *more):
            words = [sys.executable, __file__, role, f"{SUBNET}.2", *more]
            return subprocess.Popen([str(word) for word in self.within(1 if role == "serve" else 0, *words)], stdout=subprocess.PIPE, text=True)
        server = ends("serve")
        server.stdout.readline()
        begun = interrupts()
        client = ends("ask", int(megabits * 1e6 / 8))
        mine, others = (json.loads(end.communicate()[0]) for end in (client, server))
        # The kernel also works for the links where no process is charged: interrupts, of both ends and of the switch.
        cost = {part: (mine[part] + others[part]) / 2 for part in ("message", "byte")}
        carried = (STREAMS + 0.25) * int(megabits * 1e6 / 8)
        return {"bandwidth": mine["bandwidth"], "latency": mine["latency"], "kernel": (interrupts() - begun) / carried, **cost}

    def agent(self, prefix):
        """The script by which mpirun starts its daemon on a host; prefix: where the MPI lies."""
        script = self.folder / "agent"
        script.write_text(f'#!/bin/sh\npid=$(cat "{self.folder}/$1") || exit 1\nshift\n'
                          f'export OPAL_PREFIX="{prefix}" PRTE_PREFIX="{prefix}" PMIX_PREFIX="{prefix}"\n'
                          'exec nsenter -t "$pid" --net --uts sh -c "$*"\n')
        script.chmod(0o755)
        return script

    def mpirun(self, prefix, ranks, words, timeout=300, modules=None):
        """One rank a host, which speak TCP with each other. modules: where a program finds the transport, if not by itself."""
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
               "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1",
               "OMPI_MCA_btl_tcp_if_include": "eth0", "OMPI_MCA_btl_tcp_flags": "send", "OMPI_MCA_mpi_yield_when_idle": "1",
               "OMPI_MCA_btl_tcp_sndbuf": str(self.window), "OMPI_MCA_btl_tcp_rcvbuf": str(self.window)}
        hosts = ",".join(f"h{i}" for i in range(ranks))
        if modules is not None:
            env["PLAIT_MODULES"] = str(modules)
        exported = [word for name in env if name.startswith(("OMPI_MCA", "PLAIT")) for word in ("-x", name)]
        return Run([pathlib.Path(prefix) / "bin" / "mpirun", "--prtemca", "plm_ssh_agent", self.agent(prefix), "--host", hosts, "-n",
                    ranks, "--bind-to", "none", *exported, *words], env=env, timeout=timeout)


# --- the two ends of a measurement, each a process on its host ---------------------------------------------------

def receive(peer, count, into=memoryview(bytearray(1 << 20))):
    while count > 0:
        count -= peer.recv_into(into, min(count, len(into)))


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def interrupts():
    """Seconds that all cores have spent in interrupts, hard and soft."""
    fields = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()
    return (int(fields[6]) + int(fields[7])) / os.sysconf("SC_CLK_TCK")


def costs(small, large):
    """small, large: (messages, bytes, seconds of a core)."""
    message = small[2] / small[0]
    return {"message": message, "byte": max(0, large[2] - large[0] * message) / large[1]}


def serve(address):
    listener = socket.create_server((address, PORT))
    print("", flush=True)
    peer, _ = listener.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tally = {False: [0, 0, 0], True: [0, 0, 0]}
    while True:
        begun = cpu_seconds()
        head = peer.recv(8, socket.MSG_WAITALL)
        if len(head) < 8:
            print(json.dumps(costs(tally[False], tally[True])))
            return
        count = int.from_bytes(head, "little")
        receive(peer, count)
        peer.sendall(b".")
        of = tally[count > 1]
        of[0], of[1], of[2] = of[0] + 2, of[1] + count, of[2] + cpu_seconds() - begun


def ask(address, large):
    peer = socket.create_connection((address, PORT))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = {count: count.to_bytes(8, "little") + bytes(count) for count in (1, large // 4, large)}

    def seconds(count):
        start = time.perf_counter()
        peer.sendall(data[count])
        peer.recv(1)
        return time.perf_counter() - start
    seconds(large // 4)  # TCP opens its window
    begun = cpu_seconds()
    latency = statistics.median(seconds(1) for _ in range(PINGS)) / 2
    small = (2 * PINGS, PINGS, cpu_seconds() - begun)
    begun = cpu_seconds()
    bandwidth = statistics.median(large / (seconds(large) - 2 * latency) for _ in range(STREAMS))
    print(json.dumps({"bandwidth": bandwidth, "latency": latency, **costs(small, (2 * STREAMS, STREAMS * large, cpu_seconds() - begun))}))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        ask(sys.argv[2], int(sys.argv[3]))
