/* Loads the module plait-onnx; translates Plait's types to ONNX's numbers and back. */
#include "graph/form/onnx.h"

#include "base/module.h"

plait_status pli_onnx_open(void **handle_out, const pli_onnx_codec **codec_out, plait_error *err) {
    const void *given = NULL;
    PLI_TRY(pli_module_load("onnx", PLI_ONNX_ABI, handle_out, &given, err));
    *codec_out = given;
    return PLAIT_OK;
}

/* TensorProto.DataType: 1 FLOAT, 2 UINT8, 6 INT32, 7 INT64, 9 BOOL, 11 DOUBLE, 16 BFLOAT16. */
static const struct {
    plait_type type;
    int32_t    number;
} types[] = {
    { PLAIT_F32, 1 },  { PLAIT_U8, 2 },   { PLAIT_I32, 6 },   { PLAIT_I64, 7 },
    { PLAIT_BOOL, 9 }, { PLAIT_F64, 11 }, { PLAIT_BF16, 16 },
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
