/* data/formats/chars.h - text by characters: what a language model reads.
 *
 *     "to be"  window 3:   . . ^ -> t     . ^ t -> o     ^ t o -> ' '     t o ' ' -> b     o ' ' b -> e
 *
 * A character is a byte (of UTF-8 text one beyond ASCII is two to four of them). A row is a window: the characters that
 * stand before one that is its label. Its features are one-hot, by place: key place * (symbols + 1) + symbol, where the
 * symbols are the training text's own bytes in increasing order, which are also the labels, and the last stands for the
 * beginning of a text (^) and for what training never saw. Places before the beginning have no entry.
 *
 * From one row to the next it is `step` characters:
 *   1          each character of the text is the label of a row, as a model of one answer a row needs it
 *   window     windows lie one behind the other (*apart*), as a model of sequences is trained: it answers at each
 *   place,
 *              with the next symbol of its own row, and at the last with the row's label
 *   window / 2 the same model is judged so: the first half of a window warms its state up, so that each character is
 *              answered once, behind at least half a window of others (save at a text's beginning, and the last few)
 * A row's last `step` places that have entries are answered (pli_block.earlier), so each character is, once. The last
 * row of a text may have fewer, and then no others before them. A text is cut into blocks at rows, not at newlines. */
#ifndef PLI_DATA_CHARS_H
#define PLI_DATA_CHARS_H

#include "data/dataset/dataset.h"

enum { PLI_CHARS_WINDOW = 16, PLI_CHARS_APART = 128 /* windows by default */ };

/** Does it read like text, and like nothing else: words in lines, which no delimiter cuts alike? */
bool pli_chars_is(const pli_source *source);

/** Settles window and step: before the data set is cut. Errors: EINVAL options that text does not have; EMISMATCH a
 *  model of another window, or of no text. */
plait_status pli_chars_open(pli_dataset *dataset, const plait_data_opts *opts, const pli_schema *fixed,
                            plait_error *err);
/** Describes it in the dataset's schema: after the cut. */
void pli_chars_describe(pli_dataset *dataset);
/** Numbers the symbols by a schema's labels: of rows to come, and of those that were loaded. */
void pli_chars_number(pli_dataset *dataset, const pli_schema *schema);
void pli_chars_close(struct pli_chars **chars);

extern const pli_reader pli_chars_reader;

#endif
