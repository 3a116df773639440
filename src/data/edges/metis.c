/* METIS' graph files (Karypis, METIS manual, section 4.1.1): a line VERTICES EDGES [FORMAT [CONSTRAINTS]], then a line
 * for each vertex, which lists its neighbors, counted from 1. FORMAT 001: each neighbor is followed by the edge's
 * weight; 010: the line begins with the vertex's weights, which are passed over; 100: with its size. Each edge stands
 * in the lines of both of its ends. Comments begin with %. */
#include "data/edges/edges.h"
#include "data/edges/scan.h"

typedef struct head {
    uint64_t vertices, edges, format, weights; /* weights of a vertex */
} head;

static plait_status read_head(pli_scan *s, head *h) {
    if (!pli_scan_line(s, "%")) return pli_scan_bad(s, "expected a line VERTICES EDGES");
    PLI_TRY(pli_scan_u64(s, &h->vertices));
    PLI_TRY(pli_scan_u64(s, &h->edges));
    if (!pli_scan_at_end(s)) PLI_TRY(pli_scan_u64(s, &h->format));
    h->weights = h->format / 10 % 10 == 1;
    if (!pli_scan_at_end(s)) PLI_TRY(pli_scan_u64(s, &h->weights));
    if (h->vertices > UINT32_MAX - 1) return pli_scan_bad(s, "at most 2^32 - 2 vertices");
    pli_scan_next(s);
    return PLAIT_OK;
}

static plait_status read_vertex(pli_scan *s, pli_edge_list *list, const head *h, uint64_t v) {
    const bool weighted = h->format % 10 == 1;
    uint64_t   skip = h->weights + (h->format / 100 % 10 == 1), to;
    for (; skip > 0; skip--) PLI_TRY(pli_scan_u64(s, &to));
    while (!pli_scan_at_end(s)) {
        float weight = 1;
        PLI_TRY(pli_scan_u64(s, &to));
        if (to < 1 || to > h->vertices)
            return pli_fail(s->err, PLAIT_EFORMAT, "%s:%" PRId64 ": a neighbor is a number from 1 to %" PRIu64
                            ", not %" PRIu64, s->name, pli_scan_line_of(s), h->vertices, to);
        if (weighted) PLI_TRY(pli_scan_f32(s, &weight));
        PLI_TRY(pli_edge_list_add(s, list, v, to, weighted, weight));
    }
    return PLAIT_OK;
}

/* How many vertices have their lines in front of the piece? */
static uint64_t count_before(const pli_scan *s) {
    uint64_t n = 0;
    for (const unsigned char *p = s->at; s->piece != NULL && p < s->piece;) {
        const unsigned char *newline = memchr(p, '\n', (size_t)(s->piece - p));
        n += *p != '%';
        p = newline != NULL ? newline + 1 : s->piece;
    }
    return n;
}

plait_status pli_edges_metis(pli_scan *s, pli_edge_list *list) {
    const unsigned char *const end = s->end;
    head                       h = { 0 };
    PLI_TRY(read_head(s, &h));
    list->vertices = (int64_t)h.vertices;
    list->both_ways = true;
    list->promised = h.edges < INT64_MAX / 2 ? 2 * (int64_t)h.edges : INT64_MAX;
    uint64_t v = count_before(s);
    pli_scan_jump(s);
    for (; v < h.vertices && s->at < s->end; pli_scan_next(s)) {
        if (*s->at == '%') continue;
        PLI_TRY(read_vertex(s, list, &h, ++v));
    }
    const int64_t all = pli_edge_list_all(list);
    if (s->end == end && v < h.vertices) list->promised = INT64_MAX;
    if (s->piece == NULL && (v < h.vertices || all % 2 != 0 || (uint64_t)all / 2 != h.edges))
        return pli_fail(s->err, PLAIT_EFORMAT, "%s: its head promises %" PRIu64 " vertices and %" PRIu64 " edges, each "
                        "in the lines of both of its ends, and it has %" PRIu64 " lines with %" PRId64 " neighbors",
                        s->name, h.vertices, h.edges, v, all);
    if (pli_scan_line(s, "%")) return pli_scan_bad(s, "expected the end of the file behind the last vertex");
    return PLAIT_OK;
}
