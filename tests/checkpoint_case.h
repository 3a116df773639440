/* tests/checkpoint_case.h - a folder for a test, and checkpoints in it that are written by several parts. */
#ifndef CHECKPOINT_CASE_H
#define CHECKPOINT_CASE_H

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

#include "data/checkpoint/checkpoint.h"
#include "data/checkpoint/manifest.h"
#include "data/data.h"

enum { COLUMNS = 3, MOST_PARTS = 5 };

static char *dir; /* of the running test */

static inline void good(plait_status status, const plait_error *err) {
    if (status != PLAIT_OK) fail_msg("%s", err->text);
}

static inline void says(const char *text, const char *words) {
    if (text == NULL || strstr(text, words) == NULL)
        fail_msg("expected \"%s\" in \"%s\"", words, text != NULL ? text : "");
}

/* path is overwritten by the next call of the same k. */
static inline const char *path_of(int k, const char *folder, const char *name) {
    static char path[4][512];
    snprintf(path[k], sizeof path[k], "%s/%s%s%s", dir, folder, name[0] != '\0' ? "/" : "", name);
    return path[k];
}

static inline float value_at(int64_t clock, int64_t row, int64_t column) {
    return (float)(1000 * clock + 10 * row + column);
}

/* A dense table of `rows` over `parts`, cut as it comes out; keys of a sparse one, loose; one tensor that is in a
 * single part. */
static inline plait_status write_part(const char *folder, int64_t clock, int32_t part, int32_t parts, int64_t rows,
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

static inline plait_status write_checkpoint(int64_t clock, int32_t parts, int64_t rows,
                                            char folder[PLI_CHECKPOINT_FOLDER], plait_error *err) {
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

static inline void check_rows(pli_checkpoint *checkpoint, int64_t clock, int64_t first, int64_t rows) {
    const pli_checkpoint_tensor *w = pli_checkpoint_find(checkpoint, "w.values");
    float                        out[64][COLUMNS];
    plait_error                  err;
    assert_non_null(w);
    good(pli_checkpoint_read(checkpoint, w, first, rows, out, &err), &err);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < COLUMNS; k++) assert_true(out[i][k] == value_at(clock, first + i, k));
}

static inline pli_checkpoint *open_newest(pli_text *passed_over) {
    pli_checkpoint *checkpoint = NULL;
    plait_error     err;
    good(pli_checkpoint_open(dir, &checkpoint, passed_over, &err), &err);
    return checkpoint;
}

static inline void flip(const char *path, off_t at, unsigned bit) {
    unsigned char byte;
    int           fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= (unsigned char)(1u << bit);
    assert_true(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
}

static inline int64_t count_folders(void) {
    pli_checkpoint_list list;
    plait_error         err;
    good(pli_checkpoint_list_read(dir, &list, &err), &err);
    int64_t n = list.n;
    pli_checkpoint_list_free(&list);
    return n;
}

static inline int make_dir(void **state) {
    (void)state;
    dir = pli_temporary_directory("plait-checkpoint");
    return dir != NULL ? 0 : -1;
}

static inline int remove_dir(void **state) {
    pli_text    names = { 0 };
    plait_error err;
    (void)state;
    if (pli_list_directory(dir, &names, &err) == PLAIT_OK && names.data != NULL)
        for (char *line = strtok(names.data, "\n"); line != NULL; line = strtok(NULL, "\n"))
            pli_remove_directory(path_of(0, line, ""));
    pli_text_free(&names);
    pli_remove_directory(dir);
    pli_free(dir);
    return 0;
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

#endif
