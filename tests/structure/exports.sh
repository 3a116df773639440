#!/bin/sh
# The export map equals the headers: libplait exports every PLAIT_API name of include/plait/, and nothing else; every
# function that a public header declares is marked PLAIT_API.
# usage: exports.sh ROOT LIBRARY
set -eu
. "$(dirname "$0")/common.sh"
root=$1 library=$2

# One declaration a line: comments, preprocessor lines and bodies in braces left out.
for header in "$root"/include/plait/*.h; do
    without_comments "$header" | sed 's/extern "C" *{//' | awk '
        /^[ \t]*#/ { continued = /\\$/; next }
        continued { continued = /\\$/; next }
        {
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1)
                if (c == "{") depth++
                else if (c == "}") { if (depth > 0 && --depth == 0 && text ~ /inline/) text = "" }
                else if (depth > 0) continue
                else if (c == ";") { print text; text = "" }
                else text = text c
            }
            text = text " "
        }'
done >"$work/declarations"

awk '
    /typedef|static +inline/ { next }
    /PLAIT_API/ && /\(/ {
        if (match($0, /plait_[a-z0-9_]+ *\(/)) print "api", substr($0, RSTART, RLENGTH - 1)
        next
    }
    /PLAIT_API/ { sub(/\[.*/, ""); print "api", $NF; next }
    /plait_[a-z0-9_]+ *\(/ { match($0, /plait_[a-z0-9_]+ *\(/); print "bare", substr($0, RSTART, RLENGTH - 1) }
' "$work/declarations" | sed 's/ *$//' >"$work/names"

awk '$1 == "api" { print $2 }' "$work/names" | LC_ALL=C sort -u >"$work/declared"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >"$work/exported"

for name in $(awk '$1 == "bare" { print $2 }' "$work/names"); do
    violation "$name: declared in a public header without PLAIT_API"
done
for name in $(comm -23 "$work/declared" "$work/exported"); do
    violation "$name: declared in a public header, but not exported"
done
for name in $(comm -13 "$work/declared" "$work/exported"); do
    violation "$name: exported, but in no public header"
done
[ -s "$work/declared" ] || violation "no PLAIT_API declaration found"
verdict "$(wc -l <"$work/declared") names"
