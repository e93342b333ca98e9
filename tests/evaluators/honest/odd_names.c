float write(float x) { return x + 1; }
static float main_(float x) { return x; }
float select(float x) { return 2 * x; }
float kw_printf(float x) { return x; }
float signal2(float x) { return x; }
float constructor(float x) { return x; }
float system_(float x) { return x; }
int dlsym_count, syscall_table[4] = {1};
void f(const float *a, float *b) { b[0] = write(a[0]) + main_(a[1]) + select(a[2]) + signal2(a[3]) + kw_printf(a[4]) + constructor(1) + system_(2) + dlsym_count + syscall_table[0]; }
