#!/bin/sh
# No process-wide mutable state: no object of a room has writable data (.data, .bss, thread-local) outside the list.
# usage: globals.sh BUILD_DIR ALLOW_FILE        a line of ALLOW_FILE: room/file.c name why
set -eu
. "$(dirname "$0")/common.sh"
build=$1 allow=$2

find "$build/src" -path '*/CMakeFiles/p*' ! -path '*_testing.dir/*' -name '*.c.o' | LC_ALL=C sort >"$work/objects"
while read -r object; do
    file=$(echo "$object" | sed -E "s#^$build/src/##; s#CMakeFiles/[^/]*\.dir/##; s#\.o\$##; s#__/##g")
    # .data.rel.ro is read-only once loaded: vtables of function pointers live there.
    objdump -t "$object" | awk -v file="$file" '
        NF >= 4 && $(NF - 2) ~ /^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && $(NF - 2) !~ /^\.data\.rel\.ro/ &&
        $(NF - 1) !~ /^0+$/ && $NF !~ /^\./ {
            name = $NF
            sub(/\.[0-9]+$/, "", name)
            print file, name
        }'
done <"$work/objects" >"$work/found"

while read -r file name; do
    if ! awk -v file="$file" -v name="$name" '$1 == file && $2 == name { ok = 1 } END { exit !ok }' "$allow"; then
        violation "src/$file: $name is writable and lives as long as the process"
    fi
done <"$work/found"
# A list that allows what is gone would hide the next one of that name.
grep -v '^#' "$allow" | while read -r file name why; do
    [ -n "$file" ] || continue
    grep -qx "$file $name" "$work/found" || echo "$allow: $file $name is not there any more"
    [ -n "$why" ] || echo "$allow: $file $name: say why"
done >"$work/stale"
while read -r line; do violation "$line"; done <"$work/stale"
[ -s "$work/objects" ] || violation "$build: no objects found"
verdict "$(wc -l <"$work/objects") objects"
