/* learn/net/net.h - a network as a learner sees it: a graph from the features of rows to their scores, whose variables
 * are parameter tables, one for each layer's weights and one for its biases.
 *
 *     x [rows, features] -> kind->build -> scores [rows, K] -> loss -> gradients -> inc of each variable
 *
 * A net over sparse data takes a batch as its entries. The entries name a few rows of the first layer's weights, and
 * only these rows are got and pushed, by key. So under hybrid that table lies on servers, while a collective sums the
 * others.
 *
 * A net of sequences takes text as numbers of symbols, x [rows, steps] i64, and answers at each step: scores [rows *
 * steps, K].
 *
 * Scores cost a loss of loss/loss.h, as in linear models, so every loss, class weight and row weight means the same.
 * The loss is an op of this room in the graph (net_loss.c). A kind of net is one file, listed once in nets.c, which
 * builds the graph. */
#ifndef PLI_LEARN_NET_H
#define PLI_LEARN_NET_H

#include <plait/model.h>
#include <plait/session.h>

#include "data/data.h"
#include "learn/net/candidates.h"
#include "learn/net/classes.h"
#include "learn/supervised/goal.h"
#include "learn/supervised/scale.h"

enum { PLI_NET_LAYERS = 16, PLI_NET_PARAMS = PLAIT_REPORT_TABLES, PLI_COLUMN_SHARES = 1000 };

typedef struct pli_net pli_net;

/* A parameter: variable i of the graph is param[i], and the table of this name. */
typedef struct pli_net_param {
    char        name[64];   /* "w1", "b1", "w2", ...                                     */
    int64_t     rows, cols; /* of its table                                              */
    int64_t     at;         /* index of its first value in the array of all values       */
    double      spread;     /* initial values are uniform in +- spread; 0: zeros         */
    int64_t     ones, n_ones; /* initial values ones .. ones + n_ones - 1 of a row are 1 */
    bool        penalised;  /* weights are, biases are not                               */
    int32_t     of; /* the whole net's parameter of which it is a piece (columns.c); in a whole net its own number */
    int64_t     row0, col0; /* where the piece lies in that parameter's rows and columns; by_class: these the other
                               way round */
    bool        by_class;   /* of a sampled softmax: a row for each class, where the whole parameter has a column */
    plait_value value, inc;
} pli_net_param;

typedef struct pli_net_kind {
    const char *name, *summary;
    const char *layers; /* the default of --layers, "128" */
    bool        even;   /* all features are scaled by one number, since neighbours are compared           */
    bool        sequence; /* text windows lie apart, and have a label at each place                       */
    bool        entries; /* its first layer may be over sparse data (pli_net_first) */
    int64_t     batch;  /* the most rows of a default batch */
    double      rate;   /* the default rate of adam; 0: the rule's own */
    /** Sets net->scores, by pli_net_dense and the like; width [n] is the list of --layers. Errors: EINVAL. */
    plait_status (*build)(pli_net *net, const int64_t *width, int32_t n, plait_error *err);
    /** For a net out of a file, instead of build: makes net->graph from net->text, and finds x, scores and params. */
    plait_status (*open)(pli_net *net, plait_error *err);
} pli_net_kind;

/* Training's units of the scores, for labels that are numbers: the last layer gives z, which is a score of mean +
 * spread z in the data's units. So z is near 0 and gradients are near 1, whatever the labels are. Training divides the
 * objective by unit, the loss of an error of one spread, so its minimum stays where it is. Classes, a graph out of a
 * file and --normalize none have mean 0, spread 1 and unit 1. */
typedef struct pli_net_units {
    const pli_goal *goal; /* borrowed */
    double          mean, spread, unit;
} pli_net_units;

/* A net out of a file. */
typedef struct pli_net_file {
    char   *text;   /* the graph in JSON, without first values */
    float  *first;  /* [values]                                */
    int64_t values;
    bool    drops; /* the graph drops values at random in training */
} pli_net_file;

extern const pli_net_kind pli_net_mlp, pli_net_cnn, pli_net_lstm, pli_net_graph;

