/* Ledgers that are kept outside Plait: what was acknowledged, against what the table holds in the end. One rank of a
 * job of processes of which one is killed (SIGKILL) at some instant, or with three replicas two at once:
 * tests/table/ledger.sh.
 *
 *     ledger pairs 2|3                 every pair of settings that keeps so many replicas, a line each
 *     ledger live FOLDER SEED PAIR     a rank of a job; FOLDER gets its ledger and, at the end, its values of the table
 *     ledger judge FOLDER SEED PAIR    exit code 1, and why: something acknowledged is lost, or something counts twice
 *
 * A PAIR is topology, consistency, filters ("none"), "plain" or "exact", "dense" or "sparse", replicas. The pairs are
 * those that pli_pair_check, which refuses runs, lets pass: a pair that begins to survive is drawn from then on.
 *
 * With whole clocks a job of topology hybrid has a second table, of the other kind: one is summed, one lies on servers.
 * Both get the same.
 *
 * In each clock a worker adds 1 to some rows, drawn by its number and the clock's, in a column, and when the clock
 * has ended it writes the clock's number into its ledger by one write. With whole clocks column v is that of v's items,
 * which somebody computes once in each clock, so at the end each row of it is known. Elsewhere items may be computed
 * twice, or not at all, around a death (plait/job.h); so column v is what worker v itself has added, whoever dies:
 * every clock of its ledger once, and the one that it was in at most once, in each row. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <plait/table.h>

#include "base/base.h"
#include "table/pairs/pairs.h"

enum { ROWS = 400, COLUMNS = 5, CLOCKS = 150, OF_A_CLOCK = 30, WORDS = 6, WITHIN_US = 3000 };

typedef struct pair {
    const char *topology, *consistency, *filter;
    bool        exact, sparse;
    int32_t     replicas;
} pair;

/* With three replicas the two ranks that die are less than half of all. */
static int32_t workers_of(const pair *p) { return p->replicas + 2; }

/* Filters with a loss need an update rule; it subtracts. */
static bool is_lossy(const pair *p) { return strcmp(p->filter, "none") != 0 && strncmp(p->filter, "key-", 4) != 0; }

/* --- which pairs -------------------------------------------------------------------------------------------------- */

static const char *const policies[] = { "bsp",     "bounded-delay:0", "bounded-delay:2", "ssp:2",
                                        "essp:2",  "asp:2:4",         "vap:500",         "sequential",
                                        "async",   "downpour:2:3",    "local-sgd:3" };
static const char *const filters[] = { "none",    "fp16",   "bf16",     "key-cache,key-delta,zstd", "fixed8",
                                       "fixed16", "onebit", "topk:0.2", "significant:0.001",        "randk:0.5" };

enum { POLICIES = sizeof policies / sizeof *policies, FILTERS = sizeof filters / sizeof *filters };

/* Does it train, with these needs? */
static bool trains(const pair *p, plait_properties needs) {
    const pli_demand asks = { .who = "a ledger", .needs = needs, .why = "it counts" };
    const pli_above  above = { .processes = true, .demand = { asks } };
    const pli_pair  asked = { .topology = p->topology,
                              .consistency = p->consistency,
                              .filter = strcmp(p->filter, "none") == 0 ? NULL : p->filter,
                              .exact = p->exact,
                              .fill = p->sparse ? PLI_FILL_SPARSE : PLI_FILL_DENSE,
                              .grows = p->sparse,
                              .type = PLAIT_F32,
                              .rule = is_lossy(p) ? "sgd" : NULL,
                              .replicas = p->replicas,
                              .servers = workers_of(p),
                              .above = needs != 0 ? &above : NULL };
    return pli_pair_check(&asked, NULL) >= 0;
}

/* Without rounds a dead worker takes along what its mirror held, of anybody's updates: no ledger can say how much. */
static bool loses_shares(const pair *p) {
    return strncmp(p->topology, "gossip", 6) == 0 && strcmp(p->consistency, "async") == 0;
}

static int print_pairs(int32_t replicas) {
    for (const pli_topology_kind *const *kind = pli_topologies(); *kind != NULL; kind++) {
        char topology[PLI_TOPOLOGY_TEXT];
        pli_topology_example(*kind, topology);
        for (int i = 0; i < POLICIES * FILTERS * 4; i++) {
            const pair p = { .topology = topology,
                             .consistency = policies[i / 4 / FILTERS],
                             .filter = filters[i / 4 % FILTERS],
                             .exact = i % 2 == 1,
                             .sparse = i / 2 % 2 == 1,
                             .replicas = replicas };
            if (trains(&p, 0) && !loses_shares(&p))
                printf("%s %s %s %s %s %d\n", p.topology, p.consistency, p.filter, p.exact ? "exact" : "plain",
                       p.sparse ? "sparse" : "dense", replicas);
        }
    }
    return 0;
}

