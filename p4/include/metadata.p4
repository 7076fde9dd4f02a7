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
    bool        present;        // the key has an entry in the pool index
    bool        filled;         // ... and the slot holds this fragment
    bit<32>     slot;
    bit<32>     generation;     // the entry's
    waiters_t   waiters;        // ports that a reply goes to
    waiters_t   addressed;      // of them, the one that leads to the reply's addressee
    bit<16>     group;          // multicast group of which those ports are part
    bool        readdressed;    // headers under the UDP checksum were rewritten
}

// Every packet has one outcome. The drops come first.
const bit<32> OUTCOME_MALFORMED      = 0;   // parser or checksum error
const bit<32> OUTCOME_FORBIDDEN      = 1;   // the port's role does not allow the operation
const bit<32> OUTCOME_NO_ROUTE       = 2;   // no IPv4 route, not IPv4, or a copy for which nobody waits
const bit<32> OUTCOME_TTL_EXPIRED    = 3;
const bit<32> OUTCOME_FORWARDED      = 4;   // plain IPv4
const bit<32> OUTCOME_SERVED         = 5;   // GET answered from a slot
const bit<32> OUTCOME_CLAIMED        = 6;   // GET forwarded; later ones for the fragment will wait
const bit<32> OUTCOME_MERGED         = 7;   // GET absorbed: one for the fragment is in flight
const bit<32> OUTCOME_RETRIED        = 8;   // GET forwarded again, its waiters kept
const bit<32> OUTCOME_UNMERGED       = 9;   // GET forwarded: its pending cells are in use, or it bypasses
const bit<32> OUTCOME_REPLY          = 10;  // VALUE or NOT_FOUND to one port
const bit<32> OUTCOME_FANNED_OUT     = 11;  // VALUE or NOT_FOUND to several
const bit<32> OUTCOME_FILL_ENDED     = 12;  // VALUE that was fetched for a slot, and has arrived
const bit<32> OUTCOME_PUT            = 13;  // PUT or PUT_ACK forwarded
const bit<32> OUTCOME_CONTROL        = 14;  // INVALIDATE, RECLAIM, FILL or PUSH carried out
const bit<32> OUTCOME_NOT_RESIDENT   = 15;  // control operation on what no slot holds: returned
const bit<32> OUTCOME_LOST           = 16;  // dropped on purpose (faults.p4, in tests and experiments only)
const bit<32> OUTCOMES               = 17;

// What a port may send (table port_role).
const bit<8> ROLE_REQUEST = 1;  // GET, PUT
const bit<8> ROLE_REPLY   = 2;  // VALUE, NOT_FOUND, PUT_ACK
const bit<8> ROLE_CONTROL = 4;  // INVALIDATE, RECLAIM, FILL, PUSH, and flags FILL and RECLAIM

#endif
