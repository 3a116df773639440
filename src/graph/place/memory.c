/* The bytes that each part needs. A value lies in the part that makes it, and in each that reads it, from the place of
 * its maker in the plan's order to that of its last reader there; the most that are alive at once count. Micro-batches
 * count as if all were alive together, as GPipe keeps them (Huang et al., NeurIPS 2019), or those that 1f1b keeps. */
#include <string.h>

#include "graph/place/place.h"

static void add_value(const pli_placing *l, const int32_t *part, int32_t v, int32_t from, pli_memory_scratch *s) {
    const int32_t parts = l->parts;
    for (int32_t r = 0; r < parts; r++) {
        int32_t last = part[l->unit[from]] == r ? from : -1;
        for (int32_t i = l->first[v]; i < l->first[v + 1]; i++)
            if (part[l->unit[l->reader[i]]] == r && l->reader[i] > last) last = l->reader[i];
        if (last < 0) continue;
        if (l->kept[v] && part[l->unit[from]] == r) last = l->nodes - 1;
        s->ends[(int64_t)from * parts + r] += l->bytes[v];
        s->ends[((int64_t)last + 1) * parts + r] -= l->bytes[v];
    }
}

void pli_place_memory(const pli_placing *l, const int32_t *part, bool few, pli_memory_scratch *s) {
    const int32_t parts = l->parts;
    memset(s->ends, 0, ((size_t)l->nodes + 1) * (size_t)parts * sizeof *s->ends);
    for (int32_t r = 0; r < parts; r++) s->alive[r] = s->most[r] = s->held[r] = 0;
    for (int32_t u = 0; u < l->units; u++) s->held[part[u]] += l->held[u];
    for (int32_t k = 0; k < l->nodes; k++)
        for (int32_t v = l->out[k]; v < l->out[k] + l->outs[k]; v++)
            if (l->bytes[v] > 0) add_value(l, part, v, k, s);
    for (int32_t k = 0; k < l->nodes; k++)
        for (int32_t r = 0; r < parts; r++) {
            s->alive[r] += s->ends[(int64_t)k * parts + r];
            if (s->alive[r] > s->most[r]) s->most[r] = s->alive[r];
        }
    for (int32_t r = 0; r < parts; r++) {
        const int32_t all = l->opts->micro_batches, under_way = parts - r;
        s->most[r] *= few && under_way < all ? under_way : all;
    }
}
