/* The keys of each mapping in a cluster's file, with bounds and units: one table for each mapping. To add a key, add
 * a row. */
#include "comm/cluster_fields.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define AT(type, member) offsetof(type, member)

static const pli_field host_fields[] = {
    { "count", PLI_FIELD_COUNT, AT(pli_host_group, count), 1, PLI_CLUSTER_HOSTS_MAX, false },
    { "cores", PLI_FIELD_COUNT, AT(pli_host_group, cores), 1, 4096, false },
    { "speed", PLI_FIELD_NUMBER, AT(pli_host_group, speed), 1e-6, 1e6, false },
    { "memory", PLI_FIELD_BYTES, AT(pli_host_group, memory), 1, 1e18, false },
    { "rack", PLI_FIELD_RACK, AT(pli_host_group, rack), 0, 0, false },
    { "bandwidth", PLI_FIELD_BANDWIDTH, AT(pli_host_group, link.bandwidth), 1, 1e15, false },
    { "latency", PLI_FIELD_SECONDS, AT(pli_host_group, link.latency), 0, 3600, false },
};
static const pli_field rack_fields[] = {
    { "name", PLI_FIELD_NAME, AT(pli_rack, name), 0, 0, true },
    { "site", PLI_FIELD_SITE, AT(pli_rack, site), 0, 0, false },
    { "bandwidth", PLI_FIELD_BANDWIDTH, AT(pli_rack, link.bandwidth), 1, 1e15, false },
    { "latency", PLI_FIELD_SECONDS, AT(pli_rack, link.latency), 0, 3600, false },
};
static const pli_field site_fields[] = {
    { "name", PLI_FIELD_NAME, AT(pli_site, name), 0, 0, true },
    { "bandwidth", PLI_FIELD_BANDWIDTH, AT(pli_site, link.bandwidth), 1, 1e15, false },
    { "latency", PLI_FIELD_SECONDS, AT(pli_site, link.latency), 0, 3600, false },
};
static const pli_field cost_fields[] = {
    { "parsed", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_PARSED]), 0, 1e12, false },
    { "entry", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_ENTRIES]), 0, 1e12, false },
    { "key", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_KEYS]), 0, 1e12, false },
    { "value", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_VALUES]), 0, 1e12, false },
    { "sum", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_SUMS]), 0, 1e12, false },
    { "flop", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_FLOPS]), 0, 1e9, false },
    { "tap", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_TAPS]), 0, 1e9, false },
    { "step", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_STEPS]), 0, 1e9, false },
    { "moved", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_MOVED]), 0, 1e9, false },
    { "node", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_NODES]), 0, 1e12, false },
    { "clock", PLI_FIELD_NANOSECONDS, AT(pli_cost, work_ns[PLI_WORK_CLOCKS]), 0, 1e13, false },
    { "message", PLI_FIELD_NANOSECONDS, AT(pli_cost, message_ns), 0, 1e12, false },
    { "byte", PLI_FIELD_NANOSECONDS, AT(pli_cost, byte_ns), 0, 1e9, false },
    { "kernel", PLI_FIELD_NANOSECONDS, AT(pli_cost, kernel_ns), 0, 1e9, false },
    { "local", PLI_FIELD_NANOSECONDS, AT(pli_cost, local_ns), 0, 1e12, false },
    { "patience", PLI_FIELD_SECONDS, AT(pli_cost, patience), 1e-6, 3600, false },
    { "notice", PLI_FIELD_SECONDS, AT(pli_cost, notice), 0, 3600, false },
    { "resend", PLI_FIELD_SECONDS, AT(pli_cost, resend_after), 1e-6, 3600, false },
};

static const pli_field machine_fields[] = {
    { "cores", PLI_FIELD_COUNT, AT(pli_machine_spec, cores), 1, 4096, true },
};

