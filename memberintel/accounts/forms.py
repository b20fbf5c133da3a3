"""The forms of the account pages."""

from __future__ import annotations

from django import forms

from memberintel.accounts.domain import LANGUAGES, Person, time_zones


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
