"""Tokens in, tokens out: the engine port and its implementations."""
