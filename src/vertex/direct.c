/* What programs with a run of their own share: see direct.h. */
#include <stdio.h>

#include "base/hash.h"
#include "vertex/direct.h"

/* --- may it be? --------------------------------------------------------------------------------------------------- */

bool pli_direct_reads_all(const plait_job *job) {
    const pli_scope scope = pli_layout_scope(&job->layout);
    return plait_comm_workers(job->comm) == 1 ||
           (pli_pair_properties(pli_topology_find(job->topology), job->consistency, &scope) & PLAIT_WHOLE_CLOCKS) != 0;
}

static plait_status check(pli_direct *d, const pli_direct_opts *o) {
    const plait_job       *job = d->job;
    const pli_scope        scope = pli_layout_scope(&job->layout);
    const plait_properties has = pli_pair_properties(pli_topology_find(job->topology), job->consistency, &scope);
    if (d->cut->parts != d->workers)
        return pli_fail(d->err, PLAIT_EINVAL, "%s: the graph is cut in %d, and there are %d workers", d->name,
                        (int)d->cut->parts, (int)d->workers);
    if (job->layout.replicas > 1 && !o->survives)
        return pli_fail(d->err, PLAIT_EREFUSED, "%s: replicas 2 is refused: nobody takes over a dead worker's edges "
                        "in this program; nearest is replicas 1", d->name);
    if ((has & PLAIT_ONE_COPY) == 0)
        return pli_fail(d->err, PLAIT_EREFUSED, "%s: %s over %s is refused, since workers average copies of values "
                        "there; nearest is topology ps", d->name, job->consistency, job->topology);
    if (o->rows && d->cut->splits)
        return pli_fail(d->err, PLAIT_EREFUSED, "%s: the cut '%s' is refused, since a vertex must see all of its "
                        "neighbors at once, and their edges lie with several workers there; nearest is the cut 'range'",
                        d->name, d->cut->method);
    d->all_is_read = pli_direct_reads_all(job);
    if (d->all_is_read || (!o->whole && job->layout.replicas < 2)) return PLAIT_OK;
    return pli_fail(d->err, PLAIT_EREFUSED, "%s: it counts what all workers have found clock by clock, and needs whole "
                    "clocks, which %s over %s does not promise; nearest is consistency bsp", d->name, job->consistency,
                    job->topology);
}

