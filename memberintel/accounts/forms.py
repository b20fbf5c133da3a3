"""The forms of the account pages."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import password_validation

from memberintel.accounts import tokens
from memberintel.accounts.domain import LANGUAGES, Person, time_zones
from memberintel.tenancy.models import User


class PersonForm(forms.Form):
    """Display name, time zone and language."""

    display_name = forms.CharField(
        label="Your name",
        required=False,
        max_length=80,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
        help_text="How your advisor addresses you.",
    )
    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=lambda: [(name, name.replace("_", " ")) for name in time_zones()],
        help_text="Times on these pages and in your notes are shown in it.",
    )
    language = forms.ChoiceField(
        label="Language you write in", choices=LANGUAGES, help_text="These pages themselves are in English."
    )

    def person(self) -> Person:
        """What was filled in, after `is_valid`."""
        return Person(**self.cleaned_data)


class InviteForm(forms.Form):
    """The address to invite."""

    email = forms.EmailField(
        label="Their e-mail address",
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )


class TokenForm(forms.Form):
    """A personal token to be made."""

    name = forms.CharField(label="What it is for", max_length=80, help_text="To tell it from others.")
    scopes = forms.MultipleChoiceField(
        label="What it may do", choices=list(tokens.SCOPES.items()), widget=forms.CheckboxSelectMultiple
    )
    days = forms.ChoiceField(
        label="How long it works",
        choices=[("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("0", "until it is revoked")],
        initial="90",
    )


class JoinForm(forms.Form):
    """The password of somebody who accepts an invitation."""

    password = forms.CharField(
        label="Password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=password_validation.password_validators_help_text_html,
    )

    def __init__(self, *args: Any, email: str, **kwargs: Any) -> None:
        self.email = email
        super().__init__(*args, **kwargs)

    def clean_password(self) -> str:
        """As good as any password here must be."""
        given: str = self.cleaned_data["password"]
        password_validation.validate_password(given, User(email=self.email))
        return given
