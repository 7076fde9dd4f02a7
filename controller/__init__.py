"""The P4Runtime controller: decides which blocks the switches' pools hold. See docs/controller.md."""
