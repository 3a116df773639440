/* What a session knows of each variable: the last run that got it, the last run that changed it, and how often it has
 * changed.
 *
 * A plan lists the variables that its runs get and change (order.c). They are noted when a run has succeeded, under the
 * lock that the end of a run takes anyway. If several runs end at once, the highest number stays. */
#include "graph/session.h"

plait_status pli_metadata_reserve(plait_session *s, plait_error *err) {
    const int64_t want = s->graph->n_variables;
    if (!pli_grow((void **)&s->use, &s->use_capacity, want, sizeof *s->use))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld variables", (long long)want);
    while (s->n_used < want) s->use[s->n_used++] = (pli_variable_use){ 0 };
    return PLAIT_OK;
}

static void note(int64_t *last, int64_t run) {
    if (*last < run) *last = run;
}

void pli_metadata_note(plait_session *s, const pli_plan *plan, int64_t run) {
    for (int64_t i = 0; i < plan->n_expect; i++) note(&s->use[plan->expect[i]].last_get, run);
    for (int64_t i = 0; i < plan->n_push; i++) {
        pli_variable_use *use = &s->use[plan->push[i]];
        note(&use->last_inc, run);
        use->version++;
    }
}

plait_status plait_session_variable_info(plait_session *session, int32_t k, plait_variable_info *info_out,
                                         plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, session));
    PLI_TRY(PLI_GIVEN(error_out, info_out));
    if (k < 0 || k >= session->graph->n_variables)
        return pli_fail(error_out, PLAIT_EINVAL, "plait_session_variable_info: there is no variable %d", k);
    const pli_variable *v = &session->graph->variable[k];
    const plait_store  *store = &session->store;
    pli_variable_use    use = { 0 }; /* a variable that no run has used */
    pthread_mutex_lock(&session->lock);
    if (k < session->n_used) use = session->use[k];
    pthread_mutex_unlock(&session->lock);
    *info_out = (plait_variable_info){ .name = v->name,
                                       .type = v->initial.type,
                                       .shape = v->initial.shape,
                                       .owner = store->owner != NULL ? store->owner(store->user, k) : "store",
                                       .version = use.version,
                                       .last_get = use.last_get,
                                       .last_inc = use.last_inc };
    return PLAIT_OK;
}
