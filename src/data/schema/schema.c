/* What columns and labels mean: building a schema, joining parts, asking it. schema_json.c has the JSON. */
#include "data/schema/schema.h"

#include <stdlib.h>
#include <string.h>

#include "data/formats/libsvm.h"
#include "data/schema/names.h"

/* --- life ------------------------------------------------------------------------------------------------- */

pli_schema *pli_schema_create(void) { return pli_calloc(1, sizeof(pli_schema)); }

static void free_column(pli_column *column) {
    pli_free(column->name);
    pli_free(column->sum);
    pli_dict_free(&column->dict);
}

void pli_schema_destroy(pli_schema **schema) {
    if (schema == NULL || *schema == NULL) return;
    for (int64_t i = 0; i < (*schema)->columns; i++) free_column(&(*schema)->column[i]);
    pli_free((*schema)->column);
    pli_free((*schema)->label);
    pli_free((*schema)->segment_rows);
    pli_free((*schema)->interactions);
    pli_free((*schema)->ngram);
    for (int64_t i = 0; i < (*schema)->names; i++) pli_free((*schema)->name[i]);
    pli_free((*schema)->name);
    pli_free((*schema)->name_key);
    pli_free((*schema)->origin);
    pli_free(*schema);
    *schema = NULL;
}

pli_column *pli_schema_add_column(pli_schema *schema, const char *name, size_t length, pli_role role) {
    if ((schema->columns & (schema->columns - 1)) == 0) { /* room for the next power of two */
        size_t      room = schema->columns > 0 ? 2 * (size_t)schema->columns : 1;
        pli_column *column = pli_realloc(schema->column, room, sizeof *column);
        if (column == NULL) return NULL;
        schema->column = column;
    }
    pli_column *column = &schema->column[schema->columns];
    *column = (pli_column){ .name = pli_malloc(length + 1), .role = role };
    if (column->name == NULL) return NULL;
    memcpy(column->name, name, length);
    column->name[length] = '\0';
    schema->columns++;
    return column;
}

static bool copy_bytes(void **to, const void *from, size_t count, size_t bytes) {
    *to = NULL;
    if (from == NULL) return true;
    *to = pli_array(count, bytes);
    if (*to != NULL) memcpy(*to, from, count * bytes);
    return *to != NULL;
}

static bool copy_column(pli_schema *copy, const pli_column *column) {
    pli_column *to = pli_schema_add_column(copy, column->name, strlen(column->name), column->role);
    if (to == NULL) return false;
    to->first_key = column->first_key;
    to->mean = column->mean;
    to->count = column->count;
    return copy_bytes((void **)&to->sum, column->sum, 1, sizeof *to->sum) && pli_dict_merge(&to->dict, &column->dict);
}

static bool copy_text(char **to, const char *from) {
    *to = from != NULL ? pli_strdup(from) : NULL;
    return from == NULL || *to != NULL;
}

static bool copy_names(pli_schema *copy, const pli_schema *schema) {
    copy->name = pli_calloc((size_t)schema->names, sizeof *copy->name);
    copy->name_key = pli_array((size_t)schema->names, sizeof *copy->name_key);
    if (copy->name == NULL || copy->name_key == NULL) return false;
    for (; copy->names < schema->names; copy->names++) {
        copy->name_key[copy->names] = schema->name_key[copy->names];
        if (!copy_text(&copy->name[copy->names], schema->name[copy->names])) return false;
    }
    return true;
}

pli_schema *pli_schema_copy(const pli_schema *schema) {
    pli_schema *copy = pli_schema_create();
    if (copy == NULL) return NULL;
    *copy = *schema;
    copy->column = NULL;
    copy->columns = 0;
    copy->segment_rows = NULL;
    copy->label = NULL;
    copy->interactions = copy->ngram = NULL;
    copy->name = NULL;
    copy->name_key = NULL;
    copy->names = 0;
    copy->origin = NULL;
    bool good =
        copy_text(&copy->interactions, schema->interactions) && copy_text(&copy->ngram, schema->ngram) &&
        (schema->names == 0 || copy_names(copy, schema)) &&
        copy_bytes((void **)&copy->origin, schema->origin, (size_t)schema->origins, sizeof *schema->origin) &&
        copy_bytes((void **)&copy->label, schema->label, (size_t)schema->labels, sizeof *schema->label) &&
        copy_bytes((void **)&copy->segment_rows, schema->segment_rows, (size_t)schema->segments, sizeof(int64_t));
    for (int64_t i = 0; good && i < schema->columns; i++) good = copy_column(copy, &schema->column[i]);
    if (!good) pli_schema_destroy(&copy);
    return copy;
}

