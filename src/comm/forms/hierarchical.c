/* hierarchical: inside each host the vector is reduced along a binomial tree to the host's lead, its lowest worker; the
 * leads reduce among themselves by the form that suits them; the result comes back down the trees. The vector leaves a
 * host only once, however many workers the host has. That pays where a host is faster inside than the links between
 * hosts, which recursive doubling and trees ignore.
 *
 * Steps: U up, S among the leads, U down. The numbers are the same on all workers; U is that of the host with the most
 * workers.
 *
 * Paper: Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan, "Exploiting Hierarchy in Parallel Computer Networks
 * to Optimize Collective Operation Performance", IPDPS 2000. */
#include "comm/forms/forms.h"

enum { LEAST_BYTES = 2 << 10, RING_SLICE_BYTES = 4 << 10 };

/* Short vectors need few rounds, and hosts do not matter. Long ones need few bytes: a ring through workers that lie
 * host by host leaves each host only once, too. */
static bool suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts) {
    if (hosts == NULL || hosts->count == 1 || hosts->count == workers || pli_coll_buffer_bytes(call) < LEAST_BYTES)
        return false;
    return !hosts->packed || pli_coll_buffer_bytes(call) / (size_t)workers < RING_SLICE_BYTES;
}

static int32_t members(const pli_hosts *h, int32_t host) { return h->first[host + 1] - h->first[host]; }

static int64_t rounds_up(const pli_hosts *h) {
    int32_t most = 1;
    for (int32_t k = 0; k < h->count; k++)
        if (members(h, k) > most) most = members(h, k);
    return pli_ceil_log2(most);
}

/* The leads' call: the same call among fewer workers. */
static pli_coll among_leads(const pli_coll *c) {
    pli_coll call = *c;
    pli_coll_choose(&call, NULL, c->hosts->count, NULL);
    return call;
}

static int64_t steps_of_leads(const pli_coll *leads, const pli_hosts *h) {
    return h->count > 1 ? leads->form->steps(leads, h->count) : 0;
}

static int64_t steps(const pli_coll *c, int32_t workers) {
    if (c->hosts == NULL) return pli_form_tree.steps(c, workers);
    pli_coll leads = among_leads(c);
    return 2 * rounds_up(c->hosts) + steps_of_leads(&leads, c->hosts);
}

/* A step of the tree in my host, whose workers are numbered from 0. */
static void step_inside(const pli_coll *c, int32_t me, int64_t i, pli_coll_move *m) {
    const pli_hosts *h = c->hosts;
    int32_t          host = h->host[me], from = h->first[host];
    pli_form_tree.step(c, h->place[me], members(h, host), i, m);
    if (m->to >= 0) m->to = h->member[from + m->to];
    if (m->from >= 0) m->from = h->member[from + m->from];
}

static void step_among_leads(const pli_coll *leads, const pli_hosts *h, int32_t host, int64_t i, pli_coll_move *m) {
    leads->form->step(leads, host, h->count, i, m);
    if (m->to >= 0) m->to = h->member[h->first[m->to]];
    if (m->from >= 0) m->from = h->member[h->first[m->from]];
}

static void step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    const pli_hosts *h = c->hosts;
    if (h == NULL) {
        pli_form_tree.step(c, me, workers, i, m);
        return;
    }
    pli_coll leads = among_leads(c);
    int64_t  up = rounds_up(h), middle = steps_of_leads(&leads, h), own = pli_ceil_log2(members(h, h->host[me]));
    if (i < up) {
        if (i < own) step_inside(c, me, i, m);
    } else if (i < up + middle) {
        if (h->place[me] == 0) step_among_leads(&leads, h, h->host[me], i - up, m);
    } else if (i - up - middle < own) {
        step_inside(c, me, own + i - up - middle, m);
    }
}

const pli_coll_form pli_form_hierarchical = { .name = "hierarchical", .id = 5, .suits = suits, .steps = steps,
                                              .step = step };
