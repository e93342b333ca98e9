const char *const names[] = {"one", "two", "three"};
void f(int *b, int64_t n) { for (int64_t i = 0; i < n; i++) b[i] = names[i % 3][0]; }
