/* The registry of filters: "key-cache,topk:0.1" -> filters in order; and which of them go together. It refuses by name
 * an order in which a filter would find bytes where it works on keys or values, and a loss that breaks what a
 * consistency promises. See docs/filters.md for the reasons at length. */
#include "table/filter/filter.h"

#include <stdio.h>
#include <string.h>

#include "table/consistency/consistency.h"

static const plait_filter *const filters[] = {
    &pli_key_cache_filter, &pli_key_delta_filter, &pli_fixed8_filter, &pli_fixed16_filter,     &pli_fp16_filter,
    &pli_bf16_filter,      &pli_topk_filter,      &pli_randk_filter,  &pli_onebit_filter,      &pli_significant_filter,
    &pli_kkt_filter,       &pli_zstd_filter,      NULL
};

enum { NAMES_MAX = 64, NAME_MAX_BYTES = 24 };

const plait_filter *const *pli_filters(void) { return filters; }

/* --- parameters ------------------------------------------------------------------------------------------------ */

plait_status pli_filter_takes_none(const char *name, const char *parameters, plait_error *err) {
    if (parameters == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "filter %s takes no parameters, not ':%s'", name, parameters);
}

plait_status pli_filter_fraction(const char *name, const char *parameters, double *out, plait_error *err) {
    if (parameters != NULL && pli_parse_f64(parameters, out) && *out > 0 && *out <= 1) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "filter %s%s%s: expected %s:F, a fraction above 0 and up to 1, as %s:0.01", name,
                    parameters != NULL ? ":" : "", parameters != NULL ? parameters : "", name, name);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

static const plait_filter *find(const char *name, const pli_filter_scope *scope) {
    for (size_t i = 0; filters[i] != NULL; i++)
        if (strcmp(filters[i]->name, name) == 0) return filters[i];
    for (int32_t i = 0; scope != NULL && i < scope->n_own; i++)
        if (strcmp(scope->own[i].name, name) == 0) return &scope->own[i];
    return NULL;
}

static plait_status unknown(const char *name, const pli_filter_scope *scope, plait_error *err) {
    char        texts[NAMES_MAX][NAME_MAX_BYTES + 8];
    const char *names[NAMES_MAX];
    size_t      n = 0;
    for (size_t i = 0; filters[i] != NULL && n < NAMES_MAX; i++, n++)
        snprintf(texts[n], sizeof texts[n], "%s%s", filters[i]->name, filters[i]->parameters);
    for (int32_t i = 0; scope != NULL && i < scope->n_own && n < NAMES_MAX; i++, n++)
        snprintf(texts[n], sizeof texts[n], "%s%s", scope->own[i].name, scope->own[i].parameters);
    for (size_t i = 0; i < n; i++) names[i] = texts[i];
    return pli_fail_unknown(err, "filter", name, names, n);
}

static bool is_name(const char *name) {
    size_t length = name == NULL ? 0 : strlen(name);
    return length > 0 && length <= NAME_MAX_BYTES && strcspn(name, ":, \t\n") == length;
}

/* Does the filter have either all functions of each group, or none? */
static bool is_whole(const plait_filter *f) {
    bool v = f->values.encode != NULL, l = f->lists.known != NULL, k = f->keys.encode != NULL,
         b = f->bytes.encode != NULL;
    return (f->values.bound != NULL) == v && (f->values.decode != NULL) == v && (f->lists.learn != NULL) == l &&
           (f->lists.recall != NULL) == l && (f->keys.bound != NULL) == k && (f->keys.decode != NULL) == k &&
           (f->bytes.bound != NULL) == b && (f->bytes.unpacked != NULL) == b && (f->bytes.decode != NULL) == b &&
           (f->rows.choose != NULL || v || l || k || b);
}

plait_status pli_filters_check_own(const plait_filter *own, int32_t n, plait_error *err) {
    if (n < 0 || (n > 0 && own == NULL)) return pli_fail(err, PLAIT_EINVAL, "a job with %d filters", n);
    for (int32_t i = 0; i < n; i++) {
        const pli_filter_scope before = { .own = own, .n_own = i };
        if (!is_name(own[i].name))
            return pli_fail(err, PLAIT_EINVAL, "filter %d needs a name of 1 to %d bytes without colon, comma or space",
                            i, NAME_MAX_BYTES);
        if (find(own[i].name, &before) != NULL)
            return pli_fail(err, PLAIT_EINVAL, "filter %s exists already; give yours another name", own[i].name);
        if (own[i].parameters == NULL || own[i].summary == NULL || own[i].parse == NULL || !is_whole(&own[i]))
            return pli_fail(err, PLAIT_EINVAL, "filter %s needs parameters, summary, parse, and a whole group of calls",
                            own[i].name);
        if (own[i].loss < PLAIT_EXACT || own[i].loss > PLAIT_SKIPPED)
            return pli_fail(err, PLAIT_EINVAL, "filter %s has a loss of %d, which is not a value of plait_loss",
                            own[i].name, (int)own[i].loss);
    }
    return PLAIT_OK;
}

/* --- order ------------------------------------------------------------------------------------------------------ */

