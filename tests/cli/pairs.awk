# The pairs of topology and consistency that train a model, a line each, out of what plait help pairs prints.
# usage: plait help pairs | awk -v model=kmeans -v ranks=threads|processes -f pairs.awk
# A pair of hybrid is one that its dense tables take, too.
function take(consistency,    i) {
    order[++rows] = consistency
    for (i = 1; i <= n; i++) if (cell[i + 1] == "trains") trains[topology[i], consistency] = 1
}
/^Ranks are threads/ { matrix = ranks == "threads" }
/^Ranks are processes/ { matrix = ranks != "threads" }
/^Why, where/ { matrix = 0 }
matrix && $2 == "allreduce" { for (i = 1; i <= NF; i++) topology[i] = $i; n = NF }
matrix && $1 ~ /^(bsp|ssp|essp|asp|bounded|seq|vap|down|async|local-sgd)/ {
    cells = $0
    gsub(/refused \[[0-9]+\]/, "refused", cells)
    gsub(/sparse only/, "sparse", cells)
    split(cells, cell, " ")
    take(cell[1])
    if (cell[1] == "bounded-delay:2") take("bounded-delay:0") # the matrix has one of each name
}
/^model / { mine = $2 == model "," }
/^Settings with each other/ { mine = 0 }
mine && /every pair that trains/ { all = 1 }
mine && /^   [a-z]/ { # "   ps, hybrid              bsp, ssp:2,": topologies, then consistencies, on more lines if need be
    line = $0
    gsub(/,/, " ", line)
    split("", now)
    k = split(line, word, " ")
    for (i = 1; i <= k && word[i] ~ /^(local|allreduce|ps|hybrid|gossip)$/; i++) now[word[i]] = 1
    for (; i <= k; i++) for (t in now) listed[t, word[i]] = 1
    next
}
mine && /^    / {
    line = $0
    gsub(/,/, " ", line)
    k = split(line, word, " ")
    for (i = 1; i <= k; i++) for (t in now) listed[t, word[i]] = 1
}
END {
    for (i = 1; i <= n; i++)
        for (r = 1; r <= rows; r++)
            if (((topology[i], order[r]) in trains) && (all || ((topology[i], order[r]) in listed)))
                print topology[i] (topology[i] == "gossip" ? ":ring" : ""), order[r]
}
