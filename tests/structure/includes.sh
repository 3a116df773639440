#!/bin/sh
# Calls go down: a file of a room includes its own room, the rooms that it USES, and public headers.
# usage: includes.sh ROOT USES_FILE        USES_FILE: one line a room, "room used used ...", bottom room first
set -eu
. "$(dirname "$0")/common.sh"
root=$1 uses=$2

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

find "$root/src" "$root/include" -name '*.[ch]' | LC_ALL=C sort >"$work/files"
xargs awk -v root="$root/" -v uses="$uses" '
    BEGIN {
        while ((getline line <uses) > 0) {
            n = split(line, word, " ")
            is_room[word[1]] = 1
            for (i = 1; i <= n; i++) may[word[1], word[i]] = 1
            list[word[1]] = line
        }
        is_room["plait"] = 1
    }
    FNR == 1 {
        inside = substr(FILENAME, length(root) + 1)
        room = "public"
        if (inside ~ /^src\//) { split(inside, part, "/"); room = part[2] }
    }
    /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
        print "include" >seen
        if (inside ~ /_test\.c$/) next             # a test may look into any room
        path = $0
        sub(/^[^<"]*[<"]/, "", path)
        sub(/[>"].*$/, "", path)
        if (path ~ /^\.\.\/|\/\.\.\//) print inside ":" FNR ": includes " path "; name it as \"<room>/<header>.h\""
        first = path
        sub(/\/.*/, "", first)
        if (index(path, "/") && first in is_room && first != "plait" && !((room, first) in may))
            print inside ":" FNR ": " room " may not include " path "; it may use: " list[room]
    }' seen="$work/includes" <"$work/files" >"$work/found"
while read -r line; do violation "$line"; done <"$work/found"
[ -s "$work/includes" ] || violation "$root: no include found at all"
verdict "$(wc -l <"$work/includes") includes"
