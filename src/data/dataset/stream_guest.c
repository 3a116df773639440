/* Blocks of a stream that another worker owns. When that one has died, its heirs read the rest of its blocks: each has
 * a cursor of its own in the text, which passes over the rows of earlier clocks (by newlines, without parsing them) and
 * stops behind those of the clock that is asked for. A block may fall to this worker in the middle of a clock, and may
 * leave it again when workers come and go; its next part is then of a later clock, or, if the reader is behind that
 * already, is looked for from the block's beginning. */
#include "data/dataset/stream.h"

void pli_stream_drop_guest(pli_stream *stream, int32_t block) {
    if (stream->guest == NULL || stream->guest[block] == NULL) return;
    pli_stream_free_slot(&stream->guest[block]->slot);
    pli_free(stream->guest[block]);
    stream->guest[block] = NULL;
}

/* NULL: no memory. */
static pli_stream_guest *guest_of(const pli_batches *s, int32_t block) {
    pli_stream *stream = s->stream;
    if (stream->guest == NULL) stream->guest = pli_calloc((size_t)s->dataset->blocks, sizeof *stream->guest);
    if (stream->guest == NULL) return NULL;
    pli_stream_guest **guest = &stream->guest[block];
    if (*guest != NULL) return *guest;
    *guest = pli_calloc(1, sizeof **guest);
    if (*guest != NULL) (*guest)->cursor = pli_stream_cursor(s->dataset, block);
    if (*guest != NULL) (*guest)->clock = -1;
    return *guest;
}

plait_status pli_stream_block_part(pli_batches *s, int32_t block, int64_t clock, pli_part *part_out,
                                   plait_error *err) {
    const pli_dataset *d = s->dataset;
    if (block >= d->first && block < d->first + d->own)
        return pli_stream_own_part(s, block - d->first, clock, part_out, err);
    pli_stream_guest *guest = guest_of(s, block);
    if (guest == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a block");
    const int64_t from = pli_batches_share(s, block, guest->cursor.rows, clock),
                  to = pli_batches_share(s, block, guest->cursor.rows, clock + 1);
    if (guest->clock != clock) {
        if (guest->cursor.now.row > from) guest->cursor = pli_stream_cursor(d, block);
        guest->clock = -1;
        PLI_TRY(pli_stream_take(s, block, from, to, &guest->cursor, &guest->slot, err));
        guest->clock = clock;
    }
    *part_out = (pli_part){ .block = &guest->slot.rows.b, .rows = to - from };
    return clock == s->clocks - 1 ? pli_sources_check(d->sources, err) : PLAIT_OK;
}
