/* Text by characters: the rows of a small text; each character is answered once however windows lie; blocks of any
 * number of workers; a stream; what counts as text; unknown characters; refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/formats/chars.h"

static char directory[] = "/tmp/plait_chars_XXXXXX";

static const char *write_file(const char *name, const char *text, size_t bytes) {
    static char paths[4][128];
    static int  at;
    char       *path = paths[at++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
    return path;
}

/* Lines of random words over five letters. */
static size_t make_text(char *text, size_t bytes) {
    pli_random random = pli_random_at(5, PLI_RANDOM_DATA, 0, 0);
    for (size_t i = 0; i < bytes; i++) {
        const int kind = (int)pli_random_below(&random, 12);
        text[i] = kind == 0 ? '\n' : kind < 3 ? ' ' : (char)('a' + kind % 5);
    }
    return bytes;
}

typedef struct way {
    int32_t           window, apart, worker, workers;
    const pli_schema *fixed;
} way;

static plait_status open_text(const char *const *paths, int64_t n, way w, pli_dataset **out, plait_error *err) {
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = n;
    opts.format = "text";
    opts.window = w.window;
    opts.apart = w.apart;
    return pli_dataset_open(&opts, w.fixed, w.worker, w.workers > 0 ? w.workers : 1, out, err);
}

static pli_dataset *load(const char *const *paths, int64_t n, way w) {
    plait_error  err;
    pli_dataset *d = NULL;
    plait_status status = open_text(paths, n, w, &d, &err);
    if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
    if (status < 0) fail_msg("%s", err.text);
    return d;
}

/* The symbol at place `place` of a row; -1: there is none, `symbols`: the beginning or an unknown byte. */
static int64_t symbol_at(const pli_block *b, int64_t row, int64_t symbols, int64_t place) {
    for (int64_t e = b->row_start[row]; e < b->row_start[row + 1]; e++)
        if (b->col[e] / (uint32_t)(symbols + 1) == place) return b->col[e] % (uint32_t)(symbols + 1);
    return -1;
}

/* Appends all labels of a block's rows, in order, to text, and checks that each window has the characters before its
 * label. Returns the new length. */
static size_t read_back(const pli_dataset *d, const pli_block *b, char *text, size_t length) {
    int64_t       window[4];
    const int64_t symbols = pli_schema_symbols(d->schema);
    assert_int_equal(pli_schema_row_shape(d->schema, window), 2);
    assert_int_equal(window[1], symbols + 1);
    for (int64_t r = 0; r < b->rows; r++) {
        const int64_t labels = pli_block_labels(b, r);
        for (int64_t i = 0; i < labels; i++) {
            const int64_t place = window[0] - labels + i + 1; /* the place that is answered */
            const double  label = place == window[0] ? b->label[r] : d->schema->label[symbol_at(b, r, symbols, place)];
            for (int64_t p = place - 1; p >= 0; p--) {
                const int64_t at = (int64_t)length - (place - p), symbol = symbol_at(b, r, symbols, p);
                if (at >= 0 && symbol >= 0) assert_int_equal((int)d->schema->label[symbol], (unsigned char)text[at]);
                if (at < 0) assert_int_equal(symbol, at == -1 ? symbols : -1);
            }
            text[length++] = (char)label;
        }
    }
    return length;
}

static size_t read_all_back(const pli_dataset *d, char *text) {
    size_t n = 0;
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++) n = read_back(d, pli_dataset_block(d, b), text, n);
    return n;
}

