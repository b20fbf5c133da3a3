"""Insights across tenants: what several accounts decided or left open alike, shown to staff without anybody's words.

Off until a legal review is recorded and staff turn it on; an owner's no is kept at once. See `docs/adr/`.
"""
