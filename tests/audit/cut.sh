#!/bin/sh
# The event log of a model that is cut over groups of ranks: each stage's tables are proven among the stage's members.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
data=$(cd "$(dirname "$0")/../data/a9a" && pwd)/a9a.gz
cd "$work"
transport=$1

audited() {
    "$PLAIT" train --model mlp --layers 16,8 --data "$data" --batch 4096 --workers 4 --cut 2 --threads 1 --quiet \
        --transport "$transport" --topology "$1" --consistency "$2" --events events >/dev/null
    "$PLAIT" audit events >said || { cat said; exit 1; }
    grep -q '^group stage 0 (ranks 0, 1): ' said || { cat said; exit 1; }
    grep -q "^table w1 of group stage 0: $1, ruled, judged as $2" said || { cat said; exit 1; }
    grep -q "^table w2 of group stage 1: $1, ruled, judged as $2" said || { cat said; exit 1; }
    grep -q '^proven$' said || { cat said; exit 1; }
    "$PLAIT" audit --json events | grep -q '"group": *"stage 1", *"members": *\[2, *3\]' || { echo json; exit 1; }
}

audited ps bsp
audited ps ssp:2
audited allreduce bsp
echo "cut runs over $transport: proven stage by stage"
