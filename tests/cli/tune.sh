#!/bin/sh
# plait tune: the best of the trials is what cv says of its options; a search that was cut off goes on from its file; what
# makes no sense is refused by name.
. "$(dirname "$0")/common.sh"

# of NAME KEY: the first value of a key in a file of trials or a result
of() { grep -o "\"$2\": [^,}]*" "$1" | head -n 1 | sed 's/.*: //; s/"//g'; }

works all tune --data part --search random --trials 5 --folds 3 --jobs 1 --trials-file all.jsonl --out all.model --json --quiet
[ "$(wc -l <all.jsonl)" -eq 6 ] || fail "lines: $(cat all.jsonl)"
[ -s all.model ] || fail "the best is not saved"

# The best has the least loss, which cv gives for its options.
least=$(grep -o '"loss": [^,]*' all.jsonl | sed 's/.*: //' | sort -g | head -n 1)
best=$(sed 's/.*"best": //' all.out | tr '{' '\n' | grep -o '"loss": [^,]*' | head -n 1 | sed 's/.*: //')
[ "$least" = "$best" ] || fail "the best has $best, the least loss is $least"
l2=$(grep "\"loss\": $least" all.jsonl | sed 's/.*"l2": "\([^"]*\)".*/\1/')
works judged cv --data part --folds 3 --l2 "$l2" --json --quiet
mean=$(of judged.out test_loss)
awk "BEGIN { d = $mean / $least - 1; exit !(d < 1e-9 && d > -1e-9) }" || fail "cv says $mean, tune $least"

# After a kill in the middle of a line, the rest is done anew, and all is as it was.
head -n 3 all.jsonl >cut.jsonl
sed -n 4p all.jsonl | cut -c1-20 | tr -d '\n' >>cut.jsonl
works cut tune --data part --search random --trials 5 --folds 3 --jobs 1 --trials-file cut.jsonl --json --quiet
plain() { sed 's/"seconds": [^,]*, //' "$1"; }
plain all.jsonl >all.plain
plain cut.jsonl | cmp -s - all.plain || fail "it went on otherwise: $(diff all.jsonl cut.jsonl)"
exits 2 'another search' other tune --data part --search random --trials 5 --folds 4 --trials-file cut.jsonl
cp part changed && sed -i '5s/^[-+]*1/7/' changed
cp part same
works same tune --data same --search random --trials 2 --folds 3 --trials-file same.jsonl --json --quiet
cp changed same
exits 2 'another search' changed tune --data same --search random --trials 2 --folds 3 --trials-file same.jsonl
mkfifo trials
exits 2 'no file that could be read again' fifo tune --data part --trials 2 --folds 2 --trials-file trials
exits 2 'give one of them' twice tune --data part --l2 1 --try l2=0.1..1 --trials 2
# Two searches do not write one file.
"$PLAIT" tune --data part --search random --trials 5000 --folds 2 --trials-file long.jsonl --quiet >long.out 2>&1 &
pid=$!
until_holds 30 says long.jsonl '"trial"' || fail "no trial ends: $(cat long.out)"
exits 2 'another plait tune writes it' both tune --data part --search random --trials 5000 --folds 2 --trials-file long.jsonl
kill -INT $pid
until_holds 60 gone $pid || { fail "an interrupted search does not end"; kill -9 $pid; }
code=0
wait $pid || code=$?
[ $code -eq 75 ] && grep -q 'best' long.out || fail "interrupted: exit $code: $(cat long.out)"
exits 1 'no file of trials' none tune --data part --trials 5 --trials-file part

# Halving: few rise to all rows, and one does in any case.
works halved tune --data part --trials 6 --folds 2 --trials-file halved.jsonl --json --quiet
[ "$(grep -c '"rung": 0' halved.jsonl)" -eq 6 ] && [ "$(grep -c '"rung": 1' halved.jsonl)" -ge 2 ] ||
    fail "rungs: $(cat halved.jsonl)"

# A grid has each pair once.
works grid tune --data part --search grid --try l2=0.01,0.1 --try normalize=auto,none --folds 2 --json --quiet --trials-file grid.jsonl
[ "$(grep -o '"options".*' grid.jsonl | sort -u | wc -l)" -eq 4 ] || fail "grid: $(cat grid.jsonl)"

exits 2 'did you mean --trials?' typed tune --data part --trial 3
exits 2 "did you mean 'l1'" unknown tune --data part --try l3=1..2
exits 2 'expected NAME=LOW..HIGH' turned tune --data part --try l2=1..0.1
exits 2 'l2' bounds tune --data part --try l2=-1..2
exits 2 'normalize' later tune --data part --try normalize=auto,none,nine
exits 2 'is no number' listed tune --data part --try normalize=1..2
exits 2 'single run' single tune --data part --checkpoint x
exits 2 'no option of model kmeans' kmeans tune --model kmeans --data part
finish
