/* Weakly connected components by trees: a worker joins the vertices of its part (forest.h), so a part's components are
 * known after one pass over its edges, whatever the diameter. Edges are read in the direction in which they are stored:
 * for weak components that is enough. Then it is said between parts which trees have a vertex in common.
 *
 * A vertex's value, its label, is a vertex of the same component, and a table keeps the least of all workers' pushes.
 * Labels only fall. How trees meet:
 *
 *     by bits      each worker reads all, at whole clocks. Nearly all vertices are in each worker's *great* tree. In
 *                  the first clock a worker adds its great tree, a bit a vertex, to the table `components.great`, where
 *                  each has words of its own. Two great trees with a bit in common are one, and all see which: that
 *                  joins them. What is left are the small trees beside it, often a thousandth of all vertices. Those
 *                  meet by labels, in the table `components.label`, which holds only what is pushed to it. A vertex of
 *                  the great tree has the label of that tree's first vertex, any other its own row's, or, where there
 *                  is none, its number. So the two tables hold all values, in a bit for most, and the program needs no
 *                  third one of 8 bytes a vertex
 *     by labels    otherwise: labels meet in the value table, under any consistency
 *
 * Labels meet so: each tree takes the least label among its vertices, and pushes it to those that have a larger one.
 * One worker needs one superstep.
 *
 * Limit: a pass over the edges, 4 bytes each, and a random bit for each; by bits, n / 8 bytes of each worker. */
#include "vertex/direct.h"
#include "vertex/forest.h"

enum { PIECE = 4096, LOOK = 8, FEW = 64 }; /* LOOK: supersteps between two looks at all, where reads may be old; FEW:
                                              workers whose bits are no more than labels would be */

typedef struct joining {
    pli_direct *d;
    pli_forest  forest;
    int64_t     members; /* vertices that may have news: of small trees, or all of the part */
    uint64_t   *member;  /* [members] increasing; NULL: all */
    uint32_t   *top;     /* [members] which member is the root of its tree */
    const int64_t *label; /* [members] as it was read last */
    int64_t    *least;   /* [members] of a root: the least label in its tree */

    /* By bits, several workers: */
    plait_table *great, *labels;
    int64_t     *read;  /* [members] a copy: label */
    uint64_t    *all;   /* [words] the great tree of all, as far as bits say it; NULL: not so */
    int64_t      first; /* its first vertex, whose label is the tree's */
    bool         asked; /* labels have been pushed, so that there is something to read */
} joining;

static int64_t vertex_of(const joining *j, int64_t i) {
    return pli_part_vertex(&j->d->part, j->member != NULL ? (int64_t)j->member[i] : i);
}

static plait_status no_memory(const joining *j) {
    return pli_fail(j->d->err, PLAIT_ENOMEM, "components: no memory for labels of %lld vertices",
                    (long long)j->members);
}

static plait_status make_room(joining *j) {
    const size_t n = (size_t)j->members;
    j->top = pli_array(n, sizeof *j->top);
    j->least = pli_aligned(n * sizeof *j->least);
    return j->top != NULL && j->least != NULL ? PLAIT_OK : no_memory(j);
}

static int64_t first_of(const uint64_t *bits) {
    size_t w = 0;
    while (bits[w] == 0) w++;
    return (int64_t)(w * 64) + __builtin_ctzll(bits[w]);
}

static void join_part(joining *j) {
    const pli_part *part = &j->d->part;
    const int64_t   first = part->whole ? part->own : 0, n = part->whole ? part->owned : part->n;
    pli_forest_join_rows(&j->forest, &part->rows, first, first + n);
}

/* --- labels of trees ---------------------------------------------------------------------------------------------- */

/* Makes hits of the members whose label is not their tree's least, unless it is their number, which is never pushed
 * anew. Others of the great tree than its first vertex need no label. */
