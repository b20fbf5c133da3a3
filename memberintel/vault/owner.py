"""Whose data key it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

OwnerKind = Literal["customer", "tenant", "system"]


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a data key: a customer (tenant and customer), a tenant, or the system tenant."""

    kind: OwnerKind
    tenant: UUID
    customer: UUID | None = None

    def __post_init__(self) -> None:
        if (self.kind == "customer") != (self.customer is not None):
            raise ValueError("a customer's key names its customer, any other key none")

    def aad(self) -> bytes:
        """What binds a wrapped key to this owner: fixed-size fields, so no two owners share it."""
        customer = self.customer.bytes if self.customer else bytes(16)
        return b"memberintel data key\x01" + self.kind[0].encode() + self.tenant.bytes + customer
