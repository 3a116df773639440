/* Moves layers to other stages, at a clock's edge; column_move.c moves columns. See shift.h.
 *
 * All ranks go through the same four steps, so nobody waits in a circle: they give, which sends and waits for nobody
 * outside of the own stage; they drop what they gave; they make the tables that come; they take, which waits for those
 * who have given. */
#include "graph/graph.h"
#include "learn/keep/keep.h"
#include "learn/net/handover.h"
#include "learn/net/shift.h"
#include "table/table.h"

typedef struct moving {
    pli_run   *run;
    int32_t    replicas, me; /* me: this rank's replica, and so its number in the group of its stage */
    pli_handed given[PLI_NET_PARAMS], taken[PLI_NET_PARAMS];
    int32_t    n_given, n_taken;
} moving;

static void find(moving *m, const int32_t *place) {
    const pli_net    *net = pli_net_trained(m->run);
    const pli_stages *stages = pli_net_fit_of(m->run)->stages;
    const int32_t     stage = plait_comm_rank(m->run->comm) / m->replicas;
    for (int32_t p = 0; p < net->n_params; p++) {
        const int32_t from = pli_stages_of(stages, p);
        const int32_t to = pli_stages_at(stages, place[net->graph->value[net->param[p].value].node]);
        if (from == to) continue;
        if (from == stage) m->given[m->n_given++] = (pli_handed){ .number = p, .first = to * m->replicas };
        if (to == stage) m->taken[m->n_taken++] = (pli_handed){ .number = p, .first = from * m->replicas };
    }
}

static plait_status give(moving *m) {
    plait_table **table = pli_net_fit_of(m->run)->table;
    for (int32_t i = 0; i < m->n_given; i++) m->given[i].table = table[m->given[i].number];
    if (m->n_given > 0)
        PLI_TRY(pli_handover_give(m->run->comm, m->given, m->n_given, m->replicas, m->me, m->run->err));
    for (int32_t i = 0; i < m->n_given; i++) PLI_TRY(pli_run_drop_table(m->run, &table[m->given[i].number]));
    return PLAIT_OK;
}

static plait_status take(moving *m) {
    plait_table **table = pli_net_fit_of(m->run)->table;
    for (int32_t i = 0; i < m->n_taken; i++) {
        PLI_TRY(pli_net_make_table(m->run, m->taken[i].number));
        m->taken[i].table = table[m->taken[i].number];
    }
    return pli_handover_take(m->run->comm, m->taken, m->n_taken, m->replicas, m->run->err);
}

static plait_status move_layers(pli_run *run, const int32_t *place) {
    pli_stages *stages = pli_net_fit_of(run)->stages;
    moving      m = { .run = run, .replicas = pli_run_holders(run), .me = pli_stages_replica(stages) };
    find(&m, place);
    PLI_TRY(give(&m));
    PLI_TRY(take(&m));
    pli_stages_take_places(stages, place);
    return PLAIT_OK;
}

plait_status pli_shift_move(pli_run *run, pli_shift *shift) {
    const bool columns = shift->pieces != NULL;
    uint64_t   at = pli_comm_span_begin(run->comm);
    PLI_TRY(pli_keep_settle(run)); /* a checkpoint under way is of the tables that are dropped */
    PLI_TRY(columns ? pli_column_move(run, &shift->pieces) : move_layers(run, shift->place));
    pli_keep_tables(run);
    PLI_TRY(plait_job_barrier(run->job)); /* what was put is there, on all ranks */
    pli_net_destroy(&shift->pieces);
    pli_job_resume(run->job);
    pli_run_step(run, columns ? "move columns" : "move layers", &at);
    return PLAIT_OK;
}
