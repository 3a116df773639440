/* What is refused: pieces, bytes, commits, manifests, links. */
#include "checkpoint_case.h"

/* Mistakes of a caller, and disagreements between ranks. */
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

/* One part with the bytes of a tensor that claims to be rows first .. first + n - 1 of `rows`. */
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
    refuse_commit(a, b, f, NULL, PLAIT_EIO, "all ranks must see the same directory");
}

/* Reads the manifest of `text` with a last line that fits. */
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

/* Manifests that are wrong although their checksum fits. */
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
    refuse_manifest(m, "\"clock\":2", "\"clock\": 2", PLAIT_EFORMAT, "not written in the way that");
    refuse_manifest(m, "\"clock\":2", "\"clock\":2,\"more\":1", PLAIT_EFORMAT, "not written in the way that");
    refuse_manifest(m, "\"clock\":2", "\"clock\":2,\"clock\":2", PLAIT_EFORMAT, "duplicate");
    refuse_manifest(m, "\"meta\":{", "\"meta\":{\"a\\u0020b\":1,", PLAIT_EFORMAT, "not written in the way that");
    refuse_manifest(m, "\"xxh3\":\"", "\"xxh3\":\"0", PLAIT_EFORMAT, "expected name, dtype");
    pli_text_free(&text);
}

/* No file outside the folder is opened, even if a link or a pipe lies in it. */
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
    says(err.text, "but the folder has another clock's name");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(test_refused_pieces),
        IN_A_FOLDER(test_refused_bytes),
        IN_A_FOLDER(test_refused_commits),
        IN_A_FOLDER(test_refused_manifests),
        IN_A_FOLDER(test_links_and_pipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