static void label_trees(joining *j) {
    pli_direct *d = j->d;
    for (int64_t i = 0; i < j->members; i++) j->least[i] = INT64_MAX;
    for (int64_t i = 0; i < j->members; i++) {
        const int64_t label = pli_lesser(j->label[i], vertex_of(j, i));
        if (label < j->least[j->top[i]]) j->least[j->top[i]] = label;
    }
    d->hits = 0;
    for (int64_t i = 0; i < j->members; i++) {
        const int64_t least = j->least[j->top[i]], v = j->member != NULL ? (int64_t)j->member[i] : i;
        if (j->label[i] == least || least == vertex_of(j, i)) continue;
        if (j->all != NULL && v != j->first && pli_bit_is(j->all, (size_t)v)) continue;
        d->hit[d->hits] = (uint64_t)v;
        d->better[d->hits++] = least;
    }
}

/* --- by bits ------------------------------------------------------------------------------------------------------ */

/* The great tree is what meets the largest of all great trees, be it by others between. */
static void find_all(joining *j, const uint64_t *bits) {
    const pli_forest *f = &j->forest;
    const int32_t     workers = j->d->workers;
    bool              is[FEW] = { false };
    int32_t           largest = 0;
    for (int64_t p = 0, most = -1; p < workers; p++) {
        int64_t n = 0;
        for (size_t w = 0; w < f->words; w++) n += __builtin_popcountll(bits[(size_t)p * f->words + w]);
        if (n > most) most = n, largest = (int32_t)p;
    }
    memcpy(j->all, bits + (size_t)largest * f->words, f->words * sizeof *j->all);
    is[largest] = true;
    for (bool grows = true; grows;) {
        grows = false;
        for (int32_t p = 0; p < workers; p++) {
            const uint64_t *theirs = bits + (size_t)p * f->words;
            size_t          w = 0;
            while (w < f->words && (is[p] || (j->all[w] & theirs[w]) == 0)) w++;
            if (w == f->words) continue;
            for (w = 0; w < f->words; w++) j->all[w] |= theirs[w];
            is[p] = grows = true;
        }
    }
    if (!is[j->d->rank]) pli_forest_forget_great(&j->forest);
}

/* Members are the vertices of small trees; those of the great tree among them are one tree, with its first vertex. */
static plait_status find_members(joining *j) {
    pli_forest *f = &j->forest;
    uint32_t   *before = pli_array(f->words, sizeof *before);
    uint64_t   *small = f->small;
    if (before == NULL) return no_memory(j);
    j->first = first_of(j->all);
    pli_bit_set(small, (size_t)j->first);
    j->members = pli_bits_count(small, f->words, before);
    j->member = pli_array((size_t)j->members, sizeof *j->member);
    j->label = j->read = pli_array((size_t)j->members, sizeof *j->read);
    plait_status status = j->member == NULL || j->read == NULL ? no_memory(j) : make_room(j);
    if (status == PLAIT_OK) {
        pli_bits_list(small, f->words, j->member);
        for (int64_t i = 0; i < j->members; i++)
            if (pli_bit_is(j->all, j->member[i])) pli_forest_join(f, (uint32_t)j->member[i], (uint32_t)j->first);
        for (int64_t i = 0; i < j->members; i++)
            j->top[i] = (uint32_t)pli_bits_rank(small, before, pli_forest_root(f, (uint32_t)j->member[i]));
    }
    pli_free(before);
    return status;
}

/* A table that holds no row reads as 0: it holds how far a label is below n. */
static plait_status read_labels(const joining *j, int64_t n, const uint64_t *keys, int64_t *label) {
    const int64_t vertices = j->d->edges->n;
    if (j->asked) PLI_TRY(plait_table_get(j->labels, n, keys, label));
    for (int64_t i = 0; i < n; i++)
        label[i] = j->asked && label[i] > 0 ? vertices - label[i] : (int64_t)keys[i];
    return PLAIT_OK;
}

static plait_status push_labels(joining *j) {
    pli_direct *d = j->d;
    for (int64_t i = 0; i < d->hits; i++) d->better[i] = d->edges->n - d->better[i];
    if (d->hits > 0) PLI_TRY(plait_table_inc(j->labels, d->hits, d->hit, d->better, 0));
    j->asked = true;
    d->report.supersteps++;
    return plait_job_clock(d->job);
}

