/* Exact sums of workers: the sum has the same bits, however the terms are spread over the workers, in each form of
 * the collective. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "comm/world.h"
#include "tensor/exact.h"
#include "tensor/exact_cells.h"

/* A body runs on a thread of its own, from which cmocka's asserts may not jump: it returns an error, whose text has
 * the line. */
enum { TERMS = 48, LONGEST = 5000, WORKERS_MAX = 8 };
static const int64_t lengths[] = { 0, 1, 5, 300, 2049, LONGEST };

typedef struct sums {
    float  f32[TERMS][LONGEST], want32[WORKERS_MAX + 1][LONGEST]; /* want [w]: sum of the terms below w; [0]: of all */
    double f64[TERMS][LONGEST], want64[WORKERS_MAX + 1][LONGEST];
} sums;

/* Draws terms whose sizes differ by many powers of two: a plain sum would differ with every order. */
static sums *draw(void) {
    sums         *s = test_malloc(sizeof *s);
    const float  *x32[TERMS];
    const double *x64[TERMS];
    pli_random    r = pli_random_at(1, PLI_RANDOM_DATA, 1, 0);
    for (int t = 0; t < TERMS; t++) {
        for (int i = 0; i < LONGEST; i++) {
            s->f64[t][i] = pli_random_normal(&r) * (double)(UINT64_C(1) << pli_random_below(&r, 40));
            s->f32[t][i] = (float)s->f64[t][i];
        }
        x32[t] = s->f32[t];
        x64[t] = s->f64[t];
    }
    for (int w = 0; w <= WORKERS_MAX; w++) {
        pli_exact_sum_f32(w == 0 ? TERMS : w, x32, LONGEST, s->want32[w]);
        pli_exact_sum_f64(w == 0 ? TERMS : w, x64, LONGEST, s->want64[w]);
    }
    return s;
}

/* One term for each worker. */
static plait_status sum_terms(plait_comm *comm, const sums *s, void *buf, int64_t n) {
    int32_t        me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    plait_request *request = NULL;
    memcpy(buf, s->f32[me], (size_t)n * sizeof(float));
    CHECK(plait_comm_allreduce(comm, buf, n, PLAIT_F32, PLAIT_SUM_EXACT) == PLAIT_OK);
    CHECK(memcmp(buf, s->want32[w], (size_t)n * sizeof(float)) == 0);
    memcpy(buf, s->f64[me], (size_t)n * sizeof(double));
    CHECK(plait_comm_allreduce_begin(comm, buf, n, PLAIT_F64, PLAIT_SUM_EXACT, &request) == PLAIT_OK);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    CHECK(plait_request_wait(&request) == PLAIT_OK);
    CHECK(memcmp(buf, s->want64[w], (size_t)n * sizeof(double)) == 0);
    memcpy(buf, s->f64[me], (size_t)n * sizeof(double));
    CHECK(plait_comm_allreduce(comm, buf, n, PLAIT_F64, PLAIT_SUM_EXACT) == PLAIT_OK);
    CHECK(memcmp(buf, s->want64[w], (size_t)n * sizeof(double)) == 0);
    return PLAIT_OK;
}

/* The same, but each worker gets a slice; want has 4 bytes a value. */
static plait_status scatter_terms(plait_comm *comm, const sums *s, void *buf, int64_t n) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    int64_t first, count;
    plait_comm_slice(comm, n, me, &first, &count);
    memcpy(buf, s->f32[me], (size_t)n * sizeof(float));
    CHECK(plait_comm_reduce_scatter(comm, buf, n, PLAIT_F32, PLAIT_SUM_EXACT) == PLAIT_OK);
    CHECK(memcmp((float *)buf + first, s->want32[w] + first, (size_t)count * sizeof(float)) == 0);
    return PLAIT_OK;
}

/* All terms, dealt out to the workers. */
static plait_status sum_cells(plait_comm *comm, const sums *s, void *cells, int64_t n) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    for (int wide = 0; wide < 2; wide++) {
        memset(cells, 0, (size_t)(n * pli_cell_bytes(wide)));
        for (int t = me; t < TERMS; t += w) pli_cells_add(wide, n, wide ? (const void *)s->f64[t] : s->f32[t], cells);
        CHECK(pli_comm_sum_cells(comm, wide, n, cells) == PLAIT_OK);
        pli_cells_round(wide, n, cells, cells);
        CHECK(memcmp(cells, wide ? (const void *)s->want64[0] : s->want32[0], (size_t)n * (wide ? 8 : 4)) == 0);
    }
    return PLAIT_OK;
}

static plait_status sum_all(plait_comm *comm, void *user) {
    void        *room = malloc(LONGEST * PLI_CELL_BYTES_F64);
    plait_status status = room == NULL ? PLAIT_ENOMEM : PLAIT_OK;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths && status >= 0; k++) {
        status = sum_terms(comm, user, room, lengths[k]);
        if (status >= 0) status = scatter_terms(comm, user, room, lengths[k]);
        if (status >= 0) status = sum_cells(comm, user, room, lengths[k]);
    }
    free(room);
    return status;
}

static plait_comm_opts opts_of(int32_t workers, const char *collective) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.workers = workers;
    opts.collective = collective;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    return opts;
}

static const char *const forms[] = { "auto", "messages", "ring", "tree", "recursive", "rabenseifner", "hierarchical" };

static void test_bits_do_not_depend_on_workers(void **state) {
    (void)state;
    sums *s = draw();
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
        for (int32_t workers = 1; workers <= WORKERS_MAX; workers++) {
            plait_comm_opts opts = opts_of(workers, forms[form]);
            plait_error     err;
            int64_t         live = pli_alloc_live();
            if (plait_comm_run(&opts, sum_all, s, &err) < 0)
                fail_msg("%s, %d workers: %s", forms[form], workers, err.text);
            assert_int_equal(pli_alloc_live(), live);
        }
    test_free(s);
}

static plait_status misuse(plait_comm *comm, void *user) {
    int64_t x[2] = { 0 };
    (void)user;
    CHECK(plait_comm_allreduce(comm, x, 2, PLAIT_I64, PLAIT_SUM_EXACT) == PLAIT_EINVAL);
    CHECK(plait_comm_allreduce(comm, x, 1, PLI_CELLS_F32, PLAIT_SUM) == PLAIT_EINVAL);
    return PLAIT_OK;
}

/* One worker asks for an exact sum, the other for a plain one. */
static plait_status differ(plait_comm *comm, void *user) {
    float x[4] = { 0 };
    (void)user;
    return plait_comm_allreduce(comm, x, 4, PLAIT_F32, plait_comm_rank(comm) == 1 ? PLAIT_SUM_EXACT : PLAIT_SUM);
}

static void test_misuse_is_answered(void **state) {
    (void)state;
    plait_comm_opts opts = opts_of(1, NULL);
    assert_int_equal(plait_comm_run(&opts, misuse, NULL, NULL), PLAIT_OK);
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        plait_error err;
        opts = opts_of(2, forms[form]);
        assert_int_equal(plait_comm_run(&opts, differ, NULL, &err), PLAIT_EMISMATCH);
        assert_non_null(strstr(err.text, "allreduce of 4 f32 (exact sum)"));
        assert_non_null(strstr(err.text, "allreduce of 4 f32 (sum)"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_do_not_depend_on_workers),
        cmocka_unit_test(test_misuse_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
