"""Where the generated modules register their messages, apart from other P4Runtime stubs in the process."""

from google.protobuf import any_pb2
from google.protobuf.descriptor_pool import DescriptorPool

POOL = DescriptorPool()
# What the .proto files import from protobuf itself.
POOL.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
