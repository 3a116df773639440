"""Writes the C source of plait._plait from the declarations in plait.cdef. usage: build_ffi.py CDEF OUT"""
import sys

import cffi

ffi = cffi.FFI()
with open(sys.argv[1], encoding="utf-8") as f:
    ffi.cdef(f.read())
ffi.set_source("plait._plait", "#define PLAIT_NO_SITES\n#include <plait/fit.h>\n#include <plait/arrow.h>\n", py_limited_api=True)
ffi.emit_c_code(sys.argv[2])
