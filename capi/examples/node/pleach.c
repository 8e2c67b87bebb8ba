/* An addon of Node: open(path) and get(index, BigInt64Array). See look_up.js. */
#include <node_api.h>
#include <stdlib.h>

#include "pleach.h"

static napi_value fail(napi_env env) {
    napi_throw_error(env, NULL, pleach_last_error_text());
    return NULL;
}

static void close_index(napi_env env, void *index, void *hint) {
    (void)env;
    (void)hint;
    pleach_close(index);
}

static napi_value open_index(napi_env env, napi_callback_info info) {
    napi_value argument, handle;
    size_t count = 1, length = 0;
    char path[4096];
    napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
    if (count < 1 || napi_get_value_string_utf8(env, argument, path, sizeof path, &length) != napi_ok) {
        napi_throw_type_error(env, NULL, "a path is wanted");
        return NULL;
    }
    pleach_index *index = NULL;
    if (pleach_open(path, NULL, &index) != PLEACH_OK) {
        return fail(env);
    }
    napi_create_external(env, index, close_index, NULL, &handle);
    return handle;
}

/* Returns [values, found]: a BigUint64Array, and a Uint8Array of bits. */
static napi_value get(napi_env env, napi_callback_info info) {
    napi_value arguments[2], buffer, answer, values, found;
    size_t count = 2, length = 0;
    void *index = NULL, *data = NULL, *values_data = NULL, *found_data = NULL;
    napi_typedarray_type type;
    napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
    if (count < 2 || napi_get_value_external(env, arguments[0], &index) != napi_ok ||
        napi_get_typedarray_info(env, arguments[1], &type, &length, &data, &buffer, NULL) != napi_ok ||
        type != napi_bigint64_array) {
        napi_throw_type_error(env, NULL, "an index and a BigInt64Array are wanted");
        return NULL;
    }
    napi_create_arraybuffer(env, length * 8, &values_data, &buffer);
    napi_create_typedarray(env, napi_biguint64_array, length, buffer, 0, &values);
    napi_create_arraybuffer(env, (length + 7) / 8, &found_data, &buffer);
    napi_create_typedarray(env, napi_uint8_array, (length + 7) / 8, buffer, 0, &found);
    pleach_keys keys = {.key_type = PLEACH_I64, .count = length, .data = data};
    if (pleach_get(index, &keys, values_data, length * 8, found_data, (length + 7) / 8, NULL) != PLEACH_OK) {
        return fail(env);
    }
    napi_create_array_with_length(env, 2, &answer);
    napi_set_element(env, answer, 0, values);
    napi_set_element(env, answer, 1, found);
    return answer;
}

NAPI_MODULE_INIT() {
    napi_value function;
    napi_create_function(env, "open", NAPI_AUTO_LENGTH, open_index, NULL, &function);
    napi_set_named_property(env, exports, "open", function);
    napi_create_function(env, "get", NAPI_AUTO_LENGTH, get, NULL, &function);
    napi_set_named_property(env, exports, "get", function);
    return exports;
}
