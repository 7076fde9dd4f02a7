// What the stages of the pipeline tell each other about one packet.
#ifndef WEIR_METADATA_P4
#define WEIR_METADATA_P4

typedef bit<WAITER_PORTS> waiters_t;    // bit n: port n

// Where a packet goes after ingress.
enum fate_t {
    ROUTE,      // to its IPv4 destination
    RETURN,     // out of the port it came from
    FAN_OUT,    // to the ports in `waiters`
    DROP
}

struct metadata_t {
    fate_t      fate;
    bit<32>     outcome;        // index into the counter `outcomes`: what became of the packet
    bit<8>      role;           // of the ingress port
    bool        present;        // the block has an entry in the pool index
    bit<32>     base_slot;      // the entry's
    bit<32>     slot;           // this fragment's; the last one's for a STAT
    bit<32>     generation;     // the entry's
    bit<16>     fragments;      // the entry's
    content_t   content;        // the write that the block's slots hold, 0 for none
    ipv4_address_t writer;      // who put it; 0 if a home sent it
    bool        filled;         // the slot holds this fragment of it
    bool        servable;       // a GET or STAT, and the slot holds what it asks for
    bool        awaited;        // a reply that a claim of this switch waits for
    bool        subscribed;     // a GET that asks to have the rest of its prefix pushed
    bit<16>     misses;         // of a block that the controller should hear of, 0 otherwise
    waiters_t   waiters;        // ports that the packet goes to
    waiters_t   addressed;      // of them, the one that leads to the reply's addressee
    bit<16>     group;          // multicast group of which those ports are part
    port_id_t   home_port_1;    // where the homes that a PUT names are
    port_id_t   home_port_2;
    port_id_t   home_port_3;
    bool        to_homes;       // a PUT that goes by those
    bit<16>     zero;           // never written: what csum16 gives for data and their right checksum
    bool        readdressed;    // headers under the UDP checksum were rewritten
}

// Every packet has one outcome. The drops come first.
const bit<32> OUTCOME_MALFORMED       = 0;  // parser or checksum error
const bit<32> OUTCOME_FORBIDDEN       = 1;  // the port's role does not allow the operation
const bit<32> OUTCOME_SPOOFED         = 2;  // not the IPv4 source address of the port's host
const bit<32> OUTCOME_FOREIGN_TENANT  = 3;  // a tenant that the port's host does not belong to
const bit<32> OUTCOME_OVER_REQUESTS   = 4;  // more requests or PUTs than the port may send
const bit<32> OUTCOME_OVER_SPECIAL    = 5;  // more GETs that subscribe or repair than the port may send
const bit<32> OUTCOME_OVER_CONTROLLER = 6;  // more packets for the controller than the port may cause
const bit<32> OUTCOME_NO_ROUTE        = 7;  // no IPv4 route, not IPv4, not for the controller, or a copy for which nobody waits
const bit<32> OUTCOME_TTL_EXPIRED     = 8;
const bit<32> OUTCOME_FORWARDED       = 9;  // plain IPv4
const bit<32> OUTCOME_SERVED          = 10; // GET answered from a slot
const bit<32> OUTCOME_CLAIMED         = 11; // GET forwarded; later ones like it will wait
const bit<32> OUTCOME_MERGED          = 12; // GET absorbed: one like it is in flight
const bit<32> OUTCOME_RETRIED         = 13; // GET forwarded again, its waiters kept
const bit<32> OUTCOME_UNMERGED        = 14; // GET forwarded: its pending cells are in use, or it bypasses
const bit<32> OUTCOME_REPLY           = 15; // VALUE, NOT_FOUND or REFUSED to one port
const bit<32> OUTCOME_FANNED_OUT      = 16; // VALUE, NOT_FOUND or REFUSED to several
const bit<32> OUTCOME_FILL_ENDED      = 17; // VALUE that was fetched for a slot, and has arrived
const bit<32> OUTCOME_PUT             = 18; // PUT or PUT_ACK forwarded
const bit<32> OUTCOME_REPLICATED      = 19; // PUT forwarded to several ports
const bit<32> OUTCOME_MESSAGE         = 20; // STAT, FOUND, HELLO, LIST, KEYS, EXPECT, DELETE, DELETED or MEMBERS forwarded
const bit<32> OUTCOME_CONTROL         = 21; // RECLAIM, FILL or PUSH carried out
const bit<32> OUTCOME_NOT_RESIDENT    = 22; // control operation on what no slot holds: returned
const bit<32> OUTCOME_LOST            = 23; // dropped on purpose (faults.p4, in tests and experiments only)
const bit<32> OUTCOME_TOLD            = 24; // STAT of a block that the pool holds: answered
const bit<32> OUTCOMES                = 25;

// What a port may send (table port_role).
const bit<8> ROLE_REQUEST = 1;  // GET, STAT, HELLO, DELETE; without REPLY also PUT, EXPECT
const bit<8> ROLE_REPLY   = 2;  // VALUE, NOT_FOUND, PUT_ACK, REFUSED, FOUND, KEYS, DELETED; with REQUEST also LIST
const bit<8> ROLE_CONTROL = 4;  // RECLAIM, FILL, PUSH, MEMBERS, and flags FILL and RECLAIM
const bit<8> ROLE_TRUNK   = 8;  // another switch: speaks for many, and has checked them

#endif
