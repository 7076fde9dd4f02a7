"""Code that all commands share: options, progress, errors, interrupts, worker processes."""
