"""Descriptor pool of the generated modules, apart from other P4Runtime stubs in the process."""

from google.protobuf import any_pb2
from google.protobuf.descriptor_pool import DescriptorPool

POOL = DescriptorPool()
# Files of protobuf itself that the .proto files import.
POOL.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