#define RANKS_FIELD { "ranks", PLI_FIELD_RANKS, AT(pli_mishap, first), 0, 0, false }
#define FROM_FIELD  { "from", PLI_FIELD_SECONDS, AT(pli_mishap, from), 0, 1e12, false }
#define UNTIL_FIELD { "until", PLI_FIELD_SECONDS, AT(pli_mishap, until), 0, 1e12, false }

static const pli_field slow_fields[] = {
    RANKS_FIELD, FROM_FIELD, UNTIL_FIELD, { "factor", PLI_FIELD_NUMBER, AT(pli_mishap, factor), 1e-6, 1e6, true },
};
static const pli_field burst_fields[] = {
    RANKS_FIELD,
    FROM_FIELD,
    UNTIL_FIELD,
    { "factor", PLI_FIELD_NUMBER, AT(pli_mishap, factor), 1e-6, 1e6, true },
    { "every", PLI_FIELD_SECONDS, AT(pli_mishap, every), 1e-6, 1e9, true },
    { "length", PLI_FIELD_SECONDS, AT(pli_mishap, length), 1e-6, 1e9, true },
    { "hosts", PLI_FIELD_ONE_OR_ALL, AT(pli_mishap, drawn), 0, 0, false },
};
static const pli_field jitter_fields[] = {
    RANKS_FIELD, FROM_FIELD, UNTIL_FIELD, { "sigma", PLI_FIELD_NUMBER, AT(pli_mishap, sigma), 0, 10, true },
};
static const pli_field link_fields[] = {
    RANKS_FIELD,
    { "rack", PLI_FIELD_RACK, AT(pli_mishap, rack), 0, 0, false },
    { "site", PLI_FIELD_SITE, AT(pli_mishap, site), 0, 0, false },
    FROM_FIELD,
    UNTIL_FIELD,
    { "factor", PLI_FIELD_NUMBER, AT(pli_mishap, factor), 0, 1e6, true },
};
static const pli_field message_fields[] = {
    RANKS_FIELD,
    FROM_FIELD,
    UNTIL_FIELD,
    { "delay", PLI_FIELD_SECONDS, AT(pli_mishap, delay), 0, 3600, false },
    { "delayed", PLI_FIELD_NUMBER, AT(pli_mishap, delay_p), 0, 1, false },
    { "doubled", PLI_FIELD_NUMBER, AT(pli_mishap, double_p), 0, 1, false },
    { "dropped", PLI_FIELD_NUMBER, AT(pli_mishap, drop_p), 0, 0.9, false },
};
static const pli_field kill_fields[] = {
    { "ranks", PLI_FIELD_RANKS, AT(pli_mishap, first), 0, 0, true },
    { "at", PLI_FIELD_SECONDS, AT(pli_mishap, from), 0, 1e12, true },
};
static const pli_field turn_fields[] = {
    { "ranks", PLI_FIELD_RANKS, AT(pli_mishap, first), 0, 0, true },
    { "at", PLI_FIELD_SECONDS, AT(pli_mishap, from), 0, 1e12, true },
};
static const pli_field partition_fields[] = {
    { "sides", PLI_FIELD_SIDES, AT(pli_mishap, sides), 0, 0, true },
    FROM_FIELD,
    UNTIL_FIELD,
};
static const pli_field freeze_fields[] = {
    { "ranks", PLI_FIELD_RANKS, AT(pli_mishap, first), 0, 0, true },
    { "from", PLI_FIELD_SECONDS, AT(pli_mishap, from), 0, 1e12, true },
    UNTIL_FIELD,
};

#define FIELDS(array) { array, sizeof array / sizeof *array }

const pli_fields pli_host_fields = FIELDS(host_fields), pli_rack_fields = FIELDS(rack_fields),
                 pli_site_fields = FIELDS(site_fields), pli_cost_fields = FIELDS(cost_fields),
                 pli_machine_fields = FIELDS(machine_fields);

