"""First byte of the ids of each kind of object (P4Runtime specification, P4Ids)."""

from v1model.protos.p4.config.v1 import p4info_pb2

ACTION = p4info_pb2.P4Ids.ACTION
TABLE = p4info_pb2.P4Ids.TABLE
CONTROLLER_HEADER = p4info_pb2.P4Ids.CONTROLLER_HEADER
DIGEST = p4info_pb2.P4Ids.DIGEST
VALUE_SET = p4info_pb2.P4Ids.VALUE_SET

RESOURCES = {
    "register": p4info_pb2.P4Ids.REGISTER,
    "counter": p4info_pb2.P4Ids.COUNTER,
    "direct_counter": p4info_pb2.P4Ids.DIRECT_COUNTER,
    "meter": p4info_pb2.P4Ids.METER,
    "direct_meter": p4info_pb2.P4Ids.DIRECT_METER,
    "action_profile": p4info_pb2.P4Ids.ACTION_PROFILE,
    "action_selector": p4info_pb2.P4Ids.ACTION_PROFILE,
}
