/* Drives the machine of agreed sums for a rank: its port, and the worker's wait. See agreed_run.h. */
#include "comm/agreed_run.h"

#include <stdio.h>

#include "comm/call.h"

struct pli_agreed_run {
    plait_comm     *comm;
    pli_port       *port;
    pli_agreed_sums sums;
};

plait_status pli_agreed_run_open(plait_comm *comm, plait_group *group, pli_agreed_run **run_out, plait_error *err) {
    const pli_world *world = comm->world;
    const int32_t   *rank = group != NULL ? group->numbers.rank : NULL;
    const pli_hosts *hosts = group != NULL ? &group->hosts : &world->hosts;
    pli_agreed_run  *run = pli_calloc(1, sizeof *run);
    if (run == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of workers");
    run->comm = comm;
    const bool   made = pli_agreed_sums_init(&run->sums, pli_call_me(comm, group), pli_call_workers(comm, group), rank,
                                             hosts->host, world->form, world->place.resend_after_ns);
    plait_status status = made ? pli_port_open_in(comm, group, PLI_PORT_AGREED, &pli_agreed_sums_ops, &run->sums,
                                                  &run->port, err)
                               : pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of workers");
    if (status >= 0) {
        *run_out = run;
        return status;
    }
    if (made) pli_agreed_sums_destroy(&run->sums);
    pli_free(run);
    return status;
}

void pli_agreed_run_close(pli_agreed_run **run_ptr) {
    pli_agreed_run *run = *run_ptr;
    *run_ptr = NULL;
    if (run == NULL) return;
    pli_port_close(&run->port);
    pli_agreed_sums_destroy(&run->sums);
    pli_free(run);
}

const uint8_t *pli_agreed_run_next(const pli_agreed_run *run) { return run->sums.next; }

void pli_agreed_run_tell(pli_agreed_run *run, const uint8_t *dead) {
    pli_member_event died = { .kind = PLI_MEMBER_DIED };
    uint64_t         now_ns;
    pli_out          out;
    pli_port_enter(run->port, &now_ns, &out);
    for (died.rank = 0; died.rank < run->sums.agreed.ranks; died.rank++)
        if (dead[died.rank]) pli_agreed_sums_ops.on_member(&run->sums, now_ns, &died, &out);
    pli_port_leave(run->port, &out);
}

bool pli_agreed_run_lost(pli_agreed_run *run) {
    const pli_agreed_sums *s = &run->sums;
    uint64_t               now_ns;
    pli_out                out;
    bool                   lost = false;
    pli_port_enter(run->port, &now_ns, &out);
    for (int32_t r = 0; r < s->agreed.ranks; r++)
        lost = lost || (pli_agreed_is_dead(s->agreed.dead, r) && !s->next[r]);
    pli_port_leave(run->port, &out);
    return lost;
}

/* --- the wait ----------------------------------------------------------------------------------------------------- */

/* What the worker's thread waits for: that the machine has something new to say. */
typedef struct news {
    pli_agreed_run *run;
    plait_status    status; /* what the machine said last */
    plait_error    *err;
} news;

static plait_status ask(news *n) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(n->run->port, &now_ns, &out);
    n->status = pli_agreed_sums_go_on(&n->run->sums, now_ns, &out, n->err);
    pli_port_leave(n->run->port, &out);
    return n->status;
}

static bool is_ready(void *arg) { return ask(arg) != PLAIT_PENDING; }

static void tell_step(const void *arg, char *text, size_t bytes) {
    const pli_agreed_sums *s = &((const news *)arg)->run->sums;
    const int32_t          rank = atomic_load_explicit(&s->waits_for, memory_order_relaxed);
    if (rank >= 0) snprintf(text, bytes, "the sums of step %lld, held up by rank %d", (long long)s->step, rank);
    else snprintf(text, bytes, "the sums of step %lld", (long long)s->step);
}

static void show_step(const void *arg, pli_wait *wait) {
    const pli_agreed_sums *s = &((const news *)arg)->run->sums;
    wait->kind = PLI_WAIT_OTHER;
    wait->peer = atomic_load_explicit(&s->waits_for, memory_order_relaxed);
}

static plait_status wait_for_step(pli_agreed_run *run, plait_error *err) {
    news             n = { .run = run, .err = err };
    const pli_reason reason = { .tell = tell_step, .show = show_step, .arg = &n };
    PLI_TRY(pli_comm_wait(run->comm, is_ready, &n, &reason, err));
    if (n.status < 0) return n.status;
    PLI_TRY(pli_comm_is_lost(run->comm, &reason, err)); /* who was taken for dead may be alone: nothing is agreed */
    return n.status;
}

plait_status pli_agreed_run_step(pli_agreed_run *run, int64_t n, const pli_agreed_part *parts, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(run->port, &now_ns, &out);
    plait_status status = pli_agreed_sums_give(&run->sums, n, parts, err);
    pli_port_leave(run->port, &out);
    if (status >= 0) status = wait_for_step(run, err);
    pli_port_enter(run->port, &now_ns, &out);
    status = pli_agreed_sums_end(&run->sums, status, err);
    pli_port_leave(run->port, &out);
    return status;
}
