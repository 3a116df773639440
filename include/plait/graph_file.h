/* plait/graph_file.h - graphs from files, and to them: a JSON form of Plait's own, and ONNX.
 *
 *     { "plait_graph": 1,
 *       "nodes": [ { "name": "x", "op": "placeholder", "type": "f32", "shape": [null, 784] },
 *                  { "name": "w", "op": "variable", "type": "f32", "shape": [784, 10], "initial": "glorot" },
 *                  { "name": "scores", "op": "matmul", "inputs": ["x", "w"] } ] }
 *
 * docs/graph.md has the whole form. An ONNX file (IR 8 to 11, opset 17 to 23) needs the module plait-onnx.so; its
 * inputs become placeholders, its initialisers of floats variables, both by their names, and the ops of docs/onnx.md
 * are known. Where nothing is called so already, its first input is also named x, and its first output scores.
 *
 * A file is held against everything that is known before anything is computed: what is wrong is named with the node
 * and, in JSON, the line. Loading a file runs nothing and opens no other file. Threads: as plait/graph.h. */
#ifndef PLAIT_GRAPH_FILE_H
#define PLAIT_GRAPH_FILE_H

#include <plait/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_graph_file_opts {
    size_t                 size; /* set by plait_graph_file_opts_init                                             */
    const plait_op *const *ops;  /* [n_ops] of the program's own, as plait_graph_create has them; may be NULL      */
    int32_t                n_ops;
    uint64_t               seed;         /* of first values that are drawn                                         */
    size_t                 values_bytes; /* the most that values may take together; 0: the memory that is free     */
} plait_graph_file_opts;

PLAIT_API void plait_graph_file_opts_init(plait_graph_file_opts *opts);

/** The graph of a file in either form, which its first byte tells. opts may be NULL. Errors: EIO; EFORMAT malformed, a
 *  cycle, a name that is there twice, an input that is no node's; ENAME an op, an attribute or a key that is not
 *  known, with the nearest that is; ESHAPE shapes or types that disagree, with both ops; EVERSION of a newer version;
 *  EREFUSED ONNX with data in other files; EMODULE no plait-onnx.so; ENOMEM. */
PLAIT_API plait_status plait_graph_load(const char *path, const plait_graph_file_opts *opts, plait_graph **graph_out,
                                        plait_error *error_out);
/** The same of bytes [n] in memory. name stands for the path in errors. */
PLAIT_API plait_status plait_graph_parse(const char *name, const void *bytes, size_t n,
                                         const plait_graph_file_opts *opts, plait_graph **graph_out,
                                         plait_error *error_out);

/** Writes the JSON form: temporary name, sync, rename. values 0: variables without their first values, which are then
 *  zeros. What is read back computes the same. Errors: EIO; what plait_graph_check says. */
PLAIT_API plait_status plait_graph_save(const plait_graph *graph, const char *path, int values, plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
