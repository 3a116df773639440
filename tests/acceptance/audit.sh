#!/bin/sh
# Every pair that trains, run with an event log, keeps what it promises; and the audit's exit codes.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 600 >part
t="train --data part --workers 3 --epochs 2 --batch 60 --quiet"

# audited NAME words...: trains and wants the log proven
audited() {
    log=$1
    shift
    works "$log" $t "$@" --events "$log.events"
    works "$log-audit" audit "$log.events"
    grep -q '^proven$' "$log-audit.out" || fail "not proven: $*: $(tail -n 3 "$log-audit.out")"
}

for consistency in bsp ssp:0 ssp:2 essp:1 asp:3:4 bounded-delay:0 bounded-delay:2 sequential vap:0.01 vap:0.01:weak \
    downpour:2:3 async; do
    audited "ps-$consistency" --topology ps --consistency $consistency
done
for consistency in bsp ssp:2 asp:2:3 bounded-delay:1 vap:0.01 sequential async; do
    audited "local-$consistency" --topology local --consistency $consistency
done
audited allreduce --topology allreduce
audited keyed --topology ps --consistency ssp:2 --hash-bits 12 --servers 2
for graph in ring torus exp; do
    audited gossip-$graph --topology gossip:$graph
    audited gossip-$graph-async --topology gossip:$graph --consistency async
done
if "$PLAIT" version | grep -q '^sim .*found'; then
    for consistency in bsp async; do audited gossip-sim-$consistency --transport sim --topology gossip:exp --consistency $consistency; done
fi
audited lbfgs --topology allreduce --optimizer lbfgs
audited backup --topology ps --backup 1
grep -q 'nothing is promised' local-async-audit.out || fail "Hogwild is called proven"

run stale audit --as bsp --json ps-async.events
[ $code -eq 0 ] || [ $code -eq 4 ] || fail "exit $code of audit --as"
grep -q '"verdict": "\(proven\|refuted\)"' stale.out || fail "no verdict in $(cat stale.out)"
head -c 2000 ps-bsp.events >cut.events
run cut audit cut.events
[ $code -eq 1 ] && grep -q 'is cut' cut.out || fail "a cut log: exit $code, $(cat cut.out)"
: >empty.events
exits 1 'empty' empty audit empty.events
version=$(od -An -tu1 -j8 -N1 ps-bsp.events | tr -d ' ')
{ head -c 8 ps-bsp.events; printf "\\$(printf %03o $((version + 1)))"; tail -c +10 ps-bsp.events; } >newer.events
exits 1 "of version $((version + 1)); this plait reads versions 5 to $version" newer audit newer.events
exits 1 'is no event log' foreign audit part
exits 2 'no event log' nothing audit
exits 2 'consistency' unknown audit --as bps ps-bsp.events
finish
