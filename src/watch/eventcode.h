/* watch/eventcode.h - what the writer and the reader of an event log share: numbers of variable length, and the memory
 * of a stream from which both predict the next record. See eventlog.h. */
#ifndef PLI_WATCH_EVENTCODE_H
#define PLI_WATCH_EVENTCODE_H

#include "base/base.h"

enum {
    PLI_LOG_HEAD_BYTES = 32,
    PLI_LOG_CHUNK_BYTES = 16,
    PLI_LOG_RANKS_MAX = 1 << 16,
    PLI_LOG_TABLES_MAX = 4096,
    PLI_LOG_SHARDS_MAX = 1 << 16,
    PLI_LOG_TEXT_MAX = 256,
    PLI_LOG_KEYS_MAX = 4096,
    PLI_LOG_COPIES_MAX = 3,
    PLI_LOG_PLACES_MAX = 1 << 20,
    PLI_LOG_CHAIN_MAX = 64, /* places of a server whose shards do not move */
    PLI_LOG_GROUPS_MAX = 4096,
    PLI_LOG_LIVES_MAX = 63,  /* of a rank */
    PLI_LOG_LIFE = 1 << 17,  /* stands for one life more of a dead worker, added to its number */
    PLI_LOG_WHOSE = 0 /* in place of a kind: says to which copy the following records belong */
};

/* What is remembered of a stream's last record about a shard or mirror. */
typedef struct pli_memory_piece {
    uint64_t version, from;
    int64_t  first, rows;
} pli_memory_piece;

typedef struct pli_memory_peer { /* about a worker (in a server's stream) or a server (in a worker's) */
    uint64_t seq;
    int64_t  clock;
} pli_memory_peer;

typedef struct pli_stream_memory {
    uint64_t          time_ns;
    int64_t           clock;
    int32_t           home, place;   /* of the copy that the records are about; place 0: none yet */
    uint64_t          vertex, number; /* of the last lock */
    int32_t           peers, tables;
    pli_memory_peer  *peer;   /* [peers], known since JOB                             */
    int32_t          *pieces; /* [tables]: shards + 1, the mirror first; 0: unknown  */
    pli_memory_piece **piece; /* [tables][pieces]                                     */
    int64_t           tables_capacity, pieces_capacity;
} pli_stream_memory;

/** Makes room after the event of a job or a table. false: out of memory. The caller has checked the sizes. */
bool pli_memory_job(pli_stream_memory *memory, const pli_event_job *job, bool server);
bool pli_memory_table(pli_stream_memory *memory, int32_t table, const pli_event_table *info);
void pli_memory_free(pli_stream_memory *memory);

/** The memory of a peer; NULL: it is not known. */
static inline pli_memory_peer *pli_memory_peer_of(const pli_stream_memory *memory, int64_t peer) {
    return peer < 0 || peer >= memory->peers ? NULL : &memory->peer[peer];
}
static inline pli_memory_piece *pli_memory_piece_of(const pli_stream_memory *memory, int64_t table, int64_t shard) {
    if (table < 0 || table >= memory->tables || shard < -1 || shard + 1 >= memory->pieces[table]) return NULL;
    return &memory->piece[table][shard + 1];
}

static inline uint64_t pli_zigzag(int64_t x) { return (uint64_t)x << 1 ^ (uint64_t)(x >> 63); }
static inline int64_t  pli_unzigzag(uint64_t x) { return (int64_t)(x >> 1) ^ -(int64_t)(x & 1); }

/** Writes at most 10 bytes at `at`; returns the address after them. */
static inline unsigned char *pli_put_varint(unsigned char *at, uint64_t x) {
    for (; x >= 0x80; x >>= 7) *at++ = (unsigned char)(x | 0x80);
    *at++ = (unsigned char)x;
    return at;
}
static inline unsigned char *pli_put_u32(unsigned char *at, uint32_t x) {
    for (int i = 0; i < 4; i++) *at++ = (unsigned char)(x >> 8 * i);
    return at;
}
/** Reads a number; returns the address after it, or NULL if it does not end before `end`. */
static inline const unsigned char *pli_get_varint(const unsigned char *at, const unsigned char *end, uint64_t *out) {
    uint64_t x = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
        unsigned char byte = *at++;
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = x;
            return at;
        }
    }
    return NULL;
}

static inline uint32_t pli_log_checksum(const unsigned char *chunk_head, const void *records, size_t bytes) {
    return (uint32_t)pli_hash_bytes(records, bytes, pli_hash_bytes(chunk_head, 12, 0));
}

#endif
