"""Fuzzing of the generated code and the runtime under AddressSanitizer and UBSan."""
