"""The numbers of the demo's site: ninety plausible days, as its owner might have uploaded them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from brain.heartbeat import actions, queries

NAME: Final = "Kiln & Kin"
DAYS: Final = 90
PRICE: Final = 24  # pounds a month, as the history has it
MEMBERS: Final = 226  # at the beginning; 14 leave in the month the history begins with, and fewer later


def write(*, day: date, time_zone: str) -> None:
    """Give the current customer's tenant a site whose numbers end on the day before `day`, unless it has one."""
    if not queries.sites():
        site = actions.add_site(name=NAME, time_zone=time_zone)
        actions.upload(site.id, file(day).encode())


def file(day: date) -> str:
    """The numbers as a CSV file. Always the same for a day: no chance is in it."""
    rows = [
        "day,active_members,mrr,currency,new,churned,failed_payments,trials,trials_ended,trials_converted"
    ]
    members = MEMBERS
    for number in range(DAYS):
        new = (number * 7 % 11 < 3) + (number > 60 and number % 4 == 0)
        churned = number % 2 if 28 <= number < 56 else number % 9 == 4
        failed = (number * 5 % 13 < 2) + (2 if number in (85, 86) else 0)
        ended, converted = int(number % 5 == 2), int(number % 5 == 2 and number % 3 != 0)
        members += new - churned
        at = day - timedelta(days=DAYS - number)
        cells = [at, members, f"{members * PRICE}.00", "GBP", int(new), int(churned), failed]
        rows.append(",".join(str(cell) for cell in [*cells, 4 + number // 7 * 5 % 4, ended, converted]))
    return "\n".join(rows) + "\n"
