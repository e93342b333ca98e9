#include <stdlib.h>
#include <ctype.h>
void f(const char *a, double *b) { b[0] = strtod(a, 0) + strtol(a, 0, 10) + atoi(a) + isdigit(a[0]) + toupper(a[0]) + abs(atoi(a)); }
