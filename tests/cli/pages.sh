#!/bin/sh
# The manual page and the completion scripts follow from the tables of options.
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
works all help
for command in $(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' all.out); do
    works options help "$command"
    grep -oE '^  --[a-z0-9-]+' options.out | tr -d ' ' | while read -r option; do
        grep -qE -- "(^|[^a-z-])$option([^a-z0-9-]|\$)" "$PLAIT_SOURCE_DIR"/docs/*.md "$PLAIT_SOURCE_DIR"/README.md || echo "$command $option"
    done
done >undocumented
[ -s undocumented ] && fail "no page of docs/ names: $(tr '\n' ';' <undocumented)"
if command -v groff >/dev/null; then
    groff -man -Tascii -ww man.out >page 2>page.err || fail "groff fails"
    [ -s page.err ] && fail "groff: $(head -n 1 page.err)"
fi
# The scripts of the shells name every command, and every option of each.
for shell in bash zsh fish; do
    works $shell help --completion $shell
done
exits 2 "did you mean zsh" zssh help --completion zssh
# of SHELL COMMAND: the script's options of a command, behind any of its words, one a line
of() {
    case $1 in
    bash) awk -v c="    $2)" '/^    [a-z]+\)$/ { on = $0 == c } on && /options=/ { gsub(/.*options="|".*/, ""); gsub(/ /, "\n"); print }' bash.out ;;
    zsh) awk -v c="    $2)" '/^    [a-z]+\)$/ { on = $0 == c } on && /^ *.--/ { sub(/^ *./, ""); sub(/:.*/, ""); print }' zsh.out ;;
    fish) sed -nE "s/^complete -c plait -n '__plait_of [^']*\\b$2\\b[^']*' -l ([^ ]+) .*/--\\1/p" fish.out ;;
    esac
}
for command in $(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' all.out); do
    works options help "$command"
    options=$(grep -oE '^  --[a-z0-9.-]+' options.out | tr -d ' ' | grep -v '^--help$' | sort)
    for shell in bash zsh fish; do
        of $shell "$command" | sort -u >offered
        printf '%s\n' "$options" | sed '/^$/d' | comm -23 - offered >missing
        [ -s missing ] && fail "$shell: options of $command are missing: $(tr '\n' ' ' <missing)"
        [ "$command" = train ] && grep -qx -- --join offered && fail "$shell offers what comes later"
        grep -q "$command" $shell.out || fail "$shell does not know $command"
    done
done
for command in cv tune plan compare config; do
    for shell in bash zsh fish; do
        of $shell $command | grep -qx -- --consistency || fail "$shell: $command without the options of train"
    done
done
if command -v zsh >/dev/null; then
    zsh -n zsh.out || fail "zsh does not read its script"
    # offers "words" WORD: zsh offers a word for the last of them; what the shell's own functions get is printed
    offers() {
        zsh -f -c 'compdef() {}; compadd() { shift; print -l -- $@; }; _files() { print files; }; _message() { print $1; }
            compset() { :; }; _describe() { print -l -- ${(P)@[-1]}; }
            . ./zsh.out; words=('"$1"'); CURRENT=$#words; _plait' | sed 's/:.*//' | grep -qx -- "$2" || fail "zsh: '$1' without $2"
    }
    offers 'plait tr' transform
    offers 'plait train --topo' --topology
    offers 'plait train --optimizer ad' adagrad
    offers 'plait launch -n 2 -- plait train --consistency se' sequential
    offers 'plait cv --ep' --epochs
    offers 'plait train --optimizer=ad' adagrad
    offers 'plait train --topology g' gossip
    offers 'plait graph place net --place ch' chain
    offers 'plait graph place net --place ch' files
    offers 'plait train --epochs 1' N
    offers 'plait predict --data x' files
    offers 'plait checkpoint ve' verify
    offers 'plait graph run pager' pagerank
    offers 'plait help es' essp
fi
if command -v fish >/dev/null; then
    fish -n fish.out || fail "fish does not read its script"
    # offers "line" WORD
    offers() {
        HOME=$PWD fish -N -c "source fish.out; complete -C '$1'" | cut -f 1 | grep -qx -- "$2" || fail "fish: '$1' without $2"
    }
    offers 'plait tr' transform
    offers 'plait train --topo' --topology
    offers 'plait train --optimizer ad' adagrad
    offers 'plait launch -n 2 -- plait train --consistency se' sequential
    offers 'plait cv --ep' --epochs
    offers 'plait train --topology=gossip:r' --topology=gossip:ring
    offers 'plait graph place net --place ch' chain
    offers 'plait graph place net --place fish.o' fish.out
    offers 'plait predict --data fish.o' fish.out
    offers 'plait checkpoint ve' verify
    offers 'plait graph run pager' pagerank
    offers 'plait help es' essp
fi
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
# bash cuts words at = and at :, and wants the last piece alone.
completes 'plait train --optimizer = ad' 'adagrad adam'
completes 'plait cv --schedule =' 'constant invsqrt cosine'
completes 'plait train --topology g' 'gossip:ring gossip:torus gossip:exp'
completes 'plait train --topology gossip : r' ring
completes 'plait train --topology = gossip :' 'ring torus exp'
completes 'plait launch -n 2 -- plait train --topology = gossip : e' exp
completes 'plait train --class-weight b' balanced
completes 'plait train --class-weight K' ''
completes 'plait graph place net --place bash.o' bash.out
completes 'plait audit --as bs' bsp
completes 'plait help cons' consistency
completes 'plait help es' essp
completes 'plait train --schedule c' 'constant cosine'
completes 'plait config --show' --show-origin
completes 'plait config --topo' --topology
completes 'plait cv --topo' --topology
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
completes 'plait graph run pager' pagerank
completes 'plait graph place pager' ''
completes 'plait checkpoint verify par' part
completes 'plait checkpoint --js' --json
finish
