/* Dealt blocks: on rows that are sorted by label each worker's shares of labels are near those of the whole, for every
 * form of data; rows keep their numbers and weights, and data that are not dealt keep the files' order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/dataset/dataset.h"

enum { ROWS = 2000, WORKERS = 8, CLASSES = 10 };

typedef enum data_form { LIBSVM, CSV, IDX, CACHED, STREAMED, MEMORY, FORMS } data_form;

static char folder[] = "/tmp/plait_deal_XXXXXX";

static const char *path_of(int classes, int part, const char *ending) {
    static char path[4][96];
    static int  turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%d_%d%s", folder, classes, part, ending);
    return path[turn];
}

static int label_of(int64_t row, int64_t rows, int classes) { return (int)(row * classes / rows); }
static float weight_of(int64_t row) { return row < ROWS / 3 ? (float)(1 + row % 4) : 1; } /* of the first file */

static void put_number(FILE *file, uint32_t x) {
    for (int shift = 24; shift >= 0; shift -= 8) fputc((int)(x >> shift & 255), file);
}

/* Rows in two files of libsvm, the first with weights; in one of csv; in images. */
static void write_files(int classes) {
    FILE *svm[2] = { fopen(path_of(classes, 0, ".svm"), "wb"), fopen(path_of(classes, 1, ".svm"), "wb") };
    FILE *weights = fopen(path_of(classes, 0, ".svm.weight"), "wb"), *csv = fopen(path_of(classes, 0, ".csv"), "wb");
    FILE *images = fopen(path_of(classes, 0, "-images-idx3-ubyte"), "wb"),
         *labels = fopen(path_of(classes, 0, "-labels-idx1-ubyte"), "wb");
    const uint32_t head[] = { 0x803, ROWS, 2, 2 }, label_head[] = { 0x801, ROWS };
    fprintf(csv, "size,label\n");
    for (size_t i = 0; i < 4; i++) put_number(images, head[i]);
    for (size_t i = 0; i < 2; i++) put_number(labels, label_head[i]);
    for (int64_t row = 0; row < ROWS; row++) {
        const int label = label_of(row, ROWS, classes);
        fprintf(svm[row >= ROWS / 3], "%d 1:%d 3:1\n", label, (int)row);
        if (row < ROWS / 3) fprintf(weights, "%g\n", (double)weight_of(row));
        fprintf(csv, "%d,%d\n", (int)row, label);
        for (int i = 0; i < 4; i++) fputc((int)(row >> 8 * i & 255), images);
        fputc(label, labels);
    }
    FILE *all[] = { svm[0], svm[1], weights, csv, images, labels };
    for (size_t i = 0; i < 6; i++) fclose(all[i]);
}

static int64_t paths_of(data_form form, int classes, const char *paths[2]) {
    paths[0] = path_of(classes, 0, form == CSV ? ".csv" : form == IDX ? "-images-idx3-ubyte" : ".svm");
    paths[1] = path_of(classes, 1, ".svm");
    return form == CSV || form == IDX ? 1 : 2;
}

/* Opens the data set of each worker, and agrees them. */
static plait_data *open_all(data_form form, int classes, bool dealt, int32_t workers, pli_dataset **d) {
    const char       *paths[2];
    const pli_schema *part[WORKERS];
    plait_data       *memory = NULL;
    pli_schema       *joined = NULL;
    plait_data_opts   opts;
    plait_error       err = { .text = "" };
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = paths_of(form, classes, paths);
    opts.cache = form == CACHED;
    if (form == MEMORY) assert_int_equal(plait_data_read(&opts, &memory, &err), PLAIT_OK);
    for (int32_t w = 0; w < workers; w++) {
        const plait_status status =
            memory != NULL ? (dealt ? pli_dataset_of_memory_dealt : pli_dataset_of_memory)(memory, w, workers, &d[w],
                                                                                           &err)
                           : (dealt ? pli_dataset_open_dealt : pli_dataset_open)(&opts, NULL, w, workers, &d[w], &err);
        if (status != PLAIT_OK) fail_msg("%s", err.text);
        if (form == STREAMED) assert_int_equal(pli_dataset_scan(d[w], false, NULL, &err), PLAIT_OK);
        else assert_int_equal(pli_dataset_load(d[w], NULL, &err), PLAIT_OK);
        part[w] = pli_dataset_schema(d[w]);
    }
    if (memory != NULL) return memory;
    assert_int_equal(pli_schema_merge(part, workers, &joined, &err), PLAIT_OK);
    for (int32_t w = 0; w < workers; w++) assert_int_equal(pli_dataset_agree(d[w], joined, &err), PLAIT_OK);
    pli_schema_destroy(&joined);
    return NULL;
}

