/* Files of other programs are recognised, with a remedy; files that only resemble them are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "data/formats/foreign.h"

typedef struct sample {
    size_t      n; /* number of bytes; 0: up to the NUL */
    const char *bytes, *said; /* said: text of the error; NULL: it is no such file */
} sample;

static size_t size_of(const sample *s) { return s->n > 0 ? s->n : strlen(s->bytes); }

static void check(const sample *s, plait_status status, const plait_error *err) {
    if (s->said == NULL && status != PLAIT_OK) fail_msg("\"%.30s\" is refused: %s", s->bytes, err->text);
    if (s->said == NULL) return;
    if (status != PLAIT_EFORMAT) fail_msg("\"%.30s\" is taken, expected \"%s\"", s->bytes, s->said);
    if (strstr(err->text, s->said) == NULL) fail_msg("expected \"%s\", found \"%s\"", s->said, err->text);
}

static const sample bytes[] = {
    { 0, "BZh91AY&SYabcdef", "F: is bzip2: unpack it with `bunzip2 -k F`" },
    { 8, "\xfd\x37zXZ\0\0\4", "F: is xz: unpack it with `xz -dk F`" },
    { 8, "PK\3\4\24\0\0\0", "F: is a zip archive: unpack it with `unzip F`" },
    { 40, "PK\3\4\24\0\0\0xxxxxxxxxx[Content_Types].xmlxxxx", "a spreadsheet" },
    { 30, "PK\3\4\24\0\0\0xxxxxxxxxxarr_0.npyxx", "NumPy arrays (npz)" },
    { 12, "\x93NUMPY\1\0v\0{}", NULL },
    { 12, "PAR1\x15\4\x15\0\0\0\0\0", "a Parquet table" },
    { 12, "PAR1,abcPAR1", "a Parquet table" },
    { 0, "\x89HDF\r\n\x1a\nxxxx", "HDF5" },
    { 0, "%PDF-1.4\nxxxx", "a PDF document" },
    { 8, "\xff\xfe" "1\0,\0" "2\0", "F: is UTF-16 text: make it UTF-8 with `iconv -f UTF-16 -t UTF-8 F" },
    { 8, "\xfe\xff\0001\0,\0002", "UTF-16 text" },
    { 8, "\xff\xfe\0\0" "1\0\0\0", "UTF-32 text" },
    { 12, "1\0,\0" "2\0\n\0" "3\0,\0", "iconv -f UTF-16LE" },
    { 12, "\0001\0,\0002\0\n\0003\0,", "iconv -f UTF-16BE" },
    { 12, "\4\0\0\0\0\0\0\0{\"a}", "a safetensors file" },
    { 16, "SQLite format 3", "an SQLite database" },
    { 8, "\x80\4\x95xxxxx", "a Python pickle" },
    { 12, "Obj\1xxxxxxxx", "an Avro table" },
    { 0, "PAR1,PAR2\n1,2\n", NULL },
    { 0, "BZh,y\n1,2\n3,4\n", NULL },
    { 0, "PK,y\n1,2\n", NULL },
    { 0, "1,2\n", NULL },
    { 0, "\xef\xbb\xbf" "1,2\n", NULL },
    { 0, "%,y\n1,2\n", NULL },
    { 12, "\0\0\x08\1\0\0\0\4\1\0\1\0", NULL }, /* idx */
    { 1, "P", NULL },
};

static void test_first_bytes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        plait_error err = { 0 };
        check(&bytes[i], pli_foreign_check("F", (const unsigned char *)bytes[i].bytes, size_of(&bytes[i]), &err), &err);
    }
}

/* A tar archive's mark ends with a zero byte, which no text has. */
static void test_tar(void **state) {
    static const sample tars[] = { { 8, "ustar\00000", "F: is a tar archive: unpack it with `tar -xf F`" },
                                   { 8, "ustar  \0", "a tar archive" },
                                   { 8, "ustard,1", NULL } };
    (void)state;
    for (size_t i = 0; i < sizeof tars / sizeof *tars; i++) {
        unsigned char file[512];
        plait_error   err = { 0 };
        memset(file, 'm', sizeof file);
        memcpy(file + 257, tars[i].bytes, tars[i].n);
        check(&tars[i], pli_foreign_check("F", file, sizeof file, &err), &err);
    }
}

/* A file cut at any length: nothing is read behind its end (the sanitizer would tell). */
static void test_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        for (size_t n = 1; n <= size_of(&bytes[i]); n++) {
            unsigned char *copy = pli_malloc(n);
            plait_error    err;
            assert_non_null(copy);
            memcpy(copy, bytes[i].bytes, n);
            (void)pli_foreign_check("F", copy, n, &err);
            pli_source source = { .path = (char *)(uintptr_t) "F", .data = copy, .bytes = n };
            (void)pli_foreign_check_text(&source, &err);
            pli_free(copy);
        }
}

static void test_text(void **state) {
    static const sample texts[] = {
        { 0, "{\"a\": 1}\n{\"a\": 2}\n", "F: is JSON: write its rows as CSV, as `pandas.read_json(\"F\", lines=True)" },
        { 0, " [\n {\"a\": 1}]\n", "pandas.read_json(\"F\").to_csv" },
        { 0, "[[1, 2], [3, 4]]", "JSON" },
        { 0, "<!DOCTYPE html>\n<html>\n", "HTML or XML" },
        { 0, "<?xml version=\"1.0\"?>\n", "HTML or XML" },
        { 0, "@RELATION iris\n@data\n", "a Weka ARFF table" },
        { 0, "1|2|3\n4|5|6\n", NULL },
        { 0, "1 | 2 | 3\n4 | 5 | 6\n", NULL },
        { 0, "1 | 10:30 | 3\n2 | 11:30 | 4\n", NULL },
        { 0, "a|b|y\n1|2|3\n", NULL },
        { 0, "1 3:1 # a | b:1\n", NULL },
        { 0, "1 1:2\n0 |f a:1\n", NULL },
        { 0, "{brace} and text\n", NULL },
        { 0, "[-1.5e3 ,\n 2]", "JSON" },
        { 0, "[1]\n[2]\n", "or say --format text or --format csv" },
        { 0, "[1st] of all\n", NULL },
        { 0, "[1] It is a truth universally acknowledged\n", NULL },
        { 0, "[1] [2] it is said\n", NULL },
        { 0, "[- a dash\n", NULL },
        { 0, "\n\n", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        plait_error err = { 0 };
        pli_source  source = { .path = (char *)(uintptr_t) "F",
                               .data = (const unsigned char *)texts[i].bytes,
                               .bytes = size_of(&texts[i]) };
        check(&texts[i], pli_foreign_check_text(&source, &err), &err);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_bytes), cmocka_unit_test(test_tar),
                                        cmocka_unit_test(test_cut), cmocka_unit_test(test_text) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