static void test_rows_of_a_small_text(void **state) {
    (void)state;
    const char           *path = write_file("small", "abca", 4);
    pli_dataset          *d = load(&path, 1, (way){ .window = 2 });
    static const uint32_t keys[] = { 4 + 3, 3, 4 + 0, 0, 4 + 1, 1, 4 + 2 }; /* ^ | ^ a | a b | b c, of a b c ^ */
    static const int64_t  ends[] = { 1, 3, 5, 7 };
    pli_text              name = { 0 };
    int64_t               row = 0, e = 0;
    assert_int_equal(pli_schema_features(d->schema), 8);
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++) {
        const pli_block *block = pli_dataset_block(d, b);
        for (int64_t r = 0; r < block->rows; r++, row++) {
            assert_true(block->label[r] == (double)"abca"[row]);
            for (int64_t k = block->row_start[r]; k < block->row_start[r + 1]; k++)
                assert_int_equal(block->col[k], keys[e++]);
            assert_int_equal(e, ends[row]);
        }
    }
    assert_int_equal(row, 4);
    pli_schema_feature_name(d->schema, 4 + 1, &name);
    pli_text_add(&name, " ");
    pli_schema_feature_name(d->schema, 3, &name);
    assert_string_equal(name.data, "-1=b -2=other");
    pli_text_free(&name);
    pli_dataset_destroy(&d);
}

enum { TEXT = 3001 };

static void test_each_character_is_answered_once(void **state) {
    (void)state;
    static char      text[TEXT], back[TEXT + 1];
    static const way ways[] = {
        { .window = 1 }, { .window = 5 }, { .window = 8, .apart = 1 }, { .window = 7, .apart = 1 }, { .apart = 1 }
    };
    make_text(text, TEXT);
    const char *path = write_file("text", text, TEXT);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        pli_dataset *d = load(&path, 1, ways[i]);
        assert_int_equal(read_all_back(d, back), TEXT);
        assert_memory_equal(text, back, TEXT);
        way          judged = { .fixed = d->schema }; /* windows that overlap by half */
        pli_dataset *again = load(&path, 1, judged);
        assert_int_equal(read_all_back(again, back), TEXT);
        assert_memory_equal(text, back, TEXT);
        const int64_t window = again->chars != NULL ? again->schema->window : 0,
                      step = ways[i].apart ? (window + 1) / 2 : 1;
        assert_int_equal(again->schema->rows, (TEXT + step - 1) / step);
        pli_dataset_destroy(&again);
        pli_dataset_destroy(&d);
    }
}

/* Rows do not run from one of three files into the next, wherever blocks are cut. */
static void test_files_begin_anew(void **state) {
    (void)state;
    static char text[TEXT], back[TEXT + 1];
    make_text(text, TEXT);
    const char  *paths[] = { write_file("one", text, 1000), write_file("two", text + 1000, 1),
                             write_file("three", text + 1001, 2000) };
    pli_dataset *d = load(paths, 3, (way){ .window = 6, .apart = 1 });
    int64_t      begins = 0, rows = 0;
    size_t       n = 0;
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++) {
        const pli_block *block = pli_dataset_block(d, b);
        for (int64_t r = 0; r < block->rows; r++, rows++)
            for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++)
                begins += block->col[e] % (uint32_t)(d->schema->labels + 1) == d->schema->labels;
        for (int64_t r = 0; r < block->rows; r++) n += (size_t)pli_block_labels(block, r);
    }
    assert_int_equal(begins, 3);
    assert_int_equal(rows, 167 + 1 + 334);
    assert_int_equal(n, TEXT);
    pli_dataset_destroy(&d);
    d = load(paths, 1, (way){ .window = 6, .apart = 1 });
    assert_int_equal(read_all_back(d, back), 1000);
    assert_memory_equal(text, back, 1000);
    pli_dataset_destroy(&d);
}

