/* The module plait-onnx, found and held to its version; numbers of types. */
#include "graph/form/onnx.h"

#include <string.h>

plait_status pli_onnx_open(void **handle_out, const pli_onnx_codec **codec_out, plait_error *err) {
    void        *handle = NULL, *symbol = NULL;
    plait_error  why = { 0 };
    plait_status status = pli_module_open("onnx", PLI_ONNX_SYMBOL, &handle, &symbol, &why);
    if (status == PLAIT_EMODULE)
        return pli_fail(err, status,
                        "ONNX needs a module: install what it is made of with apt-get install libprotobuf-c-dev "
                        "protobuf-c-compiler (or script/bootstrap --all) and build anew (%.240s)",
                        why.text);
    if (status < 0) return pli_fail(err, status, "%s", why.text);
    pli_onnx_entry_fn *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const pli_onnx_codec *codec = entry();
    if (codec->abi != PLI_ONNX_ABI) {
        status = pli_fail(err, PLAIT_EMODULE,
                          "the module plait-onnx.so is of another version (%u, expected %u); build it anew", codec->abi,
                          PLI_ONNX_ABI);
        pli_module_close(&handle);
        return status;
    }
    *handle_out = handle;
    *codec_out = codec;
    return PLAIT_OK;
}

/* TensorProto.DataType: 1 FLOAT, 6 INT32, 7 INT64, 9 BOOL, 11 DOUBLE, 16 BFLOAT16. */
static const struct {
    plait_type type;
    int32_t    number;
} types[] = {
    { PLAIT_F32, 1 }, { PLAIT_I32, 6 }, { PLAIT_I64, 7 }, { PLAIT_BOOL, 9 }, { PLAIT_F64, 11 }, { PLAIT_BF16, 16 },
};

int32_t pli_onnx_type(plait_type type) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type) return types[i].number;
    return 0;
}

int32_t pli_onnx_type_of(int32_t number) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number) return (int32_t)types[i].type;
    return -1;
}
