/* Writes what a rank shows of its tables. See shown.h. */
#include "table/shown.h"

#include <stdio.h>
#include <string.h>

#include "table/copies/mirror.h"
#include "table/copies/replicas.h"
#include "table/state/snap.h"
#include "table/table.h"

enum { NAME_BYTES = 64, TOPOLOGY_BYTES = PLI_TOPOLOGY_TEXT, CONSISTENCY_BYTES = PLI_CONSISTENCY_TEXT };
_Static_assert(8 * (PLI_SHEET_WORDS - PLI_SHOWN_TEXTS) >= 2 * NAME_BYTES + TOPOLOGY_BYTES + CONSISTENCY_BYTES,
               "a row has room for its texts");

static uint64_t bytes_of_row(const pli_spec *spec) {
    int64_t bytes = 0;
    for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++) bytes += pli_state_row_bytes(spec, a);
    return (uint64_t)bytes;
}

/* group: "" for all workers. */
static void describe(const pli_spec *spec, const char *group, int32_t members, uint64_t word[PLI_SHEET_WORDS]) {
    char *text = (char *)&word[PLI_SHOWN_TEXTS];
    memset(word, 0, PLI_SHEET_WORDS * sizeof *word);
    word[PLI_SHOWN_TYPE] = (uint64_t)spec->type;
    word[PLI_SHOWN_MEMBERS] = (uint64_t)members;
    word[PLI_SHOWN_ROWS] = (uint64_t)spec->rows;
    word[PLI_SHOWN_COLS] = (uint64_t)spec->cols;
    word[PLI_SHOWN_ROW_BYTES] = bytes_of_row(spec);
    snprintf(text, NAME_BYTES, "%s", spec->name);
    snprintf(text + NAME_BYTES, NAME_BYTES, "%s", group);
    snprintf(text + 2 * NAME_BYTES, TOPOLOGY_BYTES, "%s", spec->topology.text);
    snprintf(text + 2 * NAME_BYTES + TOPOLOGY_BYTES, CONSISTENCY_BYTES, "%s", spec->consistency);
}

/* --- shards ------------------------------------------------------------------------------------------------------- */

/* Is it a replica on another rank than the shard's own? */
static bool is_second(const pli_server *server) { return server->replicas != NULL && server->replicas->place > 0; }

/* The rank whose shard it is; where shards move, the one that serves it, by the list of places. */
static int32_t rank_of(const pli_server *server) {
    if (pli_moves_are_on(&server->layout))
        return server->replicas->serves ? server->rank : server->replicas->moves.list.at[0] % server->layout.workers;
    return server->ranks != NULL ? server->ranks[server->home] : server->home;
}

/* Rows that are here. */
static uint64_t here(const pli_store *store) {
    return (uint64_t)(store->here < store->rows ? store->here : store->rows);
}

static void change(const pli_server *server, pli_server_table *table) {
    pli_sheet_set(table->shown, PLI_SHOWN_HELD, here(&table->shard.store));
    pli_sheet_set(table->shown, PLI_SHOWN_VERSION, pli_server_version(server, table) + 1);
    if (!is_second(server)) return;
    pli_sheet_set(table->shown, PLI_SHOWN_SERVES, server->replicas->serves);
    pli_sheet_set(table->shown, PLI_SHOWN_OF, (uint64_t)rank_of(server));
}

void pli_shown_shard(pli_server *server, pli_server_table *table) {
    uint64_t word[PLI_SHEET_WORDS];
    if (server->sheet == NULL) return;
    const pli_spec *spec = &table->shard.spec;
    describe(spec, server->group, server->layout.workers, word);
    word[PLI_SHOWN_KIND] = is_second(server) ? PLI_SHOWN_REPLICA : PLI_SHOWN_SHARD;
    word[PLI_SHOWN_OF] = (uint64_t)rank_of(server);
    word[PLI_SHOWN_SERVES] = !is_second(server) || server->replicas->serves;
    word[PLI_SHOWN_FIRST] = spec->rows > 0 ? (uint64_t)table->shard.store.first : 0;
    word[PLI_SHOWN_HELD] = here(&table->shard.store);
    word[PLI_SHOWN_VERSION] = (uint64_t)pli_server_version(server, table) + 1;
    table->shown = pli_sheet_add(server->sheet, word);
}

void pli_shown_change(pli_server *server) {
    for (int64_t i = 0; server->sheet != NULL && i < server->tables; i++)
        if (server->table[i] != NULL) change(server, server->table[i]);
}

void pli_shown_server_hide(pli_server *server) {
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL) pli_sheet_hide(server->table[i]->shown);
}

/* --- workers ------------------------------------------------------------------------------------------------------ */

/* How many rows of its own copy the worker has; shards on servers, and shared memory, are no copy. */
static int64_t held(const plait_table *table) {
    if (table->ops == &pli_served_ops) return 0;
    if (table->ops == &pli_hogwild_ops && pli_job_me(table->job) > 0) return 0; /* one memory for all: the first's */
    if (table->spec.rows == 0 && table->ops->copy != NULL) return table->ops->copy(table)->store.rows;
    return table->spec.rows;
}

void pli_shown_table(plait_table *table) {
    const plait_job *job = table->job;
    uint64_t         word[PLI_SHEET_WORDS];
    describe(&table->spec, job->group != NULL ? plait_group_name(job->group) : "", job->layout.workers, word);
    word[PLI_SHOWN_KIND] = PLI_SHOWN_WORKER;
    word[PLI_SHOWN_HELD] = (uint64_t)held(table);
    word[PLI_SHOWN_COPY] = table->ops != &pli_served_ops && table->ops != &pli_hogwild_ops;
    word[PLI_SHOWN_CLOCK] = (uint64_t)plait_job_clock_now(job) + 1;
    table->shown = pli_sheet_add(pli_comm_sheet(job->comm), word);
}

void pli_shown_clock(plait_job *job) {
    for (int64_t i = 0; i < job->tables; i++) {
        plait_table *table = job->table[i];
        pli_sheet_set(table->shown, PLI_SHOWN_CLOCK, plait_job_clock_now(job) + 1);
        if (table->spec.rows == 0 && table->ops->copy != NULL)
            pli_sheet_set(table->shown, PLI_SHOWN_HELD, held(table));
    }
}

void pli_shown_hide(plait_job *job) {
    for (int64_t i = 0; i < job->parts; i++) pli_shown_hide(job->part[i]);
    for (int64_t i = 0; i < job->tables; i++) pli_sheet_hide(job->table[i]->shown);
    pli_shown_server_hide(&job->server);
    pli_hosted_hide(&job->hosted);
}
