/* Checkpoints: written by several, read by any number, refused when cut, altered or wrong, and never half there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/checkpoint.h"
#include "data/data.h"
#include "data/manifest.h"

enum { COLUMNS = 3, MOST_PARTS = 5 };

static char *dir; /* of the running test */

/* --- helpers ---------------------------------------------------------------------------------------------- */

static void good(plait_status status, const plait_error *err) {
    if (status != PLAIT_OK) fail_msg("%s", err->text);
}

static void says(const char *text, const char *words) {
    if (text == NULL || strstr(text, words) == NULL)
        fail_msg("expected \"%s\" in \"%s\"", words, text != NULL ? text : "");
}

/* path is overwritten by the next call of the same k. */
static const char *path_of(int k, const char *folder, const char *name) {
    static char path[4][512];
    snprintf(path[k], sizeof path[k], "%s/%s%s%s", dir, folder, name[0] != '\0' ? "/" : "", name);
    return path[k];
}

static float value_at(int64_t clock, int64_t row, int64_t column) { return (float)(1000 * clock + 10 * row + column); }

/* A dense table of `rows` over `parts`, cut as it comes out; keys of a sparse one, loose; one tensor that is in a
 * single part. */
static plait_status write_part(const char *folder, int64_t clock, int32_t part, int32_t parts, int64_t rows,
                               pli_text *digest, plait_error *err) {
    int64_t               from = rows * part / parts, to = rows * (part + 1) / parts;
    uint64_t              keys[MOST_PARTS];
    pli_partfile         *file = NULL;
    pli_checkpoint_tensor tensor[3] = {
        { .name = "w.values", .type = "F32", .dims = 2, .shape = { to - from, COLUMNS }, .first = from, .rows = rows },
        { .name = "s.keys", .type = "U64", .dims = 1, .shape = { part }, .first = PLI_CHECKPOINT_LOOSE },
        { .name = "note", .type = "U8", .dims = 1, .shape = { 5 }, .first = 0, .rows = 5 },
    };
    PLI_TRY(pli_partfile_begin(dir, folder, part, parts, tensor, part == 0 ? 3 : 2, &file, err));
    plait_status status = PLAIT_OK;
    for (int64_t i = from; i < to && status == PLAIT_OK; i++) {
        float row[COLUMNS];
        for (int64_t k = 0; k < COLUMNS; k++) row[k] = value_at(clock, i, k);
        status = pli_partfile_write(file, row, sizeof row, err);
    }
    for (int32_t i = 0; i < part; i++) keys[i] = (uint64_t)(100 * part + i);
    if (status == PLAIT_OK) status = pli_partfile_write(file, keys, (size_t)part * sizeof *keys, err);
    if (status == PLAIT_OK && part == 0) status = pli_partfile_write(file, "plait", 5, err);
    if (status == PLAIT_OK) return pli_partfile_end(&file, digest, err);
    pli_partfile_abandon(&file);
    return status;
}

static plait_status write_checkpoint(int64_t clock, int32_t parts, int64_t rows, char folder[PLI_CHECKPOINT_FOLDER],
                                     plait_error *err) {
    pli_text    digest[MOST_PARTS] = { 0 };
    const char *digests[MOST_PARTS];
    char        meta[64];
    PLI_TRY(pli_checkpoint_begin(dir, clock, folder, err));
    plait_status status = PLAIT_OK;
    for (int32_t p = parts - 1; p >= 0 && status == PLAIT_OK; p--) {
        status = write_part(folder, clock, p, parts, rows, &digest[p], err);
        digests[p] = digest[p].data;
    }
    snprintf(meta, sizeof meta, "{\"epoch\": %d, \"sum\": 0.1}", (int)clock);
    if (status == PLAIT_OK) status = pli_checkpoint_commit(dir, folder, meta, digests, parts, err);
    for (int32_t p = 0; p < parts; p++) pli_text_free(&digest[p]);
    return status;
}

static void check_rows(pli_checkpoint *checkpoint, int64_t clock, int64_t first, int64_t rows) {
    const pli_checkpoint_tensor *w = pli_checkpoint_find(checkpoint, "w.values");
    float                        out[64][COLUMNS];
    plait_error                  err;
    assert_non_null(w);
    good(pli_checkpoint_read(checkpoint, w, first, rows, out, &err), &err);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < COLUMNS; k++) assert_true(out[i][k] == value_at(clock, first + i, k));
}

