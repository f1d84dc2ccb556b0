/* Memory of the bridge that its caller reads and gives back. */
#ifndef MODELKIT_BRIDGE_BUFFER_H
#define MODELKIT_BRIDGE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MkbBuffer {
  uint8_t* data;
  size_t size;
  size_t capacity;
} MkbBuffer;

void mkb_buffer_free(MkbBuffer* buffer);

#ifdef __cplusplus
}
#endif

#endif
