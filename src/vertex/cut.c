/* Which worker has which edge. See plait/vertex.h. */
#include "base/hash.h"
#include "vertex/owner.h"
#include "vertex/vertex.h"

static const char *const methods[] = { "range", "random", "grid", "oblivious", "hdrf", "metis" };
enum { METHODS = sizeof methods / sizeof *methods };

void pli_cut_range(int64_t n, int64_t edges, int32_t parts, pli_cut_degree_fn *degree, const void *of,
                   int64_t *first) {
    const double all = (double)(edges + n);
    int64_t      v = 0, before = 0;
    for (int32_t p = 0; p < parts; p++) {
        first[p] = v;
        while (v < n && (double)(before + degree(of, v) + v + 1) * parts <= all * (p + 1)) before += degree(of, v++);
    }
    first[parts] = n;
}

static int64_t degree_of(const void *of, int64_t v) {
    const pli_neighbors *h = of;
    return h->start[v + 1] - h->start[v];
}

static uint64_t mix(uint64_t a, uint64_t b) { return pli_hash_u64(pli_hash_u64(a + 1) ^ (b + 1)); }

/* The widest grid of rows x columns <= parts that is nearly square and uses all parts. */
bool pli_cut_hash_find(const char *method, int32_t parts, pli_cut_hash *hash) {
    *hash = (pli_cut_hash){ .parts = (uint64_t)parts, .grid = pli_is(method, "grid"), .rows = 1 };
    for (uint64_t r = 1; r * r <= hash->parts; r++)
        if (hash->parts % r == 0) hash->rows = r;
    return hash->grid || pli_is(method, "random");
}

int32_t pli_cut_hash_part(const pli_cut_hash *hash, int64_t row, int64_t near) {
    const uint64_t columns = hash->parts / hash->rows;
    if (!hash->grid) return (int32_t)(mix((uint64_t)near, (uint64_t)row) % hash->parts);
    return (int32_t)(pli_hash_u64((uint64_t)near + 1) % hash->rows * columns +
                     pli_hash_u64((uint64_t)row + 1) % columns);
}

static void cut_by_hash(plait_vertex_cut *cut, const pli_cut_hash *hash) {
    const pli_neighbors *h = &cut->rows;
    for (int64_t v = 0; v < h->n; v++)
        for (int64_t k = h->start[v]; k < h->start[v + 1]; k++)
            cut->part[k] = (uint16_t)pli_cut_hash_part(hash, v, h->near[k]);
}

static int32_t part_of(const plait_vertex_cut *cut, int64_t v, int64_t k) {
    return cut->part != NULL ? cut->part[k] : pli_owner_of(cut->first, cut->parts, v);
}

/* Counts a vertex's parts: in how many it has edges, and for each part how many vertices it reads. Its owner reads it
 * anyway. in [words] has a bit a part. */
static int64_t count_parts(plait_vertex_cut *cut, size_t words, const uint64_t *in, int32_t owner) {
    int64_t here = 0;
    for (size_t w = 0; w < words; w++)
        for (uint64_t bits = in[w]; bits != 0; bits &= bits - 1, here++)
            cut->reads[w * 64 + (size_t)__builtin_ctzll(bits)]++;
    cut->reads[owner] += (in[owner / 64] >> owner % 64 & 1) == 0;
    return here;
}

/* Counts in how many parts each vertex occurs; a bit a part and vertex. */
static plait_status measure(plait_vertex_cut *cut, plait_error *err) {
    const pli_neighbors *h = &cut->rows;
    const size_t         words = ((size_t)cut->parts + 63) / 64;
    cut->replication = cut->imbalance = 1;
    cut->reads[0] = cut->parts == 1 ? h->n : 0;
    if (cut->parts == 1) return PLAIT_OK;
    uint64_t            *in = pli_calloc((size_t)h->n * words, sizeof *in);
    int64_t             *edges = pli_calloc((size_t)cut->parts, sizeof *edges), copies = 0, joined = 0, most = 0;
    if (in == NULL || edges == NULL) {
        pli_free(in);
        pli_free(edges);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a cut in %d", (int)cut->parts);
    }
    for (int64_t v = 0; v < h->n; v++)
        for (int64_t k = h->start[v]; k < h->start[v + 1]; k++) {
            const uint32_t p = (uint32_t)part_of(cut, v, k);
            edges[p]++;
            in[(size_t)v * words + p / 64] |= UINT64_C(1) << p % 64;
            in[(size_t)h->near[k] * words + p / 64] |= UINT64_C(1) << p % 64;
        }
    int32_t owner = 0;
    for (int64_t v = 0; v < h->n; v++) {
        while (v >= cut->first[owner + 1]) owner++;
        const int64_t here = count_parts(cut, words, in + (size_t)v * words, owner);
        copies += here;
        joined += here > 0;
    }
    for (int32_t p = 0; p < cut->parts; p++) most = edges[p] > most ? edges[p] : most;
    cut->replication = joined > 0 ? (double)copies / (double)joined : 1;
    cut->imbalance = h->start[h->n] > 0 ? (double)most * cut->parts / (double)h->start[h->n] : 1;
    pli_free(in);
    pli_free(edges);
    return PLAIT_OK;
}

