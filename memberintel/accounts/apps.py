from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "memberintel.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from allauth.account.signals import password_reset
        from allauth.mfa.signals import authenticator_added

        from memberintel.accounts.actions import after_password_reset
        from memberintel.accounts.two_factor import note_enrolment

        authenticator_added.connect(note_enrolment, dispatch_uid="accounts.note_enrolment")
        password_reset.connect(after_password_reset, dispatch_uid="accounts.after_password_reset")
