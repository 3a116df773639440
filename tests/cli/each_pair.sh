#!/bin/sh
# Every pair of settings, as `plait help pairs` has it: + trains a run of both under some topology and consistency, - is refused
# (exit code 2) under all of them, and = has no run, as two values of one option.
# usage: each_pair.sh RUNS [FULL_RUNS [FIRST]]      drawn from all pairs; 0: each of them; the second counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/settings.sh"
runs=$1 first=${3:-1}
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$2

COLUMNS=200 works pairs help pairs
awk '/^Settings with each other/ { inside = 1; next } /^Why not/ { exit }
     inside && /^[a-zA-Z]  [^ ]/ { n++; name[n] = substr($0, 4, 27); sub(/ *$/, "", name[n])
        cells = substr($0, 31); for (i = j = 1; i < n; i++) { if (i > 1 && i % 5 == 1) j++; cell = substr(cells, j++, 1)
            print (cell == "+" ? "trains" : cell == "-" ? "refused" : cell == "=" ? "apart" : "?") "\t" name[i] "\t" name[n] } }' pairs.out >pairs
all=$(wc -l <pairs)
[ "$all" -ge 900 ] || fail "only $all pairs of settings: $(head -n 3 pairs)"

# tries WORDS...: the run of these settings under each pair of topology and consistency, until one is not refused; its exit code
# is in $code
tries() {
    for consistency in bsp ssp:2 bounded-delay:2 async local-sgd:2 essp:2 asp:2:2 bounded-delay:0 sequential vap:2 downpour:2:2; do
        for topology in ps allreduce local hybrid gossip:ring; do
            rm -rf d log
            pair="--topology $topology --consistency $consistency"
            code=0
            # shellcheck disable=SC2086
            if [ -n "$piped" ]; then "$PLAIT" train --data - $words $pair $logs $held <$data >run.out 2>run.err || code=$?
            else "$PLAIT" train --data $data $words $pair $logs $held >run.out 2>run.err </dev/null || code=$?
            fi
            [ $code -eq 2 ] || return 0
            cp run.err last.err
        done
    done
}

# is_as VERDICT ONE OTHER
is_as() {
    begin_settings
    turn_on "$2"
    turn_on "$3"
    end_settings
    if [ -n "$unsaid" ]; then unsaids=$((unsaids + 1)); return; fi
    if [ "$1" = apart ] || [ -n "$apart" ]; then
        [ "$1" = apart ] && [ -n "$apart" ] || fail "$2 and $3: the matrix says '$1'; of one run: ${apart:-both}"
        aparts=$((aparts + 1))
        return
    fi
    [ -z "$resumes" ] || [ -n "$held" ] || held="--checkpoint d --checkpoint-every 1"
    tries
    case $1:$code in
    trains:0)
        trained=$((trained + 1))
        [ -z "$logs" ] || "$PLAIT" audit log >said 2>&1 || fail "$2 and $3: the audit of $words $pair: $(cat said)"
        [ -z "$held" ] || "$PLAIT" checkpoint verify d >said 2>&1 || fail "$2 and $3: $words $pair: $(cat said)"
        if [ -n "$resumes" ]; then
            # shellcheck disable=SC2086
            works resumed train --data $data $words $pair $logs --resume d
        fi
        ;;
    refused:2) refusals=$((refusals + 1)) ;;
    trains:2) fail "$2 and $3: no pair trains: $words: $(cat last.err)" ;;
    refused:0) fail "$2 and $3: it trains: $words $pair" ;;
    *) fail "$2 and $3: exit $code: train --data $data $words $pair $logs $held: $(cat run.err)" ;;
    esac
}

trained=0 refusals=0 aparts=0 unsaids=0
if [ "$runs" -eq 0 ]; then runs=$all; fi
k=$first
tab=$(printf '\t')
while [ $k -lt $((first + runs)) ]; do
    IFS=$tab read -r verdict one other <<PAIR
$(sed -n "$((k * 467 % all + 1))p" pairs)
PAIR
    is_as "$verdict" "$one" "$other"
    k=$((k + 1))
done
echo "$runs of $all pairs: $trained train, $refusals are refused, $aparts have no run, $unsaids are of tables (tests/table)"
finish
