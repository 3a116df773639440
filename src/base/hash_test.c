/* Hashes: examples of FIPS 180-4 and of NIST's SHA test vectors, any split of the input, XXH3's published values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static void sha_of(const void *data, size_t bytes, size_t step, char hex[65]) {
    pli_sha256 sha;
    pli_sha256_init(&sha);
    for (size_t at = 0; at < bytes; at += step)
        pli_sha256_add(&sha, (const char *)data + at, bytes - at < step ? bytes - at : step);
    pli_sha256_end(&sha, hex);
}

static void test_sha256_examples(void **state) {
    (void)state;
    static const struct {
        const char *text, *hex;
    } known[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopq"
          "rs"
          "tu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    };
    char hex[65];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        sha_of(known[i].text, strlen(known[i].text), 1000, hex);
        assert_string_equal(hex, known[i].hex);
    }
}

static void test_sha256_million_letters(void **state) {
    (void)state;
    char       letters[1000], hex[65];
    pli_sha256 sha;
    memset(letters, 'a', sizeof letters);
    pli_sha256_init(&sha);
    for (int i = 0; i < 1000; i++) pli_sha256_add(&sha, letters, sizeof letters);
    pli_sha256_end(&sha, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* All lengths around one and two blocks, in pieces of every size, give the hash of the whole. */
static void test_sha256_split_anywhere(void **state) {
    (void)state;
    unsigned char data[200];
    char          whole[65], pieces[65];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7);
    for (size_t bytes = 0; bytes <= sizeof data; bytes++) {
        sha_of(data, bytes, 1000, whole);
        for (size_t step = 1; step < 130; step += 9) {
            sha_of(data, bytes, step, pieces);
            assert_string_equal(whole, pieces);
        }
    }
}

static void test_xxh3(void **state) {
    (void)state;
    assert_int_equal(pli_hash_bytes("", 0, 0), UINT64_C(0x2d06800538d394c2)); /* published value */
    assert_int_not_equal(pli_hash_bytes("a", 1, 0), pli_hash_bytes("a", 1, 1));
    assert_int_not_equal(pli_hash_bytes("a", 1, 0), pli_hash_bytes("b", 1, 0));
}

/* The hash does not depend on how the bytes are cut into pieces; a hasher can begin again. */
static void test_hasher(void **state) {
    unsigned char bytes[3000], whole[16], pieces[16];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + i / 256);
    pli_hasher *hasher = pli_hasher_create();
    assert_non_null(hasher);
    for (size_t n = 0; n <= sizeof bytes; n += 97)
        for (size_t step = 1; step < 3000; step = 3 * step + 1) {
            pli_hasher_reset(hasher);
            for (size_t at = 0; at < n; at += step) pli_hasher_add(hasher, bytes + at, n - at < step ? n - at : step);
            assert_true(pli_hasher_64(hasher) == pli_hash_bytes(bytes, n, 0));
            pli_hash128(bytes, n, whole);
            pli_hasher_128(hasher, pieces);
            assert_memory_equal(pieces, whole, sizeof whole);
        }
    pli_hasher_destroy(&hasher);
    pli_hasher_destroy(&hasher);
    assert_null(hasher);
}

/* Much at once may go by the processor's own instructions. */
static void test_sha256_of_much_at_once(void **state) {
    enum { BYTES = 300001 };
    uint8_t   *bytes = malloc(BYTES);
    pli_sha256 pieces, whole;
    char       by_pieces[65], at_once[65];
    (void)state;
    for (uint32_t i = 0; i < BYTES; i++) bytes[i] = (uint8_t)pli_hash_u64(i);
    for (size_t held = 0; held < 130; held += 43) {
        pli_sha256_init(&pieces);
        for (size_t at = 0; at < BYTES; at += 1000)
            pli_sha256_add(&pieces, bytes + at, BYTES - at < 1000 ? BYTES - at : 1000);
        pli_sha256_end(&pieces, by_pieces);
        pli_sha256_init(&whole);
        pli_sha256_add(&whole, bytes, held);
        pli_sha256_add(&whole, bytes + held, BYTES - held);
        pli_sha256_end(&whole, at_once);
        assert_string_equal(by_pieces, at_once);
    }
    free(bytes);
}

static void test_mixer_spreads_low_bits(void **state) {
    (void)state;
    int count[64] = { 0 };
    for (uint64_t k = 0; k < 6400; k++) count[pli_hash_u64(k << 32) & 63]++;
    for (int i = 0; i < 64; i++) assert_in_range(count[i], 40, 170);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_examples),        cmocka_unit_test(test_sha256_million_letters),
        cmocka_unit_test(test_sha256_split_anywhere),  cmocka_unit_test(test_xxh3),
        cmocka_unit_test(test_mixer_spreads_low_bits), cmocka_unit_test(test_hasher),
        cmocka_unit_test(test_sha256_of_much_at_once),
    };
    return cmocka_run_group_tests_name("base.hash", tests, NULL, NULL);
}
