#!/bin/sh
# plait graph run by processes: each holds its own part of the graph, and no other edge. What a process takes at its peak, by the
# kernel's count, grows by its share of the edges; values are those of one process; a mistake in the file is told with file and
# line, whoever reads it, and nothing is written; what needs the whole graph in each process still runs. That heirs read the parts
# of the dead is cli.vertex_die's.
# usage: vertex_parts.sh MPIRUN [no]      no: memory is not measured, since sanitizers keep memory of their own
. "$(dirname "$0")/common.sh"
measures=${2:-yes}
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN

# of_four NAME OPTIONS...: by four processes, to NAME.out
of_four() {
    name=$1
    shift
    "$PLAIT" launch -n 4 -- "$PLAIT" graph run "$@" --quiet >"$name.out" 2>"$name.err" || fail "$name: $(cat "$name.err")"
}

# The same values: ids of 64 bits, loops, doubles, weights, packed; cuts that need the whole graph among the others.
awk 'BEGIN { srand(8); for (k = 0; k < 2000; k++) printf "%d%s %d %d\n", 300 * rand() * rand(), k % 5 ? "" : "0000000000000",
             300 * rand(), 1 + 5 * rand() }' >edges
gzip -c edges >edges.gz
for program in pagerank components strong "bfs --source 7" "sssp --source 7" labels triangles kcore coloring; do
    # shellcheck disable=SC2086
    works one graph run $program --data edges --quiet
    # shellcheck disable=SC2086
    of_four four $program --data edges.gz
    cmp -s one.out four.out || fail "$program: other values"
