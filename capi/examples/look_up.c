/* A batch of look-ups in C. */
#include <inttypes.h>
#include <stdio.h>

#include "pleach.h"

static int fail(void) {
    fprintf(stderr, "%s\n", pleach_last_error_text());
    return 1;
}

int main(void) {
    FILE *table = fopen("orders.csv", "w");
    if (table == NULL || fputs("order,customer\n5,11\n7,12\n9,11\n", table) < 0 || fclose(table) != 0) {
        perror("orders.csv");
        return 1;
    }
    const char *inputs[] = {"orders.csv"};
    if (pleach_build(inputs, 1, "orders.pleach", NULL) != PLEACH_OK) {
        return fail();
    }
    pleach_index *orders = NULL;
    if (pleach_open("orders.pleach", NULL, &orders) != PLEACH_OK) {
        return fail();
    }
    const int32_t asked[] = {9, 8, 5, -1};
    pleach_keys keys = {.key_type = PLEACH_I32, .count = 4, .data = asked};
    uint64_t customers[4], hits = 0;
    uint8_t found[1];
    if (pleach_get(orders, &keys, customers, sizeof customers, found, sizeof found, &hits) != PLEACH_OK) {
        return fail();
    }
    for (int i = 0; i < 4; i++) {
        if (found[0] >> i & 1) {
            printf("%" PRId32 " is of customer %" PRIu64 "\n", asked[i], customers[i]);
        }
    }
    pleach_close(orders);
    return hits == 2 ? 0 : 1;
}
