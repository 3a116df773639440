/* --table NAME:topology=T,consistency=C,filter=A,B - settings for one table of a model. */
#include <stdio.h>
#include <string.h>

#include "cli/settings.h"

/* Copies text [length] to the plan's words; NULL: no room. */
static const char *keep(pli_train_plan *plan, const char *text, size_t length) {
    char *at = plan->words + plan->words_bytes;
    if (plan->words_bytes + length + 1 > sizeof plan->words) {
        pli_cli_usage("train: --table: more than %zu bytes of settings", sizeof plan->words);
        return NULL;
    }
    memcpy(at, text, length);
    at[length] = '\0';
    plan->words_bytes += length + 1;
    return at;
}

/* The setting of a table, which is added if there is none yet. */
static plait_table_setting *setting_of(pli_train_plan *plan, const char *name, size_t length) {
    for (int32_t i = 0; i < plan->train.n_tables; i++)
        if (strlen(plan->table[i].name) == length && memcmp(plan->table[i].name, name, length) == 0)
            return &plan->table[i];
    if (plan->train.n_tables == PLI_PLAN_TABLES) {
        pli_cli_usage("train: --table: settings for more than %d tables", PLI_PLAN_TABLES);
        return NULL;
    }
    plait_table_setting *setting = &plan->table[plan->train.n_tables];
    setting->name = keep(plan, name, length);
    if (setting->name == NULL) return NULL;
    plan->train.n_tables++;
    return setting;
}

/* The field for the key of key=value [length]. NULL: there is no such key, and it has printed so. */
static const char **slot_of(plait_table_setting *setting, const char *text, const char *item, size_t length) {
    static const char *const keys[] = { "topology", "consistency", "filter" };
    const char **slots[] = { &setting->topology, &setting->consistency, &setting->filter };
    const char  *equals = memchr(item, '=', length);
    char         key[32];
    snprintf(key, sizeof key, "%.*s", (int)(equals != NULL ? equals - item : (ptrdiff_t)length), item);
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(key, keys[i]) != 0) continue;
        if (equals != NULL && *slots[i] == NULL) return slots[i];
        pli_cli_usage("train: --table '%s': %s %s", text, key,
                      equals == NULL ? "has no value; write it as key=value" : "is given twice");
        return NULL;
    }
    const char *nearest = pli_nearest(key, keys, 3);
    pli_cli_usage("train: --table '%s': '%s' is none of topology, consistency, filter%s%s%s", text, key,
                  nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
    return NULL;
}

/* The length of a value. The value of `filter` is a list with commas, so it ends where the next key begins. */
static size_t value_length(const char *at) {
    size_t length = strcspn(at, ",");
    while (at[length] == ',') {
        size_t item = strcspn(at + length + 1, ",");
        if (memchr(at + length + 1, '=', item) != NULL) break;
        length += 1 + item;
    }
    return length;
}

static bool read_one(pli_train_plan *plan, const char *text) {
    size_t name = strcspn(text, ":");
    if (name == 0 || text[name] == '\0' || text[name + 1] == '\0') {
        pli_cli_usage("train: --table '%s': expected NAME:topology=T,consistency=C,filter=F", text);
        return false;
    }
    plait_table_setting *setting = setting_of(plan, text, name);
    if (setting == NULL) return false;
    for (const char *at = text + name + 1; *at != '\0';) {
        size_t       length = value_length(at);
        const char **slot = slot_of(setting, text, at, strcspn(at, ","));
        if (slot == NULL) return false;
        const char *value = (const char *)memchr(at, '=', length) + 1;
        *slot = keep(plan, value, length - (size_t)(value - at));
        if (*slot == NULL) return false;
        at += length + (at[length] == ',');
    }
    return true;
}

bool pli_plan_tables(const pli_text_list *given, pli_train_plan *plan) {
    plan->train.tables = plan->table;
    for (int64_t i = 0; i < given->n; i++)
        if (!read_one(plan, given->item[i])) return false;
    return true;
}
