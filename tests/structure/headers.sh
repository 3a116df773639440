#!/bin/sh
# Every public header compiles alone, as C17 and as C++, and has at most 300 lines; every header of a room compiles
# alone with what the room may include.
# usage: headers.sh ROOT USES_FILE
set -eu
. "$(dirname "$0")/common.sh"
root=$1 uses=$2

try() {                                         # try WHAT compiler words...
    what=$1
    shift
    if ! "$@" -fsyntax-only "$work/unit" >"$work/said" 2>&1; then
        violation "$what: does not compile alone"
        head -n 12 "$work/said"
    fi
}

count=0
for header in "$root"/include/plait/*.h; do
    name=plait/$(basename "$header")
    echo "#include <$name>" >"$work/unit"
    try "include/$name (C17)" "$CC" -x c -std=c17 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror -I"$root/include"
    if [ -n "${CXX:-}" ] && [ "${CXX%NOTFOUND}" = "$CXX" ]; then
        try "include/$name (C++)" "$CXX" -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$root/include"
    fi
    lines=$(wc -l <"$header")
    [ "$lines" -le 300 ] || violation "include/$name: $lines lines, at most 300"
    count=$((count + 1))
done

while read -r room used; do
    [ -d "$root/src/$room" ] || continue
    roots="-I$root/include"
    for name in $room $used; do
        mkdir -p "$work/inc/$name"
        ln -sfn "$(cd "$root" && pwd)/src/$name" "$work/inc/$name/$name"
        roots="$roots -I$work/inc/$name"
    done
    find "$root/src/$room" -name '*.h' | LC_ALL=C sort >"$work/headers"
    while read -r header; do
        name=${header#"$root/src/"}
        if grep -q '<mpi\.h>' "$header"; then continue; fi
        echo "#include \"$name\"" >"$work/unit"
        # shellcheck disable=SC2086
        try "src/$name" "$CC" -x c -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror $roots
        count=$((count + 1))
    done <"$work/headers"
done <"$uses"
verdict "$count headers"
