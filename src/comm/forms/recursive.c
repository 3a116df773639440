/* recursive: recursive doubling. In round i each exchanges all it has with the one whose number differs in bit i, and both
 * reduce: after log2 W rounds everyone has the result. No form takes fewer rounds, which is what counts where vectors are
 * short. Of workers beyond the largest power of two P, each gives its values to a partner first and gets the result last.
 *
 * Paper: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005. */
#include "comm/forms/forms.h"

enum { SMALL_BYTES = 16 << 10 };

static bool suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts) {
    (void)workers, (void)hosts;
    return pli_form_bytes(call) <= SMALL_BYTES;
}

static int64_t steps(const pli_coll *call, int32_t workers) {
    (void)call;
    return pli_floor_log2(workers) + 2;
}

static void step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    int32_t rounds = pli_floor_log2(workers), p = 1 << rounds;
    int32_t partner = me >= p ? me - p : me < workers - p ? me + p : -1;
    if (i == 0) {
        pli_form_whole(c, me >= p ? partner : -1, me >= p ? -1 : partner, true, m);
    } else if (i > rounds) {
        pli_form_whole(c, me >= p ? -1 : partner, me >= p ? partner : -1, false, m);
    } else if (me < p) {
        int32_t other = me ^ (1 << (i - 1));
        pli_form_whole(c, other, other, true, m);
    }
}

const pli_coll_form pli_form_recursive = { .name = "recursive", .id = 3, .suits = suits, .steps = steps, .step = step };
