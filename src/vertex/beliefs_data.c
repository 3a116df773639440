/* Reads the priors of belief propagation, and finds where neighbors have each other in their rows. See beliefs.h. */
#include "vertex/beliefs.h"

#include <math.h>

#include "base/hash.h"
#include "data/edges/scan.h"
#include "data/source/source.h"

/* --- priors ------------------------------------------------------------------------------------------------------- */

/* The numbers of a line, as logarithms. */
static plait_status take_numbers(pli_scan *s, int32_t labels, double *prior) {
    double most = 0;
    for (int32_t i = 0; i < labels; i++) {
        double number;
        if (pli_scan_at_end(s)) return pli_scan_bad(s, "expected as many numbers as in the lines before");
        const unsigned char *word = s->at;
        PLI_TRY(pli_scan_f64(s, &number));
        if (number < 0) {
            s->at = word;
            return pli_scan_bad(s, "expected a number of 0 or more");
        }
        most = number > most ? number : most;
        prior[i] = log(number);
    }
    if (!pli_scan_at_end(s)) return pli_scan_bad(s, "expected the end of the line, as in the lines before");
    return most > 0 ? PLAIT_OK : pli_scan_bad(s, "expected a number above 0 for some label");
}

/* How many labels the first line has a number for. */
static plait_status count_labels(pli_scan s, int32_t *labels_out) {
    uint64_t id;
    int32_t  n = 0;
    PLI_TRY(pli_scan_u64(&s, &id));
    for (; !pli_scan_at_end(&s); n++) {
        double number;
        PLI_TRY(pli_scan_f64(&s, &number));
    }
    *labels_out = n;
    if (n >= 2 && n <= PLI_BELIEF_LABELS) return PLAIT_OK;
    return pli_fail(s.err, PLAIT_EFORMAT, "%s:%" PRId64 ": expected an id and a number for each label, 2 to %d labels",
                    s.name, s.line, (int)PLI_BELIEF_LABELS);
}

static plait_status take_lines(pli_scan *s, const plait_edges *edges, uint8_t *seen, pli_beliefs *b) {
    do {
        uint64_t             id;
        pli_scan_gap(s);
        const unsigned char *word = s->at;
        PLI_TRY(pli_scan_u64(s, &id));
        const int64_t v = plait_edges_find(edges, id);
        if (v < 0 || seen[v]) {
            s->at = word;
            return pli_scan_bad(s, v < 0 ? "the graph has no such vertex" : "the vertex has a line before");
        }
        seen[v] = 1;
        PLI_TRY(take_numbers(s, b->labels, b->prior + v * b->labels));
        pli_scan_next(s);
    } while (pli_scan_line(s, "#%"));
    return PLAIT_OK;
}

plait_status pli_beliefs_parse(const char *name, const char *text, size_t bytes, const plait_edges *edges,
                               pli_beliefs *b, plait_error *err) {
    const unsigned char *at = (const unsigned char *)text;
    pli_scan             s = { .name = name, .at = at, .end = at + bytes, .line = 1, .err = err };
    if (!pli_scan_line(&s, "#%")) return pli_fail(err, PLAIT_EFORMAT, "%s: it has no prior", name);
    PLI_TRY(count_labels(s, &b->labels));
    uint8_t *seen = pli_calloc((size_t)edges->n, 1);
    b->prior = pli_calloc((size_t)edges->n * (size_t)b->labels, sizeof *b->prior);
    const plait_status status = seen != NULL && b->prior != NULL
                                    ? take_lines(&s, edges, seen, b)
                                    : pli_fail(err, PLAIT_ENOMEM, "%s: no memory for priors", name);
    pli_free(seen);
    return status;
}

static plait_status read_priors(const char *path, const plait_edges *edges, pli_beliefs *b, plait_error *err) {
    pli_sources *sources = NULL;
    PLI_TRY(pli_sources_open(&path, 1, 0, false, &sources, err));
    const pli_source *source = &sources->source[0];
    const plait_status status =
        sources->n == 1 ? pli_beliefs_parse(source->path, (const char *)source->data + source->begin,
                                            source->bytes - source->begin, edges, b, err)
                        : pli_fail(err, PLAIT_EINVAL, "%s: priors are one file", path);
    pli_sources_release(&sources);
    return status;
}

/* --- the graph ---------------------------------------------------------------------------------------------------- */

/* Rows are sorted, and visited in order: so the entries of a row are met, one after the other, in the rows of those
 * whom they name. */