static plait_status make(plait_vertex_cut *cut, const char *method, plait_error *err) {
    pli_cut_hash hash;
    if (method == NULL) method = methods[0];
    for (int i = 0; i < METHODS; i++)
        if (pli_is(method, methods[i])) cut->method = methods[i];
    if (cut->method == NULL) return pli_fail_unknown(err, "cut", method, methods, METHODS);
    cut->first = pli_calloc((size_t)cut->parts + 1, sizeof *cut->first);
    cut->reads = pli_calloc((size_t)cut->parts, sizeof *cut->reads);
    if (cut->first == NULL || cut->reads == NULL || !pli_edges_near(cut->edges, cut->near, &cut->rows))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a cut of %lld edges", (long long)cut->edges->m);
    pli_cut_range(cut->rows.n, cut->rows.start[cut->rows.n], cut->parts, degree_of, &cut->rows, cut->first);
    if (cut->parts == 1 || cut->method == methods[0]) return measure(cut, err);
    cut->part = pli_array((size_t)cut->rows.start[cut->rows.n], sizeof *cut->part);
    if (cut->part == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a cut of %lld edges", (long long)cut->edges->m);
    cut->splits = true;
    if (pli_is(cut->method, "metis")) PLI_TRY(pli_cut_metis(cut, err));
    else if (pli_cut_hash_find(cut->method, cut->parts, &hash)) cut_by_hash(cut, &hash);
    else PLI_TRY(pli_cut_stream(cut, pli_is(cut->method, "hdrf"), err));
    return measure(cut, err);
}

plait_status plait_vertex_cut_create(const plait_edges *edges, plait_near near, const char *method, int32_t parts,
                                     plait_vertex_cut **cut_out, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, edges)); /* here, since the texts name the caller's call */
    PLI_TRY(PLI_GIVEN(error_out, cut_out));
    if ((int)near < 0 || near > PLAIT_NEAR_BOTH)
        return pli_fail(error_out, PLAIT_EINVAL, "plait_vertex_cut_create: near is %d: expected PLAIT_NEAR_IN, _OUT "
                        "or _BOTH", (int)near);
    return pli_cut_create(edges, near, method, parts, cut_out, error_out);
}

plait_status pli_cut_create(const plait_edges *edges, plait_near near, const char *method, int32_t parts,
                            plait_vertex_cut **cut_out, plait_error *error_out) {
    if (parts < 1 || parts > UINT16_MAX)
        return pli_fail(error_out, PLAIT_EINVAL, "plait_vertex_cut_create: %d parts: expected 1 to 65535", (int)parts);
    plait_vertex_cut *cut = pli_calloc(1, sizeof *cut);
    if (cut == NULL) return pli_fail(error_out, PLAIT_ENOMEM, "no memory for a cut");
    cut->edges = edges;
    cut->near = near;
    cut->parts = parts;
    const plait_status status = make(cut, method, error_out);
    if (status < 0) plait_vertex_cut_destroy(&cut);
    else *cut_out = cut;
    return status;
}

void plait_vertex_cut_destroy(plait_vertex_cut **cut) {
    if (cut == NULL || *cut == NULL) return;
    pli_neighbors_free(&(*cut)->rows);
    pli_free((*cut)->first);
    pli_free((*cut)->reads);
    pli_free((*cut)->part);
    if ((*cut)->mine != NULL) pli_part_free((*cut)->mine);
    pli_free((*cut)->mine);
    pli_free(*cut);
    *cut = NULL;
}

int32_t pli_cut_shards(const plait_vertex_cut *cut, size_t value_bytes) {
    enum { READ = 1024 };
    const double rows = cut->replication * (double)cut->rows.n / cut->parts; /* of a worker */
    const double shards = rows * (double)value_bytes / READ;
    return shards < 1 ? 1 : shards < cut->parts ? (int32_t)shards : 0;
}

double plait_vertex_cut_replication(const plait_vertex_cut *cut) { return cut != NULL ? cut->replication : 0; }
double plait_vertex_cut_imbalance(const plait_vertex_cut *cut) { return cut != NULL ? cut->imbalance : 0; }
