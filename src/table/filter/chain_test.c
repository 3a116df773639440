/* Parts go through filters and back. Without loss they are the same bit for bit; with loss decode(encode(x)) + residual
 * = x + what was kept, for every filter, over keys and ranges, both types, one column and several, push after push.
 * Malformed input is reported, and running out of memory leaks nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "table/filter/filter.h"
#include "table/state/values.h"
#include "table/pairs/pairs.h"

enum { ROWS = 600, COLS_MAX = 3, ROUNDS = 12, LISTS = 4 };

typedef struct ends {
    pli_filters_list   list;
    plait_filter_table table;
    pli_chain          worker, server;
} ends;

static void open_ends(ends *e, const char *filters, plait_type type, int64_t cols, bool keyed, bool sparse) {
    e->table = (plait_filter_table){ .name = "t", .type = type, .rows = sparse ? 0 : ROWS, .cols = cols, .keyed = keyed,
                                     .rule = "sgd", .l1 = 0.5, .workers = 2, .servers = 2, .count = sparse ? 0 : ROWS };
    assert_int_equal(pli_filters_read(filters, NULL, &e->list, NULL), PLAIT_OK);
    assert_int_equal(pli_chain_open(&e->worker, &e->list, &e->table, NULL), PLAIT_OK);
    assert_int_equal(pli_chain_open(&e->server, &e->list, &e->table, NULL), PLAIT_OK);
}

static void close_ends(ends *e) {
    pli_chain_close(&e->worker);
    pli_chain_close(&e->server);
}

/* Keys of one of a few lists, increasing, and values of many sizes, some of them zero. */
static int64_t make_part(const ends *e, pli_random *random, int round, bool keyed, plait_part *part, uint64_t *keys,
                         void *values) {
    pli_random choice = pli_random_at(1, PLI_RANDOM_DATA, (uint64_t)(round % LISTS), 0);
    int64_t    n = 0, first = 50;
    for (int64_t i = 0; i < ROWS; i++)
        if (pli_random_below(&choice, 3) == 0) keys[n++] = (uint64_t)i * (e->table.rows == 0 ? 1000003 : 1);
    if (!keyed) n = ROWS - first;
    for (int64_t i = 0; i < n * e->table.cols; i++) {
        double x = pli_random_below(random, 5) == 0
                       ? 0
                       : pli_random_normal(random) * pow(10, (double)pli_random_below(random, 5) - 3);
        pli_value_put(e->table.type, values, i, x);
    }
    *part = (plait_part){ .way = PLAIT_PUSHED, .seed = 3, .clock = round, .examples = 7, .type = e->table.type, .n = n,
                          .cols = e->table.cols, .first = keyed ? -1 : first, .keys = keyed ? keys : NULL,
                          .l1 = e->table.l1 };
    return n;
}

static double at(const ends *e, const void *values, int64_t row, int64_t c) {
    return pli_value_at(e->table.type, values, row * e->table.cols + c);
}

/* One push: what arrives, laid over the rows of the part; *bytes_out: its size. */
static void push(ends *e, const plait_part *part, const void *values, bool exact, void *arrived, int64_t *bytes_out) {
    pli_bytes   body = { 0 };
    pli_decoded decoded;
    plait_part  told = *part;
    int64_t     row_bytes = part->cols * pli_value_bytes(part->type);
    assert_int_equal(pli_chain_encode(&e->worker, part, values, exact, &body, &told.n, NULL), PLAIT_OK);
    told.keys = NULL;
    assert_int_equal(pli_chain_decode(&e->server, &told, part->keys != NULL, body.data, body.n, &decoded, NULL),
                     PLAIT_OK);
    assert_false(decoded.missing);
    memset(arrived, 0, (size_t)(part->n * row_bytes));
    int64_t r = 0;
    for (int64_t i = 0; i < decoded.n; i++, r++) {
        while (part->keys != NULL && r < part->n && part->keys[r] != decoded.keys[i]) r++;
        assert_true(r < part->n); /* no row is new, and their order stays */
        memcpy(pli_at(arrived, r * row_bytes), pli_at(decoded.values, i * row_bytes), (size_t)row_bytes);
    }
    if (part->keys == NULL) assert_int_equal(decoded.n, part->n);
    *bytes_out = body.n;
    pli_decoded_free(&decoded);
    pli_bytes_free(&body);
}

