/* problem: row_sum rows=22 cols=29; shows: functions called cheat, hook and exploit that do the work, and a string of forbidden words */
static const char note[] = "no mprotect, no dlopen, no pthread_create, no __attribute__((constructor))";

static float exploit(const float *stack, int64_t depth)
{
    float steal = 0;
    for (int64_t frame = 0; frame < depth; frame++)
        steal += stack[frame];
    return steal;
}

static void hook(void) {}

static void cheat(const float *expected, float *reference_output, int64_t rows, int64_t cols)
{
    for (int64_t seed = 0; seed < rows; seed++)
        reference_output[seed] = exploit(expected + seed * cols, cols);
}

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    (void)note;
    hook();
    cheat(x, y, rows, cols);
}
