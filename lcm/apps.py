from django.apps import AppConfig


class LcmConfig(AppConfig):
    name = "lcm"
    verbose_name = "Lab Cloud Manager"

    def ready(self) -> None:
        from lcm import celery, checks, wiring  # noqa: F401  (loads the Celery app, registers checks and receivers)
        from lcm.pages.bulk import register_actions
        from lcm.pages.search import register_finders
        from lcm.services import importing
        from lcm.services.jobs import register_job

        register_job(importing.KIND, importing.import_step)
        register_actions()
        register_finders()
