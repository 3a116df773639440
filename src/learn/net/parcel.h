/* learn/net/parcel.h - a tensor on its way along an edge of a cut graph, as the body of a message. */
#ifndef PLI_LEARN_NET_PARCEL_H
#define PLI_LEARN_NET_PARCEL_H

#include <stddef.h>

#include <plait/session.h>

/* The front of the body, little-endian as it lies in memory; the elements follow at PLI_PARCEL_BYTES, so they are
 * aligned as the body is. */
typedef struct pli_parcel {
    int64_t micro_batch;
    int32_t value, from, to, replica;
    int32_t type, rank;
    int64_t dim[PLAIT_RANK_MAX];
} pli_parcel;

enum { PLI_PARCEL_BYTES = 128 };
_Static_assert(sizeof(pli_parcel) <= PLI_PARCEL_BYTES, "the elements begin at a cache line");

/** Bytes of the body for a tensor; 0: it is larger than any message. */
size_t pli_parcel_bytes(const plait_tensor *tensor);
/** Writes a body of pli_parcel_bytes. */
void pli_parcel_write(const plait_edge *edge, const plait_tensor *tensor, void *body);
/** Reads a body, which may be anything: EFORMAT if it is no whole parcel. The tensor's data lie in the body. */
plait_status pli_parcel_read(const void *body, size_t bytes, plait_edge *edge_out, plait_tensor *tensor_out,
                             plait_error *err);

#endif
