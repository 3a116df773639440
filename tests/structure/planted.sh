#!/bin/sh
# The checks can fail: each gets a small clean tree, which it must pass, and the same with one violation planted, which
# it must refuse by naming it.
# usage: planted.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
tree=$work/tree
count=0

# A clean tree with the rooms base and comm; then the reader plants what he wants.
fresh() {
    rm -rf "$tree"
    mkdir -p "$tree/include/plait" "$tree/src/base" "$tree/src/comm"
    cat >"$tree/include/plait/thing.h" <<'END'
#ifndef PLAIT_THING_H
#define PLAIT_THING_H
#define PLAIT_API __attribute__((visibility("default")))
/** Counts things: plait_gone() { is no declaration. */
typedef int plait_visit_fn(void *user, int n);
PLAIT_API int plait_thing_count(const char *name,
                                plait_visit_fn *fn);
static inline int plait_thing_twice(int n) { return 2 * n; }
#endif
END
    cat >"$tree/src/base/base.h" <<'END'
#ifndef PLI_BASE_H
#define PLI_BASE_H
int pli_base(void);
#endif
END
    cat >"$tree/src/base/base.c" <<'END'
#include "base/base.h"
#include <plait/thing.h>
#include <stdio.h>
/* never printf("x"), exit(1), or a volatile: words in comments and "strings" are free */
static int (*const table[])(void) = { pli_base };
int pli_base(void) { char text[16]; snprintf(text, sizeof text, "exit(1)"); return table[0] == pli_base; }
int plait_thing_count(const char *name, plait_visit_fn *fn) { return fn((void *)(size_t)name, 1); }
END
    cat >"$tree/src/comm/comm.c" <<'END'
#include "base/base.h"
int pli_comm(void);
int pli_comm(void) { return pli_base(); }
END
    printf 'base \ncomm base\n' >"$tree/uses.txt"
    printf '# Things\n\n```c body\nplait_thing_twice(2);\n```\n[code](src/base/base.c)\n' >"$tree/README.md"
}

# says CHECK TEXT [argument...]: it must fail and name TEXT; with TEXT = clean it must pass
says() {
    check=$1 text=$2
    shift 2
    count=$((count + 1))
    code=0
    sh "$here/$check.sh" "$@" >"$work/answer" 2>&1 || code=$?
    if [ "$text" = clean ]; then
        [ $code = 0 ] || { violation "$check refuses a clean tree"; cat "$work/answer"; }
    elif [ $code = 0 ]; then
        violation "$check does not see: $text"
    elif ! grep -qF "$text" "$work/answer"; then
        violation "$check fails, but does not name: $text"
        cat "$work/answer"
    fi
}

# --- includes
fresh
says includes clean "$tree" "$tree/uses.txt"
echo '#include "comm/comm.h"' >>"$tree/src/base/base.c"
says includes 'src/base/base.c:8: base may not include comm/comm.h' "$tree" "$tree/uses.txt"
fresh
echo '#include "../base/base.h"' >>"$tree/src/comm/comm.c"
says includes 'src/comm/comm.c:4: includes ../base/base.h' "$tree" "$tree/uses.txt"
fresh
echo '#include <base/base.h>' >>"$tree/include/plait/thing.h"
says includes 'public may not include base/base.h' "$tree" "$tree/uses.txt"
printf 'base comm\ncomm base\n' >"$tree/uses.txt"
says includes 'the room base uses comm' "$tree" "$tree/uses.txt"

# --- refusals

fresh
says refusals clean "$tree"
mkdir -p "$tree/src/learn/run"
echo 'int pli_check(void) { return pli_fail(0, PLAIT_EREFUSED, "no"); }' >"$tree/src/learn/run/options.c"
says refusals 'src/learn/run/options.c:1:' "$tree"
echo 'int pli_check(void) { return strcmp(consistency, "bsp"); }' >"$tree/src/learn/run/options.c"
says refusals 'asks for a name: src/learn/run/options.c:1:' "$tree"

