#!/bin/sh
# Fenced C in the documents and in public headers compiles, and relative links lead to a file.
#   ```c        a whole file; the public headers are included beforehand
#   ```c body   statements; they are wrapped into a function
# usage: docs.sh ROOT
set -eu
. "$(dirname "$0")/common.sh"
root=$1

for header in "$root"/include/plait/*.h; do
    if [ -e "$header" ]; then echo "#include <plait/$(basename "$header")>"; fi
done >"$work/all.h"

find "$root" \( -name build -o -name .venv -o -name .git -o -name .bench \) -prune -o \
    \( -name '*.md' -o -path "$root/include/plait/*.h" \) -print | LC_ALL=C sort >"$work/documents"
count=0
while read -r document; do
    inside=${document#"$root"/}
    rm -f "$work"/block-*
    sed 's/^ \* \{0,1\}//' "$document" | awk -v to="$work/block-" '
        /^[ \t]*```/ {
            if (inside) { if (out != "") { if (body) print "}" >out; close(out) } inside = 0; out = "" }
            else {
                inside = 1
                fence = $0
                sub(/^[ \t]*```/, "", fence)
                if (fence == "c" || fence == "c body") {
                    body = fence == "c body"
                    out = to FNR ".c"
                    print "#include \"all.h\"" >out
                    if (body) print "void example(void);\nvoid example(void) {" >out
                    printf "#line %d\n", FNR + 1 >out
                }
            }
            next
        }
        out != "" { print >out }'
    for block in "$work"/block-*; do
        [ -e "$block" ] || continue
        count=$((count + 1))
        line=${block##*-}
        if ! "$CC" -std=c17 -D_GNU_SOURCE -Werror=implicit-function-declaration -fsyntax-only -I"$work" -I"$root/include" "$block" >"$work/said" 2>&1; then
            violation "$inside:${line%.c}: this example does not compile"
            head -n 12 "$work/said"
        fi
    done
    case $document in
    *.md)
        grep -oE '\]\([^)#]+' "$document" | sed 's/^](//' | sort -u >"$work/links" || true
        while read -r link; do
            case $link in
            *://* | mailto:*) ;;
            *) [ -e "$(dirname "$document")/$link" ] || violation "$inside: the link $link leads nowhere" ;;
            esac
        done <"$work/links"
        ;;
    esac
done <"$work/documents"
[ -s "$work/documents" ] || violation "$root: no document found"
verdict "$count examples in $(wc -l <"$work/documents") documents"
