/* over_mpi.c - the oracle over processes: all play the same seeds, one after the other, in one launch. After a
 * program each has the diary of its own worker; a second run of plait_comm_run brings them together, and rank 0
 * judges. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

/* What every process needs to know of the others before a program, and of their diaries after it. */
typedef struct meeting {
    const program *p;
    diary         *diaries;
    int32_t        ranks, me;
    int64_t        reads;
} meeting;

static plait_status count_ranks(plait_comm *comm, void *user) {
    meeting *m = user;
    m->ranks = plait_comm_size(comm);
    m->me = plait_comm_rank(comm);
    return PLAIT_OK;
}

/* A diary as bytes: how many words, the calls' records, the words. */
static void *pack(const program *p, const diary *d, int32_t worker, size_t *bytes_out) {
    const size_t records = worker < p->workers ? (size_t)p->n_calls[worker] * sizeof(record) : 0;
    *bytes_out = sizeof d->n_words + records + d->n_words * sizeof *d->words;
    unsigned char *bytes = malloc(*bytes_out);
    if (bytes == NULL) return NULL;
    memcpy(bytes, &d->n_words, sizeof d->n_words);
    memcpy(bytes + sizeof d->n_words, d->calls, records);
    if (d->n_words > 0) memcpy(bytes + sizeof d->n_words + records, d->words, d->n_words * sizeof *d->words);
    return bytes;
}

static bool unpack(const program *p, diary *d, int32_t worker, const unsigned char *bytes) {
    const size_t records = (size_t)p->n_calls[worker] * sizeof(record);
    memcpy(&d->n_words, bytes, sizeof d->n_words);
    memcpy(d->calls, bytes + sizeof d->n_words, records);
    free(d->words);
    d->words = malloc(d->n_words * sizeof *d->words + 1);
    if (d->words == NULL) return false;
    memcpy(d->words, bytes + sizeof d->n_words + records, d->n_words * sizeof *d->words);
    return true;
}

static plait_status gather(plait_comm *comm, void *user) {
    meeting      *m = user;
    const int32_t me = plait_comm_rank(comm);
    const int32_t mine = me < m->p->workers ? me : 0;
    size_t        bytes, *sizes = calloc((size_t)m->ranks, sizeof *sizes);
    void         *packed = pack(m->p, &m->diaries[mine], me, &bytes), *all = NULL;
    plait_status  status = PLAIT_ENOMEM;
    if (sizes != NULL && packed != NULL) status = plait_comm_allgatherv(comm, packed, bytes, sizes, &all);
    const unsigned char *at = all;
    for (int32_t v = 0; v < m->p->workers && status >= 0; v++) {
        if (!unpack(m->p, &m->diaries[v], v, at)) status = PLAIT_ENOMEM;
        at += sizes[v];
    }
    plait_comm_free(all);
    free(packed);
    free(sizes);
    return status;
}

static plait_status over_mpi(plait_body_fn *body, meeting *m, plait_error *e) {
    plait_comm_opts o;
    plait_comm_opts_init(&o);
    o.transport = "mpi";
    return plait_comm_run(&o, body, m, e);
}

/* 1: kept; 0: a promise was broken, and rank 0 has said it; -1: a call failed, and nothing more can be played. */
static int play_together(meeting *m, const char *how) {
    diary      *diaries = calloc(WORKERS, sizeof *diaries);
    plait_error e = { .rank = -1 };
    char        why[WHY_BYTES + 600];
    int         kept = 1;
    if (diaries == NULL) return -1;
    m->diaries = diaries;
    plait_status status = play(m->p, diaries, NULL, &e);
    if (status < 0) {
        say_failed(m->p, diaries, &e, why, sizeof why);
        tell(m->p, why, how);
        kept = -1;
    } else if ((status = over_mpi(gather, m, &e)) < 0) {
        printf("the diaries were not gathered: %s\n", e.text);
        kept = -1;
    } else if (m->me == 0 && !judge(m->p, diaries, &m->reads, why)) {
        tell(m->p, why, how);
        kept = 0;
    }
    for (int32_t v = 0; v < WORKERS; v++) free(diaries[v].words);
    free(diaries);
    return kept;
}

int over_processes(const char *program_name, int64_t some) {
    meeting     m = { 0 };
    plait_error e;
    char        how[512];
    int64_t     failed = 0, ran = 0;
    if (over_mpi(count_ranks, &m, &e) < 0) {
        printf("%s\n", e.text);
        return 1;
    }
    snprintf(how, sizeof how, "mpirun -n %d %s mpi", m.ranks, program_name);
    const int64_t from = number("PLAIT_SEED", 1 + 1000 * m.ranks);
    const int64_t n = number("PLAIT_PROGRAMS", getenv("PLAIT_SEED") != NULL ? 1 : some);
    for (int kept = 1; ran < n && kept >= 0; ran++) {
        program *p = draw_program((uint64_t)(from + ran), OVER_MPI, m.ranks);
        m.p = p;
        kept = play_together(&m, how);
        failed += kept <= 0;
        program_free(p);
    }
    if (m.me == 0)
        printf("%" PRId64 " programs over %d processes, %" PRId64 " values judged: %" PRId64 " broke a promise\n", ran,
               m.ranks, m.reads, failed);
    return failed > 0;
}