done
metis=random
if "$PLAIT" version --json | grep -q '"metis": {"found": true'; then metis=metis; else echo "skipped: cuts by metis, whose module is not there"; fi
for options in "--partition random" "--partition grid --undirected" "--partition hdrf" "--drop-doubles" "--drop-loops" "--engine async" \
    "--partition $metis" "--partition $metis --drop-doubles --undirected" "--engine async --drop-doubles --scope full" \
    "--replicas 2" "--replicas 2 --engine async --partition range" "--replicas 2 --partition grid --drop-doubles"; do
    # shellcheck disable=SC2086
    works one graph run components --data edges ${options#--replicas 2} --quiet
    # shellcheck disable=SC2086
    of_four four components --data edges $options
    cmp -s one.out four.out || fail "components $options: other values"
done
works three graph run pagerank --data edges --workers 4 --topology ps --partition grid --json --quiet --out values
of_four four pagerank --data edges --partition grid --json
json four.out "o['replication_factor'] == $(sed 's/.*"replication_factor": \([0-9.]*\).*/\1/' three.out) and o['vertices'] > 300"

# Doubles that go change what a rank is, and which edge is the first below 0.
works one graph run pagerank --data edges --drop-doubles --quiet
of_four four pagerank --data edges --drop-doubles
cmp -s one.out four.out || fail "pagerank --drop-doubles: other values"
for program in kcore coloring; do
    works one graph run $program --data edges --quiet
    of_four four $program --data edges --replicas 2
    cmp -s one.out four.out || fail "$program --replicas 2: other values"
    of_four four $program --data edges --engine async --scope edge
    cmp -s one.out four.out || fail "$program --engine async: other values"
done
printf '1 2 1\n1 2 -1\n2 3 1\n' >again
of_four four sssp --source 1 --drop-doubles --data again

# A checkpoint of parts goes on in one process that has the whole graph.
works rest graph run pagerank --data edges --tolerance 1e-10 --quiet
of_four first pagerank --data edges --tolerance 1e-10 --supersteps 3 --checkpoint kept --checkpoint-every 3
works on graph run pagerank --data edges --tolerance 1e-10 --resume kept --quiet
cmp -s rest.out on.out || fail "a checkpoint goes on to other ranks"

# Other formats, in pieces too.
awk 'END { print "%%MatrixMarket matrix coordinate integer general\n301 301 " NR }' edges >matrix
awk '{ print 1 + $1 % 300, 1 + $2 % 300, $3 }' edges >>matrix
awk 'BEGIN { print "40 40"; for (v = 0; v < 40; v++) print 1 + (v + 1) % 40, 1 + (v + 39) % 40 }' >ring
for file in matrix "ring --format metis"; do
    # shellcheck disable=SC2086
    works one graph run pagerank --data $file --quiet
    # shellcheck disable=SC2086
    of_four four pagerank --data $file
    cmp -s one.out four.out || fail "$file: other values"
done

# Mistakes. Nothing is written.
bad() { # bad CODE FILE WORDS OPTIONS...
    wanted=$1 file=$2 words=$3
    shift 3
    code=0
    "$PLAIT" launch -n 3 -- "$PLAIT" graph run "$@" --data "$file" --quiet --out never >bad.out 2>bad.err || code=$?
    [ $code -eq "$wanted" ] || fail "$file: exit $code: $(cat bad.err)"
    says bad.err "$words" || fail "$file: $(cat bad.err)"
    [ ! -e never ] && [ ! -s bad.out ] || fail "$file: something was written"
}
printf '1 2\n2 3\n3 four\n' >letter
bad 1 letter "letter:3: expected a whole number" pagerank
printf '1 2\n2 18446744073709551616\n' >beyond
bad 1 beyond "beyond:2: an id is below 2^64" components
bad 2 - "several processes is refused: only one process could read the pipe" pagerank
head -c 3000 edges.gz >torn.gz
bad 1 torn.gz torn.gz pagerank
printf '%%%%MatrixMarket matrix coordinate pattern general\n4000000000 4000000000 1\n1 2\n' >huge
[ "$(awk '/MemAvailable/ { print ($2 > 100000000) }' /proc/meminfo)" = 1 ] || bad 1 huge "GB" pagerank
printf '1 2 1\n2 3 -1\n' >below
bad 2 below "from 2 to 3 has the weight -1" sssp --source 1
code=0
"$PLAIT" launch -n 3 -- "$PLAIT" graph run bfs --data edges --source 999999 >bad.out 2>bad.err || code=$?
[ $code -eq 2 ] && says bad.err "no such vertex" || fail "no such source: exit $code: $(cat bad.err)"

# Memory: what each process takes more than one of a tiny graph. Whole, the edges would be 12 MB in each of four processes.
[ "$measures" = yes ] || finish
command -v python3 >/dev/null || { echo "skipped: the peak of each process is told by python3"; finish; }
cat >peak.py <<'P'
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
open(sys.argv[1], "a").write("%d\n" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
P
peak() { # peak FILE: the largest of four processes, in kB
    rm -f peaks
    "$PLAIT" launch -n 4 -- python3 peak.py "$PWD/peaks" "$PLAIT" graph run pagerank --data "$1" --supersteps 3 --json --quiet \
        --out ranks >peak.out 2>peak.err || fail "$1: $(cat peak.err)"
    [ "$(wc -l <peaks)" -eq 4 ] || fail "not four processes: $(cat peaks)"
    sort -n peaks | tail -n 1
}
awk 'BEGIN { srand(5); for (k = 0; k < 3000000; k++) printf "%d %d\n", 20000 * rand() * rand(), 20000 * rand() }' >many
printf '1 2\n2 3\n3 4\n4 1\n' >few
# More rows than a worker reads at once, and the same triangles. The simple graph in both directions would be 24 MB in each process.
works one graph run triangles --data many --quiet
of_four four triangles --data many
cmp -s one.out four.out || fail "triangles of many edges: other values"
least=$(peak few)
most=$(peak many)
echo "$most kB at most, $least kB of a tiny graph"
[ $((most - least)) -le 7000 ] || fail "a process took $((most - least)) kB more for a quarter of 3 M edges, 2,930 kB"
finish
