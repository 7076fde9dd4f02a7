"""The protocol between hosts: its messages, keys, homes, lists of members, and errors."""