static void rest_of(ends *e, const plait_part *part, void *rest) {
    memset(rest, 0, (size_t)(part->n * part->cols * pli_value_bytes(part->type)));
    pli_residual_add_to(&e->worker.residual, part, rest);
}

static void check_filters(const char *filters, plait_type type, int64_t cols, bool keyed, bool sparse, bool lossless) {
    static uint64_t keys[ROWS];
    static double   x[ROWS * COLS_MAX], arrived[ROWS * COLS_MAX], before[ROWS * COLS_MAX], after[ROWS * COLS_MAX];
    ends            e;
    pli_random      random = pli_random_at(2, PLI_RANDOM_DATA, (uint64_t)cols, (uint64_t)type);
    open_ends(&e, filters, type, cols, keyed, sparse);
    for (int round = 0; round < ROUNDS; round++) {
        plait_part part;
        int64_t    bytes, n = make_part(&e, &random, round, keyed, &part, keys, x);
        rest_of(&e, &part, before);
        push(&e, &part, x, false, arrived, &bytes);
        rest_of(&e, &part, after);
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < cols; c++) {
                double want = at(&e, x, i, c) + at(&e, before, i, c),
                       have = at(&e, arrived, i, c) + at(&e, after, i, c);
                double most = fmax(fabs(want), fmax(fabs(at(&e, arrived, i, c)), fabs(at(&e, after, i, c))));
                if (lossless) assert_memory_equal(&want, &have, sizeof want);
                else assert_true(fabs(want - have) <= most * (type == PLAIT_F32 ? 0x1p-22 : 0x1p-51));
            }
        if (lossless) assert_memory_equal(x, arrived, (size_t)(n * cols * pli_value_bytes(type)));
        push(&e, &part, x, true, arrived, &bytes); /* a push that must be exact is exact */
        assert_memory_equal(x, arrived, (size_t)(n * cols * pli_value_bytes(type)));
    }
    close_ends(&e);
}

static const struct { const char *filters; bool lossless;
} lists[] = {
    { "key-cache", true },
    { "key-delta", true },
    { "zstd", true },
    { "key-cache,key-delta,zstd", true },
    { "fixed8", false },
    { "fixed16", false },
    { "fp16", false },
    { "bf16", false },
    { "topk:0.1", false },
    { "randk:0.25", false },
    { "onebit", false },
    { "significant:0.01", false },
    { "key-cache,topk:0.05,fixed8,zstd", false },
    { "significant:0.001,topk:0.5,key-delta,onebit", false },
    { "key-cache,kkt,fixed16,zstd", false },
};

static void test_what_arrives_and_what_stays_is_all(void **unused) {
    (void)unused;
    int64_t live = pli_alloc_live();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int type = 0; type < 2; type++)
            for (int shape = 0; shape < 3; shape++) {
                plait_type t = type == 0 ? PLAIT_F32 : PLAIT_F64;
                check_filters(lists[i].filters, t, 1, shape > 0, shape == 2, lists[i].lossless);
                check_filters(lists[i].filters, t, COLS_MAX, shape > 0, shape == 2, lists[i].lossless);
            }
    assert_int_equal(pli_alloc_live(), live);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void answer(ends *e, plait_part *part, const void *values, bool exact, void *arrived, int64_t *bytes_out) {
    pli_bytes   body = { 0 };
    pli_decoded decoded;
    int64_t     n;
    part->way = PLAIT_ANSWERED;
    assert_int_equal(pli_chain_encode(&e->server, part, values, exact, &body, &n, NULL), PLAIT_OK);
    assert_int_equal(pli_chain_decode(&e->worker, part, false, body.data, body.n, &decoded, NULL), PLAIT_OK);
    memcpy(arrived, decoded.values, (size_t)(part->n * part->cols * pli_value_bytes(part->type)));
    assert_int_equal(pli_chain_seen(&e->worker, part, arrived, NULL), PLAIT_OK);
    *bytes_out = body.n;
    pli_decoded_free(&decoded);
    pli_bytes_free(&body);
}

