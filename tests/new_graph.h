/* new_graph.h - an empty graph, for tests of what is built in it. */
#ifndef PLI_TESTS_NEW_GRAPH_H
#define PLI_TESTS_NEW_GRAPH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <plait/graph.h>

static inline plait_graph *new_graph(void) {
    plait_graph *g = NULL;
    assert_int_equal(plait_graph_create(NULL, 0, &g, NULL), PLAIT_OK);
    return g;
}

#endif
