/* tests/learn/survive_dir.h - a folder of checkpoints, for runs of survive.h that write some. */
#ifndef PLAIT_TESTS_LEARN_SURVIVE_DIR_H
#define PLAIT_TESTS_LEARN_SURVIVE_DIR_H

#include "learn/survive.h"

static void on_checkpointed(void *user, const plait_checkpointed *checkpointed) {
    story *s = user;
    assert_true(checkpointed->bytes >= 0 && checkpointed->clock > 0);
    atomic_fetch_add(&s->checkpoints, 1);
}

static char dir[40];

static void make_directory(void) {
    strcpy(dir, "/tmp/plait-survive-XXXXXX");
    assert_non_null(mkdtemp(dir));
}

/* Makes one of the checkpoints that are there the newest; false: there is none. Each checkpoint that the caller heard
 * of is there; one more may be, of which the dead rank was to tell. Nothing half written is left, unless the dead rank
 * alone knew of it. */
static bool choose_checkpoint(pli_random *r, int64_t told, const char *what) {
    pli_checkpoint_list list = { 0 };
    plait_error         err = { 0 };
    int64_t             good = 0, unfinished = 0;
    if (!pli_is_directory(dir)) return false;
    if (pli_checkpoint_list_read(dir, &list, &err) < 0) fail_msg("%s: %s", what, err.text);
    for (int64_t i = 0; i < list.n; i++) {
        good += list.entry[i].state == PLI_CHECKPOINT_COMPLETE;
        unfinished += list.entry[i].state == PLI_CHECKPOINT_UNFINISHED;
    }
    if (good < told || good > told + 1)
        fail_msg("%s: %lld checkpoints, %lld told", what, (long long)good, (long long)told);
    if (unfinished > 1) fail_msg("%s: %lld checkpoints half written stay", what, (long long)unfinished);
    int64_t drop = good > 0 ? (int64_t)pli_random_below(r, (uint64_t)good) : 0;
    for (int64_t i = list.n - 1; i >= 0 && drop > 0; i--) {
        if (list.entry[i].state != PLI_CHECKPOINT_COMPLETE) continue;
        assert_int_equal(pli_checkpoint_discard(dir, list.entry[i].folder, &err), PLAIT_OK);
        drop--;
    }
    pli_checkpoint_list_free(&list);
    return good > 0;
}

/* Writes all checkpoints of a run, every two clocks (of hinge, whose runs have thousands, every 60) or as often as it
 * can. */
static void keep_often(story *s, pli_random *r, bool nobody_dies) {
    s->opts.checkpoint = dir;
    s->opts.checkpoint_keep = 1000;
    const bool long_one = strcmp(s->opts.model, "hinge") == 0;
    s->opts.checkpoint_clocks = !nobody_dies && pli_random_below(r, 3) == 0 ? 0 : long_one ? 60 : 2;
    s->opts.checkpoint_seconds = long_one ? 0.02 : 1e-4;
    s->opts.checkpointed = on_checkpointed;
}

/* Resumes from what is there, and perhaps writes more. */
static void resume_there(story *s, pli_random *r) {
    s->opts.resume = dir;
    s->opts.checkpoint = pli_random_below(r, 2) == 0 ? dir : NULL;
    s->opts.checkpoint_clocks = 5;
}

/* Draws a death in a resumed run: it makes fewer calls, of which the first ones put tables back. */
static void draw_death_resumed(story *s, pli_random *r, const story *whole) {
    draw_death(s, r, whole);
    s->at = pli_random_below(r, 2) == 0 ? s->at / 3 : s->at % 8;
}

/* The model of a run with one copy of each shard is not handed over. */
static void hand_over(story *s, const story *whole) {
    int32_t ended;
    s->kept_clocks = report_of(s, &ended)->clocks;
    memcpy(s->kept_hash, whole->kept_hash, sizeof s->kept_hash);
}

/* Most runs lose a rank, and nearly all leave a checkpoint. */
static void judge_resumed(int64_t runs, int64_t died, int64_t resumed) {
    if (only_seed() == NULL && (died * 2 < runs || resumed * 4 < runs * 3))
        fail_msg("%lld runs, %lld deaths, %lld resumed", (long long)runs, (long long)died, (long long)resumed);
}

static void remove_checkpoints(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s/*", dir);
    assert_int_equal(system(command), 0);
}

#endif
