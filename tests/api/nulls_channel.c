/* Cases of what plait/session.h says of cut graphs, and of plait/comm_channel.h. */
#include <plait/comm_channel.h>

#include "api/nulls.h"

static int cut_init(fixture *f, int arg) {
    plait_cut cut;
    (void)f;
    (plait_cut_init)(N(0, &cut));
    return NEUTRAL;
}

/* --- in memory --------------------------------------------------------------------------------------------------- */

static int memory_create(fixture *f, int arg) {
    plait_memory_channel *channel = NULL;
    const plait_status    status = plait_memory_channel_create(1, 1, N(2, &channel), N(3, &f->err));
    plait_memory_channel_destroy(&channel);
    return status;
}
static int memory_calls(fixture *f, int arg) {
    plait_memory_channel *channel = NULL;
    if (plait_memory_channel_create(1, 1, &channel, &f->err) < 0) return OTHER;
    const int answer = NEUTRAL_IF(plait_memory_channel_calls(N(0, channel)) == NULL);
    plait_memory_channel_destroy(&channel);
    return answer;
}
static int memory_leave(fixture *f, int arg) {
    plait_memory_channel *channel = NULL;
    if (plait_memory_channel_create(1, 1, &channel, &f->err) < 0) return OTHER;
    plait_memory_channel_leave(N(0, channel), 0);
    plait_memory_channel_destroy(&channel);
    return NEUTRAL;
}
static int memory_destroy(fixture *f, int arg) {
    plait_memory_channel *none = NULL;
    (void)f;
    plait_memory_channel_destroy(N(0, &none));
    return NEUTRAL;
}

/* --- over ranks -------------------------------------------------------------------------------------------------- */

static const int32_t alone[] = { 0 };

static int comm_create(fixture *f, int arg) {
    plait_comm_channel *channel = NULL;
    const plait_status  status = plait_comm_channel_create(N(0, f->comm), 1, N(2, alone), 0, N(4, &channel));
    plait_comm_channel_destroy(&channel);
    return status;
}
static int comm_calls(fixture *f, int arg) {
    plait_comm_channel *channel = NULL;
    if (plait_comm_channel_create(f->comm, 1, alone, 0, &channel) < 0) return OTHER;
    const int answer = NEUTRAL_IF(plait_comm_channel_calls(N(0, channel)) == NULL);
    plait_comm_channel_destroy(&channel);
    return answer;
}
static int comm_destroy(fixture *f, int arg) {
    plait_comm_channel *none = NULL;
    (void)f;
    plait_comm_channel_destroy(N(0, &none));
    return NEUTRAL;
}

/* --- micro-batches ----------------------------------------------------------------------------------------------- */

/* One micro-batch through a graph of one part. */
static int run_batches(fixture *f, int arg) {
    const float        values[2] = { 1, 2 };
    float              out[2];
    const plait_feed   feed = { f->x, plait_tensor_of(PLAIT_F32, plait_shape_1(2), values) };
    plait_fetch        fetch = { f->y, plait_tensor_of(PLAIT_F32, plait_shape_1(2), out), sizeof out };
    plait_batch        batch = { .feeds = &feed, .fetches = &fetch, .n_feeds = 1, .n_fetches = 1 };
    plait_cut          cut;
    plait_session_opts opts;
    plait_session     *session = NULL;
    plait_cut_init(&cut);
    cut.parts = 1;
    plait_session_opts_init(&opts);
    opts.threads = 1;
    opts.cut = &cut;
    if (plait_session_create(f->graph, &opts, &session, &f->err) < 0) return OTHER;
    const plait_status status =
        plait_session_run_batches(N(0, &session), 1, N(2, "gpipe"), N(3, &batch), 1, N(5, &f->err));
    plait_session_destroy(&session);
    return status;
}

const null_case channel_cases[] = {
    { "cut_init", cut_init, NULL },
    { "memory_channel_create", memory_create, NULL },
    { "memory_channel_calls", memory_calls, NULL },
    { "memory_channel_leave", memory_leave, NULL },
    { "memory_channel_destroy", memory_destroy, "channel" },
    { "comm_channel_create", comm_create, NULL },
    { "comm_channel_calls", comm_calls, NULL },
    { "comm_channel_destroy", comm_destroy, "channel" },
    { "session_run_batches", run_batches, NULL },
    { NULL, NULL, NULL },
};
