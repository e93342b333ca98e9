/* The calls of a screen and nothing else: two libraries, the same operands, in turns.
 *
 *     bare_runner CANDIDATE.so REFERENCE.so OPERANDS PAIRS
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*entry_t)(void *const *, const int64_t *);

static entry_t load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fputs(dlerror(), stderr);
        exit(1);
    }
    return (entry_t)dlsym(library, "kw_call");
}

static int64_t number(FILE *file)
{
    int64_t value;
    if (fread(&value, sizeof value, 1, file) != 1)
        exit(2);
    return value;
}

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    FILE *file = fopen(words[3], "rb");
    if (!file)
        return 2;
    int64_t extents[32], sizes[32];
    int64_t extent_count = number(file);
    for (int64_t i = 0; i < extent_count; i++)
        extents[i] = number(file);
    int64_t inputs = number(file), outputs = number(file);
    for (int64_t i = 0; i < inputs + outputs; i++)
        sizes[i] = number(file);
    void *arrays[32];
    for (int64_t i = 0; i < inputs + outputs; i++) {
        arrays[i] = aligned_alloc(64, (size_t)(sizes[i] + 63) / 64 * 64);
        if (i < inputs && fread(arrays[i], 1, (size_t)sizes[i], file) != (size_t)sizes[i])
            return 2;
    }
    entry_t entries[] = {load(words[1]), load(words[2])};
    int pairs = atoi(words[4]);
    /* A first call of each, and then the pairs, as a screen has them. */
    for (int pair = 0; pair <= pairs; pair++)
        for (int arm = 0; arm < 2; arm++)
            entries[(arm + pair) % 2](arrays, extents);
    return 0;
}
