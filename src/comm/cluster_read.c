/* Reads a cluster's file. libyaml loads the YAML as a document whose nodes know their lines; tables of fields say
 * what may stand where, one for each kind of mapping (cluster_fields.c). The tables also bound the depth of a file,
 * so an anchor can make no cycle. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/base.h"
#include "comm/cluster_fields.h"

enum { RANKS_MAX = 1 << 17, LIST_MAX = 1 << 16, NAMES_MAX = 24 /* at least as many as a mapping has keys */ };
#define FILE_MAX ((size_t)16 << 20)

/* --- the reader ---------------------------------------------------------------------------------------------- */

typedef struct reader {
    const char     *path;
    plait_error    *err;
    yaml_document_t document;
    pli_cluster    *cluster;
} reader;

static int32_t line_of(const yaml_node_t *node) { return (int32_t)node->start_mark.line + 1; }

__attribute__((format(printf, 3, 4))) static plait_status refuse(const reader *r, const yaml_node_t *node,
                                                                 const char *fmt, ...) {
    char    what[384];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return pli_fail(r->err, PLAIT_EFORMAT, "%.100s:%d: %s", r->path, node != NULL ? (int)line_of(node) : 1, what);
}

static plait_status no_memory(const reader *r) {
    return pli_fail(r->err, PLAIT_ENOMEM, "%s: no memory to read it", r->path);
}

static const char *text_of(const yaml_node_t *node) {
    if (node == NULL || node->type != YAML_SCALAR_NODE) return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
}

static yaml_node_t *node_at(reader *r, int index) { return yaml_document_get_node(&r->document, index); }

static int64_t pairs_of(const yaml_node_t *node) {
    return node->data.mapping.pairs.top - node->data.mapping.pairs.start;
}
static int64_t items_of(const yaml_node_t *node) {
    return node->data.sequence.items.top - node->data.sequence.items.start;
}

static plait_status unknown(const reader *r, const yaml_node_t *node, const char *what, const char *name,
                            const char *const *names, size_t n) {
    plait_error why;
    pli_fail_unknown(&why, what, name, names, n);
    return refuse(r, node, "%.350s", why.text);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static plait_status read_quantity(const reader *r, const yaml_node_t *node, const pli_field *f, const char *text,
                                  void *at) {
    char   wanted[PLI_FIELD_WANTED];
    double value = 0;
    if (!pli_field_parse(f, text, &value, wanted)) return refuse(r, node, "%s: %s", f->name, wanted);
    if (f->kind == PLI_FIELD_COUNT) *(int32_t *)at = (int32_t)value;
    else *(double *)at = value;
    return PLAIT_OK;
}

/* Reads "3", "2-5" or "all" into two int32. */
static plait_status read_ranks(const reader *r, const yaml_node_t *node, const char *text, int32_t *range) {
    char        first[32];
    int64_t     low = 0, high = -1;
    const char *dash = strchr(text, '-');
    size_t      length = dash != NULL ? (size_t)(dash - text) : strlen(text);
    if (strcmp(text, "all") == 0) {
        range[0] = 0;
        range[1] = -1;
        return PLAIT_OK;
    }
    snprintf(first, sizeof first, "%.*s", (int)(length < 30 ? length : 30), text);
    bool good = pli_parse_i64(first, &low) && (dash == NULL || pli_parse_i64(dash + 1, &high));
    if (dash == NULL) high = low;
    if (!good || low < 0 || high < low || high >= RANKS_MAX)
        return refuse(r, node, "ranks: '%.60s': expected one rank, such as 3, several, such as 2-5, or all", text);
    range[0] = (int32_t)low;
    range[1] = (int32_t)high;
    return PLAIT_OK;
}

static plait_status find_named(const reader *r, const yaml_node_t *node, const char *what, const char *text,
                               const char *first, size_t stride, int64_t n, int32_t *at) {
    const char *names[NAMES_MAX];
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(first + (size_t)i * stride, text) == 0) {
            *at = (int32_t)i;
            return PLAIT_OK;
        }
        if (i < NAMES_MAX) names[i] = first + (size_t)i * stride;
    }
    if (n == 0) return refuse(r, node, "%s '%.48s' is not described; the list %ss is empty", what, text, what);
    return unknown(r, node, what, text, names, n < NAMES_MAX ? (size_t)n : NAMES_MAX);
}