/* --- numbering -------------------------------------------------------------------------------------------- */

/* Rounded to a float: the last bits of the double could depend on how often parts were counted. */
static double mean_of(const pli_superacc *sum, int64_t count) {
    return count > 0 ? (float)(pli_superacc_value(sum) / (double)count) : 0;
}

void pli_schema_set_mean(pli_column *column, const pli_superacc *sum, int64_t count) {
    column->mean = mean_of(sum, count);
    column->count = count;
}

static void number_columns(pli_schema *schema) {
    uint64_t key = 0;
    for (int64_t i = 0; i < schema->columns; i++) {
        pli_column *column = &schema->column[i];
        column->first_key = key;
        if (column->role == PLI_ROLE_NUMBER) key++;
        if (column->role == PLI_ROLE_TEXT) key += (uint64_t)column->dict.n;
        if (column->sum != NULL) column->mean = mean_of(column->sum, column->count);
    }
    schema->features = (int64_t)key;
}

uint64_t pli_schema_keys(const pli_schema *schema) {
    const bool by_index = schema->format == PLI_FORMAT_LIBSVM && schema->hash_bits == 0 && schema->any_index;
    return by_index ? schema->max_index - (uint64_t)schema->index_base + 1 : (uint64_t)schema->features;
}

void pli_schema_number(pli_schema *schema) {
    if (schema->format == PLI_FORMAT_TABLE)
        number_columns(schema);
    else if (schema->format == PLI_FORMAT_LIBSVM) {
        if (!schema->base_is_sure) schema->index_base = schema->zero_index ? 0 : 1;
        uint64_t features = schema->any_index ? schema->max_index - (uint64_t)schema->index_base + 1 : 0;
        schema->features = features > INT64_MAX ? INT64_MAX : (int64_t)features;
    }
    else if (schema->format == PLI_FORMAT_IDX) {
        schema->features = 1;
        for (int32_t i = 0; i < schema->axes; i++) schema->features *= schema->length[i];
    }
    else if (schema->format == PLI_FORMAT_CHARS)
        schema->features = schema->window * (schema->labels + 1);
    if (schema->hash_bits > 0) schema->features = (int64_t)1 << schema->hash_bits;
}

/* --- joining ---------------------------------------------------------------------------------------------- */

bool pli_schema_merge_labels(pli_schema *into, const pli_schema *from) {
    if (from->label_kind == PLI_LABEL_NONE) return true;
    if (into->label_kind == PLI_LABEL_REAL || from->label_kind == PLI_LABEL_REAL) {
        into->label_kind = PLI_LABEL_REAL;
        into->labels = 0;
        return true;
    }
    into->label_kind = from->label_kind;
    int64_t n = into->labels + from->labels, kept = 0;
    double *label = pli_array((size_t)n, sizeof *label);
    if (label == NULL) return false;
    if (into->labels > 0) memcpy(label, into->label, (size_t)into->labels * sizeof *label);
    if (from->labels > 0) memcpy(label + into->labels, from->label, (size_t)from->labels * sizeof *label);
    if (n > 0) qsort(label, (size_t)n, sizeof *label, pli_order_f64);
    for (int64_t i = 0; i < n; i++)
        if (kept == 0 || label[i] != label[kept - 1]) label[kept++] = label[i];
    pli_free(into->label);
    into->label = label;
    into->labels = kept;
    if (kept > PLI_MAX_LABELS) {
        into->label_kind = PLI_LABEL_REAL;
        into->labels = 0;
    }
    return true;
}

