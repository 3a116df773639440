/* Cases of plait/graph.h, plait/graph_file.h, plait/session.h, plait/place.h. */
#include <string.h>

#include "api/nulls.h"

static int visit(void *user, const plait_path *path) {
    (void)user;
    (void)path;
    return 0;
}

static int create(fixture *f, int arg) {
    static const plait_op *const none[1] = { NULL };
    plait_graph                 *graph = NULL;
    plait_status status = plait_graph_create(N(0, none), arg == 0 ? 1 : 0, N(2, &graph), N(3, &f->err));
    plait_graph_destroy(&graph);
    return status;
}
static int destroy(fixture *f, int arg) {
    plait_graph *none = NULL;
    (void)f;
    plait_graph_destroy(N(0, &none));
    return NEUTRAL;
}
static int check(fixture *f, int arg) { return plait_graph_check(N(0, f->graph), N(1, &f->err)); }
static int placeholder(fixture *f, int arg) {
    return built(f, plait_graph_placeholder(N(0, fresh_graph(f)), N(1, "x"), PLAIT_F32, plait_shape_1(2)));
}
static int constant(fixture *f, int arg) {
    const float values[2] = { 1, 2 };
    return built(f,
                 plait_graph_constant(N(0, fresh_graph(f)), plait_tensor_of(PLAIT_F32, plait_shape_1(2), values)));
}
static int scalar(fixture *f, int arg) { return built(f, plait_graph_scalar(N(0, fresh_graph(f)), PLAIT_F32, 1)); }
static int variable(fixture *f, int arg) {
    return built(f, plait_graph_variable(N(0, fresh_graph(f)), N(1, "v"),
                                         plait_tensor_of(PLAIT_F32, plait_shape_1(2), NULL)));
}
static int op(fixture *f, int arg) {
    plait_graph      *graph = fresh_graph(f);
    const plait_value x = plait_graph_placeholder(graph, "x", PLAIT_F32, plait_shape_1(2));
    const plait_attr  axis = plait_attr_int("axis", 0);
    return built(f, plait_graph_op(N(0, graph), N(1, "softmax"), N(2, &x), 1, N(4, &axis), 1));
}
static int output(fixture *f, int arg) {
    return NEUTRAL_IF(plait_graph_output(N(0, f->graph), f->x, 0) == PLAIT_NONE);
}
static int name(fixture *f, int arg) {
    plait_graph      *graph = fresh_graph(f);
    const plait_value x = plait_graph_placeholder(graph, "x", PLAIT_F32, plait_shape_1(2));
    return built(f, plait_graph_name(N(0, graph), plait_op_relu(graph, x), N(2, "y")));
}
static int find(fixture *f, int arg) {
    return NEUTRAL_IF(plait_graph_find(N(0, f->graph), N(1, "x")) == PLAIT_NONE);
}
static int describe(fixture *f, int arg) {
    const plait_tensor t = plait_graph_describe(N(0, f->graph), f->x);
    return NEUTRAL_IF(t.data == NULL && t.shape.rank == 0);
}
static int nodes(fixture *f, int arg) { return NEUTRAL_IF(plait_graph_nodes(N(0, f->graph)) == 0); }
static int gradients(fixture *f, int arg) {
    plait_graph      *graph = fresh_graph(f);
    const plait_value x = plait_graph_placeholder(graph, "x", PLAIT_F32, plait_shape_1(2));
    plait_value       dx;
    plait_status      status = plait_graph_gradients(N(0, graph), plait_op_relu(graph, x), 1, N(3, &x), N(4, &dx));
    if (status < 0) plait_graph_check(graph, &f->err);
    return status;
}
static int paths(fixture *f, int arg) {
    return NEUTRAL_IF(plait_graph_paths(N(0, f->graph), f->y, f->x, N(3, visit), N(4, f)) == 0);
}
static int variables(fixture *f, int arg) { return NEUTRAL_IF(plait_graph_variables(N(0, f->graph)) == 0); }
static int variable_name(fixture *f, int arg) {
    return NEUTRAL_IF(strcmp(plait_graph_variable_name(N(0, f->graph), 0), "") == 0);
}
static int variable_initial(fixture *f, int arg) {
    return NEUTRAL_IF(plait_graph_variable_initial(N(0, f->graph), 0).shape.rank == 0);
}

/* --- files ------------------------------------------------------------------------------------------------------ */

