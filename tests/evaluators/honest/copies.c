#include <string.h>
void f(const char *a, char *b, int64_t n) {
    memcpy(b, a, n); memmove(b, b + 1, n - 1); memset(b + n - 1, 0, 1);
    b[0] += memcmp(a, b, n) > 0; b[1] = strlen(a) + (strchr(a, 'x') != 0);
}
