"""The providers. This package is the only one that may import a provider's SDK."""
