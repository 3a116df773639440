#!/bin/sh
# A program outside of the tree builds against an installed Plait, by the CMake package and by pkg-config, and runs; the
# installed program runs too. Nothing installed names the build or the source folder.
# usage: consumer.sh ROOT BUILD_DIR CMAKE
set -eu
. "$(dirname "$0")/common.sh"
root=$(cd "$1" && pwd) build=$2 cmake=$3

DESTDIR= "$cmake" --install "$build" --prefix "$work/usr" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
lib=$(dirname "$(find "$work/usr" -name 'libplait.so.0')")

mkdir "$work/consumer"
cp "$root"/tests/structure/consumer/* "$work/consumer/"
"$cmake" -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_PREFIX_PATH="$work/usr" >"$work/said" 2>&1 &&
    "$cmake" --build "$work/consumer/build" >>"$work/said" 2>&1 &&
    "$work/consumer/build/consumer" >>"$work/said" 2>&1 || {
    cat "$work/said"
    violation "the consumer by find_package(plait) fails"
}

PKG_CONFIG_PATH=$lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$CC" -std=c17 "$work/consumer/consumer.c" -o "$work/consumer/by-pkg-config" $(pkg-config --cflags --libs plait) \
    >"$work/said" 2>&1 && LD_LIBRARY_PATH=$lib "$work/consumer/by-pkg-config" >>"$work/said" 2>&1 || {
    cat "$work/said"
    violation "the consumer by pkg-config fails"
}
flags=$(pkg-config --cflags plait | sed 's/ *$//')
case $flags in
-I*\ * | '') violation "pkg-config --cflags plait gives $flags, more than the own folder" ;;
esac

if [ -x "$work/usr/bin/plait" ]; then
    "$work/usr/bin/plait" version >"$work/said" 2>&1 || { cat "$work/said"; violation "the installed program does not run"; }
fi
for page in "$work/usr/share/man/man1/plait.1" "$work/usr/share/bash-completion/completions/plait" \
    "$work/usr/share/zsh/site-functions/_plait" "$work/usr/share/fish/vendor_completions.d/plait.fish"; do
    [ ! -x "$work/usr/bin/plait" ] || [ -s "$page" ] || violation "${page#"$work"/} is missing or empty"
done
grep -rlE "$root|$build" "$work/usr/include" "$lib/cmake" "$lib/pkgconfig" >"$work/said" 2>/dev/null || true
while read -r file; do violation "${file#"$work"/}: names the build or source folder"; done <"$work/said"
verdict "2 consumers"
