/* Reads IDX files; idx.h says what they are. */
#include "data/formats/idx.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct pli_idx {
    pli_idx_array        image, label;
    const unsigned char *from;   /* the images' file; row r begins at from + image.begin + r image.row_bytes */
    pli_sources         *labels; /* NULL: there are none */
    int64_t              features;
};

/* --- arrays ----------------------------------------------------------------------------------------------------- */

static const struct {
    int    type;
    size_t bytes;
} elements[] = { { 8, 1 }, { 9, 1 }, { 11, 2 }, { 12, 4 }, { 13, 4 }, { 14, 8 } };

static size_t element_bytes(int type) {
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (elements[i].type == type) return elements[i].bytes;
    return 0;
}

static uint64_t big_endian(const unsigned char *at, size_t bytes) {
    uint64_t x = 0;
    for (size_t i = 0; i < bytes; i++) x = x << 8 | at[i];
    return x;
}

bool pli_idx_is(const unsigned char *data, size_t bytes) {
    return bytes >= 8 && data[0] == 0 && data[1] == 0 && element_bytes(data[2]) > 0 && data[3] >= 1 &&
           data[3] <= PLI_IDX_AXES;
}

plait_status pli_idx_read(const char *name, const unsigned char *data, size_t bytes, pli_idx_array *array_out,
                          plait_error *err) {
    if (!pli_idx_is(data, bytes))
        return pli_fail(
            err, PLAIT_EFORMAT,
            "%s: expected an idx file of 1 to %d axes (it begins 0 0, a type from 8 to 14, the number of axes)", name,
            PLI_IDX_AXES);
    pli_idx_array a = {
        .type = data[2], .axes = data[3], .begin = 4 + 4 * (size_t)data[3], .row_bytes = element_bytes(data[2])
    };
    if (bytes < a.begin) return pli_fail(err, PLAIT_EFORMAT, "%s: cut short in its header", name);
    uint64_t total = a.row_bytes;
    bool     too_many = false;
    for (int32_t i = 0; i < a.axes; i++) {
        const uint64_t length = big_endian(data + 4 + 4 * (size_t)i, 4);
        a.length[i] = (int64_t)length;
        if (length == 0) return pli_fail(err, PLAIT_EFORMAT, "%s: axis %d has a length of 0", name, i);
        too_many = too_many || total > bytes / length;
        if (!too_many) total *= length;
        if (!too_many && i > 0) a.row_bytes *= length;
    }
    if (too_many || total != bytes - a.begin)
        return pli_fail(err, PLAIT_EFORMAT,
                        "%s: its header promises %s%llu bytes behind it, there are %llu: cut short or altered", name,
                        too_many ? "more than " : "", (unsigned long long)(too_many ? bytes : total),
                        (unsigned long long)(bytes - a.begin));
    *array_out = a;
    return PLAIT_OK;
}

double pli_idx_element(const pli_idx_array *a, const unsigned char *at, int64_t i) {
    const size_t   bytes = element_bytes(a->type);
    const uint64_t x = big_endian(at + (size_t)i * bytes, bytes);
    const uint32_t low = (uint32_t)x;
    float          single;
    double         wide;
    switch (a->type) {
    case 8: return (double)x;
    case 9: return (int8_t)x;
    case 11: return (int16_t)x;
    case 12: return (int32_t)low;
    case 13: memcpy(&single, &low, sizeof single); return (double)single;
    default: memcpy(&wide, &x, sizeof wide); return wide;
    }
}

/* --- the labels' file ------------------------------------------------------------------------------------------- */

/* train-images-idx3-ubyte.gz -> train-labels-idx1-ubyte.gz; NULL: the name has no "images", or no memory. */
static char *sibling(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *images = strstr(name, "images");
    if (images == NULL) return NULL;
    char *other = pli_format("%.*slabels%s", (int)(images - path), path, images + strlen("images"));
    char *idx = other != NULL ? strstr(other + (images - path), "idx") : NULL;
    if (idx != NULL && idx[3] >= '1' && idx[3] <= '9') idx[3] = '1';
    return other;
}

/* Does the file exist, packed as its name says, or not packed? path becomes the name that does. */
static bool is_there(char *path) {
    const size_t n = strlen(path);
    if (pli_file_exists(path)) return true;
    if (n > 3 && strcmp(path + n - 3, ".gz") == 0) path[n - 3] = '\0';
    return pli_file_exists(path);
}

static plait_status open_labels(struct pli_idx *idx, const char *path, const char *images, int64_t spill_limit,
                                plait_error *err) {
    PLI_TRY(pli_sources_open(&path, 1, spill_limit, false, &idx->labels, err));
    const pli_source *source = &idx->labels->source[0];
    PLI_TRY(pli_idx_read(path, source->data, source->bytes, &idx->label, err));
    if (idx->label.axes != 1)
        return pli_fail(err, PLAIT_EFORMAT, "%s: labels are an array of one axis, this has %d", path, idx->label.axes);
    if (idx->label.length[0] != idx->image.length[0])
        return pli_fail(err, PLAIT_EMISMATCH, "%s has %lld labels, but %s has %lld images: they do not belong together",
                        path, (long long)idx->label.length[0], images, (long long)idx->image.length[0]);
    return PLAIT_OK;
}

