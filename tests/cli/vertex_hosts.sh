#!/bin/sh
# plait graph run on many simulated hosts, each of which reads a small part of the vertices: the table has so few shards
# that a superstep sends far less than a message for each pair of hosts. The same command has the same messages at the
# same times, and another number of hosts the same ranks.
. "$(dirname "$0")/common.sh"

awk 'BEGIN { srand(9); for (k = 0; k < 60000; k++) print int(20000 * rand()), int(20000 * rand()) }' >spread
set -- graph run pagerank --data spread --transport sim --tolerance 0 --supersteps 10 --quiet --json
works hosts "$@" --workers 64 --topology ps --out ranks
works again "$@" --workers 64 --topology ps --out ranks_again
works alone "$@" --workers 1 --out ranks_alone
cmp -s ranks ranks_again || fail "the same command gives other ranks"
cmp -s ranks ranks_alone || fail "64 hosts give other ranks than one"
json hosts.out "len(o['trace_hash']) == 64 and o['messages'] < 10 * 64 * 64"
sed -n 's/.*\("messages.*trace_hash": "[0-9a-f]*"\).*/\1/p' hosts.out >first
sed -n 's/.*\("messages.*trace_hash": "[0-9a-f]*"\).*/\1/p' again.out | cmp -s - first || fail "a second run had other messages"
json alone.out "o['messages'] >= 0"
finish
