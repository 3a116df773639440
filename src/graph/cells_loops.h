/* graph/cells_loops.h - the text of cells.h's loops, compiled once for each processor. */
#ifndef PLI_GRAPH_CELLS_LOOPS_H
#define PLI_GRAPH_CELLS_LOOPS_H

#include <string.h>

#include "graph/cells.h"

static inline float exp_f(float x) {
    const float magic = 12582912.0f; /* adding it rounds to an integer, which lies in the low bits */
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.0f ? -87.0f : x;
    const float rounded = x * 1.44269504f + magic, k = rounded - magic;
    const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float       p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const float e = 1.0f + (r + r * r * p);
    uint32_t    bits;
    memcpy(&bits, &rounded, sizeof bits);
    bits = (bits - 0x4b400000u + 127u) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return e * power;
}

static inline float sigmoid_f(float x) { return 1.0f / (1.0f + exp_f(-x)); }
static inline float tanh_f(float x) { return 1.0f - 2.0f / (1.0f + exp_f(x + x)); }

static void lstm(int64_t n, const float *restrict z, const float *restrict s, const float *restrict c0,
                 float *restrict gates, float *restrict c, float *restrict h) {
    for (int64_t j = 0; j < 2 * n; j++) gates[j] = sigmoid_f(z[j] + s[j]);
    for (int64_t j = 2 * n; j < 3 * n; j++) gates[j] = tanh_f(z[j] + s[j]);
    for (int64_t j = 3 * n; j < 4 * n; j++) gates[j] = sigmoid_f(z[j] + s[j]);
    for (int64_t j = 0; j < n; j++) {
        c[j] = gates[n + j] * c0[j] + gates[j] * gates[2 * n + j];
        h[j] = gates[3 * n + j] * tanh_f(c[j]);
    }
}

static void lstm_back(int64_t n, const float *restrict gates, const float *restrict c0, const float *restrict c,
                      const float *restrict dh, float *restrict dc, float *restrict dz) {
    for (int64_t j = 0; j < n; j++) {
        const float i = gates[j], f = gates[n + j], g = gates[2 * n + j], o = gates[3 * n + j], t = tanh_f(c[j]);
        const float d = dc[j] + dh[j] * o * (1 - t * t);
        dz[j] = d * g * i * (1 - i);
        dz[n + j] = d * c0[j] * f * (1 - f);
        dz[2 * n + j] = d * i * (1 - g * g);
        dz[3 * n + j] = dh[j] * t * o * (1 - o);
        dc[j] = d * f;
    }
}

static void gru(int64_t n, const float *restrict z, const float *restrict s, const float *restrict b,
                const float *restrict h0, float *restrict gates, float *restrict h) {
    for (int64_t j = 0; j < 2 * n; j++) gates[j] = sigmoid_f(z[j] + s[j]);
    for (int64_t j = 0; j < n; j++) {
        const float m = s[2 * n + j] + b[j], g = tanh_f(z[2 * n + j] + gates[j] * m), u = gates[n + j];
        gates[2 * n + j] = g;
        gates[3 * n + j] = m;
        h[j] = (1 - u) * g + u * h0[j];
    }
}

static void gru_back(int64_t n, const float *restrict gates, const float *restrict h0, float *restrict dh,
                     float *restrict dz, float *restrict ds) {
    for (int64_t j = 0; j < n; j++) {
        const float r = gates[j], u = gates[n + j], g = gates[2 * n + j], m = gates[3 * n + j];
        const float dg = dh[j] * (1 - u) * (1 - g * g);
        dz[j] = ds[j] = dg * m * r * (1 - r);
        dz[n + j] = ds[n + j] = dh[j] * (h0[j] - g) * u * (1 - u);
        dz[2 * n + j] = dg;
        ds[2 * n + j] = dg * r;
        dh[j] *= u;
    }
}

static const pli_cells cells = { .lstm = lstm, .lstm_back = lstm_back, .gru = gru, .gru_back = gru_back };

#endif
