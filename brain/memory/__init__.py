"""MEMORY: single insights, kept and found again by similarity."""