struct pli_net {
    const pli_net_kind *kind;
    char                layers[64];
    char               *text; /* of a kind with open: the text that the net was made from; owned; else NULL */
    int32_t             axes;      /* of a row's features; 1 if they are no array         */
    int64_t             length[4]; /* [axes]                                              */
    bool                even;      /* as in the kind, or as build sets it                 */
    int32_t             symbols;   /* > 0: x holds numbers of so many symbols, or of unknown ones */
    bool                sparse;    /* fed by entries: x is [rows, 0]; param[0] is read and pushed by row */
    int64_t             row_values; /* of x: features, or symbols; 0: sparse              */
    int64_t             row_labels; /* labels of a row that have scores: 1, or one for each step */
    const pli_goal     *goal;      /* loss, targets, K; borrowed                          */
    int64_t             features;
    pli_net_units       units;     /* of the scores, while the net is trained */
    plait_op            loss_op;   /* user: &units */
    plait_graph        *graph;
    plait_graph        *calm; /* the graph that scores rows, in which nothing is dropped; NULL: graph itself */
    plait_value         x, label, weight; /* fed: [rows, row_values] f32 or i64, [rows row_labels] f64, the same */
    plait_value keys, row, column, value; /* sparse: keys of rows of param[0]; the others [entries], column into keys */
    plait_value         scores;           /* [rows row_labels, K] f32                      */
    plait_value         sums;             /* [PLI_SUMS] f64, as pli_sums has them          */
    plait_value         loss; /* of a net whose classes are in parts (classes.c), which has no scores; else NONE */
    plait_op            class_op[PLI_CLASS_OPS]; /* user: &units */
    pli_net_param       param[PLI_NET_PARAMS];
    int32_t             n_params;
    int64_t             values; /* of all params */
    int64_t             sampled; /* classes that a step draws (draws.h); 0: the softmax is whole */
    plait_value         candidates[PLI_NET_PARAMS], bonus[PLI_NET_PARAMS]; /* sampled: fed for each part, [any] i64 and
                                                                              f64 (candidates.h) */
    plait_value         judged; /* sampled, and in parts: the sums by all classes; else NONE */
    int32_t             columns; /* pieces of a layer, each of a rank of its own; 1: the net is whole */
    int32_t             share[PLI_NET_PARAMS]; /* [columns] of PLI_COLUMN_SHARES, above 0; 0 first: all are alike */
    int32_t            *place;   /* [n_place] of columns: the rank of each of the first nodes, -1: none; owned */
    int64_t             n_place, place_capacity;
};

/** All kinds, NULL-ended; the one of this name, or NULL. */
const pli_net_kind *const *pli_net_kinds(void);
const pli_net_kind *pli_net_kind_find(const char *name);

/* How a net is trained that is not trained as a whole. All 0: it is. */
typedef struct pli_net_trained_as {
    int32_t        columns; /* of an mlp; 1 and below: its layers are whole                                  */
    const int32_t *share;   /* [columns] of each layer's columns, of PLI_COLUMN_SHARES, above 0; NULL: all alike */
    int64_t        sampled; /* how many classes of its softmax a step draws; 0: all count                    */
} pli_net_trained_as;

/** Makes a net, with its gradients, for rows of a schema's features. layers: the list, NULL: the kind's default; for a
 *  kind with open, the text of its file. goal is borrowed for the net's life. density: the share of a row's features
 *  that is given, 1 if it is not known; it only decides how rows are fed. as: NULL: a whole net. Errors: EINVAL if
 *  layers is no list of numbers above 0; EREFUSED if a kind with dense rows has too many features, layers are too
 *  small for the columns, or it has no softmax to draw from; ENOMEM. */
plait_status pli_net_create(const pli_net_kind *kind, const char *layers, const pli_schema *schema,
                            const pli_goal *goal, int64_t features, double density, const pli_net_trained_as *as,
                            pli_net **net_out, plait_error *err);
void         pli_net_destroy(pli_net **net);

/** Reads a graph from a file, in JSON or ONNX. exclude, train: lists of its subgraphs that will be asked for, or NULL.
 *  Errors: as plait_graph_load; EREFUSED if a variable is not of f32; ENAME, EINVAL of the lists. */
plait_status pli_net_file_read(const char *path, uint64_t seed, const char *exclude, const char *train,
                               pli_net_file *file_out, plait_error *err);
void         pli_net_file_free(pli_net_file *file);

