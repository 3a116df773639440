/* See board.h. */
#include "watch/board/board.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "watch/board/record.h"

enum { BUCKETS = 64, VALUES_MAX = 12 };

struct pli_board {
    void                  *module;
    const pli_board_codec *codec;
    char                  *path;
    FILE                  *file;
    int                    errnum;     /* of the first write that failed       */
    bool                   no_memory;  /* an event was left out                */
    double                 seconds;    /* of the last progress, and its clock  */
    int64_t                clock;
};

/* --- the module --------------------------------------------------------------------------------------------------- */

static plait_status open_module(void **handle_out, const pli_board_codec **codec_out, plait_error *err) {
    void               *symbol;
    pli_board_entry_fn *entry;
    plait_error         why = { 0 };
    if (pli_module_open("tensorboard", PLI_BOARD_SYMBOL, handle_out, &symbol, &why) < 0)
        return pli_fail(err, PLAIT_EMODULE,
                        "--tensorboard needs a module: apt-get install libprotobuf-c-dev protobuf-c-compiler "
                        "(or script/bootstrap --all), then build again (%.240s)",
                        why.text);
    memcpy(&entry, &symbol, sizeof entry);
    *codec_out = entry();
    if ((*codec_out)->abi == PLI_BOARD_ABI) return PLAIT_OK;
    pli_module_close(handle_out);
    return pli_fail(err, PLAIT_EMODULE, "the module plait-tensorboard.so is of another version; build it again");
}

