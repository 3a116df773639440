/* A schema as JSON: workers send it to each other, and the model file keeps it. */
#include <math.h>
#include <string.h>

#include "data/formats/libsvm.h"
#include "data/schema/schema.h"
#include "base/json.h"

/* 2: with origins, or labels that are counted. A program that knows neither would read the rows wrongly. */
enum { SCHEMA_VERSION = 2 };
#define MAX_ROWS (INT64_MAX >> 16) /* so that the rows of all workers can be added */

static const char *const format_names[] = { "none", "libsvm", "table", "idx", "text", "vw" };
static const char *const role_names[] = { "number", "text", "label", "weight" };
static const char *const label_names[] = { "none", "integer", "real", "text" };

/* --- writing ---------------------------------------------------------------------------------------------- */

static json_t *texts_json(const pli_dict *dict) {
    json_t *list = json_array();
    for (int64_t i = 0; i < dict->n; i++) json_array_append_new(list, json_string(dict->text[i]));
    return list;
}

static json_t *sum_json(const pli_superacc *sum) {
    json_t *list = json_array();
    for (int k = 0; k < PLI_SUPERACC_BINS; k++) {
        if (sum->bin[k] == 0) continue;
        json_array_append_new(list, json_integer(k));
        json_array_append_new(list, json_integer((json_int_t)(sum->bin[k] >> 64)));
        json_array_append_new(list, json_integer((json_int_t)(uint64_t)sum->bin[k]));
    }
    return list;
}

static json_t *column_json(const pli_column *column) {
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(column->name));
    json_object_set_new(object, "role", json_string(role_names[column->role]));
    if (column->role == PLI_ROLE_NUMBER) {
        json_object_set_new(object, "mean", json_real(column->mean));
        json_object_set_new(object, "count", json_integer(column->count));
        if (column->sum != NULL) json_object_set_new(object, "sum", sum_json(column->sum));
    }
    if (column->dict.n > 0) json_object_set_new(object, "texts", texts_json(&column->dict));
    return object;
}

static json_t *letters_json(const pli_schema *schema) {
    json_t *list = json_array();
    for (int k = 0; k < 4; k++) json_array_append_new(list, json_integer((json_int_t)schema->letters[k]));
    return list;
}

/* A list of key, name, key, name, ... */
static json_t *names_json(const pli_schema *schema) {
    json_t *list = json_array();
    for (int64_t i = 0; i < schema->names; i++) {
        json_array_append_new(list, json_integer((json_int_t)schema->name_key[i]));
        json_array_append_new(list, json_string(schema->name[i]));
    }
    return list;
}

/* A list of place, origin, place, origin, ... */
static json_t *origins_json(const pli_schema *schema) {
    json_t *list = json_array();
    for (int64_t i = 0; i < schema->origins; i++) {
        json_array_append_new(list, json_integer((json_int_t)schema->origin[i].at));
        json_array_append_new(list, json_real(schema->origin[i].value));
    }
    return list;
}

/* More labels than rows may show were declared, so they are 0 .. labels - 1. */
static bool are_counted(const pli_schema *schema) {
    return schema->label_kind == PLI_LABEL_INTEGER && schema->labels > PLI_MAX_LABELS;
}

static int version_of(const pli_schema *schema) {
    return schema->origins > 0 || are_counted(schema) ? SCHEMA_VERSION : 1;
}

