/* The graph of waits, as a pure function of looks; doctor.h has the ideas. */
#include "comm/doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* --- ranks that can never go on
 * ------------------------------------------------------------------------------------- */

/* The set of ranks that may go on grows from the ranks that run; a rank joins it as soon as the ranks in it suffice
 * to end its wait. */
typedef struct search {
    const pli_ward *ward;
    const bool     *stuck; /* not found to go on, so far */
    const pli_look *same;  /* the last collective that was judged */
    bool            same_goes;
} search;

static bool lacks(const pli_look *worker, const pli_wait *wait) {
    if (worker->state == PLI_LOOK_NONE) return false;
    return (wait->joins ? worker->joined : worker->begun) < wait->number;
}

static bool anyone_may(const search *s, int32_t rank, int32_t among) {
    for (int32_t r = 0; r < among; r++)
        if (r != rank && !s->stuck[r]) return true;
    return false;
}

static bool message_may_come(const search *s, int32_t rank, int32_t from) {
    return from >= 0 ? from >= s->ward->size || !s->stuck[from] : anyone_may(s, rank, s->ward->size);
}

static bool table_may_answer(const search *s, int32_t rank, const pli_wait *on) {
    if (on->peer < 0 || on->peer >= s->ward->size || on->peer == rank) return true;
    return on->any ? anyone_may(s, rank, s->ward->workers) : !s->stuck[on->peer];
}

/* Every missing worker must be able to come. */
static bool all_may_come(search *s, const pli_look *look) {
    const pli_wait *on = &look->on;
    if (s->same != NULL && s->same->on.number == on->number && s->same->on.joins == on->joins) return s->same_goes;
    s->same = look;
    s->same_goes = true;
    for (int32_t w = 0; s->same_goes && w < s->ward->workers; w++)
        s->same_goes = !(s->stuck[w] && lacks(&s->ward->look[w], on));
    return s->same_goes;
}

static bool workers_may_end(const search *s, int32_t rank) {
    for (int32_t w = 0; w < s->ward->workers; w++)
        if (w != rank && s->stuck[w] && s->ward->look[w].state == PLI_LOOK_WAITS) return false;
    return true;
}

static bool may_go(search *s, int32_t rank) {
    const pli_look *look = &s->ward->look[rank];
    if (look->state == PLI_LOOK_ENDED) return false;
    if (look->state != PLI_LOOK_WAITS) return true;
    switch ((pli_wait_kind)look->on.kind) {
    case PLI_WAIT_RECV: return message_may_come(s, rank, look->on.peer);
    case PLI_WAIT_COLLECTIVE: return all_may_come(s, look);
    case PLI_WAIT_TABLE: return table_may_answer(s, rank, &look->on);
    case PLI_WAIT_WORKERS: return workers_may_end(s, rank);
    case PLI_WAIT_OTHER:
    case PLI_WAIT_KINDS: break;
    }
    return true;
}

int32_t pli_doctor_stuck(const pli_ward *ward, bool *stuck) {
    search  s = { .ward = ward, .stuck = stuck };
    int32_t waiting = 0;
    for (int32_t r = 0; r < ward->size; r++) stuck[r] = true;
    for (bool more = true; more;) {
        more = false;
        s.same = NULL;
        for (int32_t r = 0; r < ward->size; r++) {
            if (!stuck[r] || !may_go(&s, r)) continue;
            stuck[r] = false;
            more = true;
        }
    }
    for (int32_t r = 0; r < ward->size; r++) {
        stuck[r] = stuck[r] && ward->look[r].state == PLI_LOOK_WAITS; /* a rank that has ended is not stuck */
        waiting += stuck[r];
    }
    return waiting;
}

static bool never_comes(const pli_ward *ward, const bool *stuck, int32_t rank) {
    return stuck[rank] || ward->look[rank].state == PLI_LOOK_ENDED;
}

int32_t pli_doctor_next(const pli_ward *ward, const bool *stuck, int32_t rank) {
    const pli_wait *on = &ward->look[rank].on;
    if (on->kind == PLI_WAIT_TABLE || (on->kind == PLI_WAIT_RECV && on->peer >= 0)) return on->peer;
    int32_t among = on->kind == PLI_WAIT_RECV ? ward->size : ward->workers, ended = -1;
    for (int32_t r = 0; r < among; r++) {
        if (r == rank || !never_comes(ward, stuck, r)) continue;
        if (on->kind == PLI_WAIT_COLLECTIVE && !lacks(&ward->look[r], on)) continue;
        if (stuck[r]) return r;
        ended = r;
    }
    return ended;
}

/* --- different calls at the same place --------------------------------------------------------------------------- */

static bool is_in_collective(const pli_look *look) {
    return look->state == PLI_LOOK_WAITS && look->on.kind == PLI_WAIT_COLLECTIVE;
}

int32_t pli_doctor_mismatch(const pli_ward *ward, int32_t rank) {
    const pli_look *look = &ward->look[rank];
    if (!is_in_collective(look)) return -1;
    const pli_wait *a = &look->on;
    for (int32_t w = 0; w < ward->workers; w++) {
        const pli_wait *b = &ward->look[w].on;
        if (!is_in_collective(&ward->look[w]) || a->number != b->number) continue;
        if (a->coll_kind != b->coll_kind || a->coll_form != b->coll_form || a->coll_type != b->coll_type ||
            a->coll_op != b->coll_op || a->root != b->root || a->n != b->n)
            return w;
    }
    return -1;
}

/* --- two looks ---------------------------------------------------------------------------------------------------- */

