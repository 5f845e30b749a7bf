"""What an answer did, written down: exactly what the grader's sandbox loads.

Nothing here knows a reference or decides anything. Imports the standard library, numpy and torch.
"""
