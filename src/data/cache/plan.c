/* Whether and where to cache: a data set's wish, and the stamp of all that its blocks depend on. */
#include <string.h>

#include "data/cache/layout.h"

static uint64_t add_to_stamp(uint64_t stamp, const char *text) {
    return text != NULL ? pli_hash_bytes(text, strlen(text), stamp) : pli_hash_u64(stamp + 1);
}

static uint64_t add_file(uint64_t stamp, const char *path) {
    const char *slash = strrchr(path, '/');
    int64_t     facts[2] = { pli_file_bytes(path), pli_file_mtime_ns(path) };
    return pli_hash_bytes(facts, sizeof facts, add_to_stamp(stamp, slash != NULL ? slash + 1 : path));
}

/* The texts among the options that the blocks depend on. */
enum { TEXTS = 10 };

static void texts_of(plait_data_opts *o, const char **texts[TEXTS]) {
    const char **all[TEXTS] = {
        &o->format, &o->index_base, &o->header, &o->label, &o->weight_column, &o->text_columns, &o->delimiter,
        &o->interactions, &o->ngram, &o->group_column
    };
    memcpy(texts, all, sizeof all);
}

/* Hashes all that the blocks depend on. */
static plait_status make_stamp(pli_datacache_wish *wish, char *files, bool dealt, plait_error *err) {
    const char **texts[TEXTS];
    int64_t      numbers[] = { PLI_CACHE_VERSION, wish->opts.hash_bits, wish->opts.blocks, dealt,
                                 wish->opts.keep_missing, wish->opts.pairs, wish->opts.origins };
    uint64_t     stamp = pli_hash_bytes(numbers, sizeof numbers, 0);
    pli_text     json = { 0 };
    texts_of(&wish->opts, texts);
    for (size_t i = 0; i < TEXTS; i++) stamp = add_to_stamp(stamp, *texts[i]);
    for (char *at = files; *at != '\0';) {
        char *end = strchr(at, '\n');
        *end = '\0';
        char *weights = pli_format("%s.weight", at);
        if (weights == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the name of a cache");
        if (wish->path == NULL) wish->path = pli_format("%s.plait-cache", at);
        stamp = add_file(add_file(stamp, at), weights);
        pli_free(weights);
        at = end + 1;
    }
    if (wish->path == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the name of a cache");
    if (wish->fixed != NULL) PLI_TRY(pli_schema_write_model(wish->fixed, &json, err));
    if (wish->fixed != NULL) stamp = pli_hash_bytes(json.data, json.length, stamp);
    pli_text_free(&json);
    wish->stamp = stamp;
    return PLAIT_OK;
}

static bool own_text(const char **text) {
    if (*text == NULL) return true;
    *text = pli_strdup(*text);
    return *text != NULL;
}

/* A wish with its own copies of the texts. */
static pli_datacache_wish *copy_wish(const plait_data_opts *opts, const pli_schema *fixed) {
    pli_datacache_wish *wish = pli_calloc(1, sizeof *wish);
    if (wish == NULL) return NULL;
    const char    **to[TEXTS], **from[TEXTS];
    plait_data_opts given = *opts;
    bool            good = true;
    wish->opts.size = opts->size;
    wish->opts.hash_bits = opts->hash_bits;
    wish->opts.keep_missing = opts->keep_missing;
    wish->opts.pairs = opts->pairs;
    wish->opts.origins = opts->origins;
    wish->opts.blocks = opts->blocks;
    texts_of(&wish->opts, to);
    texts_of(&given, from);
    for (size_t i = 0; good && i < TEXTS; i++) {
        *to[i] = *from[i];
        good = own_text(to[i]);
    }
    if (good && fixed != NULL) good = (wish->fixed = pli_schema_copy(fixed)) != NULL;
    if (!good) pli_datacache_forget(&wish);
    return wish;
}

plait_status pli_datacache_plan(const plait_data_opts *opts, const pli_schema *fixed, bool dealt,
                                pli_datacache_wish **wish_out, plait_error *err) {
    pli_text     files = { 0 };
    plait_status status = PLAIT_OK;
    *wish_out = NULL;
    if (!opts->cache) return PLAIT_OK;
    status = pli_sources_list(opts->paths, opts->n_paths, &files, err);
    if (status == PLAIT_OK && files.data != NULL && strcmp(files.data, "-\n") != 0) {
        pli_datacache_wish *wish = copy_wish(opts, fixed);
        status = wish != NULL ? make_stamp(wish, files.data, dealt, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for a cache");
        if (status < 0) pli_datacache_forget(&wish);
        *wish_out = wish;
    }
    pli_text_free(&files);
    return status;
}

void pli_datacache_forget(pli_datacache_wish **wish) {
    pli_datacache_wish *w = wish != NULL ? *wish : NULL;
    if (w == NULL) return;
    const char **texts[TEXTS];
    texts_of(&w->opts, texts);
    for (size_t i = 0; i < TEXTS; i++) pli_free((void *)(uintptr_t)*texts[i]);
    pli_schema_destroy(&w->fixed);
    pli_free(w->path);
    pli_free(w);
    *wish = NULL;
}
