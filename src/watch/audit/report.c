/* The result of an audit, in words for people and as JSON for machines. */
#include <string.h>

#include "watch/audit/model.h"
#include "watch/watch.h"

/* --- for people --------------------------------------------------------------------------------------------------- */

static const char *verdict_name(const pli_audit *audit) {
    static const char *const names[] = { "proven", "refuted", "cut", "empty" };
    return names[pli_audit_result(audit)];
}

static void add_averages(const audit_table *table, pli_text *text) {
    pli_text_add(text, "  every copy that a worker gave was mixed once; a get holds the own updates");
    if (table->promise.rounds == 1) pli_text_add(text, "; a clock begins with the copies of the clock before");
    if (table->promise.rounds > 1)
        pli_text_add(text, "; every %lld clocks with the copies of the clock before", (long long)table->promise.rounds);
    pli_text_add(text, "\n");
}

static void add_promise(const pli_promise *promise, int32_t backup, pli_text *text) {
    if (!promise->known) pli_text_add(text, "; what %s promises of other workers is not known here", promise->spec);
    if (promise->bound == 0) pli_text_add(text, "; a get misses no update of an earlier clock");
    if (promise->bound > 0)
        pli_text_add(text, "; a get in clock c misses no update of clocks < c - %lld", (long long)promise->bound);
    if (promise->exact && backup == 0) pli_text_add(text, ", and sees none of its own clock or later");
    if (backup > 0) pli_text_add(text, " that was not dropped as late");
    if (promise->turns) pli_text_add(text, "; a get holds the updates of all earlier turns and of no later one");
    if (promise->fetch > 0) pli_text_add(text, "; values are at most %lld clocks old", (long long)promise->fetch - 1);
    if (promise->push > 0) pli_text_add(text, "; an update leaves within %lld clocks", (long long)promise->push);
    if (promise->barrier > 0)
        pli_text_add(text, ", nor of clocks below the last multiple of %lld", (long long)promise->barrier);
    if (promise->value > 0)
        pli_text_add(text, "; a get misses updates of norm below %.9g%s", promise->value,
                     promise->value_each ? " a worker" : "");
}

static void add_staleness(const audit_table *table, pli_text *text) {
    const pli_audit_figures *figures = &table->figures;
    if (figures->gets == 0) return;
    if (table->way == PLI_WAY_AVERAGED) {
        pli_text_add(text, "  staleness is not counted: a get returns the own copy, averaged with neighbours' only\n");
        return;
    }
    pli_text_add(text, "  staleness in clocks: mean %.3g, most %lld\n",
                 (double)figures->staleness_sum / (double)figures->gets, (long long)figures->staleness_max);
    for (int i = 0; i < PLI_AUDIT_BINS; i++) {
        double share = (double)figures->stale[i] / (double)figures->gets;
        if (figures->stale[i] == 0) continue;
        pli_text_add(text, "    %3d%s %10lld gets %6.2f %%  ", i, i == PLI_AUDIT_BINS - 1 ? "+" : " ",
                     (long long)figures->stale[i], 100 * share);
        for (int bar = 0; bar < (int)(40 * share + 0.5); bar++) pli_text_add(text, "#");
        pli_text_add(text, "\n");
    }
}

static void add_table(const pli_audit *audit, const audit_table *table, pli_text *text) {
    const pli_audit_figures *figures = &table->figures;
    pli_text_add(text, "table %s", table->name);
    if (audit->group != 0) pli_text_add(text, " of group %s", audit->group_name);
    pli_text_add(text, ": %s, %s, judged as %s\n", table->topology,
                 table->ruled                         ? "ruled"
                 : strcmp(table->combine, "add") == 0 ? "additive"
                                                      : table->combine,
                 table->promise.spec);
    if (table->way == PLI_WAY_SHARED) {
        pli_text_add(
            text, "  nothing is promised: workers write the shared values in place (Hogwild), and it is not logged\n");
        return;
    }
    pli_text_add(text, "  %lld gets, %lld incs in %lld pushes, applied %lld times", (long long)figures->gets,
                 (long long)figures->incs, (long long)figures->pushes, (long long)figures->applied);
    if (figures->calls > 0)
        pli_text_add(text, ", %lld call%s of server functions that update it", (long long)figures->calls,
                     pli_plural(figures->calls));
    if (figures->dropped > 0) pli_text_add(text, ", %lld dropped", (long long)figures->dropped);
    if (figures->lost > 0) pli_text_add(text, ", %lld under way when their worker died", (long long)figures->lost);
    if (figures->again > 0)
        pli_text_add(text, ", %lld of them once more, which changes nothing under %s", (long long)figures->again,
                     table->combine);
    if (figures->needless > 0)
        pli_text_add(text, ", %lld in the stead of a dead one whose own was there after all",
                     (long long)figures->needless);
    if (figures->unjudged > 0)
        pli_text_add(text, "; %lld gets not judged, since the log of the copy that answered is cut before",
                     (long long)figures->unjudged);
    pli_text_add(text, "\n");
    add_staleness(table, text);
    if (figures->violations > 0) {
        pli_text_add(text, "  refuted: %lld violation%s\n", (long long)figures->violations,
                     pli_plural(figures->violations));
        return;
    }
    if (table->way == PLI_WAY_AVERAGED) {
        add_averages(table, text);
        return;
    }
    pli_text_add(text, "  every update applied %s; a get holds the own updates; no row went back",
                 table->repeats ? "at least once" : "once");
    if (figures->calls > 0) pli_text_add(text, "; each call ran once, with one result, and gets see it");
    add_promise(&table->promise, audit->job.backup, text);
    pli_text_add(text, "\n");
}

