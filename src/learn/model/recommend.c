/* What a model would recommend, if it is one that can. */
#include "learn/model/model.h"

plait_status pli_model_recommends(const plait_model *model, plait_error *err) {
    const pli_learner_more *more = model->learner->more;
    if (more != NULL && more->recommend != NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED,
                    "recommend: model %s is refused: only a factorisation (--model mf) knows users and items; 'plait "
                    "predict' and 'plait transform' apply other models", model->name);
}

plait_status pli_model_recommend(const plait_model *model, const plait_data *users, int64_t top, pli_pool *pool,
                                 pli_recommended *tell, void *to, plait_error *err) {
    PLI_TRY(pli_model_recommends(model, err));
    return model->learner->more->recommend(model, users, top, pool, tell, to, err);
}