static void drop_sum(pli_column *column) {
    pli_free(column->sum);
    column->sum = NULL;
}

/* Sums are added, unless one of the two schemas knows the mean of the whole data set. */
static bool merge_column(pli_column *into, bool into_is_whole, const pli_column *from, bool from_is_whole) {
    if (into_is_whole || from_is_whole) {
        if (!into_is_whole) {
            into->mean = from->mean;
            into->count = from->count;
        }
        drop_sum(into);
        return pli_dict_merge(&into->dict, &from->dict);
    }
    if (into->sum != NULL && from->sum != NULL) {
        pli_superacc_merge(into->sum, from->sum);
    } else { /* both are joined already: weighted by count */
        double count = (double)(into->count + from->count);
        if (count > 0) into->mean = (into->mean * (double)into->count + from->mean * (double)from->count) / count;
        drop_sum(into);
    }
    into->count += from->count;
    return pli_dict_merge(&into->dict, &from->dict);
}

static bool same_text(const char *a, const char *b) { return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0); }

static bool same_columns(const pli_schema *a, const pli_schema *b) {
    if (a->format != b->format || a->columns != b->columns || a->hash_bits != b->hash_bits ||
        a->segments != b->segments || a->axes != b->axes || a->window != b->window || a->apart != b->apart ||
        a->unlabelled != b->unlabelled || a->keeps_missing != b->keeps_missing ||
        !pli_schema_same_origins(a, b) || !same_text(a->interactions, b->interactions) ||
        !same_text(a->ngram, b->ngram) ||
        memcmp(a->length, b->length, (size_t)a->axes * sizeof *a->length) != 0)
        return false;
    for (int64_t i = 0; i < a->columns; i++)
        if (a->column[i].role != b->column[i].role || strcmp(a->column[i].name, b->column[i].name) != 0) return false;
    return true;
}

static plait_status merge_two(pli_schema *into, const pli_schema *from, int64_t worker, plait_error *err) {
    if (!same_columns(into, from))
        return pli_fail(err, PLAIT_EMISMATCH,
                        "worker %lld reads other columns than worker 0: do both have the same data and options?",
                        (long long)worker);
    into->rows += from->rows;
    into->zero_index |= from->zero_index;
    into->any_index |= from->any_index;
    for (int k = 0; k < 4; k++) into->letters[k] |= from->letters[k];
    if (from->max_index > into->max_index) into->max_index = from->max_index;
    for (int64_t i = 0; i < into->segments; i++) into->segment_rows[i] += from->segment_rows[i];
    if (from->least_label < into->least_label) into->least_label = from->least_label;
    bool good = pli_schema_merge_labels(into, from);
    for (int64_t i = 0; good && i < into->columns; i++)
        good = merge_column(&into->column[i], into->whole, &from->column[i], from->whole);
    into->whole |= from->whole;
    return good ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the names and labels of the data");
}

