"""What the formats of traces are made of, for the sources that read them and the writers that write them: one idea a file."""
