from django.apps import AppConfig


class LcmConfig(AppConfig):
    name = "lcm"
    verbose_name = "Lab Cloud Manager"

    def ready(self) -> None:
        from lcm import celery, checks  # noqa: F401  (loads the Celery app and registers the checks)
