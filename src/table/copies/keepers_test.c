/* Holders of slices: in all small worlds each slice has as many holders as there are copies, each worker's memory
 * holds its slices side by side, and a cut made anew gives each living worker the states of its new slices, from who
 * has them and lives; unless all holders of a slice are dead, which is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "table/copies/keepers.h"

enum { WORKERS_MAX = 6, VALUES_MAX = 40, COPIES_MAX = 4 };

static void bits(int set, int32_t workers, uint8_t *dead) {
    for (int32_t w = 0; w < workers; w++) dead[w] = set >> w & 1;
}

/* --- one cut ------------------------------------------------------------------------------------------------------ */

static void check_cut(const pli_keepers *k) {
    const int32_t copies = k->copies < k->n_living ? k->copies : k->n_living;
    int64_t       next = 0;
    assert_int_equal(pli_keepers_held(k), copies);
    for (int32_t s = 0; s < k->n_living; s++) {
        const pli_stretch part = pli_keepers_range(k, s);
        int32_t           holders = 0;
        assert_int_equal(part.first, next);
        next += part.n;
        for (int32_t w = 0; w < k->workers; w++) holders += pli_keepers_place(k, w, s) >= 0;
        assert_int_equal(holders, copies);
        assert_int_equal(pli_keepers_place(k, k->living[s], s), 0);
    }
    assert_int_equal(next, k->values);
    for (int32_t i = 0; i < k->n_living; i++) {
        const int32_t w = k->living[i];
        int64_t       state = 0;
        for (int32_t j = 0; j < copies; j++) {
            const int32_t slice = pli_keepers_at(k, w, j);
            assert_int_equal(pli_keepers_place(k, w, slice), j);
            assert_int_equal(pli_keepers_state(k, w, j), state);
            state += pli_keepers_range(k, slice).n;
        }
        assert_int_equal(pli_keepers_state(k, w, copies), state);
    }
}

/* The first holder that lives speaks, and none if none lives. */
static void check_speakers(const pli_keepers *k, const uint8_t *dead) {
    int32_t lost = -1;
    for (int32_t s = k->n_living; s-- > 0;) {
        const int32_t speaker = pli_keepers_speaker(k, s, dead);
        int32_t       least = COPIES_MAX;
        for (int32_t i = 0; i < k->n_living; i++) {
            const int32_t place = pli_keepers_place(k, k->living[i], s);
            if (!dead[k->living[i]] && place >= 0 && place < least) least = place;
        }
        assert_int_equal(speaker < 0 ? COPIES_MAX : pli_keepers_place(k, speaker, s), least);
        if (speaker < 0) lost = s;
    }
    assert_int_equal(pli_keepers_lost(k, dead), lost);
}

/* --- cut anew ----------------------------------------------------------------------------------------------------- */

typedef struct moving {
    const uint8_t *dead;
    int64_t      (*had)[VALUES_MAX * COPIES_MAX]; /* [workers] */
    int64_t       *has;
    uint8_t       *holds_old; /* [workers] nothing comes from another that the worker has itself */
} moving;

static void move(const pli_keepers_moved *m, void *user) {
    const moving *v = user;
    assert_false(v->dead[m->from]);
    assert_true(m->n > 0);
    memcpy(v->has + m->to, v->had[m->from] + m->state, (size_t)m->n * sizeof *v->has);
}

/* The state of value i is i. */
static void fill(const pli_keepers *k, int32_t worker, int64_t *states) {
    for (int32_t j = 0; j < pli_keepers_held(k); j++) {
        const pli_stretch part = pli_keepers_range(k, pli_keepers_at(k, worker, j));
        for (int64_t i = 0; i < part.n; i++) states[pli_keepers_state(k, worker, j) + i] = part.first + i;
    }
}

static void check_move(const pli_keepers *from, const pli_keepers *to) {
    static int64_t had[WORKERS_MAX][VALUES_MAX * COPIES_MAX];
    memset(had, 0xff, sizeof had);
    for (int32_t i = 0; i < from->n_living; i++) fill(from, from->living[i], had[from->living[i]]);
    for (int32_t i = 0; i < to->n_living; i++) {
        const int32_t w = to->living[i];
        int64_t       has[VALUES_MAX * COPIES_MAX], due[VALUES_MAX * COPIES_MAX];
        memset(has, 0xff, sizeof has);
        memset(due, 0xff, sizeof due);
        fill(to, w, due);
        pli_keepers_move(from, to, w, move, &(moving){ .dead = to->dead, .had = had, .has = has });
        assert_memory_equal(has, due, sizeof has);
    }
}

static void test_small_worlds(void **unused) {
    int64_t lost = 0, moved = 0;
    (void)unused;
    for (int32_t workers = 1; workers <= WORKERS_MAX; workers++)
        for (int32_t copies = 1; copies <= COPIES_MAX; copies++)
            for (int set = 0; set + 1 < 1 << workers; set++)
                for (int more = set; more + 1 < 1 << workers; more++) {
                    pli_keepers   from, to;
                    uint8_t       dead[WORKERS_MAX], later[WORKERS_MAX];
                    const int64_t values = (set * 7 + more * 5 + copies) % VALUES_MAX;
                    if ((more & set) != set) continue;
                    bits(set, workers, dead);
                    bits(more, workers, later);
                    assert_true(pli_keepers_init(&from, workers, copies, values, dead));
                    assert_true(pli_keepers_init(&to, workers, copies, values, later));
                    check_cut(&from);
                    check_speakers(&from, later);
                    if (pli_keepers_lost(&from, later) < 0) check_move(&from, &to);
                    lost += pli_keepers_lost(&from, later) >= 0;
                    moved += pli_keepers_lost(&from, later) < 0 && more != set;
                    pli_keepers_free(&from);
                    pli_keepers_free(&to);
                }
    assert_true(lost > 100 && moved > 100);
}

/* What the worker has itself does not travel. */
static void own(const pli_keepers_moved *m, void *user) {
    const moving *v = user;
    v->holds_old[m->from] = 1;
}

static void test_who_has_a_slice_asks_nobody(void **unused) {
    const uint8_t none[4] = { 0 }, one[4] = { 0, 1, 0, 0 };
    pli_keepers   from, to;
    (void)unused;
    assert_true(pli_keepers_init(&from, 4, 4, 100, none));
    assert_true(pli_keepers_init(&to, 4, 4, 100, one));
    for (int32_t w = 0; w < 4; w++) {
        uint8_t asked[4] = { 0 };
        if (one[w]) continue;
        pli_keepers_move(&from, &to, w, own, &(moving){ .holds_old = asked });
        for (int32_t v = 0; v < 4; v++) assert_int_equal(asked[v], v == w);
    }
    pli_keepers_free(&from);
    pli_keepers_free(&to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_worlds),
        cmocka_unit_test(test_who_has_a_slice_asks_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
