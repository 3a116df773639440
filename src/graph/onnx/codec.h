/* codec.h - the module plait-onnx: converts between ONNX files, by protobuf-c, and the structs of graph/form/onnx.h. */
#ifndef PLI_ONNX_CODEC_H
#define PLI_ONNX_CODEC_H

#include "graph/form/onnx.h"

enum { PLI_ONNX_STRING = 8 /* TensorProto.DataType */ };

plait_status pli_onnx_decode(const void *bytes, size_t n, pli_onnx_model *model_out, plait_error *err);
void         pli_onnx_free(pli_onnx_model *model);
plait_status pli_onnx_encode(const pli_onnx_model *model, void **bytes_out, size_t *n_out, plait_error *err);
void         pli_onnx_release(void *bytes);

#endif
