/* Workers whose ranks were started anew. A later life has forgotten all, and goes on with nothing of its former life.
 * To the audit it is another worker, with a number behind those of all first lives, which was away from the first clock
 * on until it joined. The former life is a worker that has died. So every rule is the one for workers that die, and for
 * workers that come.
 *
 * A stream of a worker is of one life. Servers tell of a worker by the number of its message, whose upper bits say the
 * life that has sent it (table/copies/replicas.h), or by the life itself. The end of a clock in which a worker was away
 * has no message: its number says the life alone, and counts as 0. Servers hear at different times that a rank lives
 * anew, but all know in which clocks somebody stood in for it, of which they tell nothing. So empty clocks are those of
 * the life whose clocks they follow, and only those behind a gap are of the life that they name. A life may end before
 * it has a job, and a log: servers may tell of its clocks, which are empty, and of its end.
 *
 * Paper: Hadzilacos, Toueg, "A modular approach to fault-tolerant broadcasts and related problems", 1994 (a process
 * that recovers without its memory is another process). */
#include "watch/audit/model.h"

enum { SEQ_BITS = 32 }; /* PLI_LIFE_SEQ_BITS of table/copies/replicas.h, which watch does not see */

plait_status audit_find_lives(pli_audit *audit, plait_error *err) {
    const int32_t streams = pli_logfile_streams(audit->file);
    int64_t       capacity = 0;
    for (int32_t i = 0; i < streams; i++) {
        const int32_t life = pli_logfile_life(audit->file, i);
        if (life < 2 || pli_logfile_group(audit->file, i) != audit->group) continue;
        if (!pli_grow((void **)&audit->life, &capacity, audit->lives + 1, sizeof *audit->life))
            return audit_no_memory(err);
        audit->life[audit->lives++] = (struct audit_life){ .rank = pli_logfile_rank(audit->file, i), .life = life };
    }
    return PLAIT_OK;
}

int32_t audit_number_of(const pli_audit *audit, int32_t rank, int64_t life) {
    if (life < 2) return audit->ranked > 0 && rank >= audit->ranked ? INT32_MAX : rank; /* no worker's rank */
    for (int32_t i = 0; i < audit->lives; i++)
        if (audit->life[i].rank == rank && audit->life[i].life == life) return audit->ranked + i;
    return -1;
}

static const pli_event *of_worker(const pli_audit *audit, pli_event *own) {
    if (own->kind != PLI_EVENT_JOB) own->rank = audit_number_of(audit, own->rank, own->life);
    if (own->kind != PLI_EVENT_VIEW) return own;
    own->whom = audit_number_of(audit, own->whom, own->whose);
    return own->whom < 0 ? NULL : own;
}

/* A message of a life without a log contradicts the log. */
static const pli_event *of_server(const pli_audit *audit, pli_event *own) {
    int64_t life = 1;
    switch (own->kind) {
    case PLI_EVENT_GONE: life = own->whose; break;
    case PLI_EVENT_APPLY:
    case PLI_EVENT_DROP:
    case PLI_EVENT_TICK: life = 1 + (int64_t)(own->seq >> SEQ_BITS); break;
    default: return own;
    }
    if (own->kind == PLI_EVENT_TICK && (own->seq & ((UINT64_C(1) << SEQ_BITS) - 1)) == 0) {
        own->seq = 0; /* audit_who_was_away finds whose it is */
        own->whose = (int32_t)life;
        return own;
    }
    const int32_t number = audit_number_of(audit, own->peer, life);
    if (number < 0 && own->kind == PLI_EVENT_GONE) return NULL;
    own->peer = number < 0 ? INT32_MAX : number;
    return own;
}

int32_t audit_who_was_away(const pli_audit *audit, const audit_server *server, const pli_event *event) {
    if (event->seq > 0 || server->ticks[event->peer].n == event->clock) return event->peer;
    for (int32_t i = 0; i < audit->lives; i++) {
        const audit_ticks *ticks = &server->ticks[audit->ranked + i];
        if (audit->life[i].rank == event->peer && ticks->n > audit->first_clock && ticks->n == event->clock)
            return audit->ranked + i;
    }
    return audit_number_of(audit, event->peer, event->whose);
}

const pli_event *audit_number(const pli_audit *audit, const pli_event *event, pli_event *own) {
    const bool first = event->life < 2 && event->whose < 2 && event->seq >> SEQ_BITS == 0;
    if (event->group != NULL || (audit->lives == 0 && first)) return event;
    *own = *event;
    return event->server ? of_server(audit, own) : of_worker(audit, own);
}
