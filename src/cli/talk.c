/* Messages on stderr. Each line is a single write, so that lines of several processes do not mix. */
#include "cli/talk.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/verdict.h"

enum { REDRAW_NS = 100 * 1000 * 1000, HEARD_MAX = 1 << 16 };

static void put(pli_talk *talk, const char *line) {
    fputs(talk->bar ? "\r\033[K" : "", stderr);
    talk->bar = false;
    fputs(line, stderr);
    fflush(stderr);
}

static void hear(void *user, plait_log_level level, int32_t rank, const char *room, const char *text) {
    pli_talk *talk = user;
    (void)room;
    char        line[1024], where[32] = "";
    const char *what = level == PLAIT_LOG_ERROR ? "error: " : level == PLAIT_LOG_WARN ? "warning: " : "";
    if (rank >= 0) snprintf(where, sizeof where, "rank %" PRId32 ": ", rank);
    snprintf(line, sizeof line, "plait: %s%s%s\n", where, what, text);
    pthread_mutex_lock(&talk->mutex);
    put(talk, line);
    if (level == PLAIT_LOG_ERROR && talk->errors.length < HEARD_MAX) pli_text_add(&talk->errors, "%s\n", text);
    pthread_mutex_unlock(&talk->mutex);
}

void pli_talk_open(pli_talk *talk, bool quiet) {
    const char *term = pli_env("TERM"), *no_color = pli_env("NO_COLOR");
    *talk = (pli_talk){ .quiet = quiet, .next = 1 };
    pthread_mutex_init(&talk->mutex, NULL);
    talk->terminal = pli_is_terminal(2) && term != NULL && strcmp(term, "dumb") != 0;
    talk->color = talk->terminal && (no_color == NULL || no_color[0] == '\0');
    talk->log = (plait_log){ .fn = hear, .user = talk, .max_level = quiet ? PLAIT_LOG_ERROR : PLAIT_LOG_INFO };
}

void pli_talk_clear(pli_talk *talk) {
    pthread_mutex_lock(&talk->mutex);
    if (talk->bar) put(talk, "");
    pthread_mutex_unlock(&talk->mutex);
}

void pli_talk_close(pli_talk *talk) {
    pli_talk_clear(talk);
    pli_text_free(&talk->errors);
    pthread_mutex_destroy(&talk->mutex);
}

static void say(pli_talk *talk, bool once, const char *fmt, va_list args) {
    pli_text line = { 0 };
    char     text[1024];
    va_list  again;
    va_copy(again, args);
    int   length = vsnprintf(text, sizeof text, fmt, args);
    char *whole = length >= (int)sizeof text ? pli_array((size_t)length + 1, 1) : NULL; /* for a long command */
    if (whole != NULL) vsnprintf(whole, (size_t)length + 1, fmt, again);
    va_end(again);
    const char *said = whole != NULL ? whole : text;
    pli_text_add(&line, "plait: ");
    pli_text_add_printable(&line, said, strlen(said), "\n\t");
    pli_text_add(&line, "\n");
    pthread_mutex_lock(&talk->mutex);
    if (!once || line.data == NULL || !pli_verdict_was_said(line.data))
        put(talk, line.data != NULL ? line.data : "plait: out of memory\n");
    pthread_mutex_unlock(&talk->mutex);
    pli_text_free(&line);
    pli_free(whole);
}

void pli_talk_say(pli_talk *talk, const char *fmt, ...) {
    va_list args;
    if (talk->quiet) return;
    va_start(args, fmt);
    say(talk, false, fmt, args);
    va_end(args);
}

void pli_talk_tell(pli_talk *talk, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say(talk, false, fmt, args);
    va_end(args);
}

void pli_talk_tell_once(pli_talk *talk, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say(talk, true, fmt, args);
    va_end(args);
}

/* An error that a run returns may have a longer text, with the rank and what it waited for. */
bool pli_talk_has_heard(pli_talk *talk, const char *text) {
    bool heard = false;
    pthread_mutex_lock(&talk->mutex);
    for (const char *line = talk->errors.data; line != NULL && *line != '\0' && !heard;) {
        size_t length = strcspn(line, "\n");
        heard = length > 0 && memmem(text, strlen(text), line, length) != NULL;
        line += length + (line[length] == '\n');
    }
    pthread_mutex_unlock(&talk->mutex);
    return heard;
}

/* --- figures -------------------------------------------------------------------------------------- */

void pli_talk_time(double seconds, char text[32]) {
    if (!(seconds >= 0) || seconds > 3.6e8) {
        snprintf(text, 32, "?");
        return;
    }
    int64_t s = (int64_t)seconds;
    if (s >= 3600) {
        snprintf(text, 32, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60), (int)(s % 60));
    } else {
        snprintf(text, 32, "%d:%02d", (int)(s / 60), (int)(s % 60));
    }
}

void pli_talk_count(double count, char text[32]) {
    static const char unit[] = " kMGTP";
    int               u = 0;
    if (!(count >= 0)) count = 0;
    while (count >= 999.5 && unit[u + 1] != '\0') {
        count /= 1000;
        u++;
    }
    snprintf(text, 32, count < 9.95 && u > 0 ? "%.1f" : "%.0f", count);
    if (u > 0) snprintf(text + strlen(text), 32 - strlen(text), "%c", unit[u]);
}

