"""The programs, a module for each group of the table."""