static void test_blocks_do_not_depend_on_workers(void **state) {
    (void)state;
    static char text[TEXT], back[TEXT + 1];
    enum { WORKERS = 3 };
    make_text(text, TEXT);
    memset(text + TEXT - 100, 'z', 100); /* a symbol that only one worker meets */
    const char       *path = write_file("text", text, TEXT);
    pli_dataset      *d[WORKERS];
    const pli_schema *part[WORKERS];
    pli_schema       *joined = NULL;
    plait_error       err;
    size_t            n = 0;
    for (int32_t w = 0; w < WORKERS; w++) {
        d[w] = load(&path, 1, (way){ .window = 9, .apart = 1, .worker = w, .workers = WORKERS });
        part[w] = pli_dataset_schema(d[w]);
    }
    assert_int_equal(pli_schema_merge(part, WORKERS, &joined, &err), PLAIT_OK);
    for (int32_t w = 0; w < WORKERS; w++) assert_int_equal(pli_dataset_agree(d[w], joined, &err), PLAIT_OK);
    for (int32_t w = 0; w < WORKERS; w++)
        for (int32_t b = 0; b < pli_dataset_own_blocks(d[w]); b++)
            n = read_back(d[w], pli_dataset_block(d[w], b), back, n);
    assert_int_equal(n, TEXT);
    assert_memory_equal(text, back, TEXT);
    for (int32_t w = 0; w < WORKERS; w++) pli_dataset_destroy(&d[w]);
    pli_schema_destroy(&joined);
}

