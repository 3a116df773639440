/* Groups: a model of two stages, each with two replicas. Ranks 0 and 2 hold stage 0, ranks 1 and 3 hold stage 1. Each
 * stage's weights are a table of its own group, under its own consistency: stage 0 waits for both replicas in each
 * clock (bsp), stage 1 reads up to two clocks late (ssp:2). The stages end different numbers of clocks. */
#include <plait/table.h>
#include <stdio.h>

enum { STAGES = 2, REPLICAS = 2, ROWS = 1000 };

static const char *const names[STAGES] = { "stage0", "stage1" }, *const consistency[STAGES] = { "bsp", "ssp:2" };
static const int32_t     members[STAGES][REPLICAS] = { { 0, 2 }, { 1, 3 } };
static const int64_t     clocks[STAGES] = { 5, 8 };

static plait_status train(plait_job *job, plait_group *group, int stage) {
    plait_table     *table;
    plait_table_opts opts;
    float            gradient[ROWS];
    const void      *values;
    plait_table_opts_init(&opts);
    opts.name = names[stage];
    opts.rows = ROWS;
    opts.consistency = consistency[stage];
    opts.group = group; /* called by its members alone */
    plait_status status = plait_table_create(job, &opts, &table);
    for (int i = 0; i < ROWS; i++) gradient[i] = (float)(stage + 1);
    for (int64_t clock = 0; status >= 0 && clock < clocks[stage]; clock++) {
        status = plait_table_read(table, 0, ROWS, &values);
        if (status >= 0) status = plait_table_inc_range(table, 0, ROWS, gradient, 0);
        if (status >= 0) status = plait_job_clock(job);
    }
    float loss = (float)plait_group_rank(group), got;
    if (status >= 0) status = plait_group_allreduce(group, &loss, 1, PLAIT_F32, PLAIT_SUM);
    if (status >= 0) status = plait_job_barrier(job); /* of all workers */
    if (status >= 0) status = plait_table_get_range(table, ROWS - 1, 1, &got);
    if (status < 0) return status;
    const float want = (float)(REPLICAS * (stage + 1) * clocks[stage]);
    if (plait_group_rank(group) == 0)
        printf("%s, ranks %d and %d: %d clocks, each weight is %g\n", plait_group_name(group),
               plait_group_member(group, 0), plait_group_member(group, 1), (int)clocks[stage], (double)got);
    return got == want && loss == 1 ? PLAIT_OK : PLAIT_EDIVERGED;
}

static plait_status work(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_group *group[STAGES];
    (void)user;
    for (int s = 0; s < STAGES; s++) { /* all workers make every group, members or not */
        plait_status status = plait_group_create(comm, names[s], REPLICAS, members[s], &group[s]);
        if (status < 0) return status;
    }
    const int stage = plait_comm_rank(comm) % STAGES;
    return train(job, group[stage], stage);
}

int main(void) {
    plait_comm_opts opts;
    plait_error     error = { 0 };
    plait_comm_opts_init(&opts);
    opts.workers = STAGES * REPLICAS;
    if (plait_run(&opts, NULL, work, NULL, &error) >= 0) return 0;
    fprintf(stderr, "13_groups: rank %d: %s\n", error.rank, error.text);
    return 1;
}
