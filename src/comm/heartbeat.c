#include "comm/heartbeat.h"

#include "base/base.h"

enum { TURNS = 4 }; /* turns in a period */

/* Which process watches which depends only on the set of those that are gone, so that both ends find the same. */
static void choose_watched(pli_heartbeat *h) {
    bool    all = h->size <= PLI_HEARTBEAT_ALL;
    int32_t left = PLI_HEARTBEAT_WATCHED;
    for (int32_t back = 1; back < h->size; back++) {
        int32_t rank = (h->me - back + h->size) % h->size;
        bool    now = !h->gone[rank] && !h->missing[rank] && (all || left-- > 0);
        if (now && !h->watched[rank]) h->heard_ns[rank] = h->listened_ns; /* its patience begins now */
        h->watched[rank] = now;
    }
}

bool pli_heartbeat_init(pli_heartbeat *h, int32_t size, int32_t me, uint64_t period_ns, uint64_t patience_ns,
                        uint64_t now_ns) {
    *h = (pli_heartbeat){ .size = size, .me = me, .period_ns = period_ns, .patience_ns = patience_ns,
                          .last_ns = now_ns, .next_beat_ns = now_ns };
    h->heard_ns = pli_calloc((size_t)size, sizeof *h->heard_ns);
    h->watched = pli_calloc((size_t)size, sizeof *h->watched);
    h->gone = pli_calloc((size_t)size, sizeof *h->gone);
    h->missing = pli_calloc((size_t)size, sizeof *h->missing);
    if (h->heard_ns == NULL || h->watched == NULL || h->gone == NULL || h->missing == NULL) {
        pli_heartbeat_destroy(h);
        return false;
    }
    choose_watched(h);
    return true;
}

void pli_heartbeat_destroy(pli_heartbeat *h) {
    pli_free(h->heard_ns);
    pli_free(h->watched);
    pli_free(h->gone);
    pli_free(h->missing);
    *h = (pli_heartbeat){ 0 };
}

void pli_heartbeat_hear(pli_heartbeat *h, int32_t rank) {
    h->heard_ns[rank] = h->listened_ns;
    if (!h->missing[rank]) return;
    h->missing[rank] = false;
    choose_watched(h);
}

void pli_heartbeat_forget(pli_heartbeat *h, int32_t rank) {
    if (h->gone[rank]) return;
    h->gone[rank] = true;
    choose_watched(h);
}

/* Beats go to the processes that watch this one: the living ones after it. */
static void beat(const pli_heartbeat *h, pli_heartbeat_out *out) {
    int32_t left = h->size <= PLI_HEARTBEAT_ALL ? h->size : PLI_HEARTBEAT_WATCHED;
    for (int32_t ahead = 1; ahead < h->size && left > 0; ahead++) {
        int32_t rank = (h->me + ahead) % h->size;
        if (h->gone[rank]) continue;
        out->beat[out->beats++] = rank;
        left -= !h->missing[rank]; /* it may watch no longer */
    }
}

uint64_t pli_heartbeat_turn(pli_heartbeat *h, uint64_t now_ns, pli_heartbeat_out *out) {
    uint64_t passed_ns = now_ns > h->last_ns ? now_ns - h->last_ns : 0, turn_ns = h->period_ns / TURNS;
    h->listened_ns += passed_ns < h->period_ns / 2 ? passed_ns : h->period_ns / 2;
    h->last_ns = now_ns;
    out->beats = out->silents = 0;
    for (int32_t r = 0; r < h->size; r++) {
        if (!h->watched[r] || h->listened_ns - h->heard_ns[r] < h->patience_ns) continue;
        out->silent[out->silents++] = r;
    }
    for (int32_t i = 0; i < out->silents; i++) h->missing[out->silent[i]] = true;
    if (out->silents > 0) choose_watched(h);
    if (now_ns >= h->next_beat_ns) {
        beat(h, out);
        h->next_beat_ns = now_ns + h->period_ns;
    }
    return now_ns + turn_ns < h->next_beat_ns ? now_ns + turn_ns : h->next_beat_ns;
}