static void test_a_stream_has_the_same_rows(void **state) {
    (void)state;
    static char text[TEXT];
    make_text(text, TEXT);
    const char  *path = write_file("text", text, TEXT);
    plait_error  err;
    pli_dataset *d = NULL;
    pli_schema  *joined = NULL;
    pli_batches *stream = NULL;
    pli_batch    batch;
    int64_t      rows = 0;
    assert_int_equal(open_text(&path, 1, (way){ .window = 4, .apart = 1 }, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_scan(d, false, NULL, &err), PLAIT_OK);
    const pli_schema *part = pli_dataset_schema(d);
    assert_int_equal(pli_schema_merge(&part, 1, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_agree(d, joined, &err), PLAIT_OK);
    assert_int_equal(pli_batches_stream(d, 64, NULL, &stream, &err), PLAIT_OK);
    for (int64_t clock = 0; pli_batches_get(stream, 0, clock, &batch, &err) == PLAIT_OK; clock++)
        for (int32_t p = 0; p < batch.parts; p++)
            for (int64_t r = batch.part[p].first; r < batch.part[p].first + batch.part[p].rows; r++, rows++) {
                const pli_block *b = batch.part[p].block;
                const int64_t    row = b->first_row + r, end = 4 * row + 4 < TEXT ? 4 * row + 4 : TEXT;
                assert_true(b->label[r] == (double)text[end - 1]);
                assert_int_equal(pli_block_labels(b, r), end - 4 * row);
            }
    assert_int_equal(rows, (TEXT + 3) / 4);
    pli_batches_destroy(&stream);
    pli_dataset_destroy(&d);
    pli_schema_destroy(&joined);
}

/* --- what is text ------------------------------------------------------------------------------------------------- */

static bool is_text(const char *text) {
    return pli_chars_is(&(pli_source){ .data = (const unsigned char *)text, .bytes = strlen(text) });
}

static void test_what_is_text(void **state) {
    (void)state;
    assert_true(is_text("First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n\nFirst "
                        "Citizen:\nYou are "
                        "all resolved rather to die than to famish?\n"));
    assert_true(is_text("Über allen Gipfeln\nIst Ruh,\nIn allen Wipfeln\nSpürest du\nKaum einen Hauch;\nDie Vögelein "
                        "schweigen im Walde.\n"
                        "Warte nur, balde\nRuhest du auch.\n"));
    assert_false(is_text("size,city of birth\n1,Bad Ems\n2,Ulm\n3,Bonn am Rhein\n4,Rome\n"));
    assert_false(is_text("the first column\tthe second\na b c\td e f\na\tb c d e\nx y z\tu v\n"));
    assert_false(is_text("1 5:1 7:2\n0 3:1\n1 2:4 9:9 11:1\n0 1:1\n1 7:1 8:1\n"));
    assert_false(is_text("a b c\nd e f\ng h i\nj k l\n"));
    assert_false(is_text("one\ntwo\nthree\nfour\nfive\nsix\n"));     /* a column of words */
    assert_false(is_text("1.5 2\n3\n4 5 6\n7 8 9 10\n11\n12 13\n")); /* numbers */
    assert_false(is_text("1,2,3\n4,5\n6,7,8\n9,10,11\n"));           /* a table with a slip */
    assert_false(is_text("some words\nof a text\x01 that is\nno text but\nsomething else\n"));
    assert_false(is_text("only a line of some words"));
}

static void test_what_is_not_known(void **state) {
    (void)state;
    const char  *path = write_file("known", "a b a b\n", 8);
    pli_dataset *d = load(&path, 1, (way){ .window = 4, .apart = 1 });
    pli_text     json = { 0 }, name = { 0 };
    pli_schema  *again = NULL;
    plait_error  err;
    assert_int_equal(pli_schema_write_model(d->schema, &json, &err), PLAIT_OK);
    assert_int_equal(pli_schema_read(json.data, json.length, &again, &err), PLAIT_OK);
    assert_int_equal(pli_schema_features(again), 4 * 5);
    assert_int_equal(pli_schema_row_labels(again), 4);
    for (int64_t k = 0; k < pli_schema_labels(again); k++) pli_schema_label_text(again, k, &name);
    assert_string_equal(name.data, "\\n ab");
    path = write_file("unknown", "a\xc3\xa4 b", 5);
    pli_dataset     *test = load(&path, 1, (way){ .fixed = again });
    const pli_block *b = NULL;
    for (int32_t i = 0; b == NULL || b->rows == 0; i++) b = pli_dataset_block(test, i);
    assert_true(b->label[0] == 0xc3);
    assert_int_equal(symbol_at(b, 0, 4, 2), 4); /* the beginning of the text */
    assert_int_equal(symbol_at(b, 0, 4, 3), 2); /* a */
    pli_dataset_destroy(&test);
    pli_schema_destroy(&again);
    pli_dataset_destroy(&d);
    pli_text_free(&json);
    pli_text_free(&name);
}

static void refused(plait_data_opts opts, const pli_schema *fixed, plait_status status, const char *part) {
    const char  *path = write_file("any", "a b a b\n", 8);
    pli_dataset *d = NULL;
    plait_error  err;
    opts.paths = &path;
    opts.n_paths = 1;
    opts.format = "text";
    assert_int_equal(pli_dataset_open(&opts, fixed, 0, 1, &d, &err), status);
    if (strstr(err.text, part) == NULL) fail_msg("'%s' does not say '%s'", err.text, part);
}

static void test_refusals(void **state) {
    (void)state;
    const char     *path = write_file("known", "a b a b\n", 8);
    pli_dataset    *d = load(&path, 1, (way){ .window = 4 });
    plait_data_opts opts, with;
    plait_data_opts_init(&opts);
    with = opts;
    with.hash_bits = 4;
    refused(with, NULL, PLAIT_EINVAL, "leave out --hash-bits");
    with = opts;
    with.label = "1";
    refused(with, NULL, PLAIT_EINVAL, "leave out --label");
    with = opts;
    with.window = 1025;
    refused(with, NULL, PLAIT_EINVAL, "expected 1 to 1024");
    with.window = 5;
    refused(with, d->schema, PLAIT_EMISMATCH, "windows of 4 characters, not 5");
    pli_dataset_destroy(&d);
}

static int set_up(void **state) {
    (void)state;
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static int tear_down(void **state) {
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_a_small_text),       cmocka_unit_test(test_each_character_is_answered_once),
        cmocka_unit_test(test_files_begin_anew),           cmocka_unit_test(test_blocks_do_not_depend_on_workers),
        cmocka_unit_test(test_a_stream_has_the_same_rows), cmocka_unit_test(test_what_is_text),
        cmocka_unit_test(test_what_is_not_known),          cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
