/* Core numbers, a coloring and labels vertex by vertex, for an engine: where a worker may die (heirs.h), and cores and
 * colors also without supersteps. The values are those of the programs' own runs, which are faster (kcore.c,
 * coloring.c, labels.c).
 *
 * Cores: a vertex's value falls from how many neighbors it has to the largest h such that h neighbors have h or more.
 * The fixed point is the core number, in any order of updates: Lu, Zhou, Zhang and Stanley, "The H-index of a network
 * node and its relation to degree and coreness", Nature Communications 7, 2016; Montresor, De Pellegrini and Miorandi,
 * "Distributed k-core decomposition", PODC 2011. */
#include "vertex/by_engine.h"

#include <math.h>

#include "base/sort.h"

/* --- what cores and colors know of the simple graph --------------------------------------------------------------- */

plait_status pli_simple_prepare(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err) {
    (void)asked;
    if (choice->edges->degree != NULL) return PLAIT_OK; /* the process has a part alone, and all degrees */
    choice->own = (void *)(uintptr_t)pli_edges_simple(choice->edges, NULL);
    return choice->own != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the simple graph");
}

void pli_simple_release(void **own) { *own = NULL; } /* it is the graph's */

static int64_t degree(const void *user, int64_t v) {
    const pli_vertex_choice *c = user;
    const pli_neighbors     *simple = c->own;
    return c->edges->degree != NULL ? c->edges->degree[v] : simple->start[v + 1] - simple->start[v];
}

/* --- cores -------------------------------------------------------------------------------------------------------- */

static void all_neighbors(void *user, const plait_vertex *v, void *value) {
    *(int64_t *)value = degree(user, v->index);
}

static double fall(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    int64_t low = 0, high = *(const int64_t *)value; /* h is in low .. high */
    (void)user;
    (void)v;
    while (low < high) {
        const int64_t h = low + (high - low + 1) / 2;
        int64_t       have = 0;
        for (int64_t k = 0; k < n; k++) have += *(const int64_t *)edge[k].told >= h;
        if (have >= h) low = h;
        else high = h - 1;
    }
    const int64_t old = *(int64_t *)value;
    *(int64_t *)value = low;
    return (double)(old - low);
}

plait_status pli_kcore_make(const pli_vertex_choice *c, plait_vertex_program *p, plait_error *err) {
    (void)c;
    (void)err;
    p->type = PLAIT_I64;
    p->near = PLI_NEAR_SIMPLE;
    p->init = all_neighbors;
    p->update = fall;
    return PLAIT_OK;
}

/* --- colors ------------------------------------------------------------------------------------------------------- */

enum { NONE = -1 };

static void no_color(void *user, const plait_vertex *v, void *value) {
    (void)user;
    (void)v;
    *(int64_t *)value = NONE;
}

static bool is_before(const void *user, int64_t a, int64_t b) {
    const int64_t x = degree(user, a), y = degree(user, b);
    return x != y ? x > y : a < b;
}

/* Takes the least color that no neighbor before it has, as soon as all of those have theirs: 64 colors at once. */
static double color(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    int64_t *mine = value;
    if (*mine != NONE) return 0;
    for (int64_t k = 0; k < n; k++)
        if (*(const int64_t *)edge[k].told == NONE && is_before(user, edge[k].other->index, v->index)) return 0;
    for (int64_t first = 0;; first += 64) {
        uint64_t taken = 0;
        for (int64_t k = 0; k < n; k++) {
            const int64_t theirs = *(const int64_t *)edge[k].told - first;
            if (theirs >= 0 && theirs < 64 && is_before(user, edge[k].other->index, v->index))
                taken |= UINT64_C(1) << theirs;
        }
        if (taken == UINT64_MAX) continue;
        *mine = first + __builtin_ctzll(~taken);
        return 1;
    }
}

plait_status pli_coloring_make(const pli_vertex_choice *c, plait_vertex_program *p, plait_error *err) {
    (void)c;
    (void)err;
    p->type = PLAIT_I64;
    p->near = PLI_NEAR_SIMPLE;
    p->init = no_color;
    p->update = color;
    return PLAIT_OK;
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

static void own_label(void *user, const plait_vertex *v, void *value) {
    (void)user;
    *(int64_t *)value = v->index;
}

/* Takes the most frequent label, of several the least. Not a number: there is no memory to count them. */
static double join_most(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    enum { FEW = 64 };
    uint64_t few[FEW], *label = n > FEW ? pli_array((size_t)n, sizeof *label) : few;
    int64_t  best = *(int64_t *)value, most = 0;
    (void)user;
    (void)v;
    if (label == NULL) return (double)NAN;
    for (int64_t k = 0; k < n; k++) label[k] = (uint64_t)*(const int64_t *)edge[k].told;
    const bool sorted = pli_sort_u64(n, label, NULL);
    for (int64_t k = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && label[end] == label[k];) end++;
        if (end - k > most) most = end - k, best = (int64_t)label[k];
    }
    if (label != few) pli_free(label);
    if (!sorted) return (double)NAN;
    const bool changed = best != *(int64_t *)value;
    *(int64_t *)value = best;
    return changed;
}

plait_status pli_labels_make(const pli_vertex_choice *c, plait_vertex_program *p, plait_error *err) {
    (void)c;
    (void)err;
    p->type = PLAIT_I64;
    p->near = PLAIT_NEAR_BOTH;
    p->init = own_label;
    p->update = join_most;
    return PLAIT_OK;
}
