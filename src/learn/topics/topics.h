/* learn/topics/topics.h - the learner lda: documents as mixtures of topics (latent Dirichlet allocation).
 *
 * Each token of a document has a topic; a topic is a distribution over words. The tokens' topics are drawn anew, one
 * after the other, from their distribution given all others (counts.h): collapsed Gibbs sampling.
 *
 *   model     Blei, Ng and Jordan, "Latent Dirichlet Allocation", JMLR 2003
 *   tables    words [words, topics], how often each word has each topic, and totals [1, topics], their sums. Both count
 *             in whole numbers, so sums are exact, and every inc takes from one topic what it gives to another: the
 *             totals always add up to the number of tokens, however stale a read is
 *   a clock   reads the rows of the batch's words, draws all its tokens, and incs what has changed. A worker sees its
 *             own changes at once and those of others by the run's consistency: Newman et al., "Distributed Algorithms
 *             for Topic Models", JMLR 2009. Under --reduce exact each block of rows begins with the counts of the
 *             clock's beginning, so that no number depends on the workers
 *   tokens    their topics are values of rows (keep/row_values.h), four in a number: they stay with their worker. The
 *             first ones are a function of the seed and the token's place, so tables begin with their counts, and a row
 *             that no clock has had has them still
 *   rotation  with --words rotate blocks of words go from worker to worker instead, and no count of a word is stale
 *             (rotate.c)
 *   deaths    with two replicas the tokens' topics lie in a table, too (copied.c)
 *   priors    beta is fixed. The alphas are fitted, each topic its own, by Minka's fixed point ("Estimating a Dirichlet
 *             distribution", 2000), one step an epoch (prior.c)
 *   model     counts, alphas, beta; rows are understood by a fixed point over their topics (infer.c) */
#ifndef PLI_LEARN_TOPICS_TOPICS_H
#define PLI_LEARN_TOPICS_TOPICS_H

#include <plait/schedule.h>

#include "learn/learner.h"
#include "learn/solve/inherit.h"
#include "learn/topics/counts.h"

typedef struct pli_lda {
    int32_t           k;
    int64_t           words, tokens; /* tokens: of all rows trained on */
    double            beta;
    bool              fits; /* the alphas are fitted */
    plait_table      *word, *total, *fit;
    pli_topic_counts  counts;
    pli_topic_scan   *scan;
    double           *alpha;    /* [k] of this epoch; checkpoints keep it */
    int64_t          *seen;     /* [k + 1] what fit held at the epoch's beginning; checkpoints keep it */
    int64_t          *now;      /* [k + 1] */
    int64_t          *fitted;   /* [k + 1] what this clock adds to fit */
    int64_t          *read;     /* [n, k] the rows of the batch's words as they were read */
    int64_t          *change;   /* [n, k] what the clock adds to them */
    int64_t          *read_total, *change_total; /* [k] */
    uint64_t         *key;      /* [n] the batch's words, increasing */
    int64_t           n;
    uint8_t          *in_batch; /* [words] */

    /* words rotate (rotate.c); blocks 0: they do not */
    int64_t           blocks, *cut; /* [blocks + 1]: block b has words cut[b] .. cut[b + 1] - 1 */
    plait_schedule   *schedule;
    const pli_batch  *batch;        /* of the epoch at hand, with */
    plait_step_sums  *told;
    int64_t           step;
    /* with two replicas: the epoch that is under way or done, and the clock that read_total was read in, both counted
     * from 1; the documents of the home at hand */
    int64_t           epochs, read_in;
    pli_heir          heir;
    pli_batch         of_home;

    /* with two replicas (copied.c) */
    plait_table      *token;    /* the values of all rows, block after block; NULL: there is one replica */
    int64_t          *base;     /* [blocks + 1] where a block's values begin in it, or in one that was kept */
    int64_t          *before;   /* of the block at hand, as they were read */
} pli_lda;

static inline pli_lda *pli_lda_of(const pli_run *run) { return run->state; }

/** A row as a document. Its topics are missing. */
pli_document pli_lda_document(const plait_row *row);
/** The first topics of row `row` of the data set. */
void pli_lda_first(uint64_t seed, int64_t row, int32_t topics, const pli_document *d);

/** How many values a row has. */
int64_t pli_lda_row_values(const pli_block *block, int64_t row);

