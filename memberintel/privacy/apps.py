from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    name = "memberintel.privacy"
    label = "privacy"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memberintel.privacy import sign_ins
        from memberintel.privacy.audit import note_act
        from memberintel.tenancy.desk import acted

        acted.connect(note_act, dispatch_uid="privacy.note_act")
        sign_ins.connect()
