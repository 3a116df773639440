#!/bin/sh
# sample writes text: by the model's own probabilities, the same by the same seed.
. "$(dirname "$0")/common.sh"

# The likeliest character is the one that predict prints for the same place.
awk 'BEGIN { for (i = 0; i < 150; i++) print "the cat " (i % 3 ? "sat" : "ran") " on the mat, and the dog " (i % 7 ? "ate" : "hid") }' >text
works train train --model logistic --format text --window 5 --data text --epochs 30 --out model --quiet
works labels predict --model-file model --data text
for n in 1 3 5 9 38; do
    works one sample --model-file model --prompt "$(head -c $n text)" --length 1 --temperature 0
    want=$(sed -n "$((n + 1))p" labels.out)
    [ "$(cat one.out)" = "$(head -c $n text)$want" ] || fail "behind $n characters: '$(cat one.out)', but predict says '$want'"
done
works lstm train --model lstm --layers 8 --window 16 --format text --data text --epochs 4 --out lstm.model --quiet
works labels predict --model-file lstm.model --data text
works one sample --model-file lstm.model --prompt "$(head -c 63 text)" --length 1 --temperature 0 --quiet
[ "$(cat one.out)" = "$(head -c 63 text)$(sed -n 64p labels.out)" ] || fail "lstm: '$(cat one.out)', but predict says '$(sed -n 64p labels.out)'"

# Seeds repeat; the length is kept; a file gets the bytes as they are.
works a sample --model-file lstm.model --prompt 'the ' --length 100 --seed 3
works b sample --model-file lstm.model --prompt 'the ' --length 100 --seed 3 --out b.text
works c sample --model-file lstm.model --prompt 'the ' --length 100 --seed 4
[ "$(wc -c <b.text)" -eq 104 ] || fail "$(wc -c <b.text) bytes for a prompt of 4 and 100 more"
[ "$(cat a.out)" = "$(cat b.text)" ] || fail "the same seed gives another text in a file"
cmp -s a.out c.out && fail "another seed gives the same text"

# Characters come as often as the model says; the temperature changes how often.
awk 'BEGIN { s = 7; for (i = 0; i < 6000; i++) { s = s * 16807 % 2147483647; printf "%s", (int(s / 1000) % 10 < 7 ? "a" : "b") } print "" }' >coin
works coin train --model logistic --format text --window 1 --data coin --out coin.model --quiet
share() { # TEMPERATURE LOW HIGH: of a among 1000 characters, in percent
    works tossed sample --model-file coin.model --length 1000 --temperature "$1"
    a=$(tr -dc a <tossed.out | wc -c)
    [ "$a" -ge "$2" ] && [ "$a" -le "$3" ] || fail "temperature $1: $a of 1000 are a"
}
share 1 650 750
share 0.5 800 890
share 100 280 390 # the newline is as likely as a and b
share 0 999 1000

exits 2 'model logistic was not trained on text by characters' none sample --model-file "$(works plain train --data part --out plain.model --quiet; echo plain.model)"
works hinge train --model hinge --format text --window 2 --data text --epochs 1 --out hinge.model --quiet
exits 2 'hinge has no probabilities' none sample --model-file hinge.model
exits 2 'no model' none sample --length 3
exits 2 'unknown option --temprature; did you mean --temperature' none sample --model-file model --temprature 1
exits 2 'temperature wants' none sample --model-file model --temperature -1
exits 2 'model' same sample --model-file model --out model
exits 1 'gone' none sample --model-file gone
works odd sample --model-file model --prompt 'the Q' --length 3
grep -q '1 byte of the prompt is not in the text' odd.err || fail "an unknown character is not told: $(cat odd.err)"
exits 2 "here it is 'plait sample'" none generate
finish
