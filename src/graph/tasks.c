/* Divides a plan into tasks for threads. Neighbours in the order form one task until it has work for some microseconds,
 * so that small ops cost no more than their own work; the items of a large op are shared. A task waits for the tasks
 * that its nodes read from, and for those after which its nodes must run. Tasks are parts of an order in which all
 * nodes can run, so no two wait for each other. */
#include <string.h>

#include "graph/plan.h"

#define NODE_NS 50.0 /* cost of any node, beside its work */
/* Amounts of work, in grains. */
enum {
    TASK = 1,   /* for a task of small nodes                    */
    SHARED = 2, /* for a node whose items are shared            */
    ALONE = 3   /* the caller alone runs a plan with less work  */
};

bool pli_plan_after(pli_plan *p, int32_t node, int32_t before) {
    if (before < 0 || before == node) return true;
    if (!pli_grow((void **)&p->after, &p->after_capacity, p->n_after + 1, sizeof *p->after)) return false;
    p->after[p->n_after++] = (pli_after){ node, before };
    return true;
}

static bool of_store(const pli_plan_node *n) { return n->work >= PLI_WORK_GET; }
static bool is_shared(const pli_plan *p, const pli_plan_node *n) {
    return n->items > 1 && n->cost_ns > SHARED * p->grain_ns;
}

static bool cut(pli_plan *p, int32_t *task_of) {
    double cost = 0;
    for (int32_t k = 0; k < p->n_nodes; k++) {
        const pli_plan_node *n = &p->node[k];
        pli_task            *last = p->n_tasks > 0 ? &p->task[p->n_tasks - 1] : NULL;
        const bool           gets = n->work == PLI_WORK_GET && last != NULL && p->node[k - 1].work == PLI_WORK_GET;
        if (last != NULL && !last->shared && !is_shared(p, n) &&
            (of_store(n) ? gets : !last->caller && cost + n->cost_ns < TASK * p->grain_ns)) {
            last->end = k + 1;
        } else {
            if (!pli_grow((void **)&p->task, &p->task_capacity, p->n_tasks + 1, sizeof *p->task)) return false;
            p->task[p->n_tasks++] =
                (pli_task){ .first = k, .end = k + 1, .caller = of_store(n), .shared = is_shared(p, n) };
            cost = 0;
        }
        cost += n->cost_ns + NODE_NS;
        task_of[k] = (int32_t)p->n_tasks - 1;
    }
    return true;
}

/* Edges between tasks, each once: the first round counts them, the second lists them. */
typedef struct edges {
    pli_plan *plan;
    int32_t  *task_of, *stamp, *first_after, *next_after;
    bool      list;
} edges;

static void edge(edges *e, int32_t from_node, int32_t to) {
    const int32_t from = from_node < 0 ? to : e->task_of[from_node];
    if (from == to || e->stamp[from] == to) return;
    e->stamp[from] = to;
    pli_task *t = &e->plan->task[from];
    if (e->list) {
        e->plan->next_task[t->next + t->n_next] = to;
        e->plan->task[to].waits++;
    }
    t->n_next++;
}

static void edges_into(edges *e, int32_t to) {
    const pli_plan *p = e->plan;
    for (int32_t k = p->task[to].first; k < p->task[to].end; k++) {
        const pli_plan_node *n = &p->node[k];
        for (int32_t i = 0; i < n->n_in; i++)
            if (pli_plan_reads(n, i)) edge(e, p->value[p->input[n->input + i]].node, to);
        for (int32_t a = e->first_after[k]; a >= 0; a = e->next_after[a]) edge(e, p->after[a].before, to);
    }
}

/* Makes incs run after the gets of their variable. */
static bool order_store(pli_plan *p, int32_t *last_get, int32_t *previous_get) {
    for (int64_t v = 0; v < p->graph->n_variables; v++) last_get[v] = -1;
    for (int32_t k = 0; k < p->n_nodes; k++) {
        const pli_plan_node *n = &p->node[k];
        if (n->work == PLI_WORK_GET || n->work == PLI_WORK_GET_ROWS) {
            previous_get[k] = last_get[n->variable];
            last_get[n->variable] = k;
        } else if (n->work == PLI_WORK_INC || n->work == PLI_WORK_INC_ROWS) {
            for (int32_t g = last_get[n->variable]; g >= 0; g = previous_get[g])
                if (!pli_plan_after(p, k, g)) return false;
        }
    }
    return true;
}

static plait_status link_tasks(pli_plan *p, int32_t *task_of, plait_error *err) {
    const size_t n = (size_t)p->n_nodes * sizeof(int32_t);
    edges        e = { .plan = p,
                       .task_of = task_of,
                       .stamp = pli_arena_take(&p->work, (size_t)p->n_tasks * sizeof *e.stamp),
                       .first_after = pli_arena_take(&p->work, n),
                       .next_after = pli_arena_take(&p->work, (size_t)p->n_after * sizeof *e.next_after) };
    if (e.stamp == NULL || e.first_after == NULL || e.next_after == NULL) return pli_plan_no_memory(err);
    memset(e.first_after, -1, n);
    for (int64_t a = 0; a < p->n_after; a++) {
        e.next_after[a] = e.first_after[p->after[a].node];
        e.first_after[p->after[a].node] = (int32_t)a;
    }
    for (int round = 0; round < 2; round++) {
        e.list = round == 1;
        memset(e.stamp, -1, (size_t)p->n_tasks * sizeof *e.stamp);
        for (int32_t t = 0; t < p->n_tasks; t++) edges_into(&e, t);
        for (int32_t t = 0; round == 0 && t < p->n_tasks; t++) {
            p->task[t].next = (int32_t)p->n_next_tasks;
            p->n_next_tasks += p->task[t].n_next;
            p->task[t].n_next = 0;
        }
        if (round == 0 &&
            !pli_grow((void **)&p->next_task, &p->next_task_capacity, p->n_next_tasks + 1, sizeof *p->next_task))
            return pli_plan_no_memory(err);
    }
    return PLAIT_OK;
}

plait_status pli_plan_tasks(pli_plan *p, plait_error *err) {
    for (int64_t k = 0; k < p->n_nodes; k++) p->cost_ns += p->node[k].cost_ns + NODE_NS;
    if (p->threads == 1 || p->cut != NULL || p->cost_ns < ALONE * p->grain_ns) return PLAIT_OK;
    int32_t *task_of = pli_arena_take(&p->work, (size_t)p->n_nodes * sizeof *task_of),
            *previous_get = pli_arena_take(&p->work, (size_t)p->n_nodes * sizeof *previous_get);
    int32_t *last_get = pli_arena_take(&p->work, (size_t)p->graph->n_variables * sizeof *last_get);
    if (task_of == NULL || previous_get == NULL || last_get == NULL || !order_store(p, last_get, previous_get) ||
        !cut(p, task_of))
        return pli_plan_no_memory(err);
    return link_tasks(p, task_of, err);
}
