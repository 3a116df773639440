/* The module's only entry point. */
#include "codec.h"

static const pli_onnx_codec codec = {
    .abi = PLI_ONNX_ABI,
    .decode = pli_onnx_decode,
    .free = pli_onnx_free,
    .encode = pli_onnx_encode,
    .release = pli_onnx_release,
};

__attribute__((visibility("default"))) const void *plait_onnx_module(void);
const void                                        *plait_onnx_module(void) { return &codec; }