plait_status pli_board_check(plait_error *err) {
    void                  *module = NULL;
    const pli_board_codec *codec;
    PLI_TRY(open_module(&module, &codec, err));
    pli_module_close(&module);
    return PLAIT_OK;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void write_record(void *user, const void *bytes, size_t n) {
    pli_board *board = user;
    if (board->errnum == 0 && !pli_record_write(board->file, bytes, n)) board->errnum = errno != 0 ? errno : EIO;
}

static void put(pli_board *board, pli_board_event *event) {
    event->wall_seconds = pli_wall_seconds();
    if (!board->codec->pack(event, write_record, board)) board->no_memory = true;
}

static void flush(pli_board *board) {
    if (board->errnum == 0 && fflush(board->file) != 0) board->errnum = errno;
}

/* Scalars of one moment; those that do not apply (NaN) are left out. */
typedef struct scalars {
    pli_board_value value[VALUES_MAX];
    int64_t         n;
} scalars;

static void add(scalars *s, const char *tag, double value) {
    if (isfinite(value) && s->n < VALUES_MAX) s->value[s->n++] = (pli_board_value){ .tag = tag, .scalar = value };
}

static void put_scalars(pli_board *board, const scalars *s, int64_t clock) {
    if (s->n > 0) put(board, &(pli_board_event){ .step = clock, .value = s->value, .n_values = s->n });
}

void pli_board_progress(pli_board *board, const plait_progress *p) {
    scalars s = { .n = 0 };
    if (board == NULL) return;
    add(&s, "train/loss", p->loss);
    add(&s, "train/learning_rate", p->learning_rate);
    add(&s, "speed/rows_per_second", p->rows_per_second);
    if (p->clock > board->clock && p->seconds > board->seconds)
        add(&s, "speed/clocks_per_second", (double)(p->clock - board->clock) / (p->seconds - board->seconds));
    add(&s, "bytes/sent_by_rank_0", p->bytes);
    if (p->epoch_ended) {
        add(&s, "epoch", (double)p->epoch);
        add(&s, "validation/loss", p->validation_loss);
        add(&s, "validation/accuracy", p->validation_accuracy);
    }
    board->clock = p->clock;
    board->seconds = p->seconds;
    put_scalars(board, &s, p->clock);
    if (p->epoch_ended) flush(board);
}

void pli_board_end(pli_board *board, const plait_report *report) {
    scalars s = { .n = 0 };
    if (board == NULL || report == NULL) return;
    add(&s, "end/objective", report->objective);
    add(&s, "end/train_loss", report->train_loss);
    add(&s, "test/loss", report->test_loss);
    add(&s, "test/accuracy", report->test_accuracy);
    add(&s, "test/auc", report->test_auc);
    add(&s, "test/rmse", report->test_rmse);
    add(&s, "test/mae", report->test_mae);
    add(&s, "bytes/sent_by_all", (double)report->bytes_sent);
    put_scalars(board, &s, report->clocks);
}

static double value_at(const plait_weights *w, int64_t i) {
    return w->type == PLAIT_F32 ? (double)((const float *)w->values)[i] : ((const double *)w->values)[i];
}

/* What is not finite belongs in no bucket, and is counted nowhere. */
static void measure(const plait_weights *w, pli_board_histogram *h) {
    *h = (pli_board_histogram){ .min = INFINITY, .max = -INFINITY };
    for (int64_t i = 0; i < w->n; i++) {
        const double x = value_at(w, i);
        if (!isfinite(x)) continue;
        if (x < h->min) h->min = x;
        if (x > h->max) h->max = x;
        h->sum += x;
        h->sum_squares += x * x;
        h->n++;
    }
}

void pli_board_weights(pli_board *board, const plait_weights *w) {
    double              limit[BUCKETS], count[BUCKETS] = { 0 };
    pli_board_histogram h;
    char                tag[128];
    if (board == NULL) return;
    measure(w, &h);
    if (h.n == 0) return;
    const double width = (h.max - h.min) / BUCKETS;
    h.buckets = width > 0 ? BUCKETS : 1;
    for (int32_t b = 0; b < h.buckets; b++) limit[b] = b + 1 < h.buckets ? h.min + width * (b + 1) : h.max;
    for (int64_t i = 0; i < w->n; i++) {
        const double x = value_at(w, i);
        if (!isfinite(x)) continue;
        const int32_t b = width > 0 ? (int32_t)((x - h.min) / width) : 0;
        count[b < h.buckets ? b : h.buckets - 1]++;
    }
    h.limit = limit;
    h.count = count;
    snprintf(tag, sizeof tag, "weights/%s", w->table);
    put(board, &(pli_board_event){
                   .step = w->clock, .value = &(pli_board_value){ .tag = tag, .histogram = &h }, .n_values = 1 });
}

void pli_board_graph(pli_board *board, const plait_graph *graph) {
    pli_arena arena;
    int64_t   n = 0;
    if (board == NULL) return;
    pli_arena_init(&arena, 1 << 16);
    const pli_board_node *nodes = pli_board_nodes(graph, &arena, &n);
    if (nodes != NULL) put(board, &(pli_board_event){ .node = nodes, .n_nodes = n });
    else board->no_memory = true;
    pli_arena_destroy(&arena);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void free_board(pli_board *board) {
    pli_module_close(&board->module);
    pli_free(board->path);
    pli_free(board);
}

/* TensorBoard takes what has "tfevents" in its name, and several files of a directory in the order of their seconds. */
static char *path_in(const char *directory) {
    char host[256];
    pli_host_name(host);
    return pli_format("%s/events.out.tfevents.%010" PRId64 ".%s.%" PRId32 ".plait", directory,
                      (int64_t)pli_wall_seconds(), host, pli_pid());
}

plait_status pli_board_open(const char *directory, pli_board **board_out, plait_error *err) {
    pli_board *board = pli_calloc(1, sizeof *board);
    if (board == NULL) return pli_fail(err, PLAIT_ENOMEM, "tensorboard: no memory");
    plait_status status = open_module(&board->module, &board->codec, err);
    if (status == PLAIT_OK) status = pli_make_directory(directory, err);
    if (status == PLAIT_OK && (board->path = path_in(directory)) == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "tensorboard: no memory");
    if (status == PLAIT_OK && (board->file = fopen(board->path, "wb")) == NULL)
        status = pli_fail_errno(err, errno, "%s: cannot be written (--tensorboard)", board->path);
    if (status < 0) {
        free_board(board);
        return status;
    }
    put(board, &(pli_board_event){ .version = "brain.Event:2" });
    *board_out = board;
    return PLAIT_OK;
}

plait_status pli_board_close(pli_board **board_ptr, plait_error *err) {
    pli_board *board = *board_ptr;
    *board_ptr = NULL;
    if (board == NULL) return PLAIT_OK;
    if (fclose(board->file) != 0 && board->errnum == 0) board->errnum = errno;
    plait_status status = PLAIT_OK;
    if (board->no_memory)
        status = pli_fail(err, PLAIT_ENOMEM, "%s: events are missing: no memory for them", board->path);
    if (board->errnum != 0)
        status = pli_fail_errno(err, board->errnum, "%s: could not be written to its end (--tensorboard)", board->path);
    free_board(board);
    return status;
}
