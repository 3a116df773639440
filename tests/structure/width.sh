#!/bin/sh
# No line of C is wider than 120 columns: two of them stand side by side on a screen.
# usage: width.sh ROOT
set -eu
. "$(dirname "$0")/common.sh"
root=$1

for folder in src include tests examples bench; do
    if [ -d "$root/$folder" ]; then find "$root/$folder" -name '*.[ch]'; fi
done | LC_ALL=C sort >"$work/files"
# A character beyond ASCII is several bytes, of which those that continue it (10xxxxxx) are no columns.
while read -r file; do
    LC_ALL=C awk -v file="${file#"$root"/}" '
        { line = $0; gsub(/[\200-\277]/, "", line) }
        length(line) > 120 { print file ":" FNR ": " length(line) " columns, at most 120" }' "$file"
done <"$work/files" >"$work/hits"
cat "$work/hits"
violations=$(wc -l <"$work/hits")
verdict "$(wc -l <"$work/files") files"
