/* Reading a cluster's file. YAML is loaded as libyaml's document, whose nodes know their lines; what may stand where is
 * in tables of fields, one for each kind of mapping. The depth of a file is the tables', so anchors can tie no knot. */
#include "comm/cluster.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/base.h"

enum { HOSTS_MAX = 1 << 17, RANKS_MAX = 1 << 17, LIST_MAX = 1 << 16 };
#define FILE_MAX ((size_t)16 << 20)

/* --- fields ---------------------------------------------------------------------------------------------- */

typedef enum field_kind {
    COUNT,
    NUMBER,
    SECONDS,
    NANOSECONDS,
    BANDWIDTH,
    NAME,
    RANKS,
    RACK,
    SITE,
    ONE_OR_ALL
} field_kind;

typedef struct field {
    const char *name;
    field_kind  kind;
    size_t      at;
    double      low, high; /* of a number; in its own unit */
    bool        required;
} field;

#define AT(type, member) offsetof(type, member)

static const field host_fields[] = {
    { "count", COUNT, AT(pli_host_group, count), 1, HOSTS_MAX, false },
    { "cores", COUNT, AT(pli_host_group, cores), 1, 4096, false },
    { "speed", NUMBER, AT(pli_host_group, speed), 1e-6, 1e6, false },
    { "rack", RACK, AT(pli_host_group, rack), 0, 0, false },
    { "bandwidth", BANDWIDTH, AT(pli_host_group, link.bandwidth), 1, 1e15, false },
    { "latency", SECONDS, AT(pli_host_group, link.latency), 0, 3600, false },
};
static const field rack_fields[] = {
    { "name", NAME, AT(pli_rack, name), 0, 0, true },
    { "site", SITE, AT(pli_rack, site), 0, 0, false },
    { "bandwidth", BANDWIDTH, AT(pli_rack, link.bandwidth), 1, 1e15, false },
    { "latency", SECONDS, AT(pli_rack, link.latency), 0, 3600, false },
};
static const field site_fields[] = {
    { "name", NAME, AT(pli_site, name), 0, 0, true },
    { "bandwidth", BANDWIDTH, AT(pli_site, link.bandwidth), 1, 1e15, false },
    { "latency", SECONDS, AT(pli_site, link.latency), 0, 3600, false },
};
static const field cost_fields[] = {
    { "parsed", NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_PARSED]), 0, 1e12, false },
    { "entry", NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_ENTRIES]), 0, 1e12, false },
    { "key", NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_KEYS]), 0, 1e12, false },
    { "value", NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_VALUES]), 0, 1e12, false },
    { "sum", NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_SUMS]), 0, 1e12, false },
    { "clock", NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_CLOCKS]), 0, 1e13, false },
    { "message", NANOSECONDS, AT(pli_cost, message_ns), 0, 1e12, false },
    { "byte", NANOSECONDS, AT(pli_cost, byte_ns), 0, 1e9, false },
    { "local", NANOSECONDS, AT(pli_cost, local_ns), 0, 1e12, false },
    { "notice", SECONDS, AT(pli_cost, notice), 0, 3600, false },
    { "resend", SECONDS, AT(pli_cost, resend_after), 1e-6, 3600, false },
};

#define RANKS_FIELD { "ranks", RANKS, AT(pli_mishap, first), 0, 0, false }
#define FROM_FIELD  { "from", SECONDS, AT(pli_mishap, from), 0, 1e12, false }
#define UNTIL_FIELD { "until", SECONDS, AT(pli_mishap, until), 0, 1e12, false }