/** copied.c: tokens' topics in a table. read, push: the values of a block, whose memory is there. */
plait_status pli_lda_copies_begin(pli_run *run);
void         pli_lda_copies_end(pli_lda *m);
plait_status pli_lda_copies_read(pli_run *run, int64_t block);
plait_status pli_lda_copies_push(pli_run *run, int64_t block);
/** Of a resumed run whose checkpoint had another number of replicas. take: own rows' values out of the table that was
 *  kept; put: the table out of rows' values (pli_learner_more.put_back). Without need they do nothing. Errors:
 *  EMISMATCH, ECHECKSUM, EIO, ENOMEM. Collective. */
plait_status pli_lda_copies_take(pli_run *run);
plait_status pli_lda_copies_put(pli_run *run, const plait_table *table, bool *done_out);

/** rotate.c: check, settle: options, and how many blocks; both do nothing if words do not rotate. begin: count
 *  [words, k] of all tokens' first topics. A step is an epoch. */
plait_status pli_lda_rotate_check(pli_run *run);
plait_status pli_lda_rotate_settle(pli_run *run);
plait_status pli_lda_rotate_begin(pli_run *run, const int64_t *count);
void         pli_lda_rotate_end(pli_lda *m);
plait_status pli_lda_rotate_step(pli_run *run, const pli_batch *batch, plait_step_sums *told);

/** sample.c, of the words in key [n]: reads their counts; makes change zero; adds to it what has been drawn (again: the
 *  counts become those that were read); pushes it. */
plait_status pli_lda_read_counts(pli_run *run);
void         pli_lda_clear_changes(pli_lda *m);
void         pli_lda_take_changes(pli_lda *m, bool again);
plait_status pli_lda_push_changes(pli_run *run);
/** A row as a document whose topics are in its values, which are made if they are not there. */
pli_document pli_lda_hold(pli_run *run, const plait_row *row, int64_t number, int64_t *values);
/** Adds the loss of every PLI_LDA_LOOK-th word of (a part of) a document of so many tokens, from the first-th on. */
enum { PLI_LDA_LOOK = 32 };
void pli_lda_add_loss(const pli_topic_counts *c, const pli_document *d, int64_t tokens, int64_t first,
                      plait_step_sums *told);

/** sample.c: a clock. */
plait_status pli_lda_step(pli_run *run, const plait_batch *batch, plait_step_sums *told);

/** vocabulary.c: names for words that are numbers. put: into the model. Without --vocabulary they do nothing. */
plait_status pli_lda_vocabulary_check(const pli_run *run);
plait_status pli_lda_vocabulary_put(const pli_run *run, plait_model *model);

/** prior.c: adds a sampled document to `fitted`; takes a step when the epoch's sums are whole. */
void pli_prior_add(int32_t k, const double *alpha, const int32_t *in_doc, int64_t tokens, int64_t *fitted);
void pli_prior_step(int32_t k, const int64_t *sums, double *alpha);
double pli_prior_digamma_from(double x, int64_t n);

/* A fitted model. */
typedef struct pli_lda_model {
    int64_t        words;
    int32_t        k;
    const int64_t *count; /* [words, k], of the model's values */
    const double  *alpha; /* [k] */
    double         alpha_sum, beta;
    int32_t        particles; /* of the left-to-right estimator; 0: it is not wanted */
    float         *phi;   /* [words, k]: the probability of the word in the topic */
} pli_lda_model;

/** The log probability of a document of n tokens by `particles` particles, which depend on the document's number
 *  (left_to_right.c). stop: is looked at now and then; once it is set the result means nothing. NULL: there is none.
 *  Errors: false, no memory. */
bool pli_left_to_right(const pli_lda_model *m, int64_t n, const uint32_t *word, int32_t particles, uint64_t number,
                       const int *stop, double *log_out);

static inline bool pli_lda_stopped(const int *stop) { return stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED); }

plait_status pli_lda_open(plait_model *model, plait_error *err);
void         pli_lda_close(plait_model *model);
int64_t      pli_lda_width(const plait_model *model, plait_answer answer);
plait_status pli_lda_predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                             plait_error *err);
plait_status pli_lda_measure(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err);
int32_t      pli_lda_figures(const plait_model *model, const double *sums, plait_figure *figures);
plait_status pli_lda_inspect(const plait_model *model, pli_text *text, plait_error *err);

#endif
