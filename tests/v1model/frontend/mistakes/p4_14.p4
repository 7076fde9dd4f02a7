header_type ethernet_t {
    fields {
        dst : 48;
        src : 48;
        type : 16;
    }
}
header ethernet_t ethernet;
parser start { extract(ethernet); return ingress; }
action drop_it() { drop(); }
table t { reads { ethernet.dst : exact; } actions { drop_it; } size : 256; }
control ingress { apply(t); }
