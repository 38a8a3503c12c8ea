"""The neutral span row that every writer and every reader shares, and OTLP both ways."""
