#!/bin/sh
# What bench/simulated and its siblings measure a link by: the cost of a message and of a byte from counts; and that a
# shaped link lets the kernel's large packets pass whole. Where it cuts them up, a byte costs a core ten times as much
# on fast links, and a simulation that counts so foretells twice the time. The second part needs root and namespaces.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || skip "no python3"
python3 "$(dirname "$0")/links_check.py" costs || fail "costs of messages and bytes"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
for tool in ip tc nsenter unshare; do command -v $tool >/dev/null || skip "there is no $tool"; done
unshare --net --mount --uts --ipc --pid --fork --mount-proc true 2>/dev/null || skip "namespaces may not be made here"
code=0
python3 "$(dirname "$0")/links_check.py" packets >out 2>&1 || code=$?
[ $code -ne 77 ] || skip "$(cat out)"
[ $code -eq 0 ] || fail "packets: $(cat out)"
finish