/* Tells who served a server's shards, one after the other, and which replicas were made on the way. */
static void tell_places(const pli_audit *audit, const audit_home *home, pli_text *text) {
    const audit_server *serves = home->n > 0 ? &home->replica[0] : NULL;
    for (int64_t i = 1; i < home->n; i++) {
        const audit_server *copy = &home->replica[i];
        if (copy->copied > 0)
            pli_text_add(text, "rank %d got a new replica of the shards of server %d (place %d)\n",
                         audit_rank_at(audit, copy->rank), copy->home, copy->place);
        if (!copy->served) continue;
        pli_text_add(text, "rank %d, a server, died; rank %d served the shards of server %d from then on\n",
                     audit_rank_at(audit, serves->rank), audit_rank_at(audit, copy->rank), copy->home);
        serves = copy;
    }
}

static void tell_dead(const pli_audit *audit, pli_text *text) {
    for (int32_t w = 0; audit->places > 1 && w < audit->job.workers; w++)
        if (audit->worker[w].dead)
            pli_text_add(text, "rank %d, a worker, died; %lld of its clocks were acknowledged\n",
                         audit_rank(audit, w), (long long)audit->worker[w].clocks);
    for (int32_t i = 0; i < audit->lives; i++)
        pli_text_add(text, "rank %d was started anew, for life %d\n", audit->life[i].rank, audit->life[i].life);
    for (int32_t h = 0; audit->places > 1 && h < audit->job.servers; h++) tell_places(audit, &audit->home[h], text);
}

static bool is_judged(const pli_audit *audit) {
    return audit->verdict == PLI_AUDIT_PROVEN || audit->verdict == PLI_AUDIT_REFUTED;
}

static bool has_fellows(const pli_audit *audit) {
    int64_t fellows = 0;
    for (int32_t w = 0; is_judged(audit) && audit->violations == 0 && w < audit->job.workers; w++)
        fellows += audit->worker[w].fellows;
    return fellows > 0;
}

/* "group even (ranks 0, 2): 317 events", or without a group "317 events of 4 workers and 4 servers" */
static void tell_job(const pli_audit *audit, pli_text *text) {
    if (audit->group != 0) {
        pli_text_add(text, "group %s (rank%s", audit->group_name, pli_plural(audit->job.workers));
        for (int32_t w = 0; w < audit->job.workers; w++)
            pli_text_add(text, "%s %d", w > 0 ? "," : "", audit_rank(audit, w));
        pli_text_add(text, "): %lld event%s", (long long)audit->events, pli_plural(audit->events));
        if (audit->first_clock > 0) pli_text_add(text, ", from clock %lld on", (long long)audit->first_clock);
    } else {
        pli_text_add(text, "%lld event%s of %d worker%s and %d server%s", (long long)audit->events,
                     pli_plural(audit->events), audit->ranked, pli_plural(audit->ranked), audit->job.servers,
                     pli_plural(audit->job.servers));
        if (audit->begins) pli_text_add(text, ", from clock %lld on", (long long)audit->first_clock);
    }
    pli_text_add(text, "%s\n", audit->places < 2            ? ""
                               : audit->job.replicas > 2 ? " with three replicas"
                                                         : " with two replicas");
    if (audit->from[0] != '\0') pli_text_add(text, "  it goes on from %s\n", audit->from);
    tell_dead(audit, text);
    if (has_fellows(audit))
        pli_text_add(text, "  each rank ends its clocks together with its fellows in other groups, and stands in with "
                           "them\n");
    for (int64_t t = 0; is_judged(audit) && t < audit->tables; t++)
        if (audit->table[t].known) add_table(audit, &audit->table[t], text);
}

static int64_t count_violations(const pli_audit *audit) {
    int64_t n = audit->violations;
    for (int64_t i = 0; i < audit->parts; i++) n += audit->part[i]->violations;
    return n;
}

