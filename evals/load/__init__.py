"""Thousands of closed sessions of every sort: each must end in exactly the state the rules say."""
