/* A thread that writes. See writer.h. */
#include "learn/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct commit {
    char               dir[4096], folder[PLI_CHECKPOINT_FOLDER];
    char              *meta;
    void              *digests;
    const char *const *digest;
    int32_t            n, keep;
} commit;

/* Fields below the lock are both threads'; the rest is the worker's while it is busy, else the rank's. */
struct pli_writer {
    bool            by_thread;
    pthread_t       thread;
    pli_partfile   *part;
    pli_text        digest;
    plait_error     error; /* the first; code 0: none */
    commit          commit;
    pthread_mutex_t lock;
    pthread_cond_t  more, less;
    pli_msg        *queue, **queue_last;
    int64_t         behind; /* bytes in the queue, or in the thread's hands */
    bool            finishes, commits, ends;
};

/* --- the work ------------------------------------------------------------------------------------------------ */

static void fail(pli_writer *w, const plait_error *why) {
    if (w->error.code == 0) w->error = *why;
    pli_partfile_abandon(&w->part);
}

static void write_piece(pli_writer *w, const pli_msg *msg) {
    plait_error why = { .rank = -1 };
    if (w->part != NULL && pli_partfile_write(w->part, pli_msg_body(msg), msg->head.body_bytes, &why) < 0)
        fail(w, &why);
}

static void end_part(pli_writer *w) {
    plait_error why = { .rank = -1 };
    if (w->part == NULL) return;
    if (pli_partfile_end(&w->part, &w->digest, &why) >= 0 && w->digest.failed)
        pli_fail(&why, PLAIT_ENOMEM, "no memory for a checkpoint's digest");
    if (why.code < 0) fail(w, &why);
}

static void commit_all(pli_writer *w) {
    plait_error why = { .rank = -1 };
    commit     *c = &w->commit;
    if (pli_checkpoint_commit(c->dir, c->folder, c->meta, c->digest, c->n, &why) < 0 ||
        pli_checkpoint_prune(c->dir, c->keep, &why) < 0)
        fail(w, &why);
    pli_free(c->meta);
    pli_free((void *)c->digest);
    plait_comm_free(c->digests);
    c->meta = NULL;
    c->digest = NULL;
    c->digests = NULL;
}

static void *work(void *user) {
    pli_writer *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        pli_msg *msg = w->queue;
        if (msg == NULL && !w->finishes && !w->commits) {
            pthread_cond_wait(&w->more, &w->lock);
            continue;
        }
        const bool finishes = msg == NULL && w->finishes, commits = msg == NULL && !finishes;
        if (msg != NULL && (w->queue = msg->next) == NULL) w->queue_last = &w->queue;
        pthread_mutex_unlock(&w->lock);
        if (msg != NULL) write_piece(w, msg);
        if (finishes) end_part(w);
        if (commits) commit_all(w);
        const int64_t bytes = msg != NULL ? (int64_t)msg->head.body_bytes : 0;
        pli_msg_free(&msg);
        pthread_mutex_lock(&w->lock);
        w->behind -= bytes;
        if (finishes) w->finishes = false;
        if (commits) w->commits = false;
        if (w->queue == NULL && !w->finishes && !w->commits) pthread_cond_signal(&w->less);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------------------------ */

plait_status pli_writer_open(bool by_thread, pli_writer **writer_out, plait_error *err) {
    pli_writer *w = pli_calloc(1, sizeof *w);
    if (w == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a writer of checkpoints");
    w->by_thread = by_thread;
    w->queue_last = &w->queue;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    pthread_cond_init(&w->less, NULL);
    int errnum = by_thread ? pthread_create(&w->thread, NULL, work, w) : 0;
    if (errnum != 0) {
        w->by_thread = false;
        pli_writer_close(&w);
        return pli_fail_errno(err, errnum, "a thread that writes checkpoints cannot be started");
    }
    *writer_out = w;
    return PLAIT_OK;
}

void pli_writer_close(pli_writer **writer_ptr) {
    pli_writer *w = *writer_ptr;
    *writer_ptr = NULL;
    if (w == NULL) return;
    if (w->by_thread) {
        pthread_mutex_lock(&w->lock);
        w->ends = true;
        pthread_cond_signal(&w->more);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    pli_msg_free_list(&w->queue);
    pli_partfile_abandon(&w->part);
    pli_text_free(&w->digest);
    pli_free(w->commit.meta);
    pli_free((void *)w->commit.digest);
    plait_comm_free(w->commit.digests);
    pthread_cond_destroy(&w->more);
    pthread_cond_destroy(&w->less);
    pthread_mutex_destroy(&w->lock);
    pli_free(w);
}

/* --- what the rank asks for -------------------------------------------------------------------------------------- */

void pli_writer_begin(pli_writer *w, pli_partfile *part, const plait_error *why) {
    (void)pli_writer_is_done(w, true);
    pli_partfile_abandon(&w->part);
    pli_text_free(&w->digest);
    w->part = part;
    w->error = part == NULL ? *why : (plait_error){ .rank = -1 };
}

void pli_writer_put(pli_writer *w, pli_msg *bytes) {
    bytes->next = NULL;
    if (!w->by_thread) {
        write_piece(w, bytes);
        pli_msg_free(&bytes);
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->behind += (int64_t)bytes->head.body_bytes;
    *w->queue_last = bytes;
    w->queue_last = &bytes->next;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

int64_t pli_writer_behind(pli_writer *w) {
    pthread_mutex_lock(&w->lock);
    int64_t behind = w->behind;
    pthread_mutex_unlock(&w->lock);
    return behind;
}

static void ask(pli_writer *w, bool *what) {
    pthread_mutex_lock(&w->lock);
    *what = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

void pli_writer_finish(pli_writer *w) {
    if (w->by_thread)
        ask(w, &w->finishes);
    else
        end_part(w);
}

void pli_writer_commit(pli_writer *w, const char *dir, const char *folder, char *meta, void *digests,
                       const char *const *digest, int32_t n, int32_t keep) {
    w->commit = (commit){ .meta = meta, .digests = digests, .digest = digest, .n = n, .keep = keep };
    snprintf(w->commit.dir, sizeof w->commit.dir, "%s", dir);
    snprintf(w->commit.folder, sizeof w->commit.folder, "%s", folder);
    if (w->by_thread)
        ask(w, &w->commits);
    else
        commit_all(w);
}

bool pli_writer_is_done(pli_writer *w, bool wait) {
    pthread_mutex_lock(&w->lock);
    bool done;
    while (!(done = w->queue == NULL && w->behind == 0 && !w->finishes && !w->commits) && wait)
        pthread_cond_wait(&w->less, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return done;
}

plait_status pli_writer_status(pli_writer *w, plait_error *err) {
    if (w->error.code < 0) *err = w->error;
    return w->error.code;
}

const char *pli_writer_digest(const pli_writer *w) { return w->digest.data != NULL ? w->digest.data : ""; }
