#!/bin/sh
# The matrix of topologies and consistencies in the documents is the one that the program prints.
. "$(dirname "$0")/common.sh"
works pairs help pairs
awk '/^<!-- plait help pairs -->$/ { found = 1; next } found && /^```text$/ { inside = 1; next } inside && /^```$/ { exit } inside' \
    "$PLAIT_SOURCE_DIR/docs/topologies.md" >documented
[ -s documented ] || fail "docs/topologies.md has no matrix"
cmp -s pairs.out documented || fail "docs/topologies.md: the matrix is not that of plait help pairs: $(diff documented pairs.out | head -n 4)"
finish
