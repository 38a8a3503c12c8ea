"""The one seam that everything an agent gets from outside passes, while recording and while replaying."""
