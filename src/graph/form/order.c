/* Orders nodes so that each comes after those that it needs, by a depth-first walk. The walk has its own stack, because
 * a file may nest as deep as it is long. A node that is met again while it is open closes a cycle. (Tarjan,
 * "Depth-first search and linear graph algorithms", 1972.) */
#include "graph/form/form.h"

enum { NEW = -1, CLOSED = -2 };

/* Copies the cycle: the nodes on the stack from `at` on. */
static int64_t cycle_of(const int64_t *stack, int64_t depth, int64_t at, int64_t *order) {
    int64_t begin = depth - 1;
    while (stack[begin] != at) begin--;
    for (int64_t i = begin; i < depth; i++) order[i - begin] = stack[i];
    return depth - begin;
}

int64_t pli_form_order(int64_t n, const int64_t *first, const int64_t *from, int64_t *order, int64_t *scratch) {
    int64_t *next = scratch, *stack = scratch + n, done = 0; /* next: the edge of an open node to follow next */
    for (int64_t i = 0; i < n; i++) next[i] = NEW;
    for (int64_t root = 0; root < n; root++) {
        int64_t depth = 0;
        if (next[root] == NEW) {
            next[root] = first[root];
            stack[depth++] = root;
        }
        while (depth > 0) {
            const int64_t at = stack[depth - 1];
            if (next[at] == first[at + 1]) {
                next[at] = CLOSED;
                order[done++] = at;
                depth--;
                continue;
            }
            const int64_t to = from[next[at]++];
            if (next[to] == CLOSED) continue;
            if (next[to] != NEW) return cycle_of(stack, depth, to, order);
            next[to] = first[to];
            stack[depth++] = to;
        }
    }
    return 0;
}
