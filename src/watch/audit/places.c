/* On which ranks the replicas of a server's shards lay (table/copies/replicas.h), one after the other, and which of
 * them counts.
 *
 * The places of a server's shards are a chain of ranks that follows from the job alone. At the beginning the first two
 * (three, if shards have three replicas) have a replica, and each takes the log of the one before it. The one at place
 * 0 serves until a later one says that it does (SERVE): then all at places before are dead. The serving replica, and of
 * three also another, may hand its state over to a new one (HAND), which says when it begins with that (COPY): the new
 * one's history is its source's up to there, and goes on with its own. A replica may be made more than once, and then
 * the last time counts. The replica that counts is the one that served last. (A rank that was frozen, and so was taken
 * for dead, may say when it wakes that it serves, since it has not heard of the others. They end well, and it does
 * not.)
 *
 * Where shards move (table/copies/moves.h) places have no end, place p is on rank p % workers, and a replica that has
 * made way says so (OUT): it is not dead, and counts no more, however well its rank ends.
 *
 * Holders are opened for replicas that there were, not for places at which there might have been one: a job of a
 * thousand servers has sixty-four thousand places. */
#include <string.h>

#include "watch/audit/model.h"

/* --- the chain ---------------------------------------------------------------------------------------------------- */

/* The chain of places: the server's own rank, the next server's, the spares', the other servers'. */
int32_t audit_rank_of(const pli_audit *audit, int32_t home, int32_t place) {
    const pli_event_job *job = &audit->job;
    if (job->homes > 0) return place % job->workers;
    const int32_t        near = job->servers < audit_first_places(audit) ? job->servers : audit_first_places(audit);
    if (place < near) return job->first_server + (home + place) % job->servers;
    if (place - near < job->spares) return audit->ranked - job->spares + place - near;
    return job->first_server + (home + place - job->spares) % job->servers;
}

int32_t audit_first_place(const pli_audit *audit, int32_t home, int32_t i) {
    const pli_event_job *job = &audit->job;
    if (job->homes == 0) return i < audit->places && i < audit_first_places(audit) ? i : -1;
    if (i >= job->replicas || i >= job->homes) return -1;
    const int32_t before = i == 0 ? job->workers - 1 : audit_first_place(audit, home, i - 1);
    const int32_t own = home % job->workers;
    const int32_t first = own < job->homes ? own : (home / job->workers + own) % job->homes;
    const int32_t rank = (first + i) % job->homes;
    return before + 1 + (rank - (before + 1) % job->workers + job->workers) % job->workers;
}

int32_t audit_is_first(const pli_audit *audit, int32_t home, int32_t place) {
    for (int32_t i = 0, at; (at = audit_first_place(audit, home, i)) >= 0; i++)
        if (at == place) return i;
    return -1;
}

const char *audit_name_replica(const pli_audit *audit, const audit_server *replica, char text[48]) {
    if (replica->place == 0)
        snprintf(text, 48, "rank %d", audit_rank_at(audit, replica->rank));
    else
        snprintf(text, 48, "rank %d (place %d)", audit_rank_at(audit, replica->rank), replica->place);
    return text;
}

/* --- first pass --------------------------------------------------------------------------------------------------- */

static plait_status contradicts(const pli_audit *audit, const pli_event *event, const char *what, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT,
                    "the event log contradicts itself: the replica of server %d's shards at place %d, rank %d, %s",
                    event->home, event->place, audit_rank_at(audit, event->rank), what);
}

plait_status audit_replica_of(pli_audit *audit, const pli_event *event, audit_server **copy_out, plait_error *err) {
    if (event->home < 0 || event->home >= audit->job.servers || event->place >= audit->places ||
        audit_rank_of(audit, event->home, event->place) != event->rank)
        return contradicts(audit, event, "is none of the job", err);
    audit_server *replica = *copy_out = audit_replica_at(audit, event->home, event->place);
    if (replica != NULL) return PLAIT_OK;
    audit_home *home = &audit->home[event->home];
    if (!pli_grow((void **)&home->replica, &home->capacity, home->n + 1, sizeof *home->replica))
        return audit_no_memory(err);
    const int32_t first = audit_is_first(audit, event->home, event->place);
    int64_t       at = home->n++;
    for (; at > 0 && home->replica[at - 1].place > event->place; at--) home->replica[at] = home->replica[at - 1];
    home->replica[at] = (audit_server){ .stream = -1,
                                     .rank = event->rank,
                                     .home = event->home,
                                     .place = event->place,
                                     .source = first > 0 ? audit_first_place(audit, event->home, first - 1) : -1 };
    *copy_out = &home->replica[at];
    return PLAIT_OK;
}