plait_status pli_schema_merge(const pli_schema *const *parts, int64_t n, pli_schema **schema_out, plait_error *err) {
    if (n < 1) return pli_fail(err, PLAIT_EINVAL, "no schemas to join");
    pli_schema *schema = pli_schema_copy(parts[0]);
    if (schema == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the names and labels of the data");
    for (int64_t i = 1; i < n; i++) {
        plait_status status = merge_two(schema, parts[i], i, err);
        if (status < 0) {
            pli_schema_destroy(&schema);
            return status;
        }
    }
    pli_schema_number(schema);
    for (int64_t i = 0; i < schema->columns; i++) drop_sum(&schema->column[i]);
    schema->whole = true;
    *schema_out = schema;
    return PLAIT_OK;
}

/* --- asking ----------------------------------------------------------------------------------------------- */

const pli_column *pli_schema_label_column(const pli_schema *schema) {
    for (int64_t i = 0; i < schema->columns; i++)
        if (schema->column[i].role == PLI_ROLE_LABEL) return &schema->column[i];
    return NULL;
}

static const pli_dict *label_texts(const pli_schema *schema) {
    const pli_column *column = pli_schema_label_column(schema);
    return schema->label_kind == PLI_LABEL_TEXT && column != NULL ? &column->dict : NULL;
}

bool pli_schema_label_is_text(const pli_schema *schema) { return label_texts(schema) != NULL; }

const char *pli_schema_label_name(const pli_schema *schema) {
    const pli_column *column = pli_schema_label_column(schema);
    return column != NULL ? column->name : NULL;
}

bool pli_schema_keeps_missing(const pli_schema *schema) { return schema->keeps_missing; }
bool pli_schema_has_labels(const pli_schema *schema) { return !schema->unlabelled; }

int64_t pli_schema_features(const pli_schema *schema) { return schema->features; }
int64_t pli_schema_rows(const pli_schema *schema) { return schema->rows; }

int32_t pli_schema_row_shape(const pli_schema *schema, int64_t length_out[4]) {
    const bool image = schema->format == PLI_FORMAT_IDX && schema->axes > 0;
    if (schema->format == PLI_FORMAT_CHARS) {
        length_out[0] = schema->window;
        length_out[1] = schema->labels + 1;
        return 2;
    }
    length_out[0] = schema->features;
    for (int32_t i = 0; image && i < schema->axes; i++) length_out[i] = schema->length[i];
    return image ? schema->axes : 1;
}

int32_t pli_schema_symbols(const pli_schema *schema) {
    return schema->format == PLI_FORMAT_CHARS ? (int32_t)schema->labels : 0;
}

int64_t pli_schema_row_labels(const pli_schema *schema) { return schema->apart ? schema->window : 1; }

int64_t pli_schema_labels(const pli_schema *schema) {
    const pli_dict *texts = label_texts(schema);
    if (texts != NULL) return texts->n <= PLI_MAX_LABELS ? texts->n : -1;
    return schema->label_kind == PLI_LABEL_REAL ? -1 : schema->labels;
}

plait_status pli_schema_declare_labels(pli_schema *schema, int64_t n, plait_error *err) {
    if (schema->label_kind != PLI_LABEL_INTEGER)
        return pli_fail(err, PLAIT_EFORMAT, "%lld classes are declared, but its labels are %s", (long long)n,
                        schema->label_kind == PLI_LABEL_TEXT ? "texts"
                        : schema->label_kind == PLI_LABEL_REAL
                            ? "not all whole numbers, or more than 65,536 different ones"
                            : "missing");
    for (int64_t k = 0; k < schema->labels; k++)
        if (schema->label[k] < 0 || schema->label[k] >= (double)n)
            return pli_fail(err, PLAIT_EFORMAT, "%lld classes are declared, 0 to %lld, but a row has label %.0f",
                            (long long)n, (long long)n - 1, schema->label[k]);
    double *label = pli_array((size_t)n, sizeof *label);
    if (label == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld labels", (long long)n);
    for (int64_t k = 0; k < n; k++) label[k] = (double)k;
    pli_free(schema->label);
    schema->label = label;
    schema->labels = n;
    return PLAIT_OK;
}

double pli_schema_least_label(const pli_schema *schema) { return schema->least_label; }

double pli_schema_label_value(const pli_schema *schema, int64_t k) {
    return label_texts(schema) != NULL ? (double)k : schema->label[k];
}

/* Writes a character as C does, so that a label stays on one line. */
static void add_character(int c, pli_text *text) {
    static const char plain[] = "\n\t\r\\", named[] = "ntr\\";
    const char       *at = c != 0 ? strchr(plain, c) : NULL;
    if (at != NULL) pli_text_add(text, "\\%c", named[at - plain]);
    else pli_text_add(text, c < ' ' || c > '~' ? "\\x%02x" : "%c", (unsigned)c);
}

void pli_schema_label_text(const pli_schema *schema, int64_t k, pli_text *text) {
    const pli_dict *texts = label_texts(schema);
    if (schema->format == PLI_FORMAT_CHARS) add_character((int)schema->label[k], text);
    else if (texts != NULL) pli_text_add(text, "%s", texts->text[k]);
    else pli_text_add(text, "%.0f", schema->label[k]); /* a whole number, with all its digits */
}

static void table_name(const pli_schema *schema, uint64_t key, pli_text *text) {
    for (int64_t i = 0; i < schema->columns; i++) {
        const pli_column *column = &schema->column[i];
        if (column->role == PLI_ROLE_NUMBER && column->first_key == key) {
            pli_text_add(text, "%s", column->name);
            return;
        }
        if (column->role == PLI_ROLE_TEXT && key >= column->first_key &&
            key < column->first_key + (uint64_t)column->dict.n) {
            pli_text_add(text, "%s=%s", column->name, column->dict.text[key - column->first_key]);
            return;
        }
    }
    pli_text_add(text, "%llu", (unsigned long long)key);
}

/* "3,14": the feature's place in the row's array. */
static void place_name(const pli_schema *schema, uint64_t key, pli_text *text) {
    uint64_t step = (uint64_t)schema->features;
    for (int32_t i = 0; i < schema->axes; i++) {
        step /= (uint64_t)schema->length[i];
        pli_text_add(text, "%s%llu", i > 0 ? "," : "", (unsigned long long)(key / step % (uint64_t)schema->length[i]));
    }
}

/* "-3=e": the character three before the label is an e. */
static void character_name(const pli_schema *schema, uint64_t key, pli_text *text) {
    const uint64_t symbols = (uint64_t)schema->labels + 1, symbol = key % symbols;
    pli_text_add(text, "-%llu=", (unsigned long long)((uint64_t)schema->window - key / symbols));
    if (symbol + 1 < symbols) add_character((int)schema->label[symbol], text);
    else pli_text_add(text, "other");
}

bool pli_schema_take_names(pli_schema *schema, pli_names *names) {
    uint32_t *order = pli_array((size_t)names->n, sizeof *order);
    char    **name = pli_array((size_t)names->n, sizeof *name);
    if (order == NULL || name == NULL || schema->names > 0) goto fail;
    for (int64_t i = 0; i < names->n; i++) order[i] = (uint32_t)i;
    if (!pli_sort_u64(names->n, names->key, order)) goto fail;
    for (int64_t i = 0; i < names->n; i++) name[i] = names->name[order[i]];
    schema->name_key = names->key;
    schema->name = name;
    schema->names = names->n;
    pli_free(names->name);
    names->key = NULL;
    names->name = NULL;
    names->n = 0;
    pli_free(order);
    return true;
fail:
    pli_free(order);
    pli_free(name);
    return false;
}

const char *pli_schema_column(const pli_schema *schema, int64_t i, int64_t *features_out, bool *texts_out) {
    if (schema->format != PLI_FORMAT_TABLE || schema->hash_bits > 0 || i < 0 || i >= schema->columns) return NULL;
    const pli_column *column = &schema->column[i];
    *texts_out = column->role == PLI_ROLE_TEXT;
    *features_out = *texts_out ? column->dict.n : column->role == PLI_ROLE_NUMBER;
    return column->name;
}

bool pli_schema_is_hashed(const pli_schema *schema) { return schema->hash_bits > 0; }

/* The name behind a hashed key; NULL: it is not known. */
static const char *hashed_name(const pli_schema *schema, uint64_t key) {
    int64_t low = 0, high = schema->names;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (schema->name_key[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low < schema->names && schema->name_key[low] == key ? schema->name[low] : NULL;
}

void pli_schema_feature_name(const pli_schema *schema, uint64_t key, pli_text *text) {
    if (schema->format == PLI_FORMAT_TABLE && schema->hash_bits == 0)
        table_name(schema, key, text);
    else if (schema->format == PLI_FORMAT_IDX && schema->axes > 0)
        place_name(schema, key, text);
    else if (schema->format == PLI_FORMAT_CHARS)
        character_name(schema, key, text);
    else if (hashed_name(schema, key) != NULL)
        pli_text_add(text, "%s", hashed_name(schema, key));
    else if (schema->hash_bits > 0)
        pli_text_add(text, "hash:%llu", (unsigned long long)key);
    else
        pli_text_add(text, "%llu",
                     (unsigned long long)key +
                         (unsigned long long)(schema->format == PLI_FORMAT_LIBSVM ? schema->index_base : 0));
}
