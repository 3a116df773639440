/* Words rotate (--words rotate). Words are cut into blocks that go from worker to worker (plait/schedule.h, order
 * rotate); documents and their tokens' topics stay. In a step a worker draws the tokens of one block's words in all of
 * its documents, and nobody else has rows of that block: so the counts of a word are never stale, however many workers
 * there are. After as many steps as there are blocks each token was drawn once. Only the totals of the topics, one row,
 * lack what others draw in the same step.
 *
 *     step t      worker 0: words 0 .. 99     worker 1: words 100 .. 199
 *     step t + 1  worker 0: words 100 .. 199  worker 1: words 0 .. 99
 *
 * An epoch is one call of step, as is a pass of the loop: all of its clocks but the last are ended here. So checkpoints
 * are cut between epochs, and resume with any number of workers.
 *
 * With two replicas a worker may die. A step on a block of words is of the documents that were one worker's at first,
 * its *home's*: a function of the step, these documents, their tokens' topics, and the counts of the clock's beginning.
 * Topics lie in a table as well (copied.c), and are pushed in each step. So an heir repeats the whole step of a dead
 * home, and later has its turns beside its own, each by itself, with the totals of the clock's beginning. All clocks of
 * a step are ended here then, and the loop's own is empty.
 *
 * Papers: Lee, Kim, Zheng, Ho, Gibson and Xing, "On Model Parallelization and Scheduling Strategies for Distributed
 * Machine Learning", NIPS 2014; Zheng, Kim, Ho and Xing, "Model-Parallel Inference for Big Topic Models", 2014
 * (arXiv 1411.2305); Yu, Hsieh, Yun, Vishwanathan and Dhillon, "A Scalable Asynchronous Distributed Algorithm for Topic
 * Modeling", WWW 2015, whose words travel one by one. */
#include <string.h>

#include "learn/keep/row_values.h"
#include "learn/solve/inherit.h"
#include "learn/solve/loop.h"
#include "learn/solve/rotation.h"
#include "learn/topics/topics.h"
#include "sched/sched.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

static plait_status refuse(const pli_run *run, const char *what, const char *why, const char *nearest) {
    return pli_fail(run->err, PLAIT_EREFUSED, "%s with model %s and --words rotate is refused: %s; nearest is %s", what,
                    run->learner->name, why, nearest);
}

plait_status pli_lda_rotate_check(pli_run *run) {
    const plait_train_opts *o = run->opts;
    const char             *sampler = plait_training_name(run, "sampler");
    if (strcmp(plait_training_name(run, "words"), "rotate") != 0) return PLAIT_OK;
    run->ways |= PLAIT_LEARNER_PASSES;
    if (o->exact)
        return refuse(run, "--reduce exact", "which worker meets a word first depends on their number", "--words read");
    if (o->batch > 0)
        return refuse(run, "--batch", "a clock has all documents and a block of the words", "--word-blocks N");
    if (o->slots > 0)
        return refuse(run, "--workers MIN:MAX", "an epoch of so many steps is one clock of the plan", "--words read");
    if (run->balanced)
        return refuse(run, "--balance dynamic", "a step has one block of words for each worker", "--balance static");
    if (strcmp(sampler, "mh") == 0)
        return refuse(run, "--sampler mh", "it draws from a document's other tokens, of which a step has a part",
                      "--sampler scan");
    return PLAIT_OK;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* So many that a block rests long enough for a stale read to miss nothing, if reads are bounded. */
plait_status pli_lda_rotate_settle(pli_run *run) {
    pli_lda                 *m = pli_lda_of(run);
    const int64_t            asked = plait_training_count(run, "word-blocks"), workers = pli_run_holders(run);
    const pli_travel         travel = pli_run_travel(run, "words");
    const pli_topology_kind *kind = travel.topology != NULL ? pli_topology_find(travel.topology) : NULL;
    if (strcmp(plait_training_name(run, "words"), "rotate") != 0) {
        pli_run_note_unused(run, "word-blocks", "without --words rotate");
        return PLAIT_OK;
    }
    int64_t late = 0;
    if (kind != NULL && travel.consistency != NULL)
        late = pli_rotation_staleness(kind, travel.consistency);
    m->blocks = asked > 0 ? asked : late < PLI_ROTATION_MOST ? workers * (late + 1) : PLI_ROTATION_MOST;
    pli_run_took(run, "word-blocks", m->blocks);
    if (m->blocks >= workers && m->blocks <= m->words && m->blocks <= PLI_ROTATION_MOST) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EINVAL,
                    "--words rotate: %lld blocks of %lld words for %lld workers: expected one for each worker at "
                    "least, and at most as many as words, and %d; take fewer workers, a tighter consistency or "
                    "--word-blocks N", (long long)m->blocks, (long long)m->words, (long long)workers,
                    (int)PLI_ROTATION_MOST);
}

