"""What recorded values look like as text: canonical JSON, digests, the typed codec, and the removal of secrets."""