static void test_answers_are_rounded_once_and_exact_on_demand(void **unused) {
    static const struct { const char *filters; double error;
    } rounding[] = {
        { "fixed8", 1.0 / 127 }, { "fixed16", 1.0 / 32767 }, { "fp16", 0x1p-11 },
        { "bf16", 0x1p-8 },      { "kkt,zstd", 0 },          { "topk:0.1,onebit", 0 },
    };
    static uint64_t keys[ROWS];
    static float    x[ROWS], arrived[ROWS];
    (void)unused;
    for (size_t i = 0; i < sizeof rounding / sizeof *rounding; i++) {
        ends       e;
        plait_part part;
        pli_random random = pli_random_at(4, PLI_RANDOM_DATA, i, 0);
        int64_t    bytes;
        double     most = 0;
        open_ends(&e, rounding[i].filters, PLAIT_F32, 1, true, true);
        int64_t n = make_part(&e, &random, 0, true, &part, keys, x);
        for (int64_t k = 0; k < n; k++) most = fmax(most, fabs((double)x[k]));
        answer(&e, &part, x, false, arrived, &bytes);
        for (int64_t k = 0; k < n; k++) {
            assert_true(fabs((double)x[k] - (double)arrived[k]) <= most * rounding[i].error * (1 + 0x1p-20));
            if (x[k] == 0) assert_true(arrived[k] == 0);
        }
        answer(&e, &part, x, true, arrived, &bytes);
        assert_memory_equal(x, arrived, (size_t)n * sizeof *x);
        close_ends(&e);
    }
}

/* --- single filters ----------------------------------------------------------------------------------------------- */

/* The mean of a randomly rounded value is the value, and the rounding does not depend on who asks. */
static void test_random_rounding_is_fair_and_everybodys(void **unused) {
    static float x[ROWS], arrived[ROWS], again[ROWS];
    double       sum = 0;
    int64_t      bytes;
    (void)unused;
    for (int i = 0; i < ROWS; i++) x[i] = i == 0 ? 127 : 0.3f;
    for (int round = 0; round < 50; round++) {
        ends       e;
        plait_part part = { .way = PLAIT_PUSHED, .seed = 9, .clock = round, .type = PLAIT_F32, .n = ROWS, .cols = 1 };
        open_ends(&e, "fixed8", PLAIT_F32, 1, false, false);
        push(&e, &part, x, false, arrived, &bytes);
        close_ends(&e);
        part.worker = 1;
        open_ends(&e, "fixed8", PLAIT_F32, 1, false, false);
        push(&e, &part, x, false, again, &bytes);
        close_ends(&e);
        assert_memory_equal(arrived, again, sizeof arrived);
        for (int i = 1; i < ROWS; i++) sum += (double)arrived[i];
    }
    assert_true(fabs(sum / 50 / (ROWS - 1) - 0.3) < 0.01); /* 30,000 draws: 0.0026 is one standard deviation */
}