static bool find_back(pli_beliefs *b) {
    const pli_neighbors *h = b->simple;
    int64_t             *met = pli_calloc((size_t)h->n, sizeof *met);
    b->back = pli_array((size_t)h->start[h->n], sizeof *b->back);
    for (int64_t u = 0; met != NULL && b->back != NULL && u < h->n; u++) {
        const int64_t first = h->start[u], n = h->start[u + 1] - first;
        if (n > b->slots) b->slots = n < INT32_MAX ? (int32_t)n : INT32_MAX;
        for (int64_t k = 0; k < n; k++) {
            const uint32_t v = h->near[first + k];
            b->back[h->start[v] + met[v]++] = (int32_t)k;
        }
    }
    const bool made = met != NULL && b->back != NULL;
    pli_free(met);
    return made;
}

/* Of edges between the same two vertices one counts, so they must agree. rows: along edges of both directions. */
static plait_status take_weights(const plait_edges *edges, const pli_neighbors *rows, pli_beliefs *b,
                                 plait_error *err) {
    int64_t to = 0;
    for (int64_t v = 0; v < rows->n; v++)
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) {
            const bool again = k > rows->start[v] && rows->near[k] == rows->near[k - 1];
            if (rows->near[k] == v) continue;
            if (!again) b->weight[to++] = rows->weight[k];
            else if (rows->weight[k] < b->weight[to - 1] || rows->weight[k] > b->weight[to - 1])
                return pli_fail(err, PLAIT_EREFUSED, "beliefs: edges between %llu and %llu have the weights %g and %g: "
                                "two vertices like each other by one weight; leave out one (--drop-doubles drops "
                                "those of the same direction)", (unsigned long long)edges->id[v],
                                (unsigned long long)edges->id[rows->near[k]], (double)b->weight[to - 1],
                                (double)rows->weight[k]);
        }
    return PLAIT_OK;
}

static plait_status weigh(const plait_edges *edges, pli_beliefs *b, plait_error *err) {
    pli_neighbors rows;
    if (edges->in.weight == NULL) return PLAIT_OK;
    b->weight = pli_array((size_t)b->simple->start[b->simple->n], sizeof *b->weight);
    if (b->weight == NULL || !pli_edges_near(edges, PLAIT_NEAR_BOTH, &rows))
        return pli_fail(err, PLAIT_ENOMEM, "beliefs: no memory for the weights of %lld edges", (long long)edges->m);
    const plait_status status = take_weights(edges, &rows, b, err);
    pli_neighbors_free(&rows);
    return status;
}

static plait_status fill(const pli_vertex_asked *asked, const plait_edges *edges, pli_beliefs *b, plait_error *err) {
    b->most_probable = asked->most_probable;
    b->smoothing = asked->smoothing;
    b->simple = pli_edges_simple(edges, NULL);
    if (b->simple == NULL || !find_back(b))
        return pli_fail(err, PLAIT_ENOMEM, "beliefs: no memory for the neighbors of %lld vertices",
                        (long long)edges->n);
    PLI_TRY(read_priors(asked->priors, edges, b, err));
    const int64_t width = b->labels * (1 + (int64_t)b->slots);
    if (width > PLI_VERTEX_MOST)
        return pli_fail(err, PLAIT_EREFUSED, "beliefs: a vertex has %d neighbors, and with %d labels a value would "
                        "have %lld numbers, a belief and a message to each neighbor; it has at most %d",
                        (int)b->slots, (int)b->labels, (long long)width, (int)PLI_VERTEX_MOST);
    PLI_TRY(weigh(edges, b, err));
    b->hash = pli_hash_bytes(b->prior, (size_t)edges->n * (size_t)b->labels * sizeof *b->prior,
                             b->most_probable ? 1 : 0);
    b->hash = pli_hash_bytes(&b->smoothing, sizeof b->smoothing, b->hash);
    return PLAIT_OK;
}

plait_status pli_beliefs_prepare(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err) {
    pli_beliefs *b = pli_calloc(1, sizeof *b);
    if (b == NULL) return pli_fail(err, PLAIT_ENOMEM, "beliefs: no memory for priors");
    choice->own = b;
    return fill(asked, choice->edges, b, err);
}

void pli_beliefs_release(void **own) {
    pli_beliefs *b = *own;
    if (b == NULL) return;
    pli_free(b->prior);
    pli_free(b->back);
    pli_free(b->weight);
    pli_free(b);
    *own = NULL;
}

uint64_t pli_beliefs_sign(const void *own) { return ((const pli_beliefs *)own)->hash; }
