/* What is learnt from the rows of csv and tsv: dictionaries of texts, means of numbers; and the new keys of rows
 * when the workers have agreed. */
#include <math.h>

#include "data/formats/table/table.h"

enum { MAX_TEXTS = 1 << 20 };

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for the texts of a column");
}

/* --- distinct texts ------------------------------------------------------------------------------------------- */

/* The texts of one column in one block, by hash. Different texts of equal hash (2^-64) take the next free hash. */
typedef struct texts {
    pli_keymap map;
    char     **text;
    int64_t    capacity;
} texts;

static bool add_text(texts *set, const char *text, size_t length) {
    for (uint64_t hash = pli_hash_bytes(text, length, 0);; hash++) {
        int64_t at = pli_keymap_find(&set->map, hash);
        if (at >= 0 && strncmp(set->text[at], text, length) == 0 && set->text[at][length] == '\0') return true;
        if (at >= 0) continue;
        void *memory = set->text;
        if (!pli_grow(&memory, &set->capacity, set->map.n + 1, sizeof *set->text)) return false;
        set->text = memory;
        char *copy = pli_malloc(length + 1);
        if (copy == NULL) return false;
        memcpy(copy, text, length);
        copy[length] = '\0';
        if (pli_keymap_add(&set->map, hash) < 0) {
            pli_free(copy);
            return false;
        }
        set->text[set->map.n - 1] = copy;
        return true;
    }
}

static void free_texts(texts *set, int64_t keep_from) {
    for (int64_t i = keep_from; i < set->map.n; i++) pli_free(set->text[i]);
    pli_free(set->text);
    pli_keymap_destroy(&set->map);
}

typedef struct learn_job {
    pli_dataset *dataset;
    texts       *set;    /* [own, columns] */
    uint8_t     *failed; /* [own] out of memory */
} learn_job;

static bool wanted(const pli_table_rules *t, const pli_table_cell *c) {
    return c->column >= 0 && (c->label_is_text || (c->role == PLI_ROLE_TEXT && t->schema->hash_bits == 0));
}

/* Malformed lines are left for the parser to refuse. */
static bool learn_line(const pli_table_rules *t, const unsigned char *line, const unsigned char *end, texts *set,
                       pli_text *buffer) {
    pli_cells cells = pli_cells_of(line, end, t->delimiter);
    pli_cell  cell;
    bool      bad = false;
    for (int64_t i = 0; i < t->cells && pli_cells_next(&cells, &cell, &bad); i++) {
        size_t length;
        if (!wanted(t, &t->cell[i]) || pli_cell_is_missing(&cell)) continue;
        const char *text = pli_cell_text(&cell, buffer, &length);
        if (text == NULL || !add_text(&set[t->cell[i].column], text, length)) return false;
    }
    return true;
}

static void learn_block(void *user, int64_t own, int32_t thread) {
    learn_job         *job = user;
    const pli_dataset *d = job->dataset;
    texts             *set = &job->set[own * d->schema->columns];
    pli_text           buffer = { 0 };
    (void)thread;
    const pli_run_of_segments mine = pli_segments_of(d, d->first + (int32_t)own);
    for (int64_t i = mine.from; i < mine.to; i++) {
        const pli_source    *source = &d->sources->source[d->segment[i].source];
        const unsigned char *p = source->data + d->segment[i].from, *to = source->data + d->segment[i].to, *next;
        for (p = pli_table_reader.row(p, to); p < to && !job->failed[own]; p = pli_table_reader.row(next, to)) {
            const unsigned char *end = pli_line_end(p, to, &next);
            job->failed[own] = !learn_line(d->table, p, end, set, &buffer);
        }
        pli_source_drop(source, d->segment[i].from, d->segment[i].to);
    }
    pli_text_free(&buffer);
}

