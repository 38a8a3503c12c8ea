"""Back ends that traces are fetched from: one module a back end. A new one is one new file here."""
