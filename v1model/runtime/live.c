/* Ports on network interfaces. */
#include "api.h"
#include "switch.h"
void ports_flush(struct vswitch *sw) { (void)sw; }
void ports_close(struct vswitch *sw) { (void)sw; }
int32_t weir_attach(struct vswitch *sw, uint32_t port, const char *interface) { (void)sw; (void)port; (void)interface; return 1; }
int32_t weir_detach(struct vswitch *sw, uint32_t port) { (void)sw; (void)port; return 0; }
int32_t weir_forward(struct vswitch *sw) { (void)sw; return 0; }
void weir_stop(struct vswitch *sw) { (void)sw; }
int32_t weir_port_statistics(struct vswitch *sw, uint32_t port, uint64_t values[8]) { (void)sw; (void)port; memset(values, 0, 64); return 0; }