static const field slow_fields[] = {
    RANKS_FIELD, FROM_FIELD, UNTIL_FIELD, { "factor", NUMBER, AT(pli_mishap, factor), 1e-6, 1e6, true },
};
static const field burst_fields[] = {
    RANKS_FIELD,
    FROM_FIELD,
    UNTIL_FIELD,
    { "factor", NUMBER, AT(pli_mishap, factor), 1e-6, 1e6, true },
    { "every", SECONDS, AT(pli_mishap, every), 1e-6, 1e9, true },
    { "length", SECONDS, AT(pli_mishap, length), 1e-6, 1e9, true },
    { "hosts", ONE_OR_ALL, AT(pli_mishap, drawn), 0, 0, false },
};
static const field jitter_fields[] = {
    RANKS_FIELD, FROM_FIELD, UNTIL_FIELD, { "sigma", NUMBER, AT(pli_mishap, sigma), 0, 10, true },
};
static const field link_fields[] = {
    RANKS_FIELD,
    { "rack", RACK, AT(pli_mishap, rack), 0, 0, false },
    { "site", SITE, AT(pli_mishap, site), 0, 0, false },
    FROM_FIELD,
    UNTIL_FIELD,
    { "factor", NUMBER, AT(pli_mishap, factor), 0, 1e6, true },
};
static const field message_fields[] = {
    RANKS_FIELD,
    FROM_FIELD,
    UNTIL_FIELD,
    { "delay", SECONDS, AT(pli_mishap, delay), 0, 3600, false },
    { "delayed", NUMBER, AT(pli_mishap, delay_p), 0, 1, false },
    { "doubled", NUMBER, AT(pli_mishap, double_p), 0, 1, false },
    { "dropped", NUMBER, AT(pli_mishap, drop_p), 0, 0.9, false },
};
static const field kill_fields[] = {
    { "ranks", RANKS, AT(pli_mishap, first), 0, 0, true },
    { "at", SECONDS, AT(pli_mishap, from), 0, 1e12, true },
};
static const field freeze_fields[] = {
    { "ranks", RANKS, AT(pli_mishap, first), 0, 0, true },
    { "from", SECONDS, AT(pli_mishap, from), 0, 1e12, true },
    UNTIL_FIELD,
};

#define FIELDS(array) array, sizeof array / sizeof *array

static const struct event_form {
    const char     *name;
    pli_mishap_kind kind;
    const field    *fields;
    size_t          n;
} event_forms[] = {
    { "slow", PLI_SLOW, FIELDS(slow_fields) },     { "burst", PLI_BURST, FIELDS(burst_fields) },
    { "jitter", PLI_JITTER, FIELDS(jitter_fields) }, { "link", PLI_LINK, FIELDS(link_fields) },
    { "messages", PLI_MESSAGES, FIELDS(message_fields) }, { "kill", PLI_KILL, FIELDS(kill_fields) },
    { "freeze", PLI_FREEZE, FIELDS(freeze_fields) },
};
enum { FORMS = sizeof event_forms / sizeof *event_forms, NAMES_MAX = 16 };

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

/* --- values --------------------------------------------------------------------------------------------------- */

typedef struct unit { const char *name; double factor; } unit;
static const unit times[] = {
    { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 }, { "min", 60 }, { "h", 3600 }
};
static const unit rates[] = { { "b/s", 0.125 },  { "kb/s", 125 },   { "Mb/s", 125e3 },
                              { "Gb/s", 125e6 }, { "Tb/s", 125e9 }, { "B/s", 1 },
                              { "kB/s", 1e3 },   { "MB/s", 1e6 },   { "GB/s", 1e9 } };

/* "2.5 ms": a number and a unit, which a bare 0 does not need. */
static bool parse_quantity(const char *text, const unit *units, size_t n, double *out) {
    char   number[64];
    size_t length = strcspn(text, " abcdfghijklmnopqrstuvwxyzABCDFGHIJKLMNOPQRSTUVWXYZ/"); /* e and E are a number's */
    if (length == 0 || length >= sizeof number) return false;
    memcpy(number, text, length);
    number[length] = '\0';
    if (!pli_parse_f64(number, out)) return false;
    const char *name = text + length;
    while (*name == ' ') name++;
    if (*name == '\0') return *out == 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, units[i].name) == 0) {
            *out *= units[i].factor;
            return true;
        }
    return false;
}

/* false: the text is no value of the field; wanted [144] says what is. */
static bool parse_field(const field *f, const char *text, double *value, char wanted[144]) {
    static const char *const forms[] = {
        [COUNT] = "a whole number",
        [NUMBER] = "a number",
        [SECONDS] = "a time such as 20 us, 5 ms or 1.5 s",
        [NANOSECONDS] = "a time such as 2 ns, 5 us or 100 ms",
        [BANDWIDTH] = "a rate such as 100 Mb/s, 10 Gb/s or 1.2 GB/s",
    };
    bool bare = f->kind == COUNT || f->kind == NUMBER;
    bool good = bare                   ? pli_parse_f64(text, value)
                : f->kind == BANDWIDTH ? parse_quantity(text, rates, sizeof rates / sizeof *rates, value)
                                       : parse_quantity(text, times, sizeof times / sizeof *times, value);
    if (good && f->kind == NANOSECONDS) *value *= 1e9;
    if (good && *value >= f->low && *value <= f->high && (f->kind != COUNT || *value == floor(*value))) return true;
    int n = snprintf(wanted, 144, "'%.60s': expected %s", text, forms[f->kind]);
    if (bare) snprintf(wanted + n, 144 - (size_t)n, " from %.10g to %.10g", f->low, f->high);
    return false;
}

