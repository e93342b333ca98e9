static void nothing(void) {}
void also_nothing(void) {}
void f(float *b) { nothing(); also_nothing(); b[0] = 1; }