const pli_event_form pli_event_forms[PLI_EVENT_FORMS] = {
    { "slow", PLI_SLOW, FIELDS(slow_fields) },     { "burst", PLI_BURST, FIELDS(burst_fields) },
    { "jitter", PLI_JITTER, FIELDS(jitter_fields) }, { "link", PLI_LINK, FIELDS(link_fields) },
    { "messages", PLI_MESSAGES, FIELDS(message_fields) }, { "kill", PLI_KILL, FIELDS(kill_fields) },
    { "freeze", PLI_FREEZE, FIELDS(freeze_fields) }, { "partition", PLI_PARTITION, FIELDS(partition_fields) },
    { "join", PLI_COMES, FIELDS(turn_fields) },    { "leave", PLI_GOES, FIELDS(turn_fields) },
    { "revive", PLI_REVIVE, FIELDS(turn_fields) },
};

/* --- values ------------------------------------------------------------------------------------------------------- */

typedef struct unit { const char *name; double factor; } unit;
static const unit times[] = {
    { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 }, { "min", 60 }, { "h", 3600 }
};
static const unit rates[] = { { "b/s", 0.125 },  { "kb/s", 125 },   { "Mb/s", 125e3 },
                              { "Gb/s", 125e6 }, { "Tb/s", 125e9 }, { "B/s", 1 },
                              { "kB/s", 1e3 },   { "MB/s", 1e6 },   { "GB/s", 1e9 } };
static const unit sizes[] = { { "B", 1 }, { "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 } };

/* Reads "2.5 ms": a number and a unit; a bare 0 needs no unit. */
static bool parse_quantity(const char *text, const unit *units, size_t n, double *out) {
    char   number[64];
    size_t length = strcspn(text, " abcdfghijklmnopqrstuvwxyzABCDFGHIJKLMNOPQRSTUVWXYZ/"); /* e and E belong to a
                                                                                            * number */
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

bool pli_field_parse(const pli_field *f, const char *text, double *value, char wanted[PLI_FIELD_WANTED]) {
    static const char *const forms[] = {
        [PLI_FIELD_COUNT] = "a whole number",
        [PLI_FIELD_NUMBER] = "a number",
        [PLI_FIELD_SECONDS] = "a time such as 20 us, 5 ms or 1.5 s",
        [PLI_FIELD_NANOSECONDS] = "a time such as 2 ns, 5 us or 100 ms",
        [PLI_FIELD_BANDWIDTH] = "a rate such as 100 Mb/s, 10 Gb/s or 1.2 GB/s",
        [PLI_FIELD_BYTES] = "a size such as 500 MB, 16 GB or 1 TB",
    };
    bool bare = f->kind == PLI_FIELD_COUNT || f->kind == PLI_FIELD_NUMBER;
    bool good = bare                   ? pli_parse_f64(text, value)
                : f->kind == PLI_FIELD_BANDWIDTH ? parse_quantity(text, rates, sizeof rates / sizeof *rates, value)
                : f->kind == PLI_FIELD_BYTES     ? parse_quantity(text, sizes, sizeof sizes / sizeof *sizes, value)
                                       : parse_quantity(text, times, sizeof times / sizeof *times, value);
    if (good && f->kind == PLI_FIELD_NANOSECONDS) *value *= 1e9;
    const bool whole = f->kind != PLI_FIELD_COUNT || *value == floor(*value);
    if (good && *value >= f->low && *value <= f->high && whole) return true;
    int n = snprintf(wanted, PLI_FIELD_WANTED, "'%.60s': expected %s", text, forms[f->kind]);
    if (bare) snprintf(wanted + n, PLI_FIELD_WANTED - (size_t)n, " from %.10g to %.10g", f->low, f->high);
    return false;
}

plait_status pli_cluster_check_host(const char *key, const char *text, plait_error *err) {
    char   wanted[PLI_FIELD_WANTED];
    double value = 0;
    for (size_t i = 0; i < sizeof host_fields / sizeof *host_fields; i++)
        if (strcmp(host_fields[i].name, key) == 0 && !pli_field_parse(&host_fields[i], text, &value, wanted))
            return pli_fail(err, PLAIT_EINVAL, "--%s %s", key, wanted);
    return PLAIT_OK;
}
