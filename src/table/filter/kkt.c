/* kkt - under an L1 penalty a weight that is 0, and whose gradient is not larger than the penalty's, stays 0: that is
 * the optimality condition of Karush, Kuhn and Tucker, and for the rules sgd and adagrad also what their step does with
 * it (the soft threshold takes back all of it). Such rows of a push never travel. Nor do rows of zeros in an answer:
 * the worker takes missing rows as zeros, and remembers which weights were zero.
 *
 * A row is skipped if all its weights were 0 when the worker last saw them, and all its gradients, divided by the
 * push's rows of data, lie inside of l1 (times its penalty factor). Each worker judges by its own gradient, so the sum
 * of several lies inside too wherever all skip. Rules that remember gradients of weights that stay 0 (ftrl, adam,
 * momentum) would miss them, and are refused.
 *
 * Paper: Li et al., "Communication Efficient Distributed Machine Learning with the Parameter Server", NIPS 2014,
 * section 4.2. */
#include "table/filter/filter.h"

#include <math.h>
#include <string.h>

#include "table/state/store.h"

typedef struct zeros {
    int64_t        first, count; /* dense: rows of the shard; count 0: sparse */
    pli_rowset     set;          /* sparse: rows that were seen; else unused   */
    unsigned char *bit;          /* [count or set.n]: the row was zero         */
    int64_t        capacity;
} zeros;

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    zeros *z = state;
    PLI_TRY(pli_filter_takes_none("kkt", parameters, err));
    if (table == NULL) return PLAIT_OK;
    if (table->rule == NULL || table->l1 <= 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "filter kkt on table %s is refused: without an l1 penalty no weight stays at 0; give one, such "
                        "as --l1 0.001, or take another filter",
                        table->name);
    if (strcmp(table->rule, "sgd") != 0 && strcmp(table->rule, "adagrad") != 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "filter kkt on table %s is refused: the rule %s must see the gradients of weights that are 0, "
                        "and the filter omits them; nearest is adagrad",
                        table->name, table->rule);
    z->first = table->first;
    z->count = table->rows > 0 ? table->count : 0;
    pli_rowset_init(&z->set, 0, 0);
    return PLAIT_OK;
}

static void close_zeros(void *state) {
    zeros *z = state;
    pli_rowset_destroy(&z->set);
    pli_free(z->bit);
    z->bit = NULL;
}

static bool is_zero_row(const plait_part *part, const void *values, int64_t i) {
    static const double none = 0;
    int64_t              width = pli_value_bytes(part->type);
    const unsigned char *row = (const unsigned char *)values + i * part->cols * width;
    for (int64_t c = 0; c < part->cols; c++)
        if (memcmp(row + c * width, &none, (size_t)width) != 0) return false;
    return true;
}

static bool reserve(zeros *z, int64_t rows) {
    int64_t had = z->capacity, bytes = (rows + 7) / 8;
    if (!pli_grow((void **)&z->bit, &z->capacity, bytes, 1)) return false;
    memset(z->bit + had, 0, (size_t)(z->capacity - had));
    return true;
}

static void mark(zeros *z, int64_t at, bool zero) {
    unsigned char bit = (unsigned char)(1 << at % 8);
    z->bit[at / 8] = (unsigned char)(zero ? z->bit[at / 8] | bit : z->bit[at / 8] & ~bit);
}

static plait_status seen(void *state, const plait_part *part, const void *values) {
    zeros  *z = state;
    int64_t at[PLI_BLOCK];
    if (z->count > 0) {
        if (!reserve(z, z->count)) return PLAIT_ENOMEM;
        for (int64_t i = 0; i < part->n; i++)
            mark(z, (int64_t)pli_part_row(part, i) - z->first, is_zero_row(part, values, i));
        return PLAIT_OK;
    }
    for (int64_t from = 0; from < part->n; from += PLI_BLOCK) {
        int64_t m = part->n - from < PLI_BLOCK ? part->n - from : PLI_BLOCK;
        if (!pli_rowset_add(&z->set, m, part->keys + from, at) || !reserve(z, z->set.n)) return PLAIT_ENOMEM;
        for (int64_t i = 0; i < m; i++) mark(z, at[i], is_zero_row(part, values, from + i));
    }
    return PLAIT_OK;
}

static bool was_zero(const zeros *z, int64_t at) { return at >= 0 && z->bit != NULL && (z->bit[at / 8] >> at % 8 & 1); }

static bool is_inside(const plait_part *part, const void *values, int64_t i, uint64_t row) {
    double bound = part->l1 * (part->examples > 0 ? (double)part->examples : 1);
    for (int64_t c = 0; c < part->cols; c++) {
        double factor =
            part->penalty == NULL ? 1 : pli_value_at(part->type, part->penalty, (int64_t)row * part->cols + c);
        if (!(fabs(pli_value_at(part->type, values, i * part->cols + c)) <= bound * factor)) return false;
    }
    return true;
}

static plait_status choose(void *state, const plait_part *part, const void *values, unsigned char *keep) {
    const zeros *z = state;
    int64_t      at[PLI_BLOCK];
    if (part->way == PLAIT_ANSWERED) {
        for (int64_t i = 0; i < part->n; i++) keep[i] = keep[i] && !is_zero_row(part, values, i);
        return PLAIT_OK;
    }
    for (int64_t from = 0; from < part->n; from += PLI_BLOCK) {
        int64_t m = part->n - from < PLI_BLOCK ? part->n - from : PLI_BLOCK;
        if (z->count == 0) pli_rowset_find(&z->set, m, part->keys + from, at);
        for (int64_t i = 0; i < m; i++) {
            uint64_t row = pli_part_row(part, from + i);
            if (was_zero(z, z->count > 0 ? (int64_t)row - z->first : at[i]) && is_inside(part, values, from + i, row))
                keep[from + i] = 0;
        }
    }
    return PLAIT_OK;
}

const plait_filter pli_kkt_filter = {
    .name = "kkt",
    .parameters = "",
    .summary = "under --l1: omits gradients that would leave a weight at 0, and weights that are 0",
    .state_bytes = sizeof(zeros),
    .loss = PLAIT_SKIPPED,
    .answers = 1,
    .parse = parse,
    .close = close_zeros,
    .rows = { .choose = choose, .seen = seen },
};
