/* A graph convolution that learns: a vertex program and a learner in one run, on the tables of one job.
 *
 *     Z = softmax(A relu(A X W0) W1)      A: the graph's matrix with loops, normalised by both ends' degrees
 *
 * The weights W0, W1 are ruled tables (adam), which every worker reads and pushes gradients to. What a vertex tells its
 * neighbors is a row of a table that combines by last; a superstep, in which each worker reads the rows of its
 * vertices' neighbors, is a clock. Forward and back a product with A is a gather, and A is its own transpose. An epoch
 * has five clocks, each of which ends where a bar stands:
 *
 *     tell X W0 | gather, relu, tell H W1 | gather, softmax, tell the loss's gradient G
 *       | gather: dW1 = H^T A G; tell G W1^T where relu was open | gather: dW0 = X^T A ... |
 *
 * With the fifth W0's gradient counts. Half of the features and of H is dropped in training. Rows are dealt to workers
 * by 64 blocks. Under exact sums (--reduce exact) the gradient of each block is one term, so that weights have the same
 * bits for every number of workers.
 *
 * With two replicas others take over a dead worker's rows (inherit.h). All that a clock pushes follows from what tables
 * held when it began, from the epoch and the seed; H, which is needed two clocks after it was made, goes into a table
 * of its own. Two replicas need tables that add, so what is pushed there is the change of a row's bits.
 *
 * Papers: Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017 (this net, 16
 * hidden numbers, Adam at 0.01, half dropped, 5e-4 decay of W0, 200 epochs); Low et al., VLDB 2012 (vertex
 * programs). */
#include "vertex/gcn.h"

#include <math.h>

#include "base/random.h"
#include "vertex/beside.h"
#include "vertex/direct.h"
#include "vertex/inherit.h"

enum { BLOCKS = 64, HIDDEN = 16, EPOCHS = 200, WIDE = 64 };

/* What a clock is for. */
typedef enum step { TELL_X, TELL_H, TELL_G, TELL_BACK, LEARN_W0, CLASSES } step;

/* Where the run is, and the weights of this clock: the same for all parts. */
typedef struct stage {
    step         now;
    int64_t      epoch; /* 0: of the last weights, and nothing is dropped */
    const float *w0;    /* [features][HIDDEN], while nobody has pushed    */
    float        w1[HIDDEN * WIDE]; /* [HIDDEN][classes]                  */
} stage;

/* A table of a row for each row of the graph, of which a part pushes its own. */
typedef struct row_table {
    plait_table *table;
    int32_t      cols; /* even */
    int64_t     *was;  /* [own][cols / 2] with two replicas: the bits that the table has; else NULL */
} row_table;

/* A part: the rows of one worker. */
typedef struct learning {
    pli_direct   *d;
    pli_gcn_data *g;
    stage        *at;
    int32_t       rank;              /* whose rows */
    bool          survives;
    plait_table  *weights[2];
    row_table     told, kept;        /* [rows][wide]; [rows][HIDDEN] H, with two replicas */
    int64_t      *change;            /* [own][wide / 2] with two replicas */
    int32_t       wide;              /* numbers that a row tells at most, and is even */
    int64_t       first, own;        /* the rows */
    uint64_t     *key;               /* [keys] rows that it reads */
    uint32_t     *local;             /* [rows] their places in read */
    int64_t       keys;
    float        *read;              /* [keys][wide] */
    float        *hidden;            /* [own][HIDDEN] H, what was dropped being 0 */
    float        *sum;               /* [own][wide] of a gather */
    float        *tell;              /* [own][wide] */
    float        *gradient;          /* [features][HIDDEN] of a block, or of all of them */
    uint64_t     *own_key;           /* [own] */
    int64_t       trains;            /* own rows that train */
} learning;

static int64_t block_begin(const pli_gcn_data *g, int64_t b) { return g->rows * b / BLOCKS; }

/* --- rooms and tables --------------------------------------------------------------------------------------------- */