# --- words
fresh
says words clean "$tree"
while read -r line; do
    fresh
    echo "static void planted(void) { $line }" >>"$tree/src/comm/comm.c"
    says words "src/comm/comm.c:4:" "$tree"
done <<'END'
getenv("HOME");
printf("%d", 1);
puts("x");
fprintf(stderr, "x");
fputs("x", stderr);
exit(1);
_exit(1);
abort();
int x = rand();
srand(1);
setlocale(0, "");
volatile int x = 0;
END
fresh
printf '#if 0\nint x;\n#endif\n' >>"$tree/src/comm/comm.c"
says words 'src/comm/comm.c:4:' "$tree"
fresh
echo 'void pli_f(void) { getenv("PLAIT_X"); }' >"$tree/src/base/opts.c"
mkdir "$tree/src/cli"
echo 'void pli_g(void) { printf("x"); exit(1); }' >"$tree/src/cli/main.c"
says words clean "$tree"

# --- root
fresh
rm -f "$tree/uses.txt"
touch "$tree/README.md"
says root clean "$tree"
touch "$tree/half.yaml"
says root 'half.yaml: no file of the root' "$tree"

# --- width
fresh
says width clean "$tree"
printf '/* %0113d */\n' 7 >>"$tree/src/comm/comm.c" # 120 with the newline left out: as wide as may be
says width clean "$tree"
printf '/* %0115d */\n' 7 >>"$tree/src/comm/comm.c"
says width 'src/comm/comm.c:5: 121 columns, at most 120' "$tree"

# --- headers
fresh
CXX=${CXX:-} says headers clean "$tree" "$tree/uses.txt"
echo 'size_t plait_size;' >>"$tree/include/plait/thing.h"
says headers 'include/plait/thing.h (C17): does not compile alone' "$tree" "$tree/uses.txt"
fresh
echo 'int pli_bad(uint32_t x);' >>"$tree/src/base/base.h"
says headers 'src/base/base.h: does not compile alone' "$tree" "$tree/uses.txt"
fresh
for _ in 1 2 3; do for _ in 1 2 3 4 5 6 7 8 9 10; do printf '\n\n\n\n\n\n\n\n\n\n'; done; done >>"$tree/include/plait/thing.h"
says headers 'at most 300' "$tree" "$tree/uses.txt"
if [ -n "${CXX:-}" ] && [ "${CXX%NOTFOUND}" = "$CXX" ]; then
    fresh
    echo 'int plait_class(int class);' >>"$tree/include/plait/thing.h"
    says headers '(C++): does not compile alone' "$tree" "$tree/uses.txt"
fi

# --- learners
learners() {
    fresh
    mkdir -p "$tree/src/learn/run" "$tree/src/learn/one" "$tree/src/learn/two"
    echo 'const plait_learner pli_one = { 0 };' >"$tree/src/learn/one/one.c"
    echo 'const plait_learner pli_two = { 0 };' >"$tree/src/learn/two/two.c"
    : >"$tree/src/learn/one/one.h"
    : >"$tree/src/learn/learner.h"
    echo 'static const plait_learner *const learners[] = { &pli_one, &pli_two };' >"$tree/src/learn/learners.c"
    echo '#include "learn/learner.h"' >"$tree/src/learn/run/run.c"
}
learners
says learners clean "$tree"
echo '#include "learn/one/one.h"' >>"$tree/src/learn/two/two.c"
says learners 'the learner two includes learn/one/one.h of another' "$tree"
learners
echo '#include "learn/one/one.h"' >>"$tree/src/learn/run/run.c"
says learners 'run includes learn/one/one.h of a learner' "$tree"
learners
echo 'const void *it = &pli_one;' >>"$tree/src/learn/run/run.c"
says learners 'names pli_one, which learners.c alone does' "$tree"
learners
echo '#include "learn/one/one.h"' >>"$tree/src/learn/learner.h"
says learners 'learner.h includes learn/one/one.h, which is above it' "$tree"
learners
echo 'const plait_learner pli_three = { 0 };' >"$tree/src/learn/three.c"
says learners 'pli_three of src/learn/three.c is not listed once' "$tree"
fresh
mkdir -p "$tree/src/base/in"
echo '#include "base/in/in.h"' >"$tree/src/base/base.h"
echo '#include "base/base.h"' >"$tree/src/base/in/in.h"
says learners 'a circle of includes across folders: base/base, base/in/in' "$tree"

