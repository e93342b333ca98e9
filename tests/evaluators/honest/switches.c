void f(const int *a, int *b, int64_t n) {
    static const void *const labels[] = {&&one, &&two, &&three};
    for (int64_t i = 0; i < n; i++) {
        switch (a[i]) { case 0: b[i] = 7; break; case 1: b[i] = 12; break; case 2: b[i] = -3; break; case 3: b[i] = 99; break; case 4: b[i] = 5; break; default: b[i] = 0; }
        goto *labels[a[i] % 3]; one: b[i]++; two: b[i] += 2; three:;
    }
}
