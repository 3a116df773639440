/* The steps of allreduce, taken by plain loops: every number of workers, short and empty vectors; each worker ends with the
 * same bits, and messages are as few as promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/collective.h"

enum { WORKERS_MAX = 33 };

typedef bool step_fn(const pli_coll *call, int32_t me, int32_t workers, int64_t i, pli_coll_move *step_out);

typedef struct letter {
    struct letter *next;
    size_t         bytes;
    double         body[];
} letter;

typedef struct team {
    letter  *first[WORKERS_MAX][WORKERS_MAX], **last[WORKERS_MAX][WORKERS_MAX]; /* from, to */
    double  *buf[WORKERS_MAX];
    int64_t  at[WORKERS_MAX], messages;
    bool     sent[WORKERS_MAX];
} team;

static void send_part(team *t, int32_t me, const pli_coll_move *m) {
    letter *l = malloc(sizeof *l + m->send_bytes);
    assert_non_null(l);
    *l = (letter){ .bytes = m->send_bytes };
    memcpy(l->body, (char *)t->buf[me] + m->send_at, m->send_bytes);
    *t->last[me][m->to] = l;
    t->last[me][m->to] = &l->next;
    t->messages++;
}

static bool take_part(team *t, int32_t me, const pli_coll_move *m) {
    letter *l = t->first[m->from][me];
    if (l == NULL) return false;
    if ((t->first[m->from][me] = l->next) == NULL) t->last[m->from][me] = &t->first[m->from][me];
    assert_int_equal(l->bytes, m->recv_bytes);
    double *mine = (double *)((char *)t->buf[me] + m->recv_at);
    if (!m->reduce) memcpy(mine, l->body, l->bytes);
    for (size_t i = 0; m->reduce && i < l->bytes / sizeof(double); i++) mine[i] = m->from < me ? l->body[i] + mine[i] : mine[i] + l->body[i];
    free(l);
    return true;
}

/* true: it has got on */
static bool take_step(team *t, step_fn *step, const pli_coll *call, int32_t me, int32_t workers) {
    pli_coll_move m = { .to = -1, .from = -1 };
    if (!step(call, me, workers, t->at[me], &m)) return false;
    if (m.to >= 0 && !t->sent[me]) send_part(t, me, &m);
    t->sent[me] = true;
    if (m.from >= 0 && !take_part(t, me, &m)) return false;
    t->sent[me] = false;
    t->at[me]++;
    return true;
}

static int64_t run(step_fn *step, int32_t workers, int64_t n) {
    static team t;
    pli_coll    call = { .kind = PLI_ALLREDUCE, .type = PLAIT_F64, .op = PLAIT_SUM, .n = n };
    memset(&t, 0, sizeof t);
    for (int32_t a = 0; a < workers; a++) {
        t.buf[a] = malloc((size_t)(n + 1) * sizeof(double));
        for (int64_t i = 0; i < n; i++) t.buf[a][i] = (double)(a + 1) * (double)(i + 1) / 3;
        for (int32_t b = 0; b < workers; b++) t.last[a][b] = &t.first[a][b];
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t w = 0; w < workers; w++) moved = take_step(&t, step, &call, w, workers) || moved;
    }
    for (int32_t a = 0; a < workers; a++) {
        pli_coll_move m;
        assert_false(step(&call, a, workers, t.at[a], &m)); /* none is stuck */
        for (int32_t b = 0; b < workers; b++) assert_null(t.first[a][b]);
        for (int64_t i = 0; i < n; i++) {
            double want = (double)workers * (double)(workers + 1) / 2 * (double)(i + 1) / 3;
            assert_true(t.buf[a][i] > want * (1 - 1e-12) && t.buf[a][i] < want * (1 + 1e-12));
        }
        assert_memory_equal(t.buf[a], t.buf[0], (size_t)n * sizeof(double));
    }
    for (int32_t a = 0; a < workers; a++) free(t.buf[a]);
    return t.messages;
}

static void test_any_number_of_workers_and_values(void **state) {
    (void)state;
    const int64_t lengths[] = { 0, 1, 3, 31, 100, 2049, 5000 }; /* with fewer values than workers some slices are empty */
    for (int32_t workers = 1; workers <= WORKERS_MAX; workers++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            run(pli_coll_step, workers, lengths[i]);
            if (workers > 1) run(pli_coll_halving_step, workers, lengths[i]);
        }
}

static void test_many_workers_send_few_messages(void **state) {
    (void)state;
    assert_int_equal(run(pli_coll_step, 8, 5000), 8 * 14);          /* the ring, 2 (W - 1) each */
    assert_int_equal(run(pli_coll_step, 32, 5000), 32 * 10);        /* 2 log2 W                 */
    assert_int_equal(run(pli_coll_step, 33, 5000), 32 * 10 + 2);
    assert_int_equal(run(pli_coll_step, 9, 9 * 8 << 10), 9 * 16);   /* long slices: the ring    */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_workers_and_values),
        cmocka_unit_test(test_many_workers_send_few_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
