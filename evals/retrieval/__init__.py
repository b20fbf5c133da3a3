"""How well what was said is found again by a question about it, for each way of embedding texts."""