void pli_audit_text(const pli_audit *audit, pli_text *text) {
    const pli_audit_violation *first = pli_audit_first(audit);
    const char                *why = pli_audit_why(audit);
    const int64_t              violations = count_violations(audit);
    tell_job(audit, text);
    for (int64_t i = 0; i < audit->parts; i++) tell_job(audit->part[i], text);
    if (why != NULL) pli_text_add(text, "%s\n", why);
    else if (first == NULL) pli_text_add(text, "proven\n");
    else
        pli_text_add(text, "refuted: %lld violation%s, the first (%s): %s\n", (long long)violations,
                     pli_plural(violations), first->rule, first->text);
}

const char *pli_audit_why(const pli_audit *audit) {
    const pli_audit *decisive = audit_decisive(audit);
    return is_judged(decisive) ? NULL : decisive->why;
}

/* --- for machines ------------------------------------------------------------------------------------------------- */

static void json_first(const pli_audit *audit, pli_text *text) {
    const pli_audit_violation *first = pli_audit_first(audit);
    if (first == NULL) {
        pli_json_null(text, "first");
        return;
    }
    pli_json_object(text, "first");
    pli_json_text(text, "rule", first->rule);
    pli_json_text(text, "table", first->table[0] != '\0' ? first->table : NULL);
    pli_json_i64(text, "rank", first->rank);
    pli_json_i64(text, "clock", first->clock);
    if (first->has_row)
        pli_json_i64(text, "row", (int64_t)first->row);
    else
        pli_json_null(text, "row");
    pli_json_text(text, "text", first->text);
    pli_json_end(text);
}

static void json_table(const pli_audit *audit, const audit_table *table, pli_text *text) {
    const pli_audit_figures *figures = &table->figures;
    int                      last = PLI_AUDIT_BINS - 1;
    while (last > 0 && figures->stale[last] == 0) last--;
    pli_json_object(text, NULL);
    pli_json_text(text, "name", table->name);
    pli_json_text(text, "group", audit->group != 0 ? audit->group_name : NULL);
    pli_json_list(text, "members");
    for (int32_t w = 0; w < audit->ranked; w++) pli_json_i64(text, NULL, audit_rank(audit, w));
    pli_json_list_end(text);
    pli_json_text(text, "topology", table->topology);
    pli_json_text(text, "judged_as", table->promise.spec);
    pli_json_bool(text, "promised", table->way != PLI_WAY_SHARED && table->own);
    pli_json_i64(text, "gets", figures->gets);
    pli_json_i64(text, "incs", figures->incs);
    pli_json_i64(text, "pushes", figures->pushes);
    pli_json_i64(text, "applied", figures->applied);
    pli_json_i64(text, "dropped", figures->dropped);
    pli_json_i64(text, "calls", figures->calls);
    pli_json_i64(text, "unjudged", figures->unjudged);
    pli_json_i64(text, "violations", figures->violations);
    if (table->way == PLI_WAY_AVERAGED) {
        pli_json_null(text, "staleness");
        pli_json_null(text, "staleness_max");
        pli_json_null(text, "staleness_mean");
    } else {
        pli_json_list(text, "staleness");
        for (int i = 0; i <= last; i++) pli_json_i64(text, NULL, figures->stale[i]);
        pli_json_list_end(text);
        pli_json_i64(text, "staleness_max", figures->staleness_max);
        pli_json_f64(text, "staleness_mean",
                     figures->gets == 0 ? 0 : (double)figures->staleness_sum / (double)figures->gets);
    }
    pli_json_end(text);
}

static void json_tables(const pli_audit *audit, pli_text *text) {
    for (int64_t t = 0; t < audit->tables; t++)
        if (audit->table[t].known) json_table(audit, &audit->table[t], text);
}

static int64_t count_events(const pli_audit *audit) {
    int64_t n = audit->events;
    for (int64_t i = 0; i < audit->parts; i++) n += audit->part[i]->events;
    return n;
}

void pli_audit_json(const pli_audit *audit, pli_text *text) {
    const char *why = audit_decisive(audit)->why;
    pli_json_begin(text);
    pli_json_text(text, "verdict", verdict_name(audit));
    pli_json_text(text, "why", why[0] != '\0' ? why : NULL);
    pli_json_i64(text, "events", count_events(audit));
    pli_json_i64(text, "workers", audit->ranked);
    pli_json_i64(text, "servers", audit->job.servers);
    pli_json_i64(text, "violations", count_violations(audit));
    json_first(audit, text);
    pli_json_list(text, "tables");
    json_tables(audit, text);
    for (int64_t i = 0; i < audit->parts; i++) json_tables(audit->part[i], text);
    pli_json_list_end(text);
    pli_json_end(text);
}
