"""The user's code again, with every call matched to the record and answered from it; what differs is entered in a ledger."""
