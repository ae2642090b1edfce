from django.apps import AppConfig


class ObservationsConfig(AppConfig):
    name = "observations"
    verbose_name = "Observations"

    def ready(self) -> None:
        from lcm import metrics
        from observations import wiring  # noqa: F401  (observations follow sessions)
        from observations.filters import add_filters
        from observations.metrics import observation_figures

        metrics.FLEET.append(observation_figures)
        add_filters()
