/* Places that would suit stages whose speeds have changed: the runs of layers whose slowest takes least time there
 * (layers.c), or the shares of columns by which all end together, judged by a step's simulated time against what is at
 * hand. */
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

/* The speeds of all ranks, and the replicas' mean speed of each stage. */
static void take_speeds(suiting *s, const double *seconds, int32_t replicas, const double *foretold, double *speed) {
    pli_staging *p = &s->p;
    for (int32_t k = 0; k < p->ranks; k++) {
        p->hosts.speed[k] = 0;
        for (int32_t r = 0; r < replicas; r++) {
            speed[k * replicas + r] = foretold[k] / seconds[k * replicas + r];
            p->hosts.speed[k] += speed[k * replicas + r] / replicas;
        }
    }
}

/* foretold [ranks], speed [ranks, replicas]: room. Layers are cut for the replicas' mean speeds. */
static plait_status cut_anew(suiting *s, const double *seconds, int32_t replicas, double *foretold, double *speed,
                             pli_text *text, double *gain_out) {
    pli_staging *p = &s->p;
    double       before, after;
    PLI_TRY(foretell(s, foretold));
    take_speeds(s, seconds, replicas, foretold, speed);
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

/* --- shares of columns -------------------------------------------------------------------------------------------- */

/* What a row takes at speed 1: the columns, whoever has them, and what rank 0 has besides. */
typedef struct column_costs {
    int32_t columns;
    double  all, rest;
} column_costs;

static double share_of(const pli_net *net, int32_t k) {
    return net->share[0] == 0 ? 1.0 / net->columns : (double)net->share[k] / PLI_COLUMN_SHARES;
}

/* foretold [columns]: seconds of a row, at speed 1, with the shares at hand. */
static column_costs costs_of(const pli_net *net, const double *foretold) {
    double seconds = 0, shares = 0;
    for (int32_t k = 1; k < net->columns; k++) {
        seconds += foretold[k];
        shares += share_of(net, k);
    }
    const double all = seconds / shares, rest = foretold[0] - all * share_of(net, 0);
    return (column_costs){ .columns = net->columns, .all = all, .rest = rest > 0 ? rest : 0 };
}

/* The part of all columns that rank k computes in so many seconds. */
static double part_in(const column_costs *c, const double *speed, int32_t k, double seconds) {
    const double part = (seconds * speed[k] - (k == 0 ? c->rest : 0)) / c->all;
    return part > 0 ? part : 0;
}

static double parts_in(const column_costs *c, const double *speed, double seconds) {
    double parts = 0;
    for (int32_t k = 0; k < c->columns; k++) parts += part_in(c, speed, k, seconds);
    return parts;
}

/* Shares [columns] by which all ranks end together. Whoever has a share has a thousandth of it at least. */
static void share_out(const column_costs *c, const double *speed, int32_t *share) {
    enum { HALVINGS = 60 };
    double low = 0, high = (c->all + c->rest) / speed[0], at = 0;
    for (int32_t i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        if (parts_in(c, speed, middle) < 1) low = middle;
        else high = middle;
    }
    const double  all = parts_in(c, speed, high);
    const int32_t spare = PLI_COLUMN_SHARES - c->columns;
    for (int32_t k = 0, last = 0; k < c->columns; k++) {
        at += part_in(c, speed, k, high) / all;
        const int32_t to = k + 1 < c->columns ? (int32_t)(at * spare + 0.5) : spare;
        share[k] = to - last + 1;
        last = to;
    }
}

static void list_shares(const int32_t *share, int32_t n, pli_text *text) {
    for (int32_t k = 0; k < n; k++)
        pli_text_add(text, "%sstage %d: %.1f %%", k > 0 ? "; " : "", k, 100.0 * share[k] / PLI_COLUMN_SHARES);
    pli_text_add(text, " of each layer's columns");
}

static plait_status share_anew(suiting *s, const double *seconds, double *foretold, double *speed, int32_t *share,
                               pli_net **pieces_out, pli_text *text, double *gain_out) {
    pli_staging  *p = &s->p;
    const int32_t replicas = p->hosts.replicas;
    double        before, after;
    for (int32_t i = 0; i < p->ranks * replicas; i++) speed[i] = p->hosts.speed[i / replicas];
    PLI_TRY(foretell(s, foretold));
    if (seconds != NULL) take_speeds(s, seconds, replicas, foretold, speed);
    for (int32_t k = 0; seconds == NULL && k < p->ranks; k++) p->hosts.speed[k] = speed[k * replicas];
    const column_costs costs = costs_of(p->net, foretold);
    if (costs.all <= 0) return PLAIT_OK; /* a cluster in which computing costs nothing */
    share_out(&costs, p->hosts.speed, share);
    list_shares(share, p->ranks, text);
    PLI_TRY(pli_net_make_pieces(p->run, share, pieces_out));
    PLI_TRY(rate_of(s, s->place, speed, replicas, &before));
    p->net = *pieces_out; /* it has the same nodes */
    PLI_TRY(rate_of(s, s->place, speed, replicas, &after));
    *gain_out = 1 - before / after;
    return PLAIT_OK;
}

plait_status pli_placed_shares(const pli_run *run, const pli_net *net, int64_t rows, const int32_t *place,
                               const double *seconds, pli_net **pieces_out, pli_text *text, double *gain_out) {
    const size_t n = (size_t)net->columns;
    suiting      s;
    plait_status status = begin(&s, run, net, net->columns, 1, rows, place);
    double      *foretold = pli_array(n, sizeof *foretold);
    double      *speed = pli_array(n * (size_t)(s.p.hosts.replicas > 0 ? s.p.hosts.replicas : 1), sizeof *speed);
    int32_t     *share = pli_array(n, sizeof *share);
    if (status >= 0 && (foretold == NULL || speed == NULL || share == NULL))
        status = pli_fail(run->err, PLAIT_ENOMEM, "no memory to share columns out");
    if (status >= 0) status = share_anew(&s, seconds, foretold, speed, share, pieces_out, text, gain_out);
    pli_free(foretold);
    pli_free(speed);
    pli_free(share);
    end(&s);
    return status;
}
