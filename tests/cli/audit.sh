#!/bin/sh
# What audit says of logs that are not there or not whole, and of names that it does not know.
. "$(dirname "$0")/common.sh"

# A run that was killed leaves what it had written: who took part, and how far all have come.
grown() { [ "$(cat killed 2>/dev/null | wc -c)" -gt 600000 ]; }
"$PLAIT" train --data part --workers 4 --topology ps --consistency ssp:2 --optimizer adagrad --epochs 1000000 --events killed --quiet &
pid=$!
until_holds 300 grown || fail "the log does not grow"
kill -9 $pid
wait $pid || true
run cut audit killed
[ $code -eq 1 ] || fail "exit $code of the log of a killed run"
grep -q 'events of 4 workers and 4 servers' cut.out || fail "of a killed run: $(cat cut.out)"
grep -q 'killed: the event log is cut: .* all workers had ended [1-9][0-9]* clocks' cut.out || fail "how far? $(cat cut.out)"
grep -q '^plait: audit: killed: the event log is cut: ' cut.err || fail "a cut log is not told on stderr: $(cat cut.err)"

works whole train --data part --workers 2 --topology ps --consistency ssp:2 --epochs 1 --events whole --quiet
works own audit whole --json
grep -q '"promised": true' own.out || fail "what the run promised is not told: $(cat own.out)"
works other audit --as async whole --json
grep -q '"promised": false' other.out || fail "--as is told as what the run promised: $(cat other.out)"
exits 2 "unknown consistency 'spp'; did you mean 'ssp'" nearest audit --as spp:2 whole
exits 2 "known: bsp, ssp, " list audit --as theirs whole
exits 2 "form ssp:S" form audit --as ssp whole

# Ranks that are processes have written a file each.
cp whole ranks.0
exits 1 'ranks: no such file; did you mean ranks\.\*' ranks audit ranks
exits 1 'gone' gone audit gone
# A copy that is averaged with neighbours' holds a share of the others' updates: it is no clocks old.
works train train --data part --epochs 1 --workers 3 --topology gossip:ring --events copies --quiet
works copies audit copies
says copies.out "staleness is not counted" || fail "of copies: $(cat copies.out)"
works copies audit --json copies
says copies.out '"staleness": null, "staleness_max": null' || fail "of copies: $(cat copies.out)"
finish
