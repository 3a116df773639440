/* Vowpal Wabbit text into CSR, and the opening of a data set of it. */
#include "data/formats/vw/vw.h"

#include <string.h>

typedef const unsigned char *cursor;

/* --- rows ----------------------------------------------------------------------------------------------------- */

/* A hash that fits is its own key, so that small numbers do not collide; the upper bits decide about the others. */
static uint64_t fold(uint64_t hash, uint32_t bits) {
    return (hash ^ pli_hash_u64(hash >> bits)) & ((UINT64_C(1) << bits) - 1);
}

/* Gives names to the keys of a row that have none yet. */
static bool name_row(const pli_vw_rules *rules, const pli_vw_row *row, pli_names *names) {
    pli_text text = { 0 };
    bool     good = true;
    for (int64_t i = 0; good && i < row->n; i++) {
        const uint64_t key = fold(row->feature[i].hash, (uint32_t)rules->hash_bits);
        if (!pli_names_wants(names, key)) continue;
        text.length = 0;
        pli_vw_feature_name(row, i, &text);
        good = !text.failed && pli_names_give(names, key, text.data != NULL ? text.data : "", text.length);
    }
    pli_text_free(&text);
    return good;
}

enum { SORTED = 256 }; /* so many features of a row are sorted on the stack */

/* Sorts keys [n] into sorted [n], each with its place below. Hashed keys are spread evenly, so a key's rank is nearly
 * known: each goes to the bucket of its rank, and few have to be moved from there. */
static void sort_keys(const uint32_t *keys, int64_t n, uint32_t bits, uint64_t *sorted) {
    uint16_t end[SORTED + 1] = { 0 };
    for (int64_t i = 0; i < n; i++) end[((uint64_t)keys[i] * (uint64_t)n >> bits) + 1]++;
    for (int64_t i = 0; i < n; i++) end[i + 1] = (uint16_t)(end[i + 1] + end[i]);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bucket = (uint64_t)keys[i] * (uint64_t)n >> bits;
        sorted[end[bucket]++] = (uint64_t)keys[i] << 32 | (uint64_t)i;
    }
    for (int64_t i = 1; i < n; i++) {
        const uint64_t key = sorted[i];
        int64_t        to = i;
        for (; to > 0 && sorted[to - 1] > key; to--) sorted[to] = sorted[to - 1];
        sorted[to] = key;
    }
}