static double share_done(const plait_progress *p) {
    double share = 0;
    if (p->clocks > 0) {
        share = (double)p->clock / (double)p->clocks;
    } else if (p->epochs > 1) {
        share = (double)p->epoch / (double)p->epochs;
    }
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* --- the bar -------------------------------------------------------------------------------------- */

enum { BAR_MIN = 10, BAR_MAX = 40 };

/* What to add to a time: that it is simulated. */
static const char *of_time(bool simulated) { return simulated ? " simulated" : ""; }

void pli_talk_bar(const plait_progress *p, bool simulated, int columns, pli_text *text) {
    char left[32], rate[32], piece[4][64];
    pli_talk_time(p->seconds_left, left);
    pli_talk_count(p->rows_per_second, rate);
    snprintf(piece[0], sizeof piece[0], "epoch %" PRId64 "/%" PRId64, p->epoch, p->epochs);
    snprintf(piece[1], sizeof piece[1], isnan(p->loss) ? "" : "  loss %-8.5g", p->loss);
    snprintf(piece[2], sizeof piece[2], "  %s%s left", left, of_time(simulated));
    snprintf(piece[3], sizeof piece[3], "  %s rows/s%s", rate, of_time(simulated));
    /* The pieces are in order of importance: as many as fit are kept, then the bar; the rate comes only with a bar. */
    int room = columns - 1, used = 0, kept = 0, rates = (int)strlen(piece[3]);
    while (kept < 3 && used + (int)strlen(piece[kept]) <= room) used += (int)strlen(piece[kept++]);
    int  bar = room - used - 2;
    bool with_rate = kept == 3 && bar - rates >= BAR_MIN;
    if (with_rate) bar -= rates;
    if (bar > BAR_MAX) bar = BAR_MAX;
    if (kept == 0) return;
    pli_text_add(text, "%s", piece[0]);
    if (kept == 3 && bar >= BAR_MIN) {
        int full = (int)(share_done(p) * (bar - 2) + 0.5);
        pli_text_add(text, "  [");
        for (int i = 0; i < bar - 2; i++) pli_text_add(text, "%c", i < full ? '#' : '.');
        pli_text_add(text, "]");
    }
    if (with_rate) pli_text_add(text, "%s", piece[3]);
    for (int i = 1; i < kept; i++) pli_text_add(text, "%s", piece[i]);
}

static void draw(pli_talk *talk, const plait_progress *p) {
    uint64_t now = pli_now_ns();
    bool     done = p->clocks > 0 && p->clock >= p->clocks;
    if (talk->bar && !done && now - talk->drawn_ns < REDRAW_NS) return;
    pli_text text = { 0 };
    pli_talk_bar(p, talk->simulated, pli_terminal_columns(2), &text);
    if (text.data != NULL && !text.failed) {
        char *hash = strchr(text.data, '#'), *dots = strchr(text.data, ']');
        int   before = hash != NULL ? (int)(hash - text.data) : (int)text.length;
        int   full = hash != NULL ? (int)strspn(hash, "#") : 0;
        bool  color = talk->color && hash != NULL && dots != NULL;
        fprintf(stderr, "\r\033[K%.*s%s%.*s%s%s", before, text.data, color ? "\033[32m" : "", full, text.data + before,
                color ? "\033[0m" : "", text.data + before + full);
        fflush(stderr);
        talk->bar = true;
        talk->drawn_ns = now;
    }
    pli_text_free(&text);
}

/* Prints a plain line at clocks 1, 2, 4, 8, ... */
static void line(pli_talk *talk, const plait_progress *p) {
    if (p->clock < talk->next) return;
    while (talk->next <= p->clock) talk->next *= 2;
    char left[32], rate[32], of[32] = "", text[320], loss[32] = "", validation[48] = "";
    pli_talk_time(p->seconds_left, left);
    pli_talk_count(p->rows_per_second, rate);
    if (p->clocks > 0) snprintf(of, sizeof of, "/%" PRId64, p->clocks);
    if (!isnan(p->loss)) snprintf(loss, sizeof loss, "  loss %.5g", p->loss); /* NaN: all rows had weight 0 */
    if (!isnan(p->validation_loss)) snprintf(validation, sizeof validation, "  validation %.5g", p->validation_loss);
    snprintf(text, sizeof text,
             "plait: epoch %" PRId64 "/%" PRId64 "  clock %" PRId64 "%s%s%s  %s rows/s  %s left%s\n", p->epoch,
             p->epochs, p->clock, of, loss, validation, rate, left, talk->simulated ? " (simulated time)" : "");
    put(talk, text);
}

void pli_talk_progress(pli_talk *talk, const plait_progress *progress) {
    if (talk->quiet) return;
    pthread_mutex_lock(&talk->mutex);
    if (talk->terminal) {
        draw(talk, progress);
    } else {
        line(talk, progress);
    }
    pthread_mutex_unlock(&talk->mutex);
}
