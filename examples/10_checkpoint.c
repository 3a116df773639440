/* Tables on disk: three workers train a table on servers and save it with a note; then two workers, each with a copy,
 * continue from there. With exact sums the result equals, bit for bit, that of three workers that never stopped. */
#include <plait/checkpoint.h>
#include <plait/model.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 1000, BLOCKS = 12, SAVED = 5, CLOCKS = 9 };

typedef struct plan {
    const char *topology, *dir;
    int         goes_on;
    float       end[ROWS]; /* written by worker 0 */
} plan;

/* Each block of the data pushes the same gradient, whichever worker has it. */
static plait_status train_clock(plait_job *job, plait_table *table) {
    plait_comm *comm = plait_job_comm(job);
    int64_t     clock = plait_job_clock_now(job);
    for (int block = plait_comm_rank(comm); block < BLOCKS; block += plait_comm_workers(comm)) {
        float gradient[ROWS];
        for (int i = 0; i < ROWS; i++) gradient[i] = (float)((i * 31 + block * 17 + clock * 7) % 101 - 50) / 50;
        plait_status status = plait_table_inc_range(table, 0, ROWS, gradient, 1);
        if (status < 0) return status;
    }
    return plait_job_clock(job);
}

static plait_status work(plait_job *job, void *user) {
    plan                 *p = user;
    plait_table          *table;
    plait_checkpoint     *checkpoint = NULL;
    plait_table_opts      opts;
    plait_checkpoint_opts to;
    plait_error           error = { 0 };
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = ROWS;
    opts.exact = 1;
    opts.rule.name = "adam";
    plait_status status = plait_table_create(job, &opts, &table);
    if (status >= 0 && p->goes_on) {
        status = plait_checkpoint_open(p->dir, NULL, &checkpoint, &error);
        if (status >= 0) status = plait_checkpoint_restore(checkpoint, table, NULL);
        plait_checkpoint_close(&checkpoint);
    }
    while (status >= 0 && plait_job_clock_now(job) < CLOCKS) {
        plait_checkpoint_opts_init(&to);
        to.dir = p->dir;
        to.note = "{\"after\": \"five clocks\"}";
        if (!p->goes_on && plait_job_clock_now(job) == SAVED) status = plait_checkpoint_save(job, &table, 1, &to);
        if (status >= 0) status = train_clock(job, table);
    }
    if (status >= 0) status = plait_job_barrier(job);
    const void *values;
    if (status >= 0) status = plait_table_read(table, 0, ROWS, &values);
    if (status >= 0 && plait_comm_rank(plait_job_comm(job)) == 0) memcpy(p->end, values, sizeof p->end);
    return status;
}

static plait_status run(int workers, plan *p, int64_t first_clock) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     error = { 0 };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.workers = workers;
    job.topology = p->topology;
    job.batch = BLOCKS;
    job.first_clock = first_clock;
    plait_status status = plait_run(&comm, &job, work, p, &error);
    if (status < 0) printf("%s: %s\n", plait_status_text(status), error.text);
    return status;
}

int main(int argc, char **argv) {
    plan                    straight = { .topology = "ps", .dir = argc > 1 ? argv[1] : "example.ckpt" };
    plan                    onward = { .topology = "allreduce", .dir = straight.dir, .goes_on = 1 };
    plait_checkpoint       *checkpoint = NULL;
    plait_checkpoint_tensor tensor;
    plait_error             error = { 0 };
    if (run(3, &straight, 0) < 0) return 1;
    if (plait_checkpoint_open(straight.dir, NULL, &checkpoint, &error) < 0) return printf("%s\n", error.text), 1;
    int64_t clock = plait_checkpoint_clock(checkpoint);
    printf("%s of clock %lld, %s:\n", plait_checkpoint_folder(checkpoint), (long long)clock,
           plait_checkpoint_note(checkpoint));
    for (int64_t i = 0; plait_checkpoint_tensor_at(checkpoint, i, &tensor) == PLAIT_OK; i++)
        printf("    %s: %lld rows of %s\n", tensor.name, (long long)tensor.rows, tensor.type);
    plait_checkpoint_close(&checkpoint);
    if (run(2, &onward, clock) < 0) return 1;
    int same = memcmp(straight.end, onward.end, sizeof straight.end) == 0;
    printf("two workers went on to %s\n", same ? "the same bits" : "something else");
    return same ? 0 : 1;
}
