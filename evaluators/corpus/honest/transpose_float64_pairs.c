/* problem: transpose rows=34 cols=46 dtype=float64; shows: two by two doubles in GCC vectors, both extents even */
typedef double v2 __attribute__((vector_size(16)));

void transpose(const double *restrict x, double *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i += 2)
        for (int64_t j = 0; j < cols; j += 2) {
            const double *at = x + i * cols + j;
            v2 left = {at[0], at[cols]}, right = {at[1], at[cols + 1]};
            __builtin_memcpy(y + j * rows + i, &left, sizeof left);
            __builtin_memcpy(y + (j + 1) * rows + i, &right, sizeof right);
        }
}
