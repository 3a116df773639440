/* learn/solve/block.h - the columns of a block's entries, however the block stores them (data/data.h). */
#ifndef PLI_LEARN_SOLVE_BLOCK_H
#define PLI_LEARN_SOLVE_BLOCK_H

#include "data/data.h"
#include "tensor/tensor.h"

/** The column, or key, of entry e. */
static inline uint64_t pli_block_column(const pli_block *block, int64_t e) {
    return block->col != NULL      ? block->col[e]
           : block->packed != NULL ? pli_packed_at(block->packed, e)
                                   : block->key[e];
}

#endif
