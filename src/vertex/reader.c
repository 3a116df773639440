/* A part of a graph, read out of its text. See reader.h. */
#include "vertex/reader.h"

#include "vertex/bits.h"
#include "vertex/owner.h"

void pli_ingress_free(pli_ingress **of) {
    if (*of == NULL) return;
    pli_free((*of)->label);
    pli_free(*of);
    *of = NULL;
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

static bool is_mine(const pli_reader *r, int64_t row, int64_t near) {
    if (r->of->hashed) return pli_cut_hash_part(&r->of->hash, row, near) == r->part;
    if (r->of->label != NULL) return r->of->label[row] == r->part;
    return row >= r->first[r->part] && row < r->first[r->part + 1];
}

static int32_t part_of(const pli_reader *r, int64_t row, int64_t near) {
    if (r->of->hashed) return pli_cut_hash_part(&r->of->hash, row, near);
    if (r->of->label != NULL) return r->of->label[row];
    return pli_owner_of(r->first, plait_comm_workers(r->spread.comm), row);
}

/* An entry of the part, out of the piece of worker `from`. */
static bool take(void *user, const pli_row_entry *e, int32_t from) {
    pli_reader    *r = user;
    pli_neighbors *rows = e->out ? &r->out : &r->in;
    uint16_t      *piece = e->out ? r->out_piece : r->in_piece;
    if (rows->start == NULL || e->row >= rows->n) return false;
    if (r->counts) {
        rows->start[e->row + 2]++;
        return true;
    }
    const int64_t at = rows->start[e->row + 1];
    if (!pli_building_place(rows, e->row, e->near, &e->weight)) return false;
    if (piece != NULL) piece[at] = (uint16_t)from;
    return true;
}

static bool send_entry(pli_reader *r, bool out, int64_t row, int64_t near, const float *weight) {
    pli_row_entry e = { .row = (uint32_t)row, .near = (uint32_t)near, .out = out,
                        .weight = weight != NULL ? *weight : 0 };
    if ((out ? r->out.start : r->in.start) == NULL) return true;
    if (r->spread.comm == NULL) return !is_mine(r, row, near) || take(r, &e, 0);
    e.part = (uint16_t)part_of(r, row, near);
    return pli_spread_put(&r->spread, &e);
}

static bool take_edge(void *user, int64_t from, int64_t to, const float *weight) {
    pli_reader *r = user;
    return send_entry(r, false, to, from, weight) && send_entry(r, true, from, to, weight);
}

static plait_status take_edges(void *user, const pli_edge_list *l, plait_error *err) {
    pli_reader *r = user;
    return pli_building_each(&r->b, l, take_edge, r, err);
}

/* Sums may exceed what a whole number has; its halves do not. */
static plait_status add_up(pli_reader *r) {
    int64_t sum[] = { r->b.m, (int64_t)(r->b.sum >> 32), (int64_t)(r->b.sum & UINT32_MAX) };
    PLI_TRY(plait_comm_allreduce(r->spread.comm, sum, 3, PLAIT_I64, PLAIT_SUM));
    r->b.m = sum[0];
    r->b.sum = ((uint64_t)sum[1] << 32) + (uint64_t)sum[2];
    return PLAIT_OK;
}

/* Each worker goes through its piece. A reason why this one did not go on is told by pli_spread_end. */
static plait_status pass_together(pli_reader *r, const pli_edge_file *file, plait_error *err) {
    pli_spread *s = &r->spread;
    *s = (pli_spread){ .comm = s->comm, .take = take, .user = r, .weighted = r->of->weighted };
    plait_status status = pli_spread_begin(s);
    if (status == PLAIT_OK)
        status = pli_edge_file_piece(file, r->part, plait_comm_workers(s->comm), take_edges, r, err);
    PLI_TRY(pli_spread_end(s, status));
    return add_up(r);
}

static plait_status pass(pli_reader *r, const pli_edge_file *file, bool counts, plait_error *err) {
    r->counts = counts;
    r->b.m = 0;
    r->b.sum = 0;
    if (r->spread.comm == NULL) PLI_TRY(pli_edge_file_pass(file, take_edges, r, err));
    else PLI_TRY(pass_together(r, file, err));
    if (r->b.m == r->of->m && (!r->of->summed || r->b.sum == r->of->sum)) return PLAIT_OK;
    return pli_edges_changed(err);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static bool splits(const pli_reader *r) { return r->of->hashed || r->of->label != NULL; }

/* Room for the starts of rows. Those before the part's first row are never written to, and take no memory. */
static bool begin_rows(const pli_reader *r, pli_neighbors *rows) {
    rows->n = r->b.edges->n;
    rows->start = pli_calloc((size_t)rows->n + 2, sizeof *rows->start);
    return rows->start != NULL;
}

/* Over the cut `range` degrees say how long each of the part's rows is. */
static bool make_starts(pli_reader *r) {
    const plait_near near = r->of->near;
    if ((near != PLAIT_NEAR_OUT && !begin_rows(r, &r->in)) || (near != PLAIT_NEAR_IN && !begin_rows(r, &r->out)))
        return false;
    if (r->degree == NULL || splits(r)) return true;
    for (int64_t v = r->first[r->part]; v < r->first[r->part + 1]; v++) {
        if (r->in.start != NULL) r->in.start[v + 2] = r->degree[v];
        if (r->out.start != NULL) r->out.start[v + 2] = r->leave[v];
    }
    return true;
}

static bool make_rows(const pli_reader *r, pli_neighbors *rows, bool weighted) {
    const int64_t first = splits(r) ? 0 : r->first[r->part];
    if (rows->start == NULL) return true;
    for (int64_t v = first; v < rows->n; v++) rows->start[v + 2] += rows->start[v + 1];
    const size_t m = (size_t)rows->start[rows->n + 1];
    rows->near = pli_array(m, sizeof *rows->near);
    if (weighted) rows->weight = pli_array(m, sizeof *rows->weight);
    return rows->near != NULL && (!weighted || rows->weight != NULL);
}

/* Room for whose piece an entry is from, where that decides something. */
static bool make_pieces(const pli_reader *r, const pli_neighbors *rows, uint16_t **piece) {
    if (r->spread.comm == NULL || rows->weight == NULL) return true;
    *piece = pli_array((size_t)rows->start[rows->n + 1], sizeof **piece);
    return *piece != NULL;
}

static void free_pieces(pli_reader *r) {
    pli_free(r->in_piece);
    pli_free(r->out_piece);
    r->in_piece = r->out_piece = NULL;
}

/* Before a pass that all make together all must have what they need. */
static plait_status all_have(const pli_reader *r, bool has, plait_error *err) {
    int64_t lacks = !has;
    if (r->spread.comm != NULL) PLI_TRY(plait_comm_allreduce(r->spread.comm, &lacks, 1, PLAIT_I64, PLAIT_MAX));
    return lacks == 0 ? PLAIT_OK : pli_building_no_memory(r->of->m, err);
}

static plait_status read_entries(pli_reader *r, const pli_edge_file *file, plait_error *err) {
    PLI_TRY(all_have(r, make_starts(r), err));
    if (r->degree == NULL || splits(r)) PLI_TRY(pass(r, file, true, err));
    const bool weighted = r->of->weighted;
    PLI_TRY(all_have(r, make_rows(r, &r->in, weighted) && make_rows(r, &r->out, weighted) &&
                            make_pieces(r, &r->in, &r->in_piece) && make_pieces(r, &r->out, &r->out_piece), err));
    PLI_TRY(pass(r, file, false, err));
    const bool sorted = (r->in.start == NULL || pli_neighbors_sort(&r->in, r->in_piece)) &&
                        (r->out.start == NULL || pli_neighbors_sort(&r->out, r->out_piece));
    free_pieces(r);
    return sorted ? PLAIT_OK : pli_building_no_memory(r->of->m, err);
}

/* --- what is seen in rows ----------------------------------------------------------------------------------------- */

/* The first one by the rows of edges in; of doubles the one that comes first in the file. */
static void see_below(pli_reader *r, const pli_neighbors *h, bool in) {
    pli_edge *least = &r->below;
    *least = (pli_edge){ 0 };
    for (int64_t v = 0; h->weight != NULL && v < h->n; v++)
        for (int64_t k = h->start[v]; k < h->start[v + 1]; k++) {
            const int64_t from = in ? h->near[k] : v, to = in ? v : h->near[k];
            if (h->weight[k] < 0 && (!(least->weight < 0) || to < least->to || (to == least->to && from < least->from)))
                *least = (pli_edge){ from, to, h->weight[k] };
        }
}

static void free_rows(pli_reader *r) {
    pli_neighbors_free(&r->rows);
    pli_neighbors_free(&r->in);
    pli_neighbors_free(&r->out);
    free_pieces(r);
}

plait_status pli_reader_rows(pli_reader *r, const pli_edge_file *file, plait_error *err) {
    const plait_near near = r->of->near;
    const bool       in = near != PLAIT_NEAR_OUT;
    bool             made = true;
    free_rows(r);
    PLI_TRY(read_entries(r, file, err));
    const bool           drops = r->of->opts.drop_doubles;
    const pli_row_losses losses = { in ? r->lost_in : r->lost_out, in ? r->lost_out : r->lost_in, 1 };
    r->doubles = pli_neighbors_doubles(in ? &r->in : &r->out, drops, &losses);
    if (near >= PLAIT_NEAR_BOTH) (void)pli_neighbors_doubles(&r->out, drops, &(pli_row_losses){ 0 });
    see_below(r, in ? &r->in : &r->out, in);
    if (near == PLI_NEAR_SIMPLE) made = pli_neighbors_simple(&r->in, &r->out, NULL, &r->rows);
    else if (near == PLAIT_NEAR_BOTH) made = pli_neighbors_join(&r->in, &r->out, &r->rows);
    else {
        r->rows = in ? r->in : r->out; /* they are the reader's now */
        *(in ? &r->in : &r->out) = (pli_neighbors){ 0 };
    }
    pli_neighbors_free(&r->in);
    pli_neighbors_free(&r->out);
    return made ? PLAIT_OK : pli_building_no_memory(r->of->m, err);
}

/* --- rows that move ----------------------------------------------------------------------------------------------- */

/* A row has been one worker's as a whole, so its entries come in their order. */
static bool take_moved(void *user, const pli_row_entry *e, int32_t from) {
    pli_reader *r = user;
    (void)from;
    return e->row < r->in.n && pli_building_place(&r->in, e->row, e->near, &e->weight);
}

static bool make_moved(pli_reader *r, pli_cut_degree_fn *length, const void *of) {
    if (!begin_rows(r, &r->in)) return false;
    for (int64_t v = r->first[r->part]; v < r->first[r->part + 1]; v++) r->in.start[v + 2] = length(of, v);
    return make_rows(r, &r->in, r->spread.weighted);
}

/* Each row of an old part goes to the new one. */
static bool send_rows(pli_reader *r) {
    const pli_neighbors *h = &r->rows;
    for (int64_t v = 0; v < h->n; v++) {
        if (h->start[v] == h->start[v + 1]) continue;
        pli_row_entry e = { .row = (uint32_t)v, .part = (uint16_t)part_of(r, v, 0) };
        for (int64_t k = h->start[v]; k < h->start[v + 1]; k++) {
            e.near = h->near[k];
            if (h->weight != NULL) e.weight = h->weight[k];
            if (!pli_spread_put(&r->spread, &e)) return false;
        }
    }
    return true;
}

plait_status pli_reader_move(pli_reader *r, plait_comm *comm, pli_cut_degree_fn *length, const void *of,
                             plait_error *err) {
    r->spread = (pli_spread){ .comm = comm, .take = take_moved, .user = r,
                              .weighted = r->of->weighted && r->of->near != PLI_NEAR_SIMPLE };
    PLI_TRY(all_have(r, make_moved(r, length, of), err));
    plait_status status = pli_spread_begin(&r->spread);
    if (status == PLAIT_OK && !send_rows(r))
        status = pli_fail(err, PLAIT_EMISMATCH, "a row of the graph has other edges than were counted");
    PLI_TRY(pli_spread_end(&r->spread, status));
    pli_neighbors_free(&r->rows);
    r->rows = r->in;
    r->in = (pli_neighbors){ 0 };
    return PLAIT_OK;
}

/* --- the part ----------------------------------------------------------------------------------------------------- */

/* The vertices that the part has, as bits, and how many are before each word of them. */
typedef struct present {
    uint64_t *bit;
    uint32_t *before;
    size_t    words;
} present;

static int64_t count(const present *p) { return pli_bits_count(p->bit, p->words, p->before); }

static uint32_t rank_of(const present *p, int64_t v) { return (uint32_t)pli_bits_rank(p->bit, p->before, (size_t)v); }

/* Gives the part's vertices numbers of its own, in place. */
static bool renumber(const present *p, pli_part *part, int64_t first) {
    pli_neighbors *h = &part->rows;
    int64_t       *start = pli_array((size_t)part->n + 1, sizeof *start);
    part->key = pli_array((size_t)part->n, sizeof *part->key);
    if (start == NULL || part->key == NULL) {
        pli_free(start);
        return false;
    }
    (void)pli_bits_list(p->bit, p->words, part->key);
    start[0] = 0;
    for (int64_t i = 0; i < part->n; i++) start[i + 1] = h->start[part->key[i] + 1];
    for (int64_t k = 0; k < start[part->n]; k++) h->near[k] = rank_of(p, h->near[k]);
    pli_free(h->start);
    h->start = start;
    h->n = part->n;
    part->own = rank_of(p, first);
    return true;
}

/* Takes the rows. A part that reads most vertices has all, as pli_part_make's. */
bool pli_reader_part(pli_reader *r, pli_part *part, int64_t *copies_out) {
    const int64_t        first = r->first[r->part], last = r->first[r->part + 1];
    const pli_neighbors *rows = &r->rows;
    present              p = { .words = (size_t)rows->n / 64 + 1 };
    *part = (pli_part){ .owned = last - first, .whole = !splits(r) };
    p.bit = pli_calloc(p.words, sizeof *p.bit);
    p.before = pli_array(p.words, sizeof *p.before);
    bool made = p.bit != NULL && p.before != NULL;
    for (int64_t v = 0; made && v < rows->n; v++) {
        if (rows->start[v] < rows->start[v + 1]) pli_bit_set(p.bit, (size_t)v);
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) pli_bit_set(p.bit, rows->near[k]);
    }
    if (made && copies_out != NULL) *copies_out = count(&p);
    for (int64_t v = first; made && v < last; v++) pli_bit_set(p.bit, (size_t)v);
    if (made) {
        part->n = count(&p);
        part->rows = *rows;
        r->rows = (pli_neighbors){ 0 };
    }
    if (made && (splits(r) || part->n <= part->rows.n / 2)) made = renumber(&p, part, first);
    else if (made) part->n = part->rows.n, part->own = first;
    pli_free(p.bit);
    pli_free(p.before);
    if (!made) pli_part_free(part);
    return made;
}

void pli_reader_begin(pli_reader *r, const plait_edges *edges, const int64_t *first, int32_t part) {
    const pli_ingress *of = edges->again;
    *r = (pli_reader){ .of = of, .first = first, .part = part,
                       /* A pass that has numbers reads the graph's ids, and writes nothing to it. */
                       .b = { .edges = (plait_edges *)(uintptr_t)edges, .opts = &of->opts, .parts = 1, .begun = true,
                              .both = of->both, .weighted = of->weighted } };
}

void pli_reader_end(pli_reader *r) { free_rows(r); }

/* --- once more ---------------------------------------------------------------------------------------------------- */

plait_status pli_ingress_part(const plait_vertex_cut *cut, int32_t p, pli_part *part, plait_error *err) {
    const plait_edges *edges = cut->edges;
    pli_edge_file      file;
    pli_reader         r;
    PLI_TRY(pli_edge_file_open(edges->again->path, edges->again->opts.format, &file, err));
    pli_reader_begin(&r, edges, cut->first, p);
    plait_status status = pli_reader_rows(&r, &file, err);
    pli_edge_file_close(&file);
    if (status == PLAIT_OK && !pli_reader_part(&r, part, NULL)) status = pli_building_no_memory(edges->m, err);
    pli_reader_end(&r);
    return status;
}

/* How many edges come to each vertex. */
typedef struct arrivals {
    pli_building b;
    int64_t     *in;
} arrivals;

static bool arrive(void *user, int64_t from, int64_t to, const float *weight) {
    (void)from;
    (void)weight;
    ((arrivals *)user)->in[to]++;
    return true;
}

static plait_status arrive_all(void *user, const pli_edge_list *l, plait_error *err) {
    arrivals *a = user;
    return pli_building_each(&a->b, l, arrive, a, err);
}

static int64_t degree_of(const void *of, int64_t v) { return ((const int64_t *)of)[v]; }

/* degree [n]: how many edges of each row. */
static plait_status count_rows(const plait_edges *edges, int64_t *degree, plait_error *err) {
    const pli_ingress *of = edges->again;
    pli_edge_file      file;
    pli_reader         r;
    for (int64_t v = 0; v < edges->n; v++)
        degree[v] = of->near == PLI_NEAR_SIMPLE ? edges->degree[v] : of->near != PLAIT_NEAR_IN ? edges->out[v] : 0;
    if (of->near == PLI_NEAR_SIMPLE || of->near == PLAIT_NEAR_OUT) return PLAIT_OK;
    pli_reader_begin(&r, edges, NULL, 0);
    PLI_TRY(pli_edge_file_open(of->path, of->opts.format, &file, err));
    const plait_status status = pli_edge_file_pass(&file, arrive_all, &(arrivals){ r.b, degree }, err);
    pli_edge_file_close(&file);
    return status;
}

plait_status pli_ingress_deal(const plait_edges *edges, int32_t parts, int64_t *first, plait_error *err) {
    const pli_ingress *of = edges->again;
    int64_t           *degree, all = 0;
    if (of->hashed || of->label != NULL)
        return pli_fail(err, PLAIT_EREFUSED, "vertices are dealt anew over the cut 'range' alone");
    if ((degree = pli_array((size_t)edges->n, sizeof *degree)) == NULL) return pli_building_no_memory(edges->m, err);
    const plait_status status = count_rows(edges, degree, err);
    for (int64_t v = 0; status == PLAIT_OK && v < edges->n; v++) all += degree[v];
    if (status == PLAIT_OK) pli_cut_range(edges->n, all, parts, degree_of, degree, first);
    pli_free(degree);
    return status;
}