static plait_status read_quantity(const reader *r, const yaml_node_t *node, const field *f, const char *text,
                                  void *at) {
    char   wanted[144];
    double value = 0;
    if (!parse_field(f, text, &value, wanted)) return refuse(r, node, "%s: %s", f->name, wanted);
    if (f->kind == COUNT) *(int32_t *)at = (int32_t)value;
    else *(double *)at = value;
    return PLAIT_OK;
}

/* "3", "2-5" or "all", into two int32. */
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
        return refuse(r, node, "ranks: '%.60s': expected a rank, as 3, several, as 2-5, or all", text);
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

static plait_status read_value(const reader *r, const yaml_node_t *node, const field *f, void *target) {
    const char *text = text_of(node);
    void       *at = (char *)target + f->at;
    pli_cluster *c = r->cluster;
    if (text == NULL) return refuse(r, node, "%s: a plain value is wanted here", f->name);
    switch (f->kind) {
    case NAME:
        if (*text == '\0' || strlen(text) >= PLI_CLUSTER_NAME)
            return refuse(r, node, "name: expected 1 to %d characters", PLI_CLUSTER_NAME - 1);
        memcpy(at, text, strlen(text) + 1);
        return PLAIT_OK;
    case RANKS: return read_ranks(r, node, text, at);
    case RACK:
        return find_named(r, node, "rack", text, c->racks > 0 ? c->rack[0].name : NULL, sizeof *c->rack, c->racks, at);
    case SITE:
        return find_named(r, node, "site", text, c->sites > 0 ? c->site[0].name : NULL, sizeof *c->site, c->sites, at);
    case ONE_OR_ALL:
        if (strcmp(text, "one") != 0 && strcmp(text, "all") != 0)
            return refuse(r, node, "hosts: '%.60s': expected one (drawn anew each time) or all", text);
        *(bool *)at = strcmp(text, "one") == 0;
        return PLAIT_OK;
    default: return read_quantity(r, node, f, text, at);
    }
}

/* A mapping of fields [n] into target. */
static plait_status read_fields(reader *r, const yaml_node_t *node, const char *what, const field *fields, size_t n,
                                void *target) {
    const char *names[NAMES_MAX];
    uint32_t    seen = 0;
    if (node->type != YAML_MAPPING_NODE) return refuse(r, node, "%s: expected `name: value` lines", what);
    for (size_t i = 0; i < n; i++) names[i] = fields[i].name;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(r, pair->key);
        const char        *name = text_of(key);
        size_t             i = 0;
        if (name == NULL) return refuse(r, key, "%s: a name is wanted here", what);
        while (i < n && strcmp(fields[i].name, name) != 0) i++;
        if (i == n) {
            char of[64];
            snprintf(of, sizeof of, "key in %s", what);
            return unknown(r, key, of, name, names, n);
        }
        if (seen & UINT32_C(1) << i) return refuse(r, key, "%s: %s is given twice", what, name);
        seen |= UINT32_C(1) << i;
        PLI_TRY(read_value(r, node_at(r, pair->value), &fields[i], target));
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].required && !(seen & UINT32_C(1) << i))
            return refuse(r, node, "%s: %s is missing", what, fields[i].name);
    return PLAIT_OK;
}

/* --- lists ------------------------------------------------------------------------------------------------------ */

typedef plait_status item_fn(reader *r, const yaml_node_t *node);

static plait_status read_list(reader *r, const yaml_node_t *node, const char *what, item_fn *item) {
    if (node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0) return PLAIT_OK; /* `events:` and nothing */
    if (node->type != YAML_SEQUENCE_NODE) return refuse(r, node, "%s: expected a list, each item after a `-`", what);
    if (items_of(node) > LIST_MAX) return refuse(r, node, "%s: more than %d items", what, (int)LIST_MAX);
    for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++)
        PLI_TRY(item(r, node_at(r, *i)));
    return PLAIT_OK;
}

static const pli_link_spec host_link = { .bandwidth = 1.25e9, .latency = 10e-6 };
static const pli_link_spec rack_link = { .bandwidth = 5e9, .latency = 10e-6 };
static const pli_link_spec site_link = { .bandwidth = 125e6, .latency = 10e-3 };

