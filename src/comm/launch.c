/* mpirun gets its settings for a run on one machine or a small cluster through its environment, since an MPI that does
 * not know a variable ignores it: run as root, more ranks than cores, no binding, yield when idle, and a dead rank is
 * told to the others and does not end the job (what Open MPI 5 calls --with-ft ulfm). mpirun has a process group of its
 * own, so that a Ctrl-C reaches it once, through this process: twice means "at once".
 *
 * Nothing outlives a launch. When this process dies, the kernel signals mpirun (PR_SET_PDEATHSIG), which ends its
 * ranks. When mpirun dies, this process adopts what mpirun had started (PR_SET_CHILD_SUBREAPER), kills and reaps it.
 * Process groups would not help, since mpirun gives each rank a group of its own.
 *
 * mpirun gets a new directory for its files. By itself it takes ompi.PID in the system's; a killed mpirun leaves that
 * there, and a later one that the system gives the same process number refuses to start. */
#include "comm/launch.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/module.h"
#include "comm/launch_words.h"
#include "comm/loopback/loopback.h"

extern char **environ;

static const char *const settings[] = {
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "PRTE_ALLOW_RUN_AS_ROOT=1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", /* Open MPI 5 */
    "OMPI_MCA_rmaps_base_oversubscribe=1",                  /* Open MPI 4 */
    "PRTE_MCA_hwloc_default_binding_policy=none",
    "OMPI_MCA_hwloc_base_binding_policy=none",
    "OMPI_MCA_mpi_yield_when_idle=1",
    "PRTE_MCA_state_base_recoverable=1", /* these three are --with-ft ulfm */
    "PRTE_MCA_state_base_notify_errors=1",
    "OMPI_MCA_mpi_ft_enable=1",
};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static const char of_one_host[] = "OMPI_MCA_btl=^tcp"; /* Open MPI's TCP part listens on all interfaces, whichever it
                                                        * is told to use */
static const char none_fails_all[] = "PRTE_MCA_state_base_error_non_zero_exit=0";

/* --- finding it ---------------------------------------------------------------------------------------- */

static bool is_program(const char *path) { return access(path, X_OK) == 0 && !pli_is_directory(path); }

/* Returns directory/below if that is a program, else NULL. If memory runs out, *memory becomes false. */
static char *look(const char *directory, size_t length, const char *below, bool *memory) {
    char *path = pli_format("%.*s/%s", (int)length, directory, below);
    if (path == NULL) *memory = false;
    if (path == NULL || is_program(path)) return path;
    pli_free(path);
    return NULL;
}

static char *look_above(const char *directory, bool *memory) {
    for (size_t length = strlen(directory);; length--) {
        while (length > 0 && directory[length] != '/' && directory[length] != '\0') length--;
        char *path = look(directory, length, ".venv/bin/mpirun", memory);
        if (path != NULL || length == 0 || !*memory) return path;
    }
}

static char *look_in_path(const char *name, const char *other, bool *memory) {
    const char *at = pli_env("PATH");
    while (at != NULL && *at != '\0' && *memory) {
        size_t length = strcspn(at, ":");
        char  *path = length > 0 ? look(at, length, name, memory) : NULL;
        if (path == NULL && length > 0 && *memory && other != NULL) path = look(at, length, other, memory);
        if (path != NULL) return path;
        at += length + (at[length] == ':');
    }
    return NULL;
}

