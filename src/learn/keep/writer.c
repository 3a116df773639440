/* The writer's queue and its thread. See writer.h. */
#include "learn/keep/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"

typedef enum task { NONE, FOLDER, BEGIN, WRITE, FINISH, COMMIT, TASKS } task;

typedef struct commit {
    char        *meta;
    void        *digests; /* by plait_comm_free */
    const char **digest;  /* [n] in it          */
    int32_t      n, keep;
} commit;

/* Both threads use the fields below the lock, and hold it. The other fields belong to the thread that does a task, and
 * between tasks to the rank. */
struct pli_writer {
    bool            by_thread;
    pthread_t       thread;
    char           *dir, folder[PLI_CHECKPOINT_FOLDER];
    int64_t         clock;
    int32_t         number, parts;
    pli_part_plan   plan;
    pli_partfile   *part;
    pli_text        digest;
    commit          commit;
    pthread_mutex_t lock;
    pthread_cond_t  more, less;
    pli_msg        *queue, **queue_last;
    int64_t         behind;
    bool            asked[TASKS], busy, begun, ends; /* begun: the part's bytes may be written */
    plait_error     error;                           /* the first; code 0: none                */
};

/* --- plans ----------------------------------------------------------------------------------------------------- */

void pli_part_plan_add(pli_part_plan *plan, const char *prefix, const char *name, const char *type, int64_t first,
                       int64_t rows, int64_t cols, int64_t all) {
    plan->failed = plan->failed ||
                   !pli_grow((void **)&plan->tensor, &plan->capacity, plan->n + 1, sizeof *plan->tensor) ||
                   !pli_grow((void **)&plan->name, &plan->name_capacity, plan->n + 1, sizeof *plan->name);
    if (plan->failed) return;
    snprintf(plan->name[plan->n], sizeof plan->name[0], "%s%s%s", prefix, name[0] != '\0' ? "." : "", name);
    plan->tensor[plan->n++] = (pli_checkpoint_tensor){
        .type = type, .dims = cols > 0 ? 2 : 1, .shape = { rows, cols }, .first = first, .rows = all
    };
}

void pli_part_plan_free(pli_part_plan *plan) {
    pli_free(plan->tensor);
    pli_free(plan->name);
    *plan = (pli_part_plan){ 0 };
}

static void free_commit(commit *c) {
    pli_free(c->meta);
    pli_free((void *)c->digest);
    plait_comm_free(c->digests);
    *c = (commit){ 0 };
}

/* --- tasks: without the lock -------------------------------------------------------------------------------------- */

static plait_status begin_part(pli_writer *w, plait_error *err) {
    pli_part_plan *plan = &w->plan;
    plait_status status = plan->failed ? pli_fail(err, PLAIT_ENOMEM, "no memory for a checkpoint's tensors") : PLAIT_OK;
    for (int64_t i = 0; i < plan->n; i++) plan->tensor[i].name = plan->name[i];
    if (status >= 0)
        status = pli_partfile_begin(w->dir, w->folder, w->number, w->parts, plan->tensor, plan->n, &w->part, err);
    pli_part_plan_free(plan);
    return status;
}

static plait_status end_part(pli_writer *w, plait_error *err) {
    PLI_TRY(pli_partfile_end(&w->part, &w->digest, err));
    return w->digest.failed ? pli_fail(err, PLAIT_ENOMEM, "no memory for a checkpoint's digest") : PLAIT_OK;
}

/* The checkpoints to prune are listed before the commit: a rank that was taken for dead and wakes up may run this
 * while another rank writes a new checkpoint. */
static plait_status commit_all(pli_writer *w, plait_error *err) {
    const commit       *c = &w->commit;
    pli_checkpoint_list before = { 0 };
    plait_status        status = pli_checkpoint_list_read(w->dir, &before, err);
    if (status >= 0) status = pli_checkpoint_commit(w->dir, w->folder, c->meta, c->digest, c->n, err);
    if (status >= 0) status = pli_checkpoint_prune(w->dir, c->keep, &before, err);
    pli_checkpoint_list_free(&before);
    free_commit(&w->commit);
    return status;
}

