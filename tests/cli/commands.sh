#!/bin/sh
# The commands of README.md and of every page of docs/ run as they stand there, a page after the other, each in a copy
# of the project's folder, in the order in which they stand. What a fence's language says is told in docs/README.md:
#   sh, sh mpi, sh sim, sh onnx   run; the latter three where the optional part is there
#   sh REASON, console REASON     not run, for a reason that docs/README.md lists
#   console                       lines that begin with "$ " are run, the others are what they print
# A command that stands in no such fence is a mistake: nobody would see that it does not work any more.
# usage: commands.sh ROOT MPI SIM ONNX (yes or no) [PAGE...]
# PLAIT_TEST_FULL: all rows, epochs and repeats
. "$(dirname "$0")/../acceptance/common.sh"

root=$1 mpi=$2 sim=$3 onnx=$4
shift 4
[ $# -gt 0 ] || set -- README.md "$root"/docs/*.md
bin=$(dirname "$PLAIT")
PATH=$bin:$PATH
export PATH
ran=0 skipped=0
: >skips

# The folder tests/, with the first rows of a9a; and few epochs and repeats where a command names none: the commands are
# the same, and take seconds.
rows=40000
if [ -z "${PLAIT_TEST_FULL:-}" ]; then
    rows=2000
    export PLAIT_EPOCHS=2 PLAIT_REPEATS=1
fi
mkdir -p tree/data/a9a
ln -s "$data/digits" "$data/small" tree/data/
for file in a9a.gz a9a.t.gz; do gzip -dc "$data/a9a/$file" | head -n $rows | gzip >tree/data/a9a/$file; done

# The reasons that docs/README.md lists: "| `cluster` | ..."
sed -n 's/^| `\([a-z]*\)` |.*/\1/p' "$root/docs/README.md" >"$scratch/reasons"
[ -s "$scratch/reasons" ] || fail "docs/README.md lists no reasons"

# Leaves each fence of a page in fence-LINE.TAG..., and what looks like a command outside of one in "loose".
cut_page() {
    awk -v loose="$2" '
        BEGIN {
            command = "(\\$ )?([A-Za-z_0-9]+=[^ ]* )*((\\$?plait|mpirun|mpiexec|srun|sbatch|gunzip|cmake|ctest|gcc|pip|python3|" \
                      "apt-get|printf|export) |script/|build/|[.]venv/)"
        }
        /^[ \t]*```/ {
            if (inside) { inside = 0; if (out != "") close(out); out = ""; next }
            inside = 1
            tag = $0; sub(/^[ \t]*```/, "", tag); gsub(/ +/, "-", tag)
            if (tag ~ /^(sh|console)(-|$)/) { out = sprintf("fence-%05d.%s", FNR + 1, tag); printf "" >out }
            next
        }
        out != "" { print >out; next }
        inside && $0 ~ "^" command || !inside && $0 ~ "^(    |\t)" command { print FNR ": " $0 >loose }' "$1"
}

# One shell runs the page, as it would if one pasted it: variables stay.
run_page() {
    code=0
    sh -eu page.sh >page.out 2>&1 </dev/null || code=$?
    [ $code -eq 0 ] && return
    fail "$1:$(cat at): these commands end with exit code $code"
    tail -n 6 page.out
}

# What a console shows must be what it says.
run_console() {
    grep '^\$ ' "$3" | sed 's/^\$ //' >"$3.sh"
    sh "$3.sh" >"$3.out" 2>&1 </dev/null || true
    grep -v '^\$ ' "$3" | while read -r line; do
        grep -qF -- "$line" "$3.out" || echo "$line"
    done >"$3.missing"
    [ -s "$3.missing" ] || return 0
    fail "$1:$2: the page shows what is not printed: $(head -n 1 "$3.missing")"
    tail -n 6 "$3.out"
}

skip_fence() {
    skipped=$((skipped + 1))
    echo "$3" >>"$scratch/skips"
    grep -qx "$3" "$scratch/reasons" || fail "$1:$2: '$3' is no reason of docs/README.md not to run these commands"
}

# fence PAGE FILE
fence() {
    line=${2#fence-} tag=${2##*.}
    line=$(echo "${line%%.*}" | sed 's/^0*//')
    reason=${tag#*-}
    case $tag in
    sh | sh-mpi | sh-sim | sh-onnx | console)
        case $tag.$mpi.$sim.$onnx in
        sh-mpi.no.* | sh-sim.*.no.* | sh-onnx.*.no) skip_fence "$1" "$line" "$reason"; return ;;
        esac
        ran=$((ran + 1))
        if [ "$tag" = console ]; then
            run_console "$1" "$line" "$2"
        else
            echo "echo $line >at" >>page.sh
            cat "$2" >>page.sh
        fi
        ;;
    *) skip_fence "$1" "$line" "$reason" ;;
    esac
}

for page; do
    page=${page#"$root"/}
    mkdir "$scratch/page"
    cd "$scratch/page" || exit 1
    for part in include examples src docs; do ln -s "$root/$part" $part; done
    ln -s ../tree tests
    mkdir -p build
    ln -s "$bin" build/release
    cut_page "$root/$page" ../loose
    : >page.sh
    for file in fence-*; do
        [ -e "$file" ] && fence "$page" "$file"
    done
    run_page "$page"
    cd "$scratch"
    rm -rf page
    [ ! -s loose ] || fail "$page: commands that no test runs; put them into a fence 'sh': $(head -n 1 loose)"
    rm -f loose
done
echo "$ran blocks of commands ran, $skipped did not: $(sort skips | uniq -c | awk '{ printf "%s%s %s", sep, $1, $2; sep = ", " }')"
finish
