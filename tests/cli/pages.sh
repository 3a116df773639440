#!/bin/sh
# The manual page and the completion script follow from the tables of options.
. "$(dirname "$0")/common.sh"

works man help --man
grep -q '^\.TH PLAIT 1' man.out || fail "no manual page"
works train train -h
grep -oE '^  --[a-z-]+' train.out | tr -d ' ' | while read -r option; do
    grep -qF -- "$(printf '%s' "$option" | sed 's/-/\\-/g')" man.out || echo "$option"
done >missing
[ -s missing ] && fail "not in the manual page: $(tr '\n' ' ' <missing)"
grep -q -- '--join' train.out && fail "help offers what comes later"
# Every option of every command stands in some page of the manual.
for command in train launch predict eval compare inspect export audit doctor checkpoint graph calibrate config version help; do
    works options help $command
    grep -oE '^  --[a-z0-9-]+' options.out | tr -d ' ' | while read -r option; do
        grep -qE -- "(^|[^a-z-])$option([^a-z0-9-]|\$)" "$PLAIT_SOURCE_DIR"/docs/*.md "$PLAIT_SOURCE_DIR"/README.md || echo "$command $option"
    done
done >undocumented
[ -s undocumented ] && fail "no page of docs/ names: $(tr '\n' ';' <undocumented)"
if command -v groff >/dev/null; then
    groff -man -Tascii -ww man.out >page 2>page.err || fail "groff fails"
    [ -s page.err ] && fail "groff: $(head -n 1 page.err)"
fi
works bash help --completion bash
exits 2 'bash' zsh help --completion zsh
command -v bash >/dev/null || skip "no bash"
# completes "words" EXPECTED: the last word is completed
completes() {
    bash -c '. ./bash.out; COMP_WORDS=('"$1"'); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _plait; echo "${COMPREPLY[*]}"' >reply
    [ "$(cat reply)" = "$2" ] || fail "completes '$1' to '$(cat reply)', not '$2'"
}
completes 'plait trai' train
completes 'plait tran' transform
completes 'plait train --topo' --topology
completes 'plait train --optimizer ad' 'adagrad adam'
completes 'plait train --consistency se' sequential
completes 'plait audit --as bs' bsp
completes 'plait help cons' consistency
completes 'plait help es' essp
completes 'plait train --schedule c' 'constant cosine'
completes 'plait config --show' --show-origin
completes 'plait config --topo' --topology
completes 'plait predict --model-file par' part
completes 'plait train --joi' ''
completes 'plait train --checkp' '--checkpoint --checkpoint-every'
completes 'plait launch -n 2 -- plait trai' train
completes 'plait launch -n 2 -- pred' predict
completes 'plait launch -n 2 -- plait train --topo' --topology
completes 'plait launch -n 2 -- train --optimizer ad' 'adagrad adam'
completes 'plait launch -n 2 -- build/plait train --schedule c' 'constant cosine'
completes 'plait launch --ra' --ranks
completes 'plait checkpoint ve' verify
completes 'plait checkpoint verify par' part
completes 'plait checkpoint --js' --json
finish
