#!/bin/sh
# Topics: planted ones are found; the same bits with any number of workers under --reduce exact; a resumed run ends as a run that
# was not stopped; new documents get mixtures; what is no count, and what makes no sense, is refused by name.
. "$(dirname "$0")/common.sh"

key() { tail -n 1 "$1.out" | sed -n 's/.*"'"$2"'": \([^,}]*\).*/\1/p'; }

# Three topics of ten words each: a document takes nine tokens of ten from one of them. Word w is w1 .. w30, a column.
awk 'BEGIN {
    s = 7
    for (w = 1; w <= 30; w++) printf "%sw%d", (w > 1 ? "," : ""), w
    print ""
    for (d = 0; d < 300; d++) {
        for (w = 0; w < 30; w++) n[w] = 0
        for (t = 0; t < 40; t++) {
            s = (s * 16807) % 2147483647; own = s % 10 < 9
            s = (s * 16807) % 2147483647; n[own ? d % 3 * 10 + s % 10 : s % 30]++
        }
        for (w = 0; w < 30; w++) printf "%s%d", (w > 0 ? "," : ""), n[w]
        print ""
    }
}' >planted.csv
awk -F , 'NR > 1 { printf "0"; for (w = 1; w <= NF; w++) if ($w > 0) printf " %d:%d", w - 1, $w; print "" }' planted.csv >planted.svm
awk -F , 'NR > 1 { n = 0; s = ""; for (w = 1; w <= NF; w++) if ($w > 0) { n++; s = s " " w - 1 ":" $w } print n s }' planted.csv >planted.ldac
lda="train --model lda --data planted.csv --label none --components 3 --quiet"

# --- planted topics ---
for sampler in scan mh; do
    # shellcheck disable=SC2086
    works $sampler $lda --epochs 60 --sampler $sampler --json --out $sampler.plait --test planted.csv
    works topics inspect $sampler.plait
    sed -n 's/^topic	[0-9]* [0-9.e-]* //p' topics.out >words
    # Ten words a topic, all of the same ten, and all three tens.
    awk '{ for (i = 1; i <= NF; i++) { t = int((substr($i, 2) - 1) / 10); if (i > 1 && t != a) exit 1; a = t } seen[a] = 1; if (NF != 10) exit 1 }
         END { exit !(NR == 3 && seen[0] && seen[1] && seen[2]) }' words || fail "$sampler: the topics are $(cat words)"
    awk -v p="$(key $sampler perplexity)" 'BEGIN { exit !(p > 10 && p < 15) }' || fail "$sampler: perplexity $(key $sampler perplexity)"
done
[ "$(key scan perplexity)" = "$(key scan test_perplexity)" ] || fail "the same documents as a test: $(tail -n 1 scan.out)"
works eval eval --model-file scan.plait --data planted.csv --label none --json
[ "$(key eval perplexity)" = "$(key scan perplexity)" ] || fail "eval: perplexity $(key eval perplexity), not $(key scan perplexity)"

# --- whole documents, left to right: nearly as well predicted as halves by halves; eval has it, too ---
# shellcheck disable=SC2086
works left $lda --epochs 60 --particles 5 --json --out left.plait
awk -v p="$(key left left_to_right)" 'BEGIN { exit !(p > 10 && p < 17) }' || fail "left to right: $(key left left_to_right)"
works eval eval --model-file left.plait --data planted.csv --label none --json
[ "$(key eval left_to_right)" = "$(key left left_to_right)" ] || fail "eval: left to right $(key eval left_to_right)"

# --- new documents ---
works mixtures transform --model-file scan.plait --data planted.csv --label none
works largest predict --model-file scan.plait --data planted.csv --label none
paste mixtures.out largest.out | awk '{ if ($1 + $2 + $3 < 0.999 || $1 + $2 + $3 > 1.001) exit 1
    if (NR <= 3) topic[NR % 3] = $4; wrong += $4 != topic[NR % 3] || $($4 + 1) < 0.5 } END { exit !(NR == 300 && wrong < 6) }' ||
    fail "mixtures: $(paste mixtures.out largest.out | head -n 4)"
exits 2 'lda is not a classification and has no probabilities' proba predict --model-file scan.plait --data planted.csv --label none --proba

# --- the same bits, whoever does the work and whatever the form of the data ---
exact="$lda --epochs 12 --batch 100 --reduce exact --json"
# shellcheck disable=SC2086
{
    works one $exact
    for workers in 2 4; do
        for topology in local ps allreduce; do
            works other $exact --workers $workers --topology $topology
            [ "$(key other model_hash)" = "$(key one model_hash)" ] || fail "$workers workers, $topology: another model"
        done
    done
    works other $exact --workers 3 --topology ps --replicas 2
    [ "$(key other model_hash)" = "$(key one model_hash)" ] || fail "two replicas: another model"
    for form in svm ldac; do # the first number of a line is a label, or how many words follow: both are ignored
        works $form train --model lda --components 3 --data planted.$form --epochs 60 --seed 1 --json --quiet
        awk -v p="$(key $form perplexity)" 'BEGIN { exit !(p > 10 && p < 15) }' || fail "$form: perplexity $(key $form perplexity)"
    done
    for consistency in ssp:2 async sequential bounded-delay:1; do # stale reads find the topics too
        works stale $lda --epochs 60 --seed 1 --batch 100 --workers 4 --topology ps --consistency $consistency --json
        awk -v p="$(key stale perplexity)" 'BEGIN { exit !(p > 10 && p < 15) }' || fail "$consistency: perplexity $(key stale perplexity)"
    done
}

