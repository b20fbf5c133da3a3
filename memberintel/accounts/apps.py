from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "memberintel.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from allauth.mfa.signals import authenticator_added

        from memberintel.accounts.two_factor import note_enrolment

        authenticator_added.connect(note_enrolment, dispatch_uid="accounts.note_enrolment")