plait_status pli_launch_find(char **path_out, plait_error *err) {
    char        own[4096];
    bool        memory = true;
    const char *given = pli_env("PLAIT_MPIRUN");
    char       *path = NULL;
    pli_own_directory(own);
    if (given != NULL && given[0] != '\0') {
        if (!is_program(given)) return pli_fail(err, PLAIT_EMODULE, "PLAIT_MPIRUN is %s, which is not a program",
                                                given);
        path = pli_strdup(given);
        memory = path != NULL;
    } else {
        path = look_above(own, &memory);
        if (path == NULL && memory) path = look_in_path("mpirun", "mpiexec", &memory);
    }
    if (path == NULL && memory)
        return pli_fail(err, PLAIT_EMODULE, "there is no mpirun in .venv/bin above %.200s or on the path: install it "
                                            "with script/bootstrap --all and build again", own);
    if (path == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to look for mpirun");
    *path_out = path;
    return PLAIT_OK;
}

/* Without this check mpirun would answer a missing program with a page of text and a code of its own. */
static plait_status check_program(const char *name, plait_error *err) {
    bool  memory = true;
    char *path = strchr(name, '/') == NULL ? look_in_path(name, NULL, &memory) : NULL;
    bool  there = path != NULL || (strchr(name, '/') != NULL && is_program(name));
    pli_free(path);
    if (!memory) return pli_fail(err, PLAIT_ENOMEM, "no memory to look for %s", name);
    return there ? PLAIT_OK : pli_fail(err, PLAIT_ENAME, "there is no program %s to start", name);
}

/* --- running it ------------------------------------------------------------------------------------------ */

/* Does the user's environment have the variable of this setting of ours? Then the user's value wins. */
static bool is_set(const char *setting) {
    size_t length = strcspn(setting, "=") + 1;
    for (char **e = environ; *e != NULL; e++)
        if (strncmp(*e, setting, length) == 0) return true;
    return false;
}

/* Are the job's machines named? */
static bool is_away(const pli_launch_job *job) { return job->hosts != NULL || job->hostfile != NULL; }

/* Is the job sure to stay on this machine? mpirun also takes other hosts from a batch system. */
static bool is_on_one_host(const pli_launch_job *job) {
    static const char *const elsewhere[] = { "SLURM_JOB_ID=", "SLURM_JOBID=", "PBS_JOBID=", "PBS_NODEFILE=",
                                             "LSB_JOBID=", "PE_HOSTFILE=", "FLUX_URI=",
                                             "PRTE_MCA_prte_default_hostfile=",
                                             "PRTE_MCA_prte_default_dash_host=", "OMPI_MCA_orte_default_hostfile=" };
    if (is_away(job)) return false;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (is_set(elsewhere[i])) return false;
    return true;
}

/* Returns "LD_PRELOAD=" with the module that keeps prterun to loopback, and the libraries that the user has there.
 * NULL: do without the module. The caller frees it. */
static char *preload(void) {
    void       *handle = NULL;
    const void *given = NULL;
    const char *before = pli_env("LD_PRELOAD");
    char       *setting = NULL;
    if (pli_module_load("loopback", PLI_LOOPBACK_ABI, &handle, &given, NULL) < 0) return NULL;
    Dl_info info;
    if (dladdr(given, &info) != 0 && strpbrk(info.dli_fname, ": ") == NULL) /* LD_PRELOAD cannot name a path with
                                                                             * these */
        setting = before != NULL && before[0] != '\0' ? pli_format("LD_PRELOAD=%s:%s", info.dli_fname, before)
                                                      : pli_format("LD_PRELOAD=%s", info.dli_fname);
    pli_module_close(&handle);
    return setting;
}

/* If /dev/shm has no room for the ranks' shared memory, they must use TCP. */
static bool has_shared_memory(const pli_launch_job *job) {
    enum { OF_A_RANK = 17 << 20 };
    return pli_is_directory("/dev/shm") && pli_free_bytes("/dev/shm") >= (int64_t)job->processes * OF_A_RANK;
}

/* Builds mpirun's environment, with room for one more setting. loopback: preload's setting, or NULL. */
static const char **environment(const pli_launch_job *job, const char *loopback) {
    size_t n = 0, kept = 0;
    while (environ[n] != NULL) n++;
    const char **env = pli_array(n + SETTINGS + 5, sizeof *env);
    if (env == NULL) return NULL;
    for (size_t i = 0; i < n; i++)
        if (loopback == NULL || strncmp(environ[i], "LD_PRELOAD=", 11) != 0) env[kept++] = environ[i];
    if (loopback != NULL) env[kept++] = loopback;
    for (size_t i = 0; i < SETTINGS; i++)
        if (!is_set(settings[i])) env[kept++] = settings[i];
    if (is_on_one_host(job) && has_shared_memory(job) && !is_set(of_one_host)) env[kept++] = of_one_host;
    if (job->hears && is_on_one_host(job) && !is_set(none_fails_all)) env[kept++] = none_fails_all;
    env[kept] = NULL;
    return env;
}

/* Gives mpirun a new directory, unless the user has named one. Without room for it mpirun takes its usual one. Returns
 * the setting, which lives as long as env, or NULL; *folder_out: the directory. The caller frees both. */
static char *give_directory(const char **env, char **folder_out) {
    static const char name[] = "PRTE_MCA_prte_local_tmpdir_base=";
    if (is_set(name) || (*folder_out = pli_temporary_directory("mpirun")) == NULL) return NULL;
    char *setting = pli_format("%s%s", name, *folder_out);
    while (*env != NULL) env++;
    *env = setting; /* if NULL, there is none more */
    env[1] = NULL;
    return setting;
}

static size_t count(char *const *words) {
    size_t n = 0;
    while (words != NULL && words[n] != NULL) n++;
    return n;
}

/* Counts Plait's own variables. mpirun gives them to other machines only if each is named. */
static size_t own_variables(void) {
    size_t n = 0;
    for (char **e = environ; *e != NULL; e++) n += strncmp(*e, "PLAIT_", 6) == 0;
    return n;
}

/* The words of mpirun's command line, in order. Words that were allocated for it are owned. */
typedef struct line {
    const char **words;
    char       **made;
    size_t       n, n_made;
    bool         memory;
} line;

static void free_line(line *l) {
    for (size_t i = 0; i < l->n_made; i++) pli_free(l->made[i]);
    pli_free(l->made);
    pli_free(l->words);
}

static void put_variables(line *l) {
    for (char **e = environ; *e != NULL; e++) {
        if (strncmp(*e, "PLAIT_", 6) != 0) continue;
        char *name = pli_format("%.*s", (int)strcspn(*e, "="), *e);
        if (name == NULL) {
            l->memory = false;
            return;
        }
        l->made[l->n_made++] = name;
        l->words[l->n++] = "-x";
        l->words[l->n++] = name;
    }
}

/* Builds: mpirun -n N [where] [-x PLAIT_...] keeper argv */
static void make_line(line *l, const char *mpirun, const char *number, const pli_launch_job *job) {
    const bool   away = is_away(job);
    const size_t before = count(job->keeper), n = count(job->argv), variables = away ? own_variables() : 0;
    *l = (line){ .memory = true };
    l->words = pli_array(before + n + 2 * variables + 6, sizeof *l->words);
    l->made = pli_array(variables + 1, sizeof *l->made);
    if (l->words == NULL || l->made == NULL) {
        l->memory = false;
        return;
    }
    l->words[l->n++] = mpirun;
    l->words[l->n++] = "-n";
    l->words[l->n++] = number;
    if (away) {
        l->words[l->n++] = job->hosts != NULL ? "--host" : "--hostfile";
        l->words[l->n++] = job->hosts != NULL ? job->hosts : job->hostfile;
        put_variables(l);
    }
    if (before > 0) memcpy(l->words + l->n, job->keeper, before * sizeof *l->words);
    memcpy(l->words + l->n + before, job->argv, (n + 1) * sizeof *l->words);
}

/* --- signals: handled rather than blocked and waited for, since a library's thread may receive them --------------- */

static const int handed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
enum { HANDED_ON = sizeof handed_on / sizeof handed_on[0] };

static _Atomic int child;   /* mpirun's process number while it runs; else 0 */
static _Atomic uint64_t asked_ns; /* when the first request to stop was handed on; 0: none was. Any thread may set it */
static _Atomic int early;   /* a signal that came before mpirun was started */
static _Atomic int asked;   /* the first signal that asked to stop; 0: none did */

/* Open MPI's mpirun answers SIGINT and SIGTERM by killing its processes a second later; SIGUSR2 it hands on and
 * waits. So the first request to stop is sent as SIGUSR2, which gives the ranks time to save; a request that repeats
 * it is sent as it is. */
static void hand_on(int sig) {
    int        kept = errno, pid = atomic_load(&child);
    const bool asks = sig == SIGINT || sig == SIGTERM;
    int        none = 0;
    if (asks || sig == SIGHUP) atomic_compare_exchange_strong(&asked, &none, sig);
    uint64_t       first_ns = 0;
    const uint64_t now_ns = pli_now_ns();
    const bool     is_first = pid > 0 && asks && atomic_compare_exchange_strong(&asked_ns, &first_ns, now_ns);
    if (pid <= 0) {
        atomic_store(&early, sig);
    } else if (is_first) {
        kill(pid, SIGUSR2);
    } else if (!asks || pli_stop_is_repeated(first_ns, now_ns)) {
        kill(pid, sig);
    }
    errno = kept;
}

static void take_signals(struct sigaction before[HANDED_ON]) {
    struct sigaction action = { .sa_handler = hand_on, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < HANDED_ON; i++) sigaction(handed_on[i], &action, &before[i]);
}

static void give_signals_back(const struct sigaction before[HANDED_ON]) {
    for (int i = 0; i < HANDED_ON; i++) sigaction(handed_on[i], &before[i], NULL);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Runs between fork and exec, so it may only make calls that a signal handler may make. words: who listens to
 * mpirun, or NULL. */
static void become(const char **argv, const char **env, const pli_launch_words *words, const sigset_t *mask,
                   int32_t parent) {
    setpgid(0, 0);
    pli_child_dies_with_parent(parent, SIGTERM);
    for (int i = 0; i < HANDED_ON; i++) signal(handed_on[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (words != NULL) pli_launch_words_become(words);
    execve(argv[0], (char *const *)argv, (char *const *)env);
    raise(SIGKILL); /* mpirun could not be executed; this copy must not go on */
}

/* Signals are blocked meanwhile: the child would take one for the parent's. */
static int spawn(pid_t *pid, const char **argv, const char **env, const pli_launch_words *words) {
    sigset_t all, before;
    int32_t  parent = pli_pid();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    *pid = fork();
    int bad = *pid < 0 ? errno : 0;
    if (*pid == 0) become(argv, env, words, &before, parent);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return bad;
}

#define LOOK_EVERY_NS UINT64_C(200000000)

static void attend(pid_t pid, pli_launch_job *job) {
    while (!pli_child_attend(pid, job->is_over != NULL ? LOOK_EVERY_NS : UINT64_MAX)) {
        if (!job->is_over(job->user)) continue;
        job->was_ended = true;
        kill(pid, SIGKILL);
        return;
    }
}

static plait_status run(const char **argv, const char **env, pli_launch_job *job, plait_error *err) {
    pid_t            pid = 0;
    struct sigaction before[HANDED_ON];
    pli_launch_words words;
    const bool       listens = is_away(job) && pli_launch_words_open(&words);
    atomic_store(&asked_ns, 0);
    atomic_store(&early, 0);
    atomic_store(&asked, 0);
    take_signals(before);
    pli_child_adopt(true);
    int bad = spawn(&pid, argv, env, listens ? &words : NULL);
    if (listens) pli_launch_words_begin(&words);
    if (bad == 0) {
        atomic_store(&child, (int)pid);
        int sig = atomic_exchange(&early, 0);
        if (sig != 0) hand_on(sig);
        attend(pid, job);
        atomic_store(&child, 0);
        job->code = pli_child_reap(pid);
        if (job->code < 0) job->code = 1;
        pli_child_end_all();
    }
    if (listens) job->unreached = pli_launch_words_close(&words, job->code, job->why);
    pli_child_adopt(false);
    give_signals_back(before);
    job->asked = atomic_load(&asked);
    return bad == 0 ? PLAIT_OK : pli_fail_errno(err, bad, "cannot start %s", argv[0]);
}

plait_status pli_launch(pli_launch_job *job, plait_error *err) {
    char *const *argv = job->argv;
    if (job->processes < 1 || argv == NULL || argv[0] == NULL)
        return pli_fail(err, PLAIT_EINVAL, "launch: %d processes of %s", job->processes,
                        argv != NULL && argv[0] != NULL ? argv[0] : "nothing");
    if (job->hosts != NULL && job->hostfile != NULL)
        return pli_fail(err, PLAIT_EINVAL,
                        "launch: give --hosts %.100s or --hostfile %.100s, not both",
                        job->hosts, job->hostfile);
    char *mpirun = NULL, number[16];
    PLI_TRY(check_program(argv[0], err));
    PLI_TRY(pli_launch_find(&mpirun, err));
    snprintf(number, sizeof number, "%d", job->processes);
    job->was_ended = job->unreached = false;
    job->asked = 0;
    line         all;
    char        *loopback = is_on_one_host(job) ? preload() : NULL;
    char        *folder = NULL;
    const char **env = environment(job, loopback);
    make_line(&all, mpirun, number, job);
    char *directory = env != NULL ? give_directory(env, &folder) : NULL;
    plait_status status = all.memory && env != NULL
                              ? run(all.words, env, job, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for the command of mpirun");
    free_line(&all);
    if (folder != NULL) pli_remove_directory(folder);
    pli_free(env);
    pli_free(directory);
    pli_free(folder);
    pli_free(loopback);
    pli_free(mpirun);
    return status;
}