static bool has_whole_clocks(const pair *p) { return trains(p, PLAIT_WHOLE_CLOCKS); }

typedef struct life {
    const char *folder;
    pair        of;
    uint64_t    seed;
    bool        whole;
    int32_t     victim, other; /* other: dies with it; -1: nobody does */
    int64_t     last; /* the victim's last clock ... */
    long        ns;   /* ... and how far in it */
} life;

/* Of workers; they have no items. */
static int32_t spares_of(const life *l) { return l->seed % 3 == 0; }

/* --- who adds what ------------------------------------------------------------------------------------------------ */

/* The rows of column `column` in a clock, in order; their number. */
static int64_t rows_of(int32_t column, int64_t clock, uint64_t rows[OF_A_CLOCK]) {
    pli_random r = pli_random_at((uint64_t)column, PLI_RANDOM_SCHEDULE, 11, (uint64_t)clock);
    int64_t    n = 0;
    for (uint64_t row = 0; row < ROWS && n < OF_A_CLOCK; row++)
        if (pli_random_below(&r, ROWS / OF_A_CLOCK) == 0) rows[n++] = row;
    return n;
}

static plait_status add_column(plait_table *table, int32_t column, int64_t clock) {
    uint64_t      rows[OF_A_CLOCK];
    float         delta[OF_A_CLOCK * COLUMNS] = { 0 };
    const int64_t n = rows_of(column, clock, rows);
    for (int64_t i = 0; i < n; i++) delta[i * COLUMNS + column] = 1;
    return plait_table_inc(table, n, rows, delta, 0);
}

/* What the caller adds in this clock: its own column, and with whole clocks those that it holds, or has just
 * inherited. */
static plait_status add(const life *l, plait_table *table, int32_t me, int64_t clock, bool inherited) {
    for (int32_t v = 0; v < workers_of(&l->of) - (l->whole ? spares_of(l) : 0); v++) {
        const bool mine = !l->whole ? v == me && !inherited
                        : inherited ? plait_table_inherits(table, v, 0) != 0
                                    : plait_table_holder(table, v, 0) == me;
        if (mine) PLI_TRY(add_column(table, v, clock));
    }
    return PLAIT_OK;
}

/* --- a rank of the job -------------------------------------------------------------------------------------------- */

static int open_file(const char *folder, const char *what, int32_t rank, int flags) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%d", folder, what, rank);
    return open(path, flags, 0644);
}

static void write_pid(const char *folder, int32_t me) {
    const int file = open_file(folder, "pid", me, O_CREAT | O_TRUNC | O_WRONLY);
    const pid_t pid = getpid();
    if (file < 0 || write(file, &pid, sizeof pid) != sizeof pid || close(file) != 0) exit(1);
}

/* Of a rank that lives, or has just ended; 0: it has written none. */
static pid_t pid_of(const char *folder, int32_t rank) {
    const int file = rank < 0 ? -1 : open_file(folder, "pid", rank, O_RDONLY);
    pid_t     pid = 0;
    if (file < 0) return 0;
    if (read(file, &pid, sizeof pid) != sizeof pid) pid = 0;
    close(file);
    return pid;
}

