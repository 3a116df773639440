/* Reads what a graph convolution learns from: see gcn.h. */
#include <math.h>

#include <plait/data.h>

#include "data/source/source.h"
#include "vertex/gcn.h"

/* --- rows --------------------------------------------------------------------------------------------------------- */

static plait_status take_row(pli_gcn_data *g, int64_t r, const plait_row *row, const char *path, plait_error *err) {
    float sum = 0;
    if (row->n > 0 && row->column == NULL)
        return pli_fail(err, PLAIT_EFORMAT, "%s: row %lld has a feature beyond 2^32", path, (long long)r + 1);
    if (row->label - row->label != 0 || row->label != floor(row->label) || fabs(row->label) > 1e15)
        return pli_fail(err, PLAIT_EFORMAT, "%s: row %lld: a class is a whole number", path, (long long)r + 1);
    for (int64_t k = 0; k < row->n; k++) sum += row->value != NULL ? row->value[k] : 1;
    for (int64_t k = 0; k < row->n; k++) {
        const int64_t to = g->start[r] + k;
        g->column[to] = row->column[k];
        g->value[to] = (row->value != NULL ? row->value[k] : 1) / (sum > 0 ? sum : 1);
    }
    g->start[r + 1] = g->start[r] + row->n;
    int32_t c = 0;
    while (c < g->classes && g->label[c] != (int64_t)row->label) c++;
    if (c == (int32_t)(sizeof g->label / sizeof *g->label))
        return pli_fail(err, PLAIT_EFORMAT, "%s: more than 64 classes", path);
    if (c == g->classes) g->label[g->classes++] = (int64_t)row->label;
    g->class_of[r] = c;
    return PLAIT_OK;
}

/* Classes are numbered by their labels, so that the order of rows says nothing. */
static void sort_classes(pli_gcn_data *g) {
    int32_t to[sizeof g->label / sizeof *g->label];
    int64_t label[sizeof g->label / sizeof *g->label];
    for (int32_t c = 0; c < g->classes; c++) {
        to[c] = 0;
        for (int32_t b = 0; b < g->classes; b++) to[c] += g->label[b] < g->label[c];
        label[to[c]] = g->label[c];
    }
    memcpy(g->label, label, (size_t)g->classes * sizeof *label);
    for (int64_t r = 0; r < g->rows; r++) g->class_of[r] = to[g->class_of[r]];
}

static plait_status take_rows(pli_gcn_data *g, const plait_data *data, const char *path, plait_error *err) {
    int64_t   entries = 0, r = 0;
    plait_row row;
    for (int32_t b = 0; b < plait_data_blocks(data); b++)
        for (int64_t i = 0; i < plait_data_block_rows(data, b); i++) {
            PLI_TRY(plait_data_row(data, b, i, &row, err));
            entries += row.n;
        }
    g->rows = plait_data_rows(data);
    g->features = plait_data_features(data);
    g->start = pli_calloc((size_t)g->rows + 1, sizeof *g->start);
    g->class_of = pli_array((size_t)g->rows, sizeof *g->class_of);
    g->kind = pli_calloc((size_t)g->rows, sizeof *g->kind);
    g->column = pli_array((size_t)entries + 1, sizeof *g->column);
    g->value = pli_array((size_t)entries + 1, sizeof *g->value);
    if (g->start == NULL || g->class_of == NULL || g->kind == NULL || g->column == NULL || g->value == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "%s: no memory for %lld rows", path, (long long)g->rows);
    for (int32_t b = 0; b < plait_data_blocks(data); b++)
        for (int64_t i = 0; i < plait_data_block_rows(data, b); i++) {
            PLI_TRY(plait_data_row(data, b, i, &row, err));
            PLI_TRY(take_row(g, r++, &row, path, err));
        }
    sort_classes(g);
    return PLAIT_OK;
}

static plait_status read_rows(pli_gcn_data *g, const char *path, plait_error *err) {
    plait_data_opts opts;
    plait_data     *data = NULL;
    plait_data_opts_init(&opts);
    opts.paths = &path;
    opts.n_paths = 1;
    PLI_TRY(plait_data_read(&opts, &data, err));
    const plait_status status = take_rows(g, data, path, err);
    plait_data_destroy(&data);
    return status;
}

/* --- which rows train --------------------------------------------------------------------------------------------- */

