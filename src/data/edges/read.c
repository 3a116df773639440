/* Opens a graph's file and finds its format: by the first line that is no comment. See edges.h. */
#include "data/edges/edges.h"

#include "base/hash.h"
#include "data/edges/scan.h"
#include "data/source/source.h"

static const struct format {
    const char       *name;
    pli_edge_read_fn *read;
} formats[] = { { "snap", pli_edges_snap },
                { "matrix-market", pli_edges_matrix },
                { "metis", pli_edges_metis },
                { "adjacency", pli_edges_adjacency } };
enum { FORMATS = sizeof formats / sizeof *formats };

plait_status pli_scan_bad(const pli_scan *s, const char *what) {
    char         word[48];
    size_t       n = 0;
    const size_t left = (size_t)(s->end - s->at);
    while (n < left && n < sizeof word - 1 && !pli_scan_is_gap(s->at[n]) && s->at[n] != '\n') n++;
    pli_text shown = { 0 };
    pli_text_add_printable(&shown, (const char *)s->at, n, "");
    const plait_status status =
        pli_fail(s->err, PLAIT_EFORMAT, n > 0 ? "%s:%" PRId64 ": %s: '%s'" : "%s:%" PRId64 ": %s: the line ends",
                 s->name, pli_scan_line_of(s), what, shown.data != NULL ? shown.data : "");
    pli_text_free(&shown);
    return status;
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

/* Edges that are handed over together; text that is let go of together. */
enum { TOGETHER = 1 << 14, BEHIND = 4 << 20 };
enum { MARKED = 4096 };

struct pli_edge_pass {
    pli_edges_take_fn *take;
    void              *user;
    const pli_source  *source;
    const pli_scan    *scan;
    size_t            *dropped; /* bytes of the source */
};

static plait_status hand_over(const struct pli_edge_pass *p, pli_edge_list *list, plait_error *err) {
    const size_t at = (size_t)(p->scan->at - p->source->data);
    PLI_TRY(p->take(p->user, list, err));
    list->before += list->n;
    list->n = 0;
    if (at - *p->dropped < BEHIND) return PLAIT_OK;
    pli_source_drop(p->source, *p->dropped, at);
    *p->dropped = pli_drop_again(at);
    return PLAIT_OK;
}

plait_status pli_edge_list_add(pli_scan *s, pli_edge_list *list, uint64_t from, uint64_t to, bool weighted,
                               float weight) {
    if (list->pass != NULL && list->n == TOGETHER) PLI_TRY(hand_over(list->pass, list, s->err));
    if (list->n == list->capacity) {
        int64_t room[2] = { list->capacity, list->capacity };
        if (!pli_grow((void **)&list->from, &room[0], list->n + 1, sizeof *list->from) ||
            !pli_grow((void **)&list->to, &room[1], list->n + 1, sizeof *list->to))
            return pli_fail(s->err, PLAIT_ENOMEM, "%s:%" PRId64 ": no memory for more edges", s->name,
                            pli_scan_line_of(s));
        list->capacity = room[1];
    }
    if (pli_edge_list_all(list) >= (int64_t)UINT32_MAX - 1)
        return pli_fail(s->err, PLAIT_ESHAPE, "%s:%" PRId64 ": a graph has at most 2^32 - 2 edges", s->name,
                        pli_scan_line_of(s));
    if (weighted && !pli_grow((void **)&list->weight, &list->heavy, list->n + 1, sizeof *list->weight))
        return pli_fail(s->err, PLAIT_ENOMEM, "%s:%" PRId64 ": no memory for weights", s->name,
                        pli_scan_line_of(s));
    list->from[list->n] = from;
    list->to[list->n] = to;
    if (weighted) list->weight[list->n] = weight;
    list->n++;
    return PLAIT_OK;
}

void pli_edge_list_free(pli_edge_list *list) {
    pli_free(list->from);
    pli_free(list->to);
    pli_free(list->weight);
    *list = (pli_edge_list){ 0 };
}

/* --- formats ------------------------------------------------------------------------------------------------------ */

/* Only a banner says what a file is for certain; METIS and adjacency files could be edge lists, and are named. */
static const struct format *find(const pli_scan *s) {
    static const char banner[] = "%%MatrixMarket";
    const size_t      n = sizeof banner - 1;
    const bool        matrix = (size_t)(s->end - s->at) >= n && memcmp(s->at, banner, n) == 0;
    return &formats[matrix ? 1 : 0];
}

static plait_status choose(const pli_scan *s, const char *name, const struct format **out) {
    const char *names[FORMATS];
    *out = find(s);
    if (name == NULL || pli_is(name, "auto")) return PLAIT_OK;
    for (int i = 0; i < FORMATS; i++) {
        names[i] = formats[i].name;
        if (pli_is(name, names[i])) {
            *out = &formats[i];
            return PLAIT_OK;
        }
    }
    return pli_fail_unknown(s->err, "format of edges", name, names, FORMATS);
}

plait_status pli_edges_none(const char *name, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: it has no edge", name);
}

plait_status pli_edges_changed(plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "the graph's file was written to while it was read");
}