static audit_hand *hand_of(const audit_home *home, int32_t from, int32_t to) {
    for (int64_t i = 0; i < home->hands; i++)
        if (home->hand[i].from == from && home->hand[i].to == to) return &home->hand[i];
    return NULL;
}

/* Is the other end of HAND and COPY where the chain of places says? */
static bool names_other(const pli_audit *audit, const pli_event *event) {
    const bool later = event->kind == PLI_EVENT_HAND;
    return event->whom < audit->places && (later ? event->whom > event->place : event->whom < event->place) &&
           event->peer == audit_rank_of(audit, event->home, event->whom);
}

static plait_status load_hand(pli_audit *audit, audit_server *replica, const pli_event *event, plait_error *err) {
    audit_home *home = &audit->home[replica->home];
    audit_hand *hand = hand_of(home, event->place, event->whom);
    if (!names_other(audit, event)) return contradicts(audit, event, "handed its state to nobody", err);
    if (replica->place > 0 && !replica->served && audit->job.replicas < 3 && audit->job.homes == 0)
        return contradicts(audit, event, "handed over what it did not serve", err);
    if (hand == NULL) {
        if (!pli_grow((void **)&home->hand, &home->hands_capacity, home->hands + 1, sizeof *home->hand))
            return audit_no_memory(err);
        hand = &home->hand[home->hands++];
        *hand = (audit_hand){ .from = event->place, .to = event->whom };
    }
    hand->due = ++hand->n;
    hand->hands = ++replica->hands;
    return PLAIT_OK;
}

static plait_status load_gone(const pli_audit *audit, audit_server *replica, const pli_event *event, plait_error *err) {
    if (event->peer >= audit->job.workers) return PLAIT_OK; /* history.c says so */
    if (!pli_grow((void **)&replica->gone, &replica->gone_capacity, replica->n_gone + 1, sizeof *replica->gone))
        return audit_no_memory(err);
    replica->gone[replica->n_gone++] = (struct audit_gone){ .worker = event->peer, .hands = replica->hands };
    return PLAIT_OK;
}

/* The server's log says who owns a shard, even if no worker has sent anything there. */
static plait_status load_shard(pli_audit *audit, const pli_event *event, int32_t t, int32_t s, plait_error *err) {
    audit_table *table = audit_table_of(audit, t);
    if (table == NULL || s < 0 || s >= table->shards)
        return contradicts(audit, event, "applied a part of nothing", err);
    audit_shard *shard = &table->shard[s];
    if (shard->home < 0) shard->home = event->home;
    return shard->home == event->home ? PLAIT_OK : contradicts(audit, event, "applied a part of another's shard", err);
}

static plait_status load_call(pli_audit *audit, const pli_event *event, plait_error *err) {
    const pli_event_call *call = event->info.call;
    for (int32_t t = 0; t < call->tables; t++)
        PLI_TRY(load_shard(audit, event, call->table[t], call->ran[0].shard, err));
    return PLAIT_OK;
}

