/* Several threads use one index, and each has its own last error. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 8, COUNT = 5000 };

static pleach_index *shared;

static void *work(void *argument) {
    uint64_t seed = (uint64_t)(uintptr_t)argument;
    static const uint32_t none = 0;
    for (int turn = 0; turn < 50; turn++) {
        uint32_t keys_of[64], values[64];
        uint8_t found[8];
        for (int i = 0; i < 64; i++) {
            keys_of[i] = (uint32_t)(mix(seed * 1000 + (uint64_t)(turn * 64 + i)) % (2 * COUNT));
        }
        pleach_keys keys;
        memset(&keys, 0, sizeof keys);
        keys.key_type = PLEACH_U32;
        keys.count = 64;
        keys.data = keys_of;
        OK(pleach_get(shared, &keys, values, sizeof values, found, sizeof found, NULL));
        for (int i = 0; i < 64; i++) {
            int is_there = keys_of[i] < COUNT;
            CHECK(bit(found, (size_t)i) == is_there && values[i] == (is_there ? keys_of[i] * 3 : 0));
        }
        if (seed % 2 == 0) {
            keys.key_type = PLEACH_F64;
            keys.count = 0;
            keys.data = &none;
            FAILS(PLEACH_TYPES, pleach_contains(shared, &keys, found, sizeof found, NULL));
        } else {
            CHECK(pleach_last_error_code() == PLEACH_OK);
        }
    }
    return NULL;
}

int main(void) {
    FILE *file = fopen("threads.csv", "w");
    CHECK(file != NULL);
    fputs("k,v\n", file);
    for (int i = 0; i < COUNT; i++) {
        fprintf(file, "%d,%d\n", i, i * 3);
    }
    CHECK(fclose(file) == 0);
    build("threads.csv", "threads.pleach", "u32", "u32");
    shared = open_index("threads.pleach");
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    pleach_close(shared);
    return 0;
}
