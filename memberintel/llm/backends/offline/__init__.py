"""The advisor that answers while no model is set up: no network, no model, the same answer every time.

It quotes what it was handed and picks from what was said. It never makes up a sentence about the customer.
"""

from memberintel.llm.backends.offline.backend import Offline

__all__ = ["Offline"]
