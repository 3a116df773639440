/* A live pipe gives its rows while it is open, each once and with its number, however its bytes are cut on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset/dataset.h"

enum { FRONT = 101, ROWS = 60000 };

static char path[] = "/tmp/plait_live_XXXXXX";

/* The writer goes on when the reader has taken the front: the test cannot end unless rows are taken before the end. */
typedef struct writer {
    pthread_mutex_t mutex;
    pthread_cond_t  changed;
    bool            may_go_on, stays;
} writer;

static size_t row_text(char *to, size_t room, int row) {
    return (size_t)snprintf(to, room, "%d %d:%d\n", row % 2, 1 + row, 1 + row % 5);
}

static void put(int fd, const char *from, size_t n) { assert_int_equal(write(fd, from, n), (ssize_t)n); }

static void *write_rows(void *user) {
    writer *w = user;
    int     fd = open(path, O_WRONLY);
    char    text[64];
    for (int row = 0; row < ROWS; row++) {
        const size_t n = row_text(text, sizeof text, row), half = row % 3 == 0 ? n / 2 : n;
        put(fd, text, half);
        pthread_mutex_lock(&w->mutex);
        while (row + 1 == FRONT && !w->may_go_on) pthread_cond_wait(&w->changed, &w->mutex);
        pthread_mutex_unlock(&w->mutex);
        if (w->stays && row + 1 == FRONT) break;
        if (half < n) put(fd, text + half, n - half);
    }
    close(fd);
    return NULL;
}

static void go_on(writer *w) {
    pthread_mutex_lock(&w->mutex);
    w->may_go_on = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static pli_dataset *open_front(pli_pool *pool) {
    const char     *paths[] = { path };
    pli_dataset    *d = NULL;
    pli_schema     *agreed = NULL;
    plait_data_opts opts;
    plait_error     err;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    if (pli_dataset_open_live(&opts, NULL, &d, &err) != PLAIT_OK) fail_msg("%s", err.text);
    assert_true(pli_dataset_is_live(d));
    assert_int_equal(pli_dataset_scan(d, false, pool, &err), PLAIT_OK);
    const pli_schema *part = pli_dataset_schema(d);
    assert_int_equal(pli_schema_merge(&part, 1, &agreed, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_agree(d, agreed, &err), PLAIT_OK);
    pli_schema_destroy(&agreed);
    return d;
}

static void check_rows(const pli_part *part, int64_t *next) {
    const pli_block *b = part->block;
    assert_int_equal(b->first_row, *next);
    for (int64_t i = 0; i < part->rows; i++, ++*next) {
        assert_int_equal(b->col[b->row_start[i]], *next);
        assert_true(b->label[i] == (double)(*next % 2));
    }
}

static void begin(writer *w, pthread_t *thread) {
    *w = (writer){ .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .stays = w->stays };
    assert_int_equal(pthread_create(thread, NULL, write_rows, w), 0);
}

static void rows_come_while_the_pipe_is_open(void **state) {
    writer       w = { .stays = false };
    pthread_t    thread;
    pli_pool    *pool = NULL;
    pli_batches *s = NULL;
    plait_error  err;
    int64_t      next = 0;
    (void)state;
    assert_int_equal(pli_pool_create(2, &pool, &err), PLAIT_OK);
    begin(&w, &thread);
    pli_dataset *d = open_front(pool);
    assert_int_equal(pli_batches_live(d, NULL, pool, &s, &err), PLAIT_OK);
    for (int64_t clock = 0; !pli_stream_has_ended(s); clock++) {
        int32_t pieces = 0;
        assert_true(pli_stream_cut(s, clock, 2, &pieces, &err) >= 0);
        for (int32_t i = 0; i < pieces; i++) {
            pli_part part;
            assert_int_equal(pli_stream_piece(s, clock, i, i % 2, &part, &err), PLAIT_OK);
            check_rows(&part, &next);
        }
        if (next == FRONT) assert_true(pli_stream_waits(s, 0));
        if (next == FRONT) go_on(&w);
    }
    assert_int_equal(next, ROWS);
    assert_int_equal(pli_stream_rows(s), ROWS);
    assert_int_equal(pli_stream_features(s), ROWS);
    pthread_join(thread, NULL);
    pli_batches_destroy(&s);
    pli_dataset_destroy(&d);
    pli_pool_destroy(&pool);
}

/* Told to stop, it gives no more rows though the pipe stays open. */
static void a_stop_ends_the_wait(void **state) {
    writer       w = { .stays = true };
    pthread_t    thread;
    pli_pool    *pool = NULL;
    pli_batches *s = NULL;
    pli_batch    batch;
    plait_error  err;
    int          stop = 0;
    (void)state;
    assert_int_equal(pli_pool_create(1, &pool, &err), PLAIT_OK);
    begin(&w, &thread);
    pli_dataset *d = open_front(pool);
    assert_int_equal(pli_batches_live(d, &stop, pool, &s, &err), PLAIT_OK);
    assert_int_equal(pli_batches_get(s, 0, 0, &batch, &err), PLAIT_OK);
    assert_int_equal(batch.rows, FRONT);
    stop = 1;
    assert_int_equal(pli_batches_get(s, 0, 1, &batch, &err), PLAIT_OK);
    assert_int_equal(batch.rows, 0);
    assert_false(pli_stream_has_ended(s));
    go_on(&w);
    pthread_join(thread, NULL);
    pli_batches_destroy(&s);
    pli_dataset_destroy(&d);
    pli_pool_destroy(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_while_the_pipe_is_open),
        cmocka_unit_test(a_stop_ends_the_wait),
    };
    int fd = mkstemp(path);
    if (fd < 0 || unlink(path) != 0 || mkfifo(path, 0600) != 0) return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
