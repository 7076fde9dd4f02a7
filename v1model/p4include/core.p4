// The P4_16 core library: what P4_16 specification v1.2.5, section "P4 core library", says every
// architecture has.

#ifndef _CORE_P4_
#define _CORE_P4_

error {
    NoError,
    PacketTooShort,         // extract, advance or lookahead beyond the end of the packet
    NoMatch,                // a select expression without a matching case
    StackOutOfBounds,       // next or last of a header stack that has none
    HeaderTooShort,         // more bits for a varbit field than it can hold
    ParserTimeout,
    ParserInvalidArgument   // an argument that the target does not support
}

match_kind {
    exact,
    ternary,
    lpm
}

extern packet_in {
    /// Reads a header of fixed size and moves on behind it.
    void extract<T>(out T hdr);
    /// Reads a header with one varbit field, of which the packet has `variableFieldSizeInBits`.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    /// Reads without moving on.
    T lookahead<T>();
    void advance(in bit<32> sizeInBits);
    /// Bytes of the packet; not every target knows it.
    bit<32> length();
}

extern packet_out {
    /// Appends a header if it is valid; of a struct, stack or union all the valid headers.
    void emit<T>(in T hdr);
}

/// Ends parsing with `toSignal` unless `check` holds.
extern void verify(in bool check, in error toSignal);

/// Refuses the program at compile time, with `message`, unless `check` holds.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

@noWarn("unused")
action NoAction() {}

#endif