static pli_checkpoint *open_newest(pli_text *passed_over) {
    pli_checkpoint *checkpoint = NULL;
    plait_error     err;
    good(pli_checkpoint_open(dir, &checkpoint, passed_over, &err), &err);
    return checkpoint;
}

static void flip(const char *path, off_t at, unsigned bit) {
    unsigned char byte;
    int           fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= (unsigned char)(1u << bit);
    assert_true(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
}

static int64_t count_folders(void) {
    pli_checkpoint_list list;
    plait_error         err;
    good(pli_checkpoint_list_read(dir, &list, &err), &err);
    int64_t n = list.n;
    pli_checkpoint_list_free(&list);
    return n;
}

/* --- tests ------------------------------------------------------------------------------------------------ */

/* Whatever the number of writers, any rows can be read, over all borders. */
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

/* A part is a safetensors file like any other. */
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
    good(write_checkpoint(3, 1, 3, folder, &err), &err); /* a lower clock, and yet the newest */
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
    good(pli_checkpoint_open_at(dir, folder[1], &checkpoint, &err), &err); /* not yet looked at */
    check_rows(checkpoint, 2, 0, 8);                                       /* the other part's are right */
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
    assert_true(pli_file_exists(path_of(0, first, "mine.txt"))); /* what is not ours stays, and so does the folder */
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

/* What a caller may get wrong, and what ranks may disagree on. */
static void refuse_piece(pli_checkpoint_tensor tensor, const char *words) {
    char          folder[PLI_CHECKPOINT_FOLDER];
    pli_partfile *file = NULL;
    plait_error   err;
    good(pli_checkpoint_begin(dir, 5, folder, &err), &err);
    assert_int_equal(pli_partfile_begin(dir, folder, 0, 1, &tensor, 1, &file, &err), PLAIT_EINVAL);
    says(err.text, words);
    good(pli_checkpoint_discard(dir, folder, &err), &err);
}

static void test_refused_pieces(void **state) {
    char                        long_name[PLI_CHECKPOINT_NAME + 2] = "";
    const pli_checkpoint_tensor right = { .name = "a", .type = "F32", .dims = 2, .shape = { 2, 3 }, .rows = 4 };
    pli_checkpoint_tensor       wrong = right;
    (void)state;
    memset(long_name, 'x', sizeof long_name - 1);
    wrong.name = long_name, refuse_piece(wrong, "a tensor's name");
    wrong.name = "\xff", refuse_piece(wrong, "a tensor's name");
    wrong.name = "a\nb", refuse_piece(wrong, "a tensor's name");
    wrong.name = "", refuse_piece(wrong, "a tensor's name");
    wrong = right, wrong.type = "F33", refuse_piece(wrong, "unknown type 'F33'");
    wrong = right, wrong.dims = 0, refuse_piece(wrong, "dimensions");
    wrong = right, wrong.dims = 5, refuse_piece(wrong, "dimensions");
    wrong = right, wrong.shape[1] = INT64_MAX, refuse_piece(wrong, "too many bytes");
    wrong = right, wrong.shape[0] = -1, refuse_piece(wrong, "negative length");
    wrong = right, wrong.first = 3, refuse_piece(wrong, "do not lie among 4");
    wrong = right, wrong.first = -2, refuse_piece(wrong, "do not lie among 4");
    wrong = right, wrong.rows = INT64_MAX, refuse_piece(wrong, "do not lie among");
}

static void test_refused_bytes(void **state) {
    char                        folder[PLI_CHECKPOINT_FOLDER];
    const pli_checkpoint_tensor pair[] = { { .name = "a", .type = "U8", .dims = 1, .shape = { 2 }, .rows = 2 },
                                           { .name = "a", .type = "U8", .dims = 1, .shape = { 2 }, .rows = 2 } };
    pli_partfile               *file = NULL;
    pli_text                    digest = { 0 };
    plait_error                 err;
    (void)state;
    good(pli_checkpoint_begin(dir, 5, folder, &err), &err);
    assert_int_equal(pli_partfile_begin(dir, folder, 0, 1, pair, 2, &file, &err), PLAIT_EINVAL);
    says(err.text, "two tensors");
    assert_int_equal(pli_partfile_begin(dir, folder, 1, 1, pair, 1, &file, &err), PLAIT_EINVAL);
    assert_int_equal(pli_partfile_begin(dir, "..", 0, 1, pair, 1, &file, &err), PLAIT_EINVAL);
    good(pli_partfile_begin(dir, folder, 0, 1, pair, 1, &file, &err), &err);
    assert_int_equal(pli_partfile_write(file, "abc", 3, &err), PLAIT_EINVAL);
    says(err.text, "more than its tensors have");
    pli_partfile_abandon(&file);
    good(pli_partfile_begin(dir, folder, 0, 1, pair, 1, &file, &err), &err);
    good(pli_partfile_write(file, "a", 1, &err), &err);
    assert_int_equal(pli_partfile_end(&file, &digest, &err), PLAIT_EINVAL);
    says(err.text, "tensor a has 1 of 2 bytes");
    assert_null(file);
    assert_false(pli_file_exists(path_of(0, folder, "part-00000-of-00001.safetensors")));
    assert_int_equal(pli_checkpoint_begin(dir, -1, folder, &err), PLAIT_EINVAL);
    pli_text_free(&digest);
}

/* One part of bytes, of a tensor that says it is rows first .. first + n - 1 of `rows`. */
static char *piece(const char *folder, int32_t part, int32_t parts, const char *type, int64_t first, int64_t n,
                   int64_t rows) {
    const pli_checkpoint_tensor tensor = {
        .name = "t", .type = type, .dims = 1, .shape = { n }, .first = first, .rows = rows
    };
    static const char zeros[64];
    pli_partfile     *file = NULL;
    pli_text          digest = { 0 };
    plait_error       err;
    good(pli_partfile_begin(dir, folder, part, parts, &tensor, 1, &file, &err), &err);
    good(pli_partfile_write(file, zeros, (size_t)(n * pli_checkpoint_row_bytes(&tensor)), &err), &err);
    good(pli_partfile_end(&file, &digest, &err), &err);
    return digest.data;
}

static void refuse_commit(char *a, char *b, const char *folder, const char *meta, plait_status status,
                          const char *words) {
    const char *const digests[] = { a, b };
    plait_error       err;
    assert_int_equal(pli_checkpoint_commit(dir, folder, meta, digests, 2, &err), status);
    says(err.text, words);
    assert_false(pli_file_exists(path_of(0, folder, "manifest.json")));
    pli_free(a);
    pli_free(b);
}

static void test_refused_commits(void **state) {
    char        f[PLI_CHECKPOINT_FOLDER];
    plait_error err;
    (void)state;
    good(pli_checkpoint_begin(dir, 5, f, &err), &err);
    refuse_commit(piece(f, 0, 2, "U8", 0, 4, 9), piece(f, 1, 2, "U8", 5, 4, 9), f, NULL, PLAIT_EINVAL,
                  "t: rows 4 to 4 are missing");
    refuse_commit(piece(f, 0, 2, "U8", 0, 4, 9), piece(f, 1, 2, "U8", 4, 4, 9), f, NULL, PLAIT_EINVAL,
                  "t: rows 8 to 8 are missing");
    refuse_commit(piece(f, 0, 2, "U8", 0, 4, 7), piece(f, 1, 2, "U8", 3, 4, 7), f, NULL, PLAIT_EINVAL,
                  "t: rows from 3 on are there twice");
    refuse_commit(piece(f, 0, 2, "U8", 0, 4, 8), piece(f, 1, 2, "I8", 4, 4, 8), f, NULL, PLAIT_EINVAL, "disagree");
    refuse_commit(piece(f, 0, 2, "U8", 0, 4, 8), piece(f, 1, 2, "U8", 4, 4, 9), f, NULL, PLAIT_EINVAL, "disagree");
    refuse_commit(piece(f, 0, 2, "U8", 0, 4, 8), piece(f, 0, 2, "U8", 4, 4, 8), f, NULL, PLAIT_EINVAL,
                  "part 0 is there twice");
    refuse_commit(piece(f, 0, 3, "U8", 0, 4, 8), piece(f, 1, 2, "U8", 4, 4, 8), f, NULL, PLAIT_EINVAL,
                  "none of 2 parts");
    refuse_commit(piece(f, 0, 2, "U8", 0, 4, 8), piece(f, 1, 2, "U8", 4, 4, 8), f, "[]", PLAIT_EINVAL,
                  "expected a JSON object");
    refuse_commit(piece(f, 0, 2, "U8", 0, 4, 8), pli_strdup("{"), f, NULL, PLAIT_EINVAL, "none of 2 parts");
    char *a = piece(f, 0, 2, "U8", 0, 4, 8), *b = piece(f, 1, 2, "U8", 4, 4, 8);
    assert_int_equal(unlink(path_of(1, f, "part-00001-of-00002.safetensors")), 0);
    refuse_commit(a, b, f, NULL, PLAIT_EIO, "all ranks must see one directory");
}

/* The manifest of `text` with its last line made right again. */
static plait_status read_sealed(const char *text, plait_error *err) {
    unsigned char hash[16];
    pli_text      sealed = { 0 };
    pli_manifest *manifest = NULL;
    pli_text_add_bytes(&sealed, text, strlen(text));
    pli_hash128(sealed.data, sealed.length, hash);
    pli_text_add(&sealed, "\"checksum\":\"");
    for (int i = 0; i < 16; i++) pli_text_add(&sealed, "%02x", hash[i]);
    pli_text_add(&sealed, "\"}\n");
    plait_status status = pli_manifest_read(sealed.data, sealed.length, &manifest, err);
    pli_manifest_free(&manifest);
    pli_text_free(&sealed);
    return status;
}

static void refuse_manifest(const char *text, const char *from, const char *to, plait_status status,
                            const char *words) {
    pli_text    changed = { 0 };
    plait_error err;
    const char *at = strstr(text, from);
    assert_non_null(at);
    pli_text_add(&changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_int_equal(read_sealed(changed.data, &err), status);
    says(err.text, words);
    pli_text_free(&changed);
}

/* Manifests whose checksum is right, and yet. */
static void test_refused_manifests(void **state) {
    char        folder[PLI_CHECKPOINT_FOLDER];
    pli_text    text = { 0 };
    plait_error err;
    (void)state;
    good(write_checkpoint(2, 2, 10, folder, &err), &err);
    good(pli_read_whole(path_of(0, folder, "manifest.json"), 1 << 20, &text, &err), &err);
    *strstr(text.data, "\"checksum\"") = '\0';
    good(read_sealed(text.data, &err), &err);
    const char *m = text.data;
    refuse_manifest(m, "_checkpoint\":1", "_checkpoint\":2", PLAIT_EVERSION,
                    "written by a newer plait (manifest version 2");
    refuse_manifest(m, "_checkpoint\":1", "_checkpoint\":0", PLAIT_EFORMAT, "no version");
    refuse_manifest(m, "plait_checkpoint", "plait_checkpaint", PLAIT_EFORMAT, "no checkpoint's manifest");
    refuse_manifest(m, "\"part-00000-of-00002.safetensors\"", "\"../../etc/passwd\"", PLAIT_EFORMAT,
                    "found '../../etc/passwd'");
    refuse_manifest(m, "\"part-00000-of-00002.safetensors\"", "\"/etc/passwd\"", PLAIT_EFORMAT,
                    "and nothing else; found '/etc/passwd'");
    refuse_manifest(m, "\"part-00000-of-00002.safetensors\"", "\"part-00001-of-00002.safetensors\"", PLAIT_EFORMAT,
                    "and nothing else");
    refuse_manifest(m, "\"first\":5", "\"first\":4", PLAIT_EFORMAT, "w.values: rows from 4 on are there twice");
    refuse_manifest(m, "\"first\":5", "\"first\":-1", PLAIT_EFORMAT, "w.values: has no place");
    refuse_manifest(m, "\"shape\":[5,3]", "\"shape\":[4,3]", PLAIT_EFORMAT, "bytes with the header");
    refuse_manifest(m, "\"shape\":[5,3]", "\"shape\":[5,3,1,1,1]", PLAIT_EFORMAT, "expected name, dtype, shape");
    refuse_manifest(m, "\"shape\":[5,3]", "\"shape\":[5,\"3\"]", PLAIT_EFORMAT, "expected name, dtype, shape");
    refuse_manifest(m, "\"shape\":[5,3]", "\"shape\":[4611686018427387904,3]", PLAIT_EFORMAT, "too many bytes");
    refuse_manifest(m, "\"F32\"", "\"F31\"", PLAIT_EFORMAT, "unknown type");
    refuse_manifest(m, "\"clock\":2", "\"clock\":-2", PLAIT_EFORMAT, "expected serial, clock");
    refuse_manifest(m, "\"clock\":2", "\"clock\":02", PLAIT_EFORMAT, "no JSON");
    refuse_manifest(m, "\"clock\":2", "\"clock\": 2", PLAIT_EFORMAT, "not written as plait writes");
    refuse_manifest(m, "\"clock\":2", "\"clock\":2,\"more\":1", PLAIT_EFORMAT, "not written as plait writes");
    refuse_manifest(m, "\"clock\":2", "\"clock\":2,\"clock\":2", PLAIT_EFORMAT, "duplicate");
    refuse_manifest(m, "\"meta\":{", "\"meta\":{\"a\\u0020b\":1,", PLAIT_EFORMAT, "not written as plait writes");
    refuse_manifest(m, "\"xxh3\":\"", "\"xxh3\":\"0", PLAIT_EFORMAT, "expected name, dtype");
    pli_text_free(&text);
}

/* Nothing outside the folder is opened, whoever put what there. */
static void test_links_and_pipes(void **state) {
    char            folder[PLI_CHECKPOINT_FOLDER];
    pli_checkpoint *checkpoint = NULL;
    plait_error     err;
    (void)state;
    good(write_checkpoint(1, 1, 3, folder, &err), &err);
    const char *part = path_of(0, folder, "part-00000-of-00001.safetensors"), *away = path_of(1, "elsewhere", "");
    assert_int_equal(rename(part, away), 0);
    assert_int_equal(symlink(away, part), 0);
    assert_int_equal(pli_checkpoint_open(dir, &checkpoint, NULL, &err), PLAIT_ECHECKSUM);
    says(err.text, "is a symbolic link");
    assert_true(unlink(part) == 0 && mkfifo(part, 0600) == 0);
    assert_int_equal(pli_checkpoint_open(dir, &checkpoint, NULL, &err), PLAIT_ECHECKSUM);
    says(err.text, "not a regular file");
    assert_true(unlink(part) == 0 && rename(away, part) == 0);
    pli_checkpoint *again = open_newest(NULL);
    pli_checkpoint_close(&again);
    assert_int_equal(rename(path_of(0, folder, ""), path_of(1, "checkpoint-000000000009", "")), 0);
    assert_int_equal(pli_checkpoint_open(dir, &checkpoint, NULL, &err), PLAIT_ECHECKSUM);
    says(err.text, "the folder has another's name");
}

/* One of 64 KiB, in three files and the manifest. */
static void write_64k(char folder[PLI_CHECKPOINT_FOLDER]) {
    enum { PARTS = 3, BYTES = 21500 };
    unsigned char bytes[BYTES];
    pli_text      digest[PARTS] = { 0 };
    const char   *digests[PARTS];
    plait_error   err;
    good(pli_checkpoint_begin(dir, 1, folder, &err), &err);
    for (int32_t p = 0; p < PARTS; p++) {
        const pli_checkpoint_tensor tensor = {
            .name = "t", .type = "U8", .dims = 2, .shape = { 1, BYTES }, .first = p, .rows = PARTS
        };
        pli_partfile *file = NULL;
        for (int i = 0; i < BYTES; i++) bytes[i] = (unsigned char)pli_hash_u64((uint64_t)(p * BYTES + i));
        good(pli_partfile_begin(dir, folder, p, PARTS, &tensor, 1, &file, &err), &err);
        good(pli_partfile_write(file, bytes, sizeof bytes, &err), &err);
        good(pli_partfile_end(&file, &digest[p], &err), &err);
        digests[p] = digest[p].data;
    }
    good(pli_checkpoint_commit(dir, folder, "{\"epoch\":1,\"loss\":0.25}", digests, PARTS, &err), &err);
    for (int32_t p = 0; p < PARTS; p++) pli_text_free(&digest[p]);
}

/* Every bit of a part, turned on the disk and judged by what verify calls. */
static int64_t flip_part(const char *folder, int32_t part) {
    pli_checkpoint *checkpoint = NULL;
    plait_error     err;
    char            name[PLI_PART_NAME];
    unsigned char   byte, turned;
    pli_part_name(part, 3, name);
    good(pli_checkpoint_open_at(dir, folder, &checkpoint, &err), &err);
    int64_t bytes = pli_checkpoint_part_bytes(checkpoint, part);
    int     fd = open(path_of(0, folder, name), O_RDWR);
    for (off_t at = 0; at < bytes; at++) {
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        for (unsigned bit = 0; bit < 8; bit++) {
            turned = (unsigned char)(byte ^ 1u << bit);
            assert_int_equal(pwrite(fd, &turned, 1, at), 1);
            if (pli_checkpoint_verify_part(checkpoint, part, &err) != PLAIT_ECHECKSUM)
                fail_msg("part %d: bit %u of byte %lld is turned, and nobody notices", part, bit, (long long)at);
        }
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    good(pli_checkpoint_verify(checkpoint, &err), &err);
    pli_checkpoint_close(&checkpoint);
    return 8 * bytes;
}

static int64_t flip_manifest(const char *folder) {
    pli_text      text = { 0 };
    pli_manifest *manifest = NULL;
    plait_error   err;
    good(pli_read_whole(path_of(0, folder, "manifest.json"), 1 << 20, &text, &err), &err);
    for (size_t i = 0; i < 8 * text.length; i++) {
        text.data[i / 8] = (char)(text.data[i / 8] ^ 1 << (i % 8));
        if (pli_manifest_read(text.data, text.length, &manifest, &err) != PLAIT_ECHECKSUM)
            fail_msg("manifest: bit %zu is turned, and nobody notices", i);
        text.data[i / 8] = (char)(text.data[i / 8] ^ 1 << (i % 8));
    }
    for (size_t n = 0; n < text.length; n++)
        assert_int_equal(pli_manifest_read(text.data, n, &manifest, &err), PLAIT_ECHECKSUM);
    good(pli_manifest_read(text.data, text.length, &manifest, &err), &err);
    pli_manifest_free(&manifest);
    int64_t bits = (int64_t)(8 * text.length);
    pli_text_free(&text);
    return bits;
}

static void test_every_flipped_bit(void **state) {
    char    folder[PLI_CHECKPOINT_FOLDER];
    int64_t bits;
    (void)state;
    write_64k(folder);
    bits = flip_manifest(folder);
    for (int32_t p = 0; p < 3; p++) bits += flip_part(folder, p);
    print_message("%lld bits turned, each noticed\n", (long long)bits);
    assert_true(bits >= 524288);
}

/* --- set-up ----------------------------------------------------------------------------------------------- */

static int make_dir(void **state) {
    (void)state;
    dir = pli_temporary_directory("plait-checkpoint");
    return dir != NULL ? 0 : -1;
}

static int remove_dir(void **state) {
    pli_text    names = { 0 };
    plait_error err;
    (void)state;
    if (pli_list_directory(dir, &names, &err) == PLAIT_OK)
        for (char *line = strtok(names.data, "\n"); line != NULL; line = strtok(NULL, "\n"))
            pli_remove_directory(path_of(0, line, ""));
    pli_text_free(&names);
    pli_remove_directory(dir);
    pli_free(dir);
    return 0;
}

static void test_every_failed_allocation(void **state) {
    plait_status status = PLAIT_ENOMEM;
    for (int64_t k = 0; status != PLAIT_OK; k++) {
        char            folder[PLI_CHECKPOINT_FOLDER] = "";
        pli_checkpoint *checkpoint = NULL;
        plait_error     err;
        assert_int_equal(make_dir(state), 0);
        int64_t before = pli_alloc_live();
        pli_alloc_fail_after(k);
        status = write_checkpoint(4, 2, 5, folder, &err);
        if (status == PLAIT_OK) status = pli_checkpoint_open(dir, &checkpoint, NULL, &err);
        if (status == PLAIT_OK)
            status = pli_checkpoint_read(checkpoint, pli_checkpoint_find(checkpoint, "note"), 0, 5, folder, &err);
        if (status == PLAIT_OK) status = pli_checkpoint_prune(dir, 1, NULL, &err);
        pli_alloc_fail_after(-1);
        pli_checkpoint_close(&checkpoint);
        assert_int_equal(pli_alloc_live(), before);
        remove_dir(state);
        if (status != PLAIT_OK && status != PLAIT_ENOMEM) fail_msg("allocation %d: %s", (int)k, err.text);
    }
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(test_rows_of_any_number_of_parts),
        IN_A_FOLDER(test_loose_pieces_and_meta),
        IN_A_FOLDER(test_parts_are_safetensors),
        IN_A_FOLDER(test_same_clock_again),
        IN_A_FOLDER(test_fall_back_with_reasons),
        IN_A_FOLDER(test_nothing_there),
        IN_A_FOLDER(test_prune),
        IN_A_FOLDER(test_refused_pieces),
        IN_A_FOLDER(test_refused_bytes),
        IN_A_FOLDER(test_refused_commits),
        IN_A_FOLDER(test_refused_manifests),
        IN_A_FOLDER(test_links_and_pipes),
        IN_A_FOLDER(test_every_flipped_bit),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
