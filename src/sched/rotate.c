/* Rotation: P blocks on a ring, W workers at places floor(P / W) apart. In step t worker w has block w floor(P / W) +
 * t, modulo P. So a block has one owner in a step, the next worker has it floor(P / W) steps later, and in P steps each
 * worker has had each block once (Gemulla et al., "Large-Scale Matrix Factorization with Distributed Stochastic
 * Gradient Descent", KDD 2011). */
#include "sched/sched.h"

int32_t plait_schedule_owner(int64_t blocks, int32_t workers, int64_t step, int64_t block) {
    if (blocks < 1 || workers < 1 || workers > blocks || step < 0 || block < 0 || block >= blocks) return -1;
    const int64_t apart = blocks / workers, place = (block - step % blocks + blocks) % blocks;
    return place % apart == 0 && place / apart < workers ? (int32_t)(place / apart) : -1;
}