/* Finds the file of labels. A file that the user names is the only one tried. */
static plait_status find_labels(struct pli_idx *idx, const char *path, const plait_data_opts *opts, bool optional,
                                plait_error *err) {
    const char *given = opts->label;
    if (given != NULL && !pli_file_exists(given))
        return pli_fail(err, PLAIT_EIO, "%s: no such file: the labels of idx images are in a file of their own", given);
    if (given != NULL) return open_labels(idx, given, path, opts->spill_limit, err);
    char        *beside = sibling(path);
    plait_status status = PLAIT_OK;
    if (beside != NULL && is_there(beside)) status = open_labels(idx, beside, path, opts->spill_limit, err);
    else if (!optional)
        status = pli_fail(err, PLAIT_EINVAL,
                          "%s: a file of images holds no labels: name the file of labels by --label FILE; --label none "
                          "reads images without labels",
                          path);
    pli_free(beside);
    return status;
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

void pli_idx_close(struct pli_idx **idx) {
    if (*idx == NULL) return;
    pli_sources_release(&(*idx)->labels);
    pli_free(*idx);
    *idx = NULL;
}

plait_status pli_idx_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    const pli_source *source = &d->sources->source[0];
    if (d->sources->n > 1)
        return pli_fail(err, PLAIT_EINVAL, "idx images must be one file, but %lld were given",
                        (long long)d->sources->n);
    if (opts->hash_bits > 0)
        return pli_fail(err, PLAIT_EINVAL,
                        "idx images have few and dense features, which are not hashed; leave out --hash-bits");
    struct pli_idx *idx = d->idx = pli_calloc(1, sizeof *idx);
    if (idx == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
    PLI_TRY(pli_idx_read(source->path, source->data, source->bytes, &idx->image, err));
    idx->from = source->data;
    idx->features = (int64_t)(idx->image.row_bytes / element_bytes(idx->image.type));
    if (idx->features > INT32_MAX)
        return pli_fail(err, PLAIT_EFORMAT, "%s: a row of %lld numbers is too long", source->path,
                        (long long)idx->features);
    if (fixed != NULL && fixed->features != idx->features)
        return pli_fail(err, PLAIT_EMISMATCH, "%s: the model was trained on %lld features a row, but this has %lld",
                        source->path, (long long)fixed->features, (long long)idx->features);
    if (!d->unlabelled) PLI_TRY(find_labels(idx, source->path, opts, fixed != NULL, err));
    d->begin[0] = idx->image.begin;
    d->row_bytes = idx->image.row_bytes;
    return PLAIT_OK;
}

void pli_idx_describe(pli_dataset *d) {
    const struct pli_idx *idx = d->idx;
    d->schema->axes = idx->image.axes - 1;
    for (int32_t i = 0; i < d->schema->axes; i++) d->schema->length[i] = idx->image.length[i + 1];
    d->schema->features = idx->features;
    d->reader = &pli_idx_reader;
    d->rules = idx;
}

const char *pli_idx_label_file(const struct pli_idx *idx) {
    const char *path = idx->labels != NULL ? idx->labels->source[0].path : NULL,
               *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static bool add_row(const struct pli_idx *idx, const unsigned char *at, pli_rows *rows) {
    if (!pli_rows_reserve(rows, idx->features)) return false;
    pli_block *b = &rows->b;
    if (!pli_rows_need_values(rows)) return false;
    int64_t n = b->entries;
    for (int64_t i = 0; i < idx->features; i++) {
        const double x = idx->image.type == 8 ? at[i] : pli_idx_element(&idx->image, at, i);
        if (x == 0) continue;
        b->col[n] = (uint32_t)i;
        b->value[n++] = (float)x;
    }
    b->entries = n;
    return true;
}

static plait_status parse(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                          pli_found *found, pli_bad *bad) {
    const struct pli_idx *idx = rules;
    const int64_t first = (int64_t)((size_t)(from - idx->from) - idx->image.begin) / (int64_t)idx->image.row_bytes;
    const int64_t         n = (to - from) / (int64_t)idx->image.row_bytes;
    bad->at = NULL;
    if (!pli_rows_reserve_rows(rows, n)) return PLAIT_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *at = from + (size_t)i * idx->image.row_bytes;
        double               label = NAN;
        if (idx->labels != NULL)
            label = pli_idx_element(&idx->label, idx->labels->source[0].data + idx->label.begin, first + i);
        if (idx->labels != NULL && !isfinite(label))
            return pli_bad_at(bad, at, "label %lld is not finite", (long long)(first + i));
        if (!add_row(idx, at, rows) || (idx->labels != NULL && !pli_found_label(found, label))) return PLAIT_ENOMEM;
        for (int64_t k = rows->b.row_start[rows->b.rows]; idx->image.type >= 13 && k < rows->b.entries; k++)
            if (!isfinite(rows->b.value[k]))
                return pli_bad_at(bad, at, "row %lld has a number that is not finite", (long long)(first + i));
        if (rows->b.weight != NULL) rows->b.weight[rows->b.rows] = 1;
        rows->b.label[rows->b.rows++] = label;
        rows->b.row_start[rows->b.rows] = rows->b.entries;
    }
    return PLAIT_OK;
}

const pli_reader pli_idx_reader = { .name = "idx", .parse = parse };
