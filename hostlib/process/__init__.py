"""How a host process is configured, controlled and watched."""
