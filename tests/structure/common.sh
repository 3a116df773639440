# Sourced by the checks. Each violation is one line "file: what"; a check ends with verdict.

violations=0
CC=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

violation() {
    echo "$*"
    violations=$((violations + 1))
}

verdict() {
    [ $violations -eq 0 ] || { echo "$violations violations"; exit 1; }
    echo "no violation in $1"
    exit 0
}

# The C text of a file without comments, line numbers kept.
without_comments() {
    awk '
    {
        line = $0 "\n"; out = ""
        for (i = 1; i <= length(line); i++) {
            c = substr(line, i, 1); d = substr(line, i, 2)
            if (comment) { if (d == "*/") { comment = 0; i++ } continue }
            if (quote != "") {
                out = out c
                if (c == "\\") { out = out substr(line, ++i, 1) } else if (c == quote || c == "\n") quote = ""
                continue
            }
            if (d == "/*") { comment = 1; i++; out = out " "; continue }
            if (d == "//") break
            if (c == "\"" || c == "\047") quote = c
            out = out c
        }
        sub(/\n$/, "", out)
        print out
    }' "$1"
}

# The same without the contents of string and character literals.
bare_code() {
    without_comments "$1" | sed 's/\\\\//g; s/\\"//g; s/"[^"]*"/""/g'
}