plait_status audit_load_replica(pli_audit *audit, int32_t stream, const pli_event *event, plait_error *err) {
    audit_server *replica;
    PLI_TRY(audit_replica_of(audit, event, &replica, err));
    replica->stream = stream;
    const int32_t first = audit_is_first(audit, event->home, event->place);
    const bool    begun = first >= 0 || replica->copied > 0;
    switch (event->kind) {
    case PLI_EVENT_APPLY:
    case PLI_EVENT_DROP:
        if (!begun) return contradicts(audit, event, "applied updates before it had begun", err);
        return load_shard(audit, event, event->table, event->shard, err);
    case PLI_EVENT_CALL:
        return begun ? load_call(audit, event, err) : contradicts(audit, event, "ran a call before it had begun", err);
    case PLI_EVENT_TICK:
        return begun ? PLAIT_OK : contradicts(audit, event, "took the end of a clock before it had begun", err);
    case PLI_EVENT_GONE: return load_gone(audit, replica, event, err);
    case PLI_EVENT_DONE: replica->done = true; return PLAIT_OK;
    case PLI_EVENT_HAND: return load_hand(audit, replica, event, err);
    case PLI_EVENT_REPLICA:
        if (!names_other(audit, event) || replica->served) return contradicts(audit, event, "was made of nothing", err);
        replica->source = event->whom;
        replica->due = ++replica->copied;
        return PLAIT_OK;
    case PLI_EVENT_SERVE:
        if (first == 0) return contradicts(audit, event, "serves in its own place", err);
        if (!begun) return contradicts(audit, event, "served before it had begun", err);
        replica->served = true;
        return PLAIT_OK;
    case PLI_EVENT_OUT:
        if (audit->job.homes == 0) return contradicts(audit, event, "made way where no shards move", err);
        replica->out = true;
        return PLAIT_OK;
    default: return PLAIT_OK;
    }
}

/* --- between the passes ------------------------------------------------------------------------------------------- */

static bool is_cut(const pli_audit *audit, const audit_server *replica) {
    return replica == NULL || replica->stream < 0 || pli_logfile_stream_is_cut(audit->file, replica->stream);
}

/* A replica that was made must have been handed over. If its source's log is cut, the handing over may be in what the
 * log lacks. */
static plait_status check_made(const pli_audit *audit, const audit_server *replica, bool *whole_out, plait_error *err) {
    if (replica->copied == 0 || hand_of(&audit->home[replica->home], replica->source, replica->place) != NULL)
        return PLAIT_OK;
    if (is_cut(audit, audit_replica_at(audit, replica->home, replica->source))) {
        *whole_out = false;
        return PLAIT_OK;
    }
    return pli_fail(
        err, PLAIT_EFORMAT,
        "the event log contradicts itself: the replica of server %d's shards at place %d, rank %d, was made "
        "of that at place %d, which has handed over nothing to it",
        replica->home, replica->place, audit_rank_at(audit, replica->rank), replica->source);
}

static void free_copy(const pli_audit *audit, audit_server *replica) {
    for (int32_t w = 0; replica->ticks != NULL && w < audit->job.workers; w++) pli_free(replica->ticks[w].seq);
    pli_free(replica->ticks);
    pli_free(replica->gone);
}

/* Leaves out replicas that were never whole: logs tell nothing of them. */
static void leave_out_unmade(const pli_audit *audit, audit_home *home) {
    int64_t n = 0;
    for (int64_t i = 0; i < home->n; i++) {
        if (home->replica[i].copied > 0 || audit_is_first(audit, home->replica[i].home, home->replica[i].place) >= 0)
            home->replica[n++] = home->replica[i];
        else
            free_copy(audit, &home->replica[i]);
    }
    home->n = n;
}

/* Had the rank died before it took part? Only in a group, whose members are its servers (load.c). */
static bool never_came(const pli_audit *audit, int32_t home, int32_t place) {
    const int32_t rank = audit_rank_of(audit, home, place);
    return audit->group != 0 && rank < audit->ranked && audit->worker[rank].stream < 0;
}

/* Has the replica's rank ended well? A rank that only serves says so of the shards that are its own. */
static bool ends_well(const pli_audit *audit, const audit_server *replica) {
    if (replica->rank < audit->ranked) return audit->worker[replica->rank].done;
    const audit_server *own = audit_replica_at(audit, replica->rank - audit->job.first_server, 0);
    return own != NULL && own->done;
}