/* Joins the sets of all own blocks into the schema's dictionaries. */
static plait_status join_texts(learn_job *job, plait_error *err) {
    pli_schema *schema = job->dataset->schema;
    for (int32_t own = 0; own < job->dataset->own; own++) {
        if (job->failed[own]) return no_memory(err);
        for (int64_t c = 0; c < schema->columns; c++) {
            texts   *set = &job->set[own * schema->columns + c];
            pli_dict dict = { 0 };
            if (set->map.n == 0) continue;
            if (!pli_dict_set(&dict, set->text, set->map.n)) return no_memory(err);
            free_texts(set, set->map.n); /* the dictionary owns the texts now */
            *set = (texts){ .text = NULL };
            bool good = pli_dict_merge(&schema->column[c].dict, &dict);
            pli_dict_free(&dict);
            if (!good) return no_memory(err);
            if (schema->column[c].dict.n > MAX_TEXTS)
                return pli_fail(err, PLAIT_EFORMAT,
                                "column \"%.60s\" has more than %d different texts: leave it out, or use --hash-bits",
                                schema->column[c].name, MAX_TEXTS);
        }
    }
    pli_schema_number(schema);
    if (schema->features > (int64_t)UINT32_MAX)
        return pli_fail(err, PLAIT_EFORMAT, "more than 2^32 features: use --hash-bits");
    return PLAIT_OK;
}

plait_status pli_table_learn(pli_dataset *d, pli_pool *pool, plait_error *err) {
    if (d->table->fixed || !d->table->has_text) return PLAIT_OK;
    int64_t      sets = (int64_t)d->own * d->schema->columns;
    learn_job    job = { .dataset = d,
                         .set = pli_calloc((size_t)sets, sizeof *job.set),
                         .failed = pli_calloc((size_t)d->own, 1) };
    plait_status status = PLAIT_OK;
    if (job.set == NULL || job.failed == NULL)
        status = no_memory(err);
    else
        pli_pool_for(pool, d->own, learn_block, &job);
    if (status == PLAIT_OK) status = join_texts(&job, err);
    for (int64_t i = 0; job.set != NULL && i < sets; i++) free_texts(&job.set[i], 0);
    pli_free(job.set);
    pli_free(job.failed);
    return status;
}

/* --- means ---------------------------------------------------------------------------------------------------- */

/* The column of a key: the last column whose first key is not above it; only numbers and texts have keys. */
static int64_t column_of(const pli_schema *schema, uint64_t key) {
    int64_t low = 0, high = schema->columns;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (schema->column[middle].first_key <= key)
            low = middle;
        else
            high = middle;
    }
    while (low > 0 && schema->column[low].role != PLI_ROLE_NUMBER && schema->column[low].role != PLI_ROLE_TEXT) low--;
    return low;
}

bool pli_table_add_sums(const pli_dataset *d, pli_table_sums *sums, const pli_rows *rows) {
    const pli_schema *schema = d->schema;
    if (d->table->fixed || schema->hash_bits > 0) return true;
    if (sums->sum == NULL) sums->sum = pli_calloc((size_t)schema->columns, sizeof *sums->sum);
    if (sums->missing == NULL) sums->missing = pli_calloc((size_t)schema->columns, sizeof *sums->missing);
    if (sums->sum == NULL || sums->missing == NULL) return false;
    sums->rows += rows->b.rows;
    for (int64_t row = 0; row < rows->b.rows; row++) {
        int64_t column = 0;
        for (int64_t i = rows->b.row_start[row]; i < rows->b.row_start[row + 1];
             i++) { /* keys increase, and so do columns */
            while (column + 1 < schema->columns && schema->column[column + 1].first_key <= rows->b.col[i]) column++;
            float   value = rows->b.value != NULL ? rows->b.value[i] : 1.0f;
            int64_t at = schema->column[column].role == PLI_ROLE_NUMBER ? column : column_of(schema, rows->b.col[i]);
            if (schema->column[at].role != PLI_ROLE_NUMBER) continue;
            if (isnan(value))
                sums->missing[at]++;
            else
                pli_superacc_add(&sums->sum[at], value);
        }
    }
    return true;
}

plait_status pli_table_take_sums(pli_dataset *d, const pli_table_sums *sums, int64_t n, plait_error *err) {
    pli_schema *schema = d->schema;
    for (int64_t c = 0; c < schema->columns && !d->table->fixed && schema->hash_bits == 0; c++) {
        pli_column *column = &schema->column[c];
        if (column->role != PLI_ROLE_NUMBER) continue;
        if (column->sum == NULL && (column->sum = pli_calloc(1, sizeof *column->sum)) == NULL) return no_memory(err);
        for (int64_t i = 0; i < n; i++) {
            if (sums[i].sum == NULL) continue;
            pli_superacc_merge(column->sum, &sums[i].sum[c]);
            column->count += sums[i].rows - sums[i].missing[c];
        }
    }
    return PLAIT_OK;
}

void pli_table_free_sums(pli_table_sums *sums) {
    pli_free(sums->sum);
    pli_free(sums->missing);
    *sums = (pli_table_sums){ NULL, NULL, 0 };
}