static json_t *schema_json(const pli_schema *schema, bool for_model) {
    json_t *object = json_object();
    char    delimiter[2] = { schema->delimiter, '\0' };
    json_object_set_new(object, "version", json_integer(version_of(schema)));
    json_object_set_new(object, "format", json_string(format_names[schema->format]));
    json_object_set_new(object, "rows", json_integer(schema->rows));
    json_object_set_new(object, "features", json_integer(schema->features));
    json_object_set_new(object, "hash_bits", json_integer(schema->hash_bits));
    if (schema->format == PLI_FORMAT_LIBSVM) {
        json_object_set_new(object, "index_base", json_integer(schema->index_base));
        if (!for_model) json_object_set_new(object, "base_is_sure", json_boolean(schema->base_is_sure));
        if (!for_model) json_object_set_new(object, "zero_index", json_boolean(schema->zero_index));
        if (schema->any_index) json_object_set_new(object, "max_index", json_integer((json_int_t)schema->max_index));
    }
    if (schema->format == PLI_FORMAT_IDX) {
        json_t *shape = json_array();
        for (int32_t i = 0; i < schema->axes; i++) json_array_append_new(shape, json_integer(schema->length[i]));
        json_object_set_new(object, "shape", shape);
    }
    if (schema->format == PLI_FORMAT_CHARS) {
        json_object_set_new(object, "window", json_integer((json_int_t)schema->window));
        json_object_set_new(object, "apart", json_boolean(schema->apart));
    }
    if (schema->interactions != NULL)
        json_object_set_new(object, "interactions", json_string(schema->interactions));
    if (schema->ngram != NULL) json_object_set_new(object, "ngram", json_string(schema->ngram));
    if (schema->format == PLI_FORMAT_VW && !for_model) json_object_set_new(object, "letters", letters_json(schema));
    if (schema->names > 0) json_object_set_new(object, "names", names_json(schema));
    if (schema->origins > 0) json_object_set_new(object, "origins", origins_json(schema));
    json_object_set_new(object, "label_kind", json_string(label_names[schema->label_kind]));
    if (schema->least_label < 0 && !for_model)
        json_object_set_new(object, "least_label", json_real(schema->least_label));
    if (schema->unlabelled) json_object_set_new(object, "unlabelled", json_true());
    if (schema->keeps_missing) json_object_set_new(object, "keeps_missing", json_true());
    json_t    *labels = json_array();
    const bool counted = are_counted(schema);
    if (counted) json_object_set_new(object, "label_count", json_integer((json_int_t)schema->labels));
    for (int64_t i = 0; !counted && i < schema->labels; i++)
        json_array_append_new(labels, json_integer((json_int_t)schema->label[i]));
    json_object_set_new(object, "labels", labels);
    if (schema->format == PLI_FORMAT_TABLE) {
        json_t *columns = json_array();
        for (int64_t i = 0; i < schema->columns; i++) json_array_append_new(columns, column_json(&schema->column[i]));
        json_object_set_new(object, "columns", columns);
        json_object_set_new(object, "has_names", json_boolean(schema->has_names));
        if (schema->delimiter != '\0') json_object_set_new(object, "delimiter", json_string(delimiter));
        if (schema->decimal_comma) json_object_set_new(object, "decimal_comma", json_true());
        if (schema->label_asked && !for_model) json_object_set_new(object, "label_asked", json_true());
    }
    if (!for_model) json_object_set_new(object, "whole", json_boolean(schema->whole));
    if (!for_model && schema->segments > 0) {
        json_t *segments = json_array();
        for (int64_t i = 0; i < schema->segments; i++)
            json_array_append_new(segments, json_integer(schema->segment_rows[i]));
        json_object_set_new(object, "segment_rows", segments);
    }
    return object;
}

static int add_piece(const char *piece, size_t bytes, void *text) {
    pli_text_add_bytes(text, piece, bytes);
    return ((pli_text *)text)->failed ? -1 : 0;
}

static plait_status write_json(const pli_schema *schema, bool for_model, pli_text *text, plait_error *err) {
    json_t *object = schema_json(schema, for_model);
    int     bad = object == NULL || json_dump_callback(object, add_piece, text, JSON_COMPACT | JSON_SORT_KEYS) != 0;
    json_decref(object);
    return bad ? pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data") : PLAIT_OK;
}

plait_status pli_schema_write(const pli_schema *schema, pli_text *text, plait_error *err) {
    return write_json(schema, false, text, err);
}

