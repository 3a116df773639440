#!/bin/sh
# Inside a host by memory, then one message out: the same model, refused where it would not hold, and less on the links between hosts.
. "$(dirname "$0")/common.sh"
t="train --data part --epochs 3 --batch 60 --json"

# near A B: the objectives of two runs agree but for rounding
near() { awk -v a="$(field "$1" objective)" -v b="$(field "$2" objective)" 'BEGIN { d = a > b ? a - b : b - a; exit !(d <= 1e-6 * a) }'; }

for topology in ps allreduce; do
    works plain-$topology $t --workers 4 --topology $topology
    works host-$topology $t --workers 4 --topology $topology --aggregate host
    near plain-$topology host-$topology || fail "$topology: another model by host"
done
works keyed $t --workers 4 --topology ps --hash-bits 10
works keyed-host $t --workers 4 --topology ps --hash-bits 10 --aggregate host
near keyed keyed-host || fail "keyed updates: another model by host"
works delay $t --workers 4 --topology ps --consistency bounded-delay:0 --aggregate host

# A net in stages, and in columns: the replicas' ranks of a part add up. The same bits, since sums are exact.
net="train --data part --epochs 2 --batch 60 --json --model mlp --layers 8,6 --reduce exact"
for topology in ps allreduce; do
    for cut in "--cut 2" "--columns 2"; do
        # shellcheck disable=SC2086
        works cut $net --workers 6 --topology $topology $cut
        # shellcheck disable=SC2086
        works cut-host $net --workers 6 --topology $topology $cut --aggregate host
        [ "$(field cut model_hash)" = "$(field cut-host model_hash)" ] || fail "$topology, $cut: another model by host"
    done
done

r="train --data part --workers 3 --aggregate host"
exits 2 'ps x ssp:2 is refused.*nearest is ps x bsp' ssp $r --topology ps --consistency ssp:2
exits 2 'topology local is refused.*nearest is ps' local $r --topology local
exits 2 'gossip:ring is refused.*nearest is allreduce' gossip $r --topology gossip:ring
exits 2 'backup workers is refused' backup $r --topology ps --backup 1
exits 2 'event log.*is refused' events $r --topology ps --events log
exits 2 'wants one of host' rack $t --aggregate rack

# Two hosts of four workers, a server on a third: one push leaves a host in place of four.
"$PLAIT" version | grep -q '^sim *found' || skip "no SimGrid"
cat >two.yaml <<'END'
version: 1
hosts:
  - {count: 2, cores: 4, bandwidth: 1 Mb/s}
  - {cores: 1, bandwidth: 1 Gb/s}
END
s="$t --transport sim --cluster two.yaml --workers 8 --servers 1 --topology ps"
works far $s
works far-host $s --aggregate host
near far far-host || fail "simulated: another model by host"
awk -v a="$(field far virtual_seconds)" -v b="$(field far-host virtual_seconds)" 'BEGIN { exit !(b < 0.8 * a) }' ||
    fail "by host it takes $(field far-host virtual_seconds) s of virtual time, else $(field far virtual_seconds) s"
works stages $net --transport sim --cluster two.yaml --workers 8 --topology ps --cut 2
works stages-host $net --transport sim --cluster two.yaml --workers 8 --topology ps --cut 2 --aggregate host
[ "$(field stages model_hash)" = "$(field stages-host model_hash)" ] || fail "simulated stages: another model by host"
awk -v a="$(field stages virtual_seconds)" -v b="$(field stages-host virtual_seconds)" 'BEGIN { exit !(b < a) }' ||
    fail "stages by host take $(field stages-host virtual_seconds) s of virtual time, else $(field stages virtual_seconds) s"
works rings $t --transport sim --cluster two.yaml --workers 8 --topology allreduce --collective ring
works tiers $t --transport sim --cluster two.yaml --workers 8 --topology allreduce --aggregate host
[ "$(field tiers collective)" = hierarchical ] || fail "--aggregate host sums by $(field tiers collective)"
exits 2 'does not know of hosts; nearest is collective hierarchical' both $t --transport sim --cluster two.yaml --workers 8 \
    --topology allreduce --aggregate host --collective ring
finish
