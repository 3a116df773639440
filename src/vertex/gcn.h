/* vertex/gcn.h - what a graph convolution learns from: a row of features and a label for each vertex, and which rows
 * train.
 *
 *     gcn_data.c  reads it, and makes the graph's normalised matrix
 *     gcn.c       the program: forward, back, update */
#ifndef PLI_VERTEX_GCN_H
#define PLI_VERTEX_GCN_H

#include "vertex/vertex.h"

typedef enum pli_gcn_kind { PLI_GCN_NONE, PLI_GCN_TRAIN, PLI_GCN_VALIDATION, PLI_GCN_TEST, PLI_GCN_KINDS } pli_gcn_kind;

/* Row r is of the vertex with id r; a vertex without edges has a row, too. */
typedef struct pli_gcn_data {
    int64_t    rows, features;
    int32_t    classes;
    int64_t    label[64];  /* [classes] increasing                                  */
    int32_t   *class_of;   /* [rows] which label                                    */
    uint8_t   *kind;       /* [rows] pli_gcn_kind                                   */
    int64_t   *start;      /* [rows + 1] of features that are not 0, and these:     */
    uint32_t  *column;
    float     *value;      /* a row's values add up to 1                            */
    pli_neighbors near;    /* of a row: neighbors and itself; weight 1 / sqrt of both ends' numbers of these */
    /* What a run came to; atomic: all workers of a process write the same. */
    double accuracy[PLI_GCN_KINDS], loss; /* of training, with the last weights */
} pli_gcn_data;

/** features: a file of rows with labels, in the order of ids 0, 1, ...; split: a word a line, train, val or test, or
 *  another: none of these. Errors: EIO, ENOMEM; EFORMAT what does not fit, by file. */
plait_status pli_gcn_load(const plait_edges *edges, const char *features, const char *split, pli_gcn_data **data_out,
                          plait_error *err);
void         pli_gcn_free(pli_gcn_data **data);
/** As pli_vertex_named has them. */
plait_status pli_gcn_prepare(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err);
void         pli_gcn_release(void **own);

#endif
