from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    name = "memberintel.privacy"
    label = "privacy"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from memberintel.privacy import reach, sign_ins
        from memberintel.privacy.audit import note_act
        from memberintel.tenancy.desk import acted

        acted.connect(note_act, dispatch_uid="privacy.note_act")
        sign_ins.connect()
        post_migrate.connect(reach.let_eraser_in, dispatch_uid="let_eraser_in")
