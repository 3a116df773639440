#!/bin/sh
# Every mistake that tests/audit/mutants.txt plants can be planted: the text that it replaces stands in the file that it names. The
# nightly tests plant them; whoever changes such a line hears of it here.
# usage: mistakes.sh ROOT
set -eu
. "$(dirname "$0")/common.sh"
root=$1

LC_ALL=C awk -v root="$root" -F ' [|] ' '
    /^[@#]/ || !NF { next }
    NF < 4 { print "tests/audit/mutants.txt:" FNR ": expected name | file | text | instead"; next }
    {
        found = 0
        while (!found && (getline line <(root "/src/" $2)) > 0) found = index(line, $3) > 0
        close(root "/src/" $2)
        if (!found) print "tests/audit/mutants.txt:" FNR ": " $1 ": src/" $2 " has no " $3
    }' "$root/tests/audit/mutants.txt" >"$work/hits"
cat "$work/hits"
violations=$(wc -l <"$work/hits")
verdict "$(grep -c ' | ' "$root/tests/audit/mutants.txt") mistakes"
