/* Writes a run's reports as events of a TensorBoard file (board.h). */
#include "watch/board/board.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/module.h"
#include "watch/board/record.h"

enum { VALUES_MAX = 12 + PLAIT_FIGURES, TAG_BYTES = 48 };

struct pli_board {
    void                  *module;
    const pli_board_codec *codec;
    char                  *path;
    FILE                  *file;
    int                    errnum;     /* errno of the first write that failed */
    bool                   no_memory;  /* an event was left out                */
    double                 seconds;    /* of the last report, like its clock   */
    int64_t                clock;
};

/* --- the module --------------------------------------------------------------------------------------------------- */

static plait_status open_module(void **handle_out, const pli_board_codec **codec_out, plait_error *err) {
    const void *given = NULL;
    PLI_TRY(pli_module_load("tensorboard", PLI_BOARD_ABI, handle_out, &given, err));
    *codec_out = given;
    return PLAIT_OK;
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

/* The scalars of one moment; those that are NaN are left out. */
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
    add(&s, "bytes/sent_by_leading_rank", p->bytes);
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
    char    tag[PLAIT_FIGURES][TAG_BYTES];
    if (board == NULL || report == NULL) return;
    add(&s, "end/objective", report->objective);
    add(&s, "end/train_loss", report->train_loss);
    add(&s, "test/loss", report->test_loss);
    add(&s, "test/accuracy", report->test_accuracy);
    add(&s, "test/auc", report->test_auc);
    add(&s, "test/rmse", report->test_rmse);
    add(&s, "test/mae", report->test_mae);
    add(&s, "bytes/sent_by_all", (double)report->bytes_sent);
    for (int32_t i = 0; i < report->n_figures; i++) {
        const char *name = report->figures[i].name;
        const bool  test = strncmp(name, "test_", 5) == 0;
        snprintf(tag[i], sizeof tag[i], "%s/%s", test ? "test" : "end", test ? name + 5 : name);
        add(&s, tag[i], report->figures[i].value);
    }
    put_scalars(board, &s, report->clocks);
}

void pli_board_weights(pli_board *board, const plait_weights *w) {
    double              limit[PLI_BOARD_BUCKETS], count[PLI_BOARD_BUCKETS];
    pli_board_histogram h;
    char                tag[128];
    if (board == NULL || !pli_board_measure(w, &h, limit, count)) return;
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

/* TensorBoard reads files with "tfevents" in their names, and orders the files of a directory by the seconds in their
 * names. The last number distinguishes runs of one process in the same second. */
static plait_status open_file(pli_board *board, const char *directory, plait_error *err) {
    const int64_t seconds = (int64_t)pli_wall_seconds();
    char          host[256];
    pli_host_name(host);
    for (int32_t k = 0; board->file == NULL; k++) {
        pli_free(board->path);
        board->path = pli_format("%s/events.out.tfevents.%010" PRId64 ".%s.%" PRId32 ".%" PRId32 ".plait", directory,
                                 seconds, host, pli_pid(), k);
        if (board->path == NULL) return pli_fail(err, PLAIT_ENOMEM, "tensorboard: no memory");
        board->file = fopen(board->path, "wbx");
        if (board->file == NULL && errno != EEXIST)
            return pli_fail_errno(err, errno, "%s: cannot be written (--tensorboard)", board->path);
    }
    return PLAIT_OK;
}

plait_status pli_board_open(const char *directory, pli_board **board_out, plait_error *err) {
    pli_board *board = pli_calloc(1, sizeof *board);
    if (board == NULL) return pli_fail(err, PLAIT_ENOMEM, "tensorboard: no memory");
    plait_status status = open_module(&board->module, &board->codec, err);
    if (status == PLAIT_OK) status = pli_make_directory(directory, err);
    if (status == PLAIT_OK) status = open_file(board, directory, err);
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
