#!/bin/sh
# Generates the Python modules of v1model/protos/ from the .proto files beside them (`make protos`).
#
# protoc would have them import each other as p4.* and google.rpc.*, and register with protobuf's own pool of
# descriptors. Both would clash with whatever else brings P4Runtime's stubs into a process, and p4/ is
# this project's folder of P4 programs; so the names become v1model.protos.* and the pool is one of our own.
set -eu
cd "$(dirname "$0")/.."
root=v1model/protos

find $root -name '*_pb2*.py*' -type f -exec rm {} +
# shellcheck disable=SC2046 # a list of words
.venv/bin/python -m grpc_tools.protoc -I $root --python_out=$root --pyi_out=$root $(find $root -name '*.proto')
.venv/bin/python -m grpc_tools.protoc -I $root --grpc_python_out=$root $root/p4/v1/p4runtime.proto
find $root -name '*_pb2*.py*' -type f -exec sed -i -E \
  -e 's/^(from|import) (p4|google\.rpc)\b/\1 v1model.protos.\2/' \
  -e 's/^from google\.protobuf import descriptor_pool as _descriptor_pool$/from v1model.protos.pool import POOL/' \
  -e 's/_descriptor_pool\.Default\(\)/POOL/' \
  -e "s/(BuildTopDescriptorsAndMessages\(DESCRIPTOR, ')/\1v1model.protos./" {} +
