/* table/filter/filter.h - filters by name, and the chain of them that a table has at each end of its messages.
 * plait/filter.h says what a filter is.
 *
 * One file a filter, listed once in filters.c; a job's own come beside them. chain.c puts a part through the filters
 * and back; residual.c keeps what did not travel. Neither knows messages: those belong to table/client/client_filter.c
 * and table/server/server_filter.c.
 *
 * A filtered part is a byte of flags, and then, as they apply and packed by the bytes filters together:
 *     which rows of n travel   number, form, and a bit a row or the gaps between them
 *     keys                     a token, or their size and bytes
 *     values                   the rest
 */
#ifndef PLI_TABLE_FILTER_H
#define PLI_TABLE_FILTER_H

#include <stdbool.h>

#include <plait/filter.h>

#include "base/base.h"
#include "table/filter/bytes.h"
#include "table/state/rowset.h"

enum { PLI_FILTERS_MAX = 8, PLI_FILTERS_TEXT = 96 };

/** All filters that come with plait, NULL-terminated. */
const plait_filter *const *pli_filters(void);

/* Where the names of filters are looked up. */
typedef struct pli_filter_scope {
    const plait_filter *own; /* [n_own], borrowed: registered by the program */
    int32_t             n_own;
} pli_filter_scope;

/* A list of filters, "key-cache,topk:0.1", as it was given. */
typedef struct pli_filters_list {
    int32_t             n;
    const plait_filter *filter[PLI_FILTERS_MAX];
    char                text[PLI_FILTERS_TEXT];        /* names and parameters, cut into words */
    const char         *parameters[PLI_FILTERS_MAX];   /* NULL: none; within text, so a list is not copied */
    int32_t             values, lists, keys;           /* the number of the filter that does it; -1: none */
} pli_filters_list;

/** Reads names, parameters and order. text "" or NULL: an empty list. scope may be NULL. Errors: ENAME the nearest is
 *  named; EINVAL; EREFUSED filters that do not go in this order. */
plait_status pli_filters_read(const char *text, const pli_filter_scope *scope, pli_filters_list *list_out,
                              plait_error *err);
/** Can each of them work on this table? EREFUSED; ENOMEM. */
plait_status pli_filters_check_table(const pli_filters_list *list, const plait_filter_table *table, plait_error *err);
/** May a program register these [n]? EINVAL. */
plait_status pli_filters_check_own(const plait_filter *own, int32_t n, plait_error *err);
/** Has one of the filters this loss? */
bool pli_filters_have(const pli_filters_list *list, plait_loss loss);
/** Would a part that goes this way come out different from how it went in? */
bool pli_filters_touch(const pli_filters_list *list, plait_way way, bool keyed);

struct pli_rest; /* table/state/rest.h */

/* --- what did not travel ---------------------------------------------------------------------------------------- */

typedef struct pli_residual {
    plait_type type;
    int64_t    cols, row_bytes;
    bool       keyed;
    int64_t    first, rows; /* not keyed: the rows of the shard */
    pli_rowset set;         /* keyed */
    void      *values;      /* not keyed [rows, cols], NULL: all zero; keyed [set.n, cols]  */
    int64_t    capacity;    /* keyed: rows of values */
    int64_t   *at;          /* scratch */
    int64_t    at_capacity;
} pli_residual;

void pli_residual_init(pli_residual *residual, const plait_filter_table *table);
void pli_residual_destroy(pli_residual *residual);
/** Adds what is kept of these rows to values [n, cols]. */
void pli_residual_add_to(pli_residual *residual, const plait_part *part, void *values);
/** From now on values [n, cols] are what is kept of these rows. Errors: ENOMEM. */
plait_status pli_residual_set(pli_residual *residual, const plait_part *part, const void *values);
/** Adds values [n, cols] to what is kept of these rows. Errors: ENOMEM. */
plait_status pli_residual_add(pli_residual *residual, const plait_part *part, const void *values);
/** Copies all that is kept to rest, which is empty. Errors: ENOMEM. */
plait_status pli_residual_copy(const pli_residual *residual, struct pli_rest *rest);
void         pli_residual_clear(pli_residual *residual);

/* --- a chain ------------------------------------------------------------------------------------------------------ */

/* One end of the messages of a worker and a server about one table. */
typedef struct pli_chain {
    const pli_filters_list *list; /* borrowed */
    plait_filter_table      table;
    void                   *state[PLI_FILTERS_MAX];
    bool                    feedback; /* something may be left of a push */
    pli_residual            residual;
    int64_t                 examples; /* of the last push */
    /* scratch: what encode works on */
    void          *values, *sent, *back;
    unsigned char *fate; /* of each row, and behind them the marks that a filter is given */
    uint64_t      *row;
    int64_t        values_capacity, sent_capacity, back_capacity, fate_capacity, row_capacity;
    pli_bytes      packed;
} pli_chain;

