from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    name = "scheduling"
    verbose_name = "Capacity"

    def ready(self) -> None:
        from scheduling import wiring  # noqa: F401  (sessions get their reservations)
