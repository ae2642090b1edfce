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
        _show_on_pages()


def _show_on_pages() -> None:
    """What observations add to the side bar, the pages of sessions and definitions, and the lists."""
    from lcm.pages.lists import DEFINITIONS
    from lcm.web import navigation, panels
    from lcm.web.lists import replace_list
    from lcm.web.needs import register_needs
    from observations.pages import lists
    from observations.pages.needs import needs_of_observations

    replace_list(DEFINITIONS, lists.DEFINITIONS)
    register_needs("observations", needs_of_observations)
    entry = navigation.Entry("drift", "Port drift", "drift_list", "/drift/", "arrows-right-left")
    navigation.register_entry("Plan", entry, after="capacity")
    panels.register_panel(page="definition", name="review", title="Review", url_name="definition_review")
    panels.register_panel(page="definition", name="drift", title="Port drift", url_name="definition_drift")
    panels.register_panel(page="session", name="observed", title="Observed", url_name="session_observed")
