#!/bin/sh
# The root of the tree has the files that a newcomer looks for there, and none that a trial has left.
# usage: root.sh ROOT
set -eu
. "$(dirname "$0")/common.sh"
root=$1

find "$root" -maxdepth 1 -type f ! -name '.*' ! -name '*.tmp' | sed 's|.*/||' | LC_ALL=C sort >"$work/files"
while read -r file; do
    case $file in
    CMakeLists.txt | CMakePresets.json | CONTRIBUTING.md | LICENSE | README.md | pyproject.toml) ;;
    *) violation "$file: no file of the root; a new one goes into the list of tests/structure/root.sh" ;;
    esac
done <"$work/files"
verdict "$(wc -l <"$work/files") files"
