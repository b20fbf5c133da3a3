"""HEARTBEAT: a tenant's sites, the sources of their numbers, and what the numbers tell."""
