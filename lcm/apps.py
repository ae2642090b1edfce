from django.apps import AppConfig


class LcmConfig(AppConfig):
    name = "lcm"
    verbose_name = "Lab Cloud Manager"

    def ready(self) -> None:
        from lcm import celery  # noqa: F401  (loads the Celery app)
        from lcm.config import checks  # noqa: F401  (registers the system checks)
        from lcm.events import change_feed  # noqa: F401  (connects its receiver)
        from lcm.pages.bulk_actions import register_actions
        from lcm.pages.search import register_finders
        from lcm.services import import_job
        from lcm.services.jobs import register_job

        register_job(import_job.JOB_KIND, import_job.import_step)
        register_actions()
        register_finders()
