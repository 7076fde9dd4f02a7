// Compile-time parameters. Override with -D NAME=value; powers of two where the comment says so.
#ifndef WEIR_SIZES_P4
#define WEIR_SIZES_P4

#ifndef POOL_BLOCKS
#define POOL_BLOCKS 1024            // entries of the pool index
#endif
#ifndef POOL_SLOTS
#define POOL_SLOTS 32768            // values: POOL_BLOCKS times the fragments of a block
#endif
#ifndef VALUE_SIZE
#define VALUE_SIZE 512              // bytes of a value: 512 (the most that BMv2 can serve), 1408 or 8192
#endif
#ifndef PENDING_CELLS
#define PENDING_CELLS 16384         // fragments in flight at once, in two ways; a power of two
#endif
#ifndef PENDING_TIMEOUT_US
#define PENDING_TIMEOUT_US 200000   // a claim older than this no longer absorbs requests
#endif
#ifndef SKETCH_CELLS
#define SKETCH_CELLS 4096           // counters in each of the sketch's three rows; a power of two
#endif
#ifndef SKETCH_EPOCH_SHIFT
#define SKETCH_EPOCH_SHIFT 26       // counts are halved every 2^26 us = 67 s
#endif
#ifndef CPU_PORT
#define CPU_PORT 510                // the controller's; simple_switch_grpc takes it as --cpu-port
#endif

#define WAITER_PORTS 64             // width of the waiters' bitmap: ports 1..63 may wait; bit 0 is the pool's own
#define METERED_PORTS 512           // all ports of a switch, the controller's included
#define MAX_STORES 256              // storage nodes by number: one byte in the header
#define MAX_TENANT_PORTS 8192       // pairs of port and tenant
#define MULTICAST_WAITERS 1         // the multicast group that holds every port of the switch

#endif
