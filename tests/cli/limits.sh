#!/bin/sh
# What has no end, is larger than it looks, or is cut while it is read: an error of one line, in bounded memory and disk.
. "$(dirname "$0")/common.sh"
TMPDIR=$scratch
export TMPDIR

# refuses PATTERN NAME words...: exit 1, one line
refuses() {
    exits 1 "$@"
    [ "$(wc -l <"$2.err")" -eq 1 ] || fail "$2: $(wc -l <"$2.err") lines: $(cat "$2.err")"
}

# A NUL ends text at once, with its place.
refuses '/dev/zero:1: byte 0 of the line is NUL' zero train --data /dev/zero --quiet
{ cat part && printf '1 1:1 \0002:1\n' && cat part; } >nul
refuses 'nul:301: byte [0-9]+ of the line is NUL' file train --data nul --quiet
{
    i=0
    while [ $i -lt 9000 ]; do
        echo "$i,some words of text,$i.5,$((i % 2))"
        i=$((i + 1))
    done
    printf '1,a\000b,3,1\n'
} >late.csv
refuses 'late.csv:9001: byte [0-9]+ of the line is NUL' cell train --data late.csv --label 4 --quiet
mkfifo pipe
cat nul >pipe &
refuses 'pipe:301: byte [0-9]+ of the line is NUL' piped train --data pipe --quiet
refuses 'byte 0 of the line is NUL' label train --data part --validation /dev/zero --quiet

# An endless stream stops at --spill-limit; the temporary file is gone.
yes '1 1:1' 2>/dev/null | {
    code=0
    "$PLAIT" train --data - --quiet --spill-limit 70M 2>endless.err || code=$?
    [ $code -eq 1 ] || fail "exit $code of an endless stream"
    grep -q 'more than 73400320 bytes of temporary files' endless.err || fail "endless: $(cat endless.err)"
    [ $failures -eq 0 ]
} || failures=1
exits 2 'spill-limit wants bytes' limit train --data part --spill-limit 5X
works given train --data part --spill-limit 4G --epochs 1 --quiet
works said config --spill-limit 4G
grep -q 'spill-limit: 4G' said.out || fail "config has $(grep spill said.out)"

# A line, and columns.
head -c 90000000 /dev/zero | tr '\000' 1 >long
refuses 'long:1: a line is longer than 64 MiB' line train --data long --quiet
gzip -1 -c long >long.gz
refuses 'long.gz:1: a line is longer than 64 MiB' packed train --data long.gz --quiet
rm long
{ yes 1, | head -n 4200000 | tr -d '\n' && echo 1; } >wide.csv
cat wide.csv wide.csv >two.csv
refuses 'two.csv:1: 4200001 columns' wide train --data two.csv --quiet --header no
rm ./*.csv

# Other files.
exits 1 'larger than' graph train --data part --graph /dev/zero --quiet
ln -s /dev/zero part.weight
exits 1 'larger than' rowweight train --data part --quiet
rm part.weight

# cut_short NAME WHAT: exit 1 and one line about WHAT, of the process pid
cut_short() {
    code=0
    wait $pid || code=$?
    [ $code -eq 1 ] || fail "exit $code where $2 is cut"
    [ "$(wc -l <"$1.err")" -eq 1 ] || fail "$1: $(wc -l <"$1.err") lines: $(cat "$1.err")"
    grep -q "$2: was cut short while it was being read" "$1.err" || fail "$1: $(cat "$1.err")"
}

# A mapped file that is cut: no signal, one line, also in the threads that parse. The weights, which it waits for once the
# data are mapped, tell when.
i=0
while [ $i -lt 60 ]; do
    cat part
    i=$((i + 1))
done >mapped
mkfifo mapped.weight
"$PLAIT" train --data mapped --epochs 2 --threads 3 --quiet 2>threads.err &
pid=$!
exec 3>mapped.weight
truncate -s 100000 mapped
exec 3>&-
cut_short threads mapped

# A mapped cache that is cut: no signal, one line. The cache is mapped for as long as the training takes.
"$PLAIT" train --data part --cache --epochs 1000000000 --batch 300 --metrics metrics --quiet 2>cut.err &
pid=$!
until_holds 300 says metrics '"event": "epoch"' || fail "no epoch comes"
: >part.plait-cache
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit $code where the cache is cut"
[ "$(wc -l <cut.err)" -eq 1 ] || fail "cut: $(cat cut.err)"
grep -q 'part.plait-cache: was cut short while it was being read\|part.plait-cache: had [0-9]* bytes' cut.err || fail "cut: $(cat cut.err)"
finish