static plait_status settle_home(pli_audit *audit, int32_t h, bool *whole_out, plait_error *err) {
    audit_home   *home = &audit->home[h];
    audit_server *last = NULL;
    for (int32_t i = 0, place; (place = audit_first_place(audit, h, i)) >= 0; i++)
        *whole_out = *whole_out && (audit_replica_at(audit, h, place) != NULL || never_came(audit, h, place));
    leave_out_unmade(audit, home);
    for (int64_t i = 0; i < home->n; i++) {
        audit_server *replica = &home->replica[i];
        PLI_TRY(check_made(audit, replica, whole_out, err));
        replica->cut = is_cut(audit, replica);
        const bool serves = replica->served || (last == NULL && audit_is_first(audit, h, replica->place) == 0);
        if (serves && (last == NULL || last->out || !ends_well(audit, last) || ends_well(audit, replica)))
            last = replica;
    }
    if (last != NULL) last->counts = true;
    for (int32_t place = 0; last != NULL && audit->job.homes == 0 && place < last->place; place++)
        audit->dead[audit_rank_of(audit, h, place)] = true;
    for (int64_t i = 0; last != NULL && audit->job.homes > 0 && &home->replica[i] < last; i++)
        if (!home->replica[i].out) audit->dead[home->replica[i].rank] = true;
    return PLAIT_OK;
}

plait_status audit_places(pli_audit *audit, bool *whole_out, plait_error *err) {
    const int32_t behind = audit->job.first_server + audit->job.servers;
    audit->ranks = behind > audit->ranked ? behind : audit->ranked;
    audit->dead = pli_calloc((size_t)audit->ranks, sizeof *audit->dead);
    if (audit->dead == NULL) return audit_no_memory(err);
    *whole_out = true;
    for (int32_t h = 0; h < audit->job.servers; h++) PLI_TRY(settle_home(audit, h, whole_out, err));
    return PLAIT_OK;
}

/* --- holders ------------------------------------------------------------------------------------------------------ */

/* Copies what workers have sent, because each replica applies it for itself. */
static bool copy_sent(const pli_audit *audit, const audit_holder *first, audit_holder *shard) {
    const size_t workers = (size_t)audit->job.workers;
    shard->sender = pli_calloc(workers, sizeof *shard->sender);
    for (size_t w = 0; shard->sender != NULL && w < workers; w++) {
        const audit_sender *from = first->sender[w];
        if (from == NULL) continue;
        audit_sender *to = shard->sender[w] = pli_calloc(1, sizeof *to);
        if (to == NULL || !pli_grow((void **)&to->part, &to->capacity, from->n, sizeof *to->part)) return false;
        if (from->n > 0) memcpy(to->part, from->part, (size_t)from->n * sizeof *to->part);
        to->n = from->n;
    }
    return shard->sender != NULL;
}

static plait_status open_shard(pli_audit *audit, audit_shard *shard, plait_error *err) {
    audit_home *home = &audit->home[shard->home];
    audit->cells += (home->n - 1) * audit->job.workers;
    audit_holder *replica = audit->cells > AUDIT_CELLS_MAX ? NULL : pli_calloc((size_t)home->n, sizeof *replica);
    if (replica == NULL) return audit_no_memory(err);
    replica[0] = shard->replica[0];
    pli_free(shard->replica);
    shard->replica = replica;
    for (int64_t i = 0; i < home->n; i++) {
        replica[i].of = &home->replica[i];
        replica[i].shard = replica[0].shard;
        replica[i].counts = home->replica[i].counts;
        replica[i].led = AUDIT_NEVER;
        shard->replicas = (int32_t)i + 1;
        if (i > 0 && !copy_sent(audit, &replica[0], &replica[i])) return audit_no_memory(err);
    }
    return PLAIT_OK;
}

plait_status audit_open_holders(pli_audit *audit, plait_error *err) {
    for (int32_t h = 0; h < audit->job.servers; h++)
        for (int64_t i = 0; i < audit->home[h].n; i++) {
            audit_server *replica = &audit->home[h].replica[i];
            replica->ticks = pli_calloc((size_t)audit->job.workers, sizeof *replica->ticks);
            if (replica->ticks == NULL) return audit_no_memory(err);
            for (int32_t w = 0; w < audit->job.workers; w++) replica->ticks[w].n = audit->first_clock;
        }
    for (int64_t t = 0; t < audit->tables; t++)
        for (int32_t s = 0; audit->table[t].known && s < audit->table[t].shards; s++)
            if (audit->table[t].shard[s].home >= 0) PLI_TRY(open_shard(audit, &audit->table[t].shard[s], err));
    return PLAIT_OK;
}

