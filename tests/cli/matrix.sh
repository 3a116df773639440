#!/bin/sh
# What goes together, as the documents have it, is what the program prints. Where a change is meant, put the new output of
# `plait help pairs` there.
. "$(dirname "$0")/common.sh"
works pairs help pairs
awk '/^<!-- plait help pairs -->$/ { found = 1; next } found && /^```text$/ { inside = 1; next } inside && /^```$/ { exit } inside' \
    "$PLAIT_SOURCE_DIR/docs/pairs.md" >documented
[ -s documented ] || fail "docs/pairs.md has no matrix"
cmp -s pairs.out documented || fail "docs/pairs.md is not what plait help pairs prints; put that there: $(diff documented pairs.out | head -n 4)"
finish