/* Sorts a row's entries, which begin at `from`, and adds up the values of equal keys. false: out of memory. */
static bool sort_row(pli_rows *rows, int64_t from, uint32_t bits) {
    pli_block    *b = &rows->b;
    const int64_t n = b->entries - from;
    uint64_t      sorted[SORTED];
    float         values[SORTED];
    int64_t       at = from - 1, repeats = 0, repeat;
    if (n > SORTED) return pli_rows_sort_tail(rows, from, 0, true, &repeat);
    sort_keys(b->col + from, n, bits, sorted);
    for (int64_t i = 1; i < n; i++) repeats += sorted[i] >> 32 == sorted[i - 1] >> 32;
    if (repeats > 0 && !pli_rows_need_values(rows)) return false;
    if (b->value == NULL) {
        for (int64_t i = 0; i < n; i++) b->col[from + i] = (uint32_t)(sorted[i] >> 32);
        return true;
    }
    memcpy(values, b->value + from, (size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++) {
        const float value = values[(uint32_t)sorted[i]];
        const bool  again = i > 0 && sorted[i] >> 32 == sorted[i - 1] >> 32;
        at += !again;
        b->col[at] = (uint32_t)(sorted[i] >> 32);
        b->value[at] = again ? b->value[at] + value : value;
    }
    b->entries = at + 1;
    return true;
}

/* Writes the folded features behind the last row; *ordered_out: are their keys increasing? false: out of memory. */
static bool put_features(const pli_vw_rules *rules, const pli_vw_row *row, pli_rows *rows, bool *ordered_out) {
    pli_block     *b = &rows->b;
    const uint32_t bits = (uint32_t)rules->hash_bits;
    int64_t        falls = 0, plain = 0;
    uint64_t       next = 0;
    if (b->entries + row->n > rows->entry_capacity && !pli_rows_reserve(rows, row->n)) return false;
    for (int64_t i = 0; i < row->n; i++) plain += row->feature[i].value == 1.0f;
    if (plain < row->n && !pli_rows_need_values(rows)) return false;
    for (int64_t i = 0; i < row->n; i++) {
        const uint64_t key = fold(row->feature[i].hash, bits);
        falls += key < next;
        next = key + 1;
        b->col[b->entries + i] = (uint32_t)key;
    }
    for (int64_t i = 0; b->value != NULL && i < row->n; i++) b->value[b->entries + i] = row->feature[i].value;
    b->entries += row->n;
    *ordered_out = falls == 0;
    return true;
}

/* Adds a row. false: out of memory. */
static bool put_row(const pli_vw_rules *rules, const pli_vw_row *row, pli_rows *rows, pli_found *found) {
    pli_block    *b = &rows->b;
    const int64_t from = b->entries;
    bool          ordered;
    if (b->rows == rows->row_capacity && !pli_rows_reserve_rows(rows, 1)) return false;
    if (!put_features(rules, row, rows, &ordered)) return false;
    if (!ordered && !sort_row(rows, from, (uint32_t)rules->hash_bits)) return false;
    if (row->weight != 1.0f && !pli_rows_need_weights(rows)) return false;
    if (!pli_found_label(found, row->label)) return false;
    if (found->names != NULL && !name_row(rules, row, found->names)) return false;
    if (b->weight != NULL) b->weight[b->rows] = row->weight;
    b->label[b->rows++] = row->label;
    b->row_start[b->rows] = b->entries;
    return true;
}

plait_status pli_vw_parse(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                          pli_found *found, pli_bad *bad) {
    pli_vw_row   row = { 0 };
    plait_status status = PLAIT_OK;
    bad->at = NULL;
    if (!pli_rows_reserve(rows, (to - from) / 8 + 1) || !pli_rows_reserve_rows(rows, 1)) return PLAIT_ENOMEM;
    for (cursor p = pli_vw_reader.row(from, to); p < to && status == PLAIT_OK; p = pli_vw_reader.row(p, to)) {
        status = pli_vw_line(rules, p, &row, found, bad, &p);
        if (status == PLAIT_OK && !put_row(rules, &row, rows, found)) {
            bad->at = NULL;
            status = PLAIT_ENOMEM;
        }
    }
    pli_vw_row_free(&row);
    return status;
}

/* --- without parsing -------------------------------------------------------------------------------------------- */

/* The first byte of the row at or behind `from`, past blank lines. */
static const unsigned char *next_row(const unsigned char *from, const unsigned char *to) {
    while (from < to && (*from == ' ' || *from == '\t' || *from == '\r' || *from == '\n')) from++;
    return from;
}

/* Looks at the label of the row [p, end) and at its namespaces. What is malformed is left for the parser to refuse. */
static bool look(const void *own, const unsigned char *p, const unsigned char *end, pli_found *found) {
    const pli_vw_rules *rules = own;
    unsigned char       copy[64 + PLI_PARSE_PAD] = { 0 };
    double              label;
    memcpy(copy, p, end - p < 64 ? (size_t)(end - p) : 64);
    cursor after = pli_number_f64(copy, &label);
    if (after != NULL && (*after == ' ' || *after == '\t')) {
        found->passed_labels += rules->unlabelled;
        if (!rules->unlabelled && !pli_found_label(found, label)) return false;
    }
    for (cursor bar = p; rules->cross.terms > 0 && (bar = memchr(bar, '|', (size_t)(end - bar))) != NULL;) {
        const bool          named = ++bar < end && *bar > ' ' && *bar != ':' && *bar != '|';
        const unsigned char letter = named ? *bar : PLI_VW_DEFAULT_SPACE;
        found->letters[letter >> 6] |= UINT64_C(1) << (letter & 63);
    }
    return true;
}

const pli_reader pli_vw_reader = { .name = "vw", .parse = pli_vw_parse, .row = next_row, .look = look };

/* --- opening ------------------------------------------------------------------------------------------------------ */

static plait_status keep_text(const char *option, const char *asked, const pli_schema *fixed, char **kept,
                              plait_error *err) {
    if (asked == NULL || (fixed != NULL && *kept != NULL && strcmp(asked, *kept) == 0)) return PLAIT_OK;
    if (fixed != NULL)
        return pli_fail(err, PLAIT_EMISMATCH, "%s %s: the model was trained with %s", option, asked,
                        *kept != NULL ? *kept : "none");
    *kept = pli_strdup(asked);
    return *kept != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
}

plait_status pli_vw_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    pli_schema *schema = d->schema;
    if (fixed != NULL && fixed->format != PLI_FORMAT_VW)
        return pli_fail(err, PLAIT_EMISMATCH,
                        "the model was trained on rows in memory, whose features have numbers; vw text has names");
    if (schema->hash_bits == 0) schema->hash_bits = PLI_VW_BITS;
    PLI_TRY(keep_text("interactions", opts->interactions, fixed, &schema->interactions, err));
    PLI_TRY(keep_text("ngram", opts->ngram, fixed, &schema->ngram, err));
    pli_vw_rules *rules = d->vw = pli_calloc(1, sizeof *rules);
    if (rules == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the rules of vw text");
    rules->hash_bits = schema->hash_bits;
    rules->label_is_optional = fixed != NULL || schema->unlabelled;
    rules->unlabelled = schema->unlabelled;
    d->reader = &pli_vw_reader;
    d->rules = rules;
    return pli_vw_cross_read(schema->interactions, schema->ngram, &rules->cross, err);
}

void pli_vw_close(pli_vw_rules **rules) {
    pli_free(*rules);
    *rules = NULL;
}
