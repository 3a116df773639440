/* data/formats/chars.h - text by characters: the input of a language model.
 *
 *     "to be"  window 3:   . . ^ -> t     . ^ t -> o     ^ t o -> ' '     t o ' ' -> b     o ' ' b -> e
 *
 * A character is a byte (in UTF-8 text a character beyond ASCII is two to four of them). A row is a window: the
 * characters before the one that is its label. Its features are one-hot, by place: key place * (symbols + 1) + symbol.
 * The symbols are the training text's own bytes in increasing order, which are also the labels; the last symbol stands
 * for the beginning of a text (^) and for bytes that training never saw. Places before the beginning have no entry.
 *
 * From one row to the next it is `step` characters:
 *   1           each character of the text is the label of a row; for a model that gives one answer for each row
 *   window      windows lie one behind the other (*apart*), to train a model of sequences: it gives an answer at each
 *               place, the next symbol of its own row, and at the last place the row's label
 *   window / 2  the same model is judged this way: the first half of a window warms up its state, so that each
 *               character is answered once, behind at least half a window of others (except at a text's beginning, and
 *               the last few)
 * Of a row's places with entries the last `step` are answered (pli_block.earlier), so each character is answered
 * once. The last row of a text may have fewer places, and then none before them. A text is cut into blocks at rows,
 * not at newlines. */
#ifndef PLI_DATA_CHARS_H
#define PLI_DATA_CHARS_H

#include "data/dataset/dataset.h"

enum { PLI_CHARS_WINDOW = 16, PLI_CHARS_APART = 128 /* windows by default */ };

/** Does it look like text and nothing else: words in lines that no delimiter cuts alike? */
bool pli_chars_is(const pli_source *source);

/** Sets window and step; before the data set is cut. Errors: EINVAL options that text does not have; EMISMATCH the
 *  model has another window, or is no model of text. */
plait_status pli_chars_open(pli_dataset *dataset, const plait_data_opts *opts, const pli_schema *fixed,
                            plait_error *err);
/** Describes it in the data set's schema; after the cut. */
void pli_chars_describe(pli_dataset *dataset);
/** Numbers the symbols by a schema's labels, both for rows to come and for loaded rows. */
void pli_chars_number(pli_dataset *dataset, const pli_schema *schema);
void pli_chars_close(struct pli_chars **chars);

extern const pli_reader pli_chars_reader;

#endif