static bool list_keys(learning *l) {
    const pli_neighbors *a = &l->g->near;
    l->local = pli_calloc((size_t)l->g->rows, sizeof *l->local);
    l->key = pli_array((size_t)l->g->rows, sizeof *l->key);
    if (l->local == NULL || l->key == NULL) return false;
    for (int64_t k = a->start[l->first]; k < a->start[l->first + l->own]; k++) l->local[a->near[k]] = 1;
    for (int64_t r = 0; r < l->g->rows; r++) {
        if (l->local[r] == 0) continue;
        l->local[r] = (uint32_t)l->keys;
        l->key[l->keys++] = (uint64_t)r;
    }
    return true;
}

static bool make_room(learning *l) {
    const pli_direct *d = l->d;
    l->first = block_begin(l->g, (int64_t)BLOCKS * l->rank / d->workers);
    l->own = block_begin(l->g, (int64_t)BLOCKS * (l->rank + 1) / d->workers) - l->first;
    l->wide = l->g->classes > HIDDEN ? (l->g->classes + 1) / 2 * 2 : HIDDEN;
    l->told.cols = l->wide;
    l->kept.cols = HIDDEN;
    if (!list_keys(l)) return false;
    const size_t own = (size_t)l->own + 1, wide = (size_t)l->wide;
    l->read = pli_array(((size_t)l->keys + 1) * wide, sizeof *l->read);
    l->hidden = pli_array(own * HIDDEN, sizeof *l->hidden);
    l->sum = pli_array(own * wide, sizeof *l->sum);
    l->tell = pli_calloc(own * wide, sizeof *l->tell);
    l->own_key = pli_array(own, sizeof *l->own_key);
    l->gradient = pli_array((size_t)(l->g->features + HIDDEN) * wide, sizeof *l->gradient);
    if (l->read == NULL || l->hidden == NULL || l->sum == NULL || l->tell == NULL || l->own_key == NULL ||
        l->gradient == NULL)
        return false;
    if (l->survives) {
        l->told.was = pli_calloc(own, wide * sizeof(float));
        l->kept.was = pli_calloc(own, HIDDEN * sizeof(float));
        l->change = pli_array(own, wide * sizeof(float));
        if (l->told.was == NULL || l->kept.was == NULL || l->change == NULL) return false;
    }
    for (int64_t i = 0; i < l->own; i++) {
        l->own_key[i] = (uint64_t)(l->first + i);
        l->trains += l->g->kind[l->first + i] == PLI_GCN_TRAIN;
    }
    return true;
}

/* Glorot's uniform first weights, by table and row. */
static plait_status make_weights(learning *l, int which, int64_t rows, int64_t cols) {
    const uint64_t   seed = l->d->choice->seed;
    const float      most = (float)sqrt(6.0 / (double)(rows + cols));
    plait_table_opts t;
    float           *first = pli_array((size_t)(rows * cols), sizeof *first);
    if (first == NULL) return pli_fail(l->d->err, PLAIT_ENOMEM, "gcn: no memory for weights");
    for (int64_t r = 0; r < rows; r++) {
        pli_random random = pli_random_at(seed, PLI_RANDOM_INIT, (uint64_t)which, (uint64_t)r);
        for (int64_t c = 0; c < cols; c++) first[r * cols + c] = most * (float)(2 * pli_random_f64(&random) - 1);
    }
    plait_table_opts_init(&t);
    t.name = which == 0 ? "gcn.weights0" : "gcn.weights1";
    t.rows = rows;
    t.cols = cols;
    t.initial = first;
    t.rule.name = "adam";
    t.rule.learning_rate = 0.01;
    t.rule.l2 = which == 0 ? 5e-4 : 0;
    const plait_status status = plait_table_create(l->d->job, &t, &l->weights[which]);
    pli_free(first);
    return status;
}

static plait_status make_rows(learning *l, const char *what, row_table *r) {
    const pli_beside rows = { .program = "gcn",
                              .what = what,
                              .type = l->survives ? PLAIT_I64 : PLAIT_F32,
                              .combine = l->survives ? "add" : "last",
                              .rows = l->g->rows,
                              .cols = l->survives ? r->cols / 2 : r->cols };
    return pli_beside_make(l->d->job, &rows, &r->table);
}

/* Pushes the part's rows. */
static plait_status push_rows(learning *l, row_table *r, const float *value) {
    if (l->own == 0) return PLAIT_OK;
    if (!l->survives) return plait_table_inc(r->table, l->own, l->own_key, value, 0);
    for (int64_t i = 0; i < l->own * r->cols / 2; i++) {
        int64_t bits;
        memcpy(&bits, value + 2 * i, sizeof bits);
        l->change[i] = (int64_t)((uint64_t)bits - (uint64_t)r->was[i]);
        r->was[i] = bits;
    }
    return plait_table_inc(r->table, l->own, l->own_key, l->change, 0);
}

