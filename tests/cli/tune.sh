#!/bin/sh
# plait tune: the best of the trials is what cv says of its options; a search that was cut off goes on from its file; what
# makes no sense is refused by name.
. "$(dirname "$0")/common.sh"

# of NAME KEY: the first value of a key in a file of trials or a result
of() { grep -o "\"$2\": [^,}]*" "$1" | head -n 1 | sed 's/.*: //; s/"//g'; }

works all tune --data part --search random --trials 5 --folds 3 --jobs 1 --trials-file all.jsonl --out all.model --json --quiet
[ "$(wc -l <all.jsonl)" -eq 6 ] || fail "lines: $(cat all.jsonl)"
[ -s all.model ] && grep -q '"out": "all.model"' all.out || fail "the best is not saved"
hash=$(of all.model.done model_hash)
[ ${#hash} -ge 16 ] || fail "no completion record: $(cat all.model.done)"

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
"$PLAIT" tune --data part --search random --trials 5000 --folds 2 --trials-file long.jsonl --quiet \
    --out long.model --report long.html >long.out 2>&1 &
pid=$!
until_holds 120 says long.jsonl '"trial"' || fail "no trial ends: $(cat long.out)"
exits 2 'another plait tune writes it' both tune --data part --search random --trials 5000 --folds 2 --trials-file long.jsonl
kill -INT $pid
until_holds 300 gone $pid || { fail "an interrupted search does not end"; kill -9 $pid; }
code=0
wait $pid || code=$?
[ $code -eq 75 ] && grep -q 'best' long.out || fail "interrupted: exit $code: $(cat long.out)"
grep -q '^model' long.out && fail "a model that is not written is told: $(cat long.out)"
grep -q '"out": null' long.html || fail "the page tells a model that is not written"
[ -e long.model ] || [ -e long.model.done ] && fail "an interrupted search has left a model"
exits 2 'report would write over --out .FILE.done. new.done' record tune --data part --out new --report new.done
exits 2 "^plait: tune: --by rmse: these rows and this model have none; they have loss, accuracy, auc$" by tune --data part --trials 9 --folds 2 --by rmse
grep -q 'trial 1' by.err && fail "a figure that the model lacks fails in each trial: $(cat by.err)"
exits 1 'no file of trials' none tune --data part --trials 5 --trials-file changed

# Halving: few rise to all rows, and one does in any case.
works halved tune --data part --trials 6 --folds 2 --trials-file halved.jsonl --json --quiet
[ "$(grep -c '"rung": 0' halved.jsonl)" -eq 6 ] && [ "$(grep -c '"rung": 1' halved.jsonl)" -ge 2 ] ||
    fail "rungs: $(cat halved.jsonl)"

# A grid has each pair once.
works grid tune --data part --search grid --try l2=0.01,0.1 --try normalize=auto,none --folds 2 --json --quiet --trials-file grid.jsonl
[ "$(grep -o '"options".*' grid.jsonl | sort -u | wc -l)" -eq 4 ] || fail "grid: $(cat grid.jsonl)"

# Nothing is tried twice: of few settings each is tried once.
works few tune --data part --search random --trials 9 --try normalize=auto,none --folds 2 --trials-file few.jsonl --json --quiet
grep -q '"trials": 2' few.out && [ "$(wc -l <few.jsonl)" -eq 3 ] || fail "a setting was tried twice: $(cat few.jsonl)"

# A page, and options of a configuration file.
printf 'try: ["l2=0.01..1", "normalize=auto,none"]\ntrials: 4\nfolds: 2\nepochs: 5\n' >tune.yaml
works page tune --config tune.yaml --data part --report page.html --json --quiet
is_page page.html
json page.out 'o["trials"] == 4 and o["try"] == ["l2=0.01..1", "normalize=auto,none"] and o["folds"] == 2 and o["options"]["epochs"] == "5"'
grep -q '"runs_done"' page.html || fail "the page has no data"
awk 'BEGIN { print "who,label,a"; for (i = 0; i < 60; i++) print "p" i % 6 "," i % 2 "," i * 13 % 17 }' >people.csv
works grouped tune --data people.csv --group who --folds 6 --trials 2 --out grouped.model --json --quiet
works inspected inspect grouped.model --weights
grep -q who inspected.out && fail "a group is a feature: $(cat inspected.out)"

# A value that can never be had is told before any trial.
exits 2 'no trial could have --optimizer=als: ' never tune --data part --try optimizer=lbfgs,als --trials 4 --folds 2
grep -q 'trial 1' never.err && fail "trials began: $(cat never.err)"
printf 'some text\nand more of it, for rows of characters\n' >some.txt
exits 2 'windows of a text' text tune --model lstm --format text --data some.txt --trials 2
exits 2 "report" single tune --data part --report part
sed 's/.*/1/' part >folds
for pair in "--out --report" "--trials-file --report" "--trials-file --out" "--folds-from --report" \
    "--folds-from --out" "--folds-from --trials-file"; do
    exits 2 "would write over --.* folds; give it another name" apart tune --data part ${pair% *} folds ${pair#* } folds
done
[ "$(sort -u folds)" = 1 ] || fail "a refused search has written over the folds: $(head -n 3 folds)"

exits 2 'did you mean --trials?' typed tune --data part --trial 3
exits 2 "did you mean 'l1'" unknown tune --data part --try l3=1..2
exits 2 'expected NAME=LOW..HIGH' turned tune --data part --try l2=1..0.1
exits 2 'l2' bounds tune --data part --try l2=-1..2
exits 2 'normalize' later tune --data part --try normalize=auto,none,nine
exits 2 'is no number' listed tune --data part --try normalize=1..2
exits 2 'single run' single tune --data part --checkpoint x
exits 2 'no option of model kmeans .* --try clusters=4,8,16$' kmeans tune --model kmeans --data part
works clusters tune --model kmeans --data part --try clusters=4,8,16 --folds 2 --quiet
exits 2 "no option of model logistic .* 'plait help logistic' lists them" given tune --l2 1 --data part
finish
