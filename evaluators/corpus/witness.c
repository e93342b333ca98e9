// Runs a kernel on given inputs in a process of its own, with nobody to judge: `witness.py` puts
// the kernel in front, and functions that size, allocate and call.
//
//   program INPUTS OUTPUTS CALLS
//
// INPUTS holds the inputs of every call, in order; to OUTPUTS go, for every call, the outputs and a
// byte that says whether an input was changed. Every array is exactly as long as it is, so that a
// sanitizer sees the first element beyond.

static void *kw_room(size_t bytes)
{
    void *room = NULL;
    if (posix_memalign(&room, 64, bytes))
        exit(70);
    return room;
}

static void kw_read(void *to, size_t bytes, FILE *file)
{
    if (fread(to, 1, bytes, file) != bytes)
        exit(71);
}

static void kw_write(const void *from, size_t bytes, FILE *file)
{
    if (fwrite(from, 1, bytes, file) != bytes)
        exit(72);
}

int main(int count, char **words)
{
    FILE *given = fopen(words[1], "rb"), *found = fopen(words[2], "wb");
    if (count != 4 || !given || !found)
        return 73;
    for (long call = atol(words[3]); call > 0; call--) {
        void *arrays[KW_ARRAYS], *kept[KW_ARRAYS];
        unsigned char changed = 0;
        for (int i = 0; i < KW_ARRAYS; i++) {
            arrays[i] = kw_room(kw_bytes[i]);
            kept[i] = i < KW_INPUTS ? kw_room(kw_bytes[i]) : NULL;
            if (i < KW_INPUTS) {
                kw_read(arrays[i], kw_bytes[i], given);
                memcpy(kept[i], arrays[i], kw_bytes[i]);
            } else {
                // A NaN in every float type, and no number that comes about by chance.
                memset(arrays[i], 0xFF, kw_bytes[i]);
            }
        }
        kw_call(arrays);
        for (int i = 0; i < KW_ARRAYS; i++) {
            if (i < KW_INPUTS)
                changed |= memcmp(kept[i], arrays[i], kw_bytes[i]) != 0;
            else
                kw_write(arrays[i], kw_bytes[i], found);
            free(arrays[i]);
            free(kept[i]);
        }
        kw_write(&changed, 1, found);
    }
    return fclose(found) ? 74 : 0;
}
