#!/bin/sh
# Words that must not stand in the source: each with the places where it may.
# usage: words.sh ROOT
set -eu
. "$(dirname "$0")/common.sh"
root=$1

# ban WORDS_REGEX ALLOWED_PATH_REGEX WHY: in the code under src/ and include/, tests and fuzzers included only if the
# allowed paths do not name them
ban() {
    (cd "$work/code" && grep -rnE "(^|[^A-Za-z0-9_])($1)" .) | sed 's#^\./##' |
        awk -F : -v allowed="$2" -v why="$3" '$1 !~ allowed { print $0 ": " why }' | LC_ALL=C sort >"$work/hits"
    cat "$work/hits"
    violations=$((violations + $(wc -l <"$work/hits")))
}

find "$root/src" "$root/include" -name '*.[ch]' | LC_ALL=C sort >"$work/files"
while read -r file; do
    to=$work/code/${file#"$root"/}
    mkdir -p "$(dirname "$to")"
    bare_code "$file" >"$to"
done <"$work/files"

tests='(_test|_fuzz)[.]c$'
ban '(secure_)?getenv *\(' "^src/base/opts[.]c$|$tests" 'the environment is read in base/opts.c only'
ban '(v?printf|putchar|puts|perror) *\(' "^src/cli/|$tests" 'only cli prints'
ban '(v?f?d?printf|fputs|fputc|fwrite) *\(.*(stderr|stdout|STD(ERR|OUT)_FILENO)' "^src/cli/|$tests" 'only cli prints'
ban '(_?exit|_Exit|quick_exit|abort) *\(' "^src/cli/|$tests" 'the library never ends the process'
ban '(s?rand(_r)?|random|[dlm]rand48) *\(' '^$' 'random numbers are counter-based: base/random.h'
ban '.?include *<jansson[.]h>' '^src/base/json[.]h$' 'JSON is read and written by base/json.h'
ban 'setlocale *\(' '^$' 'the locale belongs to the program that uses the library'
ban 'volatile([^A-Za-z0-9_]|$)' '^$' 'use an atomic'
ban '# *if +0([^-A-Za-z0-9_]|$)' '^$' 'dead text'
verdict "$(wc -l <"$work/files") files"