# --- stopped in the middle, and resumed by other numbers of workers and replicas ---
# shellcheck disable=SC2086
works whole $exact --epochs 14
for numbers in "1:3" "3:2" "2 --replicas 2:3" "3:2 --replicas 2"; do
    from=${numbers%:*} to=${numbers#*:}
    rm -rf d
    # shellcheck disable=SC2086
    works part $exact --epochs 14 --workers $from --topology ps --checkpoint d --checkpoint-every 7
    rm -r d/*42 # the end: the run is resumed from clock 35
    # shellcheck disable=SC2086
    works resumed $exact --epochs 14 --resume d --workers $to --topology ps
    [ "$(key resumed model_hash)" = "$(key whole model_hash)" ] || fail "from $from to $to workers: another model"
done

# --- words rotate: the planted topics, whatever the staleness; the audit proves that no two workers had a word ---
# shellcheck disable=SC2086
for way in "4 --topology ps" "2 --topology allreduce" "3 --topology ps --consistency ssp:1" "2 --topology ps --consistency async" 1; do
    rm -f turns
    works rotate $lda --words rotate --epochs 60 --seed 1 --workers $way --events turns --json
    awk -v p="$(key rotate perplexity)" 'BEGIN { exit !(p > 10 && p < 15) }' || fail "$way: perplexity $(key rotate perplexity)"
    works turns audit --schedule turns
done
# shellcheck disable=SC2086
works rotate $lda --words rotate --epochs 3 --workers 3 --topology ps --consistency ssp:1 --word-blocks 3 --events few --json
"$PLAIT" audit --schedule few >few.out 2>&1 && fail "too few blocks are proven"
says few.out 'refuted (conflict)' || fail "too few blocks: $(cat few.out)"
# shellcheck disable=SC2086
{ # epochs are cut off whole, so any number of workers goes on; the counts are checked at the end
    rm -rf d
    works whole $lda --words rotate --epochs 14 --workers 3 --topology ps --json
    works part $lda --words rotate --epochs 14 --workers 3 --topology ps --checkpoint d --checkpoint-every 21 --json
    rm -r d/*42
    for to in 3 2; do
        works resumed $lda --words rotate --epochs 14 --resume d --workers $to --topology ps --json
        [ $to -ne 3 ] || [ "$(key resumed model_hash)" = "$(key whole model_hash)" ] || fail "rotated, resumed: another model"
    done
}

# --- words by name ---
awk 'BEGIN { for (w = 1; w <= 30; w++) print "word" w, 1000 - w }' >words.txt
works named train --model lda --components 3 --data planted.svm --epochs 5 --vocabulary words.txt --out named.plait --quiet
works topics inspect named.plait
says topics.out '^topic	0 .* word[0-9]' || fail "no words: $(cat topics.out)"
head -n 20 words.txt >short.txt
exits 1 'short.txt has 20 words, but the data have words up to number 30:' short train --model lda --components 3 --data planted.svm --vocabulary short.txt
# shellcheck disable=SC2086
exits 2 'the data have names for their words' named $lda --vocabulary words.txt

# --- refused ---
printf '1 1:2 3:1\n1 2:1.5\n' >half.svm
exits 1 'row 2 of the data has 1.5 of word 2.* whole numbers from 0' half train --model lda --data half.svm
printf '1 1:2 3:1\n1 2:-3\n' >below.svm
exits 1 'row 2 of the data has -3 of word 2' below train --model lda --data below.svm
printf '1 1:0\n1 2:0\n' >none.svm
exits 1 'the data have no token' none train --model lda --data none.svm
refused() { # refused PATTERN words...
    pattern=$1
    shift
    # shellcheck disable=SC2086
    exits 2 "$pattern" refused $lda --epochs 2 "$@"
}
refused '--replicas with model lda and consistency async is refused.*nearest is bsp' --workers 2 --topology ps --consistency async --replicas 2
refused 'model lda with backup workers is refused' --workers 3 --topology ps --backup 1
refused 'l1 and l2 with model lda is refused' --l1 0.1
refused 'optimizer adam with model lda is refused' --optimizer adam
refused 'topology gossip:ring is refused.*nearest is allreduce' --workers 2 --topology gossip:ring
refused '--reduce exact with model lda and --words rotate is refused' --words rotate --reduce exact
refused '--sampler mh with model lda and --words rotate is refused' --words rotate --sampler mh
refused '2 blocks of 30 words for 3 workers' --words rotate --word-blocks 2 --workers 3
refused 'components is .0.: expected an integer from 1' --components 0
refused "sampler wants one of auto.scan.mh, not 'gibbs'" --sampler gibbs
finish
