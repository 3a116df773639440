/* Which row is in which fold. Rows are ordered by a random number that is keyed by the seed and the row, within each
 * class if classes are to be spread evenly, and dealt to the folds in turn. So the folds depend on the data and the
 * seed alone, never on workers. */
#include "cli/cv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learn.h"
#include "learn/learner.h"

enum { STRATA_MAX = 1000, LINE_MOST = 256 };

/* What is dealt: a row, or the rows of a query. */
typedef struct unit {
    int64_t  first, rows; /* numbers of rows */
    double   label;       /* 0: classes do not matter */
    uint64_t key;
} unit;

typedef struct units {
    unit   *item;
    int64_t n;
} units;

static int by_label_and_key(const void *left, const void *right) {
    const unit *a = left, *b = right;
    if (a->label != b->label) return a->label < b->label ? -1 : 1;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void add_rows(const pli_block *block, bool strata, uint64_t seed, units *all) {
    for (int64_t r = 0; r < block->rows; r++) {
        const bool goes_on = block->query != NULL && r > 0 && block->query[r] != 0 &&
                             block->query[r] == block->query[r - 1];
        if (goes_on) {
            all->item[all->n - 1].rows++;
            continue;
        }
        const int64_t row = block->first_row + r;
        const double  label = strata && !isnan(block->label[r]) ? block->label[r] : 0;
        all->item[all->n++] = (unit){ row, 1, label, pli_hash_u64(pli_hash_u64(seed) ^ (uint64_t)row) };
    }
}

static void deal(const units *all, pli_folds *folds) {
    for (int64_t i = 0; i < all->n; i++)
        for (int64_t r = 0; r < all->item[i].rows; r++) folds->of[all->item[i].first + r] = (int32_t)(i % folds->n);
}

/* n + 1 runs of units, of which the first is in no fold. */
static void deal_in_order(const units *all, pli_folds *folds) {
    for (int64_t i = 0; i < all->n; i++)
        for (int64_t r = 0; r < all->item[i].rows; r++)
            folds->of[all->item[i].first + r] = (int32_t)(i * (folds->n + 1) / all->n) - 1;
}

const char *pli_folds_settle(const char *model, const char *way) {
    const plait_learner *learner = pli_learner_find(model, NULL, 0);
    const bool           classes = learner == NULL || learner->labels == PLAIT_LABELS_CLASSES ||
                                   learner->labels == PLAIT_LABELS_EITHER;
    return pli_is(way, "auto") && !classes ? "rows" : way;
}

const char *pli_folds_way(const plait_data *data, const char *way) {
    if (!pli_is(way, "auto")) return way;
    pli_dataset *set = NULL;
    int64_t      classes = -1;
    if (pli_dataset_of_memory(data, 0, 1, &set, NULL) >= 0) classes = pli_schema_labels(pli_dataset_schema(set));
    pli_dataset_destroy(&set);
    return plait_data_has_labels(data) && classes > 1 && classes <= STRATA_MAX ? "stratified" : "rows";
}

static plait_status fill(const pli_dataset *set, const char *way, uint64_t seed, pli_folds *folds, plait_error *err) {
    units all = { .item = pli_array((size_t)folds->rows + 1, sizeof *all.item) };
    if (all.item == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for folds of %lld rows", (long long)folds->rows);
    for (int32_t b = 0; b < pli_dataset_own_blocks(set); b++)
        add_rows(pli_dataset_block(set, b), pli_is(way, "stratified"), seed, &all);
    const int64_t needed = folds->n + (folds->in_order ? 1 : 0);
    plait_status  status = PLAIT_OK;
    if (all.n < needed)
        status = pli_fail(err, PLAIT_EINVAL, "--folds %d: there are only %lld %s", folds->n, (long long)all.n,
                          all.n == folds->rows ? "rows" : "queries, whose rows stay together");
    if (!folds->in_order) qsort(all.item, (size_t)all.n, sizeof *all.item, by_label_and_key);
    if (status >= 0) (folds->in_order ? deal_in_order : deal)(&all, folds);
    pli_free(all.item);
    return status;
}

static plait_status open(int64_t rows, int32_t n, pli_folds *out, plait_error *err) {
    *out = (pli_folds){ .n = n, .rows = rows, .of = pli_array((size_t)rows + 1, sizeof *out->of) };
    if (out->of != NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for folds of %lld rows", (long long)rows);
}

plait_status pli_folds_make(const plait_data *data, const char *way, int32_t n, uint64_t seed, pli_folds *out,
                            plait_error *err) {
    pli_dataset *set = NULL;
    PLI_TRY(open(plait_data_rows(data), n, out, err));
    out->in_order = pli_is(way, "ordered");
    plait_status status = pli_dataset_of_memory(data, 0, 1, &set, err);
    if (status >= 0) status = fill(set, pli_folds_way(data, way), seed, out, err);
    pli_dataset_destroy(&set);
    if (status < 0) pli_folds_free(out);
    return status;
}

void pli_folds_free(pli_folds *folds) {
    for (int32_t f = 0; folds->name != NULL && f < folds->n; f++) pli_free(folds->name[f]);
    pli_free(folds->name);
    pli_free(folds->of);
    folds->of = NULL;
    folds->name = NULL;
}

/* --- from a file -------------------------------------------------------------------------------------------------- */

/* A row's line of the file. */
typedef struct line {
    const char *text;
    int64_t     number, row; /* number: if all lines are numbers */
} line;

static int by_number(const void *left, const void *right) {
    const line *a = left, *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}
static int by_text(const void *left, const void *right) {
    return strcmp(((const line *)left)->text, ((const line *)right)->text);
}

/* Cuts text into its lines [rows]. *numbers_out: each is a number. */
static plait_status cut_lines(const char *path, char *text, int64_t rows, line *lines, bool *numbers_out,
                              plait_error *err) {
    int64_t n = 0;
    *numbers_out = true;
    for (char *at = text; *at != '\0'; n++) {
        char *end = at + strcspn(at, "\n"), *next = *end == '\n' ? end + 1 : end;
        if (end > at && end[-1] == '\r') end--;
        *end = '\0';
        if (n == rows) return pli_fail(err, PLAIT_EFORMAT, "%s:%lld: the data have only %lld rows", path,
                                       (long long)n + 1, (long long)rows);
        if (*at == '\0')
            return pli_fail(err, PLAIT_EFORMAT, "%s:%lld: expected the number or the name of a fold, found nothing",
                            path, (long long)n + 1);
        lines[n] = (line){ .text = at, .row = n };
        *numbers_out = *numbers_out && pli_parse_i64(at, &lines[n].number);
        at = next;
    }
    if (n == rows) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "%s: expected a number or a name for each of the %lld rows, a line each, found "
                    "%lld", path, (long long)rows, (long long)n);
}

/* Makes a fold of each run of equal lines, which are sorted. */
static plait_status number_folds(const char *path, const line *lines, bool numbers, pli_folds *folds,
                                 plait_error *err) {
    folds->name = pli_calloc(PLI_FOLDS_MAX, sizeof *folds->name);
    if (folds->name == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the names of folds");
    for (int64_t i = 0; i < folds->rows; i++) {
        const bool same = i > 0 && (numbers ? by_number : by_text)(&lines[i - 1], &lines[i]) == 0;
        if (!same && folds->n == PLI_FOLDS_MAX)
            return pli_fail(err, PLAIT_EFORMAT, "%s: more than %d folds", path, PLI_FOLDS_MAX);
        if (!same && (folds->name[folds->n++] = pli_strdup(lines[i].text)) == NULL)
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the names of folds");
        folds->of[lines[i].row] = folds->n - 1;
    }
    if (folds->n >= 2) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "%s: less than two folds", path);
}

plait_status pli_folds_read(const char *path, int64_t rows, pli_folds *out, plait_error *err) {
    pli_text     text = { 0 };
    bool         numbers = false;
    line        *lines = pli_array((size_t)rows + 1, sizeof *lines);
    plait_status status = open(rows, 0, out, err);
    if (status >= 0 && lines == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for folds of %lld rows", (long long)rows);
    if (status >= 0) status = pli_read_whole(path, (size_t)rows * LINE_MOST + 64, &text, err);
    if (status >= 0)
        status = cut_lines(path, text.data != NULL ? text.data : (char[]){ 0 }, rows, lines, &numbers, err);
    if (status >= 0) {
        qsort(lines, (size_t)rows, sizeof *lines, numbers ? by_number : by_text);
        status = number_folds(path, lines, numbers, out, err);
    }
    pli_free(lines);
    pli_text_free(&text);
    if (status < 0) pli_folds_free(out);
    return status;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Is the column, which has the groups and is no feature, listed as one of texts? */
static bool is_listed(const char *columns, const char *column) {
    const size_t length = strlen(column);
    for (const char *at = columns; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, column, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

bool pli_folds_check(const pli_command *command, const pli_opts *own, const char *group, const char *from,
                     const char *split, const char *text_columns) {
    const bool folds = pli_opts_is_given(own, "folds") || pli_opts_is_given(own, "split");
    if (from != NULL && group != NULL)
        pli_cli_usage("%s: --folds-from and --group both say which rows stay together; give one of them",
                      command->name);
    else if (from != NULL && folds)
        pli_cli_usage("%s: --folds-from says which rows make a fold, and how many there are; leave --folds and --split "
                      "out", command->name);
    else if (group != NULL && !pli_is(split, "auto") && !pli_is(split, "rows"))
        pli_cli_usage("%s: --split %s is refused with --group: whole groups go into a fold, whatever their classes and "
                      "their place; leave --split out", command->name, split);
    else if (group != NULL && is_listed(text_columns, group))
        pli_cli_usage("%s: --text-columns %s is refused with --group %s: the column of groups is no feature; leave it "
                      "out of --text-columns", command->name, text_columns, group);
    else
        return true;
    return false;
}

/* --- what has no rows to put into folds --------------------------------------------------------------------------- */

static plait_status refuse_text(const pli_command *command, const char *model, plait_error *err) {
    return pli_fail(err, PLAIT_EREFUSED, "model %s is refused with %s: the windows of a text are no rows of their own; "
                    "hold out a part of the text by --validation, with 'plait train'", model, command->name);
}

plait_status pli_folds_check_files(const pli_command *command, const char *model, const plait_data_opts *files,
                                   plait_error *err) {
    pli_dataset *set = NULL;
    if (!files->apart) return PLAIT_OK;
    PLI_TRY(pli_dataset_open(files, NULL, 0, 1, &set, err)); /* it finds the format, and reads no rows */
    const bool text = pli_schema_row_labels(pli_dataset_schema(set)) > 1;
    pli_dataset_destroy(&set);
    return text ? refuse_text(command, model, err) : PLAIT_OK;
}

plait_status pli_folds_check_data(const pli_command *command, const char *model, const plait_data *data,
                                  plait_error *err) {
    return plait_data_labels(data) == plait_data_rows(data) ? PLAIT_OK : refuse_text(command, model, err);
}

/* --- rows of a fold ----------------------------------------------------------------------------------------------- */

static bool takes(const pli_folds *folds, int64_t row, int32_t f, bool held_out) {
    if (held_out) return folds->of[row] == f;
    return folds->in_order ? folds->of[row] < f : folds->of[row] != f;
}

plait_status pli_folds_take(const pli_folds *folds, const plait_data *data, int32_t f, bool held_out,
                            plait_data **data_out, plait_error *err) {
    int64_t *rows = pli_array((size_t)folds->rows + 1, sizeof *rows), n = 0;
    if (rows == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows", (long long)folds->rows);
    for (int64_t row = 0; row < folds->rows; row++)
        if (takes(folds, row, f, held_out)) rows[n++] = row;
    const plait_status status = plait_data_take(data, rows, n, data_out, err);
    pli_free(rows);
    return status;
}

plait_status pli_folds_take_share(const pli_folds *folds, const plait_data *data, int32_t f, double share,
                                  uint64_t seed, plait_data **data_out, plait_error *err) {
    const int64_t all = plait_data_rows(data);
    int64_t      *rows = pli_array((size_t)all + 1, sizeof *rows), n = 0;
    if (rows == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows", (long long)all);
    for (int64_t row = 0; row < all; row++) {
        pli_random random = pli_random_at(seed, PLI_RANDOM_SPLIT, UINT64_MAX, (uint64_t)row); /* no block has it */
        if (f >= 0 && !takes(folds, row, f, false)) continue;
        if (share >= 1 || pli_random_f64(&random) < share) rows[n++] = row;
    }
    const plait_status status = plait_data_take(data, rows, n, data_out, err);
    pli_free(rows);
    return status;
}

/* --- as the options say ------------------------------------------------------------------------------------------- */

plait_status pli_folds_load(const pli_fold_words *words, const pli_train_plan *plan, pli_fold_groups *groups,
                            plait_data **data_out, plait_error *err) {
    plait_data_opts files = plan->data;
    const char     *model = plan->train.model;
    PLI_TRY(pli_train_reads(&plan->train, &files, err));
    files.threads = (int32_t)pli_cores();
    PLI_TRY(pli_folds_check_files(words->command, model, &files, err));
    if (words->group != NULL) PLI_TRY(pli_fold_groups_read(&files, words->group, groups, err));
    files.group_column = words->group;
    PLI_TRY(plait_data_read(&files, data_out, err));
    return pli_folds_check_data(words->command, model, *data_out, err);
}

plait_status pli_folds_of(const pli_fold_words *words, const char *model, const pli_fold_groups *groups,
                          const plait_data *data, pli_folds *out, plait_error *err) {
    const int32_t  n = (int32_t)words->n;
    const uint64_t seed = (uint64_t)words->seed;
    if (words->from != NULL) return pli_folds_read(words->from, plait_data_rows(data), out, err);
    if (words->group != NULL) return pli_folds_group(groups, n, seed, out, err);
    return pli_folds_make(data, pli_folds_settle(model, words->split), n, seed, out, err);
}
