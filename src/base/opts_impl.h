/* base/opts_impl.h - what the files of opts share; no other file includes it. */
#ifndef PLI_BASE_OPTS_IMPL_H
#define PLI_BASE_OPTS_IMPL_H

#include "base/alloc.h"
#include "base/opts.h"

struct pli_opts {
    const pli_opt *rows;
    const pli_opt *beside; /* another table, whose names may stand in the configuration file, too; NULL: none */
    int64_t        n;      /* number of rows */
    pli_opt       *own;    /* rows again if they are freed with opts; else NULL */
    pli_arena      arena;  /* all texts, lists and places */
    struct pli_opts_where {
        pli_origin  origin;
        const char *place;
    } *where; /* [n] */
};

/* The row called name [length], or NULL. */
const pli_opt *pli_opts_row(const pli_opts *opts, const char *name, size_t length);

/** Fails with ENAME and names the nearest row that may be set: "who; did you mean ...?". prefix is put before that
 *  name. */
plait_status pli_opts_unknown(const pli_opts *opts, const char *who, const char *name, const char *prefix,
                              plait_error *err);

/** Gives row its value from text, and remembers origin and place. A list item joins the items of the same origin and
 *  replaces those of lower origins. The error begins with who ("--epochs", "run.yaml:3: epochs"). place is kept, not
 *  copied. */
plait_status pli_opts_assign(pli_opts *opts, const pli_opt *row, void *target, const char *text, pli_origin origin,
                             const char *place, const char *who, plait_error *err);

/* Zeroes the fields of all rows. */
void pli_opts_clear(const pli_opt *rows, void *target);

/* A copy that lives as long as opts; NULL: out of memory. */
const char *pli_opts_keep(pli_opts *opts, const char *text);

/** Adds a copy of text to list. false: out of memory. */
bool pli_opts_append(pli_opts *opts, pli_text_list *list, const char *text);

/** Reads a configuration file of YAML, given as bytes; errors and places call it path. */
plait_status pli_opts_read_yaml(pli_opts *opts, void *target, const char *path, const void *bytes, size_t n,
                                plait_error *err);

#endif
