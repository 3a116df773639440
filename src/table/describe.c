/* plait_job_describe: reads what all ranks show of their tables (shown.h), and joins what a rank shows as a worker and
 * as a server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/shown.h"
#include "table/table.h"

typedef struct parts {
    plait_table_part *part; /* [n] */
    int64_t           n, capacity;
} parts;

static int64_t number(const uint64_t *word, int32_t at) { return (int64_t)word[at]; }

/* Copies a text that came from another rank: ended, and printable. */
static const char *take_text(const char *from, char *to, size_t bytes) {
    size_t n = 0;
    for (; n + 1 < bytes && from[n] != '\0'; n++) to[n] = (unsigned char)from[n] < ' ' ? '?' : from[n];
    to[n] = '\0';
    return from + bytes;
}

static plait_table_part read_part(const uint64_t *word, int32_t rank) {
    const char      *text = (const char *)&word[PLI_SHOWN_TEXTS];
    plait_table_part p = { .type = (plait_type)word[PLI_SHOWN_TYPE], .rank = rank,
                           .members = (int32_t)word[PLI_SHOWN_MEMBERS], .rows = number(word, PLI_SHOWN_ROWS),
                           .cols = number(word, PLI_SHOWN_COLS), .first = number(word, PLI_SHOWN_FIRST),
                           .held = number(word, PLI_SHOWN_HELD), .copy = word[PLI_SHOWN_COPY] != 0,
                           .version = number(word, PLI_SHOWN_VERSION) - 1, .clock = number(word, PLI_SHOWN_CLOCK) - 1,
                           .last_get = number(word, PLI_SHOWN_GET) - 1, .last_push = number(word, PLI_SHOWN_PUSH) - 1,
                           .replica_of = -1 };
    text = take_text(text, p.name, sizeof p.name);
    text = take_text(text, p.group, sizeof p.group);
    text = take_text(text, p.topology, sizeof p.topology);
    (void)take_text(text, p.consistency, sizeof p.consistency);
    if (word[PLI_SHOWN_KIND] == PLI_SHOWN_REPLICA) {
        p.replica_of = (int32_t)word[PLI_SHOWN_OF];
        p.serves = word[PLI_SHOWN_SERVES] != 0;
    }
    if (p.copy) p.version = p.clock;
    p.bytes = p.held * number(word, PLI_SHOWN_ROW_BYTES);
    return p;
}

/* The same table on the same rank: joins what the worker and the server say. */
static bool join(plait_table_part *into, const plait_table_part *more) {
    if (into->replica_of >= 0 || more->replica_of >= 0) return false; /* a part of its own */
    if (into->rank != more->rank || strcmp(into->name, more->name) != 0 || strcmp(into->group, more->group) != 0)
        return false;
    const plait_table_part worker = into->clock >= 0 ? *into : *more, shard = into->clock >= 0 ? *more : *into;
    *into = worker;
    if (worker.copy) return true; /* it reads its copy; the shard's rows are among them */
    into->version = shard.version;
    into->first = shard.first;
    into->held = shard.held;
    into->bytes = shard.bytes;
    return true;
}

static bool add(parts *to, const plait_table_part *part) {
    for (int64_t i = 0; i < to->n; i++)
        if (part->name[0] != '\0' && join(&to->part[i], part)) return true;
    if (!pli_grow((void **)&to->part, &to->capacity, to->n + 1, sizeof *to->part)) return false;
    to->part[to->n++] = *part;
    return true;
}

static bool add_rank(parts *to, const pli_sheet_read *read, int32_t rank) {
    const plait_table_part none = { .rank = rank, .version = -1, .clock = -1, .last_get = -1, .last_push = -1,
                                    .replica_of = -1 };
    bool                   done = read->heard || add(to, &none);
    for (int64_t i = 0; done && i < read->n; i++) {
        const uint64_t        *word = read->row + i * PLI_SHEET_WORDS;
        const plait_table_part part = read_part(word, rank);
        if (word[PLI_SHOWN_KIND] >= PLI_SHOWN_WORKER && word[PLI_SHOWN_KIND] <= PLI_SHOWN_REPLICA)
            done = add(to, &part);
    }
    return done;
}

static int in_order(const void *a, const void *b) {
    const plait_table_part *x = a, *y = b;
    const int               names = strcmp(x->name, y->name), groups = names != 0 ? names : strcmp(x->group, y->group);
    if (groups != 0) return groups;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->replica_of > y->replica_of) - (x->replica_of < y->replica_of);
}

plait_status plait_job_describe(const plait_comm *comm, uint64_t timeout_ns, int64_t *n_out,
                                plait_table_part **parts_out, plait_error *error_out) {
    plait_error     own;
    plait_error    *err = error_out != NULL ? error_out : &own;
    pli_sheet_read *reads;
    parts           all = { 0 };
    bool            done = true;
    PLI_TRY(PLI_GIVEN(err, comm));
    PLI_TRY(PLI_GIVEN(err, n_out));
    PLI_TRY(PLI_GIVEN(err, parts_out));
    PLI_TRY(pli_sheets_read(comm, timeout_ns, &reads, err));
    const int32_t size = plait_comm_size(comm);
    for (int32_t r = 0; done && r < size; r++) done = add_rank(&all, &reads[r], r);
    pli_sheets_free(&reads, size);
    if (!done) {
        pli_free(all.part);
        return pli_fail(err, PLAIT_ENOMEM, "no memory to describe tables");
    }
    if (all.n > 0) qsort(all.part, (size_t)all.n, sizeof *all.part, in_order);
    *n_out = all.n;
    *parts_out = all.part;
    return PLAIT_OK;
}
