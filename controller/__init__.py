"""The P4Runtime controller: decides which blocks the switches' pools hold. See docs/controller.md."""

import os

# gRPC reads this when it is imported. Its event engine hands what comes from thread to thread; without it the
# thread that waits for something reads it itself. A gRPC that does not know these names leaves it as it is.
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