static int file_opts_init(fixture *f, int arg) {
    plait_graph_file_opts opts;
    (void)f;
    (plait_graph_file_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int load(fixture *f, int arg) {
    plait_graph_file_opts opts;
    plait_graph          *graph = NULL;
    plait_graph_file_opts_init(&opts);
    plait_status status = plait_graph_load(N(0, f->graph_path), N(1, &opts), N(2, &graph), N(3, &f->err));
    plait_graph_destroy(&graph);
    return status;
}
static int parse(fixture *f, int arg) {
    static const char     text[] = "{\"plait_graph\": 1, \"nodes\": []}";
    plait_graph_file_opts opts;
    plait_graph          *graph = NULL;
    plait_graph_file_opts_init(&opts);
    plait_status status = plait_graph_parse(N(0, "memory"), N(1, text), sizeof text - 1, N(3, &opts), N(4, &graph),
                                            N(5, &f->err));
    plait_graph_destroy(&graph);
    return status;
}
static int save(fixture *f, int arg) {
    return plait_graph_save(N(0, f->graph), N(1, f->out_path), 1, N(3, &f->err));
}

/* --- sessions --------------------------------------------------------------------------------------------------- */

static int session_opts_init(fixture *f, int arg) {
    plait_session_opts opts;
    (void)f;
    (plait_session_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int session_create(fixture *f, int arg) {
    plait_session_opts opts;
    plait_session     *session = NULL;
    plait_session_opts_init(&opts);
    opts.threads = 1;
    plait_status status = plait_session_create(N(0, f->graph), N(1, &opts), N(2, &session), N(3, &f->err));
    plait_session_destroy(&session);
    return status;
}
static int session_destroy(fixture *f, int arg) {
    plait_session *none = NULL;
    (void)f;
    plait_session_destroy(N(0, &none));
    return NEUTRAL;
}
static int run(fixture *f, int arg) {
    const float       values[2] = { 1, 2 };
    float             out[2];
    const plait_feed  feed = { f->x, plait_tensor_of(PLAIT_F32, plait_shape_1(2), values) };
    plait_fetch       fetch = { f->y, plait_tensor_of(PLAIT_F32, plait_shape_1(2), out), sizeof out };
    const plait_value exclude = f->v;
    return plait_session_run(N(0, f->session), N(1, &feed), 1, N(3, &fetch), 1, N(5, &exclude), arg == 5 ? 1 : 0,
                             N(7, &f->err));
}
static int session_variable(fixture *f, int arg) {
    float out[2];
    return plait_session_variable(N(0, f->session), 0, N(2, out), N(3, &f->err));
}
static int set_variable(fixture *f, int arg) {
    const float in[2] = { 1, 2 };
    return plait_session_set_variable(N(0, f->session), 0, N(2, in), N(3, &f->err));
}
static int variable_info(fixture *f, int arg) {
    plait_variable_info info;
    return plait_session_variable_info(N(0, f->session), 0, N(2, &info), N(3, &f->err));
}

static int graph_place(fixture *f, int arg) {
    plait_graph      *graph = fresh_graph(f);
    const plait_value x = plait_graph_placeholder(graph, "x", PLAIT_F32, plait_shape_1(2));
    return built(f, plait_graph_place(N(0, graph), x, N(2, "rank:0")));
}
static int subgraph(fixture *f, int arg) {
    plait_graph      *graph = fresh_graph(f);
    const plait_value x = plait_graph_placeholder(graph, "x", PLAIT_F32, plait_shape_1(2));
    return plait_graph_subgraph(N(0, graph), N(1, "part"), N(2, &x), 1, N(4, &f->err));
}
static int subgraphs(fixture *f, int arg) { return NEUTRAL_IF(plait_graph_subgraphs(N(0, f->graph)) == 0); }
static int subgraph_name(fixture *f, int arg) {
    return NEUTRAL_IF(plait_graph_subgraph_name(N(0, f->graph), 0) == NULL);
}
static int place_rule(fixture *f, int arg) {
    plait_graph           *graph = fresh_graph(f);
    const plait_place_rule rule = { .kind = PLAIT_PLACE_NEVER,
                                    .a = plait_graph_placeholder(graph, "x", PLAIT_F32, plait_shape_1(2)) };
    return plait_graph_place_rule(N(0, graph), N(1, &rule), N(2, &f->err));
}
static int place_memory(fixture *f, int arg) {
    return plait_graph_place_memory(N(0, fresh_graph(f)), 0, 1, N(3, &f->err));
}
static int place_file(fixture *f, int arg) {
    return plait_graph_place_file(N(0, fresh_graph(f)), N(1, f->graph_path), N(2, &f->err));
}
static int placed(fixture *f, int arg) { return NEUTRAL_IF(plait_graph_placed(N(0, f->graph), f->x) == -1); }
static int place_opts_init(fixture *f, int arg) {
    plait_place_opts opts;
    (void)f;
    (plait_place_opts_init)(N(0, &opts));
    return NEUTRAL;
}
/* Places the graph's variable on one rank. */
static plait_status placed_graph(fixture *f, plait_placement **out) {
    plait_place_opts opts;
    plait_place_opts_init(&opts);
    opts.fetches = &f->v;
    opts.n_fetches = 1;
    return plait_placement_create(f->graph, &opts, out, &f->err);
}
static int placement_create(fixture *f, int arg) {
    plait_placement *p = NULL;
    plait_place_opts opts;
    plait_place_opts_init(&opts);
    opts.fetches = &f->v;
    opts.n_fetches = 1;
    const plait_status status = plait_placement_create(N(0, f->graph), N(1, &opts), N(2, &p), N(3, &f->err));
    plait_placement_destroy(&p);
    return status;
}
static int placement_destroy(fixture *f, int arg) {
    plait_placement *none = NULL;
    (void)f;
    plait_placement_destroy(N(0, &none));
    return NEUTRAL;
}
static int placement_parts(fixture *f, int arg) {
    plait_placement *p = NULL;
    if (placed_graph(f, &p) < 0) return OTHER;
    const int answer = NEUTRAL_IF(plait_placement_parts(N(0, p)) == NULL);
    plait_placement_destroy(&p);
    return answer;
}
static int placement_seconds(fixture *f, int arg) {
    plait_placement *p = NULL;
    if (placed_graph(f, &p) < 0) return OTHER;
    const int answer = NEUTRAL_IF(plait_placement_seconds(N(0, p)) == 0);
    plait_placement_destroy(&p);
    return answer;
}
static int placement_share(fixture *f, int arg) {
    plait_placement  *p = NULL;
    plait_place_share share;
    if (placed_graph(f, &p) < 0) return OTHER;
    const plait_status status = plait_placement_share(N(0, p), 0, N(2, &share), N(3, &f->err));
    plait_placement_destroy(&p);
    return status;
}

const null_case graph_cases[] = {
    { "graph_create", create, NULL },
    { "graph_destroy", destroy, "graph" },
    { "graph_check", check, NULL },
    { "graph_placeholder", placeholder, NULL },
    { "graph_constant", constant, NULL },
    { "graph_scalar", scalar, NULL },
    { "graph_variable", variable, NULL },
    { "graph_op", op, NULL },
    { "graph_output", output, NULL },
    { "graph_name", name, NULL },
    { "graph_find", find, NULL },
    { "graph_describe", describe, NULL },
    { "graph_nodes", nodes, NULL },
    { "graph_gradients", gradients, NULL },
    { "graph_paths", paths, NULL },
    { "graph_variables", variables, NULL },
    { "graph_variable_name", variable_name, NULL },
    { "graph_variable_initial", variable_initial, NULL },
    { "graph_file_opts_init", file_opts_init, NULL },
    { "graph_load", load, "opts" },
    { "graph_parse", parse, "opts" },
    { "graph_save", save, NULL },
    { "session_opts_init", session_opts_init, NULL },
    { "session_create", session_create, "opts" },
    { "session_destroy", session_destroy, "session" },
    { "session_run", run, NULL },
    { "session_variable", session_variable, NULL },
    { "session_set_variable", set_variable, NULL },
    { "session_variable_info", variable_info, NULL },
    { "graph_place", graph_place, NULL },
    { "graph_placed", placed, NULL },
    { "graph_subgraph", subgraph, NULL },
    { "graph_subgraphs", subgraphs, NULL },
    { "graph_subgraph_name", subgraph_name, NULL },
    { "graph_place_rule", place_rule, NULL },
    { "graph_place_memory", place_memory, NULL },
    { "graph_place_file", place_file, NULL },
    { "place_opts_init", place_opts_init, NULL },
    { "placement_create", placement_create, NULL },
    { "placement_destroy", placement_destroy, "placement" },
    { "placement_parts", placement_parts, NULL },
    { "placement_seconds", placement_seconds, NULL },
    { "placement_share", placement_share, NULL },
    { NULL, NULL, NULL },
};
