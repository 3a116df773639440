/* See coded_sums.h. */
#include "table/topology/coded_sums.h"

#include "table/topology/buckets.h"
#include "table/topology/coded_making.h"

static plait_status gather(pli_making *m, pli_msg *mine) {
    plait_request *request = NULL;
    PLI_TRY(pli_comm_pieces_begin(m->job->comm, m->job->group, mine, m->came, &request));
    return plait_request_wait(&request);
}

/* Whole: everybody gets everything, and decodes it in the order of workers, its own part too. */
static plait_status sum_whole(pli_making *m) {
    pli_msg *mine = NULL;
    PLI_TRY(pli_making_put_parts(m, 0, &mine));
    PLI_TRY(gather(m, mine));
    return pli_making_add_all(m);
}

static plait_status sum_in_stripes(pli_making *m) {
    plait_request *request = NULL;
    pli_msg       *mine = NULL;
    PLI_TRY(pli_making_put_stripes(m));
    PLI_TRY(pli_comm_exchange_begin(m->job->comm, m->job->group, m->given, m->came, &request));
    PLI_TRY(plait_request_wait(&request));
    PLI_TRY(pli_making_add_stripes(m));
    if (!pli_making_gathers(m)) return PLAIT_OK;
    PLI_TRY(pli_making_put_sums(m, &mine));
    pli_making_free_messages(m);
    PLI_TRY(gather(m, mine));
    return pli_making_take_sums(m);
}

static plait_status make_sums(plait_job *job, bool in_stripes, plait_error *err) {
    pli_making   m;
    plait_status status = pli_making_open(&m, job, in_stripes, err);
    if (status >= 0 && m.n > 0) status = in_stripes ? sum_in_stripes(&m) : sum_whole(&m);
    for (int64_t i = 0; status >= 0 && i < m.n; i++) pli_mirror_was_coded(m.mirror[i], &m.push[i]);
    pli_making_close(&m);
    return status;
}

plait_status pli_coded_sums(plait_job *job, plait_error *err) {
    PLI_TRY(pli_buckets_begin_all(job, err));
    PLI_TRY(make_sums(job, true, err));
    return make_sums(job, false, err);
}
