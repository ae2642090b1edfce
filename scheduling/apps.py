from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    name = "scheduling"
    verbose_name = "Capacity"

    def ready(self) -> None:
        from lcm import metrics
        from scheduling import wiring  # noqa: F401  (sessions get their reservations)
        from scheduling.metrics import capacity_figures

        metrics.FLEET.append(capacity_figures)
