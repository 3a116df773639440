/* When layers move, and where to. See shift.h. How they move is shift_move.c's. */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "learn/net/shift.h"
#include "table/state/rest.h"
#include "table/state/state.h"
#include "table/table.h"

/* Two windows agree if their times differ by less than this share; other places are looked for if a time has changed by
 * that one; and layers move if that shortens a clock so much. */
static const double agrees = 0.25, changed = 0.05, gains = 0.1;

/* --- may they? ---------------------------------------------------------------------------------------------------- */

static bool is_placed_by_hand(const pli_run *run, const plait_graph *g) {
    const char *how = run->opts->place;
    bool        placed = g->n_place_rules > 0 || g->n_place_memory > 0;
    for (int64_t k = 0; k < g->n_nodes; k++) placed = placed || g->node[k].rank >= 0;
    return placed || (how != NULL && strcmp(how, "auto") != 0 && strcmp(how, "layers") != 0);
}

/* NULL: they may. */
static const char *why_not(const pli_run *run) {
    if (is_placed_by_hand(run, pli_net_trained(run)->graph))
        return "places or rules given by hand stay as they are; nearest is --place auto";
    if (run->opts->sampled > 0)
        return "classes of which some are drawn stay with their ranks; nearest is --balance static, or no --sampled";
    return NULL;
}

/* Before anything is measured, columns lie by the speeds that a cluster file names, and by what the first rank has to
 * do besides. */
static plait_status share_columns(pli_run *run) {
    pli_net_fit *n = pli_net_fit_of(run);
    pli_net     *pieces = NULL;
    pli_text     text = { 0 };
    double       gain = 0;
    plait_status status = pli_stages_shares(run, NULL, &pieces, &text, &gain);
    if (status >= 0 && text.failed) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for shares of columns");
    if (status >= 0 && gain > gains) {
        status = pli_agree_text(run->comm, "shares of columns", text.data, run->err);
        if (pli_comm_leads(run->comm))
            pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                    "balance: columns lie by speeds known beforehand: %s; a clock takes %.0f %% less by simulation",
                    text.data, 100 * gain);
        pli_net *even = n->pieces;
        n->pieces = pieces;
        pieces = even;
    }
    pli_net_destroy(&pieces);
    pli_text_free(&text);
    return status;
}

plait_status pli_shift_settle(pli_run *run) {
    const char *why = run->shifts ? why_not(run) : NULL;
    if (why == NULL) return run->shifts && run->opts->columns > 1 ? share_columns(run) : PLAIT_OK;
    run->shifts = false;
    return run->balanced ? PLAIT_OK
                         : pli_fail(run->err, PLAIT_EREFUSED, "balance dynamic with one replica in %d parts is "
                                    "refused: %s", pli_run_stages(run), why);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

/* Pieces of a row are joined, which must have paid their penalties up to the same clock. Where replicas are not in
 * step, each piece's owner may apply their updates in an order of its own. */
static bool pays_apart(const pli_run *run, const plait_table *table, plait_error *err) {
    plait_type type;
    if (run->opts->columns < 2 || pli_run_holders(run) < 2 || pli_state_bytes(table, PLI_STATE_PAID, &type) == 0 ||
        pli_is(run->opts->consistency != NULL ? run->opts->consistency : PLI_CONSISTENCY_DEFAULT, "bsp"))
        return false;
    pli_fail(err, PLAIT_EREFUSED, "pieces of a row of table %s pay penalties up to different clocks; nearest is "
                                  "--consistency bsp", plait_table_name(table));
    return true;
}

/* What filters keep of a piece's updates cannot be cut anew. */
static bool keeps_rests(const pli_run *run, const plait_table *table, plait_error *err) {
    if (run->opts->columns < 2 || !pli_rest_is_kept(table)) return false;
    pli_fail(err, PLAIT_EREFUSED, "what the filters of table %s keep of a piece's updates cannot be cut anew; nearest "
                                  "is a filter without loss, as zstd", plait_table_name(table));
    return true;
}

/* A rank sees its own tables alone. Where rows move, too, layers stay if tables cannot be handed over. */
static plait_status check_tables(pli_run *run, pli_shift *shift) {
    const bool needed = !run->balanced;
    plait_error why = { .code = PLAIT_OK };
    double      refused = 0;
    for (int32_t i = 0; refused == 0 && i < run->n_made; i++)
        refused = pli_state_check(run->made[i], &why) < 0 || pli_table_check_late(run->made[i], &why) < 0 ||
                  pays_apart(run, run->made[i], &why) || keeps_rests(run, run->made[i], &why);
    PLI_TRY(plait_comm_allreduce(run->comm, &refused, 1, PLAIT_F64, PLAIT_MAX));
    if (refused == 0) return PLAIT_OK;
    shift->workers = 0;
    if (!needed) return PLAIT_OK;
    if (why.code >= 0)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "balance dynamic in %d stages is refused: a table of another stage cannot be handed over; "
                        "nearest is --balance static", pli_run_stages(run));
    return pli_fail(run->err, PLAIT_EREFUSED,
                    "balance dynamic in %d stages hands tables over as a checkpoint keeps them, and %s; or take "
                    "--balance static", pli_run_stages(run), why.text);
}

