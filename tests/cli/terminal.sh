#!/bin/sh
# On a terminal a bar that fits, colored unless NO_COLOR; elsewhere plain lines, ever farther apart.
. "$(dirname "$0")/common.sh"

works plain train --data part --optimizer adagrad --epochs 64
awk '/clock/ { n++ } END { exit !(n >= 4 && n <= 12) }' plain.err || fail "$(grep -c clock plain.err) lines of progress in 64 epochs"
LC_ALL=C grep -q "$(printf '\033\|\r')" plain.err && fail "escapes off a terminal"
command -v python3 >/dev/null || skip "no python3, which gives the terminal"

cat >terminal.py <<'END'
import fcntl, os, pty, re, select, struct, subprocess, sys, termios
columns, words = int(sys.argv[1]), sys.argv[2:]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
child = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave)
# This side keeps the slave open: when its last end closes, what the master has not read yet may be lost.
out = b""
while True:
    ended = child.poll() is not None
    if select.select([master], [], [], 0 if ended else 0.05)[0]:
        out += os.read(master, 65536)
    elif ended:
        break
code = child.returncode
lines = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;]*[mK]", "", out.decode()))
bars = [line for line in lines if line.startswith("epoch")]
assert code == 0, code
assert bars, out
assert max(map(len, bars)) < columns, max(bars, key=len)
assert ("[#" in "".join(bars)) == (columns >= 60), bars
assert (b"\x1b[32m" in out) == (os.environ.get("NO_COLOR", "") == "" and columns >= 60 and os.environ["TERM"] != "dumb"), out
assert "50/50" in bars[-1], bars
assert b"model hash" in out, out
END
for columns in 40 60 80 200; do
    TERM=xterm NO_COLOR='' python3 terminal.py $columns "$PLAIT" train --data part --optimizer adagrad --epochs 50 || fail "$columns columns"
done
TERM=xterm NO_COLOR=1 python3 terminal.py 80 "$PLAIT" train --data part --optimizer adagrad --epochs 50 || fail "80 columns, no color"
finish
