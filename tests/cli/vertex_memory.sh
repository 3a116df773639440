#!/bin/sh
# plait graph run goes through a file of edges twice, and holds the graph alone: 4 bytes an edge, 16 a vertex and half of that
# again, and what the program takes for any graph. The file may be larger than that, and the ids any numbers.
. "$(dirname "$0")/common.sh"

# Lines of up to 26 bytes, and one edge that is too large for a table by id.
awk 'BEGIN { srand(5); print 0, "18446744073709551615"
    for (k = 0; k < 1500000; k++) printf "100000%06d 100000%06d\n", 50000 * rand() * rand(), 50000 * rand() }' >far
bytes=$(wc -c <far)
works far graph run pagerank --data far --supersteps 3 --threads 1 --json --quiet --out ranks_far
json far.out "o['peak_rss_bytes'] <= (12 << 20) + 1.5 * (4 * o['edges'] + 16 * o['vertices']) < $bytes"
grep -q '^18446744073709551615	' ranks_far || fail "the largest id is not there"

# Small ids, by a table: the same ranks in the same order.
awk 'BEGIN { srand(5); print 0, "18446744073709551615"
    for (k = 0; k < 1500000; k++) printf "%d %d\n", 1 + int(50000 * rand() * rand()), 1 + int(50000 * rand()) }' >near
works near graph run pagerank --data near --supersteps 3 --threads 1 --json --quiet --out ranks_near
json near.out "o['peak_rss_bytes'] <= (12 << 20) + 1.5 * (4 * o['edges'] + 16 * o['vertices'])"
cut -f 2 ranks_far >values_far
cut -f 2 ranks_near | cmp -s - values_far || fail "other ids, other ranks"
gzip -1 -c near >near.gz
works packed graph run pagerank --data near.gz --supersteps 3 --workers 2 --topology ps --quiet --out ranks_packed
cmp -s ranks_near ranks_packed || fail "a packed file has other ranks"
finish