plait_status pli_shift_begin(pli_run *run, pli_shift *shift) {
    const int32_t workers = plait_comm_workers(run->comm);
    const size_t  nodes = (size_t)plait_graph_nodes(pli_net_trained(run)->graph);
    *shift = (pli_shift){ .workers = run->shifts ? workers : 0, .pause = 2 };
    if (!run->shifts) return PLAIT_OK;
    shift->told = pli_calloc((size_t)workers, 2 * sizeof *shift->told);
    shift->now = pli_calloc((size_t)workers, sizeof *shift->now);
    shift->before = pli_calloc((size_t)workers, sizeof *shift->before);
    shift->looked = pli_calloc((size_t)workers, sizeof *shift->looked);
    shift->place = pli_array(nodes, sizeof *shift->place);
    if (shift->told == NULL || shift->now == NULL || shift->before == NULL || shift->looked == NULL ||
        shift->place == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the times of stages");
    return check_tables(run, shift);
}

plait_status pli_shift_finish(pli_shift *shift) {
    return shift->asked != NULL ? plait_request_wait(&shift->asked) : PLAIT_OK;
}

void pli_shift_end(pli_shift *shift) {
    pli_comm_drop(&shift->asked);
    pli_free(shift->told);
    pli_free(shift->now);
    pli_free(shift->before);
    pli_free(shift->looked);
    pli_free(shift->place);
    pli_net_destroy(&shift->pieces);
    *shift = (pli_shift){ 0 };
}

/* --- what all measure --------------------------------------------------------------------------------------------- */

void pli_shift_add(pli_shift *shift, uint64_t ns, int64_t rows) {
    shift->seconds += (double)ns * 1e-9;
    shift->rows += (double)rows;
    shift->clocks++;
}

static plait_status ask(const pli_run *run, pli_shift *shift) {
    const int32_t me = plait_comm_rank(run->comm), n = 2 * shift->workers;
    memset(shift->told, 0, (size_t)n * sizeof *shift->told);
    shift->told[me] = shift->seconds;
    shift->told[shift->workers + me] = shift->rows;
    shift->seconds = shift->rows = 0;
    shift->clocks = 0;
    return plait_comm_allreduce_begin(run->comm, shift->told, n, PLAIT_F64, PLAIT_SUM, &shift->asked);
}

static plait_status hear(pli_shift *shift) {
    double *last = shift->before;
    PLI_TRY(plait_request_wait(&shift->asked));
    shift->before = shift->now;
    shift->now = last;
    for (int32_t w = 0; w < shift->workers; w++) {
        const double rows = shift->told[shift->workers + w];
        shift->now[w] = rows > 0 ? shift->told[w] / rows : 0;
    }
    return PLAIT_OK;
}

/* --- what they make of it ----------------------------------------------------------------------------------------- */

static bool differ(double a, double b, double share) { return fabs(a - b) > share * fmax(a, b); }

/* Do both windows say the same, and something new? Writes the mean of both to `looked`. */
static bool has_news(pli_shift *shift) {
    bool news = false;
    for (int32_t w = 0; w < shift->workers; w++)
        if (shift->now[w] <= 0 || shift->before[w] <= 0 || differ(shift->now[w], shift->before[w], agrees))
            return false;
    for (int32_t w = 0; w < shift->workers; w++) {
        const double mean = (shift->now[w] + shift->before[w]) / 2;
        news = news || differ(mean, shift->looked[w], changed);
    }
    for (int32_t w = 0; news && w < shift->workers; w++) shift->looked[w] = (shift->now[w] + shift->before[w]) / 2;
    return news;
}

static void tell(const pli_run *run, const char *found, double gain) {
    if (!pli_comm_leads(run->comm)) return;
    pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
            "balance: after clock %lld %s that suit the measured speeds: %s; a clock takes %.0f %% less by simulation",
            (long long)run->clocks_done,
            run->opts->columns > 1 ? "columns move to ranks" : "layers move to stages", found, 100 * gain);
}

/* The windows before say nothing of the stages to come. */
static void forget(pli_shift *shift) {
    const size_t bytes = (size_t)shift->workers * sizeof *shift->now;
    memset(shift->now, 0, bytes);
    memset(shift->before, 0, bytes);
    memset(shift->looked, 0, bytes);
    shift->rest = shift->pause;
    shift->pause *= 2;
}

/* Both take what was measured, and say what would suit. */
static plait_status find(const pli_run *run, pli_shift *shift, pli_text *text, double *gain_out) {
    if (run->opts->columns > 1) return pli_stages_shares(run, shift->looked, &shift->pieces, text, gain_out);
    return pli_stages_anew(run, shift->looked, shift->place, text, gain_out);
}

static plait_status decide(const pli_run *run, pli_shift *shift, bool *moves_out) {
    pli_text text = { 0 };
    double   gain = 0;
    if (shift->rest > 0) shift->rest--;
    if (shift->rest > 0 || !has_news(shift)) return PLAIT_OK;
    plait_status status = find(run, shift, &text, &gain);
    if (status >= 0 && text.failed) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for the names of stages");
    if (status >= 0 && gain > gains) {
        status = pli_agree_text(run->comm, "places", text.data, run->err);
        if (status >= 0) tell(run, text.data, gain);
        *moves_out = true;
        forget(shift);
    } else {
        pli_net_destroy(&shift->pieces);
    }
    pli_text_free(&text);
    return status;
}

plait_status pli_shift_look(pli_run *run, pli_shift *shift, bool *moves_out) {
    *moves_out = false;
    if (shift->workers == 0 || shift->clocks < PLI_SHIFT_EVERY) return PLAIT_OK;
    if (shift->asked != NULL) { /* where clocks are not in step, the answer is heard a window later */
        PLI_TRY(hear(shift));
        PLI_TRY(decide(run, shift, moves_out));
    }
    if (!*moves_out) {
        PLI_TRY(ask(run, shift));
        if (run->paced) return PLAIT_OK;
        PLI_TRY(hear(shift));
        PLI_TRY(decide(run, shift, moves_out));
    }
    if (*moves_out) shift->seconds = shift->rows = 0;
    if (*moves_out) shift->clocks = 0;
    return PLAIT_OK;
}