static void *die(void *user) {
    const life           *l = user;
    const struct timespec left = { .tv_nsec = l->ns };
    const pid_t           other = pid_of(l->folder, l->other);
    nanosleep(&left, NULL);
    if (other > 0) kill(other, SIGKILL);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void die_soon(const life *l) {
    static life of; /* the thread outlives this call */
    pthread_t   thread;
    of = *l;
    if (pthread_create(&thread, NULL, die, &of) == 0) pthread_detach(thread);
}

static bool has_both_kinds(const life *l) { return l->whole && strcmp(l->of.topology, "hybrid") == 0; }

/* table NULL: there is none. */
static plait_status tell(plait_table *table, const char *what, const life *l, int32_t me) {
    static float values[ROWS * COLUMNS];
    uint64_t     rows[ROWS];
    if (table == NULL) return PLAIT_OK;
    for (uint64_t row = 0; row < ROWS; row++) rows[row] = row;
    PLI_TRY(plait_table_get(table, ROWS, rows, values));
    for (int i = 0; is_lossy(&l->of) && i < ROWS * COLUMNS; i++) values[i] = -values[i];
    const int     file = open_file(l->folder, what, me, O_CREAT | O_TRUNC | O_WRONLY);
    const ssize_t wrote = file < 0 ? -1 : write(file, values, sizeof values);
    return wrote == (ssize_t)sizeof values && close(file) == 0 ? PLAIT_OK : PLAIT_EIO;
}

static plait_status work(plait_job *job, void *user) {
    const life      *l = user;
    const int32_t    me = plait_comm_rank(plait_job_comm(job));
    const int        ledger = open_file(l->folder, "ledger", me, O_CREAT | O_APPEND | O_WRONLY);
    plait_table     *table, *other = NULL;
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "t";
    o.type = PLAIT_F32;
    o.rows = l->of.sparse ? 0 : ROWS;
    o.cols = COLUMNS;
    o.rule.name = is_lossy(&l->of) ? "sgd" : NULL;
    o.rule.learning_rate = 1;
    write_pid(l->folder, me);
    PLI_TRY(plait_table_create(job, &o, &table));
    o.name = "other";
    o.rows = l->of.sparse ? ROWS : 0;
    if (has_both_kinds(l)) PLI_TRY(plait_table_create(job, &o, &other));
    PLI_TRY(plait_job_barrier(job));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        plait_status status;
        bool         again = false;
        float        value[COLUMNS];
        if (me == l->victim && clock == l->last) die_soon(l);
        do {
            const uint64_t row = (uint64_t)clock % ROWS;
            PLI_TRY(plait_table_get(table, 1, &row, value));
            PLI_TRY(add(l, table, me, clock, again));
            if (other != NULL) PLI_TRY(add(l, other, me, clock, again));
            again = true;
        } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
        if (status < 0) return status;
        if (write(ledger, &clock, sizeof clock) != sizeof clock) return PLAIT_EIO;
    }
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(tell(table, "values", l, me));
    PLI_TRY(tell(other, "other", l, me));
    PLI_TRY(plait_job_barrier(job));
    close(ledger);
    return PLAIT_OK;
}

static int live(life *l) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.transport = "mpi";
    job.topology = l->of.topology;
    job.consistency = l->of.consistency;
    job.filter = strcmp(l->of.filter, "none") == 0 ? NULL : l->of.filter;
    job.exact = l->of.exact;
    job.replicas = l->of.replicas;
    job.spares = spares_of(l);
    if (plait_run(&comm, &job, work, l, &err) >= 0) return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

/* --- the judge ---------------------------------------------------------------------------------------------------- */

/* How many clocks a worker's ledger has; -1: their numbers do not follow each other. */
static int64_t clocks_of(const char *folder, int32_t worker) {
    int64_t   n = 0, clock;
    const int file = open_file(folder, "ledger", worker, O_RDONLY);
    while (file >= 0 && read(file, &clock, sizeof clock) == (ssize_t)sizeof clock)
        if (clock != n++) return -1;
    if (file >= 0) close(file);
    return n;
}

static bool read_values(const char *folder, const char *what, int32_t worker, float values[ROWS * COLUMNS]) {
    const int     file = open_file(folder, what, worker, O_RDONLY);
    const ssize_t size = file < 0 ? 0 : read(file, values, ROWS * COLUMNS * sizeof *values);
    if (file >= 0) close(file);
    return size == (ssize_t)(ROWS * COLUMNS * sizeof *values);
}

/* How often each row of a column was added to in clocks below `clocks`. */
static void count(int32_t column, int64_t clocks, double times[ROWS]) {
    uint64_t rows[OF_A_CLOCK];
    memset(times, 0, ROWS * sizeof *times);
    for (int64_t clock = 0; clock < clocks; clock++)
        for (int64_t i = rows_of(column, clock, rows) - 1; i >= 0; i--) times[rows[i]]++;
}

/* A filter may keep something back, on every worker, and a push of averages is a part of what was added. */
static bool keeps_back(const pair *p) {
    const bool whole_numbers = strcmp(p->filter, "fp16") == 0 || strcmp(p->filter, "bf16") == 0;
    const bool averages = strncmp(p->topology, "gossip", 6) == 0;
    return (is_lossy(p) && (averages || !whole_numbers)) || strncmp(p->consistency, "local-sgd", 9) == 0;
}

/* What a worker's last clocks may miss: who had gathered updates since its last push takes them with it. */
static bool gathers(const pair *p) { return strncmp(p->consistency, "downpour", 8) == 0; }

/* With whole clocks: in how many of them somebody computes a worker's items. */
static int64_t clocks_of_items(const life *l, int32_t home) {
    return home < workers_of(&l->of) - spares_of(l) ? CLOCKS : 0;
}

/* Averages of averages are rounded. */
static double slack_of(const pair *p) { return strncmp(p->topology, "gossip", 6) == 0 ? 0.01 : 0; }