static plait_status do_task(pli_writer *w, task what, const pli_msg *msg, plait_error *err) {
    switch (what) {
    case FOLDER: return pli_checkpoint_begin(w->dir, w->clock, w->folder, err);
    case BEGIN: return begin_part(w, err);
    case WRITE: return pli_partfile_write(w->part, pli_msg_body(msg), msg->head.body_bytes, err);
    case FINISH: return end_part(w, err);
    case COMMIT: return commit_all(w, err);
    case NONE:
    case TASKS: break;
    }
    return PLAIT_OK;
}

/* --- which task is next; with the lock held ----------------------------------------------------------------------- */

static task next_task(const pli_writer *w) {
    if (w->asked[FOLDER]) return FOLDER;
    if (w->asked[BEGIN]) return BEGIN;
    if (w->queue != NULL && (w->begun || w->error.code < 0)) return WRITE; /* after an error run_one drops it */
    if (w->asked[FINISH] && (w->begun || w->error.code < 0)) return FINISH;
    return w->asked[COMMIT] ? COMMIT : NONE;
}

static void run_one(pli_writer *w, task what) {
    pli_msg    *msg = what == WRITE ? w->queue : NULL;
    plait_error why = { .rank = -1 };
    const bool  failed = w->error.code < 0;
    if (msg != NULL && (w->queue = msg->next) == NULL) w->queue_last = &w->queue;
    w->busy = true;
    pthread_mutex_unlock(&w->lock);
    if (!failed && do_task(w, what, msg, &why) < 0) pli_partfile_abandon(&w->part);
    const int64_t bytes = msg != NULL ? (int64_t)msg->head.body_bytes : 0;
    pli_msg_free(&msg);
    pthread_mutex_lock(&w->lock);
    w->busy = false;
    w->asked[what] = false;
    w->behind -= bytes;
    if (what == BEGIN) w->begun = true;
    if (what == FINISH) w->begun = false;
    if (why.code < 0) w->error = why;
}

