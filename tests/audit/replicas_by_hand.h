/* replicas_by_hand.h - event logs of jobs whose shards have two replicas, made event by event (log_by_hand.h). Rank 3
 * has server 0 and, at place 1, the replica of server 1; rank 4 the other way round. Spares are the last of the
 * workers, and their ranks the places from 2 on. */
#ifndef PLI_TESTS_AUDIT_COPIES_BY_HAND_H
#define PLI_TESTS_AUDIT_COPIES_BY_HAND_H

#include "audit/log_by_hand.h"

static inline pli_event of_copy(const maker *m, pli_event_kind kind, int32_t server, int32_t place) {
    const int32_t rank = place < 2 ? SERVER + (server + place) % SHARDS : WORKERS - m->spares + place - 2;
    return (pli_event){
        .kind = kind, .server = true, .rank = rank, .home = server, .place = place, .table = -1, .shard = server
    };
}

/* One side of a rank, worker or server, joins the job and knows its table. */
static inline void join(maker *m, pli_event event) {
    const pli_event_job job = {
        .workers = WORKERS, .servers = SHARDS, .first_server = SERVER, .replicas = 2, .spares = m->spares
    };
    const pli_event_table table = { .name = "w",
                                    .topology = "ps",
                                    .consistency = m->consistency,
                                    .rows = 100,
                                    .cols = 2,
                                    .way = PLI_WAY_SERVED,
                                    .shards = SHARDS };
    event.kind = PLI_EVENT_JOB;
    event.table = -1;
    event.info.job = &job;
    raise_event(m, event);
    event.kind = PLI_EVENT_TABLE;
    event.table = 0;
    event.info.table = &table;
    raise_event(m, event);
}

static inline void begin_copies_of(maker *m, const char *consistency, int32_t spares, int32_t cut_rank) {
    *m = (maker){ .spares = spares, .consistency = consistency };
    snprintf(m->path, sizeof m->path, "log_by_hand.%d.events", (int)getpid());
    assert_int_equal(pli_eventlog_open(m->path, RANKS, "0123456789abcdef", now_of, m, &m->log, NULL), PLAIT_OK);
    if (cut_rank >= 0) cut_short(m, cut_rank);
    for (int32_t w = 0; w < WORKERS; w++) join(m, (pli_event){ .rank = w });
    for (int32_t s = 0; s < SHARDS; s++)
        for (int32_t place = 0; place < 2; place++) join(m, of_copy(m, 0, s, place));
}

static inline void begin_copies(maker *m, const char *consistency) { begin_copies_of(m, consistency, 0, -1); }

static inline void applied(maker *m, int32_t server, int32_t place, int32_t worker, uint64_t seq, int64_t clock) {
    pli_event event = of_copy(m, PLI_EVENT_APPLY, server, place);
    event.peer = worker;
    event.table = 0;
    event.seq = seq;
    event.clock = clock;
    raise_event(m, event);
}

static inline void counted(maker *m, int32_t server, int32_t place, int32_t worker, uint64_t seq, int64_t clock) {
    pli_event event = of_copy(m, PLI_EVENT_TICK, server, place);
    event.peer = worker;
    event.seq = seq;
    event.clock = clock;
    raise_event(m, event);
}

/* A replica has taken the worker's last push, which ends the clock. */
static inline void taken_at(maker *m, int32_t server, int32_t place, int32_t worker, int64_t clock) {
    applied(m, server, place, worker, m->seq[worker][server], clock);
    counted(m, server, place, worker, m->seq[worker][server], clock);
}

/* Both replicas that the job begins with have taken it. */
static inline void taken(maker *m, int32_t server, int32_t worker, int64_t clock) {
    for (int32_t place = 0; place < 2; place++) taken_at(m, server, place, worker, clock);
}

static inline void serves(maker *m, int32_t server, int32_t place) {
    raise_event(m, of_copy(m, PLI_EVENT_SERVE, server, place));
}

static inline void gone(maker *m, int32_t server, int32_t place, int32_t worker) {
    pli_event event = of_copy(m, PLI_EVENT_GONE, server, place);
    event.peer = worker;
    raise_event(m, event);
}

static inline void pushes(maker *m, int32_t worker, int64_t clock) {
    inc(m, worker);
    push(m, worker, clock);
}

static inline void first_clock(maker *m) {
    for (int32_t w = 0; w < WORKERS; w++) pushes(m, w, 0);
    for (int32_t w = 0; w < WORKERS; w++)
        for (int32_t s = 0; s < SHARDS; s++) taken(m, s, w, 0);
    for (int32_t w = 0; w < WORKERS; w++) end_clock(m, w, 0);
}

#endif