static plait_status read_all(pli_scan *s, const char *format, pli_edge_list *list) {
    const struct format *by = NULL;
    PLI_TRY(choose(s, format, &by));
    PLI_TRY(by->read(s, list));
    if (pli_edge_list_all(list) > 0 || list->vertices > 0 || s->piece != NULL) return PLAIT_OK;
    return pli_edges_none(s->name, s->err);
}

plait_status pli_edge_list_parse(const char *name, const char *text, size_t bytes, const char *format,
                                 pli_edge_list *list, plait_error *err) {
    const unsigned char *at = (const unsigned char *)text;
    pli_scan             s = { .name = name, .at = at, .end = at + bytes, .line = 1, .err = err };
    *list = (pli_edge_list){ .vertices = -1, .promised = -1 };
    const plait_status status = read_all(&s, format, list);
    if (status < 0) pli_edge_list_free(list);
    return status;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

plait_status pli_edge_file_open(const char *path, const char *format, pli_edge_file *file, plait_error *err) {
    *file = (pli_edge_file){ .path = path, .format = format };
    PLI_TRY(pli_sources_open(&path, 1, 0, false, &file->sources, err));
    if (file->sources->n == 1) {
        file->bytes = file->sources->source[0].bytes;
        return PLAIT_OK;
    }
    pli_fail(err, PLAIT_EINVAL, "%s: a graph is one file, and these are %" PRId64, path, file->sources->n);
    pli_edge_file_close(file);
    return err->code;
}

static pli_scan scan_of(const pli_source *source, plait_error *err) {
    return (pli_scan){ .name = source->path, .at = source->data + source->begin, .end = source->data + source->bytes,
                       .line = 1, .err = err };
}

uint64_t pli_edge_file_mark(const pli_edge_file *file) {
    const pli_source *source = &file->sources->source[0];
    const size_t      some = source->bytes < MARKED ? source->bytes : MARKED;
    const uint64_t    head = pli_hash_bytes(source->data, some, source->bytes);
    return pli_hash_bytes(source->data + source->bytes - some, some, head);
}

/* Where piece i of n begins: behind the line that begins before its bytes do. */
static const unsigned char *piece_begin(const pli_source *source, int32_t i, int32_t n) {
    const unsigned char *first = source->data + source->begin, *end = source->data + source->bytes;
    const size_t         bytes = (size_t)(end - first);
    if (i == 0) return first;
    const size_t before = bytes / (size_t)n * (size_t)i + bytes % (size_t)n * (size_t)i / (size_t)n;
    if (before == 0) return first;
    const unsigned char *newline = memchr(first + before - 1, '\n', bytes - before + 1);
    return newline != NULL ? newline + 1 : end;
}

static plait_status go_through(const pli_edge_file *file, pli_scan s, pli_edges_take_fn *take, void *user,
                               plait_error *err) {
    const pli_source *source = &file->sources->source[0];
    size_t            dropped = s.piece != NULL ? pli_drop_again((size_t)(s.piece - source->data)) : 0;
    const struct pli_edge_pass pass = { take, user, source, &s, &dropped };
    pli_edge_list              list = { .vertices = -1, .promised = -1, .pass = &pass };
    plait_status               status = read_all(&s, file->format, &list);
    if (status == PLAIT_OK) status = hand_over(&pass, &list, err);
    if (status == PLAIT_OK) status = pli_sources_check(file->sources, err);
    pli_source_drop(source, dropped, (size_t)(s.end - source->data));
    pli_edge_list_free(&list);
    return status;
}

plait_status pli_edge_file_pass(const pli_edge_file *file, pli_edges_take_fn *take, void *user, plait_error *err) {
    return go_through(file, scan_of(&file->sources->source[0], err), take, user, err);
}

plait_status pli_edge_file_piece(const pli_edge_file *file, int32_t i, int32_t n, pli_edges_take_fn *take, void *user,
                                 plait_error *err) {
    const pli_source *source = &file->sources->source[0];
    pli_scan          s = scan_of(source, err);
    s.piece = piece_begin(source, i, n);
    s.piece_end = i + 1 < n ? piece_begin(source, i + 1, n) : s.end;
    return go_through(file, s, take, user, err);
}

void pli_edge_file_close(pli_edge_file *file) { pli_sources_release(&file->sources); }
