"""Damaged, odd and hostile input for everything that reads what others wrote."""