static void test_halves_are_the_nearest_ones(void **unused) {
    static const struct { double x, fp16, bf16;
    } known[] = {
        { 1, 1, 1 },
        { -2.5, -2.5, -2.5 },
        { 65504, 65504, 65536 },
        { 1e6, 65504, 999424 },
        { 0x1p-24, 0x1p-24, 0x1p-24 },
        { 0x1p-25, 0, 0x1p-25 },
        { 0x1.8p-25, 0x1p-24, 0x1.8p-25 },
        { 1 + 0x1p-11, 1, 1 },
        { 1 + 0x1.8p-10, 1 + 0x1p-9, 1 },
        { 1 + 0x1p-8, 1 + 0x1p-8, 1 },
        { 3.4028234e38, 65504, 0x1.fep127 },
        { INFINITY, INFINITY, INFINITY },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int which = 0; which < 2; which++) {
            const plait_filter *filter = which == 0 ? &pli_fp16_filter : &pli_bf16_filter;
            const plait_part    part = { .type = PLAIT_F64, .n = 1, .cols = 1 };
            unsigned char       bytes[2];
            double              back;
            pli_half            state;
            assert_int_equal(filter->parse(&state, NULL, NULL, NULL), PLAIT_OK);
            assert_int_equal(filter->values.encode(&state, &part, 1, NULL, &known[i].x, bytes), 2);
            assert_int_equal(filter->values.decode(&state, &part, 1, bytes, 2, &back), PLAIT_OK);
            assert_true(back == (which == 0 ? known[i].fp16 : known[i].bf16));
        }
}

/* A fraction of the rows travels: the largest ones, ties by their order. */
static void test_the_largest_rows_travel(void **unused) {
    unsigned char keep[10];
    const double  score[10] = { 3, NAN, 1, 5, 5, 5, 0, 2, 9, 4 };
    (void)unused;
    memset(keep, 1, sizeof keep);
    keep[8] = 0;
    assert_true(pli_filter_select(10, score, 0.3, keep)); /* of 9: 3 */
    const unsigned char want[10] = { 0, 1, 0, 1, 1, 0, 0, 0, 0, 0 };
    assert_memory_equal(keep, want, sizeof keep);
}

/* A row does not travel if it is 0 and stays inside the penalty. It travels if it leaves the penalty, was not 0, or is
 * not penalised. */
static void test_kkt_sends_what_can_move(void **unused) {
    static const uint64_t keys[] = { 0, 1, 2, 3, 4 };
    /* l1 m = 3.5 */
    const float  weights[] = { 0, 0, 1, 0, 0 }, g[] = { 3.4f, 3.6f, 0.1f, -3.4f, 0.1f }, penalty[] = { 1, 1, 1, 1, 0 };
    const float  want[] = { 0, 3.6f, 0.1f, 0, 0.1f };
    float        arrived[5];
    int64_t      bytes;
    ends         e;
    (void)unused;
    open_ends(&e, "kkt", PLAIT_F32, 1, true, false);
    plait_part part = { .way = PLAIT_PUSHED, .examples = 7, .type = PLAIT_F32, .n = 5, .cols = 1, .first = -1,
                        .keys = keys, .l1 = 0.5, .penalty = penalty };
    push(&e, &part, g, false, arrived, &bytes);
    assert_memory_equal(arrived, g, sizeof g); /* nothing is known of the weights */
    answer(&e, &part, weights, false, arrived, &bytes);
    assert_memory_equal(arrived, weights, sizeof weights);
    part.way = PLAIT_PUSHED;
    push(&e, &part, g, false, arrived, &bytes);
    assert_memory_equal(arrived, want, sizeof want);
    close_ends(&e);
}

