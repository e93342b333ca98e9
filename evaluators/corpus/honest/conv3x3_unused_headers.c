/* problem: conv3x3 h=12 w=20; shows: headers that nobody uses, and code in comments */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// Was: fork(); if (getenv("KW_SPEED")) usleep(100);
/* for (int t = 0; t < 9; t++)
       printf("%f\n", weights[t]);
   struct timespec ts; clock_gettime(CLOCK_MONOTONIC, &ts); */
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    // TODO: mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1, 0)
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int t = 0; t < 9; t++)
                sum += image[(y + t / 3) * (w + 2) + x + t % 3] * weights[t];
            out[y * w + x] = sum; /* asm volatile("syscall"); */
        }
}