/* Reads ranks of one side: "3", "2-5", or a list of such. */
static plait_status read_side(reader *r, const yaml_node_t *node, uint16_t side, pli_sides *sides) {
    const char *text = text_of(node);
    int32_t     range[2];
    if (text == NULL && node->type == YAML_SEQUENCE_NODE && items_of(node) > 0) {
        for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
            if (text_of(node_at(r, *i)) == NULL) return refuse(r, node, "sides: expected ranks in each list");
            PLI_TRY(read_side(r, node_at(r, *i), side, sides));
        }
        return PLAIT_OK;
    }
    if (text == NULL) return refuse(r, node, "sides: expected lists of ranks, such as [[0, 2], [1, 3-5]]");
    PLI_TRY(read_ranks(r, node, text, range));
    if (range[1] < 0) return refuse(r, node, "sides: 'all' is no side; expected ranks, such as 3 or 2-5");
    if (range[1] >= sides->n) {
        uint16_t *more = pli_realloc(sides->side, (size_t)(range[1] + 1), sizeof *more);
        if (more == NULL) return no_memory(r);
        memset(more + sides->n, 0, (size_t)(range[1] + 1 - sides->n) * sizeof *more);
        sides->side = more;
        sides->n = range[1] + 1;
    }
    for (int32_t rank = range[0]; rank <= range[1]; rank++) {
        if (sides->side[rank] != 0) return refuse(r, node, "sides: rank %d is named twice", rank);
        sides->side[rank] = side;
    }
    return PLAIT_OK;
}

/* Ranks that are not named are one side more. */
static plait_status read_sides(reader *r, const yaml_node_t *node, pli_sides *sides) {
    if (node->type != YAML_SEQUENCE_NODE || items_of(node) < 1 || items_of(node) >= UINT16_MAX)
        return refuse(r, node, "sides: expected lists of ranks, such as [[0, 2], [1, 3-5]]");
    uint16_t side = 0;
    for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++)
        PLI_TRY(read_side(r, node_at(r, *i), ++side, sides));
    return PLAIT_OK;
}

static plait_status read_value(reader *r, const yaml_node_t *node, const pli_field *f, void *target) {
    const char *text = text_of(node);
    void       *at = (char *)target + f->at;
    pli_cluster *c = r->cluster;
    if (f->kind == PLI_FIELD_SIDES) return read_sides(r, node, at);
    if (text == NULL) return refuse(r, node, "%s: expected a plain value here", f->name);
    switch (f->kind) {
    case PLI_FIELD_NAME:
        if (*text == '\0' || strlen(text) >= PLI_CLUSTER_NAME)
            return refuse(r, node, "name: expected 1 to %d characters", PLI_CLUSTER_NAME - 1);
        memcpy(at, text, strlen(text) + 1);
        return PLAIT_OK;
    case PLI_FIELD_RANKS: return read_ranks(r, node, text, at);
    case PLI_FIELD_RACK:
        return find_named(r, node, "rack", text, c->racks > 0 ? c->rack[0].name : NULL, sizeof *c->rack, c->racks, at);
    case PLI_FIELD_SITE:
        return find_named(r, node, "site", text, c->sites > 0 ? c->site[0].name : NULL, sizeof *c->site, c->sites, at);
    case PLI_FIELD_ONE_OR_ALL:
        if (strcmp(text, "one") != 0 && strcmp(text, "all") != 0)
            return refuse(r, node, "hosts: '%.60s': expected one (a random host each time) or all", text);
        *(bool *)at = strcmp(text, "one") == 0;
        return PLAIT_OK;
    default: return read_quantity(r, node, f, text, at);
    }
}

/* Reads a mapping of these fields into target. */
static plait_status read_fields(reader *r, const yaml_node_t *node, const char *what, const pli_fields *fields,
                                void *target) {
    const char *names[NAMES_MAX];
    uint32_t    seen = 0;
    if (node->type != YAML_MAPPING_NODE) return refuse(r, node, "%s: expected `name: value` lines", what);
    for (size_t i = 0; i < fields->n; i++) names[i] = fields->field[i].name;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(r, pair->key);
        const char        *name = text_of(key);
        size_t             i = 0;
        if (name == NULL) return refuse(r, key, "%s: a name is wanted here", what);
        while (i < fields->n && strcmp(fields->field[i].name, name) != 0) i++;
        if (i == fields->n) {
            char of[64];
            snprintf(of, sizeof of, "key in %s", what);
            return unknown(r, key, of, name, names, fields->n);
        }
        if (seen & UINT32_C(1) << i) return refuse(r, key, "%s: %s is given twice", what, name);
        seen |= UINT32_C(1) << i;
        PLI_TRY(read_value(r, node_at(r, pair->value), &fields->field[i], target));
    }
    for (size_t i = 0; i < fields->n; i++)
        if (fields->field[i].required && !(seen & UINT32_C(1) << i))
            return refuse(r, node, "%s: %s is missing", what, fields->field[i].name);
    return PLAIT_OK;
}

/* --- lists ------------------------------------------------------------------------------------------------------ */

typedef plait_status item_fn(reader *r, const yaml_node_t *node);

