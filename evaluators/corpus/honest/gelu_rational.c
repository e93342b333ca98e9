/* problem: gelu n=333; shows: erf as a quotient of polynomials on -4 to 4, constant beyond */
static inline float erf_of(float t)
{
    t = t > 4 ? 4 : t < -4 ? -4 : t;
    const double s = (double)t * t;
    double p = -2.72614225801306e-10;
    p = p * s + 2.77068142495902e-08;
    p = p * s - 2.10102402082508e-06;
    p = p * s - 5.69250639462346e-05;
    p = p * s - 7.34990630326855e-04;
    p = p * s - 2.95459980854025e-03;
    p = p * s - 1.60960333262415e-02;
    double q = -1.45660718464996e-05;
    q = q * s - 2.13374055278905e-04;
    q = q * s - 1.68282697438203e-03;
    q = q * s - 7.37332916720468e-03;
    q = q * s - 1.42647390514189e-02;
    return (float)(t * p / q);
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * 0.5f * (1 + erf_of(x[i] * 0.70710678f));
}