void pli_table_fill(const pli_dataset *d, pli_rows *rows) {
    if (d->schema->keeps_missing) return;
    for (int64_t i = 0; i < rows->missings; i++) {
        int64_t entry = rows->missing[i];
        rows->b.value[entry] = (float)d->schema->column[column_of(d->schema, rows->b.col[entry])].mean;
    }
}

plait_status pli_table_settle(pli_dataset *d, plait_error *err) {
    pli_table_sums sums = { NULL, NULL, 0 };
    bool           good = true;
    for (int32_t i = 0; good && i < d->own; i++) good = pli_table_add_sums(d, &sums, &d->rows[i]);
    plait_status status = good ? pli_table_take_sums(d, &sums, 1, err) : no_memory(err);
    pli_table_free_sums(&sums);
    if (status < 0) return status;
    pli_schema_number(d->schema);
    for (int32_t i = 0; i < d->own; i++) pli_table_fill(d, &d->rows[i]);
    return PLAIT_OK;
}

/* --- agreeing --------------------------------------------------------------------------------------------------- */

/* Writes the place of each own text in the agreed dictionary, plus `first`, into map. false: a text is missing
 * there. */
static bool map_texts(const pli_dict *own, const pli_dict *agreed, uint32_t first, uint32_t *map) {
    for (int64_t i = 0; i < own->n; i++) {
        int64_t place = pli_dict_find(agreed, own->text[i], strlen(own->text[i]));
        if (place < 0) return false;
        map[i] = first + (uint32_t)place;
    }
    return true;
}

static bool map_keys(const pli_schema *own, const pli_schema *agreed, uint32_t *map) {
    for (int64_t c = 0; c < own->columns; c++) {
        const pli_column *column = &own->column[c], *to = &agreed->column[c];
        if (column->role == PLI_ROLE_NUMBER) map[column->first_key] = (uint32_t)to->first_key;
        if (column->role == PLI_ROLE_TEXT &&
            !map_texts(&column->dict, &to->dict, (uint32_t)to->first_key, &map[column->first_key]))
            return false;
    }
    return true;
}

static void renumber_rows(pli_rows *rows, const uint32_t *key, const uint32_t *label) {
    for (int64_t i = 0; key != NULL && i < rows->b.entries; i++) rows->b.col[i] = key[rows->b.col[i]];
    for (int64_t i = 0; label != NULL && i < rows->b.rows; i++)
        if (!isnan(rows->b.label[i])) rows->b.label[i] = label[(int64_t)rows->b.label[i]];
}

static plait_status renumber_all(pli_dataset *d, const pli_schema *agreed, uint32_t *key, uint32_t *label,
                                 plait_error *err) {
    const pli_schema *own = d->schema;
    const pli_column *from = pli_schema_label_column(own), *to = pli_schema_label_column(agreed);
    bool              texts_of_labels = own->label_kind == PLI_LABEL_TEXT;
    bool              good = (own->hash_bits > 0 || map_keys(own, agreed, key)) &&
                (!texts_of_labels || map_texts(&from->dict, &to->dict, 0, label));
    if (!good) return pli_fail(err, PLAIT_EMISMATCH, "the agreed dictionaries lack a text of this worker's rows");
    for (int32_t i = 0; i < d->own; i++)
        renumber_rows(&d->rows[i], own->hash_bits > 0 ? NULL : key, texts_of_labels ? label : NULL);
    return PLAIT_OK;
}

plait_status pli_table_renumber(pli_dataset *d, const pli_schema *agreed, plait_error *err) {
    const pli_schema *own = d->schema;
    const pli_column *labels = pli_schema_label_column(own);
    plait_status      status = PLAIT_OK;
    if (own->columns != agreed->columns || own->hash_bits != agreed->hash_bits)
        return pli_fail(err, PLAIT_EMISMATCH, "the agreed columns are not those of this worker");
    uint32_t *key = pli_array(own->hash_bits > 0 ? 1 : (size_t)own->features, sizeof *key);
    uint32_t *label = pli_array(labels != NULL ? (size_t)labels->dict.n : 0, sizeof *label);
    if (key == NULL || label == NULL)
        status = no_memory(err);
    else if (d->loaded)
        status = renumber_all(d, agreed, key, label, err);
    pli_free(key);
    pli_free(label);
    if (status < 0) return status;
    d->table->schema = agreed;
    return PLAIT_OK;
}
