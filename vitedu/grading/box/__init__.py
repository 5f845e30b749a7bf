"""The box: isolated processes that run untrusted answers, and the test of their isolation."""