# --- docs
fresh
says docs clean "$tree"
printf '```c\nint f(void) { return plait_gone(1, 2, NULLL); }\n```\n' >>"$tree/README.md"
says docs 'README.md:7: this example does not compile' "$tree"
fresh
echo '[gone](docs/gone.md)' >>"$tree/README.md"
says docs 'the link docs/gone.md leads nowhere' "$tree"
fresh
printf '/** As in\n * ```c body\n * plait_thing_twice(;\n * ```\n */\n' >>"$tree/include/plait/thing.h"
says docs 'include/plait/thing.h:11: this example does not compile' "$tree"

# --- exports and globals: what a compiler makes of it
link() {
    # shellcheck disable=SC2086
    "$CC" -shared -fPIC -fvisibility=hidden ${1:-} -I"$tree/include" -I"$tree/src" "$tree/src/base/base.c" -o "$work/lib.so"
}
fresh
link
says exports clean "$tree" "$work/lib.so"
link -fvisibility=default
says exports 'pli_base: exported, but in no public header' "$tree" "$work/lib.so"
echo 'PLAIT_API extern const int plait_things[4];' >>"$tree/include/plait/thing.h"
link
says exports 'plait_things: declared in a public header, but not exported' "$tree" "$work/lib.so"
echo 'int plait_bare(void);' >>"$tree/include/plait/thing.h"
says exports 'plait_bare: declared in a public header without PLAIT_API' "$tree" "$work/lib.so"

compile() {
    mkdir -p "$work/objects/src/base/CMakeFiles/pli_base.dir"
    "$CC" -c -fPIC -I"$tree/include" -I"$tree/src" "$tree/src/base/base.c" \
        -o "$work/objects/src/base/CMakeFiles/pli_base.dir/base.c.o"
}
fresh
: >"$work/allow"
compile
says globals clean "$work/objects" "$work/allow"
echo 'base/base.c gone because' >"$work/allow"
says globals 'gone is not there any more' "$work/objects" "$work/allow"
for line in 'int pli_counter;' 'int pli_counter = 3;' 'int pli_f(void); int pli_f(void) { static int pli_counter; return pli_counter++; }' \
    '_Thread_local int pli_counter;'; do
    fresh
    : >"$work/allow"
    echo "$line" >>"$tree/src/base/base.c"
    compile
    says globals 'src/base/base.c: pli_counter is writable' "$work/objects" "$work/allow"
done
echo 'base/base.c pli_counter because' >"$work/allow"
says globals clean "$work/objects" "$work/allow"

# --- needed
says needed 'the SONAME is not libplait.so.0' "$work/lib.so"
"$CC" -shared -fPIC -Wl,-soname,libplait.so.0 -I"$tree/include" -I"$tree/src" "$tree/src/base/base.c" -o "$work/libplait.so.0"
says needed clean "$work/libplait.so.0"
"$CC" -shared -Wl,-soname,libother.so.1 -x c /dev/null -o "$work/libother.so"
"$CC" -shared -fPIC -Wl,--no-as-needed -Wl,-soname,libplait.so.0 -I"$tree/include" -I"$tree/src" "$tree/src/base/base.c" \
    "$work/libother.so" -o "$work/libplait.so.0"
says needed 'needs libother.so.1' "$work/libplait.so.0"
verdict "$count trials"
