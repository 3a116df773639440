/* Four workers share two tables: a dense table of counts, and a sparse table that grows by key. The workers are threads
 * of this process, or four processes of an MPI launcher: `plait launch -n 4 -- 01_tables_4_threads`. Each worker counts
 * the letters and the words of its lines. A worker combines its incs until its clock ends. The table's consistency says
 * what a get may miss: here it is bsp, so in clock 1 every worker sees all updates of clock 0. */
#include <plait/table.h>
#include <stdio.h>
#include <string.h>

static const char *const lines[] = {
    "one table holds all that is shared",
    "a worker reads with get",
    "and writes with inc",
    "a clock ends an iteration",
    "all workers tick the same clock",
    "how stale a read may be",
    "is a flag of the run",
    "not a line of the program",
};
enum { LINES = sizeof lines / sizeof lines[0] };

/* FNV-1a: the key of a word. */
static uint64_t key_of(const char *word, size_t n) {
    uint64_t key = 1469598103934665603u;
    for (size_t i = 0; i < n; i++) key = (key ^ (unsigned char)word[i]) * 1099511628211u;
    return key;
}

static plait_status count_line(const char *line, plait_table *letters, plait_table *words) {
    const float one = 1;
    for (const char *c = line; *c != '\0';) {
        size_t   n = strcspn(c, " ");
        uint64_t key = key_of(c, n);
        for (size_t i = 0; i < n; i++) {
            plait_status status = plait_table_inc_range(letters, c[i] - 'a', 1, &one, 0);
            if (status < 0) return status;
        }
        plait_status status = plait_table_inc(words, 1, &key, &one, 0);
        if (status < 0) return status;
        c += n + (c[n] == ' ');
    }
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    (void)user;
    plait_comm      *comm = plait_job_comm(job);
    plait_table_opts opts;
    plait_table     *letters = NULL, *words = NULL;
    plait_status     status;
    float            count[26], as = 0;
    uint64_t         a = key_of("a", 1);
    plait_table_opts_init(&opts);
    opts.name = "letters";
    opts.rows = 26;
    if ((status = plait_table_create(job, &opts, &letters)) < 0) return status;
    opts.name = "words";
    opts.rows = 0; /* sparse */
    if ((status = plait_table_create(job, &opts, &words)) < 0) return status;
    for (int i = plait_comm_rank(comm); i < LINES; i += plait_comm_workers(comm)) {
        if ((status = count_line(lines[i], letters, words)) < 0) return status;
    }
    if ((status = plait_job_clock(job)) < 0) return status;
    if ((status = plait_table_get_range(letters, 0, 26, count)) < 0) return status;
    if ((status = plait_table_get(words, 1, &a, &as)) < 0) return status;
    if (plait_comm_rank(comm) == 0) {
        for (int i = 0; i < 26; i++) printf("%c %g%s", 'a' + i, count[i], i % 9 == 8 ? "\n" : "  ");
        printf("\nthe word \"a\" stands there %g times\n", as);
    }
    return count[0] == 20 && as == 5 ? PLAIT_OK : PLAIT_EFORMAT;
}

int main(void) {
    plait_comm_opts opts;
    plait_error     error = { 0 };
    plait_comm_opts_init(&opts);
    opts.workers = 4;
    if (plait_run(&opts, NULL, work, NULL, &error) < 0) return fprintf(stderr, "%s\n", error.text), 1;
    return 0;
}
