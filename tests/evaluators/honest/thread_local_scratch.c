static _Thread_local float scratch[64];
static __thread int rounds = 3;
void f(const float *a, float *b) {
    for (int r = 0; r < rounds; r++) for (int i = 0; i < 64; i++) scratch[i] = a[i] + r;
    for (int i = 0; i < 64; i++) b[i] = scratch[63 - i];
}
