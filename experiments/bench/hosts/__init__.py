"""What a block costs the two hosts at its ends."""
