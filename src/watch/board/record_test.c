/* The framing of event files: known checksums, and a record byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "watch/board/record.h"

/* RFC 3720, B.4, and the check value of the polynomial. */
static void test_known_sums(void **state) {
    unsigned char bytes[32];
    (void)state;
    assert_int_equal(pli_crc32c("123456789", 9), 0xe3069283u);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(pli_crc32c(bytes, sizeof bytes), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(pli_crc32c(bytes, sizeof bytes), 0x62a8ab43u);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    assert_int_equal(pli_crc32c(bytes, sizeof bytes), 0x46dd794eu);
}

static void test_a_record(void **state) {
    static const unsigned char length[8] = { 3 };
    unsigned char              written[32];
    FILE                      *file = tmpfile();
    (void)state;
    assert_true(pli_record_write(file, "abc", 3));
    rewind(file);
    assert_int_equal(fread(written, 1, sizeof written, file), 19);
    fclose(file);
    assert_memory_equal(written, length, 8);
    assert_memory_equal(written + 12, "abc", 3);
    for (int part = 0; part < 2; part++) { /* without the mask it is the checksum of the bytes before */
        const unsigned char *at = written + (part == 0 ? 8 : 15);
        const uint32_t       masked =
            ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24) - 0xa282ead8u;
        assert_int_equal(masked >> 17 | masked << 15, part == 0 ? pli_crc32c(written, 8) : pli_crc32c("abc", 3));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_known_sums), cmocka_unit_test(test_a_record) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
