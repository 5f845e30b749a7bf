"""What a student reads: the mistake that does the same, or where right turns into wrong."""
