/* Places that would suit stages whose speeds have changed: the runs of layers whose slowest takes least time there
 * (layers.c), judged by a step's simulated time against the places at hand. */
#include <string.h>

#include "graph/graph.h"
#include "learn/net/placed.h"

typedef struct suiting {
    pli_staging    p;
    const int32_t *place;            /* at hand */
    int32_t       *by_speed, *given; /* [nodes] what would suit; room */
} suiting;

static plait_status begin(suiting *s, const pli_run *run, const pli_net *net, int32_t ranks, int32_t chunks,
                          int64_t rows, const int32_t *place) {
    const size_t nodes = (size_t)net->graph->n_nodes;
    *s = (suiting){ .p = pli_staging_make(run, net, ranks, chunks, rows), .place = place };
    PLI_TRY(pli_stage_hosts_make(run, ranks, &s->p.hosts));
    s->by_speed = pli_array(nodes, sizeof *s->by_speed);
    s->given = pli_array(nodes, sizeof *s->given);
    return s->by_speed != NULL && s->given != NULL && pli_stage_hosts_speeds(&s->p.hosts) >= 0
               ? PLAIT_OK
               : pli_fail(run->err, PLAIT_ENOMEM, "no memory to cut a net");
}

static void end(suiting *s) {
    pli_stage_hosts_free(&s->p.hosts);
    pli_free(s->by_speed);
    pli_free(s->given);
}

/* --- of one replica, by its slowdown ------------------------------------------------------------------------------ */

static plait_status suit(suiting *s, const double *speed, pli_text *text, double *gain_out) {
    pli_staging *p = &s->p;
    double       before, after;
    for (int32_t k = 0; k < p->ranks; k++) p->hosts.speed[k] *= speed[k];
    PLI_TRY(pli_layers_place(p->net, p->ranks, p->rows, &p->hosts, s->by_speed, p->run->err));
    PLI_TRY(pli_staging_seconds(p, s->place, s->given, &before, p->run->err));
    PLI_TRY(pli_staging_seconds(p, s->by_speed, s->given, &after, p->run->err));
    *gain_out = 1 - after / before;
    pli_staging_list(p, s->by_speed, text);
    return PLAIT_OK;
}

plait_status pli_placed_suit(const pli_run *run, const pli_net *net, int32_t ranks, int64_t rows, const int32_t *place,
                             const double *speed, pli_text *text, double *gain_out) {
    suiting      s;
    plait_status status = begin(&s, run, net, ranks, 1, rows, place);
    if (status >= 0) status = suit(&s, speed, text, gain_out);
    end(&s);
    return status;
}

/* --- of all replicas, by measured times --------------------------------------------------------------------------- */

/* What a row takes in each stage [ranks] on hosts of speed 1, by simulation with the places at hand. */
static plait_status foretell(suiting *s, double *seconds) {
    pli_staging     *p = &s->p;
    plait_placement *placement = NULL;
    const double     rows = (double)p->rows * p->micro_batches;
    for (int32_t k = 0; k < p->ranks; k++) p->hosts.speed[k] = 1;
    PLI_TRY(pli_staging_given(p, s->place, s->given, &placement, p->run->err));
    plait_status status = PLAIT_OK;
    for (int32_t k = 0; status >= 0 && k < p->ranks; k++) {
        plait_place_share share;
        status = plait_placement_share(placement, k, &share, p->run->err);
        seconds[k] = share.busy_s / rows;
    }
    plait_placement_destroy(&placement);
    return status;
}

/* How many steps a second all replicas do together. speed [ranks, replicas]. */
static plait_status rate_of(suiting *s, const int32_t *place, const double *speed, int32_t replicas,
                            double *rate_out) {
    *rate_out = 0;
    for (int32_t r = 0; r < replicas; r++) {
        double seconds;
        for (int32_t k = 0; k < s->p.ranks; k++) s->p.hosts.speed[k] = speed[k * replicas + r];
        PLI_TRY(pli_staging_seconds(&s->p, place, s->given, &seconds, s->p.run->err));
        *rate_out += 1 / seconds;
    }
    return PLAIT_OK;
}

/* foretold [ranks], speed [ranks, replicas]: room. Layers are cut for the replicas' mean speeds. */
static plait_status cut_anew(suiting *s, const double *seconds, int32_t replicas, double *foretold, double *speed,
                             pli_text *text, double *gain_out) {
    pli_staging *p = &s->p;
    double       before, after;
    PLI_TRY(foretell(s, foretold));
    for (int32_t k = 0; k < p->ranks; k++) {
        p->hosts.speed[k] = 0;
        for (int32_t r = 0; r < replicas; r++) {
            speed[k * replicas + r] = foretold[k] / seconds[k * replicas + r];
            p->hosts.speed[k] += speed[k * replicas + r] / replicas;
        }
    }
    PLI_TRY(pli_layers_place(p->net, p->stages, p->rows, &p->hosts, s->by_speed, p->run->err));
    pli_staging_list(p, s->by_speed, text);
    PLI_TRY(rate_of(s, s->place, speed, replicas, &before));
    PLI_TRY(rate_of(s, s->by_speed, speed, replicas, &after));
    *gain_out = 1 - before / after;
    return PLAIT_OK;
}

plait_status pli_placed_anew(const pli_run *run, const pli_net *net, int32_t ranks, int32_t chunks, int64_t rows,
                             const int32_t *place, const double *seconds, int32_t *place_out, pli_text *text,
                             double *gain_out) {
    suiting      s;
    plait_status status = begin(&s, run, net, ranks, chunks, rows, place);
    const int32_t replicas = s.p.hosts.replicas;
    double       *foretold = pli_array((size_t)ranks, sizeof *foretold);
    double       *speed = pli_array((size_t)ranks * (size_t)replicas, sizeof *speed);
    if (status >= 0 && (foretold == NULL || speed == NULL))
        status = pli_fail(run->err, PLAIT_ENOMEM, "no memory to cut a net");
    if (status >= 0) status = cut_anew(&s, seconds, replicas, foretold, speed, text, gain_out);
    if (status >= 0) memcpy(place_out, s.by_speed, (size_t)net->graph->n_nodes * sizeof *place_out);
    pli_free(foretold);
    pli_free(speed);
    end(&s);
    return status;
}