void audit_free_holder(const pli_audit *audit, audit_holder *shard) {
    for (int32_t w = 0; shard->sender != NULL && w < audit->job.workers; w++) {
        if (shard->sender[w] == NULL) continue;
        pli_free(shard->sender[w]->part);
        pli_free(shard->sender[w]);
    }
    pli_free(shard->sender);
    pli_free(shard->apply);
    pli_free(shard->zero);
    pli_free(shard->call);
    pli_free(shard->state);
}

void audit_free_places(pli_audit *audit) {
    for (int32_t h = 0; audit->home != NULL && h < audit->job.servers; h++) {
        for (int64_t i = 0; i < audit->home[h].n; i++) free_copy(audit, &audit->home[h].replica[i]);
        pli_free(audit->home[h].replica);
        pli_free(audit->home[h].hand);
    }
    pli_free(audit->home);
    pli_free(audit->dead);
}

/* --- a new replica's beginning ------------------------------------------------------------------------------------ */

static bool inherit_shard(const pli_audit *audit, const audit_holder *from, audit_holder *to) {
    if (!pli_grow((void **)&to->apply, &to->capacity, from->n, sizeof *to->apply)) return false;
    if (from->n > 0) memcpy(to->apply, from->apply, (size_t)from->n * sizeof *to->apply);
    to->n = from->n;
    if (!pli_grow((void **)&to->zero, &to->zeros_capacity, from->zeros, sizeof *to->zero)) return false;
    if (from->zeros > 0) memcpy(to->zero, from->zero, (size_t)from->zeros * sizeof *to->zero);
    to->zeros = from->zeros;
    if (!audit_inherit_calls(from, to)) return false;
    for (int32_t w = 0; w < audit->job.workers; w++) {
        const audit_sender *sent = from->sender[w];
        audit_sender       *mine = to->sender[w];
        if (sent == NULL) continue;
        for (int64_t i = 0; i < sent->n; i++) mine->part[i].at = sent->part[i].at;
        mine->next = sent->next;
        mine->unknown = sent->unknown;
    }
    return true;
}

static bool inherit_ticks(const pli_audit *audit, const audit_server *from, audit_server *to) {
    for (int32_t w = 0; w < audit->job.workers; w++) {
        const audit_ticks *told = &from->ticks[w];
        audit_ticks       *mine = &to->ticks[w];
        if (!pli_grow((void **)&mine->seq, &mine->capacity, told->told, sizeof *mine->seq)) return false;
        if (told->told > 0) memcpy(mine->seq, told->seq, (size_t)told->told * sizeof *mine->seq);
        mine->n = told->n;
        mine->told = told->told;
        mine->from = told->from;
    }
    to->used = from->used;
    to->begun = true;
    return true;
}

plait_status audit_hand_over(pli_audit *audit, const audit_server *source, const pli_event *event, plait_error *err) {
    audit_home   *home = &audit->home[source->home];
    audit_server *to = audit_replica_at(audit, source->home, event->whom);
    audit_hand   *hand = hand_of(home, source->place, event->whom);
    if (--hand->due > 0 || to == NULL || to->copied == 0 || to->source != source->place) return PLAIT_OK;
    if (!inherit_ticks(audit, source, to)) return audit_no_memory(err);
    for (int64_t t = 0; t < audit->tables; t++)
        for (int32_t s = 0; audit->table[t].known && s < audit->table[t].shards; s++) {
            audit_shard *shard = &audit->table[t].shard[s];
            if (shard->home == source->home &&
                !inherit_shard(audit, &shard->replica[source - home->replica], &shard->replica[to - home->replica]))
                return audit_no_memory(err);
        }
    return PLAIT_OK;
}
