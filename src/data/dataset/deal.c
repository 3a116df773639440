/* Deals the pieces of the files to the blocks, so that neighbouring blocks lie far apart in the files.
 *
 * A worker owns a run of consecutive blocks. If block b were piece b of a file that is sorted by label, a worker would
 * see one label only. So block b is the piece whose number is the b-th in van der Corput's sequence: 0, 1/2, 1/4, 3/4,
 * 1/8, ... of the way through the files, which is the order of the numbers with their bits reversed. Every run of this
 * sequence is spread evenly over the whole, whatever its beginning and length: van der Corput, "Verteilungsfunktionen",
 * Proc. Akad. Amsterdam 38, 1935. If the number of pieces is no power of two, the numbers that are too high are left
 * out.
 *
 * The deal depends on the number of pieces alone. Rows keep the numbers that they have in the files. */
#include "data/dataset/dataset.h"

plait_status pli_dataset_deal(pli_dataset *d, plait_error *err) {
    uint32_t bits = 0, at = 0;
    if (!d->dealt) return PLAIT_OK;
    d->piece = pli_array((size_t)d->blocks, sizeof *d->piece);
    if (d->piece == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the list of blocks");
    while (UINT64_C(1) << bits < (uint64_t)d->blocks) bits++;
    for (uint64_t k = 0; k < UINT64_C(1) << bits; k++) {
        uint32_t reversed = 0;
        for (uint32_t i = 0; i < bits; i++) reversed |= (uint32_t)(k >> i & 1) << (bits - 1 - i);
        if (reversed < (uint32_t)d->blocks) d->piece[at++] = (int32_t)reversed;
    }
    return PLAIT_OK;
}