/* --- a clock: what is read, gathered, told ------------------------------------------------------------------------ */

/* Of a dead worker's part: what the tables have of its rows. */
static plait_status recall(learning *l) {
    if (l->own == 0) return PLAIT_OK;
    PLI_TRY(plait_table_get(l->told.table, l->own, l->own_key, l->told.was));
    PLI_TRY(plait_table_get(l->kept.table, l->own, l->own_key, l->kept.was));
    memcpy(l->hidden, l->kept.was, (size_t)l->own * HIDDEN * sizeof *l->hidden);
    return PLAIT_OK;
}

static plait_status look(void *user, void *part) {
    learning   *l = part;
    stage      *at = l->at;
    const void *w;
    (void)user;
    if (l->rank != l->d->rank) PLI_TRY(recall(l));
    if (at->now == TELL_X) PLI_TRY(plait_table_read(l->weights[0], 0, l->g->features, &w));
    if (at->now == TELL_X) at->w0 = w;
    PLI_TRY(plait_table_read(l->weights[1], 0, HIDDEN, &w));
    memcpy(at->w1, w, (size_t)(HIDDEN * l->g->classes) * sizeof *at->w1);
    if (at->now == TELL_X || l->keys == 0) return PLAIT_OK;
    return plait_table_get(l->told.table, l->keys, l->key, l->read);
}

/* sum [own][n] = A times what was told, the first n numbers of each row. */
static void gather(learning *l, int32_t n) {
    const pli_neighbors *a = &l->g->near;
    for (int64_t i = 0; i < l->own; i++) {
        float *sum = l->sum + i * n;
        for (int32_t c = 0; c < n; c++) sum[c] = 0;
        for (int64_t k = a->start[l->first + i]; k < a->start[l->first + i + 1]; k++) {
            const float *told = l->read + (size_t)l->local[a->near[k]] * (size_t)l->wide;
            for (int32_t c = 0; c < n; c++) sum[c] += a->weight[k] * told[c];
        }
    }
}