static plait_status take_split(pli_gcn_data *g, const pli_source *source, plait_error *err) {
    static const char *const words[PLI_GCN_KINDS] = { "", "train", "val", "test" };
    const char              *at = (const char *)source->data + source->begin,
               *const end = (const char *)source->data + source->bytes;
    int64_t                  r = 0, trains = 0;
    for (; at < end; r++) {
        const char  *newline = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((newline != NULL ? newline : end) - at);
        char         word[16] = ""; /* a longer one is near none of them */
        if (n < sizeof word) memcpy(word, at, n);
        int kind = PLI_GCN_KINDS - 1;
        while (kind > 0 && strcmp(word, words[kind]) != 0) kind--;
        const char *near = kind == 0 && word[0] != '\0' ? pli_nearest(word, words + 1, PLI_GCN_KINDS - 1) : NULL;
        if (near != NULL)
            return pli_fail(err, PLAIT_EFORMAT, "%s:%lld: '%s'; did you mean '%s'? A row that is of no kind is 'none'",
                            source->path, (long long)r + 1, word, near);
        if (r < g->rows) g->kind[r] = (uint8_t)kind;
        trains += r < g->rows && kind == PLI_GCN_TRAIN;
        at += n + 1;
    }
    if (r != g->rows)
        return pli_fail(err, PLAIT_EFORMAT, "%s: %lld lines for %lld rows of features", source->path, (long long)r,
                        (long long)g->rows);
    if (trains == 0) return pli_fail(err, PLAIT_EFORMAT, "%s: no line says 'train'", source->path);
    return PLAIT_OK;
}

static plait_status read_split(pli_gcn_data *g, const char *path, plait_error *err) {
    pli_sources *sources = NULL;
    PLI_TRY(pli_sources_open(&path, 1, 0, false, &sources, err));
    const plait_status status =
        sources->n == 1 ? take_split(g, &sources->source[0], err)
                        : pli_fail(err, PLAIT_EINVAL, "%s: a split is one file", path);
    pli_sources_release(&sources);
    return status;
}

/* --- the matrix --------------------------------------------------------------------------------------------------- */

static plait_status make_matrix(pli_gcn_data *g, const plait_edges *edges, const char *path, plait_error *err) {
    const pli_neighbors *simple = pli_edges_simple(edges, NULL);
    pli_neighbors       *a = &g->near;
    if (simple == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld edges", (long long)edges->m);
    if (edges->n > 0 && edges->id[edges->n - 1] >= (uint64_t)g->rows)
        return pli_fail(err, PLAIT_EFORMAT, "%s: it has %lld rows, for ids 0 to %lld, and the graph has the id %llu",
                        path, (long long)g->rows, (long long)g->rows - 1, (unsigned long long)edges->id[edges->n - 1]);
    const int64_t entries = simple->start[simple->n] + g->rows;
    a->n = g->rows;
    a->start = pli_calloc((size_t)g->rows + 1, sizeof *a->start);
    a->near = pli_array((size_t)entries, sizeof *a->near);
    a->weight = pli_array((size_t)entries, sizeof *a->weight);
    if (a->start == NULL || a->near == NULL || a->weight == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a matrix of %lld entries", (long long)entries);
    int64_t to = 0, v = 0;
    for (int64_t r = 0; r < g->rows; r++) {
        const bool has = v < edges->n && edges->id[v] == (uint64_t)r;
        bool       self = false;
        for (int64_t k = has ? simple->start[v] : 0; has && k < simple->start[v + 1]; k++) {
            const uint32_t u = (uint32_t)edges->id[simple->near[k]];
            if (!self && u > (uint64_t)r) a->near[to++] = (uint32_t)r, self = true;
            a->near[to++] = u;
        }
        if (!self) a->near[to++] = (uint32_t)r;
        a->start[r + 1] = to;
        v += has;
    }
    for (int64_t r = 0; r < g->rows; r++)
        for (int64_t k = a->start[r]; k < a->start[r + 1]; k++) {
            const int64_t u = a->near[k];
            a->weight[k] = (float)(1 / sqrt((double)(a->start[r + 1] - a->start[r]) *
                                            (double)(a->start[u + 1] - a->start[u])));
        }
    return PLAIT_OK;
}

plait_status pli_gcn_load(const plait_edges *edges, const char *features, const char *split, pli_gcn_data **data_out,
                          plait_error *err) {
    pli_gcn_data *g = pli_calloc(1, sizeof *g);
    if (g == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for features");
    plait_status status = read_rows(g, features, err);
    if (status == PLAIT_OK) status = read_split(g, split, err);
    if (status == PLAIT_OK) status = make_matrix(g, edges, features, err);
    if (status < 0) pli_gcn_free(&g);
    else *data_out = g;
    return status;
}

plait_status pli_gcn_prepare(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err) {
    pli_gcn_data *g = NULL;
    PLI_TRY(pli_gcn_load(choice->edges, asked->features, asked->split, &g, err));
    choice->own = g;
    return PLAIT_OK;
}

void pli_gcn_release(void **own) {
    pli_gcn_data *g = *own;
    pli_gcn_free(&g);
    *own = NULL;
}

void pli_gcn_free(pli_gcn_data **data) {
    if (*data == NULL) return;
    pli_free((*data)->class_of);
    pli_free((*data)->kind);
    pli_free((*data)->start);
    pli_free((*data)->column);
    pli_free((*data)->value);
    pli_neighbors_free(&(*data)->near);
    pli_free(*data);
    *data = NULL;
}
