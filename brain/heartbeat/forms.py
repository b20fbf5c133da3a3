"""The forms of sites and sources."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from brain.domain.heartbeat import csv_file
from brain.heartbeat.actions import LONGEST_NAME
from brain.heartbeat.sources import memberpress
from memberintel.accounts.domain import time_zones
from memberintel.lib.outbound import LONGEST_URL, Unreachable

_STRIPE_KEY = re.compile(r"(rk|sk)_(live|test)_[A-Za-z0-9_]{8,240}")
_KEY = re.compile(r"[\x21-\x7e]{8,200}")
_SECRET = {"autocomplete": "off", "spellcheck": "false"}


class SiteForm(forms.Form):
    """A site's name, and where its days begin."""

    name = forms.CharField(
        label="Name of the site",
        max_length=LONGEST_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=lambda: [(name, name.replace("_", " ")) for name in time_zones()],
        help_text="Its days are counted in it.",
    )


class StripeForm(forms.Form):
    """How to read a Stripe account."""

    key = forms.CharField(
        label="Restricted key",
        max_length=255,
        widget=forms.PasswordInput(attrs=_SECRET),
        help_text="In Stripe, under Developers, API keys: make a restricted key (it begins with rk_) that may read"
        " Subscriptions, Prices, Coupons, Invoices and Events, and nothing else.",
    )

    def clean_key(self) -> str:
        """A key that can read; not the one meant for browsers."""
        return stripe_key(self.cleaned_data["key"])

    def credentials(self) -> dict[str, Any]:
        """What is kept, sealed."""
        return {"key": self.cleaned_data["key"]}


class MemberPressForm(forms.Form):
    """How to read a site with MemberPress."""

    url = forms.CharField(
        label="Address of the site",
        max_length=LONGEST_URL,
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "placeholder": "https://"}),
    )
    key = forms.CharField(
        label="API key",
        max_length=200,
        widget=forms.PasswordInput(attrs=_SECRET),
        help_text="In WordPress, under MemberPress, Developer, REST API. The Developer Tools add-on has to be on.",
    )
    currency = forms.CharField(
        label="Currency of your prices",
        min_length=3,
        max_length=3,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Three letters, such as USD. MemberPress does not tell it.",
    )

    def clean_url(self) -> str:
        """An address on the open internet; nothing is sent there yet."""
        return site_address(self.cleaned_data["url"])

    def clean_key(self) -> str:
        """A key that fits into a header."""
        return plain_key(self.cleaned_data["key"])

    def clean_currency(self) -> str:
        """Three letters."""
        return currency_code(self.cleaned_data["currency"])

    def credentials(self) -> dict[str, Any]:
        """What is kept, sealed."""
        return {name: self.cleaned_data[name] for name in ("url", "key", "currency")}


class UploadForm(forms.Form):
    """A file of numbers."""

    file = forms.FileField(
        label="CSV file",
        allow_empty_file=True,
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
        help_text=f"At most {csv_file.MOST_ROWS:,} rows and {csv_file.MOST_BYTES // 1000:,} kB.",
    )


CONNECT: dict[str, type[StripeForm] | type[MemberPressForm]] = {
    "stripe": StripeForm,
    "memberpress": MemberPressForm,
}


def stripe_key(given: str) -> str:
    """The key without blanks around it; ValidationError for one that cannot read."""
    key = given.strip()
    if key.startswith("pk_"):
        raise forms.ValidationError(
            "This is a publishable key, which may not read. Give a restricted key: rk_…"
        )
    if not _STRIPE_KEY.fullmatch(key):
        raise forms.ValidationError("This is not a key of Stripe's. A restricted key begins with rk_")
    return key


def plain_key(given: str) -> str:
    """The key without blanks around it; ValidationError for what no key is made of."""
    key = given.strip()
    if not _KEY.fullmatch(key):
        raise forms.ValidationError(
            "This is not an API key: it has between 8 and 200 letters, digits and signs."
        )
    return key


def site_address(given: str) -> str:
    """The address as it is kept; ValidationError for one we do not go to."""
    try:
        return memberpress.address(given)
    except Unreachable as refusal:
        raise forms.ValidationError(str(refusal)) from None


def currency_code(given: str) -> str:
    """The code in capitals; ValidationError."""
    code = given.strip().upper()
    if not re.fullmatch(r"[A-Z]{3}", code):
        raise forms.ValidationError("Write the three letters of the currency, such as USD.")
    return code
