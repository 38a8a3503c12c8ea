"""OTLP over HTTP and gRPC into a store: what ``spanreplay serve`` runs. Needs the extra ``serve``."""