plait_status pli_chain_open(pli_chain *chain, const pli_filters_list *list, const plait_filter_table *table,
                            plait_error *err);
void         pli_chain_close(pli_chain *chain);

/** Appends the part, with values [n, cols], to out. exact: without losses. *n_out: the number of rows of the part that
 *  the other end is told. Errors: ENOMEM; what a filter says. */
plait_status pli_chain_encode(pli_chain *chain, const plait_part *part, const void *values, bool exact, pli_bytes *out,
                              int64_t *n_out, plait_error *err);

/* A part that was decoded. */
typedef struct pli_decoded {
    int64_t   n;
    uint64_t *keys;   /* [n], of pli_malloc, or NULL */
    void     *values; /* [n, cols], of pli_malloc, or NULL */
    bool      missing; /* the list of keys is not known: ask for token */
    unsigned char token[PLAIT_TOKEN_BYTES];
} pli_decoded;

/** Decodes the part's n rows from bytes [size], as the other end described them (keys NULL; keyed says whether it has
 *  keys). In a pushed range and in an answer, rows that did not travel are zeros. Errors: EFORMAT what does not add up;
 *  ENOMEM. */
plait_status pli_chain_decode(pli_chain *chain, const plait_part *part, bool keyed, const void *bytes, int64_t size,
                              pli_decoded *decoded_out, plait_error *err);
void pli_decoded_free(pli_decoded *decoded);
/** Tells the filters that a worker has got an answer. */
plait_status pli_chain_seen(pli_chain *chain, const plait_part *part, const void *values, plait_error *err);

/** Appends the list that a token stands for, so that the other end learns it; *n_out: its length. EFORMAT: the list is
 *  forgotten. */
plait_status pli_chain_encode_list(pli_chain *chain, const void *token, pli_bytes *out, int64_t *n_out,
                                   plait_error *err);

/* --- for the filters themselves --------------------------------------------------------------------------------- */

plait_status pli_filter_takes_none(const char *name, const char *parameters, plait_error *err);
/** ":0.01" -> a fraction in (0, 1]. */
plait_status pli_filter_fraction(const char *name, const char *parameters, double *out, plait_error *err);

static inline double pli_value_at(plait_type type, const void *values, int64_t i) {
    return type == PLAIT_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}
static inline void pli_value_put(plait_type type, void *values, int64_t i, double x) {
    if (type == PLAIT_F32) ((float *)values)[i] = (float)x;
    else ((double *)values)[i] = x;
}
static inline int64_t pli_value_bytes(plait_type type) { return type == PLAIT_F32 ? 4 : 8; }
/** The number or key of row i of a part. */
static inline uint64_t pli_part_row(const plait_part *part, int64_t i) {
    return part->keys != NULL ? part->keys[i] : (uint64_t)(part->first + i);
}

/** The random numbers of a part: each (seed, table, clock, way) has a stream, and in it each (row, column) has a
 *  number. */
static inline uint64_t pli_part_stream(const plait_part *part) {
    pli_random random = pli_random_at(part->seed, PLI_RANDOM_ROUND, (uint64_t)part->table * 4 + (uint64_t)part->way,
                                      (uint64_t)part->clock);
    return pli_random_u64(&random);
}
static inline double pli_stream_unit(uint64_t stream, uint64_t row, int64_t column) { /* [0, 1) */
    uint64_t x = pli_hash_u64(stream ^ pli_hash_u64(row + (uint64_t)column * UINT64_C(0x9e3779b97f4a7c15)));
    return (double)(x >> 11) * 0x1p-53;
}

/** Keeps the mark of a fraction of the marked rows: those of the highest score [n], at least one. Among equal scores
 *  the earlier row wins. NaN counts as highest. false: out of memory. */
bool pli_filter_select(int64_t n, const double *score, double fraction, unsigned char *keep);

/* The filters; one file each. */
extern const plait_filter pli_key_cache_filter, pli_key_delta_filter, pli_fixed8_filter, pli_fixed16_filter,
    pli_fp16_filter, pli_bf16_filter, pli_topk_filter, pli_randk_filter, pli_onebit_filter, pli_significant_filter,
    pli_kkt_filter, pli_zstd_filter;

/* fixed.c: what fixed8 and fixed16 share. Their state: */
typedef struct pli_fixed {
    int width; /* bytes of a value on the wire */
} pli_fixed;
int64_t      pli_fixed_bound(const void *state, const plait_part *part, int64_t n);
int64_t      pli_fixed_encode(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values,
                              void *bytes);
plait_status pli_fixed_decode(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size,
                              void *values);

/* half.c: what fp16 and bf16 share. Their state: */
typedef struct pli_half {
    uint16_t (*narrow)(float value); /* between a float32 and two bytes */
    float (*widen)(uint16_t half);
} pli_half;
int64_t      pli_half_bound(const void *state, const plait_part *part, int64_t n);
int64_t      pli_half_encode(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values,
                             void *bytes);
plait_status pli_half_decode(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size,
                             void *values);

#endif