/** The layers argument by which pli_net_create makes the same net. */
static inline const char *pli_net_form(const pli_net *net) { return net->text != NULL ? net->text : net->layers; }

/** Checks the list of layers, before data are read. EINVAL. */
plait_status pli_net_check_layers(const pli_net_kind *kind, const char *layers, plait_error *err);

/* For kinds. Adds a variable, named by letter and layer ("w1"). PLAIT_NONE: the graph has failed. */
plait_value pli_net_variable(pli_net *net, char letter, int32_t layer, plait_shape shape, double spread);
/** Adds a dense layer x w + b; x [.., n], w [n, width]. For classes, initial values of w have variance gain / n; gain
 *  is 2 before a ReLU (He et al., ICCV 2015), else 1. For numbers the variance is 2 / (n + width) (Glorot and Bengio,
 *  AISTATS 2010). */
plait_value pli_net_dense(pli_net *net, plait_value x, int64_t n, int64_t width, int32_t layer, double gain);

/** The first layer of a kind with entries: a dense layer over all features, fed dense or by entries. */
plait_value pli_net_first(pli_net *net, int64_t width, double gain);
/** The last layer of a kind, from h [.., n] to the scores, and of a sampled softmax their loss. */
void pli_net_last(pli_net *net, plait_value h, int64_t n, int32_t layer);
/** Adds a parameter that the whole net may have in another place or form; PLAIT_NONE: the graph has failed. variable:
 *  its name in the graph. */
plait_value pli_net_piece(pli_net *net, const pli_net_param *piece, const char *variable, plait_shape shape);
/** Is param p read and pushed by row? */
static inline bool pli_net_by_row(const pli_net *net, int32_t p) {
    return net->param[p].by_class || (net->sparse && net->param[p].of == 0);
}

/** columns.c: builds an mlp in net->columns columns, as a kind's build does. */
plait_status pli_columns_build(pli_net *net, const int64_t *width, int32_t n, plait_error *err);
/** The nodes from `first` on are part's. Nothing in a net that is not in columns. */
void pli_columns_place(pli_net *net, int64_t first, int32_t part);
/** The first of n units that lies in column k; n if k is net->columns. */
int64_t pli_columns_edge(const pli_net *net, int64_t n, int32_t k);
/* Where a piece lies in the whole parameter, and how far apart its values are that are neighbours there. */
typedef struct pli_net_span {
    int64_t row0, col0, rows, cols, row_step, col_step;
} pli_net_span;
pli_net_span pli_columns_span(const pli_net_param *part);
/** Copies the values of a piece out of those of the whole parameter, or back to their places there. */
void pli_columns_take(const pli_net_param *whole, const pli_net_param *part, const float *from, float *to);
void pli_columns_put(const pli_net_param *whole, const pli_net_param *part, const float *from, float *to);

/** Writes the initial values [rows, cols] of parameter p of a net of layers; they depend on p and the seed alone. */
void pli_net_initial(const pli_net *net, int32_t p, uint64_t seed, float *values);
/** Writes the initial values [part->rows, part->cols] of a piece of a parameter: those that the whole has there. */
void pli_net_initial_piece(const pli_net *net, const pli_net_param *part, uint64_t seed, float *values);
/** If the net is even, changes the scale to one number for all features. */
void pli_net_even_scale(const pli_net *net, pli_scale *scale);
/** Sets net->units from the labels' mean and spread over the rows that are trained on. */
void pli_net_set_units(pli_net *net, double mean, double spread);
/** The penalty's factors on the last layer, parameter p, of l1 and l2; 1 of another: a weight of it in the data's units
 *  is spread times that of training. */
void pli_net_last_factors(const pli_net *net, int32_t p, double *l1_out, double *l2_out);
/** Changes values from training's units to the data's, in place: the scale goes into the first layer, the units of the
 *  scores into the last. */
void pli_net_to_data_units(const pli_net *net, const pli_scale *scale, float *values);
/** The first of both: first [2] are the weights and biases of the first layer, or columns of it. */
void pli_net_features_to_data_units(bool even, const pli_net_param first[2], const pli_scale *scale, float *values);
/** The way back. */
void pli_net_from_data_units(const pli_net *net, const pli_scale *scale, float *values);
/** Writes the name of value i to text, as "w1 0,3": its variable, and its place there. */
void pli_net_value_name(const pli_net *net, int64_t i, pli_text *text);
/** l2/2 ||w||^2 + l1 ||w||_1 of the weights. */
double pli_net_penalty(const pli_net *net, const float *values, double l1, double l2);

