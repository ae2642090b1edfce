from django.apps import AppConfig


class LcmConfig(AppConfig):
    name = "lcm"
    verbose_name = "Lab Cloud Manager"
    extension = "lcm.extension.EXTENSION"

    def ready(self) -> None:
        from lcm import celery  # noqa: F401  (loads the Celery app)