plait_status pli_schema_write_model(const pli_schema *schema, pli_text *text, plait_error *err) {
    return write_json(schema, true, text, err);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static int place_of(const char *name, const char *const *names, int n) {
    for (int i = 0; name != NULL && i < n; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

static bool read_i64(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) return false;
    *out = json_integer_value(value);
    return *out >= low && *out <= high;
}

static bool read_texts(const json_t *list, pli_dict *dict) {
    size_t n = json_array_size(list);
    if (n == 0) return list == NULL || json_is_array(list);
    dict->text = pli_calloc(n, sizeof *dict->text);
    if (dict->text == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        bool        ordered = text != NULL && (i == 0 || strcmp(dict->text[i - 1], text) < 0);
        if (!ordered || (dict->text[i] = pli_strdup(text)) == NULL) return false;
        dict->n++;
    }
    pli_dict_index(dict);
    return true;
}

static bool read_sum(const json_t *list, pli_column *column) {
    if (list == NULL) return true;
    size_t n = json_array_size(list);
    column->sum = pli_calloc(1, sizeof *column->sum);
    if (column->sum == NULL || !json_is_array(list) || n % 3 != 0) return false;
    for (size_t i = 0; i < n; i += 3) {
        json_int_t bin = json_integer_value(json_array_get(list, i));
        json_int_t high = json_integer_value(json_array_get(list, i + 1)),
                   low = json_integer_value(json_array_get(list, i + 2));
        if (bin < 0 || bin >= PLI_SUPERACC_BINS) return false;
        column->sum->bin[bin] = (__int128)(((unsigned __int128)(uint64_t)high << 64) | (uint64_t)low);
    }
    return true;
}

static bool read_column(const json_t *object, pli_schema *schema) {
    const char *name = json_string_value(json_object_get(object, "name"));
    int         role = place_of(json_string_value(json_object_get(object, "role")), role_names, 4);
    if (name == NULL || role < 0) return false;
    pli_column *column = pli_schema_add_column(schema, name, strlen(name), (pli_role)role);
    if (column == NULL || !read_texts(json_object_get(object, "texts"), &column->dict)) return false;
    if (role != PLI_ROLE_NUMBER) return true;
    column->mean = json_number_value(json_object_get(object, "mean"));
    return isfinite(column->mean) && read_i64(object, "count", 0, MAX_ROWS, &column->count) &&
           read_sum(json_object_get(object, "sum"), column);
}

static bool read_label_count(const json_t *object, pli_schema *schema) {
    if (!read_i64(object, "label_count", 1, PLI_LABELS_DECLARED, &schema->labels)) return false;
    schema->label = pli_array((size_t)schema->labels, sizeof *schema->label);
    for (int64_t i = 0; schema->label != NULL && i < schema->labels; i++) schema->label[i] = (double)i;
    return schema->label != NULL;
}

static bool read_labels(const json_t *object, pli_schema *schema) {
    const json_t *list = json_object_get(object, "labels");
    int           kind = place_of(json_string_value(json_object_get(object, "label_kind")), label_names, 4);
    size_t        n = json_array_size(list);
    if (kind < 0 || !json_is_array(list)) return false;
    schema->label_kind = (pli_label_kind)kind;
    schema->unlabelled = json_is_true(json_object_get(object, "unlabelled"));
    schema->keeps_missing = json_is_true(json_object_get(object, "keeps_missing"));
    schema->least_label = json_number_value(json_object_get(object, "least_label"));
    if (json_object_get(object, "label_count") != NULL) return read_label_count(object, schema);
    if (n == 0) return true;
    if ((schema->label = pli_array(n, sizeof *schema->label)) == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *label = json_array_get(list, i);
        if (!json_is_integer(label)) return false;
        schema->label[i] = (double)json_integer_value(label);
        if (i > 0 && schema->label[i] <= schema->label[i - 1]) return false;
    }
    schema->labels = (int64_t)n;
    return true;
}

static bool read_libsvm(const json_t *object, pli_schema *schema) {
    int64_t base, max = 0;
    if (!read_i64(object, "index_base", 0, 1, &base)) return false;
    schema->index_base = (int32_t)base;
    schema->base_is_sure =
        json_object_get(object, "base_is_sure") == NULL || json_is_true(json_object_get(object, "base_is_sure"));
    schema->zero_index = json_is_true(json_object_get(object, "zero_index"));
    schema->any_index = json_object_get(object, "max_index") != NULL;
    if (schema->any_index && !read_i64(object, "max_index", 0, INT64_MAX, &max)) return false;
    schema->max_index = (uint64_t)max;
    return true;
}

static bool read_table(const json_t *object, pli_schema *schema) {
    const json_t *columns = json_object_get(object, "columns");
    const char   *delimiter = json_string_value(json_object_get(object, "delimiter"));
    schema->delimiter = delimiter != NULL ? delimiter[0] : '\0';
    schema->decimal_comma = json_is_true(json_object_get(object, "decimal_comma"));
    schema->has_names = json_is_true(json_object_get(object, "has_names"));
    schema->label_asked = json_is_true(json_object_get(object, "label_asked"));
    if (!json_is_array(columns)) return false;
    for (size_t i = 0; i < json_array_size(columns); i++)
        if (!read_column(json_array_get(columns, i), schema)) return false;
    return true;
}

static bool read_segments(const json_t *list, pli_schema *schema) {
    size_t n = json_array_size(list);
    if (list == NULL) return true;
    if ((schema->segment_rows = pli_array(n, sizeof *schema->segment_rows)) == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        int64_t rows = json_integer_value(json_array_get(list, i));
        if (rows < 0 || rows > MAX_ROWS) return false;
        schema->segment_rows[i] = rows;
    }
    schema->segments = (int64_t)n;
    return true;
}

static bool read_shape(const json_t *shape, pli_schema *schema) {
    const size_t n = json_array_size(shape);
    int64_t      features = 1;
    if (!json_is_array(shape) || n >= PLI_IDX_AXES) return false;
    for (size_t i = 0; i < n; i++) {
        schema->length[i] = json_integer_value(json_array_get(shape, i));
        if (schema->length[i] < 1 || schema->length[i] > INT32_MAX / features) return false;
        features *= schema->length[i];
    }
    schema->axes = (int32_t)n;
    return true;
}

/* The labels of text by characters are bytes. */
static bool read_chars(const json_t *object, pli_schema *schema) {
    const bool is_bytes = schema->label_kind != PLI_LABEL_REAL && schema->label_kind != PLI_LABEL_TEXT;
    schema->apart = json_is_true(json_object_get(object, "apart"));
    return is_bytes && read_i64(object, "window", 1, PLI_WINDOW_MAX, &schema->window) &&
           (schema->labels == 0 || (schema->label[0] >= 0 && schema->label[schema->labels - 1] <= 255));
}

static bool read_text(const json_t *object, const char *key, char **out) {
    const json_t *value = json_object_get(object, key);
    if (value == NULL) return true;
    if (!json_is_string(value)) return false;
    *out = pli_strdup(json_string_value(value));
    return *out != NULL;
}

static bool read_names(const json_t *list, pli_schema *schema) {
    const size_t n = json_array_size(list);
    if (n == 0) return list == NULL || json_is_array(list);
    schema->name = pli_calloc(n / 2, sizeof *schema->name);
    schema->name_key = pli_array(n / 2, sizeof *schema->name_key);
    if (n % 2 != 0 || schema->name == NULL || schema->name_key == NULL) return false;
    for (size_t i = 0; i < n / 2; i++) {
        const json_t *key = json_array_get(list, 2 * i);
        const char   *name = json_string_value(json_array_get(list, 2 * i + 1));
        if (!json_is_integer(key) || json_integer_value(key) < 0 || name == NULL) return false;
        schema->name_key[i] = (uint64_t)json_integer_value(key);
        if (i > 0 && schema->name_key[i] <= schema->name_key[i - 1]) return false;
        if ((schema->name[i] = pli_strdup(name)) == NULL) return false;
        schema->names++;
    }
    return true;
}

/* A model's origins do not lie below its base. Those that workers send may: one was told another base than its model's,
 * or does not know it yet. */
static bool read_origins(const json_t *object, pli_schema *schema) {
    const json_t  *list = json_object_get(object, "origins");
    const size_t   n = json_array_size(list);
    const bool     table = schema->format == PLI_FORMAT_TABLE;
    const bool     of_model = json_object_get(object, "base_is_sure") == NULL;
    const uint64_t least = !table && of_model ? (uint64_t)schema->index_base : 0;
    if (n == 0) return list == NULL || json_is_array(list);
    if (n % 2 != 0 || schema->hash_bits > 0 || (!table && schema->format != PLI_FORMAT_LIBSVM)) return false;
    for (size_t i = 0; i < n; i += 2) {
        const json_t  *at = json_array_get(list, i), *value = json_array_get(list, i + 1);
        const uint64_t place = (uint64_t)json_integer_value(at);
        const bool     numbers = json_is_integer(at) && json_integer_value(at) >= 0 && json_is_real(value);
        if (!numbers || place < least) return false;
        if (schema->origins > 0 && place <= schema->origin[schema->origins - 1].at) return false;
        if (table && (place >= (uint64_t)schema->columns || schema->column[place].role != PLI_ROLE_NUMBER))
            return false;
        if (!isfinite(json_real_value(value)) || !pli_schema_add_origin(schema, place, json_real_value(value)))
            return false;
    }
    return true;
}

/* A model's text of interactions is read again when data are opened, and refused then if it is none. */
static bool read_vw(const json_t *object, pli_schema *schema) {
    const json_t *letters = json_object_get(object, "letters");
    for (size_t k = 0; k < json_array_size(letters) && k < 4; k++)
        schema->letters[k] = (uint64_t)json_integer_value(json_array_get(letters, k));
    return schema->hash_bits >= 1 && schema->hash_bits <= 31 &&
           read_text(object, "interactions", &schema->interactions) && read_text(object, "ngram", &schema->ngram);
}

static bool read_schema(const json_t *object, pli_schema *schema) {
    int64_t bits, features;
    int     format = place_of(json_string_value(json_object_get(object, "format")), format_names, 6);
    if (format < 0 || !read_i64(object, "rows", 0, MAX_ROWS, &schema->rows) ||
        !read_i64(object, "hash_bits", 0, 62, &bits) || !read_i64(object, "features", 0, INT64_MAX, &features) ||
        !read_labels(object, schema))
        return false;
    schema->whole = json_object_get(object, "whole") == NULL || json_is_true(json_object_get(object, "whole"));
    schema->format = (pli_data_format)format;
    schema->hash_bits = (int32_t)bits;
    schema->features = features;
    if (format == PLI_FORMAT_LIBSVM && !read_libsvm(object, schema)) return false;
    if (format == PLI_FORMAT_TABLE && !read_table(object, schema)) return false;
    if (format == PLI_FORMAT_IDX && !read_shape(json_object_get(object, "shape"), schema)) return false;
    if (format == PLI_FORMAT_CHARS && !read_chars(object, schema)) return false;
    if (format == PLI_FORMAT_VW && !read_vw(object, schema)) return false;
    if (!read_names(json_object_get(object, "names"), schema)) return false;
    if (!read_origins(object, schema)) return false;
    if (!read_segments(json_object_get(object, "segment_rows"), schema)) return false;
    if (format != PLI_FORMAT_NONE) pli_schema_number(schema);
    return true;
}

plait_status pli_schema_read(const char *text, size_t bytes, pli_schema **schema_out, plait_error *err) {
    pli_json_where where;
    int64_t      version = 0;
    json_t      *object = pli_json_read(text, bytes, &where);
    if (object == NULL)
        return pli_fail(err, PLAIT_EFORMAT, "description of the data: line %d: %s", where.line, where.text);
    plait_status status = PLAIT_OK;
    pli_schema  *schema = NULL;
    if (!read_i64(object, "version", 1, INT64_MAX, &version)) {
        status = pli_fail(err, PLAIT_EFORMAT, "description of the data: expected an object with a version");
    } else if (version > SCHEMA_VERSION) {
        status = pli_fail(err, PLAIT_EVERSION, "description of the data: version %lld, this program knows %d",
                          (long long)version, SCHEMA_VERSION);
    } else if ((schema = pli_schema_create()) == NULL) {
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
    } else if (!read_schema(object, schema)) {
        pli_schema_destroy(&schema);
        status = pli_fail(err, PLAIT_EFORMAT, "description of the data: a field is missing or out of range");
    }
    json_decref(object);
    if (status == PLAIT_OK) *schema_out = schema;
    return status;
}
