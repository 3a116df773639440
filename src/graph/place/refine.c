/* Local search: each unit in turn is tried on every other rank, and stays where the simulated step is best (Fiduccia
 * and Mattheyses' moves, DAC 1982, judged by simulation as in FlexFlow). Each pass draws where it begins, and its
 * direction. Before it, ranks exchange all their units. The search ends when a pass changes nothing, or no judgement
 * is left. */
#include "base/random.h"
#include "graph/place/place.h"

typedef struct search {
    const pli_placing *load;
    pli_judge         *judge;
    int64_t           *budget;
    int32_t           *part;
    pli_judged        *best;
} search;

static bool keep_if_better(search *s) {
    const pli_judged now = pli_judge_run(s->judge, s->part, NULL);
    --*s->budget;
    if (!pli_judged_better(&now, s->best)) return false;
    *s->best = now;
    return true;
}

static bool move_unit(search *s, int32_t unit) {
    bool moved = false;
    for (int32_t r = 0; *s->budget > 0 && r < s->load->parts; r++) {
        const int32_t from = s->part[unit];
        if (r == from || !pli_place_allows(s->load, unit, r)) continue;
        s->part[unit] = r;
        if (keep_if_better(s))
            moved = true;
        else
            s->part[unit] = from;
    }
    return moved;
}

/* Exchanges what two ranks have, except for units that may not move. */
static void exchange(const search *s, int32_t a, int32_t b) {
    for (int32_t u = 0; u < s->load->units; u++) {
        const int32_t r = s->part[u], to = r == a ? b : a;
        if ((r == a || r == b) && pli_place_allows(s->load, u, to)) s->part[u] = to;
    }
}

static bool swap_ranks(search *s) {
    bool swapped = false;
    for (int32_t a = 0; a < s->load->parts; a++)
        for (int32_t b = a + 1; *s->budget > 0 && b < s->load->parts; b++) {
            bool free = true; /* a swap that cannot be undone is not tried */
            for (int32_t u = 0; u < s->load->units; u++)
                free = free && ((s->part[u] != a && s->part[u] != b) ||
                                (pli_place_allows(s->load, u, a) && pli_place_allows(s->load, u, b)));
            if (!free) continue;
            exchange(s, a, b);
            if (keep_if_better(s))
                swapped = true;
            else
                exchange(s, a, b);
        }
    return swapped;
}

void pli_refine(const pli_placing *load, pli_judge *judge, uint64_t seed, int64_t *budget, int32_t *part,
                pli_judged *judged) {
    search s = { load, judge, budget, part, judged };
    bool   moved = true;
    for (uint64_t pass = 0; moved && *budget > 0; pass++) {
        pli_random random = pli_random_at(seed, PLI_RANDOM_GRAPH, pass, 1);
        moved = swap_ranks(&s);
        const int32_t first = (int32_t)pli_random_below(&random, (uint64_t)load->units);
        const bool    forward = pli_random_below(&random, 2) == 0;
        for (int32_t i = 0; *budget > 0 && i < load->units; i++) {
            const int32_t at = (first + i) % load->units;
            if (move_unit(&s, forward ? at : load->units - 1 - at)) moved = true;
        }
    }
}
