// The wire protocol's constants. This file is their only source: hostlib/protocol/wire.py
// holds a copy for the hosts, and a test compares the two name by name.
#ifndef WEIR_PROTOCOL_P4
#define WEIR_PROTOCOL_P4

const bit<16> KV_PORT = 22341;      // UDP, both ends: 0x5745, "WE"
const bit<8>  KV_VERSION = 2;

const bit<16> KV_HEADER_BYTES = 80;
const bit<16> VALUE_BYTES = VALUE_SIZE; // a value on the wire is always this long, padded with zeros
const bit<16> LIST_BYTES = 512;     // and so is a list, whatever the size of values
const bit<16> TENANT_PUBLIC = 0;    // the namespace that all tenants share

// Operations that hosts send.
const bit<8> OP_GET       = 1;      // node -> home: one fragment, please
const bit<8> OP_VALUE     = 2;      // home or pool -> node: here it is (carries a value)
const bit<8> OP_NOT_FOUND = 3;      // home -> node: this block is not here
const bit<8> OP_PUT       = 4;      // node or pool -> homes: keep this fragment (carries a value)
const bit<8> OP_PUT_ACK   = 5;      // home -> sender of a PUT: kept
const bit<8> OP_REFUSED   = 6;      // home -> node: this can't be done, and why (`generation` is the reason)
const bit<8> OP_STAT      = 7;      // node -> home: is the block there? (fragment 0)
const bit<8> OP_FOUND     = 8;      // home or pool -> node: it is: its length and content id (NOT_FOUND: it isn't)
const bit<8> OP_HELLO     = 9;      // host -> controller: I am here; which members are there? (carries a list)
const bit<8> OP_LIST      = 10;     // store -> store: which blocks of mine do you hold, from this key on?
const bit<8> OP_KEYS      = 11;     // store -> store: these (carries a list)
const bit<8> OP_EXPECT    = 12;     // node -> controller: these blocks will be put (carries a list)
const bit<8> OP_DELETE    = 13;     // node or store -> store: forget this write; `tag` proves the tenant's secret
const bit<8> OP_DELETED   = 14;     // store -> who asked: it is gone from here, and stays away

// Operations that only the controller sends, as PacketOut.
const bit<8> OP_RECLAIM = 17;    // send the fragment, as a PUT, to the packet's IPv4 destination
const bit<8> OP_FILL    = 18;    // fetch the block from this fragment on from its home, now
const bit<8> OP_PUSH    = 19;    // send the fragment, as a VALUE, to the multicast group in `sequence`
const bit<8> OP_MEMBERS = 20;    // to a host: the storage nodes there are (carries a list)

// Flags.
const bit<16> FLAG_RETRY     = 0x0001;  // GET: asked before; forwarded even when one is in flight
const bit<16> FLAG_BYPASS    = 0x0002;  // GET, STAT: neither pool nor pending table; VALUE: not merged, not stored
const bit<16> FLAG_FROM_POOL = 0x0004;  // VALUE, FOUND: served, or said, by a switch
const bit<16> FLAG_MERGED    = 0x0008;  // VALUE, NOT_FOUND: a copy of a reply that several ports waited for
const bit<16> FLAG_FILL      = 0x0010;  // GET: all from this fragment on; VALUE: for slots, ends in the switch
const bit<16> FLAG_RECLAIM   = 0x0020;  // PUT, PUT_ACK: a block on its way out of the pool
const bit<16> FLAG_PUSHED    = 0x0040;  // VALUE, PUSH: nobody asked; the controller expects that it will be wanted
const bit<16> FLAG_SUBSCRIBE = 0x0080;  // GET: push to me what else there is of this prefix
const bit<16> FLAG_HELD      = 0x0100;  // PUT_ACK: the home now holds the whole block, as asked (see DURABLE); DELETED: all switches know
const bit<16> FLAG_REPAIR    = 0x0200;  // GET with BYPASS: the pool's value failed its tag; VALUE: put it right
const bit<16> FLAG_DURABLE   = 0x0400;  // PUT: HELD when it is on stable storage, not before; PUT_ACK: it is
const bit<16> FLAG_CREATED   = 0x0800;  // PUT_ACK with HELD: the block was not here before this PUT
const bit<16> FLAG_TOMBSTONES = 0x1000; // LIST, KEYS: of what was deleted, not of what is held
const bit<16> FLAG_HINT     = 0x2000;  // STAT, its reply: what the home should do with the block, and whether it does

// Why something is refused: OP_REFUSED has one in `generation`.
const bit<32> REFUSED_FULL       = 1;   // no room on the disk
const bit<32> REFUSED_QUOTA      = 2;   // the tenant holds or asks for as much as it may
const bit<32> REFUSED_LENGTH     = 3;   // not the fragments of this block, or a block too long
const bit<32> REFUSED_CONTENT    = 4;   // another write of this key is there already
const bit<32> REFUSED_UNREADABLE = 5;   // it was here; the disk can't give it back
const bit<32> REFUSED_BUSY       = 6;   // too much waits already
const bit<32> REFUSED_NOT_HOME   = 7;   // PUT: by its list of storage nodes the asked one is no home of the block
const bit<32> REFUSED_DELETED    = 8;   // PUT: this write was deleted
const bit<32> REFUSED_PROOF      = 9;   // DELETE: the proof is not this write's

#endif