bool pli_doctor_confirms(const pli_look *before, const pli_look *now) {
    if (before->state != PLI_LOOK_WAITS || now->state != PLI_LOOK_WAITS || before->wait != now->wait) return false;
    if (!before->settled || !now->settled) return false;
    return now->on.kind != PLI_WAIT_TABLE || now->on.answered > before->on.asked;
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

void pli_doctor_tell_site(const char *call, uint64_t ordinal, const char *file, int32_t line, char *text,
                          size_t bytes) {
    text[0] = '\0';
    if (call == NULL || call[0] == '\0') return;
    int n = snprintf(text, bytes, "%s, call %llu", call, (unsigned long long)ordinal);
    if (file != NULL && file[0] != '\0' && n > 0 && (size_t)n < bytes)
        snprintf(text + n, bytes - (size_t)n, ", %s:%d", file, line);
}

/* Writes "barrier, held up by rank 0 (plait_comm_barrier, call 3, ring.c:21)"; seconds < 0: they are left out. */
static void tell_wait(const pli_look *look, double seconds, char *text, size_t bytes) {
    char site[144], since[32] = "";
    pli_doctor_tell_site(look->call, look->ordinal, look->file, look->line, site, sizeof site);
    if (seconds >= 0) snprintf(since, sizeof since, "%s%.1f s", site[0] == '\0' ? "" : "; ", seconds);
    if (site[0] == '\0' && since[0] == '\0') {
        snprintf(text, bytes, "%s", look->what);
    } else {
        snprintf(text, bytes, "%s (%s%s)", look->what, site, since);
    }
}

void pli_doctor_tell(const pli_look *look, int32_t rank, char *text, size_t bytes) {
    char wait[400];
    switch ((pli_look_state)look->state) {
    case PLI_LOOK_WAITS:
        tell_wait(look, (double)look->waited_ns * 1e-9, wait, sizeof wait);
        snprintf(text, bytes, "rank %d waits for %s", rank, wait);
        return;
    case PLI_LOOK_RUNS: snprintf(text, bytes, "rank %d works, and waits for nothing", rank); return;
    case PLI_LOOK_ENDED:
        snprintf(text, bytes, "rank %d has ended%s%s", rank, look->what[0] != '\0' ? " and waits for " : "",
                 look->what);
        return;
    case PLI_LOOK_NONE:
    case PLI_LOOK_STATES: break;
    }
    snprintf(text, bytes, "rank %d does not answer", rank);
}

static void add(plait_error *err, const char *text) {
    size_t at = strlen(err->text);
    snprintf(err->text + at, sizeof err->text - at, "%s", text);
}

static void add_wait(plait_error *err, const pli_ward *ward, int32_t rank, const char *before) {
    char wait[400], text[480];
    tell_wait(&ward->look[rank], -1, wait, sizeof wait);
    snprintf(text, sizeof text, "%srank %d waits for %s", before, rank, wait);
    add(err, text);
}

/* Tells from rank on who holds up whom, until a rank comes again or has ended. */
void pli_doctor_explain_stuck(const pli_ward *ward, const bool *stuck, int32_t rank, plait_error *err) {
    enum { CHAIN_MAX = 16 };
    int32_t chain[CHAIN_MAX], n = 0, at = rank;
    char    text[96];
    *err = (plait_error){ .code = PLAIT_EDEADLOCK, .rank = rank };
    add(err, "deadlock: ");
    for (;;) {
        chain[n++] = at;
        add_wait(err, ward, at, n == 1 ? "" : "; ");
        at = pli_doctor_next(ward, stuck, at);
        if (at < 0 || at >= ward->size) return;
        if (!stuck[at]) {
            snprintf(text, sizeof text, "; rank %d has ended", at);
            add(err, text);
            return;
        }
        for (int32_t i = 0; i < n; i++)
            if (chain[i] == at) return;
        if (n == CHAIN_MAX) {
            add(err, "; and so on");
            return;
        }
    }
}

void pli_doctor_explain_mismatch(const pli_ward *ward, int32_t rank, int32_t other, plait_error *err) {
    char text[96];
    *err = (plait_error){ .code = PLAIT_EMISMATCH, .rank = rank };
    snprintf(text, sizeof text, "collective %llu: ", (unsigned long long)ward->look[rank].on.number);
    add(err, text);
    add_wait(err, ward, rank, "");
    add_wait(err, ward, other, " where ");
}

/* --- looks from a wire -------------------------------------------------------------------------------------------- */

static bool mend_text(char *text, size_t bytes) {
    if (memchr(text, '\0', bytes) == NULL) return false;
    for (size_t i = 0; text[i] != '\0'; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) text[i] = '?';
    return true;
}

plait_status pli_look_decode(const void *data, size_t bytes, int32_t size, pli_look *look_out, plait_error *err) {
    pli_look look;
    if (bytes != sizeof look)
        return pli_fail(err, PLAIT_EFORMAT, "a look of %zu bytes, expected %zu", bytes, sizeof look);
    memcpy(&look, data, sizeof look);
    const pli_wait *on = &look.on;
    bool            fine = look.state > PLI_LOOK_NONE && look.state < PLI_LOOK_STATES && on->kind < PLI_WAIT_KINDS &&
                on->peer >= -1 && on->peer < size && on->first_server >= 0 && on->servers >= 0 &&
                on->first_server <= size && on->servers <= size - on->first_server;
    fine = fine && mend_text(look.what, sizeof look.what) && mend_text(look.call, sizeof look.call) &&
           mend_text(look.file, sizeof look.file);
    if (!fine) return pli_fail(err, PLAIT_EFORMAT, "a look that is none");
    *look_out = look;
    return PLAIT_OK;
}
