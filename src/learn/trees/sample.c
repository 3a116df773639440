/* The sample for bins comes together: each worker gets the words of all. They are packed by zstd on their way. A sparse
 * row names features, most of whose values are alike, so a tenth of the bytes and less is left; values of dense rows
 * hardly shrink. Of a short run over slow links this is the largest part of what is sent. */
#include <string.h>
#include <zstd.h>

#include "learn/trees/bins.h"

enum { LEVEL = 1 };

/* Behind how many bytes they were. */
static void *pack(const pli_text *own, size_t *bytes_out) {
    const uint64_t raw = own->length;
    const size_t   most = ZSTD_compressBound(own->length);
    unsigned char *to = pli_array(most + sizeof raw, 1);
    if (to == NULL) return NULL;
    memcpy(to, &raw, sizeof raw);
    const size_t packed = ZSTD_compress(to + sizeof raw, most, own->data != NULL ? own->data : "", own->length, LEVEL);
    if (ZSTD_isError(packed)) { /* there is no memory: nothing else can fail */
        pli_free(to);
        return NULL;
    }
    *bytes_out = packed + sizeof raw;
    return to;
}

static uint64_t raw_bytes(const unsigned char *from) {
    uint64_t raw;
    memcpy(&raw, from, sizeof raw);
    return raw;
}

/* One behind the other, in the order of the workers. */
static plait_status unpack(const pli_run *run, const unsigned char *from, const size_t *sizes, uint32_t **words_out,
                           int64_t *n_out) {
    const int32_t        workers = plait_comm_workers(run->comm);
    const unsigned char *at = from;
    size_t               bytes = 0, done = 0;
    for (int32_t w = 0; w < workers; at += sizes[w++])
        if (sizes[w] > sizeof(uint64_t)) bytes += raw_bytes(at); /* who has died sends nothing */
    unsigned char *to = pli_array(bytes + sizeof(uint32_t), 1);
    if (to == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a sample of the rows");
    at = from;
    for (int32_t w = 0; w < workers; at += sizes[w++]) {
        if (sizes[w] <= sizeof(uint64_t)) continue;
        const size_t raw = raw_bytes(at);
        const size_t n = ZSTD_decompress(to + done, raw, at + sizeof(uint64_t), sizes[w] - sizeof(uint64_t));
        if (ZSTD_isError(n) || n != raw) {
            pli_free(to);
            return pli_fail(run->err, PLAIT_EFORMAT, "worker %d sent a damaged sample of its rows", (int)w);
        }
        done += n;
    }
    *words_out = (uint32_t *)(void *)to;
    *n_out = (int64_t)(bytes / sizeof(uint32_t));
    return PLAIT_OK;
}

plait_status pli_sample_gather(const pli_run *run, const pli_text *own, uint32_t **words_out, int64_t *n_out) {
    size_t       bytes = 0, *sizes = pli_array((size_t)plait_comm_workers(run->comm), sizeof *sizes);
    void        *packed = pack(own, &bytes), *all = NULL;
    plait_status status = sizes != NULL && packed != NULL
                              ? plait_comm_allgatherv(run->comm, packed, bytes, sizes, &all)
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for a sample of the rows");
    if (status >= 0) status = unpack(run, all, sizes, words_out, n_out);
    pli_free(packed);
    plait_comm_free(all);
    pli_free(sizes);
    return status;
}
