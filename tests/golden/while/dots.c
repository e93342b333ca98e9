#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static inline int64_t kw_min_int64(int64_t a, int64_t b) { return a < b ? a : b; }

void dots(const int32_t *restrict apos, const int32_t *restrict acrd, const double *restrict aval, const int32_t *restrict bpos, const int32_t *restrict bcrd, const double *restrict bval, double *restrict y, int64_t n, int64_t na, int64_t nb) {
    for (int64_t i = 0; i < n; i++) {
        int64_t kw_p_0;
        int64_t kw_q_0;
        kw_p_0 = ((int64_t)apos[i]);
        kw_q_0 = ((int64_t)bpos[i]);
        y[i] = 0.0;
        while (kw_p_0 < ((int64_t)apos[i + 1]) && kw_q_0 < ((int64_t)bpos[i + 1])) {
            int64_t kw_k_0;
            int64_t kw_isb_0;
            int64_t kw_isa_0;
            kw_k_0 = kw_min_int64(((int64_t)acrd[kw_p_0]), ((int64_t)bcrd[kw_q_0]));
            if (((int64_t)acrd[kw_p_0]) == kw_k_0 && ((int64_t)bcrd[kw_q_0]) == kw_k_0) {
                y[i] += aval[kw_p_0] * bval[kw_q_0];
            }
            kw_isa_0 = ((int64_t)(((int64_t)acrd[kw_p_0]) == kw_k_0));
            kw_isb_0 = ((int64_t)(((int64_t)bcrd[kw_q_0]) == kw_k_0));
            kw_p_0 += kw_isa_0;
            kw_q_0 += kw_isb_0;
        }
    }
}