/* What one pass saw: how often each row, and each worker's labels. */
typedef struct seen {
    int     row[ROWS];
    int64_t label[WORKERS][CLASSES], rows[WORKERS];
} seen;

/* A row must be the one that has its number in the files. */
static void look(const pli_block *b, int64_t row, int classes, bool weighed, int32_t worker, seen *s) {
    const int64_t number = b->first_row + row;
    assert_true(number >= 0 && number < ROWS);
    assert_true(b->label[row] == label_of(number, ROWS, classes));
    assert_true((b->weight != NULL ? b->weight[row] : 1) == (weighed ? weight_of(number) : 1));
    s->row[number]++;
    s->label[worker][label_of(number, ROWS, classes)]++;
    s->rows[worker]++;
}

static void pass(pli_dataset *d, data_form form, int classes, int32_t worker, seen *s) {
    pli_batches *batches = NULL;
    pli_batch    batch;
    plait_error  err;
    if (form == STREAMED) assert_int_equal(pli_batches_stream(d, 64, NULL, &batches, &err), PLAIT_OK);
    else assert_int_equal(pli_batches_create(d, 5, 7, true, NULL, NULL, &batches, &err), PLAIT_OK);
    for (int64_t clock = 0; clock < pli_batches_clocks(batches); clock++) {
        assert_int_equal(pli_batches_get(batches, 0, clock, &batch, &err), PLAIT_OK);
        for (int32_t p = 0; p < batch.parts; p++)
            for (int64_t k = 0; k < batch.part[p].rows; k++) {
                const pli_part *part = &batch.part[p];
                assert_int_equal(part->block->number, pli_dataset_first_block(d) + p);
                look(part->block, part->order != NULL ? part->order[k] : part->first + k, classes,
                     form != CSV && form != IDX, worker, s);
            }
    }
    pli_batches_destroy(&batches);
}

/* The bound that docs/data.md states: a worker with k blocks has a share of each label that differs from the whole's
 * by no more than that of two blocks, 2/k. With a power of two of workers it is one block's. */
static double bound(const pli_dataset *d, int32_t workers) {
    return ((workers & (workers - 1)) == 0 ? 1.0 : 2.0) / pli_dataset_own_blocks(d) + 1e-9;
}

static void check(data_form form, int classes, bool dealt, int32_t workers) {
    pli_dataset *d[WORKERS] = { NULL };
    seen        *s = calloc(1, sizeof *s);
    double       worst = 0;
    if (form == CACHED) unlink(path_of(classes, 0, ".svm.plait-cache"));
    plait_data *memory = open_all(form, classes, dealt, workers, d);
    for (int32_t w = 0; w < workers; w++) pass(d[w], form, classes, w, s);
    for (int64_t row = 0; row < ROWS; row++) assert_int_equal(s->row[row], 1);
    for (int32_t w = 0; w < workers; w++) {
        assert_true(d[w]->cached != NULL || form != CACHED);
        for (int c = 0; c < classes; c++) {
            const double off = fabs((double)s->label[w][c] / (double)s->rows[w] - 1.0 / classes) / bound(d[w], workers);
            if (off > worst) worst = off;
        }
    }
    if (dealt ? worst > 1 : worst <= 1)
        fail_msg("form %d, %d classes, %d workers, dealt %d: a share of a label is off by %.2f bounds", (int)form,
                 classes, workers, dealt, worst);
    for (int32_t w = 0; w < workers; w++) pli_dataset_destroy(&d[w]);
    plait_data_destroy(&memory);
    free(s);
}

static void test_shares(void **state) {
    static const int32_t workers[] = { 2, 3, 4, 8 };
    (void)state;
    for (int f = 0; f < FORMS; f++)
        for (size_t i = 0; i < sizeof workers / sizeof *workers; i++)
            for (int classes = 2; classes <= CLASSES; classes += 8) {
                check((data_form)f, classes, true, workers[i]);
                if (classes == 2) check((data_form)f, classes, false, workers[i]); /* the files' order: they differ */
            }
}