static plait_status read_list(reader *r, const yaml_node_t *node, const char *what, item_fn *item) {
    if (node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0) return PLAIT_OK; /* `events:` with nothing
                                                                                           * behind it */
    if (node->type != YAML_SEQUENCE_NODE) return refuse(r, node, "%s: expected a list, each item after a `-`", what);
    if (items_of(node) > LIST_MAX) return refuse(r, node, "%s: more than %d items", what, (int)LIST_MAX);
    for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++)
        PLI_TRY(item(r, node_at(r, *i)));
    return PLAIT_OK;
}

static const pli_link_spec rack_link = { .bandwidth = 5e9, .latency = 10e-6 };
static const pli_link_spec site_link = { .bandwidth = 125e6, .latency = 10e-3 };

static plait_status read_host(reader *r, const yaml_node_t *node) {
    pli_cluster *c = r->cluster;
    if (!pli_grow((void **)&c->group, &c->group_capacity, c->groups + 1, sizeof *c->group)) return no_memory(r);
    pli_host_group *g = &c->group[c->groups];
    *g = pli_cluster_usual_host;
    PLI_TRY(read_fields(r, node, "hosts", &pli_host_fields, g));
    c->groups++;
    c->hosts += g->count;
    if (c->hosts <= PLI_CLUSTER_HOSTS_MAX) return PLAIT_OK;
    return refuse(r, node, "hosts: more than %d in all", (int)PLI_CLUSTER_HOSTS_MAX);
}

static plait_status read_rack(reader *r, const yaml_node_t *node) {
    pli_cluster *c = r->cluster;
    if (!pli_grow((void **)&c->rack, &c->rack_capacity, c->racks + 1, sizeof *c->rack)) return no_memory(r);
    pli_rack *rack = &c->rack[c->racks];
    *rack = (pli_rack){ .site = -1, .link = rack_link };
    PLI_TRY(read_fields(r, node, "racks", &pli_rack_fields, rack));
    for (int64_t i = 0; i < c->racks; i++)
        if (strcmp(c->rack[i].name, rack->name) == 0) return refuse(r, node, "racks: two are called %s", rack->name);
    c->racks++;
    return PLAIT_OK;
}

static plait_status read_site(reader *r, const yaml_node_t *node) {
    pli_cluster *c = r->cluster;
    if (!pli_grow((void **)&c->site, &c->site_capacity, c->sites + 1, sizeof *c->site)) return no_memory(r);
    pli_site *site = &c->site[c->sites];
    *site = (pli_site){ .link = site_link };
    PLI_TRY(read_fields(r, node, "sites", &pli_site_fields, site));
    for (int64_t i = 0; i < c->sites; i++)
        if (strcmp(c->site[i].name, site->name) == 0) return refuse(r, node, "sites: two are called %s", site->name);
    c->sites++;
    return PLAIT_OK;
}

static plait_status check_event(const reader *r, const yaml_node_t *node, const pli_mishap *m) {
    if (!(m->until > m->from)) return refuse(r, node, "until: expected a time after from");
    if (m->kind == PLI_BURST && m->length > m->every) return refuse(r, node, "length: expected no more than every");
    if (m->kind == PLI_LINK && m->rack >= 0 && m->site >= 0)
        return refuse(r, node, "link: give a rack or a site, not both");
    if (m->kind == PLI_MESSAGES && (m->delay > 0) != (m->delay_p > 0))
        return refuse(r, node, "messages: delay and delayed (its probability) go together");
    return PLAIT_OK;
}

