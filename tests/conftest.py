"""What holds for all tests."""

from hypothesis import settings

# Examples have no deadline: on a busy machine any of them may be interrupted for long.
settings.register_profile("weir", deadline=None)
settings.load_profile("weir")
