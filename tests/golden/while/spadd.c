#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static inline int64_t kw_min_int64(int64_t a, int64_t b) { return a < b ? a : b; }

void spadd(const int32_t *restrict apos, const int32_t *restrict acrd, const double *restrict aval, const int32_t *restrict bpos, const int32_t *restrict bcrd, const double *restrict bval, int32_t *restrict cpos, int32_t *restrict ccrd, double *restrict cval, int64_t n, int64_t na, int64_t nb, int64_t nc) {
    int64_t kw_r_0;
    kw_r_0 = 0;
    cpos[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t kw_p_0;
        int64_t kw_q_0;
        kw_p_0 = ((int64_t)apos[i]);
        kw_q_0 = ((int64_t)bpos[i]);
        while (kw_p_0 < ((int64_t)apos[i + 1]) && kw_q_0 < ((int64_t)bpos[i + 1])) {
            int64_t kw_k_0;
            int64_t kw_isb_0;
            int64_t kw_isa_0;
            kw_k_0 = kw_min_int64(((int64_t)acrd[kw_p_0]), ((int64_t)bcrd[kw_q_0]));
            if (((int64_t)acrd[kw_p_0]) == kw_k_0 && ((int64_t)bcrd[kw_q_0]) == kw_k_0) {
                ccrd[kw_r_0] = ((int32_t)kw_k_0);
                cval[kw_r_0] = aval[kw_p_0] + bval[kw_q_0];
                kw_r_0 += 1;
            }
            if (((int64_t)acrd[kw_p_0]) == kw_k_0 && (!(((int64_t)bcrd[kw_q_0]) == kw_k_0))) {
                ccrd[kw_r_0] = ((int32_t)kw_k_0);
                cval[kw_r_0] = aval[kw_p_0];
                kw_r_0 += 1;
            }
            if (((int64_t)bcrd[kw_q_0]) == kw_k_0 && (!(((int64_t)acrd[kw_p_0]) == kw_k_0))) {
                ccrd[kw_r_0] = ((int32_t)kw_k_0);
                cval[kw_r_0] = bval[kw_q_0];
                kw_r_0 += 1;
            }
            kw_isa_0 = ((int64_t)(((int64_t)acrd[kw_p_0]) == kw_k_0));
            kw_isb_0 = ((int64_t)(((int64_t)bcrd[kw_q_0]) == kw_k_0));
            kw_p_0 += kw_isa_0;
            kw_q_0 += kw_isb_0;
        }
        while (kw_p_0 < ((int64_t)apos[i + 1])) {
            ccrd[kw_r_0] = ((int32_t)((int64_t)acrd[kw_p_0]));
            cval[kw_r_0] = aval[kw_p_0];
            kw_r_0 += 1;
            kw_p_0 += 1;
        }
        while (kw_q_0 < ((int64_t)bpos[i + 1])) {
            ccrd[kw_r_0] = ((int32_t)((int64_t)bcrd[kw_q_0]));
            cval[kw_r_0] = bval[kw_q_0];
            kw_r_0 += 1;
            kw_q_0 += 1;
        }
        cpos[i + 1] = ((int32_t)kw_r_0);
    }
    while (kw_r_0 < nc) {
        ccrd[kw_r_0] = ((int32_t)0);
        cval[kw_r_0] = 0.0;
        kw_r_0 += 1;
    }
}