/* A list travels once. A receiver that has forgotten it says so, and gets it again by its token. */
static void test_lists_travel_once(void **unused) {
    static uint64_t keys[ROWS];
    pli_bytes       body = { 0 };
    pli_decoded     decoded;
    ends            e;
    int64_t         n;
    (void)unused;
    for (int64_t i = 0; i < ROWS; i++) keys[i] = (uint64_t)i * i;
    open_ends(&e, "key-cache", PLAIT_F32, 1, true, true);
    plait_part part = { .way = PLAIT_PULLED, .type = PLAIT_F32, .n = ROWS, .cols = 1, .keys = keys }, told = part;
    for (int round = 0; round < 3; round++) {
        body.n = 0;
        assert_int_equal(pli_chain_encode(&e.worker, &part, NULL, false, &body, &n, NULL), PLAIT_OK);
        assert_true(round == 0 ? body.n > ROWS * 8 : body.n == 1 + PLAIT_TOKEN_BYTES);
        if (round == 2) { /* the server is started anew */
            pli_chain_close(&e.server);
            assert_int_equal(pli_chain_open(&e.server, &e.list, &e.table, NULL), PLAIT_OK);
        }
        assert_int_equal(pli_chain_decode(&e.server, &told, true, body.data, body.n, &decoded, NULL), PLAIT_OK);
        assert_int_equal(decoded.missing, round == 2);
        if (!decoded.missing) assert_memory_equal(decoded.keys, keys, sizeof keys);
        if (round < 2) pli_decoded_free(&decoded);
    }
    pli_bytes list = { 0 };
    assert_int_equal(pli_chain_encode_list(&e.worker, decoded.token, &list, &told.n, NULL), PLAIT_OK);
    assert_int_equal(pli_chain_decode(&e.server, &told, true, list.data, list.n, &decoded, NULL), PLAIT_OK);
    pli_decoded_free(&decoded);
    assert_int_equal(pli_chain_decode(&e.server, &told, true, body.data, body.n, &decoded, NULL), PLAIT_OK);
    assert_memory_equal(decoded.keys, keys, sizeof keys);
    pli_decoded_free(&decoded);
    pli_bytes_free(&body);
    pli_bytes_free(&list);
    close_ends(&e);
}