static plait_status read_host(reader *r, const yaml_node_t *node) {
    pli_cluster *c = r->cluster;
    if (!pli_grow((void **)&c->group, &c->group_capacity, c->groups + 1, sizeof *c->group)) return no_memory(r);
    pli_host_group *g = &c->group[c->groups];
    *g = (pli_host_group){ .count = 1, .cores = 1, .speed = 1, .rack = -1, .link = host_link };
    PLI_TRY(read_fields(r, node, "hosts", FIELDS(host_fields), g));
    c->groups++;
    c->hosts += g->count;
    return c->hosts <= HOSTS_MAX ? PLAIT_OK : refuse(r, node, "hosts: more than %d in all", (int)HOSTS_MAX);
}

static plait_status read_rack(reader *r, const yaml_node_t *node) {
    pli_cluster *c = r->cluster;
    if (!pli_grow((void **)&c->rack, &c->rack_capacity, c->racks + 1, sizeof *c->rack)) return no_memory(r);
    pli_rack *rack = &c->rack[c->racks];
    *rack = (pli_rack){ .site = -1, .link = rack_link };
    PLI_TRY(read_fields(r, node, "racks", FIELDS(rack_fields), rack));
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
    PLI_TRY(read_fields(r, node, "sites", FIELDS(site_fields), site));
    for (int64_t i = 0; i < c->sites; i++)
        if (strcmp(c->site[i].name, site->name) == 0) return refuse(r, node, "sites: two are called %s", site->name);
    c->sites++;
    return PLAIT_OK;
}

static plait_status check_event(const reader *r, const yaml_node_t *node, const pli_mishap *m) {
    if (!(m->until > m->from)) return refuse(r, node, "until: expected a time after from");
    if (m->kind == PLI_BURST && m->length > m->every) return refuse(r, node, "length: expected no more than every");
    if (m->kind == PLI_LINK && m->rack >= 0 && m->site >= 0)
        return refuse(r, node, "link: of a rack or of a site, not both");
    if (m->kind == PLI_MESSAGES && (m->delay > 0) != (m->delay_p > 0))
        return refuse(r, node, "messages: delay and delayed (its probability) go together");
    return PLAIT_OK;
}

static plait_status read_event(reader *r, const yaml_node_t *node) {
    pli_cluster *c = r->cluster;
    const char  *names[FORMS];
    size_t       form = 0;
    if (node->type != YAML_MAPPING_NODE || pairs_of(node) != 1)
        return refuse(r, node, "events: expected one event an item, as `- slow: {ranks: 3, factor: 4}`");
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    const char             *name = text_of(node_at(r, pair->key));
    for (size_t i = 0; i < FORMS; i++) names[i] = event_forms[i].name;
    while (form < FORMS && (name == NULL || strcmp(name, names[form]) != 0)) form++;
    if (form == FORMS) return unknown(r, node, "event", name != NULL ? name : "", names, FORMS);
    if (!pli_grow((void **)&c->mishap, &c->mishap_capacity, c->mishaps + 1, sizeof *c->mishap)) return no_memory(r);
    pli_mishap *m = &c->mishap[c->mishaps];
    *m = (pli_mishap){ .kind = event_forms[form].kind, .line = line_of(node), .last = -1, .rack = -1, .site = -1,
                       .until = INFINITY, .factor = 1, .drawn = true };
    PLI_TRY(read_fields(r, node_at(r, pair->value), name, event_forms[form].fields, event_forms[form].n, m));
    PLI_TRY(check_event(r, node, m));
    c->mishaps++;
    return PLAIT_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* In the order in which they need each other. */
static const char *const parts[] = { "version", "sites", "racks", "hosts", "cost", "events" };
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
    case 4: return read_fields(r, node, "cost", FIELDS(cost_fields), &r->cluster->cost);
    default: return read_list(r, node, "events", read_event);
    }
}

static plait_status read_root(reader *r, const yaml_node_t *root) {
    const yaml_node_t *found[PARTS] = { NULL };
    if (root == NULL) return refuse(r, root, "nothing is described; hosts are wanted");
    if (root->type != YAML_MAPPING_NODE)
        return refuse(r, root, "expected version, hosts, racks, sites, cost and events");
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
    return r->cluster->groups > 0 ? PLAIT_OK : refuse(r, root, "hosts are missing: a list, as `- {count: 16}`");
}

/* Figures of one core of the machine that Plait was written on; `plait calibrate` measures them anew. */
static const pli_cost usual_cost = {
    .work_ns = { [PLI_WORK_PARSED] = 20, [PLI_WORK_ENTRIES] = 3, [PLI_WORK_KEYS] = 20, [PLI_WORK_VALUES] = 2,
                 [PLI_WORK_SUMS] = 0.5, [PLI_WORK_CLOCKS] = 0 },
    .message_ns = 2000,
    .byte_ns = 0.1,
    .local_ns = 1000,
    .notice = 0.05,
    .resend_after = 0.02,
};

