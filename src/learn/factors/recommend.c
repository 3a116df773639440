/* The best items of each user: all items are scored, those that the user's rows name are left out, and the highest
 * stay. Users are taken some at a time, side by side, and told in their order. */
#include <stdlib.h>
#include <string.h>

#include "learn/factors/factors.h"

enum { TOGETHER = 256 };

typedef struct best {
    double  score;
    int64_t item;
} best;

/* What is asked for. */
typedef struct asking {
    const pli_mf_model *m;
    int64_t             top, n;
    int64_t            *user;  /* [n] in the order in which they are told                    */
    uint64_t           *named; /* [pairs] user << 32 | item, increasing: items to leave out  */
    int64_t             pairs;
    /* some users at a time */
    int64_t             first;
    best               *found; /* [TOGETHER, top] */
    int64_t            *count; /* [TOGETHER]      */
} asking;

/* Is a before b in the list? Of equal scores the item that comes first in the model. */
static bool is_before(const best *a, const best *b) {
    return a->score > b->score || (!(a->score < b->score) && a->item < b->item);
}

static int64_t first_named(const asking *a, uint64_t key) {
    int64_t low = 0, high = a->pairs;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (a->named[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Puts one into a sorted list of at most top. */
static void put(best *list, int64_t *n, int64_t top, best one) {
    if (*n == top && !is_before(&one, &list[top - 1])) return;
    int64_t at = *n < top ? (*n)++ : top - 1;
    for (; at > 0 && is_before(&one, &list[at - 1]); at--) list[at] = list[at - 1];
    list[at] = one;
}

static void find_best(void *memory, int64_t k, int32_t thread) {
    asking             *a = memory;
    const pli_mf_model *m = a->m;
    const int64_t       user = a->user[a->first + k];
    int64_t             at = first_named(a, (uint64_t)user << 32);
    best               *list = a->found + k * a->top;
    (void)thread;
    a->count[k] = 0;
    for (int64_t i = 0; i < m->pair.items; i++) {
        if (at < a->pairs && a->named[at] == ((uint64_t)user << 32 | (uint64_t)i)) {
            at++;
            continue;
        }
        put(list, &a->count[k], a->top, (best){ pli_mf_value(m, user, i), i });
    }
}

/* --- whom to ask for ---------------------------------------------------------------------------------------------- */

/* The users of the rows, each once, in the order of the rows; and the pairs that they name. */
static plait_status take_rows(const plait_model *model, const plait_data *data, asking *a, plait_error *err) {
    const pli_mf_model *m = a->m;
    const int64_t       rows = plait_data_rows(data);
    uint8_t            *seen = pli_calloc((size_t)m->pair.users, 1);
    a->user = pli_array((size_t)rows, sizeof *a->user);
    a->named = pli_array((size_t)rows, sizeof *a->named);
    plait_status status = seen != NULL && a->user != NULL && a->named != NULL
                              ? PLAIT_OK
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows", (long long)rows);
    (void)model;
    for (int32_t b = 0; status >= 0 && b < plait_data_blocks(data); b++) {
        for (int64_t i = 0; status >= 0 && i < plait_data_block_rows(data, b); i++) {
            plait_row row;
            int64_t   user, item;
            if ((status = plait_data_row(data, b, i, &row, err)) < 0) break;
            pli_mf_pair(m, &row, &user, &item);
            if (user >= 0 && !seen[user]) a->user[a->n++] = user;
            if (user >= 0) seen[user] = 1;
            if (user >= 0 && item >= 0) a->named[a->pairs++] = (uint64_t)user << 32 | (uint64_t)item;
        }
    }
    pli_free(seen);
    if (status >= 0 && !pli_sort_u64(a->pairs, a->named, NULL))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory to sort %lld pairs", (long long)a->pairs);
    if (status >= 0) a->pairs = pli_unique_u64(a->pairs, a->named);
    return status;
}

static plait_status take_all(asking *a, plait_error *err) {
    a->n = a->m->pair.users;
    a->user = pli_array((size_t)a->n, sizeof *a->user);
    if (a->user == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld users", (long long)a->n);
    for (int64_t i = 0; i < a->n; i++) a->user[i] = i;
    return PLAIT_OK;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static plait_status tell_all(const plait_model *model, asking *a, pli_pool *pool, pli_recommended *tell, void *to,
                             plait_error *err) {
    a->found = pli_array((size_t)TOGETHER, (size_t)a->top * sizeof *a->found);
    a->count = pli_array((size_t)TOGETHER, sizeof *a->count);
    if (a->found == NULL || a->count == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld items of each user", (long long)a->top);
    for (a->first = 0; a->first < a->n; a->first += TOGETHER) {
        const int64_t some = a->n - a->first < TOGETHER ? a->n - a->first : TOGETHER;
        pli_pool_for(pool, some, find_best, a);
        for (int64_t k = 0; k < some; k++)
            for (int64_t i = 0; i < a->count[k]; i++) {
                const best *one = &a->found[k * a->top + i];
                PLI_TRY(tell(to, pli_schema_user(model->schema, a->user[a->first + k]),
                             pli_schema_item(model->schema, one->item), one->score));
            }
    }
    return PLAIT_OK;
}

plait_status pli_mf_recommend(const plait_model *model, const plait_data *users, int64_t top, pli_pool *pool,
                              pli_recommended *tell, void *to, plait_error *err) {
    asking a = { .m = model->own, .top = top };
    if (a.top > a.m->pair.items) a.top = a.m->pair.items;
    plait_status status = users != NULL ? take_rows(model, users, &a, err) : take_all(&a, err);
    if (status >= 0) status = tell_all(model, &a, pool, tell, to, err);
    pli_free(a.user);
    pli_free(a.named);
    pli_free(a.found);
    pli_free(a.count);
    return status;
}
