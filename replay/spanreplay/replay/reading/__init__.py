"""One span, read: which dialect it is in, what was asked and answered, and what its attributes prove."""
