/* Arrays in JSON: types, shapes, elements, and first values by rule.
 *
 * An array that is written out is as long as its text, but an array that a rule fills may be huge. So the bytes of all
 * arrays of a file are checked against a budget before anything is allocated. */
#include <math.h>
#include <string.h>

#include "graph/form/form.h"
#include "graph/kernel.h"

plait_status pli_budget_count(pli_budget *budget, const plait_tensor *tensor, plait_error *err) {
    const int64_t n = plait_shape_elements(&tensor->shape);
    const size_t  each = plait_type_bytes(tensor->type);
    char          shape[128];
    pli_shape_text(tensor, shape);
    if (n < 0) return pli_fail(err, PLAIT_ESHAPE, "%s is larger than any array can be", shape);
    if ((size_t)n > budget->left / each)
        return pli_fail(err, PLAIT_ENOMEM, "%s: more than the %zu bytes that are left for values", shape, budget->left);
    budget->left -= (size_t)n * each;
    return PLAIT_OK;
}

plait_status pli_budget_take(pli_budget *budget, plait_tensor *tensor, plait_error *err) {
    PLI_TRY(pli_budget_count(budget, tensor, err));
    tensor->data = pli_calloc((size_t)plait_shape_elements(&tensor->shape), plait_type_bytes(tensor->type));
    return tensor->data != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for an array of values");
}

plait_status pli_form_type(const json_t *value, plait_type *type_out, plait_error *err) {
    static const plait_type types[] = { PLAIT_F32, PLAIT_F64, PLAIT_BF16, PLAIT_I32, PLAIT_I64, PLAIT_U8, PLAIT_BOOL };
    enum { N = sizeof types / sizeof *types };
    const char *names[N], *name = json_string_value(value);
    if (name == NULL) return pli_fail(err, PLAIT_EFORMAT, "a type is to be a text, as \"f32\"");
    for (size_t i = 0; i < N; i++) {
        names[i] = plait_type_name(types[i]);
        *type_out = types[i];
        if (strcmp(names[i], name) == 0) return PLAIT_OK;
    }
    return pli_fail_unknown(err, "type", name, names, N);
}

plait_status pli_form_shape(const json_t *value, bool any, plait_shape *shape_out, plait_error *err) {
    if (!json_is_array(value))
        return pli_fail(err, PLAIT_EFORMAT, "a shape is to be an array of lengths, as [null, 784]");
    const size_t rank = json_array_size(value);
    plait_shape  shape = { .rank = (int32_t)rank };
    if (rank > PLAIT_RANK_MAX)
        return pli_fail(err, PLAIT_ESHAPE, "a shape of %zu axes; at most %d", rank, PLAIT_RANK_MAX);
    for (size_t i = 0; i < rank; i++) {
        const json_t *length = json_array_get(value, i);
        shape.dim[i] = json_is_integer(length) ? json_integer_value(length) : PLAIT_ANY;
        if (json_is_null(length) && any) continue;
        if (!json_is_integer(length) || shape.dim[i] < 0)
            return pli_fail(err, PLAIT_EFORMAT, "lengths are integers from 0%s",
                            any ? ", or null where a run decides" : "");
    }
    *shape_out = shape;
    return PLAIT_OK;
}

bool pli_form_f64(const json_t *value, double *out) {
    static const struct {
        const char *name;
        double      value;
    } odd[] = { { "nan", NAN }, { "inf", HUGE_VAL }, { "-inf", -HUGE_VAL } };
    const char *text = json_string_value(value);
    *out = json_number_value(value);
    if (text == NULL) return json_is_number(value);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        *out = odd[i].value;
        if (strcmp(odd[i].name, text) == 0) return true;
    }
    return false;
}

static bool element(const json_t *value, const plait_tensor *tensor, int64_t i) {
    double x;
    if (json_is_boolean(value) && tensor->type == PLAIT_BOOL) {
        pli_element_set_int(tensor, i, json_is_true(value));
    } else if (pli_type_is_float(tensor->type)) {
        if (!pli_form_f64(value, &x)) return false;
        pli_element_set(tensor, i, x);
    } else {
        const int64_t k = json_integer_value(value);
        if (!json_is_integer(value) || tensor->type == PLAIT_BOOL || (tensor->type == PLAIT_I32 && k != (int32_t)k) ||
            (tensor->type == PLAIT_U8 && k != (uint8_t)k))
            return false;
        pli_element_set_int(tensor, i, k);
    }
    return true;
}

plait_status pli_form_values(const json_t *values, plait_tensor *tensor, pli_budget *budget, plait_error *err) {
    const int64_t n = plait_shape_elements(&tensor->shape);
    char          shape[128];
    pli_shape_text(tensor, shape);
    if (!json_is_array(values)) return pli_fail(err, PLAIT_EFORMAT, "values are to be an array, element by element");
    if (n < 0 || json_array_size(values) != (size_t)n)
        return pli_fail(err, PLAIT_ESHAPE, "%zu values for %s", json_array_size(values), shape);
    PLI_TRY(pli_budget_take(budget, tensor, err));
    for (int64_t i = 0; i < n; i++) {
        if (element(json_array_get(values, (size_t)i), tensor, i)) continue;
        pli_free(tensor->data);
        tensor->data = NULL;
        return pli_fail(err, PLAIT_EFORMAT, "value %lld is none of type %s", (long long)i,
                        plait_type_name(tensor->type));
    }
    return PLAIT_OK;
}

