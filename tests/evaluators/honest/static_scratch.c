static float scratch[4096] __attribute__((aligned(64)));
void f(const float *a, float *b) {
    for (int i = 0; i < 4096; i++) scratch[i] = a[i];
    for (int i = 0; i < 4096; i++) b[i] = scratch[4095 - i];
}
