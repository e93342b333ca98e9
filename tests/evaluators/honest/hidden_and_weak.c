__attribute__((visibility("hidden"))) float helper(float x) { return x + 1; }
__attribute__((weak)) float other(float x) { return x + 2; }
float again(float) __attribute__((alias("helper")));
void f(const float *a, float *b) { b[0] = helper(a[0]) + other(a[1]) + again(a[2]); }
