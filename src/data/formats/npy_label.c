/* Where the labels of npy files are: in a column, or in a file of their own. See npy.h. */
#include "data/formats/npy_impl.h"

#include <string.h>

/* --- the labels' file ------------------------------------------------------------------------------------------- */

/* X.npy -> y.npy, X_train.npy -> y_train.npy; images and features -> labels. NULL: the name has none of these, no such
 * file is there, or no memory. */
static char *find_beside(const char *path) {
    static const char *const words[] = { "features", "images" };
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char       *other = NULL;
    if ((*name == 'X' || *name == 'x') && (name[1] == '.' || name[1] == '_' || name[1] == '-'))
        other = pli_format("%.*sy%s", (int)(name - path), path, name + 1);
    for (size_t i = 0; other == NULL && i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(name, words[i]);
        if (at != NULL) other = pli_format("%.*slabels%s", (int)(at - path), path, at + strlen(words[i]));
    }
    if (other != NULL && pli_file_exists(other)) return other;
    pli_free(other);
    return NULL;
}

static plait_status open_labels(struct pli_npy *npy, const char *path, int64_t spill_limit, plait_error *err) {
    const char *rows = npy->sources->source[0].path;
    if (npy->sources->n > 1)
        return pli_fail(err, PLAIT_EINVAL, "%s: a file of labels goes with one file of rows, and %lld were given", path,
                        (long long)npy->sources->n);
    PLI_TRY(pli_sources_open(&path, 1, spill_limit, false, &npy->labels, err));
    const pli_source *source = &npy->labels->source[0];
    PLI_TRY(pli_npy_read(path, source->data, source->bytes, &npy->label, err));
    if (npy->label.columns != 1)
        return pli_fail(err, PLAIT_EFORMAT, "%s: labels are an array of one axis, and this has %lld columns; a column "
                                            "of the rows' own array is named by its number", path,
                        (long long)npy->label.columns);
    if (npy->label.rows != npy->array[0].rows)
        return pli_fail(err, PLAIT_EMISMATCH, "%s has %lld labels, but %s has %lld rows: they do not belong together",
                        path, (long long)npy->label.rows, rows, (long long)npy->array[0].rows);
    return PLAIT_OK;
}

/* --- columns by number ------------------------------------------------------------------------------------------ */

/* Reads "3", "-1" or "c3" into a column. false: it is none of these. */
static bool read_column(const struct pli_npy *npy, const char *name, int64_t *out) {
    int64_t number;
    if (!pli_parse_i64(*name == 'c' ? name + 1 : name, &number) || (*name == 'c' && number < 1)) return false;
    *out = number > 0 ? number - 1 : number < 0 ? npy->columns + number : -1;
    return true;
}

plait_status pli_npy_find_column(const struct pli_npy *npy, const char *what, const char *name, int64_t *out,
                                 plait_error *err) {
    const char *path = npy->sources->source[0].path;
    if (!read_column(npy, name, out))
        return pli_fail(err, PLAIT_ENAME, "%s: no column \"%.60s\" for %s: an array's columns have numbers, from 1, or "
                                          "-1 for the last", path, name, what);
    if (*out >= 0 && *out < npy->columns) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENAME, "%s: no column %.20s for %s: expected 1 to %lld, or -1 for the last", path, name,
                    what, (long long)npy->columns);
}

plait_status pli_npy_find_label(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed,
                                plait_error *err) {
    struct pli_npy *npy = d->npy;
    const char     *path = d->sources->source[0].path;
    plait_status    status = PLAIT_OK;
    if (d->unlabelled) return PLAIT_OK;
    if (opts->label != NULL && !read_column(npy, opts->label, &npy->label_at)) {
        if (pli_file_exists(opts->label)) return open_labels(npy, opts->label, opts->spill_limit, err);
        return pli_fail(err, PLAIT_ENAME,
                        "%s: no column and no file \"%.80s\" for the label: columns have numbers, from 1, or -1 for "
                        "the last", path, opts->label);
    }
    if (opts->label != NULL) return pli_npy_find_column(npy, "the label", opts->label, &npy->label_at, err);
    char *beside = d->sources->n == 1 ? find_beside(path) : NULL;
    if (beside != NULL) {
        status = open_labels(npy, beside, opts->spill_limit, err);
        if (status >= 0) pli_dataset_note(d, "%s: the labels are those of %s beside it", path, beside);
    } else if (fixed == NULL) {
        status = pli_fail(err, PLAIT_EINVAL,
                          "%s: an array has no names, so say where the label is: --label -1 (or another column), "
                          "--label FILE (an npy file of its own), or --label none", path);
    }
    pli_free(beside);
    return status;
}

const char *pli_npy_label_file(const struct pli_npy *npy) {
    const char *path = npy->labels != NULL ? npy->labels->source[0].path : NULL,
               *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path;
}
