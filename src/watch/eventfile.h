/* watch/eventfile.h - the mapped files of a run, as eventread.c lays them out for eventcursor.c. */
#ifndef PLI_WATCH_EVENTFILE_H
#define PLI_WATCH_EVENTFILE_H

#include "watch/eventcode.h"
#include "watch/eventlog.h"

typedef struct log_chunk {
    const unsigned char *begin, *end;
    int64_t              next; /* the stream's next chunk; -1: none */
} log_chunk;

typedef struct log_side {
    uint32_t group;
    int32_t  rank;
    int      side;
    int32_t  life;        /* of the rank, from 1 on */
    bool     cut;         /* the file of its last chunk is cut */
    int64_t  first, last; /* chunks */
} log_side;

struct pli_logfile {
    int32_t     files;
    pli_mapped *mapped; /* [files] */
    char       *cut;    /* path of the first file that is cut; NULL: none */
    log_chunk  *chunk;
    int64_t     chunks, chunks_capacity;
    log_side   *stream;
    int64_t     streams, streams_capacity;
    pli_keymap  index; /* from stream_key to the stream's number */
};

static inline uint32_t pli_log_u32(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

#endif