/* What the parser stumbled over. It has no words for the usual cause. */
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
    *cluster_out = (pli_cluster){ .cost = usual_cost };
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

plait_status pli_cluster_check_host(const char *key, const char *text, plait_error *err) {
    char   wanted[144];
    double value = 0;
    for (size_t i = 0; i < sizeof host_fields / sizeof *host_fields; i++)
        if (strcmp(host_fields[i].name, key) == 0 && !parse_field(&host_fields[i], text, &value, wanted))
            return pli_fail(err, PLAIT_EINVAL, "--%s %s", key, wanted);
    return PLAIT_OK;
}

plait_status pli_cluster_default(int32_t ranks, pli_cluster *cluster_out, plait_error *err) {
    *cluster_out = (pli_cluster){ .cost = usual_cost };
    if (!pli_grow((void **)&cluster_out->group, &cluster_out->group_capacity, 1, sizeof *cluster_out->group))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a cluster");
    cluster_out->group[0] = (pli_host_group){ .count = ranks, .cores = 1, .speed = 1, .rack = -1, .link = host_link };
    cluster_out->groups = 1;
    cluster_out->hosts = ranks;
    return PLAIT_OK;
}

plait_status pli_cluster_check(const pli_cluster *c, int32_t ranks, plait_error *err) {
    const char *path = c->path != NULL ? c->path : "the cluster";
    int64_t     cores = 0;
    for (int64_t g = 0; g < c->groups; g++) cores += (int64_t)c->group[g].count * c->group[g].cores;
    if (cores < ranks)
        return pli_fail(err, PLAIT_EINVAL,
                        "%s: its %lld hosts have %lld cores for %d ranks (workers and servers): add hosts, or "
                        "cores",
                        path, (long long)c->hosts, (long long)cores, ranks);
    for (int64_t i = 0; i < c->mishaps; i++)
        if (c->mishap[i].last >= ranks)
            return pli_fail(err, PLAIT_EINVAL, "%s:%d: there is no rank %d, the job has %d (workers, then servers)",
                            path, c->mishap[i].line, c->mishap[i].last, ranks);
    return PLAIT_OK;
}

void pli_cluster_free(pli_cluster *c) {
    pli_free(c->path);
    pli_free(c->group);
    pli_free(c->rack);
    pli_free(c->site);
    pli_free(c->mishap);
    *c = (pli_cluster){ 0 };
}

/* --- where things are --------------------------------------------------------------------------------------------- */

int32_t pli_cluster_host(const pli_cluster *c, int32_t rank) {
    int32_t host = 0;
    for (int64_t g = 0; g < c->groups; g++) {
        int64_t holds = (int64_t)c->group[g].count * c->group[g].cores;
        if (rank < holds) return host + rank / c->group[g].cores;
        rank -= (int32_t)holds;
        host += c->group[g].count;
    }
    return host - 1;
}

const pli_host_group *pli_cluster_group(const pli_cluster *c, int32_t host) {
    int64_t g = 0;
    for (; g < c->groups - 1 && host >= c->group[g].count; g++) host -= c->group[g].count;
    return &c->group[g];
}

double pli_cluster_latency(const pli_cluster *c, int32_t from_host, int32_t to_host) {
    const pli_host_group *a = pli_cluster_group(c, from_host), *b = pli_cluster_group(c, to_host);
    if (from_host == to_host) return c->cost.local_ns * 1e-9;
    double latency = a->link.latency + b->link.latency;
    if (a->rack == b->rack) return latency;
    int32_t site_a = a->rack >= 0 ? c->rack[a->rack].site : -1, site_b = b->rack >= 0 ? c->rack[b->rack].site : -1;
    if (a->rack >= 0) latency += c->rack[a->rack].link.latency;
    if (b->rack >= 0) latency += c->rack[b->rack].link.latency;
    if (site_a == site_b) return latency;
    if (site_a >= 0) latency += c->site[site_a].link.latency;
    if (site_b >= 0) latency += c->site[site_b].link.latency;
    return latency;
}

bool pli_cluster_is_lossy(const pli_cluster *c) {
    for (int64_t i = 0; i < c->mishaps; i++)
        if (c->mishap[i].kind == PLI_MESSAGES) return true;
    return false;
}