static int judge_column(const life *l, int32_t column, int64_t acknowledged, const float *values) {
    double at_least[ROWS], at_most[ROWS];
    const bool dead = acknowledged < CLOCKS;
    count(column, !l->whole ? acknowledged : clocks_of_items(l, column), at_least);
    count(column, !l->whole ? acknowledged + dead : clocks_of_items(l, column), at_most);
    for (int64_t row = 0; row < ROWS; row++) {
        const double value = values[row * COLUMNS + column];
        const double slack = slack_of(&l->of);
        const bool   lost = value < at_least[row] - slack && !(dead && gathers(&l->of));
        if (!lost && value <= at_most[row] + slack) continue;
        printf("row %lld, column %d: %g, where at least %g and at most %g were added; its worker's ledger has %lld "
               "clocks\n",
               (long long)row, column, value, at_least[row], at_most[row], (long long)acknowledged);
        return 1;
    }
    return 0;
}

/* Of rounded updates, and of those that come late, only the sum of all is looked at: nothing may count twice. (A filter
 * such as onebit spreads what it rounds over the columns.) */
static int judge_sum(const life *l, const float *values) {
    double times[ROWS], most = 0, sum = 0;
    for (int32_t column = 0; column < workers_of(&l->of); column++) {
        const int64_t acknowledged = clocks_of(l->folder, column);
        count(column, l->whole ? clocks_of_items(l, column) : acknowledged + (acknowledged < CLOCKS), times);
        for (int64_t row = 0; row < ROWS; row++) most += times[row];
    }
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) sum += values[i];
    if (sum <= most * 1.02 + OF_A_CLOCK) return 0;
    printf("%g in all, where %g were added\n", sum, most);
    return 1;
}

/* What the table holds in the end, and how many workers say so; -1: something is wrong. */
static int32_t judge_table(const life *l, const char *what) {
    static float  values[ROWS * COLUMNS], others[ROWS * COLUMNS];
    const int32_t workers = workers_of(&l->of), deaths = 1 + (l->other >= 0);
    int32_t       ended = 0;
    for (int32_t v = 0; v < workers; v++)
        if (read_values(l->folder, what, v, ended == 0 ? values : others) && ended++ > 0 && l->whole &&
            memcmp(values, others, sizeof values) != 0) {
            printf("worker %d has other %s than the first that lives\n", v, what);
            return -1;
        }
    if (ended < workers - deaths) {
        printf("only %d of %d workers came to the end\n", ended, workers);
        return -1;
    }
    for (int32_t v = 0; v < workers; v++) {
        const int64_t acknowledged = clocks_of(l->folder, v);
        if (acknowledged < 0) {
            printf("worker %d's clocks do not follow each other\n", v);
            return -1;
        }
        if (!keeps_back(&l->of) && judge_column(l, v, acknowledged, values) != 0) return -1;
    }
    return keeps_back(&l->of) && judge_sum(l, values) != 0 ? -1 : ended;
}

static int judge(const life *l) {
    const int32_t workers = workers_of(&l->of), ended = judge_table(l, "values");
    if (ended < 0 || (has_both_kinds(l) && judge_table(l, "other") < 0)) return 1;
    printf("%s\n", ended == workers ? "it came too late" : ended == workers - 1 ? "one died" : "two died");
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "pairs") == 0) return print_pairs(atoi(argv[2]));
    if (argc != 4 + WORDS) {
        fprintf(stderr, "usage: ledger pairs 2|3\n       ledger live|judge FOLDER SEED TOPOLOGY CONSISTENCY FILTER "
                        "plain|exact dense|sparse REPLICAS\n");
        return 2;
    }
    const pair of = { argv[4], argv[5], argv[6], strcmp(argv[7], "exact") == 0, strcmp(argv[8], "sparse") == 0,
                      atoi(argv[9]) };
    life       l = { .folder = argv[2], .of = of, .seed = strtoull(argv[3], NULL, 10), .whole = has_whole_clocks(&of) };
    pli_random r = pli_random_at(l.seed, PLI_RANDOM_SCHEDULE, 12, 0);
    const int32_t workers = workers_of(&of);
    l.victim = (int32_t)pli_random_below(&r, (uint64_t)workers);
    l.other = of.replicas < 3 ? -1 : (l.victim + 1 + (int32_t)pli_random_below(&r, (uint64_t)workers - 1)) % workers;
    l.last = 1 + (int64_t)pli_random_below(&r, CLOCKS / 2);
    l.ns = (long)pli_random_below(&r, WITHIN_US) * 1000;
    return strcmp(argv[1], "live") == 0 ? live(&l) : judge(&l);
}
