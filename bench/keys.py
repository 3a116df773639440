"""(c) Push and pull of a million random keys of one float between one worker and one server in separate processes, fresh
keys each round."""
from common import BUILD, Run, header, limits, median, need_plait, row, run_alone


def main(rows=1000000, count=5):
    plait = need_plait()
    program = BUILD / "bench" / "keys"
    machine = limits()
    environment = {"PLAIT_MODULES": str(BUILD / "modules")}
    header(f"(c) {rows} random keys of one float, worker and server in separate processes")
    results = [Run([plait, "launch", "-n", 2, "--", program, "--keys", rows], env=environment).json() for _ in range(count)]
    # Key and value cross shared memory once; the server touches a random line a key, on one core.
    wire = machine["copy_gb_s"] * 1e9 / 12
    fastest = 1.0 / (1.0 / wire + 1.0 / (machine["gather_m_s"] * 1e6 / 2)) / 1e6
    good = True
    for way in ("push", "pull"):
        rate = median([result[f"{way}_keys_s"] for result in results]) / 1e6
        good &= row(f"{way}, limit: a copy and random lines", rate, None, fastest, (">=", 10), rate, "M keys/s")
    return good


if __name__ == "__main__":
    run_alone(main)
