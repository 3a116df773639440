/* data/checkpoint/manifest.h - a checkpoint's manifest.json: a list of parts, their tensors' pieces, and checksums.
 *
 *     {"plait_checkpoint":1,
 *     "serial":7,
 *     "clock":500,
 *     "meta":{...},
 *     "parts":[
 *     {"file":"part-00000-of-00002.safetensors","bytes":520,"xxh128":"...","header_bytes":392,"header_xxh3":"...",
 *      "tensors":[      (on the same line in the file)
 *     {"name":"w.values","dtype":"F32","shape":[8,4],"first":0,"rows":16,"xxh3":"..."}]},
 *     ...],
 *     "checksum":"..."}
 *
 * There is only one way to write a manifest down, and any other text is no manifest: reading parses it, writes it
 * again and compares. So every byte in it matters. The last line is the XXH3-128 of all before it, which tells
 * damage from a mistake. The first and last line will stay the same in every later version. */
#ifndef PLI_DATA_MANIFEST_H
#define PLI_DATA_MANIFEST_H

#include "data/checkpoint/checkpoint.h"

enum { PLI_MANIFEST_VERSION = 1, PLI_MANIFEST_MAX_BYTES = 64 << 20, PLI_PART_NAME = 40 };

/* Where rows first .. first + shape[0] - 1 of a tensor lie. name and type live as long as the manifest. */
typedef struct pli_piece {
    pli_checkpoint_tensor tensor;
    int64_t               offset, bytes; /* in the part's file */
    uint64_t              xxh3;
    int32_t               part;
} pli_piece;

typedef struct pli_manifest_part {
    int32_t       number, parts; /* both are in the file's name */
    int64_t       bytes, header_bytes;
    unsigned char xxh128[16];  /* of the file */
    uint64_t      header_xxh3; /* of its first header_bytes */
    pli_piece    *piece;       /* [n] in the order of the file */
    int64_t       n;
} pli_manifest_part;

typedef struct pli_manifest {
    int64_t                serial, clock;
    char                  *meta;
    pli_manifest_part     *part; /* [parts] part i is number i */
    int32_t                parts;
    pli_checkpoint_tensor *tensor;      /* [tensors] whole tensors, in order of name */
    int64_t               *first_piece; /* [tensors + 1] into piece */
    const pli_piece      **piece;       /* by tensor, then by first row */
    int64_t                tensors;
} pli_manifest;

/** Reads the text of a whole file. Errors: ECHECKSUM altered or cut; EVERSION; EFORMAT impossible contents (foreign
 *  paths, rows that overlap or are missing, ...); ENOMEM. */
plait_status pli_manifest_read(const char *text, size_t bytes, pli_manifest **manifest_out, plait_error *err);
/** Makes the manifest of parts that have just been written, from their digests [n]. Errors: EINVAL, ENOMEM. */
plait_status pli_manifest_join(int64_t serial, int64_t clock, const char *meta, const char *const *digests, int32_t n,
                               pli_manifest **manifest_out, plait_error *err);
/** Adds the file's text. */
plait_status pli_manifest_write(const pli_manifest *manifest, pli_text *text, plait_error *err);
void         pli_manifest_free(pli_manifest **manifest);

/** Makes a piece of this tensor, with copies of its texts; the caller sets its checksum and place. false: no memory;
 *  then pli_manifest_part_free frees what there is of it. */
bool pli_piece_copy(const pli_checkpoint_tensor *tensor, pli_piece *piece);
void pli_manifest_part_free(pli_manifest_part *part);

enum { PLI_MANIFEST_HEX = 33 };
/** The checksum that a sealed manifest's text ends with, in hexadecimal. */
void pli_manifest_checksum(const char *text, size_t bytes, char hex_out[PLI_MANIFEST_HEX]);
/** Does the text's last line fit all before it? */
bool pli_manifest_is_sealed(const char *text, size_t bytes);
/** Finds the whole tensors in the parts' pieces. Errors: ENOMEM; code: a tensor's pieces disagree, or do not cover
 *  its rows once. */
plait_status pli_manifest_find_tensors(pli_manifest *manifest, plait_status code, plait_error *err);

/** Writes one part's line, which is also its digest. */
void pli_manifest_part_write(const pli_manifest_part *part, pli_text *text);
void pli_part_name(int32_t number, int32_t parts, char name[PLI_PART_NAME]);
/** Checks the name, type, shape and place of one piece. Errors: code, with the reason. */
plait_status pli_piece_check(const pli_checkpoint_tensor *tensor, plait_status code, plait_error *err);

#endif
