"""The box: processes that run untrusted answers, what they give up, and what the result is worth."""
