/* Tables of pairs, "user item value": which columns they are, and what the schema says of users and items.
 *
 * Users and items are texts, so that a user 007 is not user 7; each column has its own dictionary, and a row has one
 * key of each. Other columns, such as a time, are left out. */
#include <string.h>

#include "data/formats/table/table.h"

static const char *const user_names[] = { "user", "user_id", "userId", "User", "userid", NULL };
static const char *const item_names[] = { "item",     "item_id", "itemId", "Item", "itemid", "movie",
                                          "movie_id", "movieId", "Movie",  NULL };
static const char *const value_names[] = { "label", "rating", "value", "score", "target", "y",
                                           "Label", "Rating", "Value", "Score", NULL };

/* The first column that has one of these names; -1: none has. */
static int64_t named(const pli_table_rules *t, const char *const *names) {
    int64_t at = -1;
    for (; at < 0 && *names != NULL; names++) at = pli_table_name(t, *names);
    return at;
}

static bool is_named(const char *name, const char *const *names) {
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

bool pli_table_of_pairs(const plait_data_opts *opts) {
    return opts->pairs != 0 || (opts->format != NULL && strcmp(opts->format, "ratings") == 0);
}

bool pli_pairs_is_name(const unsigned char *text, size_t length) {
    char name[16];
    if (length >= sizeof name) return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return is_named(name, user_names) || is_named(name, item_names) || is_named(name, value_names);
}

/* The third column, unless a name says that it has users or items: then the first that is neither. */
int64_t pli_pairs_label(const pli_table_rules *t) {
    const int64_t at = t->header ? named(t, value_names) : -1;
    if (at >= 0 || t->cells < 3) return at;
    const int64_t user = t->header ? named(t, user_names) : -1, item = t->header ? named(t, item_names) : -1;
    return user != 2 && item != 2 ? 2 : user != 0 && item != 0 ? 0 : 1;
}

/* The first column that is none of these. */
static int64_t other(const pli_table_rules *t, int64_t a, int64_t b, int64_t c) {
    int64_t at = 0;
    while (at < t->cells && (at == a || at == b || at == c)) at++;
    return at < t->cells ? at : -1;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static plait_status check_texts(const pli_dataset *d, int64_t at, const char *what, plait_error *err) {
    const pli_table_rules *t = d->table;
    if (at < 0 || t->cell[at].role != PLI_ROLE_TEXT) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "%s: the %s in column \"%.60s\" are not numbers; a row is a user, an item and "
                                        "a value, in columns of these names or in this order; --label names the "
                                        "value's column", d->sources->source[0].path, what, t->name[at]);
}

static void note_left_out(pli_dataset *d, int64_t label, int64_t weight, int64_t user, int64_t item) {
    int64_t n = 0, first = -1;
    for (int64_t i = 0; i < d->table->cells; i++) {
        if (i == label || i == weight || i == user || i == item) continue;
        if (n++ == 0) first = i;
    }
    if (n > 0)
        pli_dataset_note(d, "%s: %lld column%s neither user, item, value nor weight and left out, from \"%.60s\" on",
                         d->sources->source[0].path, (long long)n, n == 1 ? " is" : "s are", d->table->name[first]);
}

plait_status pli_pairs_columns(pli_dataset *d, int64_t label, int64_t weight, plait_error *err) {
    pli_table_rules *t = d->table;
    int64_t          user = named(t, user_names), item = named(t, item_names);
    if (user == label || user == weight) user = -1;
    if (item == label || item == weight) item = -1;
    if (user < 0) user = other(t, label, weight, item);
    if (item < 0) item = other(t, label, weight, user);
    PLI_TRY(check_texts(d, label, "values", err));
    PLI_TRY(check_texts(d, weight, "weights", err));
    if (user < 0 || item < 0)
        return pli_fail(err, PLAIT_EFORMAT, "%s: %lld column%s: expected a user, an item and a value in each line, "
                                            "between blanks, tabs, commas or what --delimiter says",
                        d->sources->source[0].path, (long long)t->cells, pli_plural(t->cells));
    note_left_out(d, label, weight, user, item);
    for (int64_t i = 0; i < t->cells; i++) {
        t->cell[i].role = i == user || i == item ? PLI_ROLE_TEXT : PLI_ROLE_NUMBER;
        t->cell[i].asked = i == user || i == item;
    }
    return PLAIT_OK;
}

/* --- the schema --------------------------------------------------------------------------------------------------- */

/* The two columns of texts, if there are no features but theirs. */
static bool find_pair(const pli_schema *schema, const pli_column **user, const pli_column **item) {
    const pli_column *found[2] = { NULL };
    int               n = 0;
    if (schema->format != PLI_FORMAT_TABLE || schema->hash_bits > 0) return false;
    for (int64_t c = 0; c < schema->columns; c++) {
        if (schema->column[c].role == PLI_ROLE_NUMBER || (schema->column[c].role == PLI_ROLE_TEXT && n == 2))
            return false;
        if (schema->column[c].role == PLI_ROLE_TEXT) found[n++] = &schema->column[c];
    }
    if (n < 2) return false;
    const bool swapped = (is_named(found[1]->name, user_names) && !is_named(found[0]->name, user_names)) ||
                         (is_named(found[0]->name, item_names) && !is_named(found[1]->name, item_names));
    *user = found[swapped];
    *item = found[!swapped];
    return true;
}

void pli_pairs_rules(pli_table_rules *rules) {
    const pli_column *user, *item;
    rules->user = rules->item = -1;
    if (!find_pair(rules->schema, &user, &item)) return;
    rules->user = (int32_t)(user - rules->schema->column);
    rules->item = (int32_t)(item - rules->schema->column);
}

bool pli_pairs_may_lack(const pli_schema *fixed, int64_t column) {
    const pli_column *user, *item;
    return find_pair(fixed, &user, &item) && &fixed->column[column] == item;
}

bool pli_pairs_numbered(const pli_schema *fixed, int64_t cells) {
    const pli_column *user, *item;
    if (!find_pair(fixed, &user, &item)) return false;
    const bool label_is_last = fixed->column[fixed->columns - 1].role != PLI_ROLE_TEXT;
    return cells > fixed->columns || (cells < fixed->columns && label_is_last) ||
           pli_schema_label_column(fixed) == NULL;
}

bool pli_schema_pairs(const pli_schema *schema, pli_schema_pair *pair_out) {
    const pli_column *user, *item;
    if (!find_pair(schema, &user, &item)) return false;
    *pair_out = (pli_schema_pair){ .first_user = user->first_key, .first_item = item->first_key,
                                   .users = user->dict.n, .items = item->dict.n };
    return true;
}

const char *pli_schema_user(const pli_schema *schema, int64_t i) {
    const pli_column *user, *item;
    return find_pair(schema, &user, &item) && i >= 0 && i < user->dict.n ? user->dict.text[i] : NULL;
}

const char *pli_schema_item(const pli_schema *schema, int64_t i) {
    const pli_column *user, *item;
    return find_pair(schema, &user, &item) && i >= 0 && i < item->dict.n ? item->dict.text[i] : NULL;
}

int64_t pli_schema_find_user(const pli_schema *schema, const char *name) {
    const pli_column *user, *item;
    return find_pair(schema, &user, &item) ? pli_dict_find(&user->dict, name, strlen(name)) : -1;
}