static plait_status read_event(reader *r, const yaml_node_t *node) {
    pli_cluster *c = r->cluster;
    const char  *names[PLI_EVENT_FORMS];
    size_t       form = 0;
    if (node->type != YAML_MAPPING_NODE || pairs_of(node) != 1)
        return refuse(r, node, "events: expected one event for each item, such as `- slow: {ranks: 3, factor: 4}`");
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    const char             *name = text_of(node_at(r, pair->key));
    for (size_t i = 0; i < PLI_EVENT_FORMS; i++) names[i] = pli_event_forms[i].name;
    while (form < PLI_EVENT_FORMS && (name == NULL || strcmp(name, names[form]) != 0)) form++;
    if (form == PLI_EVENT_FORMS) return unknown(r, node, "event", name != NULL ? name : "", names, PLI_EVENT_FORMS);
    if (!pli_grow((void **)&c->mishap, &c->mishap_capacity, c->mishaps + 1, sizeof *c->mishap)) return no_memory(r);
    pli_mishap *m = &c->mishap[c->mishaps];
    *m = (pli_mishap){ .kind = pli_event_forms[form].kind, .line = line_of(node), .last = -1, .rack = -1, .site = -1,
                       .until = INFINITY, .factor = 1, .drawn = true };
    c->mishaps++; /* the cluster owns what it has, also when the rest is refused */
    PLI_TRY(read_fields(r, node_at(r, pair->value), name, &pli_event_forms[form].fields, m));
    return check_event(r, node, m);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* In this order, since later parts name things of earlier ones. */
static const char *const parts[] = { "version", "sites", "racks", "hosts", "cost", "machine", "events" };
enum { PARTS = sizeof parts / sizeof *parts };

static plait_status read_part(reader *r, size_t part, const yaml_node_t *node) {
    switch (part) {
    case 0: {
        const char *text = text_of(node);
        if (text == NULL || strcmp(text, "1") != 0)
            return refuse(r, node, "version: '%.20s': this program reads version 1", text != NULL ? text : "");
        return PLAIT_OK;
    }
    case 1: return read_list(r, node, "sites", read_site);
    case 2: return read_list(r, node, "racks", read_rack);
    case 3: return read_list(r, node, "hosts", read_host);
    case 4: return read_fields(r, node, "cost", &pli_cost_fields, &r->cluster->cost);
    case 5: return read_fields(r, node, "machine", &pli_machine_fields, &r->cluster->machine);
    default: return read_list(r, node, "events", read_event);
    }
}

static plait_status read_root(reader *r, const yaml_node_t *root) {
    const yaml_node_t *found[PARTS] = { NULL };
    if (root == NULL) return refuse(r, root, "the file describes nothing; expected hosts");
    if (root->type != YAML_MAPPING_NODE)
        return refuse(r, root, "expected version, hosts, racks, sites, cost, machine and events");
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(r, pair->key);
        const char        *name = text_of(key);
        size_t             i = 0;
        while (i < PARTS && (name == NULL || strcmp(name, parts[i]) != 0)) i++;
        if (i == PARTS) return unknown(r, key, "key", name != NULL ? name : "", parts, PARTS);
        if (found[i] != NULL) return refuse(r, key, "%s is given twice", name);
        found[i] = node_at(r, pair->value);
    }
    if (found[0] == NULL) return refuse(r, root, "version is missing; this program reads version 1");
    for (size_t i = 0; i < PARTS; i++)
        if (found[i] != NULL) PLI_TRY(read_part(r, i, found[i]));
    return r->cluster->groups > 0 ? PLAIT_OK : refuse(r, root, "hosts are missing: expected a list, such as `- {count: "
                                                               "16}`");
}

/* Refuses YAML at the place where the parser failed. The usual cause is a tab, which the parser does not name. */
static plait_status refuse_yaml(const char *path, const yaml_parser_t *parser, const char *text, size_t bytes,
                                plait_error *err) {
    size_t      at = 0;
    const char *tab = "";
    for (size_t line = 0; at < bytes && line < parser->problem_mark.line; at++) line += text[at] == '\n';
    while (at < bytes && text[at] == ' ') at++;
    if (at < bytes && text[at] == '\t') tab = ": indent with spaces, not tabs";
    return pli_fail(err, PLAIT_EFORMAT, "%.300s:%zu: %s%s", path, parser->problem_mark.line + 1,
                    parser->problem != NULL ? parser->problem : "not YAML", tab);
}

plait_status pli_cluster_parse(const char *path, const void *text, size_t bytes, pli_cluster *cluster_out,
                               plait_error *err) {
    yaml_parser_t parser;
    reader        r = { .path = path, .err = err, .cluster = cluster_out };
    *cluster_out = (pli_cluster){ .cost = pli_cluster_usual_cost };
    if ((cluster_out->path = pli_strdup(path)) == NULL || !yaml_parser_initialize(&parser)) {
        pli_cluster_free(cluster_out);
        return no_memory(&r);
    }
    yaml_parser_set_input_string(&parser, bytes > 0 ? text : (const void *)"", bytes);
    plait_status status;
    if (yaml_parser_load(&parser, &r.document)) {
        status = read_root(&r, yaml_document_get_root_node(&r.document));
        yaml_document_delete(&r.document);
    } else if (parser.error == YAML_MEMORY_ERROR) {
        status = no_memory(&r);
    } else {
        status = refuse_yaml(path, &parser, text, bytes, err);
    }
    yaml_parser_delete(&parser);
    if (status < 0) pli_cluster_free(cluster_out);
    return status;
}

plait_status pli_cluster_read(const char *path, pli_cluster *cluster_out, plait_error *err) {
    pli_text     text = { 0 };
    plait_status status = pli_read_whole(path, FILE_MAX, &text, err);
    if (status == PLAIT_OK) status = pli_cluster_parse(path, text.data, text.length, cluster_out, err);
    pli_text_free(&text);
    return status;
}
