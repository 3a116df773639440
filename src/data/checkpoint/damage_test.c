/* Damage and want of memory: every turned bit of a checkpoint is noticed, and an allocation that fails leaves
 * nothing behind. */
#include "checkpoint_case.h"

/* Writes a checkpoint of 64 KiB, in three files and the manifest. */
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

/* Turns every bit of a part on the disk, and judges it as verify does. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(test_every_flipped_bit),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
