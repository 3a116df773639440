#!/bin/sh
# Checkpoints while system calls fail. A program writes one after the other and says which are committed; then another
# process must find one that is at least as new, whole, and with the bytes of its clock.
#
#   faults.sh WRITER killed    dies before the n-th of each call that changes the disk
#   faults.sh WRITER full      the n-th write finds the disk full
#   faults.sh WRITER eio       the n-th fsync fails, the n-th rename, the n-th unlink, ...
#   faults.sh WRITER tmpfs     a disk of 4 MB that is really full
#
# With PLAIT_TEST_FULL every n, else some spread evenly. Exit 77 where this system does not allow it.
set -eu
writer=${1:?the program that writes}
scratch=$(mktemp -d)
mounted=
trap '[ -z "$mounted" ] || umount "$scratch/disk"; rm -rf "$scratch"' EXIT
cd "$scratch"
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # leaks cannot be looked for under a tracer
export ASAN_OPTIONS

clocks=4
[ -z "${PLAIT_TEST_FULL:-}" ] || clocks=12

skip() {
    echo "skipped: $*"
    exit 77
}
fail() {
    echo "FAILED: $*"
    [ ! -s err ] || tail -n 5 err
    exit 1
}

# traced WORDS...: the writer under strace with these words, its files in $scratch/c; its exit code in $code
traced() {
    rm -rf c
    code=0
    strace -f -o trace "$@" "$writer" write c 1 $clocks >out 2>err || code=$?
}

# still_loads WHAT: something at least as new as what was acknowledged
still_loads() {
    acknowledged=$(sed -n 's/^committed //p' out | tail -n 1)
    "$writer" check c "${acknowledged:-0}" $clocks >found 2>>err || fail "$1: nothing loads (acknowledged: ${acknowledged:-none})"
}

# The calls that change the disk, by the names that they have on one processor or another.
calls='write fsync rename renameat mkdir mkdirat unlink unlinkat rmdir'

# count CALL: how often the writer makes it, without faults
count() { grep -c "^[0-9]* *$1(" counted || true; }

# numbers COUNT POINTS: which of 1 .. COUNT are tried
numbers() {
    [ -z "${PLAIT_TEST_FULL:-}" ] || set -- "$1" "$1"
    awk -v n="$1" -v points="$2" 'BEGIN {
        if (points > n) points = n
        for (i = 1; i <= points; i++) print points == 1 ? n : 1 + int((i - 1) * (n - 1) / (points - 1))
    }'
}

survey() {
    command -v strace >/dev/null || skip "no strace (script/bootstrap --all installs it)"
    strace -o trace true 2>/dev/null || skip "this system does not let strace trace"
    # shellcheck disable=SC2086
    traced -e trace="$(echo $calls | tr ' ' ',' | sed 's/\([a-z0-9]*\)/?\1/g')"
    [ $code -eq 0 ] || fail "exit $code without any fault"
    still_loads "without any fault"
    [ "$(cat found)" = "clock $clocks" ] || fail "the newest is $(cat found), not clock $clocks"
    mv trace counted
}

killed() {
    survey
    points=0 died=0 new=0
    for call in $calls; do
        total=$(count $call)
        [ "$total" -gt 0 ] || continue
        for n in $(numbers "$total" 8); do
            traced -e trace="$call" -e inject="$call:signal=KILL:when=$n"
            points=$((points + 1))
            [ $code -eq 0 ] || died=$((died + 1))
            [ $code -eq 137 ] || fail "$call $n of $total: exit $code, not killed"
            still_loads "killed before $call $n of $total"
            [ "$(cat found)" = "clock ${acknowledged:-0}" ] || new=$((new + 1))
            # what is left is no hindrance to the next run
            "$writer" write c $((clocks + 1)) $((clocks + 1)) >out 2>>err || fail "after a death before $call $n: no more can be written"
            "$writer" check c $((clocks + 1)) $((clocks + 1)) >found 2>>err || fail "after a death before $call $n: the next one is not found"
            [ "$(ls c | wc -l)" -le 2 ] || fail "after a death before $call $n: leftovers: $(ls c | tr '\n' ' ')"
        done
    done
    [ $died -eq $points ] && [ $points -ge 30 ] || fail "only $died deaths"
    echo "$points deaths; a committed checkpoint, or a newer one, loaded after each"
}

# refused CALL ERROR TEXT POINTS: each n-th call fails; the program must say so and end with 1
refused() {
    call=$1 total=$(count "$1")
    [ "$total" -gt 0 ] || return 0
    for n in $(numbers "$total" "$4"); do
        traced -e trace="$call" -e inject="$call:error=$2:when=$n"
        points=$((points + 1))
        [ $code -eq 1 ] || fail "$call $n of $total fails with $2, and the program ends with $code"
        grep -q "$3" err || fail "$call $n of $total fails with $2, and nothing is said of it"
        still_loads "$call $n of $total failed with $2"
    done
}

full() {
    survey
    points=0
    refused write ENOSPC 'No space left on device' 20
    total=$(count write)
    for n in $(numbers "$total" 5); do # and stays full
        traced -e trace=write -e inject="write:error=ENOSPC:when=$n+"
        points=$((points + 1))
        [ $code -eq 1 ] || fail "full from write $n of $total on, and the program ends with $code"
        still_loads "full from write $n of $total on"
    done
    echo "$points times full; told each time, and the checkpoint before loaded"
}

eio() {
    survey
    points=0
    refused fsync EIO 'Input/output error' 24
    for call in rename renameat mkdir mkdirat unlink unlinkat rmdir; do
        refused $call EIO 'Input/output error' 3
    done
    echo "$points errors; told each time, and the checkpoint before loaded"
}

tmpfs() {
    mkdir disk
    mount -t tmpfs -o size=4m none disk 2>err || skip "this system lets us mount nothing: $(tail -n 1 err)"
    mounted=yes
    code=0
    "$writer" write disk/c 1 9 >out 2>err || code=$?
    [ $code -eq 1 ] || fail "4 MB hold more than they can"
    grep -q 'No space left on device' err || fail "the full disk is not told"
    last=$(sed -n 's/^committed //p' out | tail -n 1)
    [ "${last:-0}" -ge 1 ] || fail "not even one was committed"
    "$writer" check disk/c "$last" "$last" >found 2>err || fail "the last committed one does not load"
    echo "1 disk of 4 MB, full after clock $last, which loads"
}

case ${2:?killed, full, eio or tmpfs} in
killed | full | eio | tmpfs) "$2" ;;
*) fail "no such fault: $2" ;;
esac