static void *work(void *user) {
    pli_writer *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        const task what = next_task(w);
        if (what != NONE) {
            run_one(w, what);
            continue;
        }
        pthread_cond_signal(&w->less);
        pthread_cond_wait(&w->more, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Something was asked for: wakes the thread, or does the work itself. Called with the lock held; releases it. */
static void go(pli_writer *w) {
    task what;
    while (!w->by_thread && (what = next_task(w)) != NONE) run_one(w, what);
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

static void ask(pli_writer *w, task what) {
    pthread_mutex_lock(&w->lock);
    w->asked[what] = true;
    go(w);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

plait_status pli_writer_open(const char *dir, bool by_thread, pli_writer **writer_out, plait_error *err) {
    pli_writer *w = pli_calloc(1, sizeof *w);
    if (w == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a writer of checkpoints");
    w->queue_last = &w->queue;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    pthread_cond_init(&w->less, NULL);
    w->dir = pli_strdup(dir);
    int errnum = by_thread && w->dir != NULL ? pthread_create(&w->thread, NULL, work, w) : 0;
    w->by_thread = by_thread && w->dir != NULL && errnum == 0;
    if (w->dir == NULL || errnum != 0) {
        plait_status status = w->dir == NULL
                                  ? pli_fail(err, PLAIT_ENOMEM, "no memory for a writer of checkpoints")
                                  : pli_fail_errno(err, errnum, "a thread that writes checkpoints cannot be started");
        pli_writer_close(&w);
        return status;
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
    pli_part_plan_free(&w->plan);
    free_commit(&w->commit);
    pthread_cond_destroy(&w->more);
    pthread_cond_destroy(&w->less);
    pthread_mutex_destroy(&w->lock);
    pli_free(w->dir);
    pli_free(w);
}

/* --- what the rank asks for --------------------------------------------------------------------------------------- */

void pli_writer_start(pli_writer *w) {
    (void)pli_writer_is_done(w, true);
    pli_partfile_abandon(&w->part);
    pli_text_free(&w->digest);
    w->begun = false;
    w->error = (plait_error){ .rank = -1 };
}

void pli_writer_drop(pli_writer *w) {
    pthread_mutex_lock(&w->lock);
    if (w->error.code >= 0) w->error.code = PLAIT_EINTERRUPTED; /* after an error, tasks are passed over */
    go(w);
    (void)pli_writer_is_done(w, true);
    pli_partfile_abandon(&w->part);
    pli_part_plan_free(&w->plan);
    free_commit(&w->commit);
}

void pli_writer_make_folder(pli_writer *w, int64_t clock) {
    w->clock = clock;
    w->folder[0] = '\0';
    ask(w, FOLDER);
}

bool pli_writer_folder_is_made(pli_writer *w) {
    pthread_mutex_lock(&w->lock);
    bool made = !w->asked[FOLDER];
    pthread_mutex_unlock(&w->lock);
    return made;
}

const char *pli_writer_folder(const pli_writer *w) { return w->folder; }

void pli_writer_put(pli_writer *w, pli_msg *bytes) {
    bytes->next = NULL;
    pthread_mutex_lock(&w->lock);
    w->behind += (int64_t)bytes->head.body_bytes;
    *w->queue_last = bytes;
    w->queue_last = &bytes->next;
    go(w);
}

int64_t pli_writer_behind(pli_writer *w) {
    pthread_mutex_lock(&w->lock);
    int64_t behind = w->behind;
    pthread_mutex_unlock(&w->lock);
    return behind;
}

void pli_writer_begin(pli_writer *w, const char *folder, int32_t part, int32_t parts, pli_part_plan *plan) {
    snprintf(w->folder, sizeof w->folder, "%s", folder);
    w->number = part;
    w->parts = parts;
    w->plan = *plan;
    *plan = (pli_part_plan){ 0 };
    ask(w, BEGIN);
}

void pli_writer_finish(pli_writer *w) { ask(w, FINISH); }

/* Gathers the digests of all workers into c->digests, one after the other; a missing worker adds none. */
static plait_status gather(plait_comm *comm, const char *mine, commit *c, plait_error *err) {
    const int32_t workers = plait_comm_workers(comm);
    size_t       *sizes = pli_array((size_t)workers, sizeof *sizes);
    c->digest = pli_array((size_t)workers, sizeof *c->digest);
    plait_status status = sizes != NULL && c->digest != NULL
                              ? plait_comm_allgatherv(comm, mine, strlen(mine) + 1, sizes, &c->digests)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for a checkpoint's digests");
    const char  *at = c->digests;
    for (int32_t w = 0; status >= 0 && w < workers; at += sizes[w++])
        if (sizes[w] > 0) c->digest[c->n++] = at;
    pli_free(sizes);
    return status;
}

plait_status pli_writer_commit(pli_writer *w, plait_comm *comm, int32_t absent, char **meta, int32_t keep,
                               bool *whole_out, plait_error *err) {
    commit       all = { .keep = keep };
    plait_status status = gather(comm, w->digest.data != NULL ? w->digest.data : "", &all, err);
    *whole_out = pli_comm_absent(comm) == absent;
    if (status < 0 || !*whole_out || !pli_comm_leads(comm)) {
        free_commit(&all);
        return status;
    }
    all.meta = *meta;
    *meta = NULL;
    w->commit = all;
    ask(w, COMMIT);
    return PLAIT_OK;
}

bool pli_writer_is_done(pli_writer *w, bool wait) {
    bool done;
    pthread_mutex_lock(&w->lock);
    while (!(done = !w->busy && next_task(w) == NONE) && wait && w->by_thread) pthread_cond_wait(&w->less, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return done;
}

plait_status pli_writer_status(pli_writer *w, plait_error *err) {
    pthread_mutex_lock(&w->lock);
    plait_status status = w->error.code;
    if (status < 0 && err != NULL) *err = w->error;
    pthread_mutex_unlock(&w->lock);
    return status;
}
