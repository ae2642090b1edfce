from django.apps import AppConfig


class ObservationsConfig(AppConfig):
    name = "observations"
    verbose_name = "Observations"
    extension = "observations.extension.EXTENSION"

    def ready(self) -> None:
        from observations.livestats import prometheus_settings  # noqa: F401  (registers the system check)
