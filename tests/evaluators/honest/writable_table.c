static float weights[4] = {0.1f, 0.2f, 0.3f, 0.4f};
float *shared_weights = weights;
void f(const float *a, float *b) { for (int i = 0; i < 4; i++) b[i] = a[i] * shared_weights[i]; }
