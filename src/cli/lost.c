/* Describes the ranks that a run has lost. The spares are the last workers. Living spares take the places of dead
 * ranks; if none is left, all living workers share them (learn/run/inherit.h). */
#include "cli/lost.h"

#include <inttypes.h>
#include <string.h>

#include "table/consistency/consistency.h"
#include "table/filter/filter.h"

static bool is_lost(const pli_lost *lost, int32_t rank) {
    for (int64_t i = 0; i < lost->n; i++)
        if (lost->rank[i] == rank) return true;
    return false;
}

/* Adds the living spares, as "spare rank 4" or "spare ranks 4, 5". Returns how many there are. */
static int32_t add_living_spares(const pli_lost *lost, int32_t workers, int32_t spares, pli_text *text) {
    pli_text ranks = { 0 };
    int32_t  n = 0;
    for (int32_t r = workers - spares; r < workers; r++)
        if (!is_lost(lost, r)) pli_text_add(&ranks, "%s%" PRId32, n++ > 0 ? ", " : "", r);
    if (n > 0) pli_text_add(text, "spare rank%s %s", pli_plural(n), ranks.data != NULL ? ranks.data : "");
    pli_text_free(&ranks);
    return n;
}

void pli_lost_add(pli_lost *lost, int32_t rank, int32_t workers, int32_t spares, pli_text *text) {
    pli_text   ready = { 0 };
    const bool is_spare = rank >= workers - spares && rank < workers;
    if (pli_grow((void **)&lost->rank, &lost->capacity, lost->n + 1, sizeof *lost->rank)) lost->rank[lost->n++] = rank;
    const int32_t n = add_living_spares(lost, workers, spares, &ready);
    pli_text_add(text, "the run goes on without it");
    if (is_spare) pli_text_add(text, ", which was a spare");
    else if (n > 0 && ready.data != NULL)
        pli_text_add(text, ", and %s take%s its place", ready.data, n == 1 ? "s" : "");
    pli_text_free(&ready);
}

/* What is lost of a table with these settings. */
typedef struct losses {
    bool kept_back, gathered, moved;
} losses;

static void note_losses(const char *filter, const char *consistency, losses *of) {
    const plait_consistency *policy = consistency != NULL ? pli_consistency_find(consistency, NULL) : NULL;
    pli_filters_list         list;
    if (pli_filters_read(filter, NULL, &list, NULL) >= 0)
        of->kept_back |= pli_filters_have(&list, PLAIT_ROUNDED) || pli_filters_have(&list, PLAIT_KEPT_BACK);
    of->gathered |= policy != NULL && policy->worker.on_clock != NULL;
    of->moved |= policy != NULL && policy->averages;
}

void pli_lost_with(const plait_train_opts *train, pli_text *text) {
    losses of = { .moved = false };
    note_losses(train->filter, train->consistency, &of);
    for (int32_t i = 0; i < train->n_tables; i++)
        note_losses(train->tables[i].filter, train->tables[i].consistency, &of);
    if (of.kept_back) pli_text_add(text, "; what its filters kept back of its updates is lost");
    if (of.gathered) pli_text_add(text, "; what it had gathered since its last push is lost");
    if (of.moved) pli_text_add(text, "; what its mirror had moved since the last average is lost");
}

void pli_lost_row(const pli_lost *lost, int32_t workers, int32_t spares, pli_text *text) {
    bool held = false;
    if (lost->n == 0) return;
    pli_text_add(text, "%-18s rank%s ", "lost", pli_plural(lost->n));
    for (int64_t i = 0; i < lost->n; i++) {
        const int32_t rank = lost->rank[i];
        const bool    is_spare = rank >= workers - spares && rank < workers;
        pli_text_add(text, "%s%" PRId32 "%s", i > 0 ? ", " : "", rank, is_spare ? " (a spare)" : "");
        held = held || !is_spare;
    }
    pli_text ready = { 0 };
    if (held && add_living_spares(lost, workers, spares, &ready) > 0 && ready.data != NULL)
        pli_text_add(text, "; %s took over", ready.data);
    pli_text_add(text, "\n");
    pli_text_free(&ready);
}

void pli_lost_free(pli_lost *lost) {
    pli_free(lost->rank);
    *lost = (pli_lost){ 0 };
}
