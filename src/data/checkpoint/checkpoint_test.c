/* Checkpoints: written by several ranks, read by any number; several in a folder, of which the newest whole one
 * counts. */
#include "checkpoint_case.h"

/* With any number of writers, any rows can be read, across all borders of parts. */
static void test_rows_of_any_number_of_parts(void **state) {
    (void)state;
    for (int32_t parts = 1; parts <= MOST_PARTS; parts++) {
        char        folder[PLI_CHECKPOINT_FOLDER];
        plait_error err;
        good(write_checkpoint(parts, parts, 17, folder, &err), &err);
        pli_checkpoint *checkpoint = open_newest(NULL);
        assert_string_equal(pli_checkpoint_folder(checkpoint), folder);
        assert_int_equal(pli_checkpoint_clock(checkpoint), parts);
        assert_int_equal(pli_checkpoint_serial(checkpoint), parts);
        assert_int_equal(pli_checkpoint_parts(checkpoint), parts);
        for (int64_t first = 0; first <= 17; first++)
            for (int64_t rows = 0; rows <= 17 - first; rows++) check_rows(checkpoint, parts, first, rows);
        assert_int_equal(pli_checkpoint_pieces(checkpoint, pli_checkpoint_find(checkpoint, "w.values")), parts);
        pli_checkpoint_close(&checkpoint);
        assert_null(checkpoint);
    }
}

static void test_loose_pieces_and_meta(void **state) {
    static const uint64_t want[] = { 100, 200, 201, 300, 301, 302 };
    char                  folder[PLI_CHECKPOINT_FOLDER], note[5];
    uint64_t              keys[6];
    plait_error           err;
    (void)state;
    good(write_checkpoint(3, 4, 2, folder, &err), &err);
    pli_checkpoint              *checkpoint = open_newest(NULL);
    const pli_checkpoint_tensor *loose = pli_checkpoint_find(checkpoint, "s.keys");
    assert_int_equal(pli_checkpoint_tensors(checkpoint), 3);
    assert_int_equal(loose->rows, 6);
    good(pli_checkpoint_read(checkpoint, loose, 0, 6, keys, &err), &err);
    assert_memory_equal(keys, want, sizeof want);
    good(pli_checkpoint_read(checkpoint, loose, 2, 2, keys, &err), &err);
    assert_memory_equal(keys, want + 2, 2 * sizeof *want);
    good(pli_checkpoint_read(checkpoint, pli_checkpoint_find(checkpoint, "note"), 0, 5, note, &err), &err);
    assert_memory_equal(note, "plait", 5);
    assert_null(pli_checkpoint_find(checkpoint, "w"));
    assert_string_equal(pli_checkpoint_meta(checkpoint), "{\"epoch\":3,\"sum\":0.10000000000000001}");
    assert_int_equal(pli_checkpoint_read(checkpoint, loose, 5, 2, keys, &err), PLAIT_EINVAL);
    pli_checkpoint_close(&checkpoint);
}

/* A part is an ordinary safetensors file. */
static void test_parts_are_safetensors(void **state) {
    char             folder[PLI_CHECKPOINT_FOLDER];
    pli_text         text = { 0 };
    pli_safetensors *file = NULL;
    plait_error      err;
    (void)state;
    good(write_checkpoint(1, 2, 10, folder, &err), &err);
    good(pli_read_whole(path_of(0, folder, "part-00001-of-00002.safetensors"), 1 << 20, &text, &err), &err);
    good(pli_safetensors_parse(text.data, text.length, &file, &err), &err);
    const pli_tensor *w = pli_safetensors_find(file, "w.values@5");
    assert_non_null(w);
    assert_int_equal(w->shape[0], 5);
    assert_true(((const float *)w->data)[0] == value_at(1, 5, 0));
    assert_string_equal(pli_safetensors_metadata(file, "part"), "1 of 2");
    pli_safetensors_close(&file);
    pli_text_free(&text);
}