static plait_status refuse_order(const plait_filter *first, const plait_filter *second, const char *why, bool swap,
                                 plait_error *err) {
    if (swap)
        return pli_fail(err, PLAIT_EREFUSED, "filters %s,%s are refused in this order: %s; write %s,%s", first->name,
                        second->name, why, second->name, first->name);
    return pli_fail(err, PLAIT_EREFUSED, "filters %s,%s are refused together: %s; take one of them", first->name,
                    second->name, why);
}

/* May second stand anywhere behind first? */
static plait_status check_order(const plait_filter *first, const plait_filter *second, plait_error *err) {
    if (first == second) return pli_fail(err, PLAIT_EREFUSED, "filter %s is listed twice; once is enough", first->name);
    if (first->values.encode != NULL && second->values.encode != NULL)
        return refuse_order(first, second, "the first turns values into bytes, which the second cannot read as values",
                            false, err);
    if (first->keys.encode != NULL && second->keys.encode != NULL)
        return refuse_order(first, second, "the first turns keys into bytes, which the second cannot read as keys",
                            false, err);
    if (first->lists.known != NULL && second->lists.known != NULL)
        return refuse_order(first, second, "both name lists of keys", false, err);
    if (first->bytes.encode != NULL && second->bytes.encode != NULL)
        return refuse_order(first, second, "both pack what is left", false, err);
    if (first->bytes.encode != NULL)
        return refuse_order(first, second,
                            "the first packs everything into bytes, which the second cannot read", true,
                            err);
    if (first->values.encode != NULL && second->rows.choose != NULL)
        return refuse_order(first, second, "the second chooses rows by their values, which the first has turned into "
                                           "bytes", true,
                            err);
    if (first->keys.encode != NULL && second->lists.known != NULL)
        return refuse_order(first, second, "the second needs lists of keys, which the first has turned into bytes",
                            true, err);
    return PLAIT_OK;
}

/* --- a list ----------------------------------------------------------------------------------------------------- */

/* Tries the parameters by themselves, or (table not NULL) together with the table. */
static plait_status try_parse(const plait_filter *filter, const char *parameters, const plait_filter_table *table,
                              plait_error *err) {
    void *state = pli_calloc(1, filter->state_bytes);
    if (state == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for filter %s", filter->name);
    plait_status status = filter->parse(state, parameters, table, err);
    if (filter->close != NULL) filter->close(state);
    pli_free(state);
    return status;
}

static plait_status add(pli_filters_list *list, char *word, const pli_filter_scope *scope, plait_error *err) {
    char *colon = strchr(word, ':');
    if (colon != NULL) *colon = '\0';
    const plait_filter *filter = find(word, scope);
    if (filter == NULL) return unknown(word, scope, err);
    if (list->n == PLI_FILTERS_MAX)
        return pli_fail(err, PLAIT_EINVAL, "more than %d filters in a list", PLI_FILTERS_MAX);
    for (int32_t i = 0; i < list->n; i++) PLI_TRY(check_order(list->filter[i], filter, err));
    PLI_TRY(try_parse(filter, colon == NULL ? NULL : colon + 1, NULL, err));
    if (filter->values.encode != NULL) list->values = list->n;
    if (filter->lists.known != NULL) list->lists = list->n;
    if (filter->keys.encode != NULL) list->keys = list->n;
    list->parameters[list->n] = colon == NULL ? NULL : colon + 1;
    list->filter[list->n++] = filter;
    return PLAIT_OK;
}

plait_status pli_filters_read(const char *text, const pli_filter_scope *scope, pli_filters_list *list,
                              plait_error *err) {
    *list = (pli_filters_list){ .values = -1, .lists = -1, .keys = -1 };
    if (text == NULL || text[0] == '\0') return PLAIT_OK;
    if (strlen(text) >= sizeof list->text)
        return pli_fail(err, PLAIT_EINVAL, "filters '%.40s...': the list is too long; at most %zu bytes are possible",
                        text, sizeof list->text - 1);
    strcpy(list->text, text);
    for (char *word = list->text; word != NULL;) {
        char *comma = strchr(word, ',');
        if (comma != NULL) *comma = '\0';
        PLI_TRY(add(list, word, scope, err));
        word = comma == NULL ? NULL : comma + 1;
    }
    return PLAIT_OK;
}

plait_status pli_filters_check_table(const pli_filters_list *list, const plait_filter_table *table, plait_error *err) {
    for (int32_t i = 0; i < list->n; i++) PLI_TRY(try_parse(list->filter[i], list->parameters[i], table, err));
    return PLAIT_OK;
}

bool pli_filters_have(const pli_filters_list *list, plait_loss loss) {
    for (int32_t i = 0; i < list->n; i++)
        if (list->filter[i]->loss == loss) return true;
    return false;
}

bool pli_filters_touch(const pli_filters_list *list, plait_way way, bool keyed) {
    for (int32_t i = 0; i < list->n; i++) {
        const plait_filter *f = list->filter[i];
        bool                keys = keyed && way != PLAIT_ANSWERED && (f->lists.known != NULL || f->keys.encode != NULL);
        bool                values = (f->values.encode != NULL || f->rows.choose != NULL) &&
                      (way == PLAIT_PUSHED || (way == PLAIT_ANSWERED && f->answers));
        if (keys || values || f->bytes.encode != NULL) return true;
    }
    return false;
}
