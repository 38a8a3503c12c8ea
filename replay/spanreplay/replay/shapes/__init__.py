"""Shapes of messages and of model request and response bodies: one module a shape. A new shape is one new file here."""
