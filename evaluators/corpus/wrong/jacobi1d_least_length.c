/* problem: jacobi1d n=3..60 t=4; tags: special_case; shows: three points are left as they are */
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    for (int64_t step = 0; step < t && n > 3; step++) {
        float left = now[0];
        for (int64_t i = 1; i < n - 1; i++) {
            float here = now[i];
            now[i] = (left + here + now[i + 1]) / 3;
            left = here;
        }
    }
}
