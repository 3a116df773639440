/* plait/graph_file.h - reads graphs from files and writes them: Plait's own JSON form, and ONNX.
 *
 *     { "plait_graph": 1,
 *       "nodes": [ { "name": "x", "op": "placeholder", "type": "f32", "shape": [null, 784] },
 *                  { "name": "w", "op": "variable", "type": "f32", "shape": [784, 10], "initial": "glorot" },
 *                  { "name": "scores", "op": "matmul", "inputs": ["x", "w"] } ] }
 *
 * docs/graph.md has the whole form. An ONNX file (IR 8 to 11, opset 17 to 23) needs the module plait-onnx.so; its
 * inputs become placeholders and its float initialisers variables, both under their names. docs/onnx.md lists the known
 * ops. The first input is also named x, and the first output scores, if the file does not use these names.
 *
 * A file is checked as a whole before anything is computed: an error names the node and, in JSON, the line. Loading a
 * file runs nothing and opens no other file. Threads: as plait/graph.h. */
#ifndef PLAIT_GRAPH_FILE_H
#define PLAIT_GRAPH_FILE_H

#include <plait/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_graph_file_opts {
    size_t                 size; /* set by plait_graph_file_opts_init                                             */
    const plait_op *const *ops;  /* [n_ops] ops of the program's own, as in plait_graph_create; may be NULL        */
    int32_t                n_ops;
    uint64_t               seed;         /* of random first values                                                 */
    size_t                 values_bytes; /* the most bytes that all values together may take; 0: the free memory   */
} plait_graph_file_opts;

PLAIT_API void plait_graph_file_opts_init(plait_graph_file_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_graph_file_opts_init_sized(plait_graph_file_opts *opts, size_t size);
#define plait_graph_file_opts_init(opts) plait_graph_file_opts_init_sized(opts, sizeof(plait_graph_file_opts))

/** Loads the graph of a file in either form; the first byte tells which. opts may be NULL. Errors: EIO; EFORMAT
 *  malformed, a cycle, a name used twice, an input that no node has as output; ENAME an unknown op, attribute or key
 *  (the nearest known is named); ESHAPE shapes or types that disagree (both ops are named); EVERSION of a newer
 *  version; EREFUSED ONNX with data in other files; EMODULE no plait-onnx.so; ENOMEM. */
PLAIT_API plait_status plait_graph_load(const char *path, const plait_graph_file_opts *opts, plait_graph **graph_out,
                                        plait_error *error_out);
/** Loads a graph from bytes [n] in memory. Error texts have name where they would have the path. */
PLAIT_API plait_status plait_graph_parse(const char *name, const void *bytes, size_t n,
                                         const plait_graph_file_opts *opts, plait_graph **graph_out,
                                         plait_error *error_out);

/** Writes the JSON form: temporary name, sync, rename. values 0: first values of variables are left out, and are zeros
 *  when the file is read. A graph that is read back computes the same. Errors: EIO; what plait_graph_check says. */
PLAIT_API plait_status plait_graph_save(const plait_graph *graph, const char *path, int values, plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