static plait_status meet(joining *j) {
    pli_direct  *d = j->d;
    const size_t words = j->forest.words;
    const void  *bits;
    PLI_TRY(plait_table_inc_range(j->great, d->rank * (int64_t)words, (int64_t)words, (void *)j->forest.great, 0));
    d->report.supersteps++;
    PLI_TRY(plait_job_clock(d->job));
    PLI_TRY(plait_table_read(j->great, 0, d->workers * (int64_t)words, &bits));
    find_all(j, bits);
    PLI_TRY(find_members(j));
    while (!d->report.still) {
        PLI_TRY(read_labels(j, j->members, j->member, j->read));
        label_trees(j);
        int64_t news = d->hits;
        PLI_TRY(pli_direct_sum(d, &news));
        d->report.still = news == 0;
        if (!pli_direct_may_go_on(d)) break;
        if (news > 0) PLI_TRY(push_labels(j));
    }
    return PLAIT_OK;
}

typedef struct labelling {
    const pli_forest *forest;
    const uint64_t   *great;
    int64_t           first, to, label; /* vertices first .. to - 1; label: of the great tree */
    bool              by_trees; /* the forest's roots are the labels of others; else they begin with their numbers */
    int64_t          *value;    /* [to - first] */
} labelling;

static void label_piece(void *user, int64_t i, int32_t thread) {
    const labelling *l = user;
    const int64_t    first = l->first + i * PIECE, last = pli_lesser(first + PIECE, l->to);
    (void)thread;
    for (int64_t v = first; v < last; v++) {
        if (pli_bit_is(l->great, (size_t)v)) l->value[v - l->first] = l->label;
        else l->value[v - l->first] = l->by_trees ? pli_forest_root(l->forest, (uint32_t)v) : v;
    }
}

static void label_all(const joining *j, const labelling *l) {
    pli_pool_for(j->d->pool, (l->to - l->first + PIECE - 1) / PIECE, label_piece, (void *)(uintptr_t)l);
}

/* What the tables say of all vertices. */
static plait_status read_values(joining *j, int64_t *value) {
    const int64_t  n = j->d->edges->n;
    const uint64_t first = (uint64_t)j->first;
    int64_t        others = 0, label;
    PLI_TRY(read_labels(j, 1, &first, &label));
    label_all(j, &(labelling){ .great = j->all, .to = n, .label = label, .value = value });
    for (int64_t v = 0; v < n; v++)
        if (!pli_bit_is(j->all, (size_t)v)) j->d->hit[others++] = (uint64_t)v;
    PLI_TRY(read_labels(j, others, j->d->hit, j->d->better));
    for (int64_t i = 0; i < others; i++) value[j->d->hit[i]] = j->d->better[i];
    return PLAIT_OK;
}

/* One worker knows all. */
static plait_status push_own(joining *j) {
    pli_direct *d = j->d;
    const uint64_t *great = (const uint64_t *)j->forest.great; /* nobody joins here */
    label_all(j, &(labelling){ &j->forest, great, 0, d->part.owned, first_of(great), true, d->better });
    PLI_TRY(pli_direct_push_own(d));
    d->report.supersteps++;
    d->report.still = 1;
    return plait_job_clock(d->job);
}

static plait_status go_by_bits(joining *j, int64_t *values_out) {
    join_part(j);
    pli_forest_split(&j->forest);
    if (j->d->workers == 1) return push_own(j);
    PLI_TRY(meet(j));
    return values_out != NULL ? read_values(j, values_out) : PLAIT_OK;
}

/* --- by labels ---------------------------------------------------------------------------------------------------- */

/* Reads labels, and lists those that the worker would change. */
static plait_status look(joining *j) {
    PLI_TRY(pli_direct_read(j->d));
    j->label = j->d->values;
    label_trees(j);
    return PLAIT_OK;
}