/* Every block is one piece and every piece one block, for any number; each run of blocks is spread evenly: it has about
 * its share of the pieces of each first part of the files. */
static void test_spread(void **state) {
    (void)state;
    for (int32_t blocks = 1; blocks < 150; blocks++) {
        pli_dataset d = { .blocks = blocks, .dealt = true };
        plait_error err;
        assert_int_equal(pli_dataset_deal(&d, &err), PLAIT_OK);
        double worst = 0;
        bool   there[150] = { false };
        for (int32_t b = 0; b < blocks; b++) there[d.piece[b]] = true;
        for (int32_t b = 0; b < blocks; b++) assert_true(there[b]);
        for (int32_t from = 0; from < blocks; from++)
            for (int32_t part = 1; part < blocks; part++)
                for (int32_t b = from, n = 0; b < blocks; b++) {
                    n += d.piece[b] < part;
                    const double off = fabs(n - (double)(b + 1 - from) * part / blocks);
                    if (off > worst) worst = off;
                }
        if (worst > 4) fail_msg("%d blocks: a run has %.2f pieces too many or too few", blocks, worst);
        pli_free(d.piece);
    }
}

/* A block that is fetched is the one that its worker has; with and without a cache, and in memory. */
static void test_fetch(void **state) {
    static const data_form forms[] = { LIBSVM, CSV, IDX, CACHED, MEMORY };
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        pli_dataset *d[3] = { NULL };
        plait_data  *memory = open_all(forms[f], CLASSES, true, 3, d);
        for (int32_t b = 0; b < pli_dataset_blocks(d[0]); b++) {
            const pli_dataset *home = d[pli_dataset_home(d[0], b)];
            const pli_block   *own = pli_dataset_block(home, b - pli_dataset_first_block(home));
            pli_borrowed      *borrowed = NULL;
            plait_error        err;
            seen              *s = calloc(1, sizeof *s);
            assert_int_equal(pli_dataset_borrow(d[1], b, &borrowed, &err), PLAIT_OK);
            const pli_block *guest = pli_borrowed_block(borrowed);
            assert_int_equal(guest->number, own->number);
            assert_int_equal(guest->first_row, own->first_row);
            assert_int_equal(guest->rows, own->rows);
            for (int64_t r = 0; r < guest->rows; r++)
                look(guest, r, CLASSES, forms[f] != CSV && forms[f] != IDX, 0, s);
            pli_borrowed_free(&borrowed);
            free(s);
        }
        for (int32_t w = 0; w < 3; w++) pli_dataset_destroy(&d[w]);
        plait_data_destroy(&memory);
    }
}

/* A checkpoint of blocks must not be taken for one of other blocks, nor a cache. */
static void test_told_apart(void **state) {
    pli_dataset *d[2] = { NULL };
    (void)state;
    for (int dealt = 0; dealt < 2; dealt++) open_all(LIBSVM, 2, dealt != 0, 1, &d[dealt]);
    assert_true(pli_dataset_fingerprint(d[0]) != pli_dataset_fingerprint(d[1]));
    for (int i = 0; i < 2; i++) pli_dataset_destroy(&d[i]);
    check(CACHED, 2, false, 2);
    open_all(CACHED, 2, true, 1, d);
    assert_non_null(strstr(pli_dataset_notes(d[0]), "other data or options"));
    pli_dataset_destroy(&d[0]);
}

static int begin(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    write_files(2);
    write_files(CLASSES);
    return 0;
}

static int end(void **state) {
    static const char *const endings[] = { ".svm", ".svm.weight", ".svm.plait-cache", ".csv", "-images-idx3-ubyte",
                                           "-labels-idx1-ubyte" };
    (void)state;
    for (int classes = 2; classes <= CLASSES; classes += 8)
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
            for (int part = 0; part < 2; part++) unlink(path_of(classes, part, endings[i]));
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_spread), cmocka_unit_test(test_shares),
                                        cmocka_unit_test(test_fetch), cmocka_unit_test(test_told_apart) };
    return cmocka_run_group_tests(tests, begin, end);
}