/* Numbers of a row that are kept in this epoch count twice; epoch 0: all count once. */
static pli_random drops(const learning *l, int64_t epoch, int layer, int64_t r) {
    return pli_random_at(l->d->choice->seed, PLI_RANDOM_GRAPH, (uint64_t)(2 * epoch + layer), (uint64_t)r);
}
static float kept(pli_random *random, int64_t epoch) {
    return epoch == 0 ? 1 : (pli_random_u32(random) & 1) != 0 ? 2 : 0;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static plait_status tell_x(learning *l) {
    const pli_gcn_data *g = l->g;
    for (int64_t i = 0; i < l->own; i++) {
        float     *tell = l->tell + i * l->wide;
        pli_random random = drops(l, l->at->epoch, 0, l->first + i);
        for (int32_t c = 0; c < HIDDEN; c++) tell[c] = 0;
        for (int64_t k = g->start[l->first + i]; k < g->start[l->first + i + 1]; k++) {
            const float  x = g->value[k] * kept(&random, l->at->epoch);
            const float *w = l->at->w0 + (int64_t)g->column[k] * HIDDEN;
            for (int32_t c = 0; c < HIDDEN; c++) tell[c] += x * w[c];
        }
    }
    return push_rows(l, &l->told, l->tell);
}

static plait_status tell_h(learning *l) {
    const int32_t classes = l->g->classes;
    gather(l, HIDDEN);
    for (int64_t i = 0; i < l->own; i++) {
        float     *tell = l->tell + i * l->wide, *h = l->hidden + i * HIDDEN;
        pli_random random = drops(l, l->at->epoch, 1, l->first + i);
        for (int32_t c = 0; c < HIDDEN; c++) {
            const float times = kept(&random, l->at->epoch), x = l->sum[i * HIDDEN + c];
            h[c] = x > 0 ? x * times : 0;
        }
        for (int32_t c = 0; c < classes; c++) tell[c] = 0;
        for (int32_t j = 0; j < HIDDEN; j++)
            for (int32_t c = 0; c < classes; c++) tell[c] += h[j] * l->at->w1[j * classes + c];
    }
    if (l->survives) PLI_TRY(push_rows(l, &l->kept, l->hidden));
    return push_rows(l, &l->told, l->tell);
}

/* p [classes] = softmax(z); returns -log of the probability of `is`. */
static double softmax(int32_t classes, const float *z, int32_t is, float *p) {
    float  most = z[0];
    double sum = 0;
    for (int32_t c = 1; c < classes; c++) most = z[c] > most ? z[c] : most;
    for (int32_t c = 0; c < classes; c++) sum += exp((double)(z[c] - most));
    for (int32_t c = 0; c < classes; c++) p[c] = (float)(exp((double)(z[c] - most)) / sum);
    return log(sum) - (double)(z[is] - most);
}

/* --- back --------------------------------------------------------------------------------------------------------- */

/* Adds a row's part to the gradient of W1, or of W0. */
static void add_w1(learning *l, int64_t i) {
    const int32_t classes = l->g->classes;
    for (int32_t j = 0; j < HIDDEN; j++)
        for (int32_t c = 0; c < classes; c++)
            l->gradient[j * classes + c] += l->hidden[i * HIDDEN + j] * l->sum[i * classes + c];
}

static void add_w0(learning *l, int64_t i, int64_t epoch) {
    const pli_gcn_data *g = l->g;
    pli_random          random = drops(l, epoch, 0, l->first + i);
    for (int64_t k = g->start[l->first + i]; k < g->start[l->first + i + 1]; k++) {
        const float x = g->value[k] * kept(&random, epoch);
        float      *to = l->gradient + (int64_t)g->column[k] * HIDDEN;
        for (int32_t c = 0; c < HIDDEN; c++) to[c] += x * l->sum[i * HIDDEN + c];
    }
}

/* Pushes the gradient: of each block under exact sums, else of all own rows. */
static plait_status push(learning *l, int which) {
    const int64_t rows = which == 0 ? l->g->features : HIDDEN, cols = which == 0 ? HIDDEN : l->g->classes;
    const int64_t begin = (int64_t)BLOCKS * l->rank / l->d->workers,
                  end = (int64_t)BLOCKS * (l->rank + 1) / l->d->workers;
    const size_t  bytes = (size_t)(rows * cols) * sizeof *l->gradient;
    int64_t       trains = l->trains; /* a worker counts its rows once */
    memset(l->gradient, 0, bytes);
    for (int64_t b = begin; b < end; b++) {
        for (int64_t r = block_begin(l->g, b); r < block_begin(l->g, b + 1); r++) {
            if (which == 0) add_w0(l, r - l->first, l->at->epoch);
            else add_w1(l, r - l->first);
        }
        if (!l->d->job->exact && b + 1 < end) continue;
        PLI_TRY(plait_table_inc_range(l->weights[which], 0, rows, l->gradient, trains));
        memset(l->gradient, 0, bytes);
        trains = 0;
    }
    return PLAIT_OK;
}

static plait_status tell_g(learning *l) {
    const int32_t classes = l->g->classes;
    gather(l, classes);
    for (int64_t i = 0; i < l->own; i++) {
        const int64_t r = l->first + i;
        float        *tell = l->tell + i * l->wide;
        for (int32_t c = 0; c < classes; c++) tell[c] = 0;
        if (l->g->kind[r] != PLI_GCN_TRAIN) continue;
        softmax(classes, l->sum + i * classes, l->g->class_of[r], tell);
        tell[l->g->class_of[r]] -= 1;
    }
    return push_rows(l, &l->told, l->tell);
}

static plait_status tell_back(learning *l) {
    const int32_t classes = l->g->classes;
    gather(l, classes);
    for (int64_t i = 0; i < l->own; i++) {
        float *tell = l->tell + i * l->wide;
        for (int32_t j = 0; j < HIDDEN; j++) {
            const float times = l->at->epoch == 0 ? 1 : 2; /* of what was kept */
            float       sum = 0;
            for (int32_t c = 0; c < classes; c++) sum += l->sum[i * classes + c] * l->at->w1[j * classes + c];
            tell[j] = l->hidden[i * HIDDEN + j] > 0 ? sum * times : 0;
        }
    }
    PLI_TRY(push(l, 1));
    return push_rows(l, &l->told, l->tell);
}

static plait_status learn_w0(learning *l) {
    gather(l, HIDDEN);
    return push(l, 0);
}

/* --- what it has learned ------------------------------------------------------------------------------------------ */

/* Of each kind of rows: how many are right, how many there are; and the loss of those that train. */
enum { COUNTS = 2 * PLI_GCN_KINDS + 1, LOSS = COUNTS - 1 };

/* Pushes classes by the last weights, of rows that are vertices; key, label [own]. */
static plait_status push_classes(learning *l, uint64_t *key, int64_t *label, double *count) {
    const pli_direct   *d = l->d;
    const pli_gcn_data *g = l->g;
    int64_t             v = 0, n = 0;
    for (int64_t i = 0; i < l->own; i++) {
        const int64_t r = l->first + i;
        const float  *z = l->sum + i * g->classes;
        float         p[WIDE];
        int32_t       best = 0;
        for (int32_t c = 1; c < g->classes; c++) best = z[c] > z[best] ? c : best;
        count[2 * g->kind[r]] += best == g->class_of[r];
        count[2 * g->kind[r] + 1]++;
        if (g->kind[r] == PLI_GCN_TRAIN) count[LOSS] += softmax(g->classes, z, g->class_of[r], p);
        while (v < d->edges->n && d->edges->id[v] < (uint64_t)r) v++;
        if (v == d->edges->n || d->edges->id[v] != (uint64_t)r) continue;
        key[n] = (uint64_t)v;
        label[n++] = g->label[best];
    }
    return n > 0 ? plait_table_inc(d->value, n, key, label, 0) : PLAIT_OK;
}

static plait_status judge(learning *l, pli_inherit *parts) {
    double       count[COUNTS] = { 0 };
    int64_t      bits[COUNTS], *label = pli_array((size_t)l->own + 1, sizeof *label);
    uint64_t    *key = pli_array((size_t)l->own + 1, sizeof *key);
    plait_status status = key != NULL && label != NULL
                              ? PLAIT_OK
                              : pli_fail(l->d->err, PLAIT_ENOMEM, "gcn: no memory for classes");
    gather(l, l->g->classes);
    if (status == PLAIT_OK) status = push_classes(l, key, label, count);
    pli_free(key);
    pli_free(label);
    memcpy(bits, count, sizeof bits);
    return status < 0 ? status : pli_inherit_tell(parts, l->rank, bits);
}

/* Sets what the workers of a process share: all to the same, since any of them may die. */
static void set_shared(double *of, double to) { __atomic_store(of, &to, __ATOMIC_RELAXED); }

/* Behind the last clock: what the run has come to. */
static plait_status add_up(learning *l, pli_inherit *parts) {
    const int64_t *bits;
    double         count[COUNTS] = { 0 };
    PLI_TRY(pli_inherit_hear(parts, &bits));
    for (int32_t k = 0; k < l->d->workers * COUNTS; k++) {
        double of;
        memcpy(&of, &bits[k], sizeof of);
        count[k % COUNTS] += of;
    }
    for (int k = 0; k < PLI_GCN_KINDS; k++) /* not a number: there are no such rows */
        set_shared(&l->g->accuracy[k], count[2 * k + 1] > 0 ? count[2 * k] / count[2 * k + 1] : (double)NAN);
    set_shared(&l->g->loss, count[LOSS] / count[2 * PLI_GCN_TRAIN + 1]);
    return PLAIT_OK;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static plait_status work(void *user, void *part) {
    learning *l = part;
    switch (l->at->now) {
    case TELL_X: return tell_x(l);
    case TELL_H: return tell_h(l);
    case TELL_G: return tell_g(l);
    case TELL_BACK: return tell_back(l);
    case LEARN_W0: return learn_w0(l);
    default: return judge(l, user);
    }
}

static plait_status go(learning *l, pli_inherit *parts, step now, int64_t epoch) {
    l->at->now = now;
    l->at->epoch = epoch;
    PLI_TRY(pli_inherit_each(parts, look, parts));
    PLI_TRY(pli_inherit_each(parts, work, parts));
    l->d->report.supersteps += now < LEARN_W0; /* something was told */
    return pli_inherit_clock(parts, look, work, parts);
}

static plait_status make_tables(learning *l) {
    PLI_TRY(make_weights(l, 0, l->g->features, HIDDEN));
    PLI_TRY(make_weights(l, 1, HIDDEN, l->g->classes));
    if (l->survives) PLI_TRY(make_rows(l, "hidden", &l->kept));
    return make_rows(l, "told", &l->told);
}

static plait_status learn(learning *l, pli_inherit *parts) {
    pli_direct   *d = l->d;
    const int64_t epochs = d->limit > 0 ? d->limit : EPOCHS;
    for (int64_t epoch = 1; epoch <= epochs; epoch++)
        for (int now = TELL_X; now <= LEARN_W0; now++) PLI_TRY(go(l, parts, (step)now, epoch));
    PLI_TRY(go(l, parts, TELL_X, 0));
    PLI_TRY(go(l, parts, TELL_H, 0));
    PLI_TRY(go(l, parts, CLASSES, 0));
    PLI_TRY(add_up(l, parts));
    d->report.still = 1;
    if (l->survives) return PLAIT_OK; /* tables stay until the job ends */
    PLI_TRY(plait_table_drop(&l->told.table));
    PLI_TRY(plait_table_drop(&l->weights[1]));
    return plait_table_drop(&l->weights[0]);
}

static void free_room(learning *l) {
    void *const memory[] = { l->key, l->local, l->read, l->hidden, l->sum, l->tell, l->gradient, l->own_key,
                             l->told.was, l->kept.was, l->change };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) pli_free(memory[i]);
}

static void release(void *part) {
    free_room(part);
    pli_free(part);
}

static plait_status make_part(void *own, int32_t home, void **part_out) {
    const learning *mine = own;
    learning       *l = pli_calloc(1, sizeof *l);
    if (l == NULL) return pli_fail(mine->d->err, PLAIT_ENOMEM, "gcn: no memory for a dead worker's rows");
    *l = (learning){ .d = mine->d, .g = mine->g, .at = mine->at, .rank = home, .survives = true,
                     .weights = { mine->weights[0], mine->weights[1] },
                     .told.table = mine->told.table, .kept.table = mine->kept.table };
    *part_out = l;
    if (make_room(l)) return PLAIT_OK;
    *part_out = NULL;
    release(l);
    return pli_fail(mine->d->err, PLAIT_ENOMEM, "gcn: no memory for a dead worker's rows");
}

plait_status pli_run_gcn(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                         int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "gcn", .combine = "add", .type = PLAIT_I64, .whole = true,
                                   .survives = true };
    pli_direct            d;
    stage                 at = { 0 };
    learning              l = { .d = &d, .g = choice->own, .at = &at };
    pli_inherit          *parts = NULL;
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    const pli_inherit_opts of = { .job = job, .err = d.err, .name = opts.name, .own = &l, .figures = COUNTS,
                                  .make = make_part, .release = release };
    l.rank = d.rank;
    l.survives = job->layout.replicas > 1;
    if (status == PLAIT_OK && d.workers > BLOCKS)
        status = pli_fail(d.err, PLAIT_EREFUSED, "gcn: %d workers, and rows are dealt by 64 blocks; nearest is 64",
                          (int)d.workers);
    if (status == PLAIT_OK && !make_room(&l)) status = pli_fail(d.err, PLAIT_ENOMEM, "gcn: no memory for rows");
    if (status == PLAIT_OK) status = make_tables(&l);
    if (status == PLAIT_OK) status = pli_inherit_create(&of, &parts);
    if (status == PLAIT_OK) status = learn(&l, parts);
    pli_inherit_destroy(&parts);
    free_room(&l);
    return pli_direct_end(&d, status, values_out, report_out);
}

int32_t pli_figures_gcn(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const pli_gcn_data *g = choice->own;
    (void)value;
    figure[0] = (pli_figure){ .name = "train_loss", .real = g->loss, .is_real = true };
    figure[1] = (pli_figure){ .name = "validation_accuracy", .real = g->accuracy[PLI_GCN_VALIDATION], .is_real = true };
    figure[2] = (pli_figure){ .name = "test_accuracy", .real = g->accuracy[PLI_GCN_TEST], .is_real = true };
    return 3;
}
