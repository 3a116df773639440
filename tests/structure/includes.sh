#!/bin/sh
# Calls go down: a file of a room includes its own room, the rooms that it USES, and public headers.
# usage: includes.sh ROOT USES_FILE        USES_FILE: one line a room, "room used used ...", bottom room first
set -eu
. "$(dirname "$0")/common.sh"
root=$1 uses=$2

rooms=$(cut -d ' ' -f 1 "$uses")
below=
while read -r room used; do
    for name in $used; do
        case " $below " in
        *" $name "*) ;;
        *) violation "$uses: the room $room uses $name, which is not below it" ;;
        esac
    done
    below="$below $room"
done <"$uses"

# Prints "file line path" of every include that names a path.
find "$root/src" "$root/include" -name '*.[ch]' | LC_ALL=C sort | while read -r file; do
    awk -v file="$file" '/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
        path = $0
        sub(/^[^<"]*[<"]/, "", path)
        sub(/[>"].*$/, "", path)
        print file, FNR, path
    }' "$file"
done >"$work/includes"
[ -s "$work/includes" ] || violation "$root: no include found at all"

while read -r file line path; do
    inside=${file#"$root"/}
    case $inside in
    *_test.c) continue ;;                       # a test may look into any room
    include/*) room=public allowed=plait ;;
    src/*)
        room=${inside#src/}
        room=${room%%/*}
        allowed="plait $room $(awk -v room="$room" '$1 == room { $1 = ""; print }' "$uses")"
        ;;
    esac
    case $path in
    ../* | */../*)
        violation "$inside:$line: includes $path; name it as \"<room>/<header>.h\""
        continue
        ;;
    esac
    first=${path%%/*}
    case " plait $(echo $rooms) " in
    *" $first "*)
        case " $allowed " in
        *" $first "*) ;;
        *) violation "$inside:$line: $room may not include $path; it may use:$(echo " $allowed")" ;;
        esac
        ;;
    esac
done <"$work/includes"
verdict "$(wc -l <"$work/includes") includes"
