/* problem: gelu n=640; flags: -fopenmp-simd; shows: a declared simd function of its own, erf by Abramowitz and Stegun in double */
#pragma omp declare simd notinbranch
static inline double complement(double a)
{
    double k = 1 / (1 + 0.3275911 * a);
    return ((((1.061405429 * k - 1.453152027) * k + 1.421413741) * k - 0.284496736) * k +
            0.254829592) * k * __builtin_exp(-a * a);
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double t = x[i] * 0.70710678118654752, c = complement(t < 0 ? -t : t);
        y[i] = (float)(0.5 * x[i] * (t < 0 ? c : 2 - c));
    }
}
