#!/bin/sh
# A live pipe: a single pass learns from rows as they come, and ends at the model of a file with these rows.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 6000 >rows
head -n 3000 rows >first
tail -n +3001 rows >second
mkfifo pipe

# begin NAME words...: trains on the pipe in the background; fd 3 is its writing end
begin() {
    name=$1
    shift
    "$PLAIT" train --data pipe --epochs 1 --json --metrics "$name.metrics" "$@" >"$name.out" 2>"$name.err" 3>&- &
    pid=$!
    exec 3>pipe
}
# learnt NAME ROWS: at least so many clocks were told
learnt() { until_holds 300 says "$1.metrics" '"event": "clock"' || fail "$1: nothing is learnt while the pipe is open: $(cat "$1.err")"; }
ends() { # ends NAME CODE
    exec 3>&-
    code=0
    wait $pid || code=$?
    [ $code -eq "$2" ] || fail "$1: exit $code instead of $2: $(cat "$1.err")"
}

# The writer holds the second half back until the first was learnt. Features may come late; the model is that of the file.
awk '{ print $0 " " 200 + 3 * NR ":1" }' second >wide
cat first wide >file
works file train --data file --epochs 1 --out file.model --json
begin halves --out halves.model
cat first >&3
learnt halves
grep -q '"event": "end"' halves.metrics && fail "it ended before its pipe"
cat wide >&3
ends halves 0
cmp file.model halves.model || fail "the rows of a pipe make another model than those of a file: $(cat halves.out file.out)"
grep -q '"rows": 6000' halves.out || fail "rows are counted wrongly: $(cat halves.out)"

# Asked to stop while it waits, it ends with a model of all that came, though nothing is learnt once more.
works half train --data first --epochs 1 --out half.model
begin stopped --out stopped.model
cat first >&3
learnt stopped
waits_for_rows() { "$PLAIT" doctor $pid >doctor.out 2>&1 && says doctor.out '^rank 0 waits for rows from the pipe pipe ([0-9.]* s)$'; }
until_holds 300 waits_for_rows || fail "doctor does not say that the run waits for its pipe: $(cat doctor.out)"
kill -INT $pid
until_holds 300 gone $pid || { fail "it waits on"; kill -9 $pid; } # with the pipe open: no end of it comes first
ends stopped 75
grep -q '"rows": 3000' stopped.out || fail "an interrupted pass does not count what came: $(cat stopped.out)"
advice=$(sed -n 's/^plait: interrupted .*; to go on with rows that come later .*: plait //p' stopped.err)
[ -n "$advice" ] || fail "an interrupted pass of a pipe does not say how to go on: $(cat stopped.err)"
works half eval --model-file half.model --data rows --json
works stopped eval --model-file stopped.model --data rows --json
awk -v a="$(field stopped test_loss)" -v b="$(field half test_loss)" 'BEGIN { exit !(a > 0 && a < 1.1 * b) }' ||
    fail "the model of an interrupted pass has the loss $(field stopped test_loss), that of the file $(field half test_loss)"
# The command that it advises learns the rows that come later.
tail -n 1500 rows >pipe &
sh -c "\"$PLAIT\" $advice" >later.out 2>&1 || fail "what an interrupted pipe advises is refused: $advice: $(cat later.out)"
grep -q '"rows": 1500' later.out || fail "the advice does not learn the later rows: $(cat later.out)"
"$PLAIT" train --data first --epochs 1 --init-model stopped.model --optimizer online 2>later.err && fail "online begins from a model"

# A front of one class teaches nothing: it waits for the other. A third class that comes late is refused by name.
sort -s -k 1,1 rows >sorted
works sorted train --data sorted --epochs 1 --out sorted.model
begin late --out late.model
head -n 3000 sorted >&3
tail -n +3001 sorted >&3
ends late 0
cmp sorted.model late.model || fail "a sorted pipe makes another model than the file"
begin third
cat first >&3
learnt third
echo '7 1:1' >&3
ends third 1
says third.err 'row 3001 has the label 7, which no row had when training began' || fail "a late class: $(cat third.err)"

# Cells: texts that come late count as missing, and a note says so; a malformed line is named by its number.
{ echo 'a,city,y'; awk 'BEGIN { for (i = 0; i < 400; i++) print i % 7 "," (i % 3 ? "rome" : "oslo") "," i % 2 }'; } >cells
begin cells --label y
cat cells >&3
learnt cells
printf '3,cairo,1\n4,rome,0\n' >&3
ends cells 0
says cells.err '1 cell held texts that no row had' || fail "a late text is passed over in silence: $(cat cells.err)"
begin bad --label y
cat cells >&3
learnt bad
printf '3,rome,1\n4,rome\n' >&3
ends bad 1
says bad.err 'pipe:403: ' || fail "a late malformed line is not named: $(cat bad.err)"

# Keys that grow, and a pipe of a packed file, which is read to its end first.
awk '{ printf "%s", $1; for (i = 2; i <= NF; i++) { split($i, e, ":"); printf " %.0f:%s", e[1] * 7919 * 104729, e[2] } print "" }' rows >far
works far train --data far --epochs 1 --json
begin keys
head -n 3000 far >&3
learnt keys
tail -n +3001 far >&3
ends keys 0
holds keys progressive_loss "< 0.37"
begin packed --out packed.model
gzip -c file >&3
ends packed 0
cmp file.model packed.model || fail "a packed pipe makes another model than the file"

# Memory does not grow with what comes. (Sanitizers keep memory of their own.)
for i in 1 2 3 4 5 6 7; do cat rows rows rows rows rows rows rows rows rows rows; done >large
[ "$(wc -c <large)" -gt 28000000 ] || fail "the large file is small"
"$PLAIT" train --data - --epochs 1 --json --quiet <large >large.out || fail "a long pipe is not read"
grep -q '"rows": 420000' large.out || fail "rows are missing: $(cat large.out)"
[ "${1:-yes}" = no ] || holds large peak_rss_bytes "< 60000000"
finish