static plait_status agree(const pli_direct *d) {
    const double numbers[] = { (double)d->choice->source, d->choice->damping, d->choice->tolerance, (double)d->limit,
                               (double)d->choice->seed };
    int64_t      hash[2];
    hash[0] = (int64_t)(pli_hash_bytes(numbers, sizeof numbers, d->edges->hash) >> 1);
    hash[0] ^= (int64_t)(pli_hash_bytes(d->cut->method, strlen(d->cut->method), 0) >> 1);
    hash[1] = -hash[0];
    PLI_TRY(plait_comm_allreduce(d->comm, hash, 2, PLAIT_I64, PLAIT_MAX));
    if (hash[0] == -hash[1]) return PLAIT_OK;
    return pli_fail(d->err, PLAIT_EMISMATCH, "%s: the workers' graphs, cuts or options differ", d->name);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

typedef struct first_values {
    const pli_direct      *d;
    const pli_direct_opts *opts;
    int64_t               *value;
} first_values;

enum { FIRST = 4096 };

static void fill_first(void *user, int64_t i, int32_t thread) {
    const first_values *f = user;
    const int64_t       n = f->d->edges->n, last = (i + 1) * FIRST < n ? (i + 1) * FIRST : n;
    (void)thread;
    for (int64_t v = i * FIRST; v < last; v++) f->value[v] = f->opts->first(f->d, v);
}

static plait_status make_table(pli_direct *d, const pli_direct_opts *o) {
    plait_table_opts t;
    char             name[64];
    int64_t         *first = NULL;
    plait_table_opts_init(&t);
    snprintf(name, sizeof name, "%s.value", d->name);
    t.name = name;
    t.type = o->type;
    t.combine = o->combine;
    t.rows = d->edges->n;
    t.keyed = d->workers > 1;
    /* An heir may read the next clock's values and push other rows, which count nowhere; of keys they are compared. */
    if (d->job->layout.replicas > 1 && !pli_is(o->combine, "add")) t.keyed = 0;
    t.shards = pli_cut_shards(d->cut, sizeof(int64_t));
    if (o->first != NULL) {
        first = pli_array((size_t)d->edges->n, sizeof *first);
        if (first == NULL) return pli_fail(d->err, PLAIT_ENOMEM, "%s: no memory for values", d->name);
        pli_pool_for(d->pool, (d->edges->n + FIRST - 1) / FIRST, fill_first, &(first_values){ d, o, first });
        t.initial = first;
    }
    const plait_status status = plait_table_create(d->job, &t, &d->value);
    pli_free(first);
    return status;
}

static plait_status take_part(pli_direct *d) {
    PLI_TRY(d->own ? pli_part_make_own(d->cut, d->rank, &d->part, d->err)
                   : pli_part_make(d->cut, d->rank, d->back, &d->part, d->err));
    const size_t n = (size_t)d->part.n;
    if (d->part.key != NULL) d->read = pli_array(n, sizeof *d->read);
    d->hit = pli_array(n, sizeof *d->hit);
    d->better = pli_array(n, sizeof *d->better);
    if (d->hit != NULL && d->better != NULL && (d->part.key == NULL || d->read != NULL)) return PLAIT_OK;
    return pli_fail(d->err, PLAIT_ENOMEM, "%s: no memory for the values of %lld vertices", d->name,
                    (long long)d->part.n);
}

/* Collective, since parts differ. */
static plait_status find_whether_by_bits(pli_direct *d, int32_t workers) {
    int64_t without = d->part.key != NULL || !d->part.whole || !d->all_is_read || d->job->filter[0] != '\0' ||
                      d->workers > workers;
    PLI_TRY(pli_direct_sum(d, &without));
    d->by_bits = without == 0;
    return PLAIT_OK;
}

plait_status pli_direct_inherit(const pli_direct *d, int32_t home, pli_direct *part) {
    *part = *d;
    part->rank = home;
    part->part = (pli_part){ 0 };
    part->read = NULL, part->hit = NULL, part->better = NULL, part->values = NULL;
    part->hits = 0;
    return take_part(part);
}

void pli_direct_leave(pli_direct *part) {
    pli_part_free(&part->part);
    pli_free(part->read);
    pli_free(part->hit);
    pli_free(part->better);
}

plait_status pli_direct_begin(pli_direct *d, plait_job *job, const pli_vertex_choice *choice,
                              const plait_vertex_cut *cut, int64_t limit, const pli_direct_opts *opts) {
    *d = (pli_direct){ .job = job, .comm = job->comm, .err = pli_comm_error(job->comm), .name = opts->name,
                       .edges = choice->edges, .cut = cut, .choice = choice, .limit = limit,
                       .pool = pli_comm_pool(job->comm), .workers = plait_comm_workers(job->comm),
                       .rank = plait_comm_rank(job->comm) };
    PLI_TRY(check(d, opts));
    PLI_TRY(agree(d));
    d->back = opts->back;
    d->own = opts->own;
    PLI_TRY(take_part(d));
    if (opts->bits > 0) PLI_TRY(find_whether_by_bits(d, opts->bits));
    return d->by_bits && d->workers > 1 ? PLAIT_OK : make_table(d, opts);
}

/* --- supersteps --------------------------------------------------------------------------------------------------- */

plait_status pli_direct_read(pli_direct *d) {
    const void *values = d->read;
    if (d->part.key == NULL) PLI_TRY(plait_table_read(d->value, 0, d->part.n, &values));
    else PLI_TRY(plait_table_get(d->value, d->part.n, d->part.key, d->read));
    d->values = values;
    return PLAIT_OK;
}

plait_status pli_direct_clock(pli_direct *d) {
    if (d->part.key != NULL)
        for (int64_t i = 0; i < d->hits; i++) d->hit[i] = d->part.key[d->hit[i]];
    if (d->hits > 0) PLI_TRY(plait_table_inc(d->value, d->hits, d->hit, d->better, 0));
    d->report.supersteps++;
    return plait_job_clock(d->job);
}

plait_status pli_direct_push_own(pli_direct *d) {
    const pli_part *part = &d->part;
    if (part->owned == 0) return PLAIT_OK;
    return plait_table_inc_range(d->value, pli_part_vertex(part, part->own), part->owned, d->better, 0);
}

plait_status pli_direct_sum(pli_direct *d, int64_t *number) {
    return d->workers > 1 ? plait_comm_allreduce(d->comm, number, 1, PLAIT_I64, PLAIT_SUM) : PLAIT_OK;
}

plait_status pli_direct_end(pli_direct *d, plait_status status, void *values_out, plait_vertex_report *report_out) {
    if (status == PLAIT_OK) status = plait_job_barrier(d->job);
    if (status == PLAIT_OK && d->value != NULL && values_out != NULL)
        status = plait_table_get_range(d->value, 0, d->edges->n, values_out);
    if (status == PLAIT_OK && d->value != NULL && d->job->layout.replicas < 2) /* else with the job */
        status = plait_table_drop(&d->value);
    if (report_out != NULL) *report_out = d->report;
    pli_direct_leave(d);
    return status;
}
