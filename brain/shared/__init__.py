"""Knowledge for all customers, curated by staff."""
