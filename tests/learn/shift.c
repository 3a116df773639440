/* Tests layers and columns that move from rank to rank while a run lasts (--balance dynamic), on threads: ranks pretend
 * to be of speeds that are drawn, and drawn anew every forty clocks. Layers that move change no bit of what is learnt,
 * also where filters keep a part of a worker's updates, which goes along. Columns that move change how sums round, and
 * nothing else. So it is whatever the topology, the update rule's memory and the number of replicas. */
#include "learn/train.h"

#include <stdatomic.h>

#include "comm/comm.h"
#include "learn/net/shift.h"

enum { ROWS = 600, FEATURES = 9, DRAWS = 10, DRAWS_FULL = 400 };

static uint64_t    seed;
static _Atomic int moves; /* of all ranks */

/* Time is what a row is said to take. */
plait_status __real_pli_shift_look(pli_run *run, pli_shift *shift, bool *moves_out);
plait_status __wrap_pli_shift_look(pli_run *run, pli_shift *shift, bool *moves_out);
plait_status __wrap_pli_shift_look(pli_run *run, pli_shift *shift, bool *moves_out) {
    const int64_t stage = plait_comm_rank(run->comm) / pli_run_holders(run);
    pli_random    r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 33, (uint64_t)(stage + 16 * (run->clocks_done / 40)));
    shift->seconds = shift->rows * (double)(1 << pli_random_below(&r, 3));
    const plait_status status = __real_pli_shift_look(run, shift, moves_out);
    atomic_fetch_add(&moves, status >= 0 && *moves_out);
    return status;
}

static const char *const topologies[] = { "local", "ps", "allreduce" };

static training story(const plait_data *data, pli_random *r, bool columns) {
    static const char *const layers[] = { "200,120,90", "160,220", "300", "96,128,160,64" };
    static const char *const rules[] = { "adam", "momentum", "ftrl", "sgd" };
    training t = net_of(data, columns ? layers[pli_random_below(r, 4)] : "8,6,8,9,7");
    t.opts.optimizer = rules[pli_random_below(r, 4)];
    t.opts.learning_rate = 0.01;
    t.opts.topology = topologies[pli_random_below(r, 3)];
    t.opts.batch = 20;
    t.opts.l2 = 0.001;
    return t;
}

/* Trains one drawn net where it stays, and where it moves. */
typedef void draw_fn(const plait_data *data, pli_random *r);

static void draw_all(draw_fn *draw, uint64_t stream, const char *what) {
    plait_data   *data = points(ROWS, FEATURES, 3, 5);
    const int64_t draws = getenv("PLAIT_TEST_FULL") != NULL ? DRAWS_FULL : DRAWS;
    atomic_store(&moves, 0);
    for (seed = 1; seed <= (uint64_t)draws; seed++) {
        pli_random r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, stream, 0);
        draw(data, &r);
    }
    if (atomic_load(&moves) < 3 * draws) fail_msg("%s moved %d times", what, (int)atomic_load(&moves));
    plait_data_destroy(&data);
}

static void draw_columns(const plait_data *data, pli_random *r) {
    training      t = story(data, r, true);
    const int32_t columns = 2 + (int32_t)pli_random_below(r, 3), replicas = 1 + (int32_t)pli_random_below(r, 2);
    t.opts.columns = columns;
    must_train(&t, columns * replicas);
    plait_model *stays = t.model;
    t.opts.balance = "dynamic";
    must_train(&t, columns * replicas);
    const double off = distance(t.model, stays);
    if (!(off < 2e-5))
        fail_msg("seed %d: layers %s in %d columns of %d replicas, %s, %s: off by %g", (int)seed, t.opts.layers,
                 (int)columns, (int)replicas, t.opts.topology, t.opts.optimizer, off);
    plait_model_destroy(&stays);
    plait_model_destroy(&t.model);
}

static void test_moves_of_columns_round_alone(void **state) {
    (void)state;
    draw_all(draw_columns, 34, "columns");
}

static void draw_layers(const plait_data *data, pli_random *r) {
    static const char *const filters[] = { "fixed8", "onebit", "topk:0.3", "fp16", NULL };
    training      t = story(data, r, false);
    const int32_t stages = 2 + (int32_t)pli_random_below(r, 2), replicas = 1 + (int32_t)pli_random_below(r, 2);
    char          hash[65];
    t.opts.cut = stages;
    t.opts.micro_batches = 2;
    if (replicas == 1 && strcmp(t.opts.topology, "local") != 0) t.opts.filter = filters[pli_random_below(r, 5)];
    t.opts.exact = t.opts.filter == NULL;
    must_train(&t, stages * replicas);
    memcpy(hash, t.report.model_hash, sizeof hash);
    plait_model_destroy(&t.model);
    t.opts.balance = "dynamic";
    must_train(&t, stages * replicas);
    if (strcmp(hash, t.report.model_hash) != 0)
        fail_msg("seed %d: %d stages of %d replicas, %s, %s, filter %s: another model", (int)seed, (int)stages,
                 (int)replicas, t.opts.topology, t.opts.optimizer, t.opts.filter != NULL ? t.opts.filter : "none");
    plait_model_destroy(&t.model);
}

static void test_moves_of_layers_change_no_bit(void **state) {
    (void)state;
    draw_all(draw_layers, 35, "layers");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_moves_of_columns_round_alone),
                                        cmocka_unit_test(test_moves_of_layers_change_no_bit) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
