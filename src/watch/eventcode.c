/* The memory of a stream (eventcode.h): makes room for peers and pieces. */
#include "watch/eventcode.h"

#include <string.h>

bool pli_memory_job(pli_stream_memory *memory, const pli_event_job *job, bool server) {
    int32_t          peers = server ? job->workers : job->servers;
    pli_memory_peer *peer = pli_calloc((size_t)peers, sizeof *peer);
    if (peer == NULL) return false;
    for (int32_t i = 0; i < peers; i++) peer[i].clock = -1;
    pli_free(memory->peer);
    memory->peer = peer;
    memory->peers = peers;
    return true;
}

bool pli_memory_table(pli_stream_memory *memory, int32_t table, const pli_event_table *info) {
    if (!pli_grow((void **)&memory->pieces, &memory->pieces_capacity, table + 1, sizeof *memory->pieces)) return false;
    if (!pli_grow((void **)&memory->piece, &memory->tables_capacity, table + 1, sizeof *memory->piece)) return false;
    for (; memory->tables <= table; memory->tables++) {
        memory->pieces[memory->tables] = 0;
        memory->piece[memory->tables] = NULL;
    }
    pli_memory_piece *piece = pli_calloc((size_t)info->shards + 1, sizeof *piece);
    if (piece == NULL) return false;
    pli_free(memory->piece[table]);
    memory->piece[table] = piece;
    memory->pieces[table] = info->shards + 1;
    return true;
}

void pli_memory_free(pli_stream_memory *memory) {
    for (int32_t i = 0; i < memory->tables; i++) pli_free(memory->piece[i]);
    pli_free(memory->piece);
    pli_free(memory->pieces);
    pli_free(memory->peer);
    memset(memory, 0, sizeof *memory);
}
