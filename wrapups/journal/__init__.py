"""The journal: the customer's own days, told from what they wrote."""
