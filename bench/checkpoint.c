/* bench/checkpoint.c - several threads write a checkpoint, which is then verified and read: seconds of each step, as
 * one JSON object.
 *
 *   checkpoint --dir DIR [--bytes N] [--parts N] [--threads N]
 *
 * Each part is one tensor of bytes / parts, passed on in pieces of 1 MiB, as a table's capture does. A thread hashes,
 * writes, syncs and renames one part after the other, and the leading one commits: write is the time of all that. hash:
 * one thread hashes the same bytes in memory by both checksums, which is the most that checksums can cost. verify,
 * read: from the page cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/checkpoint/checkpoint.h"

enum { PIECE_BYTES = 1 << 20, MOST_PARTS = 64 };

typedef struct job {
    const char          *dir;
    char                 folder[PLI_CHECKPOINT_FOLDER];
    int64_t              parts, pieces; /* pieces of a part */
    const unsigned char *piece;         /* [PIECE_BYTES] */
    pli_text             digest[MOST_PARTS];
    plait_error          err[MOST_PARTS];
} job;

static plait_status write_part(job *j, int64_t p) {
    const pli_checkpoint_tensor tensor = { .name = "w.values",
                                           .type = "F32",
                                           .dims = 2,
                                           .shape = { j->pieces, PIECE_BYTES / 4 },
                                           .first = p * j->pieces,
                                           .rows = j->parts * j->pieces };
    pli_partfile               *file = NULL;
    plait_status                status =
        pli_partfile_begin(j->dir, j->folder, (int32_t)p, (int32_t)j->parts, &tensor, 1, &file, &j->err[p]);
    for (int64_t i = 0; i < j->pieces && status == PLAIT_OK; i++)
        status = pli_partfile_write(file, j->piece, PIECE_BYTES, &j->err[p]);
    if (status == PLAIT_OK) return pli_partfile_end(&file, &j->digest[p], &j->err[p]);
    pli_partfile_abandon(&file);
    return status;
}

static void task(void *user, int64_t p, int32_t thread) {
    job *j = user;
    (void)thread;
    if (write_part(j, p) == PLAIT_OK) j->err[p].code = PLAIT_OK;
}

static int complain(const plait_error *err) {
    fprintf(stderr, "checkpoint: %s\n", err->text);
    return 1;
}

static double since(uint64_t begin) { return 1e-9 * (double)(pli_now_ns() - begin); }

static int write_all(job *j, pli_pool *pool) {
    const char *digests[MOST_PARTS];
    plait_error err;
    if (pli_checkpoint_begin(j->dir, 1, j->folder, &err) < 0) return complain(&err);
    pli_pool_for(pool, j->parts, task, j);
    for (int64_t p = 0; p < j->parts; p++) {
        if (j->err[p].code != PLAIT_OK) return complain(&j->err[p]);
        digests[p] = j->digest[p].data;
    }
    if (pli_checkpoint_commit(j->dir, j->folder, NULL, digests, (int32_t)j->parts, &err) < 0) return complain(&err);
    return 0;
}

static double hash_seconds(const job *j) {
    pli_hasher *one = pli_hasher_create(), *all = pli_hasher_create();
    uint64_t    begin = pli_now_ns();
    for (int64_t i = 0; one != NULL && all != NULL && i < j->parts * j->pieces; i++) {
        pli_hasher_add(one, j->piece, PIECE_BYTES);
        pli_hasher_add(all, j->piece, PIECE_BYTES);
    }
    double seconds = since(begin);
    pli_hasher_destroy(&one);
    pli_hasher_destroy(&all);
    return seconds;
}

static plait_status read_all(pli_checkpoint *checkpoint, void *out, plait_error *err) {
    const pli_checkpoint_tensor *w = pli_checkpoint_find(checkpoint, "w.values");
    for (int64_t i = 0; i < w->rows; i++) PLI_TRY(pli_checkpoint_read(checkpoint, w, i, 1, out, err));
    return PLAIT_OK;
}

static int measure(job *j, pli_pool *pool, void *piece) {
    pli_checkpoint *checkpoint = NULL;
    plait_error     err;
    uint64_t        begin = pli_now_ns();
    if (write_all(j, pool) != 0) return 1;
    double write = since(begin), hash = hash_seconds(j);
    begin = pli_now_ns();
    if (pli_checkpoint_open(j->dir, &checkpoint, NULL, &err) < 0) return complain(&err);
    double verify = since(begin);
    begin = pli_now_ns();
    plait_status status = read_all(checkpoint, piece, &err);
    double       read = since(begin);
    pli_checkpoint_close(&checkpoint);
    if (status < 0) return complain(&err);
    printf("{\"bytes\": %lld, \"parts\": %lld, \"write\": %.4f, \"hash\": %.4f, \"verify\": %.4f, \"read\": %.4f}\n",
           (long long)(j->parts * j->pieces * PIECE_BYTES), (long long)j->parts, write, hash, verify, read);
    return 0;
}

int main(int argc, char **argv) {
    int64_t        bytes = 1 << 30, threads = 2;
    job            j = { .parts = 4 };
    unsigned char *piece = malloc(PIECE_BYTES);
    pli_pool      *pool = NULL;
    plait_error    err;
    for (int i = 1; i + 1 < argc; i += 2) {
        bool good = true;
        if (strcmp(argv[i], "--dir") == 0)
            j.dir = argv[i + 1];
        else if (strcmp(argv[i], "--bytes") == 0)
            good = pli_parse_i64(argv[i + 1], &bytes);
        else if (strcmp(argv[i], "--parts") == 0)
            good = pli_parse_i64(argv[i + 1], &j.parts);
        else if (strcmp(argv[i], "--threads") == 0)
            good = pli_parse_i64(argv[i + 1], &threads);
        else
            good = false;
        if (!good) return fprintf(stderr, "checkpoint: %s %s?\n", argv[i], argv[i + 1]), 2;
    }
    if (piece == NULL || j.dir == NULL || j.parts < 1 || j.parts > MOST_PARTS || threads < 1 || threads > 64)
        return fputs("usage: checkpoint --dir DIR [--bytes N] [--parts N, to 64] [--threads N]\n", stderr), 2;
    for (int64_t i = 0; i < PIECE_BYTES; i++) piece[i] = (unsigned char)pli_hash_u64((uint64_t)i);
    j.piece = piece;
    j.pieces = bytes / j.parts / PIECE_BYTES;
    for (int64_t p = 0; p < j.parts; p++) j.err[p].code = PLAIT_EIO;
    if (pli_pool_create((int32_t)threads, &pool, &err) < 0) return complain(&err);
    int code = measure(&j, pool, piece);
    for (int64_t p = 0; p < j.parts; p++) pli_text_free(&j.digest[p]);
    pli_pool_destroy(&pool);
    free(piece);
    return code;
}
