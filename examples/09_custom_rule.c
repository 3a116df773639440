/* Your own update rule: the steps of `lion` all have the same size (Chen et al., "Symbolic Discovery of Optimization
 * Algorithms", NeurIPS 2023). plait_train takes it by name, and it runs wherever Plait's own rules do: here in two
 * copies that sum by collectives, and on the shards of two servers, from which workers read up to one clock late. */
#include <math.h>
#include <plait/model.h>
#include <stdio.h>

enum { ROWS = 2000, FEATURES = 4 };

static float step(float x) { return (float)((x > 0) - (x < 0)); }

/* slot[0]: m, an average of gradients. A push that is a fraction of a clock keeps beta^fraction of the average. */
static void apply(const plait_rule_numbers *rule, const plait_step *at, int64_t n, float *w, float *const *slot,
                  const float *g, const float *penalty) {
    const float rate = (float)at->rate, scale = (float)at->gradient_scale, l2 = (float)rule->l2;
    const float near = (float)pow(rule->beta1, at->fraction), far = (float)pow(rule->beta2, at->fraction);
    float      *m = slot[0];
    for (int64_t i = 0; i < n; i++) {
        const float mean = scale * g[i], shrink = rate * l2 * (penalty != NULL ? penalty[i] : 1);
        w[i] = (w[i] - rate * step(near * m[i] + (1 - near) * mean)) / (1 + shrink);
        m[i] = far * m[i] + (1 - far) * mean;
    }
}

static const plait_rule lion = { .name = "lion",
                                 .summary = "the sign of an average of gradients",
                                 .slots = 1,
                                 .learning_rate = 0.02,
                                 .slot_name = { "m" },
                                 .apply_f32 = apply };

typedef struct job {
    const plait_data *data;
    const char       *topology, *consistency, *rule;
    double            loss; /* written by worker 0 */
} job;

static plait_status train(plait_comm *comm, void *user) {
    job             *j = user;
    plait_train_opts opts;
    plait_model     *model = NULL;
    plait_report     report;
    plait_train_opts_init(&opts);
    opts.memory = j->data;
    opts.topology = j->topology;
    opts.consistency = j->consistency;
    opts.rules = &lion;
    opts.n_rules = 1;
    opts.optimizer = j->rule;
    plait_status status = plait_train(comm, &opts, &report, &model);
    if (plait_comm_rank(comm) == 0) j->loss = status >= 0 ? report.train_loss : NAN;
    plait_model_destroy(&model);
    return status;
}

int main(void) {
    static float    x[ROWS][FEATURES];
    static double   label[ROWS];
    plait_data     *data = NULL;
    plait_comm_opts comm;
    plait_error     error = { 0 };
    for (int i = 0; i < ROWS; i++) { /* odd rows lie on a ring around the even ones */
        double angle = 0.7 * i, radius = i % 2 == 0 ? 0.5 + 0.3 * sin(i) : 1.5 + 0.3 * cos(i);
        x[i][0] = (float)(radius * cos(angle)), x[i][1] = (float)(radius * sin(angle));
        x[i][2] = x[i][0] * x[i][0], x[i][3] = x[i][1] * x[i][1];
        label[i] = i % 2;
    }
    plait_comm_opts_init(&comm);
    comm.workers = 2;
    if (plait_data_from_dense(ROWS, FEATURES, &x[0][0], label, NULL, &data, &error) < 0) return 2;
    job sums = { data, "allreduce", "bsp", "lion", NAN }, shards = { data, "ps", "ssp:1", "lion", NAN }, typo = sums;
    typo.rule = "lino";
    plait_status status = plait_comm_run(&comm, train, &sums, &error);
    if (status >= 0) status = plait_comm_run(&comm, train, &shards, &error);
    if (status < 0) fprintf(stderr, "%s\n", error.text);
    printf("loss by allreduce %.2g, on shards %.2g\n", sums.loss, shards.loss);
    if (plait_comm_run(&comm, train, &typo, &error) == PLAIT_ENAME) printf("%s\n", error.text);
    plait_data_destroy(&data);
    return status >= 0 && sums.loss < 0.05 && shards.loss < 0.05 && error.code == PLAIT_ENAME ? 0 : 1;
}
