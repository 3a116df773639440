/* Cases of plait/schedule.h: a schedule of the single worker. */
#include "api/nulls.h"

static plait_status push(void *user, const plait_turn *turn) {
    (void)user;
    (void)turn;
    return PLAIT_OK;
}

static plait_schedule *schedule_of(fixture *f) {
    plait_schedule_opts opts;
    plait_schedule     *schedule = NULL;
    plait_schedule_opts_init(&opts);
    opts.variables = 3;
    opts.push = push;
    plait_schedule_create(f->job, &opts, &schedule);
    return schedule;
}

static int opts_init(fixture *f, int arg) {
    plait_schedule_opts opts;
    (void)f;
    (plait_schedule_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int create(fixture *f, int arg) {
    plait_schedule_opts opts;
    plait_schedule     *schedule = NULL;
    plait_schedule_opts_init(&opts);
    opts.variables = 3;
    opts.push = push;
    int answer = plait_schedule_create(N(0, f->job), N(1, &opts), N(2, &schedule));
    plait_schedule_destroy(&schedule);
    return answer;
}
static int destroy(fixture *f, int arg) {
    plait_schedule *schedule = schedule_of(f);
    plait_schedule_destroy(N(0, &schedule));
    plait_schedule_destroy(&schedule);
    return NEUTRAL;
}

/* The other calls: each with a schedule of its own, or none. */
enum { STEP, STEPS, UPDATES, ASKED, SET, FORGET, AGREE };

static int answer_of(plait_schedule *schedule, int which) {
    switch (which) {
    case STEP: return plait_schedule_step(schedule);
    case STEPS: return NEUTRAL_IF(plait_schedule_steps(schedule) == 0);
    case UPDATES: return NEUTRAL_IF(plait_schedule_updates(schedule) == 0);
    case ASKED: return NEUTRAL_IF(plait_schedule_asked(schedule) == 0);
    case SET: return plait_schedule_set(schedule, 2, 1);
    case FORGET: plait_schedule_forget(schedule); return NEUTRAL;
    default: return plait_schedule_agree(schedule);
    }
}
static int call(fixture *f, int arg, int which) {
    plait_schedule *schedule = schedule_of(f);
    int             answer = answer_of(N(0, schedule), which);
    plait_schedule_destroy(&schedule);
    return answer;
}
static int step(fixture *f, int arg) { return call(f, arg, STEP); }
static int steps(fixture *f, int arg) { return call(f, arg, STEPS); }
static int updates(fixture *f, int arg) { return call(f, arg, UPDATES); }
static int asked(fixture *f, int arg) { return call(f, arg, ASKED); }
static int set(fixture *f, int arg) { return call(f, arg, SET); }
static int forget(fixture *f, int arg) { return call(f, arg, FORGET); }
static int agree(fixture *f, int arg) { return call(f, arg, AGREE); }

const null_case schedule_cases[] = {
    { "schedule_opts_init", opts_init, NULL },
    { "schedule_create", create, NULL },
    { "schedule_destroy", destroy, "schedule" },
    { "schedule_step", step, NULL },
    { "schedule_steps", steps, NULL },
    { "schedule_updates", updates, NULL },
    { "schedule_asked", asked, NULL },
    { "schedule_set", set, NULL },
    { "schedule_forget", forget, NULL },
    { "schedule_agree", agree, NULL },
    { NULL, NULL, NULL },
};