/* --- first values by rule ------------------------------------------------------------------------------------- */

/* The number of inputs of one output: rows of a matrix, taps of a filter. */
static double inputs_of(const plait_shape *shape) {
    if (shape->rank < 2) return 1;
    if (shape->rank == 2) return (double)shape->dim[0];
    double n = 1;
    for (int32_t i = 1; i < shape->rank; i++) n *= (double)shape->dim[i];
    return n;
}

typedef enum rule { FILL, UNIFORM, NORMAL } rule;

/* The numbers of a row are a function of the seed, the variable's number and the row. */
static void draw(rule how, double by, uint64_t seed, int64_t number, const plait_tensor *t) {
    const int64_t n = plait_shape_elements(&t->shape), rows = t->shape.rank > 1 ? t->shape.dim[0] : 1;
    for (int64_t r = 0; n > 0 && r < rows; r++) {
        pli_random random = pli_random_at(seed, PLI_RANDOM_INIT, (uint64_t)number, (uint64_t)r);
        for (int64_t i = r * (n / rows); i < (r + 1) * (n / rows); i++)
            pli_element_set(t, i,
                            how == FILL      ? by
                            : how == UNIFORM ? by * (2 * pli_random_f64(&random) - 1)
                                             : by * pli_random_normal(&random));
    }
}

static plait_status read_rule(const json_t *initial, const plait_shape *shape, rule *rule_out, double *by_out,
                              plait_error *err) {
    static const char *const words[] = { "he", "glorot", "zeros" }, *const keys[] = { "fill", "uniform", "normal" };
    const char  *word = json_string_value(initial);
    const double inputs = inputs_of(shape) > 0 ? inputs_of(shape) : 1;
    *rule_out = UNIFORM;
    for (int i = 0; word != NULL && i < 2; i++) {
        *by_out = sqrt(3 * (i == 0 ? 2 : 1) / inputs);
        if (strcmp(word, words[i]) == 0) return PLAIT_OK;
    }
    if (word != NULL) return pli_fail_unknown(err, "rule for first values", word, words, 3);
    const char *key = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)initial));
    for (int i = 0; key != NULL && json_object_size(initial) == 1 && i < 3; i++) {
        if (strcmp(key, keys[i]) != 0) continue;
        *rule_out = (rule)i;
        if (pli_form_f64(json_object_get(initial, key), by_out) && (i == 0 || (isfinite(*by_out) && *by_out >= 0)))
            return PLAIT_OK;
        return pli_fail(err, PLAIT_EFORMAT, "first values: %s is to be a number%s", key, i == 0 ? "" : " from 0");
    }
    if (key != NULL && json_object_size(initial) == 1)
        return pli_fail_unknown(err, "rule for first values", key, keys, 3);
    return pli_fail(err, PLAIT_EFORMAT,
                    "first values are an array, \"zeros\", \"he\", \"glorot\", or one of {\"fill\": x}, "
                    "{\"uniform\": x}, {\"normal\": x}");
}

plait_status pli_form_initial(const json_t *initial, plait_tensor *tensor, uint64_t seed, int64_t number,
                              pli_budget *budget, plait_error *err) {
    const char *word = json_string_value(initial);
    rule        how;
    double      by;
    if (initial == NULL || (word != NULL && strcmp(word, "zeros") == 0)) return PLAIT_OK;
    if (json_is_array(initial)) return pli_form_values(initial, tensor, budget, err);
    PLI_TRY(read_rule(initial, &tensor->shape, &how, &by, err));
    if (!pli_type_is_float(tensor->type) && how != FILL)
        return pli_fail(err, PLAIT_EFORMAT, "first values of type %s are not drawn; take {\"fill\": x} or an array",
                        plait_type_name(tensor->type));
    PLI_TRY(pli_budget_take(budget, tensor, err));
    draw(how, by, seed, number, tensor);
    return PLAIT_OK;
}

/* --- writing -------------------------------------------------------------------------------------------------- */

/* Writes a number with a point, whatever the host's locale: JSON allows no decimal comma. */
void pli_form_add_f64(pli_text *text, const char *key, double value) {
    if (isfinite(value)) pli_json_short(text, key, value);
    else pli_json_text(text, key, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

void pli_form_add_shape(pli_text *text, const char *key, const plait_shape *shape) {
    pli_json_list(text, key);
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 0) pli_json_null(text, NULL);
        else pli_json_i64(text, NULL, shape->dim[i]);
    }
    pli_json_list_end(text);
}

void pli_form_add_values(pli_text *text, const char *key, const plait_tensor *tensor) {
    const int64_t n = plait_shape_elements(&tensor->shape);
    pli_json_list(text, key);
    for (int64_t i = 0; i < n; i++) {
        if (pli_type_is_float(tensor->type)) pli_form_add_f64(text, NULL, pli_element(tensor, i));
        else if (tensor->type == PLAIT_BOOL) pli_json_bool(text, NULL, pli_element_int(tensor, i) != 0);
        else pli_json_i64(text, NULL, pli_element_int(tensor, i));
    }
    pli_json_list_end(text);
}
