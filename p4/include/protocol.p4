// The wire protocol's constants. This file is their only source: hostlib/wire.py
// holds a copy for the hosts, and a test compares the two name by name.
#ifndef WEIR_PROTOCOL_P4
#define WEIR_PROTOCOL_P4

const bit<16> KV_PORT = 22341;      // UDP, both ends: 0x5745, "WE"
const bit<8>  KV_VERSION = 1;

const bit<16> KV_HEADER_BYTES = 48;
const bit<16> VALUE_BYTES = 512;    // a value on the wire is always this long, padded with zeros

// Operations that hosts send.
const bit<8> OP_GET       = 1;      // node -> home: one fragment, please
const bit<8> OP_VALUE     = 2;      // home or pool -> node: here it is (carries a value)
const bit<8> OP_NOT_FOUND = 3;      // home -> node: this block is not here
const bit<8> OP_PUT       = 4;      // node or pool -> home: keep this fragment (carries a value)
const bit<8> OP_PUT_ACK   = 5;      // home -> sender of a PUT: kept

// Operations that only the controller sends, as PacketOut.
const bit<8> OP_INVALIDATE = 16;    // forget what the fragment's slot holds
const bit<8> OP_RECLAIM    = 17;    // send the fragment, as a PUT, to the packet's IPv4 destination
const bit<8> OP_FILL       = 18;    // fetch the fragment from its home into its slot, now
const bit<8> OP_PUSH       = 19;    // send the fragment, as a VALUE, to the multicast group in `sequence`

// Flags.
const bit<16> FLAG_RETRY     = 0x0001;  // GET: asked before; forwarded even when one is in flight
const bit<16> FLAG_BYPASS    = 0x0002;  // GET: neither pool nor pending table; VALUE: not merged, not stored
const bit<16> FLAG_FROM_POOL = 0x0004;  // VALUE: served by a switch
const bit<16> FLAG_MERGED    = 0x0008;  // VALUE, NOT_FOUND: a copy of a reply that several ports waited for
const bit<16> FLAG_FILL      = 0x0010;  // GET, VALUE: on behalf of the pool; ends in the switch
const bit<16> FLAG_RECLAIM   = 0x0020;  // PUT, PUT_ACK: a block on its way out of the pool
const bit<16> FLAG_PUSHED    = 0x0040;  // VALUE, PUSH: nobody asked; the controller expects that it will be wanted
const bit<16> FLAG_SUBSCRIBE = 0x0080;  // GET: push to me what else there is of this prefix
const bit<16> FLAG_HELD      = 0x0100;  // PUT_ACK: the home now holds the whole block

#endif
