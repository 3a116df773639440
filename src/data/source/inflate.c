/* Unpacks gzip and zstd.
 *
 * A file is a sequence of gzip members or of zstd frames. Behind the last one there may be nothing, or zeros behind
 * a gzip member, since tapes pad their blocks. Anything else is an error that names its byte: it may be a member
 * whose first byte was damaged, and its rows would be missing without notice. */
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "data/source/source.h"

/* A zstd frame keeps its window in memory; a window of more than 128 MiB is refused, as the zstd program does. */
enum { OUT_BYTES = 1 << 18, IN_BYTES = 1 << 30, WINDOW_LOG_MAX = 27 };

static bool is_gzip(const unsigned char *data, size_t bytes) {
    return bytes >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}
static bool is_zstd(const unsigned char *data, size_t bytes) {
    return bytes >= 4 && ((data[0] == 0x28 && data[1] == 0xb5 && data[2] == 0x2f && data[3] == 0xfd) ||
                          (data[1] == 0x2a && data[2] == 0x4d && data[3] == 0x18 && (data[0] & 0xf0) == 0x50));
}

bool pli_is_packed(const unsigned char *data, size_t bytes) { return is_gzip(data, bytes) || is_zstd(data, bytes); }

static plait_status bad_stream(plait_error *err, const char *name, const char *kind, const char *why, size_t at) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: expected a whole %s stream: %s, at byte %zu of the file", name, kind, why,
                    at);
}

/* --- gzip -------------------------------------------------------------------------------------------------- */

typedef struct gzip {
    const char          *name;
    const unsigned char *data;
    size_t               bytes, at; /* of data: how many there are, how many were taken */
    unsigned char       *out;
    pli_intake          *in;
    z_stream             z;
} gzip;

/* Unpacks one piece of output. *again: the member goes on. Input is given in pieces that zlib can count. */
static plait_status gzip_piece(gzip *g, bool *again, plait_error *err) {
    const size_t left = g->bytes - g->at;
    const uInt   given = left > IN_BYTES ? IN_BYTES : (uInt)left;
    g->z.next_in = (unsigned char *)(uintptr_t)(g->data + g->at);
    g->z.avail_in = given;
    g->z.next_out = g->out;
    g->z.avail_out = OUT_BYTES;
    int result = inflate(&g->z, Z_NO_FLUSH);
    g->at += given - g->z.avail_in;
    *again = result == Z_OK;
    PLI_TRY(pli_intake_add(g->in, g->out, OUT_BYTES - g->z.avail_out, err));
    if (result == Z_MEM_ERROR) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to unpack it", g->name);
    if (result == Z_BUF_ERROR) return bad_stream(err, g->name, "gzip", "it is cut short", g->at);
    if (result != Z_OK && result != Z_STREAM_END)
        return bad_stream(err, g->name, "gzip", g->z.msg != NULL ? g->z.msg : "damaged", g->at);
    return PLAIT_OK;
}

static plait_status gzip_member(gzip *g, plait_error *err) {
    for (bool again = true; again;) PLI_TRY(gzip_piece(g, &again, err));
    return PLAIT_OK;
}

/* Checks that nothing but zeros follows the last member. */
static plait_status gzip_end(const gzip *g, plait_error *err) {
    for (size_t at = g->at; at < g->bytes; at++)
        if (g->data[at] != 0)
            return bad_stream(err, g->name, "gzip",
                              at == g->at ? "a member is followed by neither another member nor zeros"
                                          : "the zeros that end a stream are followed by other bytes",
                              at);
    return PLAIT_OK;
}

static plait_status gunzip(const unsigned char *data, size_t bytes, unsigned char *out, pli_intake *in,
                           plait_error *err) {
    const char *name = in->name;
    gzip        g = { .name = name, .data = data, .bytes = bytes, .out = out, .in = in };
    if (inflateInit2(&g.z, 15 + 16) != Z_OK) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to unpack it", name);
    plait_status status = gzip_member(&g, err);
    while (status == PLAIT_OK && is_gzip(data + g.at, bytes - g.at))
        status = inflateReset(&g.z) == Z_OK ? gzip_member(&g, err) : bad_stream(err, name, "gzip", "damaged", g.at);
    inflateEnd(&g.z);
    return status == PLAIT_OK ? gzip_end(&g, err) : status;
}

/* --- zstd -------------------------------------------------------------------------------------------------- */

/* Unpacks frames, with skippable frames between them. zstd has no padding: it refuses bytes that begin no frame. */
static plait_status unzstd(const unsigned char *data, size_t bytes, unsigned char *out, pli_intake *to,
                           plait_error *err) {
    const char   *name = to->name;
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (stream == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to unpack it", name);
    plait_status  status = PLAIT_OK;
    ZSTD_inBuffer in = { data, bytes, 0 };
    size_t        left = ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    bool          full = false;
    while (status == PLAIT_OK && (in.pos < in.size || full)) {
        ZSTD_outBuffer piece = { out, OUT_BYTES, 0 };
        left = ZSTD_decompressStream(stream, &piece, &in);
        if (ZSTD_isError(left))
            status = bad_stream(err, name, "zstd", ZSTD_getErrorName(left), in.pos);
        else
            status = pli_intake_add(to, out, piece.pos, err);
        full = piece.pos == piece.size && left != 0;
    }
    if (status == PLAIT_OK && left != 0) status = bad_stream(err, name, "zstd", "it is cut short", in.pos);
    ZSTD_freeDStream(stream);
    return status;
}

plait_status pli_inflate(const unsigned char *data, size_t bytes, pli_intake *in, plait_error *err) {
    unsigned char *out = pli_malloc(OUT_BYTES);
    if (out == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to unpack it", in->name);
    plait_status status = is_gzip(data, bytes) ? gunzip(data, bytes, out, in, err) : unzstd(data, bytes, out, in, err);
    pli_free(out);
    return status;
}
