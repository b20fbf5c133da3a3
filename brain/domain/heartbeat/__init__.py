"""The rules of a site's numbers: what they are, what a subscription brings a month, what they tell. Pure."""
