/* Belief propagation: how probable each label of a vertex is, given what the priors say of all vertices and that
 * neighbors like to have the same label. On a tree it comes to the exact marginals; on a graph with circles, such as a
 * picture's grid, to a good guess, if it comes to rest ("loopy").
 *
 *     message of u to v   m(b) = sum, or largest, over labels a of  held(a) exp(-cost [a != b])
 *     held                = prior of u  *  messages to u of all its neighbors but v
 *     belief of v         = prior of v  *  messages to v of all its neighbors
 *
 * What it needs of a vertex program. A message belongs to an edge and a direction: its sender makes it anew of what the
 * sender has received, and its receiver alone reads it. Numbers of edges (edge_values) do not serve, though they may
 * change in every superstep: they lie with the worker that gathers along the edge, so their vertex `at` alone sees
 * them, and a message must go from one end to the other. Nor can the receiver make the message by dividing the sender's
 * belief by what it has told the sender: vertex by vertex it does not know which of its messages that belief has seen,
 * and the circle through the two of them changes what the run converges to. So values have several numbers: a vertex's
 * value is its belief and the messages that it sends, one for each neighbor, and a neighbor reads the one that is meant
 * for it. All state then lies in the table of values: a checkpoint has it, and an heir too.
 *
 * Messages are logarithms, the largest of each 0, so that strong costs and many neighbors do not underflow; the table
 * adds differences to them, and what is small beside 1 would be lost. Taking the largest over labels is the min-sum
 * algorithm on costs. A superstep takes labels x edges operations, since Potts' model needs the sum over *other*
 * labels only.
 *
 * Papers: Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988; Murphy, Weiss and Jordan, "Loopy Belief
 * Propagation for Approximate Inference", UAI 1999; Felzenszwalb and Huttenlocher, "Efficient Belief Propagation for
 * Early Vision", IJCV 2006 (pictures, min-sum); Gonzalez, Low and Guestrin, "Residual Splash for Optimally
 * Parallelizing Belief Propagation", AISTATS 2009 (vertex by vertex: --engine async). */
#include "vertex/beliefs.h"

#include <math.h>

#include "tensor/tensor.h"

/* A value: the belief [labels], then for each neighbor, by increasing number, the message to it [labels]. */
static const double *message_to(const pli_beliefs *b, const void *value, int64_t slot) {
    return (const double *)value + (1 + slot) * b->labels;
}

static double largest(int32_t n, const double *x) {
    double most = x[0];
    for (int32_t i = 1; i < n; i++)
        if (x[i] > most) most = x[i];
    return most;
}

/* Of logarithms: probabilities that add up to 1. */
static void normalise(int32_t n, const double *log, double *share) {
    const double most = largest(n, log);
    double       sum = 0;
    for (int32_t i = 0; i < n; i++) share[i] = log[i] - most;
    pli_kernels_get()->exp_f64(n, share, share);
    for (int32_t i = 0; i < n; i++) sum += share[i];
    for (int32_t i = 0; i < n; i++) share[i] /= sum;
}

/* The common case: an exponential and a logarithm a label, if none underflows. */
enum { TAME_SPAN = 500, TAME_COST = 150 };

static bool is_tame(int32_t n, const double *x, double most, double cost) {
    bool tame = fabs(cost) <= TAME_COST;
    for (int32_t i = 0; i < n; i++) tame = tame && most - x[i] <= TAME_SPAN;
    return tame;
}

/* share[i] + unlike * (the sum of the other shares). Nothing is subtracted, so nothing cancels. */
static void sum_tame(int32_t n, const double *share, double unlike, double *message) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++) {
        message[i] = sum;
        sum += share[i];
    }
    sum = 0;
    for (int32_t i = n - 1; i >= 0; i--) {
        message[i] = share[i] + unlike * (message[i] + sum);
        sum += share[i];
    }
}

/* For each label the largest of the others. Returns the label that is the largest itself. */
static int32_t largest_others(int32_t n, const double *x, double *other) {
    int32_t first = 0;
    double  second = -(double)INFINITY;
    for (int32_t i = 1; i < n; i++) {
        if (x[i] > x[first]) second = x[first], first = i;
        else if (x[i] > second) second = x[i];
    }
    for (int32_t i = 0; i < n; i++) other[i] = i == first ? second : x[first];
    return first;
}