/* Nobody has changed a label. Where reads may be old, all look once more, at all updates. */
static plait_status is_still(joining *j, int64_t news) {
    pli_direct *d = j->d;
    PLI_TRY(pli_direct_sum(d, &news));
    if (news > 0) return PLAIT_OK;
    if (!d->all_is_read) {
        PLI_TRY(plait_job_barrier(d->job));
        PLI_TRY(look(j));
        news = d->hits;
        PLI_TRY(pli_direct_sum(d, &news));
    }
    d->report.still = news == 0;
    return PLAIT_OK;
}

/* The first superstep. Each vertex is somebody's own. */
static plait_status push_own_labels(joining *j) {
    pli_direct *d = j->d;
    PLI_TRY(look(j));
    for (int64_t k = 0; k < d->part.owned; k++) d->better[k] = j->least[j->top[d->part.own + k]];
    PLI_TRY(pli_direct_push_own(d));
    d->hits = 0;
    return pli_direct_clock(d);
}

static plait_status go_by_labels(joining *j) {
    pli_direct     *d = j->d;
    const uint64_t *great = (const uint64_t *)j->forest.great; /* nobody joins behind this */
    join_part(j);
    pli_forest_split(&j->forest);
    j->members = d->part.n;
    PLI_TRY(make_room(j));
    for (int64_t i = 0, first = j->members > 0 ? first_of(great) : 0; i < j->members; i++)
        j->top[i] = pli_bit_is(great, (size_t)i) ? (uint32_t)first : pli_forest_root(&j->forest, (uint32_t)i);
    PLI_TRY(push_own_labels(j));
    d->report.still = d->workers == 1;
    while (pli_direct_may_go_on(d) && !d->report.still) {
        PLI_TRY(look(j));
        const int64_t news = d->hits;
        PLI_TRY(pli_direct_clock(d));
        if (d->all_is_read || d->report.supersteps % LOOK == 0) PLI_TRY(is_still(j, news));
    }
    return PLAIT_OK;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static plait_status make_tables(joining *j) {
    pli_direct      *d = j->d;
    plait_table_opts t;
    if (d->workers == 1) return PLAIT_OK;
    j->all = pli_array(j->forest.words, sizeof *j->all);
    if (j->all == NULL) return no_memory(j);
    plait_table_opts_init(&t);
    t.name = "components.great";
    t.type = PLAIT_I64;
    t.combine = "add"; /* each worker has words of its own, once */
    t.rows = d->workers * (int64_t)j->forest.words;
    PLI_TRY(plait_table_create(d->job, &t, &j->great));
    t.name = "components.label";
    t.combine = "max"; /* of how far below n it is: see read_labels */
    t.rows = 0;
    return plait_table_create(d->job, &t, &j->labels);
}

static plait_status drop_tables(joining *j) {
    PLI_TRY(plait_job_barrier(j->d->job)); /* others may still read */
    if (j->labels != NULL) PLI_TRY(plait_table_drop(&j->labels));
    return j->great != NULL ? plait_table_drop(&j->great) : PLAIT_OK;
}

static plait_status run(joining *j, int64_t *values_out) {
    pli_direct *d = j->d;
    PLI_TRY(pli_forest_make(&j->forest, d->pool, d->part.n, d->err));
    if (!d->by_bits) return go_by_labels(j);
    PLI_TRY(make_tables(j));
    PLI_TRY(go_by_bits(j, values_out));
    return drop_tables(j);
}

plait_status pli_run_components(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                                int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "components", .combine = "min", .type = PLAIT_I64, .own = true,
                                   .bits = FEW };
    pli_direct            d;
    joining               j = { .d = &d };
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    if (status == PLAIT_OK) status = run(&j, values_out);
    pli_forest_destroy(&j.forest);
    pli_free(j.member);
    pli_free(j.top);
    pli_free(j.read);
    pli_free(j.least);
    pli_free(j.all);
    return pli_direct_end(&d, status, values_out, report_out);
}

/* How many components there are: each has one vertex that is its own label. */
int32_t pli_figures_components(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const plait_edges *edges = choice->edges;
    int64_t n = 0;
    for (int64_t v = 0; v < edges->n; v++) n += value[v] == v;
    figure[0] = (pli_figure){ .name = "components", .whole = n };
    return 1;
}
