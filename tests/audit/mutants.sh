#!/bin/sh
# Plants each mistake of mutants.txt in the protocol, runs it through seeded schedules, and wants it refuted by its judge: the
# audit of the schedules' event logs and nobody else, or what the schedules promise. A crash is no refutation. The
# code as it stands must be proven.
#
# A mistake whose name begins with ~ is found late, and looked for under PLAIT_TEST_FULL only, in ten times the schedules.
#
#   usage, in a build folder: mutants.sh NINJA [PATTERN [JUDGE]]   PATTERN: only mutants whose name matches; JUDGE: only
#                                                                 those that this program judges
set -eu
ninja=$1
only=${2:-.}
only_judge=${3:-.}
here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../.." && pwd)
full=${PLAIT_TEST_FULL:-}
unset PLAIT_TEST_FULL PLAIT_SEED
schedules=${PLAIT_SCHEDULES:-2000}
export PLAIT_MODULES="$PWD/modules" # a mutant lies elsewhere, and some simulate
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
failed=0

# plant FILE TEXT INSTEAD: writes $work/mutant.c; fails where the text is not there
plant() {
    MUTANT_TEXT=$2 MUTANT_INSTEAD=$3 awk '
        BEGIN { text = ENVIRON["MUTANT_TEXT"]; instead = ENVIRON["MUTANT_INSTEAD"] }
        !done && (at = index($0, text)) {
            $0 = substr($0, 1, at - 1) instead substr($0, at + length(text))
            done = 1
        }
        { print }
        END { exit !done }' "$source_dir/src/$1" >"$work/mutant.c"
}

# make FILE: the program with the mutant in place of FILE's object: as tests have it, where they have it otherwise
make_mutant() {
    grep -- " -c [^ ]*/src/$1\$" "$work/commands" >"$work/compiles"
    compile=$({ grep -e -DPLI_TESTING "$work/compiles" || true; cat "$work/compiles"; } | head -n 1 | sed 's/ -MD .*//')
    [ -n "$compile" ] || return 1
    sh -c "$compile -w -o $work/mutant.o -c $work/mutant.c" &&
        sh -c "$(echo "$link" | sed "s| -o $program| $work/mutant.o -o $work/mutant|")"
}

# make_module FILE: where the program simulates, the module of sim with the mutant in place of its own object, since that module
# runs comm's code of its own
make_module() {
    case $program in tests/test_sim_*) ;; *) return 0 ;; esac
    "$ninja" -t commands modules/plait-sim.so >"$work/commands.sim"
    compile=$(grep -- " -c [^ ]*/src/$1\$" "$work/commands.sim" | head -n 1 | sed 's/ -MD .*//')
    from=$(grep -- "-o modules/plait-sim.so" "$work/commands.sim" | sed 's/^: && //; s/ && :$//')
    [ -n "$compile" ] && [ -n "$from" ] || return 1
    mkdir -p "$work/modules"
    sh -c "$compile -w -o $work/module.o -c $work/mutant.c" &&
        sh -c "$(echo "$from" | sed "s| -o modules/plait-sim.so| -o $work/modules/plait-sim.so $work/module.o|")" &&
        PLAIT_MODULES="$work/modules"
}

# judge NAME PROGRAM CODE: runs the schedules, which must end with that code, and if they refute, with a seed
judge() {
    code=0
    case $1 in ~*) many=$((schedules * 10)) ;; *) many=$schedules ;; esac
    PLAIT_JUDGE=$judge PLAIT_SCHEDULES=$many timeout 900 "$2" >"$work/said" 2>"$work/errors" || code=$?
    count=$((count + 1))
    said=$(cat "$work/said" "$work/errors" | grep -m 1 -o '[^[]*PLAIT_SEED=.*') || said=proven
    grep -q 'skipped: no' "$work/said" && code=skipped
    if [ "$code" = "$3" ] && { [ "$3" = 0 ] || [ "$said" != proven ]; }; then
        echo "$1: $said"
    else
        echo "FAILED: $1: exit $code instead of $3"
        tail -n 3 "$work/said" "$work/errors"
        failed=$((failed + 1))
    fi
}

# take_judge PROGRAM CODE [COMBINE]: judges what follows, by ending with that code; 4: the audit alone
take_judge() {
    program=tests/$1
    refuted=$2
    export PLAIT_COMBINE="${3:-}"
    judge=
    [ "$refuted" = 1 ] || judge=audit
    "$ninja" -t commands "$program" >"$work/commands"
    link=$(grep -- "-o $program" "$work/commands" | sed 's/^: && //; s/ && :$//')
    [ -z "$judge" ] || judge "the protocol as it stands, by $*" "./$program" 0 # else table.replicas is that
}

grep -v '^#' "$here/mutants.txt" >"$work/list"
while IFS='|' read -r name file rest; do
    name=$(echo "$name" | sed 's/ *$//')
    case $name in
    @*)
        wanted=no
        echo "$name" | grep -q -- "$only_judge" || continue
        wanted=yes
        take_judge ${name#@}
        continue
        ;;
    esac
    [ $wanted = yes ] || continue
    case $name in
    ~*) [ -n "$full" ] || continue ;;
    esac
    echo "$name" | grep -q -- "$only" || continue
    file=$(echo "$file" | tr -d ' ')
    pair=$(echo "$rest" | sed 's/^ //')
    text=${pair%% | *}
    instead=${pair#* | }
    PLAIT_MODULES="$PWD/modules"
    if plant "$file" "$text" "$instead" && make_mutant "$file" && make_module "$file"; then
        judge "$name" "$work/mutant" "$refuted"
    else
        echo "FAILED: $name: cannot be planted in src/$file"
        failed=$((failed + 1))
    fi
done <"$work/list"
echo "$count programs judged, $failed wrongly"
[ "$failed" = 0 ]
