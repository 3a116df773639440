/* Opens a graph's file and finds its format: by the first line that is no comment. See edges.h. */
#include "data/edges/edges.h"
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
                 s->name, s->line, what, shown.data != NULL ? shown.data : "");
    pli_text_free(&shown);
    return status;
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

plait_status pli_edge_list_add(pli_scan *s, pli_edge_list *list, uint64_t from, uint64_t to, bool weighted,
                               float weight) {
    if (list->n == list->capacity) {
        int64_t room[2] = { list->capacity, list->capacity };
        if (list->n >= (int64_t)UINT32_MAX - 1)
            return pli_fail(s->err, PLAIT_ESHAPE, "%s:%" PRId64 ": a graph has at most 2^32 - 2 edges", s->name,
                            s->line);
        if (!pli_grow((void **)&list->from, &room[0], list->n + 1, sizeof *list->from) ||
            !pli_grow((void **)&list->to, &room[1], list->n + 1, sizeof *list->to))
            return pli_fail(s->err, PLAIT_ENOMEM, "%s:%" PRId64 ": no memory for more edges", s->name, s->line);
        list->capacity = room[1];
    }
    if (weighted && !pli_grow((void **)&list->weight, &list->heavy, list->n + 1, sizeof *list->weight))
        return pli_fail(s->err, PLAIT_ENOMEM, "%s:%" PRId64 ": no memory for weights", s->name, s->line);
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

plait_status pli_edge_list_parse(const char *name, const char *text, size_t bytes, const char *format,
                                 pli_edge_list *list, plait_error *err) {
    const unsigned char *at = (const unsigned char *)text;
    pli_scan             s = { name, at, at + bytes, 1, err };
    const struct format *by = NULL;
    *list = (pli_edge_list){ .vertices = -1 };
    plait_status status = choose(&s, format, &by);
    if (status == PLAIT_OK) status = by->read(&s, list);
    if (status == PLAIT_OK && list->n == 0 && list->vertices <= 0)
        status = pli_fail(err, PLAIT_EFORMAT, "%s: it has no edge", name);
    if (status < 0) pli_edge_list_free(list);
    return status;
}

plait_status pli_edge_list_read(const char *path, const char *format, pli_edge_list *list, plait_error *err) {
    pli_sources *sources = NULL;
    *list = (pli_edge_list){ 0 };
    plait_status status = pli_sources_open(&path, 1, 0, false, &sources, err);
    if (status < 0) return status;
    if (sources->n != 1) {
        status = pli_fail(err, PLAIT_EINVAL, "%s: a graph is one file, and these are %" PRId64, path, sources->n);
    } else {
        const pli_source *source = &sources->source[0];
        status = pli_edge_list_parse(source->path, (const char *)source->data + source->begin,
                                     source->bytes - source->begin, format, list, err);
        if (status == PLAIT_OK) status = pli_sources_check(sources, err);
        if (status < 0) pli_edge_list_free(list);
    }
    pli_sources_release(&sources);
    return status;
}