/* Each block has about as many tokens; count [words, topics] of all workers. */
static void cut(pli_lda *m, const int64_t *count) {
    int64_t w = 0, sum = 0;
    for (int64_t b = 0; b < m->blocks; b++) {
        const int64_t until = m->tokens / m->blocks * (b + 1) + m->tokens % m->blocks * (b + 1) / m->blocks;
        m->cut[b] = w;
        for (; w < m->words && sum < until; w++)
            for (int32_t k = 0; k < m->k; k++) sum += count[w * m->k + k];
    }
    m->cut[m->blocks] = m->words;
}

/* The words of the block: all are written. */
static int64_t touches(void *user, int64_t block, int64_t room, plait_touch *touch) {
    const pli_lda *m = pli_lda_of(user);
    const int64_t  first = m->cut[block], n = m->cut[block + 1] - first;
    for (int64_t i = 0; i < n && i < room; i++) touch[i] = (plait_touch){ .writes = 1, .key = (uint64_t)(first + i) };
    return n;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* A document in a step: its words from `from` to before `to`. last: the step is the epoch's last. */
typedef struct drawing {
    pli_lda         *m;
    plait_step_sums *told;
    pli_random       random;
    uint64_t         from, to;
    int64_t          look; /* the first word that the loss looks at */
    bool             last;
} drawing;

/* The words of the block stand together, since a row's columns increase; if they do not, in some places. */
static void draw_words(drawing *g, const pli_document *d) {
    pli_topic_counts *c = &g->m->counts;
    bool              entered = g->last && g->m->fits;
    if (entered) pli_topic_counts_enter(c, d);
    for (int64_t e = 0, at = 0; e < d->n;) {
        pli_document part = { .word = d->word + e, .count = d->count != NULL ? d->count + e : NULL,
                              .topic = d->topic + at };
        if (d->word[e] < g->from || d->word[e] >= g->to) {
            at += pli_document_count(d, e++);
            continue;
        }
        for (; e < d->n && d->word[e] >= g->from && d->word[e] < g->to; e++, part.n++)
            part.tokens += pli_document_count(d, e);
        at += part.tokens;
        if (!entered) pli_topic_counts_enter(c, d);
        entered = true;
        g->m->scan(c, &part, &g->random);
        pli_lda_add_loss(c, &part, d->tokens, g->look, g->told);
    }
    if (g->last && g->m->fits) pli_prior_add(g->m->k, g->m->alpha, c->in_doc, d->tokens, g->m->fitted);
}

/* All documents, by the block's words. */
static plait_status draw_block(pli_run *run, int64_t block, bool last) {
    pli_lda         *m = pli_lda_of(run);
    const pli_batch *batch = m->batch;
    drawing          g = { .m = m, .told = m->told, .last = last, .from = (uint64_t)m->cut[block],
                           .to = (uint64_t)m->cut[block + 1] };
    int64_t          first = 0;
    for (int32_t p = 0; p < batch->parts; first += batch->part[p++].rows) {
        const pli_part *part = &batch->part[p];
        if (m->token != NULL && part->rows > 0) PLI_TRY(pli_lda_copies_read(run, part->block->number));
        for (int64_t i = 0; i < part->rows; i++) {
            const int64_t at = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
            const int64_t number = part->block->first_row + at;
            plait_row     row;
            pli_block_row(part->block, at, &row);
            int64_t *values = plait_training_row_values(run, (const plait_batch *)batch, first + i);
            if (values == NULL) return pli_fail(run->err, PLAIT_EINVAL, "lda: a row has no values");
            const pli_document d = pli_lda_hold(run, &row, number, values);
            if (d.tokens == 0) continue;
            g.look = (number + run->clocks_done) % PLI_LDA_LOOK;
            g.random = pli_random_at(run->opts->seed, PLI_RANDOM_TOPICS, (uint64_t)run->clocks_done + 1,
                                     (uint64_t)number);
            draw_words(&g, &d);
        }
        if (m->token != NULL && part->rows > 0) PLI_TRY(pli_lda_copies_push(run, part->block->number));
    }
    return PLAIT_OK;
}

/* The documents of the worker that a turn with the block belongs to: with two replicas it may be a dead one's. */
static plait_status take_documents(pli_run *run, const plait_turn *turn, int64_t block) {
    pli_lda *m = pli_lda_of(run);
    if (m->token == NULL) return PLAIT_OK;
    const int32_t home = plait_schedule_owner(m->blocks, pli_run_holders(run), turn->step, block);
    if (m->heir.run == NULL) PLI_TRY(pli_heir_begin(&m->heir, run, run->loop->batches));
    PLI_TRY(pli_heir_batch_of(&m->heir, home, 0, 0, &m->of_home));
    PLI_TRY(pli_row_values_hold(run, &m->of_home));
    m->batch = &m->of_home;
    return PLAIT_OK;
}

static plait_status push(void *user, const plait_turn *turn) {
    pli_run *run = user;
    pli_lda *m = pli_lda_of(run);
    for (int64_t i = 0; i < turn->n; i++) {
        const int64_t first = m->cut[turn->variable[i]];
        PLI_TRY(take_documents(run, turn, turn->variable[i]));
        m->n = m->cut[turn->variable[i] + 1] - first;
        for (int64_t w = 0; w < m->n; w++) m->key[w] = (uint64_t)(first + w);
        PLI_TRY(pli_lda_read_counts(run));
        pli_lda_clear_changes(m);
        pli_run_charge(run, m->batch, (int64_t)m->k / m->blocks + 1, m->n * m->k);
        PLI_TRY(draw_block(run, turn->variable[i], m->step + 1 == m->blocks));
        pli_lda_take_changes(m, false);
        PLI_TRY(pli_lda_push_changes(run));
    }
    return PLAIT_OK;
}

plait_status pli_lda_rotate_step(pli_run *run, const pli_batch *batch, plait_step_sums *told) {
    pli_lda *m = pli_lda_of(run);
    const bool copied = m->token != NULL;
    if (copied && m->epochs == run->epochs_done + 1) return PLAIT_OK; /* others died in the loop's clock: it is empty */
    m->epochs = run->epochs_done + 1;
    m->batch = batch;
    m->told = told;
    for (m->step = 0; m->step + !copied < m->blocks; m->step++) {
        PLI_TRY(plait_schedule_step(m->schedule));
        run->clocks_done++;
        pli_run_tell_lost(run);
    }
    if (!copied) PLI_TRY(pli_schedule_begin_step(m->schedule));
    if (!copied) PLI_TRY(pli_schedule_end_step(m->schedule)); /* the loop ends the clock */
    told->rows = (double)batch->rows;
    return PLAIT_OK;
}

plait_status pli_lda_rotate_begin(pli_run *run, const int64_t *count) {
    pli_lda *m = pli_lda_of(run);
    if (m->blocks == 0) return PLAIT_OK;
    m->cut = pli_array((size_t)m->blocks + 1, sizeof *m->cut);
    if (m->cut == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for blocks of words");
    cut(m, count);
    return pli_rotation_make(run, "words", m->blocks, push, touches, &m->schedule);
}

void pli_lda_rotate_end(pli_lda *m) {
    plait_schedule_destroy(&m->schedule);
    pli_heir_end(&m->heir);
    pli_free(m->cut);
}