/* For each label the logarithm of the sum of the others. Those of the largest are seen beside the second, since beside
 * the largest they may be 0. */
static void sum_others(int32_t n, const double *x, double *other) {
    const int32_t first = largest_others(n, x, other);
    const double  second = other[first];
    double        part[PLI_BELIEF_LABELS], sum = 0, rest = 0;
    for (int32_t i = 0; i < n; i++) {
        other[i] = sum;
        part[i] = exp(x[i] - x[first]);
        sum += part[i];
        if (i != first && isfinite(second)) rest += exp(x[i] - second);
    }
    sum = 0;
    for (int32_t i = n - 1; i >= 0; i--) {
        other[i] = x[first] + log(other[i] + sum);
        sum += part[i];
    }
    other[first] = isfinite(second) ? second + log(rest) : second;
}

/* The logarithm of exp(a) + exp(b), not both of which are 0. */
static double log_of_sum(double a, double b) {
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

static void sum_labels(int32_t n, double cost, const double *held, double *message) {
    double room[PLI_BELIEF_LABELS];
    sum_others(n, held, room);
    for (int32_t i = 0; i < n; i++) message[i] = log_of_sum(held[i], room[i] - cost);
}

/* A vertex's messages, made together. */
typedef struct messages {
    int64_t  n;
    double   cost[PLI_VERTEX_MOST]; /* of each message's edge            */
    double   held[PLI_VERTEX_MOST]; /* [n][labels]                       */
    double   made[PLI_VERTEX_MOST]; /* [n][labels]                       */
    double   share[PLI_VERTEX_MOST];
    bool     tame[PLI_VERTEX_MOST];
} messages;

/* Exponentials and logarithms take most of the time. They go by the kernels' vectors, those of all messages at once. */
static void sum_all(int32_t labels, messages *m) {
    const pli_kernels *k = pli_kernels_get();
    double             last = NAN, unlike = 0;
    for (int64_t i = 0; i < m->n; i++) {
        const double *held = m->held + i * labels, most = largest(labels, held);
        m->tame[i] = is_tame(labels, held, most, m->cost[i]);
        for (int32_t a = 0; a < labels; a++) m->share[i * labels + a] = m->tame[i] ? held[a] - most : 0;
    }
    k->exp_f64(m->n * labels, m->share, m->share);
    for (int64_t i = 0; i < m->n; i++) {
        double *made = m->made + i * labels;
        if (m->tame[i] && m->cost[i] != last) unlike = exp(-(last = m->cost[i]));
        if (m->tame[i]) sum_tame(labels, m->share + i * labels, unlike, made);
        for (int32_t a = 0; !m->tame[i] && a < labels; a++) made[a] = 1;
    }
    k->log_f64(m->n * labels, m->made, m->made);
    for (int64_t i = 0; i < m->n; i++)
        if (!m->tame[i]) sum_labels(labels, m->cost[i], m->held + i * labels, m->made + i * labels);
}

static void take_largest(int32_t n, double cost, const double *held, double *message) {
    double other[PLI_BELIEF_LABELS];
    (void)largest_others(n, held, other);
    for (int32_t i = 0; i < n; i++) message[i] = held[i] > other[i] - cost ? held[i] : other[i] - cost;
}

static void make_messages(const pli_beliefs *b, messages *m) {
    const int32_t labels = b->labels;
    for (int64_t i = 0; b->most_probable && i < m->n; i++)
        take_largest(labels, m->cost[i], m->held + i * labels, m->made + i * labels);
    if (!b->most_probable) sum_all(labels, m);
    for (int64_t i = 0; i < m->n; i++) {
        const double most = largest(labels, m->made + i * labels);
        for (int32_t a = 0; a < labels; a++) m->made[i * labels + a] -= most;
    }
}

/* --- the program -------------------------------------------------------------------------------------------------- */

static void begin(void *user, const plait_vertex *v, void *value) {
    const pli_beliefs *b = ((const pli_vertex_choice *)user)->own;
    normalise(b->labels, b->prior + v->index * b->labels, value); /* and all messages say nothing: 0 */
}

/* Sets new numbers [n], and says how much the one that changes most has changed; NaN if that is no finite number for
 * one of them. */
static double replace(int32_t n, const double *new, double *old) {
    double most = 0, odd = 0; /* 0, or NaN */
    for (int32_t i = 0; i < n; i++) {
        const double change = fabs(new[i] - old[i]);
        most = change > most ? change : most;
        odd += change - change;
        old[i] = new[i];
    }
    return most + odd;
}

/* An edge that stands there twice, or is a loop, does not count: the next edge that does, from k on. */
static int64_t next_neighbor(const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, int64_t k) {
    while (k < n && (edge[k].other->index == v->index || (k > 0 && edge[k].other->index == edge[k - 1].other->index)))
        k++;
    return k;
}

static double update(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    const pli_beliefs *b = ((const pli_vertex_choice *)user)->own;
    const int32_t      labels = b->labels;
    const int64_t      first = b->simple->start[v->index];
    double            *belief = value, all[PLI_BELIEF_LABELS], new[PLI_BELIEF_LABELS];
    int64_t            slot = 0;
    messages           m;
    memcpy(all, b->prior + v->index * labels, (size_t)labels * sizeof *all);
    for (int64_t k = next_neighbor(v, n, edge, 0); k < n; k = next_neighbor(v, n, edge, k + 1)) {
        const double *told = message_to(b, edge[k].told, b->back[first + slot++]);
        for (int32_t i = 0; i < labels; i++) all[i] += told[i];
    }
    normalise(labels, all, new);
    double most = replace(labels, new, belief);
    m.n = 0;
    for (int64_t k = next_neighbor(v, n, edge, 0); k < n; k = next_neighbor(v, n, edge, k + 1)) {
        const double *told = message_to(b, edge[k].told, b->back[first + m.n]);
        for (int32_t i = 0; i < labels; i++) m.held[m.n * labels + i] = all[i] - told[i];
        m.cost[m.n++] = b->smoothing * (double)edge[k].weight;
    }
    make_messages(b, &m);
    const double change = replace((int32_t)m.n * labels, m.made, belief + labels);
    return change > most || isnan(change) ? change : most;
}

plait_status pli_beliefs_make(const pli_vertex_choice *choice, plait_vertex_program *p, plait_error *err) {
    const pli_beliefs *b = choice->own;
    (void)err;
    p->near = PLAIT_NEAR_BOTH;
    p->values = b->labels * (1 + b->slots);
    p->gathers = 1; /* it gathers nothing */
    p->init = begin;
    p->update = update;
    p->tolerance = choice->tolerance;
    return PLAIT_OK;
}

int32_t pli_beliefs_shown(const pli_vertex_choice *choice) { return ((const pli_beliefs *)choice->own)->labels; }

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* What the labeling costs in which each vertex has the label that it believes in most: the logarithm of its
 * probability, but for the sign and a constant. */
int32_t pli_figures_beliefs(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const pli_beliefs *b = choice->own;
    const int64_t      n = choice->edges->n, width = (int64_t)b->labels * (1 + b->slots);
    const double      *all = (const double *)(const void *)value;
    int32_t           *label = pli_array((size_t)n, sizeof *label);
    double             energy = 0;
    if (label == NULL) return 0;
    for (int64_t v = 0; v < n; v++) {
        label[v] = 0;
        for (int32_t i = 1; i < b->labels; i++)
            if (all[v * width + i] > all[v * width + label[v]]) label[v] = i;
        energy -= b->prior[v * b->labels + label[v]];
        for (int64_t k = b->simple->start[v]; k < b->simple->start[v + 1]; k++)
            if (b->simple->near[k] < v && label[b->simple->near[k]] != label[v])
                energy += b->smoothing * (b->weight != NULL ? (double)b->weight[k] : 1);
    }
    pli_free(label);
    figure[0] = (pli_figure){ .name = "labels", .whole = b->labels };
    figure[1] = (pli_figure){ .name = "energy", .real = energy, .is_real = true };
    return 2;
}
