#include "cli/dashboard/feed.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/dashboard/link.h"
#include "comm/comm.h"

plait_status pli_dash_feed_init(pli_dash_feed *feed, bool given, int64_t port, pli_signals *signals, pli_talk *talk,
                                plait_error *err) {
    const char *link = pli_env(pli_dash_variable);
    feed->linked = link != NULL && link[0] != '\0';
    feed->own = given && !feed->linked;
    feed->port = (int32_t)port;
    feed->signals = signals;
    feed->talk = talk;
    feed->link = feed->linked ? pli_dash_link_open() : -1;
    return feed->own ? pli_dash_check(err) : PLAIT_OK;
}

bool pli_dash_feed_is_on(const pli_dash_feed *feed) { return feed->own || feed->linked; }

plait_status pli_dash_feed_share(pli_dash_feed *feed, plait_comm *comm, plait_error *err) {
    if (!feed->own || !pli_comm_is_worker(comm) || pli_comm_shares_process(comm)) return PLAIT_OK;
    struct {
        int32_t port;
        char    token[PLI_DASH_TOKEN];
    } told = { .port = feed->port };
    memcpy(told.token, feed->token, sizeof told.token);
    const plait_status status = plait_comm_broadcast(comm, &told, sizeof told, pli_comm_lead(comm));
    if (status < 0) *err = *plait_comm_error(comm);
    feed->port = told.port;
    memcpy(feed->token, told.token, sizeof told.token);
    return status;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void take(void *user, const char *line, size_t bytes) {
    pli_dash_feed *feed = user;
    if (feed->dash != NULL) pli_dash_line(feed->dash, line, bytes);
    pli_dash_link_send(feed->link, line, bytes);
}

static void take_start(pli_dash_feed *feed, int32_t rank, const char *host, int32_t pid, const char *role) {
    pli_text line = { 0 };
    pli_json_begin(&line);
    pli_json_text(&line, "event", "start");
    pli_json_i64(&line, "rank", rank);
    pli_json_text(&line, "host", host);
    pli_json_i64(&line, "pid", pid);
    pli_json_text(&line, "role", role);
    pli_json_end(&line);
    if (!line.failed) take(feed, line.data, line.length);
    pli_text_free(&line);
}

void pli_dash_feed_rank(pli_dash_feed *feed, int32_t rank, const char *host, const char *role) {
    if (feed->link >= 0) take_start(feed, rank, host, pli_pid(), role);
}

/* --- the leading rank --------------------------------------------------------------------------------------------- */

static char *sample(void *user) { return pli_signals_sample(((pli_dash_feed *)user)->signals); }

/* The port may still be held by a former leading rank that lives, such as a stopped one. */
static plait_status open_host(pli_dash_feed *feed, bool again, plait_error *err) {
    plait_status status = pli_dash_host_open(feed->port, feed->token, feed->dash, sample, feed, &feed->host, err);
    if (status == PLAIT_EIO && again && feed->port != 0)
        status = pli_dash_host_open(0, feed->token, feed->dash, sample, feed, &feed->host, err);
    return status;
}

plait_status pli_dash_feed_lead(pli_dash_feed *feed, bool again, const pli_text *run, pli_metrics **metrics,
                                plait_error *err) {
    if (!pli_dash_feed_is_on(feed) || feed->dash != NULL) return PLAIT_OK;
    if (feed->own) {
        feed->dash = pli_malloc(sizeof *feed->dash);
        if (feed->dash == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a dashboard");
        pli_dash_init(feed->dash);
        plait_status status = again ? PLAIT_OK : pli_dash_token(feed->token, err);
        if (status >= 0) status = open_host(feed, again, err);
        if (status < 0) {
            pli_dash_free(feed->dash);
            pli_free(feed->dash);
            feed->dash = NULL;
            return status;
        }
        const int32_t port = pli_dash_host_port(feed->host);
        if (again && port == feed->port) pli_talk_tell(feed->talk, "this rank shows the dashboard now, at its address");
        else pli_talk_tell(feed->talk, "dashboard: http://127.0.0.1:%d/?token=%s", (int)port, feed->token);
        feed->port = port;
    }
    pli_dash_feed_run(feed, run);
    for (int32_t i = 0; again && feed->own && i < feed->members; i++)
        take_start(feed, feed->member[i].rank, feed->member[i].host, feed->member[i].pid, feed->member[i].role);
    return pli_metrics_listen(metrics, take, feed, err);
}

void pli_dash_feed_run(pli_dash_feed *feed, const pli_text *run) {
    if (!run->failed && run->length > 0) take(feed, run->data, run->length);
}

void pli_dash_feed_close(pli_dash_feed *feed, int32_t rank) {
    pli_text bye = { 0 };
    pli_text_add(&bye, "{\"event\": \"bye\", \"rank\": %" PRId32 "}", rank);
    if (feed->link >= 0 && rank >= 0 && !bye.failed) pli_dash_link_send(feed->link, bye.data, bye.length);
    pli_text_free(&bye);
    pli_dash_host_close(&feed->host);
    if (feed->link >= 0) close(feed->link);
    feed->link = -1;
    if (feed->dash != NULL) pli_dash_free(feed->dash);
    pli_free(feed->dash);
    feed->dash = NULL;
    pli_free(feed->member);
    feed->member = NULL;
    feed->members = 0;
}