/* Rows of blocks, in the form that a net is fed. */
typedef struct pli_net_rows {
    void   *x;              /* [rows, row_values] f32 or i64   */
    double *label, *weight; /* [rows row_labels]; a place without label has weight 0, and some known label */
    int64_t x_capacity, label_capacity, weight_capacity;
    /* sparse: entries of the rows put since place 0, [entries] each; when fed, key is [unique] */
    uint64_t *key;
    uint32_t *order;
    int64_t  *row, *column;
    float    *value;
    pli_candidates candidates; /* sampled; draws are set by those who train */
    int64_t   entries, unique, key_capacity, order_capacity, row_capacity, column_capacity, value_capacity;
} pli_net_rows;

enum { PLI_NET_FEEDS = 5, PLI_NET_TRAIN_FEEDS = PLI_NET_FEEDS + 2 + 2 * PLI_NET_PARAMS };

/** Makes room for so many rows; false: no memory. */
bool pli_net_rows_reserve(const pli_net *net, pli_net_rows *to, int64_t rows);
void pli_net_rows_free(pli_net_rows *rows);
/** Puts a row at place `at`, which follows the place before, or is 0; scale NULL: in the data's units. Returns how many
 *  labels the row has; -1: no memory. A label that the model does not know is put as in the block; an earlier label of
 *  a window is put as NaN. */
int64_t pli_net_rows_put(const pli_net *net, const pli_block *block, int64_t row, const pli_scale *scale,
                         pli_net_rows *to, int64_t at);
/** Writes the feeds of the first `rows` rows, which are all that were put. Returns how many feeds; -1: no memory. */
int32_t pli_net_rows_feed(const pli_net *net, pli_net_rows *from, int64_t rows, plait_feed feeds[PLI_NET_FEEDS]);
/** The same for training: label and weight come first, then candidates. */
int32_t pli_net_feed_rows(const pli_net *net, pli_net_rows *from, int64_t rows, plait_feed feeds[PLI_NET_TRAIN_FEEDS]);
/** The same of rows whose keys are sorted; also of arrays that are NULL, for their shapes. */
int32_t pli_net_feeds_of(const pli_net *net, const pli_net_rows *from, int64_t rows,
                         plait_feed feeds[PLI_NET_TRAIN_FEEDS]);
/** How many feeds that are. */
static inline int32_t pli_net_feeds(const pli_net *net) {
    return 2 + (net->sampled > 0 ? 2 * net->columns : 0) + (net->sparse ? PLI_NET_FEEDS : 1);
}

/** Scores all rows of a block by values [net->values] in the data's units. Calls `each` for every row and every label
 *  of it, in order, with the label's scores [K]; false ends the pass. Any thread, several at once. */
plait_status pli_net_score(const pli_net *net, plait_session *session, const float *values, const pli_block *block,
                           bool (*each)(void *user, int64_t row, double label, const double *score), void *user,
                           plait_error *err);

/* Scores [n row_labels, K] of some rows of a block, and their labels [n row_labels]. */
typedef struct pli_scored {
    const float  *scores;
    const double *label;
} pli_scored;
/** Scores rows first .. first + n - 1. */
typedef plait_status pli_net_score_fn(void *user, const pli_block *block, int64_t first, int64_t n, pli_scored *out,
                                      plait_error *err);
/** The same by a function that scores some rows. */
plait_status pli_net_score_by(const pli_net *net, pli_net_score_fn *rows, void *rows_user, const pli_block *block,
                              bool (*each)(void *user, int64_t row, double label, const double *score), void *user,
                              plait_error *err);

/** Writes feeds [net->n_params] of all variables, from values. */
void pli_net_feed(const pli_net *net, const float *values, plait_feed *feeds);

/** net_loss.c: the op "row_loss": scores [n, K] f32 in training's units, label [n] f64, weight [n] f64 -> slopes [n, K]
 *  f32 of the objective by unit, their loss's sum f32 [], sums [PLI_SUMS] f64 in the data's units. */
plait_op pli_net_loss_op(const pli_net_units *units);

#endif
