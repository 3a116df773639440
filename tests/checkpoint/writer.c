/* Writes checkpoints one after the other, or checks what another such program has left: what the tests of crashes run.
 *
 *     writer write DIR FIRST LAST    one of each clock; says "committed CLOCK" behind each; keeps two
 *     writer check DIR LEAST MOST    the newest good one must be of a clock within, and hold what that clock has
 *                                    (LEAST 0: none is fine)
 *
 * Part 0 is of more bytes than the buffer of a file, so that there is a middle to die in. All bytes follow from the
 * clock. write ends with 1 where anything failed, and takes back what it had begun, as a run does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/checkpoint/checkpoint.h"

enum { PARTS = 3, ROWS = 27000, COLUMNS = 16, KEEP = 2 };

static float rows_of[ROWS][COLUMNS];

static void fill(int64_t clock) {
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < COLUMNS; k++) rows_of[i][k] = (float)((clock * 7919 + i * 31 + k) % 65536);
}

/* Part 0 has most rows. */
static int64_t first_row(int32_t part) { return part == 0 ? 0 : part >= PARTS ? ROWS : ROWS - 100 * (PARTS - part); }

static plait_status write_part(const char *dir, const char *folder, int32_t part, pli_text *digest, plait_error *err) {
    const int64_t               from = first_row(part), to = first_row(part + 1), middle = from + (to - from) / 2;
    const pli_checkpoint_tensor tensor = {
        .name = "w.values", .type = "F32", .dims = 2, .shape = { to - from, COLUMNS }, .first = from, .rows = ROWS
    };
    pli_partfile *file = NULL;
    PLI_TRY(pli_partfile_begin(dir, folder, part, PARTS, &tensor, 1, &file, err));
    plait_status status = pli_partfile_write(file, rows_of[from], (size_t)(middle - from) * sizeof *rows_of, err);
    if (status == PLAIT_OK)
        status = pli_partfile_write(file, rows_of[middle], (size_t)(to - middle) * sizeof *rows_of, err);
    if (status == PLAIT_OK) return pli_partfile_end(&file, digest, err);
    pli_partfile_abandon(&file);
    return status;
}

static plait_status write_one(const char *dir, int64_t clock, char folder[PLI_CHECKPOINT_FOLDER], plait_error *err) {
    pli_text     digest[PARTS] = { 0 };
    const char  *digests[PARTS] = { NULL };
    plait_status status = pli_checkpoint_begin(dir, clock, folder, err);
    fill(clock);
    for (int32_t p = 0; p < PARTS && status == PLAIT_OK; p++) {
        status = write_part(dir, folder, p, &digest[p], err);
        digests[p] = digest[p].data;
    }
    if (status == PLAIT_OK) status = pli_checkpoint_commit(dir, folder, "{\"epoch\":1}", digests, PARTS, err);
    for (int32_t p = 0; p < PARTS; p++) pli_text_free(&digest[p]);
    return status;
}

static int complain(const plait_error *err) {
    fprintf(stderr, "writer: %s\n", err->text);
    return 1;
}

static int write_all(const char *dir, int64_t first, int64_t last) {
    for (int64_t clock = first; clock <= last; clock++) {
        char        folder[PLI_CHECKPOINT_FOLDER] = "", line[64];
        plait_error err;
        if (write_one(dir, clock, folder, &err) < 0) {
            complain(&err);
            if (folder[0] != '\0' && pli_checkpoint_discard(dir, folder, &err) < 0) complain(&err);
            return 1;
        }
        int length = snprintf(line, sizeof line, "committed %lld\n", (long long)clock);
        if (write(STDOUT_FILENO, line, (size_t)length) != length) {
            perror("writer: standard output");
            return 1;
        }
        if (pli_checkpoint_prune(dir, KEEP, NULL, &err) < 0) return complain(&err);
    }
    return 0;
}

static int check_bytes(pli_checkpoint *checkpoint) {
    static float                 found[ROWS][COLUMNS];
    const pli_checkpoint_tensor *w = pli_checkpoint_find(checkpoint, "w.values");
    plait_error                  err;
    if (w == NULL || w->rows != ROWS) return fprintf(stderr, "writer: no w.values of %d rows\n", ROWS), 1;
    if (pli_checkpoint_read(checkpoint, w, 0, ROWS, found, &err) < 0) return complain(&err);
    fill(pli_checkpoint_clock(checkpoint));
    return memcmp(found, rows_of, sizeof found) == 0 ? 0 : (fputs("writer: other bytes than the clock's\n", stderr), 1);
}

static int check(const char *dir, int64_t least, int64_t most) {
    pli_checkpoint *checkpoint = NULL;
    plait_error     err;
    plait_status    status = pli_checkpoint_open(dir, &checkpoint, NULL, &err);
    if (least == 0 && (status == PLAIT_ENAME || (status == PLAIT_EIO && !pli_is_directory(dir)))) return 0;
    if (status < 0) return complain(&err);
    int64_t clock = pli_checkpoint_clock(checkpoint);
    int     code = check_bytes(checkpoint);
    if (clock < least || clock > most) {
        fprintf(stderr, "writer: clock %lld is not within %lld to %lld\n", (long long)clock, (long long)least,
                (long long)most);
        code = 1;
    }
    printf("clock %lld\n", (long long)clock);
    pli_checkpoint_close(&checkpoint);
    return code;
}

int main(int argc, char **argv) {
    int64_t first = 0, last = 0;
    if (argc != 5 || !pli_parse_i64(argv[3], &first) || !pli_parse_i64(argv[4], &last)) {
        fputs("usage: writer write|check DIR FIRST LAST\n", stderr);
        return 2;
    }
    return strcmp(argv[1], "write") == 0 ? write_all(argv[2], first, last) : check(argv[2], first, last);
}
