/* Cuts of rows and cells of ratings: every rating is in one cell, and cells that are taken side by side share no row. A
 * run of alternating least squares ends at a point where the objective of the items has no slope. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "learn/factors/factors.h"

enum { USERS = 300, ITEMS = 90, RATINGS = 3000, BLOCKS = 4 };

static void cuts_are_even_and_whole(void **state) {
    const int64_t count[] = { 9, 0, 0, 100, 1, 1, 1, 1 };
    int64_t       cut[6];
    (void)state;
    for (int64_t parts = 1; parts <= 5; parts++) {
        pli_ratings_cut(8, count, parts, cut);
        assert_int_equal(cut[0], 0);
        assert_int_equal(cut[parts], 8);
        for (int64_t p = 0; p < parts; p++) assert_true(cut[p] <= cut[p + 1]);
    }
    pli_ratings_cut(8, count, 2, cut);
    assert_int_equal(cut[1], 4); /* the large row ends the first part */
}

static void make_ratings(pli_ratings *r) {
    pli_random random = pli_random_at(1, PLI_RANDOM_DATA, 0, 0);
    *r = (pli_ratings){ .n = USERS, .ratings = RATINGS };
    r->start = pli_calloc(USERS + 1, sizeof *r->start);
    r->rating = pli_array(RATINGS, sizeof *r->rating);
    assert_true(r->start != NULL && r->rating != NULL);
    for (int64_t i = 0; i < RATINGS; i++) {
        const uint32_t user = (uint32_t)(i * USERS / RATINGS);
        r->rating[i] = (pli_rating){ .user = user, .item = (uint32_t)pli_random_below(&random, ITEMS),
                                     .value = (float)i, .weight = 1 };
        r->start[user + 1]++;
    }
    for (int64_t u = 0; u < USERS; u++) r->start[u + 1] += r->start[u];
}

/* Each tile of one t has rows of its own. */
static void check_diagonal(const pli_factor_cells *c, int64_t block, int64_t t) {
    int64_t user_of[USERS], item_of[ITEMS];
    memset(user_of, 0xff, sizeof user_of);
    memset(item_of, 0xff, sizeof item_of);
    for (int64_t s = 0; s < c->strips; s++) {
        const int64_t at = (block * c->strips + t) * c->strips + s;
        for (int64_t i = c->start[at]; i < c->start[at + 1]; i++) {
            const pli_rating *r = &c->rating[i];
            assert_true(user_of[r->user] < 0 || user_of[r->user] == s);
            assert_true(item_of[r->item] < 0 || item_of[r->item] == s);
            user_of[r->user] = item_of[r->item] = s;
        }
    }
}

static void tiles_side_by_side_share_no_row(void **state) {
    const int64_t    cut[BLOCKS + 1] = { 0, 20, 50, 70, ITEMS };
    pli_ratings      r;
    pli_factor_cells c;
    plait_error      err;
    bool             seen[RATINGS] = { false };
    (void)state;
    make_ratings(&r);
    assert_int_equal(pli_factor_cells_make(&r, BLOCKS, cut, NULL, 64 << 10, 3, &c, &err), PLAIT_OK); /* wide rows */
    assert_true(c.strips > 2);
    for (int64_t b = 0; b < BLOCKS; b++)
        for (int64_t t = 0; t < c.strips; t++) check_diagonal(&c, b, t);
    assert_int_equal(c.start[BLOCKS * c.strips * c.strips], RATINGS);
    for (int64_t i = 0; i < RATINGS; i++) {
        const int64_t number = (int64_t)c.rating[i].value;
        assert_false(seen[number]);
        seen[number] = true;
        assert_int_equal(c.rating[i].user, r.rating[number].user);
        int64_t block = 0;
        while (c.start[(block + 1) * c.strips * c.strips] <= i) block++;
        assert_int_equal(c.rating[i].item + cut[block], r.rating[number].item);
    }
    pli_factor_cells_free(&c);
    pli_ratings_free(&r);
}

/* --- normal equations --------------------------------------------------------------------------------------------- */

typedef struct trained {
    const char  *path;
    plait_model *model; /* of worker 0 */
} trained;

static plait_status train(plait_comm *comm, void *user) {
    trained         *of = user;
    plait_model     *model = NULL;
    plait_train_opts opts;
    plait_data_opts  files;
    plait_train_opts_init(&opts);
    plait_data_opts_init(&files);
    files.paths = &of->path, files.n_paths = 1, files.format = "ratings";
    opts.model = "mf", opts.optimizer = "als", opts.data = &files, opts.epochs = 3, opts.l2 = 0.2;
    const plait_learner_setting rank = { .name = "components", .value = "4" };
    opts.settings = &rank, opts.n_settings = 1;
    const plait_status status = plait_train(comm, &opts, NULL, &model);
    if (plait_comm_rank(comm) == 0) of->model = model;
    else plait_model_destroy(&model);
    return status;
}

/* The slope of an item's objective at its bias (k -1) or factor k, from the model's arrays. */
static double slope_at(const pli_mf_model *m, const double ratings[60][3], int64_t item, int64_t k) {
    double sum = 0;
    for (int i = 0; i < 60; i++) {
        const int64_t user = (int64_t)ratings[i][0];
        if ((int64_t)ratings[i][1] != item) continue;
        const double off = ratings[i][2] - pli_mf_value(m, user, item);
        const double own = k < 0 ? (double)m->item_bias[item] : (double)m->item[item * m->width + k];
        sum += m->l2 * own - off * (k < 0 ? 1 : (double)m->user[user * m->width + k]);
    }
    return sum;
}

static void least_squares_end_without_slope(void **state) {
    char            path[] = "/tmp/plait_factors_XXXXXX";
    double          ratings[60][3];
    plait_comm_opts comm;
    plait_error     err;
    trained         of = { .path = path };
    pli_random      random = pli_random_at(2, PLI_RANDOM_DATA, 0, 0);
    (void)state;
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    for (int i = 0; i < 60; i++) {
        ratings[i][0] = i % 9, ratings[i][1] = (double)pli_random_below(&random, 8) + (i < 8 ? 0 : 0);
        if (i < 8) ratings[i][1] = i; /* each item is there */
        ratings[i][2] = 1 + (double)pli_random_below(&random, 5);
        fprintf(file, "u%d i%d %g\n", (int)ratings[i][0], (int)ratings[i][1], ratings[i][2]);
    }
    fclose(file);
    plait_comm_opts_init(&comm);
    comm.workers = 2;
    const plait_status status = plait_comm_run(&comm, train, &of, &err);
    unlink(path);
    assert_int_equal(status, PLAIT_OK);
    const pli_mf_model *m = of.model->own;
    assert_int_equal(m->rank, 4);
    for (int64_t item = 0; item < 8; item++)
        for (int64_t k = -1; k < 4; k++) assert_true(fabs(slope_at(m, ratings, item, k)) < 1e-4);
    plait_model_destroy(&of.model);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(cuts_are_even_and_whole),
                                        cmocka_unit_test(tiles_side_by_side_share_no_row),
                                        cmocka_unit_test(least_squares_end_without_slope) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