static void test_same_clock_again(void **state) {
    char        folder[PLI_CHECKPOINT_FOLDER];
    plait_error err;
    int64_t     clock, copy;
    (void)state;
    good(write_checkpoint(7, 1, 3, folder, &err), &err);
    assert_string_equal(folder, "checkpoint-000000000007");
    good(write_checkpoint(7, 1, 3, folder, &err), &err);
    assert_string_equal(folder, "checkpoint-000000000007-2");
    good(write_checkpoint(3, 1, 3, folder, &err), &err); /* a lower clock, but committed last, so it is the newest */
    pli_checkpoint *checkpoint = open_newest(NULL);
    assert_int_equal(pli_checkpoint_clock(checkpoint), 3);
    pli_checkpoint_close(&checkpoint);
    assert_true(pli_checkpoint_folder_read("checkpoint-1234567890123-17", &clock, &copy));
    assert_true(clock == INT64_C(1234567890123) && copy == 17);
    static const char *const wrong[] = { "checkpoint-7",
                                         "checkpoint-000000000007-1",
                                         "checkpoint-000000000007-",
                                         "checkpoint-000000000007x",
                                         "checkpoint-0000000000007",
                                         "checkpoint-000000000007-02",
                                         "point-000000000007",
                                         "",
                                         "checkpoint-99999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(pli_checkpoint_folder_read(wrong[i], NULL, NULL));
}

static void test_fall_back_with_reasons(void **state) {
    char            folder[4][PLI_CHECKPOINT_FOLDER];
    pli_text        passed_over = { 0 };
    pli_checkpoint *checkpoint = NULL;
    plait_error     err;
    (void)state;
    for (int i = 0; i < 4; i++) good(write_checkpoint(i + 1, 2, 16, folder[i], &err), &err);
    struct stat info;
    assert_int_equal(stat(path_of(0, folder[1], "part-00001-of-00002.safetensors"), &info), 0);
    flip(path_of(0, folder[1], "part-00001-of-00002.safetensors"), info.st_size - 9, 3); /* the last value of w */
    assert_int_equal(truncate(path_of(0, folder[2], "part-00000-of-00002.safetensors"), 100), 0);
    assert_int_equal(unlink(path_of(0, folder[3], "manifest.json")), 0);
    checkpoint = open_newest(&passed_over);
    assert_int_equal(pli_checkpoint_clock(checkpoint), 1);
    says(passed_over.data, "checkpoint-000000000004: was not written to its end\n");
    says(passed_over.data, "part-00000-of-00002.safetensors: cut short: it has 100 bytes, the manifest says");
    says(passed_over.data, "part-00001-of-00002.safetensors: tensor w.values: altered");
    pli_checkpoint_close(&checkpoint);
    pli_text_free(&passed_over);
    good(pli_checkpoint_open_at(dir, folder[1], &checkpoint, &err), &err); /* nothing is checked yet */
    check_rows(checkpoint, 2, 0, 8);                                       /* the rows in the other part are right */
    float row[COLUMNS];
    assert_int_equal(pli_checkpoint_read(checkpoint, pli_checkpoint_find(checkpoint, "w.values"), 8, 1, row, &err),
                     PLAIT_ECHECKSUM);
    says(err.text, "tensor w.values: altered");
    pli_checkpoint_close(&checkpoint);
    flip(path_of(0, folder[0], "manifest.json"), 30, 0);
    assert_int_equal(pli_checkpoint_open(dir, &checkpoint, NULL, &err), PLAIT_ECHECKSUM);
    says(err.text, "none of its checkpoints is good; the newest: ");
    assert_int_equal(pli_checkpoint_open_at(dir, "checkpoint-000000000009", &checkpoint, &err), PLAIT_ENAME);
    assert_int_equal(pli_checkpoint_open_at(dir, "../x", &checkpoint, &err), PLAIT_ENAME);
}

static void test_nothing_there(void **state) {
    pli_checkpoint *checkpoint = NULL;
    char            folder[PLI_CHECKPOINT_FOLDER];
    plait_error     err;
    (void)state;
    assert_int_equal(pli_checkpoint_open(dir, &checkpoint, NULL, &err), PLAIT_ENAME);
    says(err.text, "holds no checkpoint");
    assert_int_equal(pli_checkpoint_open(path_of(0, "none", ""), &checkpoint, NULL, &err), PLAIT_EIO);
    good(pli_checkpoint_begin(dir, 1, folder, &err), &err);
    assert_int_equal(pli_checkpoint_open(dir, &checkpoint, NULL, &err), PLAIT_ENAME);
    says(err.text, "that was written to its end");
}

static void test_prune(void **state) {
    char        folder[PLI_CHECKPOINT_FOLDER], first[PLI_CHECKPOINT_FOLDER], started[PLI_CHECKPOINT_FOLDER];
    plait_error err;
    FILE       *foreign;
    (void)state;
    good(write_checkpoint(1, 2, 4, first, &err), &err);
    good(write_checkpoint(2, 2, 4, folder, &err), &err);
    flip(path_of(0, folder, "manifest.json"), 25, 1); /* damaged: it does not count as kept */
    good(pli_checkpoint_begin(dir, 3, started, &err), &err);
    good(write_checkpoint(4, 2, 4, folder, &err), &err);
    good(pli_checkpoint_prune(dir, 2, NULL, &err), &err);
    assert_false(pli_is_directory(path_of(0, started, "")));
    assert_true(pli_is_directory(path_of(0, first, "")));
    assert_int_equal(count_folders(), 3);
    assert_non_null(foreign = fopen(path_of(0, first, "mine.txt"), "w"));
    fclose(foreign);
    good(pli_checkpoint_prune(dir, 1, NULL, &err), &err);
    assert_true(pli_file_exists(path_of(0, first, "mine.txt"))); /* a foreign file stays, and so does the folder */
    assert_false(pli_file_exists(path_of(0, first, "manifest.json")));
    pli_checkpoint *checkpoint = open_newest(NULL);
    assert_int_equal(pli_checkpoint_clock(checkpoint), 4);
    pli_checkpoint_close(&checkpoint);
    assert_int_equal(pli_checkpoint_prune(dir, 0, NULL, &err), PLAIT_EINVAL);
    assert_int_equal(pli_checkpoint_discard(dir, "..", &err), PLAIT_EINVAL);
    good(pli_checkpoint_discard(dir, folder, &err), &err);
    good(pli_checkpoint_discard(dir, folder, &err), &err);
    assert_false(pli_is_directory(path_of(0, folder, "")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(test_rows_of_any_number_of_parts),
        IN_A_FOLDER(test_loose_pieces_and_meta),
        IN_A_FOLDER(test_parts_are_safetensors),
        IN_A_FOLDER(test_same_clock_again),
        IN_A_FOLDER(test_fall_back_with_reasons),
        IN_A_FOLDER(test_nothing_there),
        IN_A_FOLDER(test_prune),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