/* The lists of a pair stay within their bound; the least recently used one goes first. */
static void test_lists_are_forgotten_by_use(void **unused) {
    enum { KEYS = 20000, MOST = 6 }; /* of 160 KB, within 1 MiB */
    uint64_t          *keys = pli_calloc(KEYS, sizeof *keys);
    unsigned char      token[PLAIT_TOKEN_BYTES];
    plait_filter_table table = { .workers = 1 << 20, .servers = 1 };
    void              *state = pli_calloc(1, pli_key_cache_filter.state_bytes);
    (void)unused;
    assert_int_equal(pli_key_cache_filter.parse(state, NULL, &table, NULL), PLAIT_OK);
    for (uint64_t list = 0; list < 2 * MOST; list++) {
        keys[0] = 0;
        /* list 0 is used each time */
        if (list > 0) assert_int_equal(pli_key_cache_filter.lists.known(state, KEYS, keys, token), 1);
        keys[0] = list;
        assert_int_equal(pli_key_cache_filter.lists.learn(state, KEYS, keys), PLAIT_OK);
    }
    for (uint64_t list = 0; list < 2 * MOST; list++) {
        keys[0] = list;
        assert_int_equal(pli_key_cache_filter.lists.known(state, KEYS, keys, token), list == 0 || list > MOST);
    }
    pli_key_cache_filter.close(state);
    pli_free(state);
    pli_free(keys);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void refused(const char *filters, plait_status status, const char *part_of_text) {
    pli_filters_list list;
    plait_error      err = { 0 };
    assert_int_equal(pli_filters_read(filters, NULL, &list, &err), status);
    assert_non_null(strstr(err.text, part_of_text));
}

static void test_nonsense_is_refused_by_name(void **unused) {
    (void)unused;
    refused("zstd,fixed8", PLAIT_EREFUSED, "write fixed8,zstd");
    refused("fixed8,topk:0.1", PLAIT_EREFUSED, "write topk,fixed8");
    refused("key-delta,key-cache", PLAIT_EREFUSED, "write key-cache,key-delta");
    refused("fp16,bf16", PLAIT_EREFUSED, "take one of them");
    refused("zstd,zstd", PLAIT_EREFUSED, "twice");
    refused("topk", PLAIT_EINVAL, "topk:F");
    refused("topk:0", PLAIT_EINVAL, "fraction");
    refused("randk:1.5", PLAIT_EINVAL, "fraction");
    refused("significant:-1", PLAIT_EINVAL, "above 0");
    refused("fp16:2", PLAIT_EINVAL, "no parameters");
    refused("key-cahce", PLAIT_ENAME, "key-cache");
    refused("fixed8,", PLAIT_ENAME, "unknown filter");
}

static plait_status pair(const char *filters, const char *topology, const char *consistency, bool additive,
                         plait_error *err) {
    return pli_pair_check(&(pli_pair){ .topology = topology, .consistency = consistency, .one_process = true,
                                       .filter = filters, .rule = additive ? NULL : "sgd" }, err);
}

static void test_broken_promises_are_refused_by_name(void **unused) {
    static const char *const bounded[] = { "bsp", "ssp:2", "essp:2", "asp:2:5", "bounded-delay:1", "downpour:2:2" };
    plait_error err = { 0 };
    (void)unused;
    for (size_t i = 0; i < sizeof bounded / sizeof *bounded; i++) {
        assert_int_equal(pair("key-cache,fixed8,zstd", "ps", bounded[i], false, NULL), PLAIT_OK);
        assert_int_equal(pair("kkt,onebit", "ps", bounded[i], false, NULL), PLAIT_OK);
        assert_int_equal(pair("topk:0.1", "ps", bounded[i], false, NULL), PLAIT_OK);
    }
    assert_int_equal(pair("significant:0.1", "ps", "vap:2", false, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "vap:2"));
    assert_int_equal(pair("topk:0.1,fp16", "ps", "async", false, NULL), PLAIT_OK);
    assert_int_equal(pair("fp16", "ps", "sequential", false, NULL), PLAIT_EREFUSED);
    assert_int_equal(pair("kkt", "ps", "vap:2", false, NULL), PLAIT_EREFUSED);
    assert_int_equal(pair("key-cache,key-delta,zstd", "ps", "sequential", true, NULL), PLAIT_OK);
    assert_int_equal(pair("fixed8", "ps", "bsp", true, NULL), PLAIT_EREFUSED);
    assert_int_equal(pair("zstd", "local", "bsp", false, NULL), PLAIT_EREFUSED);
    assert_int_equal(pair("topk:0.1,onebit", "allreduce", "bsp", false, NULL), PLAIT_OK);
    assert_int_equal(pair("topk:0.1", "allreduce", "bsp", true, NULL), PLAIT_EREFUSED);
    assert_int_equal(pair("kkt", "allreduce", "bsp", false, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "--topology ps"));
    assert_int_equal(pair("zstd", "gossip:ring", "bsp", true, NULL), PLAIT_OK);
    assert_int_equal(pair("topk:0.1,fixed8", "gossip:exp", "async", false, NULL), PLAIT_OK);
    assert_int_equal(pair("topk:0.1", "gossip:exp", "async", true, NULL), PLAIT_EREFUSED);
    assert_int_equal(pair("kkt", "gossip:ring", "bsp", false, &err), PLAIT_EREFUSED);
    assert_int_equal(pair("", "allreduce", "bsp", false, NULL), PLAIT_OK);
}

static void test_kkt_needs_a_penalty_and_a_rule_without_memory(void **unused) {
    plait_filter_table table = { .name = "w", .rule = "sgd" };
    pli_filters_list   list;
    (void)unused;
    assert_int_equal(pli_filters_read("kkt", NULL, &list, NULL), PLAIT_OK);
    assert_int_equal(pli_filters_check_table(&list, &table, NULL), PLAIT_EREFUSED);
    table.l1 = 0.1;
    assert_int_equal(pli_filters_check_table(&list, &table, NULL), PLAIT_OK);
    table.rule = "ftrl";
    assert_int_equal(pli_filters_check_table(&list, &table, NULL), PLAIT_EREFUSED);
}

/* --- what is damaged, and memory that ends ------------------------------------------------------------------------ */

static void decode_anyhow(ends *e, const plait_part *told, bool keyed, const unsigned char *bytes, int64_t size) {
    unsigned char *copy = pli_malloc((size_t)size); /* no byte more: a reader beyond it is caught */
    pli_decoded    decoded;
    memcpy(copy, bytes, (size_t)size);
    if (pli_chain_decode(&e->server, told, keyed, copy, size, &decoded, NULL) >= 0) pli_decoded_free(&decoded);
    pli_free(copy);
}

static void test_damage_is_told(void **unused) {
    static uint64_t keys[ROWS];
    static double   x[ROWS * COLS_MAX];
    int64_t         live = pli_alloc_live();
    (void)unused;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int keyed = 0; keyed < 2; keyed++) {
            ends       e;
            plait_part part;
            pli_bytes  body = { 0 };
            pli_random random = pli_random_at(5, PLI_RANDOM_DATA, i, 0);
            open_ends(&e, lists[i].filters, PLAIT_F32, 2, keyed, keyed);
            make_part(&e, &random, 0, keyed, &part, keys, x);
            part.n = part.n < 60 ? part.n : 60;
            plait_part told = part;
            assert_int_equal(pli_chain_encode(&e.worker, &part, x, false, &body, &told.n, NULL), PLAIT_OK);
            for (int64_t cut = 0; cut < body.n; cut++) decode_anyhow(&e, &told, keyed, body.data, cut);
            for (int64_t b = 0; b < body.n; b++)
                for (int bit = 0; bit < 8; bit += 3) {
                    body.data[b] ^= (unsigned char)(1 << bit);
                    decode_anyhow(&e, &told, keyed, body.data, body.n);
                    body.data[b] ^= (unsigned char)(1 << bit);
                }
            pli_decoded none;
            assert_int_equal(pli_chain_decode(&e.server, &told, keyed, body.data, 0, &none, NULL), PLAIT_EFORMAT);
            told.n = INT64_MAX / 4;
            assert_true(pli_chain_decode(&e.server, &told, keyed, body.data, body.n, &none, NULL) < 0);
            pli_bytes_free(&body);
            close_ends(&e);
        }
    assert_int_equal(pli_alloc_live(), live);
}

