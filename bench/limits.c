/* bench/limits.c - measures the limits of this machine, as one JSON object; benchmarks print their results beside them.
 *
 *   limits [--threads N] [--file FILE] [--table MIB]
 *
 *   read_gb_s       summing memory far larger than the caches
 *   copy_gb_s       bytes copied by memcpy (each is read and written)
 *   gather_m_s      million random 64-byte lines of a table (256 MiB) fetched a second, with addresses known in advance
 *   pipe_gb_s       bytes sent from one process to another through a local socket, 1 MiB at a time
 *   file_gb_s       FILE read from the page cache (mapped, every byte touched)
 *
 * Each is the best of a few runs, on N threads (2); the pipe has one thread on each side. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

enum { REPEATS = 5, LINE = 64 };
static const size_t memory_bytes = (size_t)256 << 20;
static const size_t pipe_bytes = (size_t)512 << 20, pipe_chunk = (size_t)1 << 20;

typedef struct work {
    const unsigned char *from;
    unsigned char       *to;
    size_t               bytes; /* of all pieces together */
    int64_t              pieces;
    uint64_t             found[64];
} work;

static size_t piece_start(const work *w, int64_t i) { return w->bytes / LINE * (size_t)i / (size_t)w->pieces * LINE; }

static void sum_piece(void *user, int64_t i, int32_t thread) {
    work           *w = user;
    uint64_t        sum[8] = { 0 };
    const uint64_t *word = (const uint64_t *)(const void *)(w->from + piece_start(w, i));
    const size_t    n = (piece_start(w, i + 1) - piece_start(w, i)) / sizeof *word;
    (void)thread;
    for (size_t at = 0; at < n; at += 8) {
        for (size_t k = 0; k < 8; k++) sum[k] += word[at + k];
    }
    for (int k = 1; k < 8; k++) sum[0] += sum[k];
    w->found[i] = sum[0];
}

static void copy_piece(void *user, int64_t i, int32_t thread) {
    work *w = user;
    (void)thread;
    memcpy(w->to + piece_start(w, i), w->from + piece_start(w, i), piece_start(w, i + 1) - piece_start(w, i));
}

/* The number of lines to gather: at least those of 32 MiB, so that a small table can be timed, too. */
static double gathers(const work *w) {
    const double lines = (double)(w->bytes / LINE), least = (double)(1 << 19);
    return (lines > least ? lines : least);
}

/* Addresses are computed from a counter, so that fetches overlap as in a gather by an index. */
static void gather_piece(void *user, int64_t i, int32_t thread) {
    work          *w = user;
    const uint64_t lines = w->bytes / LINE, n = (uint64_t)gathers(w) / (uint64_t)w->pieces;
    uint64_t       sum = 0, at = (uint64_t)i * n;
    (void)thread;
    for (uint64_t k = 0; k < n; k++) sum += w->from[(pli_hash_u64(at + k) % lines) * LINE];
    w->found[i] = sum;
}

static double best_seconds(pli_pool *pool, work *w, pli_task_fn *task) {
    double best = 1e30;
    for (int r = 0; r < REPEATS; r++) {
        const uint64_t start = pli_now_ns();
        pli_pool_for(pool, w->pieces, task, w);
        const double seconds = (double)(pli_now_ns() - start) * 1e-9;
        best = seconds < best ? seconds : best;
    }
    return best;
}

static void drain(int fd, unsigned char *buffer) {
    while (read(fd, buffer, pipe_chunk) > 0) {}
}

/* Seconds to send pipe_bytes to a child process and get its confirmation; 0: it cannot be measured. */
static double pipe_seconds(unsigned char *buffer) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0.0;
    const uint64_t start = pli_now_ns();
    const pid_t    child = fork();
    if (child < 0) return 0.0;
    if (child == 0) {
        close(ends[0]);
        drain(ends[1], buffer);
        _exit(0);
    }
    close(ends[1]);
    for (size_t sent = 0; sent < pipe_bytes;) {
        const ssize_t n = write(ends[0], buffer, pipe_chunk);
        if (n <= 0) break;
        sent += (size_t)n;
    }
    close(ends[0]);
    waitpid(child, NULL, 0);
    return (double)(pli_now_ns() - start) * 1e-9;
}

static int measure(int64_t threads, const char *file, int64_t table_mib) {
    plait_error    err;
    pli_pool      *pool = NULL;
    pli_mapped     mapped = { 0 };
    unsigned char *from = pli_aligned(memory_bytes), *to = pli_aligned(memory_bytes);
    int            code = 1;
    if (from == NULL || to == NULL || pli_pool_create((int32_t)threads, &pool, &err) != PLAIT_OK) goto done;
    if (file != NULL && pli_map_file(file, &mapped, &err) != PLAIT_OK) {
        fprintf(stderr, "limits: %s\n", err.text);
        goto done;
    }
    memset(from, 1, memory_bytes);
    memset(to, 2, memory_bytes);
    work         w = { .from = from, .to = to, .bytes = memory_bytes, .pieces = 8 * threads };
    const double gb = (double)memory_bytes * 1e-9;
    printf("{\"threads\":%lld,\"read_gb_s\":%.3f", (long long)threads, gb / best_seconds(pool, &w, sum_piece));
    printf(",\"copy_gb_s\":%.3f", gb / best_seconds(pool, &w, copy_piece));
    w.bytes = (size_t)table_mib << 20;
    printf(",\"gather_m_s\":%.3f", gathers(&w) * 1e-6 / best_seconds(pool, &w, gather_piece));
    fflush(stdout); /* before the fork, or the child would print the buffer again */
    const double pipe = pipe_seconds(from);
    printf(",\"pipe_gb_s\":%.3f", pipe > 0.0 ? (double)pipe_bytes * 1e-9 / pipe : 0.0);
    if (mapped.data != NULL) {
        w.from = mapped.data;
        w.bytes = mapped.bytes;
        printf(",\"file_gb_s\":%.3f", (double)mapped.bytes * 1e-9 / best_seconds(pool, &w, sum_piece));
    }
    printf("}\n");
    code = 0;
done:
    if (mapped.data != NULL) pli_unmap_file(&mapped);
    pli_pool_destroy(&pool);
    pli_free(to);
    pli_free(from);
    return code;
}

int main(int argc, char **argv) {
    int64_t     threads = 2, table = 256;
    const char *file = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0 && pli_parse_i64(argv[i + 1], &threads) && threads >= 1 && threads <= 8)
            continue;
        if (strcmp(argv[i], "--table") == 0 && pli_parse_i64(argv[i + 1], &table) && table >= 1 && table <= 256)
            continue;
        if (strcmp(argv[i], "--file") != 0) return 2;
        file = argv[i + 1];
    }
    return measure(threads, file, table);
}