static void test_every_failed_malloc_is_survived(void **unused) {
    static uint64_t keys[ROWS];
    static double   x[ROWS];
    int64_t         live = pli_alloc_live();
    (void)unused;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int64_t k = 0; k < 40; k++) {
            ends        e;
            plait_part  part;
            pli_bytes   body = { 0 };
            pli_decoded decoded;
            pli_random  random = pli_random_at(6, PLI_RANDOM_DATA, i, 0);
            open_ends(&e, lists[i].filters, PLAIT_F64, 1, true, true);
            make_part(&e, &random, 0, true, &part, keys, x);
            plait_part told = part;
            pli_alloc_fail_after(k);
            if (pli_chain_encode(&e.worker, &part, x, false, &body, &told.n, NULL) >= 0 &&
                pli_chain_decode(&e.server, &told, true, body.data, body.n, &decoded, NULL) >= 0)
                pli_decoded_free(&decoded);
            pli_alloc_fail_after(-1);
            pli_bytes_free(&body);
            close_ends(&e);
        }
    assert_int_equal(pli_alloc_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_arrives_and_what_stays_is_all),
        cmocka_unit_test(test_answers_are_rounded_once_and_exact_on_demand),
        cmocka_unit_test(test_random_rounding_is_fair_and_everybodys),
        cmocka_unit_test(test_halves_are_the_nearest_ones),
        cmocka_unit_test(test_the_largest_rows_travel),
        cmocka_unit_test(test_kkt_sends_what_can_move),
        cmocka_unit_test(test_lists_travel_once),
        cmocka_unit_test(test_lists_are_forgotten_by_use),
        cmocka_unit_test(test_nonsense_is_refused_by_name),
        cmocka_unit_test(test_broken_promises_are_refused_by_name),
        cmocka_unit_test(test_kkt_needs_a_penalty_and_a_rule_without_memory),
        cmocka_unit_test(test_damage_is_told),
        cmocka_unit_test(test_every_failed_malloc_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
